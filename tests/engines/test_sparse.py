"""Empty rows filled, compiled, against the op's kernel: sorted and shuffled places, equal ones, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.works import plain

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from irrun.engines.compiled import sparse
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.team import Team
from irrun.engines.work import Operand, Work
from irrun.spec.dtypes import element_type

NAME = "SparseFillEmptyRows-16"


@pytest.fixture(params=["alone", "shared"])
def engine(request: Any, monkeypatch: Any) -> CompiledEngine:
    if request.param == "shared":
        monkeypatch.setattr(sparse, "SHARED", 0)
    return CompiledEngine(3 if request.param == "shared" else 1)


def opened(engine: CompiledEngine, values: Any, shape: Any, indices: Any, default: Any) -> Any:
    indices = np.asarray(indices)
    values = np.asarray(values)
    arrays = [values, np.array(shape, indices.dtype), indices, np.array(default, values.dtype)]
    operands = [Operand(element_type(array.dtype), (-1,) * array.ndim, ()) for array in arrays]
    call = engine.open(Work(NAME, {}, list(operands), [operands[2], operands[0], Operand("boolean", (-1,), ())]))
    return None if call is None else (call(arrays), arrays)


def check(engine: CompiledEngine, values: Any, shape: Any, indices: Any, default: Any = 42) -> Any:
    found, arrays = opened(engine, values, shape, indices, default)
    assert found is not None
    for got, expected in zip(found, plain(NAME, {}, arrays), strict=True):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype
    return found


def test_the_example_of_the_page(engine: CompiledEngine) -> None:
    indices, filled, empty = check(engine, [1, 3], [3, 3], [[0, 0], [2, 2]])
    assert indices.tolist() == [[0, 0], [1, 0], [2, 2]]
    assert filled.tolist() == [1, 42, 3]
    assert empty.tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", ["f4", "i8", "f2", "u1", "?", "f8"])
@pytest.mark.parametrize("index", ["i4", "i8"])
def test_types(engine: CompiledEngine, dtype: str, index: str) -> None:
    rng = np.random.default_rng(1)
    indices = rng.integers(0, [90, 20], (100, 2)).astype(index)
    check(engine, rng.integers(0, 100, 100).astype(dtype), [90, 20], indices, 1)


@pytest.mark.parametrize("order", ["sorted", "shuffled", "backwards"])
@pytest.mark.parametrize(
    ("rows", "columns", "count"),
    [(1, 1, 1), (1, 1, 50), (7, 1, 3), (1, 1000, 30), (30, 2**40, 40), (200_000, 30, 50_000), (1000, 1000, 40_000)],
)
def test_many(engine: CompiledEngine, rows: int, columns: int, count: int, order: str) -> None:
    rng = np.random.default_rng(count)
    indices = rng.integers(0, [rows, columns], (count, 2))
    if order != "shuffled":
        indices = indices[np.lexsort((indices[:, 1], indices[:, 0]))][:: 1 if order == "sorted" else -1]
    check(engine, np.arange(count), [rows, columns], indices, -1)


@pytest.mark.parametrize("bits", [0, 1, 11, 12, 25, 40])
@pytest.mark.parametrize("count", [1, 4, 5, 3000])
def test_keys_are_sorted_by_their_digits(bits: int, count: int, engine: CompiledEngine) -> None:
    rng, first = np.random.default_rng(count), 12
    keys = (rng.integers(0, 1 << bits, count) << first) + np.arange(count)
    expected = np.sort(keys)
    np.testing.assert_array_equal(sparse._sorted(Team(engine.threads), keys, first, bits), expected)


def test_long_runs_of_empty_rows_and_rows_over_several_chunks(engine: CompiledEngine) -> None:
    rows = np.repeat([0, 5, 90_000], [3 * sparse.CHUNK, 1, sparse.CHUNK])
    indices = np.stack([rows, np.zeros_like(rows)], 1)
    check(engine, np.arange(len(rows)), [100_000, 3], indices)


@pytest.mark.parametrize("place", [[-1, 0], [3, 0], [0, -1], [0, 3], [10**15, 0]])
def test_places_outside_are_left_to_the_rule(engine: CompiledEngine, place: list[int]) -> None:
    assert opened(engine, [1, 2, 3], [3, 3], [[0, 0], place, [2, 2]], 0)[0] is None


def test_what_is_left_to_others(engine: CompiledEngine) -> None:
    one = np.zeros((1, 2), "i8")
    assert opened(engine, np.ones(1), [2**40, 1], one, 0)[0] is None  # far larger than what is given
    assert opened(engine, np.ones(1), [8, 2**62], one, 0)[0] is None
    assert opened(engine, np.ones(1), [1, 0], one, 0)[0] is None
    assert opened(engine, np.ones(0), [3, 3], one[:0], 0)[0] is None
    assert opened(engine, np.ones(1), [3, 3, 3], one, 0)[0] is None
    mixed = [Operand(type, (-1,), ()) for type in ("f32", "i64", "i64", "f16")]
    assert engine.open(Work(NAME, {}, list(mixed), [])) is None
    assert engine.open(Work(NAME, {}, [Operand("string", (-1,), ()), *[Operand("i64", (-1,), ())] * 3], [])) is None


@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "f2"])
@pytest.mark.parametrize("seed", range(6))
def test_places_in_order_and_nearly_so(engine: CompiledEngine, index: str, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    places = rng.integers(0, [50, 3], (count, 2)).astype(index)
    places = places[np.lexsort((places[:, 1], places[:, 0]))]
    if seed % 2:
        rng.shuffle(places[-3:])
    check(engine, rng.integers(0, 100, count).astype(dtype), [50, 3], places)


@pytest.mark.parametrize("wrong", [[-1, 0], [5, 0], [1, -1], [1, 3], [2**31 - 1, 2**31 - 1]])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_place_outside_is_found_wherever_it_stands(engine: CompiledEngine, wrong: list[int], at: int) -> None:
    places = np.array([[0, 1], [1, 0], [4, 2]], "i8")
    places[at] = wrong
    assert opened(engine, [1, 2, 3], [5, 3], places, 42)[0] is None


def test_as_many_values_as_places(engine: CompiledEngine) -> None:
    assert opened(engine, [1, 2], [5, 3], [[0, 1], [1, 0], [4, 2]], 42)[0] is None
    assert opened(engine, [1, 2, 3], [5, 3], [[0, 1], [1, 0]], 42)[0] is None
