"""Pooling: the taps of one axis after the other, on blocks of channels that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.memory import ITEM, aligned
from irrun.engines.threads import Threads, cuts, lengths
from irrun.engines.vectorized.posts import Posts, posts_of
from irrun.engines.windows import Axis, axes_of, places_of
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

BLOCK_BYTES = 512 << 10
"""What the frames and sums of a block of channels may take, so that they stay in the second-level cache."""

TAP_SECONDS = 0.4e-9
"""What one tap of one window takes, about."""

LOWEST = np.finfo(np.float32).min

Function = Callable[..., object]


def compile_pool(work: Work, threads: Threads) -> Compiled | None:
    """MaxPool and AvgPool of every version, of f32 and without indices.

    Of the largest NaN loses, and padding counts as the lowest finite number; means are sums over what counts.
    """
    (data,), output, posts = work.required(1), work.outputs[0], posts_of(work)
    if data.type != "f32" or len(work.outputs) > 1 or posts is None:
        return None
    axes = axes_of(work.attrs, data.shape[2:], work.attrs["kernel"], output.shape[2:])
    if work.name.startswith("MaxPool"):
        return _compiled(work, axes, posts, threads, np.fmax, LOWEST, partial(np.fmax, LOWEST))
    counts = _counts(axes, work.attrs["exclude_pad"])
    return _compiled(work, axes, posts, threads, np.add, np.float32(0), lambda sums, out: np.divide(sums, counts, out))


COMPILERS = dict.fromkeys(
    ("MaxPool-1", "MaxPool-8", "MaxPool-14", "AvgPool-1", "AvgPool-14", "AvgPool-16"), compile_pool
)


def _counts(axes: Sequence[Axis], exclude_pad: bool) -> Array:
    """How many elements count in each window [*windows], or in all of them []: the real ones, or with padding all. Axes
    along which they are as many in all windows have size 1."""
    if not exclude_pad and any(axis.begin or axis.end for axis in axes):
        return np.array(prod(axis.kernel for axis in axes), np.float32)
    counts: Array = np.ones((), np.int64)
    for axis in axes:
        places = np.arange(axis.windows)[:, np.newaxis] * axis.stride - axis.begin
        places = places + np.arange(axis.kernel) * axis.dilation
        real = ((places >= 0) & (places < axis.size)).sum(axis=1)
        counts = np.multiply.outer(counts, real[:1] if (real == real[:1]).all() else real)
    return np.maximum(counts, 1).astype(np.float32)


def _compiled(
    work: Work,
    axes: Sequence[Axis],
    posts: Posts,
    threads: Threads,
    function: Function,
    padding: np.float32,
    finish: Function,
) -> Compiled:
    """Pool with a function of two arrays and an output; `finish(pooled, out)` follows."""
    images, channels = work.outputs[0].shape[:2]
    shapes = [[axis.covered(axis.windows) for axis in axes]] if any(axis.padded for axis in axes) else []
    for number in range(1, len(axes)):
        after = [axis.windows for axis in axes[:number]]
        shapes.append([*after, *(axis.covered(axis.windows) for axis in axes[number:])])
    each = sum(map(prod, shapes)) * ITEM
    taps = sum(axis.kernel for axis in axes)
    wanted = threads.pieces(prod(work.outputs[0].shape) * taps * TAP_SECONDS)
    step = max(BLOCK_BYTES // max(each, 1), 1)
    blocks = cuts(channels, max(-(-channels // step), min(wanted, channels)))
    pieces = [(image, block) for image in range(images) for block in blocks]
    room = aligned(max(lengths(blocks)) * each)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        on = posts.bind(inputs, outputs[0])

        def steps(piece: tuple[int, slice], own: Array) -> list[Call]:
            image, block = piece
            rooms, start = [], 0
            for shape in shapes:
                end = start + (block.stop - block.start) * prod(shape)
                rooms.append(own[start:end].reshape(-1, *shape))
                start = end
            output = outputs[0][image, block]
            calls = _pooled(inputs[0][image, block], axes, rooms, output, function, padding)
            return [*calls, partial(finish, output, output), *on((slice(image, image + 1), block))]

        return threads.each(pieces, steps, scratch, room, shared=wanted > 1)

    return Compiled(bind, (threads.count if wanted > 1 else 1) * room)


def _pooled(
    data: Array, axes: Sequence[Axis], rooms: list[Array], output: Array, function: Function, padding: np.float32
) -> list[Call]:
    """Calls that pool data [channels, *spatial] into output [channels, *windows] by way of `rooms`."""
    calls: list[Call] = []
    if len(rooms) == len(axes):
        frame, *rooms = rooms
        elements, places = places_of(axes, [slice(0, axis.windows) for axis in axes])
        calls += [partial(frame.fill, padding), partial(np.copyto, frame[places], data[elements])]
        data = frame
    for number, (axis, target) in enumerate(zip(axes, [*rooms, output], strict=True), 1):
        before = (slice(None),) * number
        length = (axis.windows - 1) * axis.stride + 1
        taps = [
            data[(*before, slice(start, start + length, axis.stride))]
            for start in range(0, axis.kernel * axis.dilation, axis.dilation)
        ]
        covered = tuple(slice(0, other.covered(other.windows)) for other in axes[number:])
        first, *more = (tap[(*before, slice(None), *covered)] for tap in taps)
        if not more:
            calls.append(partial(np.copyto, target, first))
        for tap in more:
            calls.append(partial(function, first, tap, target))
            first = target
        data = target
    return calls
