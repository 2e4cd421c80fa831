"""Convolution of bits on numpy against the plain kernel and written-out values."""

import numpy as np
import pytest
from engines.works import THREADS, computed, plain, work_of

from irrun.engines.vectorized.binary_convolution import COMPILERS
from irrun.engines.vectorized.engine import VectorizedEngine

NAME = "BinaryConvolution-1"
WINDOW = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "auto_pad": "explicit"}
ATTRS = WINDOW | {"mode": "xnor-popcount", "pad_value": 0.0}


def prepared(data, filters, constant=(1,), **attrs):
    arrays, attrs = [data, filters], ATTRS | attrs
    expected = plain(NAME, attrs, arrays)
    type = "f32" if data.dtype == np.float32 else "f64"
    work = work_of(NAME, attrs, arrays, [(expected.shape, type)], constant=constant)
    work.inputs[1].type = "u1"
    return expected, work, COMPILERS[NAME](work, THREADS)


def check(data, filters, **attrs):
    expected, work, compiled = prepared(data, filters, **attrs)
    assert compiled is not None
    (found,) = computed(compiled, work, [data, filters])
    np.testing.assert_array_equal(found, expected)
    return found


def test_equal_bits_less_different_ones():
    data, filters = np.float32([[[[1, 0, 0]]]]), np.uint8([[[[1, 1]]]])
    assert check(data, filters).tolist() == [[[[0, -2]]]]


@pytest.mark.parametrize("pad", [0.0, 1.0])
@pytest.mark.parametrize(
    "window",
    [
        {},
        {"pads_begin": (1, 2), "pads_end": (2, 0)},
        {"strides": (2, 1), "dilations": (1, 2), "pads_begin": (1, 1), "pads_end": (1, 1)},
        {"strides": (3, 3)},
        {"pads_end": (0, -2)},
        {"auto_pad": "same_upper", "strides": (2, 2)},
        {"auto_pad": "same_lower"},
    ],
)
def test_windows_are_those_of_the_kernel(window, pad):
    rng = np.random.default_rng(5)
    for images, channels, features in ((1, 3, 4), (2, 8, 1)):
        data = rng.integers(0, 2, (images, channels, 9, 11)).astype(np.float32)
        filters = rng.integers(0, 2, (features, channels, 3, 2)).astype(np.uint8)
        check(data, filters, pad_value=pad, **window)


def test_views_of_data():
    rng = np.random.default_rng(6)
    data = rng.integers(0, 2, (1, 9, 8, 4)).astype(np.float32).transpose(0, 3, 1, 2)
    check(data, rng.integers(0, 2, (5, 4, 3, 3)).astype(np.uint8), pads_begin=(1, 1))


@pytest.mark.parametrize("value", [0.5, -1, 2, np.nan, np.inf])
def test_what_is_no_bit_equals_none(value):
    data = np.ones((1, 2, 4, 4), np.float32)
    data[0, 1, 2, 3] = value
    check(data, np.ones((3, 2, 2, 2), np.uint8), pads_begin=(1, 1))


def test_what_is_left_to_others():
    data, filters = np.ones((1, 2, 4, 4), np.float32), np.ones((3, 2, 2, 2), np.uint8)
    assert prepared(data, filters, constant=())[2] is None
    assert prepared(data.astype(np.float64), filters)[2] is None


def test_the_engine_takes_it():
    data, filters = np.ones((1, 2, 4, 4), np.float32), np.ones((3, 2, 2, 2), np.uint8)
    assert VectorizedEngine(2).compile(prepared(data, filters)[1]) is not None
