"""What is shared by ops that choose boxes: their order, and which of them hide others."""

import numpy as np
import pytest
from irrun.opsets._boxes import (
    FAR,
    TOGETHER,
    descending,
    ends_of,
    lowest_decays,
    overlaps,
    ranked,
    rotated_overlaps,
    unsuppressed,
    unsuppressed_rotated,
)

NAN, INF = float("nan"), float("inf")


def clustered(rng, count, dtype=np.float32):
    """Boxes around few places; some are the same, some have no area, or a side below 0."""
    centers = rng.integers(0, 4, (count, 2)) + rng.normal(0, 0.1, (count, 2)).round(1)
    sides = rng.normal(0.8, 0.3, (count, 2)).round(1)
    return np.concatenate([centers - sides / 2, centers + sides / 2], 1).astype(dtype)


def slow_unsuppressed(boxes, ends, threshold, pixel=0, across_gaps=False, most=-1, eta=1.0):
    """One box after the other."""
    stays = np.zeros(len(boxes), np.bool_)
    begin = 0
    for end in ends:
        rest, limit, count = np.arange(begin, end), threshold, 0
        while rest.size and count != most:
            best, rest = rest[0], rest[1:]
            stays[best] = True
            count += 1
            limit = limit * eta if eta < 1 and limit > 0.5 else limit
            rest = rest[~(overlaps(boxes[best], boxes[rest], pixel, across_gaps) > limit)]
        begin = end
    return stays


def ends_at_random(rng, count):
    return np.sort([*rng.integers(0, count + 1, 5), count])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"pixel": 1},
        {"pixel": 1, "across_gaps": True},
        {"most": 3},
        {"most": 0},
        {"eta": 0.9},
        {"eta": 0.7, "most": 4},
    ],
    ids=str,
)
def test_boxes_that_stay_are_those_of_a_loop(attrs, dtype):
    rng = np.random.default_rng(7)
    for count in (0, 1, 2, TOGETHER, TOGETHER + 1, 150):
        for threshold in (-0.5, 0.0, 0.3, 0.6, 1.0):
            boxes, ends = clustered(rng, count, dtype), ends_at_random(rng, count)
            if count > 2:
                boxes[rng.integers(0, count)] = NAN
                boxes[rng.integers(0, count), 2] = INF
            with np.errstate(all="ignore"):
                found = unsuppressed(boxes, ends, threshold, **attrs)
                expected = slow_unsuppressed(boxes, ends, threshold, **attrs)
            np.testing.assert_array_equal(found, expected)


def test_boxes_that_stay_of_more_than_are_compared_at_once():
    rng = np.random.default_rng(3)
    boxes = clustered(rng, FAR + 300) + rng.integers(0, 40, (FAR + 300, 1)).astype(np.float32)
    ends = np.array([len(boxes)])
    np.testing.assert_array_equal(unsuppressed(boxes, ends, 0.5), slow_unsuppressed(boxes, ends, 0.5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_descending_is_stable_and_has_nan_last(dtype):
    scores = np.array([1, -0.0, NAN, 0, 1, INF, -1, -INF, 0, -NAN, 1e-45], dtype)
    assert descending(scores).tolist() == [5, 0, 4, 10, 1, 3, 8, 6, 7, 2, 9]
    many = np.random.default_rng(0).integers(-9, 9, 1000).astype(dtype)
    assert descending(many).tolist() == sorted(range(1000), key=lambda i: (-many[i], i))
    assert descending(many[:0]).tolist() == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lying", "CF")
@pytest.mark.parametrize("most", [-1, 0, 1, 4])
def test_ranked_is_by_class_then_score_then_number(dtype, lying, most):
    rng = np.random.default_rng(1)
    for shape in ((0, 5), (3, 0), (1, 1), (5, 64), (70, 33)):
        scores = np.asarray(rng.integers(-3, 4, shape).astype(dtype) * dtype(0.25), order=lying)
        chosen = rng.random(shape) < 0.7
        pairs = []
        for label in range(shape[0]):
            order = sorted(np.flatnonzero(chosen[label]).tolist(), key=lambda i: (-scores[label, i], i))
            pairs += [(label, i) for i in (order if most < 0 else order[:most])]
        labels, indices = ranked(scores, chosen, most)
        assert list(zip(labels.tolist(), indices.tolist(), strict=True)) == pairs
        assert np.diff([0, *ends_of(labels, shape[0])]).tolist() == [
            sum(own == label for own, _ in pairs) for label in range(shape[0])
        ]


@pytest.mark.parametrize("sigma", [None, 0.5])
@pytest.mark.parametrize("pixel", [0, 1])
def test_lowest_decays_are_those_of_a_loop(sigma, pixel):
    rng = np.random.default_rng(2)
    boxes, ends = clustered(rng, 40), [0, 1, 12, 40]
    expected = []
    begin = 0
    for end in ends:
        highest = []
        for j in range(begin, end):
            ious = [float(overlaps(boxes[i], boxes[j], pixel)) for i in range(begin, j)]
            pairs = list(zip(ious, highest, strict=True))
            if sigma is None:
                decays = [(1 - iou) / (1 - high + 1e-10) for iou, high in pairs]
            else:
                decays = [np.exp(sigma * (high * high - iou * iou)) for iou, high in pairs]
            expected.append(min([1.0, *decays]))
            highest.append(max([0.0, *ious]))
        begin = end
    np.testing.assert_allclose(lowest_decays(boxes, np.array(ends), pixel, sigma), expected, rtol=1e-6)


def rotated(rng, count, span, dtype):
    parts = rng.uniform(0, span, (count, 2)), rng.uniform(1, 12, (count, 2)), rng.uniform(-3, 3, (count, 1))
    return np.concatenate(parts, 1).astype(dtype)


@pytest.mark.parametrize(("dtype", "wrong"), [(np.float64, None), *((np.float32, one) for one in (NAN, INF, 0, -1))])
def test_rotated_boxes_that_stay_are_those_of_one_box_after_the_other(dtype, wrong):
    rng = np.random.default_rng(9)
    for count, span in ((0, 5), (1, 5), (40, 12)):
        boxes = rotated(rng, count, span, dtype)
        if wrong is not None and count:
            boxes[rng.integers(count), rng.integers(5)] = wrong
        ends = np.sort([*rng.integers(0, count + 1, 2), count])
        for threshold, most in ((0.0, 200), (0.3, 200), (0.5, 4), (-0.1, 200), (NAN, 200), (0.5, 0)):
            stays, begin = np.zeros(count, np.bool_), 0
            for end in ends:
                rest = np.arange(begin, end)
                for _ in range(min(most, end - begin)):
                    if rest.size:
                        best, rest = rest[0], rest[1:]
                        stays[best] = True
                        with np.errstate(all="ignore"):
                            rest = rest[~(rotated_overlaps(boxes[best], boxes[rest]) > threshold)]
                begin = end
            with np.errstate(all="ignore"):
                found = unsuppressed_rotated(boxes, ends, threshold, most=most)
            np.testing.assert_array_equal(found, stays)


def test_rotated_boxes_that_overlap_enough_are_looked_at_closely():
    rng = np.random.default_rng(10)
    boxes, others = rotated(rng, 90, 20, np.float64), rotated(rng, 90, 20, np.float64)
    exact = rotated_overlaps(boxes[:, None], others[None])
    assert (exact > 0.3).sum() > 20
    for least in (0.1, 0.3, 0.5):
        found = rotated_overlaps(boxes[:, None], others[None], least)
        np.testing.assert_array_equal(found[exact > least], exact[exact > least])
        assert (found <= exact).all()
