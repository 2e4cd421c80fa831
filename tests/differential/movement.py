"""Ops that move, cut, join and look up elements, on tensors that are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential.builder import Builder, Rejected, Size, Value
from differential.operands import sizes_of


def source(b: Builder, least: int = 1) -> Value:
    """A tensor of any type that is there, or an input."""
    fitting = [value for value in b.values if value.rank >= least]
    return b.choose(fitting[-8:]) if fitting and b.chance(0.85) else b.pick(b.number(least, 4))


def transposed(b: Builder) -> Value:
    x = source(b)
    order = b.i64(np.zeros(0)) if b.chance(0.1) else b.i64(b.permutation(x.rank))
    return b.one("Transpose-1", x, order)


def reshaped(b: Builder) -> Value:
    """Axes joined, cut in two, or turned into ones; one size may be left to find."""
    x = source(b, 0)
    sizes: list[Any] = list(x.dims)
    special = False
    match b.choose(["flat", "join", "cut", "ones", "zeros"]):
        case "join" if x.rank > 1:
            at = b.number(0, x.rank - 2)
            pair = sizes[at : at + 2]
            sizes[at : at + 2] = [-1 if -1 in pair else pair[0] * pair[1]]
        case "cut" if x.rank and any(size > 1 for size in sizes):
            at = b.choose([axis for axis, size in enumerate(sizes) if size > 1])
            factor = b.choose([n for n in range(1, sizes[at] + 1) if sizes[at] % n == 0])
            sizes[at : at + 1] = [factor, sizes[at] // factor]
        case "ones":
            sizes.insert(b.number(0, len(sizes)), 1)
        case "zeros":
            special = True
            sizes = [0 if b.chance(0.5) or size < 0 else size for size in sizes]
        case _:
            sizes = [-1]
    if sizes.count(-1) > 1 or (sizes.count(0) and not special and not x.static):
        raise Rejected
    if -1 not in sizes and b.chance(0.2) and sizes and 0 not in sizes:
        sizes[b.number(0, len(sizes) - 1)] = -1
    return b.one("Reshape-1", x, b.i64(sizes), special_zero=special)


def squeezed(b: Builder) -> Value:
    x = source(b)
    ones = [axis for axis, size in enumerate(x.dims) if size == 1]
    if ones and b.chance(0.6):
        return b.one("Squeeze-1", x, b.i64([b.choose(ones)]))
    return b.one("Unsqueeze-1", x, b.i64([b.number(0, x.rank)]))


def sliced(b: Builder) -> Value:
    x = source(b)
    axis = b.number(0, x.rank - 1)
    size = min(array.shape[axis] for array in x.arrays)
    step = b.choose([1, 1, 2, -1, -1, -2, 3])
    low, high = sorted((b.number(-1, size), b.number(0, size + 1)))
    start, stop = (max(low, 0), high) if step > 0 else (high, low if low >= 0 else -(2**31))
    if b.chance(0.5):
        return b.one("Slice-8", x, *(b.i64([value]) for value in (start, stop, step, axis)))
    begin, end, strides = [0] * x.rank, [0] * x.rank, [1] * x.rank
    begin[axis], end[axis], strides[axis] = start, stop, step
    masks = [0 if n == axis else 1 for n in range(x.rank)]
    ends = list(masks)
    if step < 0 and stop < 0:
        ends[axis] = 1
    shrink = [0] * x.rank
    if b.chance(0.25) and size:
        begin[axis], masks[axis], shrink[axis], strides[axis] = b.number(-size, size - 1), 0, 1, 1
        end[axis] = begin[axis] + 1
    masks_of = {"begin_mask": masks, "end_mask": ends, "shrink_axis_mask": shrink}
    return b.one("StridedSlice-1", x, b.i64(begin), b.i64(end), b.i64(strides), **masks_of)


def cut(b: Builder) -> Value:
    """Split or VariadicSplit; parts may be empty, and nobody may read the others."""
    x = source(b)
    axes = [axis for axis, fixed in enumerate(x.fixed) if fixed]
    if not axes:
        raise Rejected
    axis = b.choose(axes)
    size = x.shape[axis]
    if b.chance(0.5) and size:
        count = b.choose([n for n in range(1, size + 1) if size % n == 0 and n < 9])
        parts = b.op("Split-1", x, b.i64(axis), num_splits=count)
    else:
        cuts = sorted(b.number(0, size) for _ in range(b.number(1, 3)))
        lengths = [int(n) for n in np.diff([0, *cuts, size])]
        if b.chance(0.3):
            lengths[b.number(0, len(lengths) - 1)] = -1
        parts = b.op("VariadicSplit-1", x, b.i64(axis), b.i64(lengths))
    for part in parts:
        if b.chance(0.4):
            b.keep(part)
    return b.choose(parts)


def joined(b: Builder) -> Value:
    x = source(b)
    axis = b.number(0, x.rank - 1)
    alike = [v for v in b.values if v.dtype == x.dtype and v.rank == x.rank and _joins(v, x, axis)]
    parts = [x, *(b.choose(alike or [x]) for _ in range(b.number(1, 2)))]
    if b.chance(0.4):
        shape: list[Size] = sizes_of(x)
        shape[axis] = b.choose([0, 1, 2, 5])
        if all(isinstance(size, int) for size in shape) and b.chance(0.5):
            parts.append(b.constant(b.data(shape, x.dtype)))  # type: ignore[arg-type]
        else:
            parts.append(b.input(shape, x.dtype))
    order = b.permutation(len(parts))
    return b.one("Concat-1", *(parts[n] for n in order), axis=axis - (x.rank if b.chance(0.3) else 0))


def _joins(one: Value, other: Value, axis: int) -> bool:
    pairs = zip(one.arrays, other.arrays, strict=True)
    return all(np.delete(a.shape, axis).tolist() == np.delete(c.shape, axis).tolist() for a, c in pairs)


def _indices(b: Builder, shape: list[Size], size: int, low: int = 0) -> Value:
    """Integers from `low` to `size` - 1: constants or an input."""
    if size < 1:
        raise Rejected
    dtype = b.choose([np.int64, np.int32])
    shapes = [[n if isinstance(n, int) else n[k] for n in shape] for k in range(b.sets)]
    arrays = [b.random.integers(low, size, sizes).astype(dtype) for sizes in shapes]
    known = all(isinstance(n, int) for n in shape)
    return b.constant(arrays[0]) if known and b.chance(0.5) else b.parameter(arrays)


def gathered(b: Builder) -> Value:
    x = source(b)
    axis = b.number(0, x.rank - 1)
    size = min(array.shape[axis] for array in x.arrays)
    batch = b.number(0, axis) if b.chance(0.3) else 0
    leading = sizes_of(x)[:batch]
    own: list[Size] = [b.choose([1, 2, 3, 5]) for _ in range(b.number(0, 2))]
    indices = _indices(b, [*leading, *own], size, -size)
    return b.one("Gather-8", x, indices, b.i64(axis), batch_dims=batch)


def looked_up(b: Builder) -> Value:
    """Rows of a table by integers."""
    rows, width = b.number(1, 9), b.size()
    table = b.constant(b.data((rows, width)))
    indices = _indices(b, [b.dim() for _ in range(b.number(1, 2))], rows)
    return b.one("Gather-8", table, indices, b.i64(0))


def elements(b: Builder) -> Value:
    x = source(b)
    axis = b.number(0, x.rank - 1)
    size = min(array.shape[axis] for array in x.arrays)
    shape = sizes_of(x)
    shape[axis] = b.number(1, 4)
    return b.one("GatherElements-6", x, _indices(b, shape, size, -size), axis=axis)


def scattered(b: Builder) -> Value:
    x = source(b)
    axis = b.number(0, x.rank - 1)
    size = min(array.shape[axis] for array in x.arrays)
    shape = sizes_of(x)
    if b.chance(0.6):
        shape[axis] = b.number(1, max(1, min(size, 4)))
        indices = _indices(b, shape, size, -size)
        updates = b.input(shape, x.dtype)
        reduction = b.choose(["none", "sum", "prod", "min", "max"]) if x.dtype.kind != "b" else "none"
        attrs = {"reduction": reduction, "use_init_val": b.chance(0.7)}
        return b.one("ScatterElementsUpdate-12", x, indices, updates, b.i64(axis), **attrs)
    count = b.number(1, 3)
    shape[axis] = count
    return b.one("ScatterUpdate-3", x, _indices(b, [count], size), b.input(shape, x.dtype), b.i64(axis))


def padded(b: Builder) -> Value:
    x = source(b)
    mode = b.choose(["constant", "constant", "edge", "reflect", "symmetric"])
    begins, ends = ([b.choose([0, 0, 1, 2, -1]) for _ in range(x.rank)] for _ in range(2))
    more = []
    if mode == "constant" and b.chance(0.6):
        more = [b.constant(b.data((), x.dtype) if b.chance(0.5) else np.zeros((), x.dtype))]
    return b.one(
        "Pad-12" if min(*begins, *ends, 0) < 0 else "Pad-1", x, b.i64(begins), b.i64(ends), *more, pad_mode=mode
    )


def tiled(b: Builder) -> Value:
    x = source(b)
    if b.chance(0.5):
        return b.one("Tile-1", x, b.i64([b.choose([1, 1, 2, 3]) for _ in range(x.rank + b.choose([0, 0, 1]))]))
    target = [b.choose([2, 3]) if size == 1 and b.chance(0.6) else 1 for size in x.dims]
    if b.chance(0.3):
        target.insert(0, 2)
    return b.one("Broadcast-3", x, b.i64(target), mode="bidirectional")


def rolled(b: Builder) -> Value:
    x = source(b)
    axis = b.number(0, x.rank - 1)
    match b.choose(["roll", "reverse", "shuffle", "depth", "space"]):
        case "roll":
            return b.one("Roll-7", x, b.i64([b.number(-3, 3)]), b.i64([axis]))
        case "reverse":
            return b.one("Reverse-1", x, b.i64([axis]), mode="index")
        case "shuffle" if x.fixed[axis] and x.shape[axis]:
            size = x.shape[axis]
            return b.one(
                "ShuffleChannels-1", x, axis=axis, group=b.choose([n for n in range(1, size + 1) if size % n == 0])
            )
        case "depth":
            return b.one("DepthToSpace-1", x, block_size=2, mode=b.choose(["blocks_first", "depth_first"]))
    return b.one("SpaceToDepth-1", x, block_size=2, mode=b.choose(["blocks_first", "depth_first"]))


def best(b: Builder) -> Value:
    x = source(b)
    axis = b.number(0, x.rank - 1)
    k = b.i64(b.number(1, max(1, min(array.shape[axis] for array in x.arrays))))
    outputs = b.op("TopK-11", x, k, axis=axis, mode=b.choose(["min", "max"]), sort="value", stable=True)
    return b.choose(outputs[:1] * 3 + outputs)


MOVES = (
    *(transposed,) * 4,
    *(reshaped,) * 4,
    *(sliced,) * 4,
    *(cut,) * 3,
    *(joined,) * 3,
    *(gathered,) * 2,
    *(squeezed, looked_up, elements, scattered, scattered, padded, padded, tiled, tiled, rolled, best),
)
