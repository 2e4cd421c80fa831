"""From `<layer>` elements to layers with their ports and values; what connects them is in edges and bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable

from irrun.ir.bodies import holds_part, parts_of_bodies
from irrun.ir.findings import Findings
from irrun.ir.graph import OF_LAYER, Graph, Layer, Port, Value
from irrun.ir.plain import PlainLayer
from irrun.ir.runtime import check_info
from irrun.ir.unread import (
    INPUT_ATTRIBUTES,
    MOVE,
    PORT_ATTRIBUTES,
    joined,
    members,
    report_attributes,
    report_children,
    report_element,
)
from irrun.ir.xml import Deferred, Element
from irrun.spec.dtypes import ELEMENT_TYPES, PRECISIONS
from irrun.spelling import advice, close_matches, misspelt

BODY_TAGS = ("body", "then_body", "else_body")
MAP_TAGS = ("port_map", "then_port_map", "else_port_map", "back_edges")
UNKNOWN_ID = -1
"""The id of a layer or port that has none or a bad one."""

_EXACT = {name.lower(): name for name in ("Parameter", "Result", "ReadValue", "Assign")}
_CHILDREN = frozenset({"data", "input", "output", "rt_info", *BODY_TAGS, *MAP_TAGS})
_OUTPUT_NAMES = "output_names"
"""An attribute that only a Result has on its <layer>."""
_WITHOUT = {"Parameter": ("input",), "Const": ("input",), "Result": ("output",)}
"""Lists of ports that layers of a type have not."""
_WITH_DATA = {"Parameter": {"element_type", "shape"}, "Const": {"element_type", "shape", "offset", "size"}}
"""Attributes by which the <data> of a layer is known."""

_DIM = re.compile(r"\s*(-1|\+?\d{1,19})\s*", re.ASCII)
_COMMA = re.compile(r"(?<!\\),")
_CANONICAL = {type.precision for type in ELEMENT_TYPES.values()}
_TOLERATED = {*ELEMENT_TYPES, "bin", "U1", "undefined"}
"""What OpenVINO reads as a precision, too."""

_DIM_HELP = "a size in digits, or -1 where it is unknown; ranges belong into the `shape` of a Parameter"


def read_layers(graph: Graph, findings: Findings) -> bool:
    """Fill `graph.layers`, without connections. False where there is nothing to read, which is reported."""
    layers = joined(graph, "layers", findings)
    if not layers:
        help = "OpenVINO reads this as a model of no layers"
        message = f"<{graph.element.tag}> has no <layers>"
        findings.add("E111", message, graph.element, graph=graph, layer=graph.owner, help=help)
        graph.unsure = True
        return False
    if not any(listed.children for listed in layers) and any(
        listed.children for listed in graph.element.findall("edges")
    ):
        help = "the edges name layers that are not there: was the list cut off?"
        findings.add("E111", "<layers> is empty", layers[0], graph=graph, layer=graph.owner, help=help)
        graph.unsure = True
        return False
    report_children(graph, findings)
    if any(not child.deferred for child in layers[0].children):
        _lift_layers(layers[0], graph, findings)
    graph.layers = [
        _layer(child, graph, findings) for child in members(layers[0], "layer", findings, graph, graph.owner)
    ]
    for listed in layers[1:]:  # which is reported, and may be a copy of the first one
        taken = {str(layer.id) for layer in graph.layers}
        more = members(listed, "layer", findings, graph, graph.owner)
        graph.layers += [_layer(child, graph, findings) for child in more if child.attributes.get("id") not in taken]
    for layer in graph.layers:
        if len(layer.outputs) + len(layer.input_ports) == 1 and _may_be_an_end(layer):
            _take_for_meant(layer, findings)
        if layer.marked and layer.type != "Result" and _OUTPUT_NAMES in layer.element.attributes:
            _report_lost_output(layer, findings)
    return True


def _layer(element: Element, graph: Graph, findings: Findings) -> Layer:
    if isinstance(element, Deferred) and (plain := element.take()) is not None:
        return _plain_layer(element, plain, graph)
    return _written_layer(element, graph, findings)


def _plain_layer(element: Deferred, plain: PlainLayer, graph: Graph) -> Layer:
    """A layer of which there is nothing to report."""
    id, name, type, version, attributes, has_data, has_info, taken, given = plain
    count = len(taken)
    ports = [
        Port(port, precision, dims, tensor_names(names) if names else (), element, number)
        for number, (port, precision, names, dims) in enumerate(taken + given)
    ]
    layer = Layer(
        id, name, type, version, attributes, element, None, graph, ports[:count], [None] * count, [None] * count
    )
    layer.outputs = [Value(layer, index, port) for index, port in enumerate(ports[count:])]
    if has_data:
        del layer.data
    if has_info:
        del layer.rt_info
    return layer


def _written_layer(element: Element, graph: Graph, findings: Findings) -> Layer:
    _lift_data(element, graph, findings)
    given = element.attributes
    type = _EXACT.get(given.get("type", "").lower(), given.get("type", ""))
    layer = Layer(
        UNKNOWN_ID, given.get("name", ""), type, given.get("version", ""), {}, element, element.find("data"), graph
    )
    if "id" in given:
        layer.id = _known(findings.whole(element, "id", graph))
    findings.lacks(element, OF_LAYER, graph, layer)
    if layer.data:
        layer.attributes = layer.data.attributes
    if type == "Result" and _OUTPUT_NAMES in given:
        layer.attributes = {**layer.attributes, _OUTPUT_NAMES: given[_OUTPUT_NAMES]}
    if type != given.get("type", ""):
        _report_case(layer, given["type"], findings)
    if type.lower() == "constant" or (type.lower() == "const" and type != "Const"):
        does = f"loads a layer `{type}` with uninitialised memory" if len(type) > len("Const") else "refuses the model"
        help = f"write `Const`, exactly so; OpenVINO {does}"
        findings.add("E217", f"`{type}` is not a layer type of the IR", element, "type", layer=layer, help=help)
    _children(layer, findings)
    return layer


def _may_be_an_end(layer: Layer) -> bool:
    """Whether a layer of one port has the form of a Parameter or a Result, but another type, or none."""
    data = _WITH_DATA["Parameter"] if layer.outputs else set()
    return layer.type not in ("Parameter", "Result") and layer.attributes.keys() == data


def _take_for_meant(layer: Layer, findings: Findings) -> None:
    """Take a layer for a Parameter or a Result, where its type is missing, or near to that; the latter is reported.

    Else all that builds on these would be reported, too.
    """
    meant, words = ("Parameter", ("Parameter", "Input")) if layer.outputs else ("Result", ("Result", "Output"))
    if "type" not in layer.element.attributes:  # which is reported
        layer.type = meant
    elif layer.version.startswith("opset") and close_matches(layer.type, words):
        message = f"unknown op `{layer.type}` of {layer.version}"
        help = advice(layer.type, meant)
        layer.type = meant
        findings.add("E301", message, layer.element, "type", layer=layer, help=help)


def _report_lost_output(layer: Layer, findings: Findings) -> None:
    """Report a layer without outputs which has names for one as only a Result has, and take it for that."""
    if layer.outputs or len(layer.input_ports) > 1:
        return
    message = f"a layer of type `{layer.type}` is no output, but has the names of one"
    help = "did you mean `Result`? OpenVINO drops the layer, and all that only leads to it"
    findings.add("E225", message, layer.element, "type", layer=layer, help=help)
    layer.type = "Result"


def _report_case(layer: Layer, written: str, findings: Findings) -> None:
    message = f"the type is written `{written}`, but is spelt `{layer.type}` in an IR"
    if layer.type in ("Result", "Assign"):
        help = f"OpenVINO drops the layer, and all that only leads to it, unless it is of type `{layer.type}` exactly"
        findings.add("E221", message, layer.element, "type", layer=layer, help=help)
    else:
        help = "OpenVINO ignores the case of this type, other readers of the file do not"
        findings.add("W908", message, layer.element, "type", layer=layer, help=help)


def _lift_layers(listed: Element, graph: Graph, findings: Findings) -> None:
    """Report a layer in another one, and a <data> before its layer, and read them as if they stood where they should.

    It may be that a line was moved, so that what follows the layer inside of the other one is its own.
    """
    lifted: list[Element] = []
    data: Element | None = None
    for child in listed.children:
        lifted.append(child)
        if child.tag != "layer" or (child.deferred and data is None):
            data = child if child.tag == "data" else None
            continue
        if data is not None and child.find("data") is None:
            lifted.remove(data)
            message, help = "<data> is not read in <layers>", "move it into the layer behind it, which has no other one"
            findings.add("E220", message, data, graph=graph, help=help)
            child.children = [data, *child.children]
        data = None
        inner = child.find("layer")
        if inner is None or _is_closed_at_once(inner):  # which is a layer by mistake, and no line that was moved
            continue
        message = "<layer> is not read in another <layer>"
        findings.add("E220", message, inner, graph=graph, help="move it behind that one, with what belongs to it")
        at = child.children.index(inner)
        if inner.children:
            child.children = [each for each in child.children if each is not inner]
        else:
            child.children, inner.children = child.children[:at], child.children[at + 1 :]
        lifted.append(inner)
    listed.children = lifted


def _is_closed_at_once(element: Element) -> bool:
    """Whether an element has no end tag."""
    text = element.source.data
    end = text.find(b">", element.offset)
    return not element.children and text[end - 1 : end] == b"/"


def _lift_data(layer: Element, graph: Graph, findings: Findings) -> None:
    """Report a <data> in a list of ports, and read it as that of the layer, where it has no other one."""
    for listed in layer.children:
        data = listed.find("data") if listed.tag in ("input", "output") and listed.children else None
        if data is not None and layer.find("data") is None:
            message, help = f"<data> is not read in <{listed.tag}>", "move it out; the layer has no other one"
            findings.add("E220", message, data, graph=graph, help=help)
            listed.children = [child for child in listed.children if child is not data]
            layer.children = [data, *layer.children]
            return


def _lift_ports(layer: Layer, findings: Findings) -> None:
    """Report ports in other ones, and read them as if they stood behind these."""
    for listed in layer.element.children:
        if listed.tag not in ("input", "output"):
            continue
        for port in [child for child in listed.children if child.tag == "port"]:
            inner = [child for child in port.children if child.tag == "port" and "id" in child.attributes]
            if inner:
                message = "<port> is not read in another <port>"
                help = "move it behind that one; edges find it nowhere else"
                findings.add("E220", message, inner[0], layer=layer, help=help, remedy=MOVE)
                port.children = [child for child in port.children if child not in inner]
                port.dims = inner[0].dims = []  # one of them has those of the other one as well
                at = listed.children.index(port) + 1
                listed.children = [*listed.children[:at], *inner, *listed.children[at:]]


def _known(id: int | None) -> int:
    return UNKNOWN_ID if id is None else id


def _children(layer: Layer, findings: Findings) -> None:
    seen: set[str] = set()
    if layer.data and layer.data.children:
        for child in layer.data.children:
            report_element(child, "<data>", "an op has attributes only", findings, layer.graph, layer)
    _lift_ports(layer, findings)
    _tell_apart(layer, findings)
    for child in layer.element.children:
        if (child.tag not in _CHILDREN or child.tag in seen) and _mend(child, layer, findings):
            continue
        tag = child.tag
        if tag == "data" and tag in seen:
            layer.strays.append(child)
        elif tag in ("input", "output") and tag not in seen:
            _read_ports(child, layer, findings)
        elif tag == "rt_info" and tag not in seen:
            layer.rt_info = child
            if child.children:
                check_info(child, layer, findings)
        elif tag in seen or tag not in _CHILDREN:
            message = f"<{child.tag}> is not read here"
            help = "a layer has one each of <data>, <input>, <output>, <rt_info> and what its bodies need"
            findings.add("W907", message, child, layer=layer, help=help)
        seen.add(tag)


def _tell_apart(layer: Layer, findings: Findings) -> None:
    """Of two lists of ports with one tag, where there is none with the other, the first one is <input>, the second one
    <output>: one tag is wrong, which is reported."""
    for at, (tag, right) in enumerate((("output", "input"), ("input", "output"))):
        lists = layer.element.findall(tag)
        if len(lists) != 2 or layer.element.find(right) is not None or right in _WITHOUT.get(layer.type, ()):
            continue
        first, second = ({port.attributes.get("id") for port in listed.children} for listed in lists)
        if first and second and first.isdisjoint(second):
            message = f"the {('first', 'second')[at]} <{tag}> is not what it says: the layer has two, but no <{right}>"
            help = f"write <{right}>; edges find no ports otherwise"
            findings.add("E220", message, lists[at], layer=layer, help=help)
            lists[at].tag = right


def _mend(child: Element, layer: Layer, findings: Findings) -> bool:
    """Report a misspelt or second child of a layer whose content is lost, and read it as what it is meant for.

    One of another tag gets the right one; True where it is read by now: the ports of a second <input> or <output>, and
    a second part of a body where the first one is empty.
    """
    listed = child.find("port") is not None
    first = layer.element.find(child.tag)
    if first is not None and child.tag in parts_of_bodies(layer.type) and child.children and not first.children:
        help = "move what it holds into the first one; OpenVINO goes on without it"
        findings.add("E220", f"a second <{child.tag}> is not read", child, layer=layer, help=help)
        first.children = child.children
        return True
    first = first if child.tag in ("input", "output") else None
    if first is not None and {port.attributes.get("id") for port in child.children} - {
        port.attributes.get("id") for port in first.children
    }:
        layer.broken = layer.broken or first.find("port") is not None
        help = "move its ports into the first one; edges do not find them otherwise"
        findings.add("E220", f"a second <{child.tag}> is not read", child, layer=layer, help=help)
        _read_ports(child, layer, findings)
        return True
    words = ("input", "output") if listed else parts_of_bodies(layer.type)
    right = None
    if child.tag not in _CHILDREN:
        words = (*words, "data") if layer.data is None and child.attributes else words
        right = next(iter(close_matches(child.tag, words)), None) or _by_content(child, layer)
    if right is not None and layer.element.find(right) is None:
        message = f"<{child.tag}> is not read: the layer has no <{right}>"
        help = f"write <{right}>; {'edges find no ports otherwise' if listed else 'OpenVINO goes on without it'}"
        findings.add("E220", message, child, layer=layer, help=help)
        child.tag = right
        if right == "data":
            layer.data, layer.attributes = child, child.attributes
    return False


def _by_content(child: Element, layer: Layer) -> str | None:
    """What a child of a layer stands for by what it holds, where just one such part is missing."""
    if layer.type in _WITH_DATA and child.attributes.keys() >= _WITH_DATA[layer.type]:
        parts = ["data"]
    elif child.find("port") is not None:
        parts = [tag for tag in ("input", "output") if tag not in _WITHOUT.get(layer.type, ())]
    else:
        parts = [tag for tag in parts_of_bodies(layer.type) if holds_part(child, tag)]
    missing = [tag for tag in parts if layer.element.find(tag) is None]
    return missing[0] if len(missing) == 1 else None


def _read_ports(element: Element, layer: Layer, findings: Findings) -> None:
    """Add the ports in an <input> or <output> to those of the layer."""
    ports = _ports(element, layer, findings, output=element.tag == "output")
    if element.tag == "output":
        layer.outputs += [Value(layer, index, port) for index, port in enumerate(ports, len(layer.outputs))]
        return
    layer.input_ports += ports
    layer.inputs += [None] * len(ports)
    layer.input_edges += [None] * len(ports)


def _ports(element: Element, layer: Layer, findings: Findings, *, output: bool) -> list[Port]:
    ports: list[Port] = []
    ids: dict[int, tuple[int, Element]] = {}
    inputs = layer.element.find("input") if output else None
    start = len(inputs.children) if inputs else 0
    for position, child in enumerate(members(element, "port", findings, layer.graph, layer), start):
        given = child.attributes
        known = PORT_ATTRIBUTES if output else INPUT_ATTRIBUTES
        meant = misspelt(("precision",), given, known) if output and "precision" not in given else None
        typo = None if meant is None else meant[1]
        if not given.keys() <= known and "id" in given:
            report_attributes(child, known if typo is None else {*known, typo}, findings, layer.graph, layer)
        if child.tag != "port":
            child.dims = [*child.findall("dim")]
        elif child.children:
            _read_inside(child, layer, findings)
        id = UNKNOWN_ID
        if "id" in given or not findings.lacks(child, ("id",), layer.graph, layer):
            id = _known(findings.whole(child, "id", layer.graph, layer))
        if id in ids and id != UNKNOWN_ID:
            first, other = ids[id]
            wrong = other if id == position != first else child
            message = f"port id {id} is used twice in <{element.tag}>"
            help = "edges name ports by id, so each needs its own"
            findings.add("E204", message, wrong, "id", layer=layer, help=help)
            layer.broken = True
        ids.setdefault(id, (position, child))
        written = given.get("precision", "")
        precision = PRECISIONS.get(written.lower())
        if written not in _CANONICAL and (output or "precision" in given):
            precision = _report_precision(child, precision, layer, findings, typo, output=output)
        ports.append(Port(id, precision, _dims(child, layer, findings), tensor_names(given.get("names", "")), child))
    return ports


def _read_inside(port: Element, layer: Layer, findings: Findings) -> None:
    """Look at the children of a port beside its <dim>s; where one may be a misspelt <dim>, no sizes are declared."""
    info = port.find("rt_info")
    for child in port.children:
        if child is not info:
            report_element(child, "<port>", "it holds <dim>s, and one <rt_info>", findings, layer.graph, layer)
            bare = not child.attributes and not child.children
            port.dims = [] if bare or close_matches(child.tag, ("dim",)) else port.dims
    if info is not None and info.children:
        check_info(info, layer, findings, port)


def _report_precision(
    port: Element, known: str | None, layer: Layer, findings: Findings, typo: str | None, *, output: bool
) -> str | None:
    """Report what is written in place of a precision; `known` is the element type that it stands for, and `typo` the
    attribute that is there in place of `precision`.

    What comes back is what the port declares with it: nothing where that is an error.
    """
    help = "`FP32`, `FP16`, `I64`, `I32`, `BOOL`, `STRING` and the like; `UNSPECIFIED` where it is not known"
    text = port.attributes.get("precision")
    if text is None:
        help = help if typo is None else f"`{typo}` is not read: {advice(typo, 'precision')}"
        findings.add("E210", "an output port needs a `precision`", port, typo, layer=layer, help=help)
    elif text in _TOLERATED or (known is not None and not output):
        help = "OpenVINO reads it" if text in _TOLERATED else "OpenVINO refuses it on output ports"
        right = ELEMENT_TYPES[known].precision if known is not None else "UNSPECIFIED"
        message = f"the precision is written `{text}`, but is spelt `{right}` in an IR"
        help = f"{help}, other readers of the file may not"
        findings.add("W908", message, port, "precision", layer=layer, help=help)
    elif output:
        help = f"did you mean `{ELEMENT_TYPES[known].precision}`? OpenVINO compares letter by letter" if known else help
        findings.add("E210", f"`{text}` is not a precision", port, "precision", layer=layer, help=help)
        return None
    else:
        help = f"{help}; OpenVINO does not read it on input ports, other tools do"
        findings.add("W932", f"`{text}` is not a precision", port, "precision", layer=layer, help=help)
    return known


def _dims(port: Element, layer: Layer, findings: Findings) -> tuple[int, ...]:
    return tuple([dim if isinstance(dim, int) else _size(dim, layer, findings) for dim in port.dims])


def _size(dim: Element, layer: Layer, findings: Findings) -> int:
    if _DIM.fullmatch(dim.text) and int(dim.text) < 2**63:
        return int(dim.text)
    message = f"`{dim.text}` is not a dimension" if dim.text.strip() else "a <dim> is empty"
    given = next(iter(dim.attributes.values()), "")
    help = f"write <dim>{given}</dim>: no attribute of it is read" if _DIM.fullmatch(given) else _DIM_HELP
    findings.add("E211", message, dim, layer=layer, help=help)
    return -1


def tensor_names(text: str) -> tuple[str, ...]:
    r"""The names in a `names` or `output_names` attribute: separated by commas, a comma within a name written `\,`."""
    if "," not in text:
        return (text,) if text else ()
    return tuple(name.replace("\\,", ",") for name in _COMMA.split(text) if name)


def names_text(names: Iterable[str]) -> str:
    """What such an attribute says of names."""
    return ",".join(name.replace(",", "\\,") for name in names)
