"""The kernel of recurrent cells: all gates of 16 hidden units at a time, and what they make of the states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from irrun.engines.compiled.code import FLOAT, FLOATS, LANES, LINE, Code, Form, floats, long
from irrun.engines.compiled.compiler import features
from irrun.engines.compiled.functions import sigmoid, tanh
from irrun.engines.memory import ITEM
from irrun.records import dataclass

AT_ONCE, AT_ONCE_WIDE = 1, 4
"""Rows, at most: their sums, four for each, the weights of a gate and an element of a row are in registers, of which 16
have 8 lanes, or 32 have 16."""

AHEAD = 4096
"""Bytes of weights that are brought into the cache before they are read."""

GATES = {"lstm": 4, "gru": 3}
"""Of an LSTM f, i, c, o; of a GRU, which has its reset behind the product, z, r, h."""

SUMS = 4
"""Of a GRU those of z and r, and of h those of the data and those of the state, by themselves."""


@dataclass(frozen=True, slots=True)
class CellKind:
    """What a kernel is compiled for: a key of GATES, how many rows are computed at once, and the states that come of
    it, as an LSTM's cell state may be read by nobody."""

    cell: str
    rows: int
    states: int

    @property
    def gates(self) -> int:
        return GATES[self.cell]

    @property
    def form(self) -> Form:
        """There is one of `items`, which has `panels` of 16 of the `hidden` units. Of each the `weights` are `inner`
        lines a gate, then `hidden` ones, `panel` bytes in all, and the `biases` a line for each of the SUMS. Strides
        are in bytes from a row to the next one."""
        names = ("items", "panels", "panel", "weights", "biases", "rows", "inner", "hidden", "data", "data_row")
        before = (f"{name}_{own}" for own in range(self.before) for name in ("before", "before_row"))
        return Form((*names, *before, *(f"after_{own}" for own in range(self.states))))

    @property
    def before(self) -> int:
        """States that it reads."""
        return 2 if self.cell == "lstm" else 1


def rows_at_once() -> int:
    """How many rows are computed at once, at most."""
    return AT_ONCE_WIDE if "avx512f" in features() else AT_ONCE


def address_of(kind: CellKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    return kind.form.address(kind, partial(_panels, kind))


def _panels(kind: CellKind, c: Code, at: dict[str, Any], _: Any) -> None:
    blocks = c.blocks(at["rows"], long(kind.rows))

    def panel(number: Any) -> None:
        own = _Panel(kind, c, at, number)
        c.loop(blocks, lambda block: own.some_rows(c.b.mul(block, long(kind.rows))))

    c.loop(at["panels"], panel)


class _Panel:
    """The code for 16 hidden units, those that are there."""

    def __init__(self, kind: CellKind, c: Code, at: dict[str, Any], number: Any) -> None:
        self._kind, self._c, self._at = kind, c, at
        self._weights = c.at(at["weights"], number, at["panel"])
        self._biases = c.at(at["biases"], number, long(SUMS * LINE))
        self._column = c.b.mul(number, long(LANES))

    def some_rows(self, first: Any) -> None:
        """Those beyond the last one are the last one once more."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        rows = [c.least(b.add(first, long(n)), b.sub(at["rows"], long(1))) for n in range(kind.rows)]
        states = [c.at(at["before_0"], row, at["before_row_0"]) for row in rows]
        gates = range(kind.gates)
        sums = [[floats(0.0)] * SUMS for _ in rows]
        data = [c.at(at["data"], row, at["data_row"]) for row in rows]
        self._add_up(sums, data, self._weights, at["inner"], gates)
        weights = c.at(self._weights, at["inner"], kind.gates * LINE)
        self._add_up(sums, states, weights, at["hidden"], gates if kind.cell == "lstm" else (0, 1, 3))
        left = b.sub(at["hidden"], self._column)
        inside = c.first_lanes(left)
        with b.if_else(b.icmp_unsigned(">=", left, long(LANES)), likely=True) as (all_there, some_there):
            for block, lanes in ((all_there, None), (some_there, inside)):
                with block:
                    for row, own in zip(rows, sums, strict=True):
                        self._finish(row, own, lanes)

    def _add_up(
        self, sums: list[list[Any]], data: Sequence[Any], weights: Any, count: Any, places: Sequence[int]
    ) -> None:
        """Add `count` elements of rows times the weights of each gate to the sums at these places."""
        c, b, gates = self._c, self._c.b, len(places)

        def term(number: Any, *held: Any) -> list[Any]:
            line = c.at(weights, number, gates * LINE)
            lines = [c.load(b.add(line, long(n * LINE)), FLOATS) for n in range(gates)]
            for n in range(gates):
                c.prefetch(b.add(line, long(n * LINE + AHEAD)))
            elements = [c.splat(c.load(c.at(row, number, ITEM), FLOAT)) for row in data]
            totals = iter(held)
            return [c.fma(own, element, next(totals)) for element in elements for own in lines]

        made = iter(c.loop(count, term, *(own[place] for own in sums for place in places)))
        for own in sums:
            for place in places:
                own[place] = next(made)

    def _finish(self, row: Any, sums: Sequence[Any], inside: Any) -> None:
        """The new states of a row, of the lanes that are `inside` where not all are."""
        c, b = self._c, self._c.b
        one, two, three, four = (
            b.fadd(own, c.load(b.add(self._biases, long(n * LINE)), FLOATS)) for n, own in enumerate(sums)
        )
        if self._kind.cell == "lstm":
            forgotten = b.fmul(sigmoid(c, one), self._state(row, 1, inside))
            cell = c.fma(sigmoid(c, two), tanh(c, three), forgotten)
            made = [b.fmul(sigmoid(c, four), tanh(c, cell)), cell]
        else:
            hidden = tanh(c, c.fma(sigmoid(c, two), four, three))
            made = [c.fma(sigmoid(c, one), b.fsub(self._state(row, 0, inside), hidden), hidden)]
        for own, value in zip(range(self._kind.states), made, strict=False):
            width = b.mul(self._at["hidden"], long(ITEM))
            place = c.at(c.at(self._at[f"after_{own}"], row, width), self._column, ITEM)
            c.put(value, place, inside)

    def _state(self, row: Any, own: int, inside: Any) -> Any:
        c, at = self._c, self._at
        place = c.at(c.at(at[f"before_{own}"], row, at[f"before_row_{own}"]), self._column, ITEM)
        return c.some(place, FLOATS, inside)
