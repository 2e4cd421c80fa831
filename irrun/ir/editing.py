"""Changes to the layers of a model and their connections, which keep ports, edges, consumers and elements in step.

`Model` has them as methods; how many inputs and outputs layers have is the matter of `port_editing`. They see to the
form, as the file has it; types and sizes that ports declare are brought up to date by `irrun.redeclare`, and what a
change breaks is found by `irrun.validate`, and before `irrun.write_model` writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from irrun.ir.attribute_editing import attribute_text, data_of, set_attribute
from irrun.ir.bodies import UNCONNECTED
from irrun.ir.encoding import encode
from irrun.ir.graph import Graph, Layer, LayerBody, Model, Port, Value, leading_to
from irrun.ir.xml import Element
from irrun.spec.attributes import parse_shape
from irrun.spec.dtypes import element_type
from irrun.spec.registry import registry
from irrun.spelling import close_matches

Source = Value | Layer
"""What an input is connected to: a value, or a layer that has only one output."""

_LISTED = 12


def find_layer(model: Model, name: str | int) -> Layer:
    """The layer of a name, or of an id in the graph of the model itself. Raises ValueError where it is not one."""
    if isinstance(name, int):
        found = [layer for layer in model.graph.layers if layer.id == name]
    else:
        found = [layer for layer in model.graph.walk() if layer.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(map(str, found[:_LISTED]))
        raise ValueError(f"`{name}` is the name of {len(found)} layers: {listed}")
    close = close_matches(name, (layer.name for layer in model.graph.walk())) if isinstance(name, str) else []
    hint = f"; did you mean `{close[0]}`?" if close else ""
    raise ValueError(f"there is no layer `{name}` among the {sum(1 for _ in model.graph.walk())} of the model{hint}")


def add_layer(
    graph: Graph,
    type: str,
    inputs: Sequence[Source],
    attributes: Mapping[str, Any],
    name: str | None,
    version: str,
    outputs: int | None,
) -> Layer:
    """A new layer, before the Results that the graph ends with. Raises ValueError."""
    values = [value_of(source) for source in inputs]
    for number, value in enumerate(values):
        check_within(graph, value, f"input {number} of a new {type}")
    if outputs is None:
        outputs = _declared_outputs(type, version)
    id = 1 + max((layer.id for layer in graph.layers), default=-1) if graph.next_id is None else graph.next_id
    given = {"id": str(id), "name": _name(graph, type, id) if name is None else name, "type": type, "version": version}
    layer = Layer(id, given["name"], type, version, {}, Element("layer", given), None, graph)
    for attribute, value in attributes.items():
        set_attribute(layer, attribute, value)
    layer.outputs = [Value(layer, number, new_port()) for number in range(outputs)]
    for value in values:
        append_input(layer, value)
    number_ports(layer)
    place = len(graph.layers)
    while type != "Result" and place and graph.layers[place - 1].type == "Result":
        place -= 1
    graph.layers.insert(place, layer)
    graph.next_id = id + 1
    return layer


def add_constant(model: Model, graph: Graph, array: Any, type: str | None, name: str | None) -> Layer:
    layer = add_layer(graph, "Const", (), {}, name, "opset1", 1)
    try:
        set_constant(model, layer, array, type)
    except (TypeError, ValueError):
        graph.drop([layer])
        raise
    return layer


def set_constant(model: Model, layer: Layer, array: Any, type: str | None) -> None:
    """Give a Const other data: of its own element type unless given, where the array could be of it, else the array's.

    Raises ValueError where the layer is no Const, TypeError where the array is none of that type.
    """
    if layer.type != "Const":
        raise ValueError(f"layer {layer} is not a Const")
    array = np.asarray(array)
    if type is None:
        type = layer.attributes.get("element_type")
        try:
            data = encode(array, type or element_type(array.dtype))
        except TypeError:
            type = None
    type = type or element_type(array.dtype)
    data = encode(array, type)
    shape = ", ".join(map(str, array.shape))
    place = {"offset": str(model.weights.add(data)), "size": str(max(len(data), 1))}
    data_of(layer).update({"element_type": type, "shape": shape, **place})
    model.weights.forget(layer)
    if layer.outputs:
        declare(layer.outputs[0], type, array.shape)


def add_parameter(graph: Graph, type: Any, shape: Any, name: str | None) -> Layer:
    """A new input of a graph; that of a body has no value until it is mapped to one."""
    text = "..." if shape is None else attribute_text(shape)
    layer = add_layer(graph, "Parameter", (), {"shape": text, "element_type": type}, name, "opset1", 1)
    layer.outputs[0].port.names = (layer.name,)
    sizes = parse_shape(text) or ()
    dims = [size if isinstance(size, int) else -1 for size in sizes]
    declare(layer.outputs[0], layer.attributes["element_type"], dims)
    return layer


def add_result(graph: Graph, source: Source, name: str | None) -> Layer:
    return add_layer(graph, "Result", [source], {}, name, "opset1", 0)


def remove_layer(layer: Layer, bridge: int | Mapping[int, int] | None) -> None:
    """Take a layer out; what has read its output of number k reads what its input `bridge[k]` has read.

    A number alone is the input for output 0. Raises ValueError where somebody still reads an output.
    """
    graph = layer.graph
    if layer.removed:
        raise ValueError(f"layer {layer} is not in the graph any more")
    bridges = {0: bridge} if isinstance(bridge, int) else dict(bridge or {})
    for number, input in bridges.items():
        check_number(layer, number, output=True)
        check_number(layer, input, output=False)
    for value in layer.outputs:
        if value.consumers and value.index not in bridges:
            reader, number = value.consumers[0]
            what = f"its output {value.index} is input {number} of layer {reader}"
            raise ValueError(f"layer {layer} cannot be removed: {what}; bridge one of its inputs to it, or rewire that")
    _check_unmapped(layer)
    for number, input in bridges.items():
        source = layer.inputs[input]
        if source is None:
            raise ValueError(f"nothing is connected to input {input} of layer {layer}, so it cannot be bridged")
        redirect(layer.outputs[number], source)
    for number in range(len(layer.inputs)):
        disconnect(layer, number)
    for body in owning(graph):
        body.inputs = [entry for entry in body.inputs if entry.internal is not layer]
        body.outputs = [entry for entry in body.outputs if entry.internal is not layer]
        body.back_edges = [edge for edge in body.back_edges if layer not in (edge.result, edge.parameter)]
    graph.layers.remove(layer)
    layer.removed = True


def redirect(value: Value, to: Source) -> None:
    """Let all that read a value read another one, which goes by its names, too, from then on. Raises ValueError."""
    target = value_of(to)
    if target is value:
        return
    check_within(value.layer.graph, target, f"what replaces output {value.index} of layer {value.layer}")
    for reader, number in list(value.consumers):
        if reader is not target.layer:
            rewire(reader, number, target)
    target.port.names = tuple(dict.fromkeys((*target.port.names, *value.port.names)))
    value.port.names = ()


def replace_layer(layer: Layer, by: Layer) -> None:
    """Let all that read a layer read another one, output by output, and remove it. Raises ValueError."""
    if len(by.outputs) < len(layer.outputs):
        for value in layer.outputs[len(by.outputs) :]:
            if value.consumers:
                message = f"layer {by} has {len(by.outputs)} outputs, but output {value.index} of layer {layer} is read"
                raise ValueError(message)
    for value, other in zip(layer.outputs, by.outputs, strict=False):
        redirect(value, other)
    kept = [(reader, number) for value in layer.outputs for reader, number in value.consumers]
    if not kept:  # else the new layer reads the old one
        remove_layer(layer, None)


def rewire(layer: Layer, number: int, source: Source) -> None:
    """Connect an input of a layer to another value. Raises ValueError."""
    value = value_of(source)
    check_number(layer, number, output=False)
    check_within(layer.graph, value, f"input {number} of layer {layer}")
    disconnect(layer, number)
    layer.inputs[number] = value
    layer.input_edges[number] = Element("edge", {})
    value.consumers.append((layer, number))
    port = layer.input_ports[number]
    port.precision, port.dims = value.port.precision, value.port.dims


def prune(graph: Graph, parameters: bool) -> list[Layer]:
    """Remove what leads to no Result and no Assign, in bodies too; with `parameters` also Parameters nobody reads."""
    alive = leading_to(graph.sinks)
    kept = {"Parameter"} if not parameters or graph.owner else set()
    dead = [layer for layer in graph.layers if layer not in alive and layer.type not in kept]
    for layer in dead:
        for number in range(len(layer.inputs)):
            disconnect(layer, number)
    graph.drop(dead)
    for layer in graph.layers:
        for body in layer.bodies.values():
            dead += prune(body.graph, parameters)
    return dead


def rename_layer(layer: Layer, name: str) -> None:
    """Raises ValueError where another layer of the graph has the name, or it is empty."""
    if not name:
        raise ValueError("a name of a layer cannot be empty")
    for other in layer.graph.layers:
        if other.name == name and other is not layer:
            raise ValueError(f"layer {other} has the name `{name}` already")
    layer.name = layer.element.attributes["name"] = name


def name_tensor(source: Source, names: Iterable[str]) -> None:
    """Give a value other names, all that it goes by. Raises ValueError where another value of the graph has one."""
    value, given = value_of(source), tuple(dict.fromkeys(names))
    if "" in given:
        raise ValueError("a name of a tensor cannot be empty")
    for layer in value.layer.graph.layers:
        for other in layer.outputs:
            if other is not value and set(given).intersection(other.port.names):
                shared = next(name for name in given if name in other.port.names)
                raise ValueError(f"output {other.index} of layer {layer} has the name `{shared}` already")
    value.port.names = given


def declare(value: Value, type: str, shape: Sequence[int]) -> None:
    """Write a type and sizes into the port of a value, and into those that read it."""
    ports = [value.port, *(reader.input_ports[number] for reader, number in value.consumers)]
    for port in ports:
        port.precision, port.dims = type, tuple(shape)


def value_of(source: Source) -> Value:
    """The value that is meant by a layer, too. Raises ValueError where it has not exactly one, and TypeError."""
    if isinstance(source, Value):
        return source
    if not isinstance(source, Layer):
        raise TypeError(f"{source!r} is neither a Value nor a Layer: model.layer(...) finds one by its name or id")
    if len(source.outputs) != 1:
        raise ValueError(f"layer {source} has {len(source.outputs)} outputs: say which, as in layer.outputs[0]")
    return source.outputs[0]


def new_port() -> Port:
    return Port(0, "dynamic", (), (), Element("port", {}))


def append_input(layer: Layer, value: Value) -> None:
    layer.input_ports.append(Port(0, value.port.precision, value.port.dims, (), Element("port", {})))
    layer.inputs.append(value)
    layer.input_edges.append(Element("edge", {}))
    value.consumers.append((layer, len(layer.inputs) - 1))


def disconnect(layer: Layer, number: int) -> None:
    value = layer.inputs[number]
    if value is not None:
        value.consumers.remove((layer, number))
    layer.inputs[number] = None


def number_ports(layer: Layer) -> None:
    """The inputs from 0 on, then the outputs."""
    for id, port in enumerate([*layer.input_ports, *(value.port for value in layer.outputs)]):
        port.id = id


def _declared_outputs(type: str, version: str) -> int:
    op = registry().find(type, version)
    if op is None:
        return 1
    if op.outputs and op.outputs[-1].variadic:
        raise ValueError(f"{op.name} may have any number of outputs: say how many")
    return len(op.outputs)


def _name(graph: Graph, type: str, id: int) -> str:
    name = f"{type}_{id}"
    while any(layer.name == name for layer in graph.layers):
        id += 1
        name = f"{type}_{id}"
    return name


def check_within(graph: Graph, value: Value, what: str) -> None:
    if value.layer.graph is not graph or value.layer.removed:
        source = f"output {value.index} of layer {value.layer}"
        inside = graph.owner is not None or value.layer.graph.owner is not None
        hint = "; a body reads what is outside through its Parameters: see map_input" if inside else ""
        raise ValueError(f"{what} cannot be {source}, which is not in the same graph{hint}")


def check_number(layer: Layer, number: int, *, output: bool) -> None:
    count = len(layer.outputs) if output else len(layer.inputs)
    if not 0 <= number < count:
        side = "output" if output else "input"
        there = f"they go from 0 to {count - 1}" if count else "it has none"
        raise ValueError(f"layer {layer} has no {side} {number}: {there}")


def _check_unmapped(layer: Layer) -> None:
    """Raises ValueError where a Result is an output of the layer that its body is in."""
    for body in owning(layer.graph):
        for entry in body.outputs:
            if entry.internal is layer and entry.external != UNCONNECTED:
                owner = layer.graph.owner
                raise ValueError(f"layer {layer} is output {entry.external} of layer {owner}: remove that first")


def owning(graph: Graph) -> list[LayerBody]:
    if graph.owner is None:
        return []
    return [body for body in graph.owner.bodies.values() if body.graph is graph]
