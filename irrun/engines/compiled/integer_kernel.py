"""The kernels of products of codes: pairs of codes in 16 bits, whose products are added up in 32 without saturating.

A thread takes a band of the result and some panels of 16 columns. First it makes the codes that the band needs numbers
of 16 bits, less their zero point, with zeros where there is padding; then it goes over these for each panel, some
pixels at a time. Convolutions of single channels are computed in f32, in which such sums are exact, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import (
    BYTE,
    BYTES,
    FLOAT,
    FLOATS,
    INT,
    INTS,
    LANES,
    LINE,
    LONG,
    Code,
    Form,
    Variable,
    floats,
    long,
)
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.ending import Ending, Place, ended, loaded
from irrun.engines.memory import ITEM
from irrun.records import dataclass

SHORT = ir.IntType(16)
SHORTS, HALF = ir.VectorType(SHORT, LANES), ir.VectorType(INT, LANES // 2)

PAIR = 2 * LANES
"""Bytes of weights that meet a pair of codes: two of each column."""

PIXELS = 6
"""At once, at most: with their sums, weights, a pair and a product 16 registers are full."""

CHANNEL_PIXELS = 4
"""The same of convolutions of single channels."""

_NUMBERS = ir.Constant(INTS, list(range(LANES)))

_GEOMETRY = (
    *("scratch", "room", "chunk", "chunks", "panels", "panel", "weights", "shifts"),
    *("bands", "rows", "height", "width", "places", "runs", "steps", "pairs"),
    *("data", "image", "row", "lines", "stride", "reach", "begin", "left", "body", "right", "flat", "zero"),
    *("result", "result_image", "result_pixel"),
)


@dataclass(frozen=True, slots=True)
class IntegerKind:
    """What a kernel is compiled for: the type of codes; whether each column is of one channel, its own; how many pixels
    are computed at once; and what becomes of the sums."""

    type: str
    single: bool
    pixels: int
    ending: Ending

    @property
    def item(self) -> int:
        """Bytes of a number that codes are made."""
        return 4 if self.single else 2

    @property
    def form(self) -> Form:
        """`slot` is the number of the next thread, 0 before a call: each has `room` bytes of `scratch`. An item is one
        of `chunks` chunks of `chunk` panels, `panel` bytes each, and one of `bands` bands of `rows` rows of an image.

        A result has `height` rows of `width` pixels. Windows of the pixels of a band begin at `places` in
        the numbers, and their `runs` of `pairs` pairs (or numbers) go from `steps` on, those of panels `shifts` later.
        Codes are `lines` lines of an image, `row` bytes each, which follow `stride` of the result's rows and reach over
        `reach` of them, the first one `begin` ahead. Each becomes `left` zeros, `body` numbers and `right` zeros; where
        they are `flat`, all are one line without any. Other places are in bytes.
        """
        return Form(("slot", "items", *_GEOMETRY, *self.ending.names))


def address_of(kind: IntegerKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    # LLVM's passes take three times as long as the rest, and only what goes over single channels is quicker with them
    return compiled(kind, partial(_write, kind), passes=kind.single)


def _write(kind: IntegerKind, function: ir.Function) -> None:
    c, (arguments,) = Code(function), function.args
    b, at = c.b, kind.form.loaded(c, arguments)
    slot = b.atomic_rmw("add", b.gep(arguments, [ir.Constant(INT, 1)]), long(1), "monotonic")
    numbers = c.at(at["scratch"], slot, at["room"])
    with b.goto_entry_block():
        sums = b.alloca(FLOATS if kind.single else INTS, kind.pixels)
    held = c.variable(ir.Constant(LONG, -1))  # the band whose numbers the thread has
    c.share(arguments, long(1), at["items"], lambda item: _Item(kind, c, at, numbers, sums, item).write(held))
    b.ret_void()


class _Item:
    """The code for one item."""

    def __init__(self, kind: IntegerKind, c: Code, at: dict[str, Any], numbers: Any, sums: Any, item: Any) -> None:
        b = c.b
        self._kind, self._c, self._at, self._numbers, self._sums = kind, c, at, numbers, sums
        self._band = band = b.udiv(item, at["chunks"])
        self._first_panel = b.mul(b.urem(item, at["chunks"]), at["chunk"])
        self._image, self._first = b.udiv(band, at["bands"]), b.mul(b.urem(band, at["bands"]), at["rows"])
        self._rows = c.least(at["rows"], b.sub(at["height"], self._first))
        self._pixels = b.mul(self._rows, at["width"])

    def write(self, held: Variable) -> None:
        c, b, at = self._c, self._c.b, self._at
        with b.if_then(b.icmp_unsigned("!=", held.get(), self._band)):
            self._widen()
            held.set(self._band)
        tiles = c.blocks(self._pixels, long(self._kind.pixels))

        def panel(number: Any) -> None:
            number = b.add(self._first_panel, number)
            c.loop(tiles, lambda tile: self._tile(number, b.mul(tile, long(self._kind.pixels))))

        c.loop(c.least(at["chunk"], b.sub(at["panels"], self._first_panel)), panel)

    def _widen(self) -> None:
        """Make the codes that the band needs numbers."""
        c, b, at = self._c, self._c.b, self._at
        image = c.at(at["data"], self._image, at["image"])
        sizes = [at[name] for name in ("left", "body", "right")]
        width = b.mul(b.add(b.add(sizes[0], sizes[1]), sizes[2]), long(self._kind.item))
        start = b.sub(b.mul(self._first, at["stride"]), at["begin"])

        def line(number: Any) -> None:
            source, target = b.add(start, number), c.at(self._numbers, number, width)
            outside = b.icmp_unsigned(">=", source, at["lines"])  # also of those ahead of the first one
            left = b.select(outside, b.udiv(width, long(self._kind.item)), sizes[0])
            target = self._zeros(target, left)
            with b.if_then(b.not_(outside)):
                target = self._codes(c.at(image, source, at["row"]), target, sizes[1])
                self._zeros(target, sizes[2])

        with b.if_else(b.icmp_unsigned("!=", at["flat"], long(0))) as (flat, several):
            with flat:
                self._codes(c.at(image, self._first, at["row"]), self._numbers, b.mul(self._rows, at["body"]))
            with several:
                lines = b.add(b.mul(b.sub(self._rows, long(1)), at["stride"]), at["reach"])
                c.loop(lines, line)

    def _zeros(self, target: Any, count: Any) -> Any:
        """Write so many zeros, and say where they end. A vector more may be written than there are: what follows is
        written later, or is nobody's."""
        c = self._c
        whole = ir.VectorType(BYTE, LANES * self._kind.item)
        size = LANES * self._kind.item
        c.times(c.blocks(count, long(LANES)), lambda n: c.keep(ir.Constant(whole, None), c.at(target, n, size)))
        return c.at(target, count, self._kind.item)

    def _codes(self, source: Any, target: Any, count: Any) -> Any:
        """Write so many codes as numbers, and say where these end."""
        c, b, item = self._c, self._c.b, self._kind.item

        def vector(number: Any) -> None:
            codes = c.load(b.add(source, number), BYTES, 1)
            c.keep(self._number(codes, SHORTS, INTS, FLOATS, c.splat), c.at(target, number, item))

        def several(number: Any) -> None:
            vector(b.mul(number, long(LANES)))

        def single(number: Any) -> None:
            code = c.load(b.add(source, number), BYTE, 1)
            c.keep(self._number(code, SHORT, INT, FLOAT, lambda value: value), c.at(target, number, item))

        many = b.icmp_unsigned(">=", count, long(LANES))
        with b.if_else(many, likely=True) as (vectors, few):
            with vectors:
                c.loop(b.udiv(count, long(LANES)), several)
                vector(b.sub(count, long(LANES)))  # the last ones, some of them once more
            with few:
                c.times(count, single)
        return c.at(target, count, item)

    def _number(self, codes: Any, short: ir.Type, whole: ir.Type, real: ir.Type, splat: Any) -> Any:
        b = self._c.b
        made = b.sext(codes, short) if self._kind.type == "i8" else b.zext(codes, short)
        made = b.sub(made, splat(b.trunc(self._at["zero"], SHORT)))
        return b.sitofp(b.sext(made, whole), real) if self._kind.single else made

    def _tile(self, panel: Any, first: Any) -> None:
        """Some pixels of a panel; those beyond the last one are the last one once more, and are not written."""
        c, b, at, kind = self._c, self._c.b, self._at, self._kind
        last = b.sub(self._pixels, long(1))
        told = c.at(at["shifts"], panel, 3 * 8)
        shift, column, count = (c.load(b.add(told, long(8 * n)), LONG) for n in range(3))
        starts = []
        for n in range(kind.pixels):
            place = c.load(c.at(at["places"], c.least(b.add(first, long(n)), last), 8), LONG)
            starts.append(b.add(b.add(self._numbers, shift), place))
        weights = c.at(at["weights"], panel, at["panel"])
        sums = self._of_channels(starts, weights) if kind.single else self._of_pairs(starts, weights)
        for n, value in enumerate(sums):
            b.store(value, b.gep(self._sums, [ir.Constant(INT, n)])).align = ITEM

        whole = b.icmp_unsigned("==", count, long(LANES))
        inside = b.icmp_signed("<", _NUMBERS, c.splat(b.trunc(count, INT)))
        pixels = c.least(long(kind.pixels), b.sub(self._pixels, first))
        before = b.mul(self._first, at["width"])
        tables = loaded(c, kind.ending, at, column)

        def finish(number: Any, inside: Any) -> None:
            value = b.load(b.gep(self._sums, [b.trunc(number, INT)]))
            value.align = ITEM
            pixel = b.add(b.add(before, first), number)
            place = Place(self._image, pixel, column, inside)
            made = ended(c, kind.ending, at, tables, value if kind.single else b.sitofp(value, FLOATS), place)
            start = c.at(c.at(at["result"], self._image, at["result_image"]), pixel, at["result_pixel"])
            item = 4 if kind.ending.type == "f32" else 1
            self._store(made, c.at(start, column, item), inside, count)

        with b.if_else(whole, likely=True) as (all_there, some_there):
            with all_there:
                c.loop(pixels, lambda number: finish(number, None))
            with some_there:
                c.loop(pixels, lambda number: finish(number, inside))

    def _of_pairs(self, starts: Sequence[Any], weights: Any) -> list[Any]:
        c, b, at = self._c, self._c.b, self._at

        def run(number: Any, *before: Any) -> list[Any]:
            step = c.load(c.at(at["steps"], number, 8), LONG)
            places, line = [b.add(start, step) for start in starts], c.at(weights, b.mul(number, at["pairs"]), PAIR)

            def pair(n: Any, *held: Any) -> list[Any]:
                place = c.at(line, n, PAIR)
                own = [b.sext(c.load(b.add(place, long(half * LANES)), BYTES, 1), SHORTS) for half in range(2)]
                made = []
                for number, start in enumerate(places):
                    both = self._both(c.at(start, n, 4))
                    for half in range(2):
                        product = c.call("llvm.x86.avx2.pmadd.wd", HALF, both, own[half])
                        made.append(b.add(held[2 * number + half], product))
                return made

            return list(c.loop(at["pairs"], pair, *before))

        halves = list(c.loop(at["runs"], run, *[ir.Constant(HALF, None)] * (2 * len(starts))))
        return [b.shuffle_vector(low, high, _NUMBERS) for low, high in zip(halves[::2], halves[1::2], strict=True)]

    def _both(self, address: Any) -> Any:
        """A pair of numbers, for each column."""
        c, b, nothing = self._c, self._c.b, ir.Constant(HALF, ir.Undefined)
        lane = b.insert_element(nothing, c.load(address, INT, 2), ir.Constant(INT, 0))
        return b.bitcast(b.shuffle_vector(lane, nothing, ir.Constant(HALF, [0] * HALF.count)), SHORTS)

    def _of_channels(self, starts: Sequence[Any], weights: Any) -> list[Any]:
        c, b, at = self._c, self._c.b, self._at

        def tap(number: Any, *held: Any) -> list[Any]:
            step = c.load(c.at(at["steps"], number, 8), LONG)
            factor = c.load(c.at(weights, number, LINE), FLOATS)
            return [
                c.fma(c.load(b.add(start, step), FLOATS), factor, total)
                for start, total in zip(starts, held, strict=True)
            ]

        return list(c.loop(at["runs"], tap, *[floats(0.0)] * len(starts)))

    def _store(self, value: Any, address: Any, inside: Any, count: Any) -> None:
        c, b = self._c, self._c.b
        if inside is None:
            c.keep(value, address)
        elif self._kind.ending.type == "f32":
            c.put(value, address, inside)
        else:
            with b.goto_entry_block():
                room = b.alloca(BYTES)
            b.store(value, room).align = 1
            source = b.ptrtoint(room, LONG)
            words = b.lshr(count, long(2))
            c.times(words, lambda n: c.keep(c.load(c.at(source, n, 4), INT, 1), c.at(address, n, 4)))
            done = b.shl(words, long(2))

            def byte(n: Any) -> None:
                n = b.add(done, n)
                c.keep(c.load(b.add(source, n), BYTE, 1), b.add(address, n))

            c.times(b.and_(count, long(3)), byte)
