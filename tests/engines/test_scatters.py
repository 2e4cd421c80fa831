"""Scatters on numpy against the plain kernels: parts of tensors that are assigned to, as indices say."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from engines.works import THREADS, computed, plain, posted, work_of

import irrun
from irrun.engines.vectorized.scatters import COMPILERS, Box, box_of, open_slices
from irrun.engines.work import Operand, Post, Work
from irrun.spec.dtypes import element_type

rng = np.random.default_rng(6)
OPS = {"ScatterNDUpdate-3": {}, "ScatterNDUpdate-15": {"reduction": "none"}}


def check(name: str, data: Any, indices: Any, updates: Any, posts: tuple[Post, ...] = (), *others: Any) -> None:
    given = [np.asarray(array) for array in (data, indices, updates, *others)]
    expected = posted(posts, plain(name, OPS[name], given[:3]), given)
    work = work_of(name, OPS[name], given, [(expected.shape, element_type(expected.dtype))], posts, (1,))
    compiled = COMPILERS[name](work, THREADS)
    assert compiled is not None
    np.testing.assert_array_equal(computed(compiled, work, given)[0], expected)


def tuples_of(part: Any, shape: tuple[int, ...]) -> Any:
    """The tuples of indices of a part of an array of that shape."""
    every = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    return every[part]


PARTS = [
    np.s_[:, 2:5],
    np.s_[:],
    np.s_[1:2],
    np.s_[::2, ::3],
    np.s_[3, 4],
    np.s_[1:, 0],
    np.s_[:, :, 1:3],
    np.s_[::2, 1:6:2, ::2],
    np.s_[2:4, 3, 1:],
]


@pytest.mark.parametrize("dtype", ["f4", "i8", "?", ml_dtypes.bfloat16])
@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_a_part_is_assigned_to(name: str, part: Any, dtype: Any) -> None:
    data = rng.integers(-100, 100, (4, 6, 5)).astype(dtype)
    length = 3 if isinstance(part, tuple) and len(part) == 3 else 2
    indices = tuples_of(part, data.shape[:length])
    updates = rng.integers(-100, 100, (*indices.shape[:-1], *data.shape[length:])).astype(dtype)
    check(name, data, indices, updates)
    check(name, data, indices.reshape(-1, length).astype(np.int32), updates.reshape(-1, *data.shape[length:]))
    check(
        name,
        data.ravel(),
        tuples_of(part, data.shape) @ np.array([[30], [5], [1]]),
        updates.reshape(*tuples_of(part, data.shape).shape[:-1]),
    )
    if name == "ScatterNDUpdate-15":
        check(name, data, indices - data.shape[:length], updates)


@pytest.mark.parametrize("name", OPS)
def test_what_is_assigned_may_lie_otherwise_and_be_followed_by_functions(name: str) -> None:
    data, updates = rng.standard_normal((40, 600)).astype("f4"), rng.standard_normal((7, 300)).astype("f4")
    indices = tuples_of(np.s_[::2, 1:300:43], (40, 600))[:20].reshape(-1, 2)
    check(name, data, indices, rng.standard_normal(2 * len(indices)).astype("f4")[::2])
    rows = np.arange(3, 10)[:, None]
    check(name, data[:, ::2].T.copy().T, rows, updates)
    check(name, data[:, ::-2], rows, updates[:, ::-1], (Post("ReLU-1", {}), Post("Multiply-1", {}, 3)), updates[:1])


@pytest.mark.parametrize("places", [[], [1, 1], [2, 1], [0, 1, 3], [0, 1, 2, 4], [0, 1, 3, 5], [0, 1, 5, 7]])
def test_places_that_are_no_part_are_left_to_the_kernel(places: list[int]) -> None:
    assert box_of(np.array(places, np.intp)) is None
    given = [np.zeros(9, "f4"), np.array(places, np.int64).reshape(-1, 1), np.ones(len(places), "f4")]
    for name, attrs in OPS.items():
        assert COMPILERS[name](work_of(name, attrs, given, [((9,), "f32")], (), (1,)), THREADS) is None


def test_no_reduction_and_no_indices_that_vary_are_taken() -> None:
    given = [np.zeros(9, "f4"), np.array([[1], [2]]), np.ones(2, "f4")]
    summed = work_of("ScatterNDUpdate-15", {"reduction": "sum"}, given, [((9,), "f32")], (), (1,))
    assert COMPILERS["ScatterNDUpdate-15"](summed, THREADS) is None
    for name, attrs in OPS.items():
        assert COMPILERS[name](work_of(name, attrs, given, [((9,), "f32")], (), ()), THREADS) is None


def test_places_are_axes_with_equal_steps() -> None:
    assert box_of(np.array([7])) == Box(7, (), ())
    assert box_of(np.array([2, 5, 12, 15, 22, 25])) == Box(2, (3, 2), (10, 3))
    assert set(COMPILERS) == set(OPS)


@pytest.mark.parametrize("engine", ["numpy", "auto", "check"])
def test_a_model_that_assigns_to_a_part_of_any_size(engine: str) -> None:
    """What is assigned to is told by the shape of the input, so the places are constant for each of these."""
    with irrun.build("m", opset=13) as g:
        x = g.Parameter("f32[?,4]", name="x")
        shape = g.ShapeOf(x)
        rows = g.Range(np.int64(1), g.Gather(shape, np.int64(0), np.int64(0)), np.int64(2), output_type="i64")
        places = g.Unsqueeze(rows, np.array([1]))
        updates = g.Broadcast(np.float32(-1), g.Concat(g.ShapeOf(rows), np.array([4]), axis=0))
        g.Result(g.ScatterNDUpdate(g.Abs(x), places, updates))
    executor = irrun.GraphExecutor(g.model, engine=engine)
    for count in (5, 2, 5, 5, 1, 5):
        x = rng.standard_normal((count, 4)).astype("f4")
        right = np.abs(x)
        right[1::2] = -1
        (found,) = executor.run({"x": x}).values()
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("dtype", ["f4", "i8", "?", ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("axis", "indices"),
    [(0, [2]), (0, 3), (-1, [[4]]), (1, [5, 0, 5]), (2, [[0, 3], [3, 1]]), (-3, np.uint8([3, 3, 2]))],
    ids=str,
)
def test_slices_are_put_at_places_that_a_run_tells(axis: int, indices: Any, dtype: Any) -> None:
    """The last one wins where several go to one place."""
    given = [np.asarray(indices), np.array([axis])]
    data = rng.integers(-100, 100, (4, 6, 5)).astype(dtype)[::-1]
    kept, shape = data.copy(), data.shape
    shape = (*shape[: axis % 3], *given[0].shape, *shape[axis % 3 :][1:])
    updates = rng.integers(-100, 100, shape[::-1]).astype(dtype).T
    (result,) = slices_of([data, given[0], updates, given[1]])
    np.testing.assert_array_equal(result, plain("ScatterUpdate-3", {}, [data, given[0], updates, given[1]]))
    np.testing.assert_array_equal(data, kept)
    assert result.dtype == data.dtype


@pytest.mark.parametrize("indices", [2, [2], [[0, 3]]])
def test_elements_of_a_vector_are_put(indices: Any) -> None:
    given = [np.arange(4.0), np.array(indices), np.full(np.shape(indices), 9.0), np.array(0)]
    np.testing.assert_array_equal(slices_of(given)[0], plain("ScatterUpdate-3", {}, given))


@pytest.mark.parametrize("wrong", [{"indices": [-1]}, {"indices": [4]}, {"indices": [0, 4]}, {"axis": 2}, {"rows": 2}])
def test_what_slices_are_refused_the_rule_judges(wrong: dict[str, Any]) -> None:
    indices = np.array(wrong.get("indices", [0]))
    updates = np.zeros((wrong.get("rows", indices.size), 3))
    assert slices_of([np.zeros((4, 3)), indices, updates, np.array(wrong.get("axis", 0))]) is None
    assert slices_of([np.zeros((4, 3)), np.zeros(0, int), np.zeros((0, 3)), np.array(0)]) is None


@pytest.mark.parametrize("types", [("string", "i64"), ("f32", "u64")])
def test_slices_of_types_that_are_left_to_the_kernel(types: tuple[str, str]) -> None:
    data, indices, axis = Operand(types[0], (-1,), ()), Operand(types[1], (-1,), ()), Operand("i64", (), ())
    assert open_slices(Work("ScatterUpdate-3", {}, [data, indices, data, axis], [data]), THREADS) is None


def slices_of(arrays: list[Any]) -> Any:
    operands = [Operand(element_type(array.dtype), (-1,) * array.ndim, ()) for array in arrays]
    call = open_slices(Work("ScatterUpdate-3", {}, [*operands], operands[:1]), THREADS)
    assert call is not None
    return call(arrays)
