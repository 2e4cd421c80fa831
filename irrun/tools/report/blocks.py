"""Long rows of boxes in parts: blocks that repeat, and stretches between places where few tensors pass.

What is in a row stands in an order in which producers come first, so parts of it never read each other in a circle.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

_STRETCH = 40
"""Boxes in a stretch, about."""

_SHORTEST = 4
"""Boxes in a block at least."""


def repeats(signs: Sequence[Hashable], most: int) -> tuple[int, int, int] | None:
    """Where blocks of equal signs follow one another: the begin, the length of a block, and how many there are.

    Of all such rows the one that covers most, with the shortest blocks; there are `most` of them at most. None where
    less than half is covered.
    """
    numbers = {sign: number for number, sign in enumerate(dict.fromkeys(signs))}
    row = np.array([numbers[sign] for sign in signs], np.int64)
    best = (len(row) // 2, 0, 0, 0)
    for length in range(max(_SHORTEST, len(row) // (2 * most)), len(row) // 2 + 1):
        differing = np.flatnonzero(row[:-length] != row[length:])
        borders = np.concatenate(([-1], differing, [len(row) - length]))
        runs = np.diff(borders) - 1
        longest = int(runs.argmax())
        count = (int(runs[longest]) + length) // length
        if 1 < count <= most and count * length > best[0]:
            best = (count * length, int(borders[longest]) + 1, length, count)
    return best[1:] if best[3] else None


def stretches(count: int, reads: Sequence[tuple[int, int]]) -> list[int]:
    """Where stretches of `count` boxes begin; `reads` are pairs of a box and one that reads it.

    Of the places about a stretch's end the one that the fewest reads cross.
    """
    crossing = np.zeros(count + 1, np.int64)
    for source, reader in reads:
        if source < reader:
            crossing[source + 1] += 1
            crossing[reader + 1] -= 1
    crossing = np.cumsum(crossing)
    begins = [0]
    while count - begins[-1] > _STRETCH + _STRETCH // 2:
        low, high = begins[-1] + _STRETCH // 2, begins[-1] + _STRETCH + _STRETCH // 2
        begins.append(low + int(crossing[low:high].argmin()))
    return begins
