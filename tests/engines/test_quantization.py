"""FakeQuantize and FakeConvert on numpy: bit by bit what the ops' kernels give, alone and behind others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.works import THREADS, computed, plain, work_of

from irrun.engines.vectorized import convolution, elementwise
from irrun.engines.work import Post
from irrun.spec.dtypes import numpy_dtype

ATTRS = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}
rng = np.random.default_rng(11)


def f32(value: Any) -> Any:
    return np.asarray(value, np.float32)


LIMITS = [
    (0, 6, 0, 6),
    (-1.27, 1.27, -1.27, 1.27),
    (-2.5, 1.3, -2.5, 1.3),
    (-1, 3, 0, 255),
    (2, -1, 0, 1),
    (-1, 1, 3, -3),
    (0.1, 0.1, 0, 1),
    (0, 1e30, 0, 3e38),
    (-3e38, 3e38, -1, 1),
]


@pytest.mark.parametrize("levels", [2, 3, 16, 255, 256, 65536])
@pytest.mark.parametrize("limits", LIMITS)
def test_every_bit(levels: int, limits: tuple[float, ...]) -> None:
    low, high = min(limits[:2]), max(limits[:2])
    data = f32(np.clip(rng.uniform(-1, 2, (3, 5, 400)) * (high - low) + low, -3.4e38, 3.4e38))
    data[0, 0, :8] = (np.nan, np.inf, -np.inf, low, high, 0, np.nextafter(f32(high), 9), np.nextafter(f32(low), -9))
    check(data, levels, *map(f32, limits))


def test_ties_go_to_the_even_level() -> None:
    data = f32([-0.5, 0.5, 1.5, 2.5, 3.5, 253.5, 254.5, 255.5])
    found = check(data, 256, f32(0), f32(255), f32(0), f32(255))
    assert found.tolist() == [0, 0, 2, 2, 4, 254, 254, 255]


@pytest.mark.parametrize("constant", [(), (1, 2, 3, 4)])
@pytest.mark.parametrize("shape", [(1, 6, 1, 1), (6, 1, 1), (1, 1, 1, 5), (2, 6, 4, 5), (1,), ()])
def test_limits_of_each_channel(shape: tuple[int, ...], constant: tuple[int, ...]) -> None:
    low = f32(rng.uniform(-2, -1, shape))
    high = f32(rng.uniform(1, 2, shape))
    check(f32(rng.normal(0, 1.5, (2, 6, 4, 5))), 256, low, high, low, high, constant=constant)


def test_large_tensors_in_blocks() -> None:
    low, high = f32(rng.uniform(-2, -1, (1, 48, 1, 1))), f32(rng.uniform(1, 2, (1, 48, 1, 1)))
    check(f32(rng.normal(0, 1.5, (2, 48, 90, 91))), 256, low, high, f32(0), f32(1))


def test_limits_that_change_from_run_to_run() -> None:
    data, limits = f32(rng.normal(0, 1, (40, 50))), [f32(v) for v in (-1, 1, -1, 1)]
    work = work_of("FakeQuantize-1", {"levels": 256, **ATTRS}, [data, *limits], [(data.shape, "f32")])
    compiled = elementwise.COMPILERS["FakeQuantize-1"](work, THREADS)
    assert compiled is not None
    output = np.empty_like(data)
    call = compiled.bind([data, *limits], [output], None)
    for values in ((-1, 1, -1, 1), (0, 2, 5, 6), (1, 0, 0, 1)):
        for limit, value in zip(limits, values, strict=True):
            limit[...] = value
        call()
        expected = plain("FakeQuantize-1", {"levels": 256, **ATTRS}, [data, *limits])
        np.testing.assert_array_equal(output, expected)


def test_doubles_are_taken_and_halves_are_left_to_the_kernel() -> None:
    check(rng.normal(0, 1, (40, 50)), 256, *map(np.float64, (-1, 1, -1, 1)))
    data = np.zeros((2, 3), np.float16)
    work = work_of(
        "FakeQuantize-1", {"levels": 4, **ATTRS}, [data, *[np.float16(v) for v in range(4)]], [((2, 3), "f16")]
    )
    assert elementwise.COMPILERS["FakeQuantize-1"](work, THREADS) is None


def test_limits_that_broadcast_by_an_axis_are_left_to_the_kernel() -> None:
    attrs = {"levels": 4, "auto_broadcast": "pdpd", "auto_broadcast_axis": 0}
    work = work_of("FakeQuantize-1", attrs, [f32([[1]]), *[f32([v]) for v in range(4)]], [((1, 1), "f32")])
    assert elementwise.COMPILERS["FakeQuantize-1"](work, THREADS) is None


@pytest.mark.parametrize("shape", [(), (1, 4, 1, 1)])
def test_behind_a_convolution(shape: tuple[int, ...]) -> None:
    low, high = f32(rng.uniform(-2, -1, shape)), f32(rng.uniform(1, 2, shape))
    data, filters, other = (
        f32(rng.normal(0, 1, (2, 3, 7, 7))),
        f32(rng.normal(0, 1, (4, 3, 3, 3))),
        f32(rng.normal(0, 1, (2, 4, 7, 7))),
    )
    attrs = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1), "auto_pad": "explicit"}
    arrays = [data, filters, low, high, low, high, other]
    quantize = Post("FakeQuantize-1", {"levels": 256, **ATTRS}, parameters=(2, 3, 4, 5))
    posts = [quantize, Post("Add-1", ATTRS, 6), Post("ReLU-1", {})]
    work = work_of("Convolution-1", attrs, arrays, [((2, 4, 7, 7), "f32")], posts, (1, 2, 3, 4, 5))
    compiled = convolution.COMPILERS["Convolution-1"](work, THREADS)
    assert compiled is not None
    (found,) = computed(compiled, work, arrays)
    before = work_of("Convolution-1", attrs, arrays[:2], [((2, 4, 7, 7), "f32")], (), (1,))
    convolved = convolution.COMPILERS["Convolution-1"](before, THREADS)
    assert convolved is not None
    (middle,) = computed(convolved, before, arrays[:2])
    quantized = plain("FakeQuantize-1", {"levels": 256, **ATTRS}, [middle, low, high, low, high])
    np.testing.assert_array_equal(found, np.maximum(quantized + other, 0))


def check(data: Any, levels: int, *limits: Any, constant: tuple[int, ...] = (1, 2, 3, 4)) -> Any:
    attrs, arrays = {"levels": levels, **ATTRS}, [data, *limits]
    expected = plain("FakeQuantize-1", attrs, arrays)
    work = work_of(
        "FakeQuantize-1", attrs, arrays, [(data.shape, "f32" if data.dtype == np.float32 else "f64")], (), constant
    )
    compiled = elementwise.COMPILERS["FakeQuantize-1"](work, THREADS)
    assert compiled is not None
    (found,) = computed(compiled, work, arrays)
    np.testing.assert_array_equal(found, expected)
    return found


@pytest.mark.parametrize("shift", [None, 0.25])
@pytest.mark.parametrize("type", ["f8e4m3", "f8e5m2"])
def test_every_bit_of_fake_convert(type: str, shift: float | None) -> None:
    codes = np.arange(256, dtype=np.uint8).view(numpy_dtype(type)).astype(np.float32)
    numbers = np.sort(codes[np.isfinite(codes)])
    halves = (numbers[1:] + numbers[:-1]) / 2
    data = np.concatenate([codes, halves, np.nextafter(halves, f32(0)), np.nextafter(halves, f32(np.inf))])
    data = np.concatenate([data, -data, f32([0, -0.0, 1e-45, -1e-30, 3e38, -3e38, 449, -57345])])
    for scale in (f32(1), f32([[1], [0.3], [-7]]), f32(1e30)):
        given = [np.tile(data, (3, 1)), scale] + ([] if shift is None else [np.full_like(scale, shift)])
        name, attrs = "FakeConvert-13", {"destination_type": type}
        work = work_of(name, attrs, given, [(given[0].shape, "f32")], (), tuple(range(1, len(given))))
        compiled = elementwise.COMPILERS[name](work, THREADS)
        assert compiled is not None
        (found,) = computed(compiled, work, given)
        expected = plain(name, attrs, given)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
