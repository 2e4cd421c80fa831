"""Images read at real places, between their pixels: a block of places after the other, each for all channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import Floats, looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

PLACES = 256
"""Places of a block: what is to be read there, and by which weights, stays in the cache for all channels."""

TAP_NANOSECONDS = 0.5
"""What it takes about to read and weigh a pixel."""

MODE = "bilinear"
PADDING = "zeros"
ALIGNED = False
"""The attributes mode, padding_mode and align_corners."""

TAPS = 4
"""Pixels that are read for one of the result."""

FURTHEST = 2.0**31
"""Where coordinates are bounded."""


def sample(
    begin: int,
    end: int,
    data: Floats,
    grid: Floats,
    result: Floats,
    channels: int,
    height: int,
    width: int,
    pixels: int,
) -> None:
    """Blocks of the places of each image's grid [pixels, 2]."""
    places = np.empty(TAPS * PLACES, np.int32)
    weights = np.empty(TAPS * PLACES, np.float32)
    blocks = (pixels + PLACES - 1) // PLACES
    for number in range(begin, end):
        image = number // blocks
        first = number % blocks * PLACES
        count = min(PLACES, pixels - first)
        for i in range(count):
            at = 2 * (image * pixels + first + i)
            x, y = pixel_at(grid[at], width), pixel_at(grid[at + 1], height)
            if MODE == "nearest":
                places[i] = place_of(np.rint(y), np.rint(x), height, width)
            else:
                left, top = np.floor(x), np.floor(y)
                across, down = x - left, y - top
                for row in range(TAPS // SIDE):
                    for column in range(SIDE):
                        tap = row * SIDE + column
                        v, u = np.float32(row - SIDE // 2 + 1), np.float32(column - SIDE // 2 + 1)
                        places[tap * PLACES + i] = place_of(top + v, left + u, height, width)
                        weights[tap * PLACES + i] = weight(down, row) * weight(across, column)
        for channel in range(channels):
            source = (image * channels + channel) * height * width
            target = (image * channels + channel) * pixels + first
            for i in range(count):
                total = np.float32(0)
                for tap in range(TAPS):
                    place = places[tap * PLACES + i]
                    value = data[source + place] if PADDING != "zeros" or place >= 0 else np.float32(0)
                    if MODE == "nearest":
                        total = value
                    else:
                        total += value * weights[tap * PLACES + i]
                result[target + i] = total


SIDE = 2
"""Rows of the pixels that are read."""


def pixel_at(coordinate: np.float32, size: int) -> np.float32:
    """A coordinate between -1 and 1 in pixels."""
    moved = coordinate + 1
    scaled = moved * np.float32(size - 1) / 2 if ALIGNED else (moved * np.float32(size) - 1) / 2
    bounded: np.float32 = np.minimum(np.maximum(scaled, -FURTHEST), FURTHEST)
    return bounded


def place_of(row: np.float32, column: np.float32, height: int, width: int) -> int:
    """Where a pixel lies in an image; -1 where it is 0."""
    y, x = reached(int(row), height), reached(int(column), width)
    return y * width + x if y >= 0 and x >= 0 else -1


def reached(number: int, size: int) -> int:
    """A pixel inside, as the padding has it, or -1."""
    if PADDING == "zeros":
        return number if 0 <= number < size else -1
    if PADDING == "reflection":
        if ALIGNED:
            period = max(2 * (size - 1), 1)
            number = max(number, -number) % period
            number = period - number if number >= size else number
        else:
            number = number % (2 * size)
            number = 2 * size - 1 - number if number >= size else number
    return min(max(number, 0), size - 1)


def weight(share: np.float32, tap: int) -> np.float32:
    """How much the pixel counts that is number `tap` around a place, `share` behind the last one before it."""
    if MODE == "bilinear":
        return 1 - share if tap == 0 else share
    if tap == 0:
        return -0.75 * (share - 1) * (share - 1) * share
    if tap == 1:
        return (1.25 * share - 2.25) * share * share + 1
    if tap == 2:
        return ((-1.25 * share + 1.5) * share + 0.75) * share
    return 0.75 * share * share * (share - 1)


def grid_sample(work: Work, team: Team) -> Compiled | None:
    """GridSample-9 of f32."""
    data, grid = work.required(2)
    if work.posts or data.type != "f32" or grid.type != "f32":
        return None
    (images, channels, height, width), pixels = data.shape, grid.shape[1] * grid.shape[2]
    if height * width >= 1 << 31:
        return None
    mode = work.attrs["mode"]
    side = {"nearest": 1, "bilinear": 2, "bicubic": 4}[mode]
    constants = {"MODE": mode, "PADDING": work.attrs["padding_mode"], "ALIGNED": bool(work.attrs["align_corners"])}
    constants |= {"SIDE": side, "TAPS": side * side}
    blocks = images * -(-pixels // PLACES)
    nanoseconds = images * channels * pixels * side * side * TAP_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        arguments = (*inputs, outputs[0], channels, height, width, pixels)
        return looped(team, sample, arguments, blocks, nanoseconds, **constants)

    return Compiled(bind, wants=unordered(work))


COMPILERS = {"GridSample-9": grid_sample}
