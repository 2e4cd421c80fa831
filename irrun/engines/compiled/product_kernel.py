"""What a product with compressed weights is compiled to: loops over codes of weights and rows of data.

A step of codes is two vectors. Of codes that share bytes these are the ones with even and with odd numbers, so the rows
that they are multiplied with come in that order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import FLOAT, FLOATS, INT, INTS, LANES, LINE, LONG, Code, Values, floats, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.decoding import STEP, Decoder, bytes_of_step
from irrun.engines.memory import ITEM
from irrun.records import dataclass

AHEAD = 4096
"""Bytes of codes, at least, that are brought into the cache before they are read: rows are too short for the processor
to do that of its own accord."""

MAX_UNROLLED = 4
"""Steps of a group that are written one after the other instead of as a loop."""

BLOCK_WIDTH = 8
"""Columns of weights that are made f32 at once, where that is done for many rows: they stay in the first cache."""

ARGUMENTS = (
    *("next", "chunk", "columns", "codes", "code_row", "data", "data_row", "rows", "numbers"),
    *("scale", "scale_row", "scale_group", "zero", "zero_row", "zero_group", "groups", "steps", "result", "result_row"),
    *("part", "room", "room_row", "room_size"),
)
"""Of every kernel, one after the other in memory as u64: addresses, numbers, and strides in bytes.

Any number of threads may run a kernel on the same arguments: each takes `chunk` columns, from `next` on, until all
`columns` are taken. `numbers` are those of 16 codes, `steps` are those of a group. Where weights are made f32 first,
that is `part` groups of `BLOCK_WIDTH` columns at a time, a column every `room_row` bytes, in memory that the first
thread finds at `room` and the next one `room_size` bytes behind.
"""

COUNTERS = ("next", "room")
"""The arguments that a kernel changes."""


@dataclass(frozen=True, slots=True)
class ProductKind:
    """What a kernel is compiled for: the type of the codes, whether there are scales and zero points, and how many
    columns and rows of the result are computed at once.

    `steps` are those of a group, 0 where they are told in a call. With `blocks` weights are made f32 before, which pays
    where there are many rows; else each code is for every few rows that it meets. With 0 rows that is all: the result
    are the weights.
    """

    type: str
    scaled: bool
    shifted: bool
    columns: int
    rows: int
    steps: int = 0
    blocks: bool = False
    lanes: int = LANES


def address_of(kind: ProductKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    return compiled(kind, lambda function: _Product(function, kind).write())


class _Product:
    """The code of a kernel in the making."""

    def __init__(self, function: ir.Function, kind: ProductKind) -> None:
        self._c, self._kind = Code(function), kind
        (self._arguments,) = function.args
        self._at = {name: self._c.b.load(self._place(name)) for name in ARGUMENTS if name not in COUNTERS}
        self._decoder = Decoder(self._c, kind.type, self._at["numbers"])

    def write(self) -> None:
        """Chunks of columns until there are none left."""
        c, b, at = self._c, self._c.b, self._at
        if self._kind.blocks and self._kind.rows:
            self._nowhere = b.ptrtoint(b.alloca(FLOAT), LONG)
            self._room = b.atomic_rmw("add", self._place("room"), at["room_size"], "monotonic")

        def chunk(first: Any) -> None:
            self._part(first, c.least(b.add(first, at["chunk"]), at["columns"]))

        c.share(self._place("next"), at["chunk"], at["columns"], chunk)
        b.ret_void()

    def _part(self, first: Any, last: Any) -> None:
        if not self._kind.rows:
            self._values(first, last)
        elif self._kind.blocks:
            self._blocks(first, last)
        else:
            self._columns(first, last)

    def _values(self, first: Any, last: Any) -> None:
        """The weights themselves, as f32."""
        c, b, at = self._c, self._c.b, self._at

        def unpack(number: Any) -> None:
            column = b.add(first, number)
            self._unpack(column, c.at(at["result"], column, at["result_row"]), long(0), at["groups"])

        c.loop(b.sub(last, first), unpack)

    def _columns(self, first: Any, last: Any) -> None:
        c, b, at, size = self._c, self._c.b, self._at, long(self._kind.columns)

        def block(number: Any) -> None:
            # the last block begins earlier where columns are left over: some are computed twice
            self._rows(c.least(b.add(first, b.mul(number, size)), b.sub(at["columns"], size)))

        c.loop(c.blocks(b.sub(last, first), size), block)

    def _rows(self, column: Any) -> None:
        c, b, at, size = self._c, self._c.b, self._at, long(self._kind.rows)

        def block(number: Any) -> None:
            self._tile(column, c.least(b.mul(number, size), b.sub(at["rows"], size)))

        c.loop(c.blocks(at["rows"], size), block)

    def _tile(self, column: Any, row: Any) -> None:
        """Some columns of some rows of the result: sums over the steps of a group are scaled and added up."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        columns, rows = range(kind.columns), range(kind.rows)
        codes = [c.at(at["codes"], b.add(column, long(n)), at["code_row"]) for n in columns]
        data = [c.at(at["data"], b.add(row, long(m)), at["data_row"]) for m in rows]
        ahead = c.most(b.mul(at["code_row"], long(2 * kind.columns)), long(AHEAD))
        chains = 2 if len(columns) * len(rows) <= 4 else 1  # of sums that do not wait for one another
        pieces, vector = STEP // kind.lanes, ir.VectorType(FLOAT, kind.lanes)

        def group(number: Any, *totals: Any) -> Values:
            shifts = [self._factor("zero", b.add(column, long(n)), number) for n in columns]
            begin = b.mul(number, at["steps"])

            def step(position: Any, *sums: Any) -> Values:
                made = list(sums)
                place = b.add(begin, position)
                code = b.mul(place, long(bytes_of_step(kind.type)))
                offset = b.mul(place, long(STEP * ITEM))
                read = [
                    [c.load(b.add(b.add(own, offset), long(n * kind.lanes * ITEM)), vector) for n in range(pieces)]
                    for own in data
                ]
                for n in columns:
                    c.prefetch(b.add(b.add(codes[n], code), ahead))
                    values = self._pieces(self._decoder.decoded(b.add(codes[n], code), shifts[n]))
                    for m in rows:
                        for piece in range(pieces):
                            chain = (n * len(rows) + m) * chains + piece % chains
                            made[chain] = c.fma(values[piece], read[m][piece], made[chain])
                return made

            sums = self._steps(step, *[ir.Constant(vector, None)] * (len(totals) * chains))
            if chains == 2:
                sums = [b.fadd(one, other) for one, other in zip(sums[::2], sums[1::2], strict=True)]
            scales = [self._factor("scale", b.add(column, long(n)), number) for n in columns for _ in rows]
            return [
                b.fadd(own, total) if scale is None else c.fma(own, self._pieces([scale])[0], total)
                for own, scale, total in zip(sums, scales, totals, strict=True)
            ]

        totals = c.loop(at["groups"], group, *[ir.Constant(vector, None)] * (len(columns) * len(rows)))
        for n in columns:
            for m in rows:
                place = c.at(at["result"], b.add(row, long(m)), at["result_row"])
                c.store(c.sum(totals[n * len(rows) + m]), c.at(place, b.add(column, long(n)), ITEM))

    def _pieces(self, vectors: Values) -> Values:
        """Vectors of so many lanes as sums have, in the order of what is in these."""
        b, lanes = self._c.b, self._kind.lanes
        orders = [range(start, start + lanes) for start in range(0, LANES, lanes)]
        made = [ir.Constant(ir.VectorType(INT, lanes), list(order)) for order in orders]
        return [b.shuffle_vector(vector, vector, order) for vector in vectors for order in made]

    def _blocks(self, first: Any, last: Any) -> None:
        """A chunk of columns, some of which are made f32 at a time."""
        c, b, size = self._c, self._c.b, long(BLOCK_WIDTH)

        def block(number: Any) -> None:
            begin = b.add(first, b.mul(number, size))
            self._block(begin, c.least(size, b.sub(last, begin)))

        c.loop(c.blocks(b.sub(last, first), size), block)

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
                for half, values in enumerate(self._decoder.decoded(b.add(codes, code), shift)):
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

    def _factor(self, name: str, column: Any, group: Any) -> Any:
        """The scale or zero point of a group in all lanes; None where there is none."""
        c, b, at = self._c, self._c.b, self._at
        if not (self._kind.scaled if name == "scale" else self._kind.shifted):
            return None
        place = b.add(at[name], b.add(b.mul(column, at[f"{name}_row"]), b.mul(group, at[f"{name}_group"])))
        return c.splat(c.load(place, FLOAT))

    def _steps(self, step: Callable[..., Values | None], *before: Any) -> Values:
        if not 0 < self._kind.steps <= MAX_UNROLLED:
            return self._c.loop(self._at["steps"], step, *before)
        made: Values = before
        for number in range(self._kind.steps):
            made = step(long(number), *made) or ()
        return made

    def _place(self, name: str) -> Any:
        return self._c.b.gep(self._arguments, [ir.Constant(INT, ARGUMENTS.index(name))])
