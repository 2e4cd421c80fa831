"""The precision of long sums: in which types they build up, to be rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import Array


def widened(array: Array) -> Any:
    """The array itself, or an f32 copy where its type is f16 or bf16."""
    half = array.itemsize == 2 and array.dtype.kind not in "iu"
    return array.astype(np.float32) if half else array


def accumulator(dtype: np.dtype[Any], reduction: str) -> np.dtype[Any]:
    """Where sums build up: f32 for the half types, 64 bits for integer means, whose sums must not wrap."""
    if dtype.kind in "iu":
        return np.dtype(f"{dtype.kind}8") if reduction == "mean" else dtype
    if reduction in ("min", "max") or dtype.kind == "b":
        return dtype
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype
