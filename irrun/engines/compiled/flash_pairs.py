"""Attention of many rows of bf16, whose products are of pairs of numbers (AVX512-BF16), of some rows at a time.

Keys and values come in the memory of the thread as pairs of 16 columns a line, as tiles have them. Scores are f32, and
weights are rounded to bf16 where their scores were. Sums, of weights too, are f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.amx import TILE
from irrun.engines.compiled.attention_kernel import hidden
from irrun.engines.compiled.bf16 import PAIRS, added, item_of, narrowed
from irrun.engines.compiled.code import (
    BOOL,
    FLOAT,
    FLOATS,
    INT,
    INTS,
    LANES,
    LINE,
    NUMBERS,
    SHORTS,
    floats,
    ints,
    long,
    vectors_of,
)
from irrun.engines.compiled.flash_kernel import Block

UNROLLED = 2
"""Pairs of terms that are written one after the other."""

_BEHIND = ir.Constant(ir.VectorType(INT, 2 * LANES), [lane // 2 + lane % 2 * LANES for lane in range(2 * LANES)])
"""The lanes of two vectors in turn."""


def _first_lanes(count: int, lanes: int) -> ir.Constant | None:
    """Which of so many lanes are among the first `count`; None where all are."""
    if count >= lanes:
        return None
    return ir.Constant(ir.VectorType(BOOL, lanes), [int(lane < count) for lane in range(lanes)])


class PairedBlock(Block):
    """The code for a block of rows of bf16, whose terms are pairs of numbers."""

    terms = INT, INTS

    def _take(self, query: Any, place: Any) -> None:
        c, b, size = self._c, self._c.b, self._kind.size
        for start in range(0, size, 2 * LANES):
            c.keep(self._line(b.add(query, long(2 * start)), size - start), b.add(place, long(2 * start)))

    def _line(self, address: Any, count: int) -> Any:
        """32 numbers of bf16; zeros behind the first `count`."""
        return self._c.some(address, PAIRS, _first_lanes(count, 2 * LANES), 2)

    def _pack(self, first: Any, many: Any) -> None:
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        last = b.sub(many, long(1))
        keys, values = (c.at(self._own[name], first, at[f"{name}_row"]) for name in ("key", "value"))

        def key(number: Any) -> None:
            begin = b.mul(number, long(LANES))
            rows = [c.at(keys, c.least(b.add(begin, long(n)), last), at["key_row"]) for n in range(LANES)]
            for step in range(kind.steps):
                start = step * LINE
                lines = [self._line(b.add(row, long(start)), kind.size - start // 2) for row in rows]
                turned = c.transposed([b.bitcast(line, INTS) for line in lines])
                target = b.add(c.at(self._room, number, kind.steps * TILE), long(step * TILE))
                for n, line in enumerate(turned):
                    c.store(line, b.add(target, long(n * LINE)))

        c.loop(b.mul(c.blocks(many, long(2 * LANES)), long(2)), key)
        panels = vectors_of(kind.width)

        def pair(number: Any) -> None:
            numbers = [b.add(b.mul(number, long(2)), long(n)) for n in range(2)]
            rows = [c.at(values, c.least(own, last), at["value_row"]) for own in numbers]
            there = [b.icmp_unsigned("<", own, many) for own in numbers]
            tiles = c.at(b.add(self._room, long(kind.values_at)), b.lshr(number, long(4)), panels * TILE)
            target = c.at(tiles, b.and_(number, long(LANES - 1)), LINE)
            for panel in range(panels):
                start = panel * LANES
                inside = _first_lanes(kind.width - start, LANES)
                found = [c.some(b.add(row, long(2 * start)), SHORTS, inside, 2) for row in rows]
                found = [b.select(own, line, ir.Constant(SHORTS, None)) for own, line in zip(there, found, strict=True)]
                c.store(b.shuffle_vector(*found, _BEHIND), b.add(target, long(panel * TILE)))

        c.loop(b.mul(c.blocks(many, long(2 * LANES)), long(LANES)), pair)

    def _tile(self, number: Any, first: Any, many: Any) -> None:
        c, b, kind = self._c, self._c.b, self._kind
        row = b.mul(number, long(kind.tile[0]))
        place, scores = self._row(row), b.add(self._room, long(kind.scores_at))
        steps = c.blocks(many, long(2 * LANES))
        c.loop(steps, lambda step: self._score(place, scores, step))
        c.loop(long(kind.tile[0]), lambda m: self._hide(b.add(row, m), place, scores, m, first, many))
        for start in range(0, kind.tile[0], LANES):
            self._settle(b.add(place, long(start * kind.row_size)), min(kind.tile[0] - start, LANES))
        c.loop(long(kind.tile[0]), lambda m: self._weigh(place, scores, m, steps))
        for panel in range(0, vectors_of(kind.width), 2):
            self._add(place, scores, steps, panel)

    def _score(self, place: Any, scores: Any, step: Any) -> None:
        """Products of the rows of a tile and 32 keys, not scaled yet."""
        b, kind = self._c.b, self._kind
        keys = self._c.at(self._room, step, 2 * kind.steps * TILE)
        lines = [b.add(keys, long(n * kind.steps * TILE)) for n in range(2)]
        sums = [floats(0.0)] * (2 * kind.tile[0])
        sums = self._sums(place, kind.row_size, lines, LINE, long(kind.steps * LANES), UNROLLED, sums)
        self._keep(sums, self._c.at(scores, step, 2 * LINE), kind.scores_row)

    def _added(self, sums: Any, own: Any, vector: Any) -> Any:
        return added(self._c, sums, own, vector)

    def _keep(self, sums: Sequence[Any], address: Any, row: int) -> None:
        """Store what sums there are for each row of a tile, side by side."""
        columns = len(sums) // self._kind.tile[0]
        for n, vector in enumerate(sums):
            self._c.store(vector, self._c.b.add(address, long(n // columns * row + n % columns * LINE)))

    def _hide(self, row: Any, place: Any, scores: Any, m: Any, first: Any, many: Any) -> None:
        """Scale the scores of a row and hide some of them; and the greatest one, still a vector of them."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        within, own = self._within(row), c.at(scores, m, kind.scores_row)
        mask = c.at(c.at(self._own["mask"], within, at["mask_row"]), first, item_of(kind.mask))
        there = many
        if kind.causal:  # what the row sees, which may be nothing of a block
            seen = b.sub(b.add(within, long(1)), first)
            there = b.select(b.icmp_signed("<", seen, many), seen, many)
        there = c.splat(b.trunc(there, INT))

        def vectors(number: Any, *most: Any) -> list[Any]:
            made = []
            for n, greatest in enumerate(most):
                vector = b.add(b.mul(number, long(2)), long(n))
                start, where = b.mul(vector, long(LANES)), c.at(own, vector, LINE)
                inside = b.icmp_signed("<", b.add(NUMBERS, c.splat(b.trunc(start, INT))), there)
                value = b.fmul(c.load(where, FLOATS), self._factor)
                if kind.mask is not None:
                    value = b.fadd(value, hidden(c, kind.mask, mask, start, inside))
                value = b.select(inside, value, floats(-np.inf))
                c.store(value, where)
                made.append(c.greatest(value, greatest))
            return made

        one, other = c.loop(c.blocks(many, long(2 * LANES)), vectors, *[floats(-np.inf)] * 2)
        c.store(c.greatest(one, other), b.add(c.at(place, m, kind.row_size), long(kind.edge_at)))

    def _weigh(self, place: Any, scores: Any, m: Any, steps: Any) -> None:
        """Make weights of the scores of a row, and have the sums of those before be of the same greatest score."""
        c, b, kind = self._c, self._c.b, self._kind
        own, weights = c.at(place, m, kind.row_size), c.at(scores, m, kind.scores_row)
        scale = c.load(b.add(own, long(kind.scale_at)), FLOAT)
        less, factor = c.splat(c.load(b.add(own, long(kind.less_at)), FLOAT)), c.splat(scale)
        with b.if_then(b.fcmp_unordered("!=", scale, ir.Constant(FLOAT, 1.0))):
            for start in range(kind.sums_at, kind.peak_at, LINE):
                where = b.add(own, long(start))
                c.store(b.fmul(c.load(where, FLOATS), factor), where)

        def vectors(number: Any, *totals: Any) -> list[Any]:
            where = c.at(weights, number, 2 * LINE)
            made = [c.rough_decay(b.fsub(c.load(b.add(where, long(n * LINE)), FLOATS), less)) for n in range(2)]
            line = narrowed(c, *made)
            c.keep(line, c.at(weights, number, LINE))
            # the sum is of what is multiplied, so that roundings weigh the differences of values alone
            pairs = b.bitcast(line, INTS)
            halves = b.shl(pairs, ints(16)), b.and_(pairs, ints(-1 << 16))
            return [b.fadd(total, b.bitcast(half, FLOATS)) for total, half in zip(totals, halves, strict=True)]

        total = b.add(own, long(kind.total_at))
        one, other = c.loop(steps, vectors, c.load(total, FLOATS), floats(0.0))
        c.store(b.fadd(one, other), total)

    def _add(self, place: Any, scores: Any, steps: Any, panel: int) -> None:
        """Add values to the sums of the rows of a tile, as much of each as it weighs, for up to 32 columns."""
        c, b, kind = self._c, self._c.b, self._kind
        panels = vectors_of(kind.width)
        columns = range(panel, min(panel + 2, panels))
        target = b.add(place, long(kind.sums_at + panel * LINE))
        starts = [
            b.add(target, long(m * kind.row_size + n * LINE))
            for m in range(kind.tile[0])
            for n, _ in enumerate(columns)
        ]

        def add(step: Any, *sums: Any) -> list[Any]:
            values = c.at(b.add(self._room, long(kind.values_at)), step, panels * TILE)
            lines = [b.add(values, long(n * TILE)) for n in columns]
            return self._sums(c.at(scores, step, LINE), kind.scores_row, lines, LINE, long(LANES), UNROLLED, sums)

        self._keep(c.loop(steps, add, *[c.load(start, FLOATS) for start in starts]), target, kind.row_size)

    def _give(self, value: Any, address: Any, count: int) -> None:
        c, b = self._c, self._c.b
        line = narrowed(c, value, floats(0.0))
        order = ir.Constant(ir.VectorType(INT, count), list(range(count)))
        c.keep(b.shuffle_vector(line, line, order), address)
