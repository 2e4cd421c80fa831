"""Codes of weights made numbers: what a kernel does with a step of them, after it has read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.axes import Sizes
from irrun.engines.compiled.bf16 import widened
from irrun.engines.compiled.code import BYTE, BYTES, FLOAT, FLOATS, INT, INTS, LANES, SHORTS, Code, floats, ints, long
from irrun.engines.compiled.compiler import features
from irrun.engines.compressed import PACKED, numbers_of
from irrun.engines.placement import is_x86

STEP = 2 * LANES
"""Codes of a step, which follow one another."""

_PLANE, _LOOKUPS = (ir.VectorType(type, 32) for type in (BYTE, INT))
"""Of a register of 32 bytes: these, and where they come from."""

_HALVES = ir.VectorType(ir.HalfType(), LANES)


def bytes_of_step(type: str) -> int:
    """The bytes of the codes of a step."""
    return 16 if type in PACKED else 64 if type in ("f16", "bf16") else 32


def order_of(type: str) -> tuple[Sizes, Sizes]:
    """In which order the numbers of a step come: sizes of axes, and how many codes lie between those along each."""
    if type not in PACKED:
        return (STEP,), (1,)
    return ((4, 2, 4), (8, 1, 2)) if _by_bytes(type) else ((2, LANES), (1, 2))


def natural_order(type: str) -> Sizes:
    """Where the numbers of a step lie, one code after the other, in the order that they come in."""
    sizes, between = order_of(type)
    codes = sum(step * own for step, own in zip(between, np.indices(sizes), strict=True))
    return tuple(np.argsort(np.ravel(codes)).tolist())


def _by_bytes(type: str) -> bool:
    """Whether numbers are looked up byte by byte, in a table of 16 bytes for each byte that is not 0 in all."""
    return type in ("nf4", "f4e2m1") and "avx2" in features() and "avx512f" not in features()


def is_possible(type: str) -> bool:
    """Whether LLVM converts these codes without calling a library for each."""
    return type not in ("f16", "f8e4m3", "f8e5m2") or not is_x86() or "f16c" in features()


class Decoder:
    """The part of the code of a kernel that makes codes of a type numbers; those of 16 codes lie at `numbers`."""

    def __init__(self, code: Code, type: str, numbers: Any) -> None:
        self._c, self._type = code, type
        self._numbers = code.load(numbers, FLOATS) if type in PACKED else None

    def decoded(self, address: Any, shift: Any) -> list[Any]:
        """The numbers of the codes of a step, less the zero point, as two vectors, in the order of `order_of`."""
        c, b, type = self._c, self._c.b, self._type
        if type in PACKED:
            if _by_bytes(type):
                return self._put_together(c.load(address, BYTES, 1), shift)
            codes = b.zext(c.load(address, BYTES, 1), INTS)
            return [self._looked_up(codes, shift), self._looked_up(b.lshr(codes, ints(4)), shift)]
        size = bytes_of_step(type) // 2
        made = [self._converted(b.add(address, long(start))) for start in (0, size)]
        return made if shift is None else [b.fsub(values, shift) for values in made]

    def in_order(self, halves: list[Any]) -> list[Any]:
        """What `decoded` gives, in the order of the codes."""
        places = natural_order(self._type)
        if places == tuple(range(STEP)):
            return halves
        return [
            self._c.b.shuffle_vector(*halves, ir.Constant(INTS, list(places[start : start + LANES])))
            for start in (0, LANES)
        ]

    def _put_together(self, codes: Any, shift: Any) -> list[Any]:
        """The numbers of a step of codes, put together of bytes: a lower half of a register has those of even codes."""
        c, b = self._c, self._c.b
        twice = b.shuffle_vector(codes, codes, ir.Constant(_LOOKUPS, [*range(LANES)] * 2))
        words = b.bitcast(twice, ir.VectorType(INT, 8))
        apart = b.bitcast(b.lshr(words, ir.Constant(words.type, [0] * 4 + [4] * 4)), _PLANE)
        places = b.and_(apart, ir.Constant(_PLANE, [15] * 32))
        tables = numbers_of(self._type).view(np.uint8).reshape(16, 4).T.tolist()
        planes = [
            c.call("llvm.x86.avx2.pshuf.b", _PLANE, ir.Constant(_PLANE, table * 2), places)
            if any(table)
            else ir.Constant(_PLANE, None)
            for table in tables
        ]
        low, high = (_interleaved(b, planes[n], planes[n + 1], 1) for n in (0, 2))
        quarters = [part for pair in zip(low, high, strict=True) for part in _interleaved(b, pair[0], pair[1], 2)]
        values = [b.bitcast(part, ir.VectorType(FLOAT, 8)) for part in quarters]
        made = [b.shuffle_vector(*values[n : n + 2], ir.Constant(INTS, [*range(LANES)])) for n in (0, 2)]
        return made if shift is None else [b.fsub(half, shift) for half in made]

    def _looked_up(self, codes: Any, shift: Any) -> Any:
        """The numbers of codes in the lower four bits."""
        c, b, type = self._c, self._c.b, self._type
        if "avx512f" in features():
            table = self._numbers if shift is None else b.fsub(self._numbers, shift)
            return c.call("llvm.x86.avx512.permvar.sf.512", FLOATS, table, codes)
        codes = b.and_(codes, ints(15))
        if type in ("u4", "i4"):
            values = b.sitofp(codes if type == "u4" else b.sub(b.xor(codes, ints(8)), ints(8)), FLOATS)
        else:  # one of two, by a bit after the other
            options = [c.splat(b.extract_element(self._numbers, ir.Constant(INT, n))) for n in range(16)]
            for bit in (1, 2, 4, 8):
                chosen = b.icmp_unsigned("!=", b.and_(codes, ints(bit)), ints(0))
                options = [b.select(chosen, odd, even) for even, odd in zip(options[::2], options[1::2], strict=True)]
            (values,) = options
        return values if shift is None else b.fsub(values, shift)

    def widened(self, codes: Any) -> Any:
        """The numbers of 16 codes of 16 bits."""
        if self._type == "bf16":
            return widened(self._c, codes)
        return self._c.b.fpext(self._c.b.bitcast(codes, _HALVES), FLOATS)

    def _converted(self, address: Any) -> Any:
        """16 numbers of codes of whole bytes."""
        c, b, type = self._c, self._c.b, self._type
        if bytes_of_step(type) == STEP * 2:
            return self.widened(c.load(address, SHORTS, 1))
        codes = c.load(address, BYTES, 1)
        if type == "i8":
            return b.sitofp(b.sext(codes, INTS), FLOATS)
        if type == "u8":
            return b.sitofp(b.zext(codes, INTS), FLOATS)
        bits = b.zext(codes, SHORTS)
        if type == "f8e5m2":
            return b.fpext(b.bitcast(b.shl(bits, _shorts(8)), _HALVES), FLOATS)
        size = b.and_(bits, _shorts(0x7F))
        half = b.or_(b.shl(b.and_(bits, _shorts(0x80)), _shorts(8)), b.shl(size, _shorts(7)))
        values = b.fmul(b.fpext(b.bitcast(half, _HALVES), FLOATS), floats(256.0))
        nan = b.icmp_unsigned("==", size, _shorts(0x7F))
        return b.select(nan, floats(float("nan")), values)


def _interleaved(b: Any, one: Any, other: Any, size: int) -> list[Any]:
    """Items of so many bytes of each in turn, of the first and the second half of each half of a register."""
    made = []
    for start in (0, 8):
        order = []
        for half in (0, 16):
            for item in range(start, start + 8, size):
                order += [half + item + n for n in range(size)] + [32 + half + item + n for n in range(size)]
        made.append(b.shuffle_vector(one, other, ir.Constant(_LOOKUPS, order)))
    return made


def _shorts(value: int) -> ir.Constant:
    return ir.Constant(SHORTS, [value] * LANES)
