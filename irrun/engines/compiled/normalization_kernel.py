"""The kernel of normalization of rows that lie without gaps.

A row has lines of equal length, each with a scale and a shift of its own. It is worked on in parts, of lines or of
pieces of one, so that threads can share it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from irrun.engines.compiled.code import DOUBLE, FLOAT, FLOATS, LANES, LINE, Code, Values, long
from irrun.engines.compiled.normalization_code import (
    DOUBLES,
    NOUGHT,
    SCALES,
    Line,
    Moments,
    NormalizationKind,
    central,
    constant,
    moments,
    operands,
    origin,
    place_of,
    write,
)
from irrun.engines.memory import ITEM
from irrun.records import NamedTuple

PART = 1 << 13
"""Elements of a part, about: those of a piece of a line are as many, and up to twice as many in its last one."""

SUM_BYTES = 16
"""Of what is kept of a part until all are there."""


def address_of(kind: NormalizationKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads.

    It goes over rows ("whole"); or over parts, of which it makes "sums", and with these writes results ("parts"). There
    are `groups` rows in an image, of `lines` lines of `points` elements, and `parts` parts in a row, of `together`
    lines, or one of the `pieces` of a line. `room` has two f64 for each part.
    """
    return kind.form.address(kind, partial(_item, kind))


def _item(kind: NormalizationKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b, kernel = c.b, _Kernel(kind, c, at)
    first, every = b.mul(item, at["chunk"]), b.mul(at["images"], at["groups"])
    if kind.does != "whole":
        every = b.mul(every, at["parts"])
    c.loop(c.least(at["chunk"], b.sub(every, first)), lambda number: getattr(kernel, kind.does)(b.add(first, number)))


class _Part(NamedTuple):
    """A part of a row: its first line, and how many there are; where it begins in them, and how long it is there."""

    line: Any
    lines: Any
    begin: Any
    length: Any


class _Kernel:
    def __init__(self, kind: NormalizationKind, c: Code, at: dict[str, Any]) -> None:
        self._kind, self._c, self._at = kind, c, at
        self._size = c.b.mul(at["lines"], at["points"])

    def whole(self, row: Any) -> None:
        c, parts = self._c, self._at["parts"]

        def add_up(number: Any, *before: Any) -> Values:
            return self._more(before, self._sums(row, self._part(number)))

        found = self._moments(row, c.loop(parts, add_up, NOUGHT, NOUGHT))
        c.loop(parts, lambda number: self._write(row, self._part(number), found))

    def sums(self, number: Any) -> None:
        b, parts = self._c.b, self._at["parts"]
        made = self._sums(b.udiv(number, parts), self._part(b.urem(number, parts)))
        for value, place in zip(made, self._places(number), strict=True):
            self._c.store(value, place)

    def parts(self, number: Any) -> None:
        c, b, parts = self._c, self._c.b, self._at["parts"]
        row = b.udiv(number, parts)
        first = b.mul(row, parts)

        def add_up(number: Any, *before: Any) -> Values:
            return self._more(before, [c.load(place, DOUBLE) for place in self._places(b.add(first, number))])

        found = self._moments(row, c.loop(parts, add_up, NOUGHT, NOUGHT))
        self._write(row, self._part(b.sub(number, first)), found)

    def _places(self, number: Any) -> list[Any]:
        """Where the sums of a part lie."""
        place = self._c.at(self._at["room"], number, SUM_BYTES)
        return [place, self._c.b.add(place, long(SUM_BYTES // 2))]

    def _more(self, one: Values, other: Values) -> list[Any]:
        return [self._c.b.fadd(*pair) for pair in zip(one, other, strict=True)]

    def _part(self, number: Any) -> _Part:
        c, b, at = self._c, self._c.b, self._at
        line = b.mul(b.udiv(number, at["pieces"]), at["together"])
        piece = b.urem(number, at["pieces"])
        begin = b.mul(piece, long(PART))
        ends = b.icmp_unsigned("==", b.add(piece, long(1)), at["pieces"])
        length = b.select(ends, b.sub(at["points"], begin), long(PART))
        return _Part(line, c.least(at["together"], b.sub(at["lines"], line)), begin, length)

    def _offset(self, row: Any) -> Any:
        """How far the elements of a row are from the first ones, in bytes."""
        return self._c.b.mul(row, self._c.b.mul(self._size, long(ITEM)))

    def _origin(self, row: Any) -> Any:
        c = self._c
        if not self._kind.centred:
            return NOUGHT
        return c.b.fpext(origin(c, c.load(c.b.add(self._at["data"], self._offset(row)), FLOAT)), DOUBLE)

    def _sums(self, row: Any, part: _Part) -> list[Any]:
        """The sum of the elements of a part less the origin, and that of their squares."""
        c, b, zeros = self._c, self._c.b, constant(DOUBLES, 0.0)
        first = b.add(b.mul(part.line, self._at["points"]), part.begin)
        start = c.at(b.add(self._at["data"], self._offset(row)), first, ITEM)
        count = b.mul(part.lines, part.length)
        whole, rest = b.udiv(count, long(LANES)), b.urem(count, long(LANES))
        base = c.splat(self._origin(row))
        sums = [c.variable(zeros) for _ in range(2)]
        for total in sums:
            total.set(zeros)

        def add(values: Any, inside: Any = None) -> None:
            own = b.fsub(b.fpext(values, DOUBLES), base)
            if inside is not None:
                own = b.select(inside, own, zeros)
            sums[0].set(b.fadd(sums[0].get(), own))
            sums[1].set(c.fma(own, own, sums[1].get()))

        c.times(whole, lambda number: add(c.load(c.at(start, number, LINE), FLOATS)))
        with b.if_then(b.icmp_unsigned("!=", rest, long(0))):
            inside = c.first_lanes(rest)
            add(c.some(c.at(start, whole, LINE), FLOATS, inside), inside)
        return [c.sum(total.get()) for total in sums]

    def _moments(self, row: Any, sums: Values) -> Moments:
        """Those of a row, in all lanes."""
        c, (total, squares) = self._c, sums
        mean = NOUGHT
        if self._kind.centred:
            distance, squares = central(c, total, squares, c.b.uitofp(self._size, DOUBLE))
            mean = c.b.fadd(self._origin(row), distance)
        return Moments(*map(c.splat, moments(c, self._kind, self._at["epsilon"], mean, squares, self._size)))

    def _write(self, row: Any, part: _Part, found: Moments) -> None:
        c, b, at = self._c, self._c.b, self._at
        image, group = b.udiv(row, at["groups"]), b.urem(row, at["groups"])
        first, begin, size = b.mul(group, at["lines"]), b.mul(part.begin, long(ITEM)), b.mul(at["points"], long(ITEM))

        def line(number: Any) -> None:
            number = b.add(part.line, number)
            of_image = b.add(first, number)  # the number of the line in it
            place = b.add(c.at(self._offset(row), number, size), begin)
            scales: Values = ()
            if self._kind.scales:
                scales = [b.add(c.at(at[name], of_image, size), begin) for name in SCALES]
            elif self._kind.scales is not None:
                scales = [c.splat(c.load(c.at(at[name], of_image, ITEM), FLOAT)) for name in SCALES]
            others = operands(c, self._kind, at, image, of_image, begin)
            source, target = b.add(at["data"], place), b.add(at["target"], place_of(c, self._kind, place))
            write(c, self._kind, Line(source, target, part.length, found, scales, others))

        c.loop(part.lines, line)
