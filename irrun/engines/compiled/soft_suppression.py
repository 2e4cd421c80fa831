"""Boxes whose scores better ones lower (soft and matrix NMS), by compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import LOWEST, Doubles, Floats, Longs, looped
from irrun.engines.compiled.team import Team
from irrun.spec.op import Array

PAIR_NANOSECONDS = 2.0
"""What two boxes of a group take about that are compared with one another."""


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
    ends: Longs,
    chosen: Longs,
    found: Floats,
    powers: Doubles,
    taken: Longs,
    total: int,
    most: int,
    scale: float,
    score_threshold: float,
    iou_threshold: float,
) -> None:
    """Groups of boxes [4, total] by values that fade, which are -inf for those that are out."""
    for group in range(begin, end):
        first, last = ends[group], ends[group + 1]
        number = 0
        while number < most and number < last - first:
            best = first
            for other in range(first, last):
                best = other if values[other] > values[best] else best
            if not values[best] > LOWEST:
                break
            chosen[first + number], found[first + number] = best, values[best]
            number += 1
            for other in range(first, last):
                if values[other] > LOWEST:
                    iou = overlap(boxes, total, best, other, np.float32(0))
                    value = values[other] * power(float(iou * iou * np.float32(scale)), powers)
                    stays = value > np.float32(score_threshold) and iou <= np.float32(iou_threshold)
                    values[other] = value if stays and other != best else np.float32(LOWEST)
        taken[group] = number


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
    ends: Array,
    sigma: float,
    score_threshold: float,
    iou_threshold: float,
    most: int,
) -> tuple[Array, Array]:
    """What `plain`, the op library's own, gives."""
    if not boxes.dtype == scores.dtype == np.float32:
        result: tuple[Array, Array] = plain(boxes, scores, ends, sigma, score_threshold, iou_threshold, most)
        return result
    total, bounds = len(scores), np.array([0, *ends.tolist()], np.int64)
    sizes = np.diff(bounds)
    chosen, found, taken = np.zeros(total, np.int64), np.empty(total, np.float32), np.zeros(len(ends), np.int64)
    memory = np.ascontiguousarray(boxes.T), scores.copy(), bounds, chosen, found, POWERS, taken
    limits = -0.5 / sigma, float(score_threshold), float(iou_threshold)
    nanoseconds = float(sizes @ np.minimum(sizes, most)) * PAIR_NANOSECONDS
    looped(team, fade, (*memory, total, most, *limits), len(ends), nanoseconds)()
    stays = np.arange(total) - np.repeat(bounds[:-1], sizes) < np.repeat(taken, sizes)
    return chosen[stays], found[stays]
