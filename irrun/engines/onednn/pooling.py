"""Pooling, and means over all that is spatial, in the layout that the data come in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from irrun.engines.axes import constant_axes
from irrun.engines.onednn.convolution import geometry_of
from irrun.engines.onednn.library import DST, FEW_ELEMENTS, INFERENCE, SRC, Library
from irrun.engines.onednn.posts import aligned_axes, chain
from irrun.engines.onednn.tensors import compiled, layout_of
from irrun.engines.windows import Axis, axes_of
from irrun.engines.work import Compiled, Operand, Work

MAX, MEAN_OF_ALL, MEAN_OF_DATA = 0x1FF, 0x2FF, 0x3FF


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
    source = layout_of(library, data)
    rank = len(data.shape)
    result, type = work.outputs[0].shape, work.outputs[0].type
    shape = (*result, *(1,) * (rank - len(result)))
    posts = chain(work.posts, work, aligned_axes(library, shape), partial(library.any, shape), exact=data.type == "f32")
    if source is None or posts is None:
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
    if len(result) < rank:
        return compiled(work, primitive, {SRC: 0}) if all(size == 1 for size in shape[2:]) else None
    return compiled(work, primitive, {SRC: 0, **posts.inputs}, free=posts.free, gives=primitive.layout(DST))


COMPILERS = {
    **dict.fromkeys(("MaxPool-1", "MaxPool-8", "MaxPool-14", "AvgPool-1", "AvgPool-14", "AvgPool-16"), compile),
    "ReduceMean-1": compile_mean,
}
