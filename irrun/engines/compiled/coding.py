"""Codes of f32: element-wise ops in one pass that ends with Quantize-0, on data in C order or with their channels last.

Rounded on the way as `requantization` has it, not step by step as by the ops' kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from irrun.engines.axes import channels_last, has_channels_last, is_dense
from irrun.engines.compiled.code import FLOATS, LANES, Code, Form, long
from irrun.engines.compiled.elementwise import CHUNK, PART, SHARED, data_of
from irrun.engines.compiled.ending import Ending, Place, ended, loaded, written
from irrun.engines.compiled.requantization import Requantization, requantization
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.stages import Given
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, data_address
from irrun.engines.vectorized.posts import nanoseconds_of
from irrun.engines.work import Arrays, Call, Compiled, Layout, Work
from irrun.records import dataclass
from irrun.spec.op import Array


@dataclass(frozen=True, slots=True)
class CodingKind:
    """What a kernel is compiled for: the steps, which are the same for all columns where it is `uniform`."""

    ending: Ending
    uniform: bool

    @property
    def form(self) -> Form:
        """Rows of `columns` columns one behind the other, `total` elements in all, each one of the `pixels` of an
        image; where columns are alike there is one image of one pixel, and the last row may be shorter. `items` are of
        `chunk` of the `rows`."""
        names = ("items", "chunk", "rows", "columns", "total", "pixels", "data", "result")
        return Form((*names, *self.ending.names))


def coded(work: Work, team: Team) -> Compiled | None:
    """An op of one or two inputs with all its posts, the last of which makes codes; these lie as the data do."""
    found, (output,) = data_of(work), work.outputs
    if found is None or not output.shape or found[1].type != "f32":
        return None
    position, data, head = found
    last = is_dense(data)
    if data.layout is not None or not (last or has_channels_last(data)):
        return None
    whole, size, axis = replace(work, posts=[head, *work.posts]), prod(output.shape), -1 if last else 1
    columns, images = output.shape[axis], 1 if last else output.shape[0]
    pixels = size // columns // images
    ending = requantization(whole, Given(), (1, 1, size), last=last, uniform=True)
    uniform = ending is not None
    if ending is None:
        ending = requantization(whole, Given(), (images, pixels, columns), last=last)
    if ending is None or position in ending.wants:
        return None
    gives: dict[int, Layout] = {} if last else {0: channels_last(output)}
    return _compiled(work, team, position, ending, PART if uniform else columns, pixels, gives, uniform=uniform)


def _compiled(
    work: Work,
    team: Team,
    position: int,
    ending: Requantization,
    columns: int,
    pixels: int,
    gives: dict[int, Layout],
    *,
    uniform: bool,
) -> Compiled:
    kind, size = CodingKind(ending.ending, uniform), prod(work.outputs[0].shape)
    rows, chunk = -(-size // columns), max(CHUNK // columns, 1)
    told = {"items": -(-rows // chunk), "chunk": chunk, "rows": rows, "columns": columns, "total": size}
    told["pixels"] = pixels

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        address = kind.form.address(kind, partial(_chunk, kind))
        lying = {"data": data_address(inputs[position]), "result": data_address(outputs[0])}
        arguments = kind.form.of(**told, **lying, **ending.arguments(inputs))
        held, seconds = (inputs, outputs, ending), size * nanoseconds_of(work) * 1e-9
        return Kernel(team, address, arguments, held, shared=size >= SHARED, seconds=seconds)

    return Compiled(bind, wants=dict(ending.wants), gives=gives, coded=ending.coded)


def _chunk(kind: CodingKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b, ending = c.b, kind.ending
    first = b.mul(item, at["chunk"])
    alike = loaded(c, ending, at, long(0)) if kind.uniform else {}

    def row(number: Any) -> None:
        place = b.add(first, number)
        start = b.mul(place, at["columns"])
        count = c.least(at["columns"], b.sub(at["total"], start))
        source, target = c.at(at["data"], start, ITEM), c.at(at["result"], start, 1)
        image, pixel, begin = long(0), long(0), start
        if not kind.uniform:
            image, pixel, begin = b.udiv(place, at["pixels"]), b.urem(place, at["pixels"]), long(0)

        def vector(column: Any, inside: Any) -> None:
            tables = alike if kind.uniform else loaded(c, ending, at, column)
            value = c.some(c.at(source, column, ITEM), FLOATS, inside)
            made = ended(c, ending, at, tables, value, Place(image, pixel, b.add(begin, column), inside))
            written(c, ending.type, made, b.add(target, column), inside, count)

        c.times(b.udiv(count, long(LANES)), lambda n: vector(b.mul(n, long(LANES)), None))
        some = b.icmp_unsigned("!=", b.urem(count, long(LANES)), long(0))
        with b.if_then(some), b.if_else(b.icmp_unsigned(">", count, long(LANES))) as (many, few):
            with many:
                vector(b.sub(count, long(LANES)), None)  # the last ones, some of them once more
            with few:
                vector(long(0), c.first_lanes(count))

    c.loop(c.least(at["chunk"], b.sub(at["rows"], first)), row)
