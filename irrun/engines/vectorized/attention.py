"""Attention, a block of rows of scores at a time, so that the scores never leave the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.heads import blind, is_openable, may_be_blind, with_blind_rows
from irrun.engines.memory import ITEM, aligned
from irrun.engines.threads import PRODUCT_SPEED, Threads, blocks, lengths
from irrun.engines.vectorized.functions import EXPONENT, decay, exponential
from irrun.engines.vectorized.posts import posts_of
from irrun.engines.vectorized.products import direct
from irrun.engines.work import MASKED, Arrays, Call, Compiled, OpenCall, Work, chain
from irrun.records import NamedTuple
from irrun.spec.op import Array

BLOCK = 3 << 17
"""Scores in a block: few enough for the caches, and enough rows for BLAS."""

MAX_FEW = 8
"""Rows of a query that are few: to read the keys takes longer than to multiply them."""

SLOWER = 8
"""How much longer products of few rows take than those of many."""

SOFTMAX_SECONDS = 1.2e-9
"""What the softmax of one score takes, about."""

MANY = 64
"""Rows and keys from which on a mask is looked through for what it hides."""

NOTHING = 110.0
"""How far a score lies below the greatest one of its row where its weight is 0: exp(-104) is, in f32."""

LARGE = 1e6
"""Scores up to which sums with a mask are exact enough to tell that."""

Index = tuple[slice, ...]
Hide = Callable[[Index, Array], list[Call]]
"""Given an index of [*batch, rows] and its scores [*batch, rows, keys]: calls that hide some from the softmax."""


class _Shape(NamedTuple):
    """Sizes of an attention: query [*batch, rows, size], key [*batch, keys, size], value [*batch, keys, width]."""

    batch: tuple[int, ...]
    rows: int
    keys: int
    size: int
    width: int

    @property
    def seconds(self) -> float:
        """About how long one thread needs."""
        each = 2 * (self.size + self.width) / PRODUCT_SPEED + SOFTMAX_SECONDS
        return prod(self.batch) * self.rows * self.keys * each


def compile_attention(work: Work, threads: Threads) -> Compiled | None:
    """ScaledDotProductAttention-13 of f32 without a sink."""
    (query, key, value), output = work.required(3), work.outputs[0]
    mask, scale, sink = (work.optional(number) for number in (3, 4, 5))
    if sink is not None or any(own is not None and own.type != "f32" for own in (query, key, value, scale, output)):
        return None
    if not direct((key.shape, key.strides)) or not direct((value.shape, value.strides)):
        return None
    if work.attrs["causal"] or (mask is not None and not mask.shape):
        mask = None
    if mask is not None and mask.type not in ("f32", "boolean"):
        return None
    posts = posts_of(work)
    if posts is None or (work.posts and may_be_blind(work)):
        return None
    shape = _Shape(output.shape[:-2], query.shape[-2], key.shape[-2], query.shape[-1], output.shape[-1])
    wanted = threads.pieces(shape.seconds)
    share = -(-prod(shape.batch) * shape.rows // wanted)
    pieces = blocks((*shape.batch, shape.rows), max(min(BLOCK // shape.keys, share), 1))
    most = max(prod(lengths(piece)) for piece in pieces)
    room = aligned(most * (shape.keys + shape.size + 1) * ITEM)
    boolean = mask is not None and mask.type == "boolean"
    shared = aligned(prod(mask.shape) * (ITEM + 1)) if mask is not None and boolean else 0

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        query, key, value = (np.broadcast_to(own, (*shape.batch, *own.shape[-2:])) for own in inputs[:3])
        factor = inputs[4].reshape(()) if scale is not None else np.array(shape.size**-0.5, np.float32)
        first: list[Call] = []
        ends: Array | None = None
        hide: Hide | None = _future if work.attrs["causal"] else None
        if mask is not None:
            first, added = _additive(inputs[3], scratch) if boolean else ([], inputs[3])
            hide = partial(_masked, np.broadcast_to(added, (*shape.batch, shape.rows, shape.keys)))
            scores = shape.rows, shape.keys
            if min(scores) >= MANY and added.shape[-2:] == scores and prod(added.shape) == prod(scores):
                ends = np.empty(shape.rows, np.intp)
                shared_mask = added[(0,) * (added.ndim - 2)]
                first.append(partial(find_ends, ends, shared_mask, factor, query, key, value))
        on = posts.bind(inputs, outputs[0])

        def steps(piece: Index, own: Array) -> list[Call]:
            def block(end: int = shape.keys) -> list[Call]:
                seen = key[piece[:-1]][..., :end, :], value[piece[:-1]][..., :end, :]
                hidden = None if hide is None else partial(hide, piece)
                return _block((query[piece], factor, *seen, outputs[0][piece]), own, hidden)

            def seen_alone(ends: Array, whole: Call) -> None:
                end = int(ends[piece[-1]].max())
                (chain(block(end)) if end < shape.keys else whole)()

            calls = block() if ends is None else [partial(seen_alone, ends, chain(block()))]
            return [*calls, *posts.within(on, (*piece, slice(0, shape.width)))]

        return chain([*first, threads.each(pieces, steps, scratch[shared:], room, shared=wanted > 1, blas=True)])

    return with_blind_rows(work, Compiled(bind, shared + (threads.count if wanted > 1 else 1) * room))


def _additive(mask: Array, scratch: Array) -> tuple[list[Call], Array]:
    """Calls that turn a boolean mask into one to add, and that mask, which lies in `scratch`."""
    added = scratch[: mask.size * ITEM].view(np.float32).reshape(mask.shape)
    hidden = scratch[mask.size * ITEM : mask.size * (ITEM + 1)].view(np.bool_).reshape(mask.shape)
    return [
        partial(added.fill, 0),
        partial(np.logical_not, mask, hidden),
        partial(np.copyto, added, MASKED, where=hidden),
    ], added


def _masked(mask: Array, index: Index, scores: Array) -> list[Call]:
    return [partial(np.add, scores, mask[index][..., : scores.shape[-1]], scores)]


def find_ends(ends: Array, mask: Array, factor: Array, query: Array, key: Array, value: Array) -> None:
    """For each row of a mask [rows, keys], boolean or to add: how many keys there are but those at the end that weigh
    nothing.

    All, where these show yet: where values are not finite, or scores may not be.
    """
    keys, axes = mask.shape[-1], list(range(query.ndim))
    ends.fill(keys)
    if mask[:, -1].all() if mask.dtype == np.bool_ else (mask[:, -1] == mask.max(-1)).all():
        return  # the last one weighs as much as any
    with np.errstate(all="ignore"):
        squares = [float(np.einsum(own, axes, own, axes, axes[:-1]).max()) for own in (query, key, value)]
        most = abs(float(factor)) * (squares[0] * squares[1]) ** 0.5
        if most < LARGE and np.isfinite(squares[2]):
            if mask.dtype == np.bool_:
                seen, known = mask, mask.any(-1)
            else:
                top = mask.max(-1, keepdims=True)
                seen = mask > top - np.abs(top) * np.float32(1e-6) - np.float32(2 * most + NOTHING)
                known = np.isfinite(top[:, 0])
            np.subtract(keys, np.argmax(seen[:, ::-1], -1), ends, where=known)


def _future(index: Index, scores: Array) -> list[Call]:
    """Row i sees the keys up to i: what lies behind those of the block's first row is a triangle, then hidden."""
    rows, keys = index[-1], scores.shape[-1]
    corner = scores[..., rows.start : rows.stop]
    calls: list[Call] = []
    if corner.shape[-1]:
        future = np.arange(corner.shape[-1]) > np.arange(corner.shape[-2])[:, np.newaxis]
        calls.append(partial(np.copyto, corner, -np.inf, where=future))
    if rows.stop < keys:
        calls.append(partial(np.copyto, scores[..., rows.stop :], -np.inf))
    return calls


def _block(
    operands: tuple[Array, Array, Array, Array, Array], own: Array, hide: Callable[[Array], list[Call]] | None
) -> list[Call]:
    """Calls that compute the output [*batch, rows, width] of a block of (query, factor, key, value, output).

    Where nothing is hidden, scores are as near to each other as the quick exponential function needs them.
    """
    query, factor, key, value, output = operands
    items, keys = prod(query.shape[:-1]), key.shape[-2]
    ones = np.ones((keys, 1), np.float32)
    scores = own[: items * keys].reshape(*query.shape[:-1], keys)
    scaled = own[items * keys :][: query.size].reshape(query.shape)
    peak = own[items * keys + query.size :][:items].reshape(*query.shape[:-1], 1)
    before: list[Call] = []
    if hide is None:
        before, behind = [partial(np.multiply, scaled, np.float32(EXPONENT), scaled)], []
        weigh: Call = partial(exponential, scores)
    else:
        behind, weigh = hide(scores), partial(decay, scores)
    return [
        partial(np.multiply, query, factor, scaled),
        *before,
        partial(np.matmul, scaled, key.swapaxes(-1, -2), scores),
        *behind,
        partial(np.maximum.reduce, scores, -1, None, peak, True),
        partial(np.subtract, scores, peak, scores),
        weigh,
        partial(np.matmul, scores, ones, peak),  # the sums of the rows, faster than np.add.reduce
        partial(np.matmul, scores, value, output),
        partial(np.divide, output, peak, output),
    ]


def open_attention(work: Work, threads: Threads) -> OpenCall | None:
    """Few rows of query without a sink, as in generating text: keys and values are as long as the cache, which is read
    once."""
    return partial(_few_rows, threads) if is_openable(work) and work.optional(5) is None else None


def _few_rows(threads: Threads, arrays: Sequence[Any]) -> Sequence[Array] | None:
    query, key, value, mask, scale = (*arrays, None, None)[:5]
    if key.ndim > 4 and not key.strides[-3] and not value.strides[-3]:  # the heads of a group share them
        key, value = key[..., :1, :, :], value[..., :1, :, :]
    *batch, rows, size = query.shape
    keys = key.shape[-2]
    if not 0 < rows <= MAX_FEW or not keys or not size or len(batch) < 2:
        return None
    if scale is not None and scale.size != 1:
        return None
    if key.shape[-1] != size or value.shape[-2] != keys:
        return None
    if query.ndim != key.ndim or key.shape[:-2] != value.shape[:-2] or batch[:-1] != list(key.shape[:-3]):
        return None
    if key.shape[-3] not in (1, batch[-1]) or (mask is not None and not _is_mask(mask, (*batch, rows, keys))):
        return None
    factor = size**-0.5 if scale is None else float(scale.item())
    query = query * np.float32(factor)
    given = mask
    if mask is not None and mask.dtype == np.bool_:
        mask = np.where(mask, np.float32(0), MASKED)
    grouped = rows == 1 and key.shape[-3] == 1
    if grouped:  # the heads of a group read the same keys: they are rows of one product
        query, key, value = query[..., 0, :], key[..., 0, :, :], value[..., 0, :, :]
        mask = mask[..., 0, :] if mask is not None and mask.ndim else mask
    result = np.empty((*query.shape[:-1], value.shape[-1]), np.float32)
    heads = query.shape[-3]
    pieces = min(threads.pieces(2 * key.size * max(rows, query.shape[-2]) / PRODUCT_SPEED * SLOWER), heads)
    shared = mask if mask is None or mask.ndim < 3 or mask.shape[-3] == 1 else None

    def some(piece: int, _: int) -> None:
        cut = (..., slice(heads * piece // pieces, heads * (piece + 1) // pieces), slice(None), slice(None))
        own = key if key.shape[-3] == 1 else key[cut]
        scores = np.matmul(query[cut], own.swapaxes(-1, -2))
        if mask is not None and mask.ndim:
            scores += mask[cut] if shared is None else shared
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, scores)
        total = scores.sum(-1, keepdims=True)
        np.matmul(scores, value if key.shape[-3] == 1 else value[cut], result[cut])
        result[cut] /= total

    threads.run(some, pieces)
    if grouped:
        result = result[..., None, :]
    blind(given, result)
    return (result,)


def _is_mask(mask: Array, scores: Sequence[int]) -> bool:
    """Whether a mask is a scalar or broadcasts to the scores, its rows of all keys."""
    if mask.ndim < 2 or mask.ndim > len(scores):
        return mask.ndim == 0 and mask.dtype != np.bool_
    return mask.shape[-1] == scores[-1] and all(
        a in (1, b) for a, b in zip(reversed(mask.shape), reversed(scores), strict=False)
    )


OPENERS = {"ScaledDotProductAttention-13": open_attention}
COMPILERS = {"ScaledDotProductAttention-13": compile_attention}
