"""Memory that nobody uses any more, for those who need some: new memory takes longer to touch than to fill."""

from __future__ import annotations

import sys
from math import prod
from threading import Lock

import numpy as np

from irrun.engines.memory import ALIGNMENT, allocate, cut
from irrun.locks import fork_safe
from irrun.spec.op import Array

LEAST = 1 << 22
"""Bytes from which on memory is kept; the system's allocator itself gives less than 32 MiB again and again."""

MAX_BLOCKS, MAX_BYTES = 8, 1 << 29
"""What a reserve refers to, at most: the latest blocks, whoever uses them."""

ROOMY = 4
"""How many times as large as is needed a block may be."""


def _own_references() -> int:
    memory = np.empty(0)
    return sys.getrefcount(memory)


OWN_REFERENCES = _own_references()
"""To memory that no array is in: of who looks, and of the call that counts them, if Python counts these."""


class Reserve:
    """The memory of results, which belongs to the caller for as long as an array lies in it. Safe for threads."""

    def __init__(self) -> None:
        self._blocks: list[Array] = []
        self._lock = fork_safe(Lock())

    def take(self, size: int) -> Array:
        """`size` bytes that begin at a cache line, in the smallest block in which no array lies. Raises MemoryError."""
        if size < LEAST:
            return allocate(size)
        with self._lock:
            free = [number for number in range(len(self._blocks)) if self._is_free(number)]
            fitting = [number for number in free if size + ALIGNMENT <= self._blocks[number].nbytes <= ROOMY * size]
            if fitting:
                return cut(self._blocks[min(fitting, key=lambda number: self._blocks[number].nbytes)], size)
            # what is there goes back where a larger block will stand for it: the system is quick to give it once more
            replaced = {number for number in free if size < ROOMY * self._blocks[number].nbytes < ROOMY * size}
            self._blocks = [block for number, block in enumerate(self._blocks) if number not in replaced]
            block = np.empty(size + size // 4 + ALIGNMENT, np.uint8)  # what nobody writes to costs nothing
            self._blocks.append(block)
            while len(self._blocks) > MAX_BLOCKS or sum(own.nbytes for own in self._blocks) > MAX_BYTES:
                del self._blocks[0]
            return cut(block, size)

    def _is_free(self, number: int) -> bool:
        """Whether no array lies in a block."""
        block = self._blocks.pop(number)
        free = sys.getrefcount(block) <= OWN_REFERENCES
        self._blocks.insert(number, block)
        return free

    def lend(self, size: int) -> Array:
        """As `take`, as an array that goes when nobody uses it, so that a meter may count its bytes until then."""
        memory = self.take(size)
        return memory if size < LEAST else np.frombuffer(memoryview(memory), np.uint8)  # type: ignore[arg-type]

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """An array in memory that is lent."""
        return np.ndarray(shape, dtype, self.lend(prod(shape) * dtype.itemsize))
