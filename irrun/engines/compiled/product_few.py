"""Products with compressed weights of a few rows: each code is made a number for every few rows that it meets."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from irrun.engines.compiled.bf16 import item_of, narrowed, vector_of
from irrun.engines.compiled.code import FLOAT, INT, LANES, Values, floats, long
from irrun.engines.compiled.decoding import STEP, bytes_of_step
from irrun.engines.compiled.product_code import ProductCode

AHEAD = 1024
"""Bytes of codes that are brought into the cache before they are read."""


class FewRows(ProductCode):
    """The code of such a kernel in the making."""

    def _part(self, first: Any, last: Any) -> None:
        c, b, size = self._c, self._c.b, self._kind.columns
        blocks = c.blocks(b.sub(last, first), long(size))

        def columns(number: Any) -> None:
            # as far apart as can be, each the one after the last one of its kind: the processor brings them into the
            # cache sooner than rows that begin anew all the time. Where columns are left over the last one is computed
            # several times
            begin = b.add(first, number)
            self._rows([c.least(c.at(begin, blocks, n), b.sub(last, long(1))) for n in range(size)])

        c.loop(blocks, columns)
        self._post(first, last, long(0), self._at["rows"])

    def _rows(self, numbers: list[Any]) -> None:
        c, b, at, size = self._c, self._c.b, self._at, long(self._kind.rows)

        def block(number: Any) -> None:
            self._tile(numbers, c.least(b.mul(number, size), b.sub(at["rows"], size)))

        c.loop(c.blocks(at["rows"], size), block)

    def _tile(self, numbers: list[Any], row: Any) -> None:
        """Some columns of some rows of the result: sums over the steps of a group are scaled and added up."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        columns, rows = range(kind.columns), range(kind.rows)
        codes = [c.at(at["codes"], numbers[n], at["code_row"]) for n in columns]
        data = [c.at(at["data"], b.add(row, long(m)), at["data_row"]) for m in rows]
        chains = 2 if len(columns) * len(rows) <= 4 else 1  # of sums that do not wait for one another
        pieces, vector, item = STEP // kind.lanes, ir.VectorType(FLOAT, kind.lanes), item_of(kind.rows_type)

        def group(number: Any, *totals: Any) -> Values:
            shifts = [self._factor("zero", numbers[n], number) for n in columns]
            begin = b.mul(number, at["steps"])

            def step(position: Any, *sums: Any) -> Values:
                made = list(sums)
                place = b.add(begin, position)
                code = b.mul(place, long(bytes_of_step(kind.type)))
                offset = b.mul(place, long(STEP * item))
                read = [
                    [
                        self._numbers(b.add(b.add(own, offset), long(n * kind.lanes * item)), vector)
                        for n in range(pieces)
                    ]
                    for own in data
                ]
                for n in columns:
                    c.prefetch(b.add(b.add(codes[n], code), long(AHEAD)))
                    values = self._pieces(self._decoder.decoded(b.add(codes[n], code), shifts[n]))
                    for m in rows:
                        for piece in range(pieces):
                            chain = (n * len(rows) + m) * chains + piece % chains
                            made[chain] = c.fma(values[piece], read[m][piece], made[chain])
                return made

            sums = self._steps(step, *[ir.Constant(vector, None)] * (len(totals) * chains))
            if chains == 2:
                sums = [b.fadd(one, other) for one, other in zip(sums[::2], sums[1::2], strict=True)]
            scales = [self._factor("scale", numbers[n], number) for n in columns for _ in rows]
            return [
                b.fadd(own, total) if scale is None else c.fma(own, self._pieces([scale])[0], total)
                for own, scale, total in zip(sums, scales, totals, strict=True)
            ]

        totals = c.loop(at["groups"], group, *[ir.Constant(vector, None)] * (len(columns) * len(rows)))
        for n in columns:
            for m in rows:
                place = c.at(at["result"], b.add(row, long(m)), at["result_row"])
                self._give(c.sum(totals[n * len(rows) + m]), place, numbers[n])

    def _numbers(self, address: Any, vector: ir.VectorType) -> Any:
        """Some of a row."""
        if self._kind.rows_type == "bf16":
            return vector_of(self._c, "bf16", address, None)
        return self._c.load(address, vector)

    def _give(self, value: Any, row: Any, column: Any) -> None:
        """Write a number to a row of the result."""
        c, type = self._c, self._kind.result_type
        if type == "bf16":
            value = c.b.extract_element(narrowed(c, c.splat(value), floats(0.0)), ir.Constant(INT, 0))
        c.store(value, c.at(row, column, item_of(type)))

    def _pieces(self, vectors: Values) -> Values:
        """Vectors of so many lanes as sums have, in the order of what is in these."""
        b, lanes = self._c.b, self._kind.lanes
        orders = [range(start, start + lanes) for start in range(0, LANES, lanes)]
        made = [ir.Constant(ir.VectorType(INT, lanes), list(order)) for order in orders]
        return [b.shuffle_vector(vector, vector, order) for vector in vectors for order in made]
