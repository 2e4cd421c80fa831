"""Depthwise convolution, where each group has one channel: no product of matrices, but sums of shifted channels.

A block of channels is laid out with its padding so that every tap of the kernel is an offset into a flattened channel:
all windows of a channel are then computed by operations on long rows, and the few sums that belong to no window, at the
ends of the rows, are left out at the end. Where the kernel makes strides, a channel is first split by the remainders of
the positions, so that what one tap sees lies together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np

from irrun.engines.memory import ITEM, aligned
from irrun.engines.threads import Threads, cuts, lengths
from irrun.engines.vectorized.convolution import Geometry, compile_convolution, geometry_of
from irrun.engines.vectorized.posts import Posts, posts_of
from irrun.engines.windows import Axis
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

BLOCK_BYTES = 768 << 10
"""How much of a block's frames and sums is worked on at a time, so that it stays in the second-level cache."""

SUM_SECONDS = 0.2e-9
"""What one tap of one window takes, about."""

EINSUM = (256, 2731)
"""Lengths of rows between which numpy's einsum is slower than its ufuncs, tap by tap.

Up to a third of the 8192 elements of its buffers, einsum copies rows into them before it computes.
"""


def compile_group_convolution(work: Work, threads: Threads) -> Compiled | None:
    """GroupConvolution-1 of f32, depthwise or with more channels in a group."""
    geometry = geometry_of(work)
    if geometry is None or geometry.channels > 1 or geometry.groups == 1:
        return compile_convolution(work, threads)
    posts = posts_of(work, (geometry.images, geometry.groups, geometry.features, prod(geometry.windows)))
    return None if posts is None else _compiled(geometry, posts, threads)


COMPILERS = {"GroupConvolution-1": compile_group_convolution}


class _Pitch:
    """How the frames of a channel, one for each remainder, are laid out along one axis."""

    def __init__(self, axis: Axis, dense: bool) -> None:
        """`dense` lets the padding behind a row be that in front of the next one."""
        self.axis = axis
        self.length = axis.windows + (axis.kernel - 1) * axis.dilation // axis.stride
        if dense and axis.stride == 1:
            kept = min(axis.size, self.length - axis.begin)
            self.length = max(self.length - axis.begin, axis.begin + kept, axis.windows)

    def places(self, remainder: int) -> tuple[slice, slice]:
        """Which elements of the data have positions of this remainder, and where in its frame they lie."""
        stride, begin = self.axis.stride, self.axis.begin
        first = (remainder - begin) % stride
        place = (first + begin) // stride
        count = max(min(-(-(self.axis.size - first) // stride), self.length - place), 0)
        return slice(first, first + count * stride, stride), slice(place, place + count)


class _Layout:
    """The frames of one channel [frames, room].

    `taps` are the frame that each tap of the kernel sees, and where in it the element of the first window lies.
    """

    def __init__(self, axes: Sequence[Axis]) -> None:
        pitches = [_Pitch(axis, dense=number == len(axes) - 1 and number > 0) for number, axis in enumerate(axes)]
        self.axes = axes
        self.shape = [pitch.length for pitch in pitches]
        self.steps = [prod(self.shape[number + 1 :]) for number in range(len(axes))]
        self.length = 1 + sum((axis.windows - 1) * step for axis, step in zip(axes, self.steps, strict=True))
        remainders: dict[tuple[int, ...], int] = {}
        self.taps = []
        for tap in combinations(*(range(axis.kernel) for axis in axes)):
            shifts = [divmod(k * axis.dilation, axis.stride) for k, axis in zip(tap, axes, strict=True)]
            frame = remainders.setdefault(tuple(rest for _, rest in shifts), len(remainders))
            offset = sum(shift * step for (shift, _), step in zip(shifts, self.steps, strict=True))
            self.taps.append((frame, offset))
        self.places = [[pitch.places(rest) for pitch, rest in zip(pitches, rests, strict=True)] for rests in remainders]
        self.room = max(max(offset for _, offset in self.taps) + self.length, prod(self.shape))
        self.shifts = [axis.dilation // axis.stride * step for axis, step in zip(axes, self.steps, strict=True)]
        self.einsum = len(self.places) == 1 and not EINSUM[0] < self.length < EINSUM[1]

    @property
    def bytes(self) -> int:
        """What the frames, the sums and the terms of one channel take."""
        return (len(self.places) * self.room + (1 if self.einsum else 2) * self.length) * ITEM


def _compiled(geometry: Geometry, posts: Posts, threads: Threads) -> Compiled:
    layout = _Layout(geometry.axes)
    wanted = threads.pieces(geometry.images * geometry.operations / 2 * SUM_SECONDS)
    step = max(BLOCK_BYTES // layout.bytes, 1)
    blocks = cuts(geometry.groups, max(-(-geometry.groups // step), min(wanted, geometry.groups)))
    widest = max(lengths(blocks))
    pieces = [(image, block) for image in range(geometry.images) for block in blocks]
    frames = aligned(len(layout.places) * widest * layout.room * ITEM) // ITEM
    sums = aligned(widest * layout.length * ITEM) // ITEM
    room = frames + sums * (1 if layout.einsum else 2)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        data, filters = inputs[:2]
        weights = filters.reshape(geometry.groups, geometry.features, geometry.taps)
        output = outputs[0].reshape(geometry.images, geometry.groups, geometry.features, *geometry.windows)
        on = posts.bind(inputs, output.reshape(posts.shape))

        def steps(piece: tuple[int, slice], own: Array) -> list[Call]:
            image, block = piece
            rows = block.stop - block.start
            frame = own[: len(layout.places) * rows * layout.room].reshape(-1, rows, layout.room)
            parts = [own[start : start + rows * layout.length].reshape(rows, -1) for start in range(frames, room, sums)]
            calls: list[Call] = [partial(frame.fill, 0), *_framed(layout, data[image, block], frame)]
            for feature in range(geometry.features):
                calls += _summed(layout, frame, weights[block, feature], parts)
                calls.append(partial(np.copyto, output[image, block, feature], _windows(layout, parts[0])))
            return [*calls, *on((slice(image, image + 1), block))]

        return threads.each(pieces, steps, scratch, room * ITEM, shared=wanted > 1)

    return Compiled(bind, (threads.count if wanted > 1 else 1) * room * ITEM)


def _framed(layout: _Layout, data: Array, frame: Array) -> list[Call]:
    """Calls that copy data [rows, *spatial] into the frames [frames, rows, room]."""
    dense = frame[..., : prod(layout.shape)].reshape(*frame.shape[:2], *layout.shape)
    return [
        partial(
            np.copyto,
            dense[number][(slice(None), *(place for _, place in places))],
            data[(slice(None), *(elements for elements, _ in places))],
        )
        for number, places in enumerate(layout.places)
    ]


def _summed(layout: _Layout, frame: Array, weights: Array, parts: Sequence[Array]) -> list[Call]:
    """Calls that add up all taps, weighted by weights [rows, taps], into parts[0] [rows, length]."""
    length = layout.length
    if layout.einsum:
        kernel = [axis.kernel for axis in layout.axes]
        seen = np.lib.stride_tricks.as_strided(
            frame[0],
            (length, len(weights), *kernel),
            (ITEM, frame.strides[1], *(shift * ITEM for shift in layout.shifts)),
            writeable=False,
        )
        taps = "ijk"[: len(kernel)]
        # in the order F the innermost loop is the one over a row
        run = partial(np.einsum, f"lc{taps},c{taps}->lc", order="F", optimize=False, out=parts[0].T)
        return [partial(run, seen, weights.reshape(-1, *kernel))]
    sums, terms = parts
    calls: list[Call] = []
    for number, (own, offset) in enumerate(layout.taps):
        seen = frame[own, :, offset : offset + length]
        weight = weights[:, number : number + 1]
        if number == 0:
            calls.append(partial(np.multiply, seen, weight, sums))
        else:
            calls += [partial(np.multiply, seen, weight, terms), partial(np.add, sums, terms, sums)]
    return calls


def _windows(layout: _Layout, sums: Array) -> Array:
    """The sums [rows, length] that belong to windows: [rows, *windows]."""
    return np.lib.stride_tricks.as_strided(
        sums,
        (len(sums), *(axis.windows for axis in layout.axes)),
        (sums.strides[0], *(step * ITEM for step in layout.steps)),
        writeable=False,
    )
