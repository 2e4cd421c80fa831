"""Transposed convolution against the ops' kernels."""

from __future__ import annotations

import numpy as np
import pytest
from engines.agreement import agrees, share_all
from engines.works import THREADS, work_of

from irrun.engines.vectorized import transposed_convolution
from irrun.engines.work import Post

POSTS = [Post("Add-1", {"auto_broadcast": "numpy"}, 3), Post("ReLU-1", {})]


@pytest.fixture(params=[False, True], autouse=True)
def _shared(request, monkeypatch):
    if request.param:
        share_all(monkeypatch)
        monkeypatch.setattr(transposed_convolution, "BLOCK_BYTES", 4 << 10)


def random_array(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def compare(data, filters, strides, begin, end, dilations=None, output_padding=(), output_shape=None, auto_pad=None):
    attrs = {
        "strides": strides,
        "pads_begin": begin,
        "pads_end": end,
        "dilations": dilations or (1,) * len(strides),
        "auto_pad": auto_pad or "explicit",
        "output_padding": output_padding,
    }
    grouped = filters.ndim > data.ndim
    name = "GroupConvolutionBackpropData-1" if grouped else "ConvolutionBackpropData-1"
    features = filters.shape[0] * filters.shape[2] if grouped else filters.shape[1]
    shape = None if output_shape is None else np.array(output_shape)
    compiler = transposed_convolution.COMPILERS[name]
    bias = random_array(1, features, *[1] * len(strides))
    agrees(compiler, name, attrs, [data, filters, shape], POSTS, [bias], (1, 2))
    if shape is None:
        agrees(compiler, name, attrs, [data, filters], (), (), (1,))


def test_geometries():
    compare(random_array(2, 3, 9), random_array(3, 4, 3), (2,), (1,), (1,))
    compare(random_array(2, 3, 9, 8), random_array(3, 4, 3, 2), (2, 3), (1, 0), (0, 1))
    compare(random_array(2, 3, 9, 8), random_array(3, 4, 2, 2), (2, 2), (0, 0), (0, 0))
    compare(random_array(1, 3, 5, 6), random_array(3, 4, 3, 3), (2, 2), (1, 1), (1, 1), output_padding=(1, 1))
    compare(random_array(1, 3, 5, 6), random_array(3, 4, 3, 3), (1, 2), (1, 1), (1, 1), dilations=(2, 3))
    compare(random_array(1, 3, 4, 5, 3), random_array(3, 2, 3, 2, 2), (2, 1, 3), (1, 0, 0), (0, 1, 0))
    compare(random_array(1, 3, 5, 6), random_array(3, 4, 1, 1), (3, 3), (0, 0), (0, 0))
    compare(random_array(1, 3, 5, 6), random_array(3, 4, 3, 3), (2, 2), (1, 1), (1, 1), auto_pad="valid")


@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper", "same_lower", "valid"])
def test_an_output_shape_distributes_the_padding(auto_pad):
    data, filters = random_array(1, 3, 5, 6), random_array(3, 4, 3, 4)
    for shape in ((10, 12), (9, 13), (14, 20)):
        compare(data, filters, (2, 2), (1, 1), (1, 1), output_shape=shape, auto_pad=auto_pad)


def test_groups():
    compare(random_array(2, 6, 5, 6), random_array(3, 2, 4, 3, 3), (2, 2), (1, 1), (1, 1))
    compare(random_array(2, 6, 5, 6), random_array(6, 1, 1, 3, 3), (2, 2), (1, 1), (1, 1))


def test_numbers_that_are_none():
    data = random_array(1, 3, 5, 6)
    data[0, 1, 2, 2], data[0, 0, 0, 0] = np.nan, np.inf
    compare(data, random_array(3, 4, 3, 3), (2, 2), (1, 1), (1, 1))


def test_other_types_and_views_are_left_to_others():
    attrs = {"strides": (1,), "pads_begin": (0,), "pads_end": (0,), "dilations": (1,)}
    attrs |= {"auto_pad": "explicit", "output_padding": ()}
    arrays = [np.zeros((1, 2, 5)), np.zeros((2, 3, 3))]
    work = work_of("ConvolutionBackpropData-1", attrs, arrays, [((1, 3, 7), "f64")])
    assert transposed_convolution.COMPILERS["ConvolutionBackpropData-1"](work, THREADS) is None
    arrays = [random_array(1, 2, 10)[..., ::2], random_array(2, 3, 3)]
    work = work_of("ConvolutionBackpropData-1", attrs, arrays, [((1, 3, 7), "f32")])
    assert transposed_convolution.COMPILERS["ConvolutionBackpropData-1"](work, THREADS) is None
