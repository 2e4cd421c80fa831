"""f16 and small integers made f32, and f32 made f16, by the processor's own instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from llvmlite import ir

from irrun.engines.axes import given_alike, order_of, ordered_strides
from irrun.engines.compiled.code import BYTE, FLOAT, LANES, SHORT, Code, Form, long
from irrun.engines.compiled.compiler import features
from irrun.engines.compiled.engine import CONVERSIONS
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype

TYPES = {"f16": ir.HalfType(), "f32": FLOAT, "u8": BYTE, "i8": BYTE, "u16": SHORT, "i16": SHORT}

CHUNK = 1 << 13
"""Elements that a thread takes at once."""

SHARED = 1 << 16
"""Elements from which on threads share them."""

ELEMENT_NANOSECONDS = 0.2
"""What an element takes about."""

_FORM = Form(("items", "count", "data", "target"))


@dataclass(frozen=True, slots=True)
class ConversionKind:
    """From which type into which one."""

    source: str
    target: str


def convert(work: Work, team: Team) -> Compiled | None:
    """Convert-1 from one of these types into another one, of data without gaps; the result lies as the data do."""
    (data,), output = work.required(1), work.outputs[0]
    if work.posts or (data.type, output.type) not in CONVERSIONS or (order := order_of(data)) is None:
        return None
    if "f16" in (data.type, output.type) and "f16c" not in features():  # LLVM calls a library that is not there
        return None
    kind, count = ConversionKind(data.type, output.type), prod(output.shape)
    item = numpy_dtype(output.type).itemsize

    def bind(inputs: Arrays, outputs: Sequence[Any], _: Any) -> Call:
        address = _FORM.address(kind, partial(_chunk, kind))
        lying = {"data": data_address(inputs[0]), "target": data_address(outputs[0])}
        arguments = _FORM.of(items=-(-count // CHUNK), count=count, **lying)
        seconds = count * ELEMENT_NANOSECONDS * 1e-9
        return Kernel(team, address, arguments, (inputs, outputs), shared=count >= SHARED, seconds=seconds)

    moved = tuple(output.shape[axis] for axis in order)
    result = replace(output, strides=ordered_strides(order, moved, item))
    return Compiled(bind, gives=given_alike(result, count * item))


def _chunk(kind: ConversionKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    convert = {"f16": b.fpext, "f32": b.fptrunc, "u": b.uitofp, "i": b.sitofp}
    made = convert.get(kind.source) or convert[kind.source[0]]
    source, target = TYPES[kind.source], TYPES[kind.target]
    sizes = tuple(numpy_dtype(type).itemsize for type in (kind.source, kind.target))
    first = b.mul(item, long(CHUNK))
    count = c.least(long(CHUNK), b.sub(at["count"], first))
    data, result = (c.at(at[name], first, size) for name, size in zip(("data", "target"), sizes, strict=True))

    def several(lanes: int, number: Any) -> None:
        own, wanted = (ir.VectorType(type, lanes) if lanes > 1 else type for type in (source, target))
        value = made(c.load(c.at(data, number, lanes * sizes[0]), own, sizes[0]), wanted)
        b.store(value, b.inttoptr(c.at(result, number, lanes * sizes[1]), wanted.as_pointer())).align = sizes[1]

    whole = b.udiv(count, long(LANES))
    c.times(whole, partial(several, LANES))
    before = b.mul(whole, long(LANES))
    c.times(b.sub(count, before), lambda number: several(1, b.add(before, number)))


COMPILERS = {"Convert-1": convert}
