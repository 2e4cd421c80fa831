"""What a model computes of constants alone, as arrays."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from irrun.ir.graph import Graph, Layer, Model, Value
from irrun.run.executor import GraphExecutor
from irrun.spec.op import Array


def frontier_of(graph: Graph, constant: Collection[Layer]) -> list[Value]:
    """What `constant` layers compute, and others read."""
    return [
        value
        for layer in graph.layers
        if layer in constant and layer.type != "Const"
        for value in layer.outputs
        if any(reader not in constant for reader, _ in value.consumers)
    ]


def computed(model: Model, values: Sequence[Value]) -> list[Array]:
    """The arrays of `values` of the model's own graph, which depend on no input, by the kernels of their ops.

    Raises IRError where they cannot be computed.
    """
    part = model.copy()
    copies = dict(zip(model.graph.layers, part.graph.layers, strict=True))
    for sink in part.graph.sinks:
        for value in sink.outputs:
            value.consumers = []
        part.remove(sink)
    for number, value in enumerate(values):
        copy = copies[value.layer].outputs[value.index]
        copy.port.names = (f"constant {number}",)
        part.add_result(copy)
    part.prune(parameters=True)
    results = GraphExecutor(part, engine="reference", precision="declared").run({})
    return [results[f"constant {number}"] for number in range(len(values))]
