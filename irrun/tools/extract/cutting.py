"""A region of a graph as a model of its own, with Parameters where something comes in and Results where it goes out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress

from irrun.diagnostics import IRError
from irrun.ir.editing import disconnect
from irrun.ir.graph import Graph, Layer, Model, Value
from irrun.ir.signature import names_of
from irrun.ir.xml import Element
from irrun.records import dataclass
from irrun.spec.dims import Dim
from irrun.spec.op import Tensor
from irrun.tools.editing import redeclare
from irrun.tools.extract.regions import Region

LONGEST = 200
"""Characters of a name that is made of another one."""


@dataclass(frozen=True, slots=True)
class Part:
    """A model that is a part of another one. `sources` are the values there that its Parameters stand for, in order,
    and `ends` those that its Results give; `twins` are the layers of the other model by those of this one."""

    model: Model
    sources: tuple[Value, ...]
    ends: tuple[Value, ...]
    twins: dict[Layer, Layer]


def cut(model: Model, region: Region, known: Callable[[Value], Tensor], *, sound: bool = True) -> Part:
    """The model of a region; its inputs are of the types and shapes that are `known`.

    Raises IRError where layers break the rules of their ops with these, unless it need not be `sound`; ValueError where
    a type is not known.
    """
    made = model.copy()
    pairs = list(zip(model.graph.walk(), made.graph.walk(), strict=True))
    twins = dict(pairs)
    graph = made.graph if region.graph is model.graph else _detached(made, twins[region.graph.layers[0]].graph)
    kept = {twins[layer] for layer in region.layers}
    _drop(graph, graph.results)

    parameters: dict[Value, Layer] = {}
    taken = {layer.name for layer in kept}
    for value in region.borders():
        outer = twins[value.layer].outputs[value.index] if value.layer in twins else None
        tensor = known(value)
        parameter = made.add_parameter(_type(value, tensor), _sizes(tensor), name=_named(value, taken), graph=graph)
        if value.port.names:
            parameter.outputs[0].port.names = value.port.names
        parameters[value] = parameter
        for reader, number in list(outer.consumers) if outer else ():
            if reader in kept:
                made.rewire(reader, number, parameter)
    for layer in region.layers:
        if layer.type == "Parameter":
            _narrow(made, twins[layer], known(layer.outputs[0]))

    for value in region.ends:
        source = parameters.get(value)
        inner = source.outputs[0] if source else twins[value.layer].outputs[value.index]
        made.add_result(inner, name=_unique(f"{inner.layer.name}/result", taken))
    others = [layer for layer in graph.layers if layer not in kept and layer.type not in ("Parameter", "Result")]
    _drop(graph, others)
    made.prune(parameters=True)
    with nullcontext() if sound else suppress(IRError):
        redeclare(made)

    origin = {copy: layer for layer, copy in pairs}
    back = {parameter: value for value, parameter in parameters.items()}
    sources = tuple(back[layer] if layer in back else origin[layer].outputs[0] for layer in graph.parameters)
    return Part(made, sources, region.ends, {layer: origin[layer] for layer in graph.walk() if layer in origin})


def input_names(model: Model) -> list[str]:
    """The name that each input of a model is given by, which no other one has."""
    listed: list[str] = []
    for layer in model.graph.parameters:
        names = names_of(layer)
        listed.append(next((name for name in names if name not in listed), names[0]))
    return listed


def _detached(model: Model, graph: Graph) -> Graph:
    """The graph of a body as that of the model."""
    element = Element("net", {"name": model.name, "version": str(model.version)})
    element.children = graph.element.children
    graph.element, graph.owner = element, None
    model.graph, model.legacy = graph, []
    return graph


def _drop(graph: Graph, layers: list[Layer]) -> None:
    """Take layers out whatever is read of them."""
    for layer in layers:
        for number in range(len(layer.inputs)):
            disconnect(layer, number)
        for value in layer.outputs:
            for reader, number in list(value.consumers):
                disconnect(reader, number)
    graph.drop(layers)


def _type(value: Value, tensor: Tensor) -> str:
    type = tensor.type if tensor.type != "dynamic" else value.port.precision or "dynamic"
    if type == "dynamic":
        raise ValueError(f"the element type of output {value.index} of layer {value.layer} is known in a run only")
    return type


def _sizes(tensor: Tensor) -> tuple[int | str, ...] | None:
    if tensor.shape is None:
        return None
    return tuple(size.bounds if isinstance(size, Dim) else size for size in tensor.shape)


def _narrow(model: Model, parameter: Layer, tensor: Tensor) -> None:
    """Let a Parameter declare what is known of it."""
    if tensor.shape is not None:
        sizes = _sizes(tensor)
        if sizes is not None:
            model.set_attribute(parameter, "shape", ",".join(map(str, sizes)))
    if tensor.type != "dynamic" and parameter.attributes.get("element_type", "").lower() == "dynamic":
        model.set_attribute(parameter, "element_type", tensor.type)


def _named(value: Value, taken: set[str]) -> str:
    """A name for the Parameter in the place of a value: that of its layer, with the output where that has several."""
    name = value.layer.name[:LONGEST]
    return _unique(f"{name}:{value.index}" if len(value.layer.outputs) > 1 else name, taken)


def _unique(name: str, taken: set[str]) -> str:
    unique, count = name, 1
    while not unique or unique in taken:
        unique, count = f"{name}_{count}", count + 1
    taken.add(unique)
    return unique
