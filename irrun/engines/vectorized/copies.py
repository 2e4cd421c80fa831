"""Ops that only move elements, on numpy: which views of the output are filled with which of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, product
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.threads import Threads
from irrun.engines.vectorized.appending import open_concat
from irrun.engines.vectorized.copying import Mover, Pairs, moving
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array


def _numbers(work: Work, number: int) -> list[int] | None:
    """The numbers in a constant input."""
    value = work.constant(number)
    return None if value is None else [int(element) for element in value.ravel()]


def _reshaped(_: Work) -> Mover:
    return lambda inputs, outputs: [(outputs[0].reshape(inputs[0].shape), inputs[0])]


def _rearranged(shape: Sequence[int], order: Sequence[int]) -> Mover:
    """The output, with more axes, is filled from the input seen as `shape`, the axes of which it has in `order`."""
    result = [shape[axis] for axis in order]
    return lambda inputs, outputs: [(outputs[0].reshape(result), inputs[0].reshape(shape).transpose(order))]


def _transposed(work: Work) -> Mover | None:
    order = _numbers(work, 1)
    return None if order is None else lambda inputs, outputs: [(outputs[0], inputs[0].transpose(order or None))]


def _concatenated(work: Work) -> Mover:
    axis = work.attrs["axis"] % len(work.outputs[0].shape)
    sizes = [operand.shape[axis] for operand in work.required(len(work.own))]
    cuts = _parts(axis, sizes)
    return lambda inputs, outputs: [(outputs[0][cut], part) for cut, part in zip(cuts, inputs, strict=False)]


def _split(work: Work) -> Mover | None:
    axes = _numbers(work, 1)
    if axes is None:
        return None
    (data,) = work.required(1)
    cuts = _parts(axes[0] % len(data.shape), [output.shape[axes[0]] for output in work.outputs])
    return lambda inputs, outputs: [(target, inputs[0][cut]) for target, cut in zip(outputs, cuts, strict=True)]


def _parts(axis: int, sizes: Sequence[int]) -> list[tuple[slice, ...]]:
    """What indexes the parts of an axis that have these sizes, one after the other."""
    ends = accumulate(sizes)
    return [(*[slice(None)] * axis, slice(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def _sliced(work: Work) -> Mover | None:
    (data,), (start, stop, step) = work.required(1), (_numbers(work, number) for number in (1, 2, 3))
    axes = list(range(len(start or ()))) if work.optional(4) is None else _numbers(work, 4)
    if start is None or stop is None or step is None or axes is None:
        return None
    cut = _cut(len(data.shape), axes, start, stop, step)
    return lambda inputs, outputs: [(outputs[0], inputs[0][cut])]


def _cut(rank: int, axes: Sequence[int], *bounds: Sequence[int]) -> tuple[slice, ...]:
    """What indexes an array of that rank to select start, stop and step along some axes."""
    index = [slice(None)] * rank
    for axis, *own in zip(axes, *bounds, strict=True):
        index[axis] = slice(*own)
    return tuple(index)


def _slice(work: Work, threads: Threads) -> Compiled | None:
    """Slice-8, also of bounds that only the run tells where its size is known: then it does not depend on them."""
    if work.constant(1) is not None and work.constant(2) is not None:
        return moving(_sliced)(work, threads)
    steps, count = _numbers(work, 3), prod(work.required(2)[1].shape)
    axes = list(range(count)) if work.optional(4) is None else _numbers(work, 4)
    if steps is None or axes is None or work.outputs[0].type == "string":
        return None
    rank = len(work.outputs[0].shape)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        source, start, stop = inputs[:3]
        target = outputs[0]

        def call() -> None:
            np.copyto(target, source[_cut(rank, axes, start.tolist(), stop.tolist(), steps)])

        def call_first() -> None:
            np.copyto(target, source[start.item() : stop.item() : steps[0]])

        return [call_first if axes == [0] else call]

    return with_posts(work, bind)


def _strided_slice(work: Work) -> Mover | None:
    """Masks leave bounds out, add and remove axes; an ellipsis goes before a new axis, that before a removed one."""
    begin, end = _numbers(work, 1), _numbers(work, 2)
    stride = [1] * len(begin or ()) if work.optional(3) is None else _numbers(work, 3)
    if begin is None or end is None or stride is None:
        return None

    def masked(name: str, number: int) -> bool:
        mask = work.attrs[name]
        return number < len(mask) and mask[number] == 1

    index: list[Any] = []
    for number in range(len(begin)):
        start = None if masked("begin_mask", number) else begin[number]
        if masked("ellipsis_mask", number):
            index.append(...)
        elif masked("new_axis_mask", number):
            index.append(None)
        elif masked("shrink_axis_mask", number):
            index.append(start or 0)
        elif stride[number] < 0 and start is not None and start < -1:  # which the size may clamp
            return None
        else:
            index.append(slice(start, None if masked("end_mask", number) else end[number], stride[number]))
    cut = tuple(index) if ... in index else (*index, ...)
    return lambda inputs, outputs: [(outputs[0], inputs[0][cut])]


def _broadcast(work: Work) -> Mover | None:
    (data,), output, axes = work.required(1), work.outputs[0], _numbers(work, 2)
    if axes is None and work.optional(2) is not None:
        return None
    shape = data.shape
    if work.attrs["mode"] in ("explicit", "none") and axes is not None:
        sizes = dict(zip(axes, data.shape, strict=False))  # a scalar may have an axis of 1
        shape = tuple(sizes.get(axis, 1) for axis in range(len(output.shape)))
    return lambda inputs, outputs: [(outputs[0], np.broadcast_to(inputs[0].reshape(shape), outputs[0].shape))]


def _tiled(work: Work) -> Mover:
    """The output with an axis for the repeats before each of its axes, filled from the input broadcast to that."""
    (data,), output = work.required(1), work.outputs[0]
    sizes = (*[1] * (len(output.shape) - len(data.shape)), *data.shape)
    shape = [number for size, total in zip(sizes, output.shape, strict=True) for number in (total // size, size)]
    single = [number for size in sizes for number in (1, size)]
    return lambda inputs, outputs: [(outputs[0].reshape(shape), np.broadcast_to(inputs[0].reshape(single), shape))]


def _rolled(work: Work) -> Mover | None:
    shifts, axes = _numbers(work, 1), _numbers(work, 2)
    if shifts is None or axes is None:
        return None
    shape = work.outputs[0].shape
    total = [0] * len(shape)
    for axis, shift in zip(axes, shifts * (len(axes) if len(shifts) == 1 else 1), strict=True):
        total[axis] += shift
    parts: list[list[tuple[slice, slice]]] = []
    for shift, size in zip(total, shape, strict=True):
        edge = shift % size
        wrapped = [(slice(0, edge), slice(size - edge, size))] if edge else []
        parts.append([*wrapped, (slice(edge, size), slice(0, size - edge))])
    places = [tuple(zip(*pieces, strict=True)) for pieces in product(*parts)]
    return lambda inputs, outputs: [(outputs[0][into], inputs[0][out_of]) for into, out_of in places]


def _depth_to_space(work: Work) -> Mover:
    (data,) = work.required(1)
    block, blocks_first = work.attrs["block_size"], work.attrs["mode"] == "blocks_first"
    batch, channels, *spatial = data.shape
    count = len(spatial)
    depth = channels // block**count
    grouped = [*[block] * count, depth] if blocks_first else [depth, *[block] * count]
    first, order = (1, [0, count + 1]) if blocks_first else (2, [0, 1])
    for number in range(count):
        order += [count + 2 + number, first + number]
    return _rearranged((batch, *grouped, *spatial), order)


def _space_to_depth(work: Work) -> Mover:
    (data,) = work.required(1)
    block, count = work.attrs["block_size"], len(data.shape) - 2
    shape = (*data.shape[:2], *(number for size in data.shape[2:] for number in (size // block, block)))
    blocks, rest = range(3, 3 + 2 * count, 2), range(2, 2 + 2 * count, 2)
    order = (0, *blocks, 1, *rest) if work.attrs["mode"] == "blocks_first" else (0, 1, *blocks, *rest)
    return _rearranged(shape, order)


def _shuffled(work: Work) -> Mover:
    shape, group = work.outputs[0].shape, work.attrs["group"]
    axis = work.attrs["axis"] % len(shape)
    order = (*range(axis), axis + 1, axis, *range(axis + 2, len(shape) + 1))
    return _rearranged((*shape[:axis], group, shape[axis] // group, *shape[axis + 1 :]), order)


def _reorganized(work: Work) -> Mover | None:
    """As from space to depth, of the data as fewer channels of larger images; others are read where channels end.

    Both are seen with axes that do not lie as theirs do, which is no copy only where they are dense.
    """
    (data,), (step, *_) = work.required(1), work.attrs["stride"]
    batch, channels, height, width = data.shape
    if channels % step**2 or not (is_dense(data) and is_dense(work.outputs[0])):
        return None
    return _rearranged((batch, channels // step**2, height, step, width, step), (0, 3, 5, 1, 2, 4))


def _padded(work: Work) -> Mover | None:
    """The interior, then the margins of axis after axis, each over all that is there of the axes before it."""
    (data,), mode = work.required(1), work.attrs["pad_mode"]
    begins, ends = _numbers(work, 1), _numbers(work, 2)
    if begins is None or ends is None or (mode != "constant" and min(*begins, *ends) < 0):
        return None
    given = work.optional(3) is not None
    cut = tuple(
        slice(max(-begin, 0), size + min(end, 0)) for size, begin, end in zip(data.shape, begins, ends, strict=True)
    )
    interior = [
        slice(max(begin, 0), total - max(end, 0))
        for total, begin, end in zip(work.outputs[0].shape, begins, ends, strict=True)
    ]
    if any(part.start >= part.stop for part in (*cut, *interior)):
        return None

    def views(inputs: Arrays, outputs: Sequence[Array]) -> Pairs:
        output = outputs[0]
        constant = inputs[3] if given else np.zeros((), output.dtype)
        pairs: Pairs = [(output[tuple(interior)], inputs[0][cut])]
        for axis, inside in enumerate(interior):
            there = np.moveaxis(output[(*[slice(None)] * (axis + 1), *interior[axis + 1 :])], axis, 0)
            for margin, source in _margins(there, inside.start, inside.stop, mode):
                if len(margin):
                    pairs.append((margin, constant if source is None else source))
        return pairs

    return views


def _margins(there: Array, start: int, stop: int, mode: str) -> Pairs:
    """What lies before `start` and from `stop` on, and what of the rest it is filled with; None for a constant."""
    after = len(there) - stop
    if mode == "constant":
        sources: list[Any] = [None, None]
    elif mode == "edge":
        sources = [there[start : start + 1], there[stop - 1 : stop]]
    else:
        beyond = 1 if mode == "reflect" else 0
        sources = [
            there[start + beyond : 2 * start + beyond][::-1],
            there[stop - beyond - after : stop - beyond][::-1],
        ]
    return list(zip((there[:start], there[stop:]), sources, strict=True))


MOVERS = {
    **dict.fromkeys(("Reshape-1", "Squeeze-1", "Squeeze-15", "Unsqueeze-1"), _reshaped),
    **dict.fromkeys(("Broadcast-1", "Broadcast-3"), _broadcast),
    "Concat-1": _concatenated,
    "DepthToSpace-1": _depth_to_space,
    **dict.fromkeys(("Pad-1", "Pad-12"), _padded),
    "ReorgYolo-1": _reorganized,
    "Roll-7": _rolled,
    "ShuffleChannels-1": _shuffled,
    "SpaceToDepth-1": _space_to_depth,
    **dict.fromkeys(("Split-1", "VariadicSplit-1"), _split),
    "StridedSlice-1": _strided_slice,
    "Tile-1": _tiled,
    "Transpose-1": _transposed,
}
"""What tells of a work which views are filled with which."""

COMPILERS = {name: moving(prepare) for name, prepare in MOVERS.items()} | {"Slice-8": _slice}

OPENERS = {"Concat-1": open_concat}
