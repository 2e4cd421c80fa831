"""Mean-variance normalization with the scale and shift that follow it (layer normalization).

Softmax is left to others: here, one with NaN among its elements is not NaN everywhere.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from irrun.engines.axes import broadcast_strides, constant_axes, dense_strides, is_dense
from irrun.engines.onednn.library import FEW_ELEMENTS, INFERENCE, SCALE, SHIFT, SRC, Library
from irrun.engines.onednn.tensors import FLOATS, compiled, itemsize
from irrun.engines.work import Compiled, Operand, Work

USE_SCALE, USE_SHIFT = 2, 4


def compile_mvn(library: Library, work: Work) -> Compiled | None:
    """MVN-6 over the last axes of data without gaps, and constants that multiply and are added along them."""
    (data,), attrs, axes = work.required(1), work.attrs, constant_axes(work)
    if not attrs["normalize_variance"] or attrs["eps_mode"].lower() != "inside_sqrt":
        return None
    first = len(data.shape) - len(axes)
    if not axes or axes != list(range(first, len(data.shape))) or not is_dense(data):
        return None
    flags, inputs, constants = 0, {SRC: 0}, {}
    for post in work.posts:
        flag, argument = (USE_SCALE, SCALE) if post.name == "Multiply-1" else (USE_SHIFT, SHIFT)
        if post.operand is None or post.name not in ("Multiply-1", "Add-1") or flags >= flag:
            return None
        operand = work.inputs[post.operand]
        if operand is None or not _along(operand, data, first):
            return None
        flags |= flag
        if operand.type == "f32":
            inputs[argument] = post.operand
        elif operand.value is not None:
            constants[argument] = partial(np.asarray, np.ascontiguousarray(operand.value, np.float32))
        else:
            return None
    sizes = prod(data.shape[:first]), prod(data.shape[first:])
    layouts = library.dense(sizes, data.type), library.dense(sizes, work.outputs[0].type)
    primitive = library.primitive(
        "layer_normalization_forward",
        *(INFERENCE, *layouts, None, float(attrs["eps"]), flags),
        small=prod(data.shape) < FEW_ELEMENTS,
    )
    return None if primitive is None else compiled(work, primitive, inputs, constants=constants)


def _along(operand: Operand, data: Operand, first: int) -> bool:
    """Whether an operand has one element for each of the axes from `first` on, in their order."""
    if operand.type not in FLOATS or operand.layout is not None:
        return False
    if prod(operand.shape) != prod(data.shape[first:]):
        return False
    sizes, steps = data.shape, broadcast_strides(operand, data.shape)
    dense = dense_strides(sizes, itemsize(operand))
    return all(sizes[n] == 1 or steps[n] == (dense[n] if n >= first else 0) for n in range(len(sizes)))


COMPILERS = {"MVN-6": compile_mvn}
