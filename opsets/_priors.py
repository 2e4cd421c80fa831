"""Prior boxes: which boxes a cell of a feature map starts from, and the grid that repeats them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irrun.spec import Array, Node, Shapes, product

SAME_RATIO = 1e-6
"""The difference of two aspect ratios that are the same."""


@dataclass(frozen=True, slots=True)
class Prior:
    """A box around the middle of a cell, in pixels: its offset from there and half its width and height.

    A `cut` one ends at the image's edge, which is all that is done where the boxes as a whole are not clipped.
    """

    across: float
    down: float
    half_width: float
    half_height: float
    cut: bool = False


def aspect_ratios(given: Sequence[float], flip: bool) -> list[float]:
    """1 and the given ratios without repetitions, each followed by its inverse if they are to be flipped."""
    ratios = [1.0]
    known = [1.0]
    for ratio in given:
        place = bisect_left(known, ratio)
        if all(abs(ratio - near) >= SAME_RATIO for near in known[max(place - 1, 0) : place + 1]):
            found = [ratio, 1 / ratio] if flip else [ratio]
            ratios += found
            for new in found:
                insort(known, new)
    return ratios


def square_priors(
    least: Sequence[float], most: Sequence[float], ratios: Sequence[float], every: bool, most_before_ratios: bool
) -> Iterator[Prior]:
    """For each size a square, one between it and its largest size, and boxes of the same area with other ratios.

    Unless `every` size counts, the boxes of other ratios have the first size and follow the last, and there are no
    largest sizes.
    """
    others = [ratio for ratio in ratios if abs(ratio - 1) >= SAME_RATIO]
    for number, size in enumerate(least):
        yield Prior(0, 0, size / 2, size / 2)
        between = [(size * high) ** 0.5 / 2 for high in most[number : number + 1]] if every else []
        squares = [Prior(0, 0, half, half) for half in between]
        base = size if every else least[0]
        stretched = [
            Prior(0, 0, base / 2 * ratio**0.5, base / 2 / ratio**0.5)
            for ratio in (others if every or number == len(least) - 1 else ())
        ]
        yield from squares + stretched if most_before_ratios else stretched + squares


def dense_priors(
    sizes: Sequence[float], fixed_ratios: Sequence[float], densities: Sequence[float], ratios: Sequence[float]
) -> Iterator[Prior]:
    """For each size and ratio density² boxes, shifted so that they cover a square of that size."""
    others = [ratio for ratio in ratios if abs(ratio - 1) >= SAME_RATIO]
    for size, density in zip(sizes, densities if sizes else (), strict=True):
        count, whole = int(density), int(size)
        shift = int(size / count)
        halves = [(size / 2 * ratio**0.5, size / 2 / ratio**0.5) for ratio in fixed_ratios or others]
        if not fixed_ratios:
            halves.insert(0, (whole / 2, whole / 2))
        places = [shift / 2 - whole // 2 + step * shift for step in range(count)]
        yield from (
            Prior(x, y, half_width, half_height, cut=True)
            for half_width, half_height in halves
            for y in places
            for x in places
        )


def prior_boxes(grid: tuple[int, int], image: tuple[int, int], attrs: Mapping[str, Any]) -> Array:
    step = attrs["step"]
    if not attrs["scale_all_sizes"]:
        step = image[0] / max(grid[0], 1) if step == -1 else step * image[0]
    offset = attrs["offset"] if step else 0.5
    priors = cell_priors(attrs, image[0])
    return prior_grid(priors, grid, image, steps(step, grid, image), offset, attrs["clip"], attrs["variance"])


def cell_priors(attrs: Mapping[str, Any], image_height: int = 1) -> list[Prior]:
    """The boxes of one cell."""
    every = attrs["scale_all_sizes"]
    sizes = [size if every else size * image_height for size in attrs["min_size"]]
    ratios = aspect_ratios(attrs["aspect_ratio"], attrs["flip"])
    order = attrs.get("min_max_aspect_ratios_order", True)
    return [
        *dense_priors(attrs["fixed_size"], attrs["fixed_ratio"], attrs["density"], ratios),
        *square_priors(sizes, attrs["max_size"], ratios, every, order),
    ]


def cell_prior_count(attrs: Mapping[str, Any]) -> int:
    """How many boxes one cell has."""
    ratios = aspect_ratios(attrs["aspect_ratio"], attrs["flip"])
    others = sum(abs(ratio - 1) >= SAME_RATIO for ratio in ratios)
    every, sizes = attrs["scale_all_sizes"], len(attrs["min_size"])
    squares = sizes + min(len(attrs["max_size"]), sizes) if every else sizes
    stretched = others * (sizes if every else min(sizes, 1))
    halves = len(attrs["fixed_ratio"]) or others + 1
    dense = sum(int(density) ** 2 for density in attrs["density"]) if attrs["fixed_size"] else 0
    return squares + stretched + dense * halves


def prior_grid(
    priors: Sequence[Prior],
    grid: tuple[int, int],
    image: tuple[int, int],
    step: tuple[float, float],
    offset: float,
    clip: bool,
    variance: Sequence[float],
) -> Array:
    """The rows of boxes, relative to the size of the image, and of their variances; all pairs are (y, x)."""
    parts = [(p.across, p.down, p.half_width, p.half_height) for p in priors]
    shape = np.array(parts, np.float32).reshape(-1, 4)
    scale = np.float32(1) / np.array(image, np.float32)
    rows, columns = (
        (np.arange(number, dtype=np.float32) + np.float32(offset)) * np.float32(size)
        for number, size in zip(grid, step, strict=True)
    )
    sides = np.empty((*grid, len(shape), 4), np.float32)
    x, y = columns[:, None] + shape[:, 0], rows[:, None, None] + shape[:, 1]
    sides[..., 0], sides[..., 2] = ((x + sign * shape[:, 2]) * scale[1] for sign in (-1, 1))
    sides[..., 1], sides[..., 3] = ((y + sign * shape[:, 3]) * scale[0] for sign in (-1, 1))
    cut = np.array([prior.cut for prior in priors], bool)[:, None]
    sides[..., :2] = np.where(cut, np.maximum(sides[..., :2], 0), sides[..., :2])
    sides[..., 2:] = np.where(cut, np.minimum(sides[..., 2:], 1), sides[..., 2:])
    if clip:
        sides = np.clip(sides, 0, 1)
    spread = np.broadcast_to(np.array(variance or (0.1,), np.float32), 4)
    return np.stack([sides.ravel(), np.tile(spread, sides.size // 4)])


def grid_shape(node: Node, priors: int) -> Shapes:
    """The length of the rows for a number of priors per cell; the sizes of grid and image are checked."""
    variance = node.attrs["variance"]
    node.require(
        "C1",
        len(variance) in (0, 1, 4),
        f"`variance` has {len(variance)} elements, expected 0, 1 or 4",
        about=["variance"],
    )
    for name, least in (("output_size", 0), ("image_size", 1)):
        for position, size in enumerate(node.sizes(name) or ()):
            node.require("C2", size >= least, f"`{name}[{position}]` is {size}, expected {least} or more", name)
    grid = node.sizes("output_size")
    return {} if grid is None else {"length": product(grid) * (4 * priors)}


def as_pair(sizes: Array) -> tuple[int, int]:
    first, second = (int(size) for size in sizes)
    return first, second


def steps(step: float, grid: tuple[int, int], image: tuple[int, int]) -> Any:
    """The distance of the cells' middles in pixels; a step of 0 spreads them over the image."""
    return (step, step) if step else tuple(np.float32(size) / max(number, 1) for size, number in zip(image, grid))  # noqa: B905
