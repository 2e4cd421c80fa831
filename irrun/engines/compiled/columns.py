"""Gather of few columns of matrices of few: pixels whose colours come in another order, coordinates out of a box.

Rows go through registers, 16 at a time, in which elements are put where they belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import FLOATS, INTS, LANES, LINE, Code, Form, long
from irrun.engines.compiled.loops import unordered
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, data_address
from irrun.engines.rows import columns_of
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.records import dataclass

CHUNK = 1 << 9
"""Blocks of 16 rows that a thread takes at once."""

SHARED = 1 << 15
"""Elements from which on threads share them."""

ELEMENT_SECONDS = 0.2e-9
"""What an element takes about."""

_FORM = Form(("items", "chunk", "blocks", "rows", "data", "target"))


@dataclass(frozen=True, slots=True)
class ColumnsKind:
    """What a kernel is compiled for: how many columns there are, and which are taken."""

    width: int
    columns: tuple[int, ...]


def gather(work: Work, team: Team) -> Compiled | None:
    """Gather-1, -7 and -8 along the last axis, at a few constant places."""
    columns = columns_of(work)
    if columns is None:
        return None
    (data,), rows = work.required(1), prod(work.outputs[0].shape) // len(columns)
    if rows < LANES:
        return None
    kind = ColumnsKind(data.shape[-1], columns)
    blocks, elements = -(-rows // LANES), rows * max(len(columns), kind.width)
    told = {"items": -(-blocks // CHUNK), "chunk": CHUNK, "blocks": blocks, "rows": rows}

    def bind(inputs: Arrays, outputs: Sequence[Any], _: Any) -> Call:
        address = _FORM.address(kind, partial(_chunk, kind))
        arguments = _FORM.of(**told, data=data_address(inputs[0]), target=data_address(outputs[0]))
        seconds = elements * ELEMENT_SECONDS
        return Kernel(team, address, arguments, (inputs, outputs), shared=elements >= SHARED, seconds=seconds)

    return Compiled(bind, wants=unordered(work, 1))


def _chunk(kind: ColumnsKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    first = b.mul(item, at["chunk"])

    def block(number: Any) -> None:
        # the last block has rows of the one before
        row = c.least(b.mul(b.add(first, number), long(LANES)), b.sub(at["rows"], long(LANES)))
        source = c.at(at["data"], row, kind.width * ITEM)
        target = c.at(at["target"], row, len(kind.columns) * ITEM)
        read = [c.load(b.add(source, long(n * LINE)), FLOATS) for n in range(kind.width)]
        for n in range(len(kind.columns)):
            c.store(_taken(c, kind, read, n), b.add(target, long(n * LINE)))

    c.loop(c.least(at["chunk"], b.sub(at["blocks"], first)), block)


def _taken(c: Code, kind: ColumnsKind, read: Sequence[Any], number: int) -> Any:
    """One of the vectors of the result, of those that were read."""
    made: Any = None
    places = []
    for lane in range(number * LANES, (number + 1) * LANES):
        row, column = divmod(lane, len(kind.columns))
        places.append(divmod(row * kind.width + kind.columns[column], LANES))
    for vector in dict.fromkeys(own for own, _ in places):
        order = [LANES + place if own == vector else lane for lane, (own, place) in enumerate(places)]
        made = c.b.shuffle_vector(read[vector] if made is None else made, read[vector], ir.Constant(INTS, order))
    return made


COMPILERS = dict.fromkeys(("Gather-1", "Gather-7", "Gather-8"), gather)
