"""Fixes of what connects layers: ids, edges, and names that are there twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from irrun.check.fixes.place import Case
from irrun.diagnostics import Fix
from irrun.ir.graph import Graph, Layer, Port, Value
from irrun.ir.layers import UNKNOWN_ID
from irrun.ir.structure import addressed
from irrun.ir.text_edits import set_attribute as with_attribute
from irrun.ir.xml import Element
from irrun.spec.registry import registry

_WRITE = re.compile(r"write <(\w+)>")

MAX_LAYERS = 20_000
"""Of a graph in which lost ends of edges are searched."""


def layer_id(case: Case) -> Iterator[Fix]:
    """E201, E202: the id that edges name and no layer has; a free one for a layer that none names."""
    missing = _dangling(case.graph)
    if len(missing) == 1:
        yield case.set("id", str(missing.pop()))
    elif not missing:
        yield case.set("id", str(_free(case.graph)))


def doubled_layer_id(case: Case) -> Iterator[Fix]:
    """E203: of two layers with an id, that whose ports fit the edges of an id that nobody has gets this one."""
    alike = [layer for layer in case.graph.layers if layer.id == (case.layer.id if case.layer else UNKNOWN_ID)]
    missing = sorted(_dangling(case.graph))
    if len(alike) != 2 or len(missing) > 1:
        return
    id = missing[0] if missing else _free(case.graph)
    fitting = [
        layer for layer in alike if all(_fits(each, id if each is layer else each.id, case.graph) for each in alike)
    ]
    for layer in fitting:
        yield case.set("id", str(id), element=layer.element, safe=len(fitting) == 1)


def _fits(layer: Layer, id: int, graph: Graph) -> bool:
    """Whether the edges of an id are what a layer needs: one into each input, and out of outputs that it has."""
    outputs = {value.port.id for value in layer.outputs}
    arriving = sorted(_number(edge, "to-port") for edge in _edges(graph) if _number(edge, "to-layer") == id)
    leaving = {_number(edge, "from-port") for edge in _edges(graph) if _number(edge, "from-layer") == id}
    return arriving == sorted(port.id for port in layer.input_ports) and leaving <= outputs


def port_id(case: Case) -> Iterator[Fix]:
    """E201, E202, E204: the id that edges name and no port of the layer has; else its position."""
    layer = case.layer
    if layer is None:
        return
    ports = [*layer.input_ports, *(value.port for value in layer.outputs)]
    inputs, outputs = {port.id for port in layer.input_ports}, {value.port.id for value in layer.outputs}
    output = any(value.port.element is case.element for value in layer.outputs)
    side, known = ("from", outputs) if output else ("to", inputs)
    edges = [edge for edge in _edges(case.graph) if _number(edge, f"{side}-layer") == layer.id]
    missing = {_number(edge, f"{side}-port") for edge in edges} - known - {UNKNOWN_ID}
    position = next((number for number, port in enumerate(ports) if port.element is case.element), None)
    if len(missing) == 1:
        yield case.set("id", str(missing.pop()))
    elif not missing and position is not None and position not in inputs | outputs:
        yield case.set("id", str(position))


def edge_end(case: Case) -> Iterator[Fix]:
    """E201, E202, E205, E206: the end of an edge that alone is left for it."""
    names = [case.attribute] if case.attribute else ["from-layer", "from-port", "to-layer", "to-port"]
    lost = [name for name in names if case.attribute or name not in case.element.attributes]
    if len(lost) != 1 or len(case.graph.layers) > MAX_LAYERS:
        return
    found = list(_ended(case, lost[0] or ""))
    yield from found
    complete = not any(one is None for layer in case.graph.layers for one in layer.inputs)
    if not found and complete and not case.graph.unsure:
        yield case.fix("delete the edge, as every input has one", case.without(case.element))


def second_edge(case: Case) -> Iterator[Fix]:
    """E207: an edge that is there twice goes; one that goes into the same port as another one leads to the free one."""
    same = [edge for edge in _edges(case.graph) if edge.attributes == case.element.attributes]
    if len(same) > 1 and not any(number is None for number in (case.layer.input_edges if case.layer else ())):
        yield case.fix("delete the edge, which is there twice", case.without(case.element))
        return
    found = list(_ended(case, "to-port"))
    yield from found
    if not found:
        yield case.fix("delete this edge", case.without(case.element), safe=False)


def missing_edge(case: Case) -> Iterator[Fix]:
    """E208: an edge from the only output that nobody reads and that can be meant."""
    layer, edges = case.layer, case.graph.element.find("edges")
    ports = layer.input_ports if layer else []
    number = next((number for number, port in enumerate(ports) if port.element is case.element), None)
    if layer is None or number is None or edges is None or len(case.graph.layers) > MAX_LAYERS:
        return
    port = layer.input_ports[number]
    open = [one for each in case.graph.layers for one in each.inputs if one is None]
    found = _sources(layer, port, case.graph)
    for value in found:
        text = (
            f'<edge from-layer="{value.layer.id}" from-port="{value.port.id}" '
            f'to-layer="{layer.id}" to-port="{port.id}" />'
        )
        safe = len(found) == 1 and len(open) == 1
        yield case.fix(f"add an edge from layer {value.layer}", case.last_in(edges, text), safe=safe)


def _ended(case: Case, name: str) -> Iterator[Fix]:
    ids = Counter(layer.id for layer in case.graph.layers)
    layers = {layer.id: layer for layer in case.graph.layers if ids[layer.id] == 1}
    producer, reader = (layers.get(_number(case.element, end)) for end in ("from-layer", "to-layer"))
    from_port, to_port = (_number(case.element, end) for end in ("from-port", "to-port"))
    found: set[int] = set()
    if name in ("from-layer", "from-port") and reader is not None:
        target = next((port for port in reader.input_ports if port.id == to_port), None)
        homes = [producer] if name == "from-port" else case.graph.layers
        values = _sources(reader, target, case.graph, [layer for layer in homes if layer is not None])
        found = {
            value.layer.id if name == "from-layer" else value.port.id
            for value in values
            if name == "from-port" or value.port.id == from_port
        }
    elif name in ("to-layer", "to-port"):
        value = next((one for one in producer.outputs if one.port.id == from_port), None) if producer else None
        homes = [reader] if name == "to-port" else case.graph.layers
        open = [
            (layer, port)
            for layer in homes
            if layer is not None
            for port, one in zip(layer.input_ports, layer.inputs, strict=True)
            if one is None and (name == "to-port" or port.id == to_port) and layer is not producer
        ]
        if len(open) > 1 and value is not None:
            open = [pair for pair in open if _alike(pair[1], value.port)]
        found = {layer.id if name == "to-layer" else port.id for layer, port in open}
    for id in sorted(found)[:4]:
        yield case.set(name, str(id), safe=len(found) == 1)


def _sources(reader: Layer, port: Port | None, graph: Graph, homes: Iterable[Layer] | None = None) -> list[Value]:
    """The values that an input can be meant to read: of its type and shape, not made of the reader; unread ones first.

    Where unread ones are among them, only these.
    """
    behind = _behind(reader)
    listed = graph.layers if homes is None else homes
    values = [value for layer in listed if layer not in behind for value in layer.outputs]
    alike = [value for value in values if port is None or _alike(port, value.port)] or values
    return [value for value in alike if not value.consumers] or alike


def _alike(one: Port, other: Port) -> bool:
    return one.dims == other.dims and (one.precision in (None, other.precision))


def _behind(layer: Layer) -> set[Layer]:
    seen, stack = {layer}, [layer]
    while stack:
        for value in stack.pop().outputs:
            for reader, _ in value.consumers:
                if reader not in seen:
                    seen.add(reader)
                    stack.append(reader)
    return seen


def _edges(graph: Graph) -> list[Element]:
    edges = graph.element.find("edges")
    return edges.findall("edge") if edges else []


def _number(element: Element, name: str) -> int:
    text = element.attributes.get(name, "")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else UNKNOWN_ID


def _named(graph: Graph) -> set[int]:
    """The ids of layers that edges and port maps name."""
    ends = {_number(edge, name) for edge in _edges(graph) for name in ("from-layer", "to-layer")}
    if graph.owner is not None:
        tag = graph.element.tag
        for map in graph.owner.element.findall(tag.replace("body", "port_map")):
            ends |= {_number(entry, "internal_layer_id") for entry in map.children}
        for edges in graph.owner.element.findall("back_edges") if tag == "body" else ():
            ends |= {_number(edge, name) for edge in edges.children for name in ("from-layer", "to-layer")}
    return ends - {UNKNOWN_ID}


def _dangling(graph: Graph) -> set[int]:
    return _named(graph) - {layer.id for layer in graph.layers}


def _free(graph: Graph) -> int:
    return 1 + max([layer.id for layer in graph.layers] + list(_named(graph)), default=-1)


def doubled_name(case: Case) -> Iterator[Fix]:
    """W903: the second layer gets a name of its own."""
    if case.layer is not None:
        names = {layer.name for layer in case.graph.layers}
        yield case.set("name", _unused(case.layer.name, names))


def doubled_tensor_name(case: Case) -> Iterator[Fix]:
    """W906: the tensor that OpenVINO renames is named as it does it."""
    there = [value for layer in case.graph.layers for value in layer.outputs]
    value = next((value for value in there if value.port.element is case.element), None)
    if value is None:
        return
    if addressed(value, case.graph):  # which keeps its names before one that is not
        same = (other for other in there if not set(value.port.names).isdisjoint(other.port.names))
        value = next((other for other in same if not addressed(other, case.graph)), value)
    given = {name for other in there if other is not value for name in other.port.names}
    names = [_unused(name, given) if name in given else name for name in value.port.names]
    listed = ",".join(name.replace(",", "\\,") for name in names)
    yield case.set("names", listed, element=value.port.element)


def _unused(name: str, taken: set[str]) -> str:
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def unreachable_layer(case: Case) -> Iterator[Fix]:
    """W904: the layer goes, with its edges. What only feeds it is unreachable then, and goes next."""
    layer = case.layer
    if layer is None or layer.id == UNKNOWN_ID or any(value.consumers for value in layer.outputs):
        return
    edges = [edge for edge in layer.input_edges if edge is not None]
    removed = [case.without(element) for element in (layer.element, *edges)]
    yield case.fix("delete the layer, which has no effect", *removed, safe=False)


def unread_element(case: Case) -> Iterator[Fix]:
    """W907: nothing reads it, so it can go; where it holds something, somebody may have meant it."""
    plain = not case.element.attributes and not case.element.children
    yield case.fix(f"delete <{case.element.tag}>, which nothing reads", case.without(case.element), safe=plain)


def misspelt_element(case: Case) -> Iterator[Fix]:
    """E220: the tag as it is read; what stands in a second element is for people to move."""
    right = _WRITE.match(case.diagnostic.help or "")
    if right is not None:
        yield case.fix(right[0], *case.respelled(case.element, right[1]))


def layer_attribute(case: Case) -> Iterator[Fix]:
    """E201: a name that nobody has, or the operation set, where an op is in one version only."""
    layer, given = case.layer, case.element.attributes
    lost = [name for name in ("id", "name", "type", "version") if name not in given]
    if layer is None or len(lost) != 1:
        return
    if lost == ["name"]:
        name = f"{layer.type}_{given['id']}"
        names = {other.name for other in case.graph.layers}
        yield case.set("name", _unused(name, names) if name in names else name)
    elif lost == ["version"]:
        versions = registry().versions(layer.type)
        for op in reversed(versions):
            yield case.set("version", f"opset{min(registry().opsets(op))}", safe=len(versions) == 1)


def misspelt_part(case: Case) -> Iterator[Fix]:
    """E111, E112: the tag of the element that holds the layers or the edges."""
    right = "layers" if case.diagnostic.code == "E111" else "edges"
    parts = [child for child in case.graph.element.children if child.tag not in ("layers", "edges", "rt_info")]
    found = [part for part in parts if part.find(right[:-1]) is not None]
    if len(found) == 1:
        yield case.fix(f"write <{right}>", *case.respelled(found[0], right))


def missing_version(case: Case) -> Iterator[Fix]:
    """E109: the version of the format, where there is none."""
    if "version" not in case.element.attributes:
        yield case.fix('write version="11"', with_attribute(case.element, "version", "11"))
