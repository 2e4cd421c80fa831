"""Detection ops: boxes found, decoded, thinned out, and features cut out for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.spec import (
    ANY,
    BOOL,
    FLOAT,
    FLOAT_NUMBER,
    FLOATS,
    INT,
    INTEGER,
    INTS,
    LEAST_I32,
    MOST_I32,
    NO_NAN,
    Array,
    Attr,
    Input,
    Node,
    Output,
    Shapes,
    Size,
    choice,
    divided,
    exact,
    meet,
    numpy_dtype,
    op,
    product,
    variation,
)

from ._boxes import (
    MAX_GROWTH,
    Suppress,
    clipped,
    descending,
    ends_of,
    filled,
    moved,
    ranked,
    unsuppressed,
    up_to,
)
from ._detections import detection_rows, detections
from ._precision import widened
from ._priors import Prior, as_pair, cell_prior_count, grid_shape, prior_boxes, prior_grid, steps
from ._proposals import proposals
from ._rois import (
    Pool,
    aligned_regions,
    bin_means,
    bin_offsets,
    channel_samples,
    check_batches,
    check_pixels,
    check_positive,
    ended,
    grid_points,
    maxima,
    pooled,
    pooled_regions,
    rounded,
    spatial_bins,
)

OLD_LAYERS = ("experimental", "extension")
"""Versions that old files give to layers which now belong to opset6."""

POOLED_SIZES = (Attr("pooled_h", INT, least=1), Attr("pooled_w", INT, least=1))
SAMPLES = (
    Attr("sampling_ratio", INT, least=0, most=MOST_I32, assumed=0),
    Attr("spatial_scale", FLOAT_NUMBER, least=NO_NAN),
)


@op(
    "ROIPooling-1",
    types={"T": FLOAT},
    inputs=[Input("feature_maps", "T", "[N, C, H, W]"), Input("rois", "T", "[NUM_ROIS, 5]")],
    outputs=[Output("output", "T", "[NUM_ROIS, C, pooled_h, pooled_w]")],
    attrs=[
        *POOLED_SIZES,
        Attr("spatial_scale", FLOAT_NUMBER, least=NO_NAN),
        Attr("method", exact("max", "bilinear"), "max"),
        Attr("output_size", INTS, ()),
        Attr("output_roi", INTS, ()),
    ],
    opsets=frozenset(range(1, 17)),
)
def roi_pooling(
    feature_maps: Array,
    rois: Array,
    *,
    pooled_h: int,
    pooled_w: int,
    spatial_scale: float,
    method: str,
    output_size: Sequence[int],
    output_roi: Sequence[int],
) -> Any:
    """Divide each region into bins and take the maximum of each, or one value between four pixels.

    A region is (batch, x0, y0, x1, y1), for `max` in pixels of the image, whose ends are rounded and lie inside; for
    `bilinear` in [0, 1], where 1 is the last pixel, and the values lie on a grid from corner to corner. A bin without
    pixels and a point outside the feature map are 0.

    Constraints:
        C1: the batch indices of rois lie in [0, N), or a -1 ends the list.
        C2: spatial_scale is above 0, and a normal 32-bit float.
        C3: output_size and output_roi, which newer files repeat, are pooled_h and pooled_w.
        C4: where there are rois, feature_maps have pixels.

    Deviation: the page has no -1, but Proposal ends its list with it; from there on all results are 0, as in OpenVINO.

    Source: detection/roi-pooling-1.rst

    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> op(image, np.array([[0, 0, 0, 3, 3]], np.float32), pooled_h=2, pooled_w=2, spatial_scale=1.0).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    result = np.zeros((len(rois), feature_maps.shape[1], pooled_h, pooled_w), feature_maps.dtype)
    maps, boxes = widened(feature_maps), widened(rois)
    pool = maxima if method == "max" else grid_points
    for number, batch in enumerate(ended(boxes[:, 0])):
        result[number] = pool(maps[batch], boxes[number, 1:], (pooled_h, pooled_w), spatial_scale)
    return result


@roi_pooling.shapes
def _(node: Node) -> Shapes:
    check_positive(node, "C2", normal=True)
    size = (node.attrs["pooled_h"], node.attrs["pooled_w"])
    for name in ("output_size", "output_roi"):
        given = node.attrs[name]
        node.require(
            "C3", given in ((), size), f"`{name}` is {list(given)}, but the pooled sizes are {list(size)}", about=[name]
        )
    check_batches(node, "C1", "feature_maps", "rois")
    check_pixels(node, "C4", node.inputs["feature_maps"], "feature_maps")
    return {"pooled_h": size[0], "pooled_w": size[1]}


ALIGNED_SIZES = tuple(size._replace(most=MOST_I32) for size in POOLED_SIZES)
ROI_ALIGN_ATTRS = (*ALIGNED_SIZES, *SAMPLES, Attr("mode", choice("max", "avg"), assumed="avg"))


@op(
    "ROIAlign-3",
    types={"T": FLOAT, "IND_T": INTEGER},
    inputs=[
        Input("data", "T", "[N, C, H, W]"),
        Input("rois", "T", "[NUM_ROIS, 4]"),
        Input("batch_indices", "IND_T", "[NUM_ROIS]"),
    ],
    outputs=[Output("output", "T", "[NUM_ROIS, C, pooled_h, pooled_w]")],
    attrs=ROI_ALIGN_ATTRS,
    opsets=frozenset(range(3, 9)),
)
def roi_align_3(data: Array, rois: Array, batch_indices: Array, *, pool: Pool = pooled_regions, **attrs: Any) -> Any:
    """Sample each region on a regular grid between the pixels, and take the mean or maximum of each bin's samples.

    A region is (x0, y0, x1, y1), times spatial_scale and then at least 1 wide and high. A bin has sampling_ratio²
    samples; 0 takes one for every pixel that it is high or wide, rounded up. Samples within a pixel outside the
    feature map have the value at its edge, further out 0.

    Constraints:
        C1: batch_indices lie in [0, N).
        C2: spatial_scale is above 0.
        C3: where there are rois, data has pixels.

    Choice: the maximum is that of the interpolated samples.

    Deviation: OpenVINO's maximum is never below 0.

    Source: detection/roi-align-3.rst

    >>> image, region = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.array([[0, 0, 4, 4]], np.float32)
    >>> sizes = dict(pooled_h=2, pooled_w=2, sampling_ratio=1, spatial_scale=1.0)
    >>> op(image, region, np.array([0]), **sizes, mode="avg").tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    return aligned_regions(data, rois, batch_indices, aligned_mode="asymmetric", pool=pool, **attrs)


@roi_align_3.shapes
def _roi_align_shapes(node: Node) -> Shapes:
    check_positive(node, "C2", lenient="pools at one point")
    batch = node.dims.get("N")
    if batch is not None:
        node.within("C1", "batch_indices", 0, batch)
    check_pixels(node, "C3", node.inputs["data"], "data")
    return {"pooled_h": node.attrs["pooled_h"], "pooled_w": node.attrs["pooled_w"]}


@op(
    "ROIAlign-9",
    of=roi_align_3,
    attrs=(
        *ROI_ALIGN_ATTRS,
        Attr("aligned_mode", choice("asymmetric", "half_pixel_for_nn", "half_pixel"), "asymmetric"),
    ),
)
def roi_align(data: Array, rois: Array, batch_indices: Array, *, pool: Pool = pooled_regions, **attrs: Any) -> Any:
    """Sample each region on a regular grid between the pixels, and take the mean or maximum of each bin's samples.

    As ROIAlign-3 for aligned_mode `asymmetric`. With `half_pixel_for_nn` regions move by half a pixel to the upper
    left after scaling, with `half_pixel` their corners are (corner + 0.5) * spatial_scale - 0.5; both have any size.

    Constraints:
        C1: batch_indices lie in [0, N).
        C2: spatial_scale is above 0.
        C3: where there are rois, data has pixels.

    Choice: the maximum is that of the interpolated samples. A bin without samples is 0.

    Deviation: OpenVINO's maximum is never below 0.

    Source: detection/roi-align-9.rst

    >>> image, region = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.array([[0, 0, 4, 4]], np.float32)
    >>> sizes = dict(pooled_h=2, pooled_w=2, sampling_ratio=1, spatial_scale=1.0)
    >>> op(image, region, np.array([0]), **sizes, mode="max", aligned_mode="half_pixel_for_nn").tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    return aligned_regions(data, rois, batch_indices, pool=pool, **attrs)


roi_align.lowers("ROIAlign-3", aligned_mode="asymmetric")


@op(
    "ROIAlignRotated-15",
    types={"T": FLOAT, "IND_T": INTEGER},
    inputs=[
        Input("data", "T", "[N, C, H, W]"),
        Input("rois", "T", "[NUM_ROIS, 5]"),
        Input("batch_indices", "IND_T", "[NUM_ROIS]"),
    ],
    outputs=[Output("output", "T", "[NUM_ROIS, C, pooled_h, pooled_w]")],
    attrs=(*ALIGNED_SIZES, *SAMPLES, Attr("clockwise_mode", BOOL, False)),
)
def roi_align_rotated(
    data: Array,
    rois: Array,
    batch_indices: Array,
    *,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    clockwise_mode: bool,
) -> Any:
    """Sample each rotated region on a regular grid between the pixels, and take the mean of each bin's samples.

    A region is (center x, center y, width, height, angle in radians). It is scaled, its center moves by half a pixel
    to the upper left, and it is turned around that. Samples as in ROIAlign-3.

    Constraints:
        C1: batch_indices lie in [0, N).
        C2: spatial_scale is above 0.
        C3: where there are rois, data has pixels.

    Source: detection/roi-align-rotated-15.rst

    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> region = np.array([[2, 2, 2, 2, np.pi / 2]], np.float32)
    >>> attrs = dict(pooled_h=2, pooled_w=2, sampling_ratio=1, spatial_scale=1.0)
    >>> op(image, region, np.array([0]), **attrs).round(3).tolist()
    [[[[9.0, 5.0], [10.0, 6.0]]]]
    """
    maps, regions = widened(data), widened(rois)
    scale, half = regions.dtype.type(spatial_scale), regions.dtype.type(0.5)
    centers, sizes = regions[:, :2] * scale - half, regions[:, 2:4] * scale
    angles = -regions[:, 4] if clockwise_mode else regions[:, 4]
    result = np.zeros((len(rois), data.shape[1], pooled_h, pooled_w), data.dtype)
    for number, batch in enumerate(batch_indices):
        (x, y), (width, height) = centers[number], sizes[number]
        cos, sin = np.cos(angles[number]), np.sin(angles[number])

        def turned(down: Array, across: Array, x: Any = x, y: Any = y, cos: Any = cos, sin: Any = sin) -> Any:
            return down * cos - across * sin + y, down * sin + across * cos + x

        start = (-height * half, -width * half)
        bins = (pooled_h, pooled_w)
        result[number] = pooled(maps[batch], start, (height, width), bins, sampling_ratio, transform=turned)
    return result


roi_align_rotated.shapes(_roi_align_shapes)


@op(
    "ExperimentalDetectronROIFeatureExtractor-6",
    types={"T": FLOAT},
    inputs=[
        Input("rois", "T", "[number_of_ROIs, 4]"),
        Input("pyramid", "T", "[1, number_of_channels, height, width]", variadic=True),
    ],
    outputs=[
        Output("features", "T", "[number_of_ROIs, number_of_channels, output_size, output_size]"),
        Output("output_rois", "T", "[number_of_ROIs, 4]"),
    ],
    attrs=[
        Attr("output_size", INT, least=1),
        Attr("sampling_ratio", INT, least=0, assumed=0, lenient=True),
        Attr("pyramid_scales", INTS, least=1),
        Attr("aligned", BOOL, False),
    ],
    extension_versions=OLD_LAYERS,
)
def roi_feature_extractor(
    rois: Array,
    *pyramid: Array,
    output_size: int,
    sampling_ratio: int,
    pyramid_scales: Sequence[int],
    aligned: bool,
    pool: Pool = pooled_regions,
) -> Any:
    """Choose the layer of the pyramid that suits each region's size, and pool it there as ROIAlign does.

    A region of w x h pixels belongs to layer floor(2 + log2(sqrt(w * h) / 224)), as far as there is one, whose pixel
    (x, y) is (x, y) * scale in the image. A region without area has features of 0.

    Constraints:
        C1: there is a layer at least, and all are [1, C, height, width] with the same C.
        C2: pyramid_scales has one element for each layer at least.
        C3: where there are rois, all layers have pixels.

    Choice: 1e-6 is added inside the logarithm as in the reference. `aligned` moves regions by half a pixel.

    Deviation: the second output is the first input. The page says that it is ordered by layer, but the features are
    not, and OpenVINO does not do so.

    Source: detection/experimental-detectron-roi-feature-extractor-6.rst

    >>> large, small = np.ones((1, 1, 8, 8), np.float32), np.full((1, 1, 4, 4), 2, np.float32)
    >>> regions = np.array([[0, 0, 16, 16], [0, 0, 224, 224]], np.float32)
    >>> op(regions, large, small, output_size=1, sampling_ratio=1, pyramid_scales=(32, 64))[0].ravel().tolist()
    [1.0, 2.0]
    """
    regions = widened(rois)
    sides = regions[:, 2:] - regions[:, :2]
    area = sides[:, 0] * sides[:, 1]
    proper = area > 0
    size = np.sqrt(np.where(proper, area, 1)) / np.float32(224)
    layers = np.clip(np.floor(np.log2(size + np.float32(1e-6)) + 2), 0, len(pyramid) - 1).astype(np.int64)
    result = np.zeros((len(rois), pyramid[0].shape[1], output_size, output_size), rois.dtype)
    maps = [widened(layer[0]) for layer in pyramid]
    half = regions.dtype.type(0.5 if aligned else 0)
    bins = (output_size, output_size)
    for layer in np.unique(layers[proper]):
        own = np.flatnonzero(proper & (layers == layer))
        corners = regions[own] * (regions.dtype.type(1) / regions.dtype.type(pyramid_scales[layer])) - half
        spans = np.maximum(corners[:, 2:] - corners[:, :2], 1)
        result[own] = pool(maps[layer], corners[:, 1::-1], spans[:, ::-1], bins, max(sampling_ratio, 0))
    return result, rois.copy()


@roi_feature_extractor.shapes
def _(node: Node) -> Shapes:
    layers, scales = node.inputs["pyramid"], node.attrs["pyramid_scales"]
    node.require("C1", len(layers) > 0, "there is no layer, expected one or more")
    node.require(
        "C2",
        len(scales) >= len(layers),
        f"`pyramid_scales` has {len(scales)} elements for {len(layers)} layers",
        about=["pyramid_scales"],
    )
    known = [(number, tensor.shape) for number, tensor in enumerate(layers) if tensor.shape is not None]
    channels: Any = None
    for number, shape in known:
        name = f"`pyramid[{number}]`"
        node.require("C1", len(shape) == 4, f"{name} has rank {len(shape)}, expected 4", about=[("pyramid", number)])
        node.require("C1", shape[0] == 1, f"{name} has a batch of {shape[0]}, expected 1", about=[("pyramid", number)])
        channels = shape[1] if channels is None else channels
        node.require(
            "C1",
            shape[1] == channels,
            f"{name} has {shape[1]} channels, but {channels} before",
            about=[("pyramid", number)],
        )
        channels = meet(channels, shape[1])
    for number, tensor in enumerate(layers):
        check_pixels(node, "C3", tensor, ("pyramid", number))
    size = node.attrs["output_size"]
    return {"output_size": size} if channels is None else {"output_size": size, "number_of_channels": channels}


@op(
    "PSROIPooling-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[N, C, H, W]"), Input("rois", "T", "[num_boxes, 5]", lenient=True)],
    outputs=[Output("output", "T", "[num_boxes, output_dim, group_size, group_size]")],
    attrs=[
        Attr("output_dim", INT, least=1),
        Attr("group_size", INT, 1, least=1, demanded=True),
        Attr("spatial_scale", FLOAT_NUMBER, least=NO_NAN),
        Attr("mode", exact("average", "bilinear"), "average", demanded=True),
        Attr("spatial_bins_x", INT, 1, least=1, most=MOST_I32, unread=("mode", ("average",)), demanded=True),
        Attr("spatial_bins_y", INT, 1, least=1, most=MOST_I32, unread=("mode", ("average",)), demanded=True),
    ],
)
def psroi_pooling(
    data: Array,
    rois: Array,
    *,
    output_dim: int,
    group_size: int,
    spatial_scale: float,
    mode: str,
    spatial_bins_x: int,
    spatial_bins_y: int,
) -> Any:
    """Pool each bin of a region from a channel of its own.

    A region is (batch, x0, y0, x1, y1). In mode `average` it is in pixels of the image, rounded, its ends inside;
    bin (y, x) of output channel c is the mean of channel (c * group_size + y) * group_size + x. In mode `bilinear` it
    is in [0, 1], where 1 is the last pixel; it is divided into spatial bins, each with group_size² points on a grid
    from corner to corner, and the result is the mean over the spatial bins, bin number s reading channel
    s * output_dim + c. A bin without pixels and points outside the feature map count as 0.

    Constraints:
        C1: the batch indices of rois lie in [0, N), or a -1 ends the list.
        C2: spatial_scale is above 0, and a normal 32-bit float.
        C3: C is output_dim * group_size² for `average`, output_dim * spatial_bins_x * spatial_bins_y for `bilinear`.
        C4: where there are rois, data has pixels.

    Deviation: the page has no -1, but Proposal ends its list with it; from there on all results are 0. Points less
    than a pixel beyond the last one have its value, as in the reference; in the CPU plugin they are 0.

    Source: detection/psroi-pooling-1.rst

    >>> maps = np.repeat(np.arange(4, dtype=np.float32), 9).reshape(1, 4, 3, 3)
    >>> op(maps, np.array([[0, 0, 0, 2, 2]], np.float32), output_dim=1, group_size=2, spatial_scale=1.0).tolist()
    [[[[0.0, 1.0], [2.0, 3.0]]]]
    """
    maps, boxes = widened(data), widened(rois)
    result = np.zeros((len(rois), output_dim, group_size, group_size), data.dtype)
    scale = boxes.dtype.type(spatial_scale)
    batches = ended(boxes[:, 0])
    if mode == "average":
        places = (rounded(boxes[:, 1:]) + np.array([0, 0, 1, 1], boxes.dtype)) * scale
        for batch in np.unique(batches):
            own = np.flatnonzero(batches == batch)
            result[own] = bin_means(maps[batch], places[own], output_dim, group_size)
        return result
    bins = (spatial_bins_y, spatial_bins_x)
    for number, batch in enumerate(batches):
        result[number] = spatial_bins(maps[batch], boxes[number, 1:] * scale, output_dim, group_size, bins)
    return result


@psroi_pooling.shapes
def _(node: Node) -> Shapes:
    check_positive(node, "C2", normal=True)
    attrs = node.attrs
    bilinear = attrs["mode"] == "bilinear"
    parts = attrs["spatial_bins_x"] * attrs["spatial_bins_y"] if bilinear else attrs["group_size"] ** 2
    channels, expected = node.shape("data")[1], attrs["output_dim"] * parts
    node.require("C3", channels == expected, f"`data` has {channels} channels, expected {expected}", "data")
    check_batches(node, "C1", "data", "rois")
    check_pixels(node, "C4", node.inputs["data"], "data")
    return {"output_dim": attrs["output_dim"], "group_size": attrs["group_size"]}


@op(
    "DeformablePSROIPooling-1",
    types={"T": FLOAT},
    inputs=[
        Input("data", "T", "[N, C, H, W]"),
        Input("rois", "T", "[NUM_ROIS, 5]", lenient=True),
        Input("offsets", "T", "[NUM_ROIS, offset_channels, part_h, part_w]", optional=True, lenient=True),
    ],
    outputs=[Output("output", "T", "[NUM_ROIS, output_dim, group_size, group_size]")],
    attrs=[
        Attr("output_dim", INT, least=1),
        Attr("spatial_scale", FLOAT_NUMBER, least=NO_NAN),
        Attr("group_size", INT, 1, least=1),
        Attr("mode", exact("bilinear_deformable"), "bilinear_deformable"),
        Attr("spatial_bins_x", INT, 1, least=1),
        Attr("spatial_bins_y", INT, 1, least=1),
        Attr("trans_std", FLOAT_NUMBER, 1.0, least=NO_NAN),
        Attr("part_size", INT, 1, least=1),
    ],
)
def deformable_psroi_pooling(
    data: Array,
    rois: Array,
    offsets: Array | None = None,
    *,
    output_dim: int,
    spatial_scale: float,
    group_size: int,
    mode: str,
    spatial_bins_x: int,
    spatial_bins_y: int,
    trans_std: float,
    part_size: int,
) -> Any:
    """Pool each bin of a region from a channel of its own, the bins moved by offsets.

    A region is (batch, x0, y0, x1, y1) in pixels of the image, rounded, its ends inside; it is 0.1 wide and high at
    least. Bin (y, x) of output channel c is the mean of its spatial_bins_x * spatial_bins_y samples of channel
    (c * group_size + y) * group_size + x that are not more than half a pixel outside the feature map, or 0. It starts
    offset * trans_std times the region's size further; the channels of offsets are pairs (x, y), one for each class,
    and the output channels are distributed over the classes.

    Constraints:
        C1: the batch indices of rois lie in [0, N), or a -1 ends the list.
        C2: spatial_scale is above 0.
        C3: C is output_dim * group_size².
        C4: offsets have 2 * num_classes channels, num_classes a divisor of output_dim, and part_size rows and columns.
        C5: where there are rois, data has pixels.

    Deviation: the page has no -1, but Proposal ends its list with it; from there on all results are 0.

    Source: detection/deformable-psroi-pooling-1.rst

    >>> maps = np.repeat(np.arange(4, dtype=np.float32), 9).reshape(1, 4, 3, 3)
    >>> op(maps, np.array([[0, 0, 0, 2, 2]], np.float32), output_dim=1, group_size=2, spatial_scale=1.0).tolist()
    [[[[0.0, 1.0], [2.0, 3.0]]]]
    """
    maps, boxes = widened(data), widened(rois)
    kind = maps.dtype.type
    height, width = data.shape[2:]
    result = np.zeros((len(rois), output_dim, group_size, group_size), data.dtype)
    corners = (rounded(boxes[:, 1:]) + np.array([0, 0, 1, 1], kind)) * kind(spatial_scale) - kind(0.5)
    sizes = np.maximum(corners[:, 2:] - corners[:, :2], kind(0.1))
    bins = np.arange(group_size, dtype=kind)
    channel = np.arange(output_dim * group_size**2).reshape(output_dim, group_size, group_size, 1, 1)
    for number, batch in enumerate(ended(boxes[:, 0])):
        (x0, y0), (wide, high) = corners[number, :2], sizes[number]
        bin_wide, bin_high = wide / kind(group_size), high / kind(group_size)
        left = np.broadcast_to(x0 + bins * bin_wide, (output_dim, group_size, group_size))
        top = np.broadcast_to((y0 + bins * bin_high)[:, None], (output_dim, group_size, group_size))
        if offsets is not None:
            shift = bin_offsets(widened(offsets[number]), output_dim, group_size) * kind(trans_std)
            left, top = left + shift[:, 0] * wide, top + shift[:, 1] * high
        x = left[..., None, None] + np.arange(spatial_bins_x, dtype=kind) * (bin_wide / kind(spatial_bins_x))
        y = top[..., None, None] + np.arange(spatial_bins_y, dtype=kind)[:, None] * (bin_high / kind(spatial_bins_y))
        inside = (y >= -0.5) & (y <= height - 0.5) & (x >= -0.5) & (x <= width - 0.5)
        values = channel_samples(maps[batch], channel, np.where(inside, y, 0), np.where(inside, x, 0))
        counts = inside.sum((3, 4))
        result[number] = np.where(inside, values, 0).sum((3, 4)) / np.maximum(counts, 1)
    return result


@deformable_psroi_pooling.shapes
def _(node: Node) -> Shapes:
    check_positive(node, "C2", lenient="pools at one point")
    output_dim, group_size, part_size = (node.attrs[name] for name in ("output_dim", "group_size", "part_size"))
    channels, expected = node.shape("data")[1], output_dim * group_size**2
    node.require("C3", channels == expected, f"`data` has {channels} channels, expected {expected}", "data")
    if node.inputs["offsets"] is not None and node.inputs["offsets"].shape is not None:
        _, pairs, *parts = node.shape("offsets")
        for size in parts:
            node.require(
                "C4",
                size == part_size,
                f"`offsets` has a size of {size}, `part_size` is {part_size}",
                "offsets",
                about=["part_size"],
            )
        fits = isinstance(pairs, int) and (pairs < 2 or pairs % 2 or output_dim % (pairs // 2))
        message = f"`offsets` has {pairs} channels, expected twice a divisor of `output_dim`, {output_dim}"
        node.require("C4", not fits, message, "offsets", about=["output_dim"])
    check_batches(node, "C1", "data", "rois")
    check_pixels(node, "C5", node.inputs["data"], "data")
    return {"output_dim": output_dim, "group_size": group_size}


@op(
    "RegionYolo-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[N, C, H, W]")],
    outputs=[Output("output", "T", "[*shape]")],
    attrs=[
        Attr("anchors", FLOATS, ()),
        Attr("axis", INT),
        Attr("coords", INT, least=2),
        Attr("classes", INT, least=0),
        Attr("end_axis", INT),
        Attr("num", INT, least=0),
        Attr("do_softmax", BOOL, True, assumed=False, demanded=True),
        Attr("mask", INTS, ()),
    ],
)
def region_yolo(
    data: Array,
    *,
    anchors: Sequence[float],
    axis: int,
    coords: int,
    classes: int,
    end_axis: int,
    num: int,
    do_softmax: bool,
    mask: Sequence[int],
) -> Any:
    """Turn the raw numbers of each region into probabilities.

    The channels are regions of (x, y, other coordinates, objectness, classes). x, y and objectness become their
    sigmoid, the other coordinates stay. The classes of `num` regions become their softmax and the axes from axis to
    end_axis one; without do_softmax there are as many regions as `mask` has elements, and the sigmoid is taken.

    Constraints:
        C1: axis and end_axis lie in [-4, 4), and axis is not behind end_axis.
        C2: C is the number of regions times coords + 1 + classes.
        C3: anchors are pairs, and mask has numbers of these, where it is read.

    Source: detection/region-yolo-1.rst

    >>> data = np.array([0, 0, 5, 6, 0, 1, 1], np.float32).reshape(1, 7, 1, 1)
    >>> op(data, axis=1, coords=4, classes=2, end_axis=3, num=1).tolist()
    [[0.5, 0.5, 5.0, 6.0, 0.5, 0.5, 0.5]]
    """
    batch, _, height, width = data.shape
    regions = num if do_softmax else len(mask)
    result = np.array(widened(data)).reshape(batch, regions, coords + 1 + classes, height, width)
    scores = result[:, :, coords + 1 :]
    result[:, :, :2] = _sigmoid(result[:, :, :2])
    result[:, :, coords] = _sigmoid(result[:, :, coords])
    if not do_softmax:
        scores[...] = _sigmoid(scores)
        return result.reshape(data.shape).astype(data.dtype, copy=False)
    if classes:
        powers = np.exp(scores - scores.max(2, keepdims=True))
        scores[...] = powers / powers.sum(2, keepdims=True)
    return result.reshape(_flattened(data.shape, axis % 4, end_axis % 4)).astype(data.dtype, copy=False)


def _sigmoid(values: Array) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-values))


def _flattened(shape: Sequence[Any], axis: int, end_axis: int) -> Any:
    if axis > end_axis:
        return shape
    return (*shape[:axis], product(shape[axis : end_axis + 1]), *shape[end_axis + 1 :])


@region_yolo.shapes
def _(node: Node) -> Shapes:
    attrs = node.attrs
    axis, end_axis = (node.axis("C1", attrs[name], 4, name) for name in ("axis", "end_axis"))
    message = f"`axis` is {axis}, behind `end_axis` {end_axis}"
    node.require("C1", axis <= end_axis, message, about=["axis", "end_axis"], lenient="flattens nothing")
    shape = node.shape("data")
    regions = attrs["num"] if attrs["do_softmax"] else len(attrs["mask"])
    expected = regions * (attrs["coords"] + 1 + attrs["classes"])
    node.require("C2", shape[1] == expected, f"`data` has {shape[1]} channels, expected {expected}", "data")
    pairs, rest = divmod(len(attrs["anchors"]), 2)
    lenient = "leaves these to who reads the regions"
    message = f"`anchors` has {2 * pairs + rest} numbers, expected pairs of a width and a height"
    node.require("C3", not rest, message, about=["anchors"], lenient=lenient)
    beyond = next((n for n in attrs["mask"] if pairs and not attrs["do_softmax"] and not 0 <= n < pairs), None)
    message = f"`mask` has {beyond}, outside [0, {pairs}) of the pairs in `anchors`"
    node.require("C3", beyond is None or rest > 0, message, about=["mask", "anchors"], lenient=lenient)
    return {"shape": _flattened(shape, axis, end_axis) if attrs["do_softmax"] else (shape[0], expected, *shape[2:])}


@op(
    "ReorgYolo-1",
    types={"T": ANY},
    inputs=[Input("data", "T", "[N, C, H, W]")],
    outputs=[Output("output", "T", "[N, C_out, H_out, W_out]")],
    attrs=[Attr("stride", INTS, least=1)],
    opsets=frozenset(range(1, 17)),
)
def reorg_yolo(data: Array, *, stride: Sequence[int]) -> Any:
    """Move pixels into channels, as YOLO does.

    The data is read as [N, C / stride², H * stride, W * stride]; channel c of the result is every stride-th pixel of
    channel c % (C / stride²) of it, and the shape is then [N, C * stride², H / stride, W / stride].

    Constraints:
        C1: H and W are multiples of stride.
        C2: C is stride² or more.
        C3: stride is one number. Of equal ones, which OpenVINO may write, it takes the first.

    Choice: where stride² does not divide C, the quotient is rounded down, as in the reference.

    Source: detection/reorg-yolo-1.rst

    >>> op(np.arange(16).reshape(1, 4, 2, 2), stride=(2,)).ravel().tolist()
    [0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15]
    """
    batch, channels, height, width = data.shape
    step = stride[0]
    depth = channels // step**2
    n, c, y, x = np.ogrid[:batch, :channels, :height, :width]
    part = c // depth
    rows, columns = y * step + part // step, x * step + part % step
    indices = ((n * depth + c % depth) * height * step + rows) * width * step + columns
    return data.reshape(-1)[indices].reshape(batch, channels * step**2, height // step, width // step)


@reorg_yolo.shapes
def _(node: Node) -> Shapes:
    given = node.attrs["stride"]
    first = "takes the first" if len(set(given)) == 1 else ""
    message = f"`stride` is {list(given)}, expected one number"
    node.require("C3", len(given) == 1, message, about=["stride"], lenient=first)
    stride = given[0]
    _, channels, *sizes = node.shape("data")
    for name, size in zip("HW", sizes, strict=True):
        node.require("C1", size % stride == 0, f"`{name}` is {size}, expected a multiple of {stride}", "data")
    node.require("C2", channels >= stride**2, f"`C` is {channels}, expected {stride**2} or more", "data")
    height, width = (divided(size, stride) for size in sizes)
    return {"C_out": channels * stride**2, "H_out": height, "W_out": width}


PRIOR_BOX_INPUTS = (Input("output_size", "T_INT", "[2]"), Input("image_size", "T_INT", "[2]", lenient=True))
FOLDED_PRIOR_BOX_INPUTS = (PRIOR_BOX_INPUTS[0], Input("image_size", "T_INT", "[2]"))
"""OpenVINO refuses constants of two types, which it computes before a run."""

PRIOR_BOX_ATTRS = (
    Attr("min_size", FLOATS, (), least=0),
    Attr("max_size", FLOATS, (), least=0),
    Attr("aspect_ratio", FLOATS, (), least=0),
    Attr("flip", BOOL, False),
    Attr("clip", BOOL, False),
    Attr("step", FLOAT_NUMBER, 0.0),
    Attr("offset", FLOAT_NUMBER, assumed=0.0, least=0, lenient=True),
    Attr("variance", FLOATS, (), least=0),
    Attr("scale_all_sizes", BOOL, True),
    Attr("fixed_ratio", FLOATS, (), least=0),
    Attr("fixed_size", FLOATS, (), least=0),
    Attr("density", FLOATS, (), least=1),
)


@op(
    "PriorBox-1",
    types={"T_INT": INTEGER},
    inputs=PRIOR_BOX_INPUTS,
    outputs=[Output("boxes", "f32", "[2, length]")],
    attrs=PRIOR_BOX_ATTRS,
    opsets=frozenset(range(1, 8)),
)
def prior_box_1(output_size: Array, image_size: Array, **attrs: Any) -> Array:
    """Boxes of given sizes and aspect ratios around the middle of each cell of a grid, and their variances.

    As PriorBox-8 with min_max_aspect_ratios_order.

    Constraints:
        C1: variance has 0, 1 or 4 elements.
        C2: output_size is 0 or more, image_size 1 or more.
        C3: there are no more max_size than min_size.
        C4: density has one element for each fixed_size.
        C5: aspect_ratio and fixed_ratio are above 0.
        C6: sizes, ratios and densities are finite.

    Source: detection/prior-box-1.rst

    >>> op(np.array([1, 2]), np.array([8, 16]), min_size=(4.0,), offset=0.5, step=8.0, variance=(0.5,))[0].tolist()
    [0.125, 0.25, 0.375, 0.75, 0.625, 0.25, 0.875, 0.75]
    """
    return prior_boxes(as_pair(output_size), as_pair(image_size), attrs)


@prior_box_1.shapes
def _(node: Node) -> Shapes:
    low, high, fixed, density = (node.attrs[name] for name in ("min_size", "max_size", "fixed_size", "density"))
    node.require(
        "C3",
        len(high) <= len(low),
        f"`max_size` has {len(high)} elements, `min_size` {len(low)}",
        about=["max_size", "min_size"],
    )
    fits = not fixed or len(density) == len(fixed)
    node.require(
        "C4", fits, f"`density` has {len(density)} elements, `fixed_size` {len(fixed)}", about=["density", "fixed_size"]
    )
    for name in ("aspect_ratio", "fixed_ratio"):
        node.require("C5", 0 not in node.attrs[name], f"`{name}` holds 0, expected more", about=[name])
    for name in ("min_size", "max_size", "fixed_size", "density", "aspect_ratio", "fixed_ratio"):
        values = node.attrs[name]
        node.require("C6", all(map(math.isfinite, values)), f"`{name}` holds {values}, expected numbers", about=[name])
    return grid_shape(node, cell_prior_count(node.attrs))


prior_box = variation(
    "PriorBox-8",
    prior_box_1,
    """Boxes of given sizes and aspect ratios around the middle of each cell of a grid, and their variances.

    Every min_size gives a square, one of the side sqrt(min_size * max_size) and boxes of the same area for the other
    ratios, the larger square before them if min_max_aspect_ratios_order. Every fixed_size gives density² boxes for
    each ratio. A step of 0 spreads the cells over the image and takes their middle, whatever offset is. Without
    scale_all_sizes, min_size and step are relative to the height of the image (a step of -1 is that of one cell),
    max_size does not count, and the other ratios follow the last min_size with the first one's area.

    Constraints:
        C1: variance has 0, 1 or 4 elements.
        C2: output_size is 0 or more, image_size 1 or more.
        C3: there are no more max_size than min_size.
        C4: density has one element for each fixed_size.
        C5: aspect_ratio and fixed_ratio are above 0.
        C6: sizes, ratios and densities are finite.

    Choice: formulas are the reference's, since those of the page lack terms. No variance means 0.1. The number of
    boxes is that of the boxes made. Results are f32.

    Deviation: OpenVINO infers other numbers of boxes than it makes where fixed_ratio does not have as many elements as
    there are aspect ratios, and where there are both fixed_size and min_size; it takes max_size without
    scale_all_sizes into account.

    Source: detection/prior-box-8.rst

    >>> op(np.array([1, 1]), np.array([16, 16]), min_size=(4.0,), max_size=(16.0,), offset=0.5)[0].tolist()
    [0.375, 0.375, 0.625, 0.625, 0.25, 0.25, 0.75, 0.75]
    """,
    attrs=[*PRIOR_BOX_ATTRS, Attr("min_max_aspect_ratios_order", BOOL, True)],
)

prior_box_1.folds(inputs=FOLDED_PRIOR_BOX_INPUTS)
prior_box.folds(inputs=FOLDED_PRIOR_BOX_INPUTS)
prior_box.lowers("PriorBox-1", min_max_aspect_ratios_order=True)


@op(
    "PriorBoxClustered-1",
    types={"T_INT": INTEGER},
    inputs=PRIOR_BOX_INPUTS,
    outputs=[Output("boxes", "f32", "[2, length]")],
    attrs=[
        Attr("width", FLOATS, (1.0,), least=0),
        Attr("height", FLOATS, (1.0,), least=0),
        Attr("clip", BOOL, True),
        Attr("step", FLOAT_NUMBER, 0.0),
        Attr("step_w", FLOAT_NUMBER, 0.0, least=0, lenient=True),
        Attr("step_h", FLOAT_NUMBER, 0.0, least=0, lenient=True),
        Attr("offset", FLOAT_NUMBER, assumed=0.0, least=0, lenient=True),
        Attr("variance", FLOATS, (), least=0, lenient=True),
    ],
)
def prior_box_clustered(
    output_size: Array,
    image_size: Array,
    *,
    width: Sequence[float],
    height: Sequence[float],
    clip: bool,
    step: float,
    step_w: float,
    step_h: float,
    offset: float,
    variance: Sequence[float],
) -> Array:
    """Boxes of given widths and heights around the middle of each cell of a grid, and their variances.

    Constraints:
        C1: variance has 0, 1 or 4 elements.
        C2: output_size is 0 or more, image_size 1 or more.
        C3: width and height have the same number of elements.

    Choice: the formulas are the reference's, since in those of the page all corners are the same. step counts where
    step_w and step_h are both 0; what is then 0 spreads the cells over the image. No variance means 0.1.

    Deviation: OpenVINO takes step for a single one that is 0, and the image only if both are. image_size is required
    as in OpenVINO, although the page calls it optional.

    Source: detection/prior-box-clustered-1.rst

    >>> op(np.array([1, 1]), np.array([8, 16]), width=(4.0,), height=(6.0,), offset=0.5, step=8.0)[0].tolist()
    [0.125, 0.125, 0.375, 0.875]
    """
    grid, image = as_pair(output_size), as_pair(image_size)
    priors = [Prior(0, 0, w / 2, h / 2) for w, h in zip(width, height, strict=True)]
    if not (step_w or step_h):
        step_w = step_h = step
    spread = steps(0, grid, image)
    return prior_grid(priors, grid, image, (step_h or spread[0], step_w or spread[1]), offset, clip, variance)


@prior_box_clustered.shapes
def _(node: Node) -> Shapes:
    wide, high = len(node.attrs["width"]), len(node.attrs["height"])
    node.require("C3", wide == high, f"`width` has {wide} elements, `height` {high}", about=["width", "height"])
    return grid_shape(node, wide)


prior_box_clustered.folds(inputs=FOLDED_PRIOR_BOX_INPUTS)


@op(
    "ExperimentalDetectronPriorGridGenerator-6",
    types={"T": FLOAT},
    inputs=[
        Input("priors", "T", "[number_of_priors, 4]"),
        Input("feature_map", "T", "[1, channels, featmap_height, featmap_width]"),
        Input("image", "T", "[1, image_channels, image_height, image_width]"),
    ],
    outputs=[Output("priors_grid", "T", "[*grid, 4]")],
    attrs=[
        Attr("flatten", BOOL, True, assumed=False, demanded=True),
        Attr("h", INT, 0, least=0),
        Attr("w", INT, 0, least=0),
        Attr("stride_x", FLOAT_NUMBER, 0.0, least=0, lenient=True),
        Attr("stride_y", FLOAT_NUMBER, 0.0, least=0, lenient=True),
    ],
    extension_versions=OLD_LAYERS,
)
def prior_grid_generator(
    priors: Array,
    feature_map: Array,
    image: Array,
    *,
    flatten: bool,
    h: int,
    w: int,
    stride_x: float,
    stride_y: float,
) -> Any:
    """Move the priors to the middle of each cell of a grid.

    Sizes of 0 are those of the feature map, strides of 0 the image's size divided by the grid's.

    Constraints:
        C1: h and w are not above the size of the feature map.

    Choice: of a grid smaller than the feature map, the boxes come one after another, the undefined rest is 0.

    Source: detection/experimental-detectron-prior-grid-generator-6.rst

    >>> priors, maps, image = np.array([[-1.0, -1, 1, 1]]), np.zeros((1, 1, 1, 2)), np.zeros((1, 3, 4, 8))
    >>> op(priors, maps, image).tolist()
    [[1.0, 1.0, 3.0, 3.0], [5.0, 1.0, 7.0, 3.0]]
    """
    boxes = widened(priors)
    rows, columns = h or feature_map.shape[2], w or feature_map.shape[3]
    kind = boxes.dtype.type
    y = (np.arange(rows, dtype=kind) + kind(0.5)) * kind(stride_y or image.shape[2] / max(rows, 1))
    x = (np.arange(columns, dtype=kind) + kind(0.5)) * kind(stride_x or image.shape[3] / max(columns, 1))
    centers = np.empty((rows, columns, 1, 4), kind)
    centers[..., 0::2], centers[..., 1::2] = x[:, None, None], y[:, None, None, None]
    grid = (boxes + centers).astype(priors.dtype, copy=False).reshape(-1, 4)
    shape = (*feature_map.shape[2:], len(priors), 4)
    return filled(grid, len(priors) * shape[0] * shape[1]).reshape((-1, 4) if flatten else shape)


@prior_grid_generator.shapes
def _(node: Node) -> Shapes:
    sizes = node.shape("feature_map")[2:]
    for name, size in zip("hw", sizes, strict=True):
        given = node.attrs[name]
        node.require(
            "C1",
            given <= size,
            f"`{name}` is {given}, above {size}, that of `feature_map`",
            "feature_map",
            about=[name],
        )
    grid = (*sizes, node.dims["number_of_priors"])
    return {"grid": (product(grid),) if node.attrs["flatten"] else grid}


DETECTION_OUTPUT_ATTRS = (
    Attr("background_label_id", INT, 0, least=LEAST_I32, most=MOST_I32),
    Attr("top_k", INT, -1, least=LEAST_I32, most=MOST_I32),
    Attr("variance_encoded_in_target", BOOL, False),
    Attr("keep_top_k", INTS, least=LEAST_I32, most=MOST_I32),
    Attr(
        "code_type",
        exact("caffe.PriorBoxParameter.CENTER_SIZE", "caffe.PriorBoxParameter.CORNER"),
        "caffe.PriorBoxParameter.CORNER",
    ),
    Attr("share_location", BOOL, True),
    Attr("nms_threshold", FLOAT_NUMBER),
    Attr("confidence_threshold", FLOAT_NUMBER, 0.0),
    Attr("clip_after_nms", BOOL, False),
    Attr("clip_before_nms", BOOL, False),
    Attr("decrease_label_id", BOOL, False),
    Attr("normalized", BOOL, False),
    Attr("input_height", INT, 1, least=1, unread=("normalized", (True,))),
    Attr("input_width", INT, 1, least=1, unread=("normalized", (True,))),
    Attr("objectness_score", FLOAT_NUMBER, 0.0, least=0, lenient=True),
)


@op(
    "DetectionOutput-1",
    types={"T": FLOAT},
    inputs=[
        Input("box_logits", "T", "[N, locations]"),
        Input("class_preds", "T", "[N, predictions]"),
        Input("proposals", "T", "[priors_batch_size, kinds, prior_numbers]", lenient=True),
        Input("additional_class_preds", "T", "[N, pairs]", optional=True),
        Input("additional_box_preds", "T", "[N, locations]", optional=True),
    ],
    outputs=[Output("detections", "T", "[1, 1, rows, 7]")],
    attrs=[Attr("num_classes", INT, least=1), *DETECTION_OUTPUT_ATTRS],
    opsets=frozenset(range(1, 8)),
)
def detection_output_1(
    box_logits: Array,
    class_preds: Array,
    proposals: Array,
    additional_class_preds: Array | None = None,
    additional_box_preds: Array | None = None,
    *,
    num_classes: int,
    suppress: Suppress = unsuppressed,
    **attrs: Any,
) -> Any:
    """Decode boxes, suppress those that overlap better ones, list the rest as (batch, class, score, x0, y0, x1, y1).

    As DetectionOutput-8, the number of classes given.

    Constraints:
        C1: keep_top_k has an element.
        C2: proposals hold 1 or N batches of one row, or two without variance_encoded_in_target, of one or more
            priors of 4 numbers, or 5 without normalized.
        C3: box_logits have 4 numbers for each prior, and for each class unless share_location.
        C4: class_preds have a number for each prior and class.
        C5: the additional inputs come together, the first with 2 numbers for each prior.

    Choice and Deviation: as DetectionOutput-8.

    Source: detection/detectionoutput-1.rst

    >>> attrs = dict(keep_top_k=(2,), nms_threshold=0.5, normalized=True, variance_encoded_in_target=True)
    >>> priors, scores = np.array([[[0, 0, 0.5, 0.5]]], np.float32), np.array([[0.25, 0.75]], np.float32)
    >>> op(np.zeros((1, 4), np.float32), scores, priors, num_classes=2, **attrs).tolist()
    [[[[0.0, 1.0, 0.75, 0.0, 0.0, 0.5, 0.5], [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]]
    """
    return detections(box_logits, class_preds, proposals, additional_class_preds, additional_box_preds, attrs, suppress)


@detection_output_1.shapes
def _(node: Node) -> Shapes:
    attrs = node.attrs
    node.require("C1", len(attrs["keep_top_k"]) > 0, "`keep_top_k` is empty, expected an element", about=["keep_top_k"])
    both = {node.inputs[name] is None for name in ("additional_class_preds", "additional_box_preds")}
    node.require("C5", len(both) == 1, "there are 4 inputs, expected 3 or 5")
    batch, predictions = node.shape("class_preds")
    batches, kinds, numbers = node.shape("proposals")
    rows, size = 1 if attrs["variance_encoded_in_target"] else 2, 4 if attrs["normalized"] else 5
    wrong = (batches == 1) is False and (batches == batch) is False
    node.require("C2", not wrong, f"`proposals` has {batches} batches, expected 1 or {batch}", "proposals")
    node.require("C2", kinds == rows, f"`proposals` has {kinds} rows, expected {rows}", "proposals")
    message = f"`proposals` has {numbers} numbers, expected a multiple of {size} above 0"
    node.require("C2", numbers % size == 0, message, "proposals")
    node.require("C2", numbers > 0, message, "proposals")
    priors = numbers // size
    locations = node.shape("box_logits")[1]
    _require_priors(node, priors, predictions, locations)
    classes = attrs.get("num_classes") or predictions // priors
    columns = priors * classes
    message = f"`class_preds` has {predictions} columns, expected {columns} by `proposals`"
    node.require("C4", predictions == columns, message, "class_preds", about=["proposals"])
    columns = priors * 4 * (1 if attrs["share_location"] else classes)
    message = f"`box_logits` has {locations} columns, expected {columns} by `proposals`"
    node.require("C3", locations == columns, message, "box_logits", about=["proposals"])
    pairs = node.dims.get("pairs")
    if pairs is not None:
        message = f"`additional_class_preds` has {pairs} columns, expected {priors * 2}"
        node.require("C5", pairs == priors * 2, message, "additional_class_preds")
        priors = meet(priors, divided(pairs, 2))
    if attrs["share_location"]:
        priors = meet(priors, divided(locations, 4))
    if "num_classes" in attrs:
        priors = meet(priors, divided(predictions, classes))
    else:
        classes = predictions // priors
        if not attrs["share_location"]:
            classes = meet(classes, divided(locations, 4) // priors)
    return {"rows": detection_rows(node.dims["N"], classes, priors, attrs)}


def _require_priors(node: Node, priors: Size, predictions: Size, locations: Size) -> None:
    """Require as many priors as class_preds and box_logits are for, where these two agree on another number.

    Where they do not, one of them is to blame.
    """
    if not isinstance(priors, int) or not isinstance(predictions, int) or not isinstance(locations, int):
        return
    classes, shared = node.attrs.get("num_classes"), node.attrs["share_location"]
    others, rest = divmod(locations, 4 if shared else 4 * (classes or 1))
    if rest or others in (0, priors):
        return
    expected = str(others)
    if classes:
        agree = others * classes == predictions
    elif shared:
        agree = predictions % others == 0 and predictions % priors != 0
    else:
        agree = others == predictions and predictions % priors != 0
        expected = f"a divisor of {predictions}"
    if agree:
        message = f"`proposals` have {priors} priors, but `class_preds` and `box_logits` are for {expected}"
        node.fail("C4", message, "proposals", about=["class_preds", "box_logits"])


@op("DetectionOutput-8", of=detection_output_1, attrs=DETECTION_OUTPUT_ATTRS)
def detection_output(
    box_logits: Array,
    class_preds: Array,
    proposals: Array,
    additional_class_preds: Array | None = None,
    additional_box_preds: Array | None = None,
    *,
    suppress: Suppress = unsuppressed,
    **attrs: Any,
) -> Any:
    """Decode boxes, suppress those that overlap better ones, list the rest as (batch, class, score, x0, y0, x1, y1).

    A box is its prior plus variance * delta for CORNER; for CENTER_SIZE its center moves by variance * delta of its
    size, and its size is multiplied by exp(variance * delta). Of each class but the background, boxes with more than
    confidence_threshold, top_k at most, are suppressed by better ones that they overlap by more than nms_threshold.
    With decrease_label_id a prior counts for its best class alone, and labels are one less. keep_top_k remain per
    batch. The list is ordered by batch, class and score; a row with batch -1 ends it, the others are 0.

    Constraints:
        C1: keep_top_k has an element.
        C2: proposals hold 1 or N batches of one row, or two without variance_encoded_in_target, of one or more
            priors of 4 numbers, or 5 without normalized.
        C3: box_logits have 4 numbers for each prior, and for each class unless share_location.
        C4: class_preds have a number for each prior and class.
        C5: the additional inputs come together, the first with 2 numbers for each prior.

    Choice: of equal scores the lower prior comes first. Without normalized the first number of a prior does not count,
    and the variances still have 4 numbers each. With decrease_label_id, class 0 is never found and a score equal to
    confidence_threshold is enough. With additional boxes, the prior is decoded by them first.

    Deviation: priors that are not normalized are divided by the image's size once; with additional boxes OpenVINO
    does so again after the first decoding.

    Source: detection/detectionoutput-8.rst

    >>> attrs = dict(keep_top_k=(2,), nms_threshold=0.5, normalized=True, variance_encoded_in_target=True)
    >>> priors, scores = np.array([[[0, 0, 0.5, 0.5]]], np.float32), np.array([[0.25, 0.75]], np.float32)
    >>> op(np.zeros((1, 4), np.float32), scores, priors, **attrs).tolist()
    [[[[0.0, 1.0, 0.75, 0.0, 0.0, 0.5, 0.5], [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]]
    """
    return detections(box_logits, class_preds, proposals, additional_class_preds, additional_box_preds, attrs, suppress)


@op(
    "Proposal-1",
    types={"T": FLOAT},
    inputs=[
        Input("class_probs", "T", "[batch_size, scores, H, W]"),
        Input("bbox_deltas", "T", "[batch_size, deltas, H, W]", lenient=True),
        Input("image_shape", "T", "[image_numbers]", lenient=True),
    ],
    outputs=[Output("proposals", "T", "[rows, 5]")],
    attrs=[
        Attr("base_size", INT, least=1),
        Attr("pre_nms_topn", INT, least=1),
        Attr("post_nms_topn", INT, least=1),
        Attr("nms_thresh", FLOAT_NUMBER),
        Attr("feat_stride", INT, least=1),
        Attr("min_size", INT, least=0, assumed=1),
        Attr("ratio", FLOATS, least=NO_NAN),
        Attr("scale", FLOATS, least=NO_NAN),
        Attr("clip_before_nms", BOOL, True),
        Attr("clip_after_nms", BOOL, False),
        Attr("normalize", BOOL, False),
        Attr("box_size_scale", FLOAT_NUMBER, 1.0, least=NO_NAN),
        Attr("box_coordinate_scale", FLOAT_NUMBER, 1.0, least=NO_NAN),
        Attr("framework", exact("", "tensorflow"), ""),
    ],
    opsets=frozenset({1, 2, 3}),
)
def proposal_1(
    class_probs: Array, bbox_deltas: Array, image_shape: Array, *, suppress: Suppress = unsuppressed, **attrs: Any
) -> Any:
    """Move anchors by deltas, and list the best that do not overlap better ones as (batch, x0, y0, x1, y1).

    As Proposal-4, without the scores.

    Constraints:
        C1: image_shape has 3 or 4 elements.
        C2: class_probs have two and bbox_deltas four channels for each anchor, which are len(ratio) * len(scale).

    Choice and Deviation: as Proposal-4.

    Source: detection/proposal-1.rst

    >>> scores, deltas, image = np.ones((1, 2, 1, 1)), np.zeros((1, 4, 1, 1)), np.array([9.0, 9, 1])
    >>> attrs = dict(base_size=4, pre_nms_topn=2, post_nms_topn=2, nms_thresh=0.5, feat_stride=4, min_size=1)
    >>> op(scores, deltas, image, **attrs, ratio=(1.0,), scale=(1.0,)).tolist()
    [[0.0, 0.0, 0.0, 4.0, 4.0], [-1.0, 0.0, 0.0, 0.0, 0.0]]
    """
    return proposals(class_probs, bbox_deltas, image_shape, suppress=suppress, **attrs)[0]


@proposal_1.shapes
def _(node: Node) -> Shapes:
    numbers = node.shape("image_shape")[0]
    wrong = (numbers == 3) is False and (numbers == 4) is False
    node.require("C1", not wrong, f"`image_shape` has {numbers} elements, expected 3 or 4", "image_shape")
    anchors = len(node.attrs["ratio"]) * len(node.attrs["scale"])
    for name, per_anchor in (("class_probs", 2), ("bbox_deltas", 4)):
        channels, expected = node.shape(name)[1], anchors * per_anchor
        message = f"`{name}` has {channels} channels, expected {expected} for {anchors} anchors"
        node.require("C2", channels == expected, message, name)
    return {"rows": node.dims["batch_size"] * node.attrs["post_nms_topn"]}


@op(
    "Proposal-4",
    of=proposal_1,
    outputs=[Output("proposals", "T", "[rows, 5]"), Output("probabilities", "T", "[rows]")],
    extension_versions=OLD_LAYERS,
)
def proposal(
    class_probs: Array, bbox_deltas: Array, image_shape: Array, *, suppress: Suppress = unsuppressed, **attrs: Any
) -> Any:
    """Move anchors by deltas, and list the best that do not overlap better ones as (batch, x0, y0, x1, y1).

    The second half of class_probs are the scores. The anchors have the area base_size² times scale², one for every
    ratio of height to width and every scale, and stand at every pixel of the feature map, feat_stride apart. Each
    batch has post_nms_topn rows; where there are fewer boxes, a row with batch -1 follows them, and rows of 0.

    Constraints:
        C1: image_shape has 3 or 4 elements.
        C2: class_probs have two and bbox_deltas four channels for each anchor, which are len(ratio) * len(scale).

    Choice: box sides count the pixels inside, and the sides of anchors are rounded before scaling. With framework
    `tensorflow` neither is so, anchors lie around (0, 0), rows move them to the right and columns down, so the height
    of the image bounds x and its width y, and they are clipped before they are moved. Of equal scores the first comes
    first. Boxes smaller than min_size have the score 0 and may still fill up the list, as in OpenVINO; the page filters
    them out, and does not say what comes instead.

    Deviation: OpenVINO's reference takes the scale of the height for the width, too.

    Source: detection/proposal-4.rst

    >>> scores, deltas, image = np.ones((1, 2, 1, 1)), np.zeros((1, 4, 1, 1)), np.array([9.0, 9, 1])
    >>> attrs = dict(base_size=4, pre_nms_topn=2, post_nms_topn=2, nms_thresh=0.5, feat_stride=4, min_size=1)
    >>> op(scores, deltas, image, **attrs, ratio=(1.0,), scale=(1.0,))[1].tolist()
    [1.0, 0.0]
    """
    return proposals(class_probs, bbox_deltas, image_shape, suppress=suppress, **attrs)


@op(
    "GenerateProposals-9",
    types={"T": FLOAT},
    inputs=[
        Input("im_info", "T", "[num_batches, image_numbers]"),
        Input("anchors", "T", "[height, width, number_of_anchors, 4]", lenient=True),
        Input("boxesdeltas", "T", "[num_batches, delta_channels, height, width]", lenient=True),
        Input("scores", "T", "[num_batches, number_of_anchors, height, width]", lenient=True),
    ],
    outputs=[
        Output("rpnrois", "T", "[num_rois, 4]"),
        Output("rpnscores", "T", "[num_rois]"),
        Output("rpnroisnum", "roi_num_type", "[num_batches]"),
    ],
    attrs=[
        Attr("min_size", FLOAT_NUMBER, least=0, assumed=0.0, lenient=True),
        Attr("nms_threshold", FLOAT_NUMBER, least=0, lenient=True),
        Attr("pre_nms_count", INT, least=0),
        Attr("post_nms_count", INT, least=0),
        Attr("normalized", BOOL, True),
        Attr("nms_eta", FLOAT_NUMBER, 1.0, least=0, most=1),
        Attr("roi_num_type", choice("i32", "i64"), "i64"),
    ],
)
def generate_proposals(
    im_info: Array,
    anchors: Array,
    boxesdeltas: Array,
    scores: Array,
    *,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: int,
    post_nms_count: int,
    normalized: bool,
    nms_eta: float,
    roi_num_type: str,
    suppress: Suppress = unsuppressed,
) -> Any:
    """Move anchors by deltas, and list for each image the best of them that do not overlap better ones.

    im_info are the height and width of each image and their scale, one number or two, by which min_size is
    multiplied. Unless normalized, box sides count the pixels inside. Boxes that are too small are removed after the
    pre_nms_count best have been taken. Where there is an nms_eta below 1, a box that is taken multiplies the threshold
    by it before it suppresses others, as long as the threshold is above 0.5.

    Constraints:
        C1: im_info has 3 or 4 columns.
        C2: boxesdeltas have four channels for each anchor.

    Choice: growth is limited to exp(dw) = 1000 / 16; of equal scores the first comes first.

    Deviation: OpenVINO takes no nms_eta other than 1.

    Source: detection/generate-proposals-9.rst

    >>> anchors, deltas, scores = np.array([[[[0.0, 0, 4, 4]]]]), np.zeros((1, 4, 1, 1)), np.ones((1, 1, 1, 1))
    >>> counts = dict(pre_nms_count=2, post_nms_count=2)
    >>> rois, *_ = op(np.array([[9.0, 9, 1]]), anchors, deltas, scores, min_size=1.0, nms_threshold=0.5, **counts)
    >>> rois.tolist()
    [[0.0, 0.0, 4.0, 4.0]]
    """
    pixel = 0 if normalized else 1
    info, values = widened(im_info), widened(scores)
    batch, count, rows, columns = scores.shape
    deltas = widened(boxesdeltas).reshape(batch, count, 4, rows, columns).transpose(0, 3, 4, 1, 2)
    boxes = moved(widened(anchors), deltas, pixel, most=MAX_GROWTH).reshape(batch, count * rows * columns, 4)
    values = values.transpose(0, 2, 3, 1).reshape(batch, count * rows * columns)
    regions, found = [np.empty((0, 4), boxes.dtype)], [np.empty(0, boxes.dtype)]
    counts = np.zeros(batch, numpy_dtype(roi_num_type))
    for number, (height, width, *scale) in enumerate(info):
        order = descending(values[number])[:pre_nms_count]
        candidates = clipped(boxes[number, order], height - pixel, width - pixel)
        least = np.array([scale[-1], scale[0]]) * info.dtype.type(min_size)
        large = (candidates[:, 2:] - candidates[:, :2] + pixel >= least).all(1)
        order, candidates = order[large], candidates[large]
        ends = np.array([len(candidates)])
        stays = suppress(candidates, ends, nms_threshold, pixel=pixel, most=post_nms_count, eta=nms_eta)
        regions.append(candidates[stays])
        found.append(values[number, order[stays]])
        counts[number] = len(regions[-1])
    kind = scores.dtype
    return np.concatenate(regions).astype(kind, copy=False), np.concatenate(found).astype(kind, copy=False), counts


@generate_proposals.shapes
def _(node: Node) -> Shapes:
    numbers = node.shape("im_info")[1]
    wrong = (numbers == 3) is False and (numbers == 4) is False
    node.require("C1", not wrong, f"`im_info` has {numbers} columns, expected 3 or 4", "im_info")
    channels, anchors = node.shape("boxesdeltas")[1], node.dims["number_of_anchors"]
    message = f"`boxesdeltas` has {channels} channels, expected {anchors * 4} for {anchors} anchors"
    node.require("C2", channels == anchors * 4, message, "boxesdeltas")
    return {"num_rois": up_to(node.dims["num_batches"] * node.attrs["post_nms_count"])}


@op(
    "ExperimentalDetectronGenerateProposalsSingleImage-6",
    types={"T": FLOAT},
    inputs=[
        Input("im_info", "T", "[3]"),
        Input("anchors", "T", "[anchor_rows, 4]"),
        Input("deltas", "T", "[delta_channels, height, width]"),
        Input("scores", "T", "[number_of_channels, height, width]"),
    ],
    outputs=[Output("rois", "T", "[post_nms_count, 4]"), Output("roi_scores", "T", "[post_nms_count]")],
    attrs=[
        Attr("min_size", FLOAT_NUMBER, least=0, assumed=0.0, lenient=True),
        Attr("nms_threshold", FLOAT_NUMBER, least=0, lenient=True),
        Attr("pre_nms_count", INT),
        Attr("post_nms_count", INT, least=0),
    ],
    extension_versions=OLD_LAYERS,
)
def generate_proposals_single_image(
    im_info: Array,
    anchors: Array,
    deltas: Array,
    scores: Array,
    *,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: int,
    post_nms_count: int,
    suppress: Suppress = unsuppressed,
) -> Any:
    """Move anchors by deltas, and list the best of them that do not overlap better ones.

    Box sides count the pixels inside, but not for the overlap. The rows after the last box are 0.

    Constraints:
        C1: anchors have a row for each pixel and channel of scores.
        C2: deltas have four channels for each one of scores.
        C3: pre_nms_count is 0 or more. With less all boxes are taken.

    Choice: growth is limited to exp(dw) = 1000 / 16; of equal scores the first comes first. min_size is not scaled.
    Boxes smaller than that have the score 0 and may still fill up the list, as in OpenVINO; the page removes them.

    Source: detection/experimental-detectron-generate-proposals-single-image-6.rst

    >>> info, anchors, deltas = np.array([9.0, 9, 1]), np.array([[0.0, 0, 4, 4]]), np.zeros((4, 1, 1))
    >>> counts = dict(pre_nms_count=2, post_nms_count=2)
    >>> rois, scores = op(info, anchors, deltas, np.ones((1, 1, 1)), min_size=1.0, nms_threshold=0.5, **counts)
    >>> rois.tolist(), scores.tolist()
    ([[0.0, 0.0, 4.0, 4.0], [0.0, 0.0, 0.0, 0.0]], [1.0, 0.0])
    """
    height, width, _ = widened(im_info)
    count, rows, columns = scores.shape
    shifts = widened(deltas).reshape(count, 4, rows, columns).transpose(2, 3, 0, 1).reshape(-1, 4)
    boxes = clipped(moved(widened(anchors), shifts, 1, most=MAX_GROWTH), height - 1, width - 1)
    values = scores.transpose(1, 2, 0).reshape(-1)
    wide, high = (boxes[:, axis + 2] - boxes[:, axis] + 1 >= min_size for axis in (0, 1))
    values = np.where(wide & high, values, np.zeros((), values.dtype))
    order = descending(widened(values))[: pre_nms_count if pre_nms_count >= 0 else None]
    kept = order[suppress(boxes[order], np.array([len(order)]), nms_threshold, most=post_nms_count)]
    return filled(boxes[kept].astype(scores.dtype, copy=False), post_nms_count), filled(values[kept], post_nms_count)


@generate_proposals_single_image.shapes
def _(node: Node) -> Shapes:
    channels, height, width = node.shape("scores")
    rows, expected = node.shape("anchors")[0], channels * height * width
    node.require("C1", rows == expected, f"`anchors` has {rows} rows, expected {expected}", "anchors")
    found, expected = node.shape("deltas")[0], channels * 4
    node.require("C2", found == expected, f"`deltas` has {found} channels, expected {expected}", "deltas")
    before = node.attrs["pre_nms_count"]
    message = f"`pre_nms_count` is {before}, expected 0 or more"
    node.require("C3", before >= 0, message, about=["pre_nms_count"], lenient="takes all boxes")
    return {"post_nms_count": node.attrs["post_nms_count"]}


@op(
    "ExperimentalDetectronDetectionOutput-6",
    types={"T": FLOAT},
    inputs=[
        Input("rois", "T", "[number_of_ROIs, 4]"),
        Input("deltas", "T", "[number_of_ROIs, delta_columns]"),
        Input("scores", "T", "[number_of_ROIs, score_columns]"),
        Input("im_info", "T", "[1, 3]"),
    ],
    outputs=[
        Output("boxes", "T", "[max_detections_per_image, 4]"),
        Output("classes", "i32", "[max_detections_per_image]"),
        Output("box_scores", "T", "[max_detections_per_image]"),
    ],
    attrs=[
        Attr("score_threshold", FLOAT_NUMBER, least=0),
        Attr("nms_threshold", FLOAT_NUMBER, least=0, lenient=True),
        Attr("num_classes", INT, least=0),
        Attr("post_nms_count", INT, least=0),
        Attr("max_detections_per_image", INT, least=0),
        Attr("class_agnostic_box_regression", BOOL, False),
        Attr("max_delta_log_wh", FLOAT_NUMBER),
        Attr("deltas_weights", FLOATS, least=0, lenient=True),
    ],
    extension_versions=OLD_LAYERS,
)
def detectron_detection_output(
    rois: Array,
    deltas: Array,
    scores: Array,
    im_info: Array,
    *,
    score_threshold: float,
    nms_threshold: float,
    num_classes: int,
    post_nms_count: int,
    max_detections_per_image: int,
    class_agnostic_box_regression: bool,
    max_delta_log_wh: float,
    deltas_weights: Sequence[float],
    suppress: Suppress = unsuppressed,
) -> Any:
    """Move regions by the deltas of each class, and list those that do not overlap better ones of their class.

    Box sides count the pixels inside. Each class has post_nms_count boxes at most; if there are more than
    max_detections_per_image in all, these are the best, ordered by score, else all, ordered by class and score.

    Constraints:
        C1: deltas have four columns and scores one for each class.
        C2: deltas_weights has 4 elements.

    Choice: class 0 is the background and is never listed, whatever class_agnostic_box_regression is, as in OpenVINO.
    Regions without width or height have no boxes; the undefined rows after the last box are 0.

    Deviation: boxes are clipped to the image, as the page says; OpenVINO only clips them at 0.

    Source: detection/experimental-detectron-detection-output-6.rst

    >>> rois, deltas, scores = np.array([[0.0, 0, 4, 4]]), np.zeros((1, 8)), np.array([[0.25, 0.75]])
    >>> attrs = dict(score_threshold=0.1, nms_threshold=0.5, num_classes=2, post_nms_count=2, max_delta_log_wh=4.0)
    >>> more = dict(max_detections_per_image=1, deltas_weights=(1.0, 1.0, 1.0, 1.0))
    >>> [output.tolist() for output in op(rois, deltas, scores, np.array([[9.0, 9, 1]]), **attrs, **more)]
    [[[0.0, 0.0, 4.0, 4.0]], [1], [0.75]]
    """
    regions, values = widened(rois), widened(scores)
    proper = np.flatnonzero((regions[:, 2:] > regions[:, :2]).all(1))
    weights = np.array(deltas_weights, regions.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        shifts = widened(deltas)[proper].reshape(len(proper), num_classes, 4) / weights
    boxes = moved(regions[proper, None], shifts, 1, most=max_delta_log_wh)
    height, width, _ = widened(im_info)[0]
    boxes = clipped(boxes, height - 1, width - 1)
    of_classes = values[proper].T
    likely = of_classes > score_threshold
    likely[:1] = False
    classes, chosen = ranked(of_classes, likely)
    ends = ends_of(classes, num_classes)
    stays = suppress(boxes[chosen, classes], ends, nms_threshold, pixel=1, most=post_nms_count)
    classes, chosen = classes[stays], chosen[stays]
    if len(classes) > max_detections_per_image:
        best = np.lexsort((chosen, classes, -values[proper[chosen], classes]))[:max_detections_per_image]
        classes, chosen = classes[best], chosen[best]
    return (
        filled(boxes[chosen, classes].astype(rois.dtype, copy=False), max_detections_per_image),
        filled(classes.astype(np.int32), max_detections_per_image),
        filled(scores[proper[chosen], classes], max_detections_per_image),
    )


@detectron_detection_output.shapes
def _(node: Node) -> Shapes:
    weights, classes = node.attrs["deltas_weights"], node.attrs["num_classes"]
    node.require(
        "C2", len(weights) == 4, f"`deltas_weights` has {len(weights)} elements, expected 4", about=["deltas_weights"]
    )
    for name, expected in (("deltas", classes * 4), ("scores", classes)):
        columns = node.shape(name)[1]
        node.require("C1", columns == expected, f"`{name}` has {columns} columns, expected {expected}", name)
    return {"max_detections_per_image": node.attrs["max_detections_per_image"]}
