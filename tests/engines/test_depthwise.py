"""Depthwise convolution against the op's kernel."""

from __future__ import annotations

import numpy as np
import pytest
from engines.agreement import BIASED, agrees, share_all

from irrun.engines.vectorized import depthwise

COMPILER = depthwise.COMPILERS["GroupConvolution-1"]


def random_arrays(*shapes):
    random = np.random.default_rng(5)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def compare(data, filters, strides=(1, 1), pads=(1, 1), dilations=(1, 1), ends=None):
    attrs = {
        "strides": strides,
        "dilations": dilations,
        "pads_begin": pads,
        "pads_end": pads if ends is None else ends,
        "auto_pad": "explicit",
    }
    (bias,) = random_arrays((1, filters.shape[0] * filters.shape[1], *[1] * (data.ndim - 2)))
    agrees(COMPILER, "GroupConvolution-1", attrs, [data, filters], BIASED, [bias])


@pytest.mark.parametrize("size", [7, 14, 28, 56])
@pytest.mark.parametrize("kernel", [3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2])
def test_layers_of_real_networks(size, kernel, stride):
    pad = (kernel // 2,) * 2
    compare(*random_arrays((1, 24, size, size), (24, 1, 1, kernel, kernel)), (stride,) * 2, pad)


def test_many_pieces(monkeypatch):
    share_all(monkeypatch)
    compare(*random_arrays((3, 40, 20, 19), (40, 1, 1, 3, 3)))


def test_more_padding_than_the_kernel_reaches():
    compare(*random_arrays((2, 3, 5, 6), (3, 1, 1, 3, 3)), pads=(4, 5), ends=(5, 4))


def test_padding_on_one_side():
    compare(*random_arrays((2, 3, 5, 6), (3, 1, 1, 3, 3)), pads=(0, 2), ends=(2, 0))
    compare(*random_arrays((2, 3, 5, 6), (3, 1, 1, 3, 4)), pads=(2, 0), ends=(0, 3))


def test_data_that_no_window_reaches():
    compare(*random_arrays((2, 3, 9, 10), (3, 1, 1, 2, 1)), strides=(4, 4), pads=(0, 0))


def test_several_features_of_each_channel():
    compare(*random_arrays((2, 3, 9, 8), (3, 4, 1, 3, 3)))


def test_data_that_are_a_view():
    (wide,) = random_arrays((2, 9, 10, 12))
    compare(wide.transpose(0, 3, 1, 2)[:, ::2, :, ::-1], *random_arrays((6, 1, 1, 3, 3)))


@pytest.mark.parametrize("size", [9, 30])
def test_numbers_that_are_none_reach_only_their_windows(size):
    data, filters = random_arrays((1, 3, size, size - 1), (3, 1, 1, 3, 3))
    data[0, 1, 4, 4], data[0, 0, 0, size - 2], data[0, 2, 5, 0] = np.nan, np.inf, -np.inf
    compare(data, filters)
