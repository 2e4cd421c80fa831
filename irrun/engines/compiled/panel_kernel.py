"""The kernel of products of few rows: 16 columns of some rows at a time, from weights that lie as panels of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from irrun.engines.compiled.code import FLOAT, FLOATS, LANES, LINE, Code, Form, floats, long
from irrun.engines.compiled.compiler import features
from irrun.engines.compiled.posts import KernelPost, operand_names, posted, read_operand
from irrun.engines.memory import ITEM
from irrun.records import dataclass

PART = 384
"""Terms that are added up at a time: so much of a panel stays in the first cache while all rows go over it, and sums of
sums lose fewer digits."""

AT_ONCE, AT_ONCE_WIDE = 6, 8
"""Rows, at most: with their sums, 16 columns and one element of a row 16 registers of 8 lanes are full. Where registers
have 16 lanes, the sums of so many do not wait for one another."""

AHEAD = 4096
"""Bytes of weights that are brought into the cache before they are read."""

FEW = 2
"""Rows of which each has several sums, which do not wait for one another."""

UNROLLED = 4
"""Steps that are written one after the other for so few rows."""

AXES = ("row",)
"""Along which operands of posts are told their bytes from one to the next."""


@dataclass(frozen=True, slots=True)
class PanelKind:
    """What a kernel is compiled for: how many rows are computed at once, and the posts."""

    rows: int
    posts: tuple[KernelPost, ...] = ()

    @property
    def form(self) -> Form:
        """`items` are chunks of `chunk` panels, `panel` bytes each, of `columns` columns in all. Strides are in bytes:
        from a row to the next one, and in `data` from one term to the next one."""
        names = ("items", "chunk", "panels", "panel", "columns", "inner", "weights")
        told = (*names, "rows", "data", "data_row", "data_step", "result", "result_row")
        return Form((*told, *operand_names(self.posts, AXES)))


def at_once() -> int:
    """How many rows are computed at once, at most."""
    return AT_ONCE_WIDE if "avx512f" in features() else AT_ONCE


def address_of(kind: PanelKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    return kind.form.address(kind, partial(_chunk, kind))


def _chunk(kind: PanelKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    first = b.mul(item, at["chunk"])

    def panel(number: Any) -> None:
        _Panel(kind, c, at, b.add(first, number)).write()

    c.loop(c.least(at["chunk"], b.sub(at["panels"], first)), panel)


class _Panel:
    """The code for one panel: all its rows, a part of the terms after the other."""

    def __init__(self, kind: PanelKind, c: Code, at: dict[str, Any], number: Any) -> None:
        self._kind, self._c, self._at = kind, c, at
        self._weights = c.at(at["weights"], number, at["panel"])
        self._column = c.b.mul(number, long(LANES))

    def write(self) -> None:
        c, b, at = self._c, self._c.b, self._at

        def part(number: Any) -> None:
            begin = b.mul(number, long(PART))
            count = c.least(long(PART), b.sub(at["inner"], begin))

            def some_rows(block: Any) -> None:
                self._tile(b.mul(block, long(self._kind.rows)), begin, count)

            c.loop(c.blocks(at["rows"], long(self._kind.rows)), some_rows)

        c.loop(c.blocks(at["inner"], long(PART)), part)

    def _tile(self, first: Any, begin: Any, count: Any) -> None:
        """Some rows, with `count` terms from `begin` on; those beyond the last one are the last one once more. Behind
        the last terms is done what the posts say."""
        c, b, at = self._c, self._c.b, self._at
        rows = [c.least(b.add(first, long(n)), b.sub(at["rows"], long(1))) for n in range(self._kind.rows)]
        sums = self._sums(rows, begin, count)
        starts = [self._start(row) for row in rows]
        fresh = b.icmp_unsigned("==", begin, long(0))
        left = b.sub(at["columns"], self._column)
        whole = b.icmp_unsigned(">=", left, long(LANES))
        inside = c.first_lanes(left)

        def add_up(inside: Any) -> None:
            before = [b.select(fresh, floats(0.0), self._read(start, inside)) for start in starts]
            for own, other, start in zip(sums, before, starts, strict=True):
                c.put(b.fadd(own, other), start, inside)

        def finish(number: Any) -> None:
            row = b.add(first, number)
            start = self._start(row)

            def post(inside: Any) -> None:
                c.put(self._posted(self._read(start, inside), row, inside), start, inside)

            self._either(whole, inside, post)

        self._either(whole, inside, add_up)
        if self._kind.posts:
            with b.if_then(b.icmp_unsigned("==", b.add(begin, count), at["inner"]), likely=True):
                c.loop(c.least(long(self._kind.rows), b.sub(at["rows"], first)), finish)

    def _start(self, row: Any) -> Any:
        """Where the panel's part of a row of the result lies."""
        return self._c.at(self._c.at(self._at["result"], row, self._at["result_row"]), self._column, ITEM)

    def _either(self, whole: Any, inside: Any, write: Callable[[Any], None]) -> None:
        """What `write` does with a panel that is `whole`, or with the columns that are `inside`."""
        with self._c.b.if_else(whole, likely=True) as (all_there, some_there):
            with all_there:
                write(None)
            with some_there:
                write(inside)

    def _sums(self, rows: Sequence[Any], begin: Any, count: Any) -> list[Any]:
        c, b, at = self._c, self._c.b, self._at
        chains = 2 if len(rows) <= FEW else 1
        unrolled = UNROLLED if len(rows) <= FEW else 1
        weights = c.at(self._weights, begin, LINE)
        data = [c.at(c.at(at["data"], row, at["data_row"]), begin, at["data_step"]) for row in rows]
        sums = [c.variable(floats(0.0)) for _ in range(len(rows) * chains)]

        def step(number: Any, chain: int) -> None:
            place = c.at(weights, number, LINE)
            c.prefetch(b.add(place, long(AHEAD)))
            values = c.load(place, FLOATS)
            for row, start in enumerate(data):
                own = c.splat(c.load(c.at(start, number, at["data_step"]), FLOAT))
                total = sums[row * chains + chain]
                total.set(c.fma(values, own, total.get()))

        def several(number: Any) -> None:
            for n in range(unrolled):
                step(b.add(b.mul(number, long(unrolled)), long(n)), n % chains)

        for total in sums:
            total.set(floats(0.0))
        whole = b.udiv(count, long(unrolled))
        c.times(whole, several)
        if unrolled > 1:
            done = b.mul(whole, long(unrolled))
            c.times(b.sub(count, done), lambda number: step(b.add(done, number), 0))
        made = [total.get() for total in sums]
        return made if chains == 1 else [b.fadd(one, other) for one, other in zip(made[::2], made[1::2], strict=True)]

    def _posted(self, value: Any, row: Any, inside: Any) -> Any:
        c, at = self._c, self._at

        def read(n: int, along: bool) -> Any:
            return read_operand(c, at, n, {"row": row}, self._column, inside, along=along)

        return posted(c, self._kind.posts, value, read)

    def _read(self, address: Any, inside: Any) -> Any:
        """From anywhere, as constants may lie."""
        return self._c.some(address, FLOATS, inside, 1)
