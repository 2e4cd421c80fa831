"""Python functions as compiled loops: they give what Python gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled.loops import Bytes, Doubles, Floats, Ints, Longs, looped
from irrun.engines.compiled.team import Team

TEAM = Team(2)
FACTOR = 3
MODE = "none"


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch):
    monkeypatch.setenv("IRRUN_CACHE_DIR", "")


def square(number: int) -> int:
    return number * number


def integers(begin: int, end: int, source: Longs, target: Longs) -> None:
    """Quotients are rounded down, and the sign of a rest is that of the divisor."""
    for i in range(begin, end):
        left, right = source[2 * i], source[2 * i + 1]
        target[5 * i] = left // right
        target[5 * i + 1] = left % right
        target[5 * i + 2] = min(left, right) - max(left, -right)
        target[5 * i + 3] = square(left) & 255 | right
        target[5 * i + 4] = int(left < right <= 3) + int(left == right or (left != -right and not right > 2))


def floats(begin: int, end: int, source: Floats, target: Floats, factor: float) -> None:
    for i in range(begin, end):
        x = source[i]
        y = np.floor(x) + np.ceil(x) * np.trunc(x) - np.rint(x) / 4
        if x > 0 and np.sqrt(x) > 1.5:
            y += np.sqrt(x) * np.float32(factor)
        elif x != x:
            y = np.float32(-1)
        z = np.minimum(x, 0.5) if i % 2 else np.maximum(x, -0.5)
        target[i] = y + abs(z) if z == z else y


def flow(begin: int, end: int, target: Ints) -> None:
    for i in range(begin, end):
        total = 0
        for j in range(10, 0, -3):
            total += j
        for j in range(2, i):
            if j == 3:
                continue
            if j > 6:
                break
            total += j
        k = 0
        while k * k < i:
            k = k + 1
        target[i] = total * FACTOR + k


def types(begin: int, end: int, bytes: Bytes, ints: Ints, doubles: Doubles, target: Longs) -> None:
    for i in range(begin, end):
        bytes[i] = bytes[i] + 1
        ints[i] = ints[i] - 1
        doubles[i] = float(np.float32(doubles[i]) * np.float32(0.1))
        target[i] = int(doubles[i]) + int(bytes[i]) + ints[i]


def chosen(begin: int, end: int, target: Longs) -> None:
    for i in range(begin, end):
        if MODE == "twice":
            target[i] = 2 * i
        elif MODE == "none":
            target[i] = nothing_of_the_kind(i)  # noqa: F821 # what is never called is never looked for


def leaving(number: int, limits: Longs) -> int:
    for i in range(3):
        if number < limits[i]:
            return i
    return -1


def calls(begin: int, end: int, limits: Longs, target: Longs) -> None:
    for i in range(begin, end):
        target[i] = leaving(i, limits)


def held(function, count, *arguments):
    """Compiled, with and without threads, it leaves the same as in Python."""
    copies = [[a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(3)]
    with np.errstate(all="ignore"):
        function(0, count, *copies[0])
    looped(TEAM, function, copies[1], count, 0)()
    looped(TEAM, function, copies[2], count, 1e9)()
    for others in copies[1:]:
        for expected, found in zip(copies[0], others, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_integers():
    numbers = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5), (3, 3), (1, 3), (2, 9)]
    held(integers, len(numbers), np.array(numbers).ravel(), np.zeros(5 * len(numbers), np.int64))


def test_floats_and_what_is_no_number():
    rng = np.random.default_rng(0)
    source = np.array([0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 7, np.inf, np.nan, -np.inf, *rng.normal(0, 4, 50)], np.float32)
    held(floats, len(source), source, np.zeros(len(source), np.float32), 0.3)


def test_loops_that_are_left():
    held(flow, 50, np.zeros(50, np.int32))


def test_functions_that_are_left_early():
    held(calls, 9, np.array([2, 4, 7]), np.zeros(9, np.int64))


def test_types_of_memory():
    rng = np.random.default_rng(0)
    bytes, ints = rng.integers(0, 255, 20).astype(np.uint8), rng.integers(-999, 999, 20).astype(np.int32)
    held(types, 20, bytes, ints, rng.normal(0, 100, 20), np.zeros(20, np.int64))


def test_what_is_known_when_it_is_compiled_decides():
    target = np.zeros(4, np.int64)
    looped(TEAM, chosen, (target,), 4, 0, MODE="twice")()
    assert target.tolist() == [0, 2, 4, 6]


def mixed(begin: int, end: int, source: Floats, target: Doubles) -> None:
    for i in range(begin, end):
        target[i] = source[i]


def deleting(begin: int, end: int, target: Floats) -> None:
    for i in range(begin, end):
        del i


@pytest.mark.parametrize(("function", "message"), [(mixed, "float where double"), (deleting, "`del i`")])
def test_what_there_is_not_is_refused(function, message):
    arguments = [np.zeros(3, np.float32), np.zeros(3)][: 2 if function is mixed else 1]
    with pytest.raises(TypeError, match=message):
        looped(TEAM, function, arguments, 3, 0)
