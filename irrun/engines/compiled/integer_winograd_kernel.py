"""The kernel of convolutions of codes by 3 x 3 windows, one pixel apart, by Winograd's F(2 x 2, 3 x 3): 16 products a
channel make 2 x 2 pixels, for 36 of windows.

All is done in whole numbers, and exact. With B' = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)), 4 x 4
numbers d become B' d B, which 16 bits hold; A' = ((1, 1, 1, 0), (0, 1, -1, -1)) makes results of the 16 sums, four
times what they are, as the weights are (see `transformed`).

Source: A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, CVPR 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.code import HALF_INTS, INTS, LANES, LINE, SHORTS, Code, Form, ints, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.ending import Ending
from irrun.engines.compiled.integer_code import Item, form_of
from irrun.records import dataclass
from irrun.spec.op import Array

POINTS = 4
"""Of a tile along an axis: two results, and what their windows reach over."""

PAIR = 4 * LANES
"""Bytes of weights that meet a pair of numbers: two of each column."""

TILES = (6, 5, 4)
"""How many may be computed at once: with their sums, weights, a pair and a product 16 registers are full."""

UNROLLED = 2
"""Pairs of a loop's turn."""


@dataclass(frozen=True, slots=True)
class WinogradKind:
    """What a kernel is compiled for: the type of codes, how many tiles are computed at once, and what becomes of the
    sums."""

    type: str
    tiles: int
    ending: Ending

    @property
    def form(self) -> Form:
        """A line has `across` tiles. In the scratch there are numbers, `made` bytes behind them what becomes of these,
        for each point of tiles `point` bytes, and `sums` bytes behind the beginning the sums of panels, `point_sums`
        bytes for each point. Tiles are `tile` bytes apart. There are `columns` in all."""
        return form_of(self.ending, "across", "made", "point", "sums", "point_sums", "tile", "columns")


def address_of(kind: WinogradKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    return compiled(kind, lambda function: _Tiles(kind, function).write(), passes=False)


def transformed(codes: Array) -> Array:
    """Weights [columns, channels, 3, 3] as the sums want them, i16 [4, 4, columns, channels]: 2 G w (2 G)', with halves
    in G."""
    taps = np.ascontiguousarray(codes.transpose(2, 3, 0, 1)).astype(np.int16)
    return _points_of(_points_of(taps).swapaxes(0, 1)).swapaxes(0, 1)


def _points_of(taps: Array) -> Array:
    outer = taps[0] + taps[2]
    return np.stack((2 * taps[0], outer + taps[1], outer - taps[1], 2 * taps[2]))


class _Tiles(Item):
    """A tile is 2 x 2 results of a panel; tiles are computed for each of 16 points first."""

    def __init__(self, kind: WinogradKind, function: ir.Function) -> None:
        (arguments,) = function.args
        super().__init__(Code(function), arguments, kind.form, kind.ending, kind.type, kept=4)
        self._kind = kind

    def prepare(self) -> None:
        c, b, at = self.c, self.c.b, self.at
        down = self._down()
        self.widen(b.sub(self.first, at["begin"]), b.add(b.mul(down, long(2)), long(2)))
        line = b.mul(b.add(b.add(at["left"], at["body"]), at["right"]), long(2))
        target = b.add(self.numbers, at["made"])

        def tile(row: Any, number: Any) -> None:
            source = c.at(c.at(self.numbers, row, b.mul(line, long(2))), number, b.mul(at["tile"], long(2)))
            made = c.at(target, b.add(b.mul(row, at["across"]), number), at["tile"])
            step = 2 * LANES
            channels = b.udiv(at["tile"], long(step))
            c.loop(channels, lambda n: self._transform(c.at(source, n, step), c.at(made, n, step), line))

        c.loop(down, lambda row: c.loop(at["across"], lambda number: tile(row, number)))

    def _down(self) -> Any:
        """The lines of tiles of the band."""
        return self.c.blocks(self.rows, long(2))

    def _transform(self, source: Any, target: Any, line: Any) -> None:
        """16 channels of a tile."""
        c, at = self.c, self.at
        columns = []
        for across in range(POINTS):
            start = c.at(source, long(across), at["tile"])
            columns.append(self._points([c.load(c.at(start, long(down), line), SHORTS, 2) for down in range(POINTS)]))
        for down in range(POINTS):
            for across, value in enumerate(self._points([column[down] for column in columns])):
                c.keep(value, c.at(target, long(POINTS * down + across), at["point"]))

    def _points(self, d: Sequence[Any]) -> list[Any]:
        b = self.c.b
        return [b.sub(d[0], d[2]), b.add(d[1], d[2]), b.sub(d[2], d[1]), b.sub(d[1], d[3])]

    def _results(self, m: Sequence[Any]) -> list[Any]:
        b = self.c.b
        return [b.add(b.add(m[0], m[1]), m[2]), b.sub(b.sub(m[1], m[2]), m[3])]

    def compute(self, first: Any, count: Any) -> None:
        c, b, at = self.c, self.c.b, self.at
        tiles = b.mul(self._down(), at["across"])
        blocks = c.blocks(tiles, long(self._kind.tiles))
        data, sums = b.add(self.numbers, at["made"]), b.add(self.numbers, at["sums"])
        of_panel = b.mul(at["point_sums"], long(POINTS**2))

        def point(number: Any) -> None:
            def panel(n: Any) -> None:
                weights = c.at(
                    c.at(at["weights"], b.add(first, n), at["panel"]), number, b.mul(at["pairs"], long(PAIR))
                )
                start, target = c.at(data, number, at["point"]), c.at(c.at(sums, n, of_panel), number, at["point_sums"])
                c.loop(blocks, lambda block: self._block(start, weights, target, b.mul(block, long(self._kind.tiles))))

            c.loop(count, panel)

        c.loop(long(POINTS**2), point)
        c.loop(count, lambda n: self._panel(b.add(first, n), c.at(sums, n, of_panel)))

    def _block(self, data: Any, weights: Any, sums: Any, first: Any) -> None:
        """The sums of some tiles at a point; those beyond the last one are of whatever there is."""
        c, b, at = self.c, self.c.b, self.at
        starts = [c.at(data, b.add(first, long(n)), at["tile"]) for n in range(self._kind.tiles)]

        def pairs(n: Any, *held: Any) -> Sequence[Any]:
            for more in range(UNROLLED):
                number = b.add(b.mul(n, long(UNROLLED)), long(more))
                place = c.at(weights, number, PAIR)
                own = [c.load(b.add(place, long(half * PAIR // 2)), SHORTS, 2) for half in range(2)]
                held = tuple(self.add_products([c.at(start, number, 4) for start in starts], own, held))
            return held

        turns = b.udiv(at["pairs"], long(UNROLLED))
        made = c.loop(turns, pairs, *[ir.Constant(HALF_INTS, None)] * (2 * len(starts)))
        for n, value in enumerate(self.whole(made)):
            c.store(value, c.at(sums, b.add(first, long(n)), LINE))

    def _panel(self, panel: Any, sums: Any) -> None:
        """The results of a panel, of its sums."""
        c, b, at = self.c, self.c.b, self.at
        column = b.mul(panel, long(LANES))
        count = c.least(b.sub(at["columns"], column), long(LANES))

        def tile(row: Any, number: Any) -> None:
            place = c.at(sums, b.add(b.mul(row, at["across"]), number), LINE)
            columns = []
            for across in range(POINTS):
                points = (long(POINTS * down + across) for down in range(POINTS))
                columns.append(self._results([c.load(c.at(place, point, at["point_sums"]), INTS) for point in points]))
            made = [value for down in range(2) for value in self._results([own[down] for own in columns])]
            top, left = b.mul(row, long(2)), b.mul(number, long(2))
            high, wide = (
                c.least(b.sub(size, start), long(2)) for size, start in ((self.rows, top), (at["width"], left))
            )

            first = b.add(b.mul(b.add(self.first, top), at["width"]), left)
            pixels = [b.add(c.at(first, long(down), at["width"]), long(n)) for down in range(2) for n in range(2)]
            whole = b.icmp_unsigned("==", b.add(high, wide), long(4))

            def others(one: Callable[[Any, Any], None]) -> None:
                def line(down: Any) -> None:
                    pixel = c.at(first, down, at["width"])
                    c.loop(wide, lambda n: one(b.add(b.mul(down, long(2)), n), b.add(pixel, n)))

                c.loop(high, line)

            self.finish([b.ashr(value, ints(2)) for value in made], column, count, pixels, whole, others)

        c.loop(self._down(), lambda row: c.loop(at["across"], lambda number: tile(row, number)))
