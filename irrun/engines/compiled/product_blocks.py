"""Products with compressed weights of some rows: a few columns of the weights at a time are made f32, for all rows."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import FLOAT, INT, LINE, LONG, Values, long
from irrun.engines.compiled.decoding import STEP, bytes_of_step
from irrun.engines.compiled.product_code import BLOCK_WIDTH, FORM, ProductCode
from irrun.engines.memory import ITEM


class Blocks(ProductCode):
    """The code of such a kernel in the making."""

    def write(self) -> None:
        b = self._c.b
        self._nowhere = b.ptrtoint(b.alloca(FLOAT), LONG)
        self._room = FORM.claimed(self._c, self._arguments, self._at)
        super().write()

    def _part(self, first: Any, last: Any) -> None:
        """A chunk of columns, some of which are made f32 at a time."""
        c, b, size = self._c, self._c.b, long(BLOCK_WIDTH)

        def block(number: Any) -> None:
            begin = b.add(first, b.mul(number, size))
            self._block(begin, c.least(size, b.sub(last, begin)))

        c.loop(c.blocks(b.sub(last, first), size), block)
        self._post(first, last, long(0), self._at["rows"])

    def _block(self, first: Any, many: Any) -> None:
        """Some columns, a part of the groups after the other: the weights are made f32, and multiplied."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        size, rows = long(kind.columns), long(kind.rows)

        def part(number: Any) -> None:
            group = b.mul(number, at["part"])
            groups = c.least(at["part"], b.sub(at["groups"], group))

            def unpack(column: Any) -> None:
                self._unpack(b.add(first, column), c.at(self._room, column, at["room_row"]), group, groups)

            def some_rows(block: Any) -> None:
                def some_columns(tile: Any) -> None:
                    self._sums(b.mul(block, rows), first, b.mul(tile, size), many, group, groups)

                c.loop(c.blocks(many, size), some_columns)

            c.loop(many, unpack)
            c.loop(c.blocks(at["rows"], rows), some_rows)

        c.loop(c.blocks(at["groups"], at["part"]), part)

    def _unpack(self, column: Any, target: Any, group: Any, groups: Any) -> None:
        """Write the values of some groups of a column."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        codes = c.at(at["codes"], column, at["code_row"])
        following = b.mul(at["code_row"], long(BLOCK_WIDTH))

        def each(number: Any) -> None:
            own = b.add(group, number)
            shift, scale = self._factor("zero", column, own), self._factor("scale", column, own)

            def step(position: Any) -> None:
                code = b.mul(b.add(b.mul(own, at["steps"]), position), long(bytes_of_step(kind.type)))
                place = b.mul(b.add(b.mul(number, at["steps"]), position), long(STEP * ITEM))
                c.prefetch(b.add(b.add(codes, code), following))
                for half, values in enumerate(self._decoder.in_order(self._decoder.decoded(b.add(codes, code), shift))):
                    address = b.add(b.add(target, place), long(LINE * half))
                    scaled = values if scale is None else b.fmul(values, scale)
                    c.store(scaled, address)

            self._steps(step)

        c.loop(groups, each)

    def _sums(self, row: Any, first: Any, column: Any, many: Any, group: Any, groups: Any) -> None:
        """What some groups add to some rows and columns of the result; those beyond its end go nowhere."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        columns, rows = range(kind.columns), range(kind.rows)
        lengths = b.mul(groups, at["steps"])
        begin = b.mul(b.mul(group, at["steps"]), long(STEP * ITEM))
        own = [c.least(b.add(column, long(n)), b.sub(many, long(1))) for n in columns]
        weights = [c.at(self._room, place, at["room_row"]) for place in own]
        inside = [c.least(b.add(row, long(m)), b.sub(at["rows"], long(1))) for m in rows]
        data = [b.add(c.at(at["data"], place, at["data_row"]), begin) for place in inside]
        vector, by_rows = ir.VectorType(FLOAT, kind.lanes), kind.rows < kind.columns
        few, others = (data, weights) if by_rows else (weights, data)

        def step(number: Any, *sums: Any) -> Values:
            made = list(sums)
            for start in range(0, STEP * ITEM, kind.lanes * ITEM):
                offset = b.add(b.mul(number, long(STEP * ITEM)), long(start))
                held = [c.load(b.add(place, offset), vector) for place in few]
                for passing, place in enumerate(others):
                    values = c.load(b.add(place, offset), vector)
                    for kept, own in enumerate(held):
                        m, n = (kept, passing) if by_rows else (passing, kept)
                        made[m * kind.columns + n] = c.fma(values, own, made[m * kind.columns + n])
            return made

        sums = c.loop(lengths, step, *[ir.Constant(vector, None)] * (len(columns) * len(rows)))
        fresh = b.icmp_unsigned("==", group, long(0))
        totals = self._totals(sums, kind.columns)
        starts = [c.at(c.at(at["result"], place, at["result_row"]), first, ITEM) for place in inside]
        whole = b.and_(
            b.icmp_unsigned("<=", b.add(row, long(kind.rows)), at["rows"]),
            b.icmp_unsigned("<=", b.add(column, long(kind.columns)), many),
        )
        with b.if_else(whole, likely=True) as (all_there, some_there):
            with all_there:
                for own, start in zip(totals, starts, strict=True):
                    place = c.at(start, column, ITEM)
                    before = b.select(fresh, ir.Constant(own.type, None), c.load(place, own.type))
                    c.store(b.fadd(before, own), place)
            with some_there:
                for m in rows:
                    for n in columns:
                        there = b.and_(
                            b.icmp_unsigned("<", b.add(row, long(m)), at["rows"]),
                            b.icmp_unsigned("<", b.add(column, long(n)), many),
                        )
                        place = b.select(there, c.at(starts[m], b.add(column, long(n)), ITEM), self._nowhere)
                        before = b.select(fresh, ir.Constant(FLOAT, 0.0), c.load(place, FLOAT))
                        c.store(b.fadd(before, b.extract_element(totals[m], ir.Constant(INT, n))), place)

    def _totals(self, vectors: Values, many: int) -> list[Any]:
        """The sums of the lanes of each vector, those of `many` of them in one. All are a multiple of these, a power
        of 2."""
        b, lanes = self._c.b, self._kind.lanes
        at_once = lanes if len(vectors) == lanes else many
        totals = []
        for begin in range(0, len(vectors), at_once):
            half = lanes // at_once // 2
            total = self._c.sums(vectors[begin : begin + at_once], lanes)
            while half:
                moved = ir.Constant(ir.VectorType(INT, lanes), [n ^ half for n in range(lanes)])
                total = b.fadd(total, b.shuffle_vector(total, total, moved))
                half //= 2
            for start in range(0, at_once, many):
                places = [(start + n) * (lanes // at_once) for n in range(many)]
                totals.append(b.shuffle_vector(total, total, ir.Constant(ir.VectorType(INT, many), places)))
        return totals
