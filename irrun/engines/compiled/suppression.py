"""Boxes that better ones hide, or whose scores they lower, found by compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import Bytes, Doubles, Floats, Longs, looped
from irrun.engines.compiled.team import Team
from irrun.spec.op import Array

TOGETHER = 32
"""Boxes that stay with which one is compared before it is asked whether it is hidden."""

BELOW = 1 - 1e-6
"""Part of a limit that a quotient is not above, rounded or not, if its dividend is not above that of the divisor."""

BOX_NANOSECONDS = 60.0
"""What a box takes about."""

PAIR_NANOSECONDS = 2.0
"""What two boxes of a group take about that are compared with one another."""


def keep_unsuppressed(
    begin: int,
    end: int,
    boxes: Floats,
    ends: Longs,
    kept: Floats,
    stays: Bytes,
    total: int,
    most: int,
    threshold: float,
    eta: float,
    pixel: float,
) -> None:
    """Groups of boxes [total, 4], from ends[group] to ends[group + 1]; `kept` [7, total] are what is compared with.

    Most overlap too little by far, which takes no division to see; only where that is not so it is made.
    """
    one = np.float32(pixel)
    over = np.empty(TOGETHER, np.float32)
    for group in range(begin, end):
        first, last = ends[group], ends[group + 1]
        count = 0
        limit = threshold
        for number in range(first, last):
            if count == most:
                break
            x0, y0, x1, y1 = boxes[4 * number], boxes[4 * number + 1], boxes[4 * number + 2], boxes[4 * number + 3]
            area = (x1 - x0 + one) * (y1 - y0 + one)
            hidden = 0
            start = first
            while start < first + count and hidden == 0:
                stop = min(start + TOGETHER, first + count)
                near = int(limit < 0)
                for other in range(start, stop):
                    shared = shared_by(kept, total, other, x0, y0, x1, y1, one)
                    union = kept[4 * total + other] + area - shared
                    over[other - start] = shared - kept[6 * total + other] * union
                for place in range(stop - start):
                    near = near | int(over[place] > 0)
                if near != 0:
                    for other in range(start, stop):
                        shared = shared_by(kept, total, other, x0, y0, x1, y1, one)
                        union = kept[4 * total + other] + area - shared
                        iou = shared / union if shared > 0 else np.float32(0)
                        hidden = hidden | int(iou > kept[5 * total + other])
                start = stop
            if hidden == 0:
                if eta < 1 and limit > 0.5:
                    limit = limit * eta
                place = first + count
                kept[place], kept[total + place], kept[2 * total + place], kept[3 * total + place] = x0, y0, x1, y1
                kept[4 * total + place], kept[5 * total + place] = area, np.float32(limit)
                kept[6 * total + place] = np.float32(limit * BELOW)
                stays[number] = 1
                count = count + 1


def shared_by(
    kept: Floats,
    total: int,
    other: int,
    x0: np.float32,
    y0: np.float32,
    x1: np.float32,
    y1: np.float32,
    one: np.float32,
) -> np.float32:
    """What a box that is kept has in common with another one."""
    across = np.minimum(kept[2 * total + other], x1) - np.maximum(kept[other], x0)
    down = np.minimum(kept[3 * total + other], y1) - np.maximum(kept[total + other], y0)
    width, height = np.maximum(across + one, 0), np.maximum(down + one, 0)
    if not ACROSS_GAPS:
        width = np.float32(0) if across < 0 else width
        height = np.float32(0) if down < 0 else height
    shared: np.float32 = width * height
    return shared


ACROSS_GAPS = False
"""Whether boxes less than a pixel apart overlap."""


def unsuppressed(
    team: Team,
    plain: Callable[..., Array],
    boxes: Array,
    ends: Array,
    threshold: float,
    *,
    pixel: float = 0.0,
    across_gaps: bool = False,
    most: int = -1,
    eta: float = 1.0,
) -> Array:
    """What `plain`, the op library's own, gives: which boxes [n, 4] of groups stay."""
    if boxes.dtype != np.float32:
        return plain(boxes, ends, threshold, pixel=pixel, across_gaps=across_gaps, most=most, eta=eta)
    total = len(boxes)
    stays = np.zeros(total, np.bool_)
    bounds = np.array([0, *ends.tolist()], np.int64)
    kept = np.empty((7, total), np.float32)
    arguments = (np.ascontiguousarray(boxes), bounds, kept, stays.view(np.uint8), total, most)
    numbers = float(threshold), float(eta), float(pixel)
    nanoseconds = total * BOX_NANOSECONDS if len(ends) > 1 else 0
    constants = {"ACROSS_GAPS": bool(across_gaps)}
    looped(team, keep_unsuppressed, (*arguments, *numbers), len(ends), nanoseconds, **constants)()
    return stays


def find_lowest_decays(
    begin: int,
    end: int,
    boxes: Floats,
    ends: Longs,
    highest: Floats,
    lowest: Floats,
    total: int,
    pixel: float,
    sigma: float,
) -> None:
    """Groups of boxes [4, total]: decays, or their exponents where they are GAUSSIAN; `highest` are the overlaps."""
    one = np.float32(pixel)
    for group in range(begin, end):
        for number in range(ends[group], ends[group + 1]):
            most = np.float32(0)
            for other in range(ends[group], number):
                most = np.maximum(most, overlap(boxes, total, other, number, one))
            highest[number] = most
        for number in range(ends[group], ends[group + 1]):
            if GAUSSIAN:
                least = np.float32(0)
                for other in range(ends[group], number):
                    iou = overlap(boxes, total, other, number, one)
                    least = np.minimum(least, (highest[other] * highest[other] - iou * iou) * np.float32(sigma))
            else:
                least = np.float32(1)
                for other in range(ends[group], number):
                    rest = 1.0 - float(overlap(boxes, total, other, number, one))
                    least = np.minimum(least, np.float32(rest / (1.0 - float(highest[other]) + 1e-10)))
            lowest[number] = least


def overlap(boxes: Floats, total: int, first: int, second: int, pixel: np.float32) -> np.float32:
    """Intersection over union of two boxes of [4, total]."""
    x0, y0, x1, y1 = boxes[first], boxes[total + first], boxes[2 * total + first], boxes[3 * total + first]
    u0, v0, u1, v1 = boxes[second], boxes[total + second], boxes[2 * total + second], boxes[3 * total + second]
    across, down = np.minimum(x1, u1) - np.maximum(x0, u0), np.minimum(y1, v1) - np.maximum(y0, v0)
    width = np.float32(0) if across < 0 else np.maximum(across + pixel, 0)
    height = np.float32(0) if down < 0 else np.maximum(down + pixel, 0)
    shared = width * height
    union = (x1 - x0 + pixel) * (y1 - y0 + pixel) + (u1 - u0 + pixel) * (v1 - v0 + pixel) - shared
    return shared / union if shared > 0 else np.float32(0)


GAUSSIAN = False
"""Whether decays are powers of e."""


def lowest_decays(
    team: Team, plain: Callable[..., Array], boxes: Array, ends: Array, pixel: float, sigma: float | None
) -> Any:
    """What `plain`, the op library's own, gives."""
    if boxes.dtype != np.float32:
        return plain(boxes, ends, pixel, sigma)
    total = len(boxes)
    highest, lowest = np.empty((2, total), np.float32)
    bounds = np.array([0, *ends.tolist()], np.int64)
    sizes = np.diff(bounds)
    arguments = (np.ascontiguousarray(boxes.T), bounds, highest, lowest, total, float(pixel), float(sigma or 0))
    nanoseconds = float(sizes @ sizes) * PAIR_NANOSECONDS
    looped(team, find_lowest_decays, arguments, len(ends), nanoseconds, GAUSSIAN=sigma is not None)()
    return lowest if sigma is None else np.exp(lowest)


def fade(
    begin: int,
    end: int,
    boxes: Floats,
    values: Floats,
    chosen: Longs,
    found: Floats,
    powers: Doubles,
    taken: Longs,
    count: int,
    most: int,
    scale: float,
    score_threshold: float,
    iou_threshold: float,
) -> None:
    """Boxes [4, count] of one class by values that fade, which are -inf for those that are out."""
    for _ in range(begin, end):
        number = 0
        while number < most:
            best = 0
            for other in range(count):
                best = other if values[other] > values[best] else best
            if not values[best] > LOWEST:
                break
            chosen[number], found[number] = best, values[best]
            number += 1
            for other in range(count):
                if values[other] > LOWEST:
                    iou = overlap(boxes, count, best, other, np.float32(0))
                    value = values[other] * power(float(iou * iou * np.float32(scale)), powers)
                    stays = value > np.float32(score_threshold) and iou <= np.float32(iou_threshold)
                    values[other] = value if stays and other != best else np.float32(LOWEST)
        taken[0] = number


LOWEST = float("-inf")


def power(exponent: float, powers: Doubles) -> np.float32:
    """e to a number that is 0 or less; `powers` are those of 1 / 2."""
    if exponent == 0:
        return np.float32(1)
    if not exponent > -150:  # less than f32 can say
        return np.float32(0)
    whole = int(np.floor(exponent * 1.4426950408889634 + 0.5))
    rest = exponent - float(whole) * 0.6931471805599453
    total = 1.0
    for n in range(13, 0, -1):
        total = 1 + total * rest / float(n)
    return np.float32(total * powers[-whole])


POWERS = 0.5 ** np.arange(220.0)


def faded(
    team: Team,
    plain: Callable[..., Any],
    boxes: Array,
    scores: Array,
    sigma: float,
    score_threshold: float,
    iou_threshold: float,
    most: int,
) -> tuple[Array, Array]:
    """What `plain`, the op library's own, gives for one class."""
    if not boxes.dtype == scores.dtype == np.float32:
        result: tuple[Array, Array] = plain(boxes, scores, sigma, score_threshold, iou_threshold, most)
        return result
    rest = np.flatnonzero(scores > score_threshold)
    values, room = scores[rest], min(most, len(rest))
    chosen, found, taken = np.empty(room, np.int64), np.empty(room, np.float32), np.zeros(1, np.int64)
    if room:
        near = np.ascontiguousarray(boxes[rest].T)
        arguments = (near, values, chosen, found, POWERS, taken, len(rest), room, -0.5 / sigma)
        looped(team, fade, (*arguments, float(score_threshold), float(iou_threshold)), 1, 0)()
    return rest[chosen[: taken[0]]], found[: taken[0]]
