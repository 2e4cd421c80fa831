"""The precision of long sums: 16-bit floats are summed in f32 and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import Array


def widened(array: Array) -> Any:
    """The array itself, or an f32 copy where its type is f16 or bf16."""
    half = array.itemsize == 2 and array.dtype.kind not in "iu"
    return array.astype(np.float32) if half else array
