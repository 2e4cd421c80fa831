"""Places of what is not 0, and vectors with one element unlike the others, on numpy against the plain kernels."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from engines.works import THREADS, computed, plain, posted, work_of

from irrun.engines.vectorized.places import COMPILERS, FEW, open_non_zero
from irrun.engines.work import Operand, Post, Work
from irrun.spec.dtypes import element_type

NAME = "NonZero-3"


def opened(data: Any, output_type: str = "i64") -> Any:
    operand = Operand(element_type(data.dtype), (-1,) * data.ndim, ())
    call = open_non_zero(Work(NAME, {"output_type": output_type}, [operand], [operand]), THREADS)
    assert call is not None
    return call([data])


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "f2", "f4", "f8", ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(40,), (0,), (5, 8), (3, 0), (2, 3, 4), (5000,)])
def test_places_that_are_not_0(dtype: Any, shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(len(shape)).integers(0, 3, shape).astype(dtype)
    if data.size and data.dtype.kind == "f":
        data.flat[:2] = [np.nan, -0.0]
    for type in ("i64", "i32"):
        expected = plain(NAME, {"output_type": type}, [data])
        found = opened(data, type)
        if found is None:
            assert data.itemsize == 1
            assert data.ndim > 2
            continue
        assert found[0].dtype == expected.dtype
        np.testing.assert_array_equal(found[0], expected)


def test_views_and_what_is_left_to_the_kernel() -> None:
    data = np.eye(9, 7)[::2, ::-1].T
    np.testing.assert_array_equal(opened(data)[0], plain(NAME, {"output_type": "i64"}, [data]))
    assert opened(np.array(1.0)) is None
    assert opened(np.ones((FEW, 2))) is None
    text = Work(NAME, {"output_type": "i64"}, [Operand("string", (-1,), ())], [])
    assert open_non_zero(text, THREADS) is None


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("kind", ["i4", "i8"])
@pytest.mark.parametrize("mode", [None, "ignore_negative", "normalize"])
@pytest.mark.parametrize("values", [np.float32([3, -1]), np.int64([1, 0]), np.array([True, False])])
def test_one_element_unlike_the_others(axis: int, kind: str, mode: str | None, values: Any) -> None:
    name, attrs = ("OneHot-1", {}) if mode is None else ("OneHot-16", {"negative_indices_mode": mode})
    for low, high in ((0, 5), (-8, 9)):
        indices = np.random.default_rng(axis + 3).integers(low, high, (4, 6)).astype(kind)
        given = [indices, np.array(5), *map(np.asarray, values)]
        expected = plain(name, {**attrs, "axis": axis}, given)
        outputs = [(expected.shape, element_type(expected.dtype))]
        work = work_of(name, {**attrs, "axis": axis}, given, outputs, constant=(1, 2, 3))
        compiled = COMPILERS[name](work, THREADS)
        assert compiled is not None
        np.testing.assert_array_equal(computed(compiled, work, given)[0], expected)


def test_what_follows_one_hot_and_what_is_not_taken() -> None:
    given = [np.arange(4), np.array(3), np.float32(2), np.float32(-1)]
    attrs, posts = {"axis": -1}, (Post("Abs-1", {}),)
    expected = posted(posts, plain("OneHot-1", attrs, given), given)
    work = work_of("OneHot-1", attrs, given, [((4, 3), "f32")], posts, (1, 2, 3))
    compiled = COMPILERS["OneHot-1"](work, THREADS)
    assert compiled is not None
    np.testing.assert_array_equal(computed(compiled, work, given)[0], expected)
    work = work_of("OneHot-1", attrs, given, [((4, 3), "f32")], constant=(1, 2))
    assert COMPILERS["OneHot-1"](work, THREADS) is None
