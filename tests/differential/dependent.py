"""Ops whose results have sizes that only the data tell."""

from __future__ import annotations

import numpy as np

from differential.builder import Builder, Rejected, Value
from differential.elementwise import COMPARISONS
from differential.operands import sizes_of


def _number(b: Builder, low: int, high: int) -> Value:
    return b.parameter([np.asarray(b.number(low, high), np.int64) for _ in range(b.sets)])


def _sure(b: Builder, rank: int) -> Value:
    x = b.pick(rank)
    if not x.sure:
        raise Rejected
    return x


def places(b: Builder) -> Value:
    """Elements that a comparison chooses."""
    x = _sure(b, b.number(1, 3))
    test = b.one(b.choose(COMPARISONS), x, b.constant(np.asarray(0, x.dtype)), auto_broadcast="numpy")
    found = b.one("NonZero-3", test)
    order = b.one("Transpose-1", found, b.constant(np.int64([1, 0])))
    return b.one("GatherND-8", x, order)


def distinct(b: Builder) -> Value:
    x = _sure(b, 1)
    rounded = b.one("Round-5", x, mode="half_to_even") if x.float else x
    if b.special:
        raise Rejected
    return b.one("Unique-10", rounded, sorted=b.chance(0.7))


def boxes(b: Builder) -> Value:
    count, classes = b.number(1, 6), b.number(1, 2)
    low = [b.random.uniform(0, 1, (1, count, 2)) for _ in range(b.sets)]
    arrays = [np.concatenate([a, a + b.random.uniform(0.1, 1, a.shape)], -1).astype(np.float32) for a in low]
    scores = [b.random.permutation(count * classes).reshape(1, classes, count) / 9.0 for _ in range(b.sets)]
    limits = [b.constant(value) for value in (np.int64(b.number(1, 4)), np.float32(0.5), np.float32(0.2))]
    chosen = b.op("NonMaxSuppression-9", b.parameter(arrays), b.parameter([a.astype("f4") for a in scores]), *limits)
    rows = b.one("Gather-8", chosen[0], b.i64([2]), b.i64(1), batch_dims=0)
    flat = b.one("Reshape-1", rows, b.i64([-1]), special_zero=False)
    return b.one("Gather-8", b.input([count, b.number(1, 5)]), flat, b.i64(0), batch_dims=0)


def counted(b: Builder) -> Value:
    """Range up to an input, or up to a size."""
    if b.chance(0.5):
        stop = _number(b, 0, 9)
    else:
        shape = b.one("ShapeOf-3", b.pick(b.number(1, 3)), output_type="i64")
        stop = b.one("Gather-8", shape, b.constant(np.int64(0)), b.constant(np.int64(0)), batch_dims=0)
    start, stride = (b.constant(np.int64(value)) for value in (0, b.choose([1, 1, 2])))
    return b.one("Range-4", start, stop, stride, output_type="f32" if b.dtype == np.float32 else "i32")


def tiled(b: Builder) -> Value:
    x = b.pick(b.number(1, 3))
    arrays = [b.random.integers(0 if b.chance(0.1) else 1, 4, x.rank) for _ in range(b.sets)]
    return b.one("Tile-1", x, b.parameter(arrays))


def reshaped(b: Builder) -> Value:
    x = b.pick(b.number(2, 3))
    arrays = []
    for array in x.arrays:
        size = array.size
        factor = b.choose([n for n in range(1, size + 1) if size % n == 0] or [1])
        arrays.append(np.int64([factor, size // factor]))
    return b.one("Reshape-1", x, b.parameter(arrays), special_zero=False)


def sliced(b: Builder) -> Value:
    x = b.pick(b.number(1, 3))
    axis = b.constant(np.int64([b.number(0, x.rank - 1)]))
    bounds = [b.parameter([np.int64([b.number(*pair)]) for _ in range(b.sets)]) for pair in ((0, 2), (1, 9))]
    step = b.constant(np.int64([b.choose([1, 1, 2])]))
    return b.one("Slice-8", x, *bounds, step, axis)


def best(b: Builder) -> Value:
    x = b.pick(b.number(1, 3))
    axis = b.number(0, x.rank - 1)
    least = min(array.shape[axis] for array in x.arrays)
    k = _number(b, 1, max(least, 1))
    return b.op("TopK-11", x, k, axis=axis, mode=b.choose(["min", "max"]), sort="value", stable=True)[0]


def repeated(b: Builder) -> Value:
    """Broadcast to the shape of another tensor, which ShapeOf tells."""
    x = b.pick(b.number(1, 3))
    shape = b.one("ShapeOf-3", x, output_type="i64")
    sizes = [size if b.chance(0.5) else 1 for size in sizes_of(x)]
    return b.one("Broadcast-3", b.input(sizes), shape, mode=b.choose(["numpy", "bidirectional"]))


def flattened(b: Builder) -> Value:
    """Reshape by arithmetic on ShapeOf, as exporters write it."""
    x = b.pick(b.number(2, 4))
    shape = b.one("ShapeOf-3", x, output_type="i64")
    zero, one = b.constant(np.int64(0)), b.constant(np.int64([-1]))
    first = b.one("Gather-8", shape, b.constant(np.int64([0])), zero, batch_dims=0)
    return b.one("Reshape-1", x, b.one("Concat-1", first, one, axis=0), special_zero=False)


def shape(b: Builder) -> Value:
    """The shape of a tensor as a result."""
    found = b.one("ShapeOf-3", b.pick(b.number(1, 4)), output_type=b.choose(["i64", "i32"]))
    if b.chance(0.3):
        b.result(found)
    return found


DEPENDENT = (places, places, distinct, boxes, counted, tiled, reshaped, sliced, best, repeated, flattened, shape)
