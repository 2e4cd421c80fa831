"""Softmax along rows that are dense, each while it is in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.axes import is_dense
from irrun.engines.compiled.code import FLOAT, FLOATS, INT, INTS, LANES, LINE, Code, Form, floats, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, data_address
from irrun.engines.work import Arrays, Call, Compiled, Work
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
    """SoftMax-1 and -8 of f32 along the last axis."""
    (data,) = work.required(1)
    rank, length = len(data.shape), data.shape[-1]
    if work.posts or data.type != "f32" or not is_dense(data) or not LANES <= length <= LONGEST:
        return None
    if work.attrs["axis"] % rank != rank - 1:
        return None
    rows = prod(data.shape[:-1])
    chunk = max(CHUNK // length, 1)
    shared = rows * length >= SHARED

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        address = compiled("softmax", lambda function: _FORM.shared(function, _chunk))
        places = {"data": data_address(inputs[0]), "target": data_address(outputs[0])}
        arguments = _FORM.of(items=-(-rows // chunk), rows=rows, chunk=chunk, length=length, **places)
        pointer = data_address(arguments)

        def call(_: object = (inputs[0], outputs[0])) -> None:
            arguments[0] = 0
            team.run(address, pointer, shared=shared)

        return call

    return Compiled(bind)


def _chunk(c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    first, length = b.mul(item, at["chunk"]), at["length"]
    size = b.mul(length, long(ITEM))
    vectors = b.udiv(length, long(LANES))
    last = b.sub(size, long(LINE))  # the last vector has elements of the one before where the row ends within one
    fresh = b.sub(length, b.mul(vectors, long(LANES)))
    numbers = ir.Constant(INTS, list(range(LANES)))
    inside = b.icmp_signed(">=", numbers, c.splat(b.trunc(b.sub(long(LANES), fresh), INT)))

    def row(number: Any) -> None:
        offset = b.mul(b.add(first, number), size)
        source, target = b.add(at["data"], offset), b.add(at["target"], offset)

        def greater(vector: Any, edge: Any) -> list[Any]:
            return [c.greatest(c.load(c.at(source, vector, LINE), FLOATS), edge)]

        (edges,) = c.loop(vectors, greater, floats(-np.inf))
        edge = c.splat(c.peak(c.greatest(c.load(b.add(source, last), FLOATS), edges)))

        def power(vector: Any, total: Any) -> list[Any]:
            place = b.mul(vector, long(LINE))
            made = c.exp(b.fsub(c.load(b.add(source, place), FLOATS), edge))
            c.store(made, b.add(target, place))
            return [b.fadd(total, made)]

        (total,) = c.loop(vectors, power, floats(0.0))
        rest = c.exp(b.fsub(c.load(b.add(source, last), FLOATS), edge))
        total = b.fadd(total, b.select(inside, rest, floats(0.0)))
        factor = c.splat(b.fdiv(ir.Constant(FLOAT, 1.0), c.sum(total)))

        def scale(vector: Any) -> None:
            place = c.at(target, vector, LINE)
            c.store(b.fmul(c.load(place, FLOATS), factor), place)

        c.loop(vectors, scale)
        c.store(b.fmul(rest, factor), b.add(target, last))

    c.loop(c.least(at["chunk"], b.sub(at["rows"], first)), row)


COMPILERS = dict.fromkeys(("SoftMax-1", "SoftMax-8"), softmax)
