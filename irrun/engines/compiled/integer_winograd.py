"""Convolutions of codes by 3 x 3 windows, one pixel apart, as Winograd has them: less than half the products, exactly
what they are otherwise."""

from __future__ import annotations

from math import prod

import numpy as np

from irrun.engines.compiled.code import LANES, LINE
from irrun.engines.compiled.integer_product import CHUNKS, Cut, Geometry, Product, Told, chunks_of, kept
from irrun.engines.compiled.integer_winograd_kernel import PAIR, POINTS, TILES, WinogradKind, address_of, transformed
from irrun.engines.compiled.team import Team
from irrun.engines.grid import MAX_TERMS
from irrun.engines.memory import aligned
from irrun.records import dataclass
from irrun.spec.op import Array

LEAST_TILES = 32
"""Of a convolution, in all: weights, of which there are 3.6 times as many bytes, are read for so many at least."""

LEAST_CHANNELS = 32
"""Of data and of results: what is done before and behind the sums takes longer than what these save, of fewer."""

ROOM = 256 << 10
"""Bytes of what numbers become that a band has, about: they stay in the second cache."""

BAND_TILES = 48
"""That a band has all the same, where there are so many: weights are read once for them."""

PANELS = 4
"""Of a chunk, at most: their sums stay in the second cache."""


def _across(size: int) -> int:
    """Tiles along an axis."""
    return -(-size // 2)


def is_possible(geometry: Geometry, columns: int) -> bool:
    """Whether windows are such, and there is something to be won. The sums of more terms, four times what they are, 32
    bits do not hold."""
    if geometry.channels * prod(axis.kernel for axis in geometry.axes) > MAX_TERMS // 4:
        return False
    if geometry.groups > 1 or geometry.channels % LANES or min(geometry.channels, columns) < LEAST_CHANNELS:
        return False
    if any((axis.kernel, axis.stride, axis.dilation) != (3, 1, 1) for axis in geometry.axes):
        return False
    tiles = prod(_across(axis.windows) for axis in geometry.axes)
    windows = prod(axis.windows for axis in geometry.axes)
    return geometry.images * tiles >= LEAST_TILES and tiles * 3 <= windows


def arranged(codes: Array) -> Array:
    """Codes [columns, channels, 3, 3], as the kernel reads them: i16 [panels, points, pairs, 16 columns, 2]."""
    columns, channels = codes.shape[:2]
    panels, pairs = -(-columns // LANES), channels // 2
    padded = np.zeros((POINTS**2, panels * LANES, pairs), np.int32)  # pairs, which are moved as one
    padded[:, :columns] = transformed(codes).view(np.int32).reshape(POINTS**2, columns, pairs)
    made = kept(padded.reshape(POINTS**2, panels, LANES, pairs).transpose(1, 0, 3, 2))
    return made.view(np.int16).reshape(panels, POINTS**2, pairs, LANES, 2)


@dataclass(frozen=True, slots=True)
class Winograd(Product):
    """Weights are as `arranged`."""

    def cut(self, team: Team) -> Cut:
        geometry, (height, width) = self.geometry, self.pixels
        down, across = _across(height), _across(width)
        own = POINTS**2 * across * geometry.channels * geometry.item
        rows = min(max(ROOM // own, -(-BAND_TILES // across)), down)
        shared, panels = self.is_shared(team), -(-self.columns // LANES)
        wanted = -(-CHUNKS * team.count // geometry.images) if shared else 1
        if -(-down // rows) * panels < wanted:
            rows = -(-down // -(-wanted // panels))
        rows = -(-down // -(-down // rows))
        bands = -(-down // rows)
        chunk, chunks = chunks_of(panels, max(-(-wanted // bands), -(-panels // PANELS)))
        reached = 2 * across + 2
        numbers, made, sums = self._room(rows, chunk)
        return Cut(2 * rows, bands, chunk, chunks, reached, numbers + made + sums, shared)

    def _tiles(self, rows: int) -> tuple[int, int]:
        """How many tiles of a band of so many rows of tiles are computed at once, and how many in all."""
        tiles = rows * _across(self.pixels[1])
        return min(((at_once, -(-tiles // at_once) * at_once) for at_once in TILES), key=lambda way: way[1])

    def _room(self, rows: int, chunk: int) -> tuple[int, int, int]:
        """Bytes of numbers, of what they become, and of sums, of so many rows of tiles and panels."""
        tile = self.geometry.channels * self.geometry.item
        tiles = self._tiles(rows)[1]
        numbers = (2 * rows + 2) * (2 * _across(self.pixels[1]) + 2) * tile + 8 * LINE
        return aligned(numbers), aligned(POINTS**2 * tiles * tile), aligned(chunk * POINTS**2 * tiles * LINE)

    def told(self, cut: Cut, weights: Array) -> Told:
        rows, tile = cut.rows // 2, self.geometry.channels * self.geometry.item
        at_once, tiles = self._tiles(rows)
        kind = WinogradKind(self.type, at_once, self.ending.ending)
        numbers, made, _ = self._room(rows, cut.chunk)
        told = {
            "pairs": weights.strides[1] // PAIR,
            "across": _across(self.pixels[1]),
            "made": numbers,
            "point": tiles * tile,
            "sums": numbers + made,
            "point_sums": tiles * LINE,
            "tile": tile,
            "columns": self.columns,
        }
        return Told(address_of(kind), kind.form, told, ())
