"""Mean-variance normalization with the scale and shift that follow it (layer normalization), and softmax of bf16.

Softmax of f32 is left to others: here, one with NaN among its elements is not NaN everywhere.
"""

from __future__ import annotations

from math import prod

from irrun.engines.axes import broadcast_strides, constant_axes, dense_strides, is_dense, order_of
from irrun.engines.onednn.library import FEW_ELEMENTS, INFERENCE, SCALE, SHIFT, SRC, Library
from irrun.engines.onednn.posts import ROUNDING
from irrun.engines.onednn.tensors import FLOATS, compiled, itemsize, layout_of
from irrun.engines.work import Compiled, Operand, Work

USE_SCALE, USE_SHIFT = 2, 4
SOFTMAX = 0x30000
"""The algorithm of softmax that takes the largest element off first."""

LONG = 1 << 14
"""Elements of a line; means of more lose digits here."""


def compile_mvn(library: Library, work: Work) -> Compiled | None:
    """MVN-6 over the last axes of data without gaps, and constants that multiply and are added along them."""
    (data,), attrs, axes = work.required(1), work.attrs, constant_axes(work)
    if not attrs["normalize_variance"] or attrs["eps_mode"] != "inside_sqrt":
        return None
    first = len(data.shape) - len(axes)
    if not axes or axes != list(range(first, len(data.shape))) or not is_dense(data):
        return None
    if prod(data.shape[first:]) > LONG:
        return None
    flags, inputs = 0, {SRC: 0}
    for post in work.posts:
        if post.name == ROUNDING:
            continue
        flag, argument = (USE_SCALE, SCALE) if post.name == "Multiply-1" else (USE_SHIFT, SHIFT)
        if post.operand is None or post.name not in ("Multiply-1", "Add-1") or flags >= flag:
            return None
        operand = work.inputs[post.operand]
        if operand is None or not _along(operand, data, first):
            return None
        flags, inputs[argument] = flags | flag, post.operand
        if operand.type != "f32" and operand.value is None:
            return None
    sizes = prod(data.shape[:first]), prod(data.shape[first:])
    layouts = library.dense(sizes, data.type), library.dense(sizes, work.outputs[0].type)
    primitive = library.primitive(
        "layer_normalization_forward",
        *(INFERENCE, *layouts, None, float(attrs["eps"]), flags),
        small=prod(data.shape) < FEW_ELEMENTS,
    )
    return None if primitive is None else compiled(work, primitive, inputs)


def _along(operand: Operand, data: Operand, first: int) -> bool:
    """Whether an operand has one element for each of the axes from `first` on, in their order."""
    if operand.type not in FLOATS or operand.layout is not None:
        return False
    if prod(operand.shape) != prod(data.shape[first:]):
        return False
    sizes, steps = data.shape, broadcast_strides(operand, data.shape)
    dense = dense_strides(sizes, itemsize(operand))
    return all(sizes[n] == 1 or steps[n] == (dense[n] if n >= first else 0) for n in range(len(sizes)))


def compile_softmax(library: Library, work: Work) -> Compiled | None:
    """SoftMax-1 and SoftMax-8 of bf16, in the order of axes that the data have."""
    (data,) = work.required(1)
    source = layout_of(library, data)
    if work.posts or source is None or order_of(data) is None:
        return None
    axis = int(work.attrs["axis"]) % len(data.shape)
    primitive = library.primitive(
        "softmax_forward", INFERENCE, SOFTMAX, source, source, axis, small=prod(data.shape) < FEW_ELEMENTS
    )
    return None if primitive is None else compiled(work, primitive, {SRC: 0}, gives=source)


COMPILERS = {"MVN-6": compile_mvn}
BF16_COMPILERS = dict.fromkeys(("SoftMax-1", "SoftMax-8"), compile_softmax)
