"""Numbers of bf16 in kernels of f32: they are read as these, and made of them by the processor (AVX512-BF16)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import FLOAT, FLOATS, INT, INTS, LANES, NUMBERS, SHORT, SHORTS, Code, floats, ints
from irrun.engines.compiled.compiler import features
from irrun.engines.memory import ITEM

PAIRS = ir.VectorType(SHORT, 2 * LANES)
"""The bits of 32 numbers, which fill a line."""


class _BFloat(ir.Type):  # type: ignore[misc]  # llvmlite has no types
    def _to_string(self) -> str:
        return "bfloat"


_NARROW = ir.VectorType(_BFloat(), 2 * LANES)
"""The same as numbers."""


def is_made() -> bool:
    """Whether the processor makes them."""
    return features() >= {"avx512bf16", "avx512bw"}


def item_of(type: str | None) -> int:
    """Bytes of an element of f32, bf16 or boolean."""
    return {"f32": ITEM, "bf16": ITEM // 2}.get(type or "", 1)


def number_of(c: Code, type: str, address: Any) -> Any:
    """A number of f32 or bf16 anywhere in memory, as f32."""
    if type == "f32":
        return c.load(address, FLOAT, 1)
    return c.b.bitcast(c.b.shl(c.b.zext(c.load(address, SHORT, 1), INT), ir.Constant(INT, 16)), FLOAT)


def vector_of(c: Code, type: str, address: Any, inside: Any) -> Any:
    """The lanes of a vector of these that are `inside`, all for None, as f32."""
    if type == "f32":
        return c.some(address, FLOATS, inside, 1)
    return widened(c, c.some(address, SHORTS, inside, 1))


def widened(c: Code, bits: Any) -> Any:
    """A vector of f32 of the bits of 16 numbers."""
    return c.b.bitcast(c.b.shl(c.b.zext(bits, INTS), ints(16)), FLOATS)


def narrowed(c: Code, low: Any, high: Any) -> Any:
    """The bits of two vectors of f32, one behind the other, rounded, to even ones where they are halfway."""
    made = c.call("llvm.x86.avx512bf16.cvtne2ps2bf16.512", _NARROW, high, low)
    return c.b.bitcast(made, PAIRS)


def added(c: Code, sums: Any, one: Any, other: Any) -> Any:
    """A vector of f32 with the products of two pairs of numbers added to each lane, of which vectors of i32 have the
    bits. What is no normal number counts as 0."""
    pairs = (c.b.bitcast(own, _NARROW) for own in (one, other))
    return c.call("llvm.x86.avx512bf16.dpbf16ps.512", FLOATS, sums, *pairs)


def put(c: Code, type: str, value: Any, address: Any, inside: Any) -> None:
    """Store the lanes of a vector of f32 that are `inside`, all for None, as numbers of f32 or bf16."""
    if type == "f32":
        c.put(value, address, inside)
        return
    line = narrowed(c, value, floats(0.0))
    c.put(c.b.shuffle_vector(line, line, NUMBERS), address, inside, 2)
