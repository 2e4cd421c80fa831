"""How many rows and columns of a product with compressed weights are computed at once: as many as registers hold."""

from __future__ import annotations

from collections.abc import Iterable

from irrun.engines.compiled.code import LANES
from irrun.engines.compiled.compiler import features

FEW = {1: 4, 2: 2, 3: 2, 4: 2}
"""Columns, by how many rows, where each code is made a number for so many rows."""

MANY, MANY_NARROW = {4: 4, 5: 4, 6: 4}, {2: 4, 3: 4}
"""The same where weights are made f32 first, with 32 registers and with 16. With a vector of each row and one of a
column, or the other way around, no register is left of these."""


def lanes() -> int:
    """Of the vectors that sums are in: there are more of them than of any others."""
    return LANES if _wide() else 8


def few_at_once(rows: int) -> tuple[int, int]:
    """Rows, of so many, and columns that a kernel computes at once, where it reads codes anew for each few rows."""
    size = _at_once(rows, [size for size in FEW if size <= rows])
    return size, FEW[size]


def many_at_once(rows: int) -> tuple[int, int]:
    """The same where weights are made f32 first."""
    sizes = MANY if _wide() else MANY_NARROW
    size = _at_once(rows, sizes)
    return size, sizes[size]


def _wide() -> bool:
    return "avx512f" in features()


def _at_once(rows: int, sizes: Iterable[int]) -> int:
    """The size of blocks of rows that computes the fewest twice or for nothing; a large one if it can."""
    return min(sizes, key=lambda size: (-(-rows // size) * size, -size))
