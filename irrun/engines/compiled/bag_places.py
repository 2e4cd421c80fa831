"""Where the bags of an op begin and how many indices they have, found by loops that see to it that all are inside."""

from __future__ import annotations

from irrun.engines.compiled.loops import Longs, Places

WRONG, LONGEST = 0, 1
"""What is found: whether a rule is broken, which is not 0 then, and the most indices of a bag."""


def by_offsets(
    begin: int,
    end: int,
    indices: Places,
    offsets: Places,
    starts: Longs,
    counts: Longs,
    found: Longs,
    rows: int,
    total: int,
    bags: int,
) -> None:
    """Bags of `total` indices that begin at offsets; indices lie in [0, rows)."""
    for _ in range(begin, end):
        wrong, longest = outside(indices, total, rows), 0
        for bag in range(bags):
            start = offsets[bag]
            stop = offsets[bag + 1] if bag + 1 < bags else total
            wrong = wrong | int(start < 0) | int(stop < start)
            starts[bag], counts[bag] = start, stop - start
            longest = max(longest, stop - start)
        found[WRONG], found[LONGEST] = wrong, longest


def by_segments(
    begin: int,
    end: int,
    indices: Places,
    ids: Places,
    starts: Longs,
    counts: Longs,
    found: Longs,
    rows: int,
    total: int,
    bags: int,
) -> None:
    """Bags whose numbers `ids` has for each index, in order."""
    for _ in range(begin, end):
        wrong, longest, before = outside(indices, total, rows), 0, 0
        for bag in range(bags):
            counts[bag] = 0
        for place in range(total):
            bag = ids[place]
            if bag < before or bag >= bags:
                wrong = 1
                break
            counts[bag] = counts[bag] + 1
            before = bag
        start = 0
        for bag in range(bags):
            starts[bag] = start
            start += counts[bag]
            longest = max(longest, counts[bag])
        found[WRONG], found[LONGEST] = wrong, longest


def by_rows(
    begin: int,
    end: int,
    indices: Places,
    ids: Places,
    starts: Longs,
    counts: Longs,
    found: Longs,
    rows: int,
    total: int,
    bags: int,
) -> None:
    """Bags that are rows of as many indices each."""
    for _ in range(begin, end):
        each = total // bags
        for bag in range(bags):
            starts[bag], counts[bag] = bag * each, each
        found[WRONG], found[LONGEST] = outside(indices, total, rows), each


def outside(indices: Places, total: int, rows: int) -> int:
    """Whether one of the indices is."""
    wrong = 0
    for place in range(total):
        wrong = wrong | int(indices[place] < 0) | int(indices[place] >= rows)
    return wrong
