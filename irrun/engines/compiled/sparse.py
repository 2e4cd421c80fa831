"""Empty rows of sparse matrices filled: places are packed into integers, sorted unless they are, and written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.code import BYTE, LONG, Code, Form, long
from irrun.engines.compiled.loops import MEMORY_OF_BYTES, Bytes, Elements, Longs, Places, looped
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.work import OPEN_GROWTH, OpenCall, Work
from irrun.records import dataclass
from irrun.spec.op import Array

CHUNK = 1 << 14
"""Places that a thread takes at once."""

SHARED = 1 << 14
"""Places from which on threads share them."""

KEY_BITS = 63
"""Of an integer that holds a row, a column and the number of a place; others are left to the op's kernel."""

SIZES = (1, 2, 4, 8)
"""Bytes of a value."""

DIGIT_BITS = 11
"""Of a digit by which keys are sorted, at most: where each goes to next is in the first cache for all digits."""

_PACK = Form(("items", "count", "places", "rows", "columns", "row_shift", "column_shift", "keys", "found"))
_SORT = Form(("items", "count", "part", "keys", "target", "places", "shift", "mask"))
_COUNT = Form(("items", "count", "keys", "row_shift", "found"))
_WRITE = Form(
    (
        *("items", "count", "keys", "values", "default", "rows", "row_shift", "column_shift", "column_mask"),
        *("number_mask", "before", "places", "results", "empty"),
    )
)

OUTSIDE, UNSORTED = 1, 2
"""What is found of places: that one is outside the matrix, that one comes before the one before it."""


@dataclass(frozen=True, slots=True)
class SparseKind:
    """What a kernel is compiled for: what it does, and the bytes of an index and of a value."""

    step: str
    index: int
    value: int = 0


def open(work: Work, team: Team) -> OpenCall | None:
    """A call for a work of any sizes."""
    values, _, indices, default = work.required(4)
    if values.type == "string" or default.type != values.type or indices.type not in ("i32", "i64"):
        return None
    return partial(_filled, team)


def _filled(team: Team, arrays: Sequence[Any]) -> Sequence[Array] | None:
    values, dense_shape, indices, default = (np.ascontiguousarray(array) for array in arrays)
    count = len(indices)
    if values.shape != (count,) or indices.shape != (count, 2) or dense_shape.size != 2 or default.size != 1:
        return None
    rows, columns = dense_shape.tolist()
    if not 0 < rows <= OPEN_GROWTH // 2 * count or columns < 1 or values.itemsize not in SIZES:
        return None
    number_bits, column_bits = (count - 1).bit_length(), (columns - 1).bit_length()
    if number_bits + column_bits + (rows - 1).bit_length() > KEY_BITS:
        return None
    if values.itemsize in MEMORY_OF_BYTES:
        quickly = _in_order(team, values, indices, default, rows, columns)
        if quickly is not None:
            return quickly
    shifts = {"row_shift": number_bits + column_bits, "column_shift": number_bits}
    chunks = -(-count // CHUNK)
    keys, found = np.empty(count, np.int64), np.empty(chunks, np.uint64)
    about: dict[str, int] = {"items": chunks, "count": count, "keys": data_address(keys), "found": data_address(found)}

    def run(step: str, form: Form, **own: int) -> None:
        kind = SparseKind(step, indices.itemsize, values.itemsize if step == "write" else 0)
        arguments = form.of(**{name: own.get(name, about.get(name, 0)) for name in form.names})
        team.run(_address_of(kind), data_address(arguments), shared=count >= SHARED)

    run("pack", _PACK, places=data_address(indices), rows=rows, columns=columns, **shifts)
    seen = int(np.bitwise_or.reduce(found))
    if seen & OUTSIDE:  # which the op's rule says where
        return None
    if seen & UNSORTED:
        keys = _sorted(team, keys, number_bits, column_bits + (rows - 1).bit_length())
        about["keys"] = data_address(keys)
    run("count", _COUNT, **shifts)
    before = np.zeros(chunks + 1, np.int64)  # rows that are met in earlier chunks
    np.cumsum(found.view(np.int64), out=before[1:])
    total = count + rows - int(before[-1])
    places, results = np.empty((total, 2), indices.dtype), np.empty(total, values.dtype)
    empty = np.empty(rows, np.bool_)
    masks = {"column_mask": (1 << column_bits) - 1, "number_mask": (1 << number_bits) - 1}
    given = {"values": data_address(values), "default": data_address(default), "before": data_address(before)}
    made = {"places": data_address(places), "results": data_address(results), "empty": data_address(empty)}
    run("write", _WRITE, rows=rows, **shifts, **masks, **given, **made)
    return places, results, empty


def _sorted(team: Team, keys: Array, first: int, bits: int) -> Array:
    """Keys in order that are so but for some bits, from the `first` one on: digit after digit, from the lowest one.

    numpy sorts as quickly with vectors of AVX-512 alone, which it does not use on all processors that have them.
    """
    count = len(keys)
    part = -(-count // team.count) if count >= SHARED else count
    parts, rounds, other = -(-count // part), -(-bits // DIGIT_BITS), np.empty_like(keys)
    width = -(-bits // max(rounds, 1))
    for shift in range(first, first + bits, max(width, 1)):
        places = np.zeros((parts, 1 << width), np.int64)
        told = {"items": parts, "count": count, "part": part, "places": data_address(places), "shift": shift}
        told |= {"keys": data_address(keys), "target": data_address(other), "mask": (1 << width) - 1}
        for step in ("tally", "spread"):
            arguments = _SORT.of(**told)
            team.run(_address_of(SparseKind(step, 8)), data_address(arguments), shared=parts > 1)
            if step == "tally":  # a digit's keys of the first part come first
                counts = places.T.ravel()
                places[...] = (np.cumsum(counts) - counts).reshape(-1, parts).T
        keys, other = other, keys
    return keys


def _in_order(
    team: Team, values: Array, indices: Array, default: Array, rows: int, columns: int
) -> Sequence[Array] | None:
    """The results for places that are in order and inside; None for others."""
    count = len(values)
    places, results = np.empty((count + rows, 2), indices.dtype), np.empty(count + rows, values.dtype)
    empty, total = np.empty(rows, np.bool_), np.empty(1, np.int64)
    elements, type = MEMORY_OF_BYTES[values.itemsize]
    given = values.view(type), indices, default.view(type), places, results.view(type), empty.view(np.uint8), total
    kind, _ = MEMORY_OF_BYTES[indices.itemsize]
    looped(team, fill, (*given, rows, columns, count), 1, 0, Elements=elements, Places=kind)()
    made = total.item()
    return None if made < 0 else (places[:made], results[:made], empty)


def fill(
    begin: int,
    end: int,
    values: Elements,
    indices: Places,
    default: Elements,
    places: Places,
    results: Elements,
    empty: Bytes,
    total: Longs,
    rows: int,
    columns: int,
    count: int,
) -> None:
    """Copy places that are in order, and put one in each row without any. `total` becomes how many there are, or -1."""
    for _ in range(begin, end):
        row, column, made = -1, 0, 0
        for number in range(count):
            own, beside = indices[2 * number], indices[2 * number + 1]
            if own < max(row, 0) or own >= rows or beside < 0 or beside >= columns or (own == row and beside < column):
                row = rows
                made = -1
                break
            for missing in range(row + 1, own):
                places[2 * made], places[2 * made + 1] = missing, 0
                results[made], empty[missing] = default[0], 1
                made += 1
            places[2 * made], places[2 * made + 1] = own, beside
            results[made], empty[own] = values[number], 0
            row, column = own, beside
            made += 1
        for missing in range(row + 1, rows):
            places[2 * made], places[2 * made + 1] = missing, 0
            results[made], empty[missing] = default[0], 1
            made += 1
        total[0] = made


def _address_of(kind: SparseKind) -> int:
    form, body = _STEPS[kind.step]
    return form.address(kind, partial(body, kind))


def _chunk(c: Code, at: dict[str, Any], item: Any) -> tuple[Any, Any]:
    """Where a chunk begins, and how many places it has."""
    begin = c.b.mul(item, long(CHUNK))
    return begin, c.least(long(CHUNK), c.b.sub(at["count"], begin))


def _pack(kind: SparseKind, c: Code, at: dict[str, Any], item: Any) -> None:
    """Make keys of places: the row above the column above the number. Note what is wrong with them."""
    b = c.b
    begin, many = _chunk(c, at, item)

    def key_of(number: Any) -> tuple[Any, Any]:
        place = c.at(at["places"], number, 2 * kind.index)
        row, column = (c.number(b.add(place, long(start)), kind.index) for start in (0, kind.index))
        inside = b.and_(
            b.icmp_unsigned("<", row, at["rows"]),
            b.icmp_unsigned("<", column, at["columns"]),
        )
        high = b.or_(b.shl(row, at["row_shift"]), b.shl(column, at["column_shift"]))
        return b.or_(high, number), inside

    first, _ = key_of(b.select(b.icmp_unsigned("==", begin, long(0)), long(0), b.sub(begin, long(1))))
    outside, unsorted, before = c.variable(long(0)), c.variable(long(0)), c.variable(first)

    def one(step: Any) -> None:
        number = b.add(begin, step)
        key, inside = key_of(number)
        outside.set(b.or_(outside.get(), b.zext(b.not_(inside), LONG)))
        unsorted.set(b.or_(unsorted.get(), b.zext(b.icmp_unsigned("<", key, before.get()), LONG)))
        before.set(key)
        c.keep(key, c.at(at["keys"], number, 8))

    c.loop(many, one)
    seen = b.or_(b.mul(outside.get(), long(OUTSIDE)), b.mul(unsorted.get(), long(UNSORTED)))
    c.keep(seen, c.at(at["found"], item, 8))


def _tally(_: SparseKind, c: Code, at: dict[str, Any], item: Any) -> None:
    """How many keys of a part have each digit."""

    def one(_: Any, place: Any) -> None:
        c.keep(c.b.add(c.load(place, LONG, 8), long(1)), place)

    _digits(c, at, item, one)


def _spread(_: SparseKind, c: Code, at: dict[str, Any], item: Any) -> None:
    """Put each key of a part to the next place of its digit."""

    def one(key: Any, place: Any) -> None:
        number = c.load(place, LONG, 8)
        c.keep(key, c.at(at["target"], number, 8))
        c.keep(c.b.add(number, long(1)), place)

    _digits(c, at, item, one)


def _digits(c: Code, at: dict[str, Any], item: Any, one: Callable[[Any, Any], None]) -> None:
    """What `one` does with each key of a part, and with where its place is told by its digit."""
    b = c.b
    begin, places = b.mul(item, at["part"]), c.at(at["places"], b.mul(item, b.add(at["mask"], long(1))), 8)

    def step(number: Any) -> None:
        key = c.load(c.at(at["keys"], b.add(begin, number), 8), LONG, 8)
        one(key, c.at(places, b.and_(b.lshr(key, at["shift"]), at["mask"]), 8))

    c.times(c.least(at["part"], b.sub(at["count"], begin)), step)


def _row_before(c: Code, at: dict[str, Any], begin: Any) -> Any:
    """The row of the place before a chunk, -1 before the first one."""
    row = c.variable(long(-1))
    with c.b.if_then(c.b.icmp_unsigned("!=", begin, long(0))):
        key = c.load(c.at(at["keys"], c.b.sub(begin, long(1)), 8), LONG, 8)
        row.set(c.b.lshr(key, at["row_shift"]))
    return row


def _count(_: SparseKind, c: Code, at: dict[str, Any], item: Any) -> None:
    """How many rows begin in a chunk of sorted keys."""
    b = c.b
    begin, many = _chunk(c, at, item)
    row, rows = _row_before(c, at, begin), c.variable(long(0))

    def one(step: Any) -> None:
        own = b.lshr(c.load(c.at(at["keys"], b.add(begin, step), 8), LONG, 8), at["row_shift"])
        rows.add(b.zext(b.icmp_unsigned("!=", own, row.get()), LONG))
        row.set(own)

    c.loop(many, one)
    c.keep(rows.get(), c.at(at["found"], item, 8))


def _write(kind: SparseKind, c: Code, at: dict[str, Any], item: Any) -> None:
    """Write the places and values of a chunk of sorted keys, and empty rows before each row and behind the last one."""
    b, index, value = c.b, ir.IntType(8 * kind.index), ir.IntType(8 * kind.value)
    begin, many = _chunk(c, at, item)
    default = c.load(at["default"], value, 1)
    row = _row_before(c, at, begin)
    met = c.load(c.at(at["before"], item, 8), LONG, 8)
    target = c.variable(b.sub(b.add(begin, b.add(row.get(), long(1))), met))

    def put(own: Any, column: Any, what: Any) -> None:
        place = c.at(at["places"], target.get(), 2 * kind.index)
        for start, number in ((0, own), (kind.index, column)):
            c.keep(number if kind.index == 8 else b.trunc(number, index), b.add(place, long(start)))
        c.keep(what, c.at(at["results"], target.get(), kind.value))
        target.add(long(1))

    def fill(upto: Any) -> None:
        first = b.add(row.get(), long(1))

        def one(step: Any) -> None:
            own = b.add(first, step)
            put(own, long(0), default)
            c.keep(ir.Constant(BYTE, 1), b.add(at["empty"], own))

        c.times(b.sub(upto, first), one)

    def one(step: Any) -> None:
        key = c.load(c.at(at["keys"], b.add(begin, step), 8), LONG, 8)
        own = b.lshr(key, at["row_shift"])
        with b.if_then(b.icmp_unsigned("!=", own, row.get())):
            fill(own)
            c.keep(ir.Constant(BYTE, 0), b.add(at["empty"], own))
            row.set(own)
        column = b.and_(b.lshr(key, at["column_shift"]), at["column_mask"])
        number = b.and_(key, at["number_mask"])
        put(own, column, c.load(c.at(at["values"], number, kind.value), value, 1))

    c.loop(many, one)
    with b.if_then(b.icmp_unsigned("==", b.add(begin, many), at["count"])):
        fill(at["rows"])


_STEPS: dict[str, tuple[Form, Callable[..., None]]] = {
    "pack": (_PACK, _pack),
    "tally": (_SORT, _tally),
    "spread": (_SORT, _spread),
    "count": (_COUNT, _count),
    "write": (_WRITE, _write),
}

OPENERS = {"SparseFillEmptyRows-16": open}
