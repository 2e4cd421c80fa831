"""Softmax, and its logarithm, along rows that are dense, each while it is in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.axes import is_dense
from irrun.engines.compiled.code import FLOAT, FLOATS, INT, LANES, LINE, NUMBERS, Code, Form, floats, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, data_address
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.records import NamedTuple
from irrun.spec.op import Array

CHUNK = 1 << 13
"""Elements that a thread takes at once, at least."""

LONGEST = 1 << 16
"""Elements of a row: sums of more, vector by vector, lose digits."""

SHARED = 1 << 15
"""Elements from which on threads share them."""

_FORM = Form(("items", "rows", "chunk", "length", "data", "target"))
"""`items` are chunks of `chunk` rows, of `length` elements each."""


def softmax(work: Work, team: Team) -> Compiled | None:
    """SoftMax-1 and -8 and LogSoftmax-5 of f32 along the last axis."""
    (data,) = work.required(1)
    rank, length = len(data.shape), data.shape[-1]
    if work.posts or data.type != "f32" or not is_dense(data) or not LANES <= length <= LONGEST:
        return None
    if work.attrs["axis"] % rank != rank - 1:
        return None
    rows = prod(data.shape[:-1])
    chunk = max(CHUNK // length, 1)
    shared, write = rows * length >= SHARED, _log_rows if work.name == "LogSoftmax-5" else _rows

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        address = compiled(write.__name__, lambda function: _FORM.shared(function, partial(_chunk, write)))
        places = {"data": data_address(inputs[0]), "target": data_address(outputs[0])}
        arguments = _FORM.of(items=-(-rows // chunk), rows=rows, chunk=chunk, length=length, **places)
        pointer = data_address(arguments)

        def call(_: object = (inputs[0], outputs[0])) -> None:
            arguments[0] = 0
            team.run(address, pointer, shared=shared)

        return call

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
        made = c.exp(b.fsub(c.load(b.add(row.source, place), FLOATS), row.edge))
        c.store(made, b.add(row.target, place))
        return [b.fadd(total, made)]

    (total,) = c.loop(row.vectors, power, floats(0.0))
    rest = c.exp(b.fsub(c.load(b.add(row.source, row.last), FLOATS), row.edge))
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
        return [b.fadd(total, c.exp(distance(b.mul(vector, long(LINE)))))]

    (total,) = c.loop(row.vectors, power, floats(0.0))
    rest = distance(row.last)
    total = b.fadd(total, b.select(row.fresh, c.exp(rest), floats(0.0)))
    logarithm = c.log(c.splat(c.sum(total)))

    def less(vector: Any) -> None:
        place = b.mul(vector, long(LINE))
        c.store(b.fsub(distance(place), logarithm), b.add(row.target, place))

    c.loop(row.vectors, less)
    c.store(b.fsub(rest, logarithm), b.add(row.target, row.last))


COMPILERS = dict.fromkeys(("SoftMax-1", "SoftMax-8", "LogSoftmax-5"), softmax)
