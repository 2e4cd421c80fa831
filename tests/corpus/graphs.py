"""Defects of the graph: layers, ports and edges, whatever the ops are."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace

from corpus.defect import Defect, Spot, defect
from corpus.document import Document, Element, data_of, inputs, outputs
from corpus.seeds import seed, spread

Made = Defect | None
FAMILIES: list[tuple[Callable[[Document], Made], int]] = []


def on(count: int) -> Callable[[Callable[[Document], Made]], Callable[[Document], Made]]:
    """The function breaks `count` models; None where it does not apply to one."""

    def register(function: Callable[[Document], Made]) -> Callable[[Document], Made]:
        FAMILIES.append((function, count))
        return function

    return register


def defects() -> Iterator[Defect]:
    for number, (function, count) in enumerate(FAMILIES):
        for document in spread(count, 5 * number):
            made = function(document)
            if made:
                yield made
    yield from _texts()
    yield from _in_samples()


# ids


@on(10)
def duplicate_layer_id(document: Document) -> Made:
    layer = document.subject()
    other, _ = document.source(layer)
    layer.set("id", other.get("id", ""))
    return defect("duplicate id", "a layer's", document, "E203", [(layer, "id"), (other, "id")], [layer, other])


@on(10)
def duplicate_result_id(document: Document) -> Made:
    layer, other = document.find("Result"), document.layers[0]
    layer.set("id", other.get("id", ""))
    return defect("duplicate id", "a Result's", document, "E203", [(layer, "id"), (other, "id")], [layer, other])


@on(20)
def duplicate_input_port(document: Document) -> Made:
    layer = document.subject()
    if len(inputs(layer)) < 2:
        return None
    first, second = inputs(layer)[:2]
    second.set("id", first.get("id", ""))
    return defect("duplicate id", "an input port's", document, "E204", [(first, "id"), (second, "id")], [layer])


@on(60)
def duplicate_output_port(document: Document) -> Made:
    layer = document.subject()
    if len(outputs(layer)) < 2:
        return None
    first, second = outputs(layer)[:2]
    second.set("id", first.get("id", ""))
    return defect("duplicate id", "an output port's", document, "E204", [(first, "id"), (second, "id")], [layer])


# edges


@on(12)
def edge_from_nowhere(document: Document) -> Made:
    layer = document.subject()
    edge = document.edge_to(layer)
    edge.set("from-layer", "999")
    return defect("edge to nowhere", "from a missing layer", document, "E205", [(edge, "from-layer")], [layer])


@on(12)
def edge_to_nowhere(document: Document) -> Made:
    layer = document.subject()
    producer, _ = document.source(layer)
    edge = document.edge_to(layer)
    edge.set("to-layer", "999")
    return defect("edge to nowhere", "to a missing layer", document, "E205", [(edge, "to-layer")], [layer, producer])


@on(12)
def spare_edge_to_nowhere(document: Document) -> Made:
    layer = document.subject()
    producer, _ = document.source(layer)
    edge = deepcopy(document.edge_to(layer))
    edge.set("to-layer", "999")
    document.root.find("edges").append(edge)  # type: ignore[union-attr]
    return defect("edge to nowhere", "one more, to a missing layer", document, "E205", [(edge, "to-layer")], [producer])


@on(12)
def edge_from_missing_port(document: Document) -> Made:
    layer = document.subject()
    producer, _ = document.source(layer)
    edge = document.edge_to(layer)
    edge.set("from-port", "77")
    return defect("edge to nowhere", "from a missing port", document, "E206", [(edge, "from-port")], [producer, layer])


@on(12)
def edge_to_missing_port(document: Document) -> Made:
    layer = document.subject()
    edge = document.edge_to(layer, len(inputs(layer)) - 1)
    edge.set("to-port", "77")
    return defect("edge to nowhere", "to a missing port", document, "E206", [(edge, "to-port")], [layer])


@on(12)
def second_edge(document: Document) -> Made:
    layer = document.subject()
    first = document.edge_to(layer)
    second = deepcopy(first)
    document.root.find("edges").append(second)  # type: ignore[union-attr]
    spots: list[Spot] = [(first, "to-port"), (second, "to-port")]
    return defect("two edges into one port", "the same one twice", document, "E207", spots, [layer])


@on(12)
def second_edge_from_elsewhere(document: Document) -> Made:
    layer = document.subject()
    if len(inputs(layer)) < 2:
        return None
    first, second = document.edge_to(layer, 0), deepcopy(document.edge_to(layer, 1))
    second.set("to-port", first.get("to-port", ""))
    document.root.find("edges").append(second)  # type: ignore[union-attr]
    spots: list[Spot] = [(first, "to-port"), (second, "to-port")]
    return defect("two edges into one port", "from two layers", document, "E207", spots, [layer])


@on(14)
def moved_edge(document: Document) -> Made:
    """The one edge into input 1 leads to input 0 instead: a second one there, none here."""
    layer = document.subject()
    if len(inputs(layer)) < 2:
        return None
    first, second = document.edge_to(layer, 0), document.edge_to(layer, 1)
    second.set("to-port", first.get("to-port", ""))
    spots: list[Spot] = [(first, "to-port"), (second, "to-port"), inputs(layer)[1]]
    return defect("two edges into one port", "and none into the next", document, "E207 E208", spots, [layer])


@on(14)
def no_edge(document: Document) -> Made:
    layer = document.subject()
    number = len(inputs(layer)) - 1
    document.root.find("edges").remove(document.edge_to(layer, number))  # type: ignore[union-attr]
    return defect("missing edge", "into an input", document, "E208", [inputs(layer)[number]], [layer])


@on(6)
def no_edge_to_result(document: Document) -> Made:
    layer = document.find("Result")
    document.root.find("edges").remove(document.edge_to(layer))  # type: ignore[union-attr]
    return defect("missing edge", "into a Result", document, "E208", [inputs(layer)[0]], [layer])


@on(10)
def cycle(document: Document) -> Made:
    layer = document.subject()
    edge = document.edge_to(layer)
    edge.set("from-layer", layer.get("id", ""))
    edge.set("from-port", outputs(layer)[0].get("id", ""))
    return defect("cycle", "a layer reads itself", document, "E209", [edge, (edge, "from-layer"), layer], [layer])


# what is missing


@on(16)
def missing_layer_attribute(document: Document) -> Made:
    layer = document.subject()
    name = ("id", "name", "type", "version")[len(document.name) % 4]
    del layer.attrib[name]
    found = defect("missing attribute", f"{name} of a layer", document, "E201", [layer], [layer])
    bare = "-1" if name == "id" else layer.get("id"), "" if name == "name" else layer.get("name")
    return replace(found, layers=frozenset({f"{bare[0]} {bare[1]}"}))


@on(10)
def missing_port_id(document: Document) -> Made:
    layer = document.subject()
    port = (inputs(layer) if len(document.name) % 2 else outputs(layer))[0]
    del port.attrib["id"]
    return defect("missing attribute", "id of a port", document, "E201", [port], [layer])


@on(12)
def missing_edge_attribute(document: Document) -> Made:
    layer = document.subject()
    edge = document.edge_to(layer)
    del edge.attrib[("from-layer", "from-port", "to-layer", "to-port")[len(document.name) % 4]]
    return defect("missing attribute", "of an edge", document, "E201", [edge])


@on(6)
def missing_input(document: Document) -> Made:
    """Port and edge of the first input, which every op needs."""
    layer = document.subject()
    document.root.find("edges").remove(document.edge_to(layer))  # type: ignore[union-attr]
    layer.find("input").remove(inputs(layer)[0])  # type: ignore[union-attr]
    if inputs(layer):
        return None
    return defect("number of ports", "no input", document, "E302", [layer], [layer])


@on(16)
def spare_input(document: Document) -> Made:
    layer = document.subject()
    if layer.get("type") in ("Concat", "Einsum", "If", "Loop", "TensorIterator") or "Feature" in document.op:
        return None
    for number in range(4):
        port = deepcopy(inputs(layer)[0])
        port.set("id", str(70 + number))
        edge = deepcopy(document.edge_to(layer))
        edge.set("to-port", port.get("id", ""))
        layer.find("input").append(port)  # type: ignore[union-attr]
        document.root.find("edges").append(edge)  # type: ignore[union-attr]
    return defect("number of ports", "spare inputs", document, "E302", [layer, *inputs(layer)[-4:]], [layer])


@on(16)
def spare_output(document: Document) -> Made:
    layer = document.subject()
    if layer.get("type") in ("If", "Loop", "TensorIterator", "Split", "VariadicSplit"):
        return None
    port = deepcopy(outputs(layer)[0])
    port.set("id", "90")
    layer.find("output").append(port)  # type: ignore[union-attr]
    return defect("number of ports", "a spare output", document, "E302", [port], [layer])


@on(8)
def no_result(document: Document) -> Made:
    for layer in [each for each in document.layers if each.get("type") == "Result"]:
        document.root.find("edges").remove(document.edge_to(layer))  # type: ignore[union-attr]
        document.root.find("layers").remove(layer)  # type: ignore[union-attr]
    return defect("no Result", "at all", document, "E212", [document.root])


@on(4)
def no_edges(document: Document) -> Made:
    document.root.remove(document.root.find("edges"))  # type: ignore[arg-type]
    return defect("no <layers> or <edges>", "no <edges>", document, "E112", [document.root])


@on(4)
def misspelt_layers(document: Document) -> Made:
    element = document.root.find("layers")
    element.tag = "layer_list"  # type: ignore[union-attr]
    document.root.remove(document.root.find("edges"))  # type: ignore[arg-type]
    spots: list[Spot] = [document.root, element]  # type: ignore[list-item]
    return defect("no <layers> or <edges>", "no <layers>", document, "E111 E220", spots, also=("E112",))


@on(4)
def misspelt_layers_with_edges(document: Document) -> Made:
    element = document.root.find("layers")
    element.tag = "Layers"  # type: ignore[union-attr]
    return defect("no <layers> or <edges>", "no <layers> for the edges", document, "E220", [element])  # type: ignore[list-item]


@on(4)
def misspelt_edges(document: Document) -> Made:
    element = document.root.find("edges")
    element.tag = "edge"  # type: ignore[union-attr]
    return defect("no <layers> or <edges>", "<edge> for <edges>", document, "E220", [element])  # type: ignore[list-item]


# what is there, but not read


def _dangling(document: Document) -> Element:
    """A copy of the subject that nothing reads."""
    layer = document.subject()
    copy = deepcopy(layer)
    copy.set("id", "500")
    copy.set("name", "left_over")
    for number in range(len(inputs(layer))):
        edge = deepcopy(document.edge_to(layer, number))
        edge.set("to-layer", "500")
        document.root.find("edges").append(edge)  # type: ignore[union-attr]
    document.root.find("layers").append(copy)  # type: ignore[union-attr]
    return copy


@on(12)
def unreachable(document: Document) -> Made:
    layer = _dangling(document)
    return defect("unreachable layer", "nothing reads it", document, "W904", [layer], [layer])


@on(12)
def unreachable_and_unknown(document: Document) -> Made:
    layer = _dangling(document)
    layer.set("type", "Bogus")
    return defect("unreachable layer", "of no known type", document, "E301", [(layer, "type")], [layer], also=("W904",))


@on(12)
def unreachable_and_malformed(document: Document) -> Made:
    layer = _dangling(document)
    data = layer.find("data")
    if data is None:
        return None
    data.set("bogus", "1")
    return defect(
        "unreachable layer", "with an odd attribute", document, "W930", [(data, "bogus")], [layer], also=("W904",)
    )


@on(10)
def second_data(document: Document) -> Made:
    layer = document.subject()
    if layer.find("data") is None:
        return None
    second = deepcopy(data_of(layer))
    layer.insert(1, second)
    return defect("second <data>", "the same again", document, "W901", [second], [layer])


@on(16)
def second_data_with_the_attributes(document: Document) -> Made:
    layer = document.subject()
    if layer.find("data") is None:
        return None
    first, second = data_of(layer), ET.Element("data")
    for name in list(first.attrib)[len(first.attrib) // 2 :]:
        second.set(name, first.attrib.pop(name))
    layer.insert(1, second)
    spots: list[Spot] = [second, first, *((second, name) for name in second.attrib)]
    return defect(
        "second <data>", "with half of the attributes", document, "W901 E306 E401", spots, [layer], stale=True
    )


@on(16)
def attribute_on_layer(document: Document) -> Made:
    layer = document.subject()
    if layer.find("data") is None:
        return None
    name = next(iter(data_of(layer).attrib))
    layer.set(name, data_of(layer).attrib.pop(name))
    if name in ("name", "type", "id", "version"):
        return None
    spots: list[Spot] = [(layer, name), data_of(layer)]
    return defect("attribute on <layer>", "one of the op", document, "W902 E306 E401", spots, [layer], stale=True)


@on(6)
def unknown_attribute_on_layer(document: Document) -> Made:
    layer = document.subject()
    layer.set("device", "CPU")
    return defect("attribute on <layer>", "another one", document, "W902", [(layer, "device")], [layer])


@on(6)
def unknown_element(document: Document) -> Made:
    layer = document.subject()
    child = ET.SubElement(layer, "blobs")
    return defect("unknown element", "<blobs>", document, "W907", [child], [layer])


@on(8)
def misspelt_output(document: Document) -> Made:
    layer = document.subject()
    child = layer.find("output")
    child.tag = "outputs"  # type: ignore[union-attr]
    return defect("unknown element", "<outputs>", document, "E220", [child], [layer])  # type: ignore[list-item]


@on(8)
def misspelt_input(document: Document) -> Made:
    layer = document.subject()
    child = layer.find("input")
    child.tag = "inputs"  # type: ignore[union-attr]
    return defect("unknown element", "<inputs>", document, "E220", [child], [layer])  # type: ignore[list-item]


@on(6)
def second_input(document: Document) -> Made:
    layer = document.subject()
    child = deepcopy(layer.find("input"))
    layer.append(child)  # type: ignore[arg-type]
    return defect("unknown element", "a second <input>", document, "W907", [child], [layer])  # type: ignore[list-item]


@on(6)
def same_name(document: Document) -> Made:
    layer, other = document.subject(), document.layers[0]
    layer.set("name", other.get("name", ""))
    return defect("duplicate name", "of layers", document, "W903", [(layer, "name"), (other, "name")], [layer, other])


@on(6)
def same_tensor_name(document: Document) -> Made:
    layer = document.subject()
    other, port = document.source(layer)
    if other.get("type") != "Parameter":
        return None
    for each in (port, outputs(layer)[0]):
        each.set("names", "x")
    spots: list[Spot] = [(port, "names"), (outputs(layer)[0], "names")]
    return defect("duplicate name", "of tensors", document, "W906", spots, [layer, other])


@on(12)
def other_case(document: Document) -> Made:
    layer = document.subject()
    if document.op in ("PReLU", "ReLU", "SoftMax"):
        return None
    layer.set("type", document.op.upper() if document.op != document.op.upper() else document.op.lower())
    return defect("type in another case", "", document, "W908", [(layer, "type")], [layer], says=document.op)


@on(4)
def other_case_of_result(document: Document) -> Made:
    layer = document.find("Result")
    layer.set("type", "result")
    return defect("type in another case", "Result", document, "E221", [(layer, "type")], [layer], says="Result")


@on(4)
def other_case_of_parameter(document: Document) -> Made:
    layer = document.layers[0]
    if layer.get("type") != "Parameter":
        return None
    layer.set("type", "PARAMETER")
    return defect("type in another case", "Parameter", document, "W908", [(layer, "type")], [layer], says="Parameter")


# texts that are no numbers


BAD_IDS = ("one", "-1", "1.0", "", "0x1", "1 2", "99999999999999999999999")
BAD_DIMS = ("?", "3x", "1..3", "", "-2", "1.5", "0x3")
BAD_PRECISIONS = ("FLOAT32", "MIXED", "", "FP31", "INT64", None)


def _texts() -> Iterator[Defect]:
    for number, text in enumerate(BAD_IDS):
        document = next(iter(spread(1, 31 * number + 2)))
        layer = document.subject()
        layer.set("id", text)
        found = defect("unreadable id", f"`{text}` of a layer", document, "E202", [(layer, "id")], [layer])
        yield replace(found, layers=frozenset())
        document = next(iter(spread(1, 31 * number + 5)))
        layer = document.subject()
        port = inputs(layer)[0]
        port.set("id", text)
        yield defect("unreadable id", f"`{text}` of a port", document, "E202", [(port, "id")], [layer])
        document = next(iter(spread(1, 31 * number + 9)))
        edge = document.edge_to(document.subject())
        name = ("from-layer", "from-port", "to-layer", "to-port")[number % 4]
        edge.set(name, text)
        yield defect("unreadable id", f"`{text}` as {name}", document, "E202", [(edge, name)])
    for number, text in enumerate(BAD_DIMS):
        for document in spread(2, 13 * number + 1):
            layer = document.subject()
            ports = [port for port in (*outputs(layer), *inputs(layer)) if len(port)]
            if ports:
                dim = ports[0][0]
                dim.text = text
                yield defect("unreadable dimension", f"`{text}`", document, "E211", [dim], [layer])
    for number, precision in enumerate(BAD_PRECISIONS):
        for document in spread(2, 11 * number + 3):
            layer = document.subject()
            port = outputs(layer)[0]
            if precision is None:
                del port.attrib["precision"]
                yield defect("unknown precision", "none", document, "E210", [port], [layer])
            else:
                port.set("precision", precision)
                yield defect("unknown precision", f"`{precision}`", document, "E210", [(port, "precision")], [layer])


def _in_samples() -> Iterator[Defect]:
    """Breaks in the middle of models, where a failed layer must not blame its readers."""
    for name in ("cnn", "transformer-block", "stateful-loop"):
        whole = seed(name)
        for position in range(len(whole.layers)):
            document = seed(name)
            layer = document.layers[position]
            if layer.get("type") in ("Parameter", "Const", "Result", "ReadValue", "Assign"):
                continue
            layer.set("type", "Bogus")
            yield defect("op", f"unknown, number {position}", document, "E301", [(layer, "type")], [layer])
        document = seed(name)
        layers = [each for each in document.layers if inputs(each) and outputs(each)]
        first, last = layers[0], layers[-1]
        edge = document.edge_to(first)
        edge.set("from-layer", last.get("id", ""))
        edge.set("from-port", outputs(last)[0].get("id", ""))
        edges = [document.edge_to(each, n) for each in layers for n in range(len(inputs(each)))]
        yield defect("cycle", "over all layers", document, "E209", edges, layers)
