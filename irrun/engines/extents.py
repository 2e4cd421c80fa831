"""The memory that arrays take: how far strides reach, and views that stay within it."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from irrun.engines.work import Arrays, Call, Compiled, Judging, Layout, Operand, Work
from irrun.spec.op import Array

Bound = TypeVar("Bound", Call, Judging)


def extent_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The bytes before the first element and from it on that the elements of a non-empty array lie in."""
    before, behind = 0, itemsize
    for size, stride in zip(shape, strides, strict=True):
        if stride < 0:
            before -= (size - 1) * stride
        else:
            behind += (size - 1) * stride
    return before, behind


def view(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """The memory of an array with other axes, from its first element on.

    Raises ValueError where they would reach beyond it.
    """
    if array.flags.c_contiguous and array.dtype.kind in "biuf":
        return np.ndarray(tuple(shape), array.dtype, array, 0, tuple(strides))  # which looks at that, too
    before, behind = extent_of(shape, strides, array.itemsize)
    room = extent_of(array.shape, array.strides, array.itemsize)
    if before > room[0] or behind > room[1]:
        raise ValueError(f"strides {strides} of {shape} reach beyond an array of {array.shape} with {array.strides}")
    items = array.view(f"V{array.itemsize}")  # numpy has no name for f8e5m2
    return np.lib.stride_tricks.as_strided(items, shape, strides).view(array.dtype)


def once(array: Array) -> Array:
    """A view of what a broadcast array has: one element along the axes that it is repeated along."""
    return array[tuple([slice(0, 1) if step == 0 else slice(None) for step in array.strides])] if array.ndim else array


def checked(work: Work, compiled: Compiled) -> Compiled:
    """The compiled work, which can be bound only to arrays that lie as the tensors did that it was compiled for.

    To bind it to others raises ValueError.
    """
    around = work, compiled.wants, compiled.gives, compiled.coded, compiled.taken
    compiled.bind = partial(_bound, *around, compiled.bind)  # which are fewer objects than a closure
    if compiled.judging is not None:
        compiled.judging = partial(_bound, *around, compiled.judging)
    if compiled.again is not None:
        compiled.again = partial(_again, compiled.again)
    return compiled


def _bound(
    work: Work,
    wants: Mapping[int, Layout | None],
    gives: Mapping[int, Layout],
    coded: Container[int],
    taken: Container[int],
    bind: Callable[[Arrays, Sequence[Array], Any], Bound],
    inputs: Arrays,
    outputs: Sequence[Array],
    scratch: Any,
) -> Bound:
    for number, array in enumerate(inputs):
        operand = work.inputs[number]
        if number in coded and operand is not None:
            operand = operand.codes
        if array is None or operand is None or number in taken:
            continue
        if number in wants or operand.layout or array.strides != operand.strides or array.shape != operand.shape:
            _check(operand, array, wants.get(number, operand.layout), moved=number in wants)
    for number, (operand, array) in enumerate(zip(work.outputs, outputs, strict=True)):
        if number in gives or array.strides != operand.strides or array.shape != operand.shape:
            _check(operand, array, gives.get(number), moved=number in gives)
    return bind(inputs, outputs, scratch)


def _again(again: Callable[[Work], Compiled], work: Work) -> Compiled:
    made = again(work)
    made.again = again  # as it may be the first one of others
    return checked(work, made)


def _check(operand: Operand, array: Array, layout: Layout | None, *, moved: bool) -> None:
    if layout is not None and layout.strides is None:
        fits = array.ndim == 1 and array.nbytes >= layout.nbytes and array.flags.c_contiguous
    elif array.shape != operand.shape:
        fits = False
    elif layout is None and moved:
        fits = array.flags.c_contiguous
    else:
        steps = operand.strides if layout is None else layout.strides
        axes = zip(array.shape, array.strides, steps or (), strict=False)
        fits = array.strides == steps or all(size == 1 or own == step for size, own, step in axes)
    if not fits:
        given = f"an array of shape {array.shape} and strides {array.strides}"
        raise ValueError(f"{given} for {operand.shape} with {operand.strides if layout is None else layout}")


def bind_copy(inputs: Arrays, outputs: Sequence[Array], _: Any = None) -> Call:
    """What copies an array to another one, whatever their strides are."""
    return partial(np.copyto, outputs[0], inputs[0])
