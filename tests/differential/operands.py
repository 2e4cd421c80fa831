"""Tensors that others are combined with: constants and inputs of any broadcast shape, dense or views of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from differential.builder import Builder, Size, Value

Source = Callable[[Sequence[Size], Any], Value]
"""Makes a tensor of a shape and an element type (None: the main one)."""


def constants(b: Builder, low: float = -2, high: float = 2, dtype: Any = None) -> Source:
    own = dtype

    def source(shape: Sequence[Size], dtype: Any = None) -> Value:
        return b.constant(b.data([size for size in shape if isinstance(size, int)], dtype or own, low, high))

    return source


def inputs(b: Builder, low: float = -2, high: float = 2, dtype: Any = None) -> Source:
    own = dtype

    def source(shape: Sequence[Size], dtype: Any = None) -> Value:
        return b.input(shape, dtype or own, low=low, high=high)

    return source


def sizes_of(value: Value) -> list[Size]:
    """The shape, with a tuple for an axis of several sizes."""
    return [
        value.shape[axis] if fixed else tuple(array.shape[axis] for array in value.arrays)
        for axis, fixed in enumerate(value.fixed)
    ]


def broadcastable(b: Builder, full: Sequence[Size]) -> list[Size]:
    """A shape that broadcasts to `full`."""
    rank = len(full)
    match b.choose(["scalar", "full", "full", "last", "channel", "rows", "some", "some"]):
        case "scalar":
            return [1] * b.choose([0, 0, 1, rank])
        case "last":
            return list(full[-1:])
        case "channel" if rank > 1:
            return [*([1] if b.chance(0.5) else []), full[1], *[1] * (rank - 2)]
        case "rows":
            return list(full[1:])
        case "some":
            shape = [size if b.chance(0.5) else 1 for size in full]
            while shape and shape[0] == 1 and b.chance(0.5):
                shape = shape[1:]
            return shape
    return list(full)


def operand(b: Builder, value: Value, low: float = -2, high: float = 2, plain: float = 0.4) -> Value:
    """A tensor that broadcasts to the shape of `value`: new or there already, maybe a view."""
    full = sizes_of(value)
    if b.chance(0.25 if b.fusible else 0.12) and low == -2:
        alike = [v for v in b.values if v.dtype == value.dtype and _broadcasts(v, value)]
        if alike:
            return b.choose(alike)
        if not value.constant:
            return value
    shape = broadcastable(b, full)
    known = all(isinstance(size, int) for size in shape)
    source = (constants if known and b.chance(0.7) else inputs)(b, low, high, value.dtype)
    return source(shape, None) if b.chance(plain) else viewed(b, shape, source, value.dtype)


def _broadcasts(one: Value, other: Value) -> bool:
    return all(
        np.broadcast_shapes(a.shape, c.shape) == c.shape if _compatible(a.shape, c.shape) else False
        for a, c in zip(one.arrays, other.arrays, strict=True)
    )


def _compatible(one: Sequence[int], other: Sequence[int]) -> bool:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return len(one) <= len(other) and all(a in (1, c) for a, c in pairs)


def viewed(b: Builder, shape: Sequence[Size], source: Source, dtype: Any) -> Value:
    """A tensor of this shape that is a part of a larger one, or one that lies in another order."""
    count = len(shape)
    whole = [axis for axis, size in enumerate(shape) if isinstance(size, int)]
    known = [size for size in shape if isinstance(size, int)]
    match b.choose(
        ["transpose", "transpose", "slice", "slice", "broadcast", "broadcast", "split", "convert", "reshape"]
    ):
        case "transpose" if count > 1:
            order = b.permutation(count)
            moved: list[Size] = [0] * count
            for axis, origin in enumerate(order):
                moved[origin] = shape[axis]
            return b.one("Transpose-1", source(moved, None), b.i64(order))
        case "slice" if whole:
            return _sliced(b, list(shape), b.choose(whole), source)
        case "broadcast" if len(known) == count and count:
            smaller = [1 if b.chance(0.5) else size for size in known]
            while smaller and smaller[0] == 1 and b.chance(0.5):
                smaller = smaller[1:]
            mode = b.choose(["numpy", "bidirectional"])
            return b.one("Broadcast-3", source(smaller, None), b.i64(known), mode=mode)
        case "split" if whole:
            axis = b.choose(whole)
            larger = [size * 2 if n == axis and isinstance(size, int) else size for n, size in enumerate(shape)]
            parts = b.op("Split-1", source(larger, None), b.i64(axis), num_splits=2)
            return b.choose(parts)
        case "convert" if np.dtype(dtype) == np.float32:
            narrow = source(shape, b.choose([np.float16, np.int8, np.uint8, np.float64]))
            return b.one("Convert-1", narrow, destination_type="f32")
        case "reshape" if len(known) == count and count:
            flat = source([int(np.prod(known))], None)
            return b.one("Reshape-1", flat, b.i64(known), special_zero=False)
    return source(shape, None)


def _sliced(b: Builder, shape: list[Size], axis: int, source: Source) -> Value:
    size = shape[axis]
    assert isinstance(size, int)
    step = b.choose([-1, -1, -2, 2, 1, 3])
    larger = list(shape)
    larger[axis] = size * abs(step) + (b.number(0, 3) if step != -1 or b.chance(0.3) else 0)
    data = source(larger, None)
    if step < 0:
        start, stop = (size - 1) * -step, -(2**31)
    else:
        start = 0
        stop = (size - 1) * step + 1 if size else 0
    if b.chance(0.5) and len(shape) == 1:
        bounds = (b.i64([start]), b.i64([stop if step > 0 else -larger[axis] - 1]), b.i64([step]))  # type: ignore[operator]
        return b.one("StridedSlice-1", data, *bounds, begin_mask=[0], end_mask=[0])
    return b.one("Slice-8", data, b.i64([start]), b.i64([stop]), b.i64([step]), b.i64([axis]))
