"""Memory that begins where processors read it best, and where that of an array is."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from contextlib import suppress
from ctypes import c_void_p
from threading import Lock

import numpy as np

from irrun.locks import fork_safe
from irrun.spec.op import Array

ALIGNMENT = 64
"""Bytes of a cache line, and of the widest vectors."""

ITEM = 4
"""Bytes of an f32."""

LARGE_PAGED = range(1 << 15, 1 << 22)
"""Bytes of what is worth a place in large pages: less lies in few pages, and for more numpy asks for such itself."""

BLOCK = 1 << 24
"""Bytes of large pages that the system is asked for at once, and gives as they are written."""


def aligned(size: int) -> int:
    """`size` bytes in whole cache lines, for more to lie behind them."""
    return -(-size // ALIGNMENT) * ALIGNMENT


_HEAD = object.__basicsize__
"""Bytes that every object begins with. Behind them an array has the address of its data, as extensions rely on: `data`
in https://numpy.org/doc/stable/reference/c-api/types-and-structures.html#c.PyArrayObject"""

_pointer_at = c_void_p.from_address


def data_address(array: Array) -> int:
    """The address of the first element; numpy's own attributes take six times as long to tell it. Raises TypeError for
    what is no array, as a scalar of numpy's, which keeps its bytes elsewhere."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{type(array).__name__} is no array")
    return _pointer_at(id(array) + _HEAD).value or 0


def allocate(size: int) -> Array:
    """`size` bytes that begin at a cache line; the system gives them when they are first written."""
    return cut(np.empty(size + ALIGNMENT, np.uint8), size)


def cut(block: Array, size: int) -> Array:
    """`size` of the bytes of a larger block, that begin at a cache line."""
    start = -data_address(block) % ALIGNMENT
    return block[start : start + size]


class _LargePages:
    """Memory in pages of 2 MiB, where the system has these for who asks, from the beginning of a block to its end: it
    is given back with the last array in a block, each of which is its own owner. Safe for threads."""

    def __init__(self) -> None:
        self._block: mmap.mmap | bytes = b""
        self._begin, self._lock = 0, fork_safe(Lock())

    def take(self, size: int) -> Array:
        with self._lock:
            begin = self._begin
            if begin + size > len(self._block):
                block = _large_block()
                if block is None:
                    return allocate(size)
                self._block, begin = block, 0
            self._begin = begin + aligned(size)
            return np.frombuffer(self._block, np.uint8, size, begin)


def _large_block() -> mmap.mmap | None:
    """None where there are no such pages, or not so much memory."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:
        return None
    with suppress(OSError):
        memory = mmap.mmap(-1, BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(advice)
        return memory
    return None


_large_pages = _LargePages()


def allocate_lasting(size: int) -> Array:
    """As `allocate`, for what every run goes through from one end to the other, weights and tensors on the way: to find
    out where small pages lie takes processors a part of the time in which they read them."""
    return _large_pages.take(size) if size in LARGE_PAGED else allocate(size)


class Arranged:
    """A constant as `arrange` makes it, when it is first asked for, and shared by all who ask."""

    def __init__(self, value: Array, arrange: Callable[[Array], Array]) -> None:
        self._value, self._arrange, self._lock = value, arrange, fork_safe(Lock())
        self._made: Array | None = None

    def array(self) -> Array:
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._arrange(self._value)
        return self._made

    def pending(self) -> list[Callable[[], object]]:
        """What makes it, by any thread, before it is asked for; nothing where that is done."""
        return [self.array] if self._made is None else []


def arranged_once(
    kept: MutableMapping[tuple[Hashable, ...], Arranged],
    values: Sequence[Array],
    arrange: Callable[[Array], Array],
    *way: Hashable,
) -> Arranged:
    """What `arrange` makes in some way of the first of constants, and of the others that it knows: the same for all who
    ask for that way of the same memory. That is nobody else's as long as what is `kept` holds the constants."""
    key = *((data_address(value), value.shape, value.strides) for value in values), *way
    found = kept.get(key)
    return kept.setdefault(key, Arranged(values[0], arrange)) if found is None else found
