"""Reductions on numpy: axes folded into one element, with the sums of rows by einsum, several times as quick as sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from irrun.engines.axes import constant_axes
from irrun.engines.extents import view
from irrun.engines.vectorized import functions
from irrun.engines.vectorized.lines import line_cuts, lines, square_summation, squeezed, summation
from irrun.engines.vectorized.posts import BLOCK, BOOLEAN, INTEGERS, with_posts
from irrun.engines.vectorized.threads import Threads, even
from irrun.engines.work import Call, Compiled, Operand, Work, chain
from irrun.spec.op import Array

ELEMENT_NANOSECONDS = 0.2

INTEGER_REDUCTIONS: dict[str, np.ufunc] = {
    "ReduceSum-1": np.add,
    "ReduceProd-1": np.multiply,
    "ReduceMax-1": np.maximum,
    "ReduceMin-1": np.minimum,
}
BOOLEAN_REDUCTIONS: dict[str, np.ufunc] = {"ReduceLogicalAnd-1": np.logical_and, "ReduceLogicalOr-1": np.logical_or}
FLOAT_REDUCTIONS = {**INTEGER_REDUCTIONS, "ReduceMean-1": np.add, "ReduceMax-1": np.fmax, "ReduceMin-1": np.fmin}


def reduction(work: Work, threads: Threads) -> Compiled | None:
    """A reduction over constant axes."""
    (data,), along = work.required(1), constant_axes(work)
    if not along:
        return None
    kept = tuple(1 if axis in along else size for axis, size in enumerate(data.shape))
    if data.type == "f32":
        bind = _of_floats(work.name, data, along, kept, threads)
    else:
        table = INTEGER_REDUCTIONS if data.type in INTEGERS else BOOLEAN_REDUCTIONS if data.type in BOOLEAN else {}
        bind = _of_whole(table[work.name], along, kept) if work.name in table else None
    if bind is None:
        return None
    return with_posts(work, lambda inputs, outputs, _: bind(inputs[0], outputs[0]))


Bind = Callable[[Array, Array], list[Call]]


def _of_whole(ufunc: np.ufunc, along: Sequence[int], kept: tuple[int, ...]) -> Bind:
    def bind(data: Array, output: Array) -> list[Call]:
        return [
            partial(ufunc.reduce, data, axis=tuple(along), dtype=data.dtype, out=output.reshape(kept), keepdims=True)
        ]

    return bind


def _of_floats(name: str, data: Operand, along: Sequence[int], kept: tuple[int, ...], threads: Threads) -> Bind | None:
    count = prod(data.shape[axis] for axis in along)
    found = lines(data, along)
    if found is None or found.strides is None:
        if name not in FLOAT_REDUCTIONS:
            return None
        whole = _of_whole(FLOAT_REDUCTIONS[name], along, kept)
        return lambda data, output: [*whole(data, output), *_finish(name, output, count)]
    shape, strides = found.shape, found.strides
    sharing = threads.sharing(prod(shape) * ELEMENT_NANOSECONDS)

    def bind(data: Array, output: Array) -> list[Call]:
        seen, sums = squeezed(view(data, shape, strides)), squeezed(output.reshape(shape[0], 1, shape[2]))
        calls = [
            _fold(name, seen[cut[: seen.ndim]], sums[cut[0], :, *cut[2 : seen.ndim]])
            for cut in line_cuts(shape, even(prod(shape), BLOCK, sharing))
        ]
        every = threads.call(calls) if sharing > 1 and len(calls) > 1 else chain(calls)
        return [every, *_finish(name, output, count)]

    return bind


def _fold(name: str, data: Array, output: Array) -> Call:
    """Folds the lines along axis 1 of a block, but for what `_finish` does."""
    if name == "ReduceL2-4":
        return square_summation(data, output)
    if name == "ReduceL1-4":
        return partial(_sum_of_absolutes, data, output)
    if name in ("ReduceSum-1", "ReduceMean-1"):
        return summation(data, output)
    return partial(FLOAT_REDUCTIONS[name].reduce, data, axis=1, out=output, keepdims=True)


def _sum_of_absolutes(data: Array, output: Array) -> None:
    absolutes = functions.temporary(data)
    np.absolute(data, absolutes)
    summation(absolutes, output)()


def _finish(name: str, output: Array, count: int) -> list[Call]:
    """What makes of the sums of `count` elements each what they are for."""
    if name == "ReduceMean-1":
        return [partial(np.divide, output, np.array(count, np.float32), output)]
    if name == "ReduceL2-4":
        return [partial(np.sqrt, output, output)]
    return []


COMPILERS = dict.fromkeys((*FLOAT_REDUCTIONS, *BOOLEAN_REDUCTIONS, "ReduceL1-4", "ReduceL2-4"), reduction)
