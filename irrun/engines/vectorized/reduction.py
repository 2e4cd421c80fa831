"""Reductions on numpy: lines of a tensor, along axes that follow one another, folded into one element each.

Of axes with others between them the first ones are folded first: of these numpy takes the longest rows at once.

The sums of rows are made by einsum, several times as quick as sum; very short rows are folded column by column, which
is several times as quick again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import (
    Strided,
    broadcast_strides,
    canonical_strides,
    constant_axes,
    dense_strides,
    ordered_strides,
    reshaped_strides,
    unless_so,
)
from irrun.engines.extents import view
from irrun.engines.orders import reordered
from irrun.engines.threads import Threads, even_blocks
from irrun.engines.vectorized import functions
from irrun.engines.vectorized.posts import BLOCK, BOOLEAN, INTEGERS, with_posts
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.records import NamedTuple
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

LONG = 4096
"""More elements than that are summed in parts: f32 would lose digits."""

PART = 512
"""Elements that are added one after the other where a line's elements do not follow one another."""

SHORT, SHORT_SUM = 16, 8
"""Elements of a row up to which it is folded, or added up, column by column."""

WIDE = 4096
"""Elements that lines are folded into side by side: of fewer numpy is slow to go from one row of them to the next."""

ELEMENT_NANOSECONDS = 0.2

INTEGER_REDUCTIONS: dict[str, np.ufunc] = {
    "ReduceSum-1": np.add,
    "ReduceProd-1": np.multiply,
    "ReduceMax-1": np.maximum,
    "ReduceMin-1": np.minimum,
}
BOOLEAN_REDUCTIONS: dict[str, np.ufunc] = {"ReduceLogicalAnd-1": np.logical_and, "ReduceLogicalOr-1": np.logical_or}
FLOAT_REDUCTIONS = {**INTEGER_REDUCTIONS, "ReduceMean-1": np.add, "ReduceMax-1": np.fmax, "ReduceMin-1": np.fmin}

FOLDED = {"ReduceL1-4": "ReduceSum-1", "ReduceL2-4": "ReduceSum-1"}
"""What folds what has been folded along other axes, where that is something else."""

Cut = tuple[slice, slice, slice]
"""Of `[outer, line, inner]`."""


class Lines(NamedTuple):
    """The axes that lines run along as one, and those before and behind them: `[outer, line, inner]`."""

    shape: tuple[int, int, int]
    strides: tuple[int, ...] | None
    """Of the input in that shape; None where it has no such view, or a slow one, and is copied first."""


def lines(operand: Operand, axes: Sequence[int]) -> Lines | None:
    """Lines along `axes`, which must follow one another but for axes of size 1."""
    sizes = operand.shape
    real = [axis for axis in range(len(sizes)) if sizes[axis] != 1]
    along = [axis for axis in real if axis in axes]
    if not along:
        return None
    first, last = along[0], along[-1]
    if any(first < axis < last and axis not in axes for axis in real):
        return None
    shape = prod(sizes[:first]), prod(sizes[first : last + 1]), prod(sizes[last + 1 :])
    strides = reshaped_strides(sizes, broadcast_strides(operand, sizes), shape)
    dense = strides is not None and strides[2 if shape[2] > 1 else 1] == 4
    return Lines(shape, strides if dense else None)


def line_cuts(shape: tuple[int, int, int], threads: int, least: int = 1) -> list[Cut]:
    """Slices that cut `[outer, line, inner]` into blocks of whole lines, as many for each thread: what stays in the
    cache, but `least` lines."""
    outer, line, inner = shape
    most = max(BLOCK // line, least)
    return [(rows, slice(None), columns) for rows, columns in even_blocks((outer, inner), most, threads)]


def squeezed(seen: Array) -> Array:
    """`[outer, line, inner]`, or `[outer, line]` where that is all."""
    return seen[:, :, 0] if seen.shape[2] == 1 else seen


def summation(values: Array, sums: Array) -> Call:
    """Adds up the lines along axis 1; those of rows by einsum, several times as quick as sum, in parts if long."""
    if values.ndim > 2:
        return _by_parts(partial(np.add.reduce, axis=1, keepdims=True), values, sums)
    return _rows_by_parts(_additions, values, sums[:, 0])


def square_summation(values: Array, sums: Array) -> Call:
    """Adds up the squares of the lines along axis 1, as `summation`."""
    if values.ndim > 2:
        return _by_parts(lambda part, out: np.einsum("ijk,ijk->ik", part, part, out=out[:, 0]), values, sums)
    return _rows_by_parts(_dots, values, sums[:, 0])


def _rows_by_parts(add: Callable[[Array, Array], Call], values: Array, sums: Array) -> Call:
    """Adds up `[rows, line]` along the last axis, a long line in parts: no sum is over too many elements."""
    rows, line = values.shape
    if line <= LONG:
        return add(values, sums)
    count, rest = divmod(line, LONG)
    step, item = values.strides
    between = np.empty((rows, count + (rest > 0)), np.float32)
    calls = [add(view(values, (rows, count, LONG), (step, LONG * item, item)), between[:, :count])]
    if rest:
        calls.append(add(values[:, -rest:], between[:, count]))
    return chain([*calls, _rows_by_parts(_additions, between, sums)])


def _additions(values: Array, sums: Array) -> Call:
    """The sums of the lines along the last axis."""
    if 2 <= values.shape[-1] <= SHORT_SUM:
        return _by_columns(np.add, values, sums)
    return partial(np.einsum, "...i->...", values, out=sums)


def _by_columns(ufunc: np.ufunc, values: Array, folded: Array) -> Call:
    """Folds the lines along the last axis, which has two elements or more."""
    columns = np.moveaxis(values, -1, 0)
    first: list[Call] = [partial(ufunc, columns[0], columns[1], folded)]
    return chain([*first, *(partial(ufunc, folded, column, folded) for column in columns[2:])])


def _by_parts(add: Callable[..., object], values: Array, sums: Array) -> Call:
    """Adds up `[outer, line, inner]` along axis 1 into `[outer, 1, inner]`, a long line in parts."""
    outer, line, inner = values.shape
    if line <= PART:
        return partial(add, values, out=sums)
    starts = range(0, line, PART)
    between = np.empty((outer, len(starts), inner), np.float32)
    calls: list[Call] = [
        partial(add, values[:, start : start + PART], out=between[:, number : number + 1])
        for number, start in enumerate(starts)
    ]
    return chain([*calls, summation(between, sums)])


def _dots(values: Array, sums: Array) -> Call:
    """The products of the lines along the last axis with themselves."""
    if 2 <= values.shape[-1] <= SHORT_SUM:
        return partial(_sum_of, np.square, _additions, values, sums)
    return partial(np.vecdot, values, values, out=sums)  # BLAS for each line


def reduction(work: Work, threads: Threads) -> Compiled | None:
    """A reduction over constant axes."""
    (data,), along = work.required(1), constant_axes(work)
    if not along:
        return None
    if data.type == "f32" and (order := reordered(work)) is not None:
        return in_memory_order(work, along, order, lambda turned, axes: _of_floats(work.name, turned, axes, threads))
    if data.type == "f32":
        bind = _of_floats(work.name, data, along, threads)
    else:
        table = INTEGER_REDUCTIONS if data.type in INTEGERS else BOOLEAN_REDUCTIONS if data.type in BOOLEAN else {}
        bind = _of_whole(table[work.name], along, kept_of(data, along)) if work.name in table else None
    if bind is None:
        return None
    return with_posts(work, lambda inputs, outputs, _: bind(inputs[0], outputs[0]))


Bind = Callable[[Array, Array], list[Call]]


def in_memory_order(
    work: Work, along: Sequence[int], order: Sequence[int], make: Callable[[Operand, Sequence[int]], Bind | None]
) -> Compiled | None:
    """A reduction of data whose axes lie in another order, done in that one, as `make` binds it for data in C order and
    axes; so lie the axes that are left."""
    (data,), (output,) = work.required(1), work.outputs
    kept = kept_of(data, along)
    shape = tuple(data.shape[axis] for axis in order)
    moved = tuple(kept[axis] for axis in order)
    item = numpy_dtype(data.type).itemsize
    turned = Operand(data.type, shape, dense_strides(shape, item))
    bind = make(turned, sorted(order.index(axis) for axis in along))
    if bind is None:
        return None

    def bound(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        return bind(inputs[0].transpose(order), outputs[0].reshape(kept).transpose(order))

    steps = ordered_strides(order, moved, item)
    if len(output.shape) < len(kept):
        steps = tuple(step for axis, step in enumerate(steps) if axis not in along)
    layout = Strided(canonical_strides(output.shape, steps), item * prod(kept))
    return with_posts(work, bound, gives=unless_so(output, layout))


def _of_whole(ufunc: np.ufunc, along: Sequence[int], kept: tuple[int, ...]) -> Bind:
    def bind(data: Array, output: Array) -> list[Call]:
        wide = np.float64 if ufunc is np.add and data.dtype == np.float32 else data.dtype
        return [partial(ufunc.reduce, data, axis=tuple(along), dtype=wide, out=output.reshape(kept), keepdims=True)]

    return bind


def kept_of(data: Operand, along: Sequence[int]) -> tuple[int, ...]:
    """The shape of data with 1 in the place of axes that are folded."""
    return tuple(1 if axis in along else size for axis, size in enumerate(data.shape))


def _of_floats(name: str, data: Operand, along: Sequence[int], threads: Threads) -> Bind | None:
    count = prod(data.shape[axis] for axis in along)
    bind = _in_steps(name, data, along, threads)
    if bind is None:
        if name not in FLOAT_REDUCTIONS:
            return None
        bind = _of_whole(FLOAT_REDUCTIONS[name], along, kept_of(data, along))
    return lambda data, output: [*bind(data, output), *_finish(name, output, count)]


def _in_steps(name: str, data: Operand, along: Sequence[int], threads: Threads) -> Bind | None:
    """Folds axes, those that follow one another at once; None where that takes a copy of the data."""
    found = lines(data, along)
    if found is not None:
        return None if found.strides is None else _of_lines(name, found.shape, found.strides, threads)
    real = [axis for axis in range(len(data.shape)) if data.shape[axis] != 1]
    ahead = [axis for axis in real if axis in along]
    if not ahead:
        return None
    others = [axis for axis in real if axis > ahead[0] and axis not in along]
    ahead = [axis for axis in ahead if axis < others[0]]
    shape = tuple(1 if axis in ahead else size for axis, size in enumerate(data.shape))
    rest = [axis for axis in along if axis not in ahead]
    first = _in_steps(name, data, ahead, threads)
    second = _in_steps(FOLDED.get(name, name), Operand("f32", shape, dense_strides(shape)), rest, threads)
    if first is None or second is None:
        return None

    def bind(data: Array, output: Array) -> list[Call]:
        between = np.empty(shape, np.float32)
        return [*first(data, between), *second(between, output)]

    return bind


def _of_lines(name: str, shape: tuple[int, int, int], strides: tuple[int, ...], threads: Threads) -> Bind:
    sharing = threads.sharing(prod(shape) * ELEMENT_NANOSECONDS)
    least = WIDE if shape[2] > 1 and name != "ReduceL1-4" else 1  # that reads what it has written

    def bind(data: Array, output: Array) -> list[Call]:
        seen, sums = squeezed(view(data, shape, strides)), squeezed(output.reshape(shape[0], 1, shape[2]))
        calls = [
            _fold(name, seen[cut[: seen.ndim]], sums[cut[0], :, *cut[2 : seen.ndim]])
            for cut in line_cuts(shape, sharing, least)
        ]
        return [threads.together(calls, sharing)]

    return bind


def _fold(name: str, data: Array, output: Array) -> Call:
    """Folds the lines along axis 1 of a block, but for what `_finish` does."""
    if name == "ReduceL2-4":
        return square_summation(data, output)
    if name == "ReduceL1-4":
        return partial(_sum_of, np.absolute, summation, data, output)
    if name in ("ReduceSum-1", "ReduceMean-1"):
        return summation(data, output)
    if data.ndim == 2 and data.shape[1] <= SHORT:
        return _by_columns(FLOAT_REDUCTIONS[name], data, output[:, 0])
    return partial(FLOAT_REDUCTIONS[name].reduce, data, axis=1, out=output, keepdims=True)


def _sum_of(function: Callable[[Array, Array], object], add: Callable[[Array, Array], Call], *arrays: Array) -> None:
    """Adds up what a function makes of data."""
    data, output = arrays
    made = functions.temporary(data)
    function(data, made)
    add(made, output)()


def _finish(name: str, output: Array, count: int) -> list[Call]:
    """What makes of the sums of `count` elements each what they are for."""
    if name == "ReduceMean-1":
        return [partial(np.divide, output, np.array(count, np.float32), output)]
    if name == "ReduceL2-4":
        return [partial(np.sqrt, output, output)]
    return []


COMPILERS = dict.fromkeys((*FLOAT_REDUCTIONS, *BOOLEAN_REDUCTIONS, "ReduceL1-4", "ReduceL2-4"), reduction)
