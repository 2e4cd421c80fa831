"""Interpolation on numpy against the plain kernel: all modes, growing and shrinking, and data that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.works import THREADS, computed, plain, posted, work_of

from irrun.engines.vectorized import resampling
from irrun.engines.vectorized.resampling import COMPILERS
from irrun.engines.work import Compiled, Post, Work
from irrun.spec.dtypes import element_type

rng = np.random.default_rng(7)
ATTRS = {
    "shape_calculation_mode": "sizes",
    "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "round_prefer_floor",
    "antialias": False,
    "pads_begin": (0,),
    "pads_end": (0,),
    "cube_coeff": -0.75,
}


def numbers(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def compiled(
    attrs: dict[str, Any], arrays: list[Any], posts: tuple[Post, ...] = (), own: int | None = None
) -> tuple[Any, Work, Compiled | None]:
    expected = posted(posts, plain("Interpolate-11", attrs, arrays[:own]), arrays)
    outputs = [(expected.shape, element_type(expected.dtype))]
    work = work_of("Interpolate-11", attrs, arrays, outputs, posts, range(1, len(arrays) if own is None else own))
    return expected, work, COMPILERS["Interpolate-11"](work, THREADS)


def check(attrs: dict[str, Any], *arrays: Any, posts: tuple[Post, ...] = (), own: int | None = None) -> None:
    given = [np.asarray(array) for array in arrays]
    expected, work, found = compiled(ATTRS | attrs, given, posts, own)
    assert found is not None
    np.testing.assert_allclose(computed(found, work, given)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"])
@pytest.mark.parametrize("transform", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize(("height", "width"), [(14, 40), (7, 33), (3, 4), (7, 5), (100, 9)])
def test_axes_of_an_image(mode: str, transform: str, height: int, width: int) -> None:
    attrs = {"mode": mode, "coordinate_transformation_mode": transform}
    check(attrs, numbers(2, 3, 7, 10), [height, width], [2, 3])
    check(attrs, numbers(1, 7, 10, 3), [height, width], [1, 2])


def test_other_axes_and_scales() -> None:
    linear = {"mode": "linear"}
    check(linear, numbers(5, 6), [8, 13], [0, 1])
    check(linear, numbers(5, 6), [8, 13])
    check(linear, numbers(2, 5, 6, 4), [9, 3], [3, 0])
    check(linear, numbers(1, 7, 10, 9), [14, 5], [1, 2])
    check(linear | {"shape_calculation_mode": "scales"}, numbers(2, 5, 6), np.float32([1.7, 0.5]), [1, 2])
    check(linear | {"antialias": True}, numbers(2, 50, 60), [13, 20], [1, 2])
    check(linear, numbers(3, 200, 150), [333, 401], [1, 2])


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_strided_data(mode: str) -> None:
    check({"mode": mode}, numbers(2, 7, 10, 3).transpose(0, 3, 1, 2), [14, 33], [2, 3])
    check({"mode": mode}, numbers(10, 9, 8, 7)[::2, 1:], [14], [3])
    check({"mode": mode}, numbers(1, 70, 90, 64).transpose(0, 3, 1, 2), [140, 130], [2, 3])


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_sizes_that_stay(mode: str) -> None:
    check({"mode": mode}, numbers(2, 3, 7, 10), [7, 10], [2, 3])
    check({"mode": mode}, numbers(2, 7, 10, 3).transpose(0, 3, 1, 2), [7, 10], [2, 3])


LAST = (0, 3, 1, 2)
"""The order of axes of an image whose channels are the last ones in memory."""


@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "nearest", "bilinear_pillow"])
@pytest.mark.parametrize("shape", [(2, 5, 6, 20), (1, 5, 6, 3), (1, 1, 6, 3), (3, 5, 6, 1)])
def test_data_with_channels_last_stay_so(mode: str, shape: tuple[int, ...]) -> None:
    data, sizes = numbers(*shape).transpose(LAST), np.array([2 * shape[1], 18])
    attrs = ATTRS | {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for order in ([2, 3], [3, 2]):
        given = [data, sizes if order == [2, 3] else sizes[::-1], np.array(order)]
        expected, work, found = compiled(attrs, given)
        assert found is not None
        assert bool(found.gives) == (shape[-1] > 1)
        result = computed(found, work, given)[0]
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
        assert result.transpose(0, 2, 3, 1).flags.c_contiguous


def test_other_orders_of_axes() -> None:
    linear = {"mode": "linear"}
    check(linear, numbers(6, 5).T, [8, 13], [0, 1])
    check(linear, numbers(6, 5).T, [8, 13])
    check(linear | {"shape_calculation_mode": "scales"}, numbers(6, 5).T, np.float32([1.7, 0.5]))
    check(linear, numbers(4, 6, 2, 5).transpose(2, 3, 1, 0), [9, 3], [3, 1])
    check(linear, numbers(2, 6, 5, 4).transpose(LAST)[:, 1:], [9, 3], [2, 3])  # with gaps
    check(linear | {"pads_begin": (0,)}, np.broadcast_to(numbers(5, 6), (3, 5, 6)), [9, 3], [1, 2])


def test_posts_of_data_with_channels_last() -> None:
    data, shape = numbers(2, 5, 6, 3).transpose(LAST), (2, 3, 9, 8)
    for other in (
        *(numbers(3, 1, 1), numbers(8), numbers(), numbers(1, 1, 1, 1), numbers(2, 1, 9, 1), numbers(*shape)),
        *(numbers(2, 9, 8, 3).transpose(LAST), numbers(9, 16)[:, ::2]),
    ):
        for reflected in (False, True):
            posts = (Post("Subtract-1", {"auto_broadcast": "numpy"}, 3, reflected), Post("Sigmoid-1", {}))
            for mode in ("linear", "nearest"):
                attrs = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
                size = [9, 8] if mode == "linear" else [10, 12]
                if mode == "linear" or max(other.shape[-2:], default=1) == 1:
                    check(attrs, data, size, [2, 3], other, posts=posts, own=3)
    slopes = (Post("PReLU-1", {}, 3),)
    check({"mode": "linear"}, data, [9, 8], [2, 3], numbers(3), posts=slopes, own=3)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("by", ["sizes", "scales"])
def test_version_4(by: str, named: bool) -> None:
    attrs = ATTRS | {"mode": "linear_onnx", "shape_calculation_mode": by}
    sizes, scales, axes = np.array([9, 12]), np.float32([1.5, 2.1]), [np.array([2, 3])]
    if not named:
        sizes, scales, axes = np.array([2, 3, 9, 12]), np.float32([1, 1, 1.5, 2.1]), []
    for data in (numbers(2, 3, 5, 6), numbers(2, 5, 6, 3).transpose(LAST)):
        arrays = [data, sizes, scales, *axes]
        expected = plain("Interpolate-4", attrs, arrays)
        work = work_of("Interpolate-4", attrs, arrays, [(expected.shape, "f32")], constant=(1, 2, 3))
        found = COMPILERS["Interpolate-4"](work, THREADS)
        assert found is not None
        np.testing.assert_allclose(computed(found, work, arrays)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_where_it_is(value: float) -> None:
    data = numbers(2, 3, 20, 30)
    data[1, 2, 3, 4] = value
    check({"mode": "linear"}, data, [40, 70], [2, 3])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mode", ["linear", "linear_onnx"])
@pytest.mark.parametrize("column", range(6))
def test_what_is_not_finite_counts_where_its_weight_is_0(column: int, mode: str, value: float) -> None:
    data = numbers(2, 3, 8, 6)
    data[1, 2, 3, column] = value
    for coordinates in ("asymmetric", "tf_half_pixel_for_nn", "align_corners"):
        check({"mode": mode, "coordinate_transformation_mode": coordinates}, data, [8, 3], [2, 3])
        check({"mode": mode, "coordinate_transformation_mode": coordinates}, data, [4, 3], [2, 3])


@pytest.mark.parametrize("dtype", ["f4", "u1", "i8"])
def test_nearest_elements_that_repeat_evenly(dtype: str) -> None:
    data = rng.integers(0, 100, (2, 3, 5, 6)).astype(dtype)
    attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    check(attrs, data, [10, 18], [2, 3])
    check(attrs, data.transpose(0, 2, 3, 1), [10, 18], [1, 2])


def test_unit_vectors_of_a_long_axis_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, eye = [], np.eye
    monkeypatch.setattr(np, "eye", lambda *sizes: made.append(sizes[:2]) or eye(*sizes))
    monkeypatch.setattr(resampling, "MAX_PROBED", 1000)
    for antialias in (False, True):
        check(ATTRS | {"mode": "cubic", "antialias": antialias}, numbers(3, 90), np.array([7]), np.array([1]))
    assert made == [(11, 90)] * 8 + [(2, 90)] + [(11, 90)] * 8 + [(2, 90)]


def test_posts() -> None:
    posts = (Post("Add-1", {"auto_broadcast": "numpy"}, 3), Post("Sigmoid-1", {}))
    check({"mode": "linear"}, numbers(2, 3, 5, 6), [9, 8], [2, 3], numbers(3, 1, 1), posts=posts, own=3)


@pytest.mark.parametrize(
    "attrs",
    [
        {"mode": "nearest"},
        {"mode": "linear", "pads_begin": (0, 1, 0)},
        {"mode": "linear", "antialias": True},
    ],
)
def test_what_is_left_to_others(attrs: dict[str, Any]) -> None:
    _, _, found = compiled(ATTRS | attrs, [numbers(2, 5, 6), np.array([3, 8]), np.array([1, 2])])
    assert found is None


def test_sizes_that_vary_and_integers_are_left_to_others() -> None:
    arrays = [numbers(2, 5, 6), np.array([3, 8]), np.array([1, 2])]
    work = work_of("Interpolate-11", ATTRS | {"mode": "linear"}, arrays, [((2, 3, 8), "f32")], constant=(2,))
    assert COMPILERS["Interpolate-11"](work, THREADS) is None
    arrays[0] = arrays[0].astype(np.uint8)
    _, _, found = compiled(ATTRS | {"mode": "linear"}, arrays)
    assert found is None
