"""Constant weights as a file has them: codes of few bits with scales and zero points, made f32 where they are used."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from irrun.ir.weights import unpacked
from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES, NF4, numpy_dtype
from irrun.spec.op import Array

PACKED = frozenset({"u4", "i4", "nf4", "f4e2m1"})
"""Types of codes of which a byte holds two, the first one in its lower half."""

LEAST = 1 << 16
"""Bytes of f32 from which on weights stay compressed."""

CODES = PACKED | {"u8", "i8", "f8e4m3", "f8e5m2", "f16", "bf16"}
"""The types of codes: each stands for a number that f32 has, too."""

BLOCK = 1 << 16
"""Elements that are made f32 at a time: with their codes they stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class CompressedWeights:
    """A constant f32 tensor of `shape`: (the number of a code - zero) * scale, in f32 whatever types these are of.

    `codes` are its bytes (u8), in C order, perhaps a view of the file and unaligned. They are `stored` as a tensor of
    as many elements in the same order, to which the f32 arrays `scale` and `zero`, of the same rank, broadcast; None
    is 1 and 0. So weights [N, K] in groups of 64 are stored as [N, K / 64, 64] with scales [N, K / 64, 1]. Where they
    are `rounded` products may round the values, and the rows that they multiply, to bf16.
    """

    type: str
    codes: Array
    stored: tuple[int, ...]
    shape: tuple[int, ...]
    scale: Array | None = None
    zero: Array | None = None
    rounded: bool = False

    @property
    def stand_in(self) -> Array:
        """An array of its shape that takes no memory, for those that look only at that."""
        return np.broadcast_to(np.float32(0), self.shape)

    def plain(self) -> Array:
        """The codes as an array of their type, each in a byte of its own where two share one."""
        if self.type in PACKED:
            return unpacked(self.type, self.codes, prod(self.stored)).reshape(self.stored)
        return self.codes.view(numpy_dtype(self.type)).reshape(self.stored)

    def dense(self, start: int = 0, stop: int | None = None) -> Array:
        """The values, f32, of the rows from `start` to `stop` along the first axis; of all unless given."""
        rows = (self.shape[0] if stop is None else stop) - start
        result = np.empty((rows, *self.shape[1:]), np.float32)
        self.write(start, start + rows, result)
        return result

    def write(self, start: int, stop: int, into: Array) -> None:
        """Write what `dense` gives into an f32 array in C order."""
        row, unit = prod(self.shape[1:]), prod(self.stored[1:])
        step = max(BLOCK // max(row, 1), 1)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            part = into[first - start : last - start]
            if row == unit:
                self._write(first, last, part.reshape(last - first, *self.stored[1:]))
                continue
            low, high = first * row // unit, -(-last * row // unit)
            whole = np.empty((high - low, *self.stored[1:]), np.float32)
            self._write(low, high, whole)
            part.reshape(-1)[...] = whole.reshape(-1)[first * row - low * unit : last * row - low * unit]

    def take(self, places: Array, into: Array) -> None:
        """Write the rows at `places`, which are 0 or more, into an f32 array [places, *shape[1:]] in C order."""
        row, unit = prod(self.shape[1:]), prod(self.stored[1:])
        bits = row * ELEMENT_TYPES[self.type].bits
        if row != unit or bits % 8:
            for number, place in enumerate(places.tolist()):
                self.write(place, place + 1, into[number : number + 1])
            return
        table = self.codes.reshape(-1, bits // 8)
        step = max(BLOCK // max(row, 1), 1)
        for first in range(0, len(places), step):
            some = places[first : first + step]
            part = into[first : first + step].reshape(len(some), *self.stored[1:])
            _decode(self.type, np.take(table, some, 0).reshape(-1), part.reshape(-1))
            self._adjust(part, some)

    def _write(self, start: int, stop: int, into: Array) -> None:
        """The values of some rows of what is stored."""
        unit = prod(self.stored[1:])
        begin, end = start * unit, stop * unit
        bits = ELEMENT_TYPES[self.type].bits
        codes = self.codes[begin * bits // 8 : -(-end * bits // 8)]
        if bits == 4 and (begin % 2 or end % 2):
            whole = np.empty(2 * len(codes), np.float32)
            _decode(self.type, codes, whole)
            into.reshape(-1)[...] = whole[begin % 2 : begin % 2 + end - begin]
        else:
            _decode(self.type, codes, into.reshape(-1))
        self._adjust(into, slice(start, stop))

    @np.errstate(over="ignore", invalid="ignore")
    def _adjust(self, into: Array, rows: slice | Array) -> None:
        """Apply zero points and scales to numbers of codes, those of the rows of what is stored."""
        for function, factor in ((np.subtract, self.zero), (np.multiply, self.scale)):
            if factor is not None:
                function(into, factor[rows] if factor.shape[0] > 1 else factor, out=into)


@cache
def numbers_of(type: str) -> Array:
    """What all codes of a type of 4 or 8 bits stand for, in order: 16 or 256 of f32."""
    if type == "nf4":
        return np.array(NF4, np.float32)
    if type in PACKED:
        low = np.arange(16, dtype=np.uint8)
        return unpacked(type, low, 32)[::2].astype(np.float32)
    return np.arange(256, dtype=np.uint8).view(numpy_dtype(type)).astype(np.float32)


@cache
def _fours(type: str) -> Array:
    """The four numbers that each two bytes stand for, as 16 bytes that numpy moves at once."""
    codes = np.arange(1 << 16)[:, None] >> np.array([0, 4, 8, 12]) & 15
    numbers: Array = numbers_of(type)[codes]
    return numbers.view(np.complex128).ravel()


@cache
def _halves() -> Array:
    """What all codes of f16 stand for: to look them up is quicker than numpy's conversion."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _decode(type: str, codes: Array, into: Array) -> None:
    """The numbers of codes, into a vector of f32; codes that share bytes begin and end with a whole one."""
    if type in PACKED:
        even = len(codes) // 2 * 2
        np.take(_fours(type), codes[:even].view(np.uint16), out=into[: 2 * even].view(np.complex128), mode="clip")
        if even < len(codes):
            into[-2:] = numbers_of(type)[[codes[-1] & 15, codes[-1] >> 4]]
    elif type == "f16":
        np.take(_halves(), codes.view(np.uint16), out=into, mode="clip")
    elif type == "bf16":
        np.left_shift(codes.view(np.uint16), 16, out=into.view(np.uint32), dtype=np.uint32)
    elif type in ("f8e4m3", "f8e5m2"):
        np.take(numbers_of(type), codes, out=into, mode="clip")
    else:
        np.copyto(into, codes.view(numpy_dtype(type)))
