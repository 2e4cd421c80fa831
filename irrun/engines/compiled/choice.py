"""Elements of one tensor or of another, as a third one says."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

from irrun.engines.axes import broadcast_strides, dense_strides, merged
from irrun.engines.compiled.elements import MEMORY
from irrun.engines.compiled.loops import Bytes, looped
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

Elements: TypeAlias = Array
"""Bytes, Ints or Longs: whatever has as many bytes."""

ASKED = ONE = OTHER = 1
"""Elements from one of a line to the next; 0 where a line has one only."""

BLOCK = 1 << 13
"""Elements of a line that a thread takes at once."""

AXES = 3
"""Along which lines lie."""

ELEMENT_NANOSECONDS = 0.2
"""What an element takes about."""


def choose(
    begin: int,
    end: int,
    condition: Bytes,
    one: Elements,
    other: Elements,
    result: Elements,
    size: int,
    blocks: int,
    rows: int,
    lines: int,
    condition_matrix: int,
    condition_row: int,
    condition_line: int,
    one_matrix: int,
    one_row: int,
    one_line: int,
    other_matrix: int,
    other_row: int,
    other_line: int,
) -> None:
    """Lines of `size` elements, of which a matrix has `rows` rows of `lines` each, in `blocks` of up to BLOCK."""
    for item in range(begin, end):
        place = item // blocks
        first = item % blocks * BLOCK
        last = min(first + BLOCK, size)
        line = place % lines
        row = place // lines % rows
        matrix = place // lines // rows
        asked = matrix * condition_matrix + row * condition_row + line * condition_line
        own = matrix * one_matrix + row * one_row + line * one_line
        others = matrix * other_matrix + row * other_row + line * other_line
        for i in range(first, last):
            taken = one[own + i * ONE]
            left = other[others + i * OTHER]
            result[place * size + i] = taken if condition[asked + i * ASKED] != 0 else left


def select(work: Work, team: Team) -> Compiled | None:
    """Select-1."""
    operands, output = work.required(3), work.outputs[0]
    item = numpy_dtype(output.type).itemsize
    if work.posts or item not in MEMORY or output.type == "string" or work.attrs["auto_broadcast"] == "pdpd":
        return None
    walked = [broadcast_strides(operand, output.shape) for operand in operands]
    sizes, steps = merged(output.shape, [*walked, dense_strides(output.shape, item)])
    if not sizes or len(sizes) > AXES + 1 or any(step < 0 for own in steps for step in own):
        return None
    items = 1, item, item
    along = [step[-1] // each for step, each in zip(steps, items, strict=False)]
    if any(step[-1] not in (0, each) for step, each in zip(steps, items, strict=False)):
        return None
    outer = (1,) * (AXES + 1 - len(sizes)) + sizes[:-1]
    size, blocks = sizes[-1], -(-sizes[-1] // BLOCK)
    told = [size, blocks, *outer[1:]]
    for own, each in zip(steps, items, strict=False):
        told += [0] * (AXES + 1 - len(sizes)) + [step // each for step in own[:-1]]
    constants = dict(zip(("ASKED", "ONE", "OTHER"), along, strict=True))
    nanoseconds = prod(sizes) * ELEMENT_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        lying = map(data_address, (*inputs, outputs[0]))
        return looped(
            team, choose, (*lying, *told), prod(outer) * blocks, nanoseconds, Elements=MEMORY[item][0], **constants
        )

    return Compiled(bind)


COMPILERS = {"Select-1": select}
