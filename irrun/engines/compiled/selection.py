"""The largest or smallest elements of rows, selected in one pass: a heap has those that are the best so far."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from irrun.engines.compiled.loops import Ints, Longs, looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

Places: TypeAlias = Array
"""Ints or Longs."""

REAL = True
"""Whether the bits are those of f32, else of i32."""

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

BLOCK = 64
"""Elements that are passed over at once where none is better than the worst in the heap."""

MOST = 1 << 14
"""Elements of a heap that stays in the cache. More are left to the op's kernel, which sorts."""

ELEMENT_NANOSECONDS = 1.0
"""What an element takes about."""


def select(
    begin: int,
    end: int,
    data: Ints,
    values: Ints,
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


def top_k(work: Work, team: Team) -> Compiled | None:
    """TopK of f32 and i32."""
    (data,) = work.required(1)
    attrs, shape = work.attrs, work.outputs[0].shape
    axis = attrs["axis"] % len(shape)
    size, count = data.shape[axis], shape[axis]
    if work.posts or data.type not in ("f32", "i32") or not 1 < count <= MOST or size > INDEX:
        return None
    inner = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    rows = int(np.prod(shape, dtype=np.int64)) // count
    placed = len(work.outputs) > 1
    constants: dict[str, Hashable] = {
        "REAL": data.type == "f32",
        "LARGEST": attrs["mode"] == "max",
        "ORDERED": attrs["sort"] == "index",
        "CLOSE": inner == 1,
        "PLACED": placed,
        "Places": "Ints" if placed and work.outputs[1].type == "i32" else "Longs",
    }
    nanoseconds = rows * (size + count * count.bit_length()) * ELEMENT_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        heap = scratch[: rows * count * 8].view(np.int64)
        places = outputs[1] if placed else heap
        arguments = (inputs[0], outputs[0], places, heap, size, count, inner)
        return looped(team, select, arguments, rows, nanoseconds, **constants)

    wants = {number: layout for number, layout in unordered(work).items() if number == 0}
    return Compiled(bind, scratch=rows * count * 8, wants=wants)


COMPILERS = dict.fromkeys(("TopK-1", "TopK-3", "TopK-11"), top_k)
