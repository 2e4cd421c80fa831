"""Copies of views: how numpy does them quickly, and the frame of all ops that only move elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from irrun.engines.axes import merged
from irrun.engines.extents import view
from irrun.engines.threads import Threads
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.work import Arrays, Call, Compiled, Layout, Operand, Work
from irrun.spec.op import Array

TILE = 128
"""Rows and columns of a tile of a transposed copy: its lines stay in the cache until all their elements are used."""

MAX_BYTES = 1 << 20
"""Bytes that one call copies, so that threads can share them."""

SMALL = 1 << 12
"""A tensor of fewer elements is copied by one call."""

SHORT = 8
"""An axis with no more elements is slow as the inner loop of a copy."""

BYTE_NANOSECONDS = 0.1
"""What copying a byte takes about."""

Pairs = list[tuple[Any, Any]]
"""Views of outputs, and the views of inputs or numbers that they are filled with, in order where they overlap."""

Mover = Callable[[Arrays, Sequence[Array]], Pairs]


def copy_calls(target: Array, source: Array) -> list[Call]:
    """The calls that copy a view to another one of the same shape and type; in any order, by any threads.

    numpy takes the elements in the order of the target. That is slow where its last axis is short, which is made a
    call for each of its elements then, and where that of the source is another one, which is cut into tiles then.
    """
    if target.dtype.isbuiltin != 1:  # numpy is slower with types that are not its own
        target, source = (array.view(f"u{array.itemsize}") for array in (target, source))
    if target.size < SMALL or _lies_alike(target, source):
        return [partial(np.copyto, target, source)]
    shape, (to, come) = merged(target.shape, [target.strides, source.strides])
    target, source = view(target, shape, to), view(source, shape, come)
    rank = len(shape)
    last = min(range(rank), key=lambda axis: abs(to[axis]))
    if rank > 1 and shape[last] <= SHORT and come[last] != target.itemsize:
        ahead: tuple[Any, ...] = (slice(None),) * last
        return [call for i in range(shape[last]) for call in copy_calls(target[(*ahead, i)], source[(*ahead, i)])]
    steps = dict.fromkeys(range(rank), 1)
    first = min(range(rank), key=lambda axis: (abs(come[axis]) or 1 << 62, -axis))
    if last != first and shape[last] * shape[first] >= TILE * TILE and min(shape[last], shape[first]) >= TILE // 8:
        steps |= {last: TILE, first: TILE}
    else:
        steps = {0: -(-shape[0] * MAX_BYTES // target.nbytes)}
    ranges = [range(0, size, steps.get(axis, size)) for axis, size in enumerate(shape)]
    tiles = [
        tuple(slice(begin, begin + kind.step) for begin, kind in zip(place, ranges, strict=True))
        for place in product(*ranges)
    ]
    return [partial(np.copyto, target[tile], source[tile]) for tile in tiles]


def _lies_alike(target: Array, source: Array) -> bool:
    """Whether one call copies rows that are long enough in the order that both have them in, as far as that is to be
    seen at a glance."""
    item, long = target.itemsize, target.shape[-1] > SHORT and target.nbytes <= MAX_BYTES
    return long and target.strides[-1] == source.strides[-1] == item


def copied(engine: str, operand: Operand, layout: Layout | None, threads: Threads) -> Compiled:
    """What an engine makes of a reorder that knows no layouts but those that everybody can read: a copy. Raises
    ValueError for others."""
    if operand.layout is not None or (layout is not None and layout.strides is None):
        raise ValueError(f"the engine {engine} has no layouts of its own")

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        return shared_copies(threads, [(outputs[0], inputs[0])])

    return Compiled(bind)


def shared_copies(threads: Threads, pairs: Pairs) -> Call:
    """One call that copies views, none of which is of another's target; threads share what takes long."""
    calls = [call for target, source in pairs for call in filling(target, source)]
    nanoseconds = sum(target.nbytes for target, _ in pairs) * BYTE_NANOSECONDS
    return threads.together(calls, threads.sharing(nanoseconds))


def moving(prepare: Callable[[Work], Mover | None]) -> Callable[[Work, Threads], Compiled | None]:
    """A compiler of ops whose `prepare` tells which views are filled with which."""

    def compile(work: Work, threads: Threads) -> Compiled | None:
        if any(operand.type == "string" for operand in work.tensors):
            return None
        mover = prepare(work)
        if mover is None:
            return None

        def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
            pairs = mover(inputs, outputs)
            if _depend(pairs):
                return [call for target, source in pairs for call in filling(target, source)]
            return [shared_copies(threads, pairs)]

        return with_posts(work, bind)

    return compile


def filling(target: Array, source: Any) -> list[Call]:
    """The calls that fill a view with what it is paired with."""
    if isinstance(source, np.ndarray) and source.shape == target.shape:
        return copy_calls(target, source)
    return [partial(np.copyto, target, source)]


def _depend(pairs: Pairs) -> bool:
    """Whether some view of an output is read again."""
    return any(isinstance(source, np.ndarray) and np.may_share_memory(target, source) for target, source in pairs)
