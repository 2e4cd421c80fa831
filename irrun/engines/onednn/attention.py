"""Scaled dot product attention: scores, their softmax and the sums of values, a few heads at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np

from irrun.engines.axes import Sizes, broadcast_strides, is_dense, matrix_of, merged
from irrun.engines.axes import dense_strides as dense
from irrun.engines.extents import view
from irrun.engines.heads import dense_mask, heads_inside, mask_of, with_blind_rows
from irrun.engines.memory import aligned
from irrun.engines.onednn.library import (
    DST,
    FEW_PRODUCTS,
    INFERENCE,
    POST,
    SRC,
    SRC_1,
    TILED,
    WEIGHTS,
    Descriptor,
    Library,
    Primitive,
)
from irrun.engines.onednn.normalization import SOFTMAX
from irrun.engines.onednn.posts import ADD, LINEAR, MIN, scalar
from irrun.engines.onednn.tensors import FLOATS, given_as, is_dense_layout, pending_of, spread_layout
from irrun.engines.work import MASKED, Arrays, Call, Compiled, Operand, Work, chain
from irrun.records import NamedTuple
from irrun.spec.op import Array

MAX_OF_A_HEAD = 4 << 20
"""Bytes of the scores of one head, if some are hidden: for more, an engine that does not compute those is quicker."""

LEAST_ROWS = 32
"""Of each head, to be worth taking all of them together."""

MAX_SCORES = {"f32": 16 << 20, "bf16": 2 << 20}
"""Bytes of scores at a time, which must not be much more than a cache holds."""


class _Kernel(NamedTuple):
    """The primitives of one part of the scores, and the layouts of their arguments."""

    scores: Primitive
    softmax: Primitive
    sums: Primitive
    layouts: Sequence[Descriptor]

    @property
    def scratch(self) -> int:
        return max(self.scores.scratch, self.softmax.scratch, self.sums.scratch)

    @property
    def leaves_tiles(self) -> bool:
        """Whether scores are not products of tiles although the processor multiplies these, as where keys are many:
        then heads are done sooner one by one, fewer rows at a time."""
        return TILED in self.sums.implementation and TILED not in self.scores.implementation

    @property
    def room(self) -> int:
        """Bytes for the scores, and for weights of another type behind them."""
        score, weight = self.layouts[5:7]
        return aligned(score.nbytes) + (aligned(weight.nbytes) if weight.type != score.type else 0)

    def bind(self, arrays: Arrays, room: Array, scratch: Array) -> list[Call]:
        """Calls for query, key, value, mask and result, in `room`."""
        query, key, value, mask, result, score, weight, rows, softened = self.layouts
        first, second, third, added, written = arrays
        scores = weights = room[: score.nbytes]
        if weight.type != score.type:
            weights = room[aligned(score.nbytes) :]
        read = [(SRC, query, first), (WEIGHTS, key, second), (DST, score, scores)]
        if added is not None:
            read.append((2 * POST + SRC_1, mask, added))
        return [
            self.scores.bind(read, scratch),
            self.softmax.bind([(SRC, rows, scores), (DST, softened, weights)], scratch),
            self.sums.bind([(SRC, weight, weights), (WEIGHTS, value, third), (DST, result, written)], scratch),
        ]


def compile(library: Library, work: Work) -> Compiled | None:
    """ScaledDotProductAttention-13 without a sink. The result comes with the heads next to their elements."""
    query, key, value = work.required(3)
    mask, scale, sink = (work.optional(number) for number in (3, 4, 5))
    factor = query.shape[-1] ** -0.5 if scale is None else scalar(scale)
    hiding = bool(work.attrs["causal"]) or mask_of(work) is not None
    if hiding and query.type == "f32" and 4 * query.shape[-2] * key.shape[-2] > MAX_OF_A_HEAD:
        return None
    if factor is None or sink is not None or work.posts or not key.shape[-2]:
        return None
    if any(own.layout is not None or own.type not in FLOATS or 0 in own.strides[-2:] for own in (query, key, value)):
        return None
    result = work.outputs[0].shape
    causal = bool(work.attrs["causal"])
    added = _bounds(query.shape[-2], key.shape[-2]) if causal else _added(mask)
    if added is not None and (added.layout is not None or added.type not in (*FLOATS, "boolean")):
        return None
    if added is not None and added.value is not None and len(result) == 4 and result[0] > 1:
        # one that is the same for all of a batch but not for all rows is not known to oneDNN
        own = np.broadcast_to(added.value, np.broadcast_shapes(added.value.shape, (result[0], 1, 1, 1))).copy()
        added = Operand(added.type, own.shape, own.strides, own)
    tensors = _walked(query, key, value, added, work.outputs[0])
    heads, row = tensors[0].strides[-3:-1]
    masking = None if added is None else MIN if causal else ADD
    parts = list(_parts(tensors[3].shape, MAX_SCORES[query.type], inside=heads < row))
    kernels = _kernels(library, tensors, parts, factor, masking)
    if kernels is not None and any(kernel.leaves_tiles for kernel in kernels.values()):
        parts = list(_parts(tensors[3].shape, MAX_SCORES[query.type] // 2, inside=False))
        kernels = _kernels(library, tensors, parts, factor, masking)
    if kernels is None:
        return None
    room = max(kernel.room for kernel in kernels.values())

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        calls, buffer = _mask_calls(added, inputs[3] if len(inputs) > 3 else None)
        given = (*inputs[:3], buffer, outputs[0])
        views = [
            None if array is None else view(array, own.shape, own.strides)
            for array, own in zip(given, tensors, strict=True)
        ]
        for part in parts:
            batch, heads, rows = part
            cuts = [(batch, ..., heads, slice(None) if number in (1, 2) else rows, slice(None)) for number in range(5)]
            arrays = [None if view is None else view[cut] for view, cut in zip(views, cuts, strict=True)]
            kernel = kernels[_size(part)]
            calls += kernel.bind(arrays, scratch[:room], scratch[room:])
        return chain(calls)

    gives = given_as(work, library.strided(result, heads_inside(work.outputs[0]), work.outputs[0].type))
    taken = frozenset({3} if mask is not None and (added is None or added.value is not None) else ())
    scratch = max(kernel.scratch for kernel in kernels.values())
    primitives = [own for kernel in kernels.values() for own in (kernel.scores, kernel.softmax, kernel.sums)]
    made = Compiled(bind, room + scratch, {}, gives, taken, pending=partial(pending_of, primitives))
    return with_blind_rows(work, made)


def _bounds(rows: int, keys: int) -> Operand:
    """The most that each score may be where row i sees the keys up to i, which hides a NaN behind them, too."""
    hidden = np.arange(keys) > np.arange(rows)[:, None]
    value = np.where(hidden, np.float32(-inf), np.float32(inf))
    return Operand("f32", value.shape, value.strides, value)


def _added(mask: Operand | None) -> Operand | None:
    """What is added to the scores; where that is known, it has a value of numbers."""
    if mask is None or not mask.shape:
        return None
    if mask.value is None:
        return mask
    value = dense_mask(mask.value)
    if mask.type == "boolean":
        value = np.where(value, np.float32(0), MASKED)
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
    if added.type in FLOATS:
        return [partial(np.copyto, buffer, given)], buffer
    return [partial(buffer.fill, MASKED), partial(np.copyto, buffer, 0, where=given)], buffer


def _is_read(added: Operand) -> bool:
    return added.type in FLOATS and is_dense(added)


def _walked(query: Operand, key: Operand, value: Operand, added: Operand | None, result: Operand) -> list[Operand]:
    """Query, transposed key, value, mask and result over [*batch, rows, columns], with as few axes as can be.

    The strides of the mask are 0 where there is none.
    """
    outer = result.shape[:-2]
    scores = (*outer, query.shape[-2], key.shape[-2])
    mask = Operand("f32", (), ())
    if added is not None:
        mask = added if _is_read(added) else Operand("f32", added.shape, dense(added.shape))
    key = matrix_of(key, transposed=True, row=False)
    shapes = [*((*outer, *own.shape[-2:]) for own in (query, key, value)), scores, result.shape, scores]
    tensors = (query, key, value, mask, Operand(result.type, result.shape, heads_inside(result)))
    steps = [broadcast_strides(own, shape) for own, shape in zip(tensors, shapes, strict=False)]
    batch, moved = merged(outer, [own[:-2] for own in (*steps, dense(scores))])
    if not batch:
        batch, moved = (1,), [(0,)] * 6
    if len(batch) == 1:  # a mask that is the same for all heads is known in this form only
        batch, moved = (1, *batch), [(0, *own) for own in moved]
    walked = zip(shapes, moved, steps, strict=False)
    types = [own.type for own in tensors]
    return [
        Operand(type, (*batch, *shape[-2:]), (*ahead, *own[-2:]))
        for type, (shape, ahead, own) in zip(types, walked, strict=False)
    ]


def _parts(shape: Sizes, bytes: int, *, inside: bool) -> Iterator[tuple[slice, slice, slice]]:
    """Slices of the batch, the heads and the rows that have few enough of the scores [batch, ..., heads, rows, keys].

    Where the heads lie `inside` of rows, they are taken all together, for which oneDNN has its quickest code, or one by
    one where these would be few rows of each.
    """
    batch, *_, heads, rows, keys = shape
    line = 4 * keys * prod(shape[1:-3])
    several = max(bytes // (line * rows * heads), 1)
    together = line * rows * heads <= bytes or (inside and bytes >= LEAST_ROWS * line * heads)
    some = heads if together else 1 if inside else min(max(bytes // (line * rows), 1), heads)
    lines = min(max(bytes // (line * some), 1), rows)
    lines = -(-rows // -(-rows // lines))  # as many in each part, about
    for element in range(0, batch, several):
        for head in range(0, heads, some):
            for first in range(0, rows, lines):
                yield (
                    slice(element, min(element + several, batch)),
                    slice(head, min(head + some, heads)),
                    slice(first, min(first + lines, rows)),
                )


def _size(part: Sequence[slice]) -> Sizes:
    return tuple(cut.stop - cut.start for cut in part)


def _kernels(
    library: Library,
    tensors: Sequence[Operand],
    parts: Sequence[Sequence[slice]],
    factor: float,
    masking: int | None,
) -> dict[Sizes, _Kernel] | None:
    """The primitives for parts, by their sizes; None where there are none for some."""
    made: dict[Sizes, _Kernel] = {}
    for size in {*map(_size, parts)}:
        kernel = _kernel(library, tensors, size, factor, masking)
        if kernel is None:
            return None
        made[size] = kernel
    return made


def _kernel(
    library: Library, tensors: Sequence[Operand], size: Sizes, factor: float, masking: int | None
) -> _Kernel | None:
    """The primitives for a part of `size` of the tensors, which are those of `_walked`.

    `masking` says what scores and mask make: their sum, or their minimum, which for a NaN is the mask. A score of
    infinity makes NaN of its row, as a NaN does.
    """
    batch, heads, rows = size
    sizes = [
        (batch, *own.shape[1:-3], heads, own.shape[-2] if n in (1, 2) else rows, own.shape[-1])
        for n, own in enumerate(tensors)
    ]
    shape, weights = sizes[3], tensors[2].type
    layouts = [
        *(spread_layout(library, own, tensor.strides, tensor.type) for own, tensor in zip(sizes, tensors, strict=True)),
        library.dense(shape),
        library.dense(shape, weights),
        library.dense((prod(shape[:-1]), shape[-1])),
        library.dense((prod(shape[:-1]), shape[-1]), weights),
    ]
    known = [layout for layout in layouts if layout is not None]
    if len(known) < len(layouts):
        return None
    query, key, value, mask, result, score, weight, lines, softened = known
    if masking is not None and not is_dense_layout(mask):
        return None
    posts: list[tuple[object, ...]] = [("eltwise", LINEAR, factor, 0.0)]
    if masking is not None:
        posts.append(("binary", masking, mask))
    small = prod(shape) * tensors[0].shape[-1] < FEW_PRODUCTS
    scores = library.primitive("matmul", query, key, None, score, posts=posts, small=small)
    softmax = library.primitive("softmax_forward", INFERENCE, SOFTMAX, lines, softened, 1, small=small)
    sums = library.primitive("matmul", weight, value, None, result, small=small)
    if scores is None or softmax is None or sums is None:
        return None
    return _Kernel(scores, softmax, sums, known)


COMPILERS = {"ScaledDotProductAttention-13": compile}
