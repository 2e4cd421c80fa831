"""Element-wise ops of f32 or bf16 and what follows them in one pass, whatever order of axes the data lie in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import Sizes, dense_strides, given_alike, merged, ordered_strides, spread_order
from irrun.engines.compiled import remainders
from irrun.engines.compiled.bf16 import is_made, item_of, put, vector_of
from irrun.engines.compiled.code import LANES, Code, Form, long
from irrun.engines.compiled.engine import ELEMENTWISE
from irrun.engines.compiled.posts import (
    KernelPost,
    kernel_posts,
    operand_arguments,
    operand_names,
    posted,
    quantization_names,
    quantizations,
    read_operand,
)
from irrun.engines.compiled.quantization import FAKE_QUANTIZE, LIMITS, loaded
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.orders import leading
from irrun.engines.vectorized.posts import nanoseconds_of
from irrun.engines.work import Arrays, Call, Compiled, Operand, Post, Work
from irrun.records import dataclass
from irrun.spec.op import Array

PART = 1 << 12
"""Columns that are gone through at a time, which threads share."""

CHUNK = 1 << 13
"""Elements that a thread takes at once, at least."""

SHARED = 1 << 15
"""Elements from which on threads share them."""

WIDEST = 1 << 10
"""Columns that short rows are made one with, at most."""

AXES = ("matrix", "row")
"""Along which the data and operands are told their bytes from one to the next."""


@dataclass(frozen=True, slots=True)
class ElementKind:
    """What a kernel is compiled for: the op itself and what follows it, and the type of all numbers in memory."""

    posts: tuple[KernelPost, ...]
    type: str = "f32"

    @property
    def form(self) -> Form:
        """Matrices of `rows` rows of `columns` columns, which the result has without gaps; a row has `blocks` of
        `block` columns, and `items` are `chunk` of all these `parts`."""
        names = ("items", "chunk", "parts", "blocks", "block", "rows", "columns", "target", "data")
        data = (f"data_{axis}" for axis in AXES)
        return Form((*names, *data, *operand_names(self.posts, AXES), *quantization_names(self.posts).values()))


def element_wise(work: Work, team: Team) -> Compiled | None:
    """An op of one or two inputs with all its posts; the result lies as the input does that is as large, without the
    gaps that this may have."""
    found = data_of(work)
    if found is None:
        return None
    (position, data, head), output = found, work.outputs[0]
    order = spread_order(data)
    type, item = data.type, item_of(data.type)
    if (
        not (type == "f32" or (type == "bf16" and is_made()))
        or output.type != type
        or not output.shape
        or order is None
    ):
        return None
    whole = replace(work, posts=[head, *work.posts])
    posts, operands = kernel_posts(whole, output.shape, order, quantizing=type == "f32", type=type)
    if len(posts) < len(whole.posts):
        return None
    moved = tuple(output.shape[axis] for axis in order)
    own, lines = dense_strides(moved, item), tuple(data.strides[axis] for axis in order)
    along = [post.along for post in posts if post.along is not None]
    others = [(*one.strides, item if inner else 0) for one, inner in zip(operands, along, strict=True)]
    sizes, (_, lines, *steps) = merged(moved, [own, lines, *others])
    constants = [work.inputs[one.number] for one in operands]
    sizes, lines, steps, repeated = _widened(sizes, lines, steps, constants, item)
    if len(sizes) > len(AXES) + 1 or any(walked and walked[-1] not in (0, item) for walked in steps):
        return None
    lacking = len(AXES) + 1 - len(sizes)
    matrices, rows, columns = (1,) * lacking + sizes
    operands = tuple(
        one._replace(strides=((0,) * lacking + walked)[:-1]) for one, walked in zip(operands, steps, strict=True)
    )
    lying = iter(bool(walked and walked[-1]) for walked in steps)
    kind = ElementKind(tuple(post if post.along is None else post._replace(along=next(lying)) for post in posts), type)
    blocks, size = -(-columns // PART), prod(sizes)
    parts, chunk = matrices * rows * blocks, max(CHUNK // min(columns, PART), 1)
    told = {"items": -(-parts // chunk), "chunk": chunk, "parts": parts, "blocks": blocks, "rows": rows}
    told |= {"block": PART, "columns": columns}
    limits, names = quantizations(whole), quantization_names(posts)
    told |= {names[number]: data_address(numbers) for number, numbers in limits.items()}
    told |= dict(zip((f"data_{axis}" for axis in AXES), ((0,) * lacking + lines)[:-1], strict=True))

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        address = kind.form.address(kind, partial(_chunk, kind))
        lying = {"data": data_address(inputs[position]), "target": data_address(outputs[0])}
        read = [*inputs]
        for n, array in repeated.items():
            read[operands[n].number] = array
        arguments = kind.form.of(**told, **lying, **operand_arguments(kind.posts, operands, read, AXES))
        held, seconds, whole = (read, outputs, limits), size * nanoseconds_of(work) * 1e-9, told["items"] == 1
        return Kernel(team, address, arguments, held, shared=size >= SHARED, seconds=seconds, whole=whole)

    result = replace(output, strides=ordered_strides(order, moved, item))
    return Compiled(bind, gives=given_alike(result, size * item))


def _widened(
    sizes: Sizes, lines: Sizes, steps: Sequence[Sizes], operands: Sequence[Operand | None], item: int
) -> tuple[Sizes, Sizes, list[Sizes], dict[int, Array]]:
    """Several short rows as one, such as pixels of three colours: sizes, and strides of the data and of operands, some
    of which are constants that are `repeated` then, by their places. As they were where that cannot be."""
    as_they_are = sizes, lines, [*steps], dict[int, Array]()
    if len(sizes) < 2 or sizes[-1] >= LANES:
        return as_they_are
    *outer, rows, columns = sizes
    times = max(n for n in range(1, WIDEST // columns + 1) if rows % n == 0)
    repeated: dict[int, Array] = {}
    for n, (walked, operand) in enumerate(zip([lines, *steps], [None, *operands], strict=True)):
        if walked[-2:] not in ((0, 0), (columns * item, item)):
            if operand is None or operand.value is None or operand.value.size != columns or walked[-2:] != (0, item):
                return as_they_are
            repeated[n - 1] = np.tile(operand.value.reshape(-1), times)
    if times * columns < LANES:
        return as_they_are
    joined = [(*own[:-2], own[-2] * times, own[-1]) for own in (lines, *steps)]
    return (*outer, rows // times, times * columns), joined[0], joined[1:], repeated


def data_of(work: Work) -> tuple[int, Operand, Post] | None:
    """The input that is as large as the result, behind its number, and the op as what is done to it."""
    (first,), second = work.required(1), work.optional(1)
    if work.name == FAKE_QUANTIZE:
        quantizing = Post(work.name, work.attrs, parameters=LIMITS)
        return (0, first, quantizing) if first.shape == work.outputs[0].shape else None
    if second is None:
        return 0, first, Post(work.name, work.attrs)
    position = leading(work)
    if position is None:
        return None
    return position, (first, second)[position], Post(work.name, work.attrs, 1 - position, reflected=position == 1)


def _chunk(kind: ElementKind, c: Code, at: dict[str, Any], number: Any) -> None:
    b = c.b
    first, item = b.mul(number, at["chunk"]), item_of(kind.type)
    quantizing = {number: loaded(c, at[name]) for number, name in quantization_names(kind.posts).items()}

    def part(number: Any) -> None:
        place = b.add(first, number)
        line, begin = b.udiv(place, at["blocks"]), b.mul(b.urem(place, at["blocks"]), at["block"])
        places = {"matrix": b.udiv(line, at["rows"]), "row": b.urem(line, at["rows"])}
        target = c.at(at["target"], b.add(b.mul(line, at["columns"]), begin), item)
        source = c.at(at["data"], begin, item)
        for axis, place in places.items():
            source = c.at(source, place, at[f"data_{axis}"])
        count = c.least(at["block"], b.sub(at["columns"], begin))
        whole = b.udiv(count, long(LANES))

        def vector(number: Any, inside: Any) -> None:
            column, offset = b.add(begin, b.mul(number, long(LANES))), b.mul(number, long(LANES * item))

            def read(n: int, along: bool) -> Any:
                return read_operand(c, at, n, places, column, inside, along=along, type=kind.type)

            own = b.add(source, offset)
            value = posted(c, kind.posts, vector_of(c, kind.type, own, inside), read, quantizing)
            put(c, kind.type, value, b.add(target, offset), inside)

        c.times(whole, lambda n: vector(n, None))
        rest = b.sub(count, b.mul(whole, long(LANES)))
        with b.if_then(b.icmp_unsigned("!=", rest, long(0))):
            vector(whole, c.first_lanes(rest))

    c.loop(c.least(at["chunk"], b.sub(at["parts"], first)), part)


def division(work: Work, team: Team) -> Compiled | None:
    """Divide-1, of integers by another loop."""
    floats = work.outputs[0].type in ("f32", "bf16")
    return element_wise(work, team) if floats else remainders.compile(work, team)


COMPILERS = {**dict.fromkeys(ELEMENTWISE, element_wise), FAKE_QUANTIZE: element_wise, "Divide-1": division}
