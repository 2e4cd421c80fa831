"""Sort ops, against OpenVINO."""

from functools import partial

import numpy as np
from openvino import opset1, opset3, opset4, opset5, opset8, opset9, opset11, opset13, opset15
from openvino.utils.node_factory import NodeFactory

from conformance.harness import Case, Const, Departure, conformance, with_unknown_ranks, without_conversions

random = np.random.default_rng(11)
CUBE = random.permutation(120).reshape(4, 5, 6).astype(np.float32)
TIES = random.integers(0, 4, (3, 8)).astype(np.float32)


def top_k(op, title, data, k, axis, mode, sort, **rest):
    module = {"TopK-1": opset1, "TopK-3": opset3, "TopK-11": opset11}[op]
    attrs = {name: rest.pop(name) for name in ("stable", "index_element_type") if name in rest}
    return Case(op, title, partial(module.topk, axis=axis, mode=mode, sort=sort, **attrs), [data, k], **rest)


THREE = Const(np.array(3))
CASES = [
    case
    for op in ("TopK-1", "TopK-3", "TopK-11")
    for case in (
        top_k(op, "max by value", CUBE, THREE, -1, "max", "value"),
        top_k(op, "min by value, axis 0", CUBE, THREE, 0, "min", "value"),
        top_k(op, "max by index, axis 1", CUBE, THREE, 1, "max", "index"),
        top_k(op, "min by index", CUBE, THREE, 2, "min", "index"),
        top_k(op, "i32", CUBE.astype(np.int32), Const(np.int32(2)), 1, "min", "value"),
        top_k(op, "dynamic, k = 1", CUBE, np.array(1), 1, "max", "value", dynamic=True),
        top_k(op, "all of them", CUBE, Const(np.array(6)), 2, "max", "value"),
    )
]
CASES += [
    top_k("TopK-3", "i64 indices", CUBE, THREE, 1, "max", "value", index_element_type="i64"),
    top_k("TopK-11", "i64 indices", CUBE, THREE, 1, "max", "value", index_element_type="i64"),
    top_k("TopK-3", "f16", CUBE.astype(np.float16), THREE, 1, "max", "value"),
    top_k("TopK-3", "u8", CUBE.astype(np.uint8), Const(np.uint8(2)), 1, "max", "value"),
    top_k("TopK-11", "i8", CUBE.astype(np.int8), THREE, 1, "max", "value"),
    top_k("TopK-11", "stable max", TIES, THREE, 1, "max", "value", stable=True),
    top_k("TopK-11", "stable min", TIES, Const(np.array(5)), 1, "min", "value", stable=True),
    top_k("TopK-11", "stable by index", TIES, Const(np.array(5)), 1, "max", "index", stable=True),
    top_k("TopK-11", "stable, dynamic", TIES, np.array(2), -1, "min", "value", stable=True, dynamic=True),
]
CASES += [
    top_k(
        *(op, "nan", np.array([1, np.nan, 3, 2], np.float32), THREE, 0, "max", "value"),
        deviates=Departure("has no fixed place for NaN; on the page NaN is smaller than any number", "data has nan"),
        expected=[np.array([3, 2, 1], np.float32), np.array([2, 3, 0], np.int32)],
    )
    for op in ("TopK-1", "TopK-3", "TopK-11")
]
CASES += [
    top_k(
        *("TopK-11", "equal elements by index", np.array([1, 1, 1, 3], np.int32), np.array(2), 0, "max", "index"),
        stable=True,
        deviates=Departure(
            "takes any of equal elements if not all are wanted; the page has the first ones where it is stable",
            "sort = index; stable = true; (equal elements of which not all are among the k)",
        ),
        expected=[np.array([1, 3], np.int32), np.array([0, 3], np.int32)],
    ),
]
ROWS = np.sort(random.integers(0, 9, (2, 3, 7)), axis=-1).astype(np.float32)
WANTED = random.integers(-1, 10, (2, 3, 5)).astype(np.float32)


def search(title, rows, values, right=False, **rest):
    build = partial(opset15.search_sorted, right_mode=right)
    return Case("SearchSorted-15", title, build, [rows, values], **rest)


CASES += [
    search("left", ROWS, WANTED),
    search("right", ROWS, WANTED, right=True),
    search("one row", ROWS[0, 0], WANTED),
    search("one row, a scalar", ROWS[0, 0], WANTED[0, 0, 0]),
    search("i32", ROWS.astype(np.int32), WANTED.astype(np.int32)),
    search("f16", ROWS.astype(np.float16), WANTED.astype(np.float16)),
    search("i64", ROWS.astype(np.int64), WANTED.astype(np.int64), right=True),
    search("dynamic", ROWS, WANTED, dynamic=True),
    search(
        *("empty rows", ROWS[0, :, :0], WANTED[0]),
        deviates=Departure(
            "leaves the result as it is in memory; the place in an empty row is 0",
            "sorted is empty; size of values > 0",
        ),
        expected=[np.zeros((3, 5), np.int64)],
        crashes=True,
    ),
]


LIMITS = [Const(np.array(1)), Const(np.float32(0.5)), Const(np.float32(0))]
CASES += [
    Case(
        f"NonMaxSuppression-{version}",
        "f64",
        lambda boxes, scores, *limits, make=make: make(
            opset1.convert(boxes, "f32"), opset1.convert(scores, "f32"), *limits
        ),
        [
            np.float64([[[0, 0, 1, 1]]]),
            np.float64([[[0.5]]]),
            *map(Const, (np.array(1), np.float32(0.5), np.float32(0))),
        ],
        deviates=Departure("refuses f64; the page has any floating-point type", "boxes is f64 | scores is f64"),
        expected=[np.array([[0, 0, 0]]), np.float32([[0, 0, 0.5]]), np.array([1])],
        edit=without_conversions,
    )
    for version, make in ((5, opset5.non_max_suppression), (9, opset9.non_max_suppression))
]


def boxes_of(*lead, size=1.0):
    first, sides = random.uniform(0, 0.6, (*lead, 2)), random.uniform(0.1, 0.4, (*lead, 2))
    return (np.concatenate([first, first + sides], -1) * size).astype(np.float32)


def scores_of(*shape):
    return random.permutation(np.prod(shape)).reshape(shape).astype(np.float32) / np.float32(np.prod(shape))


SUPPRESSIONS = {1: opset1, 3: opset3, 4: opset4, 5: opset5, 9: opset9}


def suppression(version, title, boxes, scores, most=3, iou=0.3, score=0.1, sigma=None, **rest):
    attrs = {name: rest.pop(name) for name in ("box_encoding", "sort_result_descending", "output_type") if name in rest}
    limits = [Const(np.array(most)), Const(np.float32(iou)), Const(np.float32(score))]
    limits += [] if sigma is None else [Const(np.float32(sigma))]
    build = partial(SUPPRESSIONS[version].non_max_suppression, **attrs)
    return Case(f"NonMaxSuppression-{version}", title, build, [boxes, scores, *limits], **rest)


BOXES, SCORES = boxes_of(2, 6), scores_of(2, 3, 6)
FAR = np.stack([np.arange(4), np.zeros(4), np.arange(4) + 0.5, np.ones(4)], -1)[None].astype(np.float32)
CASES += [
    case
    for version in (5, 9)
    for case in (
        suppression(version, "plain", BOXES, SCORES),
        suppression(version, "unordered", BOXES, SCORES, sort_result_descending=False),
        suppression(version, "center, i32", BOXES, SCORES, box_encoding="center", output_type="i32"),
        suppression(version, "any diagonal", BOXES[..., [2, 1, 0, 3]], SCORES, most=9),
        suppression(version, "nothing", BOXES, SCORES, score=2.0),
        suppression(version, "all wanted", BOXES, SCORES, most=99),
        suppression(version, "equal scores", BOXES, np.full((2, 3, 6), 0.5, np.float32), iou=0.9),
        suppression(version, "soft, nothing above the limit", BOXES, SCORES, iou=1.0, sigma=0.5, most=9),
    )
]
CASES += [
    suppression(9, "soft", BOXES, SCORES, sigma=0.3, most=9, score=0.2),
    suppression(
        *(5, "soft", np.array([[[0, 0, 1, 1], [0, 0, 1, 0.75], [0, 0, 1, 0.25]]], np.float32)),
        *(np.array([[[0.9, 0.8, 0.7]]], np.float32), 3, 0.5, 0.1, 1.0),
        deviates=Departure(
            "removes no box by iou_threshold; by the page boxes above it are removed with soft_nms_sigma, too",
            "soft_nms_sigma > 0; iou_threshold < 1",
        ),
        expected=[
            np.array([[0, 0, 0], [0, 0, 2]]),
            np.array([[0, 0, 0.9], [0, 0, 0.7 * np.exp(-1 / 32)]], np.float32),
            np.array([2]),
        ],
    ),
    *(
        suppression(
            *(version, "equal to iou_threshold", np.array([[[0, 0, 1, 1], [0, 0, 1, 0.5]]], np.float32)),
            *(np.array([[[0.9, 0.8]]], np.float32), 3, 0.5),
            deviates=Departure(
                "removes boxes that overlap by iou_threshold exactly; the page removes those above it",
                "two boxes overlap by exactly iou_threshold",
            ),
            expected=[
                np.array([[0, 0, 0], [0, 0, 1]]),
                np.array([[0, 0, 0.9], [0, 0, 0.8]], np.float32),
                np.array([2]),
            ][: 3 if version > 4 else 1],
        )
        for version in SUPPRESSIONS
    ),
    suppression(1, "full", FAR, scores_of(1, 1, 4), most=4, score=-1.0),
    suppression(3, "full, i32", FAR, scores_of(1, 1, 4), most=4, score=-1.0, output_type="i32"),
    suppression(3, "unordered", FAR, scores_of(1, 1, 4), most=2, sort_result_descending=False),
    suppression(4, "full", np.concatenate([FAR, FAR]), scores_of(2, 2, 4), most=3, score=-1.0),
    suppression(
        4, "unordered", np.concatenate([FAR, FAR]), scores_of(2, 2, 4), 3, score=-1.0, sort_result_descending=False
    ),
    suppression(
        *(1, "more boxes than rows of the page", FAR[:, :2], np.array([[[0.75, 0.5], [0.9, 0.8]]], np.float32)),
    ),
    suppression(1, "two images", np.concatenate([FAR, FAR]), scores_of(2, 2, 4), most=3, score=-1.0),
    suppression(3, "two images", np.concatenate([FAR, FAR]), scores_of(2, 2, 4), most=3, score=-1.0),
    suppression(1, "fewer boxes than rows of the page", FAR[:, :2], np.array([[[0.75, 0.05]]], np.float32)),
    suppression(3, "fewer boxes than rows of the page", FAR[:, :2], np.array([[[0.75, 0.05]]], np.float32)),
    suppression(
        *(4, "fewer boxes than rows", FAR[:, :2], np.array([[[0.75, 0.05]]], np.float32)),
        deviates=Departure(
            "has a row for every selected box; the page has as many as boxes and limits allow, the rest being -1",
            "selected_indices = -1",
        ),
        expected=[np.array([[0, 0, 0], [-1, -1, -1]])],
    ),
]


def turned(title, boxes=None, scores=None, most=4, iou=0.3, score=0.1, dynamic=False, **attrs):
    if boxes is None:
        parts = [random.uniform(2, 6, (2, 6, 2)), random.uniform(1, 5, (2, 6, 2)), random.uniform(-3, 3, (2, 6, 1))]
        boxes = np.concatenate(parts, -1).astype(np.float32)
    limits = [Const(np.array(most)), Const(np.float32(iou)), Const(np.float32(score))]
    inputs = [boxes, scores_of(2, 3, 6) if scores is None else scores, *limits]
    return Case("NMSRotated-13", title, partial(opset13.nms_rotated, **attrs), inputs, dynamic)


CASES += [
    turned("clockwise"),
    turned("counterclockwise", clockwise=False),
    turned("unordered, i32", sort_result_descending=False, output_type="i32", most=2),
    turned("loose", iou=0.6, most=6),
]


def multiclass(title, op="MulticlassNms-8", boxes=BOXES, scores=SCORES, counts=None, **rest):
    dynamic = rest.pop("dynamic", False)
    attrs = {"iou_threshold": 0.3, "score_threshold": 0.1} | rest
    module = opset8 if op == "MulticlassNms-8" else opset9
    inputs = [boxes, scores] + ([] if counts is None else [np.array(counts)])
    return Case(op, title, partial(module.multiclass_nms, **attrs), inputs, dynamic)


CASES += [
    case
    for op in ("MulticlassNms-8", "MulticlassNms-9")
    for case in (
        multiclass("by score", op, sort_result_type="score"),
        multiclass("by class", op, sort_result_type="classid"),
        multiclass("by score, across", op, sort_result_type="score", sort_result_across_batch=True),
        multiclass(
            "by class, across, i32", op, sort_result_type="classid", sort_result_across_batch=True, output_type="i32"
        ),
        multiclass("few", op, nms_top_k=3, keep_top_k=4, background_class=1),
        multiclass("pixels", op, boxes=BOXES * 10, normalized=False),
        multiclass("nothing", op, score_threshold=2.0),
    )
]
CASES += [
    multiclass("own boxes", "MulticlassNms-9", boxes_of(3, 7), scores_of(3, 7), [4, 0, 3], sort_result_type="score"),
    multiclass(
        "own boxes by class", "MulticlassNms-9", boxes_of(3, 7), scores_of(3, 7), [4, 3], sort_result_type="classid"
    ),
    *(
        Case(
            op,
            "threshold 0",
            partial(make, iou_threshold=0.0),
            [FAR[:, :2], np.array([[[0.75, 0.5]]], np.float32)],
            deviates=Departure(
                "removes boxes that overlap by iou_threshold exactly, here by 0; the page removes those above it",
                "two boxes overlap by exactly iou_threshold",
            ),
            expected=[
                np.array([[0, 0.75, 0, 0, 0.5, 1], [0, 0.5, 1, 0, 1.5, 1]], np.float32),
                np.array([[0], [1]]),
                np.array([2]),
            ],
        )
        for op, make in (("MulticlassNms-8", opset8.multiclass_nms), ("MulticlassNms-9", opset9.multiclass_nms))
    ),
    *(
        Case(
            op,
            "nms_eta of a box between",
            partial(make, iou_threshold=0.9, nms_eta=0.75),
            [
                np.array([[[0, 0, 10, 1], [20, 0, 30, 1], [2.5, 0, 12.5, 1]]], np.float32),
                np.array([[[0.75, 0.5, 0.25]]], np.float32),
            ],
            deviates=Departure(
                "holds a box against every better one by what all of these together have left of iou_threshold; "
                "by the page each of them removes others by what it has left itself",
                "nms_eta < 1; iou_threshold > 0.5; (a box overlaps a better one that is not the last one before it)",
            ),
            expected=[
                np.array(
                    [[0, 0.75, 0, 0, 10, 1], [0, 0.5, 20, 0, 30, 1], [0, 0.25, 2.5, 0, 12.5, 1]],
                    np.float32,
                ),
                np.array([[0], [1], [2]]),
                np.array([3]),
            ],
        )
        for op, make in (("MulticlassNms-8", opset8.multiclass_nms), ("MulticlassNms-9", opset9.multiclass_nms))
    ),
]


def matrix(title, boxes=BOXES, scores=SCORES, dynamic=False, **attrs):
    build = partial(opset8.matrix_nms, **({"score_threshold": 0.1} | attrs))
    return Case("MatrixNms-8", title, build, [boxes, scores], dynamic)


CASES += [
    matrix("linear", sort_result_type="score"),
    matrix("gaussian", sort_result_type="score", decay_function="gaussian", gaussian_sigma=1.5),
    matrix("post_threshold", sort_result_type="score", post_threshold=0.2),
    matrix("by class", sort_result_type="classid"),
    matrix("by class, best", sort_result_type="classid", keep_top_k=4),
    matrix("across", sort_result_type="score", sort_result_across_batch=True, output_type="i32"),
    matrix("by class, across", sort_result_type="classid", sort_result_across_batch=True),
    matrix("few", sort_result_type="score", nms_top_k=3, keep_top_k=4, background_class=0),
    matrix("pixels", boxes=BOXES * 10, sort_result_type="score", normalized=False),
]


def best(title, count, most, dynamic=False, dtype=np.float32):
    build = lambda r, p: NodeFactory("opset6").create(  # noqa: E731
        "ExperimentalDetectronTopKROIs", [r.output(0), p.output(0)], {"max_rois": most}
    )
    inputs = [boxes_of(count).astype(dtype), scores_of(count).astype(dtype)]
    return Case("ExperimentalDetectronTopKROIs-6", title, build, inputs, dynamic)


CASES += [
    best("some", 6, 3),
    best("all", 4, 4),
    best("dynamic", 5, 2, dynamic=True),
    best("f16", 5, 2, dtype=np.float16),
]

CASES += [
    search("nan, left", ROWS[0, 0], np.float32([np.nan, 3])),
    search("nan, right", ROWS[0, 0], np.float32([np.nan, 3]), right=True),
    suppression(1, "three of four", FAR, scores_of(1, 1, 4), score=-1.0),
    suppression(1, "center", FAR, scores_of(1, 1, 4), most=4, score=-1.0, box_encoding="center", iou=1.0),
    suppression(1, "f16", FAR.astype(np.float16), scores_of(1, 1, 4).astype(np.float16), most=2, score=-1.0),
    suppression(3, "f16", FAR.astype(np.float16), scores_of(1, 1, 4).astype(np.float16), most=2, score=-1.0),
    suppression(3, "center", FAR, scores_of(1, 1, 4), most=4, score=-1.0, box_encoding="center", iou=1.0),
    suppression(4, "i32", FAR, scores_of(1, 3, 4), most=2, score=-1.0, output_type="i32"),
    suppression(4, "center", FAR, scores_of(1, 2, 4), most=4, score=-1.0, box_encoding="center", iou=1.0),
]

ONE = [np.float32([[[0, 0, 1, 1]]]), np.float32([[[0.5]]])]
ONE_TURNED = [np.float32([[[1, 1, 2, 2, 0]]]), ONE[1]]
FOUND = {
    1: [np.array([[0, 0, 0]])],
    5: [np.array([[0, 0, 0]]), np.float32([[0, 0, 0.5]]), np.array([1])],
}
NOTHING = [np.zeros((0, 3), int), np.zeros((0, 3), np.float32), np.array([0])]
SUPPRESSIONS = {
    1: opset1.non_max_suppression,
    3: opset3.non_max_suppression,
    4: opset4.non_max_suppression,
    5: opset5.non_max_suppression,
    9: opset9.non_max_suppression,
}
CASES += [
    Case(
        f"NonMaxSuppression-{version}",
        "thresholds of f64",
        lambda boxes, scores, most, *thresholds, make=make: make(
            boxes, scores, most, *(opset1.convert(own, "f32") for own in thresholds)
        ),
        [*ONE, Const(np.array(1)), *map(Const, np.array([0.5, 0.25, 0.0] if version == 9 else [0.5, 0.25]))],
        deviates=Departure(
            "refuses thresholds of f64; the page has any floating-point type",
            "iou_threshold is f64 | score_threshold is f64",
        ),
        expected=FOUND[5 if version >= 5 else 1],
        edit=without_conversions,
    )
    for version, make in SUPPRESSIONS.items()
]
IN_MEMORY = "leaves valid_outputs as it is in memory where no box may be selected; none is selected then"
CASES += [
    Case(
        op,
        "no box of any class",
        make,
        [*boxes, *map(Const, (np.array(0), np.float32(0.5), np.float32(0.25)))],
        deviates=Departure(IN_MEMORY, "max_output_boxes_per_class = 0 | max_output_boxes_per_class is not connected"),
        expected=NOTHING,
        crashes=True,
    )
    for op, make, boxes in (
        ("NonMaxSuppression-5", opset5.non_max_suppression, ONE),
        ("NonMaxSuppression-9", opset9.non_max_suppression, ONE),
        ("NMSRotated-13", opset13.nms_rotated, ONE_TURNED),
    )
]
NO_ROWS = [np.zeros((0, 6), np.float32), np.zeros((0, 1), int), np.array([0])]
ONE_ROW = [np.float32([[0, 0.5, 0, 0, 1, 1]]), np.array([[0]]), np.array([1])]
UNKNOWN_LAST = "refuses boxes whose last size is unknown; the page does not tell them from others"
CASES += [
    Case(
        op,
        "boxes of unknown sizes",
        make,
        [*boxes, *limits],
        dynamic=True,
        deviates=Departure(UNKNOWN_LAST, "boxes is dynamic at axis 2"),
        expected=expected,
    )
    for op, make, boxes, limits, expected in (
        *(
            (f"NonMaxSuppression-{version}", make, ONE, LIMITS, FOUND[5 if version >= 5 else 1])
            for version, make in SUPPRESSIONS.items()
        ),
        ("NMSRotated-13", opset13.nms_rotated, ONE_TURNED, LIMITS, FOUND[5]),
        ("MatrixNms-8", partial(opset8.matrix_nms, score_threshold=0.0), ONE, (), ONE_ROW),
        ("MulticlassNms-8", opset8.multiclass_nms, ONE, (), ONE_ROW),
        ("MulticlassNms-9", opset9.multiclass_nms, ONE, (), ONE_ROW),
    )
]


CASES += [
    case
    for op, make in (("MulticlassNms-8", opset8.multiclass_nms), ("MulticlassNms-9", opset9.multiclass_nms))
    for case in (
        Case(
            op,
            "nms_top_k 0",
            partial(make, nms_top_k=0),
            ONE,
            deviates=Departure(
                "leaves selected_num as it is in memory where no box may be selected; none is selected then",
                "nms_top_k = 0",
            ),
            expected=NO_ROWS,
            crashes=True,
        ),
        Case(
            op,
            "scores of unknown rank",
            make,
            ONE,
            deviates=Departure(
                "refuses scores of unknown rank; the page does not tell them from others", "scores is of unknown rank"
            ),
            expected=ONE_ROW,
            edit=with_unknown_ranks(1),
        ),
    )
]
CASES += [
    Case(
        "MatrixNms-8",
        "nothing",
        partial(opset8.matrix_nms, score_threshold=0.75),
        ONE,
        deviates=Departure("refuses to select nothing; the page selects what there is", "selected_outputs is empty"),
        expected=NO_ROWS,
    ),
    Case(
        "MatrixNms-8",
        "nms_top_k 0",
        partial(opset8.matrix_nms, score_threshold=0.0, nms_top_k=0),
        ONE,
        deviates=Departure("crashes; none is selected then", "nms_top_k = 0"),
        expected=NO_ROWS,
        crashes=True,
    ),
]

test_agrees_with_openvino = conformance(CASES)
