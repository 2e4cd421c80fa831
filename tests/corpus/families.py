"""Defects that readers pass over without a word: what stands where nothing reads it, what contradicts what reaches it,
loops that hand nothing on, variables of two kinds, and constants whose order counts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np

from corpus.bodies import BRANCHES, LOOPS, Broken
from corpus.defect import Defect, Spot, defect
from corpus.document import Document, Element, children, data_of, declare, inputs, outputs
from corpus.seeds import ops, seed, spread


def defects() -> Iterator[Defect]:
    yield from _declared()
    yield from _ports()
    yield from _elements()
    yield from _words()
    yield from _names()
    yield from _bodies()
    yield from _variables()
    yield from _orders()


def _declared() -> Iterator[Defect]:
    """Input ports against what reaches them, and ports without sizes."""
    for number, document in enumerate(spread(30, 3)):
        layer = document.subject()
        port = inputs(layer)[-1]
        given = port.get("precision")
        wrong = "BOGUS" if number % 5 == 4 else next(t for t in ("FP64", "U16") if t != given)
        port.set("precision", wrong)
        yield defect("type of an input", wrong, document, "W932", [port, (port, "precision")], [layer])
    for document in spread(20, 7):
        layer = document.find("Result")
        port = inputs(layer)[0]
        port.set("precision", "U16" if port.get("precision") != "U16" else "I8")
        yield defect("type of an input", "of a Result", document, "W932", [port], [layer])
    for document in spread(40, 11):
        for layer in document.layers:
            if layer.get("type") in ("Const", "Parameter") and outputs(layer)[0].findall("dim"):
                port = outputs(layer)[0]
                for dim in list(port):
                    port.remove(dim)
                yield defect("no dimensions", f"of a {layer.get('type')}", document, "W931", [port], [layer])
                break
    for document in spread(20, 13):
        layer = document.subject()
        port = inputs(layer)[0]
        if port.findall("dim"):
            for dim in list(port):
                port.remove(dim)
            yield defect("no dimensions", "of an input", document, "W931", [port], [layer])


def _without_output(document: Document, layer: Element) -> bool:
    """Take away the last output port of a layer, with what reads it; False where others depend on that."""
    graph = document.root
    port = outputs(layer)[-1]
    edges = graph.find("edges")
    layers = graph.find("layers")
    assert edges is not None
    assert layers is not None
    for edge in list(edges):
        if (edge.get("from-layer"), edge.get("from-port")) == (layer.get("id"), port.get("id")):
            reader = next(each for each in layers if each.get("id") == edge.get("to-layer"))
            if reader.get("type") != "Result":
                return False
            edges.remove(edge)
            layers.remove(reader)
    layer.find("output").remove(port)  # type: ignore[union-attr]
    return True


def _ports() -> Iterator[Defect]:
    for name in ops():
        document = seed(name)
        layer = document.subject()
        bodies = layer.get("type") in ("If", "Loop", "TensorIterator")
        if len(outputs(layer)) > 1 and not bodies and _without_output(document, layer):
            yield defect("fewer outputs", "the last one", document, "W946", [layer.find("output")], [layer])  # type: ignore[list-item]
    for document in spread(12, 17):
        layer = document.find("Result")
        port = ET.SubElement(
            ET.SubElement(layer, "output"), "port", id="1", precision=inputs(layer)[0].get("precision", "")
        )
        port.extend(deepcopy(list(inputs(layer)[0])))
        yield defect("Result with an output", "that nobody reads", document, "W945", [port], [layer])
    for document in spread(6, 19):
        layer = document.find("Result")
        reader = deepcopy(layer)
        ET.SubElement(ET.SubElement(layer, "output"), "port", id="1", precision=inputs(layer)[0].get("precision", ""))
        reader.set("id", "700")
        reader.set("name", "behind")
        document.root.find("layers").append(reader)  # type: ignore[union-attr]
        ends = {
            "from-layer": layer.get("id", ""),
            "from-port": "1",
            "to-layer": "700",
            "to-port": inputs(layer)[0].get("id", ""),
        }
        edge = ET.SubElement(document.root.find("edges"), "edge", ends)  # type: ignore[arg-type]
        yield defect("Result with an output", "that is read", document, "E206", [edge, (edge, "from-layer")], [reader])


def _elements() -> Iterator[Defect]:
    def places(document: Document) -> Iterator[tuple[str, Element, tuple[Element, ...]]]:
        layer = document.subject()
        edges = document.root.find("edges")
        assert edges is not None
        yield "<net>", document.root, ()
        yield "<layers>", document.root.find("layers"), ()  # type: ignore[misc]
        yield "<edges>", edges, ()
        yield "<edge>", edges[0], ()
        yield "<input>", layer.find("input"), (layer,)  # type: ignore[misc]
        yield "<output>", layer.find("output"), (layer,)  # type: ignore[misc]
        yield "<port>", inputs(layer)[0], (layer,)
        yield "<data>", data_of(document.layers[0]), (document.layers[0],)

    for number in range(8):
        for document in spread(3, 23 * number):
            what, parent, layers = list(places(document))[number]
            child = ET.SubElement(parent, "leftover")
            yield defect("unread element", f"in {what}", document, "W907", [child], layers)
    for number in (2, 3, 4, 5, 6):
        for document in spread(3, 29 * number):
            what, parent, layers = list(places(document))[number]
            parent.set("bogus", "1")
            yield defect("unread attribute", f"of {what}", document, "W930", [(parent, "bogus")], layers)
    for tag in ("layers", "edges"):
        for document in spread(4, 31):
            child = ET.SubElement(document.root, tag)
            yield defect("second list", f"<{tag}/>", document, "W907", [child])
            document = document.clone()
            whole = document.root.find(tag)
            second = document.root.findall(tag)[1]
            assert whole is not None
            second.append(whole[-1])
            whole.remove(whole[-1])
            yield defect("second list", f"<{tag}> with what belongs into the first", document, "E220", [second])
    for tag, wrong in (("edge", "Edge"), ("edge", "edg"), ("layer", "Layer"), ("port", "Port")):
        for document in spread(3, 37):
            layer = document.subject()
            child = {"edge": document.edge_to(layer), "layer": layer, "port": inputs(layer)[0]}[tag]
            child.tag = wrong
            yield defect("misspelt element", f"<{wrong}>", document, "E220", [child], (layer,) if tag == "port" else ())
    for document in spread(6, 41):
        layer = document.subject()
        first, second = layer.find("input"), ET.SubElement(layer, "input")
        assert first is not None
        second.extend(list(first))
        first[:] = []
        yield defect("misspelt element", "ports in a second <input>", document, "E220", [second], (layer,))
    for document in spread(8, 43):
        for parent in (document.root.find("layers"), document.subject()):
            broken = document.clone()
            twin = next(new for old, new in zip(document.root.iter(), broken.root.iter(), strict=True) if old is parent)
            found = defect("text", f"in <{twin.tag}>", broken, "W907", [twin])
            line = found.xml.split(b"\n")[min(found.lines) - 1]
            yield Defect(**{**_fields(found), "xml": found.xml.replace(line, line + b" and more", 1)})


def _fields(found: Defect) -> dict[str, Any]:
    return {name: getattr(found, name) for name in Defect.__dataclass_fields__} | {"places": frozenset()}


def _words() -> Iterator[Defect]:
    for document in spread(6, 47):
        document.root.tag = "Net"
        yield defect("word in another case", "<Net>", document, "W908", [document.root], says="net")
    for document in spread(6, 53):
        layer = document.subject()
        layer.set("version", f"opset0{layer.get('version', '').removeprefix('opset')}")
        yield defect("no opset", "a leading zero", document, "E301", [(layer, "version")], [layer])
    for document in spread(20, 59):
        parameter = next((each for each in document.layers if each.get("type") == "Parameter"), None)
        if parameter is None or data_of(parameter).get("element_type") in ("boolean", "string"):
            continue
        data = data_of(parameter)
        data.set("element_type", data.get("element_type", "").upper())
        yield defect("word in another case", "an element type", document, "W908", [(data, "element_type")], [parameter])
    for text, code in (("f32", "W908"), ("fp32", "E210"), ("F32", "E210"), ("Fp32", "E210")):
        for document in spread(30, 61):
            layer = document.subject()
            port = outputs(layer)[0]
            if port.get("precision") == "FP32":
                port.set("precision", text)
                yield defect("word in another case", text, document, code, [(port, "precision")], [layer], says="FP32")


def _names() -> Iterator[Defect]:
    whole = seed("cnn")
    inner = [n for n, layer in enumerate(whole.layers) if outputs(layer) and layer.get("type") != "Const"]
    for first, second in pairwise(inner):
        document = seed("cnn")
        layers = document.layers[first], document.layers[second]
        for layer in layers:
            outputs(layer)[0].set("names", "twice")
        spots: list[Spot] = [(outputs(layer)[0], "names") for layer in layers]
        yield defect("duplicate name", "of tensors inside", document, "W906", spots, layers)


def _set_value(document: Document, number: int, value: Any) -> Element:
    layer = document.subject()
    document.set_value(layer, number, np.asarray(value))
    return layer


def _bodies() -> Iterator[Defect]:
    for name in LOOPS:
        m = Broken(name)
        m.layer.find("back_edges").remove(m.back[0])  # type: ignore[union-attr]
        spots: list[Spot] = [m.layer, *m.named]
        yield m.defect("nothing handed on", "no back edge", "W941", *spots, stale=True)
        m = Broken(name)
        fed = m.fed[0]
        fed.set("external_port_id", "-1")
        inner = m.inner(fed.get("internal_layer_id"))
        yield m.defect(
            "port map", "no input and no purpose", "E213", (fed, "external_port_id"), layers=(m.layer, inner)
        )
        m = Broken(name)
        m.fed[-1].set("purpose", "execution_condition")
        yield m.defect("purpose", "of an output at an input", "W942", (m.fed[-1], "purpose"))
        m = Broken(name)
        m.back[0].tag = "edgee"
        yield m.defect("misspelt element", "a back edge", "E220", m.back[0], stale=True)
        m = Broken(name)
        edges = m.layer.find("back_edges")
        assert edges is not None
        edges.tag = "backedges"
        yield m.defect("misspelt element", "the back edges", "E220", edges)
    for name in ("Loop-5", "stateful-loop"):
        m = Broken(name)
        condition = next(each for each in m.outputs if each.get("purpose"))
        condition.set("purpose", "execution_cond")
        yield m.defect("purpose", "misspelt", "E213", (condition, "purpose"))
        m = Broken(name)
        m.named[0].set("purpose", "execution_condition")
        yield m.defect(
            "purpose", "two conditions", "E214 E401", *[(each, "purpose") for each in m.outputs if each.get("purpose")]
        )
        m = Broken(name)
        condition = next(each for each in m.outputs if each.get("purpose"))
        result = m.inner(condition.get("internal_layer_id"))
        edge = m.document.edge_to(result)
        number = next(each.get("id") for each in children(m.body, "layers") if each.get("type") == "Add")
        edge.set("from-layer", str(number))
        edge.set("from-port", "2")
        yield m.defect(
            "purpose", "a condition that is not boolean", "E401", condition, m.layer, stale=True, also=("W904",)
        )
    for name in ("Loop-5", "TensorIterator-1"):
        for text in ('start="2" end="-1" stride="1"', 'start="0" end="-1" stride="-1"', 'start="0" end="1" stride="1"'):
            m = Broken(name)
            joined = next(each for each in m.named if each.get("axis"))
            joined.attrib.update(ET.fromstring(f"<a {text}/>").attrib)
            spots = [(joined, attribute) for attribute in ("start", "end", "stride")]
            code = "E304" if name == "TensorIterator-1" else "W944"
            yield m.defect("slices of a loop", f"{text} of an output", code, *spots)
        m = Broken(name)
        joined = next(each for each in m.named if each.get("axis"))
        del joined.attrib["axis"]
        yield m.defect("slices of a loop", "no axis", "W944", joined, (joined, "start"), stale=True)
    m = Broken("TensorIterator-1")
    sliced = next(each for each in m.inputs if each.get("axis"))
    back = deepcopy(m.back[0])
    back.set("to-layer", sliced.get("internal_layer_id", ""))
    m.layer.find("back_edges").append(back)  # type: ignore[union-attr]
    yield m.defect("back edge", "into a sliced input", "W943", (back, "to-layer"))
    for name in (*LOOPS, *BRANCHES):
        m = Broken(name)
        m.fed[-1].set("strat", "1")
        yield m.defect("unread attribute", "of a port map", "W930", (m.fed[-1], "strat"))
        m = Broken(name)
        child = ET.SubElement(m.map, "leftover")
        yield m.defect("unread element", "in a port map", "W907", child)
        m = Broken(name)
        m.map.tag = m.map.tag.replace("port_map", "portmap")
        yield m.defect("misspelt element", "a port map", "E220", m.map)
    m = Broken("If-8")
    m.fed[-1].set("axis", "0")
    yield m.defect("slices of a loop", "in an If", "W944", (m.fed[-1], "axis"))
    m = Broken("If-8")
    child = ET.SubElement(m.layer, "body")
    yield m.defect("unread element", "a body of an If", "W907", child)
    for name in ("TensorIterator-1", "If-8"):
        m = Broken(name)
        inner = m.inner(m.fed[0].get("internal_layer_id"))
        data = data_of(inner)
        data.set("shape", f"7,{data.get('shape')}" if name == "If-8" else "3,2")
        fits = "W940"
        declare(outputs(inner)[0], "f32", [int(size) for size in data.get("shape", "").split(",")])
        spots = [(data, "shape")]
        yield m.defect("shape from outside", "another one", fits, *spots, layers=(inner,), stale=True)
        m = Broken(name)
        inner = m.inner(m.fed[0].get("internal_layer_id"))
        data = data_of(inner)
        data.set("shape", "1,5")
        yield m.defect(
            "shape from outside", "one that does not fit", "E304", (data, "shape"), layers=(inner,), stale=True
        )


def _variables() -> Iterator[Defect]:
    for producer, code in (("1", "E303"), ("6", "E303"), ("5", "E304")):
        document = seed("stateful-loop")
        assign, read = document.find("Assign"), document.find("ReadValue")
        edge = document.edge_to(assign)
        edge.set("from-layer", producer)
        edge.set("from-port", "5" if producer == "5" else "0")
        if producer == "5":  # the history grows, and so has no fixed shape
            data_of(document.layers[1]).attrib.update(element_type="i32")
            _fix_steps(document)
        spots: list[Spot] = [inputs(assign)[0]]
        yield defect(
            "variable", f"what layer {producer} gives", document, code, spots, [assign], also=("W904",), stale=True
        )
    for change, code in (({}, "W912"), ({"variable_shape": "1,4,1"}, "E304 E401")):
        document = seed("stateful-loop")
        read = document.find("ReadValue")
        again = deepcopy(read)
        again.attrib.update(id="70", name="again")
        data_of(again).attrib.update(change)
        result = deepcopy(document.find("Result", -1))
        result.attrib.update(id="71", name="behind")
        result.attrib.pop("output_names", None)
        document.root.find("layers").extend([again, result])  # type: ignore[union-attr]
        first = deepcopy(document.edge_to(read))
        first.set("to-layer", "70")
        port = inputs(result)[0].get("id", "0")
        ends = {"from-layer": "70", "from-port": "1", "to-layer": "71", "to-port": port}
        document.root.find("edges").extend([first, ET.Element("edge", ends)])  # type: ignore[union-attr]
        spots = [again, (data_of(again), "variable_shape"), *inputs(again)]
        yield defect("variable", f"read twice {change}", document, code, spots, [again], stale=True)


def _fix_steps(document: Document) -> None:
    """Make the number of steps a constant, 3, so that sizes are known."""
    layer = document.find("Loop")
    document.set_value(layer, 0, np.int32(3))


ORDERS: Sequence[tuple[str, int, Any, str]] = (
    ("EmbeddingSegmentsSum-3", 2, np.int64([2, 2, 0, 0, 2, 2]), "W947"),
    ("BitwiseLeftShift-15", 1, np.int32([[1, 32, 2]]), "W949"),
    ("SegmentMax-16", 1, np.int32([1, 1, 0, 0, 2]), "E401"),
    ("ScatterUpdate-3", 1, np.int64([1, 1]), "W948"),
    ("ScatterNDUpdate-3", 1, np.int64([[1, 1, 1], [1, 1, 1]]), "W948"),
    ("ScatterElementsUpdate-3", 1, np.zeros((2, 2, 4), np.int64), "W948"),
)


def _orders() -> Iterator[Defect]:
    for name, number, value, code in ORDERS:
        document = seed(name)
        layer = _set_value(document, number, value)
        spots: list[Spot] = [layer, inputs(layer)[number]]
        yield defect("order of a constant", str(value.ravel()[:3]), document, code, spots, [layer], stale=True)
