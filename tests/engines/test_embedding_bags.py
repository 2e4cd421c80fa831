"""Embedding bags, compiled, against the plain kernels: bags of all lengths, with weights, and what an empty one is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.works import aligned_empty, computed, plain, posted, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from irrun.engines.compiled import embedding_bags
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.vectorized.embeddings import PIECE
from irrun.engines.work import Post

LENGTHS: dict[str, list[int]] = {
    "one": [1],
    "short ones": np.random.default_rng(3).integers(0, 9, 300).tolist(),
    "all empty but one": [0] * 40 + [1] + [0] * 40,
    "over a piece": [65, 128, 129, 3, 0, 64, 192],
    "two huge, rest short": [1, 4, 4500, 0, 2, 300, 4, 5000, 1],
}


@pytest.fixture(params=["alone", "shared"])
def engine(request: Any, monkeypatch: Any) -> CompiledEngine:
    if request.param == "shared":
        monkeypatch.setattr(embedding_bags, "SHARED", 0)
    return CompiledEngine(3 if request.param == "shared" else 1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def check(engine: Any, name: str, attrs: dict[str, Any], *arrays: Any, posts: tuple[Post, ...] = ()) -> Any:
    given = [None if array is None else np.asarray(array) for array in arrays]
    expected = posted(posts, plain(name, attrs, given[: len(given) - len(posts)]), given)
    work = work_of(name, attrs, given, [(expected.shape, "f32")], posts)
    compiled = engine.compile(work)
    assert compiled is not None
    (got,) = computed(compiled, work, given)
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=4e-4)
    if not posts:
        fits, result = judged(engine, name, attrs, given, expected.shape)
        assert fits == is_simple(name, given, len(expected))
        if fits:
            np.testing.assert_array_equal(result, got)
        if name == "EmbeddingSegmentsSum-3":
            found = opened(engine, given)
            assert (found is not None) == fits
            if found is not None:
                np.testing.assert_array_equal(found, got)
    return got


def opened(engine: Any, given: list[Any]) -> Any:
    """What the call of any sizes gives; None where that leaves it to others."""
    work = work_of("EmbeddingSegmentsSum-3", {}, given, [((1, *given[0].shape[1:]), "f32")])
    for operand in work.tensors:
        operand.shape, operand.strides = (-1,) * len(operand.shape), ()
    found = engine.open(work)(given)
    return None if found is None else found[0]


def judged(engine: Any, name: str, attrs: dict[str, Any], given: list[Any], shape: tuple[int, ...]) -> tuple[bool, Any]:
    """Whether the call that looks at the data itself computes, and what."""
    compiled, output = engine.compile(work_of(name, attrs, given, [(shape, "f32")])), aligned_empty(shape, np.float32)
    assert compiled.judging is not None
    call = compiled.judging(given, [output], aligned_empty((compiled.scratch,), np.uint8))
    fits = call()
    first = output.copy()
    assert call() == fits
    np.testing.assert_array_equal(output, first)
    return fits, output


def is_simple(name: str, given: list[Any], count: int) -> bool:
    """Whether bags are short, and segments in order."""
    if name.startswith("EmbeddingBagPacked"):
        return given[1].shape[1] <= PIECE
    if name == "EmbeddingSegmentsSum-3":
        return bool((np.diff(given[2]) >= 0).all() and np.bincount(given[2]).max() <= PIECE)
    return bool(np.diff(given[2], append=len(given[1])).max() <= PIECE)


@pytest.mark.parametrize("columns", [1, 3, 16, 100, 128, 300])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_segments(engine: CompiledEngine, rng: Any, lengths: str, columns: int) -> None:
    ids = np.repeat(np.arange(len(LENGTHS[lengths])), LENGTHS[lengths])
    table, indices = rng.standard_normal((70, columns), np.float32), rng.integers(0, 70, len(ids))
    weights, count = rng.standard_normal(len(ids), np.float32), np.array(len(LENGTHS[lengths]))
    check(engine, "EmbeddingSegmentsSum-3", {}, table, indices, ids, count)
    check(engine, "EmbeddingSegmentsSum-3", {}, table, indices, ids, count, -1, weights)
    narrow = indices.astype("i4"), ids.astype("i4")
    check(engine, "EmbeddingSegmentsSum-3", {}, table, *narrow, count, np.int32(4), weights)
    order = rng.permutation(len(ids))
    check(engine, "EmbeddingSegmentsSum-3", {}, table, indices[order], ids[order], count, 2, weights[order])


@pytest.mark.parametrize("lengths", LENGTHS)
def test_offsets(engine: CompiledEngine, rng: Any, lengths: str) -> None:
    offsets = np.append(0, np.cumsum(LENGTHS[lengths])[:-1])
    indices = rng.integers(0, 40, sum(LENGTHS[lengths]))
    table, weights = rng.standard_normal((40, 2, 17), np.float32), rng.standard_normal(len(indices), np.float32)
    check(engine, "EmbeddingBagOffsetsSum-3", {}, table, indices, offsets)
    check(engine, "EmbeddingBagOffsetsSum-3", {}, table, indices, offsets, 3, weights)
    check(engine, "EmbeddingBagOffsets-15", {"reduction": "mean"}, table, indices, offsets, 3)
    check(engine, "EmbeddingBagOffsets-15", {"reduction": "sum"}, table, indices, offsets, -1, weights)


@pytest.mark.parametrize("shape", [(1, 1), (300, 1), (40, 7), (5, 200), (2, 5000)])
def test_packed(engine: CompiledEngine, rng: Any, shape: tuple[int, int]) -> None:
    table, indices = rng.standard_normal((50, 24), np.float32), rng.integers(0, 50, shape)
    check(engine, "EmbeddingBagPackedSum-3", {}, table, indices)
    weights = rng.standard_normal(shape, np.float32)
    check(engine, "EmbeddingBagPackedSum-3", {}, table, indices.astype("i4"), weights)
    for reduction in ("sum", "mean"):
        check(engine, "EmbeddingBagPacked-15", {"reduction": reduction}, table, indices)


def test_posts(engine: CompiledEngine, rng: Any) -> None:
    table, indices = rng.standard_normal((9, 20), np.float32), rng.integers(0, 9, (12, 3))
    check(engine, "EmbeddingBagPackedSum-3", {}, table, indices, np.float32([[0.5]]), posts=(Post("Add-1", {}, 2),))


def test_sums_of_many_rows_are_as_exact_as_short_ones(engine: CompiledEngine, rng: Any) -> None:
    table, indices = rng.uniform(0, 1, (1000, 5)).astype(np.float32), rng.integers(0, 1000, 300_000)
    got = check(engine, "EmbeddingBagPackedSum-3", {}, table, indices.reshape(1, -1))
    exact = table[indices].sum(0, dtype=np.float64)
    np.testing.assert_allclose(got[0], exact, rtol=3e-7)


def test_what_is_left_to_others(engine: CompiledEngine, rng: Any) -> None:
    for table, indices in (
        (np.ones((4, 3)), np.zeros((2, 2), "i8")),
        (np.ones((4, 3), "i4"), np.zeros((2, 2), "i8")),
        (np.ones((4, embedding_bags.MAX_COLUMNS + 1), "f4"), np.zeros((2, 2), "i8")),
        (np.ones((3, 4), "f4").T, np.zeros((2, 2), "i8")),
    ):
        work = work_of("EmbeddingBagPackedSum-3", {}, [table, indices], [((2, *table.shape[1:]), "f32")])
        assert engine.compile(work) is None


def test_weights_of_another_type_are_left_to_others(engine: CompiledEngine) -> None:
    arrays = [np.ones((4, 3), "f4"), np.zeros((2, 2), "i8"), np.ones((2, 2), "f2")]
    assert engine.compile(work_of("EmbeddingBagPackedSum-3", {}, arrays, [((2, 3), "f32")])) is None


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("EmbeddingBagPackedSum-3", [[[0, 4], [1, 1]]]),
        ("EmbeddingBagPackedSum-3", [[[0, 3], [-1, 1]]]),
        ("EmbeddingBagOffsetsSum-3", [[0, 1, 4], [1, 2]]),  # no bag has the first one, but it is outside all the same
        ("EmbeddingBagOffsetsSum-3", [[-1, 1, 3], [1, 2]]),
        ("EmbeddingBagOffsetsSum-3", [[0, 1, 3], [0, 4]]),
        ("EmbeddingBagOffsetsSum-3", [[0, 1, 3], [2, 1]]),
        ("EmbeddingBagOffsetsSum-3", [[0, 1, 3], [-1, 1]]),
        ("EmbeddingBagOffsetsSum-3", [[0, 1, 3], [0, 1], 4]),
        ("EmbeddingBagOffsetsSum-3", [[0, 1, 3], [0, 1], -2]),
        ("EmbeddingSegmentsSum-3", [[0, 1, 3], [0, 1, 0], 2]),
        ("EmbeddingSegmentsSum-3", [[0, 1, 3], [0, 1, 2], 2]),
        ("EmbeddingSegmentsSum-3", [[0, 1, 3], [-1, 1, 1], 2]),
        ("EmbeddingSegmentsSum-3", [[0, 1, 3], [0, 1, 1], 1]),
        ("EmbeddingSegmentsSum-3", [[0, 1, 4], [0, 1, 1], 2]),
    ],
)
def test_what_the_rule_has_to_see_is_left_to_it(engine: CompiledEngine, name: str, arrays: list[Any]) -> None:
    given = [np.ones((4, 3), "f4"), *map(np.asarray, arrays)]
    assert not judged(engine, name, {}, given, (2, 3))[0]
    assert not name.startswith("EmbeddingSegments") or opened(engine, given) is None


@pytest.mark.parametrize(
    ("table", "indices", "ids", "count"),
    [
        (np.ones((4, 3), "f4"), [0, 1], [0, 1], 0),
        (np.ones((4, 3), "f4"), [0, 1], [0, 1], -2),
        (np.ones((4, 3), "f4"), [0, 1], [0, 1], [2]),
        (np.ones((4, 3), "f4"), [0, 1, 2], [0, 1], 2),
        (np.ones((4, 3), "f4"), [], [], 2),
        (np.ones((4, 3), "f4"), [0, 1], [0, 1], 10**9),
        (np.ones((4, 0), "f4"), [0, 1], [0, 1], 2),
        (np.ones((3, 4), "f4").T, [0, 1], [0, 1], 2),
    ],
)
def test_segments_that_a_call_for_any_sizes_leaves_to_others(
    engine: CompiledEngine, table: Any, indices: list[int], ids: list[int], count: Any
) -> None:
    assert opened(engine, [table, *(np.array(given, "i8") for given in (indices, ids, count))]) is None


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("EmbeddingSegmentsSum-3", [(4, 3), (3,), (2,), ()]),
        ("EmbeddingSegmentsSum-3", [(4, 3), (3,), (3,), (), (), (2,)]),
        ("EmbeddingSegmentsSum-3", [(4, 3), (3,), (3,), (1,)]),
        ("EmbeddingSegmentsSum-3", [(4, 2), (3,), (3,), ()]),
        ("EmbeddingBagOffsetsSum-3", [(4, 3), (3,), (1,)]),
        ("EmbeddingBagOffsetsSum-3", [(4, 3), (3,), (2,), (), (2,)]),
        ("EmbeddingBagOffsetsSum-3", [(4, 3), (3, 1), (2,)]),
        ("EmbeddingBagPackedSum-3", [(4, 3), (2, 3), (2, 2)]),
        ("EmbeddingBagPackedSum-3", [(4, 3), (3, 3)]),
    ],
)
def test_shapes_that_the_rule_refuses_are_left_to_it(engine: CompiledEngine, name: str, shapes: Any) -> None:
    types = ["f4", *["i8"] * 4, "f4"] if "Segments" in name else ["f4", "i8", "i8", "i8", "f4"]
    if "Packed" in name:
        types[2] = "f4"
    given = [np.zeros(shape, type) for shape, type in zip(shapes, types, strict=False)]
    compiled = engine.compile(work_of(name, {}, given, [((2, 3), "f32")]))
    assert compiled is None or compiled.judging is None
