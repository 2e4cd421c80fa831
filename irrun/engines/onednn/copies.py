"""Copies of tensors in another order: between layouts, and where an op wants dense what is strided."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import canonical_strides, is_dense, order_of, ordered_strides
from irrun.engines.extents import bind_copy
from irrun.engines.memory import aligned
from irrun.engines.onednn.bindings import OneDNNError
from irrun.engines.onednn.library import DST, FEW_ELEMENTS, SRC, Descriptor, Library
from irrun.engines.onednn.tensors import channels_last, compiled, itemsize, layout_of
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


def concatenate(library: Library, work: Work) -> Compiled | None:
    """Concat-1 of [N, C, *spatial] along the channels, where these come last in most of the data, and in the result."""
    inputs, (result,) = work.required(len(work.own)), work.outputs
    last = sum(prod(operand.shape) for operand in inputs if _has_channels_last(operand))
    if work.posts or 2 * last <= prod(result.shape) or work.attrs["axis"] % len(result.shape) != 1:
        return None
    target = channels_last(library, result.shape, result.type)
    steps = target.strides
    assert steps is not None
    found = []
    for operand in inputs:
        if 0 in operand.shape:
            return None
        source, part = layout_of(library, operand), library.strided(operand.shape, steps, operand.type)
        if source is None or part is None:
            return None
        primitive = library.primitive("reorder", source, part, small=_small(operand))
        if primitive is None:
            return None
        found.append((source, part, primitive))
    bounds = np.cumsum([operand.shape[1] for operand in inputs[:-1]])

    def bind(arrays: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        parts = np.split(outputs[0], bounds, 1)
        return chain(
            [
                primitive.bind([(SRC, source, array), (DST, part, written)], scratch)
                for (source, part, primitive), array, written in zip(found, arrays, parts, strict=False)
            ]
        )

    return Compiled(bind, max(primitive.scratch for _, _, primitive in found), gives={0: target})


def _has_channels_last(operand: Operand) -> bool:
    """Whether those of each place of an image lie side by side, which are next to those of other tensors or not."""
    if operand.layout is not None or len(operand.shape) < 3 or operand.shape[1] == 1:
        return False
    places = [step for size, step in zip(operand.shape[2:], operand.strides[2:], strict=True) if size > 1]
    return (
        bool(places) and operand.strides[1] == itemsize(operand) and min(places) >= operand.shape[1] * itemsize(operand)
    )


def convert(library: Library, work: Work) -> Compiled | None:
    """Convert-1 of f32 to bf16 or f16 and back, where that is compiled: element by element is slower than numpy.

    The result has its axes in the order of those of the data.
    """
    (data,), type = work.required(1), work.outputs[0].type
    source, shape = layout_of(library, data), data.shape
    if source is None or work.posts or not shape or data.type == type:
        return None
    target, order = library.dense(shape, type), None if data.layout is not None else order_of(data)
    if order is not None:
        steps = ordered_strides(order, [shape[axis] for axis in order], target.itemsize)
        target = library.strided(shape, canonical_strides(shape, steps, target.itemsize), type) or target
    primitive = library.primitive("reorder", source, target, small=_small(data))
    if primitive is None or not primitive.implementation.startswith("jit"):
        return None
    return compiled(work, primitive, {SRC: 0}, gives=target)


def _small(operand: Operand) -> bool:
    return prod(operand.shape) < FEW_ELEMENTS


COMPILERS = {
    **dict.fromkeys(("Reshape-1", "Squeeze-1", "Unsqueeze-1", "Transpose-1"), compile),
    "Concat-1": concatenate,
}
BF16_COMPILERS = F16_COMPILERS = {"Convert-1": convert}
