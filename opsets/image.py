"""Image ops: resampling and colour formats."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    FLOAT,
    FLOAT_NUMBER,
    INTEGER,
    INTS,
    NUMERIC,
    Array,
    Attr,
    Doubting,
    Input,
    Node,
    Op,
    Output,
    Resizing,
    Shapes,
    Size,
    Tensor,
    choice,
    divided,
    every,
    exact,
    fresh,
    meet,
    op,
    shape_text,
)

from ._unlikely import pillow_coefficients

SCALE_TOLERANCE = 1e-6
"""What the reference adds to a scale before it multiplies a size, so that a third of 3 is 1."""


def _resizing(targets: str) -> Resizing:
    return Resizing(targets, ("pads_begin", "pads_end"), lambda attrs: attrs["mode"] == "nearest")


INTERPOLATION = (
    Attr("shape_calculation_mode", choice("sizes", "scales"), assumed="sizes"),
    Attr(
        "coordinate_transformation_mode",
        choice("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"),
        "half_pixel",
    ),
    Attr(
        "nearest_mode",
        choice("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"),
        "round_prefer_floor",
    ),
    Attr("antialias", BOOL, False),
    Attr("pads_begin", INTS, (0,), least=0, unsigned=True),
    Attr("pads_end", INTS, (0,), least=0, unsigned=True),
    Attr("cube_coeff", FLOAT_NUMBER, -0.75),
)


@op(
    "Interpolate-1",
    types={"T": FLOAT, "T_SIZE": INTEGER},
    lenient_types={"T": INTEGER},
    inputs=[Input("data", "T", "[*data]"), Input("target_spatial_shape", "T_SIZE", "[targets]")],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[
        Attr("axes", INTS, least=0),
        Attr("mode", exact("nearest", "linear", "linear_onnx", "cubic", "area")),
        Attr("align_corners", BOOL, True),
        Attr("antialias", BOOL, False),
        Attr("pads_begin", INTS, (0,), least=0, unsigned=True),
        Attr("pads_end", INTS, (0,), least=0, unsigned=True),
    ],
    opsets=frozenset({1, 2, 3}),
)
def interpolate_1(
    data: Array,
    target_spatial_shape: Array,
    *,
    axes: Sequence[int],
    mode: str,
    align_corners: bool,
    antialias: bool,
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
) -> Array:
    """Resample the data along some axes to the given sizes.

    Constraints:
        C1: axes are different and lie in [0, r), r the rank of data.
        C2: target_spatial_shape has one element per axis.
        C3: the target sizes are 0 or more.
        C4: the padded data is not empty along the axes.
        C5: mode is not `area`, which the page names without defining it and OpenVINO does not compute.
        C6: pads have one value, for every interpolated axis, or one for each axis of data, 0 for the others.

    Choice: the page leaves the formulas open. They are those of Interpolate-4 as OpenVINO sets them: nearest_mode
    `simple`, cube_coeff -0.75, and coordinates by `align_corners` or else `asymmetric`, but `half_pixel` for linear
    data without padding unless it has rank 4 and the axes are 2 and 3. Linear is `linear_onnx` below rank 5.

    Deviation: OpenVINO sorts axes, but not the sizes that go with them.

    Source: image/interpolate-1.rst

    >>> op(np.array([[1.0, 2, 3]]), np.array([5]), axes=(1,), mode="linear").tolist()
    [[1.0, 1.5, 2.0, 2.5, 3.0]]
    """
    begins, ends = (axis_pads(pads, axes, data.ndim) for pads in (pads_begin, pads_end))
    images = [axis_of(axis, n, data.shape, begins, ends) for axis, n in zip(axes, target_spatial_shape, strict=True)]
    transform = "align_corners" if align_corners else "asymmetric"
    half_pixel = mode == "linear" and not any((*begins, *ends)) and not (data.ndim == 4 and set(axes) == {2, 3})
    if half_pixel and not align_corners:
        transform = "half_pixel"
    if mode == "linear" and data.ndim < 5:
        mode = "linear_onnx"
    padded = zero_padded(data, begins, ends)
    return resampled(padded, images, mode, transform=transform, nearest="simple", antialias=antialias, cubic=-0.75)


@interpolate_1.shapes
def _(node: Node) -> Shapes:
    axes, mode = node.attrs["axes"], node.attrs["mode"]
    node.require("C5", mode != "area", "`mode` is `area`, which has no definition", about=["mode"])
    data = node.shape("data")
    check_axes(node, axes, len(data))
    for name in ("pads_begin", "pads_end"):
        pads = node.attrs[name]
        message = f"`{name}` is {list(pads)} for rank {len(data)} and axes {list(axes)}"
        node.require("C6", len(pads) in (0, 1, len(data)), message, about=[name])
        others = len(pads) > 1 and any(pad for axis, pad in enumerate(pads) if axis not in axes)
        node.require("C6", not others, message, about=[name], lenient="pads the other axes, too")
    begins, ends = (axis_pads(node.attrs[name], axes, len(data)) for name in ("pads_begin", "pads_end"))
    return {"result": resampled_shape(node, data, axes, begins, ends, "target_spatial_shape", "sizes")}


@op(
    "Interpolate-4",
    types={"T": NUMERIC, "T_SIZE": INTEGER, "T_SCALES": FLOAT, "T_AXES": INTEGER},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("sizes", "T_SIZE", "..."),
        Input("scales", "T_SCALES", "..."),
        Input("axes", "T_AXES", "[num_axes]", optional=True),
    ],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[Attr("mode", choice("nearest", "linear", "linear_onnx", "cubic"), assumed="nearest"), *INTERPOLATION],
    traits=[_resizing("scales")],
)
def interpolate_4(
    data: Array, sizes: Array, scales: Array, axes: Array | None = None, *, shape_calculation_mode: str, **attrs: Any
) -> Array:
    """Resample the data along some axes to the given sizes, or by the given scales.

    Constraints:
        C1: axes are different and lie in [0, r), r the rank of data.
        C2: sizes, or scales where they count, have one element per axis.
        C3: sizes are 0 or more, scales above 0.
        C4: the padded data is not empty along the axes.
        C5: sizes and scales are vectors.

    Choice: of sizes and scales only the one that counts is checked, and has to be a vector. Coordinates and weights are
    f32, as in the reference; a size is floor(scale * size) with its tolerance of 1e-6 in scale. Integers are rounded to
    the nearest, halves away from 0, and saturate, as the reference has it for linear: in runs OpenVINO rounds in all
    modes, though it cuts off fractions of linear_onnx and cubic where it computes these before a run.
    16-bit floats are computed in f32. linear_onnx takes any axes. pads shorter than the rank are filled with zeros,
    longer ones cut. An axis whose scale is 1 or whose size stays the same keeps its elements, whatever the coordinates
    of the page are there, as in OpenVINO.

    Source: image/interpolate-4.rst

    >>> sizes, scales, axes = np.array([4]), np.array([2.0]), np.array([1])
    >>> op(np.array([[1.0, 2]]), sizes, scales, axes, mode="linear", shape_calculation_mode="sizes").tolist()
    [[1.0, 1.25, 1.75, 2.0]]
    """
    targets = sizes if shape_calculation_mode == "sizes" else scales
    return interpolated(data, targets, axes, shape_calculation_mode, **attrs)


@interpolate_4.shapes
def _(node: Node) -> Shapes:
    by = node.attrs["shape_calculation_mode"]
    for name in ("sizes", "scales"):
        shape = node.inputs[name].shape
        if shape is None:
            continue
        unread = "" if name == by else f"does not read it where shape_calculation_mode is {by}"
        message = f"`{name}` is {shape_text(shape)}, expected one axis"
        node.require("C5", len(shape) == 1, message, about=[name], lenient=unread)
    return interpolated_shape(node, "data", by)


@op(
    "Interpolate-11",
    types={"T": NUMERIC, "T_TARGETS": INTEGER | FLOAT, "T_AXES": INTEGER},
    inputs=[
        Input("image", "T", "[*image]"),
        Input("scales_or_sizes", "T_TARGETS", "[targets]"),
        Input("axes", "T_AXES", "[num_axes]", optional=True),
    ],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[
        Attr(
            "mode",
            choice("nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"),
            assumed="nearest",
        ),
        *INTERPOLATION,
    ],
    traits=[_resizing("scales_or_sizes"), Doubting(pillow_coefficients)],
)
def interpolate(
    image: Array, scales_or_sizes: Array, axes: Array | None = None, *, shape_calculation_mode: str, **attrs: Any
) -> Array:
    """Resample the image along some axes to the given sizes, or by the given scales.

    The Pillow modes weigh all elements under a window that grows with the reduction, the second axis before the first.

    Constraints:
        C1: axes are different and lie in [0, r), r the rank of image.
        C2: scales_or_sizes has one element per axis.
        C3: sizes are 0 or more, scales above 0.
        C4: the padded image is not empty along the axes.
        C5: scales_or_sizes has integers for shape_calculation_mode `sizes`, floats for `scales`.
        C6: the Pillow modes have two axes, height and width; axis 0 of four or more is that of the batch.

    Choice: as Interpolate-4; in the Pillow modes integers are rounded after each of the two passes, as in the
    reference, and floating-point numbers once, as in OpenVINO's plugin. The mode bicubic_pillow goes by cube_coeff, as
    on the page and in the reference, with a warning where it is not that of Pillow, -0.5.

    Source: image/interpolate-11.rst

    >>> image, sizes = np.array([[0.0, 8, 8, 0]]), np.array([1, 2])
    >>> op(image, sizes, mode="bilinear_pillow", shape_calculation_mode="sizes").round(3).tolist()
    [[4.571, 4.571]]
    """
    return interpolated(image, scales_or_sizes, axes, shape_calculation_mode, **attrs)


@interpolate.shapes
def _(node: Node) -> Shapes:
    by = node.attrs["shape_calculation_mode"]
    found = node.types.get("T_TARGETS")
    if found is not None:
        expected = INTEGER if by == "sizes" else FLOAT
        node.require(
            "C5",
            found in expected,
            f"`scales_or_sizes` is {found}, but shape_calculation_mode is `{by}`",
            about=["scales_or_sizes"],
        )
    mode = node.attrs["mode"]
    if mode.endswith("_pillow"):
        rank = len(node.shape("image"))
        count = node.dims.get("num_axes") if node.inputs["axes"] is not None else rank
        if count is not None:
            node.require("C6", count == 2, f"there are {count} axes, expected 2 in mode `{mode}`")
        batch = rank > 3 and node.inputs["axes"] is not None and 0 in (node.numbers("axes") or ())
        node.require("C6", not batch, f"`axes` has 0, the axis of the batch, in mode `{mode}`", about=["axes"])
    return interpolated_shape(node, "image", "scales_or_sizes")


def _with_sizes_and_scales(attrs: Mapping[str, Any], inputs: Sequence[Tensor | None]) -> list[int | Array] | None:
    """The input that counts in its place, and ones in the place of the other, as many as there are axes."""
    given = inputs[1]
    count = given.shape[0] if given is not None and given.shape else None
    if not isinstance(count, int):
        return None
    rest = [2] if len(inputs) > 2 else []
    if attrs["shape_calculation_mode"] == "sizes":
        return [0, 1, np.ones(count, np.float32), *rest]
    return [0, np.ones(count, np.int64), 1, *rest]


interpolate.lowers("Interpolate-4", mode=("nearest", "linear", "linear_onnx", "cubic"), arrange=_with_sizes_and_scales)


@op(
    "GridSample-9",
    types={"T": NUMERIC, "T_GRID": FLOAT},
    inputs=[Input("data", "T", "[N, C, H, W]"), Input("grid", "T_GRID", "[N, H_OUT, W_OUT, 2]")],
    outputs=[Output("result", "T", "[N, C, H_OUT, W_OUT]")],
    attrs=[
        Attr("align_corners", BOOL, False),
        Attr("mode", choice("bilinear", "bicubic", "nearest"), "bilinear"),
        Attr("padding_mode", choice("zeros", "border", "reflection"), "zeros"),
    ],
)
def grid_sample(data: Array, grid: Array, *, align_corners: bool, mode: str, padding_mode: str) -> Array:
    """Take pixels, or blends of their neighbours, at the places (x, y) that the grid gives in units of half the image.

    Constraints:
        C1: data has a pixel.

    Choice: -1 and 1 are the outer edges of the border pixels, or their centers with align_corners, as in the
    reference; the page has it the other way round in one place. `nearest` rounds halves to even; bicubic has the
    coefficient -0.75. Integers are cut towards zero and saturate; 16-bit floats are computed in f32.

    Source: image/grid-sample-9.rst

    >>> data, grid = np.array([[[[1.0, 3]]]]), np.array([[[[0.0, 0], [-0.5, 0], [1, 0]]]])
    >>> op(data, grid).tolist()
    [[[[2.0, 1.0, 1.5]]]]
    """
    source = data if mode == "nearest" else computable(data)
    coordinates = grid.astype(np.float32) if grid.dtype.itemsize == 2 else grid
    height, width = data.shape[2:]
    x, y = (_pixels(coordinates[..., i], size, align_corners) for i, size in enumerate((width, height)))

    def seen(row: Array, column: Array) -> Array:
        """The pixels at these places, in the shape of the result."""
        rows, inside_rows = _reachable(row, height, padding_mode, align_corners)
        columns, inside_columns = _reachable(column, width, padding_mode, align_corners)
        pixels = [image[:, r, c] for image, r, c in zip(source, rows, columns, strict=True)]
        there = np.array(pixels, source.dtype).reshape(*data.shape[:2], *grid.shape[1:3])
        return np.where((inside_rows & inside_columns)[:, np.newaxis], there, np.zeros((), source.dtype))

    if mode == "nearest":
        return seen(np.rint(y), np.rint(x))
    below = np.floor(y), np.floor(x)
    offsets = (0, 1) if mode == "bilinear" else (-1, 0, 1, 2)
    weigh = _linear_weights if mode == "bilinear" else _cubic_weights
    down, across = weigh(y - below[0]), weigh(x - below[1])
    cut = data.dtype.kind in "iu"
    # integers as differences from one neighbour, as equal ones would give a digit less, which is cut to 1 less
    first: Any = seen(below[0] + offsets[0], below[1] + offsets[0]) if cut else 0
    result: Any = 0
    for i, v in zip(offsets, down, strict=True):
        for j, w in zip(offsets, across, strict=True):
            weight = (v * w)[:, np.newaxis].astype(source.dtype)
            result = result + (seen(below[0] + i, below[1] + j) - first) * weight
    return converted(np.trunc(result + first) if cut else result, data.dtype)


@grid_sample.shapes
def _(node: Node) -> None:
    height, width = node.dims["H"], node.dims["W"]
    node.require("C1", height * width >= 1, f"`data` is an image of {height} x {width} pixels", about=["data"])


def _pixels(coordinates: Array, size: int, align_corners: bool) -> Array:
    """Grid coordinates in [-1, 1] as pixel coordinates, bounded so that they fit into integers."""
    scaled = (coordinates + 1) * (size - 1) / 2 if align_corners else ((coordinates + 1) * size - 1) / 2
    bounded: Array = np.clip(scaled, -(2.0**31), 2.0**31)
    return bounded


def _reachable(pixels: Array, size: int, padding_mode: str, align_corners: bool) -> tuple[Array, Array]:
    """Pixel numbers moved inside the image as padding_mode says, and which count; NaN is pixel 0."""
    index = np.where(np.isnan(pixels), 0, pixels).astype(np.int64)
    inside = np.ones(index.shape, np.bool_)
    if padding_mode == "zeros":
        inside = (index >= 0) & (index < size)
    elif padding_mode == "reflection":
        period = 2 * size if not align_corners else max(2 * (size - 1), 1)
        index = index % period if not align_corners else np.abs(index) % period
        index = np.where(index >= size, period - index - (not align_corners), index)
    return np.clip(index, 0, size - 1), inside


def _linear_weights(share: Array) -> list[Array]:
    return [1 - share, share]


def _cubic_weights(s: Array, a: float = -0.75) -> list[Array]:
    return [
        a * (s - 1) * (s - 1) * s,
        ((a + 2) * s - (a + 3)) * s * s + 1,
        (((-a - 2) * s + (2 * a + 3)) * s - a) * s,
        -a * s * s * (s - 1),
    ]


NV12_DOC = """Convert an NV12 image to {order}: one plane of brightness, one of two colours at half the size.

The image is [N, 3 / 2 height, width, 1] in one tensor, or its two planes are [N, height, width, 1] and
[N, height / 2, width / 2, 2].

Constraints:
    C1: the width, and the height of the image, are even; a single tensor has 3 / 2 of that height.
    C2: the second plane has half the height and width.

Choice: u8 is rounded to the nearest; 16-bit floats are computed in f32.

Source: image/nv12-to-{page}-8.rst

>>> op(np.full((1, 3, 2, 1), 128, np.uint8))[0, 0].tolist()
[[130, 130, 130], [130, 130, 130]]
"""

I420_DOC = """Convert an I420 image to {order}: one plane of brightness, two of one colour each at half the size.

The image is [N, 3 / 2 height, width, 1] in one tensor, or its three planes are [N, height, width, 1] and twice
[N, height / 2, width / 2, 1].

Constraints:
    C1: the width, and the height of the image, are even; a single tensor has 3 / 2 of that height.
    C2: the second and the third plane have half the height and width.
    C3: there are one or three inputs.

Choice: u8 is rounded to the nearest; 16-bit floats are computed in f32.

Source: image/i420-to-{page}-8.rst

>>> op(np.full((1, 3, 2, 1), 128, np.uint8))[0, 0].tolist()
[[130, 130, 130], [130, 130, 130]]
"""


def from_yuv(name: str, page: str, reverse: bool) -> Op:
    """The op that converts NV12 or I420 images; `reverse` puts blue first."""

    def from_two_planes(data: Array, colours: Array | None = None) -> Array:
        if colours is None:
            y, rest = _split_planes(data)
            colours = rest.reshape(*rest.shape[:2], rest.shape[2] // 2, 2)
        else:
            y = data[..., 0]
        return coloured(y, colours[..., 0], colours[..., 1], reverse)

    def from_three_planes(data: Array, u: Array | None = None, v: Array | None = None) -> Array:
        if u is None or v is None:
            y, rest = _split_planes(data)
            planes = rest.reshape(len(data), 2, rest.shape[1], rest.shape[2] // 2)
            return coloured(y, planes[:, 0].reshape(_half(y)), planes[:, 1].reshape(_half(y)), reverse)
        return coloured(data[..., 0], u[..., 0], v[..., 0], reverse)

    nv12 = name.startswith("NV12")
    names, depth = (["colours"], 2) if nv12 else (["u", "v"], 1)
    return Op(
        name,
        from_two_planes if nv12 else from_three_planes,
        inputs=[
            Input("data", "T", "[N, rows, width, 1]"),
            *(Input(plane, "T", f"[N, half_height, half_width, {depth}]", optional=True) for plane in names),
        ],
        outputs=[Output("result", "T", "[N, height, width, 3]")],
        types={"T": FLOAT | {"u8"}},
        rule=two_planes_rule if nv12 else three_planes_rule,
        doc=(NV12_DOC if nv12 else I420_DOC).format(order=page.upper(), page=page),
    )


def two_planes_rule(node: Node) -> Shapes:
    return yuv_height(node, node.inputs["colours"] is None)


def three_planes_rule(node: Node) -> Shapes:
    single = node.inputs["u"] is None
    node.require("C3", single == (node.inputs["v"] is None), "there are 2 inputs, expected 1 or 3")
    return yuv_height(node, single)


def yuv_height(node: Node, single: bool) -> Shapes:
    """Check the sizes of the planes and compute those of the image: of several planes any one tells them."""
    rows, width = node.dims["rows"], node.dims["width"]
    node.require("C1", width % 2 == 0, f"the width is {width}, expected an even one")
    if single:
        node.require("C1", rows % 3 == 0, f"`data` has {rows} rows, expected a multiple of 3", about=["data"])
        return {"height": divided(rows, 3) * 2}
    node.require("C1", rows % 2 == 0, f"the height is {rows}, expected an even one")
    half_height, half_width = node.dims["half_height"], node.dims["half_width"]
    fits = every([half_height * 2 == rows, half_width * 2 == width])
    planes = f"the colours have {half_height} x {half_width} pixels and the brightness {rows} x {width}"
    node.require("C2", fits, f"{planes}, expected half of that on both axes")
    return {"height": meet(rows, half_height * 2), "width": meet(width, half_width * 2)}


def _half(plane: Array) -> tuple[int, int, int]:
    return len(plane), plane.shape[1] // 2, plane.shape[2] // 2


def _split_planes(data: Array) -> tuple[Array, Array]:
    """The first two thirds of the rows, and all rows after them."""
    rows = data.shape[1] * 2 // 3
    return data[:, :rows, :, 0], data[:, rows:, :, 0]


def coloured(y: Array, u: Array, v: Array, reverse: bool) -> Array:
    """Red, green and blue (or the other way round) of brightness [N, H, W] and colours [N, H / 2, W / 2]."""
    dtype = y.dtype
    c, d, e = (computable(plane) - offset for plane, offset in ((y, 16), (u, 128), (v, 128)))
    d, e = (plane.repeat(2, axis=1).repeat(2, axis=2) for plane in (d, e))
    light = 1.164 * c
    channels = [light + 1.596 * e, light - 0.391 * d - 0.813 * e, light + 2.018 * d]
    return converted(np.clip(np.stack(channels[::-1] if reverse else channels, axis=-1), 0, 255), dtype)


nv12_to_rgb = from_yuv("NV12toRGB-8", "rgb", reverse=False)
nv12_to_bgr = from_yuv("NV12toBGR-8", "bgr", reverse=True)
i420_to_rgb = from_yuv("I420toRGB-8", "rgb", reverse=False)
i420_to_bgr = from_yuv("I420toBGR-8", "bgr", reverse=True)


TO_NV12_DOC = """Convert an {order} image to NV12: one plane of brightness, one of two colours at half the size.

The result is [N, 3 / 2 height, width, 1] in one tensor, or with `single_plane` false the planes [N, height, width, 1]
and [N, height / 2, width / 2, 2].

Constraints:
    C1: the height and the width are even.

Choice: the page does not say how the colours are halved. As in the reference they are the means of squares of four
pixels, each pixel rounded to the element type before. u8 is rounded to the nearest, halves up; all is computed in f64.

Source: image/{page}-to-nv12-17.rst

>>> op(np.full((1, 2, 2, 3), [{example}], np.uint8))[0, ..., 0].tolist()
[[114, 114], [114, 114], [101, 182]]
"""


def to_nv12(name: str, page: str, reverse: bool) -> Op:
    """The op that converts images to NV12; `reverse` says that blue is first."""

    def nv12(image: Array, *, single_plane: bool) -> Array | tuple[Array, Array]:
        red, green, blue = (image[..., channel].astype(np.float64) for channel in ((2, 1, 0) if reverse else (0, 1, 2)))
        y = within_bytes(0.257 * red + 0.504 * green + 0.098 * blue + 16, image.dtype)
        u = within_bytes(-0.148 * red - 0.291 * green + 0.439 * blue + 128, image.dtype)
        v = within_bytes(0.439 * red - 0.368 * green - 0.071 * blue + 128, image.dtype)
        colours = np.stack([halved(u), halved(v)], axis=-1)
        if not single_plane:
            return y[..., np.newaxis], colours
        batch, height, width = y.shape
        return np.concatenate([y, colours.reshape(batch, height // 2, width)], axis=1)[..., np.newaxis]

    return Op(
        name,
        nv12,
        inputs=[Input("image", "T", "[N, height, width, 3]")],
        outputs=[Output("planes", "T", "...", variadic=True)],
        attrs=[Attr("single_plane", BOOL, True)],
        types={"T": FLOAT | {"u8"}},
        opsets=frozenset({17}),
        rule=nv12_rule,
        doc=TO_NV12_DOC.format(order=page.upper(), page=page, example="60, 80, 200" if reverse else "200, 80, 60"),
    )


def nv12_rule(node: Node) -> list[Tensor]:
    type = node.inputs["image"].type
    batch, height, width = (node.dims.get(name, fresh(0)) for name in ("N", "height", "width"))
    for name, size in (("height", height), ("width", width)):
        node.require("C1", size % 2 == 0, f"the {name} is {size}, expected an even one")
    if node.attrs["single_plane"]:
        return [Tensor(type, (batch, divided(height, 2) * 3, width, 1))]
    colours = Tensor(type, (batch, divided(height, 2), divided(width, 2), 2))
    return [Tensor(type, (batch, height, width, 1)), colours]


def within_bytes(values: Array, dtype: np.dtype[Any]) -> Array:
    return converted(np.clip(values, 0, 255), dtype)


def halved(plane: Array) -> Array:
    """The mean of each square of 2 x 2 elements of [N, H, W]."""
    batch, height, width = plane.shape
    squares = plane.reshape(batch, height // 2, 2, width // 2, 2).astype(np.float64)
    return converted(squares.mean(axis=(2, 4)), plane.dtype)


rgb_to_nv12 = to_nv12("RGBtoNV12-17", "rgb", reverse=False)
bgr_to_nv12 = to_nv12("BGRtoNV12-17", "bgr", reverse=True)


def interpolated_shape(node: Node, data: str, targets: str) -> Shapes:
    """Check the inputs of Interpolate-4 and -11 and compute the shape of the result."""
    shape = node.shape(data)
    axes: Sequence[int] = range(len(shape))
    if node.inputs["axes"] is not None:
        listed = node.numbers("axes")
        if listed is None:
            return {"result": tuple(fresh() for _ in shape)}
        axes = listed
    check_axes(node, axes, len(shape))
    begins, ends = (rank_pads(node.attrs[name], len(shape)) for name in ("pads_begin", "pads_end"))
    by = node.attrs["shape_calculation_mode"]
    return {"result": resampled_shape(node, shape, axes, begins, ends, targets, by)}


def check_axes(node: Node, axes: Sequence[int], rank: int) -> None:
    for axis in axes:
        node.require("C1", 0 <= axis < rank, f"`axes` has {axis}, outside [0, {rank})", about=["axes"])
    node.require("C1", len(set(axes)) == len(axes), f"`axes` is {list(axes)}, expected different ones", about=["axes"])


def resampled_shape(
    node: Node,
    shape: Sequence[Size],
    axes: Sequence[int],
    begins: Sequence[int],
    ends: Sequence[int],
    name: str,
    by: str,
) -> tuple[Size, ...]:
    """The shape of the result, from the input `name`, which holds sizes or scales."""
    targets = node.inputs[name]
    if targets.shape is not None:
        count = targets.shape[0]
        node.require("C2", count == len(axes), f"`{name}` has {count} elements for {len(axes)} axes", about=[name])
    result: list[Size] = [size + begin + end for size, begin, end in zip(shape, begins, ends, strict=True)]
    for axis in axes:
        node.require("C4", result[axis] >= 1, f"axis {axis} of the padded data is empty")
    if by == "sizes":
        sizes = node.sizes(name) or [fresh() for _ in axes]
        for axis, size in zip(axes, sizes, strict=True):
            node.require("C3", size >= 0, f"`{name}` has {size}, expected 0 or more", about=[name])
            result[axis] = size
        return tuple(result)
    scales = node.value(name)
    if scales is None:
        for axis in axes:
            result[axis] = fresh()
        return tuple(result)
    for axis, scale in zip(axes, scales, strict=True):
        node.require(
            "C3", bool(0 < scale < np.inf), f"`{name}` has {scale}, expected more than 0 and finite", about=[name]
        )
        result[axis] = scaled(result[axis], float(scale))
    return tuple(result)


def scaled(size: Size, scale: float) -> Size:
    """`size` times `scale`, rounded down, in the single precision of the reference."""
    factor = np.float32(scale)
    if isinstance(size, int):
        with np.errstate(over="ignore"):
            length = np.float32(size) * (factor + np.float32(SCALE_TOLERANCE))
        return size if factor == 1 else int(min(length, np.float32(2**63)))  # which no array can have
    mantissa, exponent = math.frexp(float(factor))
    if factor == int(factor):
        product: Size = size * int(factor)
        return product
    if mantissa == 0.5:
        quotient: Size = size // 2 ** (1 - exponent)
        return quotient
    low, high = (None if bound is None else int(scaled(bound, scale)) for bound in (size.low, size.high))
    return fresh(low or 0, high)


def rank_pads(pads: Sequence[int], rank: int) -> list[int]:
    """Pads of Interpolate-4 and -11, one per axis of the data."""
    return [*pads, *[0] * rank][:rank]


def axis_pads(pads: Sequence[int], axes: Sequence[int], rank: int) -> list[int]:
    """Pads of Interpolate-1, one per axis of the data."""
    if len(pads) > 1:
        return list(pads)
    return [pads[0] if pads and axis in axes else 0 for axis in range(rank)]


@dataclass(frozen=True, slots=True)
class Resampling:
    """One axis that is resampled: its number, its lengths before (padded) and after, in elements, and the scale."""

    axis: int
    before: int
    after: int
    scale: np.float32


def axis_of(
    axis: int, target: Any, shape: Sequence[int], begins: Sequence[int], ends: Sequence[int], by: str = "sizes"
) -> Resampling:
    before = shape[axis] + begins[axis] + ends[axis]
    if by == "sizes":
        return Resampling(axis, before, int(target), np.float32(target) / np.float32(before))
    return Resampling(axis, before, int(scaled(before, float(target))), np.float32(target))


def interpolated(
    data: Array,
    targets: Array,
    axes: Array | None,
    by: str,
    *,
    mode: str,
    coordinate_transformation_mode: str,
    nearest_mode: str,
    antialias: bool,
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    cube_coeff: float,
) -> Array:
    """What Interpolate-4 and -11 compute."""
    begins, ends = rank_pads(pads_begin, data.ndim), rank_pads(pads_end, data.ndim)
    numbers = range(data.ndim) if axes is None else [int(axis) for axis in axes]
    images = [axis_of(axis, t, data.shape, begins, ends, by) for axis, t in zip(numbers, targets, strict=True)]
    return resampled(
        zero_padded(data, begins, ends),
        images,
        mode,
        transform=coordinate_transformation_mode,
        nearest=nearest_mode,
        antialias=antialias,
        cubic=cube_coeff,
    )


def zero_padded(data: Array, begins: Sequence[int], ends: Sequence[int]) -> Array:
    if not any((*begins, *ends)):
        return data
    sizes = [begin + size + end for begin, size, end in zip(begins, data.shape, ends, strict=True)]
    padded = np.zeros(sizes, data.dtype)
    padded[tuple(slice(begin, begin + size) for begin, size in zip(begins, data.shape, strict=True))] = data
    return padded


def resampled(
    data: Array,
    images: Sequence[Resampling],
    mode: str,
    *,
    transform: str,
    nearest: str,
    antialias: bool,
    cubic: float,
) -> Array:
    """`data` resampled along one axis after the other: every mode is a product of one weight per axis."""
    if mode.endswith("_pillow"):
        return pillow_resampled(data, images, mode, cubic)
    changed = sorted((image for image in images if image.before != image.after), key=lambda i: i.after / i.before)
    if mode == "nearest":
        for image in changed:
            index = nearest_elements(source_coordinates(image, transform), nearest, bool(image.scale < 1))
            data = np.take(data, np.clip(index, 0, image.before - 1), image.axis)
        return data.copy() if not changed else data
    antialias = antialias and any(image.scale < 1 for image in images)
    values = computable(data)
    for image in changed:
        source = source_coordinates(image, transform)
        if mode == "linear":
            index, weights = linear_taps(source, image, antialias)
        elif mode == "linear_onnx":
            index, weights = two_taps(source, image)
        else:
            index, weights = cubic_taps(source, image, cubic)
        values = weighted(values, image.axis, index, weights)
    return converted(values, data.dtype)


def computable(data: Array) -> Array:
    """`data` in the float type in which it is interpolated."""
    if data.dtype.kind in "iu":
        return data.astype(np.float32 if data.dtype.itemsize <= 2 else np.float64)
    return data.astype(np.float32) if data.dtype.itemsize == 2 else data


def converted(values: Array, dtype: np.dtype[Any]) -> Array:
    """`values` in the element type; integers are rounded to the nearest, halves away from 0, and saturate."""
    if dtype.kind not in "iu":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    values = np.trunc(values + np.copysign(np.asarray(0.5, values.dtype), values))
    above, below = values >= limits.max, values <= limits.min
    result: Array = np.where(above | below, 0, values).astype(dtype)
    result[above], result[below] = limits.max, limits.min
    return result


def source_coordinates(image: Resampling, transform: str) -> Array:
    """Where the elements of the result lie on the axis of the data."""
    target, scale, half = np.arange(image.after, dtype=np.float32), image.scale, np.float32(0.5)
    if scale == 1 or image.before == image.after:
        return target
    if transform == "asymmetric":
        return target / scale
    if transform == "tf_half_pixel_for_nn":
        return (target + half) / scale
    if transform == "align_corners":
        last = np.float32(image.after - 1)
        return target * np.float32(image.before - 1) / last if image.after > 1 else np.zeros_like(target)
    if transform == "pytorch_half_pixel" and image.after <= 1:
        return np.zeros_like(target)
    return (target + half) / scale - half


def nearest_elements(source: Array, nearest: str, shrinks: bool) -> Array:
    below = np.floor(source)
    if nearest == "floor":
        found = below
    elif nearest == "ceil" or (nearest == "simple" and shrinks):
        found = np.ceil(source)
    elif nearest == "simple":
        found = np.trunc(source)
    elif nearest == "round_prefer_ceil":
        found = below + (source - below >= 0.5)
    else:
        found = below + (source - below > 0.5)
    return found.astype(np.int64)


def linear_taps(source: Array, image: Resampling, antialias: bool) -> tuple[Array, Array]:
    """Elements under a triangle around each source coordinate, which antialiasing widens as the data shrinks."""
    steepness = image.scale if antialias else np.float32(1)
    first = np.floor(source - 1 / steepness).astype(np.int64) + 1
    index = first[:, np.newaxis] + np.arange(math.ceil(2 / steepness))
    weights = np.maximum(1 - np.abs(steepness * (source[:, np.newaxis] - index.astype(np.float32))), 0)
    weights = np.where((index >= 0) & (index < image.before), weights, 0)
    total = weights.sum(axis=1, keepdims=True)
    return np.clip(index, 0, image.before - 1), weights / np.where(total == 0, 1, total)


def two_taps(source: Array, image: Resampling) -> tuple[Array, Array]:
    """The elements before and after each source coordinate, which stays inside the data."""
    last = image.before - 1
    source = np.clip(source, 0, np.float32(last))
    before = np.minimum(source.astype(np.int64), last)
    after = np.minimum(before + 1, last)
    share = np.where(before == after, np.float32(0.5), source - before.astype(np.float32))
    return np.stack([before, after], axis=1), np.stack([1 - share, share], axis=1)


def cubic_taps(source: Array, image: Resampling, a: float) -> tuple[Array, Array]:
    """Two elements on each side of each source coordinate; those outside the data are its border."""
    below = np.floor(source)
    weights = _cubic_weights(source - below, a)
    index = below.astype(np.int64)[:, np.newaxis] + np.arange(-1, 3)
    return np.clip(index, 0, image.before - 1), np.stack(weights, axis=1)


def weighted(values: Array, axis: int, index: Array, weights: Array) -> Array:
    """Sums over taps along an axis: `index` and `weights` are [length of the result, taps]."""
    shape = [1] * values.ndim
    shape[axis] = len(index)
    weights = weights.astype(values.dtype, copy=False)
    result: Array = np.take(values, index[:, 0], axis) * weights[:, 0].reshape(shape)
    for tap in range(1, index.shape[1]):
        term = np.take(values, index[:, tap], axis)
        term *= weights[:, tap].reshape(shape)
        result += term
    return result


def pillow_resampled(data: Array, images: Sequence[Resampling], mode: str, cubic: float) -> Array:
    """The resampling of the library Pillow, in double precision; the second axis comes first."""
    support, kernel = (1.0, _triangle) if mode == "bilinear_pillow" else (2.0, _cubic(cubic))
    changed = [image for image in reversed(images) if image.before != image.after]
    values = data
    for image in changed:
        values = weighted(values.astype(np.float64), image.axis, *pillow_taps(image, support, kernel))
        if data.dtype.kind in "iu":
            values = converted(values, data.dtype)
    return values.astype(data.dtype, copy=not changed)


def pillow_taps(image: Resampling, support: float, kernel: Callable[[Array], Array]) -> tuple[Array, Array]:
    step = image.before / max(image.after, 1)
    spread = max(step, 1.0)
    reach = support * spread
    centers = (np.arange(image.after) + 0.5) * step
    first = np.maximum((centers - reach + 0.5).astype(np.int64), 0)
    stop = np.minimum((centers + reach + 0.5).astype(np.int64), image.before)
    index = first[:, np.newaxis] + np.arange(math.ceil(reach) * 2 + 1)
    weights = kernel(np.abs((index - centers[:, np.newaxis] + 0.5) / spread))
    weights = np.where(index < stop[:, np.newaxis], weights, 0)
    total = weights.sum(axis=1, keepdims=True)
    return np.minimum(index, image.before - 1), weights / np.where(total == 0, 1, total)


def _triangle(distance: Array) -> Array:
    weights: Array = np.maximum(1 - distance, 0)
    return weights


def _cubic(a: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = (((x - 5) * x + 8) * x - 4) * a
        return np.where(x < 1, near, np.where(x < 2, far, 0))

    return kernel
