"""From `<edge>` elements to connections between the layers of one graph, and inputs that nothing reaches."""

from __future__ import annotations

from dataclasses import dataclass, field

from irrun.diagnostics import Note
from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer, Port
from irrun.ir.layers import UNKNOWN_ID
from irrun.ir.xml import Element

_ENDS = ("from-layer", "from-port", "to-layer", "to-port")


@dataclass(slots=True)
class _Index:
    """Layers by id. Of `doubtful` ones, whose ids are at fault, nothing else is reported: one cause, one diagnostic.

    `unsure` says that some layer's id is missing or taken, so that ids of edges may lead nowhere for that reason alone.
    `lost` counts the edges that arrive nowhere, each of which leaves some input without one.
    """

    layers: dict[int, Layer] = field(default_factory=dict)
    doubtful: set[Layer] = field(default_factory=set)
    unsure: bool = False
    lost: int = 0


def connect(graph: Graph, findings: Findings) -> None:
    """Fill the inputs of the layers and the consumers of their values."""
    index = _index(graph, findings)
    edges = graph.element.find("edges")
    if edges is None:
        if any(layer.input_ports for layer in graph.layers):
            help = "without edges no layer has inputs"
            findings.add("E112", f"<{graph.element.tag}> has no <edges>", graph.element, graph=graph, help=help)
        return
    ports: dict[tuple[Layer, bool], dict[int, int]] = {}
    for edge in edges.children:
        if edge.tag == "edge":
            _connect_edge(edge, graph, index, ports, findings)
    _report_unconnected(graph, index, findings)


def _index(graph: Graph, findings: Findings) -> _Index:
    index = _Index()
    for layer in graph.layers:
        if layer.id == UNKNOWN_ID:
            index.doubtful.add(layer)
            index.unsure = True
            continue
        first = index.layers.setdefault(layer.id, layer)
        if first is not layer:
            index.doubtful |= {first, layer}
            index.unsure = True
            message = f"layer id {layer.id} is used twice"
            notes = (Note(f"layer {first} has it, too", first.place),)
            help = "give the layer an id of its own and mend its edges; OpenVINO keeps only the last layer of an id"
            findings.add("E203", message, layer.element, "id", layer=layer, help=help, notes=notes)
        for listed in (layer.input_ports, [value.port for value in layer.outputs]):
            ids = [port.id for port in listed]
            if UNKNOWN_ID in ids or len(set(ids)) < len(ids):
                index.doubtful.add(layer)
    return index


def _connect_edge(
    edge: Element,
    graph: Graph,
    index: _Index,
    ports: dict[tuple[Layer, bool], dict[int, int]],
    findings: Findings,
) -> None:
    if findings.lacks(edge, _ENDS, graph):
        index.lost += 1
        return
    numbers = [findings.whole(edge, name, graph) for name in _ENDS]
    if None in numbers:
        index.lost += 1
        return
    from_layer, from_port, to_layer, to_port = numbers
    producer = _layer(edge, "from-layer", from_layer, graph, index, findings)
    reader = _layer(edge, "to-layer", to_layer, graph, index, findings)
    if reader is None:
        index.lost += 1
        return
    number = _port(edge, "to-port", to_port, reader, index, ports, findings)
    if number is None:
        index.doubtful.add(reader)
        return
    other = reader.input_edges[number]
    if other is not None:
        if reader not in index.doubtful:
            notes = (Note("the first one", other.place),)
            message = f"input port {to_port} of layer {reader} has a second edge"
            findings.add("E207", message, edge, "to-port", layer=reader, notes=notes, help="an input has one source")
        return
    reader.input_edges[number] = edge
    output = _port(edge, "from-port", from_port, producer, index, ports, findings) if producer else None
    if producer and output is not None:
        value = producer.outputs[output]
        reader.inputs[number] = value
        value.consumers.append((reader, number))


def _layer(edge: Element, name: str, id: int | None, graph: Graph, index: _Index, findings: Findings) -> Layer | None:
    layer = index.layers.get(id) if id is not None else None
    if layer is None and not index.unsure:
        where = f"this {graph.element.tag}" if graph.owner else "the model"
        help = f"its ids go from {min(index.layers)} to {max(index.layers)}" if index.layers else None
        findings.add("E205", f"there is no layer {id} in {where}", edge, name, graph=graph, help=help)
    return layer


def _port(
    edge: Element,
    name: str,
    id: int | None,
    layer: Layer,
    index: _Index,
    ports: dict[tuple[Layer, bool], dict[int, int]],
    findings: Findings,
) -> int | None:
    """The position of the port with this id among the inputs of `layer`, or its outputs for `from-port`."""
    output = name == "from-port"
    known = ports.get((layer, output))
    if known is None:
        listed = [value.port for value in layer.outputs] if output else layer.input_ports
        known = ports[layer, output] = {port.id: number for number, port in reversed(list(enumerate(listed)))}
    number = known.get(id) if id is not None else None
    if number is None and layer not in index.doubtful:
        side = "output" if output else "input"
        message = f"layer {layer} has no {side} port {id}"
        findings.add("E206", message, edge, name, layer=layer, help=_port_help(layer, id, output))
    return number


def _port_help(layer: Layer, id: int | None, output: bool) -> str:
    outputs = [value.port for value in layer.outputs]
    same, other = (outputs, layer.input_ports) if output else (layer.input_ports, outputs)
    side, opposite = ("output", "input") if output else ("input", "output")
    ids = ", ".join(str(port.id) for port in same[:8]) + (", ..." if len(same) > 8 else "")
    help = f"its {side} ports are {ids}" if same else f"it has no {side} ports"
    return help + (f"; {id} is an {opposite} port" if _has(other, id) else "")


def _has(ports: list[Port], id: int | None) -> bool:
    return any(port.id == id for port in ports)


def _report_unconnected(graph: Graph, index: _Index, findings: Findings) -> None:
    bare = [
        (layer, number)
        for layer in graph.layers
        if None in layer.input_edges and layer not in index.doubtful
        for number, edge in enumerate(layer.input_edges)
        if edge is None
    ]
    if len(bare) <= index.lost:
        return
    for layer, number in bare:
        port = layer.input_ports[number]
        message = f"no edge leads to input port {port.id}"
        help = "add an <edge>, or delete the <port> if the input is optional and the last one"
        findings.add("E208", message, port.element, layer=layer, help=help)
