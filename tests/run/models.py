"""Small models with bodies for tests of programs, on top of those that the differential suite makes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from differential.builder import Builder, Value
from differential.graph import Body, Case, Layer, save

ADD = {"auto_broadcast": "numpy"}
PLAIN = {"transpose_a": False, "transpose_b": False}


def model() -> Builder:
    b = Builder(np.random.default_rng(0))
    b.most = 1 << 24
    return b


def i64(b: Builder, values: object) -> Value:
    return b.constant(np.int64(values))


def anything(b: Builder, type: str, dims: Sequence[int], label: str = "") -> Value:
    """An input of this type and shape; -1 is a size that only a run tells."""
    array = np.zeros([max(size, 1) for size in dims], type)
    value = b.parameter([array], [axis for axis, size in enumerate(dims) if size < 0])
    if label:
        b.graph.layers[value.ref[0]].label = label
    return value


def saved(b: Builder, folder: Path) -> Path:
    return save(Case(b.graph, b.feeds), folder)


def loop(
    b: Builder,
    inner: Builder,
    trips: Value,
    given: Sequence[tuple[Value, Value]],
    results: Sequence[Value],
    back: Sequence[tuple[Value, Value]] = (),
    joined: Sequence[Value] = (),
    label: str = "",
) -> list[Value]:
    """A Loop over `inner`, whose parameters are given values; its outputs are the last `results`, then those `joined`
    along axis 0. `back` are pairs of a result and the parameter that is it in the next iteration."""
    numbers: dict[tuple[int, int], int] = {}
    for value in (*results, *joined, *(value for value, _ in back)):
        if value.ref not in numbers:
            inner.result(value)
            numbers[value.ref] = len(inner.graph.layers) - 1
    inner.result(inner.constant(np.bool_(True)))
    outputs = [{"external_port_id": n, "internal_layer_id": numbers[value.ref]} for n, value in enumerate(results)]
    for value in joined:
        entry = {"external_port_id": len(outputs), "internal_layer_id": numbers[value.ref], "axis": 0}
        outputs.append({**entry, "start": 0, "end": -1, "stride": value.shape[0], "part_size": value.shape[0]})
    last = len(inner.graph.layers) - 1
    outputs.append({"external_port_id": -1, "internal_layer_id": last, "purpose": "execution_condition"})
    inputs = [
        {"external_port_id": 2 + n, "internal_layer_id": parameter.ref[0]} for n, (parameter, _) in enumerate(given)
    ]
    edges = [(numbers[result.ref], parameter.ref[0]) for result, parameter in back]
    layer = Layer(
        "Loop-5",
        [value.ref for value in (trips, b.constant(np.bool_(True)), *(value for _, value in given))],
        label=label,
        bodies={"body": Body(inner.graph, inputs, outputs, edges)},
    )
    return _declared(b, layer, [*results, *joined])


def branch(b: Builder, condition: Value, bodies: Sequence[tuple[Builder, Value]], *given: Value) -> Value:
    """An If whose bodies give one tensor each; their parameters are those of `given`, in order."""
    entries: dict[str, Body] = {}
    for name, (inner, value) in zip(("then_body", "else_body"), bodies, strict=True):
        inner.result(value)
        inputs = [
            {"external_port_id": 1 + n, "internal_layer_id": number}
            for n, number in enumerate(inner.graph.of_type("Parameter"))
        ]
        entries[name] = Body(
            inner.graph, inputs, [{"external_port_id": 0, "internal_layer_id": len(inner.graph.layers) - 1}]
        )
    layer = Layer("If-8", [condition.ref, *(value.ref for value in given)], bodies=entries)
    return _declared(b, layer, [bodies[0][1]])[0]


def _declared(b: Builder, layer: Layer, alike: Sequence[Value]) -> list[Value]:
    """Add a layer whose outputs have the types and ranks of these."""
    outputs = b.layer(layer, [value.arrays for value in alike], False, False)
    layer.outputs = [(type, (-1,) * len(dims)) for type, dims in layer.outputs]
    return outputs
