"""Copies of strips: short rows that are put side by side, as where images with their channels last are joined."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.axes import channels_last
from irrun.engines.compiled.code import BYTE, Code, Form, long
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.rows import Strips, strips_of
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.spec.op import Array

CHUNK = 1 << 14
"""Bytes that a thread takes at once, at least."""

SHARED = 1 << 17
"""Bytes from which on threads share them."""

BYTE_SECONDS = 0.1e-9
"""What a byte takes about."""

_FORM = Form(("items", "chunk", "rows", "data", "target", "data_step", "target_step"))


def concatenate(work: Work, team: Team) -> Compiled | None:
    """Concat-1 of images along the channels, which come last in all of them and in the result."""
    strips, (output,) = strips_of(work), work.outputs
    if strips is None:
        return None
    bounds = np.cumsum([operand.shape[1] for operand in work.required(len(work.inputs))[:-1]])

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        parts = np.split(outputs[0], bounds, 1)
        return chain([_kernel(team, *own) for own in zip(strips, inputs, parts, strict=True)])

    return Compiled(bind, gives={0: channels_last(output)})


def _kernel(team: Team, strips: Strips, source: Array, target: Array) -> Kernel:
    kind, nbytes = ("strips", strips.size), strips.rows * strips.size
    address = _FORM.address(kind, partial(_chunk, strips.size))
    chunk = max(CHUNK // strips.size, 1)
    told = {"items": -(-strips.rows // chunk), "chunk": chunk, "rows": strips.rows}
    told |= {"data": data_address(source), "target": data_address(target)}
    arguments = _FORM.of(**told, data_step=strips.step, target_step=strips.apart)
    shared, seconds = nbytes >= SHARED, nbytes * BYTE_SECONDS
    return Kernel(team, address, arguments, (source, target), shared=shared, seconds=seconds)


def _chunk(size: int, c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    first = b.mul(item, at["chunk"])

    def row(number: Any) -> None:
        place = b.add(first, number)
        source, target = (b.add(at[own], b.mul(place, at[f"{own}_step"])) for own in ("data", "target"))
        done = 0
        while done < size:
            width = min(64, 1 << ((size - done).bit_length() - 1))
            part = c.load(b.add(source, long(done)), ir.VectorType(BYTE, width), 1)
            c.keep(part, b.add(target, long(done)))
            done += width

    c.loop(c.least(at["chunk"], b.sub(at["rows"], first)), row)
