"""Remainders of f32 and integers, and quotients of integers, by quotients of floats that hold all of their digits.

A quotient that is rounded to the nearest float is not rounded past an integer that it does not reach, where the float
holds dividend and divisor: floats that have the digits are rounded down, or towards 0, as the real one would be.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.lines import BLOCK, begun, lines_of
from irrun.engines.compiled.loops import MEMORY, Elements, Longs, judged, looped
from irrun.engines.compiled.team import Team
from irrun.engines.grid import LARGEST
from irrun.engines.memory import data_address
from irrun.engines.vectorized import functions
from irrun.engines.work import Arrays, Call, Compiled, Judging, Work, either
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

TYPES = ("f32", "u8", "i32", "i64")
"""Of elements."""

REAL = True
"""Whether elements are f32, else integers."""

DOWN = False
"""Whether quotients are rounded down, else towards 0."""

REMAINDER = True
"""Whether remainders are made, else quotients."""

LEFT = RIGHT = 1
"""Elements from one of a line to the next; 0 where a line has one only."""

EXACT: float = functions.EXACT
"""Quotients of f32 below this are whole in f64 where they are so exactly only, and their products are exact."""

DIGITS: float = 2.0**53
"""Integers below this are f64."""

ELEMENT_NANOSECONDS = 0.8
"""What an element takes about."""

PLAIN: dict[str, Callable[..., object]] = {
    "Mod-1": functions.fmod,
    "FloorMod-1": functions.mod,
    "Divide-1": np.floor_divide,
}
"""What computes the ops of any numbers."""


def divide(
    begin: int,
    end: int,
    left: Elements,
    right: Elements,
    result: Elements,
    outside: Longs,
    size: int,
    blocks: int,
    rows: int,
    lines: int,
    left_matrix: int,
    left_row: int,
    left_line: int,
    right_matrix: int,
    right_row: int,
    right_line: int,
) -> None:
    """Lines as `lines_of` tells them; `outside` becomes 1 where numbers are not as this is made for."""
    wrong = 0
    for item in range(begin, end):
        place = item // blocks
        first = item % blocks * BLOCK
        last = min(first + BLOCK, size)
        own = begun(place, rows, lines, left_matrix, left_row, left_line)
        other = begun(place, rows, lines, right_matrix, right_row, right_line)
        for i in range(first, last):
            a, b = float(left[own + i * LEFT]), float(right[other + i * RIGHT])
            quotient = a / b
            whole = np.floor(quotient) if DOWN else np.trunc(quotient)
            rest = a - whole * b
            if REAL:
                fits = (abs(quotient) < EXACT) & (abs(b) <= LARGEST)
                result[place * size + i] = np.float32(np.copysign(rest, b if DOWN else a))
            else:
                fits = (b != 0) & (abs(a) < DIGITS) & (abs(b) < DIGITS) & (abs(whole * b) < DIGITS)
                result[place * size + i] = int(rest if REMAINDER else whole)
            wrong = wrong | (1 - fits)
    if wrong != 0:
        outside[0] = 1


def compile(work: Work, team: Team) -> Compiled | None:
    """Mod-1 and FloorMod-1, and Divide-1 of integers that is rounded down."""
    operands, output, quotients = work.required(2), work.outputs[0], work.name == "Divide-1"
    if work.posts or output.type not in TYPES or not broadcasts_by_numpy(work.attrs):
        return None
    found = None if quotients and not work.attrs["m_pythondiv"] else lines_of(operands, output)
    if found is None:
        return None
    kind: dict[str, Hashable] = {"Elements": MEMORY[output.type], "REAL": output.type == "f32"}
    kind |= {"DOWN": work.name != "Mod-1", "REMAINDER": not quotients, "LEFT": found.along[0], "RIGHT": found.along[1]}
    nanoseconds = prod(output.shape) * ELEMENT_NANOSECONDS

    def judging(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Judging:
        outside = np.zeros(1, np.int64)
        arguments = (*map(data_address, (*inputs, outputs[0])), outside, *found.told)
        return judged(looped(team, divide, arguments, found.items, nanoseconds, **kind), outside)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        return either(judging(inputs, outputs, scratch), partial(PLAIN[work.name], *inputs, outputs[0]))

    return Compiled(bind, judging=judging)


COMPILERS = {"Mod-1": compile, "FloorMod-1": compile}
