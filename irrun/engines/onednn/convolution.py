"""Convolutions and transposed convolutions, with bias and what follows, in the layout that oneDNN is fastest with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import Sizes, canonical_strides, dense_strides, unless_so
from irrun.engines.memory import aligned
from irrun.engines.onednn import pieces, tiles
from irrun.engines.onednn.library import (
    BIAS,
    DST,
    FEW_ELEMENTS,
    FEW_PRODUCTS,
    INFERENCE,
    SRC,
    WEIGHTS,
    Descriptor,
    Library,
    Primitive,
)
from irrun.engines.onednn.posts import DOUBTFUL, Chain, aligned_axes, bias, bias_layout, chain
from irrun.engines.onednn.tensors import channels_last, compiled, given_as, itemsize, packed
from irrun.engines.windows import Axis, axes_of, transposed_axes_of
from irrun.engines.work import Arrays, Call, Compiled, Layout, Operand, Work
from irrun.engines.work import chain as chain_calls
from irrun.spec.op import Array

DIRECT, TRANSPOSED_DIRECT = 0x1, 0xA

STRIDED, MAX_TOGETHER = "brgconv_strided", 128
"""A way of oneDNN to compute transposed convolutions, in which a bias and posts are done to the sums over some of the
channels where there are many: from 257 on with AVX2. That many are trusted on any processor."""

ONE_BY_ONE = "conv:any"
"""How names begin of what adds a bias to transposed convolutions, and does what follows, to one number after another,
which takes up to ten times as long as the sums."""

PRODUCTS = "gemm"
"""In the name of what makes products of matrices of a convolution: one for each group, however small these are."""

DEPTHWISE = "jit_dw"
"""In the name of what computes groups of one channel each, which others fill up to a vector with zeros."""

OF_PAIRS = "jit_bf16_1x1"
"""In the name of what computes a transposed convolution of single taps in bf16: wrongly where the number of channels is
odd, as it takes them two by two."""

_OF_ROWS = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0}

MANY_READS = 12
"""Filters that read each number of the data more often are quicker with f32, conversion included."""


def compile(library: Library, work: Work) -> Compiled | None:
    """Convolution-1, GroupConvolution-1, ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1."""
    in_parts = None if library.lasting else tiles.compile(library, work) or pieces.compile(library, work, _prepared)
    if in_parts is not None:
        return in_parts
    found = _prepared(library, work)
    if found is None:
        return None
    made, primitive = found
    if work.outputs[0].type == "bf16" and primitive.implementation.startswith(DEPTHWISE):
        return _depthwise(library, work) or made
    if PRODUCTS in primitive.implementation and len(work.outputs[0].shape) == 3:
        return _in_rows(library, work) or made
    return made


def quick_depthwise(library: Library, work: Work) -> Compiled | None:
    """A depthwise convolution, unless there is no kernel for such: along three axes, along one with taps apart, or with
    more padding than a few elements others take ten times as long."""
    found = _prepared(library, work)
    if found is None or not _is_made_for_channels(found[1]):
        return _in_rows(library, work, made=True) if len(work.outputs[0].shape) == 3 else None
    return found[0] if library.lasting else compile(library, work)


def _is_made_for_channels(primitive: Primitive) -> bool:
    """Whether a primitive is made for channels last, or for groups of one channel each."""
    return primitive.implementation.startswith("br") or DEPTHWISE in primitive.implementation


def _in_rows(library: Library, work: Work, *, made: bool = False) -> Compiled | None:
    """A convolution over one axis as one over images of one row, where there is a kernel for these, or one that is
    `made` for channels."""
    if "Backprop" in work.name or any(own is not None and own.layout is not None for own in work.inputs[1:]):
        return None
    inputs = [None if operand is None else _with_row(operand) for operand in work.inputs]
    attrs = {name: (_OF_ROWS[name], *value) if name in _OF_ROWS else value for name, value in work.attrs.items()}
    found = _prepared(library, Work(work.name, attrs, inputs, [_with_row(work.outputs[0])], work.posts))
    if found is None or PRODUCTS in found[1].implementation or (made and not _is_made_for_channels(found[1])):
        return None
    own, primitive = found
    wants: dict[int, Layout | None] = {number: _without_row(library, layout) for number, layout in own.wants.items()}
    gives = _without_row(library, primitive.layout(DST))
    if gives is None or None in wants.values():
        return None
    return replace(own, wants=wants, gives=given_as(work, gives))


def _with_row(operand: Operand) -> Operand:
    """An operand with an axis of one element before its last one, which is the spatial one."""
    shape, strides = operand.shape, operand.strides
    if len(shape) < 2:
        return operand
    value = None if operand.value is None else operand.value[..., np.newaxis, :]
    return replace(
        operand, shape=(*shape[:-1], 1, shape[-1]), strides=(*strides[:-1], strides[-1], strides[-1]), value=value
    )


def _without_row(library: Library, layout: Layout | None) -> Descriptor | None:
    """The layout of a tensor whose axis of one element is left out again; None where that is one in blocks."""
    if not isinstance(layout, Descriptor) or layout.strides is None:
        return None
    return library.strided(
        (*layout.shape[:2], *layout.shape[3:]), (*layout.strides[:2], layout.strides[3]), layout.type
    )


def _depthwise(library: Library, work: Work) -> Compiled | None:
    """A depthwise convolution of bf16 by the kernel that is fast and gives f32 only, rounded behind it.

    Where a filter reads each number many times, the data are made f32 before it. Both lie with the channels last.
    """
    (data, filters), result = work.required(2), work.outputs[0]
    given, source = (channels_last(library, data.shape, type) for type in ("bf16", "f32"))
    widened = prod(result.shape) * prod(filters.shape[3:]) > MANY_READS * prod(data.shape)
    layout = source if widened else given
    read = Operand(layout.type, data.shape, layout.strides or ())
    exact = replace(result, type="f32", strides=dense_strides(result.shape))
    found = _prepared(library, replace(work, inputs=[read, *work.inputs[1:]], outputs=[exact]))
    if found is None or not found[1].implementation.startswith("brdgmm"):
        return None
    made, primitive = found
    target = channels_last(library, result.shape, "bf16")
    before = library.primitive("reorder", given, source, small=prod(data.shape) < FEW_ELEMENTS)
    after = library.primitive("reorder", primitive.layout(DST), target, small=prod(result.shape) < FEW_ELEMENTS)
    if 0 in made.wants or before is None or after is None:
        return None
    sizes = [aligned(source.nbytes) * widened, aligned(primitive.layout(DST).nbytes)]

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        wide, sums, rest = np.split(scratch, np.cumsum(sizes))
        calls = [before.bind([(SRC, given, inputs[0]), (DST, source, wide)], rest)] if widened else []
        calls.append(made.bind([wide if widened else inputs[0], *inputs[1:]], [sums], rest))
        calls.append(after.bind([(SRC, primitive.layout(DST), sums), (DST, target, outputs[0])], rest))
        return chain_calls(calls)

    room = max(made.scratch, before.scratch, after.scratch)
    wants = {**unless_so(data, given), **made.wants}
    return replace(made, bind=bind, scratch=sum(sizes) + room, wants=wants, gives=given_as(work, target))


def _prepared(library: Library, work: Work) -> tuple[Compiled, Primitive] | None:
    """The work as one primitive."""
    data, filters = work.required(2)
    transposed = "Backprop" in work.name
    shape, strides = filters.shape, filters.strides
    if not work.name.startswith("Group"):
        shape, strides = (1, *shape), (0, *strides)
    if transposed:
        shape, strides = _swapped(shape), _swapped(strides)
    kernel = shape[3:]
    if shape[0] == 1:
        shape, strides = shape[1:], strides[1:]
    source = library.strided(shape, canonical_strides(shape, strides, itemsize(filters)), filters.type)
    if source is None or (filters.value is None and (transposed or shape != filters.shape)):
        return None

    result, type = work.outputs[0].shape, work.outputs[0].type
    axes = transposed_axes_of(work, kernel) if transposed else axes_of(work.attrs, data.shape[2:], kernel, result[2:])
    if not all(axis.met for axis in axes):  # which kills a process where it is done by tiles
        return None

    added = bias(work, 1)
    posts = chain(work.posts[added is not None :], work, aligned_axes(library, result), partial(library.any, result))
    if posts is None:
        return None
    shift = bias_layout(library, work, added, (result[1],), data.type)
    weights, target = library.any(shape, data.type), library.any(result, type)
    primitive = _primitive(library, data, weights, shift, target, geometry_of(axes), posts, transposed)
    if primitive is None:
        return None
    in_parts = STRIDED in primitive.implementation and data.shape[1] > MAX_TOGETHER
    alone = in_parts or primitive.implementation.startswith(ONE_BY_ONE)
    if alone and (posts.posts or shift is not None):
        return None
    inputs = {SRC: 0, **posts.inputs}
    if added is not None:
        inputs[BIAS] = added
    if filters.value is None:
        inputs[WEIGHTS] = 1
        free, constants = (SRC, WEIGHTS, *posts.free), {}
    else:
        free = (SRC, *posts.free)
        constants = {WEIGHTS: packed(library, filters.value, source, primitive.layout(WEIGHTS)).array}
    constants |= posts.constants
    made = compiled(
        work,
        primitive,
        inputs,
        free=free,
        constants=constants,
        taken=(1,) if filters.value is not None else (),
        gives=primitive.layout(DST),
        doubtful=type == "f32" and any(post.name in DOUBTFUL for post in work.posts),
    )
    return made, primitive


def geometry_of(axes: Sequence[Axis]) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    """Strides, gaps between the taps, and the padding in front and behind that the windows reach to."""
    geometry = [(axis.stride, axis.dilation - 1, axis.begin, axis.reached) for axis in axes]
    strides, gaps, begins, ends = zip(*geometry, strict=True)
    return strides, gaps, begins, ends


def _swapped(sizes: Sizes) -> Sizes:
    return (sizes[0], sizes[2], sizes[1], *sizes[3:])


def _primitive(
    library: Library,
    data: Operand,
    weights: Descriptor,
    shift: Descriptor | None,
    target: Descriptor,
    geometry: tuple[Sizes, ...],
    posts: Chain,
    transposed: bool,
) -> Primitive | None:
    """The primitive for data with channels last where that gives the kernels made for it, else for what it likes."""
    kind, algorithm = ("deconvolution", TRANSPOSED_DIRECT) if transposed else ("convolution", DIRECT)
    first = None
    for source in (channels_last(library, data.shape, data.type), library.any(data.shape, data.type)):
        if source.strides is not None and not library.wide:
            continue
        found = library.primitive(
            f"{kind}_forward",
            *(INFERENCE, algorithm, source, weights, shift, target, *geometry),
            posts=posts.posts,
            small=prod(target.shape) * prod(weights.shape) < FEW_PRODUCTS * target.shape[1],
        )
        if found is not None and transposed and data.shape[1] % 2 and OF_PAIRS in found.implementation:
            continue
        if found is not None and _is_made_for_channels(found):
            return found
        first = first or found
    return first


COMPILERS = {
    **dict.fromkeys(("Convolution-1", "GroupConvolution-1"), compile),
    **dict.fromkeys(("ConvolutionBackpropData-1", "GroupConvolutionBackpropData-1"), compile),
}
