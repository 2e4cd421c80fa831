"""Elements put along an axis, compiled, against a slow obvious loop and the op's kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines.works import aligned_empty, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from run.models import anything, i64, model, saved

import irrun
from irrun.engines.compiled import scatter
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.work import Operand, Work
from irrun.run.borrowing import handed_on
from irrun.spec.dtypes import element_type

OLD, NEW = "ScatterElementsUpdate-3", "ScatterElementsUpdate-12"
INIT = {"reduction": "none", "use_init_val": True}
SUM = {"reduction": "sum", "use_init_val": True}


@pytest.fixture(params=["alone", "shared"])
def engine(request: Any, monkeypatch: Any) -> CompiledEngine:
    """By one thread with pieces as they are, and by three with very small ones."""
    if request.param == "shared":
        monkeypatch.setattr(scatter, "SHARED", 0)
        monkeypatch.setattr(scatter, "PIECE", 1 << 9)
        monkeypatch.setattr(scatter, "LEAST_LINES", 1)
    return CompiledEngine(3 if request.param == "shared" else 1)


def opened(engine: CompiledEngine, name: str, attrs: dict[str, Any], *arrays: Any) -> Any:
    given = [np.asarray(array) for array in arrays]
    operands = [Operand(element_type(array.dtype), (-1,) * array.ndim, ()) for array in given]
    call = engine.open(Work(name, attrs, list(operands), [operands[0]]))
    return None if call is None else call(given)


def check(engine: CompiledEngine, name: str, attrs: dict[str, Any], *arrays: Any) -> Any:
    given = [np.array(array) for array in arrays]
    found = opened(engine, name, attrs, *arrays)
    assert found is not None
    expected = plain(name, attrs, given)
    np.testing.assert_array_equal(found[0], expected)
    assert found[0].dtype == expected.dtype
    for array, before in zip(arrays, given, strict=True):
        np.testing.assert_array_equal(array, before)
    placed, fits = judged(engine, name, attrs, *given)
    assert fits
    np.testing.assert_array_equal(placed, expected)
    return found[0]


def judged(engine: CompiledEngine, name: str, attrs: dict[str, Any], *arrays: Any) -> tuple[Any, bool]:
    """What the call of a work of known sizes makes, and whether it does, which is as a plan binds it."""
    given = [np.array(array, order="C") for array in arrays]
    data = given[0]
    work = work_of(name, attrs, given, [(data.shape, element_type(data.dtype))], constant=(3,))
    compiled = engine.compile(work)
    assert compiled is not None
    assert compiled.judging is not None
    output = aligned_empty(data.shape, data.dtype)
    call = compiled.judging(given, [output], None)
    fits = call()
    assert call() == fits
    if fits:
        compiled.bind(given, [again := aligned_empty(data.shape, data.dtype)], None)()
        np.testing.assert_array_equal(again, output)
    return output, fits


def test_the_example_of_the_page(engine: CompiledEngine) -> None:
    result = check(engine, OLD, {}, np.zeros((2, 3), "f4"), [[1, 2], [0, 1]], np.float32([[1, 2], [3, 4]]), 1)
    assert result.tolist() == [[0, 1, 2], [3, 4, 0]]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "f2", "?"])
def test_types(engine: CompiledEngine, axis: int, dtype: str) -> None:
    rng = np.random.default_rng(axis + 5)
    data = rng.integers(0, 100, (7, 33, 19)).astype(dtype)
    shape = [5, 20, 19] if axis == 0 else [5, 50, 19] if axis == 1 else [7, 33, 40]
    indices, updates = rng.integers(0, data.shape[axis], shape), rng.integers(0, 100, shape).astype(dtype)
    if axis == 0:  # the columns behind the axis are not one axis
        assert opened(engine, NEW, INIT, data, indices[:, :, :18], updates[:, :, :18], axis) is None
    for type in ("i4", "i8"):
        check(engine, NEW, INIT, data, indices.astype(type), updates, axis)
        check(engine, NEW, INIT, data, (indices - data.shape[axis]).astype(type), updates, np.array([axis]))
        if dtype != "?":
            check(engine, OLD, {}, data, indices.astype(type), updates, axis)


@pytest.mark.parametrize("seed", range(30))
def test_random_shapes(engine: CompiledEngine, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    axis = int(rng.integers(rank))
    sizes = rng.integers(1, 200 if rank == 1 else 24, rank)
    shape = sizes.copy()
    shape[axis] = rng.integers(1, 2 * sizes[axis] + 1)
    for side in (0, axis + 1):
        if side < rank and side != axis:
            shape[side] = rng.integers(1, sizes[side] + 1)
    data = rng.standard_normal(sizes, np.float32)
    indices = rng.integers(0, max(1, sizes[axis] // int(rng.integers(1, 5))), shape)
    check(engine, OLD, {}, data, indices, rng.standard_normal(shape, np.float32), axis - rank * int(rng.integers(2)))


def test_sums_of_the_page(engine: CompiledEngine) -> None:
    arrays = np.float32([2, 3, 4, 6]), [1, 0, 0, -2, -1, 2], np.float32([10, 20, 30, 40, 70, 60])
    assert check(engine, NEW, SUM, *arrays, 0).tolist() == [52, 13, 104, 76]


@pytest.mark.parametrize("reduction", ["prod", "min", "max"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8"])
def test_other_reductions(engine: CompiledEngine, reduction: str, dtype: str) -> None:
    """Many updates meet at a place, products wrap, and some floats are none."""
    rng = np.random.default_rng(5)
    limits = (-2.0, 2.0) if dtype[0] == "f" else (float(np.iinfo(dtype).min), float(np.iinfo(dtype).max))
    for axis, count, shape in ((0, 50, (6, 7, 19)), (2, 60, (6, 7, 19)), (1, 9, (3, 5, 1))):
        data = rng.uniform(*limits, shape).astype(dtype)
        many = (*shape[:axis], count, *shape[axis + 1 :])
        indices, updates = rng.integers(-shape[axis], shape[axis], many), rng.uniform(*limits, many).astype(dtype)
        if dtype[0] == "f":
            data.flat[3:5], updates.flat[5:8] = [-0.0, np.nan], [np.inf, np.nan, -np.inf]
        check(engine, NEW, {"reduction": reduction, "use_init_val": True}, data, indices, updates, axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_sums_build_up_in_the_order_of_the_updates(engine: CompiledEngine, axis: int, dtype: str) -> None:
    """To the bit: many updates meet at a place, integers wrap, and some floats are none."""
    rng = np.random.default_rng(axis + 7)
    limit = 100.0 if dtype[0] == "f" else float(np.iinfo(dtype).max)
    data = (limit * rng.random((6, 7, 19))).astype(dtype)
    shape = [50, 7, 19] if axis == 0 else [5, 50, 19] if axis == 1 else [6, 7, 60]
    indices = rng.integers(-data.shape[axis] // 2, data.shape[axis] // 2, shape)
    updates = (limit * rng.random(shape)).astype(dtype)
    if dtype[0] == "f":
        data.flat[3], updates.flat[5:7] = -0.0, [np.inf, np.nan]
    for type in ("i4", "i8"):
        check(engine, NEW, SUM, data, indices.astype(type), updates, axis)
    assert opened(engine, NEW, SUM, data, indices + data.shape[axis], updates, axis) is None


@pytest.mark.parametrize("reduction", ["none", "sum", "prod", "min", "max"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8"])
def test_an_index_that_stands_in_memory_once_for_a_whole_slice(
    engine: CompiledEngine, reduction: str, dtype: str
) -> None:
    rng = np.random.default_rng(11)
    for axis, count, shape in ((0, 9, (6, 7, 19)), (0, 4, (5, 300)), (1, 9, (3, 5, 70)), (1, 1, (2, 3, 4, 33))):
        data = (200 * rng.random(shape)).astype(dtype)
        many = (*shape[:axis], count, *shape[axis + 1 :])
        updates = (200 * rng.random(many)).astype(dtype)
        attrs = {"reduction": reduction, "use_init_val": True}
        for type, wrong in (("i4", 0), ("i8", 0), ("i8", shape[axis])):
            once = rng.integers(-shape[axis], shape[axis], many[: axis + 1]).astype(type)
            once.flat[-1] += wrong + shape[axis] if wrong else 0
            indices = np.broadcast_to(once.reshape(*once.shape, *[1] * (len(shape) - axis - 1)), many)
            given = [data, indices, updates, np.array(axis)]
            work = work_of(NEW, attrs, given, [(shape, element_type(data.dtype))], constant=(3,))
            compiled = engine.compile(work)
            assert compiled is not None
            assert compiled.judging is not None
            assert not compiled.wants
            output = aligned_empty(shape, data.dtype)
            call = compiled.judging(given, [output], None)
            assert call() == call() == (not wrong)
            found = opened(engine, NEW, attrs, *given)
            if wrong:
                assert found is None
            else:
                expected = plain(NEW, attrs, given)
                np.testing.assert_array_equal(output, expected)
                np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_where_nothing_is_updated_the_result_is_a_copy(engine: CompiledEngine, axis: int) -> None:
    data = np.random.default_rng(axis).integers(0, 9, (7, 33, 19))
    shape = [0 if number == axis else size for number, size in enumerate(data.shape)]
    for name, attrs in ((OLD, {}), (NEW, SUM)):
        (result,) = opened(engine, name, attrs, data, np.zeros(shape, np.int64), np.zeros(shape, np.int64), axis)
        np.testing.assert_array_equal(result, data)
        assert not np.shares_memory(result, data)


def test_one_call_for_one_shape_after_the_other(engine: CompiledEngine, monkeypatch: Any) -> None:
    monkeypatch.setattr(scatter, "MAX_KEPT", 3)
    rng = np.random.default_rng(3)
    call = engine.open(Work(NEW, SUM, [Operand(type, (-1, -1), ()) for type in ("f32", "i64")], []))
    assert call is not None
    for count in (4, 4, 9, 1, 4, 9, 30, 2, 30, 4):
        data, indices = rng.standard_normal((8, 5), np.float32), rng.integers(-8, 8, (count, 5))
        updates = rng.standard_normal((count, 5), np.float32)
        found = call([data, indices, updates, np.array(0)])
        assert found is not None
        expected = data.copy()
        for row, column in np.ndindex(count, 5):
            expected[indices[row, column], column] += updates[row, column]
        np.testing.assert_array_equal(found[0], expected)
        assert call([data, indices, updates, np.array(2)]) is None
        assert call([data, indices, updates[:, :4], np.array(0)]) is None


@pytest.mark.parametrize("axis", [0, 1])
def test_large_ones_of_any_strides(engine: CompiledEngine, axis: int) -> None:
    rng = np.random.default_rng(axis)
    data, indices = rng.standard_normal((300, 500), np.float32).T, rng.integers(0, 300, (90, 200)).T[:, ::-1]
    check(engine, OLD, {}, data, indices, np.asfortranarray(rng.standard_normal((200, 90), np.float32)), axis)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("wrong", [-1, 3, 10**12, -(10**12)])
def test_indices_outside_are_left_to_the_rule(engine: CompiledEngine, axis: int, wrong: int) -> None:
    indices = np.zeros((3, 3), "i8")
    indices[1, 2] = wrong
    arrays = np.zeros((3, 3), "f4"), indices, np.ones((3, 3), "f4"), axis
    assert opened(engine, OLD, {}, *arrays) is None
    assert (opened(engine, NEW, INIT, *arrays) is None) == (wrong != -1)
    assert not judged(engine, OLD, {}, *arrays)[1]
    assert judged(engine, NEW, INIT, *arrays)[1] == (wrong == -1)


def test_a_large_result_is_handed_on_where_it_was_made(tmp_path: Path) -> None:
    b = model()
    data, updates = anything(b, "f4", (600, 512)), anything(b, "f4", (3, 512))
    indices = b.constant(np.random.default_rng(1).integers(0, 600, (3, 512)))
    b.result(b.one("ScatterElementsUpdate-3", data, indices, updates, i64(b, 0)))
    path = saved(b, tmp_path)
    ours, plain = (irrun.GraphExecutor(path, engine=engine) for engine in ("auto", "reference"))
    rng = np.random.default_rng(2)
    kept = []
    for _ in range(3):
        feed = [rng.standard_normal(shape, np.float32) for shape in ((600, 512), (3, 512))]
        kept.append((ours.run(feed), plain.run(feed)))
    for own, expected in kept:
        for name, array in expected.items():
            np.testing.assert_array_equal(own[name], array)
    (program,) = (kept.program for kept in ours._whole.preparation._kept.values())
    assert [*handed_on(program)] == [*program.results]


def test_what_is_left_to_others(engine: CompiledEngine) -> None:
    zeros, ones = np.zeros((2, 2), "i8"), np.ones((2, 2), "f4")
    assert opened(engine, NEW, {"reduction": "sum", "use_init_val": False}, ones, zeros, ones, 0) is None
    assert opened(engine, NEW, {"reduction": "mean", "use_init_val": True}, ones, zeros, ones, 0) is None
    for type in ("f2", "?"):
        assert opened(engine, NEW, SUM, ones.astype(type), zeros, ones.astype(type), 0) is None
    assert opened(engine, OLD, {}, ones, zeros.astype("u1"), ones, 0) is None
    assert opened(engine, OLD, {}, ones, zeros, ones, 2) is None
    assert opened(engine, OLD, {}, ones, np.zeros((3, 2), "i8"), np.ones((3, 2), "f4"), 1) is None
    assert opened(engine, OLD, {}, ones[:0], zeros[:0], ones[:0], 0) is None
