"""Sums up to each element along an axis, of neighbouring columns at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import constant_axes
from irrun.engines.compiled.loops import MEMORY, Elements, looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

TYPES = ("f32", "i32", "i64", "i8", "u8")
"""Of elements; sums of bytes have the same bits with a sign and without."""

REAL = True
"""Whether elements are added in f64, else as integers that wrap around."""

EXCLUSIVE = False
"""Whether an element is not part of its own sum."""

COLUMNS = 32
"""Columns whose sums are made at once."""

ELEMENT_NANOSECONDS = 1.0
"""What an element takes about."""


def accumulate(
    begin: int, end: int, data: Elements, result: Elements, length: int, inner: int, first: int, step: int
) -> None:
    """Blocks of columns of [outer, length, inner], from row `first` on, each row `step` behind the one before."""
    if REAL:  # noqa: SIM108 - memory has a name in a statement of its own
        sums = np.empty(COLUMNS, np.float64)
    else:
        sums = np.empty(COLUMNS, np.int64)
    blocks = (inner + COLUMNS - 1) // COLUMNS
    for number in range(begin, end):
        column = number % blocks * COLUMNS
        count = min(COLUMNS, inner - column)
        place = (number // blocks * length + first) * inner + column
        for k in range(count):
            sums[k] = float(data[place + k]) if REAL else data[place + k]
            result[place + k] = 0 if EXCLUSIVE else data[place + k]
        for _ in range(1, length):
            place += step * inner
            for k in range(count):
                before = sums[k]
                total = before + (float(data[place + k]) if REAL else data[place + k])
                given = before if EXCLUSIVE else total
                result[place + k] = np.float32(given) if REAL else given
                sums[k] = total


def accumulate_rows(begin: int, end: int, data: Elements, result: Elements, length: int, first: int, step: int) -> None:
    """As `accumulate`, of rows [outer, length]: what is summed up stays in a register."""
    for number in range(begin, end):
        place = number * length + first
        if REAL:  # noqa: SIM108 - as above
            total = float(data[place])
        else:
            total = data[place]
        result[place] = 0 if EXCLUSIVE else data[place]
        for _ in range(1, length):
            place += step
            before = total
            total = before + (float(data[place]) if REAL else data[place])
            given = before if EXCLUSIVE else total
            result[place] = np.float32(given) if REAL else given


def cum_sum(work: Work, team: Team) -> Compiled | None:
    """CumSum-3 of f32, and of integers of 8, 32 and 64 bits, along a constant axis."""
    (data,), own = work.required(1), work.optional(1)
    if work.posts or not data.shape or data.type not in TYPES or (own is not None and own.value is None):
        return None
    axis = (constant_axes(work) or [0])[0]
    length, inner = data.shape[axis], prod(data.shape[axis + 1 :])
    blocks = prod(data.shape[:axis]) * -(-inner // COLUMNS)
    reverse = bool(work.attrs["reverse"])
    first, step = (length - 1, -1) if reverse else (0, 1)
    constants: dict[str, Hashable] = {"Elements": MEMORY[data.type], "REAL": data.type == "f32"}
    constants["EXCLUSIVE"] = bool(work.attrs["exclusive"])
    nanoseconds = prod(data.shape) * ELEMENT_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        if inner == 1:
            rows = (inputs[0], outputs[0], length, first, step)
            return looped(team, accumulate_rows, rows, blocks, nanoseconds, **constants)
        arguments = (inputs[0], outputs[0], length, inner, first, step)
        return looped(team, accumulate, arguments, blocks, nanoseconds, **constants)

    return Compiled(bind, wants=unordered(work, 1))


COMPILERS = {"CumSum-3": cum_sum}
