"""Embedding bags on numpy against the plain kernels: bags of all lengths, with weights, and what an empty one is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.works import computed, plain, posted, work_of

from irrun.engines.threads import Threads
from irrun.engines.vectorized import embeddings
from irrun.engines.vectorized.embeddings import COMPILERS
from irrun.engines.work import Post
from irrun.spec.dtypes import element_type
from irrun.spec.registry import registry

rng = np.random.default_rng(7)

THREADS = Threads(2)

LENGTHS: dict[str, Any] = {
    "one": [1],
    "short ones": rng.integers(0, 9, 300),
    "equal": [5] * 200,
    "all empty but one": [0] * 30 + [1] + [0] * 40,
    "single rows": [1] * 100,
    "a piece": [64, 64, 64],
    "over a piece": [65, 128, 129, 3, 0, 64, 192],
    "one huge": [0, 5000, 0],
    "two huge, rest short": [1, 4, 4500, 0, 2, 300, 4, 5000, 1],
}


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return (rng.standard_normal(shape) * 8).astype(dtype)


def check(name: str, attrs: dict[str, Any], *arrays: Any, posts: tuple[Post, ...] = (), threads: Any = THREADS) -> Any:
    own = len(arrays) - sum(post.operand is not None for post in posts)
    given = [None if array is None else np.asarray(array) for array in arrays]
    warn = {"warn": lambda _: None} if "warn" in registry().ops[name].context else {}
    with np.errstate(all="ignore"):
        expected = posted(posts, plain(name, {**attrs, **warn}, given[:own]), given)
    work = work_of(name, attrs, given, [(expected.shape, element_type(expected.dtype))], posts)
    compiled = COMPILERS[name](work, threads)
    assert compiled is not None
    got = computed(compiled, work, given)[0]
    assert got.dtype == expected.dtype
    if got.dtype.kind == "f":
        rounding = {2: 1e-3, 4: 2e-5, 8: 1e-13}[got.dtype.itemsize]
        np.testing.assert_allclose(got, expected, rtol=rounding, atol=200 * rounding)
    else:
        np.testing.assert_array_equal(got, expected)
    return got


@pytest.mark.parametrize("columns", [1, 3, 16, 100])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_segments(lengths: str, columns: int) -> None:
    ids = np.repeat(np.arange(len(LENGTHS[lengths])), LENGTHS[lengths])
    table, indices, weights = numbers(70, columns), rng.integers(0, 70, len(ids)), numbers(len(ids))
    count = np.array(len(LENGTHS[lengths]))
    check("EmbeddingSegmentsSum-3", {}, table, indices, ids, count)
    check("EmbeddingSegmentsSum-3", {}, table, indices, ids, count, -1, weights)
    check("EmbeddingSegmentsSum-3", {}, table, indices.astype("i4"), ids.astype("i4"), count, np.int32(4), weights)


@pytest.mark.parametrize("columns", [2, 33])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_offsets(lengths: str, columns: int) -> None:
    offsets = np.append(0, np.cumsum(LENGTHS[lengths])[:-1])
    indices = rng.integers(0, 40, sum(LENGTHS[lengths]))
    table, weights = numbers(40, columns), numbers(len(indices))
    check("EmbeddingBagOffsetsSum-3", {}, table, indices, offsets)
    check("EmbeddingBagOffsetsSum-3", {}, table, indices, offsets, 3, weights)
    check("EmbeddingBagOffsets-15", {"reduction": "mean"}, table, indices, offsets, 3)
    check(
        "EmbeddingBagOffsets-15", {"reduction": "sum"}, table, indices.astype("i4"), offsets.astype("i4"), -1, weights
    )


def test_indices_before_the_first_offset() -> None:
    check("EmbeddingBagOffsetsSum-3", {}, numbers(9, 20), rng.integers(0, 9, 30), [7, 7, 15, 30], 2, numbers(30))


@pytest.mark.parametrize("shape", [(1, 1), (300, 1), (40, 7), (3, 64), (5, 200), (2, 5000)])
def test_packed(shape: tuple[int, int]) -> None:
    table, indices = numbers(50, 24), rng.integers(0, 50, shape)
    check("EmbeddingBagPackedSum-3", {}, table, indices)
    check("EmbeddingBagPackedSum-3", {}, table, indices.astype("i4"), numbers(*shape))
    for reduction in ("sum", "mean"):
        check("EmbeddingBagPacked-15", {"reduction": reduction}, table, indices)


@pytest.mark.parametrize("dtype", ["f2", "f8", "i4", "i8", "u1", "i2"])
def test_other_types(dtype: str) -> None:
    lengths = LENGTHS["two huge, rest short"]
    offsets, count = np.append(0, np.cumsum(lengths)[:-1]), sum(lengths)
    for columns in (3, 40):
        table = rng.integers(0, 5, (30, columns)).astype(dtype)
        indices, weights = rng.integers(0, 30, count), rng.integers(0, 3, count).astype(dtype)
        check("EmbeddingBagOffsetsSum-3", {}, table, indices, offsets, 1, weights)
        check("EmbeddingBagPackedSum-3", {}, table, indices[:90].reshape(9, 10))


def test_f16_is_summed_in_f32() -> None:
    table = np.full((2, 16), 1 / 1024, "f2")
    table[0] = 1000
    got = check("EmbeddingBagPackedSum-3", {}, table, np.array([[0] + [1] * 2047, [1] * 2048]))
    assert got[0, 0] == 1002
    assert got[1, 0] == 2


def test_f16_tables_of_more_rows_than_there_are_indices() -> None:
    table, indices = numbers(500, 20, dtype="f2"), rng.integers(0, 500, 300)
    check("EmbeddingBagOffsetsSum-3", {}, table, indices, [0, 3, 3, 150], 7, numbers(300, dtype="f2"))
    check("EmbeddingBagPacked-15", {"reduction": "mean"}, table, indices.reshape(60, 5))


def test_segments_that_are_not_sorted() -> None:
    for count in (20, 1 << 17):
        ids = rng.integers(0, count, 3000)
        table, indices, weights = numbers(90, 12), rng.integers(0, 90, 3000), numbers(3000)
        check("EmbeddingSegmentsSum-3", {}, table, indices, ids, np.array(count), 5, weights)
        check("EmbeddingSegmentsSum-3", {}, table, indices.astype("i4"), ids.astype("i4"), np.array(count))


def test_rows_of_several_dimensions_and_scalars() -> None:
    indices, ids = rng.integers(0, 6, 10), np.sort(rng.integers(0, 4, 10))
    for shape in ((6,), (6, 1), (6, 2, 3, 5)):
        check("EmbeddingSegmentsSum-3", {}, numbers(*shape), indices, ids, np.array(4), 1, numbers(10))


def test_rows_longer_than_a_block() -> None:
    columns = embeddings.BLOCK // 4 + 100
    check("EmbeddingBagOffsetsSum-3", {}, numbers(3, columns), rng.integers(0, 3, 80), [0, 2, 2, 5], 0, numbers(80))


def test_not_a_number_and_infinity_stay_in_their_bags() -> None:
    table = numbers(10, 16)
    table[3, 1], table[4], table[5, 2], table[6, 2] = np.nan, np.inf, np.inf, -np.inf
    indices = np.array([0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 9, 3, 0, 1])
    weights = numbers(15)
    weights[4], weights[9] = 0, np.nan
    for length in (1, 3, 5):
        check("EmbeddingBagPackedSum-3", {}, table, indices.reshape(-1, length))
        check("EmbeddingBagPackedSum-3", {}, table, indices.reshape(-1, length), weights.reshape(-1, length))
    check("EmbeddingBagOffsetsSum-3", {}, table, indices, [0, 1, 5, 5, 7], 3, weights)


def test_many_blocks_are_the_same_for_any_number_of_threads() -> None:
    lengths = rng.poisson(10, 3000)
    offsets, indices = np.cumsum(lengths) - lengths, rng.integers(0, 500, lengths.sum())
    table, weights = numbers(500, 128), numbers(len(indices))
    given = (table, indices, offsets, 0, weights)
    one, two, three = (check("EmbeddingBagOffsetsSum-3", {}, *given, threads=Threads(count)) for count in (1, 2, 3))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


def test_posts() -> None:
    posts = (Post("Multiply-1", {"auto_broadcast": "numpy"}, 2), Post("ReLU-1", {}))
    check("EmbeddingBagPackedSum-3", {}, numbers(9, 4), rng.integers(0, 9, (6, 3)), numbers(4), posts=posts)


def test_what_is_left_to_others() -> None:
    table, indices = numbers(9, 4), rng.integers(0, 9, (6, 3))
    name = "EmbeddingBagPacked-15"

    def taken(table: Any, indices: Any, reduction: str = "sum") -> bool:
        result = [((len(indices), table.shape[1]), element_type(table.dtype))]
        return COMPILERS[name](work_of(name, {"reduction": reduction}, [table, indices], result), THREADS) is not None

    assert taken(table, indices)
    assert not taken(numbers(4, 9).T, indices)
    assert not taken(table, indices.T)
    assert taken(table.astype("i4"), indices)
    assert not taken(table.astype("i4"), indices, "mean")
