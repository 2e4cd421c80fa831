"""How many rows and columns of a product with compressed weights are computed at once: as many as registers hold."""

from __future__ import annotations

from collections.abc import Iterable

from irrun.engines.compiled.code import LANES
from irrun.engines.compiled.compiler import features
from irrun.engines.compressed import PACKED

FEW, FEW_SHARED = {1: 4, 2: 2, 3: 2, 4: 2}, {1: 2, 2: 2, 3: 2, 4: 2}
"""Columns, by how many rows, where each code is made a number for so many rows; and with 16 registers, of codes that
share bytes: to make numbers of these takes more of them."""

MANY, MANY_NARROW = {4: 4, 5: 4, 6: 4}, {2: 4, 3: 4}
"""The same where weights are made f32 first. With a vector of each row, and one of a column, no register is left."""


PANELS, PANELS_NARROW = {9: 48, 8: 48, 13: 32, 12: 32}, {6: 16, 5: 16}
"""Columns of panels, by how many rows meet them at once: those of several vectors, of which a row has one element."""

UNLIKE = 1.04
"""How much longer it takes with panels that are not the widest, about."""


def lanes() -> int:
    """Of the vectors that sums are in: there are more of them than of any others."""
    return LANES if _wide() else 8


def few_at_once(rows: int, type: str) -> tuple[int, int]:
    """Rows, of so many, and columns that a kernel computes at once, where it reads codes of a type anew for each few
    rows."""
    if _wide():
        size = _at_once(rows, [size for size in FEW if size <= rows])
        return size, FEW[size]
    blocks = -(-rows // max(FEW))  # to make codes numbers takes longer than to compute some rows twice
    size = -(-rows // blocks)
    return size, (FEW_SHARED if type in PACKED else FEW)[size]


def many_at_once(rows: int) -> tuple[int, int]:
    """The same where weights are made f32 first."""
    sizes = MANY if _wide() else MANY_NARROW
    size = _at_once(rows, sizes)
    return size, sizes[size]


def rows_of_panels() -> int:
    """Rows from which on panels pay: to bring weights into their order takes as long as some rows."""
    return 16 if _wide() else 48


def panels_at_once(rows: int, columns: int, threads: int) -> tuple[int, int]:
    """Rows and columns, where weights are made f32 as panels, of which each thread takes as many as it can. There must
    be as many rows as are computed at once."""
    sizes = {size: width for size, width in (PANELS if _wide() else PANELS_NARROW).items() if size <= rows}
    widest = max(sizes.values())

    def cost(size: int) -> float:
        width = sizes[size]
        turns = -(-columns // (width * threads))
        return turns * width * -(-rows // size) * size * (1 if width == widest else UNLIKE)

    size = min(sizes, key=cost)
    return size, sizes[size]


def _wide() -> bool:
    return "avx512f" in features()


def _at_once(rows: int, sizes: Iterable[int]) -> int:
    """The size of blocks of rows that computes the fewest twice or for nothing; a large one if it can."""
    return min(sizes, key=lambda size: (-(-rows // size) * size, -size))
