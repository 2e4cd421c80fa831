"""Transposed convolutions whose windows lie side by side in the result, as products of matrices.

Where strides are as long as the kernel each element of the result is of one window. With the channels last a row of
windows is a matrix, and its product with the taps of a row of the kernel is a row of the result, of which every so many
are of the same row of the kernel. To make such products of new sizes takes a tenth of the time that oneDNN needs for a
transposed convolution, and they are about as quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import unless_so
from irrun.engines.onednn.library import BIAS, DST, FEW_PRODUCTS, SRC, WEIGHTS, Library
from irrun.engines.onednn.posts import DOUBTFUL, bias, chain
from irrun.engines.onednn.tensors import channels_last, given_as, packed
from irrun.engines.windows import transposed_axes_of
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.engines.work import chain as chain_calls
from irrun.spec.op import Array

MAX_WEIGHTS = 1 << 20
"""Bytes of the weights of a product, which are read for each row of windows: more do not stay in the cache."""


def compile(library: Library, work: Work) -> Compiled | None:
    """A transposed convolution of f32 without overlaps, groups or cropping, for sizes that may be others soon."""
    if not _is_of_tiles(work):
        return None
    (data, filters), result = work.required(2), work.outputs[0]
    value, grouped = filters.value, work.name.startswith("Group")
    assert value is not None
    channels, outputs, *kernel = filters.shape[grouped:]
    columns = kernel[-1] * outputs
    added = bias(work, 1)
    posts = chain(work.posts[added is not None :], work, lambda _: None)
    if posts is None or posts.inputs or posts.constants or 4 * channels * columns > MAX_WEIGHTS:
        return None

    ahead = (data.shape[0] * data.shape[2], *data.shape[3:])
    ones = (1,) * (len(ahead) - 1)
    lying = channels_last(library, result.shape, "f32")
    assert lying.strides is not None
    steps = [step * size for step, size in zip(lying.strides[2:], kernel, strict=True)]
    source, target = library.dense((*ahead, channels)), library.strided((*ahead, columns), (*steps, 4))
    matrix, shift = library.dense((*ones, channels, columns)), library.dense((*ones, 1, columns))
    if target is None:
        return None
    primitive = library.primitive(
        "matmul",
        *(source, library.any(matrix.shape), None if added is None else shift, target),
        posts=posts.posts,
        small=prod(ahead) * channels * columns < FEW_PRODUCTS,
    )
    if primitive is None:
        return None
    places = list(np.ndindex(*kernel[:-1]))
    weights = [
        packed(library, value, matrix, primitive.layout(WEIGHTS), partial(_taps, grouped, place), number)
        for number, place in enumerate(places)
    ]

    def bind(inputs: Arrays, results: Sequence[Array], scratch: Any) -> Call:
        added_up = None
        if added is not None and (summand := inputs[added]) is not None:
            added_up = np.tile(summand.reshape(-1).astype(np.float32), kernel[-1])
        calls = []
        for place, own in zip(places, weights, strict=True):
            behind: list[Any] = [slice(start, None) for start in place]
            rows = results[0][(slice(None), slice(None), *behind)]
            arguments = [
                (SRC, source, inputs[0]),
                (WEIGHTS, primitive.layout(WEIGHTS), own.array()),
                (DST, target, rows),
            ]
            if added_up is not None:
                arguments.append((BIAS, shift, added_up))
            calls.append(primitive.bind(arguments, scratch))
        return chain_calls(calls)

    wants = unless_so(data, channels_last(library, data.shape, "f32"))
    doubtful = any(post.name in DOUBTFUL for post in work.posts)
    gives, taken = given_as(work, lying), frozenset({1})
    return Compiled(bind, primitive.scratch, wants, gives, taken, doubtful, pending=primitive.pending)


def _is_of_tiles(work: Work) -> bool:
    """Whether it is a transposed convolution of f32 with constant filters and one group, whose windows lie side by
    side and fill the result."""
    if "Backprop" not in work.name:
        return False
    (data, filters), grouped = work.required(2), work.name.startswith("Group")
    if filters.value is None or any(own.type != "f32" for own in (data, filters, *work.outputs)):
        return False
    if grouped and filters.shape[0] > 1:
        return False
    return all(
        axis.stride == axis.kernel
        and axis.begin == 0
        and axis.size == axis.windows * axis.kernel
        and (axis.kernel == 1 or axis.dilation == 1)
        for axis in transposed_axes_of(work, filters.shape[2 + grouped :])
    )


def _taps(grouped: bool, place: tuple[int, ...], filters: Array) -> Array:
    """Filters [channels, outputs, *kernel] of a row of the kernel as a matrix [channels, last axis * outputs]."""
    own = filters[0] if grouped else filters
    index: tuple[Any, ...] = (slice(None), slice(None), *place)
    rows = own[index]
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(len(rows), -1)
