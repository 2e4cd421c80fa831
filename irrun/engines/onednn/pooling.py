"""Pooling, and means over all that is spatial, in the layout that the data come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

from irrun.engines.axes import constant_axes
from irrun.engines.memory import aligned
from irrun.engines.onednn.convolution import geometry_of
from irrun.engines.onednn.library import DST, FEW_ELEMENTS, INFERENCE, SRC, Descriptor, Library, Primitive
from irrun.engines.onednn.posts import aligned_axes, chain
from irrun.engines.onednn.tensors import compiled, layout_of
from irrun.engines.windows import Axis, axes_of
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work
from irrun.engines.work import chain as together
from irrun.spec.op import Array

MAX, MEAN_OF_ALL, MEAN_OF_DATA = 0x1FF, 0x2FF, 0x3FF

LONG = 512
"""Elements of a mean; more are added in two steps, as one after the other they lose digits of f32."""


def compile(library: Library, work: Work) -> Compiled | None:
    """MaxPool and AvgPool of every version, without indices."""
    (data,) = work.required(1)
    if len(work.outputs) > 1:
        return None
    result, attrs = work.outputs[0].shape, work.attrs
    axes = axes_of(attrs, data.shape[2:], attrs["kernel"], result[2:])
    if any(axis.begin >= axis.kernel or axis.reached >= axis.kernel for axis in axes):
        return None  # windows of padding only
    algorithm = MAX
    if work.name.startswith("AvgPool"):
        padded = any(axis.begin or axis.end for axis in axes)
        algorithm = MEAN_OF_ALL if padded and not attrs["exclude_pad"] else MEAN_OF_DATA
    return _pooled(library, work, data, algorithm, axes)


def compile_mean(library: Library, work: Work) -> Compiled | None:
    """ReduceMean-1 over all axes of [N, C, *spatial] but the first two."""
    (data,) = work.required(1)
    if len(data.shape) not in (3, 4, 5) or constant_axes(work) != list(range(2, len(data.shape))):
        return None
    if not work.attrs["keep_dims"] and work.posts:
        return None
    whole = [Axis(size, size, 1, 1, 1, 0, 0) for size in data.shape[2:]]
    return _pooled(library, work, data, MEAN_OF_DATA, whole)


def _pooled(library: Library, work: Work, data: Operand, algorithm: int, axes: Sequence[Axis]) -> Compiled | None:
    source, first = layout_of(library, data), None
    rank = len(data.shape)
    result, type = work.outputs[0].shape, work.outputs[0].type
    exact = data.type == "f32"
    if exact and algorithm != MAX and source is not None and prod(axis.kernel for axis in axes) > LONG:
        parts = _parts(data.shape[2:]) if all(axis.kernel == axis.size for axis in axes) else None
        first = None if parts is None else _means_of_parts(library, data, source, parts)
        if parts is None or first is None:
            return None
        source = first.layout(DST)
        axes = [Axis(part, part, 1, 1, 1, 0, 0) for part in source.shape[2:]]
    shape = (*result, *(1,) * (rank - len(result)))
    posts = chain(work.posts, work, aligned_axes(library, shape), partial(library.any, shape), exact=exact)
    if source is None or posts is None or posts.constants:
        return None
    (strides, gaps, begins, ends), kernel = geometry_of(axes), tuple(axis.kernel for axis in axes)
    primitive = library.primitive(
        "pooling_forward",
        *(INFERENCE, algorithm, source, library.any(shape, type), strides, kernel, gaps, begins, ends),
        posts=posts.posts,
        small=prod(result) * prod(kernel) < 4 * FEW_ELEMENTS,
    )
    if primitive is None:
        return None
    if len(result) < rank and primitive.layout(DST).nbytes > library.dense(shape, type).nbytes:
        return None  # blocks of more channels than there are, which only an array of as many axes has
    inputs, gives = {SRC: 0}, None
    if len(result) == rank:
        inputs, gives = {SRC: 0, **posts.inputs}, primitive.layout(DST)
    whole = compiled(work, primitive, inputs, free=posts.free, gives=gives)
    return whole if first is None else _behind(first, whole)


def _parts(sizes: Sequence[int]) -> tuple[int, ...] | None:
    """A divisor of each size, so that neither they nor what they leave are many elements together."""
    divisors = [[part for part in range(1, size + 1) if size % part == 0] for size in sizes]
    parts = min(product(*divisors), key=lambda parts: max(prod(parts), prod(sizes) // prod(parts)))
    return parts if max(prod(parts), prod(sizes) // prod(parts)) <= LONG else None


def _means_of_parts(library: Library, data: Operand, source: Descriptor, parts: tuple[int, ...]) -> Primitive | None:
    """The means of windows of the size `parts`, side by side."""
    between = (*data.shape[:2], *(size // part for size, part in zip(data.shape[2:], parts, strict=True)))
    none = (0,) * len(parts)
    sizes = (source, library.any(between), parts, parts, none, none, none)
    return library.primitive("pooling_forward", INFERENCE, MEAN_OF_DATA, *sizes)


def _behind(first: Primitive, second: Compiled) -> Compiled:
    """A work whose first input is what a primitive makes of it."""
    between = first.layout(DST)
    room = aligned(between.nbytes)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        middle, rest = scratch[:room], scratch[room:]
        ahead = first.bind([(SRC, first.layout(SRC), inputs[0]), (DST, between, middle)], rest)
        return together([ahead, second.bind([middle, *inputs[1:]], outputs, rest)])

    return replace(second, bind=bind, scratch=room + max(first.scratch, second.scratch))


COMPILERS = {
    **dict.fromkeys(("MaxPool-1", "MaxPool-8", "MaxPool-14", "AvgPool-1", "AvgPool-14", "AvgPool-16"), compile),
    "ReduceMean-1": compile_mean,
}
