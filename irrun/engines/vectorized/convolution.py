"""Convolution as products of matrices: the filters times the columns of the windows, a block of windows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.extents import view
from irrun.engines.memory import ITEM, aligned
from irrun.engines.threads import PRODUCT_SPEED, Threads, blocks, cuts, lengths
from irrun.engines.vectorized.posts import Posts, posts_of
from irrun.engines.windows import Axis, axes_of, places_of, transposed_axes_of
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.records import NamedTuple
from irrun.spec.op import Array

COLUMN_BYTES = 2 << 20
"""Bytes that the columns of a block of windows may take, unless there are fewer than LEAST_WINDOWS of them."""

LEAST_WINDOWS, MAX_WINDOWS = 256, 2048
"""Windows in a block: with fewer BLAS spends its time on packing the filters, with more the results leave the cache."""

FLAT = 12
"""How many times more windows than features there are where a product is rather cut along its windows."""


class Geometry(NamedTuple):
    """A grouped convolution: images, groups, channels and features per group, and spatial axes."""

    images: int
    groups: int
    channels: int
    features: int
    axes: tuple[Axis, ...]

    @property
    def windows(self) -> tuple[int, ...]:
        return tuple(axis.windows for axis in self.axes)

    @property
    def taps(self) -> int:
        return prod(axis.kernel for axis in self.axes)

    @property
    def operations(self) -> float:
        """Additions and multiplications for one image."""
        return 2.0 * self.groups * self.features * prod(self.windows) * self.channels * self.taps


def geometry_of(work: Work) -> Geometry | None:
    """The geometry of a convolution of f32 with dense filters, or of a transposed one; None if it is something else.

    The axes of a transposed one are those of the convolution that would make its data out of its output.
    """
    (data, filters), output = work.required(2), work.outputs[0]
    if any(tensor.type != "f32" for tensor in (data, filters, output)) or not is_dense(filters):
        return None
    groups, *sizes = filters.shape if work.name.startswith("Group") else (1, *filters.shape)
    kernel = sizes[2:]
    if "Backprop" in work.name:
        channels, features = sizes[:2]
        axes = transposed_axes_of(work, kernel)
    else:
        features, channels = sizes[:2]
        axes = axes_of(work.attrs, data.shape[2:], kernel, output.shape[2:])
    return Geometry(data.shape[0], groups, channels, features, tuple(axes))


def compile_convolution(work: Work, threads: Threads) -> Compiled | None:
    """Convolution-1 and GroupConvolution-1 of f32: data [N, channels, *spatial], filters [*groups, features, ...]."""
    geometry = geometry_of(work)
    if geometry is None:
        return None
    windows = prod(geometry.windows)
    posts = posts_of(work, (geometry.images, geometry.groups * geometry.features, windows))
    if posts is None:
        return None
    if is_dense(work.required(1)[0]) and all(
        axis.kernel == axis.stride == 1 and not axis.padded for axis in geometry.axes
    ):
        return _pointwise(geometry, posts, threads)
    shared = threads.pieces(geometry.operations / PRODUCT_SPEED) > 1
    if shared and geometry.images * windows < LEAST_WINDOWS // 2 * threads.count:
        return _by_features(geometry, posts, threads)
    column = geometry.channels * geometry.groups * geometry.taps * ITEM
    most = max(min(COLUMN_BYTES // column, MAX_WINDOWS), LEAST_WINDOWS)
    parts = -(-windows // most)
    if shared and geometry.images % threads.count:
        parts = -(-parts // threads.count) * threads.count
    return _by_windows(geometry, posts, threads, -(-windows // parts))


COMPILERS = {"Convolution-1": compile_convolution}


def _grouped(array: Array, groups: int) -> Array:
    """[groups * rows, columns] as [groups, rows, columns]."""
    return array.reshape(groups, -1, array.shape[-1])


def _product(filters: Array, columns: Array, output: Array) -> Call:
    """One call for [groups, features, inner] x [groups, inner, windows], without the axis of one group."""
    if len(filters) == 1:
        return partial(np.matmul, filters[0], columns[0], output[0])
    return partial(np.matmul, filters, columns, output)


def _pointwise(geometry: Geometry, posts: Posts, threads: Threads) -> Compiled:
    """A kernel of one tap that stops everywhere: the data are the columns."""
    total, windows = geometry.features * geometry.groups, prod(geometry.windows)
    wanted = -(-threads.pieces(geometry.images * geometry.operations / PRODUCT_SPEED) // geometry.images)
    if geometry.groups > 1 or windows >= FLAT * total:
        pieces = [(slice(0, total), cut) for cut in cuts(windows, wanted, 16)]
    else:
        pieces = [(cut, slice(0, windows)) for cut in cuts(total, wanted, 4)]

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        filters = inputs[1].reshape(geometry.groups, geometry.features, -1)
        columns = inputs[0].reshape(geometry.images, geometry.groups, geometry.channels, windows)
        output = outputs[0].reshape(geometry.images, total, windows)
        on = posts.bind(inputs, output)
        calls = []
        for image in range(geometry.images):
            for rows, cut in pieces:
                part = _grouped(output[image, rows], geometry.groups)[..., cut]
                own = filters if geometry.groups > 1 else filters[:, rows]
                calls.append(
                    chain(
                        [
                            _product(own, columns[image, ..., cut], part),
                            *posts.within(on, (slice(image, image + 1), rows, cut)),
                        ]
                    )
                )
        return threads.call(calls)

    return Compiled(bind)


class _Room:
    """Where the frame, `covered` elements a channel, and the columns of blocks of such shapes lie in a scratch."""

    def __init__(self, geometry: Geometry, shapes: Sequence[Sequence[int]]) -> None:
        axes, channels = geometry.axes, geometry.channels * geometry.groups
        covered = [prod(axis.covered(count) for axis, count in zip(axes, shape, strict=True)) for shape in shapes]
        self.covered = max(covered) if any(axis.padded for axis in axes) else 0
        self.frame = aligned(channels * self.covered * ITEM)
        columns = aligned(channels * geometry.taps * max(map(prod, shapes)) * ITEM)
        self.bytes = self.frame + columns


def _patches(frame: Array, axes: Sequence[Axis], counts: Sequence[int]) -> Array:
    """A view [channels, *kernel, *counts] of the first windows of a frame [channels, *spatial]."""
    strides = frame.strides[1:]
    seen: Array = view(
        frame,
        (len(frame), *(axis.kernel for axis in axes), *counts),
        (
            frame.strides[0],
            *(stride * axis.dilation for stride, axis in zip(strides, axes, strict=True)),
            *(stride * axis.stride for stride, axis in zip(strides, axes, strict=True)),
        ),
    )
    return seen


def _columns(data: Array, axes: Sequence[Axis], block: Sequence[slice], frame: Array, columns: Array) -> list[Call]:
    """Calls that copy the windows `block` of data [channels, *spatial] into columns [channels, taps, windows]."""
    counts = lengths(block)
    target = columns.reshape(len(data), *(axis.kernel for axis in axes), *counts)
    if not any(axis.padded for axis in axes):
        first = tuple(slice(cut.start * axis.stride, None) for axis, cut in zip(axes, block, strict=True))
        return [partial(np.copyto, target, _patches(data[(slice(None), *first)], axes, counts))]
    shape = [axis.covered(count) for axis, count in zip(axes, counts, strict=True)]
    frame = frame[: len(data) * prod(shape)].reshape(len(data), *shape)
    elements, places = places_of(axes, block)
    return [
        partial(frame.fill, 0),
        partial(np.copyto, frame[places], data[elements]),
        partial(np.copyto, target, _patches(frame, axes, counts)),
    ]


def _by_windows(geometry: Geometry, posts: Posts, threads: Threads, step: int) -> Compiled:
    """Every piece copies the columns of its windows, then multiplies them by all filters."""
    total, channels = geometry.features * geometry.groups, geometry.channels * geometry.groups
    pieces = [(image, block) for image in range(geometry.images) for block in blocks(geometry.windows, step)]
    room = _Room(geometry, [lengths(block) for _, block in pieces])
    shared = threads.pieces(geometry.images * geometry.operations / PRODUCT_SPEED) > 1

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        filters = inputs[1].reshape(geometry.groups, geometry.features, -1)
        output = outputs[0].reshape(geometry.images, total, -1)
        on = posts.bind(inputs, output)

        def steps(piece: tuple[int, tuple[slice, ...]], own: Array) -> list[Call]:
            image, block = piece
            cut = _flat(geometry.windows, block)
            columns = own[room.frame // ITEM :][: channels * geometry.taps * (cut.stop - cut.start)]
            columns = columns.reshape(channels * geometry.taps, -1)
            part = _grouped(output[image], geometry.groups)[..., cut]
            return [
                *_columns(inputs[0][image], geometry.axes, block, own, columns),
                _product(filters, _grouped(columns, geometry.groups), part),
                *posts.within(on, (slice(image, image + 1), slice(0, total), cut)),
            ]

        return threads.each(pieces, steps, scratch, room.bytes, shared=shared, blas=True)

    return Compiled(bind, (threads.count if shared else 1) * room.bytes)


def _flat(windows: Sequence[int], block: Sequence[slice]) -> slice:
    """The windows of a block, which is cut along the first axes, as a range of all windows in order."""
    start = count = 0
    for size, cut in zip(windows, block, strict=True):
        start = start * size + cut.start
        count = (count or 1) * (cut.stop - cut.start)
    return slice(start, start + count)


def _by_features(geometry: Geometry, posts: Posts, threads: Threads) -> Compiled:
    """For few windows: the columns of an image are copied by all threads, then each has some of the filters."""
    total, channels, windows = geometry.features * geometry.groups, geometry.channels, prod(geometry.windows)
    inputs_cut = cuts(channels * geometry.groups, threads.count)
    if geometry.groups > 1:
        features = [(cut, slice(None)) for cut in cuts(geometry.groups, threads.count)]
    else:
        features = [(slice(0, 1), cut) for cut in cuts(total, threads.count, 4)]
    block = tuple(slice(0, count) for count in geometry.windows)
    room = _Room(geometry, [geometry.windows])

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        filters = inputs[1].reshape(geometry.groups, geometry.features, -1)
        output = outputs[0].reshape(geometry.images, total, windows)
        on = posts.bind(inputs, output)
        frame = scratch[: channels * geometry.groups * room.covered * ITEM].view(np.float32)
        frame = frame.reshape(channels * geometry.groups, room.covered)
        columns = scratch[room.frame :].view(np.float32)[: channels * geometry.groups * geometry.taps * windows]
        columns = columns.reshape(channels * geometry.groups, -1)
        calls: list[Call] = []
        for image in range(geometry.images):
            copies = [
                chain(_columns(inputs[0][image, cut], geometry.axes, block, frame[cut].reshape(-1), columns[cut]))
                for cut in inputs_cut
            ]
            matrices = columns.reshape(geometry.groups, -1, windows)
            products: list[Call] = []
            for group, rows in features:
                part = _grouped(output[image], geometry.groups)[group, rows]
                first = group.start * geometry.features + (rows.start or 0)
                cut = slice(first, first + part.shape[0] * part.shape[1])
                product = _product(filters[group, rows], matrices[group], part)
                products.append(chain([product, *posts.within(on, (slice(image, image + 1), cut, slice(0, windows)))]))
            calls += [threads.call(copies), threads.call(products)]
        return chain(calls)

    return Compiled(bind, room.bytes)
