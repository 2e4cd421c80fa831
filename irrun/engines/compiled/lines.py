"""Lines of tensors that broadcast to one shape, for loops that go through all of them alike."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irrun.engines.axes import broadcast_strides, dense_strides, merged
from irrun.engines.work import Operand
from irrun.records import NamedTuple
from irrun.spec.dtypes import numpy_dtype

BLOCK = 1 << 13
"""Elements of a line that a thread takes at once."""

AXES = 3
"""Along which lines lie."""


class Lines(NamedTuple):
    """How a result in C order, and the operands that are broadcast to it, are gone through line by line.

    A matrix has `rows` rows of `lines` lines of `size` elements each, in `blocks` of up to BLOCK. `told` are size,
    blocks, rows and lines, and for each operand its elements from a matrix, a row and a line to the next; `along` those
    from one of a line to the next, 0 where a line has one only. There are `items` blocks in all.
    """

    told: list[int]
    along: list[int]
    items: int


def begun(place: int, rows: int, lines: int, matrix: int, row: int, line: int) -> int:
    """Where in an operand the line `place` begins; from a matrix, a row and a line to the next it has these steps."""
    return place // lines // rows * matrix + place // lines % rows * row + place % lines * line


def lines_of(operands: Sequence[Operand], output: Operand) -> Lines | None:
    """The lines of a work; None where it has too many axes, or an operand lies otherwise."""
    each = [numpy_dtype(operand.type).itemsize for operand in operands]
    walked = [broadcast_strides(operand, output.shape) for operand in operands]
    item = numpy_dtype(output.type).itemsize
    sizes, steps = merged(output.shape, [*walked, dense_strides(output.shape, item)])
    if not sizes or len(sizes) > AXES + 1 or any(step < 0 for own in steps for step in own):
        return None
    if any(step[-1] not in (0, own) for step, own in zip(steps, each, strict=False)):
        return None
    outer = (1,) * (AXES + 1 - len(sizes)) + sizes[:-1]
    size, blocks = sizes[-1], -(-sizes[-1] // BLOCK)
    told = [size, blocks, *outer[1:]]
    for own, bytes in zip(steps, each, strict=False):
        told += [0] * (AXES + 1 - len(sizes)) + [step // bytes for step in own[:-1]]
    along = [step[-1] // own for step, own in zip(steps, each, strict=False)]
    return Lines(told, along, prod(outer) * blocks)
