"""Products of tiles by the processor (Intel AMX): 16 x 32 numbers of bf16 by 32 x 16, added to 16 x 16 of f32.

The other factor lies as 16 rows of 16 pairs: row r has of each column the numbers 2r and 2r + 1.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from llvmlite import ir

from irrun.engines.compiled import bf16
from irrun.engines.compiled.code import BYTE, LANES, LINE, Code
from irrun.engines.compiled.compiler import features

TILE = LANES * LINE
"""Bytes of a tile: 16 rows of 64."""

_NEEDED = {"amx-bf16", "amx-tile"}
_ARCH_PRCTL, _REQ_XCOMP_PERM, _XTILEDATA = 158, 0x1023, 18
_TILES = 8


@cache
def is_there() -> bool:
    """Whether this process may use tiles of bf16; Linux has to be asked for the memory that threads need for them."""
    if sys.platform != "linux" or not bf16.is_made() or not features() >= _NEEDED:
        return False
    asked = [ctypes.c_long(number) for number in (_ARCH_PRCTL, _REQ_XCOMP_PERM, _XTILEDATA)]
    return not ctypes.CDLL(None).syscall(*asked)


def configured(c: Code) -> None:
    """Have the thread use tiles, all of 16 rows of 64 bytes, up to `released`."""
    shapes = [1, *[0] * 15, *[LINE, 0] * _TILES, *[0] * (32 - 2 * _TILES), *[LANES] * _TILES, *[0] * (16 - _TILES)]
    type = ir.ArrayType(BYTE, len(shapes))
    own = ir.GlobalVariable(c.b.module, type, "tiles")
    own.global_constant, own.linkage, own.initializer = True, "internal", ir.Constant(type, shapes)
    c.call("llvm.x86.ldtilecfg", ir.VoidType(), c.b.bitcast(own, BYTE.as_pointer()))


def released(c: Code) -> None:
    c.call("llvm.x86.tilerelease", ir.VoidType())


def cleared(c: Code, tile: int) -> None:
    c.call("llvm.x86.tilezero", ir.VoidType(), ir.Constant(BYTE, tile))


def loaded(c: Code, tile: int, address: Any, row: Any) -> None:
    """Read a tile whose rows lie so many bytes apart, an i64."""
    _moved(c, "tileloadd64", tile, address, row)


def stored(c: Code, tile: int, address: Any, row: Any) -> None:
    _moved(c, "tilestored64", tile, address, row)


def _moved(c: Code, name: str, tile: int, address: Any, row: Any) -> None:
    pointer = c.b.inttoptr(address, BYTE.as_pointer())
    c.call(f"llvm.x86.{name}", ir.VoidType(), ir.Constant(BYTE, tile), pointer, row)


def multiplied(c: Code, sums: int, left: int, right: int) -> None:
    """Add the product of two tiles to a third one. What is no normal number counts as 0."""
    c.call("llvm.x86.tdpbf16ps", ir.VoidType(), *(ir.Constant(BYTE, tile) for tile in (sums, left, right)))
