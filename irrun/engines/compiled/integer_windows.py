"""Products of codes whose windows may be any: codes are made numbers, and each window meets the weights."""

from __future__ import annotations

from math import prod

import numpy as np

from irrun.engines.compiled.code import LANES, LINE
from irrun.engines.compiled.integer_product import CHUNKS, Cut, Geometry, Product, Told, chunks_of, kept
from irrun.engines.compiled.integer_windows_kernel import CHANNEL_PIXELS, PAIR, PIXELS, WindowsKind, address_of
from irrun.engines.compiled.team import Team
from irrun.engines.memory import aligned, data_address
from irrun.records import dataclass
from irrun.spec.op import Array

ROOM = 128 << 10
"""Bytes of numbers that a band has, about: they stay in the second cache."""

LEAST_PIXELS = 56
"""Of a band of rows that are one pixel, which are as many as there are: weights are read once for them."""

LEAST_SAVED = 50
"""Pixels of a band of which one that is not computed is worth code of its own for the last ones."""


def runs_of(geometry: Geometry) -> int:
    """How often the numbers that a window covers are interrupted by others, and once more."""
    down, along = geometry.axes
    whole = along.dilation == 1 and geometry.groups == 1 and not geometry.single
    return down.kernel if whole else down.kernel * along.kernel


def arranged(geometry: Geometry, codes: Array) -> Array:
    """Codes [columns, channels of a group, taps down, taps along], as a kernel reads them: [panels, runs, pairs, 16
    columns, 2], or f32 [panels, taps, 16] where columns are of single channels."""
    columns, runs = len(codes), runs_of(geometry)
    if geometry.single:
        padded = np.zeros((-(-columns // LANES) * LANES, runs), np.float32)
        padded[:columns] = codes.reshape(columns, runs)
        return kept(padded.reshape(-1, LANES, runs).transpose(0, 2, 1))
    if geometry.joined > 1:
        codes = _joined(codes, geometry.groups, geometry.joined)
    groups, inner = geometry.panel_groups, codes.shape[1]
    own = len(codes) // groups
    terms = prod(codes.shape[1:]) // runs
    last = codes.reshape(groups, own, inner, -1).transpose(0, 1, 3, 2).reshape(groups, own, runs, terms)
    padded = np.zeros((groups, -(-own // LANES) * LANES, runs, terms + terms % 2), np.int8)
    padded[:, :own, :, :terms] = last
    pairs = padded.view(np.int16).reshape(-1, LANES, runs, padded.shape[-1] // 2)  # which are moved as one
    made = kept(pairs.transpose(0, 2, 3, 1))
    return made.view(np.int8).reshape(*made.shape, 2)


def _joined(codes: Array, groups: int, joined: int) -> Array:
    """Groups as fewer ones, with zeros for the channels of others and for groups that are not there."""
    own, inner, taps = len(codes) // groups, codes.shape[1], codes.shape[2:]
    fewer = -(-groups // joined)
    made = np.zeros((fewer * joined, own, joined, inner, *taps), codes.dtype)
    for number in range(joined):
        made[number:groups:joined, :, number] = codes.reshape(groups, own, inner, *taps)[number::joined]
    return made.reshape(fewer * joined * own, joined * inner, *taps)


def tiled(pixels: int, most: int) -> tuple[int, int]:
    """How many pixels of a band are computed at once, `most` or fewer, and how many last ones apart from others."""
    tiles = -(-pixels // most)
    size = -(-pixels // tiles)
    beyond = tiles * size - pixels
    return size, size - beyond if beyond * LEAST_SAVED > pixels else 0


@dataclass(frozen=True, slots=True)
class Windows(Product):
    """Any product of codes; weights are as `arranged`."""

    def cut(self, team: Team) -> Cut:
        geometry, (down, along), (height, width) = self.geometry, self.geometry.axes, self.pixels
        reached = along.covered(along.windows)
        length = reached * geometry.channels * geometry.item
        least = min(LEAST_PIXELS, height) if geometry.flat else 1
        rows = max(min((ROOM // length - down.covered(1)) // down.stride + 1, height), least)
        (groups, own), shared = self._own, self.is_shared(team)
        panels = groups * -(-own // LANES)
        if shared and geometry.images * -(-height // rows) * panels < CHUNKS * team.count:
            wanted = -(-CHUNKS * team.count // (geometry.images * panels))
            rows = min(rows, max(-(-height // wanted), -(-LEAST_PIXELS // width)))
        rows = -(-height // -(-height // rows))
        bands = -(-height // rows)
        chunks = -(-CHUNKS * team.count // (bands * geometry.images)) if shared else 1
        beyond = -geometry.groups % geometry.joined * geometry.channels // geometry.groups  # channels of no group
        room = aligned(down.covered(rows) * length + beyond * geometry.item + 8 * LINE)
        return Cut(rows, bands, *chunks_of(panels, chunks), reached, room, shared)

    def told(self, cut: Cut, weights: Array) -> Told:
        geometry, (down, along), width = self.geometry, self.geometry.axes, self.pixels[1]
        pixels, most = cut.rows * width, CHANNEL_PIXELS if geometry.single else PIXELS
        kind = WindowsKind(self.type, geometry.single, *tiled(pixels, most), self.ending.ending)
        length = cut.reached * geometry.channels * geometry.item
        numbers = np.arange(-(-pixels // kind.pixels) * kind.pixels, dtype=np.int64)  # as many as are computed at once
        rows, places = np.divmod(np.minimum(numbers, pixels - 1), width)
        windows = rows * (down.stride * length) + places * (along.stride * geometry.channels * geometry.item)
        steps, shifts = self._steps(length), self._shifts()
        told = {
            "shifts": data_address(shifts),
            "places": data_address(windows),
            "runs": runs_of(geometry),
            "steps": data_address(steps),
            "pairs": 1 if geometry.single else weights.strides[1] // PAIR,
            "stride": down.stride,
            "reach": down.covered(1),
            "flat": int(geometry.flat),
        }
        return Told(address_of(kind), kind.form, told, (windows, steps, shifts))

    def _steps(self, length: int) -> Array:
        """Where the runs of a window begin, in bytes behind it."""
        down, along = self.geometry.axes
        lines = np.arange(down.kernel, dtype=np.int64)[:, None] * (down.dilation * length)
        if runs_of(self.geometry) == down.kernel:
            return lines.reshape(-1)
        taps = np.arange(along.kernel)[None] * (along.dilation * self.geometry.channels * self.geometry.item)
        return (lines + taps).reshape(-1)

    @property
    def _own(self) -> tuple[int, int]:
        """Groups that have panels of their own, and columns of each."""
        if self.geometry.single:
            return 1, self.columns
        return self.geometry.panel_groups, self.columns // self.geometry.groups * self.geometry.joined

    def _shifts(self) -> Array:
        """Of the panels: where their channels begin, in bytes, their first column, and how many of these they have."""
        geometry, item, (groups, own) = self.geometry, self.geometry.item, self._own
        starts = np.arange(0, own, LANES)
        shifts = np.zeros((groups, len(starts), 3), np.int64)
        between = geometry.channels // geometry.groups * geometry.joined * item
        shifts[..., 0] = starts * item if geometry.single else np.arange(groups)[:, None] * between
        shifts[..., 1] = np.arange(groups)[:, None] * own + starts
        shifts[..., 2] = np.minimum(np.minimum(own - starts, LANES), self.columns - shifts[..., 1])
        return shifts
