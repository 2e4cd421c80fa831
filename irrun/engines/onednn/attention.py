"""Scaled dot product attention: scores, their softmax and the sums of values, a few heads at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np

from irrun.engines.axes import broadcast_strides, is_dense, merged
from irrun.engines.axes import dense_strides as dense
from irrun.engines.extents import view
from irrun.engines.memory import aligned
from irrun.engines.onednn.library import (
    DST,
    FEW_PRODUCTS,
    INFERENCE,
    POST,
    SRC,
    SRC_1,
    WEIGHTS,
    Layout,
    Library,
    Primitive,
)
from irrun.engines.onednn.posts import ADD, LINEAR, scalar
from irrun.engines.onednn.tensors import Sizes, is_dense_layout, lies_so, spread_layout
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.engines.work import Layout as AnyLayout
from irrun.spec.op import Array

_SOFTMAX = 0x30000
"""The algorithm that takes the largest element off first."""

MOST_OF_A_HEAD = 4 << 20
"""Bytes of the scores of one head: for more, an engine that never has all of them at once is quicker."""

MOST_SCORES = 16 << 20
"""Bytes of scores at a time, which must not be much more than a cache holds."""


@dataclass(frozen=True, slots=True)
class _Walks:
    """The strides of all tensors over [*batch, rows, columns]; those of `mask` are 0 where there is none."""

    query: Sizes
    key: Sizes
    value: Sizes
    mask: Sizes
    result: Sizes


@dataclass(frozen=True, slots=True)
class _Sizes:
    """[*batch, rows, size] times [*batch, size, keys], and that times [*batch, keys, width]."""

    batch: Sizes
    rows: int
    keys: int
    size: int
    width: int


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The primitives of one part of the scores, and the layouts of their arguments."""

    scores: Primitive
    softmax: Primitive
    sums: Primitive
    layouts: Sequence[Layout]

    @property
    def scratch(self) -> int:
        return max(self.scores.scratch, self.softmax.scratch, self.sums.scratch)

    def bind(self, arrays: Arrays, weights: Array, scratch: Array) -> list[Call]:
        """Calls for query, key, value, mask and result, in memory for weights."""
        query, key, value, mask, result, score, rows = self.layouts
        first, second, third, added, written = arrays
        read = [(SRC, query, first), (WEIGHTS, key, second), (DST, score, weights)]
        if added is not None:
            read.append((2 * POST + SRC_1, mask, added))
        return [
            self.scores.bind(read, scratch),
            self.softmax.bind([(SRC, rows, weights), (DST, rows, weights)], scratch),
            self.sums.bind([(SRC, score, weights), (WEIGHTS, value, third), (DST, result, written)], scratch),
        ]


def compile(library: Library, work: Work) -> Compiled | None:
    """ScaledDotProductAttention-13 without a sink. The result comes with the heads next to their elements."""
    query, key, value = work.required(3)
    mask, scale, sink = (work.optional(number) for number in (3, 4, 5))
    factor = query.shape[-1] ** -0.5 if scale is None else scalar(scale)
    if 4 * query.shape[-2] * key.shape[-2] > MOST_OF_A_HEAD:
        return None
    if factor is None or sink is not None or work.posts:
        return None
    if any(own.layout is not None or own.type != "f32" or 0 in own.strides[-2:] for own in (query, key, value)):
        return None
    result = work.outputs[0].shape
    sizes = _Sizes(result[:-2], query.shape[-2], key.shape[-2], query.shape[-1], value.shape[-1])
    added = _added(mask, sizes, causal=bool(work.attrs["causal"]))
    if added is not None and (added.layout is not None or added.type not in ("f32", "boolean")):
        return None
    if added is not None and added.value is not None and len(result) == 4 and result[0] > 1:
        # one that is the same for all of a batch but not for all rows is not known to oneDNN
        own = np.broadcast_to(added.value, np.broadcast_shapes(added.value.shape, (result[0], 1, 1, 1))).copy()
        added = Operand("f32", own.shape, own.strides, own)
    batch, walks = _walks(sizes, (query, key, value), added, result)
    given = library.strided(result, _heads_inside(result))
    assert given is not None

    parts = list(_parts(batch, sizes))
    kernels: dict[Sizes, _Kernel] = {}
    for heads, rows in parts:
        some = _Sizes((*batch[:-1], _length(heads)), _length(rows), sizes.keys, sizes.size, sizes.width)
        shape = (*some.batch, some.rows)
        kernel = kernels.get(shape) or _kernel(library, some, walks, factor, masked=added is not None)
        if kernel is None:
            return None
        kernels[shape] = kernel
    room = aligned(max(prod(shape) for shape in kernels) * sizes.keys * 4)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        first, buffer = _mask_calls(added, inputs[3] if len(inputs) > 3 else None)
        given = (*inputs[:3], buffer, outputs[0].view(np.float32))
        lines, keys = sizes.rows, sizes.keys
        ends = ((lines, sizes.size), (sizes.size, keys), (keys, sizes.width), (lines, keys), (lines, sizes.width))
        steps = (walks.query, walks.key, walks.value, walks.mask, walks.result)
        views = [
            None if array is None else view(array, (*batch, *end), own)
            for array, end, own in zip(given, ends, steps, strict=True)
        ]
        calls = first
        for heads, rows in parts:
            all = slice(None)
            cuts = [(..., heads, all if number in (1, 2) else rows, all) for number in range(5)]
            arrays = [None if view is None else view[cut] for view, cut in zip(views, cuts, strict=True)]
            kernel = kernels[*batch[:-1], _length(heads), _length(rows)]
            calls += kernel.bind(arrays, scratch[:room], scratch[room:])
        return chain(calls)

    gives: dict[int, AnyLayout] = {} if lies_so(work.outputs[0], given) else {0: given}
    taken = frozenset({3} if mask is not None and (added is None or added.value is not None) else ())
    return Compiled(bind, room + max(kernel.scratch for kernel in kernels.values()), {}, gives, taken)


def _added(mask: Operand | None, sizes: _Sizes, *, causal: bool) -> Operand | None:
    """What is added to the scores; where that is known, it has a value of numbers."""
    if causal:
        hidden = np.arange(sizes.keys) > np.arange(sizes.rows)[:, None]
        value = np.where(hidden, np.float32(-inf), np.float32(0))
        return Operand("f32", value.shape, value.strides, value)
    if mask is None or not mask.shape:
        return None
    if mask.value is None:
        return mask
    once = mask.value[tuple(slice(0, 1 if step == 0 else None) for step in mask.strides[:-2])]  # all heads alike
    value = np.where(once, np.float32(0), np.float32(-inf)) if mask.type == "boolean" else np.ascontiguousarray(once)
    return Operand(mask.type if mask.type != "boolean" else "f32", value.shape, value.strides, value)


def _mask_calls(added: Operand | None, given: Any) -> tuple[list[Call], Array | None]:
    """What makes the array that is added to the scores of booleans or of a view, which is made dense, and the array."""
    if added is None:
        return [], None
    if added.value is not None:
        return [], added.value
    if _is_read(added):
        return [], given
    buffer = np.empty(added.shape, np.float32)
    if added.type == "f32":
        return [partial(np.copyto, buffer, given)], buffer
    return [partial(buffer.fill, -inf), partial(np.copyto, buffer, 0, where=given)], buffer


def _is_read(added: Operand) -> bool:
    return added.type == "f32" and is_dense(added)


def _walks(sizes: _Sizes, operands: Sequence[Operand], added: Operand | None, result: Sizes) -> tuple[Sizes, _Walks]:
    """The axes of batches and heads, as few as can be, and the strides of all tensors over them."""
    query, key, value = (broadcast_strides(own, (*sizes.batch, *own.shape[-2:])) for own in operands)
    mask = (0,) * len(result)
    if added is not None:
        steps = added.strides if _is_read(added) else dense(added.shape)
        mask = broadcast_strides(Operand("f32", added.shape, steps), (*sizes.batch, sizes.rows, sizes.keys))
    written = _heads_inside(result)
    scores = dense((*sizes.batch, sizes.rows, sizes.keys))
    walks = (query, (*key[:-2], key[-1], key[-2]), value, mask, written)
    batch, outer = merged(sizes.batch, [own[:-2] for own in (*walks, scores)])
    if not batch:
        batch, outer = (1,), [(0,)] * 6
    if len(batch) == 1:  # a mask that is the same for all heads is known in this form only
        batch, outer = (1, *batch), [(0, *own) for own in outer]
    return batch, _Walks(*((*new, *own[-2:]) for new, own in zip(outer[:5], walks, strict=True)))


def _heads_inside(shape: Sizes) -> Sizes:
    """Strides for [N, heads, rows, width] that lies as [N, rows, heads, width], which is what follows wants."""
    steps = dense(shape)
    if len(shape) != 4:
        return steps
    moved = dense((shape[0], shape[2], shape[1], shape[3]))
    return moved[0], moved[2], moved[1], moved[3]


def _parts(batch: Sizes, sizes: _Sizes) -> Iterator[tuple[slice, slice]]:
    """Slices of the heads and of the rows that have few enough scores."""
    row = sizes.keys * 4 * prod(batch[:-1])
    heads = min(max(MOST_SCORES // (row * sizes.rows), 1), batch[-1])
    rows = min(max(MOST_SCORES // row, 1), sizes.rows) if heads == 1 else sizes.rows
    for head in range(0, batch[-1], heads):
        for first in range(0, sizes.rows, rows):
            yield slice(head, min(head + heads, batch[-1])), slice(first, min(first + rows, sizes.rows))


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _kernel(library: Library, sizes: _Sizes, walks: _Walks, factor: float, *, masked: bool) -> _Kernel | None:
    shape = (*sizes.batch, sizes.rows, sizes.keys)
    layouts = [
        spread_layout(library, (*sizes.batch, sizes.rows, sizes.size), walks.query),
        spread_layout(library, (*sizes.batch, sizes.size, sizes.keys), walks.key),
        spread_layout(library, (*sizes.batch, sizes.keys, sizes.width), walks.value),
        spread_layout(library, shape, walks.mask),
        spread_layout(library, (*sizes.batch, sizes.rows, sizes.width), walks.result),
        library.dense(shape),
        library.dense((prod(shape[:-1]), sizes.keys)),
    ]
    known = [layout for layout in layouts if layout is not None]
    if len(known) < len(layouts):
        return None
    query, key, value, mask, result, score, rows = known
    if masked and not is_dense_layout(mask):
        return None
    posts: list[tuple[object, ...]] = [("eltwise", LINEAR, factor, 0.0)]
    if masked:
        posts.append(("binary", ADD, mask))
    small = prod(shape) * sizes.size < FEW_PRODUCTS
    scores = library.primitive("matmul", query, key, None, score, posts=posts, small=small)
    softmax = library.primitive("softmax_forward", INFERENCE, _SOFTMAX, rows, rows, 1, small=small)
    sums = library.primitive("matmul", score, value, None, result, small=small)
    if scores is None or softmax is None or sums is None:
        return None
    return _Kernel(scores, softmax, sums, known)


COMPILERS = {"ScaledDotProductAttention-13": compile}
