"""From `<layer>` elements to layers with their ports and values; what connects them is in edges and bodies."""

from __future__ import annotations

import re

from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer, Port, Value
from irrun.ir.xml import Element
from irrun.spec.dtypes import PRECISIONS
from irrun.spelling import close_matches

BODY_TAGS = ("body", "then_body", "else_body")
MAP_TAGS = ("port_map", "then_port_map", "else_port_map", "back_edges")
UNKNOWN_ID = -1
"""The id of a layer or port that has none or a bad one."""

_EXACT = {name.lower(): name for name in ("Parameter", "Result", "ReadValue", "Assign")}
_CHILDREN = frozenset({"data", "input", "output", "rt_info", *BODY_TAGS, *MAP_TAGS})
_LAYER_ATTRIBUTES = ("id", "name", "type", "version")
_DIM = re.compile(r"\s*(-1|\+?\d{1,19})\s*", re.ASCII)
_COMMA = re.compile(r"(?<!\\),")
_DIM_HELP = "a size in digits, or -1 where it is unknown; ranges belong into the `shape` of a Parameter"


def read_layers(graph: Graph, findings: Findings) -> bool:
    """Fill `graph.layers`, without connections. False where there is nothing to read, which is reported."""
    layers = graph.element.find("layers")
    if layers is None:
        help = "OpenVINO reads this as a model of no layers"
        message = f"<{graph.element.tag}> has no <layers>"
        findings.add("E111", message, graph.element, graph=graph, layer=graph.owner, help=help)
        graph.unsure = True
        return False
    graph.layers = [_layer(child, graph, findings) for child in layers.children if child.tag == "layer"]
    return True


def _layer(element: Element, graph: Graph, findings: Findings) -> Layer:
    given = element.attributes
    type = _EXACT.get(given.get("type", "").lower(), given.get("type", ""))
    layer = Layer(
        UNKNOWN_ID, given.get("name", ""), type, given.get("version", ""), {}, element, element.find("data"), graph
    )
    if "id" in given:
        layer.id = _known(findings.whole(element, "id", graph))
    findings.lacks(element, _LAYER_ATTRIBUTES, graph, layer)
    if layer.data:
        layer.attributes = layer.data.attributes
    if type == "Result" and "output_names" in given:
        layer.attributes = {**layer.attributes, "output_names": given["output_names"]}
    if type != given.get("type", ""):
        _report_case(layer, given["type"], findings)
    if type.lower() == "constant" or (type.lower() == "const" and type != "Const"):
        help = "write `Const`, exactly so; OpenVINO loads a layer `Constant` with uninitialised memory"
        findings.add("E217", f"`{type}` is not a layer type of the IR", element, "type", layer=layer, help=help)
    _children(layer, findings)
    return layer


def _report_case(layer: Layer, written: str, findings: Findings) -> None:
    message = f"the type is written `{written}`, but is spelt `{layer.type}` in an IR"
    if layer.type in ("Result", "Assign"):
        help = f"OpenVINO drops the layer, and all that only leads to it, unless it is of type `{layer.type}` exactly"
        findings.add("E221", message, layer.element, "type", layer=layer, help=help)
    else:
        help = "OpenVINO ignores the case of this type, other readers of the file do not"
        findings.add("W908", message, layer.element, "type", layer=layer, help=help)


def _known(id: int | None) -> int:
    return UNKNOWN_ID if id is None else id


def _children(layer: Layer, findings: Findings) -> None:
    seen: set[str] = set()
    for child in layer.element.children:
        tag = child.tag if child.tag in _CHILDREN else _meant(child, layer, findings)
        if tag == "data" and tag in seen:
            layer.strays.append(child)
        elif tag == "input" and tag not in seen:
            layer.input_ports = _ports(child, layer, findings, output=False)
            layer.inputs = [None] * len(layer.input_ports)
            layer.input_edges = [None] * len(layer.input_ports)
        elif tag == "output" and tag not in seen:
            ports = _ports(child, layer, findings, output=True)
            layer.outputs = [Value(layer, index, port) for index, port in enumerate(ports)]
        elif tag == "rt_info":
            layer.rt_info = layer.rt_info or child
        elif tag in seen or tag not in _CHILDREN:
            message = f"<{child.tag}> is not read here"
            help = "a layer has one each of <data>, <input>, <output>, <rt_info> and what its bodies need"
            findings.add("W907", message, child, layer=layer, help=help)
        seen.add(tag)


def _meant(child: Element, layer: Layer, findings: Findings) -> str:
    """The unknown tag of `child`; for a misspelt one that holds ports, which is reported, the right one."""
    if child.find("port") is None:
        return child.tag
    right = close_matches(child.tag, ("input", "output"))
    if not right or layer.element.find(right[0]):
        return child.tag
    message = f"<{child.tag}> is not read: the layer has no <{right[0]}>"
    findings.add("E220", message, child, layer=layer, help=f"write <{right[0]}>; edges find no ports otherwise")
    return right[0]


def _ports(element: Element, layer: Layer, findings: Findings, *, output: bool) -> list[Port]:
    ports: list[Port] = []
    ids: set[int] = set()
    for child in element.children:
        if child.tag != "port":
            continue
        given = child.attributes
        id = UNKNOWN_ID
        if "id" in given or not findings.lacks(child, ("id",), layer.graph, layer):
            id = _known(findings.whole(child, "id", layer.graph, layer))
        if id in ids and id != UNKNOWN_ID:
            message = f"port id {id} is used twice in <{element.tag}>"
            findings.add(
                "E204", message, child, "id", layer=layer, help="edges name ports by id, so each needs its own"
            )
        ids.add(id)
        precision = PRECISIONS.get(given.get("precision", "").lower())
        if output and precision is None:
            _report_precision(child, layer, findings)
        ports.append(Port(id, precision, _dims(child, layer, findings), tensor_names(given.get("names", "")), child))
    return ports


def _report_precision(port: Element, layer: Layer, findings: Findings) -> None:
    help = "`FP32`, `FP16`, `I64`, `I32`, `BOOL`, `STRING` and the like; `UNSPECIFIED` where it is not known"
    text = port.attributes.get("precision")
    if text is None:
        findings.add("E210", "an output port needs a `precision`", port, layer=layer, help=help)
    else:
        findings.add("E210", f"`{text}` is not a precision", port, "precision", layer=layer, help=help)


def _dims(port: Element, layer: Layer, findings: Findings) -> tuple[int, ...]:
    return tuple([dim if isinstance(dim, int) else _size(dim, layer, findings) for dim in port.dims])


def _size(dim: Element, layer: Layer, findings: Findings) -> int:
    if _DIM.fullmatch(dim.text) and int(dim.text) < 2**63:
        return int(dim.text)
    findings.add("E211", f"`{dim.text}` is not a dimension", dim, layer=layer, help=_DIM_HELP)
    return -1


def tensor_names(text: str) -> tuple[str, ...]:
    r"""The names in a `names` attribute: separated by commas, a comma within a name written `\,`."""
    if "," not in text:
        return (text,) if text else ()
    return tuple(name.replace("\\,", ",") for name in _COMMA.split(text) if name)
