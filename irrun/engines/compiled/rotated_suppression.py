"""Rotated boxes that better ones hide (rotated NMS), found by compiled loops.

These cut one box along the edges of the other one, where the op library looks for the corners of what they share. Both
are right but for rounding: a group in which that may matter is left to the op library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import Bytes, Doubles, Longs, looped
from irrun.engines.compiled.team import Team
from irrun.spec.op import Array

SMALLEST = 1e-5
"""A threshold that is not below leaves room for what rounding makes of boxes that touch."""

CLOSE = 1e-6
"""How near to the threshold an overlap is that either way of computing it may see on the other side."""

SLENDER, FAR = 1e-8, 1e-14
"""The same for each time that the longer side of a box is as long as the other one, and that it is away from zero."""

MOST = 1e60
"""Numbers that are no larger have products of four."""

CORNERS, MIDDLE, REACH, AREA, DOUBT, FORM = 0, 8, 10, 12, 13, 14
"""What is known of a box: x and y of its corners around its middle, that, half of the upright box around it, its area,
how doubtful its overlaps are; and of how many numbers that is."""

ROOM = 64
"""Corners of what is left of a box, at most, were each cut to double them."""

PAIR_NANOSECONDS = 10.0
"""What two boxes of a group take about that are compared with one another."""


def keep_unsuppressed(
    begin: int,
    end: int,
    forms: Doubles,
    ends: Longs,
    kept: Longs,
    stays: Bytes,
    unsure: Bytes,
    most: int,
    threshold: float,
) -> None:
    """Groups of boxes, from ends[group] to ends[group + 1]; `kept` has room for the numbers of those that stay."""
    for group in range(begin, end):
        first = ends[group]
        count = 0
        for number in range(first, ends[group + 1]):
            if count == most or unsure[group] != 0:
                break
            hidden = 0
            for place in range(first, first + count):
                if hidden == 0:
                    other = kept[place]
                    doubt = CLOSE + forms[other * FORM + DOUBT] + forms[number * FORM + DOUBT]
                    iou = overlap(forms, other * FORM, number * FORM, threshold - doubt)
                    hidden = int(iou > threshold)
                    if abs(iou - threshold) <= doubt:
                        unsure[group] = 1
            if hidden == 0:
                kept[first + count] = number
                stays[number] = 1
                count = count + 1


def overlap(forms: Doubles, a: int, b: int, least: float) -> float:
    """Intersection over union of two boxes; 0 where it is easily seen to be below `least`."""
    x, y = forms[b + MIDDLE] - forms[a + MIDDLE], forms[b + MIDDLE + 1] - forms[a + MIDDLE + 1]
    wide, high = forms[a + REACH] + forms[b + REACH] - abs(x), forms[a + REACH + 1] + forms[b + REACH + 1] - abs(y)
    total = forms[a + AREA] + forms[b + AREA]
    result = 0.0
    if wide > 0 and high > 0:
        shared = np.minimum(wide * high, np.minimum(forms[a + AREA], forms[b + AREA]))
        if shared > 0 and shared >= least * (total - shared):
            shared = shared_area(forms, a, b, x, y)
            result = shared / (total - shared)
    return result


def shared_area(forms: Doubles, a: int, b: int, x: float, y: float) -> float:
    """The area that two boxes have in common, the middle of `b` being [x, y] away from that of `a`."""
    points = np.empty(2 * ROOM, np.float64)
    fewer = np.empty(2 * ROOM, np.float64)
    count = 4
    for corner in range(4):
        points[2 * corner] = forms[b + 2 * corner] + x
        points[2 * corner + 1] = forms[b + 2 * corner + 1] + y
    for edge in range(4):
        from_x, from_y = forms[a + 2 * edge], forms[a + 2 * edge + 1]
        next_edge = 0 if edge == 3 else edge + 1
        along_x, along_y = forms[a + 2 * next_edge] - from_x, forms[a + 2 * next_edge + 1] - from_y
        left = 0
        for point in range(count):
            last = count - 1 if point == 0 else point - 1
            own_x, own_y, last_x, last_y = (
                points[2 * point],
                points[2 * point + 1],
                points[2 * last],
                points[2 * last + 1],
            )
            own = along_x * (own_y - from_y) - along_y * (own_x - from_x)
            before = along_x * (last_y - from_y) - along_y * (last_x - from_x)
            if (own < 0) != (before < 0):
                part = before / (before - own)
                fewer[2 * left] = last_x + part * (own_x - last_x)
                fewer[2 * left + 1] = last_y + part * (own_y - last_y)
                left = left + 1
            if own >= 0:
                fewer[2 * left] = own_x
                fewer[2 * left + 1] = own_y
                left = left + 1
        count = left
        for point in range(2 * count):
            points[point] = fewer[point]
    twice = 0.0
    for point in range(count):
        last = count - 1 if point == 0 else point - 1
        twice = twice + points[2 * last] * points[2 * point + 1] - points[2 * point] * points[2 * last + 1]
    return abs(twice) / 2.0


def unsuppressed_rotated(
    team: Team, plain: Callable[..., Array], boxes: Array, ends: Array, threshold: float, *, most: int
) -> Array:
    """What `plain`, the op library's own, gives: which boxes [n, 5] of groups stay."""
    if not (threshold >= SMALLEST and (np.abs(boxes) < MOST).all() and (boxes[:, 2:4] >= 0).all()):
        return plain(boxes, ends, threshold, most=most)
    total = len(boxes)
    stays, unsure = np.zeros(total, np.bool_), np.zeros(len(ends), np.bool_)
    bounds = np.array([0, *ends.tolist()], np.int64)
    flags = stays.view(np.uint8), unsure.view(np.uint8)
    arguments = (_forms(boxes), bounds, np.empty(total, np.int64), *flags, most, float(threshold))
    nanoseconds = float((np.diff(bounds) ** 2).sum()) * PAIR_NANOSECONDS
    looped(team, keep_unsuppressed, arguments, len(ends), nanoseconds)()
    for group in np.flatnonzero(unsure):
        own = slice(bounds[group], bounds[group + 1])
        stays[own] = plain(boxes[own], bounds[group + 1 : group + 2] - bounds[group], threshold, most=most)
    return stays


def _forms(boxes: Array) -> Any:
    """What is known of boxes: [n, FORM]."""
    wide = boxes.astype(np.float64, copy=False)
    forms = np.empty((len(boxes), FORM))
    width, height = wide[:, 2, None], wide[:, 3, None]
    right, down = np.array([1, -1, -1, 1]) * width / 2, np.array([1, 1, -1, -1]) * height / 2
    cos, sin = np.cos(wide[:, 4, None]), np.sin(wide[:, 4, None])
    corners = forms[:, CORNERS:MIDDLE].reshape(-1, 4, 2)
    corners[..., 0], corners[..., 1] = right * cos - down * sin, right * sin + down * cos
    forms[:, MIDDLE:REACH] = wide[:, :2]
    forms[:, REACH:AREA] = np.abs(corners).max(1)
    forms[:, AREA] = wide[:, 2] * wide[:, 3]
    with np.errstate(all="ignore"):
        doubt = (SLENDER * wide[:, 2:4].max(1) + FAR * np.abs(wide[:, :2]).sum(1)) / wide[:, 2:4].min(1)
    forms[:, DOUBT] = np.where(forms[:, AREA] > 0, doubt, 0)
    return forms
