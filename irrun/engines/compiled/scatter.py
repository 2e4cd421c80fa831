"""Elements put, or reduced, where indices along an axis say, in a copy made piece by piece, each while in the cache."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.axes import dense_strides
from irrun.engines.compiled.code import LONG, Code, Form, long
from irrun.engines.compiled.loops import judged, unordered
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.plain import plain_call
from irrun.engines.work import Arrays, Call, Compiled, Judging, Work
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

LINE = 64
"""Bytes that the memory gives at once."""

PIECE = 1 << 20
"""Bytes of a piece of the data, of which parts of rows are updated along an axis: it stays in the cache of a core."""

LEAST_LINES = 4
"""Lines of a row that a piece has at least: to read fewer takes as long."""

AHEAD = 8
"""Rows that parts are brought into the cache before they are read: they lie too far apart for the processor to do that
of its own accord."""

ITEMS = 8
"""Pieces for each thread, at least, where there is enough to do."""

SHARED = 1 << 17
"""Bytes of the result from which on threads share it."""

SIZES = (1, 2, 4, 8)
"""Bytes of an element."""

REDUCED = {"f32": ir.FloatType(), "f64": ir.DoubleType()} | {
    f"{sign}{8 * size}": ir.IntType(8 * size) for sign in "iu" for size in SIZES
}
"""The types that are reduced as they are; integers wrap."""

REDUCTIONS = ("sum", "prod", "max", "min")

MAX_KEPT = 16
"""Shapes of arrays for which a call keeps its arguments."""

_ARRAYS = ("data", "indices", "updates", "result", "outside")

_FORM = Form(
    (
        *("items", *_ARRAYS),
        *("outer", "size", "inner", "indexed", "count", "width", "step", "strips"),
    )
)
"""Data and result are [outer, size, inner], indices and updates [indexed, count, width] where they are no larger.

Of an item there are `step` columns of the inner axis, one of `strips` of a number of the outer one; where the inner
axis is 1, `step` numbers of the outer one. `outside` is where an u64 lies that becomes 1 if an index is.
"""

_ADDRESSES = slice(2, 2 + len(_ARRAYS))
"""Where the addresses of the arrays are among the arguments, behind the next item and the number of items."""


@dataclass(frozen=True, slots=True)
class ScatterKind:
    """What a kernel is compiled for: bytes of an element and of an index, whether the axis is the last one, and whether
    negative indices count from its end. With a `reduction` updates of a `type` are reduced with what is there. An index
    `repeated` for all columns stands in memory once."""

    item: int
    index: int
    last: bool
    negative: bool
    reduction: str
    type: str
    repeated: bool = False


def open(work: Work, team: Team) -> _Scatter | None:
    """A call for a work of any sizes."""
    (data, indices), reduction = work.required(2), work.attrs.get("reduction", "none")
    reduces = reduction in REDUCTIONS and work.attrs["use_init_val"] and data.type in REDUCED
    if indices.type not in ("i32", "i64") or not (reduces or reduction == "none"):
        return None
    kind = (reduction, data.type) if reduces else ("", "")
    return _Scatter(team, work.name == "ScatterElementsUpdate-12", *kind)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A kernel for arrays of some shapes: its address, and its arguments but for the addresses of arrays."""

    address: int
    arguments: Array
    shared: bool


class _Scatter:
    """The call of a work. Safe for threads."""

    def __init__(self, team: Team, negative: bool, reduction: str, type: str) -> None:
        self._team, self.negative, self.reduction, self.type = team, negative, reduction, type
        self._kept: dict[Hashable, _Planned | None] = {}  # None where others have to compute it

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Array] | None:
        data, updates = map(np.ascontiguousarray, (arrays[0], arrays[2]))
        axis, indices = int(arrays[3].item()), arrays[1]
        if not -data.ndim <= axis < data.ndim:
            return None
        repeated = _is_repeated(indices.shape, indices.strides, indices.itemsize, axis)
        indices = indices if repeated else np.ascontiguousarray(indices)
        if updates.shape != indices.shape or updates.dtype != data.dtype:
            return None
        key = data.shape, indices.shape, axis, data.itemsize, indices.itemsize, repeated
        planned = self._kept.get(key)
        if planned is None:
            if key in self._kept:
                return None
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            planned = self._kept[key] = _planned(self._team, self, *key)
            if planned is None:
                return None
        result, outside = self._team.reserve.empty(data.shape, data.dtype), np.zeros(1, np.uint64)
        arguments = planned.arguments.copy()
        arguments[_ADDRESSES] = [data_address(array) for array in (data, indices, updates, result, outside)]
        self._team.run(planned.address, data_address(arguments), shared=planned.shared)
        return None if outside[0] else (result,)


def _planned(
    team: Team,
    scatter: _Scatter,
    data: tuple[int, ...],
    indices: tuple[int, ...],
    place: int,
    item: int,
    index: int,
    repeated: bool,
) -> _Planned | None:
    """The kernel for data and indices of these shapes, along the axis `place`, of `item` and `index` bytes each."""
    rank = len(data)
    if not prod(data) or item not in SIZES or not -rank <= place < rank:
        return None
    if len(indices) != rank:
        return None
    axis = place % rank
    sides = [_side(data[part], indices[part]) for part in (slice(axis), slice(axis + 1, None))]
    if None in sides:
        return None
    (outer, indexed), (inner, width) = (side or (1, 1) for side in sides)
    size, threads = data[axis], team.count
    if inner == 1:
        step = max(1, min(PIECE // (size * item), -(-outer // (ITEMS * threads))))
        strips, items = 1, -(-outer // step)
    else:
        line = LINE // item
        columns = min(PIECE // (size * item), -(-outer * inner // (ITEMS * threads)))
        step = max(columns // line, LEAST_LINES) * line
        strips = -(-inner // step)
        items = outer * strips
    arguments = _FORM.of(
        items=items,
        outer=outer,
        size=size,
        inner=inner,
        indexed=indexed if prod(indices) else 0,  # then there is nothing but a copy
        count=indices[axis],
        width=width,
        step=step,
        strips=strips,
        **dict.fromkeys(_ARRAYS, 0),
    )
    kind = ScatterKind(item, index, inner == 1, scatter.negative, scatter.reduction, scatter.type, repeated)
    return _Planned(_FORM.address(kind, partial(_item, kind)), arguments, prod(data) * item >= SHARED)


def compile(work: Work, team: Team) -> Compiled | None:
    """A work of known sizes."""
    opened, axis = open(work, team), work.constant(3)
    data, indices, updates = work.required(3)
    if opened is None or work.posts or axis is None or data.type == "string":
        return None
    item, index = numpy_dtype(data.type).itemsize, numpy_dtype(indices.type).itemsize
    if updates.shape != indices.shape or updates.type != data.type:
        return None
    place = int(axis.item())
    repeated = _is_repeated(indices.shape, indices.strides, index, place)
    planned = _planned(team, opened, data.shape, indices.shape, place, item, index, repeated)
    if planned is None:
        return None
    wants = {number: layout for number, layout in unordered(work, 3).items() if number != 1 or not repeated}

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        return plain_call(work, inputs, outputs)

    def judging(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Judging:
        outside, arguments = np.zeros(1, np.uint64), planned.arguments.copy()
        arrays = (*inputs[:3], outputs[0], outside)
        arguments[_ADDRESSES] = [data_address(array) for array in arrays]
        kernel = Kernel(team, planned.address, arguments, arrays, shared=planned.shared, seconds=0.0, beside=False)
        return judged(kernel, outside)

    return Compiled(bind, wants=wants, judging=judging)


def _is_repeated(shape: Sequence[int], strides: Sequence[int], item: int, place: int) -> bool:
    """Whether indices are the same all along the axes behind that at `place`, as where one was given for a whole slice,
    and lie in C order but for that."""
    end = place % len(shape) + 1 if shape else 0
    behind = [step for size, step in zip(shape[end:], strides[end:], strict=True) if size > 1]
    own = zip(shape[:end], strides[:end], dense_strides(shape[:end], item), strict=True)
    return bool(behind) and not any(behind) and all(size == 1 or step == dense for size, step, dense in own)


def _side(sizes: Sequence[int], indexed: Sequence[int]) -> tuple[int, int] | None:
    """The axes on one side of that of the indices as one, of the data and of the indices; None where that cannot be."""
    if any(own > size for own, size in zip(indexed, sizes, strict=True)) or indexed[1:] != sizes[1:]:
        return None
    return prod(sizes), prod(indexed)


def _item(kind: ScatterKind, c: Code, at: dict[str, Any], item: Any) -> None:
    outside = c.variable(long(0))
    if kind.last:
        _rows(kind, c, at, item, outside)
    else:
        _strip(kind, c, at, item, outside)
    with c.b.if_then(c.b.icmp_unsigned("!=", outside.get(), long(0))):
        c.keep(long(1), at["outside"])


def _element(
    kind: ScatterKind, c: Code, at: dict[str, Any], number: Any, outside: Any, place: Callable[[Any], Any]
) -> None:
    """Put the update of a number to the address that `place` gives for its index, or reduce it, if that is inside."""
    b = c.b
    index, inside = _index(kind, c, at, number, outside)
    type = REDUCED.get(kind.type, ir.IntType(8 * kind.item))
    value = c.load(c.at(at["updates"], number, kind.item), type, 1)
    with b.if_then(inside, likely=True):
        address = place(index)
        if kind.reduction:
            value = _reduced(kind, b, c.load(address, type, 1), value)
        c.keep(value, address)


def _index(kind: ScatterKind, c: Code, at: dict[str, Any], number: Any, outside: Any) -> tuple[Any, Any]:
    """The index of a number, and whether it is inside, of which a note is made if not."""
    b = c.b
    index = c.number(c.at(at["indices"], number, kind.index), kind.index)
    if kind.negative:
        index = b.select(b.icmp_signed("<", index, long(0)), b.add(index, at["size"]), index)
    inside = b.icmp_unsigned("<", index, at["size"])
    outside.set(b.or_(outside.get(), b.zext(b.not_(inside), LONG)))
    return index, inside


def _slice(kind: ScatterKind, c: Code, source: Any, target: Any, count: Any) -> None:
    """Put so many updates that lie side by side, or reduce them."""
    if not kind.reduction:
        c.copy(source, target, c.b.mul(count, long(kind.item)))
        return
    lanes = LINE // kind.item

    def some(type: ir.Type, first: Any, number: Any, step: int) -> None:
        place = c.b.mul(c.b.add(first, c.b.mul(number, long(step))), long(kind.item))
        address = c.b.add(target, place)
        value = c.load(c.b.add(source, place), type, 1)
        c.keep(_reduced(kind, c.b, c.load(address, type, 1), value), address)

    type, whole = REDUCED[kind.type], c.b.udiv(count, long(lanes))
    c.times(whole, lambda number: some(ir.VectorType(type, lanes), long(0), number, lanes))
    rest = c.b.mul(whole, long(lanes))
    c.times(c.b.sub(count, rest), lambda number: some(type, rest, number, 1))


def _reduced(kind: ScatterKind, b: ir.IRBuilder, before: Any, value: Any) -> Any:
    """What is there, and a value, as one; where one is NaN, min and max are."""
    real = kind.type.startswith("f")
    if kind.reduction == "sum":
        return (b.fadd if real else b.add)(before, value)
    if kind.reduction == "prod":
        return (b.fmul if real else b.mul)(before, value)
    sign = ">=" if kind.reduction == "max" else "<="
    if real:
        stays = b.or_(b.fcmp_ordered(sign, before, value), b.fcmp_unordered("uno", before, before))
    else:
        stays = (b.icmp_unsigned if kind.type.startswith("u") else b.icmp_signed)(sign, before, value)
    return b.select(stays, before, value)


def _fetch(c: Code, address: Any, many: Any) -> None:
    """Have so many bytes brought into the cache."""
    c.loop(c.blocks(many, long(LINE)), lambda line: c.prefetch(c.at(address, line, LINE)))


def _rows(kind: ScatterKind, c: Code, at: dict[str, Any], item: Any, outside: Any) -> None:
    """Rows whose last axis is that of the indices."""
    b = c.b
    first = b.mul(item, at["step"])
    row_bytes = b.mul(at["size"], long(kind.item))

    def row(number: Any) -> None:
        own = b.add(first, number)
        target = c.at(at["result"], own, row_bytes)
        c.copy(c.at(at["data"], own, row_bytes), target, row_bytes)
        begin = b.mul(own, at["count"])

        def one(step: Any) -> None:
            _element(kind, c, at, b.add(begin, step), outside, lambda index: c.at(target, index, kind.item))

        with b.if_then(b.icmp_unsigned("<", own, at["indexed"])):
            c.loop(at["count"], one)

    c.loop(c.least(at["step"], b.sub(at["outer"], first)), row)


def _strip(kind: ScatterKind, c: Code, at: dict[str, Any], item: Any, outside: Any) -> None:
    """Some columns behind the axis of the indices."""
    b = c.b
    outer, strip = b.udiv(item, at["strips"]), b.urem(item, at["strips"])
    column = b.mul(strip, at["step"])
    columns = c.least(at["step"], b.sub(at["inner"], column))
    many = b.mul(columns, long(kind.item))
    row_bytes = b.mul(at["inner"], long(kind.item))
    start = b.add(b.mul(b.mul(outer, at["size"]), row_bytes), b.mul(column, long(kind.item)))
    target = b.add(at["result"], start)
    source = b.add(at["data"], start)

    def copy(row: Any) -> None:
        own = c.at(source, row, row_bytes)
        _fetch(c, c.at(own, long(AHEAD), row_bytes), many)
        c.copy(own, c.at(target, row, row_bytes), many)

    c.loop(at["size"], copy)
    updated = c.variable(long(0))
    with b.if_then(b.icmp_unsigned("<", column, at["width"])):
        updated.set(c.least(columns, b.sub(at["width"], column)))

    def row(number: Any) -> None:
        begin = b.add(b.mul(b.add(b.mul(outer, at["count"]), number), at["width"]), column)
        following = b.add(begin, b.mul(at["width"], long(AHEAD)))
        if kind.repeated:
            _fetch(c, c.at(at["updates"], following, kind.item), many)
            index, inside = _index(kind, c, at, b.add(b.mul(outer, at["count"]), number), outside)
            with b.if_then(inside, likely=True):
                place = c.at(target, index, row_bytes)
                _slice(kind, c, c.at(at["updates"], begin, kind.item), place, updated.get())
            return
        for name, size in (("indices", kind.index), ("updates", kind.item)):
            _fetch(c, c.at(at[name], following, size), b.mul(columns, long(size)))

        def one(step: Any) -> None:
            _element(
                *(kind, c, at, b.add(begin, step), outside),
                lambda index: c.at(c.at(target, index, row_bytes), step, kind.item),
            )

        c.times(updated.get(), one)

    with b.if_then(b.icmp_unsigned("<", outer, at["indexed"])):
        c.loop(at["count"], row)


COMPILERS = {"ScatterElementsUpdate-3": compile, "ScatterElementsUpdate-12": compile}
OPENERS = {"ScatterElementsUpdate-3": open, "ScatterElementsUpdate-12": open}
