"""Regions of interest: reading feature maps between their pixels, and pooling what was read into bins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.spec import Array, Dim, Node

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

    `start` and `size` are (y, x). A bin has sampling_ratio² samples; if that is 0, one for each begun pixel.
    """
    counts, positions = [], []
    for first, length, number in zip(start, size, bins, strict=True):
        step = length / maps.dtype.type(number)
        count = sampling_ratio or max(math.ceil(step), 0)
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
        node.fail(label, f"`{rois}[{row}, 0]` is {column[row]:g}, outside [-1, {batch}), the batches of `{maps}`", rois)


def check_positive(node: Node, label: str, name: str = "spatial_scale") -> None:
    value = node.attrs[name]
    node.require(label, value > 0, f"`{name}` is {value:g}, expected more than 0")
