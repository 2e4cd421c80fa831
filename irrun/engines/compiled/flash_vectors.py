"""Attention of many rows of f32, whose products are of vectors and numbers, of some rows at a time.

Keys come as panels of 16, and values as whole vectors, in the memory of the thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.engines.compiled.attention_kernel import hidden
from irrun.engines.compiled.bf16 import item_of
from irrun.engines.compiled.code import FLOAT, FLOATS, INT, LANES, LINE, NUMBERS, floats, lanes_of, long, vectors_of
from irrun.engines.compiled.flash_kernel import Block

UNROLLED = 4
"""Terms of sums that are written one after the other, where so many divide them."""


class VectorBlock(Block):
    """The code for a block of rows of f32."""

    def _take(self, query: Any, place: Any) -> None:
        c, b = self._c, self._c.b
        for start, count in lanes_of(self._kind.size):
            c.store(b.fmul(c.read(b.add(query, long(start)), count), self._factor), b.add(place, long(start)))

    def _pack(self, first: Any, many: Any) -> None:
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        last = b.sub(many, long(1))
        keys, values = (c.at(self._own[name], first, at[f"{name}_row"]) for name in ("key", "value"))
        whole, rest = divmod(kind.size, LANES)

        def panel(number: Any) -> None:
            begin = b.mul(number, long(LANES))
            rows = [c.at(keys, c.least(b.add(begin, long(n)), last), at["key_row"]) for n in range(LANES)]
            target = c.at(self._room, number, LINE * kind.size)

            def square(number: Any, count: int = LANES) -> None:
                start = b.mul(number, long(LINE))
                turned = c.transposed([c.read(b.add(row, start), count) for row in rows])
                for n, vector in enumerate(turned[:count]):
                    c.store(vector, b.add(c.at(target, number, LANES * LINE), long(n * LINE)))

            if whole:
                c.loop(long(whole), square)
            if rest:
                square(long(whole), rest)

        panels = c.blocks(many, long(LANES * kind.tile[1]))
        c.loop(b.mul(panels, long(kind.tile[1])), panel)

        def value(number: Any) -> None:
            source = c.at(values, c.least(number, last), at["value_row"])
            target = c.at(b.add(self._room, long(kind.values_at)), number, vectors_of(kind.width) * LINE)
            there = b.icmp_unsigned("<", number, many)
            for start, count in lanes_of(kind.width):
                vector = b.select(there, c.read(b.add(source, long(start)), count), floats(0.0))
                c.store(vector, b.add(target, long(start)))

        c.loop(b.mul(c.blocks(many, long(LANES)), long(LANES)), value)

    def _tile(self, number: Any, first: Any, many: Any) -> None:
        c, b, kind = self._c, self._c.b, self._kind
        row = b.mul(number, long(kind.tile[0]))
        place, scores = self._row(row), b.add(self._room, long(kind.scores_at))
        self._score(row, place, scores, first, many)
        self._weigh(place, scores, many)
        at_once = kind.tile[1]
        groups, rest = divmod(vectors_of(kind.width), at_once)
        if groups:
            c.loop(long(groups), lambda group: self._add(place, scores, many, b.mul(group, long(at_once)), at_once))
        if rest:
            self._add(place, scores, many, long(groups * at_once), rest)

    def _add(self, place: Any, scores: Any, many: Any, column: Any, vectors: int) -> None:
        """Add values to the sums of the rows of a tile, as much of each as it weighs, for some vectors of columns."""
        c, b, kind = self._c, self._c.b, self._kind
        count, stride, start = c.blocks(many, long(LANES)), vectors_of(kind.width) * LINE, b.mul(column, long(LINE))
        some = range(0, vectors * LINE, LINE)
        lines = [b.add(b.add(self._room, long(kind.values_at + n)), start) for n in some]
        made = iter(self._products(scores, kind.scores_row, lines, stride, b.mul(count, long(LANES)), LANES))
        for m in range(kind.tile[0]):
            factor = c.splat(c.load(b.add(place, long(m * kind.row_size + kind.scale_at)), FLOAT))
            for n in some:
                target = b.add(b.add(place, long(m * kind.row_size + kind.sums_at + n)), start)
                c.store(c.fma(c.load(target, FLOATS), factor, next(made)), target)

    def _score(self, row: Any, place: Any, scores: Any, first: Any, many: Any) -> None:
        """The scores of a tile, and the greatest ones of its rows, still a vector of each."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        at_once = kind.tile[1]
        edges = [b.add(place, long(m * kind.row_size + kind.edge_at)) for m in range(kind.tile[0])]
        within = [self._within(b.add(row, long(m))) for m in range(kind.tile[0])]
        masks = [c.at(c.at(self._own["mask"], own, at["mask_row"]), first, item_of(kind.mask)) for own in within]
        there = c.splat(b.trunc(many, INT))
        seen = [c.splat(b.trunc(b.sub(b.add(own, long(1)), first), INT)) for own in within]
        for edge in edges:
            c.store(floats(-np.inf), edge)

        def panels(group: Any) -> None:
            panel = b.mul(group, long(at_once))
            lines = [c.at(self._room, b.add(panel, long(n)), LINE * kind.size) for n in range(at_once)]
            sums = iter(self._products(place, kind.row_size, lines, LINE, long(kind.size), kind.size))
            target = c.at(scores, panel, LINE)
            starts = [b.mul(b.add(panel, long(n)), long(LANES)) for n in range(at_once)]
            numbers = [b.add(NUMBERS, c.splat(b.trunc(start, INT))) for start in starts]
            inside = [b.icmp_signed("<", own, there) for own in numbers]
            for m, edge in enumerate(edges):
                most = c.load(edge, FLOATS)
                for n, start in enumerate(starts):
                    value, shown = next(sums), inside[n]
                    if kind.mask is not None:
                        value = b.fadd(value, hidden(c, kind.mask, masks[m], start, inside[n]))
                    if kind.causal:
                        shown = b.and_(shown, b.icmp_signed("<", numbers[n], seen[m]))
                    value = b.select(shown, value, floats(-np.inf))
                    c.store(value, b.add(target, long(m * kind.scores_row + n * LINE)))
                    most = c.greatest(value, most)
                c.store(most, edge)

        c.loop(c.blocks(many, long(LANES * at_once)), panels)

    def _products(self, left: Any, row: int, lines: list[Any], step: int, count: Any, multiple: int) -> list[Any]:
        """Sums over `count` terms, a multiple of `multiple`, for each row of a tile, `row` bytes apart from `left` on,
        and each of the vectors of columns that begin at `lines`, `step` bytes from term to term."""
        unrolled = next(n for n in (UNROLLED, 2, 1) if not multiple % n)
        zeros = [floats(0.0)] * (self._kind.tile[0] * len(lines))
        return self._sums(left, row, lines, step, count, unrolled, zeros)

    def _added(self, sums: Any, own: Any, vector: Any) -> Any:
        return self._c.fma(vector, own, sums)

    def _weigh(self, place: Any, scores: Any, many: Any) -> None:
        """Make weights of the scores of a tile: exp of them, less the greatest one of the row so far."""
        c, b, kind = self._c, self._c.b, self._kind
        self._settle(place, kind.tile[0])

        def row(number: Any) -> None:
            own, weights = c.at(place, number, kind.row_size), c.at(scores, number, kind.scores_row)
            less, factor = (c.splat(c.load(b.add(own, long(n)), FLOAT)) for n in (kind.less_at, kind.scale_at))

            def power(vector: Any, total: Any) -> list[Any]:
                where = c.at(weights, vector, LINE)
                made = c.decay(b.fsub(c.load(where, FLOATS), less))
                c.store(made, where)
                return [b.fadd(total, made)]

            total = b.add(own, long(kind.total_at))
            (made,) = c.loop(c.blocks(many, long(LANES)), power, b.fmul(c.load(total, FLOATS), factor))
            c.store(made, total)

        c.loop(long(kind.tile[0]), row)

    def _give(self, value: Any, address: Any, count: int) -> None:
        self._c.write(value, address, count)
