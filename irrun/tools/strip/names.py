"""Names of layers, tensors and variables as hashes: equal names are equal again, in all of a model."""

from __future__ import annotations

from hashlib import blake2b

from irrun.ir.graph import Graph, Layer, Model, Port
from irrun.ir.layers import names_text, tensor_names
from irrun.ir.xml import Element


def strip_names(model: Model, key: bytes) -> dict[str, str]:
    """Give layers, tensors, variables and the model other names; what these are, by the names before.

    Names that were equal are equal again, so that what goes by names does so still; of another `key` they are others.
    """
    given: dict[str, str] = {}

    def hashed(name: str) -> str:
        if name and name not in given:
            given[name] = f"n{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=6, key=key).hexdigest()}"
        return given.get(name, name)

    model.name = hashed(model.name)
    for layer in model.graph.walk():
        layer.name = layer.element.attributes["name"] = hashed(layer.name)
        if "variable_id" in layer.attributes:
            layer.attributes["variable_id"] = hashed(layer.attributes["variable_id"])
        if "output_names" in layer.attributes:
            listed = tensor_names(layer.attributes["output_names"])
            layer.attributes["output_names"] = names_text(map(hashed, listed))
            if "output_names" in layer.element.attributes:
                layer.element.attributes["output_names"] = layer.attributes["output_names"]
        for port in _ports(layer):
            port.names = tuple(map(hashed, port.names))
    model.edited = True
    return given


def strip_remarks(model: Model) -> None:
    """Leave out runtime info, comments, and all elements and attributes that mean nothing to irrun."""
    _graph(model.graph, Element("net", {}))
    model.legacy = []
    model.edited = True


def _graph(graph: Graph, element: Element) -> None:
    graph.element, graph.rt_info = element, None
    for layer in graph.layers:
        named = {"id": str(layer.id), "name": layer.name, "type": layer.type, "version": layer.version}
        if "output_names" in layer.element.attributes:
            named["output_names"] = layer.element.attributes["output_names"]
        data = layer.data
        layer.element, layer.rt_info, layer.strays = Element("layer", named), None, []
        if data is not None:
            layer.data = Element("data", dict(layer.attributes))
            layer.attributes = layer.data.attributes
        for port in _ports(layer):
            port.element = Element("port", {})
        layer.input_edges = [None if edge is None else Element("edge", {}) for edge in layer.input_edges]
        for tag, body in layer.bodies.items():
            for entry in (*body.inputs, *body.outputs):
                entry.element = Element(entry.element.tag, {})
            for back in body.back_edges:
                back.element = Element("edge", {})
            _graph(body.graph, Element(tag, {}))


def _ports(layer: Layer) -> list[Port]:
    return [*layer.input_ports, *(value.port for value in layer.outputs)]
