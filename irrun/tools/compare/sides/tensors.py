"""The tensors of our model by the keys that both sides of a comparison use, and its inputs and outputs in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from irrun.diagnostics import LONGEST_NAME, clipped
from irrun.ir.graph import Graph, Layer, Model, Value
from irrun.ir.signature import names_of_results
from irrun.run.inputs import Binding
from irrun.run.keys import Path, key
from irrun.spec.attributes import parse_shape
from irrun.spec.op import Array, Tensor

_OTHERS = ("Parameter", "Const", "Result", "Assign")
"""Layers that compute nothing; some files say that those have outputs that end something."""


def key_of(value: Value) -> str:
    """`layer:port`, as `irrun.Event.name` has it in the graph of the model itself."""
    return key(value.layer, value.index, ())


def tensors_of(graph: Graph) -> dict[str, Value]:
    """The tensors of a graph by key."""
    return {key_of(value): value for layer in graph.layers for value in layer.outputs}


def unclear(graph: Graph) -> dict[str, str]:
    """Why tensors cannot be asked for by the name of their layer: others have it, too. By key."""
    counts = Counter(layer.name for layer in graph.layers)
    return {
        key_of(value): f"{counts[layer.name]} layers have the name `{clipped(layer.name, LONGEST_NAME)}`"
        for layer in graph.layers
        for value in layer.outputs
        if counts[layer.name] > 1
    }


def computed(values: Mapping[str, Value]) -> dict[str, Value]:
    """Those that layers compute."""
    return {name: value for name, value in values.items() if value.layer.type not in _OTHERS}


def wanted(values: Mapping[str, Value], keys: Collection[str] | None) -> dict[str, Value]:
    """The tensors of these keys, or all that are computed. Raises ValueError where there is none of a key."""
    if keys is None:
        return computed(values)
    for name in keys:
        if name not in values:
            raise ValueError(f"the model has no tensor `{name}`; a tensor is named LAYER:PORT")
    return {name: values[name] for name in dict.fromkeys(keys)}


def keys_of_results(model: Model) -> list[str]:
    """The keys of the model's results, in order."""
    return [names[0] for names in names_of_results(model.graph)]


def bound(model: Model, steps: Collection[Mapping[str, Array]]) -> list[list[Array]]:
    """For each step the arrays of all Parameters, in order and of their types. Raises InputError."""
    parameters = model.graph.parameters
    binding = Binding(model, [declared(layer) for layer in parameters])
    return [binding(range(len(parameters)), step, {}) for step in steps]


def declared(parameter: Layer) -> Tensor:
    """What a Parameter says of its tensor."""
    try:
        shape = parse_shape(parameter.attributes.get("shape", "..."))
    except ValueError:  # which validation reports
        shape = None
    return Tensor(parameter.attributes.get("element_type", "dynamic").lower(), shape)


def origins(value: Value, path: Path) -> Iterator[tuple[Value, Path]]:
    """The tensors that a layer reads as a value: those of a Parameter of a body were made elsewhere."""
    owner = value.layer.graph.owner
    if value.layer.type != "Parameter" or owner is None or not path:
        yield value, path
        return
    _, name, iteration = path[-1]
    body = owner.bodies[name]
    back = [edge.result for edge in body.back_edges if edge.parameter is value.layer]
    if back and iteration:
        for result in back:
            for source in result.inputs[:1]:
                if source is not None:
                    yield from origins(source, (*path[:-1], (path[-1][0], name, iteration - 1)))
        return
    for port in body.inputs:
        source = owner.inputs[port.external] if port.internal is value.layer and port.external >= 0 else None
        if source is not None:
            yield from origins(source, path[:-1])
