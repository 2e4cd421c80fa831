"""Regions of interest: reading feature maps between their pixels, and pooling what was read into bins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.spec import Array, Dim, Node, Tensor
from irrun.spec.dims import every, negate

from ._precision import widened

MANY, AT_ONCE = 16, 256
"""Regions from which on bins are added up as products of matrices, and those that are at once."""

LEAST_NORMAL, INFINITE = 2.0**-126, (2 - 2.0**-24) * 2.0**127
"""The least normal 32-bit float, and the least number that such a float is infinite for."""

FARTHEST = 2.0**40
"""Pixels from the first one where corners are taken to lie that are farther away; those that are NaN lie before it."""

Transform = Callable[[Array, Array], tuple[Array, Array]]
"""Maps rows [m, 1] and columns [1, n] of sample points to the places [m, n] in the feature map."""


def interpolated(maps: Array, rows: Array, columns: Array) -> Any:
    """Values of maps [C, H, W] at real positions that broadcast; up to a pixel outside the edge counts, beyond is 0."""
    height, width = maps.shape[1:]
    inside = (rows >= -1) & (rows <= height) & (columns >= -1) & (columns <= width)
    rows, columns = (np.where((p >= -1) & (p <= n), p, 0) for p, n in ((rows, height), (columns, width)))
    top, bottom, down = _neighbours(rows, height)
    left, right, across = _neighbours(columns, width)
    upper = maps[:, top, left] * (1 - across) + maps[:, top, right] * across
    lower = maps[:, bottom, left] * (1 - across) + maps[:, bottom, right] * across
    return np.where(inside, upper * (1 - down) + lower * down, maps.dtype.type(0))


def _neighbours(positions: Array, size: int) -> tuple[Array, Array, Array]:
    """The pixels before and after each position, and how far it is from the first."""
    positions = np.clip(positions, 0, size - 1)
    before = np.floor(positions).astype(np.int64)
    return before, np.minimum(before + 1, size - 1), positions - before


def pooled(
    maps: Array,
    start: tuple[Any, Any],
    size: tuple[Any, Any],
    bins: tuple[int, int],
    sampling_ratio: int,
    mode: str = "avg",
    transform: Transform | None = None,
) -> Any:
    """A region of maps [C, H, W] as [C, *bins]: each bin the mean or maximum of its samples.

    `start` and `size` are (y, x). A bin has sampling_ratio² samples; if that is 0, one for each begun pixel, and none
    of a size that is not finite.
    """
    counts, positions = [], []
    for first, length, number in zip(start, size, bins, strict=True):
        step = length / maps.dtype.type(number)
        count = sampling_ratio or (max(math.ceil(step), 0) if math.isfinite(step) else 0)
        inner = (np.arange(count, dtype=maps.dtype) + maps.dtype.type(0.5)) * (step / max(count, 1))
        counts.append(count)
        positions.append((first + np.arange(number, dtype=maps.dtype)[:, None] * step + inner).ravel())
    if 0 in counts:
        return np.zeros((len(maps), *bins), maps.dtype)
    rows, columns = positions[0][:, None], positions[1][None]
    if transform is not None:
        rows, columns = transform(rows, columns)
    samples = interpolated(maps, rows, columns).reshape(len(maps), bins[0], counts[0], bins[1], counts[1])
    return samples.mean((2, 4)) if mode == "avg" else samples.max((2, 4))


def pooled_regions(
    maps: Array, starts: Array, sizes: Array, bins: tuple[int, int], sampling_ratio: int, mode: str = "avg"
) -> Array:
    """Many regions of maps [C, H, W], whose `starts` and `sizes` are [n, 2], as [n, C, *bins]; see `pooled`."""
    result = np.zeros((len(starts), len(maps), *bins), maps.dtype)
    for region, (y, x), (height, width) in zip(result, starts, sizes, strict=True):
        region[...] = pooled(maps, (y, x), (height, width), bins, sampling_ratio, mode)
    return result


Pool = Callable[..., Array]
"""What `pooled_regions` is, or something quicker that gives the same."""


def maxima(maps: Array, box: Array, bins: tuple[int, int], spatial_scale: float) -> Array:
    corners = np.nan_to_num(rounded(box * box.dtype.type(spatial_scale)), nan=-np.inf)
    corners = np.clip(corners, -FARTHEST, FARTHEST).astype(np.int64)
    result = np.zeros((len(maps), *bins), maps.dtype)
    spans = []
    for axis, count in enumerate(bins):
        start, end = corners[1 - axis], corners[3 - axis]
        size = maps.dtype.type(max(end - start + 1, 1)) / maps.dtype.type(count)
        edges = np.arange(count + 1, dtype=maps.dtype) * size
        limits = np.stack([np.floor(edges[:-1]), np.ceil(edges[1:])]).astype(np.int64) + start
        spans.append(np.clip(limits, 0, maps.shape[1 + axis]))
    rows, columns = (span.T.tolist() for span in spans)
    if not rows or not columns:
        return result
    first, last = min(left for left, _ in columns), max(right for _, right in columns)
    filled = [y for y, (top, bottom) in enumerate(rows) if bottom > top]
    highest = np.empty((max(last - first, 0), len(filled), len(maps)), maps.dtype)  # of the rows of each bin
    for number, (top, bottom) in enumerate(rows[y] for y in filled):
        highest[:, number] = np.maximum.reduce(maps[:, top:bottom, first:last], 1).T
    for x, (left, right) in enumerate(columns):
        if right > left:
            result[:, filled, x] = np.maximum.reduce(highest[left - first : right - first], 0).T
    return result


def grid_points(maps: Array, box: Array, bins: tuple[int, int], spatial_scale: float) -> Any:
    places, inside = [], []
    for axis, count in enumerate(bins):
        last = maps.dtype.type(maps.shape[1 + axis] - 1)
        start, end = box[1 - axis] * last, box[3 - axis] * last
        if count > 1:
            points = start + np.arange(count, dtype=maps.dtype) * ((end - start) / maps.dtype.type(count - 1))
            points[-1] = end
        else:
            points = np.array([(start + end) / 2])
        inside.append((points >= 0) & (points <= last))
        places.append(points)
    values = interpolated(maps, places[0][:, None], places[1][None])
    return np.where(inside[0][:, None] & inside[1], values, 0)


def rounded(values: Array) -> Any:
    """Values rounded to the nearest integer, halves away from 0."""
    return np.trunc(values + np.copysign(values.dtype.type(0.5), values))


def aligned_regions(
    data: Array,
    rois: Array,
    batch_indices: Array,
    *,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    mode: str,
    aligned_mode: str,
    pool: Pool,
) -> Any:
    maps, regions = widened(data), widened(rois)
    aligned = aligned_mode != "asymmetric"
    before = regions.dtype.type(0.5 if aligned_mode == "half_pixel" else 0)
    corners = (regions + before) * regions.dtype.type(spatial_scale) - regions.dtype.type(0.5 if aligned else 0)
    sizes = corners[:, 2:] - corners[:, :2]
    if not aligned:
        sizes = np.maximum(sizes, 1)
    starts, sizes, bins = corners[:, 1::-1], sizes[:, ::-1], (pooled_h, pooled_w)
    images = np.unique(batch_indices)
    if len(images) == 1:
        return pool(maps[images[0]], starts, sizes, bins, sampling_ratio, mode).astype(data.dtype, copy=False)
    result = np.zeros((len(rois), data.shape[1], *bins), data.dtype)
    for image in images:
        own = np.flatnonzero(batch_indices == image)
        result[own] = pool(maps[image], starts[own], sizes[own], bins, sampling_ratio, mode)
    return result


def bin_means(maps: Array, boxes: Array, output_dim: int, group_size: int) -> Array:
    """The means [regions, output_dim, group_size, group_size] of the bins of regions in maps of their own."""
    groups = maps.reshape(output_dim, group_size, group_size, *maps.shape[1:])
    result = np.zeros((len(boxes), *groups.shape[:3]), maps.dtype)
    spans = []
    for axis in (0, 1):
        start, size = boxes[:, 1 - axis], (boxes[:, 3 - axis] - boxes[:, 1 - axis]) / maps.dtype.type(group_size)
        edges = start[:, None] + np.arange(group_size + 1, dtype=maps.dtype) * size[:, None]
        pair = np.nan_to_num([np.floor(edges[:, :-1]), np.ceil(edges[:, 1:])])
        spans.append(np.clip(pair, 0, maps.shape[1 + axis]).astype(np.int64))
    (tops, bottoms), (lefts, rights) = spans
    if len(boxes) >= MANY and np.isfinite(maps).all():  # what is outside of a bin is 0 when it is multiplied by 0
        rows = _members(tops, bottoms, maps.shape[1], maps.dtype)
        columns = _members(lefts, rights, maps.shape[2], maps.dtype)
        pixels = np.maximum(bottoms - tops, 1)[:, :, None] * np.maximum(rights - lefts, 1)[:, None]
        for y in range(group_size):
            lying = groups[:, y].transpose(2, 0, 1, 3).reshape(maps.shape[1], -1)
            for first in range(0, len(boxes), AT_ONCE):
                own = slice(first, first + AT_ONCE)
                lines = (rows[own, y] @ lying).reshape(-1, output_dim, group_size, maps.shape[2])
                total = np.einsum("rcxw,rxw->rcx", lines, columns[own])
                result[own, :, y] = total / pixels[own, y, None].astype(maps.dtype)
        return result
    for number, y, x in np.ndindex(len(boxes), group_size, group_size):
        top, bottom, left, right = tops[number, y], bottoms[number, y], lefts[number, x], rights[number, x]
        if bottom > top and right > left:
            total = np.add.reduce(groups[:, y, x, top:bottom, left:right], (1, 2))
            result[number, :, y, x] = total / maps.dtype.type((bottom - top) * (right - left))
    return result


def _members(first: Array, last: Array, size: int, dtype: Any) -> Array:
    """1 for each of `size` pixels that lies in a bin, else 0."""
    pixels = np.arange(size)
    found: Array = ((pixels >= first[..., None]) & (pixels < last[..., None])).astype(dtype)
    return found


def spatial_bins(maps: Array, box: Array, output_dim: int, group_size: int, bins: tuple[int, int]) -> Any:
    groups = maps.reshape(*bins, output_dim, *maps.shape[1:])
    places = []
    for axis, count in enumerate(bins):
        last = maps.dtype.type(maps.shape[1 + axis] - 1)
        size = (box[3 - axis] - box[1 - axis]) / maps.dtype.type(count)
        starts = (box[1 - axis] + np.arange(count, dtype=maps.dtype) * size) * last
        if group_size > 1:
            inner = np.arange(group_size, dtype=maps.dtype) * (size * last / maps.dtype.type(group_size - 1))
        else:
            inner = np.array([size * last / 2], maps.dtype)
        places.append(starts[:, None] + inner)
    result = np.zeros((output_dim, group_size, group_size), maps.dtype)
    for rows, row_of_groups in zip(places[0], groups, strict=True):
        for columns, group in zip(places[1], row_of_groups, strict=True):
            y, x = rows[:, None], columns[None]
            inside = (y >= 0) & (y < maps.shape[1]) & (x >= 0) & (x < maps.shape[2])
            result += np.where(inside, interpolated(group, y, x), 0)
    return result / maps.dtype.type(bins[0] * bins[1])


def bin_offsets(offsets: Array, output_dim: int, group_size: int) -> Any:
    """The offsets [output_dim, 2, group_size, group_size] of a region, from pairs of channels."""
    classes, part_size = len(offsets) // 2, offsets.shape[1]
    of_channel = np.arange(output_dim) // (output_dim // classes)
    part = np.arange(group_size) * part_size // group_size
    return offsets.reshape(classes, 2, part_size, part_size)[of_channel][:, :, part[:, None], part]


def channel_samples(maps: Array, channel: Array, y: Array, x: Array) -> Any:
    """Values of maps [C, H, W] at real positions, each in a channel of its own."""
    y, x = np.clip(y, 0, maps.shape[1] - 1), np.clip(x, 0, maps.shape[2] - 1)
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    bottom, right = np.ceil(y).astype(np.int64), np.ceil(x).astype(np.int64)
    across, down = x - left, y - top
    upper = maps[channel, top, left] + (maps[channel, top, right] - maps[channel, top, left]) * across
    lower = maps[channel, bottom, left] + (maps[channel, bottom, right] - maps[channel, bottom, left]) * across
    return upper + (lower - upper) * down


def ended(batches: Array) -> Array:
    """Batch indices up to the first -1, which ends a list of regions as Proposal writes it."""
    whole = batches.astype(np.int64)
    ends = np.flatnonzero(whole < 0)
    return whole[: ends[0]] if ends.size else whole


def check_batches(node: Node, label: str, maps: str, rois: str) -> None:
    """Require the first column of `rois` to hold batch indices of `maps`, or -1."""
    value = node.value(rois)
    batch = node.shape(maps)[0]
    if value is None or isinstance(batch, Dim):
        return
    column = value[:, 0].astype(np.float64)
    wrong = ~((column >= -1) & (column < batch))
    if wrong.any():
        row = int(wrong.argmax())
        node.fail(
            label,
            f"`{rois}[{row}, 0]` is {column[row]:g}, outside [-1, {batch}), the batches of `{maps}`",
            rois,
            about=[maps],
        )


def check_pixels(node: Node, label: str, maps: Tensor, name: str | tuple[str, int]) -> None:
    """Require feature maps, the input `name`, to have pixels where there are regions that read them."""
    regions = node.shape("rois")[0]
    if maps.shape is None:
        return
    title = f"`{name}`" if isinstance(name, str) else f"`{name[0]}[{name[1]}]`"
    for size, what in zip(maps.shape[2:], ("rows", "columns"), strict=True):
        condition = negate(every([regions > 0, size == 0]))
        node.require(label, condition, f"{title} has no {what}, but there are `rois`", name, about=["rois"])


def check_positive(
    node: Node, label: str, name: str = "spatial_scale", *, lenient: str = "", normal: bool = False
) -> None:
    """Require an attribute above 0, and `normal` as a 32-bit float; `lenient` is what OpenVINO does with 0."""
    value = node.attrs[name]
    message = f"`{name}` is {value:g}, expected more than 0"
    node.require(label, value > 0, message, about=[name], lenient="" if value else lenient)
    if normal:
        message = f"`{name}` is {value:g}, which is no normal 32-bit float"
        node.require(label, LEAST_NORMAL <= value < INFINITE, message, about=[name])
