"""A second model of the same layers, to change without changing the first; the bytes of weights are shared."""

from __future__ import annotations

from dataclasses import replace

from irrun.ir.graph import BackEdge, Graph, Layer, LayerBody, Model, Port, PortMap, Value
from irrun.ir.xml import Element


def copied(model: Model) -> Model:
    """A model that means the same and shares no layer, value or element with `model`; elements know their places."""
    elements: dict[Element, Element] = {}
    graph = _graph(model.graph, None, elements)
    legacy = [_element(element, elements) for element in model.legacy]
    return replace(model, graph=graph, weights=model.weights.shared(), legacy=legacy)


def _graph(graph: Graph, owner: Layer | None, elements: dict[Element, Element]) -> Graph:
    made = Graph(
        _element(graph.element, elements),
        owner,
        rt_info=_element(graph.rt_info, elements) if graph.rt_info else None,
        unsure=graph.unsure,
    )
    layers = {layer: _layer(layer, made, elements) for layer in graph.layers}
    made.layers = list(layers.values())
    for layer, copy in layers.items():
        for number, value in enumerate(layer.inputs):
            edge = layer.input_edges[number]
            copy.input_edges.append(_element(edge, elements) if edge else None)
            copy.inputs.append(layers[value.layer].outputs[value.index] if value else None)
        for value, other in zip(layer.outputs, copy.outputs, strict=True):
            other.consumers = [(layers[reader], number) for reader, number in value.consumers if reader in layers]
    for layer, copy in layers.items():
        copy.bodies = {tag: _body(body, copy, elements) for tag, body in layer.bodies.items()}
    return made


def _layer(layer: Layer, graph: Graph, elements: dict[Element, Element]) -> Layer:
    data = _element(layer.data, elements) if layer.data else None
    shared = layer.data is not None and layer.attributes is layer.data.attributes
    copy = Layer(
        layer.id,
        layer.name,
        layer.type,
        layer.version,
        data.attributes if data and shared else dict(layer.attributes),
        _element(layer.element, elements),
        data,
        graph,
        input_ports=[_port(port, elements) for port in layer.input_ports],
        rt_info=_element(layer.rt_info, elements) if layer.rt_info else None,
        strays=[_element(stray, elements) for stray in layer.strays],
        broken=layer.broken,
    )
    copy.outputs = [Value(copy, value.index, _port(value.port, elements)) for value in layer.outputs]
    return copy


def _body(body: LayerBody, owner: Layer, elements: dict[Element, Element]) -> LayerBody:
    graph = _graph(body.graph, owner, elements)
    inner = dict(zip(body.graph.layers, graph.layers, strict=True))

    def entry(found: PortMap) -> PortMap:
        return replace(found, internal=inner[found.internal], element=_element(found.element, elements))

    edges = [
        BackEdge(inner[edge.result], inner[edge.parameter], _element(edge.element, elements))
        for edge in body.back_edges
    ]
    return LayerBody(
        graph, list(map(entry, body.inputs)), list(map(entry, body.outputs)), edges, body.broken, body.lost
    )


def _port(port: Port, elements: dict[Element, Element]) -> Port:
    return Port(port.id, port.precision, port.dims, port.names, _element(port.element, elements))


def _element(element: Element, elements: dict[Element, Element]) -> Element:
    """The copy of an element, one for each."""
    made = elements.get(element)
    if made is None:
        made = elements[element] = Element(element.tag, dict(element.attributes), element.source, element.offset)
        made.text = element.text
        if element.children:
            made.children = [_element(child, elements) for child in element.children]
        if element.dims:
            made.dims = [size if isinstance(size, int) else _element(size, elements) for size in element.dims]
    return made
