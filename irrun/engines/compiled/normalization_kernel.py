"""The kernels of normalization: elements less the mean of their row and over its deviation, scaled, shifted, and posts.

A row lies without gaps and has lines of equal length, each with a scale and a shift of its own; it is worked on in
parts, of lines or of pieces of one, so that threads can share it. Sums are those of f64 of elements less the first one
of the row: that is one of the elements whose distances from the mean make the variance, so the difference of the sum of
squares and the square of the sum loses no more digits than the number of elements has.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.code import DOUBLE, FLOAT, FLOATS, INT, INTS, LANES, LINE, Code, Form, Values, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.posts import KernelPost, posted
from irrun.engines.memory import ITEM
from irrun.records import NamedTuple, dataclass

PART = 1 << 13
"""Elements of a part, about: those of a piece of a line are as many, and up to twice as many in its last one."""

_DOUBLES = ir.VectorType(DOUBLE, LANES)
_NUMBERS = ir.Constant(INTS, list(range(LANES)))


@dataclass(frozen=True, slots=True)
class NormalizationKind:
    """What a kernel is compiled for.

    `does` is what: "rows" as a whole, or "sums" of parts, which "parts" are normalized by. `scales` is whether there
    are a scale and a shift for each element of a row, which is one line then, or for each line; None where there are
    none. A `short` line has less than 16 elements. Elements are divided by the root of variance and epsilon, "outside"
    of the root where they are added there; with "none" they are not divided.
    """

    does: str
    scales: bool | None = None
    short: bool = False
    epsilon: str = "inside"
    posts: tuple[KernelPost, ...] = ()

    @property
    def form(self) -> Form:
        """`items` are chunks of `chunk` rows or parts. There are `groups` rows in an image, of `lines` lines of
        `points` elements, and `parts` parts in a row: `together` lines, or one of the `pieces` of a line. `sums` has
        two f64 for each part. Strides of operands are in bytes: from an image to the next, from a line to the next."""
        names = ("items", "chunk", "rows", "groups", "lines", "points", "parts", "together", "pieces", "data", "target")
        own = (f"{name}{n}" for n, post in enumerate(self.posts) if post.along is not None for name in OPERAND)
        return Form((*names, "sums", "epsilon", "scale", "shift", *own))


OPERAND = ("operand", "operand_image", "operand_line")
"""What a kernel is told of the operand of a post: names of its form, without the number of the post."""


def address_of(kind: NormalizationKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    return compiled(kind, lambda function: kind.form.shared(function, partial(_item, kind)))


def _item(kind: NormalizationKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b, kernel = c.b, _Kernel(kind, c, at)
    first, every = b.mul(item, at["chunk"]), at["rows"] if kind.does == "rows" else b.mul(at["rows"], at["parts"])
    c.loop(c.least(at["chunk"], b.sub(every, first)), lambda number: getattr(kernel, kind.does)(b.add(first, number)))


class _Part(NamedTuple):
    """A part of a row: its first line, and how many there are; where it begins in them, and how long it is there."""

    line: Any
    lines: Any
    begin: Any
    length: Any


class _Moments(NamedTuple):
    """The mean of a row as the sum of two f32, and what elements less the mean are multiplied by, in all lanes."""

    mean: Any
    rest: Any
    factor: Any


class _Kernel:
    def __init__(self, kind: NormalizationKind, c: Code, at: dict[str, Any]) -> None:
        self._kind, self._c, self._at = kind, c, at
        self._size = c.b.mul(at["lines"], at["points"])

    def rows(self, row: Any) -> None:
        c, parts = self._c, self._at["parts"]

        def add_up(number: Any, *before: Any) -> Values:
            return self._more(before, self._sums(row, self._part(number)))

        moments = self._moments(row, c.loop(parts, add_up, *_NOTHING))
        c.loop(parts, lambda number: self._write(row, self._part(number), moments))

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

        moments = self._moments(row, c.loop(parts, add_up, *_NOTHING))
        self._write(row, self._part(b.sub(number, first)), moments)

    def _places(self, number: Any) -> list[Any]:
        """Where the sums of a part lie."""
        place = self._c.at(self._at["sums"], number, 16)
        return [place, self._c.b.add(place, long(8))]

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

    def _row(self, row: Any) -> Any:
        """Where the elements of a row lie."""
        return self._c.at(self._at["data"], row, self._c.b.mul(self._size, long(ITEM)))

    def _origin(self, row: Any) -> Any:
        """What is taken off elements before they are added up, for what is left to be small."""
        first = self._c.load(self._row(row), FLOAT)
        finite = self._c.b.fcmp_ordered("<", self._c.call("llvm.fabs.f32", FLOAT, first), ir.Constant(FLOAT, np.inf))
        return self._c.b.fpext(self._c.b.select(finite, first, ir.Constant(FLOAT, 0.0)), DOUBLE)

    def _sums(self, row: Any, part: _Part) -> list[Any]:
        """The sum of the elements of a part less the origin, and that of their squares."""
        c, b = self._c, self._c.b
        start = c.at(self._row(row), b.add(b.mul(part.line, self._at["points"]), part.begin), ITEM)
        count = b.mul(part.lines, part.length)
        whole, rest = b.udiv(count, long(LANES)), b.urem(count, long(LANES))
        origin = c.splat(self._origin(row))
        sums = [c.variable(ir.Constant(_DOUBLES, [0.0] * LANES)) for _ in "12"]
        for total in sums:
            total.set(ir.Constant(_DOUBLES, [0.0] * LANES))

        def add(values: Any, inside: Any = None) -> None:
            own = b.fsub(b.fpext(values, _DOUBLES), origin)
            if inside is not None:
                own = b.select(inside, own, ir.Constant(_DOUBLES, [0.0] * LANES))
            sums[0].set(b.fadd(sums[0].get(), own))
            sums[1].set(c.fma(own, own, sums[1].get()))

        c.times(whole, lambda number: add(c.load(c.at(start, number, LINE), FLOATS)))
        with b.if_then(b.icmp_unsigned("!=", rest, long(0))):
            inside = self._inside(rest)
            add(c.some(c.at(start, whole, LINE), FLOATS, inside), inside)
        return [c.sum(total.get()) for total in sums]

    def _inside(self, count: Any) -> Any:
        """The first `count` lanes."""
        return self._c.b.icmp_signed("<", _NUMBERS, self._c.splat(self._c.b.trunc(count, INT)))

    def _moments(self, row: Any, sums: Values) -> _Moments:
        """As the op's kernel has it: the mean is one of f64, what is made of the sum of squares is f32."""
        c, b = self._c, self._c.b
        total, squares = sums
        shift = b.fdiv(total, b.uitofp(self._size, DOUBLE))
        exact = b.fadd(self._origin(row), shift)
        mean = b.fptrunc(exact, FLOAT)
        rest = b.fptrunc(b.fsub(exact, b.fpext(mean, DOUBLE)), FLOAT)
        zero = ir.Constant(FLOAT, 0.0)
        rest = b.select(b.fcmp_ordered("ord", rest, rest), rest, zero)  # of what is infinite there is none
        factor = ir.Constant(FLOAT, 1.0)
        if self._kind.epsilon != "none":
            squares = b.fsub(squares, b.fmul(total, shift))
            around = b.fptrunc(b.select(b.fcmp_ordered("<", squares, _NOTHING[0]), _NOTHING[0], squares), FLOAT)
            spread = b.fdiv(around, b.uitofp(self._size, FLOAT))
            epsilon = b.bitcast(b.trunc(self._at["epsilon"], INT), FLOAT)
            inside = self._kind.epsilon == "inside"
            root = c.call("llvm.sqrt.f32", FLOAT, b.fadd(spread, epsilon) if inside else spread)
            factor = b.fdiv(factor, root if inside else b.fadd(root, epsilon))
        return _Moments(*map(c.splat, (mean, rest, factor)))

    def _write(self, row: Any, part: _Part, moments: _Moments) -> None:
        c, b, at = self._c, self._c.b, self._at
        image, group = b.udiv(row, at["groups"]), b.urem(row, at["groups"])
        first = b.mul(group, at["lines"])
        begin = b.mul(part.begin, long(ITEM))

        def line(number: Any) -> None:
            number = b.add(part.line, number)
            of_image = b.add(first, number)  # the number of the line in it
            place = b.add(c.at(self._offset(row), number, b.mul(at["points"], long(ITEM))), begin)
            starts = [None if self._kind.scales is None else self._scales(at[name], of_image, begin) for name in SCALES]
            others = {}
            for n, post in enumerate(self._kind.posts):
                if post.along is not None:
                    start, by_image, by_line = (at[f"{name}{n}"] for name in OPERAND)
                    start = c.at(c.at(start, image, by_image), of_image, by_line)
                    others[n] = b.add(start, begin) if post.along else c.splat(c.load(start, FLOAT))
            self._line(place, part.length, moments, starts, others)

        c.loop(part.lines, line)

    def _offset(self, row: Any) -> Any:
        """How far the elements of a row are from the first ones, in bytes."""
        return self._c.b.mul(row, self._c.b.mul(self._size, long(ITEM)))

    def _scales(self, table: Any, line: Any, begin: Any) -> Any:
        """Where the scales or shifts of the elements of a line lie, or that of all of them in all lanes."""
        c, b = self._c, self._c.b
        if self._kind.scales:
            return b.add(c.at(table, line, b.mul(self._at["points"], long(ITEM))), begin)
        return c.splat(c.load(c.at(table, line, ITEM), FLOAT))

    def _line(self, place: Any, length: Any, moments: _Moments, scales: Values, others: dict[int, Any]) -> None:
        c, b, at = self._c, self._c.b, self._at
        source, target = b.add(at["data"], place), b.add(at["target"], place)

        def write(offset: Any, inside: Any = None) -> None:
            def read(start: Any) -> Any:
                start = b.add(start, offset)
                return c.load(start, FLOATS) if inside is None else c.some(start, FLOATS, inside)

            value = b.fsub(b.fsub(read(source), moments.mean), moments.rest)
            if self._kind.epsilon != "none":
                value = b.fmul(value, moments.factor)
            if self._kind.scales is not None:
                scale, shift = map(read, scales) if self._kind.scales else scales
                value = c.fma(value, scale, shift)
            value = posted(c, self._kind.posts, value, lambda n, along: read(others[n]) if along else others[n])
            if inside is None:
                c.store(value, b.add(target, offset))
            else:
                c.put(value, b.add(target, offset), inside)

        if self._kind.short:
            write(long(0), self._inside(length))
            return
        last = b.mul(b.sub(length, long(LANES)), long(ITEM))  # has some of the one before where it ends within one
        c.loop(c.blocks(length, long(LANES)), lambda number: write(c.least(b.mul(number, long(LINE)), last)))


_NOTHING = (ir.Constant(DOUBLE, 0.0), ir.Constant(DOUBLE, 0.0))
SCALES = ("scale", "shift")
