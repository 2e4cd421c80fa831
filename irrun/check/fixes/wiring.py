"""Fixes of what connects layers: ids, edges, and names that are there twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from irrun.check.fixes.place import Case
from irrun.diagnostics import Fix
from irrun.ir.edges import DELETE, RENUMBER, TURN
from irrun.ir.graph import Graph, Layer, Port, Value, leading_to
from irrun.ir.layers import UNKNOWN_ID, names_text, tensor_names
from irrun.ir.shifts import find_shift
from irrun.ir.structure import addressed
from irrun.ir.text_edits import Edit
from irrun.ir.text_edits import set_attribute as with_attribute
from irrun.ir.unread import DELETE_TEXT, texts
from irrun.ir.xml import Element
from irrun.spec.registry import registry

_WRITE = re.compile(r"write <(\w+)>")

_LAYERS = ("from-layer", "to-layer")
_ENDS = ("from-layer", "from-port", "to-layer", "to-port")
_PORT_AND_LAYER = {name: (f"{side}-port", f"{side}-layer") for name in _ENDS for side in [name.split("-")[0]]}
"""The ends of an edge of which one or the other is at fault where a layer has no such port."""

MAX_FREE = 20
"""Layers that no edge names among which that is searched which edges name by another id."""

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


def _fits(layer: Layer, id: int, graph: Graph, *, declared: bool = False) -> bool:
    """Whether the edges of an id are what a layer needs: one into each input, and out of outputs that it has.

    What is `declared` of both ends of these edges has to be the same, too, where that is asked.
    """
    outputs = {value.port.id: value.port for value in layer.outputs}
    arriving = [edge for edge in _edges(graph) if _number(edge, "to-layer") == id]
    leaving = [edge for edge in _edges(graph) if _number(edge, "from-layer") == id]
    if sorted(_number(edge, "to-port") for edge in arriving) != sorted(port.id for port in layer.input_ports):
        return False
    if not {_number(edge, "from-port") for edge in leaving} <= outputs.keys():
        return False
    if not declared:
        return True
    layers = {each.id: each for each in graph.layers}
    inputs = {port.id: port for port in layer.input_ports}
    given = [(inputs[_number(edge, "to-port")], _value(edge, layers)) for edge in arriving]
    readers = [(layers.get(_number(edge, "to-layer")), edge) for edge in leaving]
    read = [
        (port, outputs[_number(edge, "from-port")])
        for reader, edge in readers
        for port in (reader.input_ports if reader else ())
        if port.id == _number(edge, "to-port")
    ]
    return (
        len(read) == len(leaving)
        and all(value is not None and _alike(port, value.port) for port, value in given)
        and all(_alike(port, output) for port, output in read)
    )


def shifted_ids(case: Case) -> Iterator[Fix]:
    """E226: the layers get the ids that edges have for them; in a body entries of port maps have them, too."""
    shift = find_shift(case.graph.layers, _edges(case.graph))
    if shift is None:
        return
    ids = {layer: layer.id - shift.by for layer in shift.layers}
    taken, free = set(ids.values()), _free(case.graph)
    for layer in case.graph.layers:
        if layer not in ids and layer.id in taken:  # it was inserted
            ids[layer], free = free, free + 1
    edits = [with_attribute(layer.element, "id", str(id)) for layer, id in ids.items()]
    there = {ids.get(layer, layer.id) for layer in case.graph.layers}
    title = f"give {len(ids)} layers the ids that edges have, or free ones"
    yield case.fix(title, *edits, safe=shift.all and _named(case.graph) <= there)


def port_id(case: Case) -> Iterator[Fix]:
    """E201, E202, E204: the id that edges name and no port of the layer has; else its position.

    Of two ports with one id it is safe where that is the position: the order of the ports is that of the operands. One
    that is there twice, as edges name no other, goes.
    """
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
        id = missing.pop()
        yield case.set("id", str(id), safe=case.diagnostic.code != "E204" or id == position)
    elif case.diagnostic.code == "E204" and _is_there_twice(case.element, ports):
        yield case.fix("delete the port, which is there twice", case.without(case.element))
    elif not missing and position is not None and position not in inputs | outputs:
        yield case.set("id", str(position))


def _is_there_twice(element: Element, ports: Iterable[Port]) -> bool:
    """Whether another port of the layer is the same, with the same sizes."""
    same = [port for port in ports if port.element.attributes == element.attributes]
    return len(same) > 1 and len({port.dims for port in same}) == 1


def edge_end(case: Case) -> Iterator[Fix]:
    """E201, E202, E205, E206: the end of an edge that alone is left for it, or both where it is the wrong way round.

    A layer that is not there is not misspelt where several edges name it, or where ids are skipped: then it was
    deleted, or it has another id.
    """
    if (case.diagnostic.remedy or "").startswith(RENUMBER) and case.layer is not None:
        yield _renumbered(case, case.layer)
    if case.element.tag != "edge":  # but a layer of a wrong type
        return
    if case.diagnostic.remedy == DELETE:
        yield case.fix("delete the edge", case.without(case.element))
        return
    if case.diagnostic.remedy == TURN:
        yield _turned(case)
        return
    names = [case.attribute] if case.attribute else list(_ENDS)
    lost = [name for name in names if case.attribute or name not in case.element.attributes]
    if len(lost) != 1 or len(case.graph.layers) > MAX_LAYERS:
        return
    name = lost[0] or ""
    code = case.diagnostic.code
    if code == "E205":
        id = _number(case.element, name)
        if case.found(_counted)[id] > 1:
            yield from _other_id(case, id)
            return
    ends = [layer for layer in case.graph.results if code == "E206" and layer.id == _number(case.element, "from-layer")]
    if len(ends) == 1 and name == "from-layer":
        yield from _before_result(case, ends[0])
        return
    tried = _PORT_AND_LAYER[name] if code == "E206" else (name,)
    yield from _ended(case, tried, certain=code != "E205" or not case.found(_skips))


def _renumbered(case: Case, layer: Layer) -> Fix:
    """The ports of a layer get the ids that edges have for them."""
    ids = (case.diagnostic.remedy or "").split()[1:]
    ports = [*layer.input_ports, *(value.port for value in layer.outputs)]
    edits = [with_attribute(port.element, "id", id) for port, id in zip(ports, ids, strict=True)]
    return case.fix("give the ports the ids that edges have", *edits)


def _turned(case: Case) -> Fix:
    """The edge from an input to an output is turned round."""
    given = case.element.attributes
    turned = {name: given[other] for name, other in zip(_ENDS, (*_ENDS[2:], *_ENDS[:2]), strict=True)}
    edits = [with_attribute(case.element, name, value) for name, value in turned.items() if value != given[name]]
    return case.fix("turn the edge round", *edits)


def _before_result(case: Case, result: Layer) -> Iterator[Fix]:
    """The edge from a Result, which gives nothing, begins at what that hands out; its type may be wrong as well."""
    value = result.inputs[0] if len(result.inputs) == 1 else None
    if value is not None:
        edits = _begun_at(case.element, value)
        yield case.fix(f"let the edge begin at layer {value.layer}", *edits, safe=False)


def _other_id(case: Case, id: int) -> Iterator[Fix]:
    """The id that several edges name for the only layer that none names and whose ports these edges fit."""
    named = case.found(_named)
    free = [layer for layer in case.graph.layers if layer.id not in named and (layer.inputs or layer.outputs)]
    fitting = [layer for layer in free[:MAX_FREE] if _fits(layer, id, case.graph, declared=True)]
    if len(fitting) == 1 and len(free) <= MAX_FREE:
        yield case.set("id", str(id), element=fitting[0].element)


def other_edges(case: Case, edges: Sequence[tuple[Element, Value]]) -> Iterator[Fix]:
    """W931, W932: edges begin at values that are as the ports declare to which they lead."""
    edits = [edit for edge, value in edges for edit in _begun_at(edge, value)]
    if edits:
        title = "exchange the edges" if len(edges) > 1 else f"let the edge begin at layer {edges[0][1].layer}"
        yield case.fix(title, *edits, safe=False)


def second_edge(case: Case) -> Iterator[Fix]:
    """E207: an edge that is there twice goes; one that goes into the same port as another one leads to the free one."""
    same = [edge for edge in _edges(case.graph) if edge.attributes == case.element.attributes]
    if len(same) > 1 and not case.found(_open):
        yield case.fix("delete the edge, which is there twice", case.without(case.element))
        return
    yield from _ended(case, _PORT_AND_LAYER["to-port"])


def missing_edge(case: Case) -> Iterator[Fix]:
    """E208: an edge from the only layer that nobody reads and that can be meant.

    Where ids are skipped a layer may be lost with its edges, which another one does not stand for.
    """
    layer, edges = case.layer, case.graph.element.find("edges")
    port = next((port for port in layer.input_ports if port.element is case.element), None) if layer else None
    if layer is None or port is None or edges is None or len(case.graph.layers) > MAX_LAYERS:
        return
    found, certain = _sources(layer, port, case.graph.layers)
    certain = certain and len(case.found(_open)) == 1 and not case.found(_strays) and not case.found(_skips)
    for value in found[:4]:
        text = (
            f'<edge from-layer="{value.layer.id}" from-port="{value.port.id}" '
            f'to-layer="{layer.id}" to-port="{port.id}" />'
        )
        yield case.fix(f"add an edge from layer {value.layer}", case.last_in(edges, text), safe=certain)


def _ended(case: Case, names: Iterable[str], *, certain: bool = True) -> Iterator[Fix]:
    """The edge with another number at one of the ends `names`; safe where there is only one such change."""
    layers = case.found(_by_id)
    found: list[tuple[str, int]] = []
    for name in names:
        if name.startswith("from"):
            ends, sure = _beginnings(case, name, layers)
        else:
            ends, sure = _endings(case, name, layers)
        found += [(name, id) for id in ends]
        certain = certain and (sure or not ends)
    for name, id in found[:4]:
        yield case.set(name, str(id), safe=certain and len(found) == 1)
    if not found:
        yield case.fix("delete the edge", case.without(case.element), safe=False)


def _beginnings(case: Case, name: str, layers: dict[int, Layer]) -> tuple[list[int], bool]:
    """What an edge can have as the end `name`, where it begins, and whether that is certain where it is one.

    Where a port is not there (E206) it may be lost: then nobody lacks this reader.
    """
    reader, target = layers.get(_number(case.element, "to-layer")), _target(case.element, layers)
    if reader is None or target is None:
        return [], False
    if name == "from-port":
        producer = layers.get(_number(case.element, "from-layer"))
        values, _ = _sources(reader, target, [producer] if producer else [])
        certain = case.diagnostic.code != "E206" or not any(value.consumers for value in values)
        return [value.port.id for value in values], certain
    from_port = _number(case.element, "from-port")
    values, certain = _sources(reader, target, case.graph.layers, from_port)
    certain |= case.diagnostic.code == "E206" and not any(value.consumers for value in values)
    return [value.layer.id for value in values], certain


def _endings(case: Case, name: str, layers: dict[int, Layer]) -> tuple[list[int], bool]:
    """What an edge can have as the end `name`, where it arrives, and whether that is certain where it is one."""
    reader, to_port = layers.get(_number(case.element, "to-layer")), _number(case.element, "to-port")
    value = _value(case.element, layers)
    if value is None:
        return [], False
    made_of = leading_to([value.layer])
    found = [
        (layer, port)
        for layer, port in case.found(_open)
        if layer not in made_of
        and _alike(port, value.port)
        and (layer is reader if name == "to-port" else layer is not reader and port.id == to_port)
    ]
    certain = len(case.found(_strays)) == 1
    if case.diagnostic.code == "E207" and reader is not None and len(found) == 1:
        # where both edges can be meant for both ports, nobody knows which of them is meant for which
        there = [
            edge
            for edge in _edges(case.graph)
            if _number(edge, "to-layer") == reader.id and _number(edge, "to-port") == to_port
        ]
        taken = _target(case.element, layers)
        others = [_value(edge, layers) for edge in there if edge is not case.element]
        exchanged = taken is not None and _alike(taken, value.port)
        certain &= not (exchanged and any(other is None or _alike(found[0][1], other.port) for other in others))
    return [layer.id if name == "to-layer" else port.id for layer, port in found], certain


def _begun_at(edge: Element, value: Value) -> list[Edit]:
    """What has an edge begin at a value."""
    ends = (("from-layer", value.layer.id), ("from-port", value.port.id))
    return [with_attribute(edge, name, str(id)) for name, id in ends if _number(edge, name) != id]


def _target(edge: Element, layers: dict[int, Layer]) -> Port | None:
    """The input at which an edge arrives."""
    reader, number = layers.get(_number(edge, "to-layer")), _number(edge, "to-port")
    return next((port for port in reader.input_ports if port.id == number), None) if reader else None


def _value(edge: Element, layers: dict[int, Layer]) -> Value | None:
    """The value at which an edge begins."""
    producer, number = layers.get(_number(edge, "from-layer")), _number(edge, "from-port")
    return next((value for value in producer.outputs if value.port.id == number), None) if producer else None


def _by_id(graph: Graph) -> dict[int, Layer]:
    """The layers whose ids no others have."""
    ids = Counter(layer.id for layer in graph.layers)
    return {layer.id: layer for layer in graph.layers if ids[layer.id] == 1}


def _counted(graph: Graph) -> Counter[int]:
    """How many ends of edges name a layer of an id."""
    return Counter(_number(edge, end) for edge in _edges(graph) for end in _LAYERS)


def _open(graph: Graph) -> list[tuple[Layer, Port]]:
    """The inputs to which no edge leads."""
    return [
        (layer, port)
        for layer in graph.layers
        for port, edge in zip(layer.input_ports, layer.input_edges, strict=True)
        if edge is None
    ]


def _strays(graph: Graph) -> list[Element]:
    """The edges that reach no input, or one that has another edge."""
    arrived = {edge for layer in graph.layers for edge in layer.input_edges if edge is not None}
    return [edge for edge in _edges(graph) if edge not in arrived]


def _skips(graph: Graph) -> bool:
    """Whether layers have not all ids from 0 on, so that one of these may be that of a lost layer."""
    ids = {layer.id for layer in graph.layers}
    return max(ids, default=0) >= len(ids)


def _sources(reader: Layer, port: Port, homes: Iterable[Layer], number: int | None = None) -> tuple[list[Value], bool]:
    """The values, at ports of that `number`, that an input can be meant to read, and whether there is only one.

    They are of its type and shape, not made of the reader, and no state that an Assign hands on. One of a layer that
    nobody reads is certain to lack this reader; constants and inputs that nobody reads are there in valid models, too.
    """
    behind = _behind(reader)
    values = [
        value
        for layer in homes
        if layer not in behind and layer.type not in ("Assign", "Result")
        for value in layer.outputs
        if number in (None, value.port.id) and _alike(port, value.port)
    ]
    unread = [value for value in values if not any(other.consumers for other in value.layer.outputs)]
    made = [value for value in unread if value.layer.type not in ("Const", "Parameter")]
    return unread or values, len(unread) == 1 and (bool(made) or len(values) == 1)


def _alike(one: Port, other: Port) -> bool:
    """Whether an input may be meant to read a value, by what their ports declare, if that of the input declares any."""
    return (one.precision is None and not one.dims) or one.declares_as(other)


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
        yield case.set("name", _unused(case.layer.name, names), safe=not _is_public(case.layer))


def _is_public(layer: Layer) -> bool:
    """Whether programs may ask for an input or output of the model by the name of a layer."""
    return layer.type == "Result" or any(addressed(value, layer.graph) for value in layer.outputs)


def doubled_tensor_name(case: Case) -> Iterator[Fix]:
    """W906: the tensor that OpenVINO renames is named as it does it, and a second output in the same way.

    Programs ask for inputs and outputs by their names.
    """
    if case.layer is not None and case.layer.type == "Result":
        others = [layer for layer in case.graph.results if layer.inputs != case.layer.inputs]
        given = {name for layer in others for name in _output_names(layer)}
        names = [_unused(name, given) if name in given else name for name in _output_names(case.layer)]
        yield case.set("output_names", names_text(names), safe=False)
        return
    there = [value for layer in case.graph.layers for value in layer.outputs]
    value = next((value for value in there if value.port.element is case.element), None)
    if value is None:
        return
    if addressed(value, case.graph):  # which keeps its names before one that is not
        same = (other for other in there if not set(value.port.names).isdisjoint(other.port.names))
        value = next((other for other in same if not addressed(other, case.graph)), value)
    given = {name for other in there if other is not value for name in other.port.names}
    names = [_unused(name, given) if name in given else name for name in value.port.names]
    yield case.set("names", names_text(names), element=value.port.element, safe=not addressed(value, case.graph))


def _output_names(layer: Layer) -> tuple[str, ...]:
    return tensor_names(layer.attributes.get("output_names", ""))


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
    if case.diagnostic.remedy == DELETE_TEXT:
        source = case.text.source
        places = ((start, source.data.find(b"<", start)) for start, _ in texts(source.data))
        deleted = [Edit(start, start + len(source.data[start:end].rstrip()), "") for start, end in places]
        yield case.fix("delete the text", *deleted, safe=False)
        return
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
