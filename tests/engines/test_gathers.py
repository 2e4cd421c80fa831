"""Gathers on numpy against the plain kernels: constant and varying indices, negative ones and ones outside."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from engines.works import THREADS, computed, plain, posted, work_of

from irrun.engines.vectorized.gathers import COMPILERS, open_gather, open_gather_nd
from irrun.engines.work import Operand, Post, Work
from irrun.spec.dtypes import element_type

rng = np.random.default_rng(6)


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return rng.integers(-100, 100, shape).astype(dtype)


def check(
    name: str, attrs: dict[str, Any], *arrays: Any, constant: tuple[int, ...], posts: tuple[Post, ...] = ()
) -> None:
    own = len(arrays) - sum(post.operand is not None for post in posts)
    given = [np.asarray(array) for array in arrays]
    expected = posted(posts, plain(name, attrs, given[:own]), given)
    work = work_of(name, attrs, given, [(expected.shape, element_type(expected.dtype))], posts, constant)
    compiled = COMPILERS[name](work, THREADS)
    assert compiled is not None
    got = computed(compiled, work, given)[0]
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


INDICES = {
    "scalar": 2,
    "one": [1],
    "run": [1, 2, 3],
    "backwards": [3, 2, 1, 0],
    "apart": [0, 2],
    "same": [1, 1, 1],
    "any": [[3, 0, 0], [1, 2, 1]],
    "empty axes": [[[2]]],
}


@pytest.mark.parametrize("indices", INDICES)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["f4", "i8", "?", ml_dtypes.float8_e5m2, ml_dtypes.bfloat16])
def test_constant_indices(indices: str, axis: int, dtype: str) -> None:
    data, places = numbers(5, 4, 6, dtype=dtype), np.array(INDICES[indices])
    for name in ("Gather-1", "Gather-7", "Gather-8"):
        attrs = {} if name == "Gather-1" else {"batch_dims": 0}
        check(name, attrs, data, places, axis, constant=(1, 2))
    check("Gather-8", {"batch_dims": 0}, data, places - 4, axis, constant=(1, 2))
    check("Gather-8", {"batch_dims": 0}, data, places.astype(np.int32), axis, constant=(2,))


def test_data_in_any_order_at_any_constant_places() -> None:
    data = numbers(4, 5, 6)
    orders = (
        data.transpose(2, 0, 1),
        data.T.astype(ml_dtypes.float8_e5m2, order="K"),
        data[:, ::2],
        np.broadcast_to(data[:1], (3, 5, 6)).T,
        data[1:, 1:, 2],
    )
    for own in orders:
        for axis in range(own.ndim):
            places = np.array([0, -1, own.shape[axis] // 2, 0])
            for shape in ((4,), (2, 2)):
                check("Gather-8", {"batch_dims": 0}, own, places.reshape(shape), axis, constant=(1, 2))


@pytest.mark.parametrize("indices", [2, [3, 1], [1, 2, 3]])
def test_strided_data_with_constant_indices_at_equal_steps(indices: Any) -> None:
    check("Gather-8", {"batch_dims": 0}, numbers(6, 4, 5).T, indices, 1, constant=(1, 2))


@pytest.mark.parametrize("dtype", ["i4", "i8", "u1"])
def test_indices_that_vary(dtype: str) -> None:
    data = numbers(50, 33)
    for axis in (0, 1):
        check("Gather-8", {"batch_dims": 0}, data, rng.integers(0, 33, (2, 3)).astype(dtype), axis, constant=(2,))
        outside = np.array([[0, 200, 5], [32, 50, 49]]).astype(dtype)
        check("Gather-8", {"batch_dims": 0}, data, outside, axis, constant=(2,))
    if dtype[0] == "i":
        check("Gather-8", {"batch_dims": 0}, data, np.array([-1, -50, 49], dtype), 0, constant=(2,))
        check("Gather-8", {"batch_dims": 0}, data, np.array([-1, -51, 50], dtype), 0, constant=(2,))


def test_many_rows() -> None:
    data = rng.standard_normal((1000, 300)).astype(np.float32)
    places = rng.integers(-1000, 1000, (5, 1007))
    check("Gather-8", {"batch_dims": 0}, data, places, 0, constant=(2,))
    check("Gather-8", {"batch_dims": 0}, data, places, 0, constant=(1, 2))


def test_posts() -> None:
    posts = (Post("Multiply-1", {"auto_broadcast": "numpy"}, 3), Post("ReLU-1", {}))
    check("Gather-8", {"batch_dims": 0}, numbers(9, 4), [[1, 8]], 0, numbers(4), constant=(2,), posts=posts)
    check("Gather-8", {"batch_dims": 0}, numbers(9, 4), [[1, 8, 5]], 0, numbers(4), constant=(1, 2), posts=posts)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements(axis: int) -> None:
    data, places = numbers(4, 3, 5), rng.integers(0, 3, (4, 3, 5))
    if axis == 1:
        places = places[:, :2]
    check("GatherElements-6", {"axis": axis}, data, places, constant=(1,))


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("name", ["GatherND-5", "GatherND-8"])
def test_tuples(name: str, length: int) -> None:
    places = rng.integers(0, 3, (2, 5, length))
    check(name, {"batch_dims": 0}, numbers(4, 3, 5), places, constant=(1,))
    if name == "GatherND-8":
        check(name, {"batch_dims": 0}, numbers(4, 3, 5), -1 - places, constant=(1,))


def test_what_is_left_to_others() -> None:
    data, places, axis = numbers(4, 5), np.array([[1, 2], [0, 3], [1, 1], [2, 2]]), np.array(1)
    wide = [((4, 4, 2), "f32")]
    no = THREADS
    assert COMPILERS["Gather-8"](work_of("Gather-8", {"batch_dims": 0}, [data, places, axis], wide), no) is None
    varying = work_of("Gather-7", {"batch_dims": 0}, [data, places, axis], wide, constant=(2,))
    assert COMPILERS["Gather-7"](varying, no) is None
    batched = work_of("Gather-8", {"batch_dims": 1}, [data, places, axis], [((4, 2), "f32")], constant=(1, 2))
    assert COMPILERS["Gather-8"](batched, no) is None
    outside = work_of("Gather-8", {"batch_dims": 0}, [data, places + 3, axis], wide, constant=(1, 2))
    assert COMPILERS["Gather-8"](outside, no) is None
    for known in ((2,), (1, 2)):  # the largest index is no -1
        last = work_of("Gather-8", {"batch_dims": 0}, [data, places.astype(np.uint64), axis], wide, constant=known)
        assert COMPILERS["Gather-8"](last, no) is None
    for turned in (data.T[::-1], np.broadcast_to(data.T, (1 << 15, *data.T.shape))):
        shape = plain("Gather-8", {"batch_dims": 0}, [turned, places, axis]).shape
        strided = work_of("Gather-8", {"batch_dims": 0}, [turned, places, axis], [(shape, "f32")], constant=(1, 2))
        assert COMPILERS["Gather-8"](strided, no) is None


def opened_slices(data: Any, indices: Any, axis: Any, name: str = "Gather-8", batch_dims: int = 0) -> Any:
    arrays = [data, np.asarray(indices), np.asarray(axis)]
    operands = [Operand(element_type(array.dtype), (-1,) * array.ndim, ()) for array in arrays]
    call = open_gather(Work(name, {"batch_dims": batch_dims}, operands, operands[:1]), THREADS)
    return None if call is None else call(arrays)


@pytest.mark.parametrize("name", ["Gather-1", "Gather-7", "Gather-8"])
def test_slices_of_any_sizes(name: str) -> None:
    attrs = {} if name == "Gather-1" else {"batch_dims": 0}
    for dtype in ("f4", "i8", "?"):
        data = numbers(5, 6, 7, dtype=dtype)
        for own in (data, data.T):
            for axis in (0, 1, -1, [2]):
                for count in ((), (3,), (2, 4), (0,), (2, 0)):
                    indices = rng.integers(0, 5, count, np.int32)
                    (found,) = opened_slices(own, indices, axis, name)
                    expected = plain(name, attrs, [own, indices, np.asarray(axis)])
                    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                    np.testing.assert_array_equal(found, expected)
    (found,) = opened_slices(numbers(0, 3), np.zeros(0, np.int32), 0, name)
    assert found.shape == (0, 3)


def test_slices_outside_are_left_to_the_kernel() -> None:
    data = numbers(5, 6)
    for indices, axis in (([5], 0), ([-1], 0), ([0], 2), ([0], [0, 1]), ([0], [])):
        assert opened_slices(data, indices, axis) is None
    assert opened_slices(numbers(0, 3), [0], 0) is None
    assert opened_slices(numbers(1, 1000), [0] * 50, 0) is None  # fifty times as much as there is
    for batched in ([[1], [2], [1], [6], [1]], [[1], [2], [-1], [2], [1]], [[1], [2]]):
        assert opened_slices(data, batched, 1, batch_dims=1) is None
    assert opened_slices(data.T, [[1]] * 6, 1, batch_dims=1) is None
    assert opened_slices(numbers(5, 6, 7), [[1]] * 5, 2, batch_dims=1) is None  # an axis between


@pytest.mark.parametrize("name", ["Gather-7", "Gather-8"])
@pytest.mark.parametrize("seed", range(20))
def test_slices_of_batches(name: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    batch, more = (int(number) for number in draw.integers(1, 3, 2))
    shape = draw.integers(1, 7, batch + more)
    indices = draw.integers(0, shape[batch], (*shape[:batch], *draw.integers(0, 5, draw.integers(0, 3))))
    data = numbers(*shape, dtype=str(draw.choice(["f4", "i8", "?", "u1"])))
    axis, dims = (batch, batch) if seed % 2 else (batch - data.ndim, batch - indices.ndim or batch)
    for given in (indices, indices.astype(np.int32)):
        (found,) = opened_slices(data, given, axis, name, dims)
        expected = plain(name, {"batch_dims": dims}, [data, given, np.asarray(axis)])
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


def opened(data: Any, tuples: Any, batch_dims: int = 0, name: str = "GatherND-8") -> Any:
    operands = [Operand(element_type(array.dtype), (-1,) * array.ndim, ()) for array in (data, tuples)]
    call = open_gather_nd(Work(name, {"batch_dims": batch_dims}, operands, operands[:1]), THREADS)
    return None if call is None else call([data, tuples])


def test_slices_at_tuples_of_any_sizes() -> None:
    cases = (((300,), 1, (40,)), ((5, 6, 7), 2, (3, 4)), ((5, 6), 2, ()), ((5, 6), 1, (1,)), ((5, 6), 1, (0,)))
    for shape, length, count in (*cases, ((5, 6, 7), 2, (3, 0))):
        for dtype in ("f4", "i8", "?"):
            data = numbers(*shape, dtype=dtype)
            tuples = np.stack([rng.integers(0, size, count) for size in shape[:length]], -1)
            for given in (tuples, tuples.astype(np.int32)):
                (found,) = opened(data, given)
                expected = plain("GatherND-8", {"batch_dims": 0}, [data, given])
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                np.testing.assert_array_equal(found, expected)


def test_slices_that_are_outside_or_many_are_left_to_the_kernel() -> None:
    data = numbers(5, 6)
    for tuples in ([[5]], [[-1]], [[0, 6]], [[0, 0, 0]], np.zeros((3, 0), int), 0):
        assert opened(data, np.asarray(tuples)) is None
    assert opened(data.T, np.array([[1]])) is None
    assert opened(numbers(1, 1000), np.zeros((50, 1), np.int32)) is None  # fifty times as much as there is
    for batched in ([[1], [2], [1], [6], [1]], [[1], [2], [-1], [2], [1]], [[1], [2]], [[0, 0]] * 5):
        assert opened(data, np.array(batched), 1) is None
    assert opened(data.T, np.array([[1]] * 6), 1) is None
    assert opened(data, np.zeros((5, 6, 1), int), 2, "GatherND-5") is None


@pytest.mark.parametrize("name", ["GatherND-5", "GatherND-8"])
@pytest.mark.parametrize("seed", range(20))
def test_slices_at_tuples_of_batches(name: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    batch = int(draw.integers(1, 2 if name == "GatherND-5" else 3))
    length, rest = int(draw.integers(1, 3)), int(draw.integers(0, 3))
    shape = draw.integers(1, 6, batch + length + rest)
    count = (*shape[:batch], *draw.integers(0, 5, draw.integers(0, 3)))
    tuples = np.stack([draw.integers(0, size, count) for size in shape[batch : batch + length]], -1)
    data = numbers(*shape, dtype=str(draw.choice(["f4", "i8", "?", "u1"])))
    for given in (tuples, tuples.astype(np.int32)):
        (found,) = opened(data, given, batch, name)
        expected = plain(name, {"batch_dims": batch}, [data, given])
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
