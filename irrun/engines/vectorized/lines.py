"""Lines of a tensor, along axes that follow one another: views of them, blocks of them, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import broadcast_strides, reshaped_strides
from irrun.engines.extents import view
from irrun.engines.vectorized.threads import blocks
from irrun.engines.work import Call, Operand, chain
from irrun.spec.op import Array

LONG = 4096
"""More elements than that are summed in parts: f32 would lose digits."""


Cut = tuple[slice, slice, slice]


@dataclass(frozen=True, slots=True)
class Lines:
    """The axes that lines run along as one, and those before and behind them: `[outer, line, inner]`."""

    shape: tuple[int, int, int]
    strides: tuple[int, ...] | None
    """Of the input in that shape; None where it has no such view, or a slow one, and is copied first."""


def lines(operand: Operand, axes: Sequence[int]) -> Lines | None:
    """Lines along `axes`, which must follow one another but for axes of size 1."""
    sizes = operand.shape
    real = [axis for axis in range(len(sizes)) if sizes[axis] != 1]
    along = [axis for axis in real if axis in axes]
    if not along:
        return None
    first, last = along[0], along[-1]
    if any(first < axis < last and axis not in axes for axis in real):
        return None
    shape = prod(sizes[:first]), prod(sizes[first : last + 1]), prod(sizes[last + 1 :])
    strides = reshaped_strides(sizes, broadcast_strides(operand, sizes), shape)
    dense = strides is not None and strides[2 if shape[2] > 1 else 1] == 4
    return Lines(shape, strides if dense else None)


def line_cuts(shape: tuple[int, int, int], most: int) -> list[Cut]:
    """Slices that cut `[outer, line, inner]` into blocks of whole lines."""
    outer, line, inner = shape
    return [(rows, slice(None), columns) for rows, columns in blocks((outer, inner), max(most // line, 1))]


def squeezed(seen: Array) -> Array:
    """`[outer, line, inner]`, or `[outer, line]` where that is all."""
    return seen[:, :, 0] if seen.shape[2] == 1 else seen


def summation(values: Array, sums: Array) -> Call:
    """Adds up the lines along axis 1; those of rows by einsum, several times as quick as sum, in parts if long."""
    if values.ndim > 2:
        return partial(np.add.reduce, values, axis=1, keepdims=True, out=sums)
    parts = _parts(values)
    if parts is None:
        return partial(np.add.reduce, values, axis=1, keepdims=True, out=sums)
    if parts.shape[1] == 1:
        return partial(np.einsum, "ij->i", values, out=sums[:, 0])
    between = np.empty(parts.shape[:2], np.float32)
    return chain(
        [partial(np.einsum, "ijk->ij", parts, out=between), partial(np.einsum, "ij->i", between, out=sums[:, 0])]
    )


def square_summation(values: Array, sums: Array) -> Call:
    """Adds up the squares of the lines along axis 1, as `summation`."""
    if values.ndim > 2:
        return partial(np.einsum, "ijk,ijk->ik", values, values, out=sums[:, 0])
    parts = _parts(values)
    if parts is None or parts.shape[1] == 1:
        return _dots(values, sums[:, 0])
    between = np.empty(parts.shape[:2], np.float32)
    return chain([_dots(parts, between), partial(np.einsum, "ij->i", between, out=sums[:, 0])])


def _dots(values: Array, sums: Array) -> Call:
    """The products of the lines along the last axis with themselves."""
    if hasattr(np, "vecdot") and values.strides[-1] == values.itemsize:  # numpy 2: BLAS for each line
        return partial(np.vecdot, values, values, out=sums)
    return partial(np.einsum, "...i,...i->...", values, values, out=sums)


def _parts(values: Array) -> Any:
    """Rows as `[rows, parts, part]`, so that no sum is over too many elements; None where they cannot be divided."""
    rows, line = values.shape
    count = next((n for n in range(-(-line // LONG), LONG) if line % n == 0), None)
    if count is None or line // count < LONG // 16:
        return None
    part = line // count
    strides = values.strides[0], part * values.strides[1], values.strides[1]
    return view(values, (rows, count, part), strides)
