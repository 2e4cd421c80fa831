"""The kernels of products of codes: pairs of codes in 16 bits, some pixels at a time.

Convolutions of single channels are computed in f32, in which such sums are exact, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import BYTES, FLOATS, HALF_INTS, LANES, LINE, LONG, SHORTS, Code, Form, floats, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.ending import Ending
from irrun.engines.compiled.integer_code import Item, form_of
from irrun.engines.memory import ITEM
from irrun.records import dataclass

PAIR = 2 * LANES
"""Bytes of weights that meet a pair of codes: two of each column."""

PIXELS = 6
"""At once, at most: with their sums, weights, a pair and a product 16 registers are full."""

CHANNEL_PIXELS = 4
"""The same of convolutions of single channels."""


@dataclass(frozen=True, slots=True)
class WindowsKind:
    """What a kernel is compiled for: the type of codes; whether each column is of one channel, its own; how many pixels
    are computed at once, and how many last ones have code of their own, or 0; and what becomes of the sums."""

    type: str
    single: bool
    pixels: int
    rest: int
    ending: Ending

    @property
    def form(self) -> Form:
        """Windows of the pixels of a band, and of some more, begin at `places` in the numbers, and their `runs` of
        pairs (or numbers) go from `steps` on, those of panels `shifts` later. Windows of rows are `stride` lines apart,
        and reach over `reach`; where lines are `flat`, each is a pixel, without zeros."""
        return form_of(self.ending, "shifts", "places", "runs", "steps", "stride", "reach", "flat")


def address_of(kind: WindowsKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    # LLVM's passes take three times as long as the rest, and only what goes over single channels is quicker with them
    return compiled(kind, lambda function: _Windows(kind, function).write(), passes=kind.single)


class _Windows(Item):
    """Of windows of any size."""

    def __init__(self, kind: WindowsKind, function: ir.Function) -> None:
        (arguments,), bytes = function.args, ITEM if kind.single else 2
        super().__init__(Code(function), arguments, kind.form, kind.ending, kind.type, bytes=bytes, kept=kind.pixels)
        self._kind = kind

    def prepare(self) -> None:
        c, b, at = self.c, self.c.b, self.at
        with b.if_else(b.icmp_unsigned("!=", at["flat"], long(0))) as (flat, several):
            with flat:
                start = c.at(c.at(at["data"], self.image, at["image"]), self.first, at["row"])
                self.widen_codes(start, self.numbers, b.mul(self.rows, at["body"]))
            with several:
                lines = b.add(b.mul(b.sub(self.rows, long(1)), at["stride"]), at["reach"])
                self.widen(b.sub(b.mul(self.first, at["stride"]), at["begin"]), lines)

    def compute(self, first: Any, count: Any) -> None:
        c, b, at, kind = self.c, self.c.b, self.at, self._kind
        pixels, size = b.mul(self.rows, at["width"]), long(kind.pixels)
        tiles, rest = c.blocks(pixels, size), long(kind.rest)
        if kind.rest:
            own = b.icmp_unsigned("==", b.urem(pixels, size), rest)
            tiles = b.select(own, b.sub(tiles, long(1)), tiles)

        def panel(number: Any) -> None:
            number = b.add(first, number)
            c.times(tiles, lambda tile: self._tile(number, b.mul(tile, size), pixels, kind.pixels))
            if kind.rest:
                with b.if_then(own):
                    self._tile(number, b.sub(pixels, rest), pixels, kind.rest)

        c.loop(count, panel)

    def _tile(self, panel: Any, first: Any, pixels: Any, size: int) -> None:
        """So many pixels of a panel; those beyond the last one are of whatever there is, and are not written."""
        c, b, at, kind = self.c, self.c.b, self.at, self._kind
        told = c.at(at["shifts"], panel, 3 * 8)
        shift, column, count = (c.load(b.add(told, long(8 * n)), LONG) for n in range(3))
        start, windows = b.add(self.numbers, shift), c.at(at["places"], first, 8)
        starts = [b.add(start, c.load(b.add(windows, long(8 * n)), LONG)) for n in range(size)]
        weights = c.at(at["weights"], panel, at["panel"])
        sums = self._of_channels(starts, weights) if kind.single else self._of_pairs(starts, weights)
        there = c.least(long(size), b.sub(pixels, first))
        before = b.add(b.mul(self.first, at["width"]), first)
        numbers = [b.add(before, long(n)) for n in range(size)]

        def others(one: Any) -> None:
            c.loop(there, lambda n: one(n, b.add(before, n)))

        self.finish(sums, column, count, numbers, b.icmp_unsigned("==", there, long(size)), others)

    def _of_pairs(self, starts: Sequence[Any], weights: Any) -> list[Any]:
        c, b, at = self.c, self.c.b, self.at

        def run(number: Any, *before: Any) -> list[Any]:
            step = c.load(c.at(at["steps"], number, 8), LONG)
            places, line = [b.add(start, step) for start in starts], c.at(weights, b.mul(number, at["pairs"]), PAIR)

            def pair(n: Any, *held: Any) -> list[Any]:
                place = c.at(line, n, PAIR)
                own = [b.sext(c.load(b.add(place, long(half * LANES)), BYTES, 1), SHORTS) for half in range(2)]
                return self.add_products([c.at(start, n, 4) for start in places], own, held)

            return list(c.loop(at["pairs"], pair, *before))

        return self.whole(c.loop(at["runs"], run, *[ir.Constant(HALF_INTS, None)] * (2 * len(starts))))

    def _of_channels(self, starts: Sequence[Any], weights: Any) -> list[Any]:
        c, b, at = self.c, self.c.b, self.at

        def tap(number: Any, *held: Any) -> list[Any]:
            step = c.load(c.at(at["steps"], number, 8), LONG)
            factor = c.load(c.at(weights, number, LINE), FLOATS)
            return [
                c.fma(c.load(b.add(start, step), FLOATS), factor, total)
                for start, total in zip(starts, held, strict=True)
            ]

        return list(c.loop(at["runs"], tap, *[floats(0.0)] * len(starts)))
