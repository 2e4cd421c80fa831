"""Mean-variance normalization with the scale and shift that follow it (layer normalization).

Softmax is left to others: here, one with NaN among its elements is not NaN everywhere.
"""

from __future__ import annotations

from math import prod

from irrun.engines.axes import broadcast_strides, constant_axes, is_dense
from irrun.engines.onednn.library import FEW_ELEMENTS, INFERENCE, SCALE, SHIFT, SRC, Library
from irrun.engines.onednn.tensors import compiled
from irrun.engines.work import Compiled, Operand, Work

USE_SCALE, USE_SHIFT = 2, 4

LONG = 1 << 14
"""Elements of a line; means of more lose digits here."""


def compile_mvn(library: Library, work: Work) -> Compiled | None:
    """MVN-6 over the last axes of data without gaps, and constants that multiply and are added along them."""
    (data,), attrs, axes = work.required(1), work.attrs, constant_axes(work)
    if not attrs["normalize_variance"] or attrs["eps_mode"].lower() != "inside_sqrt":
        return None
    first = len(data.shape) - len(axes)
    if not axes or axes != list(range(first, len(data.shape))) or not is_dense(data):
        return None
    if prod(data.shape[first:]) > LONG:
        return None
    flags, inputs = 0, {SRC: 0}
    for post in work.posts:
        flag, argument = (USE_SCALE, SCALE) if post.name == "Multiply-1" else (USE_SHIFT, SHIFT)
        if post.operand is None or post.name not in ("Multiply-1", "Add-1") or flags >= flag:
            return None
        if not _along(work.inputs[post.operand], data, first):
            return None
        flags, inputs[argument] = flags | flag, post.operand
    layout = library.dense((prod(data.shape[:first]), prod(data.shape[first:])))
    primitive = library.primitive(
        "layer_normalization_forward",
        *(INFERENCE, layout, layout, None, float(attrs["eps"]), flags),
        small=prod(data.shape) < FEW_ELEMENTS,
    )
    return None if primitive is None else compiled(work, primitive, inputs)


def _along(operand: Operand | None, data: Operand, first: int) -> bool:
    """Whether an operand has one element for each of the axes from `first` on, in their order."""
    if operand is None or operand.type != "f32" or operand.layout is not None:
        return False
    if prod(operand.shape) != prod(data.shape[first:]):
        return False
    steps, dense = broadcast_strides(operand, data.shape), data.strides
    sizes = data.shape
    return all(sizes[n] == 1 or steps[n] == (dense[n] if n >= first else 0) for n in range(len(sizes)))


COMPILERS = {"MVN-6": compile_mvn}
