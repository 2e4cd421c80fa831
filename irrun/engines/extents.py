"""The memory that arrays take: how far strides reach, and views that stay within it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from irrun.engines.work import Arrays, Call, Compiled, Judging, Layout, Operand, Work
from irrun.spec.op import Array


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
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def checked(work: Work, compiled: Compiled) -> Compiled:
    """The compiled work, which can be bound only to arrays that lie as the tensors did that it was compiled for.

    To bind it to others raises ValueError.
    """
    bind, judging, wants, gives = compiled.bind, compiled.judging, compiled.wants, compiled.gives

    def check(inputs: Arrays, outputs: Sequence[Array]) -> None:
        for number, array in enumerate(inputs):
            operand = work.inputs[number]
            if number in compiled.coded and operand is not None:
                operand = operand.codes
            if array is None or operand is None or number in compiled.taken:
                continue
            if number in wants or operand.layout or array.strides != operand.strides or array.shape != operand.shape:
                _check(operand, array, wants.get(number, operand.layout), moved=number in wants)
        for number, (operand, array) in enumerate(zip(work.outputs, outputs, strict=True)):
            if number in gives or array.strides != operand.strides or array.shape != operand.shape:
                _check(operand, array, gives.get(number), moved=number in gives)

    def binding(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        check(inputs, outputs)
        return bind(inputs, outputs, scratch)

    def judged(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Judging:
        check(inputs, outputs)
        assert judging is not None
        return judging(inputs, outputs, scratch)

    compiled.bind = binding
    compiled.judging = None if judging is None else judged
    if (again := compiled.again) is not None:
        compiled.again = lambda other: checked(other, again(other))
    return compiled


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
