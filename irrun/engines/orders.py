"""Works on data whose axes lie in another order in memory, such as images with the channels last, done in that order.

What is computed along axes by loops and copies is as quick in any order, as long as the result keeps that of the data:
who reads it, a convolution mostly, takes it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import (
    Strided,
    canonical_strides,
    dense_strides,
    has_channels_last,
    is_dense,
    order_of,
    ordered_strides,
)
from irrun.engines.plain import op_of
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.spec.traits import Elementwise

SHORT_ROW, LEAST_IN_ROWS = 16, 1 << 14
"""Elements that are few for a row, and elements of all rows that are many."""


def leading(work: Work) -> int | None:
    """The number of the input of an element-wise op of two that is as large as the result, which lies as it does: one
    in C order where there is a choice, as most of what reads the result takes that, or images that lie otherwise."""
    shape, inputs = work.outputs[0].shape, work.required(2)
    large = [number for number, own in enumerate(inputs) if own.value is None and own.shape == shape]
    if len(large) > 1 and inputs[0].layout is None and not is_dense(inputs[0]) and not is_of_images(inputs[0]):
        return 1 if is_dense(inputs[1]) and _commutes(work.name) else 0
    return large[0] if large else None


def is_of_short_rows(work: Work) -> bool:
    """Whether the result of a work is many short rows of f32, such as pixels of three colours, for each place in which
    a constant has a number, and its data lie in C order: code of our own makes long rows of these."""
    shape, type = work.outputs[0].shape, work.outputs[0].type
    if not shape or not 1 < shape[-1] < SHORT_ROW or prod(shape) < LEAST_IN_ROWS or type != "f32":
        return False
    own = [operand for operand in work.inputs if operand is not None]
    data = next((operand for operand in own if operand.value is None), None)
    if data is None or data.layout is not None or not is_dense(data):
        return False
    return any(operand.value is not None and operand.value.size == shape[-1] == operand.shape[-1] for operand in own)


def _commutes(name: str) -> bool:
    op = op_of(name)
    trait = None if op is None else op.trait(Elementwise)
    return trait is not None and trait.commutative


def is_of_images(operand: Operand) -> bool:
    """Whether an operand is of images, or videos, with their channels last: convolutions take them so."""
    return len(operand.shape) > 3 and has_channels_last(operand)


def reordered(work: Work) -> list[int] | None:
    """The axes of the first input in the order of memory; None where that is C order, or where there are gaps, and
    where a post has an operand that does not broadcast as numpy has it."""
    (data,) = work.required(1)
    if data.layout is not None or is_dense(data) or any(post.name == "PReLU-1" for post in work.posts):
        return None
    order = order_of(data)
    return None if order is None else _with_single(order, data.shape)


def _with_single(order: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The order with axes of size 1, which are anywhere in memory, next to their neighbours: these may grow."""
    result = [axis for axis in order if shape[axis] != 1]
    for axis in (axis for axis in reversed(range(len(shape))) if shape[axis] == 1):
        before = [result.index(other) + 1 for other in range(axis) if other in result]
        result.insert(0 if axis == 0 else result.index(axis + 1) if axis + 1 in result else before[-1], axis)
    return result


def in_order(
    work: Work, order: Sequence[int], values: Mapping[int, Array] | None, compile: Callable[[Work], Compiled | None]
) -> Compiled | None:
    """What `compile` makes of a work whose axes are in the order of memory; the result has its own in that order, too.

    Constant inputs that name axes, or have an element for each of them, are the `values` by their numbers; None says
    that all inputs have the axes of the result.
    """
    own, (output,) = 1 if values is None else len(work.own), work.outputs
    values = values or {}
    inputs: list[Operand | None] = [_turned(work.required(1)[0], order)]
    for number, operand in enumerate(work.inputs[1:], 1):
        if operand is None or number in range(1, own):
            value = values.get(number)
            inputs.append(operand if value is None else Operand(str(value.dtype), value.shape, value.strides, value))
        else:
            inputs.append(_turned(operand, order))
    moved = tuple(output.shape[axis] for axis in order)
    item = numpy_dtype(output.type).itemsize
    result = Operand(output.type, moved, dense_strides(moved, item))
    compiled = compile(Work(work.name, work.attrs, inputs, [result], work.posts))
    if compiled is None:
        return None
    bound = compiled.bind

    def bind(arrays: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        given = [
            values.get(number, array) if number in range(1, own) else array if array is None else _moved(array, order)
            for number, array in enumerate(arrays)
        ]
        return bound(given, [outputs[0].transpose(order)], scratch)

    layout = Strided(canonical_strides(output.shape, ordered_strides(order, moved, item), item), item * prod(moved))
    return Compiled(bind, compiled.scratch, gives={0: layout}, doubtful=compiled.doubtful)


def _turned(operand: Operand, order: Sequence[int]) -> Operand:
    """An operand with the axes of the result in another order; one of few axes gets those that it lacks, of size 1."""
    if prod(operand.shape) == 1:
        return operand
    lacking = len(order) - len(operand.shape)
    shape, strides = (1,) * lacking + operand.shape, (0,) * lacking + operand.strides
    value = None if operand.value is None else _moved(operand.value, order)
    moved = tuple(shape[axis] for axis in order), tuple(strides[axis] for axis in order)
    return Operand(operand.type, *moved, value)


def _moved(array: Array, order: Sequence[int]) -> Any:
    if array.size == 1:
        return array
    return array[(np.newaxis,) * (len(order) - array.ndim)].transpose(order)
