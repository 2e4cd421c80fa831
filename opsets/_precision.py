"""The precision of long sums: in which types they build up, to be rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.spec import Array, Sizes

FEW = 256
"""Elements that f32 adds one after the other without losing digits that anybody would miss."""


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


def total(array: Any, axes: Sequence[int], *, keepdims: bool = False) -> Any:
    """The sum over axes. What numpy adds one after the other builds up in f64, where that is f32 and much.

    Along the last axes of what lies so it adds in pairs, which is as exact and several times as quick.
    """
    if isinstance(array, Sizes):
        return array.sum(axes, keepdims)
    if array.dtype == np.float32:
        paired = array.ndim
        while paired - 1 in axes:
            paired -= 1
        alone = prod(array.shape[axis] for axis in axes if axis < paired)
        if not (array.flags.c_contiguous and array.flags.aligned):
            alone = prod(array.shape[axis] for axis in axes)
        if alone > FEW:
            return np.sum(array, axis=tuple(axes), keepdims=keepdims, dtype=np.float64).astype(np.float32)
    return np.sum(array, axis=tuple(axes), keepdims=keepdims)


def total_of_squares(array: Any, axes: Sequence[int]) -> Any:
    """The sum of the squares over axes, which stay as dimensions of 1; in one pass, without the squares in memory."""
    every = list(range(array.ndim))
    kept = [axis for axis in every if axis not in axes]
    few = prod(array.shape[axis] for axis in axes) <= FEW
    wide = np.float64 if array.dtype == np.float32 and not few else array.dtype
    return np.expand_dims(np.einsum(array, every, array, every, kept, dtype=wide), tuple(axes)).astype(array.dtype)
