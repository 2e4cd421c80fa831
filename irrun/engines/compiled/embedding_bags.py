"""Embedding bags: rows of a table summed in registers, each brought into the cache before it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.compiled.bag_places import LONGEST, WRONG, by_offsets, by_rows, by_segments
from irrun.engines.compiled.code import FLOAT, LONG, Code, Form, Values, floats, lanes_of, long
from irrun.engines.compiled.loops import MEMORY_OF_BYTES, looped
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, aligned, data_address
from irrun.engines.vectorized.embeddings import FINDERS, PIECE, Bags, rooms_for_pieces, sum_pieces
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.work import OPEN_GROWTH, Arrays, Call, Compiled, Judging, OpenCall, Operand, Work
from irrun.records import dataclass
from irrun.spec.op import Array

CHUNK = 32
"""Bags that a thread takes at once."""

AHEAD = 8
"""Rows that are brought into the cache before they are read."""

VECTORS = 8
"""Vectors of a row that are summed at once."""

MAX_COLUMNS = 1 << 12
"""Elements of a row: kernels have no loops over them."""

SHARED = 1 << 16
"""Bytes of rows from which on threads share them."""

MAX_JUDGED = 1 << 20
"""Indices that one thread looks at: more are left to the rule."""

_FORM = Form(
    (
        *("items", "bags", "table", "rows", "indices", "total", "weights", "starts", "counts", "places", "divisors"),
        *("target", "default"),
    )
)
"""`items` are chunks of `bags`, `rows` those of the table, `total` is the number of indices; others are addresses."""

PLACES: dict[str, tuple[Callable[..., None], int, int]] = {
    "EmbeddingSegmentsSum-3": (by_segments, 2, 5),
    **dict.fromkeys(("EmbeddingBagOffsetsSum-3", "EmbeddingBagOffsets-15"), (by_offsets, 2, 4)),
    **dict.fromkeys(("EmbeddingBagPackedSum-3", "EmbeddingBagPacked-15"), (by_rows, 1, 2)),
}
"""What finds the bags of an op, the number of the input by which it does, and that of the weights."""


@dataclass(frozen=True, slots=True)
class BagKind:
    """What a kernel is compiled for: elements of a row, bytes of an index, whether rows have weights, and whether sums
    are divided."""

    columns: int
    index: int
    weighted: bool
    mean: bool


def compile(work: Work, team: Team) -> Compiled | None:
    """An op of f32 that sums bags."""
    find, default = FINDERS[work.name]
    (table, places), own = work.required(2), len(work.own)
    columns, count = prod(table.shape[1:]), prod(places.shape)
    if table.type != "f32" or columns > MAX_COLUMNS or places.type not in ("i32", "i64"):
        return None
    if not all(operand is None or is_dense(operand) for operand in work.own):
        return None
    if any(operand is not None and operand.type in ("f16", "bf16", "f64") for operand in work.own):  # weights
        return None
    mean, row, sizes = work.attrs.get("reduction") == "mean", columns * ITEM, rooms_for_pieces(count)
    ends = np.cumsum([0, *(aligned(size * row) for size in sizes)]).tolist()
    nothing = np.zeros(columns, np.float32)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> list[Call]:
        rows, target = inputs[0].reshape(-1, columns), outputs[0].reshape(-1, columns)
        parts = [
            scratch[begin : begin + size * row].view(np.float32).reshape(-1, columns)
            for begin, size in zip(ends, sizes, strict=False)
        ]
        given = inputs[:own]
        every = np.arange(len(target))
        held = [array for array in (rows, target, nothing, every, *given) if array is not None]
        known = {id(array): data_address(array) for array in held}  # to ask each time takes as long as a small bag
        filler: Any = None if default is None or default >= own else inputs[default]

        def call() -> None:
            starts, counts, indices, weights = find(given, len(target))
            number = -1 if filler is None else int(filler)
            empty = nothing if number < 0 else rows[number]
            bags = Bags(starts, counts, every, counts if mean else None)
            sum_pieces(partial(_sum, team, known, empty), parts, rows, indices, weights, bags, target)

        return [call]

    compiled = with_posts(work, bind, ends[-1])
    if compiled is not None and count <= MAX_JUDGED and _is_regular(work):
        compiled.judging = partial(_judging, work, team)
    return compiled


def open(work: Work, team: Team) -> OpenCall | None:
    """A call for EmbeddingSegmentsSum-3 of any sizes: how many segments there are is data."""
    types = [None if operand is None else operand.type for operand in work.inputs]
    if types[0] != "f32":
        return None

    def call(arrays: Sequence[Any]) -> Sequence[Array] | None:
        table, indices, _, count = arrays[:4]
        columns, bags = prod(table.shape[1:]), count.item() if count.size == 1 else 0
        if not (bags > 0 and table.size and 0 < indices.size <= MAX_JUDGED and columns <= MAX_COLUMNS):
            return None
        if bags * columns * ITEM > OPEN_GROWTH * sum(own.nbytes for own in arrays if own is not None):
            return None
        shape = (bags, *table.shape[1:])
        operands = [
            None if own is None or type is None else Operand(type, own.shape, own.strides)
            for own, type in zip(arrays, types, strict=True)
        ]
        sized = Work(work.name, work.attrs, operands, [Operand("f32", shape, ())])
        if not (all(operand is None or is_dense(operand) for operand in operands) and _is_regular(sized)):
            return None
        target = team.reserve.empty(shape, table.dtype)
        return (target,) if _judging(sized, team, arrays, [target], None)() else None

    return call


def _is_regular(work: Work) -> bool:
    """Whether shapes are as the op's rule wants them, so that its data alone are to be looked at."""
    _, by, weighted = PLACES[work.name]
    _, default = FINDERS[work.name]
    (table, indices), places, weights = work.required(2), work.optional(by), work.optional(weighted)
    bags = indices if by == 1 else places
    number = None if default is None else work.optional(default)
    if places is None or bags is None or work.posts or len(indices.shape) != (2 if by == 1 else 1):
        return False
    if len(places.shape) != len(indices.shape) or any(own.type != indices.type for own in (places, number or places)):
        return False
    if work.name == "EmbeddingSegmentsSum-3":
        (count,) = work.required(4)[3:]
        if places.shape != indices.shape or count.shape != ():
            return False
    elif work.outputs[0].shape[0] != bags.shape[0]:
        return False
    if weights is not None and (weights.shape != indices.shape or work.attrs.get("reduction") == "mean"):
        return False
    if number is not None and number.shape != ():
        return False
    return work.outputs[0].shape[1:] == table.shape[1:] and (default is None or weights is None or number is not None)


def _judging(work: Work, team: Team, inputs: Arrays, outputs: Sequence[Array], _: Any) -> Judging:
    """A call for bags of a piece at most: a loop finds them and looks at their indices, then they are summed.

    What the call is given lies where it did before, so that it has two kernels to run and nothing to prepare.
    """
    find, by, weighted = PLACES[work.name]
    _, default = FINDERS[work.name]
    own = len(work.own)
    table, indices, target = inputs[0], inputs[1], outputs[0]
    weights = inputs[weighted] if weighted < own else None
    filler = inputs[default] if default is not None and default < own else None
    segments = inputs[3] if work.name == "EmbeddingSegmentsSum-3" else None
    bags, rows, columns = len(target), len(table), prod(table.shape[1:])
    starts, counts = np.empty((2, bags), np.int64)
    found, nothing, every = np.empty(2, np.int64), np.zeros(columns, np.float32), np.arange(bags)
    mean = work.attrs.get("reduction") == "mean"
    searched = (indices, inputs[by], starts, counts, found, rows, indices.size, bags)
    search = looped(team, find, searched, 1, 0, Places=MEMORY_OF_BYTES[indices.itemsize][0])
    arrays = {"table": table, "indices": indices, "starts": starts, "counts": counts, "places": every}
    arrays |= {"divisors": counts, "target": target, "default": nothing}
    held = {name: data_address(array) for name, array in arrays.items()}
    held["weights"] = 0 if weights is None else data_address(weights)
    sizes = {"items": -(-bags // CHUNK), "bags": bags, "rows": rows, "total": indices.size}
    arguments = _FORM.of(**sizes, **held)
    empty, pointer = _FORM.place("default"), data_address(arguments)
    kind = BagKind(columns, indices.itemsize, weights is not None, mean)
    address = _FORM.address(kind, partial(_chunk, kind))
    shared = (indices.size + bags) * columns * ITEM >= SHARED

    def call(_: object = (arrays, weights)) -> bool:
        search()
        if found[WRONG] or found[LONGEST] > PIECE or (segments is not None and segments.item() != bags):
            return False
        if filler is not None:
            number = filler.item()
            if not -1 <= number < rows:
                return False
            arguments[empty] = held["default"] if number < 0 else held["table"] + number * columns * ITEM
        arguments[0] = 0
        team.run(address, pointer, shared=shared)
        return True

    return call


def _sum(
    team: Team,
    known: Mapping[int, int],
    empty: Array,
    table: Array,
    indices: Array,
    weights: Array | None,
    bags: Bags,
    target: Array,
) -> None:
    """Sum bags of a piece at most. `known` are the addresses of arrays that are there in every call, by their ids."""
    count = len(bags.counts)
    if not count:
        return
    kind = BagKind(table.shape[1], indices.itemsize, weights is not None, bags.divisors is not None)
    given: dict[str, Array | None] = {
        "table": table,
        "indices": np.ascontiguousarray(indices),
        "weights": None if weights is None else np.ascontiguousarray(weights),
        "starts": np.ascontiguousarray(bags.starts, np.int64),
        "counts": np.ascontiguousarray(bags.counts, np.int64),
        "places": bags.places,
        "divisors": None if bags.divisors is None else np.ascontiguousarray(bags.divisors, np.int64),
        "target": target,
        "default": empty,
    }
    arguments = _FORM.of(
        items=-(-count // CHUNK),
        bags=count,
        rows=len(table),
        total=len(indices),
        **{name: 0 if array is None else known.get(id(array)) or data_address(array) for name, array in given.items()},
    )
    address = _FORM.address(kind, partial(_chunk, kind))
    team.run(address, data_address(arguments), shared=(len(indices) + count) * target.strides[0] >= SHARED)


def _chunk(kind: BagKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    begin = b.mul(item, long(CHUNK))

    def bag(number: Any) -> None:
        own = b.add(begin, number)
        count = c.load(c.at(at["counts"], own, 8), LONG, 8)
        target = c.at(at["target"], c.load(c.at(at["places"], own, 8), LONG, 8), kind.columns * ITEM)
        with b.if_else(b.icmp_unsigned("==", count, long(0))) as (none, some):
            with none:
                c.copy(at["default"], target, long(kind.columns * ITEM))
            with some:
                _bag(kind, c, at, own, count, target)

    c.loop(c.least(long(CHUNK), b.sub(at["bags"], begin)), bag)


def _bag(kind: BagKind, c: Code, at: dict[str, Any], own: Any, count: Any, target: Any) -> None:
    """The sum of a bag that is not empty, some vectors after the others."""
    b = c.b
    start, last = c.load(c.at(at["starts"], own, 8), LONG, 8), b.sub(at["rows"], long(1))
    vectors = lanes_of(kind.columns)

    def row_of(place: Any) -> Any:
        index = c.number(c.at(at["indices"], place, kind.index), kind.index)
        return c.at(at["table"], c.least(index, last), kind.columns * ITEM)

    for begin in range(0, len(vectors), VECTORS):
        some = vectors[begin : begin + VECTORS]

        def add(number: Any, *sums: Any, some: list[tuple[int, int]] = some) -> Values:
            place = b.add(start, number)
            row = row_of(place)
            later = row_of(c.least(b.add(place, long(AHEAD)), b.sub(at["total"], long(1))))
            for offset, _ in some:
                c.prefetch(b.add(later, long(offset)))
            read = [c.read(b.add(row, long(offset)), lanes) for offset, lanes in some]
            if not kind.weighted:
                return [b.fadd(total, values) for total, values in zip(sums, read, strict=True)]
            weight = c.splat(c.load(c.at(at["weights"], place, ITEM), FLOAT))
            return [c.fma(values, weight, total) for total, values in zip(sums, read, strict=True)]

        sums = c.loop(count, add, *[floats(0.0)] * len(some))
        if kind.mean:
            divisor = c.splat(b.sitofp(c.load(c.at(at["divisors"], own, 8), LONG, 8), FLOAT))
            sums = [b.fdiv(total, divisor) for total in sums]
        for total, (offset, lanes) in zip(sums, some, strict=True):
            c.write(total, b.add(target, long(offset)), lanes)


COMPILERS = dict.fromkeys(FINDERS, compile)
OPENERS = {"EmbeddingSegmentsSum-3": open}
