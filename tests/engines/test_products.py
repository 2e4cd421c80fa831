"""Products of matrices against MatMul's kernel."""

from __future__ import annotations

import numpy as np
import pytest
from engines.agreement import BIASED, agrees, share_all
from engines.works import THREADS, work_of

from irrun.engines.vectorized import posts as module
from irrun.engines.vectorized import products
from irrun.engines.work import Post

COMPILER = products.COMPILERS["MatMul-1"]

SHAPES = [
    ((5,), (5,)),
    ((5,), (5, 4)),
    ((3, 5), (5,)),
    ((5,), (2, 5, 4)),
    ((2, 3, 5), (5,)),
    ((3, 5), (5, 4)),
    ((2, 3, 5), (5, 4)),
    ((2, 3, 5), (1, 5, 4)),
    ((1, 3, 5), (2, 5, 4)),
    ((3, 5), (2, 6, 5, 4)),
    ((2, 6, 3, 5), (2, 6, 5, 4)),
    ((2, 1, 3, 5), (6, 5, 4)),
    ((7, 1, 2, 3, 5), (7, 6, 1, 5, 4)),
    ((1, 1, 3, 5), (1, 1, 5, 4)),
    ((3, 1), (1, 4)),
    ((1, 5), (5, 1)),
    ((130, 70), (70, 90)),
    ((400, 30), (30, 20)),
    ((17, 64), (64, 300)),
]


def random_array(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def compare(a, b, transpose_a=False, transpose_b=False, posts=(), operands=(), constant=(1,)):
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    agrees(COMPILER, "MatMul-1", attrs, [a, b], posts, operands, constant)


def turned(array):
    """The array that has `array` as its transposed matrices."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)) if array.ndim > 1 else array


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("shared", [False, True])
def test_shapes(a, b, transpose_a, transpose_b, shared, monkeypatch):
    if shared:
        share_all(monkeypatch)
    a, b = random_array(*a), random_array(*b)
    compare(turned(a) if transpose_a else a, turned(b) if transpose_b else b, transpose_a, transpose_b)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("rows", [3, 90])
def test_posts(shared, rows, monkeypatch):
    if shared:
        share_all(monkeypatch)
        monkeypatch.setattr(module, "BLOCK", 64)
    a, b = random_array(2, rows, 20), random_array(20, 70)
    compare(a, b, posts=BIASED, operands=[random_array(1, 1, 70)])
    compare(a, b, posts=BIASED, operands=[random_array(70)])
    compare(a, b, posts=BIASED, operands=[random_array(2, rows, 70)])
    compare(a, b, posts=BIASED, operands=[random_array(2, 1, 70)])
    heads, keys = random_array(2, 6, rows, 20), random_array(2, 6, 20, 33)
    compare(heads, keys, posts=BIASED, operands=[random_array(2, 1, 1, 33)])
    compare(heads, keys, posts=BIASED, operands=[random_array(1, 6, rows, 33)])


@pytest.mark.parametrize("shared", [False, True])
def test_operands_that_are_views(shared, monkeypatch):
    if shared:
        share_all(monkeypatch)
    heads = random_array(2, 30, 4, 16).transpose(0, 2, 1, 3)
    compare(heads, random_array(2, 20, 4, 16).transpose(0, 2, 1, 3), transpose_b=True, constant=())
    compare(heads, random_array(16, 20))
    compare(random_array(60, 40)[::2, ::4], random_array(10, 30)[:, ::-1])
    compare(random_array(9, 40)[::-1, :10], random_array(30, 10)[::3].T)
    compare(np.broadcast_to(random_array(1, 9, 10), (4, 9, 10)), random_array(10, 30))
    compare(np.broadcast_to(random_array(9, 1), (9, 10)), np.broadcast_to(random_array(30), (10, 30)))
    compare(random_array(12)[::-3], random_array(4, 5))


def test_a_matrix_times_its_own_transposition():
    a = random_array(40, 30)
    compare(a, a, transpose_b=True, constant=())


def test_numbers_that_are_none():
    a, b = random_array(3, 4), random_array(4, 5)
    a[0, 1], b[2, 2], a[2, 2] = np.nan, np.inf, 0
    compare(a, b)


def test_what_is_left_to_others():
    attrs = {"transpose_a": False, "transpose_b": False}
    arrays = [random_array(3, 4), random_array(4, 5)]
    doubles = [array.astype(np.float64) for array in arrays]
    assert COMPILER(work_of("MatMul-1", attrs, doubles, [((3, 5), "f64")]), THREADS) is None
    assert COMPILER(work_of("MatMul-1", attrs, arrays, [((3, 5), "f32")], [Post("Selu-1", {})]), THREADS) is None
