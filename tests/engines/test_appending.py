"""Concatenations that grow, held against numpy's, and what has been made before stays as it was."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from engines.works import THREADS

from irrun.engines.vectorized import appending
from irrun.engines.vectorized.appending import open_concat
from irrun.engines.work import Operand, Post, Work

rng = np.random.default_rng(8)


@pytest.fixture(autouse=True)
def _small(monkeypatch: Any) -> None:
    monkeypatch.setattr(appending, "LEAST", 1)


def call_of(axis: int = 0, count: int = 2, type: str = "f32") -> Any:
    operand = Operand(type, (-1, -1), ())
    return open_concat(Work("Concat-1", {"axis": axis}, [operand] * count, [operand]), THREADS)


def numbers(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "axis"), [((1, 3), 0), ((1, 1, 2, 5), -2), ((1, 1), 1), ((4,), 0)])
def test_what_is_appended_is_written_behind_what_is_there(shape: tuple[int, ...], axis: int) -> None:
    call, total = call_of(axis), numbers(*shape)
    made, moved = [], 0
    for _ in range(40):
        more = numbers(*shape)
        (result,) = call([total, more])
        moved += result.ctypes.data != total.ctypes.data
        made.append((result, np.concatenate([total, more], axis)))
        total = result
    for result, expected in made:
        np.testing.assert_array_equal(result, expected)
    assert moved < 9


def test_arrays_to_which_others_have_appended_stay_as_they_are() -> None:
    call = call_of()
    root = call([numbers(2, 3), numbers(1, 3)])[0]
    root = call([root, numbers(1, 3)])[0]  # which has room behind it
    pairs = []
    for _ in range(3):
        more = numbers(1, 3)
        pairs.append((call([root, more])[0], np.concatenate([root, more])))
    pairs.append((call([root[:2], root])[0], np.concatenate([root[:2], root])))
    pairs.append((call([pairs[0][0], pairs[0][0]])[0], np.concatenate([pairs[0][0]] * 2)))
    for result, expected in pairs:
        np.testing.assert_array_equal(result, expected)


def test_several_at_once_and_empty_ones_and_other_types() -> None:
    for dtype in ("f4", "i8", "?"):
        call, total = call_of(count=3), np.ones((2, 3), dtype)
        for count in (1, 0, 2, 5):
            more = rng.integers(0, 2, (count, 3)).astype(dtype), np.ones((1, 3), dtype)[:, ::-1]
            expected = np.concatenate([total, *more])
            (total,) = call([total, *more])
            np.testing.assert_array_equal(total, expected)
            assert total.dtype == expected.dtype


def test_threads_do_not_meet() -> None:
    call, wrong = call_of(), []

    def many(seed: int) -> None:
        own = np.random.default_rng(seed)
        for _ in range(20):
            total = expected = own.random((1, 4), np.float32)
            for _ in range(30):
                more = own.random((1, 4), np.float32)
                expected = np.concatenate([expected, more])
                (total,) = call([total, more])
            wrong.append(not np.array_equal(total, expected))

    threads = [threading.Thread(target=many, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 60
    assert not any(wrong)


def test_nothing_is_kept_that_nobody_has() -> None:
    call = call_of()
    total = call([numbers(2, 3), numbers(1, 3)])[0]
    total = call([total, numbers(1, 3)])[0]
    block = call._block
    assert block() is not None
    del total
    gc.collect()
    assert block() is None
    data = numbers(4, 3)
    np.testing.assert_array_equal(call([data, data])[0], np.concatenate([data, data]))


def test_what_does_not_grow_is_joined(monkeypatch: Any) -> None:
    def joined(axis: int, *arrays: Any) -> None:
        given = call_of(axis)(arrays)
        assert given is not None
        np.testing.assert_array_equal(given[0], np.concatenate(arrays, axis))

    joined(1, numbers(2, 3), numbers(2, 1))
    joined(-1, numbers(2, 3), numbers(2, 0), numbers(2, 2))
    joined(0, numbers(3, 2).T, numbers(1, 3))
    joined(0, numbers(0, 3), numbers(1, 3))
    monkeypatch.setattr(appending, "LEAST", 1 << 16)
    joined(0, numbers(2, 3), numbers(1, 3))


def test_what_cannot_be_joined_is_left_to_others() -> None:
    assert call_of(3)([numbers(2, 3), numbers(2, 3)]) is None
    assert call_of()([numbers(2, 3), numbers(1, 4)]) is None
    assert call_of()([numbers(2, 3), numbers(3)]) is None
    assert call_of()([numbers(2, 3), np.zeros((1, 3))]) is None
    assert call_of(type="string") is None
    operand = Operand("f32", (-1,), ())
    assert open_concat(Work("Concat-1", {"axis": 0}, [operand] * 2, [operand], [Post("ReLU-1", {})]), THREADS) is None
