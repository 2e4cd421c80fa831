"""What arrays are like, block by block, by kernels that threads share."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from irrun.engines.compiled.loops import Bytes, Longs, looped
from irrun.engines.compiled.measure_kernel import Limits, addresses_of
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.placement import processors
from irrun.spec.op import Array

SHARED_BYTES = 1 << 19
"""Bytes from which on threads share them: one takes some 60 us for these."""

BYTE_NANOSECONDS = 0.6
"""What a byte takes of which it is counted how often it is there."""

MAX_THREADS = 4
"""More read memory no sooner."""


class Measure:
    """What looks at dense arrays of elements of a type in blocks of so many bytes, and writes what it has found to rows
    of fields of 8 bytes, see `measure_kernel`. `factors` are u64. Any number of threads may call it at once."""

    def __init__(self, look: int, merge: int, block: int, factors: Array) -> None:
        self._address, self._block, self._factors = look, block, factors
        self._look, self._merge = (ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address) for address in (look, merge))
        self._factors_begin = data_address(factors)

    @staticmethod
    def of(type: str, limits: Limits, names: tuple[str, ...], block: int, factors: Array) -> Measure | None:
        """None where there is no code for the type."""
        found = addresses_of(type, limits, names)
        return None if found is None else Measure(*found, block, factors)

    def __call__(self, flat: Array, rows: Array) -> None:
        """Fill rows, one for each block; then the first one is of all, but for its sum."""
        block = self._block // flat.itemsize
        values = (0, len(rows), flat.size, block, data_address(flat), self._factors_begin, data_address(rows))
        arguments = np.array(values, np.uint64)
        pointer = data_address(arguments)
        if flat.nbytes < SHARED_BYTES:
            self._look(pointer)
        else:
            _team().run(self._address, pointer, shared=True)
        if len(rows) > 1:
            self._merge(pointer)


def counted(flat: Array, block: int, factors: Array) -> tuple[Array, Array]:
    """The sum of each block of so many bytes, u64, see `measure_kernel`, and how often each byte is in all, i64 [256].
    Elements are of one byte."""
    data = flat.view(np.uint8)
    blocks = -(-data.size // block)
    sums, counts = np.empty(blocks, np.int64), np.empty((blocks, 256), np.int64)
    content = data if data.size % 8 == 0 and data_address(data) % 8 == 0 else _padded(data)
    arguments = (content, content.view(np.int64), factors.view(np.int64), data.size, block, sums, counts)
    looped(_team(), histogram, arguments, blocks, data.size * BYTE_NANOSECONDS)()
    return sums.view(np.uint64), counts.sum(axis=0)


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


def _padded(data: Array) -> Array:
    content = np.zeros(-(-data.size // 8) * 8, np.uint8)
    content[: data.size] = data
    return content


@cache
def _team() -> Team:
    return Team(min(processors(), MAX_THREADS))
