"""Pooling on blocks of channels against the ops' kernels."""

from __future__ import annotations

import numpy as np
import pytest
from engines.agreement import agrees, share_all
from engines.works import THREADS, computed, plain, work_of

from irrun.engines.vectorized import pooling
from irrun.engines.work import Post

OPS = ["MaxPool-1", "AvgPool-1", "AvgPool-14", "AvgPool-16"]


@pytest.fixture(params=[False, True], autouse=True)
def _shared(request, monkeypatch):
    if request.param:
        share_all(monkeypatch)
        monkeypatch.setattr(pooling, "BLOCK_BYTES", 4 << 10)


def random_array(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def compare(name, data, kernel, strides, begin, end=None, auto_pad="explicit", rounding="floor", posts=(), operands=()):
    attrs = {
        "kernel": kernel,
        "strides": strides,
        "pads_begin": begin,
        "pads_end": begin if end is None else end,
        "auto_pad": auto_pad,
        "rounding_type": rounding,
    }
    if name == "AvgPool-16":
        attrs["dilations"] = (2,) * len(kernel) if all(size > 9 for size in data.shape[2:]) else ()
    for exclude_pad in (False, True) if name.startswith("Avg") else (None,):
        more = {} if exclude_pad is None else {"exclude_pad": exclude_pad}
        agrees(pooling.COMPILERS[name], name, attrs | more, [data], posts, operands, ())


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.parametrize("name", OPS)
def test_geometries(name, rounding):
    compare(name, random_array(2, 5, 13), (3,), (2,), (1,), rounding=rounding)
    compare(name, random_array(2, 5, 9, 11), (3, 2), (2, 3), (1, 1), (0, 1), rounding=rounding)
    compare(name, random_array(1, 3, 20, 22), (2, 2), (2, 2), (0, 0), rounding=rounding)
    compare(name, random_array(2, 3, 7, 8, 9), (3, 2, 1), (2, 1, 3), (1, 0, 0), (0, 1, 0), rounding=rounding)
    compare(name, random_array(2, 3, 7, 8, 9), (2, 2, 2), (2, 2, 2), (0, 0, 0), rounding=rounding)
    compare(name, random_array(2, 30, 7, 7), (7, 7), (1, 1), (0, 0), rounding=rounding)
    compare(name, random_array(1, 4, 10), (1,), (3,), (0,), rounding=rounding)
    for auto_pad in ("same_upper", "same_lower", "valid"):
        compare(name, random_array(2, 5, 9, 12), (3, 4), (2, 3), (0, 0), auto_pad=auto_pad, rounding=rounding)


def test_windows_that_start_in_the_padding_are_dropped():
    compare("AvgPool-14", random_array(1, 2, 3), (2,), (2,), (1,), rounding="ceil_torch")


@pytest.mark.parametrize("name", OPS)
def test_data_that_are_a_view(name):
    data = random_array(2, 9, 10, 12).transpose(0, 3, 1, 2)[:, ::2, :, ::-1]
    compare(name, data, (3, 3), (2, 2), (1, 1))
    compare(name, data, (3, 3), (2, 2), (0, 0))


@pytest.mark.parametrize("name", OPS)
def test_numbers_that_are_none(name):
    data = random_array(1, 2, 12, 12)
    data[0, 0, 3, 3], data[0, 0, 8, 2], data[0, 1, 1, 1], data[0, 1, 4:9, 4:9] = np.nan, np.inf, -np.inf, np.nan
    compare(name, data, (3, 3), (1, 1), (1, 1))
    data[0, 0] = -np.inf
    compare(name, data, (2, 2), (2, 2), (0, 0))


@pytest.mark.parametrize("name", OPS)
def test_posts(name):
    posts = [Post("Add-1", {"auto_broadcast": "numpy"}, 1), Post("ReLU-1", {})]
    compare(name, random_array(2, 6, 9, 9), (3, 3), (2, 2), (1, 1), posts=posts, operands=[random_array(1, 6, 1, 1)])


@pytest.mark.parametrize("name", ["MaxPool-8", "MaxPool-14"])
def test_the_largest_elements_without_their_indices(name):
    attrs = {"kernel": (3, 2), "strides": (2, 1), "pads_begin": (1, 0), "pads_end": (0, 1), "auto_pad": "explicit"}
    attrs |= {"dilations": (1, 2), "rounding_type": "floor", "index_element_type": "i64", "axis": 0}
    data = random_array(2, 3, 9, 10)
    values, indices = plain(name, attrs, [data])
    work = work_of(name, attrs, [data], [(values.shape, "f32")])
    compiled = pooling.COMPILERS[name](work, THREADS)
    np.testing.assert_array_equal(computed(compiled, work, [data])[0], values)
    both = work_of(name, attrs, [data], [(values.shape, "f32"), (indices.shape, "i64")])
    assert pooling.COMPILERS[name](both, THREADS) is None


def test_other_types_are_left_to_others():
    attrs = {"kernel": (2,), "strides": (2,), "pads_begin": (0,), "pads_end": (0,), "auto_pad": "explicit"}
    work = work_of("MaxPool-1", attrs, [np.zeros((1, 2, 6), np.int32)], [((1, 2, 3), "i32")])
    assert pooling.COMPILERS["MaxPool-1"](work, THREADS) is None
