"""Convolutions and transposed convolutions, with bias and what follows, in the layout that oneDNN is fastest with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from irrun.engines.onednn.library import BIAS, DST, FEW_PRODUCTS, INFERENCE, SRC, WEIGHTS, Layout, Library, Primitive
from irrun.engines.onednn.posts import Chain, aligned_axes, bias, chain
from irrun.engines.onednn.tensors import Sizes, canonical, channels_last, compiled, packed
from irrun.engines.work import Compiled, Operand, Work

DIRECT, TRANSPOSED_DIRECT = 0x1, 0xA


def compile(library: Library, work: Work) -> Compiled | None:
    """Convolution-1, GroupConvolution-1, ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1."""
    data, filters = work.inputs[:2]
    assert data is not None
    assert filters is not None
    transposed = "Backprop" in work.name
    shape, strides = filters.shape, filters.strides
    if not work.name.startswith("Group"):
        shape, strides = (1, *shape), (0, *strides)
    if transposed:
        shape, strides = _swapped(shape), _swapped(strides)
    kernel = shape[3:]
    if shape[0] == 1:
        shape, strides = shape[1:], strides[1:]
    source = library.strided(shape, canonical(shape, strides))
    constant = filters.value is not None
    if source is None or (not constant and (transposed or shape != filters.shape)):
        return None

    result = work.outputs[0].shape
    windows = (result, data.shape) if transposed else (data.shape, result)
    begins = _cropped(work, kernel) if transposed else paddings(work.attrs, data.shape[2:], kernel, result[2:])
    ends = reached(work.attrs, windows[0][2:], kernel, windows[1][2:], begins)
    dilations = tuple(dilation - 1 for dilation in work.attrs["dilations"])
    geometry = (tuple(work.attrs["strides"]), dilations, tuple(begins), ends)

    added = bias(work, 1)
    posts = chain(work.posts[added is not None :], work, aligned_axes(library, result), library.any(result))
    if posts is None:
        return None
    shift = None if added is None else library.dense((result[1],))
    primitive = _primitive(library, data, library.any(shape), shift, result, geometry, posts, transposed)
    if primitive is None:
        return None
    inputs = {SRC: 0, **posts.inputs}
    if added is not None:
        inputs[BIAS] = added
    if not constant:
        inputs[WEIGHTS] = 1
        return compiled(work, primitive, inputs, free=(SRC, WEIGHTS, *posts.free), gives=primitive.layout(DST))
    laid_out = {WEIGHTS: packed(library, filters.value, source, primitive.layout(WEIGHTS)).array}
    return compiled(
        work, primitive, inputs, free=(SRC, *posts.free), constants=laid_out, taken=(1,), gives=primitive.layout(DST)
    )


def _swapped(sizes: Sizes) -> Sizes:
    return (sizes[0], sizes[2], sizes[1], *sizes[3:])


def _primitive(
    library: Library,
    data: Operand,
    weights: Layout,
    shift: Layout | None,
    result: Sizes,
    geometry: tuple[Sizes, ...],
    posts: Chain,
    transposed: bool,
) -> Primitive | None:
    """The primitive for data with channels last where that gives the kernels made for it, else for what it likes."""
    kind, algorithm = ("deconvolution", TRANSPOSED_DIRECT) if transposed else ("convolution", DIRECT)
    first = None
    for source in (channels_last(library, data.shape), library.any(data.shape)):
        if source.strides is not None and not library.wide:
            continue
        found = library.primitive(
            f"{kind}_forward",
            *(INFERENCE, algorithm, source, weights, shift, library.any(result), *geometry),
            posts=posts.posts,
            small=prod(result) * prod(weights.shape) < FEW_PRODUCTS * result[1],
        )
        if found is not None and found.implementation.startswith("br"):
            return found
        first = first or found
    return first


def paddings(attrs: Mapping[str, Any], sizes: Sizes, kernel: Sizes, windows: Sizes) -> Sizes:
    """The padding in front of each axis; `same_upper` puts the odd element behind."""
    if attrs["auto_pad"] in ("explicit", "valid"):
        return tuple(attrs["pads_begin"]) if attrs["auto_pad"] == "explicit" else (0,) * len(sizes)
    totals = [max(end, 0) for end in reached(attrs, sizes, kernel, windows, (0,) * len(sizes))]
    return tuple(total // 2 if attrs["auto_pad"] == "same_upper" else total - total // 2 for total in totals)


def reached(attrs: Mapping[str, Any], sizes: Sizes, kernel: Sizes, windows: Sizes, begins: Sequence[int]) -> Sizes:
    """The padding behind each axis that the windows reach to; negative where they leave elements out."""
    axes = zip(sizes, kernel, windows, begins, attrs["strides"], attrs["dilations"], strict=True)
    return tuple(
        (count - 1) * stride + (taps - 1) * dilation + 1 - size - begin
        for size, taps, count, begin, stride, dilation in axes
    )


def _cropped(work: Work, kernel: Sizes) -> Sizes:
    """What a transposed convolution cuts off in front; with an output_shape, half of what is too much."""
    attrs, data = work.attrs, work.inputs[0]
    assert data is not None
    inputs = min((post.operand for post in work.posts if post.operand is not None), default=len(work.inputs))
    if inputs < 3 or work.inputs[2] is None:
        return tuple(attrs["pads_begin"]) if attrs["auto_pad"] == "explicit" else (0,) * len(kernel)
    extra = attrs["output_padding"] or (0,) * len(kernel)
    crops = []
    for length, taps, size, more, stride, dilation in zip(
        work.outputs[0].shape[2:], kernel, data.shape[2:], extra, attrs["strides"], attrs["dilations"], strict=True
    ):
        surplus = max((size - 1) * stride + (taps - 1) * dilation + 1 + more - length, 0)
        crops.append(surplus - surplus // 2 if attrs["auto_pad"] == "same_upper" else surplus // 2)
    return tuple(crops)


COMPILERS = {
    **dict.fromkeys(("Convolution-1", "GroupConvolution-1"), compile),
    **dict.fromkeys(("ConvolutionBackpropData-1", "GroupConvolutionBackpropData-1"), compile),
}
