"""Defects of bodies and state: port maps, back edges, what lies inside a body, ReadValue and Assign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy

from corpus.attributes import misspelt
from corpus.defect import Defect, Spot, defect
from corpus.document import Element, children, data_of, inputs, outputs
from corpus.seeds import seed

LOOPS = ("Loop-5", "stateful-loop", "TensorIterator-1")
BRANCHES = ("If-8",)
KINDS = {"Loop-5": "Loop", "stateful-loop": "Loop", "TensorIterator-1": "TensorIterator", "If-8": "If"}


def defects() -> Iterator[Defect]:
    for name in (*LOOPS, *BRANCHES):
        yield from _port_maps(name)
        yield from _inside(name)
    for name in LOOPS:
        yield from _back_edges(name)
        yield from _ranges(name)
    yield from _swapped_outputs()
    yield from _state()


class Broken:
    """One model with a body at a time, and its parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.document = seed(name)
        self.layer = self.document.find(KINDS[name])
        self.map = next(child for child in self.layer if child.tag in ("port_map", "then_port_map"))
        self.body = next(child for child in self.layer if child.tag in ("body", "then_body"))
        self.inputs = [each for each in self.map if each.tag == "input"]
        self.outputs = [each for each in self.map if each.tag == "output"]
        self.named = [each for each in self.outputs if each.get("external_port_id") != "-1"]
        self.fed = [each for each in self.inputs if each.get("external_port_id") != "-1"]
        self.back = children(self.layer, "back_edges")

    def inner(self, id: str | None) -> Element:
        return next(layer for layer in children(self.body, "layers") if layer.get("id") == id)

    def defect(
        self, family: str, title: str, codes: str, *spots: Spot, layers: tuple[Element, ...] = (), **more: object
    ) -> Defect:
        return defect(family, title, self.document, codes, spots, layers or (self.layer,), **more)  # type: ignore[arg-type]


def _port_maps(name: str) -> Iterator[Defect]:
    def broken(change: Callable[[Broken], Defect | None]) -> Iterator[Defect]:
        made = change(Broken(name))
        if made:
            yield made

    def set_entry(entry: Element, attribute: str, value: str) -> tuple[Element, str]:
        entry.set(attribute, value)
        return entry, attribute

    for value in ("20", "-5", "one", ""):
        m = Broken(name)
        spot = set_entry(m.fed[-1], "external_port_id", value)
        inner = m.inner(m.fed[-1].get("internal_layer_id"))
        yield m.defect("port map", f"input id {value!r}", "E213 E202", spot, layers=(m.layer, inner))
    for value in ("99", "-1", "x"):
        m = Broken(name)
        inner = m.inner(m.fed[-1].get("internal_layer_id"))
        spot = set_entry(m.fed[-1], "internal_layer_id", value)
        yield m.defect("port map", f"internal id {value!r} of an input", "E213 E202", spot, layers=(m.layer, inner))
        m = Broken(name)
        spot = set_entry(m.named[-1], "internal_layer_id", value)
        yield m.defect("port map", f"internal id {value!r} of an output", "E213 E202", spot)
    m = Broken(name)
    spot = set_entry(m.fed[-1], "internal_layer_id", m.named[0].get("internal_layer_id", ""))
    yield m.defect("port map", "an input into a Result", "E213", spot)
    m = Broken(name)
    spot = set_entry(m.named[0], "internal_layer_id", m.fed[-1].get("internal_layer_id", ""))
    yield m.defect("port map", "an output from a Parameter", "E213", spot)
    for attribute in ("external_port_id", "internal_layer_id"):
        m = Broken(name)
        del m.fed[-1].attrib[attribute]
        yield m.defect("port map", f"no {attribute}", "E201", m.fed[-1])
    m = Broken(name)
    m.map.remove(m.fed[-1])
    inner = m.inner(m.fed[-1].get("internal_layer_id"))
    spots: list[Spot] = [inner, m.layer, m.map, *((edge, "to-layer") for edge in m.back)]
    yield m.defect("port map", "an input missing", "E218 E215", *spots, layers=(m.layer, inner))
    m = Broken(name)
    m.map.remove(m.named[-1])
    ports = outputs(m.layer)
    yield m.defect("port map", "an output missing", "E213", m.layer, m.map, *ports)
    m = Broken(name)
    twice = deepcopy(m.fed[-1])
    m.map.append(twice)
    yield m.defect("port map", "an input twice", "E214", (twice, "external_port_id"), (twice, "internal_layer_id"))
    if len(m.named) > 1:
        m = Broken(name)
        spot = set_entry(m.named[1], "external_port_id", m.named[0].get("external_port_id", ""))
        yield m.defect("port map", "an output id twice", "E214", spot, (m.named[0], "external_port_id"))
    for tag in (m.map.tag, m.body.tag):
        m = Broken(name)
        m.layer.remove(m.map if tag == m.map.tag else m.body)
        yield m.defect("no body or port map", tag, "E216", m.layer)
    m = Broken(name)
    m.body.remove(m.body.find("layers"))  # type: ignore[arg-type]
    yield m.defect("no <layers> or <edges>", f"no <layers> in a {m.body.tag}", "E111", m.body, layers=())
    m = Broken(name)
    m.body.remove(m.body.find("edges"))  # type: ignore[arg-type]
    yield m.defect("no <layers> or <edges>", f"no <edges> in a {m.body.tag}", "E112", m.body, layers=())


def _back_edges(name: str) -> Iterator[Defect]:
    for attribute, value, code in (
        ("from-layer", "99", "E215"),
        ("to-layer", "99", "E215"),
        ("to-layer", "x", "E202"),
        ("from-layer", "", "E202"),
    ):
        m = Broken(name)
        edge = m.back[0]
        edge.set(attribute, value)
        yield m.defect("back edge", f"{attribute}={value!r}", code, (edge, attribute))
    m = Broken(name)
    edge = m.back[0]
    edge.set("from-layer", edge.get("to-layer", ""))
    yield m.defect("back edge", "from a Parameter", "E215", (edge, "from-layer"))
    m = Broken(name)
    edge = m.back[0]
    edge.set("to-layer", edge.get("from-layer", ""))
    yield m.defect("back edge", "to a Result", "E215", (edge, "to-layer"))
    m = Broken(name)
    second = deepcopy(m.back[0])
    m.layer.find("back_edges").append(second)  # type: ignore[union-attr]
    yield m.defect("back edge", "twice", "E215", (second, "to-layer"))
    m = Broken(name)
    entry = next(each for each in m.inputs if each.get("internal_layer_id") == m.back[0].get("to-layer"))
    m.map.remove(entry)
    parameter = m.inner(m.back[0].get("to-layer"))
    yield m.defect("back edge", "without a first value", "E215", (m.back[0], "to-layer"), layers=(m.layer, parameter))
    m = Broken(name)
    del m.back[0].attrib["from-layer"]
    yield m.defect("back edge", "no from-layer", "E201", m.back[0])


def _ranges(name: str) -> Iterator[Defect]:
    """Slices and joins along an axis."""
    for attribute, value, label in (
        ("axis", "7", "C1"),
        ("axis", "x", ""),
        ("stride", "0", "C2"),
        ("part_size", "0", "C2"),
        ("part_size", "1.5", ""),
        ("start", "50", "C3"),
        ("end", "y", ""),
        ("part_size", "2", "C4"),
    ):
        for kind in ("input", "output"):
            m = Broken(name)
            entries = [each for each in (m.inputs if kind == "input" else m.outputs) if each.get("axis")]
            if not entries or (kind == "output" and label in ("C3", "C4")):
                continue
            entry = entries[0]
            entry.set(attribute, value)
            codes = "E401" if label else "E202"
            results = m.named if attribute == "part_size" and kind == "input" else []
            spots: list[Spot] = [(entry, attribute), entry, *([m.layer] if label else [])]
            spots += [(each, "part_size") for each in results if each.get("axis")]
            yield m.defect("slices of a loop", f"{attribute}={value!r} of an {kind}", codes, *spots, stale=True)


def _inside(name: str) -> Iterator[Defect]:
    """Ordinary defects, in a body: the layer named is the one inside."""
    whole = Broken(name)
    layers = children(whole.body, "layers")
    plain = [n for n, layer in enumerate(layers) if inputs(layer) and outputs(layer)]

    def at(number: int) -> tuple[Broken, Element]:
        m = Broken(name)
        return m, children(m.body, "layers")[number]

    for number in plain:
        m, inner = at(number)
        inner.set("type", misspelt(inner.get("type", "")))
        yield m.defect("inside a body", "an unknown op", "E301", (inner, "type"), layers=(inner,))
        m, inner = at(number)
        data = data_of(inner)
        data.set("bogus", "1")
        yield m.defect("inside a body", "an odd attribute", "W930", (data, "bogus"), layers=(inner,))
        for attribute in list(data.attrib)[:-1]:
            m, inner = at(number)
            data_of(inner).set(attribute, "maybe?")
            yield m.defect(
                "inside a body", f"{attribute} unreadable", "E307", (data_of(inner), attribute), layers=(inner,)
            )
        m, inner = at(number)
        edge = m.document.edge_to(inner)
        edge.set("from-layer", "999")
        yield m.defect("inside a body", "an edge to nowhere", "E205", (edge, "from-layer"), layers=(inner,))
        m, inner = at(number)
        edge = m.document.edge_to(inner)
        m.body.find("edges").remove(edge)  # type: ignore[union-attr]
        yield m.defect("inside a body", "no edge", "E208", inputs(inner)[0], layers=(inner,))
        m, inner = at(number)
        m.body.find("edges").append(deepcopy(m.document.edge_to(inner)))  # type: ignore[union-attr]
        first, second = [e for e in children(m.body, "edges") if e.attrib == m.document.edge_to(inner).attrib]
        yield m.defect("inside a body", "two edges", "E207", (first, "to-port"), (second, "to-port"), layers=(inner,))
        m, inner = at(number)
        port = outputs(inner)[0]
        port.set("precision", "U8")
        yield m.defect("inside a body", "a declared type", "W932", port, (port, "precision"), layers=(inner,))
        m, inner = at(number)
        port = outputs(inner)[0]
        port.set("id", "x")
        yield m.defect("inside a body", "a port id", "E202", (port, "id"), layers=(inner,))
    m = Broken(name)
    layers = children(m.body, "layers")
    layers[-1].set("id", layers[0].get("id", ""))
    spots: list[Spot] = [(layers[-1], "id"), (layers[0], "id")]
    yield m.defect("inside a body", "a duplicate id", "E203", *spots, layers=(layers[-1], layers[0]))
    m, inner = at(plain[0])
    extra = deepcopy(inner)
    extra.set("id", "500")
    extra.set("name", "left_over")
    for number in range(len(inputs(inner))):
        edge = deepcopy(m.document.edge_to(inner, number))
        edge.set("to-layer", "500")
        m.body.find("edges").append(edge)  # type: ignore[union-attr]
    m.body.find("layers").append(extra)  # type: ignore[union-attr]
    yield m.defect("inside a body", "unreachable", "W904", extra, layers=(extra,))
    for number, layer in enumerate(layers):
        if layer.get("type") == "Const":
            m, inner = at(number)
            data_of(inner).set("offset", "100000")
            yield m.defect("inside a body", "past the end", "E503", (data_of(inner), "offset"), layers=(inner,))
            m, inner = at(number)
            inner.set("type", "Constant")
            yield m.defect("inside a body", "Constant", "E217", (inner, "type"), layers=(inner,))
    m = Broken(name)
    for inner in [each for each in children(m.body, "layers") if each.get("type") == "Parameter"][:1]:
        data_of(inner).set("element_type", "fp32")
        spot = (data_of(inner), "element_type")
        yield m.defect("inside a body", "a Parameter's type", "E307", spot, layers=(inner,))


def _swapped_outputs() -> Iterator[Defect]:
    """Outputs are numbered by the rank of their ids, so that another id changes which is which."""
    for name in ("Loop-5", "stateful-loop", "If-8"):
        m = Broken(name)
        if len(m.named) < 2:
            continue
        entry = min(m.named, key=lambda each: int(each.get("external_port_id", "0")))
        entry.set("external_port_id", "9")
        ports: list[Spot] = list(outputs(m.layer))
        spots: list[Spot] = [(each, "external_port_id") for each in m.named]
        yield m.defect("swapped outputs", "the first id is the last now", "W910 E217", *spots, *ports, stale=True)
        m = Broken(name)
        last = max(m.named, key=lambda each: int(each.get("external_port_id", "0")))
        last.set("external_port_id", "0")
        spots = [(each, "external_port_id") for each in m.named]
        yield m.defect("swapped outputs", "the last id is the first now", "W910", *spots, *outputs(m.layer), stale=True)
        m = Broken(name)
        for number, each in enumerate(m.named):
            each.set("external_port_id", str(40 + number))
        spots = [(each, "external_port_id") for each in m.named]
        yield m.defect("swapped outputs", "ids of no port", "W910", *spots)
        m = Broken(name)
        first, second = m.named[:2]
        ids = first.get("external_port_id", ""), second.get("external_port_id", "")
        first.set("external_port_id", ids[1])
        second.set("external_port_id", ids[0])
        if name == "Loop-5":
            yield m.defect("swapped outputs", "ids exchanged", "W931", *outputs(m.layer), stale=True)


def _state() -> Iterator[Defect]:
    name = "stateful-loop"
    document = seed(name)
    read, assign = document.find("ReadValue"), document.find("Assign")
    document.root.find("edges").remove(document.edge_to(assign))  # type: ignore[union-attr]
    document.root.find("layers").remove(assign)  # type: ignore[union-attr]
    spots: list[Spot] = [(data_of(read), "variable_id"), read]
    yield defect("state", "ReadValue without Assign", document, "W911", spots, [read], also=("W904",))

    document = seed(name)
    assign = document.find("Assign")
    data_of(assign).set("variable_id", "hiden")
    spots = [(data_of(assign), "variable_id")]
    yield defect("state", "a misspelt variable_id", document, "E219", spots, [assign], says="hidden")

    document = seed(name)
    read, assign = document.find("ReadValue"), document.find("Assign")
    source, port = document.source(read)
    for edge in document.edges:
        if edge.get("from-layer") == read.get("id"):
            edge.set("from-layer", source.get("id", ""))
            edge.set("from-port", port.get("id", ""))
    document.root.find("edges").remove(document.edge_to(read))  # type: ignore[union-attr]
    document.root.find("layers").remove(read)  # type: ignore[union-attr]
    spots = [(data_of(assign), "variable_id")]
    yield defect("state", "Assign without ReadValue", document, "E219", spots, [assign])

    for kind, code in (("Assign", "E221"), ("ReadValue", "W908")):
        document = seed(name)
        layer = document.find(kind)
        layer.set("type", kind.lower())
        yield defect("type in another case", kind, document, code, [(layer, "type")], [layer], says=kind)

    for attribute, value, codes in (
        ("variable_type", "i32", "E401"),
        ("variable_type", "fp32", "E307"),
        ("variable_shape", "2,4", "E401"),
        ("variable_shape", "1,4..2", "E307"),
    ):
        document = seed(name)
        read = document.find("ReadValue")
        data_of(read).set(attribute, value)
        spots = [(data_of(read), attribute), read, *inputs(read)]
        yield defect("state", f"{attribute}={value!r}", document, codes, spots, [read])
    for kind in ("ReadValue", "Assign"):
        document = seed(name)
        layer = document.find(kind)
        data_of(layer).set("variable_id", "")
        spots = [(data_of(layer), "variable_id"), layer]
        yield defect("state", f"an empty variable_id of a {kind}", document, "E401", spots, [layer])
        document = seed(name)
        layer = document.find(kind)
        del data_of(layer).attrib["variable_id"]
        yield defect("state", f"{kind} without variable_id", document, "E306", [data_of(layer)], [layer])
    document = seed(name)
    assign = document.find("Assign")
    second = deepcopy(assign)
    second.set("id", "60")
    second.set("name", "again")
    edge = deepcopy(document.edge_to(assign))
    edge.set("to-layer", "60")
    document.root.find("edges").append(edge)  # type: ignore[union-attr]
    document.root.find("layers").append(second)  # type: ignore[union-attr]
    spots = [(data_of(second), "variable_id"), (data_of(assign), "variable_id")]
    yield defect("state", "two Assigns of one variable", document, "W912", spots, [second, assign])
