"""Detection ops, against OpenVINO."""

from dataclasses import replace
from functools import partial

import numpy as np
from ml_dtypes import bfloat16
from openvino import opset1, opset2, opset3, opset8, opset9, opset15
from openvino.utils.node_factory import NodeFactory

from conformance.harness import WIDE, Case, Const, Departure, conformance, with_attribute

random = np.random.default_rng(7)


def f32(*shape, low=0.0, high=1.0):
    return random.uniform(low, high, shape).astype(np.float32)


def made(opset, type, *inputs, **attrs):
    """A node of any type, also of those that have no function."""
    return NodeFactory(opset).create(type, [node.output(0) for node in inputs], attrs)


def corners(count, size, *lead):
    """Boxes (x0, y0, x1, y1) in [0, size)."""
    first, sides = f32(*lead, count, 2, high=size * 0.7), f32(*lead, count, 2, low=size * 0.05, high=size * 0.3)
    return np.concatenate([first, first + sides], -1)


def regions(count, size, batches):
    batch = random.integers(0, batches, (count, 1)).astype(np.float32)
    return np.concatenate([batch, corners(count, size)], 1)


MAPS = f32(2, 3, 9, 11, low=-1)
ROIS = corners(5, 10)
BATCHES = random.integers(0, 2, 5)


def align(title, *, op="ROIAlign-9", data=MAPS, rois=ROIS, batches=BATCHES, dynamic=False, **attrs):
    module = {"ROIAlign-3": opset3, "ROIAlign-9": opset9}[op]
    sizes = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": 2, "spatial_scale": 1.0, "mode": "avg"} | attrs
    if op == "ROIAlign-9":
        sizes = {"aligned_mode": "asymmetric"} | sizes
    return Case(op, title, partial(module.roi_align, **sizes), [data, rois, batches.astype(np.int32)], dynamic)


CASES = [
    align("avg", op="ROIAlign-3"),
    align("max", op="ROIAlign-3", mode="max", data=np.abs(MAPS)),
    align("adaptive", op="ROIAlign-3", sampling_ratio=0, spatial_scale=0.7),
    align("tiny regions", op="ROIAlign-3", spatial_scale=0.05),
    align("avg"),
    align("max", mode="max", data=np.abs(MAPS)),
    align("half_pixel", aligned_mode="half_pixel", spatial_scale=0.5),
    align("half_pixel_for_nn", aligned_mode="half_pixel_for_nn", spatial_scale=1.5),
    align("f16", data=MAPS.astype(np.float16), rois=ROIS.astype(np.float16)),
    align("adaptive half_pixel", aligned_mode="half_pixel", sampling_ratio=0),
    align("outside", rois=ROIS * 3 - 8),
]

NO_COUNT = Departure(
    "refuses regions whose number of coordinates is unknown; the page has that number", "rois is dynamic at axis 1"
)
NO_DYNAMIC = Departure(
    "refuses dynamic shapes; the page does not tell them from others", "data is dynamic | rois is dynamic"
)
ONES = np.ones((1, 4, 3, 3), np.float32)
REGION = np.array([[0, 0, 0, 2, 2]], np.float32)
SIZES = {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 1, "spatial_scale": 1.0}


def differs(op, title, build, inputs, deviates, expected, dynamic=False, **more):
    return Case(op, title, build, inputs, dynamic, deviates, expected, **more)


CASES += [
    differs(
        f"ROIAlign-{version}",
        title,
        partial(module.roi_align, **SIZES, mode="max", **more),
        [-ONES, REGION[:, 1:], np.array([0], np.int32)],
        deviates,
        [-ONES[:, :, :1, :1]],
        dynamic,
    )
    for version, module, more in ((3, opset3, {}), (9, opset9, {"aligned_mode": "asymmetric"}))
    for title, deviates, dynamic in (
        (
            "below 0",
            Departure(
                "starts a maximum from 0; the page takes the largest sample", "mode = max; data has negative numbers"
            ),
            False,
        ),
        ("dynamic", NO_COUNT, True),
    )
]


def rotated(title, *, dynamic=False, **attrs):
    rois = np.concatenate([f32(5, 2, low=2, high=8), f32(5, 2, low=1, high=6), f32(5, 1, low=-3, high=3)], 1)
    sizes = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": 2, "spatial_scale": 1.0, "clockwise_mode": False} | attrs
    return Case(
        "ROIAlignRotated-15",
        title,
        partial(opset15.roi_align_rotated, **sizes),
        [MAPS, rois, BATCHES.astype(np.int32)],
        dynamic,
    )


CASES += [
    rotated("counterclockwise"),
    rotated("clockwise", clockwise_mode=True),
    rotated("adaptive", sampling_ratio=0),
    rotated("scaled, dynamic", spatial_scale=0.6, dynamic=True),
]


CASES += [
    differs(
        "ROIAlignRotated-15",
        "bf16",
        partial(
            opset15.roi_align_rotated, pooled_h=1, pooled_w=1, sampling_ratio=1, spatial_scale=1.0, clockwise_mode=False
        ),
        [
            np.arange(16, dtype=bfloat16).reshape(1, 1, 4, 4),
            np.array([[2, 2, 2, 2, 0], [2, 2, 2, 2, 0], [1, 1, 2, 2, 0]], bfloat16),
            np.zeros(3, np.int32),
        ],
        Departure("reads rois of bf16 at other places; the page has all float types", "data is bf16", WIDE),
        [np.array([7.5, 7.5, 2.5], bfloat16).reshape(3, 1, 1, 1)],
    )
]


def roi_pool(title, rois, *, dynamic=False, data=MAPS, **attrs):
    size, scale, method = (attrs.get(k, d) for k, d in (("size", [2, 3]), ("scale", 1.0), ("method", "max")))
    return Case(
        "ROIPooling-1", title, lambda d, r: opset2.roi_pooling(d, r, size, scale, method), [data, rois], dynamic
    )


UNIT = regions(4, 1, 2)
CASES += [
    roi_pool("max", regions(4, 9, 2)),
    roi_pool("max scaled", regions(4, 20, 2), scale=0.5),
    roi_pool("max outside", regions(4, 25, 2)),
    roi_pool("max f16", regions(4, 9, 2).astype(np.float16), data=MAPS.astype(np.float16)),
    roi_pool("bilinear", UNIT, method="bilinear"),
    roi_pool("bilinear one bin", UNIT, method="bilinear", size=[1, 1]),
    roi_pool("bilinear outside", UNIT * np.array([1, 1.5, 1.5, 1.5, 1.5], np.float32), method="bilinear"),
    roi_pool("end of the list", np.concatenate([UNIT[:2], [[-1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]]).astype(np.float32)),
]


CASES += [
    differs(
        "ROIPooling-1",
        "dynamic",
        lambda d, r: opset2.roi_pooling(d, r, [1, 1], 1.0, "max"),
        [ONES, REGION],
        NO_COUNT,
        [ONES[:, :, :1, :1]],
        True,
    )
]


def psroi(title, data, rois, mode, dynamic=False, **attrs):
    values = {"output_dim": 2, "group_size": 2, "spatial_scale": 1.0, "spatial_bins_x": 1, "spatial_bins_y": 1} | attrs
    build = partial(opset1.psroi_pooling, mode=mode, **values)
    return Case("PSROIPooling-1", title, build, [data, rois], dynamic, atol=1e-5)


WIDE = f32(2, 12, 7, 6)
ENDED = np.concatenate([regions(2, 7, 2), [[-1, 0, 0, 0, 0]], regions(1, 7, 2)]).astype(np.float32)
CASES += [
    psroi("average", WIDE[:, :8], regions(4, 7, 2), "average"),
    psroi("average scaled", WIDE[:, :8], regions(4, 20, 2), "average", spatial_scale=0.3),
    psroi("average outside", WIDE[:, :8], regions(4, 20, 2), "average"),
    psroi("bilinear", WIDE, regions(4, 1, 2), "bilinear", spatial_bins_x=3, spatial_bins_y=2),
    psroi("average before the edge", WIDE[:, :8], regions(4, 7, 2) - np.array([0, 4, 4, 0, 0], np.float32), "average"),
    psroi("end of the list", WIDE[:, :8], ENDED, "average"),
    replace(
        psroi("no mode", np.ones((1, 8, 4, 4), np.float32), REGION, "average"),
        deviates=Departure("refuses a file without mode; the page has average for it", "mode is left out"),
        expected=[np.ones((1, 2, 2, 2), np.float32)],
        left_out=["mode"],
    ),
    differs(
        "PSROIPooling-1",
        "bilinear between the last pixel and the edge",
        partial(
            opset1.psroi_pooling,
            output_dim=4,
            group_size=2,
            spatial_scale=1.0,
            spatial_bins_x=1,
            spatial_bins_y=1,
            mode="bilinear",
        ),
        [ONES, np.array([[0, 0, 0, 1.2, 1.2]], np.float32)],
        Departure(
            "gives 0 there; the reference gives the last pixel",
            "mode = bilinear; rois > 1; (a region ends between the last pixel and the edge)",
        ),
        [np.ones((1, 4, 2, 2), np.float32)],
    ),
    differs(
        "PSROIPooling-1",
        "dynamic",
        partial(
            opset1.psroi_pooling,
            output_dim=1,
            group_size=2,
            spatial_scale=1.0,
            spatial_bins_x=1,
            spatial_bins_y=1,
            mode="average",
        ),
        [ONES, REGION],
        NO_DYNAMIC,
        [np.ones((1, 1, 2, 2), np.float32)],
        True,
    ),
    psroi("bilinear, one group", WIDE, regions(4, 1, 2), "bilinear", group_size=1, spatial_bins_x=2, spatial_bins_y=3),
]


def deformable(title, offsets=None, dynamic=False, scale=0.5, **attrs):
    def build(data, rois, offsets=None):
        values = (2, scale, 2, "bilinear_deformable", attrs.get("x", 2), attrs.get("y", 3), 0.3, 2)
        return opset1.deformable_psroi_pooling(data, rois, *values, offsets)

    inputs = [WIDE[:, :8], regions(4, 13, 2)] + ([] if offsets is None else [offsets])
    return Case("DeformablePSROIPooling-1", title, build, inputs, dynamic, atol=1e-5)


CASES += [
    deformable("no offsets"),
    deformable("offsets of one class", f32(4, 2, 2, 2)),
    deformable("offsets of two classes", f32(4, 4, 2, 2), x=1, y=1),
    deformable("outside", f32(4, 2, 2, 2), scale=1.5),
    differs(
        "DeformablePSROIPooling-1",
        "dynamic",
        lambda d, r: opset1.deformable_psroi_pooling(d, r, 1, 1.0, 2, "bilinear_deformable", 1, 1, 1.0, 1),
        [ONES, REGION],
        NO_DYNAMIC,
        [np.ones((1, 1, 2, 2), np.float32)],
        True,
    ),
]


ANCHORS = [1.0, 2.0, 3.0, 4.0]


def region(title, data, softmax, *, coords=4, classes=3, num=2, mask=(0, 1), axis=1, end=3, dynamic=False):
    build = lambda x: opset1.region_yolo(x, coords, classes, num, softmax, list(mask), axis, end, ANCHORS)  # noqa: E731
    return Case("RegionYolo-1", title, build, [data], dynamic)


YOLO = f32(2, 16, 3, 4, low=-2, high=2)
CASES += [
    region("softmax", YOLO, True),
    region("sigmoid", YOLO[:1], False),
    region("softmax, dynamic", YOLO, True, dynamic=True),
    region("axis", YOLO, True, axis=2, end=3),
    region("sigmoid, batch of 2", YOLO, False),
    Case(
        "RegionYolo-1",
        "no do_softmax",
        lambda x: opset1.region_yolo(x, 4, 1, 1, True, [0], 1, 3, [1.0, 2.0]),
        [Const(np.zeros((1, 6, 1, 1), np.float32))],
        left_out=["do_softmax"],
        deviates=Departure("takes false; the page has true for it", "do_softmax is left out"),
        expected=[np.float32([[0.5, 0.5, 0, 0, 0.5, 1]])],
    ),
    region("five coords", YOLO, True, coords=5, classes=2),
    region("f16", YOLO.astype(np.float16), True),
    *(
        Case("ReorgYolo-1", title, lambda x, s=stride: opset2.reorg_yolo(x, [s]), [data], dynamic)
        for title, data, stride, dynamic in (
            ("stride 2", f32(2, 8, 4, 6), 2, False),
            ("stride 3", f32(1, 9, 3, 6), 3, False),
            ("dynamic", f32(2, 4, 4, 6), 2, True),
            ("rest of channels", f32(1, 7, 4, 6), 2, False),
            ("i32", random.integers(0, 99, (1, 8, 4, 4)).astype(np.int32), 2, False),
        )
    ),
]


def prior(title, op="PriorBox-8", grid=(2, 3), image=(30, 40), dynamic=False, **attrs):
    module = {"PriorBox-1": opset1, "PriorBox-8": opset8}[op]
    given = {"offset": 0.5, "step": 0.0} | attrs
    build = lambda g, i: module.prior_box(g, i, given)  # noqa: E731
    sizes = [np.array(grid, np.int64), np.array(image, np.int64)]
    return Case(op, title, build, sizes if dynamic else [Const(array) for array in sizes])


CASES += [
    case
    for op in ("PriorBox-1", "PriorBox-8")
    for case in (
        prior("min", op, min_size=[8.0]),
        prior(
            "min, max and ratios", op, min_size=[8.0, 12.0], max_size=[10.0, 20.0], aspect_ratio=[2.0, 3.0], flip=True
        ),
        prior("step, clip", op, min_size=[20.0], step=10.0, offset=0.3, clip=True, variance=[0.1, 0.2, 0.3, 0.4]),
        prior("density", op, fixed_size=[8.0, 13.0], density=[2.0, 3.0], variance=[0.3]),
        prior("density, ratios", op, fixed_size=[8.0], density=[2.0], aspect_ratio=[2.0]),
        prior("fixed ratio", op, fixed_size=[8.0], density=[2.0], fixed_ratio=[2.0]),
        prior("relative", op, min_size=[0.2, 0.4], scale_all_sizes=False, step=0.2, aspect_ratio=[2.0, 0.5]),
        prior("dynamic", op, min_size=[8.0], max_size=[9.0], aspect_ratio=[2.0], dynamic=True),
    )
]
CASES += [
    prior("ratios before max", min_size=[8.0], max_size=[9.0], aspect_ratio=[2.0], min_max_aspect_ratios_order=False)
]


CASES += [
    differs(
        op,
        "max_size without scale_all_sizes",
        lambda g, i, build=build: build(
            g, i, {"offset": 0.5, "step": 1.0, "min_size": [0.5], "max_size": [0.9], "scale_all_sizes": False}
        ),
        [Const(np.array([1, 1])), Const(np.array([8, 8]))],
        Departure(
            "makes boxes of max_size, too, for which it has no room; the page has them only with scale_all_sizes",
            "max_size > 0; scale_all_sizes = false",
        ),
        [np.array([[0.25, 0.25, 0.75, 0.75], [0.1, 0.1, 0.1, 0.1]], np.float32)],
        crashes=True,
    )
    for op, build in (("PriorBox-1", opset1.prior_box), ("PriorBox-8", opset8.prior_box))
]


CASES += [
    differs(
        op,
        "odd fixed_size",
        lambda g, i, build=build: build(g, i, {"offset": 0.5, "step": 0.0, "fixed_size": [5.0], "density": [1.0]}),
        [np.array([1, 1]), np.array([10, 10])],
        Departure(
            "puts boxes of an odd fixed_size in the middle; as a constant it rounds half of that size down",
            "fixed_size > 0; (a fixed_size is odd)",
        ),
        [np.array([[0.3, 0.3, 0.8, 0.8], [0.1, 0.1, 0.1, 0.1]], np.float32)],
    )
    for op, build in (("PriorBox-1", opset1.prior_box), ("PriorBox-8", opset8.prior_box))
]


def clustered(title, dynamic=False, **attrs):
    given = {"offset": 0.5, "width": [8.0, 20.0], "height": [9.0, 5.0], "step": 10.0} | attrs
    build = lambda g, i: opset1.prior_box_clustered(g, i, given)  # noqa: E731
    sizes = [np.array([2, 3]), np.array([30, 40])]
    return Case("PriorBoxClustered-1", title, build, sizes if dynamic else [Const(array) for array in sizes])


CASES += [
    clustered("step"),
    clustered("no clip, variance", clip=False, variance=[0.1, 0.1, 0.2, 0.2]),
    clustered("from the image", step=0.0),
    clustered("step_w and step_h", step_w=7.0, step_h=9.0, offset=0.1),
    clustered("dynamic", dynamic=True),
    differs(
        "PriorBoxClustered-1",
        "step_w alone",
        lambda g, i: opset1.prior_box_clustered(
            g, i, {"offset": 0.5, "width": [4.0], "height": [4.0], "step": 10.0, "step_w": 8.0}
        ),
        [Const(np.array([1, 1])), Const(np.array([8, 16]))],
        Departure(
            "takes step for a single one that is 0; the page takes it only if both are",
            "step_w = 0 | step_h = 0; step_w != 0 | step_h != 0",
        ),
        [np.array([[0.125, 0.25, 0.375, 0.75], [0.1, 0.1, 0.1, 0.1]], np.float32)],
    ),
]


def grid(title, features=(2, 3), image=(20, 30), dynamic=False, dtype=np.float32, **attrs):
    inputs = [corners(3, 9).astype(dtype), np.zeros((1, 4, *features), dtype), np.zeros((1, 3, *image), dtype)]
    build = partial(made, "opset6", "ExperimentalDetectronPriorGridGenerator", **attrs)
    return Case("ExperimentalDetectronPriorGridGenerator-6", title, build, inputs, dynamic)


CASES += [
    grid("flat", flatten=True),
    grid("four axes", flatten=False),
    grid("strides", flatten=True, stride_x=3.0, stride_y=4.0),
    grid("full size", flatten=True, h=2, w=3, dynamic=True),
    differs(
        "ExperimentalDetectronPriorGridGenerator-6",
        "no flatten",
        partial(made, "opset6", "ExperimentalDetectronPriorGridGenerator", flatten=True),
        [np.zeros((1, 4), np.float32), np.zeros((1, 4, 1, 1), np.float32), np.zeros((1, 3, 2, 2), np.float32)],
        Departure("takes false; the page has true for it", "flatten is left out"),
        [np.ones((1, 4), np.float32)],
        left_out=["flatten"],
    ),
]


def extractor(title, dynamic=False, **attrs):
    values = {"output_size": 2, "sampling_ratio": 2, "pyramid_scales": [4, 8, 16], "aligned": False} | attrs
    inputs = [np.concatenate([corners(4, 64), corners(3, 600)]), f32(1, 3, 16, 18), f32(1, 3, 8, 9), f32(1, 3, 4, 5)]
    build = partial(made, "opset6", "ExperimentalDetectronROIFeatureExtractor", **values)
    return Case("ExperimentalDetectronROIFeatureExtractor-6", title, build, inputs, dynamic)


CASES += [
    extractor("plain"),
    extractor("aligned", aligned=True, output_size=3),
    extractor("adaptive", sampling_ratio=0),
    extractor("dynamic", dynamic=True, pyramid_scales=[4, 8, 16, 32]),
]

DETECTION = {
    "background_label_id": 0,
    "keep_top_k": [8],
    "top_k": -1,
    "nms_threshold": 0.4,
    "confidence_threshold": 0.2,
    "variance_encoded_in_target": False,
    "share_location": True,
    "normalized": True,
    "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
    "clip_after_nms": False,
    "clip_before_nms": False,
    "decrease_label_id": False,
    "input_height": 1,
    "input_width": 1,
    "objectness_score": 0.0,
}


def detection(title, op="DetectionOutput-8", *, five=False, batch=2, priors=6, classes=3, dynamic=False, **attrs):
    given = DETECTION | attrs
    module = opset8
    if op == "DetectionOutput-1":
        module, given = opset1, given | {"num_classes": classes}
    locations = 4 * priors * (1 if given["share_location"] else classes)
    boxes = corners(priors, 1)
    if not given["normalized"]:
        boxes = boxes * np.array([given["input_width"], given["input_height"]] * 2)
        boxes = np.concatenate([np.zeros((priors, 1)), boxes], 1)
    rows = [boxes.reshape(-1)]
    if not given["variance_encoded_in_target"]:
        spread = np.full(rows[0].shape, 0.1)
        spread[::2] = 0.2
        rows.append(spread)
    inputs = [
        f32(batch, locations, low=-1),
        f32(batch, priors * classes),
        np.stack(rows)[None].astype(np.float32),
    ]
    if five:
        inputs += [f32(batch, priors * 2), f32(batch, locations, low=-1)]
    build = lambda *nodes: module.detection_output(*nodes[:3], given, *nodes[3:])  # noqa: E731
    return Case(op, title, build, inputs, dynamic)


CASES += [
    case
    for op in ("DetectionOutput-1", "DetectionOutput-8")
    for case in (
        detection("center size", op),
        detection("corner", op, code_type="caffe.PriorBoxParameter.CORNER", clip_before_nms=True),
        detection("own locations", op, share_location=False, top_k=4, clip_after_nms=True),
        detection("in target", op, variance_encoded_in_target=True, keep_top_k=[-1], top_k=5),
        detection("mxnet", op, decrease_label_id=True),
        detection(
            "not normalized", op, normalized=False, input_height=20, input_width=30, variance_encoded_in_target=True
        ),
        detection("no background", op, background_label_id=-1, keep_top_k=[-1]),
        detection("few kept", op, keep_top_k=[2], confidence_threshold=0.0),
        detection("dynamic", op, dynamic=True),
    )
]
CASES += [
    detection("five inputs", five=True, objectness_score=0.4, batch=1),
    differs(
        "DetectionOutput-8",
        "five inputs, not normalized",
        lambda *nodes: opset8.detection_output(
            *nodes[:3],
            DETECTION
            | {"normalized": False, "variance_encoded_in_target": True, "input_height": 40, "input_width": 40}
            | {"keep_top_k": [1]},
            *nodes[3:],
        ),
        [
            np.zeros((1, 4), np.float32),
            np.array([[0.25, 0.75]], np.float32),
            np.array([[[0, 10, 10, 20, 20]]], np.float32),
            np.ones((1, 2), np.float32),
            np.zeros((1, 4), np.float32),
        ],
        Departure(
            "divides by the size of the image after either decoding; the page has the priors divided once",
            "normalized = false; additional_class_preds is connected",
        ),
        [np.array([[[[0, 1, 0.75, 0.25, 0.25, 0.5, 0.5]]]], np.float32)],
    ),
    detection("not normalized with variances", normalized=False, input_height=20, input_width=30),
]


def proposal(title, op="Proposal-4", *, size=(3, 4), batch=1, image=(40.0, 50.0, 1.0), dynamic=False, **attrs):
    given = {
        "base_size": 8,
        "pre_nms_topn": 30,
        "post_nms_topn": 6,
        "nms_thresh": 0.5,
        "feat_stride": 8,
        "min_size": 1,
        "ratio": [0.5, 2.0],
        "scale": [1.0, 2.0],
    } | attrs
    inputs = [f32(batch, 8, *size), f32(batch, 16, *size, low=-0.5, high=0.5), np.array(image, np.float32)]
    build = partial(made, "opset1" if op == "Proposal-1" else "opset4", "Proposal", **given)
    return Case(op, title, build, inputs, dynamic, atol=1e-4)


CASES += [
    case
    for op in ("Proposal-1", "Proposal-4")
    for case in (
        proposal("caffe", op),
        proposal("tensorflow", op, framework="tensorflow"),
        proposal("batch of 2, normalized", op, batch=2, normalize=True),
        proposal("clipped late", op, clip_before_nms=False, clip_after_nms=True),
        proposal("scaled deltas, dynamic", op, box_size_scale=5.0, box_coordinate_scale=10.0, dynamic=True),
        proposal("two scales", op, image=(40.0, 50.0, 2.0, 3.0), min_size=4),
    )
]


ANCHOR = {"base_size": 4, "pre_nms_topn": 2, "post_nms_topn": 2, "nms_thresh": 0.5, "feat_stride": 4}
ONE_BOX = [np.ones((1, 2, 1, 1), np.float32), np.zeros((1, 4, 1, 1), np.float32), np.array([9, 9, 1], np.float32)]
CASES += [
    Case(
        "Proposal-4",
        "small boxes",
        partial(made, "opset4", "Proposal", **ANCHOR | {"post_nms_topn": 1}, ratio=[1.0], scale=[1.0, 2.0], min_size=6),
        [np.array([0, 0, 0.75, 0.5], np.float32).reshape(1, 4, 1, 1), np.zeros((1, 8, 1, 1), np.float32), ONE_BOX[2]],
        dynamic=True,
    ),
    differs(
        "Proposal-4",
        "not enough boxes",
        partial(made, "opset4", "Proposal", **ANCHOR, ratio=[1.0], scale=[1.0], min_size=1),
        ONE_BOX,
        Departure("crashes; the page ends the list with -1", "proposals = -1"),
        [np.array([[0, 0, 0, 4, 4], [-1, 0, 0, 0, 0]], np.float32), np.array([1, 0], np.float32)],
        crashes=True,
    ),
]


def generated(title, *, batch=2, info=3, dynamic=False, **attrs):
    given = {"min_size": 1.0, "nms_threshold": 0.5, "pre_nms_count": 20, "post_nms_count": 6} | attrs
    image = np.tile(np.array([[40, 50, 1, 1]], np.float32), (batch, 1))[:, :info]
    anchors = corners(24, 50).reshape(3, 4, 2, 4)
    inputs = [image, anchors, f32(batch, 8, 3, 4, low=-0.5, high=0.5), f32(batch, 2, 3, 4)]
    build = partial(opset9.generate_proposals, **given)
    return Case("GenerateProposals-9", title, build, inputs, dynamic, atol=1e-4)


CASES += [
    generated("normalized"),
    generated("pixels", normalized=False),
    generated("two scales, i32", info=4, roi_num_type="i32"),
    generated("dynamic", dynamic=True),
    generated("small boxes", min_size=12.0, post_nms_count=20),
    *(
        replace(
            generated(f"{name} 0", batch=1),
            deviates=Departure(f"refuses a {name} of 0; the page has any number from 0 on", f"{name} = 0"),
            expected=[np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.array([0])],
            edit=with_attribute(name, "0"),
        )
        for name in ("pre_nms_count", "post_nms_count")
    ),
    *(
        Case(
            "GenerateProposals-9",
            f"nms_eta {eta}",
            partial(opset9.generate_proposals, min_size=1.0, nms_threshold=0.5, pre_nms_count=2, post_nms_count=2),
            [
                np.float32([[8, 8, 1]]),
                np.float32([0, 0, 4, 4]).reshape(1, 1, 1, 4),
                np.zeros((1, 4, 1, 1), np.float32),
                np.ones((1, 1, 1, 1), np.float32),
            ],
            deviates=Departure("refuses an nms_eta other than 1; the page has any number from 0 to 1", "nms_eta < 1"),
            expected=[np.float32([[0, 0, 4, 4]]), np.float32([1]), np.array([1])],
            edit=with_attribute("nms_eta", str(eta)),
        )
        for eta in (0, 0.9)
    ),
]


def single(title, dynamic=False, **attrs):
    given = {"min_size": 1.0, "nms_threshold": 0.5, "pre_nms_count": 20, "post_nms_count": 6} | attrs
    inputs = [np.array([40, 50, 1], np.float32), corners(24, 50), f32(8, 3, 4, low=-0.5, high=0.5), f32(2, 3, 4)]
    build = partial(made, "opset6", "ExperimentalDetectronGenerateProposalsSingleImage", **given)
    return Case("ExperimentalDetectronGenerateProposalsSingleImage-6", title, build, inputs, dynamic, atol=1e-4)


CASES += [
    single("plain"),
    single("few", nms_threshold=0.1, pre_nms_count=8),
    single("dynamic", dynamic=True),
    Case(
        "ExperimentalDetectronGenerateProposalsSingleImage-6",
        "small boxes",
        partial(
            made,
            "opset6",
            "ExperimentalDetectronGenerateProposalsSingleImage",
            min_size=9.0,
            nms_threshold=0.5,
            pre_nms_count=3,
            post_nms_count=3,
        ),
        [
            np.array([40, 40, 1], np.float32),
            np.array([[0, 0, 4, 4], [0, 0, 20, 20]], np.float32),
            np.zeros((4, 1, 2), np.float32),
            np.array([[[0.75, 0.5]]], np.float32),
        ],
        dynamic=True,
    ),
]


def detectron(title, *, dynamic=False, count=8, scale=1.0, **attrs):
    given = {
        "score_threshold": 0.2,
        "nms_threshold": 0.5,
        "num_classes": 3,
        "post_nms_count": 5,
        "max_detections_per_image": 8,
        "class_agnostic_box_regression": False,
        "max_delta_log_wh": 4.0,
        "deltas_weights": [10.0, 10.0, 5.0, 5.0],
    } | attrs
    inputs = [corners(count, 40) * np.float32(scale), f32(count, 12, low=-1), f32(count, 3)]
    inputs += [np.array([[50, 60, 1]], np.float32)]
    build = partial(made, "opset6", "ExperimentalDetectronDetectionOutput", **given)
    return Case("ExperimentalDetectronDetectionOutput-6", title, build, inputs, dynamic, atol=1e-4)


CASES += [
    detectron("plain"),
    detectron("few", max_detections_per_image=4, count=4),
    detectron("agnostic", class_agnostic_box_regression=True),
    detectron("dynamic", dynamic=True),
    detectron("all", score_threshold=0.0, nms_threshold=0.9, max_detections_per_image=16, count=16),
    differs(
        "ExperimentalDetectronDetectionOutput-6",
        "beyond the image",
        partial(
            made,
            "opset6",
            "ExperimentalDetectronDetectionOutput",
            score_threshold=0.2,
            nms_threshold=0.5,
            num_classes=2,
            post_nms_count=1,
            max_detections_per_image=1,
            max_delta_log_wh=4.0,
            deltas_weights=[1.0, 1.0, 1.0, 1.0],
            class_agnostic_box_regression=False,
        ),
        [
            np.array([[1, 1, 9, 9]], np.float32),
            np.zeros((1, 8), np.float32),
            np.array([[0.25, 0.75]], np.float32),
            np.array([[5, 6, 1]], np.float32),
        ],
        Departure("only clips at 0; the page clips to the image", "(a box reaches beyond the image)"),
        [np.array([[1, 1, 5, 4]], np.float32), np.array([1], np.int32), np.array([0.75], np.float32)],
    ),
]

CASES += [proposal("tensorflow, wide", framework="tensorflow", image=(20.0, 60.0, 1.0))]

CASES += [
    case
    for op, build in (("PriorBox-1", opset1.prior_box), ("PriorBox-8", opset8.prior_box))
    for case in (
        differs(
            op,
            "fixed_size and min_size",
            lambda g, i, build=build: build(
                g, i, {"offset": 0.5, "step": 0.0, "fixed_size": [4.0], "density": [1.0], "min_size": [2.0]}
            ),
            [Const(np.array([1, 1])), Const(np.array([16, 16]))],
            Departure(
                "makes room for boxes of fixed_size alone; the page has those of min_size, too",
                "fixed_size > 0; min_size > 0",
            ),
            [
                np.float32(
                    [
                        [0.375, 0.375, 0.625, 0.625, 0.4375, 0.4375, 0.5625, 0.5625],
                        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
                    ]
                )
            ],
            crashes=True,
        ),
        differs(
            op,
            "two fixed_ratio",
            lambda g, i, build=build: build(
                g, i, {"offset": 0.5, "step": 0.0, "fixed_size": [4.0], "density": [1.0], "fixed_ratio": [1.0, 4.0]}
            ),
            [Const(np.array([1, 1])), Const(np.array([16, 16]))],
            Departure(
                "makes room for as many boxes as there are aspect ratios; the page has one for each of fixed_ratio",
                "fixed_size > 0; fixed_ratio > 0; (there are not as many aspect ratios)",
            ),
            [
                np.float32(
                    [[0.375, 0.375, 0.625, 0.625, 0.25, 0.4375, 0.75, 0.5625], [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]]
                )
            ],
            crashes=True,
        ),
    )
]
CASES += [
    replace(
        differs(
            "PriorBoxClustered-1",
            title,
            lambda g, i: opset1.prior_box_clustered(
                g, i, {"offset": 0.5, "width": [1.0], "height": [1.0], "step": 8.0}
            ),
            [Const(np.array([1, 1])), Const(np.array([8, 8]))],
            Departure(does, when),
            [np.float32([[0.4375, 0.4375, 0.5625, 0.5625], [0.1, 0.1, 0.1, 0.1]])],
        ),
        left_out=left_out,
    )
    for title, left_out, does, when in (
        (
            "no width and height",
            ["width", "height"],
            "makes no box; the page has 1 for both",
            "width is left out; height is left out",
        ),
        (
            "no height",
            ["height"],
            "refuses a file with one of width and height; the page has 1 for the other one",
            "width is left out | height is left out; width is not left out | height is not left out",
        ),
    )
]
CORNERS = {
    "keep_top_k": [1],
    "nms_threshold": 0.5,
    "confidence_threshold": 0.0,
    "variance_encoded_in_target": True,
    "normalized": True,
    "code_type": "caffe.PriorBoxParameter.CORNER",
}


def one_box(op, title, deviates, expected, edit=None, **attrs):
    """A prior, and its chances of two classes."""
    given = CORNERS | attrs
    locations = 4 if given.get("share_location", True) else 8
    module, given = (opset8, given) if op == "DetectionOutput-8" else (opset1, given | {"num_classes": 2})
    inputs = [np.zeros((1, locations), np.float32), np.float32([[0.25, 0.5]]), np.float32([[[0, 0, 0.5, 0.5]]])]
    build = lambda *nodes: module.detection_output(*nodes, given)  # noqa: E731
    return differs(op, title, build, inputs, deviates, [np.float32(expected).reshape(1, 1, 1, 7)], edit=edit)


def with_unknown_priors(root):
    """An edit that declares no number of priors."""
    layer = [layer for layer in root.iter("layer") if layer.get("type") == "Parameter"][2]
    layer.find("data").set("shape", "1,1,?")
    layer.findall("output/port/dim")[2].text = "-1"


CASES += [
    case
    for op in ("DetectionOutput-1", "DetectionOutput-8")
    for case in (
        one_box(
            op,
            "decrease_label_id, no background",
            Departure(
                "refuses decrease_label_id with a background_label_id other than 0; the page has both",
                "decrease_label_id = true; background_label_id != 0",
            ),
            [0, 0, 0.5, 0, 0, 0.5, 0.5],
            decrease_label_id=True,
            background_label_id=-1,
        ),
        one_box(
            op,
            "boxes of each class for priors of unknown number",
            Departure(
                "refuses boxes of each class for priors of unknown number; the page does not tell them from others",
                "share_location = false; proposals is dynamic at axis 2; box_logits is not dynamic at axis 1",
            ),
            [0, 1, 0.5, 0, 0, 0.5, 0.5],
            edit=with_unknown_priors,
            share_location=False,
        ),
    )
]
CASES += [
    differs(
        "Proposal-1",
        "not enough boxes",
        partial(made, "opset1", "Proposal", **ANCHOR, ratio=[1.0], scale=[1.0], min_size=1),
        ONE_BOX,
        Departure("crashes; the page ends the list with -1", "proposals = -1"),
        [np.array([[0, 0, 0, 4, 4], [-1, 0, 0, 0, 0]], np.float32)],
        crashes=True,
    ),
    *(
        differs(
            "ROIAlign-9",
            f"{mode} of nothing",
            partial(opset9.roi_align, **SIZES | {"sampling_ratio": 0}, mode="avg", aligned_mode=mode),
            [ONES, np.float32([[1, 1, 1, 1]]), np.array([0], np.int32)],
            Departure(
                "gives NaN for a region of no size; a sum of no samples is 0",
                "aligned_mode != asymmetric; sampling_ratio = 0; mode = avg; (a region has no size)",
            ),
            [np.zeros((1, 4, 1, 1), np.float32)],
        )
        for mode in ("half_pixel", "half_pixel_for_nn")
    ),
]
for left_out, when in (
    ("group_size", "group_size is left out"),
    ("spatial_bins_x", "mode = bilinear; spatial_bins_x is left out"),
    ("spatial_bins_y", "mode = bilinear; spatial_bins_y is left out"),
):
    CASES += [
        replace(
            psroi(
                *(f"no {left_out}", Const(np.ones((1, 2, 4, 4), np.float32)), Const(REGION), "bilinear"),
                output_dim=2,
                group_size=1,
                spatial_bins_x=1,
                spatial_bins_y=1,
            ),
            deviates=Departure(f"refuses a file without {left_out}; the page has 1 for it", when),
            expected=[np.ones((1, 2, 1, 1), np.float32)],
            left_out=[left_out],
        )
    ]

test_agrees_with_openvino = conformance(CASES)
