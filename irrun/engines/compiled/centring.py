"""Mean and variance, or norms, along any axes: elements are folded, and what came out is applied to them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import constant_axes, is_dense
from irrun.engines.compiled.folding import LEAST, Folding, folding
from irrun.engines.compiled.loops import Doubles, Floats, looped
from irrun.engines.compiled.team import Team
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.spec.op import Array

CENTRED = True
"""Whether means are subtracted."""

MODE = "inside"
"""What is divided by: roots of variances and epsilon "inside" or "outside" of the root, "none", or norms, that is roots
of sums of squares, where epsilon is added ("add") or the least ("max")."""

ROWS = 16
"""Rows of columns that a thread takes at once, at least."""

ELEMENT_NANOSECONDS, LINE_NANOSECONDS = 0.3, 8.0
"""What an element takes about, and a line."""


def settle(begin: int, end: int, scales: Doubles, length: int, epsilon: float) -> None:
    """What lines are multiplied by, of the sums of their squares, which are rounded to f32 as in the ops' kernels."""
    for k in range(begin, end):
        total = float(np.float32(scales[k]))
        if MODE == "inside":
            scales[k] = 1 / np.sqrt(total / float(length) + epsilon)
        elif MODE == "outside":
            scales[k] = 1 / (np.sqrt(total / float(length)) + epsilon)
        else:
            more = total + epsilon if MODE == "add" else epsilon if total < epsilon else total
            scales[k] = 1 / np.sqrt(more)


def apply(
    begin: int,
    end: int,
    data: Floats,
    result: Floats,
    means: Doubles,
    scales: Doubles,
    first: int,
    middle: int,
    second: int,
    inner: int,
) -> None:
    """Up to ROWS rows of columns each, of `[outer, first, middle, second, inner]`."""
    blocks = (second + ROWS - 1) // ROWS
    for number in range(begin, end):
        place = number // blocks
        own = (place // middle // first * middle + place % middle) * inner
        low = number % blocks * ROWS
        for row in range(place * second + low, place * second + min(low + ROWS, second)):
            for k in range(inner):
                result[row * inner + k] = applied(data[row * inner + k], means[own + k], scales[own + k])


def apply_rows(
    begin: int,
    end: int,
    data: Floats,
    result: Floats,
    means: Doubles,
    scales: Doubles,
    first: int,
    middle: int,
    second: int,
) -> None:
    """As `apply` where there are no columns."""
    for place in range(begin, end):
        own = place // middle // first * middle + place % middle
        mean, scale = means[own], scales[own]
        for k in range(place * second, (place + 1) * second):
            result[k] = applied(data[k], mean, scale)


def applied(value: np.float32, mean: float, scale: float) -> np.float32:
    made = float(value)
    if CENTRED:
        made = made - mean
    if MODE != "none":
        made = made * scale
    return np.float32(made)


def standardized(
    work: Work, team: Team, axes: Sequence[int], mode: str, epsilon: float, *, centred: bool = True
) -> Compiled | None:
    """The first input, which is f32 in C order, normalized along axes, in one of the MODEs."""
    (data,) = work.required(1)
    extents = folding(data.shape, axes)
    if work.posts or data.type != "f32" or not is_dense(data) or extents is None or prod(data.shape) < LEAST:
        return None
    outer, first, middle, second, inner = extents
    lines, divides = outer * middle * inner, mode != "none"
    sums = Folding(team, "f32", extents, "", "sum", np.float64)
    squares = Folding(team, "f32", extents, "deviation" if centred else "wide square", "sum", np.float64)
    begin, end = 8 * lines, 16 * lines
    nanoseconds = prod(data.shape) * ELEMENT_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        means, scales = scratch[:begin].view(np.float64), scratch[begin:end].view(np.float64)
        room = scratch[end:]
        calls = [sums.bind(inputs[0], means, room, "Doubles", "mean")] if centred else []
        if divides:
            calls.append(squares.bind(inputs[0], scales, room, "Doubles", centres=means))
            told = (scales, first * second, epsilon)
            calls.append(looped(team, settle, told, lines, lines * LINE_NANOSECONDS, MODE=mode))
        lying = (inputs[0], outputs[0], means, scales, first, middle, second)
        if inner > 1:
            items = outer * first * middle * -(-second // ROWS)
            calls.append(looped(team, apply, (*lying, inner), items, nanoseconds, CENTRED=centred, MODE=mode))
        else:
            items = outer * first * middle
            calls.append(looped(team, apply_rows, lying, items, nanoseconds, CENTRED=centred, MODE=mode))
        return chain(calls)

    return Compiled(bind, scratch=end + max(sums.room, squares.room))


def normalize_l2(work: Work, team: Team) -> Compiled | None:
    """NormalizeL2-1 of f32, with constant axes."""
    return standardized(work, team, constant_axes(work), work.attrs["eps_mode"], work.attrs["eps"], centred=False)


COMPILERS = {"NormalizeL2-1": normalize_l2}
