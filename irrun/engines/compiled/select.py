"""Elements of one tensor or of another, as a third one says."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from irrun.engines.compiled.lines import BLOCK, begun, lines_of
from irrun.engines.compiled.loops import MEMORY_OF_BYTES, Bytes, Elements, looped
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

ASKED = ONE = OTHER = 1
"""Elements from one of a line to the next; 0 where a line has one only."""

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
        asked = begun(place, rows, lines, condition_matrix, condition_row, condition_line)
        own = begun(place, rows, lines, one_matrix, one_row, one_line)
        others = begun(place, rows, lines, other_matrix, other_row, other_line)
        for i in range(first, last):
            taken = one[own + i * ONE]
            left = other[others + i * OTHER]
            result[place * size + i] = taken if condition[asked + i * ASKED] != 0 else left


def select(work: Work, team: Team) -> Compiled | None:
    """Select-1."""
    operands, output = work.required(3), work.outputs[0]
    item = numpy_dtype(output.type).itemsize
    if work.posts or item not in MEMORY_OF_BYTES or output.type == "string" or not broadcasts_by_numpy(work.attrs):
        return None
    found = lines_of(operands, output)
    if found is None:
        return None
    constants = dict(zip(("ASKED", "ONE", "OTHER"), found.along, strict=True))
    nanoseconds = prod(output.shape) * ELEMENT_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        arguments = (*map(data_address, (*inputs, outputs[0])), *found.told)
        return looped(team, choose, arguments, found.items, nanoseconds, Elements=MEMORY_OF_BYTES[item][0], **constants)

    return Compiled(bind)


COMPILERS = {"Select-1": select}
