"""Tensors cut into blocks: operands of an element-wise op seen with as few axes as they allow, and slices of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

from irrun.engines.extents import view
from irrun.engines.vectorized.threads import Threads
from irrun.engines.work import Call
from irrun.spec.op import Array

Cut = tuple[slice, ...]

SHARED_NANOSECONDS = 400_000
"""A work that takes less on one thread is not shared: waking another and sharing the interpreter cost too much."""


def viewed(array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array that is broadcast by strides of 0; a scalar stays one, which ufuncs are quickest with."""
    if array.size == 1:
        return array.reshape(())
    if array.shape == shape and array.strides == strides:
        return array
    return view(array, shape, strides)


def cuts(shape: Sequence[int], most: int) -> list[Cut]:
    """Slices of the leading axes that cut a tensor into blocks of at most `most` elements, if a row has no more."""
    axis, inner = 0, prod(shape)
    while axis < len(shape) and inner // shape[axis] * 2 > most:
        inner //= shape[axis]
        axis += 1
    if axis == len(shape):
        axis, inner = len(shape) - 1, shape[-1]
    count = -(-shape[axis] // max(most * shape[axis] // inner, 1))
    step = -(-shape[axis] // count)
    outer = [[slice(i, i + 1) for i in range(size)] for size in shape[:axis]]
    last = [slice(begin, min(begin + step, shape[axis])) for begin in range(0, shape[axis], step)]
    return [tuple(cut) for cut in product(*outer, last)]


def even(elements: int, most: int, threads: int) -> int:
    """The elements of a block, at most `most`, that give each thread as many blocks as the others."""
    count = -(-elements // most)
    return -(-elements // (-(-count // threads) * threads))


def share(threads: Threads, calls: Sequence[Call]) -> Call:
    """One call that makes independent ones on all threads."""
    several = tuple(calls)

    def piece(number: int, _: int) -> None:
        several[number]()

    return partial(threads.run, piece, len(several))
