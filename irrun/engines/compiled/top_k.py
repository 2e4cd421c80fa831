"""The largest or smallest elements of rows, selected in one pass: a heap has those that are the best so far.

Elements are Ints, the bits of f32 as well, or Longs whose numbers have 32 bits.

A few of rows that lie beside one another are selected of many rows at once, in lists of the best that are in order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import MEMORY, Elements, Longs, Places, looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.plain import plain_call
from irrun.engines.work import Arrays, Call, Compiled, OpenCall, Work, either
from irrun.spec.op import Array

REAL = True
"""Whether the bits are those of f32, else of integers."""

LARGEST = True
"""Whether the largest are selected."""

ORDERED = False
"""Whether they come in the order of their indices."""

CLOSE = True
"""Whether the elements of a row are neighbours in memory."""

PLACED = True
"""Whether somebody reads the indices."""

NAN = -0x7F800001
"""The rank of NaN, right below that of minus infinity."""

INDEX = 0xFFFFFFFF
"""The bits of a key that are an index; the rank stands above."""

LIMITS = np.iinfo(np.int32)
"""Of numbers that are ranked."""

BLOCK = 64
"""Elements that are passed over at once where none is better than the worst in the heap."""

MOST = 1 << 14
"""Elements of a heap that stays in the cache. More are left to the op's kernel, which sorts."""

ELEMENT_NANOSECONDS = 1.0
"""What an element takes about."""

LANES = 32
"""Rows that are gone through at once."""

NEIGHBOURS, CLOSEST = 16, 8
"""Elements of a row that are gone through at once, of which the best ones are compared so many at a time."""

HIGHEST = 0x7FFFFFFF
"""A rank that is not below any other."""

FEW, LEAST_LANES = 16, 8
"""Elements that are selected at most, and rows that lie beside one another at least, for that to be quicker."""

WORST = 0x7FFFFFFFFFFFFFFF
"""A key that is above all others."""

LEAST_ROWS = 8
"""Rows of which one element each is selected at least: of fewer numpy finds it as soon."""

LANE_NANOSECONDS, ROW_NANOSECONDS = 0.3, 10.0
"""What an element takes about for each of those that are selected, and once more; and a row of neighbours besides."""


def select(
    begin: int,
    end: int,
    data: Elements,
    values: Elements,
    places: Places,
    heap: Longs,
    size: int,
    count: int,
    inner: int,
) -> None:
    """Rows of `size` elements that lie `inner` apart, of which `count` are selected. `heap` is [rows, count]."""
    step = 1 if CLOSE else inner
    for row in range(begin, end):
        source = row // inner * size * inner + row % inner
        target = row // inner * count * inner + row % inner
        top = row * count
        for i in range(count):
            heap[top + i] = rank(data[source + i * step]) * (INDEX + 1) + i
        build(heap, top, count)
        for first in range(count, size, BLOCK):
            last = min(first + BLOCK, size)
            limit = heap[top] // (INDEX + 1)
            best = limit
            for i in range(first, last):
                best = min(best, rank(data[source + i * step]))
            if best < limit:
                for i in range(first, last):
                    own = rank(data[source + i * step])
                    if own < limit:  # of equal ones the first is there already
                        sink(heap, top, 0, count, own * (INDEX + 1) + i)
                        limit = heap[top] // (INDEX + 1)
        if ORDERED:
            for i in range(count):
                heap[top + i] = heap[top + i] & INDEX
            build(heap, top, count)
        for left in range(count - 1, 0, -1):
            key = heap[top + left]
            heap[top + left] = heap[top]
            sink(heap, top, 0, left, key)
        for i in range(count):
            place = heap[top + i] & INDEX
            values[target + i * step] = data[source + place * step]
            if PLACED:
                places[target + i * step] = place


def select_few(
    begin: int,
    end: int,
    data: Elements,
    values: Elements,
    places: Places,
    size: int,
    count: int,
    inner: int,
    blocks: int,
) -> None:
    """As `select`, of the `inner` rows that lie beside one another, in `blocks` of up to LANES rows."""
    best = np.empty(LANES * FEW, np.int64)
    keys = np.empty(LANES, np.int64)
    for block in range(begin, end):
        first = block % blocks * LANES
        lanes = min(LANES, inner - first)
        source = block // blocks * size * inner + first
        target = block // blocks * count * inner + first
        for i in range(count * LANES):
            best[i] = WORST
        for i in range(size):
            for lane in range(lanes):
                keys[lane] = rank(data[source + i * inner + lane]) * (INDEX + 1) + i
            for place in range(count):
                for lane in range(lanes):
                    own, other = best[place * LANES + lane], keys[lane]
                    best[place * LANES + lane] = min(own, other)
                    keys[lane] = max(own, other)
        if ORDERED:
            for last in range(1, count):
                for place in range(last, 0, -1):
                    for lane in range(lanes):
                        own, other = best[place * LANES + lane], best[(place - 1) * LANES + lane]
                        if own & INDEX < other & INDEX:
                            best[place * LANES + lane], best[(place - 1) * LANES + lane] = other, own
        for i in range(count):
            for lane in range(lanes):
                index = best[i * LANES + lane] & INDEX
                values[target + i * inner + lane] = data[source + index * inner + lane]
                if PLACED:
                    places[target + i * inner + lane] = index


def select_one(
    begin: int,
    end: int,
    data: Elements,
    values: Elements,
    places: Places,
    size: int,
    inner: int,
    blocks: int,
) -> None:
    """As `select_few`, of one element."""
    lowest = np.empty(LANES, np.int32)
    found = np.empty(LANES, np.int32)
    ranks = np.empty(LANES, np.int32)
    for block in range(begin, end):
        first = block % blocks * LANES
        lanes = min(LANES, inner - first)
        source = block // blocks * size * inner + first
        target = block // blocks * inner + first
        for lane in range(lanes):
            lowest[lane] = rank(data[source + lane])
            found[lane] = 0
        for i in range(1, size):
            for lane in range(lanes):
                ranks[lane] = rank(data[source + i * inner + lane])
            for lane in range(lanes):
                found[lane] = i if ranks[lane] < lowest[lane] else found[lane]
                lowest[lane] = min(lowest[lane], ranks[lane])
        for lane in range(lanes):
            values[target + lane] = data[source + found[lane] * inner + lane]
            if PLACED:
                places[target + lane] = found[lane]


def select_close(begin: int, end: int, data: Elements, values: Elements, places: Places, size: int) -> None:
    """As `select`, of one element of rows whose elements are neighbours: the best of each lane, then of all."""
    lowest = np.empty(NEIGHBOURS, np.int32)
    found = np.empty(NEIGHBOURS, np.int32)
    ranks = np.empty(NEIGHBOURS, np.int32)
    for row in range(begin, end):
        source, lanes = row * size, min(NEIGHBOURS, size)
        for lane in range(lanes, NEIGHBOURS):
            lowest[lane] = HIGHEST
            found[lane] = HIGHEST
        for lane in range(lanes):
            lowest[lane] = rank(data[source + lane])
            found[lane] = lane
        whole = size - size % NEIGHBOURS
        for first in range(NEIGHBOURS, whole, NEIGHBOURS):
            for lane in range(NEIGHBOURS):
                ranks[lane] = rank(data[source + first + lane])
            for lane in range(NEIGHBOURS):
                found[lane] = first + lane if ranks[lane] < lowest[lane] else found[lane]
                lowest[lane] = min(lowest[lane], ranks[lane])
        rest = max(whole, lanes)
        for i in range(rest, size):
            number = rank(data[source + i])
            found[i - rest] = i if number < lowest[i - rest] else found[i - rest]
            lowest[i - rest] = min(lowest[i - rest], number)
        for others in range(CLOSEST, NEIGHBOURS, CLOSEST):
            for lane in range(CLOSEST):
                own, other = lowest[lane], lowest[others + lane]
                earlier = min(found[lane], found[others + lane])
                index = found[others + lane] if other < own else found[lane]
                found[lane] = earlier if own == other else index
                lowest[lane] = min(own, other)
        best, place = lowest[0], found[0]
        for lane in range(1, CLOSEST):
            if lowest[lane] < best or (lowest[lane] == best and found[lane] < place):
                best, place = lowest[lane], found[lane]
        values[row] = data[source + place]
        if PLACED:
            places[row] = place


def rank(bits: int) -> int:
    """A number of 32 bits that is the lower, the sooner an element is taken; alike for 0 and -0, and for every NaN."""
    number = bits
    if REAL:
        magnitude = bits & 0x7FFFFFFF
        number = magnitude if bits >= 0 else -magnitude
        number = NAN if magnitude > 0x7F800000 else number
    return -1 - number if LARGEST else number


def build(heap: Longs, top: int, count: int) -> None:
    """Make a heap of `count` keys in any order."""
    for i in range(count // 2 - 1, -1, -1):
        sink(heap, top, i, count, heap[top + i])


def sink(heap: Longs, top: int, hole: int, count: int, key: int) -> None:
    """Put a key where the heap has a hole, or below: no key is above a higher one."""
    below = 2 * hole + 1
    while below < count:
        if below + 1 < count and heap[top + below + 1] > heap[top + below]:
            below += 1
        if heap[top + below] <= key:
            break
        heap[top + hole] = heap[top + below]
        hole = below
        below = 2 * hole + 1
    heap[top + hole] = key


def _constants(work: Work, type: str, inner: int) -> dict[str, Hashable]:
    """What is known of a work when it is compiled."""
    placed = len(work.outputs) > 1
    return {
        "Elements": "Longs" if type == "i64" else "Ints",
        "REAL": type == "f32",
        "LARGEST": work.attrs["mode"] == "max",
        "ORDERED": work.attrs["sort"] == "index",
        "CLOSE": inner == 1,
        "PLACED": placed,
        "Places": MEMORY[work.outputs[1].type] if placed else "Longs",
    }


def top_k(work: Work, team: Team) -> Compiled | None:
    """TopK of f32 and i32, and of i64 whose numbers are such of 32 bits."""
    (data,) = work.required(1)
    shape = work.outputs[0].shape
    axis = work.attrs["axis"] % len(shape)
    size, count = data.shape[axis], shape[axis]
    inner, rows = prod(shape[axis + 1 :]), prod(shape) // count
    few = count <= FEW and inner >= LEAST_LANES
    close = count == inner == 1 and rows >= LEAST_ROWS and data.type != "i64"
    if work.posts or data.type not in ("f32", "i32", "i64") or not (few or close or 1 < count <= MOST) or size > INDEX:
        return None
    placed = len(work.outputs) > 1
    constants = _constants(work, data.type, inner)
    wants = unordered(work, 1)
    if few:
        blocks = -(-inner // LANES)

        def bind_few(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
            places = outputs[1] if placed else np.empty(0, np.int64)
            memory, sizes, total = (inputs[0], outputs[0], places), (inner, blocks), rows // inner * blocks
            nanoseconds = rows * size * (count + 1) * LANE_NANOSECONDS
            function, told = (select_one, (size,)) if count == 1 else (select_few, (size, count))
            call = looped(team, function, (*memory, *told, *sizes), total, nanoseconds, **constants)
            return _narrow(work, call, inputs, outputs)

        return Compiled(bind_few, wants=wants)
    if close:

        def bind_close(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
            memory = (inputs[0], outputs[0], outputs[1] if placed else np.empty(0, np.int64))
            return looped(team, select_close, (*memory, size), rows, _close_nanoseconds(rows, size), **constants)

        return Compiled(bind_close, wants=wants)
    nanoseconds = rows * (size + count * count.bit_length()) * ELEMENT_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        heap = scratch[: rows * count * 8].view(np.int64)
        places = outputs[1] if placed else heap
        arguments = (inputs[0], outputs[0], places, heap, size, count, inner)
        call = looped(team, select, arguments, rows, nanoseconds, **constants)
        return _narrow(work, call, inputs, outputs)

    return Compiled(bind, scratch=rows * count * 8, wants=wants)


def _close_nanoseconds(rows: int, size: int) -> float:
    """What one element each of rows of neighbours takes about."""
    return rows * (size * 2 * LANE_NANOSECONDS + ROW_NANOSECONDS)


def _narrow(work: Work, call: Call, inputs: Arrays, outputs: Sequence[Array]) -> Call:
    """A call, of i64 for numbers of 32 bits only."""
    data = inputs[0]
    if data.itemsize == 4:
        return call

    def fits() -> bool:
        if data.min() < LIMITS.min or data.max() > LIMITS.max:
            return False
        call()
        return True

    return either(fits, plain_call(work, inputs, outputs))


def open(work: Work, team: Team) -> OpenCall | None:
    """TopK of f32 and i32 of any sizes, along the last axis."""
    (data,) = work.required(1)
    if work.posts or data.type not in ("f32", "i32") or len(work.outputs) < 2:
        return None
    constants = _constants(work, data.type, 1)
    indices = np.int32 if constants["Places"] == "Ints" else np.int64

    def call(arrays: Sequence[Any]) -> Sequence[Array] | None:
        data, k = arrays
        if k.size != 1 or not data.flags.c_contiguous or work.attrs["axis"] not in (-1, data.ndim - 1):
            return None
        count, size = int(k.item()), data.shape[-1]
        if not count and not data.size:
            return [np.empty((*data.shape[:-1], 0), own) for own in (data.dtype, indices)]
        if not 1 <= count <= min(size, MOST) or size > INDEX or not data.size:
            return None
        shape, rows = (*data.shape[:-1], count), data.size // size
        if count == 1 and rows < LEAST_ROWS:
            return None
        results = np.empty(shape, data.dtype), np.empty(shape, indices)
        if count == 1:
            looped(team, select_close, (data, *results, size), rows, _close_nanoseconds(rows, size), **constants)()
            return results
        nanoseconds = rows * (size + count * count.bit_length()) * ELEMENT_NANOSECONDS
        arguments = (data, *results, np.empty(rows * count, np.int64), size, count, 1)
        looped(team, select, arguments, rows, nanoseconds, **constants)()
        return results

    return call


OPENERS = dict.fromkeys(("TopK-1", "TopK-3", "TopK-11"), open)
COMPILERS = dict.fromkeys(("TopK-1", "TopK-3", "TopK-11"), top_k)
