"""Convolution by products of matrices against the op's kernel."""

from __future__ import annotations

import numpy as np
import pytest
from engines.agreement import BIASED, agrees, share_all
from engines.works import THREADS, work_of

from irrun.engines.vectorized import convolution, depthwise
from irrun.engines.work import Post

COMPILERS = {**convolution.COMPILERS, **depthwise.COMPILERS}


def geometries(count):
    """Seeded random convolutions that have a window: (name, attributes, shape of the data, shape of the filters)."""
    random = np.random.default_rng(7)
    while count:
        axes = int(random.integers(1, 4))
        spatial, kernel = random.integers(1, 14, axes), random.integers(1, 5, axes)
        strides, dilations = random.integers(1, 4, axes), random.integers(1, 3, axes)
        begin, end = random.integers(0, 4, axes), random.integers(0, 4, axes)
        auto_pad = str(random.choice(["explicit", "explicit", "explicit", "same_upper", "same_lower", "valid"]))
        reach = (kernel - 1) * dilations + 1
        padded = spatial + (begin + end if auto_pad == "explicit" else 0)
        if not auto_pad.startswith("same") and (padded < reach).any():
            continue
        groups = int(random.choice([1, 1, 2, 3, 5]))
        channels, features = (int(n) for n in random.choice([1, 1, 2, 3], 2))
        attrs = {
            "strides": tuple(strides.tolist()),
            "dilations": tuple(dilations.tolist()),
            "pads_begin": tuple(begin.tolist()),
            "pads_end": tuple(end.tolist()),
            "auto_pad": auto_pad,
        }
        filters = (*((groups,) if groups > 1 else ()), features, channels, *kernel.tolist())
        data = (int(random.integers(1, 4)), groups * channels, *spatial.tolist())
        yield "GroupConvolution-1" if groups > 1 else "Convolution-1", attrs, data, filters
        count -= 1


GEOMETRIES = list(geometries(60))


def random_arrays(*shapes):
    random = np.random.default_rng(3)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def compare(name, attrs, data, filters, posts=True):
    features = filters.shape[0] * (filters.shape[1] if name.startswith("Group") else 1)
    (bias,) = random_arrays((1, features, *[1] * (data.ndim - 2)))
    agrees(COMPILERS[name], name, attrs, [data, filters], BIASED if posts else [], [bias] if posts else [])


@pytest.mark.parametrize(("name", "attrs", "data", "filters"), GEOMETRIES)
def test_any_geometry(name, attrs, data, filters):
    compare(name, attrs, *random_arrays(data, filters))


@pytest.mark.parametrize(("name", "attrs", "data", "filters"), GEOMETRIES)
def test_any_geometry_in_many_pieces(name, attrs, data, filters, monkeypatch):
    share_all(monkeypatch)
    monkeypatch.setattr(convolution, "LEAST_WINDOWS", 4)
    monkeypatch.setattr(convolution, "MAX_WINDOWS", 8)
    monkeypatch.setattr(depthwise, "BLOCK_BYTES", 1 << 10)
    compare(name, attrs, *random_arrays(data, filters))


def window(axes=2, stride=1, pad=0):
    ones = (1,) * axes
    return {
        "strides": (stride,) * axes,
        "dilations": ones,
        "pads_begin": (pad,) * axes,
        "pads_end": (pad,) * axes,
        "auto_pad": "explicit",
    }


@pytest.mark.parametrize(
    ("channels", "features", "size", "kernel", "stride", "pad"),
    [
        (16, 24, 40, 3, 1, 1),
        (16, 24, 41, 3, 2, 1),
        (256, 256, 14, 3, 1, 1),
        (300, 260, 7, 3, 1, 1),
        (3, 16, 64, 7, 2, 3),
        (3, 32, 64, 16, 16, 0),
        (64, 256, 28, 1, 1, 0),
        (256, 64, 28, 1, 1, 0),
        (64, 512, 28, 1, 2, 0),
        (600, 40, 5, 1, 1, 0),
    ],
)
def test_layers_of_real_networks(channels, features, size, kernel, stride, pad):
    arrays = random_arrays((1, channels, size, size), (features, channels, kernel, kernel))
    compare("Convolution-1", window(2, stride, pad), *arrays)


def test_few_windows_of_many_groups():
    compare("GroupConvolution-1", window(2, 1, 1), *random_arrays((2, 320, 7, 7), (5, 70, 64, 3, 3)))


@pytest.mark.parametrize("kernel", [1, 3])
def test_data_that_are_a_view(kernel):
    (wide,) = random_arrays((2, 9, 10, 12))
    (filters,) = random_arrays((4, 6, kernel, kernel))
    compare("Convolution-1", window(2, 1, kernel // 2), wide.transpose(0, 3, 1, 2)[:, ::2, :, ::-1], filters)
    compare("Convolution-1", window(2, 1, kernel // 2), np.broadcast_to(wide[:1, :6], (3, 6, 10, 12)), filters)


def test_posts_with_a_residual():
    data, filters, residual = random_arrays((2, 3, 9, 8), (5, 3, 3, 3), (2, 5, 9, 8))
    posts = [Post("Add-1", {"auto_broadcast": "numpy"}, 2, reflected=True), Post("Sigmoid-1", {})]
    agrees(COMPILERS["Convolution-1"], "Convolution-1", window(2, 1, 1), [data, filters], posts, [residual])


def test_numbers_that_are_none_reach_only_their_windows():
    data, filters = random_arrays((1, 3, 9, 8), (5, 3, 3, 3))
    data[0, 1, 4, 4], data[0, 0, 0, 7] = np.nan, np.inf
    compare("Convolution-1", window(2, 1, 1), data, filters)


def test_other_types_are_left_to_others():
    data, filters = (array.astype(np.float64) for array in random_arrays((1, 3, 9), (5, 3, 3)))
    work = work_of("Convolution-1", window(1), [data, filters], [((1, 5, 7), "f64")])
    assert COMPILERS["Convolution-1"](work, THREADS) is None


def test_posts_that_are_unknown_are_left_to_others():
    work = work_of("Convolution-1", window(1), random_arrays((1, 3, 9), (5, 3, 3)), [((1, 5, 7), "f32")])
    work.posts.append(Post("Selu-1", {}))
    assert COMPILERS["Convolution-1"](work, THREADS) is None
