"""Arrays of any size, also in files, in blocks of half a MB; what is computed of them is the caller's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irrun.spec.op import Array

BLOCK = 1 << 16
"""Elements that are looked at together: 512 kB as f64, which caches hold."""


def blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Vectors of the elements of arrays that have equally many, in C order, side by side."""
    flat = [array.reshape(-1) if array.flags.c_contiguous else array.flat for array in arrays]
    for begin in range(0, arrays[0].size, BLOCK):
        yield tuple(part[begin : begin + BLOCK] for part in flat)


def numbers(array: Array) -> Array:
    """The elements as f64."""
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def bits(vector: Array) -> Array:
    """The elements as bytes."""
    return np.ascontiguousarray(vector).view(np.uint8)


class Distribution:
    """How large many numbers are that are not negative: exactly for a million, then to a part of 256, in 512 kB."""

    SHIFT = 15  # of the 31 bits of an f32: what is left tells numbers apart that differ by a part of 256
    MOST = 1 << 20

    def __init__(self) -> None:
        self._kept: list[Array] = []
        self._counts: Array | None = None
        self.total = 0

    def add(self, values: Array) -> None:
        self.total += values.size
        self._kept.append(values)
        if self.total > self.MOST:
            if self._counts is None:
                self._counts = np.zeros((0x7F800000 >> self.SHIFT) + 1, np.int64)
            with np.errstate(all="ignore"):
                narrow = np.concatenate(self._kept).astype(np.float32)
            self._counts += np.bincount(narrow.view(np.uint32) >> self.SHIFT, minlength=self._counts.size)
            self._kept = []

    def quantile(self, share: float) -> float:
        """The least number that a share of all are not above; 0 where there are none."""
        if not self.total:
            return 0.0
        wanted = max(1, int(np.ceil(share * self.total - 1e-9)))
        if self._counts is None:
            return float(np.partition(np.concatenate(self._kept), wanted - 1)[wanted - 1])
        place = int(np.searchsorted(np.cumsum(self._counts), wanted))
        return float(np.uint32(place << self.SHIFT).view(np.float32))
