"""Layers with bodies: If, Loop and TensorIterator, also in each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from differential.builder import Builder, Rejected, Size, Value
from differential.elementwise import chain
from differential.graph import Body, Layer
from differential.heads import HEADS, weights
from differential.operands import sizes_of
from differential.state import counted
from irrun.spec.dtypes import element_type

DEEPEST = 2

Maker = Callable[[Builder], Value]


def inside(b: Builder) -> Builder:
    """What makes the body of a layer."""
    inner = Builder(b.random, b.sets, b.dtype.str[1:], b.special)
    inner.depth, inner.again = b.depth + 1, 1.0
    return inner


def worked(inner: Builder, x: Value) -> Value:
    """A tensor that is made of `x`, of the same shape."""
    inner.keep(x)
    y = x
    if inner.depth < DEEPEST and inner.chance(0.15):
        y = inner.attempt([branch, iteration, scan], tries=5)
        if [array.shape for array in y.arrays] != [array.shape for array in x.arrays] or y.dtype != x.dtype:
            y = x
    elif inner.chance(0.4) and x.rank > 1 and x.fixed[-1] and x.float:
        size = x.shape[-1]
        table = weights(inner, [size, size], 1 / max(size, 1) ** 0.5)
        y = inner.one("MatMul-1", x, table, transpose_a=False, transpose_b=inner.chance(0.5))
    y = chain(inner, y, inner.number(1, 3))
    if [array.shape for array in y.arrays] != [array.shape for array in x.arrays] or y.dtype != x.dtype:
        raise Rejected
    return y


def surroundings(inner: Builder) -> Value | None:
    """Something else that a body computes: a convolution, a product, a pool, of what is there."""
    if inner.depth > 1 or not inner.chance(0.35):
        return None
    try:
        return chain(inner, inner.attempt(HEADS, tries=3), inner.number(0, 2))
    except Rejected:
        return None


def entered(
    b: Builder, inner: Builder, taken: dict[int, Value], first: int
) -> tuple[list[Value], list[dict[str, Any]]]:
    """The inputs of a layer from number `first` on, and their entries: `taken` by Parameter, and others as inputs."""
    values, entries = [], []
    for number in inner.graph.of_type("Parameter"):
        value = taken.get(number)
        if value is None:
            label = inner.graph.layers[number].label
            value = b.parameter([feed[label] for feed in inner.feeds])
        entries.append({"external_port_id": first + len(values), "internal_layer_id": number})
        values.append(value)
    return values, entries


def ended(inner: Builder, value: Value) -> int:
    """The number of a Result."""
    inner.result(value)
    return len(inner.graph.layers) - 1


def declared(values: Sequence[Value]) -> list[tuple[str, tuple[int, ...]]]:
    return [(element_type(value.dtype), (-1,) * value.rank) for value in values]


def _copy(inner: Builder, value: Value, arrays: Sequence[Any] | None = None) -> Value:
    """A Parameter of a body that has these arrays."""
    open = [axis for axis in range(value.rank) if inner.chance(0.1)]
    return inner.parameter(list(value.arrays if arrays is None else arrays), open)


def condition(b: Builder, x: Value) -> Value:
    """One boolean: a constant, an input, or one that the data tell."""
    match b.choose(["constant", "input", "input", "data"]):
        case "constant":
            return b.constant(np.bool_(b.chance(0.5)))
        case "input":
            shape = b.choose([(), (1,)])
            return b.parameter([np.full(shape, b.chance(0.5)) for _ in range(b.sets)])
    if not x.float or not x.sure or any(not array.size for array in x.arrays):
        raise Rejected
    axes = b.i64(np.arange(x.rank))
    least = b.one("ReduceMax-1", x, axes, keep_dims=False)
    return b.one("Greater-1", least, b.constant(np.asarray(1.5, x.dtype)), auto_broadcast="numpy")


def branch(b: Builder) -> Value:
    x = b.pick(b.number(1, 3))
    test = condition(b, x)
    values: list[Value] = [test]
    bodies: dict[str, Body] = {}
    results: list[list[Value]] = []
    count = b.choose([1, 1, 2])
    for name in ("then_body", "else_body"):
        inner = inside(b)
        start = _copy(inner, x)
        made = [worked(inner, start) if inner.chance(0.85) else start for _ in range(count)]
        if inner.chance(0.2) and start.rank > 1:
            made[-1] = inner.one("Concat-1", made[-1], made[-1], axis=0)
        numbers = [ended(inner, value) for value in made]
        more, entries = entered(b, inner, {start.ref[0]: x}, len(values))
        if x in values:  # the same tensor for both bodies, by one port or by two
            at = values.index(x)
            entries[0]["external_port_id"] = at if b.chance(0.5) else entries[0]["external_port_id"]
        values += more
        outputs = [{"external_port_id": n, "internal_layer_id": number} for n, number in enumerate(numbers)]
        bodies[name] = Body(inner.graph, entries, outputs)
        results.append(made)
    layer = Layer("If-8", outputs=declared(results[0]), bodies=bodies)
    made = b.computed(layer, values)
    for value in made:
        b.keep(value)
    return b.choose(made)


def iteration(b: Builder) -> Value:
    """A Loop: one or two variables, which may change places, one that is late, a counter, a condition, slices,
    results of each turn, one that grows."""
    x = b.pick(b.number(1, 3))
    inner = inside(b)
    merged = [x]
    if b.chance(0.5):
        merged.append(b.input(sizes_of(x)))
    starts = [_copy(inner, value) for value in merged]
    taken = {start.ref[0]: value for start, value in zip(starts, merged, strict=True)}
    sliced = None
    if b.chance(0.35):
        rows: list[Size] = [b.number(1, 4), *sizes_of(x)[1:]]
        sliced = b.input(rows)
        part = _copy(inner, sliced, [array[:1] for array in sliced.arrays])
        taken[part.ref[0]] = sliced
        inner.keep(part)
    made = [worked(inner, start) for start in starts]
    if len(made) == 1 and b.chance(0.2):
        made[0] = inner.one("Concat-1", made[0], made[0] if b.chance(0.3) else inner.input(sizes_of(x)), axis=0)
    aside = surroundings(inner)
    if sliced is not None and [a.shape[1:] for a in part.arrays] == [a.shape[1:] for a in x.arrays]:
        made[0] = inner.one("Add-1", made[0], part, auto_broadcast="numpy")
        if [a.shape for a in made[0].arrays] != [a.shape for a in x.arrays]:
            raise Rejected
    if b.chance(0.15):
        made[0] = counted(inner, made[0])
    counter = None
    if b.chance(0.4):
        shape = b.choose([(), (1,)])
        counter = inner.parameter([np.zeros(shape, np.int64)] * b.sets)
        if b.chance(0.6) and x.float:
            name = element_type(x.dtype)
            number = inner.one("Convert-1", counter, destination_type=name)
            made[0] = inner.one("Add-1", made[0], number, auto_broadcast="numpy")
        if b.chance(0.5) and x.float:
            table = b.input([b.number(1, 4) if b.chance(0.2) else b.number(5, 7), *sizes_of(x)[1:]])
            copy = _copy(inner, table)
            taken[copy.ref[0]] = table
            made[0] = inner.one("Add-1", made[0], cut_out(b, inner, copy, counter), auto_broadcast="numpy")
    go_on = inner.constant(np.bool_(True))
    if counter is not None and b.chance(0.5):
        limit = inner.constant(np.int64(b.number(0, 3)))
        go_on = inner.one("Less-1", counter, limit, auto_broadcast="numpy")
    numbers = [ended(inner, value) for value in made]
    if aside is not None and aside.rank and aside.fixed[0]:
        numbers.append(ended(inner, aside))
        made.append(aside)
    late = growing = None
    if b.chance(0.3):  # what an iteration gives as it is, which the one before has made
        value = b.input(sizes_of(x))
        late = _copy(inner, value)
        taken[late.ref[0]] = value
        made.append(late)
        numbers.append(ended(inner, late))
    if counter is not None and b.chance(0.4) and made[0].rank:  # more rows each time
        begin, step, axis = (inner.constant(np.int64([number])) for number in (0, 1, 0))
        end = inner.one("Reshape-1", counter, inner.constant(np.int64([1])), special_zero=False)
        end = inner.one("Add-1", end, inner.constant(np.int64([1])), auto_broadcast="numpy")
        growing = inner.one("Slice-8", made[0], begin, end, step, axis)
        made.append(growing)
        numbers.append(ended(inner, growing))
    going = ended(inner, go_on)
    first = [
        b.constant(np.asarray(b.choose([0, 1, 2, 3, 4, 5]), b.choose([np.int32, np.int64])))
        if b.chance(0.6)
        else b.parameter([np.asarray(b.number(1, 5), np.int64) for _ in range(b.sets)]),
        b.constant(np.bool_(True)) if b.chance(0.9) else b.parameter([np.bool_(b.chance(0.8)) for _ in range(b.sets)]),
    ]
    values, entries = [], []
    for value, entry in zip(*entered(b, inner, taken, 0), strict=True):
        if counter is not None and entry["internal_layer_id"] == counter.ref[0]:
            _forget(b, value)
            entries.append({**entry, "external_port_id": -1, "purpose": "current_iteration"})
            continue
        if sliced is not None and entry["internal_layer_id"] == part.ref[0]:
            entry |= {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1}
            if b.chance(0.3):
                entry |= {"start": -1, "end": 0, "stride": -1}
        entry["external_port_id"] = 2 + len(values)
        values.append(value)
        entries.append(entry)
    edges = list(zip(numbers, [start.ref[0] for start in starts], strict=False))
    if len(starts) == 2 and b.chance(0.5):
        edges = [(numbers[1], starts[0].ref[0]), (numbers[0], starts[1].ref[0])]
    if late is not None:
        edges.append((b.choose(numbers[: len(starts)]), late.ref[0]))
        if len(starts) == 2 and b.chance(0.3):
            edges[1] = numbers[made.index(late)], starts[1].ref[0]
    outputs, kept = [], []
    for number, value in zip(numbers, made, strict=True):
        if b.chance(0.8) or not kept:
            outputs.append({"external_port_id": len(kept), "internal_layer_id": number})
            kept.append(value)
        if b.chance(0.8 if value is late else 0.4) and value.rank:
            size = value.shape[0]
            forward = b.chance(0.8)
            ends = {"start": 0, "end": -1, "stride": size} if forward else {"start": -1, "end": 0, "stride": -size}
            entry = {"external_port_id": len(kept), "internal_layer_id": number, "axis": 0, "part_size": size}
            if value is growing or not value.fixed[0]:
                continue
            outputs.append(entry | ends)
            kept.append(value)
    outputs.append({"external_port_id": -1, "internal_layer_id": going, "purpose": "execution_condition"})
    layer = Layer("Loop-5", outputs=declared(kept), bodies={"body": Body(inner.graph, entries, outputs, edges)})
    results = b.computed(layer, [*first, *values])
    for value in results:
        b.keep(value)
    return b.choose(results)


def cut_out(b: Builder, inner: Builder, table: Value, counter: Value) -> Value:
    """Rows of a table that the counter tells, as one: for most the size is known, some tables are too short."""
    first = inner.one("Reshape-1", counter, inner.constant(np.int64([1])), special_zero=False)
    begin, end = b.choose([(0, 1), (0, 1), (0, 2), (1, 3), (-1, 1)])
    bounds = [inner.one("Add-1", first, inner.constant(np.int64([n])), auto_broadcast="numpy") for n in (begin, end)]
    step, axis = (inner.constant(np.int64([number])) for number in (1, 0))
    rows = inner.one("Slice-8", table, *bounds, step, axis)
    if (begin, end) == (0, 1) and table.shape[0] > 4 and b.chance(0.5):
        return rows
    return inner.one("ReduceSum-1", rows, inner.constant(np.int64([0])), keep_dims=True)


def _forget(b: Builder, value: Value) -> None:
    """Take back the input that was made last."""
    layer = b.graph.layers.pop(value.ref[0])
    for feed in b.feeds:
        del feed[layer.label]


def scan(b: Builder) -> Value:
    """A TensorIterator over slices of a tensor, with a state."""
    width, axis = b.choose([1, 3, 5]), b.choose([0, 1])
    batch, length = b.size() or 1, b.number(1, 5)
    x = b.input([length, batch, width] if axis == 0 else [batch, length, width])
    state = b.input([batch, width])
    inner = inside(b)
    part = _copy(inner, x, [array[:1] if axis == 0 else array[:, :1] for array in x.arrays])
    start = _copy(inner, state)
    row = inner.one("Squeeze-1", part, inner.constant(np.int64([axis])))
    inner.keep(row)
    if b.chance(0.5) and b.dtype == np.float32:
        tables = [weights(inner, shape, 0.5) for shape in ([3 * width, width], [3 * width, width], [3 * width])]
        now = inner.one("GRUCell-3", row, start, *tables, hidden_size=width, linear_before_reset=False)
        now = chain(inner, now, inner.number(0, 1))
    else:
        now = inner.one("Add-1", worked(inner, row), worked(inner, start), auto_broadcast="numpy")
    if now.shape != state.shape or now.dtype != state.dtype:
        raise Rejected
    wide = inner.one("Unsqueeze-1", now, inner.constant(np.int64([axis])))
    numbers = [ended(inner, now), ended(inner, wide)]
    way = {"start": 0, "end": -1, "stride": 1} if b.chance(0.6) else {"start": -1, "end": 0, "stride": -1}
    values, entries = entered(b, inner, {part.ref[0]: x, start.ref[0]: state}, 0)
    entries[0] |= {"axis": axis, "part_size": 1, **way}
    outputs: list[dict[str, Any]] = [
        {"external_port_id": 0, "internal_layer_id": numbers[0]},
        {"external_port_id": 1, "internal_layer_id": numbers[1], "axis": axis, "part_size": 1, **way},
    ]
    body = Body(inner.graph, entries, outputs, [(numbers[0], start.ref[0])])
    results = b.computed(Layer("TensorIterator-1", outputs=declared([now, wide]), bodies={"body": body}), values)
    for value in results:
        b.keep(value)
    return b.choose(results)


CONTROL = (branch, branch, iteration, iteration, scan)
"""Ops with bodies."""
