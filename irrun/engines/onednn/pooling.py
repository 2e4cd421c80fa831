"""Pooling, and means over all that is spatial, in the layout that the data come in."""

from __future__ import annotations

from math import prod

from irrun.engines.onednn.convolution import paddings, reached
from irrun.engines.onednn.library import DST, FEW_ELEMENTS, INFERENCE, SRC, Library
from irrun.engines.onednn.posts import aligned_axes, chain
from irrun.engines.onednn.tensors import Sizes, compiled, layout_of
from irrun.engines.work import Compiled, Operand, Work

MAX, MEAN_OF_ALL, MEAN_OF_DATA = 0x1FF, 0x2FF, 0x3FF


def compile(library: Library, work: Work) -> Compiled | None:
    """MaxPool and AvgPool of every version, without indices."""
    data = work.inputs[0]
    assert data is not None
    if len(work.outputs) > 1:
        return None
    result, attrs = work.outputs[0].shape, dict(work.attrs)
    kernel, sizes = tuple(attrs["kernel"]), data.shape[2:]
    attrs["dilations"] = tuple(attrs.get("dilations") or (1,) * len(kernel))
    begins = paddings(attrs, sizes, kernel, result[2:])
    ends = reached(attrs, sizes, kernel, result[2:], begins)
    if any(begin >= taps or end >= taps for begin, end, taps in zip(begins, ends, kernel, strict=True)):
        return None  # windows of padding only
    algorithm = MAX
    if work.name.startswith("AvgPool"):
        if attrs["auto_pad"] == "explicit":
            padded = any(begins) or any(attrs["pads_end"])
        else:
            padded = attrs["auto_pad"] != "valid" and (any(begins) or max(ends) > 0)
        algorithm = MEAN_OF_ALL if padded and not attrs["exclude_pad"] else MEAN_OF_DATA
    return _pooled(library, work, data, algorithm, tuple(attrs["strides"]), kernel, attrs["dilations"], begins, ends)


def compile_mean(library: Library, work: Work) -> Compiled | None:
    """ReduceMean-1 over all axes of [N, C, *spatial] but the first two."""
    data, axes = work.inputs[:2]
    assert data is not None
    assert axes is not None
    rank = len(data.shape)
    if axes.value is None or rank not in (3, 4, 5):
        return None
    if sorted(int(axis) % rank for axis in axes.value.ravel()) != list(range(2, rank)):
        return None
    if not work.attrs["keep_dims"] and work.posts:
        return None
    kernel, none = data.shape[2:], (0,) * (rank - 2)
    return _pooled(library, work, data, MEAN_OF_DATA, (1,) * (rank - 2), kernel, (1,) * (rank - 2), none, none)


def _pooled(
    library: Library,
    work: Work,
    data: Operand,
    algorithm: int,
    strides: Sizes,
    kernel: Sizes,
    dilations: Sizes,
    begins: Sizes,
    ends: Sizes,
) -> Compiled | None:
    source = layout_of(library, data)
    rank = len(data.shape)
    result = work.outputs[0].shape
    shape = (*result, *(1,) * (rank - len(result)))
    posts = chain(work.posts, work, aligned_axes(library, shape), library.any(shape), exact=True)
    if source is None or posts is None:
        return None
    gaps = tuple(dilation - 1 for dilation in dilations)
    primitive = library.primitive(
        "pooling_forward",
        *(INFERENCE, algorithm, source, library.any(shape), strides, kernel, gaps, begins, ends),
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
