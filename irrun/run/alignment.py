"""Constants that the .bin holds at addresses which processors do not like, copied once for all that read them."""

from __future__ import annotations

from threading import Lock

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irrun.engines.extents import extent_of
from irrun.engines.memory import allocate, data_address
from irrun.locks import fork_safe
from irrun.spec.op import Array


class Alignment:
    """Aligned copies by the bytes that they are of. Safe for threads."""

    def __init__(self) -> None:
        self._copies: dict[tuple[int, int], Array] = {}
        self._lock = fork_safe(Lock())

    def __call__(self, array: Array) -> Array:
        """The array, or an aligned one that is equal in elements, shape and strides: loops over others are slow."""
        if array.flags.aligned:
            return array
        below, behind = extent_of(array.shape, array.strides, array.itemsize)
        lowest = array[(*(-1 if step < 0 else 0 for step in array.strides), None)].view(np.uint8)
        low, length = data_address(lowest), below + behind
        with self._lock:
            copy = self._copies.get((low, length))
            if copy is None:
                copy = allocate(length)
                copy[...] = as_strided(lowest, (length,), (1,))
                copy.flags.writeable = False  # as the constants of a file
                self._copies[low, length] = copy
        return np.ndarray(array.shape, array.dtype, copy, below, array.strides)
