"""Rotated boxes removed by compiled loops: as the op library's own function does it."""

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.opsets import _boxes
from ops.test_boxes import ends_at_random, rotated

from irrun.engines.compiled import rotated_suppression
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.team import Team
from irrun.engines.work import Operand, Work
from irrun.spec.registry import registry

TEAM = Team(2)
NAN, INF = float("nan"), float("inf")


def both(boxes, ends, threshold, most, plain=_boxes.unsuppressed_rotated):
    with np.errstate(all="ignore"):
        expected = _boxes.unsuppressed_rotated(boxes, ends, threshold, most=most)
        found = rotated_suppression.unsuppressed_rotated(TEAM, plain, boxes, ends, threshold, most=most)
    np.testing.assert_array_equal(found, expected)
    return found


def never(*_, **__):
    raise AssertionError("nothing is doubtful")


def test_boxes_that_stay_are_the_same():
    rng = np.random.default_rng(1)
    for count, span in ((0, 9), (1, 9), (2, 3), (60, 20), (150, 60), (150, 500)):
        for threshold in (0.01, 0.3, 0.5, 0.9):
            for most in (200, 5, 0):
                boxes, ends = rotated(rng, count, span, np.float64), ends_at_random(rng, count)
                boxes[:, 2] *= rng.choice([1, 1, 20], count)
                both(boxes, ends, threshold, most, never)


@pytest.mark.parametrize("wrong", [NAN, INF, -1.0, 0.0, 1e80, 1e16])
def test_boxes_that_are_no_boxes_or_far_away_are_judged_alike(wrong):
    rng = np.random.default_rng(2)
    for place in range(5):
        boxes = rotated(rng, 40, 12, np.float64)
        boxes[rng.integers(40, size=3), place] = wrong
        both(boxes, np.array([15, 40]), 0.3, 200)


@pytest.mark.parametrize("threshold", [0.0, -0.5, 1.0, NAN])
def test_thresholds_that_no_overlap_passes_or_every_one_does(threshold):
    both(rotated(np.random.default_rng(3), 40, 12, np.float64), np.array([40]), threshold, 200)


def test_overlaps_at_the_limit_are_left_to_the_op_library():
    """Boxes of whole numbers, many of which overlap by just a third or a half, and some that are the same."""
    rng = np.random.default_rng(4)
    angles = rng.choice([0, np.pi / 2, np.pi, 1], (200, 1))
    boxes = np.concatenate([rng.integers(0, 12, (200, 2)), rng.integers(1, 5, (200, 2)) * 2, angles], 1)
    asked = []

    def plain(*arrays, **limits):
        asked.append(len(arrays[0]))
        return _boxes.unsuppressed_rotated(*arrays, **limits)

    for threshold in (1 / 3, 0.5, 0.25, 2 / 3, float(np.float32(1 / 3))):
        both(boxes, np.array([70, 200]), threshold, 200, plain)
    assert asked


def test_a_box_that_lies_within_another_one_or_touches_it():
    boxes = np.array([[5, 5, 8, 8, 0.3], [5, 5, 2, 2, 1.0], [5, 5, 8, 8, 0.3 + np.pi / 2], [20, 5, 2, 2, 0]])
    assert both(boxes, np.array([4]), 0.05, 9, never).tolist() == [True, False, False, True]
    assert both(boxes, np.array([4]), 0.1, 9, never).tolist() == [True, True, False, True]


def test_the_op_is_computed_with_compiled_loops(monkeypatch):
    rng = np.random.default_rng(5)
    boxes = rotated(rng, 300, 60, np.float32).reshape(2, 150, 5)
    arrays = [boxes, rng.random((2, 3, 150), np.float32), np.array(40), np.float32(0.3), np.float32(0.1)]
    op = registry().ops["NMSRotated-13"]
    expected = op.kernel(*arrays, **op.defaults)
    given = [Operand("f32", (2, 150, 5), boxes.strides), Operand("f32", (2, 3, 150), arrays[1].strides)]
    limits = [
        Operand(kind, (), (), np.asarray(array)) for kind, array in zip(("i64", "f32", "f32"), arrays[2:], strict=True)
    ]
    outputs = [Operand(kind, (-1,) * rank, (4,) * rank) for kind, rank in (("i64", 2), ("f32", 2), ("i64", 1))]
    monkeypatch.setattr(_boxes, "taken", never)
    call = CompiledEngine(2).open(Work(op.name, op.defaults, [*given, *limits], outputs))
    assert call is not None
    for found, wanted in zip(call(arrays), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
