"""What attention of few rows is compiled to: keys and values are read once, a block of keys after the other, of which
the scores stay in the cache.

Heads are shared out among threads, and of long caches parts of the keys; who ends the last part of a head joins them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from irrun.engines.compiled import bf16
from irrun.engines.compiled.code import (
    BYTES,
    FLOAT,
    FLOATS,
    INT,
    LANES,
    LINE,
    LONG,
    Code,
    Form,
    floats,
    lanes_of,
    long,
    vectors_of,
)
from irrun.engines.compiled.compiler import compiled, features
from irrun.engines.memory import ITEM
from irrun.engines.work import MASKED
from irrun.records import dataclass

FORM = Form(
    (
        *("room", "query", "key", "value", "mask", "sink", "result", "kept", "ended", "factor"),
        *("room_size", "items", "heads", "parts", "part", "keys", "rows", "length"),
        *("query_batch", "query_head", "query_group", "query_row", "key_batch", "key_head", "key_row"),
        *("value_batch", "value_head", "value_row", "mask_batch", "mask_head", "mask_group", "mask_row"),
        *("sink_batch", "sink_head", "sink_group", "sink_row"),
    )
)
"""Addresses, numbers, and strides in bytes; `factor` is an f32. Up to `factor` they are those of a call, then those of
shapes.

Any number of threads may run a kernel on the same arguments: each takes an item until all `items` are taken. These are
parts of the keys of heads of batches: there are `parts` of a head, of `part` keys each, but for the last one, and
`heads` of a batch. `rows` are those of a head: `length` of each head of its group. The first thread has `room_size`
bytes at `room` for itself, and the next one those behind. Where there are several parts, what they come to is `kept`,
and `ended` has a u64 for each head, 0 before and after.
"""

BLOCK = 64
"""Keys whose scores are computed before their values are read."""

AHEAD = 2048
"""Bytes that keys and values are brought into the cache before they are read."""

TILE = 4
"""Rows that are computed at once, at most."""


@dataclass(frozen=True, slots=True)
class AttentionKind:
    """What a kernel is compiled for: elements of a key and of a value, rows that it computes at once, the type of the
    mask (None: there is none), and whether there is a sink."""

    size: int
    width: int
    tile: int
    mask: str | None
    sink: bool

    def room_size(self, rows: int) -> int:
        """Bytes that a thread needs."""
        return -(-rows // self.tile) * self.tile * self.row_size

    @property
    def row_size(self) -> int:
        """Bytes of a row in the memory of a thread: query, sums of values, sums of weights, a line for numbers, and
        scores or weights of a block."""
        return (vectors_of(self.size) + vectors_of(self.width) + 2) * LINE + BLOCK * ITEM

    @property
    def kept_size(self) -> int:
        """Bytes that are kept of a row of a part: sums of values, sums of weights, and the greatest score."""
        return (vectors_of(self.width) + 2) * LINE


def tile_of(rows: int) -> int:
    """How many rows are computed at once."""
    return -(-rows // -(-rows // TILE))


def address_of(kind: AttentionKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    # LLVM's passes make it slower: they move what was put where registers last
    return compiled(kind, lambda function: _Attention(function, kind).write(), passes=False)


def hidden(c: Code, type: str | None, mask: Any, first: Any, inside: Any) -> Any:
    """What a mask of a type adds to the scores of some keys from `first` on."""
    if type in ("f32", "bf16"):
        return bf16.vector_of(c, type, c.at(mask, first, bf16.item_of(type)), inside)
    seen = c.b.icmp_unsigned("!=", c.some(c.b.add(mask, first), BYTES, inside), ir.Constant(BYTES, None))
    return c.b.select(seen, floats(0.0), floats(float(MASKED)))


class _Attention:
    """The code of a kernel in the making."""

    def __init__(self, function: ir.Function, kind: AttentionKind) -> None:
        self._c, self._kind = Code(function), kind
        (self._arguments,) = function.args
        self._at = FORM.loaded(self._c, self._arguments)
        self._factor = self._c.splat(self._c.b.bitcast(self._c.b.trunc(self._at["factor"], INT), FLOAT))
        self._query, self._sums = 0, vectors_of(kind.size) * LINE
        self._total = self._sums + vectors_of(kind.width) * LINE
        self._peak = self._total + LINE
        self._scale, self._mask, self._scores = self._peak + ITEM, self._peak + 2 * ITEM, self._peak + LINE

    def write(self) -> None:
        c, b, at = self._c, self._c.b, self._at
        self._room = FORM.claimed(c, self._arguments, at)
        self._tiles = c.blocks(at["rows"], long(self._kind.tile))
        c.share(self._arguments, long(1), at["items"], self._item)
        b.ret_void()

    def _item(self, item: Any) -> None:
        c, b, at = self._c, self._c.b, self._at
        part, both = b.urem(item, at["parts"]), b.udiv(item, at["parts"])
        head, batch = b.urem(both, at["heads"]), b.udiv(both, at["heads"])
        begin = b.mul(part, at["part"])
        count = c.least(at["part"], b.sub(at["keys"], begin))
        own = {
            name: c.at(c.at(at[name], batch, at[f"{name}_batch"]), head, at[f"{name}_head"])
            for name in ("query", "key", "value", "mask", "sink")
        }
        own["key"] = c.at(own["key"], begin, at["key_row"])
        own["value"] = c.at(own["value"], begin, at["value_row"])
        own["mask"] = c.at(own["mask"], begin, ITEM if self._kind.mask == "f32" else 1)
        c.loop(b.mul(self._tiles, long(self._kind.tile)), lambda row: self._begin(row, own, part))

        def block(number: Any) -> None:
            first = b.mul(number, long(BLOCK))
            many = c.least(long(BLOCK), b.sub(count, first))
            key, value = c.at(own["key"], first, at["key_row"]), c.at(own["value"], first, at["value_row"])
            c.loop(
                self._tiles, lambda tile: self._weigh(self._row(b.mul(tile, long(self._kind.tile))), key, first, many)
            )
            c.loop(self._tiles, lambda tile: self._add(self._row(b.mul(tile, long(self._kind.tile))), value, many))

        c.loop(c.blocks(count, long(BLOCK)), block)
        with b.if_else(b.icmp_unsigned("==", at["parts"], long(1))) as (alone, parted):
            with alone:
                c.loop(at["rows"], lambda row: self._end(row, both))
            with parted:
                kept = c.at(at["kept"], b.mul(item, at["rows"]), self._kind.kept_size)
                c.loop(at["rows"], lambda row: self._keep(row, kept))
                ended = b.inttoptr(c.at(at["ended"], both, 8), LONG.as_pointer())
                before = b.atomic_rmw("add", ended, long(1), "acq_rel")
                with b.if_then(b.icmp_unsigned("==", b.add(before, long(1)), at["parts"])):
                    b.store(long(0), ended)
                    kept = c.at(at["kept"], b.mul(b.sub(item, part), at["rows"]), self._kind.kept_size)
                    c.loop(at["rows"], lambda row: self._join(row, both, kept))

    def _begin(self, row: Any, own: dict[str, Any], part: Any) -> None:
        """Rows beyond the last one are computed like that, and not written. The first part has the sink."""
        c, b, at = self._c, self._c.b, self._at
        place, within = self._row(row), c.least(row, b.sub(at["rows"], long(1)))
        group, number = b.udiv(within, at["length"]), b.urem(within, at["length"])
        query, mask, sink = (
            c.at(c.at(own[name], group, at[f"{name}_group"]), number, at[f"{name}_row"])
            for name in ("query", "mask", "sink")
        )
        for start, lanes in lanes_of(self._kind.size):
            values = b.fmul(c.read(b.add(query, long(start)), lanes), self._factor)
            c.store(values, b.add(place, long(self._query + start)))
        for start, _ in lanes_of(self._kind.width):
            c.store(floats(0.0), b.add(place, long(self._sums + start)))
        c.store(floats(0.0), b.add(place, long(self._total)))
        peak = ir.Constant(FLOAT, float("-inf"))
        if self._kind.sink:  # one more score, of which nothing but its weight is added
            first = b.icmp_unsigned("==", part, long(0))
            peak = b.select(first, c.load(sink, FLOAT), peak)
            weight = b.select(first, ir.Constant(FLOAT, 1.0), ir.Constant(FLOAT, 0.0))
            c.store(weight, b.add(place, long(self._total)))
        c.store(peak, b.add(place, long(self._peak)))
        c.store(mask, b.add(place, long(self._mask)))

    def _weigh(self, row: Any, key: Any, first: Any, many: Any) -> None:
        """The weights of `many` keys for rows of a tile: exp of scores, less the greatest one so far."""
        c, b, rows = self._c, self._c.b, range(self._kind.tile)
        places = [b.add(row, long(m * self._kind.row_size)) for m in rows]
        masks = [c.load(b.add(place, long(self._mask)), LONG) for place in places]
        vectors = c.blocks(many, long(LANES))

        def some(number: Any, *peaks: Any) -> list[Any]:
            start = b.mul(number, long(LANES))
            inside = c.first_lanes(b.sub(many, start))
            made = []
            for m, scores in enumerate(self._products(places, key, start, many)):
                if self._kind.mask is not None:
                    scores = b.fadd(scores, hidden(c, self._kind.mask, masks[m], b.add(first, start), inside))
                scores = b.select(inside, scores, floats(float("-inf")))
                c.store(scores, c.at(b.add(places[m], long(self._scores)), start, ITEM))
                made.append(c.greatest(scores, peaks[m]))
            return made

        peaks = c.loop(vectors, some, *[floats(float("-inf"))] * len(rows))
        for place, most in zip(places, peaks, strict=True):
            before = c.load(b.add(place, long(self._peak)), FLOAT)
            now = c.greatest(c.peak(most), before)
            less = c.splat(self._finite(now))
            factor = c.decay(b.fsub(c.splat(before), less))

            def weigh(number: Any, total: Any, place: Any = place, less: Any = less) -> list[Any]:
                where = c.at(b.add(place, long(self._scores)), number, LINE)
                weights = c.decay(b.fsub(c.load(where, FLOATS), less))
                c.store(weights, where)
                return [b.fadd(total, weights)]

            total = b.add(place, long(self._total))
            (made,) = c.loop(vectors, weigh, b.fmul(c.load(total, FLOATS), factor))
            c.store(made, total)
            c.store(now, b.add(place, long(self._peak)))
            c.store(b.extract_element(factor, ir.Constant(INT, 0)), b.add(place, long(self._scale)))

    def _products(self, places: list[Any], key: Any, start: Any, many: Any) -> list[Any]:
        """A vector of products with keys for each row of a tile; of those beyond the last key the last one's."""
        c, b, at = self._c, self._c.b, self._at
        at_once = 4 if "avx512f" in features() or len(places) == 1 else 2
        made: list[list[Any]] = [[] for _ in places]  # a vector for the keys that are read at once
        for number in range(0, LANES, at_once):
            keys = [
                c.at(key, c.least(b.add(start, long(number + n)), b.sub(many, long(1))), at["key_row"])
                for n in range(at_once)
            ]
            sums: list[list[Any]] = [[floats(0.0)] * at_once for _ in places]
            for offset, lanes in lanes_of(self._kind.size):
                for place in keys:
                    c.prefetch(b.add(place, long(offset + AHEAD)))
                read = [c.read(b.add(place, long(offset)), lanes) for place in keys]
                for own, place in zip(sums, places, strict=True):
                    query = c.load(b.add(place, long(self._query + offset)), FLOATS)
                    own[:] = [c.fma(query, values, total) for values, total in zip(read, own, strict=True)]
            for total, own in zip(made, sums, strict=True):
                total.append(c.sums(own, LANES))
        return [c.sums(own, LANES // at_once) for own in made]

    def _add(self, row: Any, value: Any, many: Any) -> None:
        """Add values to the sums of the rows of a tile, as much of each as it weighs."""
        c, b, at, rows = self._c, self._c.b, self._at, range(self._kind.tile)
        places = [b.add(row, long(m * self._kind.row_size)) for m in rows]
        scales = [c.splat(c.load(b.add(place, long(self._scale)), FLOAT)) for place in places]
        parts = lanes_of(self._kind.width)
        at_once = max((16 if "avx512f" in features() else 6) // len(rows), 1)
        for begin in range(0, len(parts), at_once):
            some = parts[begin : begin + at_once]
            sums = [b.add(place, long(self._sums + start)) for place in places for start, _ in some]

            def each(number: Any, *sums: Any, some: list[tuple[int, int]] = some) -> list[Any]:
                place = c.at(value, number, at["value_row"])
                for start, _ in some:
                    c.prefetch(b.add(place, long(start + AHEAD)))
                values = [c.read(b.add(place, long(start)), lanes) for start, lanes in some]
                made = []
                for m in rows:
                    weight = c.splat(c.load(c.at(b.add(places[m], long(self._scores)), number, ITEM), FLOAT))
                    for n, own in enumerate(values):
                        made.append(c.fma(weight, own, sums[m * len(some) + n]))
                return made

            before = [b.fmul(c.load(place, FLOATS), scales[n // len(some)]) for n, place in enumerate(sums)]
            for place, total in zip(sums, c.loop(many, each, *before), strict=True):
                c.store(total, place)

    def _end(self, row: Any, head: Any) -> None:
        place = self._row(row)
        sums = [self._c.load(self._c.b.add(place, long(self._sums + start)), FLOATS) for start in self._starts()]
        self._write(row, head, sums, self._c.load(self._c.b.add(place, long(self._total)), FLOATS))

    def _keep(self, row: Any, kept: Any) -> None:
        c, b = self._c, self._c.b
        place, target = self._row(row), c.at(kept, row, self._kind.kept_size)
        for number in range(self._kind.kept_size // LINE):
            c.store(c.load(b.add(place, long(self._sums + number * LINE)), FLOATS), b.add(target, long(number * LINE)))

    def _join(self, row: Any, head: Any, kept: Any) -> None:
        """The result of a row from what is kept of its parts."""
        c, b, at = self._c, self._c.b, self._at
        total = vectors_of(self._kind.width) * LINE

        def part(number: Any) -> Any:
            return c.at(kept, b.add(b.mul(number, at["rows"]), row), self._kind.kept_size)

        def peak(number: Any) -> Any:
            return c.load(b.add(part(number), long(total + LINE)), FLOAT)

        lowest = ir.Constant(FLOAT, float("-inf"))
        (most,) = c.loop(at["parts"], lambda number, before: [c.greatest(peak(number), before)], lowest)
        less = self._finite(most)

        def add(number: Any, *sums: Any) -> list[Any]:
            factor = c.decay(c.splat(b.fsub(peak(number), less)))
            starts = [*self._starts(), total]
            return [
                c.fma(c.load(b.add(part(number), long(start)), FLOATS), factor, own)
                for start, own in zip(starts, sums, strict=True)
            ]

        *sums, weights = c.loop(at["parts"], add, *[floats(0.0)] * (len(self._starts()) + 1))
        self._write(row, head, sums, weights)

    def _write(self, row: Any, head: Any, sums: list[Any], total: Any) -> None:
        c, b, at = self._c, self._c.b, self._at
        target = c.at(at["result"], b.add(b.mul(head, at["rows"]), row), self._kind.width * ITEM)
        divisor = c.splat(c.sum(total))
        for (start, lanes), own in zip(lanes_of(self._kind.width), sums, strict=True):
            c.write(b.fdiv(own, divisor), b.add(target, long(start)), lanes)

    def _finite(self, peak: Any) -> Any:
        """What is taken off scores: 0 where all are hidden so far, so that they weigh nothing."""
        none = self._c.b.fcmp_ordered("==", peak, ir.Constant(FLOAT, float("-inf")))
        return self._c.b.select(none, ir.Constant(FLOAT, 0.0), peak)

    def _starts(self) -> list[int]:
        return [start for start, _ in lanes_of(self._kind.width)]

    def _row(self, number: Any) -> Any:
        return self._c.at(self._room, number, self._kind.row_size)
