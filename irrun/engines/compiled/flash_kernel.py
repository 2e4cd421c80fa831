"""What attention of many rows is compiled to: a block of keys after the other for a block of rows, of whose scores only
those of a few rows and the keys of a block are ever there (flash attention, https://arxiv.org/abs/2205.14135).

Threads share blocks of rows. What multiplies these is in `flash_vectors.py`, for any processor, `flash_pairs.py` and
`flash_tiles.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.bf16 import item_of, number_of
from irrun.engines.compiled.code import (
    FLOAT,
    FLOATS,
    INT,
    LINE,
    LONG,
    Code,
    floats,
    lanes_of,
    long,
)
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.flash_form import FORM, HEAD, FlashKind
from irrun.engines.memory import ITEM


def address_of(kind: FlashKind, block: type[Block]) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    # there is nothing for LLVM's passes to do, which take as long as all the rest
    return compiled(kind, partial(_write, kind, block), passes=False)


def _write(kind: FlashKind, block: type[Block], function: ir.Function) -> None:
    c, (arguments,) = Code(function), function.args
    at = FORM.loaded(c, arguments)
    room = FORM.claimed(c, arguments, at)
    block.opened(c)
    c.share(arguments, long(1), at["items"], lambda item: block(kind, c, at, room, item).write())
    block.closed(c)
    c.b.ret_void()


class Block:
    """The code for a block of rows: what all kinds have in common. `opened` is what a thread does before its first one,
    `closed` what it does after its last. `terms` are the types of a term and of a vector of them."""

    terms: ClassVar[tuple[ir.Type, ir.Type]] = FLOAT, FLOATS

    @staticmethod
    def opened(c: Code) -> None:
        pass

    @staticmethod
    def closed(c: Code) -> None:
        pass

    def __init__(self, kind: FlashKind, c: Code, at: dict[str, Any], room: Any, item: Any) -> None:
        b = c.b
        self._kind, self._c, self._at, self._room = kind, c, at, room
        head, block = b.udiv(item, at["blocks"]), b.urem(item, at["blocks"])
        start = c.at(at["heads"], head, 8 * len(HEAD))
        self._own = {name: c.load(b.add(start, long(8 * n)), LONG, 8) for n, name in enumerate(HEAD)}
        self._first = b.mul(block, at["block"])
        self._rows = c.least(at["block"], b.sub(at["rows"], self._first))
        self._tiles = c.blocks(self._rows, long(kind.tile[0]))
        self._factor = c.splat(b.bitcast(b.trunc(at["factor"], INT), FLOAT))

    def write(self) -> None:
        c, b, at = self._c, self._c.b, self._at

        def begin(row: Any, most: Any) -> list[Any]:
            within = self._within(row)
            self._begin(row, within)
            return [c.most(most, c.load(c.at(at["ends"], within, 8), LONG, 8))]

        (keys,) = c.loop(b.mul(self._tiles, long(self._kind.tile[0])), begin, long(1))

        def block(number: Any) -> None:
            first = b.mul(number, long(self._kind.keys))
            many = c.least(long(self._kind.keys), b.sub(keys, first))
            self._pack(first, many)
            c.loop(self._tiles, lambda number: self._tile(number, first, many))

        c.loop(c.blocks(keys, long(self._kind.keys)), block)
        c.loop(self._rows, self._end)

    def _row(self, number: Any) -> Any:
        """Where a row lies in the memory of the thread."""
        return self._c.at(self._c.b.add(self._room, long(self._kind.rows_at)), number, self._kind.row_size)

    def _within(self, row: Any) -> Any:
        """The number of a row of the block; the last one for those beyond it."""
        return self._c.b.add(self._first, self._c.least(row, self._c.b.sub(self._rows, long(1))))

    def _begin(self, row: Any, within: Any) -> None:
        """Rows beyond the last one are computed like that, and not written."""
        c, b, kind = self._c, self._c.b, self._kind
        place, query = self._row(row), c.at(self._own["query"], within, self._at["query_row"])
        self._take(query, place)
        for start in range(kind.sums_at, kind.peak_at, LINE):
            c.store(floats(0.0), b.add(place, long(start)))
        peak = ir.Constant(FLOAT, -np.inf)
        if kind.sink:  # one more score, of which nothing but its weight is added
            peak = number_of(c, kind.type, c.at(self._own["sink"], within, self._at["sink_row"]))
            c.store(ir.Constant(FLOAT, 1.0), b.add(place, long(kind.total_at)))
        c.store(peak, b.add(place, long(kind.peak_at)))

    def _take(self, query: Any, place: Any) -> None:
        """Have a row of the query in the memory of the thread."""
        raise NotImplementedError

    def _pack(self, first: Any, many: Any) -> None:
        """Have keys and values of a block in the memory of the thread. Those beyond the last one are 0."""
        raise NotImplementedError

    def _tile(self, number: Any, first: Any, many: Any) -> None:
        """Some rows and a block of keys."""
        raise NotImplementedError

    def _give(self, value: Any, address: Any, count: int) -> None:
        """Write the first numbers of a vector to the result."""
        raise NotImplementedError

    def _sums(
        self, left: Any, row: int, lines: Sequence[Any], step: int, count: Any, unrolled: int, sums: Sequence[Any]
    ) -> list[Any]:
        """`sums` with the products of `count` more terms of 4 bytes, a multiple of those that are `unrolled`, for each
        row of a tile, `row` bytes apart from `left` on, and each of the vectors of columns that begin at `lines`,
        `step` bytes from term to term."""
        c, b = self._c, self._c.b
        one, all = self.terms

        def terms(number: Any, *sums: Any) -> list[Any]:
            made, begin = list(sums), b.mul(number, long(unrolled))
            for n in range(unrolled):
                vectors = [c.load(b.add(c.at(line, begin, step), long(n * step)), all) for line in lines]
                for m in range(self._kind.tile[0]):
                    own = c.splat(c.load(b.add(c.at(left, begin, ITEM), long(m * row + n * ITEM)), one))
                    for k, vector in enumerate(vectors):
                        place = m * len(lines) + k
                        made[place] = self._added(made[place], own, vector)
            return made

        return list(c.loop(b.udiv(count, long(unrolled)), terms, *sums))

    def _added(self, sums: Any, own: Any, vector: Any) -> Any:
        """Sums with the products of a vector of terms and one of a row, in all lanes."""
        raise NotImplementedError

    def _settle(self, place: Any, rows: int) -> None:
        """Find the greatest score so far of each of some rows, at most 16, and what weights before that come to."""
        c, b, kind = self._c, self._c.b, self._kind
        places = [b.add(place, long(m * kind.row_size)) for m in range(rows)]
        lows, befores = floats(-np.inf), floats(-np.inf)
        for m, own in enumerate(places):
            before = c.load(b.add(own, long(kind.peak_at)), FLOAT)
            now = c.greatest(c.peak(c.load(b.add(own, long(kind.edge_at)), FLOATS)), before)
            c.store(now, b.add(own, long(kind.peak_at)))
            lows, befores = (
                b.insert_element(old, new, ir.Constant(INT, m)) for old, new in ((lows, now), (befores, before))
            )
        # 0 where all are hidden so far, so that they weigh nothing
        lows = b.select(b.fcmp_ordered("==", lows, floats(-np.inf)), floats(0.0), lows)
        factors = c.decay(b.fsub(befores, lows))
        for m, own in enumerate(places):
            for vector, start in ((factors, kind.scale_at), (lows, kind.less_at)):
                c.store(b.extract_element(vector, ir.Constant(INT, m)), b.add(own, long(start)))

    def _end(self, row: Any) -> None:
        c, b, kind = self._c, self._c.b, self._kind
        place = self._row(row)
        target = c.at(self._own["result"], b.add(self._first, row), self._at["result_row"])
        divisor = c.splat(c.sum(c.load(b.add(place, long(kind.total_at)), FLOATS)))
        for start, count in lanes_of(kind.width):
            value = c.load(b.add(place, long(kind.sums_at + start)), FLOATS)
            self._give(b.fdiv(value, divisor), b.add(target, long(start // ITEM * item_of(kind.type))), count)
