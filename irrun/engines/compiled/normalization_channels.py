"""The kernel of normalization of images whose channels lie together, all those of a point after those of the last one.

Sums are made of each channel, 16 of them at a time; those of a group are combined once they are there.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from irrun.engines.compiled.code import DOUBLE, FLOATS, INT, LANES, NUMBERS, Code, long
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
    starts,
    write,
)
from irrun.engines.memory import ITEM

PART = 1 << 14
"""Elements of a part, about."""

PIECE = 1 << 12
"""Elements that are added up before the next ones are looked at: they stay in the first cache for all channels."""

WIDE = 8
"""Bytes of an f64."""

CHANNEL_BYTES = 2 * WIDE
"""What is kept of a channel: two f64 for each part, and two more; three f32 for all."""


def room_of(channels: int, parts: int) -> int:
    """Bytes that a kernel needs for an image."""
    return max(channels, LANES) * ((parts + 2) * CHANNEL_BYTES)


def address_of(kind: NormalizationKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads.

    Its loops are written as they are to be: LLVM's passes take three times as long as the rest, and gain nothing.

    It goes over images ("whole"); or over parts, of which it makes "sums", then over images, of which it makes
    "moments", and with these over parts again ("parts"). An image has `points` points, each of `groups` times `lines`
    channels, in `parts` parts of `together` points, of which `pieces` are added up at a time. There are `room_image`
    bytes of `room` for each image.
    """
    return kind.form.address(kind, partial(_item, kind), passes=False)


def _item(kind: NormalizationKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b, parts = c.b, at["parts"]
    if kind.does in ("whole", "moments"):
        kernel = _Kernel(kind, c, at, item)
        if kind.does == "whole":
            c.loop(parts, kernel.sums)
        kernel.moments()
        if kind.does == "whole":
            c.loop(parts, kernel.parts)
    else:
        kernel = _Kernel(kind, c, at, b.udiv(item, parts))
        getattr(kernel, kind.does)(b.urem(item, parts))


class _Kernel:
    def __init__(self, kind: NormalizationKind, c: Code, at: dict[str, Any], image: Any) -> None:
        b = c.b
        self._kind, self._c, self._at, self._image = kind, c, at, image
        self._channels = b.mul(at["groups"], at["lines"])
        self._point = b.mul(self._channels, long(ITEM))
        self._offset = b.mul(b.mul(image, at["points"]), self._point)
        self._data = b.add(at["data"], self._offset)
        self._width = c.most(self._channels, long(LANES))
        self._room = c.at(at["room"], image, at["room_image"])

    def _sums_of(self, part: Any) -> list[Any]:
        """Where the sums of the channels of a part lie, and those of squares; behind the last part are what all parts
        make: the means of the channels, and the sums of squares around these."""
        b = self._c.b
        start = self._c.at(self._room, part, b.mul(self._width, long(CHANNEL_BYTES)))
        return [start, b.add(start, b.mul(self._width, long(WIDE)))]

    def _moments_of(self) -> Moments:
        """Where the moments of the channels lie, each those of its group."""
        b = self._c.b
        start, size = self._sums_of(b.add(self._at["parts"], long(1)))[0], b.mul(self._width, long(ITEM))
        return Moments(start, b.add(start, size), b.add(b.add(start, size), size))

    def _vectors(self, body: Any) -> None:
        """What `body` does with the first of some channels, all of which there are."""
        if self._kind.short:
            body(long(0))
        else:
            starts(self._c, self._channels, body)

    def _read(self, point: Any, channel: Any) -> Any:
        """Some channels at an address of a point."""
        start = self._c.at(point, channel, ITEM)
        if self._kind.short:
            return self._c.some(start, FLOATS, self._c.first_lanes(self._channels))
        return self._c.load(start, FLOATS)

    def sums(self, part: Any) -> None:
        c, b, at = self._c, self._c.b, self._at
        begin = b.mul(part, at["together"])
        count = c.least(at["together"], b.sub(at["points"], begin))
        places = self._sums_of(part)

        def clear(channel: Any) -> None:
            for place in places:
                c.store(constant(DOUBLES, 0.0), c.at(place, channel, WIDE))

        def piece(number: Any) -> None:
            first = b.mul(number, at["pieces"])
            points = c.least(at["pieces"], b.sub(count, first))
            self._vectors(lambda channel: self._add(channel, b.add(begin, first), points, places))

        self._vectors(clear)
        c.loop(c.blocks(count, at["pieces"]), piece)

    def _add(self, channel: Any, first: Any, count: Any, places: list[Any]) -> None:
        """Add up some channels of some points. What lanes have that were added already counts nothing."""
        c, b = self._c, self._c.b
        base = origin(c, self._read(self._data, channel))
        known = b.urem(b.sub(long(0), channel), long(LANES))  # of the last ones the vector before has some
        fresh = b.icmp_signed(">=", NUMBERS, c.splat(b.trunc(known, INT)))
        start, wide = c.at(self._data, first, self._point), b.fpext(base, DOUBLES)
        own = [c.at(place, channel, WIDE) for place in places]

        def add(number: Any, total: Any, squares: Any) -> list[Any]:
            values = b.select(fresh, self._read(c.at(start, number, self._point), channel), base)
            distance = b.fsub(b.fpext(values, DOUBLES), wide)
            return [b.fadd(total, distance), c.fma(distance, distance, squares)]

        made = c.loop(count, add, *(c.load(place, DOUBLES) for place in own))
        for value, place in zip(made, own, strict=True):
            c.store(value, place)

    def moments(self) -> None:
        c, b, at = self._c, self._c.b, self._at
        means, around = self._sums_of(at["parts"])
        points = b.uitofp(at["points"], DOUBLE)
        count = b.mul(at["points"], at["lines"])
        tables = self._moments_of()

        def add_up(channel: Any) -> None:
            def part(number: Any, *before: Any) -> list[Any]:
                own = [c.load(c.at(place, channel, WIDE), DOUBLES) for place in self._sums_of(number)]
                return [b.fadd(*pair) for pair in zip(before, own, strict=True)]

            total, squares = c.loop(at["parts"], part, *[constant(DOUBLES, 0.0)] * 2)
            distance, squares = central(c, total, squares, c.splat(points))
            mean = b.fadd(b.fpext(origin(c, self._read(self._data, channel)), DOUBLES), distance)
            if self._kind.single:
                made = moments(c, self._kind, at["epsilon"], mean, squares, count)
                for value, table in zip(made, tables, strict=True):
                    c.store(value, c.at(table, channel, ITEM))
            else:
                c.store(mean, c.at(means, channel, WIDE))
                c.store(squares, c.at(around, channel, WIDE))

        def group(number: Any) -> None:
            first = b.mul(number, at["lines"])

            def value(place: Any, number: Any) -> Any:
                return c.load(c.at(place, b.add(first, number), WIDE), DOUBLE)

            (total,) = c.loop(at["lines"], lambda n, total: [b.fadd(total, value(means, n))], NOUGHT)
            mean = b.fdiv(total, b.uitofp(at["lines"], DOUBLE))

            def add(number: Any, total: Any) -> list[Any]:
                distance = b.fsub(value(means, number), mean)
                between = b.fmul(points, b.fmul(distance, distance))
                return [b.fadd(total, b.fadd(value(around, number), between))]

            (squares,) = c.loop(at["lines"], add, NOUGHT)
            made = moments(c, self._kind, at["epsilon"], mean, squares, count)

            def keep(number: Any) -> None:
                for value, table in zip(made, tables, strict=True):
                    c.store(value, c.at(table, b.add(first, number), ITEM))

            c.loop(at["lines"], keep)

        self._vectors(add_up)
        if not self._kind.single:
            c.loop(at["groups"], group)

    def parts(self, part: Any) -> None:
        c, b, at = self._c, self._c.b, self._at
        begin = b.mul(part, at["together"])
        tables, scales = self._moments_of(), [at[name] for name in SCALES]

        def point(number: Any) -> None:
            number = b.add(begin, number)
            place = c.at(self._offset, number, self._point)
            others = operands(c, self._kind, at, self._image, number)
            source, target = b.add(at["data"], place), b.add(at["target"], place_of(c, self._kind, place))
            write(c, self._kind, Line(source, target, self._channels, tables, scales, others))

        c.loop(c.least(at["together"], b.sub(at["points"], begin)), point)
