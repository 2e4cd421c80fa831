"""How often each byte is in blocks of them, and what their words add up to."""

from __future__ import annotations

import numpy as np

from irrun.engines.compiled.loops import Bytes, Longs


def histogram(
    begin: int, end: int, data: Bytes, words: Longs, factors: Longs, size: int, block: int, sums: Longs, counts: Longs
) -> None:
    """Of each block of so many of the `size` bytes, of which `words` is the same memory: the sum of words times their
    factors, the last one filled up with zeros, and of the number of bytes; and the counts [256] of bytes."""
    own = np.empty(4 * 256, np.int32)
    for item in range(begin, end):
        for value in range(4 * 256):
            own[value] = 0
        first = item * block
        count = min(size - first, block)
        quads = count // 4
        for quad in range(quads):
            place = first + 4 * quad
            own[data[place]] += 1
            own[256 + data[place + 1]] += 1
            own[512 + data[place + 2]] += 1
            own[768 + data[place + 3]] += 1
        for place in range(first + 4 * quads, first + count):
            own[data[place]] += 1
        for value in range(256):
            counts[item * 256 + value] = own[value] + own[256 + value] + own[512 + value] + own[768 + value]
        total = count
        for word in range(count // 8):
            total += words[first // 8 + word] * factors[word]
        rest = 0
        unit = 1
        for place in range(first + count // 8 * 8, first + count):
            rest += data[place] * unit
            unit = unit * 256
        sums[item] = total + rest * factors[count // 8]
