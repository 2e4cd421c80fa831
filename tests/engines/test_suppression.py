"""Boxes removed by compiled loops: as the op library's own functions do it."""

import ml_dtypes
import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.opsets import _boxes
from ops.test_boxes import clustered, ends_at_random

from irrun.engines.compiled import soft_suppression, suppression
from irrun.engines.compiled.box_grid import grid_of
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.team import Team
from irrun.spec.dtypes import element_type
from irrun.spec.registry import registry

TEAM = Team(2)
ENGINE = CompiledEngine(2)
NAN, INF = float("nan"), float("inf")


def wild(rng, count):
    boxes = clustered(rng, count)
    for value in (NAN, INF, -INF) if count > 3 else ():
        boxes[rng.integers(0, count), rng.integers(0, 4)] = value
    return boxes


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("pixel", [0, 1])
def test_boxes_that_stay_are_the_same(gaps, pixel):
    rng = np.random.default_rng(5)
    for count in (0, 1, 15, 16, 17, 33, 200):
        for threshold in (-0.5, 0.0, 0.25, 0.7, 1.0, NAN):
            for more in ({}, {"most": 0}, {"most": 5}, {"eta": 0.9}):
                boxes, ends = wild(rng, count), ends_at_random(rng, count)
                given = (boxes, ends, threshold)
                with np.errstate(all="ignore"):
                    expected = _boxes.unsuppressed(*given, pixel=pixel, across_gaps=gaps, **more)
                found = suppression.unsuppressed(TEAM, never, *given, pixel=pixel, across_gaps=gaps, **more)
                np.testing.assert_array_equal(found, expected)


def test_overlaps_at_the_limit_are_judged_alike():
    """Boxes of whole numbers, many of which overlap by just a third, a half, and what f32 has beside them."""
    rng = np.random.default_rng(6)
    corners = rng.integers(0, 6, (400, 2))
    boxes = np.concatenate([corners, corners + rng.integers(1, 5, (400, 2))], axis=1).astype(np.float32)
    for count in (31, 32, 65, 400):
        for exact in (1 / 3, 0.5, 0.25, 2 / 3):
            for threshold in (exact, float(np.float32(exact)), float(np.nextafter(np.float32(exact), np.float32(0)))):
                ends = np.array([count // 3, count])
                expected = _boxes.unsuppressed(boxes[:count], ends, threshold)
                found = suppression.unsuppressed(TEAM, never, boxes[:count], ends, threshold)
                np.testing.assert_array_equal(found, expected)


def test_boxes_whose_areas_are_hardly_numbers():
    rng = np.random.default_rng(8)
    corners = rng.integers(0, 6, (400, 2))
    boxes = np.concatenate([corners, corners + rng.integers(1, 5, (400, 2))], axis=1).astype(np.float32)
    boxes *= np.float32(4e-23)  # areas are a few times the least number
    for threshold in (0.0, 0.4, 0.7):
        for count in (31, 400):
            given = (boxes[:count], np.array([count]), threshold)
            found = suppression.unsuppressed(TEAM, never, *given)
            np.testing.assert_array_equal(found, _boxes.unsuppressed(*given))


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("pixel", [0, 1])
def test_boxes_that_lie_far_apart_are_compared_with_those_near_them(monkeypatch, gaps, pixel):
    """Of whole numbers, so that many touch, and of classes that lie far from one another; some are not in order."""
    monkeypatch.setattr(suppression, "PAIRS", 0)
    rng = np.random.default_rng(8)
    for count, far, odd in (
        (1, 9, 0),
        (40, 90, 0),
        (300, 40, 0),
        (300, 9, 0),
        (700, 900, 0),
        (300, 90, 1),
        (300, 90, 2),
    ):
        corners = rng.integers(0, far, (count, 2)) + 1000 * rng.integers(0, 3, (count, 1))
        boxes = np.concatenate([corners, corners + rng.integers(0, 9, (count, 2))], axis=1).astype(np.float32)
        if odd == 1:
            boxes[rng.integers(0, count, 3)] = [[NAN, 0, 1, 1], [0, -INF, 1, INF], [2, 2, 1, 1]]
        if odd == 2:
            boxes[:, 1::2] = 5, 7
        for threshold in (0.0, 0.25, 1 / 3, 1.0):
            for more in ({}, {"most": 7}, {"eta": 0.9}):
                given = (boxes, np.array([count]), threshold)
                with np.errstate(all="ignore"):
                    expected = _boxes.unsuppressed(*given, pixel=pixel, across_gaps=gaps, **more)
                found = suppression.unsuppressed(TEAM, never, *given, pixel=pixel, across_gaps=gaps, **more)
                np.testing.assert_array_equal(found, expected)


def test_a_grid_has_cells_of_the_size_of_boxes():
    boxes = np.float32([[x, y, x + 1, y + 1] for x in range(0, 32, 2) for y in range(0, 16, 2)])
    grid = grid_of(TEAM, boxes, 0.0)
    assert (grid.columns, grid.rows) == (15, 7)
    assert len(boxes) <= grid.room <= 4 * len(boxes)
    assert grid_of(TEAM, boxes, 40.0) is None
    assert grid_of(TEAM, np.append(boxes, np.float32([[0, 0, NAN, 1]]), axis=0), 0.0) is None


def never(*_, **__):
    raise AssertionError("f32 is compiled")


@pytest.mark.parametrize("sigma", [None, 0.5, 2.0])
@pytest.mark.parametrize("pixel", [0, 1])
def test_decays_are_the_same(sigma, pixel):
    rng = np.random.default_rng(6)
    for count in (0, 1, 16, 17, 120):
        boxes, ends = clustered(rng, count), ends_at_random(rng, count)
        found = soft_suppression.lowest_decays(TEAM, never, boxes, ends, pixel, sigma)
        np.testing.assert_array_equal(found, _boxes.lowest_decays(boxes, ends, pixel, sigma))


def test_scores_fade_alike():
    rng = np.random.default_rng(7)
    for count in (0, 1, 40, 150):
        for most, threshold, limit in ((200, 0.0, np.inf), (5, -0.5, np.inf), (200, 0.2, 0.6), (0, 0.0, 0.5)):
            boxes, scores = clustered(rng, count), rng.integers(-2, 9, count).astype(np.float32) / 8
            boxes, scores = boxes[scores > threshold], scores[scores > threshold]
            given = (boxes, scores, ends_at_random(rng, len(scores)), 0.5, threshold, limit, most)
            chosen, found = soft_suppression.faded(TEAM, never, *given)
            expected, values = _boxes.faded(*given)
            np.testing.assert_array_equal(chosen, expected)
            np.testing.assert_allclose(found, values, rtol=2e-6)


NMS = {"box_encoding": "corner", "sort_result_descending": True, "output_type": "i64"}
MULTICLASS = {"score_threshold": 0.2, "nms_top_k": 20, "keep_top_k": 30, "background_class": 1}
DETECTIONS = {
    "keep_top_k": (30,),
    "top_k": 20,
    "nms_threshold": 0.4,
    "confidence_threshold": 0.2,
    "normalized": True,
    "variance_encoded_in_target": True,
    "share_location": True,
    "code_type": "caffe.PriorBoxParameter.CORNER",
}
PROPOSAL = {
    "base_size": 4,
    "pre_nms_topn": 200,
    "post_nms_topn": 40,
    "nms_thresh": 0.4,
    "feat_stride": 2,
    "min_size": 1,
    "ratio": (0.5, 1.0),
    "scale": (1.0, 2.0),
}
GENERATE = {"min_size": 1.0, "nms_threshold": 0.4, "pre_nms_count": 200, "post_nms_count": 50}
DETECTRON = {
    "score_threshold": 0.2,
    "nms_threshold": 0.4,
    "num_classes": 4,
    "post_nms_count": 20,
    "max_delta_log_wh": 2.0,
    "max_detections_per_image": 30,
    "deltas_weights": (2.0, 2.0, 4.0, 4.0),
}


def cases():
    """Ops with attributes and arrays; scores have ties."""
    rng = np.random.default_rng(8)
    boxes = np.stack([clustered(rng, 60), clustered(rng, 60)])
    scores = rng.integers(0, 9, (2, 3, 60)).astype(np.float32) / 8
    limits = [np.array(most) for most in (10, np.float32(0.4), np.float32(0.1))]
    for version in (1, 3, 4, 5, 9):
        attrs = {name: value for name, value in NMS.items() if version > 1 or name != "output_type"}
        for more in (attrs, attrs | {"sort_result_descending": False, "box_encoding": "center"}):
            yield f"NonMaxSuppression-{version}", more, [boxes, scores, *limits]
    for eta in (1.0, 0.8):
        yield "MulticlassNms-8", MULTICLASS | {"iou_threshold": 0.6, "nms_eta": eta}, [boxes, scores]
        yield (
            "MulticlassNms-9",
            MULTICLASS | {"iou_threshold": 0.6, "nms_eta": eta, "normalized": False},
            [boxes, scores],
        )
    for function in ("linear", "gaussian"):
        yield "MatrixNms-8", MULTICLASS | {"decay_function": function, "post_threshold": 0.1}, [boxes, scores]
    priors = boxes[:1].reshape(1, 1, 240)
    deltas = rng.normal(0, 0.1, (2, 240)).astype(np.float32)
    by_prior = np.ascontiguousarray(scores.swapaxes(1, 2)).reshape(2, 180)
    yield "DetectionOutput-8", DETECTIONS, [deltas, by_prior, priors]
    yield "DetectionOutput-8", DETECTIONS | {"decrease_label_id": True}, [deltas, by_prior, priors]
    yield "DetectionOutput-1", DETECTIONS | {"num_classes": 3}, [deltas, by_prior, priors]
    maps = rng.random((2, 8, 5, 6)).round(2).astype(np.float32), rng.normal(0, 0.3, (2, 16, 5, 6)).astype(np.float32)
    for version in (1, 4):
        yield f"Proposal-{version}", PROPOSAL, [*maps, np.array([12, 14, 1], np.float32)]
    info, anchors = np.array([12, 14, 1], np.float32), clustered(rng, 60) * 3
    shifts, values = rng.normal(0, 0.3, (8, 5, 6)).astype(np.float32), rng.random((2, 5, 6)).round(1).astype(np.float32)
    name = "ExperimentalDetectronGenerateProposalsSingleImage-6"
    yield name, GENERATE, [info, anchors, shifts, values]
    yield "GenerateProposals-9", GENERATE, [info[None], anchors.reshape(5, 6, 2, 4), shifts[None], values[None]]
    regions, likely = clustered(rng, 50) * 3, rng.integers(0, 9, (50, 4)).astype(np.float32) / 8
    arrays = [regions, rng.normal(0, 0.3, (50, 16)).astype(np.float32), likely, info[None]]
    yield "ExperimentalDetectronDetectionOutput-6", DETECTRON, arrays


def with_defaults(name, attrs):
    return registry().ops[name].defaults | attrs


@pytest.mark.parametrize("type", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize(("name", "attrs", "arrays"), list(cases()))
def test_ops_give_what_their_kernels_give(name, attrs, arrays, type):
    arrays = [array.astype(type) if array.dtype.kind == "f" else array for array in arrays]
    attrs = with_defaults(name, attrs)
    op = registry().ops[name]
    symbols = {port.type: element_type(np.dtype(type)) for port in op.outputs if port.type.startswith("T")}
    expected = plain(name, attrs, arrays, symbols)
    expected = expected if isinstance(expected, tuple) else (expected,)
    outputs = [(result.shape, element_type(result.dtype)) for result in expected]
    work = work_of(name, attrs, arrays, outputs, constant=range(2, 5))
    call = ENGINE.open(work)
    assert call is not None
    with np.errstate(all="ignore"):
        found = call(arrays)
    compiled = ENGINE.compile(work)
    assert compiled is not None
    for result, own, again in zip(expected, found, computed(compiled, work, arrays), strict=True):
        assert own.dtype == result.dtype
        np.testing.assert_array_equal(own, result)
        np.testing.assert_array_equal(again, result)


def test_what_the_rule_refuses_is_left_to_who_says_why():
    boxes, scores = np.zeros((1, 4, 4), np.float32), np.zeros((1, 1, 4), np.float32)
    outputs = [((-1, 3), "i64"), ((-1, 3), "f32"), ((1,), "i64")]
    arrays = [boxes, scores, np.array(-1)]
    work = work_of("NonMaxSuppression-9", with_defaults("NonMaxSuppression-9", NMS), arrays, [])
    work.outputs[:] = work_of("", {}, [], [((1, 3), type) for _, type in outputs]).outputs
    call = ENGINE.open(work)
    assert call is not None
    assert call(arrays) is None
    assert call([boxes, scores, np.array(1)]) is not None
