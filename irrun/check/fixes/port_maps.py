"""Fixes of port maps and back edges: entries that are there twice, lead nowhere, or are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irrun.check.fixes.place import Case
from irrun.diagnostics import Fix
from irrun.ir.bodies import MAP_OF
from irrun.ir.graph import Layer, LayerBody, Port
from irrun.ir.text_edits import set_attribute as with_attribute
from irrun.ir.xml import Element
from irrun.spec.registry import registry


def mapped_end(case: Case) -> Iterator[Fix]:
    """E201, E202, E213, E215: the end of an entry that alone is left for it."""
    found = _body(case)
    if found is None:
        return
    layer, tag, body = found
    names = [case.attribute] if case.attribute else list(_ends(case.element))
    lost = [name or "" for name in names if case.attribute or name not in case.element.attributes]
    if len(lost) != 1 or lost[0] not in _ends(case.element):
        return
    left = _left(case, layer, tag, body, lost[0])
    certain = len(left) == 1 and _Map(layer, body, case.element).fits(case.element, lost[0], left[0])
    for id in left[:4]:
        yield case.set(lost[0], str(id), safe=certain)


def doubled_entry(case: Case) -> Iterator[Fix]:
    """E214, E215: an entry that is there twice goes; one with an end that is taken gets the one that is left."""
    found = _body(case)
    if found is None:
        return
    layer, tag, body = found
    parent = next((map for map in layer.element.children if case.element in map.children), None)
    same = [entry for entry in parent.children if entry.attributes == case.element.attributes] if parent else []
    left = _left(case, layer, tag, body, case.attribute or "")
    back = case.element.tag == "edge"  # not every Parameter has one
    if len(same) > 1 and same[0] is not case.element and (back or not left):
        yield case.fix("delete the entry, which is there twice", case.without(case.element))
    elif left:
        name = case.attribute or ""
        map = _Map(layer, body, case.element)
        pair = map.entries_of(case.element, name)
        if len(pair) == 2:
            right = [
                (entry, id)
                for entry in pair
                for id in left
                if all(map.fits(each, name, id if each is entry else None) for each in pair)
            ]
            if len(right) == 1:
                yield case.set(name, str(right[0][1]), element=right[0][0], safe=not back)
                return
        for id in left[:4]:
            yield case.set(name, str(id), safe=False)
    else:
        yield case.fix("delete the second entry", case.without(case.element), safe=False)


def missing_entry(case: Case) -> Iterator[Fix]:
    """E213, E215, E218: an entry between the only ends that are left."""
    if case.element.tag == "port":
        yield from _missing_output(case)
        return
    if case.element.tag == "layer":
        owner, inner = case.graph.owner, case.layer
    else:
        owner = case.layer
        body = owner.bodies.get("body") if owner else None
        wanted = case.element.attributes.get("to-layer", "").strip()
        inner = next((layer for layer in body.graph.layers if str(layer.id) == wanted), None) if body else None
    if owner is None or inner is None:
        return
    tag = next((tag for tag, body in owner.bodies.items() if body.graph is inner.graph), "")
    map = owner.element.find(MAP_OF.get(tag, ""))
    if map is None:
        return
    taken = {entry.attributes.get("external_port_id", "").strip() for entry in map.findall("input")}
    others = [id for id in _input_numbers(owner) if str(id) not in taken]
    for id in others[:4]:
        text = f'<input external_port_id="{id}" internal_layer_id="{inner.id}" />'
        certain = len(others) == 1 and _declared_alike(
            owner.input_ports[id], inner.outputs[0].port if inner.outputs else None
        )
        yield case.fix(f"map input {id} to layer {inner}", case.last_in(map, text), safe=certain)


def _missing_output(case: Case) -> Iterator[Fix]:
    owner = case.layer
    bodies = list(owner.bodies.items()) if owner else []
    tag = next((tag for tag, _ in bodies if f"of the {tag} gives" in case.diagnostic.message), None)
    map = owner.element.find(MAP_OF[tag]) if owner and tag else None
    if owner is None or tag is None or map is None:
        return
    entries = map.findall("output")
    mapped = {entry.attributes.get("internal_layer_id", "").strip() for entry in entries}
    external = {entry.attributes.get("external_port_id", "").strip() for entry in entries}
    results = [layer for layer in owner.bodies[tag].graph.results if str(layer.id) not in mapped]
    # its ids are in the order of the outputs, so it goes where the id of a port is missing
    ports = [value.port for value in owner.outputs if str(value.port.id) not in external]
    if len(ports) == 1:
        for layer in results[:4]:
            text = f'<output external_port_id="{ports[0].id}" internal_layer_id="{layer.id}" />'
            certain = len(results) == 1 and _declared_alike(
                ports[0], layer.input_ports[0] if layer.input_ports else None
            )
            yield case.fix(f"map layer {layer} to the output", case.last_in(map, text), safe=certain)


def renumbered_outputs(case: Case) -> Iterator[Fix]:
    """W910: the ids of the output ports, in the order in which the entries count as these. Another one may be meant."""
    found = _body(case)
    if found is None:
        return
    layer, tag, _ = found
    map = layer.element.find(MAP_OF[tag])
    entries = map.findall("output") if map else []
    given = {entry: int(entry.attributes["external_port_id"]) for entry in entries}
    ids = sorted({id for id in given.values() if id >= 0})
    if len(ids) != len(layer.outputs):
        return
    right = dict(zip(ids, (value.port.id for value in layer.outputs), strict=True))
    edits = [
        with_attribute(entry, "external_port_id", str(right[id]))
        for entry, id in given.items()
        if id >= 0 and right[id] != id
    ]
    yield case.fix("write the ids of the output ports in that order", *edits, safe=False)


def _ends(entry: Element) -> tuple[str, str]:
    return ("from-layer", "to-layer") if entry.tag == "edge" else ("external_port_id", "internal_layer_id")


def _body(case: Case) -> tuple[Layer, str, LayerBody] | None:
    """The layer, the tag and the body that an entry of a port map or a back edge belongs to."""
    layer = case.layer
    parent = next((map for map in layer.element.children if case.element in map.children), None) if layer else None
    if layer is None or parent is None:
        return None
    tag = next((tag for tag, map in MAP_OF.items() if map == parent.tag), "body")
    return (layer, tag, layer.bodies[tag]) if tag in layer.bodies else None


class _Map:
    """The map of a layer with a body in which an entry stands: its entries by their ends, and the ports at these."""

    def __init__(self, layer: Layer, body: LayerBody, entry: Element) -> None:
        parent = next(map for map in layer.element.children if entry in map.children)
        self._entries: dict[tuple[str, str, str], list[Element]] = {}
        for each in parent.children:
            for end in _ends(each):
                self._entries.setdefault((each.tag, end, _given(each, end)), []).append(each)
        self._inputs = {str(number): port for number, port in enumerate(layer.input_ports)}
        self._outputs = {str(value.port.id): value.port for value in layer.outputs}
        inner = {str(each.id): each for each in body.graph.layers}
        self._results = {
            id: each.input_ports[0] for id, each in inner.items() if each.type == "Result" and each.input_ports
        }
        self._parameters = {
            id: each.outputs[0].port for id, each in inner.items() if each.type == "Parameter" and each.outputs
        }

    def entries_of(self, entry: Element, name: str) -> list[Element]:
        """The entries of the same kind that have the same end `name`, this one among them."""
        return self._entries.get((entry.tag, name, _given(entry, name)), [])

    def fits(self, entry: Element, name: str, id: int | None) -> bool:
        """Whether an entry whose end `name` becomes `id` is between ports that are declared alike, the other one its
        own. With None the end stays as it is."""
        texts = {end: _given(entry, end) for end in _ends(entry)} | ({name: str(id)} if id is not None else {})
        outside, inside = texts.values()
        if entry.tag == "edge":
            return _declared_alike(self._results.get(outside), self._parameters.get(inside))
        other = next(end for end in texts if end != name)
        owned = entry.tag == "input" or other == "external_port_id"  # a Result may be several outputs
        if owned and len(self.entries_of(entry, other)) > 1:
            return False
        axis = entry.attributes.get("axis")
        if entry.tag == "input":
            return _declared_alike(self._inputs.get(outside), self._parameters.get(inside), axis)
        return _declared_alike(self._outputs.get(outside), self._results.get(inside), axis)


def _given(entry: Element, name: str) -> str:
    return entry.attributes.get(name, "").strip()


def _declared_alike(one: Port | None, other: Port | None, axis: str | None = None) -> bool:
    """Whether two ports are there and declared alike, but for their sizes along an axis that is sliced."""
    if one is None or other is None or one.precision != other.precision:
        return False
    if axis is None:
        return one.dims == other.dims
    pairs = list(zip(one.dims, other.dims, strict=False))
    sliced = int(axis) % len(pairs) if pairs and re.fullmatch(r"-?\d{1,9}", axis, re.ASCII) else None
    return len(one.dims) == len(other.dims) and all(a == b or at == sliced for at, (a, b) in enumerate(pairs))


def _left(case: Case, layer: Layer, tag: str, body: LayerBody, name: str) -> list[int]:
    """What no other entry has as this end, of all that there is."""
    parent = next(map for map in layer.element.children if case.element in map.children)
    siblings = [entry for entry in parent.children if entry is not case.element and entry.tag == case.element.tag]
    taken = {entry.attributes.get(name, "").strip() for entry in siblings}
    if name == "external_port_id":
        ids = _input_numbers(layer) if case.element.tag == "input" else [value.port.id for value in layer.outputs]
        return [id for id in ids if str(id) not in taken]
    parameters = case.element.tag == "input" or (case.element.tag == "edge" and name == "to-layer")
    layers = body.graph.parameters if parameters else body.graph.results
    if case.element.tag == "input" and tag == "body":
        taken |= _counting(layer)
    if case.element.tag == "edge" and name == "from-layer":
        layers = _mappable(layers, layer, tag)
    return [inner.id for inner in layers if str(inner.id) not in taken]


def _input_numbers(layer: Layer) -> list[int]:
    """The inputs of a layer that its bodies read: those behind the ones that are its own."""
    op = registry().find(layer.type, layer.version)
    own = sum(not port.variadic for port in op.inputs) if op else 0
    return list(range(own, len(layer.inputs)))


def _counting(layer: Layer) -> set[str]:
    """The Parameters that get their values by other entries."""
    map = layer.element.find("port_map")
    entries = map.findall("input") if map else []
    return {entry.attributes.get("internal_layer_id", "").strip() for entry in entries if "purpose" in entry.attributes}


def _mappable(layers: list[Layer], layer: Layer, tag: str) -> list[Layer]:
    """Results but those that decide on the next iteration."""
    map = layer.element.find(MAP_OF[tag])
    deciding = {
        entry.attributes.get("internal_layer_id", "").strip()
        for entry in (map.findall("output") if map else [])
        if entry.attributes.get("purpose")
    }
    return [each for each in layers if str(each.id) not in deciding]
