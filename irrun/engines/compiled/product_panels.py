"""Products with compressed weights of many rows: some columns of the weights at a time are made numbers, for all rows,
and lie term by term, so that one element of a row meets those of all these columns at once.

They are f32, or bf16 where the rows are: then two terms lie side by side, as the processor multiplies pairs
(AVX512-BF16), and a line has so many `terms` of 16 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.bf16 import added, narrowed
from irrun.engines.compiled.code import FLOAT, FLOATS, INT, INTS, LANES, LINE, SHORT, Code, Values, long
from irrun.engines.compiled.decoding import STEP, bytes_of_step
from irrun.engines.compiled.product_code import FORM, ProductCode, ProductKind
from irrun.engines.memory import ITEM

_WORDS, _PLACES = (ir.VectorType(type, STEP) for type in (SHORT, INT))
"""Of a step of codes of 16 bits: these, and where they come from."""

TERMS = {"f32": 1, "bf16": 2}
"""Of each column in a line of a panel, by the type of rows: they take 4 bytes of a row."""


class Panels(ProductCode):
    """The code of such a kernel in the making."""

    def __init__(self, function: ir.Function, kind: ProductKind) -> None:
        super().__init__(function, kind)
        self._narrow = kind.rows_type == "bf16"
        self._lines = STEP // TERMS[kind.rows_type]  # of a step, in each 16 columns

    def write(self) -> None:
        self._room = FORM.claimed(self._c, self._arguments, self._at)
        super().write()

    def _part(self, first: Any, last: Any) -> None:
        """A panel of columns, a part of the groups after the other."""
        c, b, at = self._c, self._c.b, self._at

        def part(number: Any) -> None:
            group = b.mul(number, at["part"])
            groups = c.least(at["part"], b.sub(at["groups"], group))

            def lay(vector: Any) -> None:
                self._lay(c.at(first, vector, LANES), c.at(self._room, vector, LINE), group, groups)

            c.loop(long(self._kind.columns // LANES), lay)
            self._rows(first, b.sub(last, first), group, groups)

        c.loop(c.blocks(at["groups"], at["part"]), part)

    def _lay(self, first: Any, target: Any, group: Any, groups: Any) -> None:
        """Make numbers of some groups of 16 columns, line by line; those beyond the last one are the last one once
        more."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        end, line = b.sub(at["columns"], long(1)), kind.columns * ITEM
        columns = [c.least(b.add(first, long(n)), end) for n in range(LANES)]
        codes = [c.at(at["codes"], column, at["code_row"]) for column in columns]

        def each(number: Any) -> None:
            own = b.add(group, number)
            factors = [[self._factor(name, column, own) for name in ("zero", "scale")] for column in columns]

            def step(position: Any) -> None:
                code = b.mul(b.add(b.mul(own, at["steps"]), position), long(bytes_of_step(kind.type)))
                place = c.at(target, b.add(b.mul(number, at["steps"]), position), self._lines * line)
                for n, values in self._terms([b.add(start, code) for start in codes], factors):
                    c.store(values, b.add(place, long(n * line)))

            c.loop(at["steps"], step)

        c.loop(groups, each)

    def _terms(self, codes: Values, factors: Sequence[Values]) -> Iterator[tuple[int, Any]]:
        """The numbers of the lines of a step, and what is in them."""
        c, b, kind = self._c, self._c.b, self._kind
        if self._narrow:
            lines = [narrowed(c, *self._values(*own)) for own in zip(codes, factors, strict=True)]
            yield from enumerate(c.transposed([b.bitcast(line, INTS) for line in lines]))
            return
        if bytes_of_step(kind.type) == 2 * STEP and not kind.shifted and not kind.scaled:
            yield from self._words([c.load(place, _WORDS, 1) for place in codes])
            return
        halves = zip(*(self._values(*own) for own in zip(codes, factors, strict=True)), strict=True)
        for side, half in enumerate(halves):
            for n, values in enumerate(c.transposed(half)):
                yield side * LANES + n, values

    def _values(self, place: Any, factors: Values) -> list[Any]:
        """The numbers of a step of codes of a column, two vectors."""
        shift, scale = factors
        made = self._decoder.in_order(self._decoder.decoded(place, shift))
        return made if scale is None else [self._c.b.fmul(values, scale) for values in made]

    def _words(self, lines: Values) -> Iterator[tuple[int, Any]]:
        """The same of codes of 16 bits, which are turned before they are numbers: that takes half as long."""
        c, b = self._c, self._c.b
        for start in (0, 4):  # of each eight terms
            terms = [first + n for first in range(start, STEP, 8) for n in range(4)]
            order = ir.Constant(_PLACES, [place for term in terms for place in (term, STEP + term)])
            pairs = [b.shuffle_vector(one, other, order) for one, other in zip(lines[::2], lines[1::2], strict=True)]
            for n, line in enumerate(c.transposed([b.bitcast(pair, INTS) for pair in pairs])):
                for half in (0, 1):
                    lanes = ir.Constant(INTS, list(range(LANES * half, LANES * (half + 1))))
                    own = b.bitcast(line, _WORDS)
                    yield terms[n + 8 * half], self._decoder.widened(b.shuffle_vector(own, own, lanes))

    def _rows(self, column: Any, many: Any, group: Any, groups: Any) -> None:
        """What some groups add to all rows of a panel of columns, of which there are so `many`."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        size, rows, vectors = b.mul(at["steps"], long(self._lines)), long(kind.rows), kind.columns // LANES
        begin, count, fresh = b.mul(group, size), b.mul(groups, size), b.icmp_unsigned("==", group, long(0))
        blocks, following = c.blocks(at["rows"], rows), b.add(column, at["ahead"])
        # all lines of all blocks of rows go over the codes of the next panel once
        coming = c.at(c.at(at["codes"], following, at["code_row"]), b.mul(begin, blocks), at["pace"])

        def block(number: Any) -> None:
            # the last rows are some of the block before once more, which are not added once more
            wanted = b.mul(number, rows)
            first = c.least(wanted, b.sub(at["rows"], rows))
            again = b.sub(wanted, first)
            data = b.add(c.at(at["data"], first, at["data_row"]), b.mul(begin, long(ITEM)))
            sums = self._sums(data, count, c.at(coming, b.mul(number, count), at["pace"]))
            place = c.at(c.at(at["result"], first, at["result_row"]), column, ITEM)
            for row in range(kind.rows):
                own, start = sums[row * vectors : (row + 1) * vectors], c.at(place, long(row), at["result_row"])
                with b.if_then(b.icmp_unsigned(">=", long(row), again), likely=True):
                    self._add(own, start, fresh, many)

            with b.if_then(b.icmp_unsigned("==", b.add(group, groups), at["groups"])):
                self._post(column, b.add(column, many), wanted, c.least(b.add(wanted, rows), at["rows"]))

        c.loop(blocks, block)

    def _add(self, sums: Values, place: Any, fresh: Any, many: Any) -> None:
        """Add sums to a row of the result, of which none was written if it is `fresh`, as `many` as are there."""
        c, b = self._c, self._c.b

        def put(inside: Values) -> None:
            places = [b.add(place, long(start * LINE)) for start in range(len(sums))]
            with b.if_else(fresh) as (first, further):
                with first:
                    for own, address, lanes in zip(sums, places, inside, strict=True):
                        c.put(own, address, lanes)
                with further:
                    for own, address, lanes in zip(sums, places, inside, strict=True):
                        c.put(b.fadd(own, c.some(address, FLOATS, lanes)), address, lanes)

        with b.if_else(b.icmp_unsigned(">=", many, long(len(sums) * LANES)), likely=True) as (all_there, some_there):
            with all_there:
                put([None] * len(sums))
            with some_there:
                put([c.first_lanes(b.sub(many, long(start * LANES))) for start in range(len(sums))])

    def _sums(self, data: Any, count: Any, coming: Any) -> Values:
        """Those of `count` lines for rows from `data` on and the columns of the panel. Meanwhile codes are brought near
        that are `coming`, some bytes at each line: to wait for many of them at once would hold up everything else."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        starts = [c.at(data, long(row), at["data_row"]) for row in range(kind.rows)]
        one, all, add = (INT, INTS, added) if self._narrow else (FLOAT, FLOATS, _added)

        def step(number: Any, coming: Any, *sums: Any) -> Values:
            c.prefetch(coming, near=False)
            place = c.at(self._room, number, kind.columns * ITEM)
            weights = [c.load(b.add(place, long(start * ITEM)), all) for start in range(0, kind.columns, LANES)]
            made = []
            for row, start in enumerate(starts):
                own = c.splat(c.load(c.at(start, number, ITEM), one))
                before = sums[row * len(weights) : (row + 1) * len(weights)]
                made += [add(c, total, own, values) for values, total in zip(weights, before, strict=True)]
            return [b.add(coming, at["pace"]), *made]

        return c.loop(count, step, coming, *[ir.Constant(FLOATS, None)] * (kind.rows * kind.columns // LANES))[1:]


def _added(c: Code, sums: Any, one: Any, other: Any) -> Any:
    return c.fma(other, one, sums)
