"""Regions of feature maps divided into bins: ROIPooling, PSROIPooling and DeformablePSROIPooling by compiled loops.

All take the numbers of a region as they come, [batch, x0, y0, x1, y1]; a batch below 0 ends the list.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import LOWEST, Floats, looped, unordered
from irrun.engines.compiled.regions import CHANNELS, turned
from irrun.engines.compiled.team import Team
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.spec.op import Array

ROWS, COLUMNS = 1, 1
"""Bins of a region."""

GROUP = 1
"""Bins along an axis where each has channels of its own."""

PARTS_Y, PARTS_X = 1, 1
"""Parts of a region, or samples of a bin, along the axes."""

FARTHEST = 2.0**40
"""Pixels from the first one where corners lie that are farther away, as in the op library."""

BIN_NANOSECONDS = 5.0
"""What a bin of a channel takes about."""


def nearest(value: np.float32) -> np.float32:
    """The nearest integer, halves away from 0."""
    rounded: np.float32 = np.trunc(value + (np.float32(-0.5) if value < 0 else np.float32(0.5)))
    return rounded


def whole(value: np.float32) -> int:
    """The nearest integer as one."""
    bounded = np.minimum(np.maximum(nearest(value), -FARTHEST), FARTHEST)
    return int(bounded if bounded == bounded else np.float32(-FARTHEST))


def limited(value: np.float32, size: int) -> int:
    """An integer between 0 and a size."""
    return min(max(int(value), 0), size)


def ended(rois: Floats, count: int) -> bool:
    """Whether the list of regions has ended before number `count`."""
    number = 0
    while number < count and int(rois[5 * number]) >= 0:
        number += 1
    return number < count


def pool_maxima(
    begin: int,
    end: int,
    maps: Floats,
    rois: Floats,
    result: Floats,
    channels: int,
    height: int,
    width: int,
    scale: float,
) -> None:
    """The maximum of each bin, of maps with the channels last."""
    spans_y = np.empty(2 * ROWS, np.int64)
    spans_x = np.empty(2 * COLUMNS, np.int64)
    most = np.empty(CHANNELS, np.float32)
    over = ended(rois, begin)
    for region in range(begin, end):
        over = over or int(rois[5 * region]) < 0
        if over:
            for i in range(channels * ROWS * COLUMNS):
                result[region * channels * ROWS * COLUMNS + i] = 0
            continue
        x0, y0 = whole(rois[5 * region + 1] * np.float32(scale)), whole(rois[5 * region + 2] * np.float32(scale))
        x1, y1 = whole(rois[5 * region + 3] * np.float32(scale)), whole(rois[5 * region + 4] * np.float32(scale))
        high, wide = np.float32(max(y1 - y0 + 1, 1)) / ROWS, np.float32(max(x1 - x0 + 1, 1)) / COLUMNS
        for i in range(ROWS):
            spans_y[2 * i] = min(max(int(np.floor(np.float32(i) * high)) + y0, 0), height)
            spans_y[2 * i + 1] = min(max(int(np.ceil(np.float32(i + 1) * high)) + y0, 0), height)
        for i in range(COLUMNS):
            spans_x[2 * i] = min(max(int(np.floor(np.float32(i) * wide)) + x0, 0), width)
            spans_x[2 * i + 1] = min(max(int(np.ceil(np.float32(i + 1) * wide)) + x0, 0), width)
        source = int(rois[5 * region]) * height * width * channels
        for bin in range(ROWS * COLUMNS):
            row, column = bin // COLUMNS, bin % COLUMNS
            top, low, left, right = spans_y[2 * row], spans_y[2 * row + 1], spans_x[2 * column], spans_x[2 * column + 1]
            for first in range(0, channels, CHANNELS):
                count = min(CHANNELS, channels - first)
                for k in range(count):
                    most[k] = np.float32(LOWEST) if low > top and right > left else np.float32(0)
                for y in range(top, low):
                    for x in range(left, right):
                        pixel = source + (y * width + x) * channels + first
                        for k in range(count):
                            most[k] = np.maximum(most[k], maps[pixel + k])
                target = (region * channels + first) * ROWS * COLUMNS + bin
                for k in range(count):
                    result[target + k * ROWS * COLUMNS] = most[k]


def pool_points(
    begin: int,
    end: int,
    maps: Floats,
    rois: Floats,
    result: Floats,
    channels: int,
    height: int,
    width: int,
    scale: float,
) -> None:
    """A value between four pixels for each bin, on a grid from corner to corner, of maps with the channels last."""
    over = ended(rois, begin)
    last_y, last_x = np.float32(height - 1), np.float32(width - 1)
    for region in range(begin, end):
        over = over or int(rois[5 * region]) < 0
        for bin in range(ROWS * COLUMNS):
            y = point(rois[5 * region + 2] * last_y, rois[5 * region + 4] * last_y, bin // COLUMNS, ROWS)
            x = point(rois[5 * region + 1] * last_x, rois[5 * region + 3] * last_x, bin % COLUMNS, COLUMNS)
            target = region * channels * ROWS * COLUMNS + bin
            if over or not (0 <= y <= last_y and 0 <= x <= last_x):
                for k in range(channels):
                    result[target + k * ROWS * COLUMNS] = 0
                continue
            top, left = int(y), int(x)
            low, right = min(top + 1, height - 1), min(left + 1, width - 1)
            v, u = y - np.float32(top), x - np.float32(left)
            source = int(rois[5 * region]) * height * width * channels
            p, q = source + (top * width + left) * channels, source + (top * width + right) * channels
            r, s = source + (low * width + left) * channels, source + (low * width + right) * channels
            for k in range(channels):
                upper = maps[p + k] * (1 - u) + maps[q + k] * u
                lower = maps[r + k] * (1 - u) + maps[s + k] * u
                result[target + k * ROWS * COLUMNS] = upper * (1 - v) + lower * v


def point(start: np.float32, end: np.float32, number: int, count: int) -> np.float32:
    """One of some points from start to end."""
    if count == 1:
        return (start + end) / 2
    if number == count - 1:
        return end
    return start + np.float32(number) * ((end - start) / np.float32(count - 1))


def between(maps: Floats, source: int, y: np.float32, x: np.float32, height: int, width: int) -> np.float32:
    """The value of a map at a place, or at the nearest one inside."""
    y, x = np.minimum(np.maximum(y, 0), np.float32(height - 1)), np.minimum(np.maximum(x, 0), np.float32(width - 1))
    top, left = int(y), int(x)
    low, right = min(top + 1, height - 1), min(left + 1, width - 1)
    v, u = y - np.float32(top), x - np.float32(left)
    upper = maps[source + top * width + left] * (1 - u) + maps[source + top * width + right] * u
    lower = maps[source + low * width + left] * (1 - u) + maps[source + low * width + right] * u
    value: np.float32 = upper * (1 - v) + lower * v
    return value


def reached(maps: Floats, source: int, y: np.float32, x: np.float32, height: int, width: int) -> np.float32:
    """As `between`, of none but the pixels that a place lies between: others may be infinite."""
    y, x = np.minimum(np.maximum(y, 0), np.float32(height - 1)), np.minimum(np.maximum(x, 0), np.float32(width - 1))
    top, left, low, right = int(y), int(x), int(np.ceil(y)), int(np.ceil(x))
    first, second = maps[source + top * width + left], maps[source + low * width + left]
    across = x - np.float32(left)
    upper = first + (maps[source + top * width + right] - first) * across
    lower = second + (maps[source + low * width + right] - second) * across
    value: np.float32 = upper + (lower - upper) * (y - np.float32(top))
    return value


def pool_means(
    begin: int,
    end: int,
    maps: Floats,
    rois: Floats,
    result: Floats,
    channels: int,
    height: int,
    width: int,
    scale: float,
) -> None:
    """The mean of each bin, from a channel of its own."""
    over = ended(rois, begin)
    for region in range(begin, end):
        over = over or int(rois[5 * region]) < 0
        x0, y0 = corner(rois[5 * region + 1], 0, scale), corner(rois[5 * region + 2], 0, scale)
        high = (corner(rois[5 * region + 4], 1, scale) - y0) / GROUP
        wide = (corner(rois[5 * region + 3], 1, scale) - x0) / GROUP
        for bin in range(GROUP * GROUP):
            row, column = bin // GROUP, bin % GROUP
            top = limited(np.floor(y0 + np.float32(row) * high), height)
            low = limited(np.ceil(y0 + np.float32(row + 1) * high), height)
            left = limited(np.floor(x0 + np.float32(column) * wide), width)
            right = limited(np.ceil(x0 + np.float32(column + 1) * wide), width)
            many = 0 if over else max(low - top, 0) * max(right - left, 0)
            for channel in range(channels // (GROUP * GROUP)):
                own = channel * GROUP * GROUP + bin
                source = (int(rois[5 * region]) * channels + own) * height * width
                total = 0.0
                if many > 0:
                    for y in range(top, low):
                        for x in range(left, right):
                            total += float(maps[source + y * width + x])
                result[region * channels + own] = np.float32(total / float(max(many, 1)))


def corner(value: np.float32, more: int, scale: float) -> np.float32:
    """A corner in pixels of the map, `more` pixels of the image further."""
    moved: np.float32 = (nearest(value) + np.float32(more)) * np.float32(scale)
    return moved


def pool_parts(
    begin: int,
    end: int,
    maps: Floats,
    rois: Floats,
    result: Floats,
    channels: int,
    height: int,
    width: int,
    scale: float,
) -> None:
    """The mean over parts of a region, each with a grid of points and with channels of its own."""
    over = ended(rois, begin)
    features = channels // (PARTS_Y * PARTS_X)
    one = np.float32(scale)
    for region in range(begin, end):
        over = over or int(rois[5 * region]) < 0
        x0, y0 = rois[5 * region + 1] * one, rois[5 * region + 2] * one
        high, wide = (rois[5 * region + 4] * one - y0) / PARTS_Y, (rois[5 * region + 3] * one - x0) / PARTS_X
        for channel in range(features):
            for bin in range(GROUP * GROUP):
                total = np.float32(0)
                if not over:
                    for part in range(PARTS_Y * PARTS_X):
                        y = part_point(y0, high, part // PARTS_X, bin // GROUP, height)
                        x = part_point(x0, wide, part % PARTS_X, bin % GROUP, width)
                        if 0 <= y < np.float32(height) and 0 <= x < np.float32(width):
                            own = (int(rois[5 * region]) * channels + part * features + channel) * height * width
                            total += between(maps, own, y, x, height, width)
                result[(region * features + channel) * GROUP * GROUP + bin] = total / (PARTS_Y * PARTS_X)


def part_point(start: np.float32, size: np.float32, part: int, number: int, length: int) -> np.float32:
    """One of the points of a part, in pixels."""
    last = np.float32(length - 1)
    first = (start + np.float32(part) * size) * last
    if GROUP == 1:
        return first + size * last / 2
    moved: np.float32 = first + np.float32(number) * (size * last / np.float32(GROUP - 1))
    return moved


def pool_moved(
    begin: int,
    end: int,
    maps: Floats,
    rois: Floats,
    offsets: Floats,
    result: Floats,
    channels: int,
    height: int,
    width: int,
    scale: float,
    classes: int,
    parts: int,
    deviation: float,
) -> None:
    """The mean of samples of each bin, which is moved, from a channel of its own; no `classes` move nothing."""
    over = ended(rois, begin)
    features = channels // (GROUP * GROUP)
    for region in range(begin, end):
        over = over or int(rois[5 * region]) < 0
        x0, y0 = corner(rois[5 * region + 1], 0, scale) - 0.5, corner(rois[5 * region + 2], 0, scale) - 0.5
        wide = np.maximum(corner(rois[5 * region + 3], 1, scale) - 0.5 - x0, 0.1)
        high = np.maximum(corner(rois[5 * region + 4], 1, scale) - 0.5 - y0, 0.1)
        for own in range(channels):
            channel, row, column = own // (GROUP * GROUP), own // GROUP % GROUP, own % GROUP
            left, top = x0 + np.float32(column) * (wide / GROUP), y0 + np.float32(row) * (high / GROUP)
            if classes > 0:
                pair = region * classes + channel // (features // classes)
                part = (row * parts // GROUP) * parts + column * parts // GROUP
                left += offsets[2 * pair * parts * parts + part] * np.float32(deviation) * wide
                top += offsets[(2 * pair + 1) * parts * parts + part] * np.float32(deviation) * high
            total, count = np.float32(0), 0
            source = (int(rois[5 * region]) * channels + own) * height * width
            if not over:
                for sample in range(PARTS_Y * PARTS_X):
                    y = top + np.float32(sample // PARTS_X) * (high / GROUP / PARTS_Y)
                    x = left + np.float32(sample % PARTS_X) * (wide / GROUP / PARTS_X)
                    if -0.5 <= y <= np.float32(height) - 0.5 and -0.5 <= x <= np.float32(width) - 0.5:
                        total += reached(maps, source, y, x, height, width)
                        count += 1
            result[region * channels + own] = total / np.float32(max(count, 1))


def pooling(work: Work, team: Team) -> Compiled | None:
    """ROIPooling-1."""
    bins = {"ROWS": work.attrs["pooled_h"], "COLUMNS": work.attrs["pooled_w"]}
    function = pool_maxima if work.attrs["method"] == "max" else pool_points
    return _compiled(work, team, function, (float(work.attrs["spatial_scale"]),), bins)


def sensitive_pooling(work: Work, team: Team) -> Compiled | None:
    """PSROIPooling-1."""
    parts = {"PARTS_Y": work.attrs["spatial_bins_y"], "PARTS_X": work.attrs["spatial_bins_x"]}
    function = pool_means if work.attrs["mode"] == "average" else pool_parts
    constants = {"GROUP": work.attrs["group_size"], **parts}
    return _compiled(work, team, function, (float(work.attrs["spatial_scale"]),), constants)


def moved_pooling(work: Work, team: Team) -> Compiled | None:
    """DeformablePSROIPooling-1."""
    offsets, attrs = work.optional(2), work.attrs
    classes, parts = (0, 1) if offsets is None else (offsets.shape[1] // 2, offsets.shape[2])
    numbers = (float(attrs["spatial_scale"]), classes, parts, float(attrs["trans_std"]))
    constants = {"GROUP": attrs["group_size"], "PARTS_Y": attrs["spatial_bins_y"], "PARTS_X": attrs["spatial_bins_x"]}
    return _compiled(work, team, pool_moved, numbers, constants, NOTHING if offsets is None else None)


NOTHING = np.zeros(1, np.float32)
"""Of an input that is not connected."""


def _compiled(
    work: Work,
    team: Team,
    function: Callable[..., None],
    numbers: Sequence[Any],
    constants: dict[str, Hashable],
    missing: Array | None = None,
) -> Compiled | None:
    if work.posts or any(operand is not None and operand.type != "f32" for operand in work.own):
        return None
    _, channels, height, width = work.required(1)[0].shape
    output = work.outputs[0]
    nanoseconds = prod(output.shape) * BIN_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        arrays = [array for array in (*inputs, missing) if array is not None]
        calls: list[Call] = []
        if function in (pool_maxima, pool_points):
            arrays[0], call = turned(team, arrays[0])
            calls.append(call)
        arguments = (*arrays, outputs[0], channels, height, width, *numbers)
        return chain([*calls, looped(team, function, arguments, output.shape[0], nanoseconds, **constants)])

    return Compiled(bind, wants=unordered(work))


COMPILERS = {
    "ROIPooling-1": pooling,
    "PSROIPooling-1": sensitive_pooling,
    "DeformablePSROIPooling-1": moved_pooling,
}
