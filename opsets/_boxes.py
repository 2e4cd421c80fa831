"""Boxes: overlap, decoding and suppression. A box is its corners (x0, y0, x1, y1) along the last axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.spec import Array, Size, fresh

MAX_GROWTH = math.log(1000 / 16)
"""The limit of log(new width / width) in region proposals."""


def overlaps(a: Array, b: Array, pixel: float = 0.0, across_gaps: bool = False) -> Any:
    """Intersection over union, 0 where boxes do not overlap; leading axes broadcast.

    `pixel` is 1 where corners are pixels inside the box, which is then one wider and higher than their difference.
    Boxes less than a pixel apart then overlap only `across_gaps`.
    """
    reach = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    sides = np.maximum(reach + pixel, 0)
    if not across_gaps:
        sides = np.where(reach < 0, 0, sides)
    shared = sides[..., 0] * sides[..., 1]
    union = areas(a, pixel) + areas(b, pixel) - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=shared > 0)


def areas(boxes: Array, pixel: float = 0.0) -> Any:
    return (boxes[..., 2] - boxes[..., 0] + pixel) * (boxes[..., 3] - boxes[..., 1] + pixel)


def rotated_overlaps(box: Array, others: Array) -> Any:
    """Intersection over union of a box [5] with many [n, 5]: center x and y, width, height and angle in radians.

    The angle turns the x axis towards the y axis.
    """
    mine, theirs = np.broadcast_to(rotated_corners(box), (len(others), 4, 2)), rotated_corners(others)
    crossings, cross = _crossings(mine, theirs)
    points = np.concatenate([crossings, mine, theirs], 1)
    found = np.concatenate([cross, _inside(mine, others), _inside(theirs, box[None])], 1)
    shared = _hull_areas(points, found)
    sizes = box[2] * box[3], others[:, 2] * others[:, 3]
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
    """The order from the highest score to the lowest; of equal ones the first comes first."""
    return np.argsort(-scores, kind="stable")


def unsuppressed(
    boxes: Array,
    threshold: float,
    overlap: Callable[[Array, Array], Any] = overlaps,
    most: int | None = None,
    eta: float = 1.0,
) -> Array:
    """The indices of the boxes that no earlier one of them overlaps by more than `threshold`, `most` at most.

    The boxes stand in the order of their rank. While the threshold is above 0.5, every box taken multiplies it by
    `eta`, for itself too.
    """
    taken: list[int] = []
    rest = np.arange(len(boxes))
    while rest.size and len(taken) != most:
        best, rest = rest[0], rest[1:]
        taken.append(int(best))
        if eta < 1 and threshold > 0.5:
            threshold *= eta
        rest = rest[~(overlap(boxes[best], boxes[rest]) > threshold)]
    return np.array(taken, np.int64)


def faded(
    boxes: Array, scores: Array, sigma: float, score_threshold: float, iou_threshold: float, most: int
) -> tuple[Array, Array]:
    """The indices of the boxes that stay above `score_threshold` and their scores, in the order taken.

    Each box taken multiplies the scores of the others by exp(-iou² / (2 * sigma)), and removes those that it overlaps
    by more than `iou_threshold`.
    """
    rest = np.flatnonzero(scores > score_threshold)
    values = scores[rest]
    taken: list[int] = []
    found: list[Any] = []
    while rest.size and len(taken) < most:
        best = int(values.argmax())
        box = boxes[rest[best]]
        taken.append(int(rest[best]))
        found.append(values[best])
        rest, values = np.delete(rest, best), np.delete(values, best)
        iou = overlaps(box, boxes[rest])
        values = values * np.exp(iou * iou * iou.dtype.type(-0.5 / sigma))
        stays = (values > score_threshold) & ~(iou > iou_threshold)
        rest, values = rest[stays], values[stays]
    return np.array(taken, np.int64), np.array(found, scores.dtype)


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
