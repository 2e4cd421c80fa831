"""Boxes: overlap, decoding and suppression. A box is its corners (x0, y0, x1, y1) along the last axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from irrun.spec import Array, Size, fresh

MAX_GROWTH = math.log(1000 / 16)
"""The limit of log(new width / width) in region proposals."""

TOGETHER = 32
"""Boxes that are compared with one another at once."""

FAR = 4096
"""Boxes that are compared at once with those that stay of them."""


def overlaps(a: Array, b: Array, pixel: float = 0.0, across_gaps: bool = False) -> Any:
    """Intersection over union, 0 where boxes do not overlap; leading axes broadcast.

    `pixel` is 1 where corners are pixels inside the box, which is then one wider and higher than their difference.
    Boxes less than a pixel apart then overlap only `across_gaps`.
    """
    width, height = (
        _shared_side(a[..., axis], a[..., axis + 2], b[..., axis], b[..., axis + 2], pixel, across_gaps)
        for axis in (0, 1)
    )
    shared = width * height
    union = areas(a, pixel) + areas(b, pixel) - shared
    with np.errstate(divide="ignore", invalid="ignore"):  # to leave out what is not shared takes longer
        return np.where(shared > 0, shared / union, shared.dtype.type(0))


def _shared_side(start: Array, end: Array, other_start: Array, other_end: Array, pixel: float, across: bool) -> Any:
    reach = np.minimum(end, other_end) - np.maximum(start, other_start)
    side = np.maximum(reach + pixel, 0)
    return side if across or not pixel else np.where(reach < 0, 0, side)


def areas(boxes: Array, pixel: float = 0.0) -> Any:
    return (boxes[..., 2] - boxes[..., 0] + pixel) * (boxes[..., 3] - boxes[..., 1] + pixel)


def rotated_overlaps(a: Array, b: Array, least: float = 0.0) -> Any:
    """Intersection over union; leading axes broadcast. Boxes are [..., 5]: center x and y, width, height and angle.

    The angle is in radians and turns the x axis towards the y axis. It is 0 also where boxes are seen not to overlap by
    `least` without looking closely.
    """
    apart = np.hypot(b[..., 0] - a[..., 0], b[..., 1] - a[..., 1])
    reach = np.hypot(a[..., 2], a[..., 3]) + np.hypot(b[..., 2], b[..., 3])
    near = np.nonzero(~(apart > 0.5001 * reach))  # beyond half the diagonals none meets another
    result = np.zeros(apart.shape, a.dtype)
    ones, others = (np.broadcast_to(boxes, (*apart.shape, 5)) for boxes in (a, b))
    mine, theirs = (np.broadcast_to(rotated_corners(boxes), (*apart.shape, 4, 2)) for boxes in (a, b))
    for begin in range(0, len(near[0]), FAR):
        pairs = tuple(places[begin : begin + FAR] for places in near)
        four = ones[pairs], others[pairs], mine[pairs], theirs[pairs]
        may = _may_overlap(*four, least)
        found = tuple(places[may] for places in pairs)
        result[found] = _rotated_overlaps(*(own[may] for own in four))
    return result


def _may_overlap(a: Array, b: Array, mine: Array, theirs: Array, least: float) -> Any:
    """Which of pairs of boxes [n, 5] may overlap by `least`, as do all that are no numbers.

    They share no more than the upright boxes around them, nor than the smaller one has.
    """
    sizes = a[:, 2] * a[:, 3], b[:, 2] * b[:, 3]
    shared: Any = 1.0
    for axis in (0, 1):
        ends = [np.minimum.reduce(own[:, :, axis], 1) for own in (mine, theirs)]
        ends += [np.maximum.reduce(own[:, :, axis], 1) for own in (mine, theirs)]
        low, high = np.maximum(ends[0], ends[1]), np.minimum(ends[2], ends[3])
        slack = 1e-6 * (np.abs(low) + np.abs(high))  # of rounding
        shared = shared * np.maximum(high - low + slack, 0)
    shared = np.minimum(shared, np.minimum(*sizes))
    with np.errstate(divide="ignore", invalid="ignore"):
        return ~(shared / (sizes[0] + sizes[1] - shared) < least - 1e-5)


def _rotated_overlaps(a: Array, b: Array, mine: Array, theirs: Array) -> Any:
    """Of pairs of boxes [n, 5], with their corners [n, 4, 2]."""
    crossings, cross = _crossings(mine, theirs)
    points = np.concatenate([crossings, mine, theirs], 1)
    found = np.concatenate([cross, _inside(mine, b), _inside(theirs, a)], 1)
    shared = _hull_areas(points, found)
    sizes = a[:, 2] * a[:, 3], b[:, 2] * b[:, 3]
    proper = (sizes[0] > 0) & (sizes[1] > 0)
    return np.divide(shared, sizes[0] + sizes[1] - shared, out=np.zeros_like(shared), where=proper)


def rotated_corners(boxes: Array) -> Any:
    """The corners [..., 4, 2] of rotated boxes [..., 5], in order around each box."""
    x, y, width, height, angle = (boxes[..., i, None] for i in range(5))
    cos, sin = np.cos(angle), np.sin(angle)
    right = np.array([1, -1, -1, 1]) * width / 2
    down = np.array([1, 1, -1, -1]) * height / 2
    return np.stack([x + right * cos - down * sin, y + right * sin + down * cos], -1)


def _crossings(a: Array, b: Array) -> tuple[Array, Array]:
    """The points [n, 16, 2] where the edges of two polygons meet, and which of them exist."""
    edges_a, edges_b = np.roll(a, -1, 1) - a, np.roll(b, -1, 1) - b
    apart = b[:, None] - a[:, :, None]
    denominator = _cross(edges_a[:, :, None], edges_b[:, None])
    with np.errstate(all="ignore"):  # parallel edges: their corners count
        along_a = _cross(apart, edges_b[:, None]) / denominator
        along_b = _cross(apart, edges_a[:, :, None]) / denominator
    meet = (along_a >= 0) & (along_a <= 1) & (along_b >= 0) & (along_b <= 1)
    points = a[:, :, None] + np.where(meet, along_a, 0)[..., None] * edges_a[:, :, None]
    return points.reshape(len(a), 16, 2), meet.reshape(len(a), 16)


def _inside(corners: Array, boxes: Array) -> Any:
    """Which of the corners [n, 4, 2] lie in the rotated box of their row."""
    x, y = corners[..., 0] - boxes[:, 0, None], corners[..., 1] - boxes[:, 1, None]
    cos, sin = np.cos(boxes[:, 4, None]), np.sin(boxes[:, 4, None])
    width, height = boxes[:, 2, None], boxes[:, 3, None]
    tolerance = 1e-9 * (np.abs(width) + np.abs(height))
    across, down = np.abs(x * cos + y * sin), np.abs(y * cos - x * sin)
    return (across <= width / 2 + tolerance) & (down <= height / 2 + tolerance)


def _hull_areas(points: Array, found: Array) -> Any:
    """The area of the convex polygon on the points [n, m, 2] that are `found`."""
    first = points[np.arange(len(points)), found.argmax(1)]
    points = np.where(found[..., None], points, first[:, None])
    middle = points.sum(1, keepdims=True) / max(points.shape[1], 1)
    around = points - middle
    order = np.argsort(np.arctan2(around[..., 1], around[..., 0]), 1)
    ring = np.take_along_axis(around, order[..., None], 1)
    area = np.abs(_cross(ring, np.roll(ring, -1, 1)).sum(1)) / 2
    return np.where(found.any(1), area, 0)


def _cross(a: Array, b: Array) -> Any:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def descending(scores: Array) -> Any:
    """The order from the highest score to the lowest, NaN last; of equal ones the first comes first."""
    if scores.dtype != np.float32 or len(scores) >= 1 << 31:
        return np.argsort(-scores, kind="stable")
    return np.sort(_falling(scores) << 31 | np.arange(len(scores))) & ((1 << 31) - 1)


def ranked(scores: Array, chosen: Array, most: int = -1) -> tuple[Array, Array]:
    """The classes and boxes that are `chosen` among scores [classes, boxes], none of them NaN.

    They come by class, the highest score first, of equal ones the first; `most` of each class at most, unless that is
    below 0.
    """
    classes, boxes = scores.shape
    if scores.strides[0] < scores.strides[1]:  # behind a transposition: to bring all in order takes longer
        places = np.flatnonzero(chosen.T)
        indices = places // classes
        labels = places - indices * classes
        order = np.argsort(labels.astype(np.uint16) if classes < 1 << 16 else labels, kind="stable")
        labels, indices = labels[order], indices[order]
        found = scores[labels, indices]
        ends = np.searchsorted(labels, np.arange(classes), "right")
    else:
        places = np.flatnonzero(chosen)
        found = scores.reshape(-1)[places]
        ends = np.searchsorted(places, np.arange(1, classes + 1) * boxes)
        labels = np.repeat(np.arange(classes), np.ediff1d(ends, to_begin=ends[:1]))
        indices = places - labels * boxes
    counts = np.ediff1d(ends, to_begin=ends[:1])  # np.diff takes five times as long for so few
    bits = max(boxes - 1, 1).bit_length()
    if scores.dtype == np.float32 and 32 + bits < 64:
        keys = _falling(found) << bits | indices  # quicker than to sort indirectly
        for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
            keys[end - count : end].sort()
        indices = keys & ((1 << bits) - 1)
    else:
        indices = indices[np.lexsort((-found, labels))]
    if most >= 0:
        chosen = np.arange(len(labels)) - np.repeat(ends - counts, counts) < most
        labels, indices = labels[chosen], indices[chosen]
    return labels, indices


def _falling(scores: Array) -> Any:
    """Integers below 2**32 in the order of f32, the highest first; equal ones for equal scores."""
    numbers = 0 - scores  # -0 becomes 0
    bits = numbers.view(np.int32)
    bits = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # negative numbers are stored as sign and magnitude
    bits[numbers != numbers] = 0x7FFFFFFF
    return bits.astype(np.int64) + (1 << 31)


def ends_of(labels: Array, classes: int) -> Any:
    """Where each class ends in a list of `labels` that is ordered by class."""
    return np.searchsorted(labels, np.arange(classes), "right")


def unsuppressed(
    boxes: Array,
    ends: Array,
    threshold: float,
    *,
    pixel: float = 0.0,
    across_gaps: bool = False,
    most: int = -1,
    eta: float = 1.0,
) -> Array:
    """Which boxes stay: those that no box of their group that stays before them overlaps by more than `threshold`.

    Groups of boxes follow one another, each up to one of the `ends`; they stand in the order of their rank, and `most`
    of each group stay at most, unless that is below 0. While the threshold is above 0.5, every box of a group that
    stays multiplies it by `eta`, for itself too. `pixel` and `across_gaps` are those of `overlaps`.
    """
    overlap = partial(overlaps, pixel=pixel, across_gaps=across_gaps)
    stays = np.zeros(len(boxes), np.bool_)
    for begin, end in pairwise([0, *ends.tolist()]):
        stays[begin + taken(boxes[begin:end], threshold, overlap, most, eta)] = True
    return stays


def unsuppressed_rotated(boxes: Array, ends: Array, threshold: float, *, most: int) -> Array:
    """As `unsuppressed`, of rotated boxes [n, 5]."""
    overlap = partial(rotated_overlaps, least=threshold)
    stays = np.zeros(len(boxes), np.bool_)
    for begin, end in pairwise([0, *ends.tolist()]):
        stays[begin + taken(boxes[begin:end], threshold, overlap, most)] = True
    return stays


Suppress = Callable[..., Array]
"""What `unsuppressed` is, or something quicker that gives the same."""


def taken(
    boxes: Array,
    threshold: float,
    overlap: Callable[[Array, Array], Any],
    most: int = -1,
    eta: float = 1.0,
    together: int = TOGETHER,
) -> Array:
    """The indices of the boxes of one group that stay, as `unsuppressed` has it.

    `together` boxes are compared with one another at once, and those that stay of them with all behind them.
    """
    found: list[int] = []
    rest = np.arange(len(boxes))
    while rest.size and len(found) != most:
        falling = eta < 1 and threshold > 0.5
        threshold = threshold * eta if falling else threshold
        some, rest = np.split(rest, [1 if falling else together])
        near = boxes[some]
        hidden = overlap(near[:, None], near[None]) > threshold
        bits = np.where(hidden, 1 << np.arange(len(some)), 0).sum(1).tolist()
        there = -1  # a bit for each of them that is not hidden
        best: list[int] = []
        for number, hides in enumerate(bits):
            if there >> number & 1 and len(found) + len(best) != most:
                best.append(number)
                there &= ~hides
        found += some[best].tolist()
        stays = np.ones(len(rest), np.bool_)
        for cut in (slice(begin, begin + FAR) for begin in range(0, len(rest), FAR)):
            stays[cut] = ~(overlap(near[best, None], boxes[rest[cut]][None]) > threshold).any(0)
        rest = rest[stays]
    return np.array(found, np.int64)


def lowest_decays(boxes: Array, ends: Array, pixel: float, sigma: float | None) -> Any:
    """By how much better boxes that they overlap lower the scores of boxes, in groups as `unsuppressed` has them.

    That is the lowest of (1 - iou) / (1 - highest iou of that box with better ones), or of exp(sigma * (that² - iou²)),
    and 1 for the first one.
    """
    lowest = np.ones(len(boxes), boxes.dtype)
    for begin, end in pairwise([0, *ends.tolist()]):
        near = boxes[begin:end]
        iou = np.triu(overlaps(near[:, None], near[None], pixel), 1)
        highest = iou.max(0, initial=0)[:, None]
        worse = np.triu(np.ones(iou.shape, np.bool_), 1)
        if sigma is None:
            decay = ((1 - iou.astype(np.float64)) / (1 - highest.astype(np.float64) + 1e-10)).astype(iou.dtype)
            lowest[begin:end] = np.where(worse, decay, 1).min(0, initial=1)
        else:
            exponent = (highest * highest - iou * iou) * iou.dtype.type(sigma)
            lowest[begin:end] = np.exp(np.where(worse, exponent, 0).min(0, initial=0))
    return lowest


def faded(
    boxes: Array, scores: Array, ends: Array, sigma: float, score_threshold: float, iou_threshold: float, most: int
) -> tuple[Array, Array]:
    """The indices of the boxes that stay above `score_threshold`, and their scores, group by group in the order taken.

    Groups are as `unsuppressed` has them, of boxes whose scores are above the threshold. Each box taken multiplies the
    scores of the others of its group by exp(-iou² / (2 * sigma)), and removes those that it overlaps by more than
    `iou_threshold`; `most` of each group are taken at most.
    """
    chosen: list[int] = []
    found: list[Any] = []
    for begin, end in pairwise([0, *ends.tolist()]):
        rest, values, near = np.arange(begin, end), scores[begin:end], boxes[begin:end]
        count = 0
        while rest.size and count < most:
            best = int(values.argmax())
            chosen.append(int(rest[best]))
            found.append(values[best])
            count += 1
            iou = overlaps(near[best], near)
            values = values * np.exp(iou * iou * iou.dtype.type(-0.5 / sigma))
            stays = (values > score_threshold) & ~(iou > iou_threshold)
            stays[best] = False
            rest, values, near = rest[stays], values[stays], near[stays]
    return np.array(chosen, np.int64), np.array(found, scores.dtype)


def moved(boxes: Array, deltas: Array, pixel: float, closed: bool = True, most: float = math.inf) -> Any:
    """Boxes shifted by their width and height times (dx, dy), and grown to exp(dw) and exp(dh) times of them.

    `pixel` is that of `overlaps`; a `closed` result is given in the same way, another by its outer edges. `most`
    limits dw and dh.
    """
    sizes = boxes[..., 2:] - boxes[..., :2] + pixel
    centers = boxes[..., :2] + 0.5 * sizes
    centers = deltas[..., :2] * sizes + centers
    with np.errstate(over="ignore"):
        sizes = np.exp(np.minimum(deltas[..., 2:], most)) * sizes
    ends = centers + 0.5 * sizes - (pixel if closed else 0)
    return np.concatenate([centers - 0.5 * sizes, ends], -1)


def clipped(boxes: Array, height: float, width: float) -> Any:
    """Boxes cut off at (0, 0) and at (width, height)."""
    return np.maximum(np.minimum(boxes, np.array([width, height, width, height], boxes.dtype)), 0)


def filled(rows: Array, count: int) -> Any:
    """The first `count` rows, with zeros where there are fewer."""
    result = np.zeros((count, *rows.shape[1:]), rows.dtype)
    result[: len(rows)] = rows[:count]
    return result


def up_to(most: Size) -> Size:
    """An unknown number of results, `most` at most."""
    high = most if isinstance(most, int) else most.high
    return 0 if high == 0 else fresh(0, high)
