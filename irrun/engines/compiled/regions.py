"""Regions of feature maps, read between the pixels and pooled by compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import LOWEST, Floats, looped
from irrun.engines.compiled.team import Team
from irrun.engines.work import Call
from irrun.spec.op import Array

CHANNELS = 512
"""Channels of a block, whose sums stay in the cache."""

MODE = "avg"
"""Whether the mean or the maximum of the samples of a bin is taken."""

LAST = True
"""Whether maps have the channels last, so that they are neighbours in memory."""

MOST = 1 << 36
"""Samples of a region that are gone through. For more the op library's own has no memory, and says so: of a region that
is millions of pixels wide nobody would wait for the mean.
"""

SAMPLE_NANOSECONDS = 0.4
"""What a sample of a channel takes about."""

COPY_NANOSECONDS = 1.0
"""What an element takes about that is brought behind others."""


def pool(
    begin: int,
    end: int,
    maps: Floats,
    starts: Floats,
    sizes: Floats,
    result: Floats,
    channels: int,
    height: int,
    width: int,
    rows: int,
    columns: int,
    ratio: int,
) -> None:
    """Regions, whose starts and sizes are (y, x), as [regions, channels, rows, columns]."""
    found = np.empty(CHANNELS, np.float32)
    line = np.empty(CHANNELS, np.float32)
    for region in range(begin, end):
        high, wide = sizes[2 * region] / np.float32(rows), sizes[2 * region + 1] / np.float32(columns)
        down = ratio if ratio > 0 else begun(high)
        across = ratio if ratio > 0 else begun(wide)
        down = down if across > 0 else 0
        samples = np.float32(down * across)
        for bin in range(rows * columns):
            row, column = bin // columns, bin % columns
            for first in range(0, channels, CHANNELS):
                count = min(CHANNELS, channels - first)
                for k in range(count):
                    found[k] = np.float32(0) if MODE == "avg" or samples == 0 else np.float32(LOWEST)
                for i in range(down):
                    for k in range(count):
                        line[k] = 0
                    y = place(starts[2 * region], row, high, i, down)
                    for j in range(across):
                        x = place(starts[2 * region + 1], column, wide, j, across)
                        if y >= -1 and y <= np.float32(height) and x >= -1 and x <= np.float32(width):
                            top, left = before(y, height), before(x, width)
                            low, right = min(top + 1, height - 1), min(left + 1, width - 1)
                            v, u = share(y, top, height), share(x, left, width)
                            a, b, c, d = (1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u
                            p = lying(top * width + left, first, channels, height * width)
                            q = lying(top * width + right, first, channels, height * width)
                            r = lying(low * width + left, first, channels, height * width)
                            s = lying(low * width + right, first, channels, height * width)
                            step = 1 if LAST else height * width
                            for k in range(count):
                                value = a * maps[p + k * step] + b * maps[q + k * step]
                                value += c * maps[r + k * step] + d * maps[s + k * step]
                                if MODE == "avg":
                                    line[k] += value
                                else:
                                    found[k] = np.maximum(found[k], value)
                        elif MODE == "max":
                            for k in range(count):
                                found[k] = np.maximum(found[k], 0)
                    if MODE == "avg":
                        for k in range(count):
                            found[k] += line[k]
                target = (region * channels + first) * rows * columns + bin
                for k in range(count):
                    if MODE == "avg" and samples > 0:
                        result[target + k * rows * columns] = found[k] / samples
                    else:
                        result[target + k * rows * columns] = found[k]


def begun(size: np.float32) -> int:
    """How many pixels a size begins; none if it is not finite."""
    return max(int(np.ceil(size)), 0) if size - size == 0 else 0


def place(start: np.float32, bin: int, size: np.float32, sample: int, samples: int) -> np.float32:
    """Where a sample of a bin lies."""
    return start + np.float32(bin) * size + (np.float32(sample) + 0.5) * (size / np.float32(samples))


def before(position: np.float32, size: int) -> int:
    """The last pixel before a position."""
    return int(np.floor(inside(position, size)))


def share(position: np.float32, pixel: int, size: int) -> np.float32:
    """How far a position is behind a pixel."""
    return inside(position, size) - np.float32(pixel)


def inside(position: np.float32, size: int) -> np.float32:
    """The nearest position that is not outside the pixels."""
    bounded: np.float32 = np.minimum(np.maximum(position, 0), np.float32(size - 1))
    return bounded


def lying(pixel: int, channel: int, channels: int, pixels: int) -> int:
    """Where a channel of a pixel is in memory."""
    return pixel * channels + channel if LAST else channel * pixels + pixel


def turn(begin: int, end: int, maps: Floats, turned: Floats, channels: int, pixels: int) -> None:
    """Blocks of some pixels of maps [images, channels, pixels] as [images, pixels, channels]."""
    blocks = (pixels + PIXELS - 1) // PIXELS
    for block in range(begin, end):
        image, first = block // blocks, block % blocks * PIXELS
        source = image * channels * pixels
        for channel in range(channels):
            for pixel in range(first, min(first + PIXELS, pixels)):
                turned[source + pixel * channels + channel] = maps[source + channel * pixels + pixel]


PIXELS = 16
"""Pixels of a block: as many as a line of memory has."""


def turned(team: Team, maps: Array) -> tuple[Array, Call]:
    """Maps [N, C, H, W] with the channels last, and what brings them there."""
    images, channels, height, width = maps.shape
    result = np.empty((images, height * width, channels), np.float32)
    count = images * -(-height * width // PIXELS)
    arguments = (maps, result, channels, height * width)
    return result, looped(team, turn, arguments, count, maps.size * COPY_NANOSECONDS)


def pooled_regions(
    team: Team,
    plain: Callable[..., Array],
    maps: Array,
    starts: Array,
    sizes: Array,
    bins: tuple[int, int],
    sampling_ratio: int,
    mode: str = "avg",
) -> Any:
    """What `plain`, the op library's own, gives for regions of maps [C, H, W], in f32."""
    given = maps.dtype == starts.dtype == np.float32 and 0 not in maps.shape and len(starts)
    if not given or (not sampling_ratio and _most_samples(sizes, bins) > MOST):
        return plain(maps, starts, sizes, bins, sampling_ratio, mode)
    (channels, height, width), count = maps.shape, len(starts)
    pixels = height * width
    samples = count * bins[0] * bins[1] * (sampling_ratio or 2) ** 2
    source = np.ascontiguousarray(maps)
    last = 4 * samples > pixels  # else to bring all channels behind takes longer than it saves
    if last:
        source, call = turned(team, source[None])
        call()
    result = np.empty((count, channels, *bins), np.float32)
    arrays = source, np.ascontiguousarray(starts), np.ascontiguousarray(sizes), result
    numbers = channels, height, width, *bins, sampling_ratio
    looped(team, pool, (*arrays, *numbers), count, samples * channels * SAMPLE_NANOSECONDS, MODE=mode, LAST=last)()
    return result


def _most_samples(sizes: Array, bins: tuple[int, int]) -> Any:
    """Samples of the region that has most, where there is one for each pixel that a bin begins."""
    each = np.ceil(np.where(np.isfinite(sizes), sizes, 0) / np.array(bins, np.float64))
    return np.maximum(each, 0).prod(1).max() * bins[0] * bins[1]
