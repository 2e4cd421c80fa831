"""Parts of the kernels of products of codes, which are added up in 32 bits without saturating.

A thread takes a band of the result and some panels of 16 columns. First it makes the codes that the band needs numbers
of 16 bits (or f32), less their zero point, with zeros where there is padding; then it goes over these for each panel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import (
    BYTE,
    BYTES,
    FLOAT,
    FLOATS,
    HALF_INTS,
    INT,
    INTS,
    LANES,
    LONG,
    NUMBERS,
    SHORT,
    SHORTS,
    Code,
    Form,
    long,
)
from irrun.engines.compiled.ending import Ending, Place, ended, loaded, written
from irrun.engines.memory import ITEM

_GEOMETRY = (
    *("items", "room", "room_size", "chunk", "chunks", "panels", "panel", "weights"),
    *("bands", "rows", "height", "width", "pairs"),
    *("data", "image", "row", "lines", "begin", "left", "body", "right", "zero"),
    *("result", "result_image", "result_pixel"),
)


def form_of(ending: Ending, *names: str) -> Form:
    """What a kernel is told, beside what its own `names` are.

    Each thread has `room_size` bytes of `room`. An item is one of `chunks` chunks of `chunk` panels, `panel` bytes
    each, and one of `bands` bands of `rows` rows of an image. A result has `height` rows of `width` pixels. There are
    `pairs` pairs of weights that follow one another. Codes are `lines` lines of an image, `row` bytes each; windows
    begin `begin` lines ahead of the first one. Each line becomes `left` zeros, `body` numbers and `right` zeros. Other
    places are in bytes.
    """
    return Form((*_GEOMETRY, *names, *ending.names))


class Item:
    """The code for one item. A code is made a number of so many `bytes`: 2, or 4 of an f32. Results are computed
    `kept` at once, at most."""

    def __init__(
        self, c: Code, arguments: Any, form: Form, ending: Ending, type: str, *, bytes: int = 2, kept: int
    ) -> None:
        b, at = c.b, form.loaded(c, arguments)
        self.c, self.at, self._arguments, self._ending, self._type, self._bytes = c, at, arguments, ending, type, bytes
        self.numbers = form.claimed(c, arguments, at)
        with b.goto_entry_block():
            self._sums = b.alloca(FLOATS if bytes == ITEM else INTS, kept)
        self._held = c.variable(ir.Constant(LONG, -1))  # the band whose numbers the thread has

    def write(self) -> None:
        """The function: all items that the thread takes."""
        self.c.share(self._arguments, long(1), self.at["items"], self._item)
        self.c.b.ret_void()

    def prepare(self) -> None:
        """Make what the band needs, for all panels."""
        raise NotImplementedError

    def compute(self, first: Any, count: Any) -> None:
        """The results of so many panels."""
        raise NotImplementedError

    def _item(self, item: Any) -> None:
        c, b, at = self.c, self.c.b, self.at
        band = b.udiv(item, at["chunks"])
        self.image, self.first = b.udiv(band, at["bands"]), b.mul(b.urem(band, at["bands"]), at["rows"])
        self.rows = c.least(at["rows"], b.sub(at["height"], self.first))
        with b.if_then(b.icmp_unsigned("!=", self._held.get(), band)):
            self.prepare()
            self._held.set(band)
        first = b.mul(b.urem(item, at["chunks"]), at["chunk"])
        self.compute(first, c.least(at["chunk"], b.sub(at["panels"], first)))

    def widen(self, start: Any, lines: Any) -> None:
        """Make lines from `start` on, which may be ahead of the first one, numbers."""
        c, b, at = self.c, self.c.b, self.at
        image = c.at(at["data"], self.image, at["image"])
        sizes = [at[name] for name in ("left", "body", "right")]
        width = b.add(b.add(sizes[0], sizes[1]), sizes[2])

        def line(number: Any) -> None:
            source, target = b.add(start, number), c.at(self.numbers, b.mul(number, width), self._bytes)
            outside = b.icmp_unsigned(">=", source, at["lines"])  # also of those ahead of the first one
            target = self._zeros(target, b.select(outside, width, sizes[0]))
            with b.if_then(b.not_(outside)):
                target = self.widen_codes(c.at(image, source, at["row"]), target, sizes[1])
                self._zeros(target, sizes[2])

        c.loop(lines, line)

    def _zeros(self, target: Any, count: Any) -> Any:
        """Write so many zeros, and say where they end. A vector more may be written than there are: what follows is
        written later, or is nobody's."""
        c, size = self.c, LANES * self._bytes
        whole = ir.Constant(ir.VectorType(BYTE, size), None)
        c.times(c.blocks(count, long(LANES)), lambda n: c.keep(whole, c.at(target, n, size)))
        return c.at(target, count, self._bytes)

    def widen_codes(self, source: Any, target: Any, count: Any) -> Any:
        """Write so many codes as numbers, and say where these end."""
        c, b = self.c, self.c.b

        def vector(number: Any) -> None:
            codes = c.load(b.add(source, number), BYTES, 1)
            c.keep(self._number(codes, SHORTS, INTS, FLOATS, c.splat), c.at(target, number, self._bytes))

        def several(number: Any) -> None:
            vector(b.mul(number, long(LANES)))

        def single(number: Any) -> None:
            code = c.load(b.add(source, number), BYTE, 1)
            c.keep(self._number(code, SHORT, INT, FLOAT, lambda value: value), c.at(target, number, self._bytes))

        many = b.icmp_unsigned(">=", count, long(LANES))
        with b.if_else(many, likely=True) as (vectors, few):
            with vectors:
                c.loop(b.udiv(count, long(LANES)), several)
                vector(b.sub(count, long(LANES)))  # the last ones, some of them once more
            with few:
                c.times(count, single)
        return c.at(target, count, self._bytes)

    def _number(self, codes: Any, short: ir.Type, whole: ir.Type, real: ir.Type, splat: Any) -> Any:
        b = self.c.b
        made = b.sext(codes, short) if self._type == "i8" else b.zext(codes, short)
        made = b.sub(made, splat(b.trunc(self.at["zero"], SHORT)))
        return b.sitofp(b.sext(made, whole), real) if self._bytes == ITEM else made

    def add_products(self, places: Sequence[Any], weights: Sequence[Any], held: Sequence[Any]) -> list[Any]:
        """Sums, two halves for each of some places, with the products of the pairs of numbers there added to them."""
        c, b, nothing, made = self.c, self.c.b, ir.Constant(HALF_INTS, ir.Undefined), []
        for number, place in enumerate(places):
            lane = b.insert_element(nothing, c.load(place, INT, 2), ir.Constant(INT, 0))
            pair = b.bitcast(b.shuffle_vector(lane, nothing, ir.Constant(HALF_INTS, [0] * HALF_INTS.count)), SHORTS)
            for half, own in enumerate(weights):
                product = c.call("llvm.x86.avx2.pmadd.wd", HALF_INTS, pair, own)
                made.append(b.add(held[2 * number + half], product))
        return made

    def whole(self, halves: Sequence[Any]) -> list[Any]:
        """Sums whose halves follow one another."""
        pairs = zip(halves[::2], halves[1::2], strict=True)
        return [self.c.b.shuffle_vector(low, high, NUMBERS) for low, high in pairs]

    def finish(
        self,
        sums: Sequence[Any],
        column: Any,
        count: Any,
        pixels: Sequence[Any],
        whole: Any,
        others: Callable[[Callable[[Any, Any], None]], None],
    ) -> None:
        """Write what becomes of sums of `count` columns. Where these are all, and it is `whole`, each is of the pixel
        of `pixels`; otherwise `others` calls what it is given, in loops of its own, with the number of a sum and that
        of its pixel."""
        c, b, at = self.c, self.c.b, self.at
        tables = loaded(c, self._ending, at, column)
        image = c.at(at["result"], self.image, at["result_image"])

        def one(value: Any, pixel: Any, inside: Any) -> None:
            value = value if self._bytes == ITEM else b.sitofp(value, FLOATS)
            made = ended(c, self._ending, at, tables, value, Place(self.image, pixel, column, inside))
            start = c.at(image, pixel, at["result_pixel"])
            item = ITEM if self._ending.type == "f32" else 1
            written(c, self._ending.type, made, c.at(start, column, item), inside, count)

        def kept(number: Any, pixel: Any) -> None:
            value = b.load(b.gep(self._sums, [b.trunc(number, INT)]))
            value.align = ITEM
            one(value, pixel, c.first_lanes(count))

        whole = b.and_(whole, b.icmp_unsigned("==", count, long(LANES)))
        with b.if_else(whole, likely=True) as (at_once, one_by_one):
            with at_once:
                for value, pixel in zip(sums, pixels, strict=True):
                    one(value, pixel, None)
            with one_by_one:
                for n, value in enumerate(sums):
                    b.store(value, b.gep(self._sums, [ir.Constant(INT, n)])).align = ITEM
                others(kept)
