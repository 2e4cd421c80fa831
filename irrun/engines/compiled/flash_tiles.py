"""Attention of many rows of bf16, whose products are of the processor's tiles (AMX), of 32 rows at a time."""

from __future__ import annotations

from typing import Any

from irrun.engines.compiled import amx
from irrun.engines.compiled.amx import TILE
from irrun.engines.compiled.code import LANES, LINE, Code, long, vectors_of
from irrun.engines.compiled.flash_pairs import PairedBlock


class TiledBlock(PairedBlock):
    """The code for a block of rows of bf16."""

    @staticmethod
    def opened(c: Code) -> None:
        amx.configured(c)

    @staticmethod
    def closed(c: Code) -> None:
        amx.released(c)

    def _score(self, place: Any, scores: Any, step: Any) -> None:
        c, b, kind = self._c, self._c.b, self._kind
        for sums in range(4):
            amx.cleared(c, sums)
        keys = c.at(self._room, step, 2 * kind.steps * TILE)
        rows = [b.add(place, long(n * LANES * kind.row_size)) for n in range(2)]
        for start in range(kind.steps):
            left = [b.add(own, long(start * LINE)) for own in rows]
            right = [b.add(keys, long((n * kind.steps + start) * TILE)) for n in range(2)]
            self._multiply(left, kind.row_size, right)
        self._moved(amx.stored, c.at(scores, step, 2 * LINE), kind.scores_row, 2)

    def _multiply(self, left: list[Any], row: int, right: list[Any]) -> None:
        """Add the products of two tiles, one below the other, and one or two, side by side, to the first four tiles."""
        c = self._c
        for n, address in enumerate(left):
            amx.loaded(c, 4 + n, address, long(row))
        for n, address in enumerate(right):
            amx.loaded(c, 6 + n, address, long(LINE))
        for n in range(len(right)):
            for m in range(2):
                amx.multiplied(c, 2 * m + n, 4 + m, 6 + n)

    def _moved(self, move: Any, address: Any, row: int, columns: int) -> None:
        """Load or store the first four tiles, two below one another, and so many side by side."""
        for m in range(2):
            for n in range(columns):
                move(self._c, 2 * m + n, self._c.b.add(address, long(m * LANES * row + n * LINE)), long(row))

    def _add(self, place: Any, scores: Any, steps: Any, panel: int) -> None:
        c, b, kind = self._c, self._c.b, self._kind
        panels = vectors_of(kind.width)
        columns = min(2, panels - panel)
        sums = b.add(place, long(kind.sums_at + panel * LINE))
        self._moved(amx.loaded, sums, kind.row_size, columns)

        def add(step: Any) -> None:
            left = [b.add(c.at(scores, step, LINE), long(n * LANES * kind.scores_row)) for n in range(2)]
            values = c.at(b.add(self._room, long(kind.values_at)), step, panels * TILE)
            right = [b.add(values, long((panel + n) * TILE)) for n in range(columns)]
            self._multiply(left, kind.scores_row, right)

        c.loop(steps, add)
        self._moved(amx.stored, sums, kind.row_size, columns)
