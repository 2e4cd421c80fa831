"""Transposed convolution: products of the filters with the data, each added where its window was."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product as combinations
from math import prod

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.vectorized.posts import Posts, chain, posts_of
from irrun.engines.vectorized.threads import PRODUCT_SPEED, Threads, cuts
from irrun.engines.vectorized.windows import Geometry
from irrun.engines.windows import Axis, transposed_axes_of
from irrun.engines.work import Call, Compiled, Work
from irrun.spec.op import Array

ITEM = 4
"""Bytes of an f32."""

BLOCK_BYTES = 4 << 20
"""What the products and sums of a block of features may take, if they are more than those of one feature."""


def compile_transposed(work: Work, threads: Threads) -> Compiled | None:
    """ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1 of f32; filters [*groups, channels, features, ...].

    The axes are those of the convolution that would make the data out of the output.
    """
    (data, filters), output = work.inputs[:2], work.outputs[0]
    if data is None or filters is None or any(tensor.type != "f32" for tensor in (data, filters, output)):
        return None
    if not is_dense(data) or not is_dense(filters):
        return None
    shape = filters.shape if work.name.startswith("Group") else (1, *filters.shape)
    groups, channels, features = shape[:3]
    axes = transposed_axes_of(work, shape[3:])
    posts = posts_of(work)
    if posts is None:
        return None
    return _compiled(Geometry(data.shape[0], groups, channels, features, tuple(axes)), posts, threads)


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
    room = -(-max(block.stop - block.start for block in blocks) * each // 64) * 64
    count = threads.count if wanted > 1 else 1

    def bind(inputs: Sequence[Array | None], outputs: Sequence[Array], scratch: Array | None) -> Call:
        data, filters = inputs[:2]
        assert data is not None
        assert filters is not None
        assert scratch is not None
        weights = filters.reshape(geometry.groups, geometry.channels, geometry.features, geometry.taps)
        columns = data.reshape(geometry.images, geometry.groups, geometry.channels, windows)
        on = posts.bind(inputs, outputs[0]) if posts else None
        calls: list[list[Call]] = []
        for thread in range(count):
            own = scratch[thread * room :].view(np.float32)
            calls.append([])
            for image, group, block in pieces:
                features = slice(group * geometry.features + block.start, group * geometry.features + block.stop)
                rows = block.stop - block.start
                products = own[: rows * geometry.taps * windows].reshape(rows * geometry.taps, windows)
                sums = own[products.size :][: rows * prod(spread)].reshape(rows, *spread)
                left = weights[group][:, block].reshape(geometry.channels, -1).T
                steps: list[Call] = [partial(np.matmul, left, columns[image, group], products), partial(sums.fill, 0)]
                steps += _added(products.reshape(rows, geometry.taps, *geometry.windows), sums, axes)
                inside = tuple(slice(axis.begin, axis.begin + axis.size) for axis in axes)
                steps.append(partial(np.copyto, outputs[0][image, features], sums[(slice(None), *inside)]))
                if on is not None:
                    steps.append(on((slice(image, image + 1), features)))
                calls[-1].append(chain(steps))
        if count == 1:
            return threads.alone(chain(calls[0]))
        return partial(threads.run, lambda piece, thread: calls[thread][piece](), len(pieces))

    return Compiled(bind, count * room)


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
