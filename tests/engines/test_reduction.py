"""Reductions on numpy against the plain kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from engines.works import THREADS, computed, plain, posted, work_of

from irrun.engines.vectorized.reduction import COMPILERS, SHORT, SHORT_SUM
from irrun.engines.work import Post
from irrun.spec.dtypes import element_type

rng = np.random.default_rng(3)
NUMPY = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}
FLOAT = ["ReduceSum-1", "ReduceMean-1", "ReduceMax-1", "ReduceMin-1", "ReduceProd-1", "ReduceL1-4", "ReduceL2-4"]


def numbers(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def check(name: str, data: Any, axes: Any, *operands: Any, posts: Sequence[Post] = (), refused: bool = False) -> None:
    for keep_dims in (True, False):
        attrs, arrays = {"keep_dims": keep_dims}, [data, np.asarray(axes), *operands]
        expected = np.asarray(posted(posts, plain(name, attrs, arrays[:2]), arrays))
        work = work_of(name, attrs, arrays, [(expected.shape, element_type(expected.dtype))], posts, (1,))
        compiled = COMPILERS[name](work, THREADS)
        if refused:
            assert compiled is None
            continue
        assert compiled is not None
        np.testing.assert_allclose(computed(compiled, work, arrays)[0], expected, 2e-5, 1e-4)


@pytest.mark.parametrize("name", FLOAT)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((5,), [0]),
        ((2, 3, 7, 9), [2, 3]),
        ((2, 3, 7, 9), [-1]),
        ((2, 3, 7, 9), 1),
        ((2, 30, 7), [0]),
        ((3, 4), [0, 1]),
        ((2, 1, 5, 1), [1, 2]),
        ((1, 96, 112, 112), [2, 3]),
        ((4, 1000, 300), [1]),
        ((1000, 700), [0]),
        ((3, 40, 5, 900), [1]),
        ((2, 5000, 3), [1]),
    ],
)
def test_floats(name: str, shape: tuple[int, ...], axes: Any) -> None:
    scale = 1 if name != "ReduceProd-1" else 0.5 + 0.5 * (np.prod(shape) < 1000)
    check(name, numbers(*shape) * np.float32(scale), axes)


@pytest.mark.parametrize("name", FLOAT)
@pytest.mark.parametrize("line", [2, 3, SHORT_SUM, SHORT_SUM + 1, SHORT, SHORT + 1])
def test_rows_that_are_very_short(name: str, line: int) -> None:
    data = numbers(3, 40, line)
    check(name, data, [-1])
    check(name, data, [0, 2])
    data[1, 2, 1], data[1, 3], data[1, 4, 0], data[1, 5, 1] = np.nan, np.nan, np.inf, -np.inf
    check(name, data, [-1])
    check(name, numbers(80_000, line), [1])


@pytest.mark.parametrize("name", FLOAT)
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3), (2, 0, 3, 1)])
@pytest.mark.parametrize("axes", [[1], [2, 3], [0], [3], [1, 2], [0, 3], [1, 3], [0, 1, 2, 3], [0, 1, 2]], ids=str)
def test_axes_in_another_order_of_memory(name: str, order: tuple[int, ...], axes: Any) -> None:
    """Done in that order; what is left lies in it, too."""
    for shape in ((2, 6, 5, 7), (1, 2, 16, 9), (3, 1, 4, 33)):
        if name.startswith("ReduceL") and all(shape[axis] == 1 for axis in axes):
            continue  # nothing is added up
        data = np.ascontiguousarray(numbers(*shape).transpose(order)).transpose(np.argsort(order))
        other = numbers(*(1 if axis in axes else size for axis, size in enumerate(shape)))
        check(name, data, axes)
        for keep_dims, added in ((True, other), (False, other.squeeze(tuple(axes)))):
            attrs, arrays, posts = {"keep_dims": keep_dims}, [data, np.asarray(axes), added], [Post("Add-1", NUMPY, 2)]
            expected = np.asarray(posted(posts, plain(name, attrs, arrays[:2]), arrays))
            work = work_of(name, attrs, arrays, [(expected.shape, "f32")], posts, (1,))
            compiled = COMPILERS[name](work, THREADS)
            assert compiled is not None
            np.testing.assert_allclose(computed(compiled, work, arrays)[0], expected, 2e-5, 1e-4)


def test_many_terms_with_the_channels_last() -> None:
    """Sums of so many f32, one after the other, would be off by more than 1e-4."""
    data = np.ascontiguousarray(np.full((1, 400, 400, 3), 0.1, np.float32)).transpose(0, 3, 1, 2)
    work = work_of("ReduceMean-1", {"keep_dims": False}, [data, np.array([2, 3])], [((1, 3), "f32")], (), (1,))
    compiled = COMPILERS["ReduceMean-1"](work, THREADS)
    assert compiled is not None
    np.testing.assert_allclose(computed(compiled, work, [data, np.array([2, 3])])[0], np.float32(0.1), rtol=1e-6)


@pytest.mark.parametrize("name", FLOAT)
def test_strided_data_and_nan(name: str) -> None:
    refused = name in ("ReduceL1-4", "ReduceL2-4")
    check(name, np.ascontiguousarray(numbers(4, 5, 6).T).T, [1, 2])
    check(name, np.repeat(numbers(4, 5), 2, 1)[:, ::2], [0], refused=refused)
    data = numbers(6, 7)
    data[1, 2], data[2], data[3, 3], data[4, 4] = np.nan, np.nan, np.inf, -np.inf
    check(name, data, [1])
    check(name, data, [0])


@pytest.mark.parametrize("name", FLOAT)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((3, 4, 5), [0, 2]), ((2, 3, 1, 2, 2, 3), [-1, 1, 2, 4]), ((8, 64, 40, 9), [0, 2]), ((2, 30, 7, 5000), [1, 3])],
)
def test_axes_that_do_not_follow_one_another(name: str, shape: tuple[int, ...], axes: Any) -> None:
    scale = np.float32(1 if name != "ReduceProd-1" or len(shape) == 3 else 0.9)
    data = numbers(*shape) * scale
    check(name, data, axes)
    data[0, 1] = np.nan
    check(name, data, axes)


@pytest.mark.parametrize("name", ["ReduceSum-1", "ReduceProd-1", "ReduceMax-1", "ReduceMin-1"])
@pytest.mark.parametrize("dtype", ["i4", "i8", "u1"])
def test_integers(name: str, dtype: str) -> None:
    data = rng.integers(0, 100, (3, 4, 5)).astype(dtype)
    check(name, data, [0, 2])
    check(name, data[0, 0], [0])


@pytest.mark.parametrize("name", ["ReduceLogicalAnd-1", "ReduceLogicalOr-1"])
def test_booleans(name: str) -> None:
    check(name, numbers(3, 4) > -0.5, [1])


def test_posts() -> None:
    posts = [Post("Add-1", NUMPY, 2), Post("Sqrt-1", {})]
    check("ReduceMean-1", numbers(3, 4, 50) ** 2, [-1], np.array(1e-5, np.float32), posts=posts)


def test_what_is_left_to_others() -> None:
    check("ReduceMean-1", np.arange(6).reshape(2, 3), [1], refused=True)
    check("ReduceSum-1", numbers(2, 3).astype(np.float16), [1], refused=True)
    check("ReduceL2-4", np.repeat(numbers(4, 3, 2), 2, 2)[..., ::2], [0, 2], refused=True)
    check("ReduceSum-1", numbers(2, 3), np.array([], int), refused=True)
