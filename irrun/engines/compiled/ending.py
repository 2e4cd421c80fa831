"""The code of what becomes of sums of codes, or of numbers (`stages`), a vector of 16 columns at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.code import (
    BYTE,
    BYTES,
    FLOATS,
    HALF_INTS,
    INT,
    INTS,
    LANES,
    LONG,
    NUMBERS,
    Code,
    ints,
    long,
)
from irrun.engines.compiled.posts import KernelPost, operand_names, operand_start, posted, read_operand
from irrun.engines.memory import ITEM
from irrun.records import NamedTuple, dataclass
from irrun.spec.dtypes import numpy_dtype

AFFINE, LEAST, MOST, ROUNDED, CODES = "Affine", "Least", "Most", "Rounded", "Codes"
"""Names of what is done beside posts. That of codes is followed by their type."""

STAYS = "stays"
"""The attribute of the least number that says whether NaN stays what it is; else it becomes that."""

_TABLES = {AFFINE: ("factor", "shift"), LEAST: ("least",), MOST: ("most",), CODES: ("scale",)}

AXES = ("image", "pixel")
"""Along which operands are told their bytes from one to the next."""


class Ending(NamedTuple):
    """What a kernel is compiled for: what is done, one after the other, and the element type of the result."""

    steps: tuple[KernelPost, ...]
    type: str

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of tables with an f32 for each column."""
        named = enumerate(step.name.partition("-")[0] for step in self.steps)
        return tuple(f"{table}{n}" for n, name in named for table in _TABLES.get(name, ()))

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the arguments: where tables lie, and what there is about the operands of steps."""
        return (*self.tables, *operand_names(self.steps, AXES))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a vector of results is: its image, its pixel in that, and its first column; which of its lanes are
    `inside`, None where all are."""

    image: Any
    pixel: Any
    column: Any
    inside: Any


def loaded(c: Code, ending: Ending, at: dict[str, Any], column: Any) -> dict[str, Any]:
    """Those of tables for 16 columns, for any number of pixels."""
    return {name: c.load(c.at(at[name], column, ITEM), FLOATS) for name in ending.tables}


def ended(c: Code, ending: Ending, at: dict[str, Any], tables: dict[str, Any], value: Any, place: Place) -> Any:
    """What becomes of a vector of sums or numbers, f32: f32 or, as a vector of bytes, codes."""
    b = c.b
    places = dict(zip(AXES, (place.image, place.pixel), strict=True))

    def read(n: int, _: int, along: bool) -> Any:
        return read_operand(c, at, n, places, place.column, place.inside, along=along)

    for n, step in enumerate(ending.steps):
        name, _, type = step.name.partition("-")
        if name == AFFINE:
            value = c.fma(value, tables[f"factor{n}"], tables[f"shift{n}"])
        elif name == LEAST:
            least, compare = tables[f"least{n}"], b.fcmp_unordered if dict(step.attrs)[STAYS] else b.fcmp_ordered
            value = b.select(compare(">", value, least), value, least)
        elif name == MOST:
            most = tables[f"most{n}"]
            value = b.select(b.fcmp_unordered("<", value, most), value, most)
        elif name == ROUNDED:
            value = c.applied("roundeven", value)
        elif name == CODES:
            address = b.add(operand_start(c, at, n, places), place.column)
            codes = c.some(address, BYTES, place.inside)
            whole = b.sext(codes, INTS) if type == "i8" else b.zext(codes, INTS)
            value = c.fma(b.sitofp(whole, FLOATS), tables[f"scale{n}"], value)
        else:
            value = posted(c, [step], value, partial(read, n))
    return value if ending.type == "f32" else _coded(c, ending.type, value)


def _coded(c: Code, type: str, value: Any) -> Any:
    """The nearest codes, as bytes; the least or the largest one of numbers that are beyond them."""
    b, half, limits = c.b, LANES // 2, np.iinfo(numpy_dtype(type))

    def rounded(start: int) -> Any:
        order = ir.Constant(HALF_INTS, list(range(start, start + half)))
        return c.call("llvm.x86.avx.cvt.ps2dq.256", HALF_INTS, b.shuffle_vector(value, value, order))

    whole = b.shuffle_vector(rounded(0), rounded(half), NUMBERS)  # one instruction does it all where vectors are wide
    for name, limit in (("smax", limits.min), ("smin", limits.max)):
        whole = c.call(f"llvm.{name}.v{LANES}i32", INTS, whole, ints(int(limit)))
    return b.trunc(whole, BYTES)


def written(c: Code, type: str, value: Any, address: Any, inside: Any, count: Any) -> None:
    """Store a vector of f32 or codes at any address: the first `count` lanes, which are `inside`, or all for None."""
    b = c.b
    if inside is None:
        c.keep(value, address)
    elif type == "f32":
        c.put(value, address, inside)
    else:
        with b.goto_entry_block():
            room = b.alloca(BYTES)
        b.store(value, room).align = 1
        source = b.ptrtoint(room, LONG)
        words = b.lshr(count, long(2))
        c.times(words, lambda n: c.keep(c.load(c.at(source, n, 4), INT, 1), c.at(address, n, 4)))
        done = b.shl(words, long(2))

        def byte(n: Any) -> None:
            n = b.add(done, n)
            c.keep(c.load(b.add(source, n), BYTE, 1), b.add(address, n))

        c.times(b.and_(count, long(3)), byte)
