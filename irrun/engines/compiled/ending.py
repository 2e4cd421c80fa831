"""The code of what becomes of sums of codes (`stages`), a vector of 16 columns at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import BYTE, BYTES, FLOATS, HALF_INTS, INT, INTS, LANES, SHORTS, Code
from irrun.engines.compiled.posts import KernelPost, operand_names, operand_start, posted, read_operand
from irrun.engines.memory import ITEM
from irrun.records import NamedTuple, dataclass

AFFINE, LEAST, MOST, ROUNDED, CODES = "Affine", "Least", "Most", "Rounded", "Codes"
"""Names of what is done beside posts. That of codes is followed by their type."""

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


def ended(c: Code, ending: Ending, at: dict[str, Any], tables: dict[str, Any], sums: Any, place: Place) -> Any:
    """What becomes of a vector of sums, f32: f32 or, as a vector of bytes, codes."""
    b, value = c.b, sums
    places = dict(zip(AXES, (place.image, place.pixel), strict=True))

    def read(n: int, _: int, along: bool) -> Any:
        return read_operand(c, at, n, places, place.column, place.inside, along=along)

    for n, step in enumerate(ending.steps):
        name, _, type = step.name.partition("-")
        if name == AFFINE:
            value = c.fma(value, tables[f"factor{n}"], tables[f"shift{n}"])
        elif name == LEAST:
            least = tables[f"least{n}"]
            value = b.select(b.fcmp_ordered(">", value, least), value, least)  # which NaN is, too
        elif name == MOST:
            most = tables[f"most{n}"]
            value = b.select(b.fcmp_ordered("<", value, most), value, most)
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
    b = c.b

    def part(vector: Any, start: int, count: int) -> Any:
        order = ir.Constant(ir.VectorType(INT, count), list(range(start, start + count)))
        return b.shuffle_vector(vector, vector, order)

    half = LANES // 2
    whole = [c.call("llvm.x86.avx.cvt.ps2dq.256", HALF_INTS, part(value, start, half)) for start in (0, half)]
    shorts = c.call("llvm.x86.avx2.packssdw", SHORTS, *whole)  # in quarters: 0 and 2, 1 and 3
    pack = "llvm.x86.sse2.packuswb.128" if type == "u8" else "llvm.x86.sse2.packsswb.128"
    made = c.call(pack, ir.VectorType(BYTE, LANES), part(shorts, 0, half), part(shorts, half, half))
    quarter = LANES // 4
    order = [quarter * n + lane for n in (0, 2, 1, 3) for lane in range(quarter)]
    return b.shuffle_vector(made, made, ir.Constant(INTS, order))
