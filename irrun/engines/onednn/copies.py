"""Copies of tensors in another order: between layouts, and where an op wants dense what is strided."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from irrun.engines.axes import canonical_strides, is_dense
from irrun.engines.extents import bind_copy
from irrun.engines.memory import aligned
from irrun.engines.onednn.bindings import OneDNNError
from irrun.engines.onednn.library import FEW_ELEMENTS, SRC, Descriptor, Library
from irrun.engines.onednn.tensors import compiled, layout_of, order_of, ordered_strides
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array


def reorder(library: Library, operand: Operand, layout: Descriptor | None) -> Compiled:
    """A copy of an operand in another layout, or dense; by numpy where oneDNN has none such as the operand's."""
    target = layout or library.dense(operand.shape or (1,), operand.type)
    source = layout_of(library, operand)
    if source is None and (layout is None or layout.strides is not None):
        return Compiled(bind_copy)
    read = source or library.dense(operand.shape, operand.type)
    primitive = library.primitive("reorder", read, target, small=_small(operand))
    if primitive is None:
        raise OneDNNError(f"no way to bring a tensor of shape {operand.shape} into another layout")
    moved = compiled(Work("", {}, [operand], []), primitive, {SRC: 0})
    return moved if source is not None else _by_way_of_dense(moved, operand)


def _by_way_of_dense(moved: Compiled, operand: Operand) -> Compiled:
    """The copy of a dense array, for one that is made dense first."""
    dtype = numpy_dtype(operand.type)
    nbytes = dtype.itemsize * prod(operand.shape)
    room = aligned(nbytes)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        dense = scratch[:nbytes].view(dtype).reshape(operand.shape)
        return chain([bind_copy(inputs, [dense]), moved.bind([dense], outputs, scratch[room:])])

    return Compiled(bind, room + moved.scratch)


def compile(library: Library, work: Work) -> Compiled | None:
    """Reshape-1, Squeeze-1 and Unsqueeze-1 of strided data, and Transpose-1."""
    (data,) = work.required(1)
    shape, strides = data.shape, data.strides
    if work.posts or not shape or (data.layout is not None and work.name == "Transpose-1"):
        return None
    if work.name == "Transpose-1":
        order = work.constant(1)
        if order is None:
            return None
        axes = [int(axis) for axis in order.ravel()] or list(reversed(range(len(shape))))
        shape, strides = tuple(shape[axis] for axis in axes), tuple(strides[axis] for axis in axes)
    moved = Operand(data.type, shape, strides, None, data.layout)
    if is_dense(moved):
        return None
    source = layout_of(library, moved)
    if source is None:
        return None
    primitive = library.primitive("reorder", source, library.dense(shape, data.type), small=_small(data))
    return None if primitive is None else compiled(work, primitive, {SRC: 0})


def convert(library: Library, work: Work) -> Compiled | None:
    """Convert-1 of f32 to bf16 or f16 and back; the result has its axes in the order of those of the data."""
    (data,), type = work.required(1), work.outputs[0].type
    source, shape = layout_of(library, data), data.shape
    if source is None or work.posts or not shape or data.type == type:
        return None
    target, order = library.dense(shape, type), None if data.layout is not None else order_of(data)
    if order is not None:
        steps = ordered_strides(order, [shape[axis] for axis in order], target.itemsize)
        target = library.strided(shape, canonical_strides(shape, steps, target.itemsize), type) or target
    primitive = library.primitive("reorder", source, target, small=_small(data))
    return None if primitive is None else compiled(work, primitive, {SRC: 0}, gives=target)


def _small(operand: Operand) -> bool:
    return prod(operand.shape) < FEW_ELEMENTS


COMPILERS = dict.fromkeys(("Reshape-1", "Squeeze-1", "Unsqueeze-1", "Transpose-1"), compile)
BF16_COMPILERS = F16_COMPILERS = {"Convert-1": convert}
