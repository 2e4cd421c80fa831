"""Attention: how heads lie, and of which works nobody keeps the scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides, ordered_strides
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

FEW = 8
"""Rows, or keys, that are few: code for blocks of them has little to do."""

MAX_SIZE = 256
"""Elements of a key, or of a value: the code has no loops over them."""

LEAST_SCORES = 1 << 15
"""Scores for which it pays to load what compiles code."""


def is_openable(work: Work) -> bool:
    """Whether a work is attention that calls for any sizes take: of f32, not causal."""
    mask = work.optional(3)
    return _is_plain(work, "f32") and not work.attrs["causal"] and (mask is None or mask.type in ("f32", "boolean"))


def is_streamed(work: Work) -> bool:
    """Whether a work is attention of f32 alone, or bf16, for which there is code of our own that never has more than a
    few scores, for processors with the instructions."""
    if work.name != "ScaledDotProductAttention-13":
        return False
    type = work.outputs[0].type
    if type not in ("f32", "bf16") or not _is_plain(work, type):
        return False
    (query, key, value), output, mask = work.required(3), work.outputs[0], mask_of(work)
    if mask is not None and mask.type not in (type, "boolean"):
        return False
    if mask is not None and mask.shape[-1] != key.shape[-2]:  # one number for all keys of a row
        return False
    if mask is not None and mask.value is None and not _has_dense_rows(mask):
        return False
    if min(query.shape[-2], key.shape[-2]) < FEW or max(key.shape[-1], output.shape[-1]) > MAX_SIZE:
        return False
    return all(own.layout is None and _has_dense_rows(own) for own in (query, key, value))


def scores_of(work: Work) -> int:
    """How many scores an attention has."""
    return prod(work.outputs[0].shape[:-1]) * work.required(2)[1].shape[-2]


def mask_of(work: Work) -> Operand | None:
    """The mask of an attention; None where it has none but that of the future, or a number, which is 0."""
    mask = work.optional(3)
    return None if work.attrs["causal"] or mask is None or not mask.shape else mask


def may_be_blind(work: Work) -> bool:
    """Whether there may be rows that a boolean mask lets see no key."""
    mask = mask_of(work)
    return mask is not None and mask.type == "boolean" and (mask.value is None or not mask.value.any(-1).all())


def with_blind_rows(work: Work, compiled: Compiled) -> Compiled:
    """What computes an attention without posts, for which rows that see no key are as any, and then makes them 0."""
    mask, bind = mask_of(work), compiled.bind
    if mask is None or not may_be_blind(work):
        return compiled
    constant = mask.value

    def bound(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        given = inputs[3] if constant is None else constant
        return chain([bind(inputs, outputs, scratch), partial(blind, given, outputs[0])])

    compiled.bind = bound
    return compiled


def blind(mask: Array | None, result: Array) -> None:
    """Make the rows of a result 0 that a mask lets see no key, if it is boolean."""
    if mask is None or mask.dtype != np.bool_:
        return
    seen = mask.any(-1, keepdims=True)
    if not seen.all():
        np.copyto(result, np.zeros((), result.dtype), where=~seen)


def dense_mask(mask: Array) -> Array:
    """A constant mask with rows that are dense, once where it is the same for several heads."""
    once = mask[tuple(slice(0, 1 if step == 0 else None) for step in mask.strides[:-2])]
    return np.ascontiguousarray(once)


def heads_inside(result: Operand) -> tuple[int, ...]:
    """Strides for [N, heads, rows, width] that lies as [N, rows, heads, width], which is what follows wants."""
    shape, item = result.shape, numpy_dtype(result.type).itemsize
    if len(shape) != 4:
        return dense_strides(shape, item)
    order = (0, 2, 1, 3)
    return ordered_strides(order, [shape[axis] for axis in order], item)


def _is_plain(work: Work, type: str) -> bool:
    """Whether an attention is of a type alone, but for its mask, and without posts."""
    numbers = (*work.required(3), work.optional(4), work.optional(5), *work.outputs[:1])
    return all(own is None or own.type == type for own in numbers) and not work.posts


def _has_dense_rows(operand: Operand) -> bool:
    """Whether the elements of a row lie next to one another."""
    return operand.shape[-1] == 1 or operand.strides[-1] == numpy_dtype(operand.type).itemsize
