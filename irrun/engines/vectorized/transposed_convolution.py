"""Transposed convolution: products of the filters with the data, each added where its window was."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.memory import ITEM, aligned
from irrun.engines.threads import PRODUCT_SPEED, Threads, cuts, lengths
from irrun.engines.vectorized.convolution import Geometry, geometry_of
from irrun.engines.vectorized.posts import Posts, posts_of
from irrun.engines.windows import Axis
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

BLOCK_BYTES = 4 << 20
"""What the products and sums of a block of features may take, if they are more than those of one feature."""


def compile_transposed(work: Work, threads: Threads) -> Compiled | None:
    """ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1 of f32; filters [*groups, channels, features, ...].

    The axes are those of the convolution that would make the data out of the output.
    """
    geometry, posts = geometry_of(work), posts_of(work)
    if geometry is None or posts is None or not is_dense(work.required(1)[0]):
        return None
    return _compiled(geometry, posts, threads)


COMPILERS = {
    "ConvolutionBackpropData-1": compile_transposed,
    "GroupConvolutionBackpropData-1": compile_transposed,
}


def _compiled(geometry: Geometry, posts: Posts, threads: Threads) -> Compiled:
    windows, axes = prod(geometry.windows), geometry.axes
    spread = [max(axis.covered(axis.windows), axis.begin + axis.size) for axis in axes]
    each = (geometry.taps * windows + prod(spread)) * ITEM
    wanted = threads.pieces(geometry.images * geometry.operations / PRODUCT_SPEED)
    most = max(-(-geometry.features * each // BLOCK_BYTES), -(-wanted // geometry.groups))
    blocks = cuts(geometry.features, most)
    pieces = list(combinations(range(geometry.images), range(geometry.groups), blocks))
    room = aligned(max(lengths(blocks)) * each)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        data, filters = inputs[:2]
        weights = filters.reshape(geometry.groups, geometry.channels, geometry.features, geometry.taps)
        columns = data.reshape(geometry.images, geometry.groups, geometry.channels, windows)
        on = posts.bind(inputs, outputs[0])

        def steps(piece: tuple[int, int, slice], own: Array) -> list[Call]:
            image, group, block = piece
            features = slice(group * geometry.features + block.start, group * geometry.features + block.stop)
            rows = block.stop - block.start
            products = own[: rows * geometry.taps * windows].reshape(rows * geometry.taps, windows)
            sums = own[products.size :][: rows * prod(spread)].reshape(rows, *spread)
            left = weights[group][:, block].reshape(geometry.channels, -1).T
            inside = tuple(slice(axis.begin, axis.begin + axis.size) for axis in axes)
            return [
                partial(np.matmul, left, columns[image, group], products),
                partial(sums.fill, 0),
                *_added(products.reshape(rows, geometry.taps, *geometry.windows), sums, axes),
                partial(np.copyto, outputs[0][image, features], sums[(slice(None), *inside)]),
                *on((slice(image, image + 1), features)),
            ]

        return threads.each(pieces, steps, scratch, room, shared=wanted > 1, blas=True)

    return Compiled(bind, (threads.count if wanted > 1 else 1) * room)


def _added(products: Array, sums: Array, axes: Sequence[Axis]) -> list[Call]:
    """Calls that add products [features, taps, *windows] to sums [features, *spread]."""
    calls: list[Call] = []
    for number, tap in enumerate(combinations(*(range(axis.kernel) for axis in axes))):
        places = [
            slice(k * axis.dilation, k * axis.dilation + (axis.windows - 1) * axis.stride + 1, axis.stride)
            for k, axis in zip(tap, axes, strict=True)
        ]
        target = sums[(slice(None), *places)]
        calls.append(partial(np.add, target, products[:, number], target))
    return calls
