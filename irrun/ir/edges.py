"""From `<edge>` elements to connections between the layers of one graph, and inputs that nothing reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache

from irrun.diagnostics import Note
from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer, Port
from irrun.ir.layers import UNKNOWN_ID
from irrun.ir.plain import PlainEdge
from irrun.ir.unread import EDGE_ATTRIBUTES, joined, members, report_attributes, report_element
from irrun.ir.xml import Deferred, Element
from irrun.records import dataclass

_ENDS = ("from-layer", "from-port", "to-layer", "to-port")


@dataclass(eq=False, repr=False, slots=True)
class _Index:
    """Layers by id. Of `doubtful` ones, whose ids are at fault, nothing else is reported: one cause, one diagnostic.

    `written` has the other ones by the text of their id. `lost` counts the edges that arrive nowhere, each of which
    leaves some input without one. A layer that is `crowded` has a second edge into one of its ports, which may be meant
    for another one. Layers of one id are there `twice`: which of them an edge is meant for nobody knows.
    """

    layers: dict[int, Layer] = field(default_factory=dict)
    written: dict[str | None, Layer] = field(default_factory=dict)
    doubtful: set[Layer] = field(default_factory=set)
    crowded: set[Layer] = field(default_factory=set)
    twice: set[Layer] = field(default_factory=set)
    lost: int = 0


def connect(graph: Graph, findings: Findings) -> None:
    """Fill the inputs of the layers and the consumers of their values."""
    index = _index(graph, findings)
    lists = joined(graph, "edges", findings)
    if not lists:
        if any(layer.input_ports for layer in graph.layers):
            help = "without edges no layer has inputs"
            message = f"<{graph.element.tag}> has no <edges>"
            findings.add("E112", message, graph.element, graph=graph, layer=graph.owner, help=help)
        return
    ports: dict[tuple[Layer, bool], dict[int, int]] = {}
    misplaced: list[Element] = []
    for edge in members(lists[0], "edge", findings, graph, graph.owner):
        if edge.tag != "edge":
            misplaced.append(edge)
        elif not _connect_plainly(edge, index):
            _connect_edge(edge, graph, index, ports, findings)
    for more in lists[1:]:
        misplaced += members(more, "edge", findings, graph, graph.owner)
    for edge in misplaced:  # which is reported
        if not _connect_plainly(edge, index):
            _connect_edge(edge, graph, index, ports, findings, spare=True)
    _report_unconnected(graph, index, findings)


def _index(graph: Graph, findings: Findings) -> _Index:
    index = _Index()
    for layer in graph.layers:
        if layer.id == UNKNOWN_ID:
            index.doubtful.add(layer)
            graph.unsure = True
            continue
        first = index.layers.setdefault(layer.id, layer)
        if first is not layer:
            index.doubtful |= {first, layer}
            index.twice |= {first, layer}
            graph.unsure = True
            message = f"layer id {layer.id} is used twice"
            notes = (Note(f"layer {first} has it, too", first.span),)
            help = "give the layer an id of its own and mend its edges; OpenVINO keeps only the last layer of an id"
            findings.add("E203", message, layer.element, "id", layer=layer, help=help, notes=notes)
        if layer.element.deferred:  # so that its ports have ids of their own
            continue
        for ids in ([port.id for port in layer.input_ports], [value.port.id for value in layer.outputs]):
            if UNKNOWN_ID in ids or (len(ids) > 1 and len(set(ids)) < len(ids)):
                index.doubtful.add(layer)
    index.written = {str(layer.id): layer for layer in graph.layers if layer not in index.doubtful}
    return index


def _connect_plainly(edge: Element, index: _Index) -> bool:
    """Connect an edge as nearly all are written; False, with nothing done, where that needs a closer look.

    The ports of its layers are numbered on from 0, inputs first, and the ids stand in both places in the same way.
    """
    plain: PlainEdge | None = edge.take() if isinstance(edge, Deferred) else None
    if plain is None:
        given = edge.attributes
        if len(given) > len(_ENDS) or edge.children:
            return False
        ends: Sequence[str | None] = [given.get(name) for name in _ENDS]
    else:
        ends = plain
    producer, reader = index.written.get(ends[0]), index.written.get(ends[2])
    output, number = _plain_number(ends[1]), _plain_number(ends[3])
    if producer is None or reader is None or output is None or number is None:
        return False
    position = output - len(producer.input_ports)
    if not 0 <= position < len(producer.outputs) or number >= len(reader.inputs):
        return False
    value = producer.outputs[position]
    if value.port.id != output or reader.input_ports[number].id != number or reader.input_edges[number] is not None:
        return False
    reader.input_edges[number] = edge
    reader.inputs[number] = value
    value.consumers.append((reader, number))
    return True


@lru_cache
def _plain_number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and text.isascii() and len(text) < 10 else None


def _connect_edge(
    edge: Element,
    graph: Graph,
    index: _Index,
    ports: dict[tuple[Layer, bool], dict[int, int]],
    findings: Findings,
    *,
    spare: bool = False,
) -> None:
    """Connect an edge, or report what is wrong with it; of a `spare` one not that its port has another one."""
    if len(edge.attributes) > len(_ENDS):
        report_attributes(edge, EDGE_ATTRIBUTES, findings, graph)
    for child in edge.children:
        report_element(child, "<edge>", "it has attributes only", findings, graph)
    if findings.lacks(edge, _ENDS, graph):
        index.lost += 1
        return
    numbers = [findings.whole(edge, name, graph) for name in _ENDS]
    if None in numbers:
        index.lost += 1
        return
    from_layer, from_port, to_layer, to_port = numbers
    producer, reader = (index.layers.get(id) if id is not None else None for id in (from_layer, to_layer))
    if producer is None:
        _report_no_layer(edge, "from-layer", reader, graph, index, findings)
    if reader is None:
        _report_no_layer(edge, "to-layer", producer, graph, index, findings)
        index.lost += 1
        return
    if reader in index.twice:
        return
    number = _port(edge, "to-port", to_port, reader, index, ports, findings)
    if number is None:
        index.doubtful.add(reader)
        return
    other = reader.input_edges[number]
    if other is not None:
        if reader not in index.doubtful and not spare:
            notes = (Note("the first one", other.span),)
            help = "an input has one source; delete one of the edges, or let it lead to the port that it is meant for"
            message = f"input port {to_port} of layer {reader} has a second edge"
            findings.add("E207", message, edge, "to-port", layer=reader, notes=notes, help=help)
            index.crowded.add(reader)
        return
    reader.input_edges[number] = edge
    if producer is None or producer in index.twice:
        return
    output = _port(edge, "from-port", from_port, producer, index, ports, findings)
    if output is not None:
        value = producer.outputs[output]
        reader.inputs[number] = value
        value.consumers.append((reader, number))


def _report_no_layer(
    edge: Element, name: str, other: Layer | None, graph: Graph, index: _Index, findings: Findings
) -> None:
    """Report that the layer which the attribute `name` names is missing; `other` is the one at the other end."""
    if not graph.unsure:
        where = f"this {graph.element.tag}" if graph.owner else "the model"
        number, help = edge.attributes[name], None
        if index.layers:
            low, high = min(index.layers), max(index.layers)
            lost = number.isdecimal() and len(number) < len(str(high)) + 1 and low < int(number) < high
            help = f"its ids go from {low} to {high}{', without it: was the layer deleted, or its id changed?' * lost}"
        message = f"there is no layer {number} in {where}"
        findings.add("E205", message, edge, name, graph=graph, layer=other, help=help)


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
        findings.lacking.add(layer)
        layer.broken |= not output
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
        if None in layer.input_edges and layer not in index.doubtful and layer not in index.crowded
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
