"""Concatenations that grow: what a loop appends to, again and again, is written to behind what is there.

An iteration that copies all that the ones before have made takes the longer, the more there were.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.memory import data_address
from irrun.engines.threads import Threads
from irrun.engines.work import OpenCall, Work
from irrun.spec.op import Array

LEAST = 1 << 16
"""Bytes of what is appended to from which on it takes longer to copy than to find out that it need not be."""

SPARE = 2
"""How many times as much room there is, once something has been appended to what this call has made."""


def open_concat(work: Work, _: Threads) -> OpenCall | None:
    """Concat-1 of any sizes."""
    if work.posts or any(operand is None or operand.type == "string" for operand in work.inputs):
        return None
    return _Appending(work.attrs["axis"])


class _Appending(threading.local):
    """The call of a work. Each thread knows what it has made last: `filled` bytes at the start of `block`.

    Whoever has an array of these keeps it: only what lies behind is written to, and once.
    """

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self._block: weakref.ref[Array] | None = None
        self._filled = 0

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Array] | None:
        first = arrays[0]
        if not -first.ndim <= self._axis < first.ndim:
            return None
        axis = self._axis % first.ndim
        before, behind = first.shape[:axis], first.shape[axis + 1 :]
        alike = all(
            array.dtype == first.dtype and array.shape[:axis] == before and array.shape[axis + 1 :] == behind
            for array in arrays
            if array is not first
        )
        if not alike:
            return None
        if first.nbytes < LEAST or prod(before) != 1 or not first.flags.c_contiguous:
            return [np.concatenate(arrays, axis)]
        length = sum(array.shape[axis] for array in arrays)
        shape, row = (*before, length, *behind), first.nbytes // first.shape[axis]
        block = None if self._block is None else self._block()
        grows = block is not None and first.nbytes == self._filled and _begins(first, block)
        start = first.shape[axis]
        if block is None or not grows or length * row > block.nbytes:
            block = np.empty(length * row * (SPARE if grows else 1), np.uint8)
            start = 0
        self._block, self._filled = weakref.ref(block), length * row
        result = block[: length * row].view(first.dtype).reshape(shape)
        lines = result.reshape(length, *behind)
        place = 0
        for array in arrays:
            count = array.shape[axis]
            if place >= start:
                lines[place : place + count] = array.reshape(count, *behind)
            place += count
        return [result]


def _begins(array: Array, block: Array) -> bool:
    """Whether an array is the start of a block: of the block itself, which lives as long as it does."""
    return data_address(array) == data_address(block)
