"""Softmax, and its logarithm, along rows that are dense, each while it is in the cache, or along an axis before the
last ones, of some columns side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.axes import is_dense
from irrun.engines.compiled.code import FLOAT, FLOATS, INT, LANES, LINE, NUMBERS, Code, Form, floats, long
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, data_address
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.records import NamedTuple
from irrun.spec.op import Array

CHUNK = 1 << 13
"""Elements that a thread takes at once, at least."""

LONGEST = 1 << 16
"""Elements of a row: sums of more, vector by vector, lose digits."""

LONGEST_COLUMN = 1 << 9
"""Elements of a column, which are added up one by one."""

SIDE = 8 * LANES
"""Columns side by side that a thread takes at once."""

SHARED = 1 << 15
"""Elements from which on threads share them."""

ELEMENT_SECONDS = 1e-9
"""What an element takes about."""

_FORM = Form(("items", "rows", "chunk", "length", "data", "target"))
"""`items` are chunks of `chunk` rows, of `length` elements each."""

_COLUMNS = Form(("items", "columns", "length", "data", "target"))
"""`items` are `SIDE` columns, those of a matrix [length, columns] behind those of the one before."""


def softmax(work: Work, team: Team) -> Compiled | None:
    """SoftMax-1 and -8 and LogSoftmax-5 of f32."""
    (data,) = work.required(1)
    if work.posts or data.type != "f32" or not data.shape or not is_dense(data):
        return None
    axis, logarithm = work.attrs["axis"] % len(data.shape), work.name == "LogSoftmax-5"
    before, length, behind = prod(data.shape[:axis]), data.shape[axis], prod(data.shape[axis + 1 :])
    if behind == 1 and LANES <= length <= LONGEST:
        chunk = max(CHUNK // length, 1)
        told = {"items": -(-before // chunk), "rows": before, "chunk": chunk, "length": length}
        form, write = _FORM, partial(_chunk, _log_rows if logarithm else _rows)
    elif behind >= LANES and length <= LONGEST_COLUMN:
        told = {"items": before * -(-behind // SIDE), "columns": behind, "length": length}
        form, write = _COLUMNS, partial(_columns, _log_columns if logarithm else _scaled_columns)
    else:
        return None
    count = before * length * behind
    shared = count >= SHARED

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        address = form.address((write.func.__name__, logarithm), write)
        arguments = form.of(**told, data=data_address(inputs[0]), target=data_address(outputs[0]))
        held = inputs[0], outputs[0]
        return Kernel(team, address, arguments, held, shared=shared, seconds=count * ELEMENT_SECONDS)

    return Compiled(bind)


class _Row(NamedTuple):
    """A row in the making: where its elements and its results lie, how many whole vectors there are, the offset of the
    last one, which has elements of the one before where the row ends within one, and the lanes of it that are `fresh`;
    and the greatest element, in all lanes."""

    source: Any
    target: Any
    vectors: Any
    last: Any
    fresh: Any
    edge: Any


def _chunk(write: Callable[[Code, _Row], None], c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    first, length = b.mul(item, at["chunk"]), at["length"]
    size = b.mul(length, long(ITEM))
    vectors = b.udiv(length, long(LANES))
    last = b.sub(size, long(LINE))
    rest = b.sub(length, b.mul(vectors, long(LANES)))
    fresh = b.icmp_signed(">=", NUMBERS, c.splat(b.trunc(b.sub(long(LANES), rest), INT)))

    def row(number: Any) -> None:
        offset = b.mul(b.add(first, number), size)
        source = b.add(at["data"], offset)

        def greater(vector: Any, edge: Any) -> list[Any]:
            return [c.greatest(c.load(c.at(source, vector, LINE), FLOATS), edge)]

        (edges,) = c.loop(vectors, greater, floats(-np.inf))
        edge = c.splat(c.peak(c.greatest(c.load(b.add(source, last), FLOATS), edges)))
        write(c, _Row(source, b.add(at["target"], offset), vectors, last, fresh, edge))

    c.loop(c.least(at["chunk"], b.sub(at["rows"], first)), row)


def _rows(c: Code, row: _Row) -> None:
    b = c.b

    def power(vector: Any, total: Any) -> list[Any]:
        place = b.mul(vector, long(LINE))
        made = c.decay(b.fsub(c.load(b.add(row.source, place), FLOATS), row.edge))
        c.store(made, b.add(row.target, place))
        return [b.fadd(total, made)]

    (total,) = c.loop(row.vectors, power, floats(0.0))
    rest = c.decay(b.fsub(c.load(b.add(row.source, row.last), FLOATS), row.edge))
    total = b.fadd(total, b.select(row.fresh, rest, floats(0.0)))
    factor = c.splat(b.fdiv(ir.Constant(FLOAT, 1.0), c.sum(total)))

    def scale(vector: Any) -> None:
        place = c.at(row.target, vector, LINE)
        c.store(b.fmul(c.load(place, FLOATS), factor), place)

    c.loop(row.vectors, scale)
    c.store(b.fmul(rest, factor), b.add(row.target, row.last))


def _log_rows(c: Code, row: _Row) -> None:
    b = c.b

    def distance(place: Any) -> Any:
        return b.fsub(c.load(b.add(row.source, place), FLOATS), row.edge)

    def power(vector: Any, total: Any) -> list[Any]:
        return [b.fadd(total, c.decay(distance(b.mul(vector, long(LINE)))))]

    (total,) = c.loop(row.vectors, power, floats(0.0))
    rest = distance(row.last)
    total = b.fadd(total, b.select(row.fresh, c.decay(rest), floats(0.0)))
    logarithm = c.log(c.splat(c.sum(total)))

    def less(vector: Any) -> None:
        place = b.mul(vector, long(LINE))
        c.store(b.fsub(distance(place), logarithm), b.add(row.target, place))

    c.loop(row.vectors, less)
    c.store(b.fsub(rest, logarithm), b.add(row.target, row.last))


class _Columns:
    """A vector of columns in the making: where their first elements and results lie, how many elements a column has,
    and the bytes from one to the next; and which lanes there are, None for all."""

    def __init__(self, c: Code, source: Any, target: Any, length: Any, step: Any, inside: Any) -> None:
        self._c, self.source, self.target, self.length = c, source, target, length
        self._step, self._inside = step, inside
        (self._edges,) = c.loop(length, lambda n, edges: [c.greatest(self.read(source, n), edges)], floats(-np.inf))

    def read(self, matrix: Any, number: Any) -> Any:
        return self._c.some(self._c.at(matrix, number, self._step), FLOATS, self._inside)

    def power(self, number: Any) -> Any:
        return self._c.decay(self.distance(number))

    def distance(self, number: Any) -> Any:
        """How far elements are from the greatest ones."""
        return self._c.b.fsub(self.read(self.source, number), self._edges)

    def write(self, number: Any, value: Any) -> None:
        self._c.put(value, self._c.at(self.target, number, self._step), self._inside)


def _columns(write: Callable[[Code, _Columns], None], c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    blocks, step = c.blocks(at["columns"], long(SIDE)), b.mul(at["columns"], long(ITEM))
    matrix, first = b.udiv(item, blocks), b.mul(b.urem(item, blocks), long(SIDE))
    start = b.mul(matrix, b.mul(at["length"], step))

    def vector(number: Any) -> None:
        column = b.add(first, b.mul(number, long(LANES)))
        offset, left = c.at(start, column, ITEM), b.sub(at["columns"], column)
        source, target = b.add(at["data"], offset), b.add(at["target"], offset)
        with b.if_else(b.icmp_unsigned(">=", left, long(LANES)), likely=True) as (all_there, some_there):
            with all_there:
                write(c, _Columns(c, source, target, at["length"], step, None))
            with some_there:
                write(c, _Columns(c, source, target, at["length"], step, c.first_lanes(left)))

    c.loop(c.blocks(c.least(long(SIDE), b.sub(at["columns"], first)), long(LANES)), vector)


def _scaled_columns(c: Code, columns: _Columns) -> None:
    def power(number: Any, total: Any) -> list[Any]:
        made = columns.power(number)
        columns.write(number, made)
        return [c.b.fadd(total, made)]

    (total,) = c.loop(columns.length, power, floats(0.0))
    factor = c.b.fdiv(floats(1.0), total)
    c.loop(columns.length, lambda n: columns.write(n, c.b.fmul(columns.read(columns.target, n), factor)))


def _log_columns(c: Code, columns: _Columns) -> None:
    (total,) = c.loop(columns.length, lambda n, total: [c.b.fadd(total, columns.power(n))], floats(0.0))
    logarithm = c.log(total)
    c.loop(columns.length, lambda n: columns.write(n, c.b.fsub(columns.distance(n), logarithm)))


COMPILERS = dict.fromkeys(("SoftMax-1", "SoftMax-8", "LogSoftmax-5"), softmax)
