"""Copies of tensors in another order: between layouts, and where an op wants dense what is strided."""

from __future__ import annotations

from math import prod

from irrun.engines.onednn.bindings import OneDNNError
from irrun.engines.onednn.library import FEW_ELEMENTS, SRC, Layout, Library
from irrun.engines.onednn.tensors import compiled, is_dense, layout_of
from irrun.engines.work import Compiled, Operand, Work


def reorder(library: Library, operand: Operand, layout: Layout | None) -> Compiled:
    """A copy of an operand in another layout, or dense."""
    source = layout_of(library, operand)
    target = layout or library.dense(operand.shape or (1,))
    primitive = None if source is None else library.primitive("reorder", source, target, small=_small(operand))
    if primitive is None:
        raise OneDNNError(f"no way to bring a tensor of shape {operand.shape} into another layout")
    return compiled(Work("", {}, [operand], []), primitive, {SRC: 0})


def compile(library: Library, work: Work) -> Compiled | None:
    """Reshape-1, Squeeze-1 and Unsqueeze-1 of strided data, and Transpose-1."""
    data, order = work.inputs[:2]
    assert data is not None
    shape, strides = data.shape, data.strides
    if work.posts or not shape or (data.layout is not None and work.name == "Transpose-1"):
        return None
    if work.name == "Transpose-1":
        if order is None or order.value is None:
            return None
        axes = [int(axis) for axis in order.value.ravel()] or list(reversed(range(len(shape))))
        shape, strides = tuple(shape[axis] for axis in axes), tuple(strides[axis] for axis in axes)
    moved = Operand(data.type, shape, strides, None, data.layout)
    if is_dense(moved):
        return None
    source = layout_of(library, moved)
    primitive = (
        None if source is None else library.primitive("reorder", source, library.dense(shape), small=_small(data))
    )
    return None if primitive is None else compiled(work, primitive, {SRC: 0})


def _small(operand: Operand) -> bool:
    return prod(operand.shape) < FEW_ELEMENTS
