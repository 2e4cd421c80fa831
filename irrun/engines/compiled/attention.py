"""Attention of few rows over keys and values as long as they happen to be, as in generating text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from irrun.engines.compiled.attention_kernel import BLOCK, FORM, TILE, AttentionKind, address_of, tile_of
from irrun.engines.compiled.flash import attention as of_many_rows
from irrun.engines.compiled.team import WAKING_SECONDS, Team
from irrun.engines.heads import MAX_SIZE, blind, is_openable
from irrun.engines.memory import ITEM, aligned, allocate, data_address
from irrun.engines.work import OpenCall, Work
from irrun.records import dataclass
from irrun.spec.op import Array

MAX_FEW = 64
"""Rows of a query that are few: with more, products of matrices are quicker."""

MAX_ROWS = 512
"""Rows that share keys, those of all heads of a group: they lie in the cache while keys are read."""

SPEED = 10e9
"""Bytes of keys and values per second that one thread reads, about."""

PART = 128
"""Keys that a part has at least."""

ITEMS = 8
"""Heads, or parts of heads, for each thread, so that threads end at the same time."""

_CALL = struct.Struct("10qf4x")
"""The arguments of a call."""

_SHAPES = struct.Struct(f"{len(FORM.names) - 10}q")
"""Those of shapes."""

Steps = tuple[int, int, int, int]


def open(work: Work, team: Team) -> OpenCall | None:
    """A call for attention of any sizes."""
    return partial(_shared.setdefault(team, _Attention()).call, team) if is_openable(work) else None


class _Attention:
    """ScaledDotProductAttention-13 of any arrays. Several threads may call it at once.

    It is one for all layers, since arrays of the same shapes come to one after the other.
    """

    def __init__(self) -> None:
        self._last: tuple[object, _Plan | None] = (None, None)
        self._rooms: list[_Room] = []  # of calls that are over

    def call(self, team: Team, arrays: Sequence[Any]) -> Sequence[Array] | None:
        query, key, value, mask, scale, sink = (*arrays, None, None, None)[:6]
        if scale is not None and scale.size != 1:
            return None
        if query.strides[-1] != ITEM:
            query = np.ascontiguousarray(query)
        if mask is not None and mask.ndim and mask.strides[-1] != mask.itemsize:
            mask = np.ascontiguousarray(mask)
        hidden = None if mask is None else (mask.shape, mask.strides, mask.dtype)
        sunk = None if sink is None else (sink.shape, sink.strides)
        shapes = (query.shape, query.strides, key.shape, key.strides, value.shape, value.strides, hidden, sunk)
        last, plan = self._last
        if shapes != last:
            plan = _planned(query, key, value, mask, sink, team.count)
            self._last = shapes, plan
        if plan is None:
            return None
        room = self._room(plan)
        result = np.empty(plan.result, np.float32)
        _CALL.pack_into(
            room.arguments.data,
            0,
            *(0, room.memory + plan.kept, data_address(query), data_address(key), data_address(value)),
            *(data_address(mask) if plan.masked else 0, 0 if sink is None else data_address(sink)),
            *(data_address(result), room.memory, room.ended),
            plan.factor if scale is None else scale.item(),
        )
        team.run(plan.address, room.address, shared=plan.shared)
        self._rooms.append(room)
        blind(mask, result)
        return (result,)

    def _room(self, plan: _Plan) -> _Room:
        try:
            room = self._rooms.pop()
        except IndexError:
            room = _Room(plan)
        if room.plan is not plan:
            if room.size < plan.size or room.heads < plan.heads:
                room = _Room(plan)
            room.set(plan)
        return room


_shared: WeakKeyDictionary[Team, _Attention] = WeakKeyDictionary()  # what refers to a team is never gone


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do with arrays of some shapes: the kernel, whether threads share it, its arguments, the bytes that it
    needs for parts that are `kept` and all in all, the number of heads, and the shape of the result."""

    address: int
    shared: bool
    arguments: bytes
    kept: int
    size: int
    heads: int
    masked: bool
    factor: float
    result: tuple[int, ...]


class _Room:
    """Memory for calls: the arguments, a u64 for each head, 0 before and after, and as many bytes as a plan wants."""

    def __init__(self, plan: _Plan) -> None:
        self.plan: _Plan | None = None
        self.size, self.heads = plan.size, plan.heads
        begin = aligned(_CALL.size + _SHAPES.size)
        end = begin + aligned(8 * plan.heads)
        memory = allocate(end + plan.size)
        memory[:end] = 0
        self.arguments = memory[:begin]
        self.address = data_address(memory)
        self.ended, self.memory = self.address + begin, self.address + end

    def set(self, plan: _Plan) -> None:
        self.plan = plan
        self.arguments[_CALL.size : _CALL.size + _SHAPES.size] = np.frombuffer(plan.arguments, np.uint8)


def _planned(
    query: Array, key: Array, value: Array, mask: Array | None, sink: Array | None, threads: int
) -> _Plan | None:
    """None for what is left to others."""
    *batch, length, size = query.shape
    keys, width = value.shape[-2:]
    if key.shape[-2:] != (keys, size) or not keys or not 0 < length <= MAX_FEW or len(batch) > 3 or 0 in batch:
        return None
    if not 0 < size <= MAX_SIZE or not 0 < width <= MAX_SIZE:
        return None
    if key.strides[-1] != ITEM < size * ITEM or value.strides[-1] != ITEM < width * ITEM:
        return None
    steps = [_steps(own, batch) for own in (query, key, value)]
    type = None
    if mask is None or (not mask.ndim and mask.dtype != np.bool_):  # a scalar is 0, and adds nothing
        steps.append((0, 0, 0, 0))
    elif mask.ndim < 2 or mask.shape[-1] != keys or mask.shape[-2] not in (1, length):
        return None
    else:
        type = "boolean" if mask.dtype == np.bool_ else "f32"
        steps.append(_steps(mask, batch))
    steps.append((0, 0, 0, 0) if sink is None else _steps(sink, batch))
    known = [own for own in steps if own is not None]
    if len(known) < len(steps):
        return None
    count, heads, group = (1, 1, 1, *batch)[-3:]
    if known[1][2] or known[2][2]:  # the last heads have keys of their own, and are no group
        if count > 1:
            return None
        count, heads, group = heads, group, 1
        known = [(own[1], own[2], 0, own[3]) for own in known]
    rows, tensors = group * length, count * heads
    if rows > MAX_ROWS:
        return None
    seconds = tensors * keys * (size + width) * ITEM / SPEED * max(rows / TILE, 1)
    shared = threads > 1 and seconds > WAKING_SECONDS
    wanted = min(-(-ITEMS * threads // tensors), keys // PART) if shared else 1
    part = -(-keys // (max(wanted, 1) * BLOCK)) * BLOCK
    parts = -(-keys // part)
    kind = AttentionKind(size, width, tile_of(rows), type, sink is not None)
    kept = kind.kept_size * rows * tensors * parts if parts > 1 else 0
    asked, looked, weighed, hidden, sunk = known
    arguments = (kind.room_size(rows), tensors * parts, heads, parts, part, keys, rows, length)
    strides = (*asked, *looked[:2], looked[3], *weighed[:2], weighed[3], *hidden, *sunk)
    return _Plan(
        address_of(kind),
        shared,
        _SHAPES.pack(*arguments, *strides),
        kept,
        kept + (threads if shared else 1) * kind.room_size(rows),
        tensors,
        type is not None,
        size**-0.5,
        (*query.shape[:-1], width),
    )


def _steps(array: Array, batch: Sequence[int]) -> Steps | None:
    """Bytes from each to the next of three axes before the rows, and from row to row, 0 where there is one for all.

    None where they do not broadcast to `batch`."""
    shape, strides = array.shape, array.strides
    steps = [0, 0, 0]
    before = len(batch) - len(shape) + 2
    if before < 0:
        return None
    for axis in range(len(shape) - 2):
        if shape[axis] != 1:
            if shape[axis] != batch[before + axis]:
                return None
            steps[3 - len(batch) + before + axis] = strides[axis]
    return steps[0], steps[1], steps[2], strides[-2] if shape[-2] > 1 else 0


OPENERS = {"ScaledDotProductAttention-13": open}
COMPILERS = {"ScaledDotProductAttention-13": of_many_rows}
