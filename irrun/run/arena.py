"""Where the tensors of a program lie in one block of memory, which those that are never alive together share."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from irrun.engines.memory import aligned
from irrun.records import dataclass


@dataclass(slots=True, eq=False)
class Buffer:
    """`size` bytes in use from step `first` to step `last`, both included; `offset` is where they lie."""

    size: int
    first: int
    last: int
    offset: int = 0


def place(buffers: Iterable[Buffer]) -> int:
    """Give every buffer its offset; the size of the whole. Each takes the smallest gap that holds it."""
    ending: list[tuple[int, int, int]] = []  # (last, offset, size) of buffers in use
    free: list[tuple[int, int]] = []  # (size, offset) of gaps
    total = 0
    for buffer in sorted(buffers, key=lambda buffer: buffer.first):
        while ending and ending[0][0] < buffer.first:
            _, offset, size = ending.pop(0)
            _release(free, offset, size)
        size = aligned(max(buffer.size, 1))
        number = bisect_left(free, (size, 0))
        if number < len(free):
            gap, buffer.offset = free.pop(number)
            if gap > size:
                insort(free, (gap - size, buffer.offset + size))
        else:
            last = next((gap for gap in free if gap[0] + gap[1] == total), None)
            if last is not None:  # the gap at the end grows
                free.remove(last)
                buffer.offset = last[1]
            else:
                buffer.offset = total
            total = buffer.offset + size
        insort(ending, (buffer.last, buffer.offset, size))
    return total


def _release(free: list[tuple[int, int]], offset: int, size: int) -> None:
    """Make a gap of a buffer, one with the gaps at its sides."""
    for gap in [gap for gap in free if gap[1] + gap[0] == offset or gap[1] == offset + size]:
        free.remove(gap)
        offset, size = min(offset, gap[1]), size + gap[0]
    insort(free, (size, offset))
