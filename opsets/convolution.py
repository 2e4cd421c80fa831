"""Convolution ops: dot products of kernels with windows of the data, and the transposed way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    FLOAT_NUMBER,
    INT,
    INTEGER,
    INTS,
    NUMERIC,
    Accumulating,
    Array,
    Attr,
    Convolving,
    Dim,
    EachAxis,
    Input,
    Node,
    Output,
    Products,
    Shape,
    Shapes,
    Size,
    choice,
    divided,
    fresh,
    meet,
    op,
    product,
    shape_text,
)
from irrun.spec.windows import Axis, axes_of, crops_of, transposed_axes_of

from ._window import (
    AUTO_PAD,
    DILATIONS,
    PADS_BEGIN,
    PADS_END,
    STRIDES,
    blocks,
    check_lengths,
    check_windows,
    framed,
    patches,
)

LISTS = ("strides", "dilations", "pads_begin", "pads_end")
WINDOW = (STRIDES, DILATIONS, PADS_BEGIN, PADS_END, AUTO_PAD)
BACKPROP = (*WINDOW, Attr("output_padding", INTS, (), least=0, lenient=True))
DEFORMABLE = (
    STRIDES,
    DILATIONS,
    PADS_BEGIN,
    Attr("pads_end", INTS, assumed=EachAxis(0)),
    AUTO_PAD,
    Attr("group", INT, 1, least=1, demanded=True),
    Attr("deformable_group", INT, 1, least=1, demanded=True),
)
DEFORMABLE_INPUTS = (
    Input("data", "T", "[N, CHANNELS, *spatial]"),
    Input("offsets", "T", "[N, OFFSETS, *windows]"),
    Input("filters", "T", "[FEATURES, C_IN, *kernel]"),
)
CONVOLVING = Convolving("pads_begin", "pads_end", "auto_pad")
CACHE_BYTES = 256 << 10
"""How much of a depthwise convolution is worked on at a time, so that it stays in the processor's cache."""


def _operations(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    return 2 * product(result) * product(shapes[1][1:])


def _operations_of_groups(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    return 2 * product(result) * product(shapes[1][2:])


@op(
    "Convolution-1",
    types={"T": NUMERIC},
    inputs=[Input("data", "T", "[N, C_IN, *spatial]"), Input("filters", "T", "[C_OUT, C_IN, *kernel]")],
    outputs=[Output("result", "T", "[N, C_OUT, *windows]")],
    attrs=WINDOW,
    traits=[CONVOLVING, Products(_operations)],
)
def convolution(data: Array, filters: Array, **window: Any) -> Array:
    """Cross-correlate the data with every filter.

    16-bit floats are summed in f32 and rounded once; integers wrap.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes, and filters has as many.
        C2: strides, dilations and pads have one value per spatial axis; pads that auto_pad makes ignored may have none.
        C3: the dilated kernel has an element and fits into the padded data.

    Choice: strides and dilations of 0, which the page allows, are refused as in OpenVINO.
    With same_upper and same_lower there are size / stride windows, rounded up.

    Source: convolution/convolution-1.rst

    >>> data, filters = np.arange(5.0).reshape(1, 1, 5), np.array([[[1.0, 0, -1]]])
    >>> op(data, filters, strides=(2,), dilations=(1,), pads_begin=(1,), pads_end=(1,)).tolist()
    [[[-1.0, -2.0, 3.0]]]
    """
    return correlated(data, filters[np.newaxis], axes_of(data.shape[2:], filters.shape[2:], **window))


@convolution.shapes
def _(node: Node) -> Shapes:
    return {"windows": convolution_windows(node)}


@op(
    "GroupConvolution-1",
    types={"T": NUMERIC},
    inputs=[Input("data", "T", "[N, CHANNELS, *spatial]"), Input("filters", "T", "[GROUPS, C_OUT, C_IN, *kernel]")],
    outputs=[Output("result", "T", "[N, FEATURES, *windows]")],
    attrs=WINDOW,
    traits=[CONVOLVING._replace(grouped=True), Products(_operations_of_groups)],
)
def group_convolution(data: Array, filters: Array, **window: Any) -> Array:
    """Cross-correlate each group of channels with the filters of its group.

    16-bit floats are summed in f32 and rounded once; integers wrap.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes, and filters has as many.
        C2: strides, dilations and pads have one value per spatial axis; pads that auto_pad makes ignored may have none.
        C3: the dilated kernel has an element and fits into the padded data.
        C4: data has GROUPS * C_IN channels.

    Source: convolution/group-convolution-1.rst

    >>> data, filters = np.array([[[1.0, 2, 3], [4, 5, 6]]]), np.array([[[[1.0, 1]]], [[[1, -1]]]])
    >>> op(data, filters, strides=(1,), dilations=(1,), pads_begin=(0,), pads_end=(0,)).tolist()
    [[[3.0, 5.0], [-1.0, -1.0]]]
    """
    return correlated(data, filters, axes_of(data.shape[2:], filters.shape[3:], **window))


@group_convolution.shapes
def _(node: Node) -> Shapes:
    return {"FEATURES": grouped_features(node), "windows": convolution_windows(node)}


def _transposed_operations(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    return 2 * product(shapes[0]) * product(shapes[1][1:])


def _transposed_operations_of_groups(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    return 2 * product(shapes[0]) * product(shapes[1][2:])


@op(
    "ConvolutionBackpropData-1",
    types={"T": NUMERIC, "T_SHAPE": INTEGER},
    inputs=[
        Input("data", "T", "[N, C_IN, *spatial]"),
        Input("filters", "T", "[C_IN, C_OUT, *kernel]"),
        Input("output_shape", "T_SHAPE", "[axes]", optional=True),
    ],
    outputs=[Output("result", "T", "[N, C_OUT, *result]")],
    attrs=BACKPROP,
    traits=[Products(_transposed_operations)],
)
def convolution_backprop_data(data: Array, filters: Array, output_shape: Array | None = None, **window: Any) -> Array:
    """Add up the filters, each scaled by one element of the data and laid where its window was: transposed convolution.

    16-bit floats are summed in f32 and rounded once; integers wrap.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes, and filters and output_shape have as many.
        C2: strides, dilations, pads, and output_padding where given, have one value per spatial axis; pads that
            auto_pad makes ignored may have none.
        C3: the kernel and the result have an element on every spatial axis.

    Deviation: with output_shape, pads_begin and pads_end are ignored and the padding is distributed as the page says,
        also where auto_pad is `explicit` or `valid`; there OpenVINO crops by the attributes, or at the end only.
    Choice: an output_shape above what the windows reach is filled with zeros at the end, as in the reference.

    Source: convolution/convolution-backprop-data-1.rst

    >>> data, filters = np.array([[[1.0, 10]]]), np.array([[[1.0, 2, 3]]])
    >>> op(data, filters, strides=(2,), dilations=(1,), pads_begin=(1,), pads_end=(0,)).tolist()
    [[[2.0, 13.0, 20.0, 30.0]]]
    """
    return transposed(data, filters[np.newaxis], output_shape, **window)


@convolution_backprop_data.shapes
def _(node: Node) -> Shapes:
    return {"result": transposed_sizes(node)}


@op(
    "GroupConvolutionBackpropData-1",
    types={"T": NUMERIC, "T_SHAPE": INTEGER},
    inputs=[
        Input("data", "T", "[N, CHANNELS, *spatial]"),
        Input("filters", "T", "[GROUPS, C_IN, C_OUT, *kernel]"),
        Input("output_shape", "T_SHAPE", "[axes]", optional=True),
    ],
    outputs=[Output("result", "T", "[N, FEATURES, *result]")],
    attrs=BACKPROP,
    traits=[Products(_transposed_operations_of_groups)],
)
def group_convolution_backprop_data(
    data: Array, filters: Array, output_shape: Array | None = None, **window: Any
) -> Array:
    """Transposed convolution of each group of channels with the filters of its group.

    16-bit floats are summed in f32 and rounded once; integers wrap.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes, and filters and output_shape have as many.
        C2: strides, dilations, pads, and output_padding where given, have one value per spatial axis; pads that
            auto_pad makes ignored may have none.
        C3: the kernel and the result have an element on every spatial axis.
        C4: data has GROUPS * C_IN channels.

    Deviation: with output_shape the padding is distributed as for ConvolutionBackpropData-1.

    Source: convolution/group-convolution-backprop-data-1.rst

    >>> data, filters = np.array([[[1.0, 10], [1, 2]]]), np.array([[[[1.0, 2]]], [[[1, -1]]]])
    >>> op(data, filters, strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,)).tolist()
    [[[1.0, 2.0, 10.0, 20.0], [1.0, -1.0, 2.0, -2.0]]]
    """
    return transposed(data, filters, output_shape, **window)


@group_convolution_backprop_data.shapes
def _(node: Node) -> Shapes:
    return {"FEATURES": grouped_features(node), "result": transposed_sizes(node)}


@op(
    "BinaryConvolution-1",
    types={"T": NUMERIC},
    inputs=[
        Input("data", "T", "[N, C_IN, *spatial]"),
        Input("filters", "u1", "[C_OUT, C_IN, *kernel]", low_first=True),
    ],
    outputs=[Output("result", "T", "[N, C_OUT, *windows]")],
    attrs=[
        *WINDOW,
        Attr("mode", choice("xnor-popcount"), assumed="xnor-popcount"),
        Attr("pad_value", FLOAT_NUMBER, assumed=0.0),
    ],
    traits=[Accumulating(_operations)],
)
def binary_convolution(data: Array, filters: Array, *, mode: str, pad_value: float, **window: Any) -> Array:
    """Count the equal bits of every window and every filter, less the different ones.

    Constraints:
        C1: data has 2 spatial axes, and filters has as many.
        C2: strides, dilations and pads have one value per spatial axis; pads that auto_pad makes ignored may have none.
        C3: the dilated kernel has an element and fits into the padded data.

    Choice: padding is -1 or 1 as bits are, by a pad_value of -1 or 1, and counts for nothing where that is 0, as in
    OpenVINO, which models are made with; other values are -1. The page only says that 0 stands for -1 in inputs.
    Elements of data other than 0 and 1 equal no bit, as in the reference. Of constant filters the lowest bit of each
    byte comes first, unlike that of other constants of u1 and in OpenVINO's reference: so its converters have written
    them, and its plugin reads them.

    Source: convolution/binary-convolution-1.rst

    >>> data, filters = np.float32([[[[1, 0, 0]]]]), np.uint8([[[[1, 1]]]])
    >>> window = dict(strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 1))
    >>> op.kernel(data, filters, mode="xnor-popcount", pad_value=0, auto_pad="explicit", **window).tolist()
    [[[[0.0, -2.0, -1.0]]]]
    """
    grid = axes_of(data.shape[2:], filters.shape[2:], **window)
    ones = framed((data == 1).astype(np.float32), grid, np.float32(pad_value == 1))
    zeros = framed((data == 0).astype(np.float32), grid, np.float32(pad_value not in (0, 1)))
    sizes = zip(ones.shape[2:], grid, strict=True)
    inner = [Axis(size, axis.kernel, axis.stride, axis.dilation) for size, axis in sizes]
    bits = filters[np.newaxis].astype(np.float32)
    equal = correlated(ones, bits, inner) + correlated(zeros, 1 - bits, inner)
    total: Any = np.prod(filters.shape[1:], dtype=np.float32)
    if pad_value == 0:
        there = framed(np.ones((1, 1, *data.shape[2:]), np.float32), grid)
        total = correlated(there, np.ones((1, 1, 1, *filters.shape[2:]), np.float32), inner) * filters.shape[1]
    return rounded(2 * equal - total, data.dtype)


@binary_convolution.shapes
def _(node: Node) -> Shapes:
    spatial = node.dims["spatial"]
    node.require("C1", len(spatial) == 2, f"`data` has {len(spatial)} spatial axes, expected 2", about=["data"])
    return {"windows": convolution_windows(node)}


def _deformed_operations(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    return 2 * product(result) * product(shapes[2][1:])


@op(
    "DeformableConvolution-1",
    types={"T": NUMERIC},
    inputs=DEFORMABLE_INPUTS,
    outputs=[Output("result", "T", "[N, FEATURES, *windows]")],
    attrs=DEFORMABLE,
    traits=[Accumulating(_deformed_operations)],
)
def deformable_convolution_1(data: Array, offsets: Array, filters: Array, **attrs: Any) -> Array:
    """Convolution whose taps are moved by the offsets, one (y, x) per window and tap.

    Constraints:
        C1: data has 2 spatial axes, and filters has as many.
        C2: strides, dilations and pads have one value per spatial axis; pads that auto_pad makes ignored may have none.
        C3: the dilated kernel has an element and fits into the padded data.
        C4: data has group * C_IN channels, and group divides the features.
        C5: offsets has deformable_group * 2 channels per tap, and deformable_group divides the channels of data.
        C6: offsets has the spatial sizes of the result.
        C7: pads are 0 or more. With less behind than there is in front, which makes up for it, there are fewer windows.

    Choice: a tap outside the data counts as 0, as in the reference; between pixels it is interpolated, and its
    neighbours stay inside the data.

    Source: convolution/deformable-convolution-1.rst

    >>> data, offsets = np.array([[[[1.0, 2, 4]]]]), np.zeros((1, 2, 1, 3))
    >>> offsets[0, 1] = 0.5
    >>> window = dict(strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))
    >>> op(data, offsets, np.ones((1, 1, 1, 1)), **window).tolist()
    [[[[1.5, 3.0, 4.0]]]]
    """
    return deformed(data, offsets, filters, None, bilinear_interpolation_pad=False, **attrs)


@deformable_convolution_1.shapes
def _(node: Node) -> Shapes:
    return deformable_windows(node, "C7")


@op(
    "DeformableConvolution-8",
    of=deformable_convolution_1,
    inputs=[*DEFORMABLE_INPUTS, Input("mask", "T", "[N, MASKS, *windows]", optional=True, lenient=True, integers=True)],
    attrs=[*DEFORMABLE, Attr("bilinear_interpolation_pad", BOOL, False)],
)
def deformable_convolution(
    data: Array, offsets: Array, filters: Array, mask: Array | None = None, **attrs: Any
) -> Array:
    """Convolution whose taps are moved by the offsets and scaled by the mask.

    Constraints:
        C1: data has 2 spatial axes, and filters has as many.
        C2: strides, dilations and pads have one value per spatial axis; pads that auto_pad makes ignored may have none.
        C3: the dilated kernel has an element and fits into the padded data.
        C4: data has group * C_IN channels, and group divides the features.
        C5: offsets has deformable_group * 2 channels per tap, and deformable_group divides the channels of data.
        C6: offsets has the spatial sizes of the result.
        C7: mask has deformable_group channels per tap.
        C8: pads are 0 or more. With less behind than there is in front, which makes up for it, there are fewer windows.

    Choice: a tap outside the data counts as 0, as in the reference; with bilinear_interpolation_pad one less than a
    pixel outside is interpolated with zeros.

    Source: convolution/deformable-convolution-8.rst

    >>> data, offsets = np.array([[[[1.0, 2, 4]]]]), np.zeros((1, 2, 1, 3))
    >>> offsets[0, 1] = 0.5
    >>> window = dict(strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))
    >>> op(data, offsets, np.ones((1, 1, 1, 1)), bilinear_interpolation_pad=True, **window).tolist()
    [[[[1.5, 3.0, 2.0]]]]
    """
    return deformed(data, offsets, filters, mask, **attrs)


@deformable_convolution.shapes
def _(node: Node) -> Shapes:
    shapes = deformable_windows(node, "C8")
    if node.inputs["mask"] is not None:
        expected = product(node.dims["kernel"]) * node.attrs["deformable_group"]
        found = node.dims["MASKS"]
        node.require("C7", found == expected, f"`mask` has {found} channels, expected {expected}", about=["mask"])
    return shapes


deformable_convolution.lowers("DeformableConvolution-1", bilinear_interpolation_pad=False)


def deformable_windows(node: Node, pads: str) -> Shapes:
    """Check the geometry of a deformable convolution and count its windows; `pads` is the constraint on these."""
    dims, groups, parts = node.dims, node.attrs["group"], node.attrs["deformable_group"]
    node.require(
        "C1", len(dims["spatial"]) == 2, f"`data` has {len(dims['spatial'])} spatial axes, expected 2", about=["data"]
    )
    found = dims["windows"]
    node.require("C6", len(found) == 2, f"`offsets` has {len(found)} axes for windows, expected 2", "offsets")
    check_end(node, pads)
    windows = convolution_windows(node)
    for number, (size, expected) in enumerate(zip(found, windows, strict=True)):
        message = f"spatial axis {number} of `offsets` has {size} elements, but there are {expected} windows"
        node.require("C6", size == expected, message, about=["offsets"])
    channels, expected = dims["CHANNELS"], dims["C_IN"] * groups
    node.require(
        "C4",
        channels == expected,
        f"`data` has {channels} channels, expected {expected} in {groups} groups",
        about=["data"],
    )
    features = dims["FEATURES"]
    node.require("C4", features % groups == 0, f"there are {features} features, expected a multiple of {groups}")
    count, expected = dims["OFFSETS"], product(dims["kernel"]) * 2 * parts
    node.require("C5", count == expected, f"`offsets` has {count} channels, expected {expected}", about=["offsets"])
    node.require(
        "C5", channels % parts == 0, f"`data` has {channels} channels, expected a multiple of {parts}", about=["data"]
    )
    return {"windows": windows}


def check_end(node: Node, label: str) -> None:
    """Require that pads_end is 0 or more, where something reads it, or that pads_begin makes up for it."""
    begins, ends, mode = (node.attrs[name] for name in ("pads_begin", "pads_end", "auto_pad"))
    for number, end in enumerate(ends):
        if end >= 0:
            continue
        shorter = "places fewer windows" if begins[number : number + 1] >= (-end,) else ""
        does = shorter if mode == "explicit" else f"does not read it where auto_pad is {mode}"
        node.require(
            label, False, f"`pads_end[{number}]` is {end}, expected 0 or more", about=["pads_end"], lenient=does
        )


def deformed(
    data: Array,
    offsets: Array,
    filters: Array,
    mask: Array | None,
    *,
    group: int,
    deformable_group: int,
    bilinear_interpolation_pad: bool,
    **window: Any,
) -> Array:
    """Deformable convolution: columns of interpolated taps, then one product per group."""
    grid = axes_of(data.shape[2:], filters.shape[2:], **window)
    computing = np.dtype(np.float32) if data.dtype.itemsize <= 2 else np.dtype(np.float64)
    computing = data.dtype if data.dtype.kind == "f" and data.dtype.itemsize >= 4 else computing
    taps = np.indices([int(axis.kernel) for axis in grid]).reshape(2, -1)
    counts = [int(axis.windows) for axis in grid]
    features, channels, size = len(filters), data.shape[1], data.shape[2:]
    batch, count, own = len(data), taps.shape[1], channels // deformable_group
    # channels last: a tap takes four rows of them
    taken = filters.astype(computing).reshape(group, features // group, channels // group, count)
    weights = taken.swapaxes(2, 3).reshape(group, features // group, count * (channels // group))
    images = np.moveaxis(data.astype(computing).reshape(batch, deformable_group, own, prod(size)), 2, 3)
    images = np.ascontiguousarray(images)
    moves = offsets.astype(computing).reshape(batch, deformable_group, count, 2, *counts)
    scales = None if mask is None else mask.astype(computing).reshape(batch, deformable_group, count, *counts)
    result = np.empty((batch, features, *counts), computing)
    limit = max(SAMPLED_BYTES, counts[1] * channels * count * computing.itemsize)
    for (number, image), block in combinations(
        enumerate(images), blocks(counts, channels * count * computing.itemsize, limit)
    ):
        starts = [np.arange(n)[cut] * a.stride - int(a.pads[0]) for n, cut, a in zip(counts, block, grid, strict=True)]
        columns = np.empty((*map(len, starts), count, deformable_group, own), computing)
        for part in range(deformable_group):
            y, x = (
                (moves[number, part, :, axis][:, *block] + start.reshape([1, -1, 1] if axis == 0 else [1, 1, -1]))
                + (taps[axis] * grid[axis].dilation).reshape(-1, 1, 1)
                for axis, start in enumerate(starts)
            )
            scale = None if scales is None else np.moveaxis(scales[number, part][:, *block], 0, -1)
            places = np.moveaxis(y, 0, -1), np.moveaxis(x, 0, -1)
            columns[..., part, :] = between_pixels(image[part], size, *places, scale, bilinear_interpolation_pad)
        by_group = np.moveaxis(columns.reshape(prod(map(len, starts)), count, group, channels // group), 2, 0)
        flat = by_group.reshape(group, by_group.shape[1], weights.shape[-1])
        place = result[number][:, *block]
        place[...] = np.matmul(weights, flat.swapaxes(1, 2)).reshape(place.shape)
    return rounded(result, data.dtype)


SAMPLED_BYTES = 1 << 20
"""Of the columns of a deformable convolution that are made at a time: what a cache holds beside the image."""


def between_pixels(
    image: Array, size: Sequence[int], y: Array, x: Array, scale: Array | None, zeros_outside: bool
) -> Any:
    """Bilinear interpolation of an image [H * W, C] at places y and x, scaled: [*places, C]; a place outside gives 0.

    With `zeros_outside` a place less than a pixel outside is interpolated with zeros, else neighbours stay inside.
    """
    height, width = size
    least = -1 if zeros_outside else 0
    above = np.greater if zeros_outside else np.greater_equal
    inside = above(y, least) & (y < height) & above(x, least) & (x < width)
    y, x = np.where(inside, y, 0), np.where(inside, x, 0)
    top, left = np.floor(y), np.floor(x)
    rows = [(top.astype(np.intp), 1 - (y - top)), (top.astype(np.intp) + 1, y - top)]
    columns = [(left.astype(np.intp), 1 - (x - left)), (left.astype(np.intp) + 1, x - left)]
    result, part = (np.empty((*y.shape, image.shape[1]), image.dtype) for _ in range(2))
    for number, ((row, down), (column, across)) in enumerate(combinations(rows, columns)):
        weight = down * across * inside
        if zeros_outside:
            weight = weight * ((row >= 0) & (row < height) & (column >= 0) & (column < width))
        if scale is not None:
            weight = weight * scale
        target = part if number else result
        place = np.clip(row, 0, height - 1) * width + np.clip(column, 0, width - 1)
        np.take(image, place, 0, target, "clip")
        target *= weight[..., np.newaxis]
        if number:
            result += part
    return result


def convolution_windows(node: Node) -> tuple[Size, ...]:
    """Check the geometry of a convolution and count its windows."""
    spatial, kernel = checked_spatial(node)
    check_lengths(node, "C2", len(spatial), LISTS, assumed=LISTS)
    attrs = {name: node.attrs[name] for name in (*LISTS, "auto_pad")}
    return check_windows(node, "C3", axes_of(spatial, kernel, **attrs))


def checked_spatial(node: Node) -> tuple[Sequence[Size], Sequence[Size]]:
    spatial = node.dims["spatial"]
    if len(spatial) not in (1, 2, 3):
        node.fail("C1", f"`data` has {len(spatial)} spatial axes, expected 1 to 3", about=["data"])
    kernel = node.dims["kernel"]
    if len(kernel) != len(spatial):
        message = f"`data` has {len(spatial)} spatial axes and `filters` {len(kernel)}, expected 1 to 3 in both"
        node.fail("C1", message, about=["data", "filters"])
    for size in kernel:
        node.require("C3", size >= 1, f"the kernel is {shape_text(kernel)}, expected an element on every axis")
    return spatial, [size.within(1) if isinstance(size, Dim) else size for size in kernel]


def grouped_features(node: Node) -> Any:
    """The channels of the result of a grouped op, after checking those of its data."""
    dims = node.dims
    if "GROUPS" not in dims:
        return None
    groups = dims["GROUPS"]
    if "CHANNELS" in dims:
        expected = groups * dims["C_IN"]
        found = f"`data` has {dims['CHANNELS']} channels, expected {expected}"
        node.require("C4", dims["CHANNELS"] == expected, f"{found}: {groups} groups of {dims['C_IN']}", about=["data"])
        if isinstance(dims["C_IN"], int) and dims["C_IN"]:
            groups = meet(groups, divided(dims["CHANNELS"], dims["C_IN"]))
    return groups * dims["C_OUT"]


def transposed_sizes(node: Node) -> tuple[Size, ...]:
    """Check the geometry of a transposed convolution and compute the spatial sizes of its result."""
    spatial, kernel = checked_spatial(node)
    rank = len(spatial)
    check_lengths(node, "C2", rank, (*LISTS, "output_padding"), optional=["output_padding"], assumed=LISTS)
    sizes: Sequence[Size] = transposed_lengths(transposed_axes_of(spatial, kernel, **node.attrs), **node.attrs)
    if node.inputs["output_shape"] is not None:
        count = node.dims.get("axes", rank)
        node.require(
            "C1", count == rank, f"`output_shape` has {count} elements for {rank} spatial axes", about=["output_shape"]
        )
        sizes = node.sizes("output_shape") or [fresh() for _ in spatial]
    for number, size in enumerate(sizes):
        node.require("C3", size >= 1, f"spatial axis {number} of the result has {size} elements, expected 1 or more")
    return tuple(size.within(1) if isinstance(size, Dim) else size for size in sizes)


def transposed_lengths(grid: Sequence[Axis], *, output_padding: Sequence[int], **_: Any) -> list[Size]:
    """The spatial sizes of the result where no output_shape gives them."""
    extra = output_padding or (0,) * len(grid)
    return [axis.spread - sum(axis.pads) + more for axis, more in zip(grid, extra, strict=True)]


def computing_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A type in which products of `dtype` are summed exactly modulo its width, or well enough, by a fast routine."""
    if dtype.kind in "iu":
        return np.dtype(np.float64) if dtype.itemsize == 1 else dtype
    return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)


def rounded(result: Array, dtype: np.dtype[Any]) -> Array:
    """`result` in the element type of the op; integers wrap."""
    if dtype.kind in "iu" and result.dtype.kind == "f":
        result = result.astype(np.int64)
    return result.astype(dtype, copy=False)


def correlated(data: Array, filters: Array, grid: Sequence[Axis]) -> Array:
    """Grouped convolution of data [N, GROUPS * C_IN, *spatial] with filters [GROUPS, C_OUT, C_IN, *kernel]."""
    groups, features, channels = filters.shape[:3]
    dtype, computing = data.dtype, computing_type(data.dtype)
    frame = framed(data.astype(computing, copy=False), grid)
    filters = filters.astype(computing, copy=False)
    if channels == 1 and groups > 1:
        return rounded(depthwise(frame, filters, grid), dtype)
    counts = [int(axis.windows) for axis in grid]
    result = np.empty((len(data), groups * features, *counts), computing)
    if not result.size:
        return rounded(result, dtype)
    weights = filters.reshape(groups, features, channels * prod(filters.shape[3:]))
    columns = patches(frame, grid)
    column_bytes = groups * weights.shape[-1] * computing.itemsize
    for image, target in zip(columns, result, strict=True):
        for block in blocks(counts, column_bytes):
            place = target[(slice(None), *block)]
            flat = place.reshape(groups, features, -1)
            np.matmul(weights, image[(..., *block)].reshape(groups, weights.shape[-1], flat.shape[-1]), out=flat)
            if not np.may_share_memory(flat, place):
                place[...] = flat.reshape(place.shape)
    return rounded(result, dtype)


def depthwise(frame: Array, filters: Array, grid: Sequence[Axis]) -> Array:
    """Convolution where each group has one channel: multiply-adds of shifted channels, all windows at once.

    The frame is split by the remainders of the strides, so that each tap sees one dense piece of it; all pieces have
    one layout, and a tap is an offset into the flattened piece.
    """
    counts = [int(axis.windows) for axis in grid]
    groups, features = filters.shape[:2]
    result = np.zeros((len(frame), groups, features, *counts), frame.dtype)
    if 0 in result.shape:
        return result.reshape(len(frame), groups * features, *counts)
    taps = list(combinations(*(range(int(axis.kernel)) for axis in grid)))
    layout = [count + (int(axis.reach) - 1) // axis.stride for count, axis in zip(counts, grid, strict=True)]
    pitches = [int(np.prod(layout[number + 1 :])) for number in range(len(layout))]
    length = 1 + sum((count - 1) * pitch for count, pitch in zip(counts, pitches, strict=True))
    step = max(CACHE_BYTES // (int(np.prod(layout)) * frame.itemsize), 1)
    weights = filters.reshape(groups, features, len(taps), 1)
    for image, target in zip(frame, result, strict=True):
        for start in range(0, groups, step):
            part = slice(start, start + step)
            pieces: dict[tuple[int, ...], Array] = {}
            sums = np.empty((len(image[part]), int(np.prod(layout))), frame.dtype)
            terms = np.empty((len(sums), length), frame.dtype)
            for feature in range(features):
                for number, tap in enumerate(taps):
                    shifts = [divmod(k * axis.dilation, axis.stride) for k, axis in zip(tap, grid, strict=True)]
                    phase = tuple(remainder for _, remainder in shifts)
                    if phase not in pieces:
                        pieces[phase] = _piece(image[part], grid, phase, layout)
                    offset = sum(shift * pitch for (shift, _), pitch in zip(shifts, pitches, strict=True))
                    seen, weight = pieces[phase][:, offset : offset + length], weights[part, feature, number]
                    if number == 0:
                        np.multiply(seen, weight, out=sums[:, :length])
                    else:
                        np.multiply(seen, weight, out=terms)
                        sums[:, :length] += terms
                inside = tuple(slice(0, count) for count in counts)
                target[part, feature] = sums.reshape(-1, *layout)[(slice(None), *inside)]
    return result.reshape(len(frame), groups * features, *counts)


def _piece(channels: Array, grid: Sequence[Axis], phase: Sequence[int], layout: Sequence[int]) -> Array:
    """Every stride-th element of `channels` from `phase` on, laid out as `layout` and flattened per channel."""
    picked = channels[
        (slice(None), *(slice(first, None, axis.stride) for first, axis in zip(phase, grid, strict=True)))
    ]
    picked = picked[(slice(None), *(slice(0, size) for size in layout))]
    if picked.shape[1:] != tuple(layout):
        piece = np.zeros((len(channels), *layout), channels.dtype)
        piece[tuple(map(slice, picked.shape))] = picked
        picked = piece
    return picked.reshape(len(channels), -1)


def transposed(data: Array, filters: Array, output_shape: Array | None, *, auto_pad: str, **attrs: Any) -> Array:
    """Grouped transposed convolution of data [N, GROUPS * C_IN, *spatial], filters [GROUPS, C_IN, C_OUT, *kernel]."""
    kernel = filters.shape[3:]
    grid = transposed_axes_of(data.shape[2:], kernel, auto_pad=auto_pad, **attrs)
    crops = [axis.begin for axis in grid]
    lengths = transposed_lengths(grid, **attrs)
    if output_shape is not None:
        lengths = [int(length) for length in output_shape]
        crops = crops_of(grid, lengths, auto_pad=auto_pad, **attrs)

    groups, channels, features = filters.shape[:3]
    dtype, computing = data.dtype, computing_type(data.dtype)
    weights = np.moveaxis(filters, 1, -1).astype(computing, copy=False)
    weights = weights.reshape(groups, features * prod(kernel), channels)
    spread = [max(int(axis.spread), crop + int(n)) for axis, crop, n in zip(grid, crops, lengths, strict=True)]
    result = np.zeros((len(data), groups * features, *spread), computing)
    taps = list(combinations(*map(range, kernel)))
    column_bytes = groups * weights.shape[1] * computing.itemsize
    for image, target in zip(data.astype(computing, copy=False), result, strict=True):
        for block in blocks(image.shape[1:], column_bytes):
            part = image[(slice(None), *block)]
            columns = np.matmul(weights, part.reshape(groups, channels, prod(part.shape[1:])))
            columns = columns.reshape(groups, features, len(taps), *part.shape[1:])
            for number, tap in enumerate(taps):
                places = []
                for k, axis, cut, count in zip(tap, grid, block, part.shape[1:], strict=True):
                    first = k * axis.dilation + cut.start * axis.stride
                    places.append(slice(first, first + (count - 1) * axis.stride + 1, axis.stride))
                target[(slice(None), *places)] += columns[:, :, number].reshape(len(target), *part.shape[1:])
    inside: list[Any] = [slice(crop, crop + int(length)) for crop, length in zip(crops, lengths, strict=True)]
    return rounded(np.ascontiguousarray(result[(..., *inside)]), dtype)
