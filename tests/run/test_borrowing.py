"""Inputs that are read where they lie: what is computed is of their numbers now, and nobody writes to them."""

from __future__ import annotations

import gc
import itertools
import weakref
from unittest.mock import patch

import numpy as np
import pytest

import irrun
from irrun.engines.memory import allocate
from irrun.run import borrowing
from run.models import ADD, PLAIN, anything, i64, model, saved
from run.test_program import random_model

ENGINES = pytest.mark.parametrize("engine", ["numpy", "onednn", "auto"])
SHAPE = (3, 5, 8)


@pytest.fixture(autouse=True)
def of_any_size():
    """However small they are, and whoever reads them."""
    with patch.object(borrowing, "MIN_OWN", 1), patch.object(borrowing, "MAX_READERS", 100):
        yield


def lying(array):
    """The same numbers in C order, at an odd place, among others, backwards, repeated, and read-only."""
    odd = allocate(array.nbytes + 8)[4 : 4 + array.nbytes].view(array.dtype).reshape(array.shape)
    wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), 9, array.dtype)
    backwards = np.empty(array.shape, array.dtype)[::-1, :, ::-1]
    for made in (odd, wide[..., ::2], backwards):
        made[...] = array
    bytes = allocate(array.nbytes + 8)[1 : 1 + array.nbytes]
    bytes[...] = array.reshape(-1).view(np.uint8)
    fixed = array.copy()
    fixed.flags.writeable = False
    return [array, odd, wide[..., ::2], backwards, bytes.view(array.dtype).reshape(array.shape), fixed]


def two_inputs(folder, engine):
    """(x + y) times a matrix, the greatest of rows of x, and y turned, twice as large."""
    b = model()
    x, y = anything(b, "f4", SHAPE, "x"), anything(b, "f4", SHAPE, "y")
    total = b.one("Add-1", x, y, **ADD)
    b.result(b.one("MatMul-1", total, b.constant(np.float32(np.arange(32).reshape(8, 4) / 32)), **PLAIN))
    b.result(b.one("ReduceMax-1", x, i64(b, [1]), keep_dims=False))
    turned = b.one("Transpose-1", b.one("Reshape-1", y, i64(b, [15, 8]), special_zero=False), i64(b, [1, 0]))
    b.result(b.one("Add-1", turned, turned, **ADD))
    return irrun.GraphExecutor(saved(b, folder), engine=engine)


def expected(x, y):
    return [(x + y) @ np.float32(np.arange(32).reshape(8, 4) / 32), x.max(1), 2 * y.reshape(15, 8).T]


@ENGINES
def test_arrays_that_lie_anywhere(engine, tmp_path):
    ours, rng = two_inputs(tmp_path, engine), np.random.default_rng(0)
    kept = []
    for first, second in itertools.product(range(6), range(6)):
        x, y = (lying(rng.standard_normal(SHAPE, np.float32))[number] for number in (first, second))
        before = x.copy(), y.copy()
        results = [*ours.run([x, y]).values()]
        np.testing.assert_array_equal(x, before[0])
        np.testing.assert_array_equal(y, before[1])
        kept.append((results, expected(x, y)))
        assert not any(np.shares_memory(result, given) for result in results for given in (x, y))
    for results, wanted in kept:
        for result, right in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)


@ENGINES
def test_numbers_that_change_where_they_lie(engine, tmp_path):
    ours = two_inputs(tmp_path, engine)
    x, y = np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.float32)
    for number in range(4):
        x[...], y[...] = number, -2 * number
        results = [*ours.run([x, y if number % 2 else x]).values()]
        for result, right in zip(results, expected(x, y if number % 2 else x), strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)


@ENGINES
def test_an_input_is_read_where_it_lies_and_let_go_when_another_one_comes(engine, tmp_path):
    ours = two_inputs(tmp_path, engine)
    x, y = np.ones(SHAPE, np.float32), np.ones(SHAPE, np.float32)
    held = borrowing.read_as_given(ours._whole.preparation.prepared((SHAPE, SHAPE)).program)
    assert [given.position for given in held] == [0, 1]
    ours.run([x, y])
    first = weakref.ref(x)
    del x
    ours.run([y, y])
    gc.collect()
    assert first() is None


@ENGINES
def test_results_as_inputs_of_the_next_run(engine, tmp_path):
    b = model()
    x = anything(b, "f4", (-1, 8), "x")
    b.result(b.one("ReLU-1", b.one("Add-1", x, b.constant(np.float32([1])), **ADD)))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for rows in (3, 5, 3):
        made = [np.zeros((rows, 8), np.float32)]
        for number in range(1, 6):
            made.append(*ours.run([made[-1]]).values())
            for count, array in enumerate(made):
                assert (array == count).all(), number


@ENGINES
def test_an_observer_changes_nothing_that_was_given(engine, tmp_path):
    ours = two_inputs(tmp_path, engine)
    x, y = np.ones(SHAPE, np.float32), np.ones(SHAPE, np.float32)
    ours.run([x, y])
    ours.run([x, y], observer=lambda event: np.zeros_like(event.array))
    assert (x == 1).all()
    assert (y == 1).all()
    np.testing.assert_allclose([*ours.run([x, y]).values()][1], x.max(1))


@ENGINES
@pytest.mark.parametrize("seed", range(8))
def test_random_models(seed, engine, tmp_path):
    path = random_model(seed, tmp_path)
    ours, reference = irrun.GraphExecutor(path, engine=engine), irrun.GraphExecutor(path, engine="reference")
    for number in range(4):
        given = ours.random_inputs(number // 2)
        before = {name: array.copy() for name, array in given.items()}
        wanted = reference.run(before)
        for name, array in ours.run(given).items():
            np.testing.assert_allclose(array, wanted[name], rtol=1e-4, atol=1e-5)
        for name, array in given.items():
            np.testing.assert_array_equal(array, before[name])


def test_inputs_that_kernels_read_or_that_are_results_are_copied(tmp_path):
    b = model()
    x, y = anything(b, "f4", SHAPE, "x"), anything(b, "f4", SHAPE, "y")
    b.result(b.one("Reshape-1", x, i64(b, [15, 8]), special_zero=False))
    b.result(b.one("Add-1", y, y, **ADD))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    program = ours._whole.preparation.prepared((SHAPE, SHAPE)).program
    assert [given.position for given in borrowing.read_as_given(program)] == [1]
    given = np.ones(SHAPE, np.float32)
    first, second = ours.run([given, given]).values()
    given[...] = 7
    assert (first == 1).all()
    assert (second == 2).all()


@ENGINES
def test_data_that_a_rule_has_to_see(tmp_path, engine):
    """Where they break it the run fails, and those before and after it are as they are without."""
    b = model()
    b.result(b.one("Mod-1", *(b.parameter([np.ones(SHAPE, "i4")], []) for _ in range(2)), **ADD))
    executor, rng = irrun.GraphExecutor(saved(b, tmp_path), engine=engine), np.random.default_rng(3)
    kept = []
    for broken in (False, False, True, False, True, True, False):
        x, y = rng.integers(1, 99, (2, *SHAPE)).astype(np.int32)
        y[1, 2, 3] *= not broken
        for own in lying(y):
            if broken:
                with pytest.raises(irrun.ExecutionError, match=r"`b\[1, 2, 3\]` is 0"):
                    executor.run([x, own])
            else:
                (found,) = executor.run([x, own]).values()
                kept.append((found, np.fmod(x, y)))
    for found, right in kept:
        np.testing.assert_array_equal(found, right)
    first = weakref.ref(y)
    del y, own
    executor.run([x, x])
    gc.collect()
    assert first() is None
