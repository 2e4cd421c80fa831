"""Tables that are looked up by codes: one code after the other, or 64 at once in a table of bytes that is in registers
(AVX512-VBMI)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.code import BYTE, Code, Form, long
from irrun.engines.compiled.compiler import features
from irrun.engines.compiled.loops import MEMORY_OF_BYTES, Bytes, Elements, looped, unordered
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import SHARED_SECONDS, Team
from irrun.engines.memory import data_address
from irrun.engines.work import Arrays, Call, Compiled, Work

LOOK_UP_NANOSECONDS, AT_ONCE_NANOSECONDS = 0.6, 0.04
"""What a code takes about."""

AT_ONCE = 64
"""Codes that are looked up in a table of bytes at once."""

CHUNK = 1 << 14
"""Of them a thread takes so many."""

_FORM = Form(("items", "count", "codes", "table", "result"))
_LINE = ir.VectorType(BYTE, AT_ONCE)


def look_up(begin: int, end: int, codes: Bytes, table: Elements, result: Elements) -> None:
    """What a table has for codes."""
    for place in range(begin, end):
        result[place] = table[codes[place]]


def tabulated(work: Work, team: Team) -> Compiled | None:
    """Table-0."""
    codes, table = work.required(2)
    if work.posts or codes.type not in ("u8", "i8") or table.value is None:
        return None
    kind, type = MEMORY_OF_BYTES[table.value.itemsize]
    count = prod(codes.shape)
    at_once = kind == "Bytes" and count >= AT_ONCE and "avx512vbmi" in features()

    def bind(inputs: Arrays, outputs: Sequence[Any], _: Any) -> Call:
        if at_once:
            return _at_once(team, inputs, outputs[0], count)
        arrays = inputs[0].view(np.uint8), inputs[1].view(type), outputs[0].view(type)
        return looped(team, look_up, arrays, count, count * LOOK_UP_NANOSECONDS, Elements=kind)

    return Compiled(bind, wants=unordered(work))


def _at_once(team: Team, inputs: Arrays, output: Any, count: int) -> Call:
    lying = dict(zip(("codes", "table", "result"), map(data_address, (*inputs, output)), strict=True))
    arguments, seconds = _FORM.of(items=-(-count // CHUNK), count=count, **lying), count * AT_ONCE_NANOSECONDS * 1e-9
    held, shared = (inputs, output), seconds > SHARED_SECONDS
    return Kernel(team, _FORM.address("tables", _chunk), arguments, held, shared=shared, seconds=seconds)


def _chunk(c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    quarters = [c.load(b.add(at["table"], long(AT_ONCE * n)), _LINE, 1) for n in range(4)]
    first = b.mul(item, long(CHUNK))
    codes = c.least(long(CHUNK), b.sub(at["count"], first))

    def line(number: Any) -> None:
        # the last ones are looked up with some of those before, also of another thread's, which writes the same
        place = c.least(b.add(first, b.mul(number, long(AT_ONCE))), b.sub(at["count"], long(AT_ONCE)))
        given = c.load(b.add(at["codes"], place), _LINE, 1)
        low, high = (
            c.call("llvm.x86.avx512.vpermi2var.qi.512", _LINE, quarters[n], given, quarters[n + 1]) for n in (0, 2)
        )
        upper = b.icmp_signed("<", given, ir.Constant(_LINE, None))  # codes from 128 on
        c.keep(b.select(upper, high, low), b.add(at["result"], place))

    c.loop(c.blocks(codes, long(AT_ONCE)), line)


COMPILERS = {"Table-0": tabulated}
