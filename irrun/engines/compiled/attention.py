"""Attention of few rows over keys and values as long as they happen to be, as in generating text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from irrun.engines.compiled.attention_kernel import ARGUMENTS, BLOCK, TILE, AttentionKind, address_of, tile_of
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, aligned, allocate
from irrun.engines.work import OpenCall, Work
from irrun.spec.op import Array

MAX_FEW = 8
"""Rows of a query that are few: to read the keys takes longer than to multiply them."""

MAX_ROWS = 128
"""Rows that share keys, those of all heads of a group: they lie in the cache while keys are read."""

MAX_SIZE = 256
"""Elements of a key, or of a value: kernels have no loops over them."""

SPEED = 10e9
"""Bytes of keys and values per second that one thread reads, about."""

SHARED_SECONDS = 12e-6
"""What one thread must need for threads to share it: to wake another one costs about as much."""

PART = 128
"""Keys that a part has at least."""

ITEMS = 8
"""Heads, or parts of heads, for each thread, so that threads end at the same time."""

_PACKED = struct.Struct(f"{len(ARGUMENTS) - 1}qf4x")

Steps = tuple[int, ...]


def open_attention(work: Work, team: Team) -> OpenCall | None:
    """ScaledDotProductAttention-13 of f32 that is not causal, without a sink."""
    (query, key, value), output = work.required(3), work.outputs[0]
    mask, scale, sink = (work.optional(number) for number in (3, 4, 5))
    if sink is not None or work.attrs["causal"] or work.posts:
        return None
    if any(own is not None and own.type != "f32" for own in (query, key, value, scale, output)):
        return None
    if mask is not None and mask.type not in ("f32", "boolean"):
        return None
    return _Attention(team)


class _Attention:
    """A call of arrays. Several threads may make it at once."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._kernels: dict[tuple[int, int, int, str | None], tuple[AttentionKind, int]] = {}
        self._rooms: list[_Room] = []  # of calls that are over

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Array] | None:
        query, key, value, mask, scale = (*arrays, None, None)[:5]
        *batch, length, size = query.shape
        keys, width = value.shape[-2:]
        if key.shape[-2:] != (keys, size) or not keys or not 0 < length <= MAX_FEW or len(batch) > 3:
            return None
        if not 0 < size <= MAX_SIZE or not 0 < width <= MAX_SIZE or 0 in batch:
            return None
        if key.strides[-1] != ITEM < ITEM * size or value.strides[-1] != ITEM < ITEM * width:
            return None
        if size > 1 and query.strides[-1] != ITEM:
            query = np.ascontiguousarray(query)
        type = None
        if mask is not None and (mask.ndim or mask.dtype == np.bool_):  # a scalar is 0, and adds nothing
            if mask.ndim < 2 or mask.shape[-1] != keys or mask.shape[-2] not in (1, length):
                return None
            if keys > 1 and mask.strides[-1] != mask.itemsize:
                mask = np.ascontiguousarray(mask)
            type = "boolean" if mask.dtype == np.bool_ else "f32"
        asked, looked, weighed = _steps(query, batch), _steps(key, batch), _steps(value, batch)
        hidden = _steps(mask, batch) if type else _NOWHERE
        if asked is None or looked is None or weighed is None or hidden is None:
            return None
        count, heads, group = (1, 1, 1, *batch)[-3:]
        if looked[2] or weighed[2]:  # the last heads have keys of their own, and are no group
            if count > 1:
                return None
            count, heads, group = heads, group, 1
            asked, looked, weighed, hidden = (
                (own[1], own[2], 0, own[3]) for own in (asked, looked, weighed, hidden)
            )
        rows, tensors = group * length, count * heads
        if rows > MAX_ROWS:
            return None
        tile = tile_of(rows)
        made = self._kernels.get((size, width, tile, type))
        if made is None:
            kind = AttentionKind(size, width, tile, type)
            made = self._kernels[size, width, tile, type] = kind, address_of(kind)
        kind, address = made
        seconds = tensors * keys * (size + width) * ITEM / SPEED * max(rows / TILE, 1)
        threads = self._team.count if seconds > SHARED_SECONDS else 1
        parts = 1 if threads == 1 else max(min(-(-ITEMS * threads // tensors), keys // PART), 1)
        part = -(-keys // (parts * BLOCK)) * BLOCK
        parts = -(-keys // part)
        own = kind.room_size(rows)
        kept = kind.kept_size * rows * tensors * parts if parts > 1 else 0
        room = self._room(threads * own + kept, tensors)
        result = np.empty((*query.shape[:-1], width), np.float32)
        _PACKED.pack_into(
            room.arguments,
            0,
            *(0, room.memory + kept, own, tensors * parts, heads, parts, part, keys, rows, length),
            *(query.ctypes.data, *asked),
            *(key.ctypes.data, looked[0], looked[1], looked[3]),
            *(value.ctypes.data, weighed[0], weighed[1], weighed[3]),
            *(mask.ctypes.data if type else 0, *hidden),
            *(result.ctypes.data, room.memory, room.ended, size**-0.5 if scale is None else scale.item()),
        )
        self._team.run(address, room.address, shared=threads > 1)
        self._rooms.append(room)
        return (result,)

    def _room(self, size: int, heads: int) -> _Room:
        with suppress(IndexError):
            room = self._rooms.pop()
            if room.size >= size and room.heads >= heads:
                return room
        return _Room(size, heads)


class _Room:
    """Memory of calls: the arguments, `size` bytes for threads, and a u64 for each of `heads`, 0 before and after."""

    def __init__(self, size: int, heads: int) -> None:
        self.size, self.heads = size, heads
        begin, end = aligned(_PACKED.size), aligned(_PACKED.size) + aligned(8 * heads)
        memory = allocate(end + size)
        memory[:end] = 0
        self.arguments = memory[:begin]
        self.address = memory.ctypes.data
        self.ended, self.memory = self.address + begin, self.address + end


_NOWHERE = (0, 0, 0, 0)


def _steps(array: Array, batch: Sequence[int]) -> Steps | None:
    """Bytes from each to the next of three axes before the rows, and from row to row: 0 where there is one for all; None
    where they do not broadcast to `batch`."""
    shape, strides = array.shape, array.strides
    steps = [0, 0, 0, strides[-2] if shape[-2] > 1 else 0]
    before = len(batch) - len(shape) + 2
    if before < 0:
        return None
    for axis in range(len(shape) - 2):
        if shape[axis] != 1:
            if shape[axis] != batch[before + axis]:
                return None
            steps[3 - len(batch) + before + axis] = strides[axis]
    return tuple(steps)


OPENERS = {"ScaledDotProductAttention-13": open_attention}
