"""Ops that move elements, on numpy: against the plain kernels, also where inputs are views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engines.works import THREADS, computed, plain, posted, work_of

from irrun.engines.vectorized.copies import COMPILERS
from irrun.engines.vectorized.copying import copy_calls
from irrun.engines.work import Post
from irrun.spec.dtypes import element_type

rng = np.random.default_rng(5)


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return rng.integers(-100, 100, shape).astype(dtype)


def check(name: str, attrs: dict[str, Any], *arrays: Any, posts: tuple[Post, ...] = (), own: int | None = None) -> None:
    """All inputs but the first are constant, those of Concat are not."""
    arrays_ = [np.asarray(array) if array is not None else None for array in arrays]
    expected = plain(name, attrs, arrays_[:own])
    expected = list(expected) if isinstance(expected, tuple) else [posted(posts, expected, arrays_)]
    outputs = [(array.shape, element_type(array.dtype)) for array in expected]
    constant = () if name == "Concat-1" else range(1, len(arrays_) if own is None else own)
    work = work_of(name, attrs, arrays_, outputs, posts, constant)
    compiled = COMPILERS[name](work, THREADS)
    assert compiled is not None
    for got, wanted in zip(computed(compiled, work, arrays_), expected, strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


VIEWS = {
    "dense": lambda array: array,
    "transposed": lambda array: np.ascontiguousarray(array.T).T,
    "sliced": lambda array: np.repeat(array, 2, -1)[..., ::2],
    "reversed": lambda array: np.ascontiguousarray(array[::-1])[::-1],
    "repeated": lambda array: np.broadcast_to(array[:1], array.shape),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["f4", "i8", "?", "u1"])
def test_views_are_copied(view: str, dtype: str) -> None:
    data = VIEWS[view](numbers(4, 6, 8, dtype=dtype))
    check("Reshape-1", {"special_zero": False}, data, [12, 16])
    check("Squeeze-1", {}, VIEWS[view](numbers(4, 1, 8, dtype=dtype)), [1])
    check("Unsqueeze-1", {}, data, [0, 2])
    check("Transpose-1", {}, data, [1, 2, 0])
    check("Transpose-1", {}, data, np.array([], np.int64))
    check("Split-1", {"num_splits": 3}, data, 1)
    check("Split-1", {"num_splits": 2}, data, -1)
    check("VariadicSplit-1", {}, data, 2, [1, -1, 5])
    check("Slice-8", {}, data, [1, 7], [-1, -100], [1, -2], [1, 2])
    check("Slice-8", {}, data, [1], [3], [1], None)
    check("Roll-7", {}, data, [1, -3], [0, 1])
    check("Roll-7", {}, data, [2], [-1, 0])
    check("Tile-1", {}, data, [2, 1, 3])
    check("Tile-1", {}, data, [2, 1, 1, 3])
    check("Broadcast-3", {"mode": "numpy"}, data, [2, 4, 6, 8], None)
    check("Broadcast-3", {"mode": "bidirectional"}, data, [3, 1, 1, 1])
    check("Broadcast-3", {"mode": "explicit"}, data, [4, 2, 6, 8], [0, 2, 3])
    check("Concat-1", {"axis": 1}, data, VIEWS[view](numbers(4, 1, 8, dtype=dtype)), data)
    check("ShuffleChannels-1", {"axis": 1, "group": 3}, data)


@pytest.mark.parametrize("mode", ["blocks_first", "depth_first"])
@pytest.mark.parametrize("view", VIEWS)
def test_blocks_move_between_depth_and_space(mode: str, view: str) -> None:
    check("DepthToSpace-1", {"block_size": 2, "mode": mode}, VIEWS[view](numbers(2, 12, 3, 5)))
    check("SpaceToDepth-1", {"block_size": 2, "mode": mode}, VIEWS[view](numbers(2, 3, 4, 6)))
    check("DepthToSpace-1", {"block_size": 2, "mode": mode}, VIEWS[view](numbers(2, 16, 3, 5, 2)))


@pytest.mark.parametrize("shape", [(2, 4, 4, 6), (1, 12, 2, 2), (3, 8, 6, 4), (2, 18, 3, 9), (1, 64, 32, 32)])
@pytest.mark.parametrize("dtype", ["f4", "i8", "?", "u1"])
def test_pixels_move_into_channels(shape: tuple[int, ...], dtype: str) -> None:
    step = 3 if shape[1] % 9 == 0 else 2
    check("ReorgYolo-1", {"stride": (step,)}, numbers(*shape, dtype=dtype))


@pytest.mark.parametrize("view", sorted(VIEWS.keys() - {"dense"}))
def test_pixels_of_data_that_are_not_dense_are_left(view: str) -> None:
    """Which a copy when the call is bound would be, of what is there then."""
    data = VIEWS[view](numbers(2, 4, 4, 6))
    work = work_of("ReorgYolo-1", {"stride": (2,)}, [data], [((2, 16, 2, 3), "f32")])
    assert COMPILERS["ReorgYolo-1"](work, THREADS) is None


def test_pixels_are_left_where_the_result_is_not_dense() -> None:
    """As where it is a part of what is joined."""
    data = numbers(2, 4, 4, 6)
    work = work_of("ReorgYolo-1", {"stride": (2,)}, [data], [((2, 16, 2, 3), "f32")])
    (result,) = work.outputs
    apart = replace(result, strides=(2 * result.strides[0], *result.strides[1:]))
    assert COMPILERS["ReorgYolo-1"](replace(work, outputs=[apart]), THREADS) is None


def test_channels_that_end_within_a_block_are_left() -> None:
    data = numbers(1, 6, 2, 2)
    work = work_of("ReorgYolo-1", {"stride": (2,)}, [data], [((1, 24, 1, 1), "f32")])
    assert COMPILERS["ReorgYolo-1"](work, THREADS) is None


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("view", VIEWS)
def test_margins(mode: str, view: str) -> None:
    data = VIEWS[view](numbers(4, 5, 6))
    check("Pad-12", {"pad_mode": mode}, data, [1, 0, 3], [0, 4, 2])
    check("Pad-1", {"pad_mode": mode}, data, [3, 3, 3], [3, 3, 3], np.float32(7))


def test_negative_pads_crop() -> None:
    check("Pad-12", {"pad_mode": "constant"}, numbers(4, 5, 6), [-1, 2, -2], [2, -1, 0], np.float32(3))


def test_a_pad_value_that_varies() -> None:
    arrays = [numbers(2, 3), np.array([1, 1]), np.array([0, 2]), np.array(5, np.float32)]
    expected = plain("Pad-12", {"pad_mode": "constant"}, arrays)
    work = work_of("Pad-12", {"pad_mode": "constant"}, arrays, [(expected.shape, "f32")], constant=(1, 2))
    compiled = COMPILERS["Pad-12"](work, THREADS)
    assert compiled is not None
    np.testing.assert_array_equal(computed(compiled, work, arrays)[0], expected)


MASKS = {"begin_mask": (), "end_mask": (), "new_axis_mask": (0,), "shrink_axis_mask": (0,), "ellipsis_mask": (0,)}


@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"begin_mask": (1, 0), "end_mask": (0, 1)},
        {"new_axis_mask": (0, 1)},
        {"shrink_axis_mask": (0, 1)},
        {"shrink_axis_mask": (1, 1), "begin_mask": (1,)},
        {"ellipsis_mask": (0, 1)},
        {"ellipsis_mask": (1,), "new_axis_mask": (1, 1, 0), "shrink_axis_mask": (0, 0, 1)},
    ],
)
def test_masks_of_strided_slices(masks: dict[str, Any]) -> None:
    data = numbers(4, 5, 6)
    check("StridedSlice-1", MASKS | masks, data, [1, 2, 0], [3, 4, 5], [1, 2, 1])
    check("StridedSlice-1", MASKS | masks, data, [1, 2, 0], [3, 4, 5])


@pytest.mark.parametrize(
    ("shape", "order"),
    [((300, 700), (1, 0)), ((3, 300, 700), (0, 2, 1)), ((2, 3, 130, 517), (2, 3, 1, 0)), ((70, 9, 1000), (2, 1, 0))],
)
def test_large_tensors_are_copied_by_tiles(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    data = rng.standard_normal(shape).astype(np.float32)
    check("Transpose-1", {}, data, order)
    check("Concat-1", {"axis": 0}, data.transpose(order), data.transpose(order))
    check("Roll-7", {}, data, [5, 11], [0, -1])
    target = np.empty([shape[axis] for axis in order], np.float32)
    assert len(copy_calls(target, data.transpose(order))) > 1


def test_posts_follow_the_copy() -> None:
    numpy = {"auto_broadcast": "numpy"}
    posts = (Post("Add-1", numpy, 2), Post("ReLU-1", {}))
    check("Transpose-1", {}, numbers(4, 5), [1, 0], numbers(4), posts=posts, own=2)
    check("Concat-1", {"axis": -1}, numbers(4, 5), numbers(4, 2), numbers(7), posts=posts, own=2)


def test_strings_and_shapes_that_vary_are_left_to_others() -> None:
    text = np.array([["a", "b"]])
    work = work_of("Transpose-1", {}, [text, np.array([1, 0])], [((2, 1), "string")], constant=(1,))
    assert COMPILERS["Transpose-1"](work, THREADS) is None
    work = work_of("Transpose-1", {}, [numbers(2, 3), np.array([1, 0])], [((3, 2), "f32")])
    assert COMPILERS["Transpose-1"](work, THREADS) is None
    work = work_of("Split-1", {"num_splits": 1}, [numbers(2, 3), np.array(0)], [((2, 3), "f32")])
    assert COMPILERS["Split-1"](work, THREADS) is None
    arrays = [numbers(4), np.array([-9]), np.array([-9]), np.array([-1])]  # the first element, which numpy leaves out
    work = work_of("StridedSlice-1", MASKS, arrays, [((1,), "f32")], constant=(1, 2, 3))
    assert COMPILERS["StridedSlice-1"](work, THREADS) is None
