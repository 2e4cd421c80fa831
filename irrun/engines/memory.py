"""Memory that begins where processors read it best."""

from __future__ import annotations

import numpy as np

from irrun.spec.op import Array

ALIGNMENT = 64
"""Bytes of a cache line, and of the widest vectors."""

ITEM = 4
"""Bytes of an f32."""


def aligned(size: int) -> int:
    """`size` bytes in whole cache lines, for more to lie behind them."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def allocate(size: int) -> Array:
    """`size` bytes that begin at a cache line; the system gives them when they are first written."""
    block = np.empty(size + ALIGNMENT, np.uint8)
    start = -block.__array_interface__["data"][0] % ALIGNMENT
    return block[start : start + size]
