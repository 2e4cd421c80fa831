"""From a model to the text of its .xml, as OpenVINO writes it. What the graph does not know is taken from the elements
that it was read from: attributes, elements and comments that mean nothing to irrun stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from irrun.ir.bodies import MAP_OF, UNCONNECTED
from irrun.ir.graph import BackEdge, Graph, Layer, LayerBody, Model, Port, PortMap
from irrun.ir.layers import names_text, tensor_names
from irrun.ir.lines import NO_FILE
from irrun.ir.markup import Markup, Unwritable
from irrun.ir.xml import Element
from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES, PRECISIONS

_ORDER = ("data", "rt_info", *MAP_OF.values(), "back_edges", "input", "output", *MAP_OF)
"""Of the elements in a layer, where OpenVINO writes it."""

_ENDS = ("from-layer", "from-port", "to-layer", "to-port")
_SLICES = {"start": 0, "end": -1, "stride": 1, "part_size": 1}

# pugixml has a blank before the end of an empty element, two digits for a tab, and > as it is
_DETAIL = re.compile(rb"<!--.*?-->|<\?.*?\?>|]]&gt;|/>|&#9;|&gt;", re.DOTALL)


def xml_text(model: Model, offsets: Mapping[Layer, int]) -> bytes:
    """The .xml of a model; `offsets` are where its Consts lie now, those left out where they lay.

    Raises ValueError, naming the layer, where something cannot be written: an input that nothing leads to, an id that
    is there twice, a character that XML does not have.
    """
    from lxml import etree

    root = _Document(Markup(etree), offsets).root(model)
    etree.indent(root, space="\t")
    text = etree.tostring(root.getroottree(), encoding="utf-8", xml_declaration=False)
    return b'<?xml version="1.0"?>\n' + _DETAIL.sub(_as_pugixml, text) + b"\n"


def _as_pugixml(match: re.Match[bytes]) -> bytes:
    return {b"/>": b" />", b"&#9;": b"&#09;", b"&gt;": b">"}.get(match[0], match[0])


@dataclass(slots=True)
class _Document:
    """The tree that is made, and where Consts lie in it."""

    markup: Markup
    offsets: Mapping[Layer, int]

    def root(self, model: Model) -> Any:
        element = model.graph.element
        named = {"name": model.name} if model.name or "name" in element.attributes else {}
        root = self.markup.make(None, element, element.tag, {**named, "version": str(model.version)})
        self._fill(root, model.graph)
        return root

    def _fill(self, node: Any, graph: Graph) -> None:
        """The layers, the edges and the rest of a graph, in the element that is its own."""
        _check_ids(graph)
        parts: dict[str, Callable[[Element], object]] = {
            "layers": lambda element: self._layers(node, element, graph),
            "edges": lambda element: self._edges(node, element, graph),
            "rt_info": lambda _: self.markup.copy(node, graph.rt_info) if graph.rt_info else None,
        }
        needed = {"layers", "edges", "rt_info"} if graph.rt_info else {"layers", "edges"}
        self._parts(graph.element, node, parts, tuple(parts), needed)

    def _parts(
        self,
        element: Element,
        node: Any,
        parts: Mapping[str, Callable[[Element], object]],
        order: Sequence[str],
        needed: set[str],
    ) -> None:
        """The children of an element where they stood: the first of each tag in `parts` is made, others are copied.

        Those that are `needed` and not there come where the `order` has them.
        """
        missing = [tag for tag in order if tag in needed and element.find(tag) is None]
        done: set[str] = set()
        for child in element.children:
            while missing and child.tag in parts and order.index(missing[0]) < order.index(child.tag):
                parts[missing[0]](Element(missing.pop(0), {}))
            if child.tag not in parts or child.tag in done:
                self.markup.copy(node, child)
            else:
                parts[child.tag](child)
            done.add(child.tag)
        for tag in missing:
            parts[tag](Element(tag, {}))
        self.markup.close(node, element)

    def _layers(self, node: Any, element: Element, graph: Graph) -> None:
        made = self.markup.make(node, element)
        for layer in graph.layers:
            try:
                self._layer(made, layer)
            except Unwritable as error:
                raise ValueError(f"layer {layer} cannot be written: {error}") from None
        for child in element.children:
            if child.tag != "layer":
                self.markup.copy(made, child)
        self.markup.close(made, element)

    def _layer(self, node: Any, layer: Layer) -> None:
        type = layer.element.attributes.get("type", "")
        type = type if type.lower() == layer.type.lower() else layer.type
        known = {"id": str(layer.id), "name": layer.name, "type": type, "version": layer.version}
        data = layer.attributes
        if layer.type == "Result" and "output_names" in data and not _holds(layer.data, "output_names"):
            known["output_names"] = data["output_names"]
            data = {name: text for name, text in data.items() if name != "output_names"}
        dropped = set() if "output_names" in known else {"output_names"} if layer.type == "Result" else set()
        made = self.markup.make(node, layer.element, layer.element.tag, known, dropped)
        if layer in self.offsets:
            data = {**data, "offset": str(self.offsets[layer])}
        parts: dict[str, Callable[[Element], object]] = {
            "data": lambda _: self._data(made, layer, data),
            "rt_info": lambda _: self.markup.copy(made, layer.rt_info) if layer.rt_info else None,
            "input": lambda element: self._ports(made, element, layer.input_ports),
            "output": lambda element: self._ports(made, element, [value.port for value in layer.outputs]),
        }
        needed = {tag for tag, there in (("data", data), ("rt_info", layer.rt_info)) if there}
        needed |= {tag for tag, ports in (("input", layer.input_ports), ("output", layer.outputs)) if ports}
        for tag, body in layer.bodies.items():
            parts[MAP_OF[tag]] = self._map_of(made, layer, body)
            parts[tag] = self._body_of(made, body)
            needed |= {tag, MAP_OF[tag]}
            if tag == "body":
                parts["back_edges"] = self._back_edges_of(made, body.back_edges)
                needed |= {"back_edges"} if body.back_edges else set()
        self._parts(layer.element, made, parts, _ORDER, needed)

    def _data(self, node: Any, layer: Layer, attributes: Mapping[str, str]) -> None:
        if layer.data is None and not attributes:
            return
        element = layer.data or Element("data", {})
        made = self.markup.make(node, element, "data", attributes, element.attributes.keys() - attributes.keys())
        for child in element.children:
            self.markup.copy(made, child)
        self.markup.close(made, element)

    def _ports(self, node: Any, element: Element, ports: Sequence[Port]) -> None:
        if not ports and (element.source is NO_FILE or element.find("port")):
            return
        if len({port.id for port in ports}) < len(ports):
            raise Unwritable(f"two ports of its <{element.tag}> have the same id")
        made = self.markup.make(node, element)
        for port in ports:
            self._port(made, port)
        for child in element.children:
            if child.tag != "port":
                self.markup.copy(made, child)
        self.markup.close(made, element)

    def _port(self, node: Any, port: Port) -> None:
        given = port.element.attributes
        known = {"id": str(port.id)}
        dropped = set()
        if PRECISIONS.get(given.get("precision", "").lower()) != port.precision:
            if port.precision is None:
                dropped.add("precision")
            else:
                known["precision"] = ELEMENT_TYPES[port.precision].precision
        if tensor_names(given.get("names", "")) != port.names:
            if port.names:
                known["names"] = names_text(port.names)
            else:
                dropped.add("names")
        made = self.markup.make(node, port.element, "port", known, dropped)
        for size in port.dims:
            self.markup.etree.SubElement(made, "dim").text = str(size)
        for child in port.element.children:
            self.markup.copy(made, child)
        self.markup.close(made, port.element)

    def _edges(self, node: Any, element: Element, graph: Graph) -> None:
        made = self.markup.make(node, element)
        for edge, ends in _edges(graph):
            if edge.deferred:  # it has these attributes alone, so it need not be parsed
                edge = Element("edge", {}, edge.source, edge.offset)
            self.markup.make(made, edge, "edge", dict(zip(_ENDS, map(str, ends), strict=True)))
        for child in element.children:
            if child.tag != "edge":
                self.markup.copy(made, child)
        self.markup.close(made, element)

    def _map_of(self, node: Any, layer: Layer, body: LayerBody) -> Callable[[Element], None]:
        entries = {id(entry.element): ("input", entry) for entry in body.inputs}
        entries |= {id(entry.element): ("output", entry) for entry in body.outputs}

        def make(element: Element) -> None:
            made = self.markup.make(node, element)
            left = dict(entries)
            for child in element.children:
                if child.tag not in ("input", "output"):
                    self.markup.copy(made, child)
                elif id(child) in left:
                    self._entry(made, layer, body, *left.pop(id(child)))
            for tag, entry in left.values():
                self._entry(made, layer, body, tag, entry)
            self.markup.close(made, element)

        return make

    def _entry(self, node: Any, layer: Layer, body: LayerBody, tag: str, entry: PortMap) -> None:
        if entry.internal.graph is not body.graph or entry.internal not in body.graph.layers:
            raise Unwritable(f"an <{tag}> of its port map leads to layer {entry.internal}, which is not in the body")
        given = entry.element.attributes
        external = entry.external if tag == "input" else _output_id(layer, entry.external)
        sliced = {} if entry.axis is None else {"axis": entry.axis}
        known = {**sliced, "external_port_id": external, "internal_layer_id": entry.internal.id}
        for name, default in _SLICES.items():
            value = getattr(entry, name)
            if name in given or value != default or (entry.axis is not None and entry.element.source is NO_FILE):
                known[name] = value
        texts = {name: str(value) for name, value in known.items()}
        if entry.purpose or "purpose" in given:
            texts["purpose"] = entry.purpose
        self.markup.copy(node, entry.element, tag, texts, {"axis"} if entry.axis is None else set())

    def _back_edges_of(self, node: Any, edges: Sequence[BackEdge]) -> Callable[[Element], None]:
        def make(element: Element) -> None:
            made = self.markup.make(node, element)
            for edge in edges:
                ends = {"from-layer": str(edge.result.id), "to-layer": str(edge.parameter.id)}
                self.markup.copy(made, edge.element, "edge", ends)
            for child in element.children:
                if child.tag != "edge":
                    self.markup.copy(made, child)
            self.markup.close(made, element)

        return make

    def _body_of(self, node: Any, body: LayerBody) -> Callable[[Element], None]:
        def make(element: Element) -> None:
            self._fill(self.markup.make(node, element), body.graph)

        return make


def _holds(element: Element | None, name: str) -> bool:
    return element is not None and name in element.attributes


def _output_id(layer: Layer, number: int) -> int:
    """What an `external_port_id` says of an output: the id of its port, where these ascend as the outputs do."""
    if number == UNCONNECTED:
        return number
    ids = [value.port.id for value in layer.outputs]
    return ids[number] if ids == sorted(ids) else len(layer.inputs) + number


def _check_ids(graph: Graph) -> None:
    """Raises ValueError where a layer has no id of its own, or an input that no layer of the graph is read by."""
    layers: dict[int, Layer] = {}
    for layer in graph.layers:
        if not 0 <= layer.id < 2**63:
            raise ValueError(f"layer {layer} cannot be written: its id is none")
        if layer.id in layers:
            raise ValueError(f"layer {layer} cannot be written: its id is that of layer {layers[layer.id]}, too")
        layers[layer.id] = layer
    for layer in graph.layers:
        for number, value in enumerate(layer.inputs):
            if value is None:
                raise ValueError(f"layer {layer} cannot be written: nothing is connected to its input {number}")
            if layers.get(value.layer.id) is not value.layer or value not in value.layer.outputs:
                source = f"output {value.index} of layer {value.layer}"
                raise ValueError(f"layer {layer} cannot be written: its input {number} is {source}, which is not here")


def _edges(graph: Graph) -> Iterator[tuple[Element, tuple[int, int, int, int]]]:
    """The edges of a graph with the ids of both ends: those that were read in their order, then made ones."""
    read: list[tuple[Element, tuple[int, int, int, int]]] = []
    made: list[tuple[Element, tuple[int, int, int, int]]] = []
    for layer in graph.layers:
        for number, value in enumerate(layer.inputs):
            assert value is not None
            edge = layer.input_edges[number]
            ends = (value.layer.id, value.port.id, layer.id, layer.input_ports[number].id)
            if edge is None or edge.source is NO_FILE:
                made.append((edge or Element("edge", {}), ends))
            else:
                read.append((edge, ends))
    yield from sorted(read, key=lambda pair: pair[0].offset)
    yield from sorted(made, key=lambda pair: pair[1])
