"""The bodies of TensorIterator, Loop and If: which there must be, their port maps and back edges; the graphs inside are
read like any other."""

from __future__ import annotations

from itertools import islice, takewhile

from irrun.diagnostics import Note
from irrun.ir.findings import Findings, whole_number
from irrun.ir.graph import BackEdge, Graph, Layer, LayerBody, PortMap
from irrun.ir.unread import EDGE_ATTRIBUTES, ENTRY_ATTRIBUTES, report_attributes, report_element
from irrun.ir.xml import Element
from irrun.spec.registry import registry
from irrun.spelling import close_matches

MAP_OF = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}
NEEDED_BODIES = {"tensoriterator": ("body",), "loop": ("body",), "if": ("then_body", "else_body")}
_OF_BODIES = {*MAP_OF, *MAP_OF.values(), "back_edges"}
BRANCHES, LOOPS = {"if"}, {"loop"}
UNCONNECTED = -1
PURPOSES = {"input": "current_iteration", "output": "execution_condition"}
"""What an entry of a Loop's port map may be for, by its tag."""
_ENDS = {"input": "Parameter", "output": "Result"}
"""The type of the layers of a body that entries of a port map name."""

OF_COUNTS = 2
"""Inputs of a Loop that say how often it runs, the first ones."""

OF_SLICES = ("start", "end", "stride", "part_size")
_FROM_THE_FIRST = "count the axes from the first one, which is 0"
_MAX_DIGITS = 20
_MAX_SEARCHED = 1000
"""Layers of a body in which a help looks for ids; a file may need it a million times."""


def check_bodies(layer: Layer, findings: Findings) -> None:
    """Report bodies and port maps that a layer of its type must have, but that are not there."""
    tags = NEEDED_BODIES.get(layer.type.lower())
    if tags is None:
        return
    for tag in tags:
        for needed in (tag, MAP_OF[tag]):
            if layer.element.find(needed) is None:
                help = "without it the layer has nothing to run, or no data to run it on"
                findings.add("E216", f"a layer {layer.type} needs <{needed}>", layer.element, layer=layer, help=help)
                layer.broken = True
    if not layer.broken:
        read = parts_of_bodies(layer.type)
        for child in layer.element.children:
            if child.tag in _OF_BODIES and child.tag not in read:
                help = f"it has {', '.join(f'<{tag}>' for tag in read)}"
                report_element(child, f"a layer {layer.type}", help, findings, layer.graph, layer)


def parts_of_bodies(type: str) -> tuple[str, ...]:
    """The elements that a layer of this type has for its bodies."""
    tags = NEEDED_BODIES.get(type.lower(), ())
    return (*tags, *(MAP_OF[tag] for tag in tags), *(("back_edges",) if "body" in tags else ()))


def holds_part(element: Element, tag: str) -> bool:
    """Whether an element holds what one of `tag` has: a body, a port map or the back edges."""
    if tag in MAP_OF:
        return element.find("layers") is not None
    wanted = ("edge",) if tag == "back_edges" else PURPOSES
    return any(child.tag in wanted and _is_entry(child, tag) for child in element.children)


def _is_entry(element: Element, tag: str) -> bool:
    """Whether an element has the attributes of one of a port map or of back edges."""
    needed = {"from-layer", "to-layer"} if tag == "back_edges" else {"external_port_id", "internal_layer_id"}
    return element.attributes.keys() >= needed


def take_ends(graph: Graph, findings: Findings) -> None:
    """Take layers of a body for the Parameters and Results that its port map names them as, if they have the form of
    such and another type, which is reported: else all that builds on these would be."""
    owner = graph.owner
    port_map = None if owner is None else owner.element.find(MAP_OF[graph.element.tag])
    entries = [entry for entry in (port_map.children if port_map else ()) if entry.tag in _ENDS]
    meant = {entry.attributes.get("internal_layer_id"): _ENDS[entry.tag] for entry in entries}
    for layer in graph.layers:
        type = meant.get(str(layer.id), layer.type)
        if type == layer.type or not _has_form(layer, type) or not registry().versions(layer.type):
            continue
        message = f"the type is `{layer.type}`, but the port map names the layer as a {type}, of which it has the form"
        help = f"write `{type}`, or let the entry of the port map name another layer"
        findings.add("E213", message, layer.element, "type", layer=layer, help=help)
        layer.type = type


def _has_form(layer: Layer, type: str) -> bool:
    """Whether a layer has the ports and the attributes of a Parameter or a Result, whatever its own type is."""
    counts, names = ((0, 1), {"element_type", "shape"}) if type == "Parameter" else ((1, 0), set())
    return (len(layer.input_ports), len(layer.outputs)) == counts and layer.attributes.keys() == names


def is_body(tag: str, layer: Layer) -> bool:
    """Whether an element with this tag is a body of the layer; of a type that is not known any may be."""
    needed = NEEDED_BODIES.get(layer.type.lower())
    return tag in MAP_OF and (needed is None or tag in needed)


def maps_exchanged(layer: Layer, findings: Findings) -> bool:
    """Whether the port maps of two branches fit not these, but the other one each; then that is an error."""
    pairs = [(layer.element.find(MAP_OF[tag]), body.graph) for tag, body in layer.bodies.items()]
    if len(pairs) < 2 or any(graph.unsure for _, graph in pairs) or all(_fits(*pair) for pair in pairs):
        return False
    (one, graph), (other, other_graph) = pairs
    if one is None or other is None or not (_fits(one, other_graph) and _fits(other, graph)):
        return False
    message = f"<{one.tag}> and <{other.tag}> fit the other body each, and not their own: they seem to be exchanged"
    help = "exchange the tags of both maps, or of both bodies; which branch is which, the file does not tell"
    findings.add("E213", message, one, layer=layer, help=help, notes=(Note("the other one", other.span),))
    return True


def _fits(port_map: Element | None, graph: Graph) -> bool:
    """Whether all entries of a port map name Parameters and Results of a body."""
    ids = {tag: {str(found.id) for found in graph.layers if found.type == _ENDS[tag]} for tag in _ENDS}
    entries = port_map.children if port_map is not None else []
    return all(entry.attributes.get("internal_layer_id", "").strip() in ids.get(entry.tag, ()) for entry in entries)


def read_maps(layer: Layer, tag: str, body: LayerBody, findings: Findings) -> None:
    """Fill the port maps and back edges of `body`, which the element `tag` of `layer` holds."""
    if body.graph.unsure:  # ids that lead nowhere may do so for that reason
        return
    inner = {inside.id: inside for inside in reversed(body.graph.layers)}
    port_map = layer.element.find(MAP_OF[tag])
    complete, lost = port_map is not None, False
    for listed in (port_map, layer.element.find("back_edges") if tag == "body" else None):
        if listed is not None and listed.attributes:
            report_attributes(listed, (), findings, layer.graph, layer)
    for child in port_map.children if port_map else ():
        if child.tag in PURPOSES:
            entry = _entry(child, layer, inner, findings)
            lost |= entry is None and child.tag == "output"
            if entry:
                (body.inputs if child.tag == "input" else body.outputs).append(entry)
        else:
            _report_foreign(child, MAP_OF[tag], "<input>s and <output>s", layer, inner, findings)
        complete = complete and child.tag in PURPOSES and entry is not None
    if lost:
        _withdraw_lost(body.graph, findings)
        layer.broken = True
    fed = {entry.internal for entry in body.inputs}
    before = len(findings.diagnostics)
    _check_inputs(layer, body, findings)
    whole = not findings.errors_since(before)  # else a Parameter may be without a value for that reason
    _number_outputs(layer, body, complete, findings)
    edges = layer.element.find("back_edges") if tag == "body" else None
    fed_back: set[Layer] = set()
    sliced = {entry.internal: entry for entry in body.inputs if entry.axis is not None}
    for edge in edges.children if edges else ():
        if edge.tag != "edge":
            _report_foreign(edge, "back_edges", "<edge>s", layer, inner, findings)
            continue
        back = _back_edge(edge, layer, fed_back, inner, findings)
        if back:
            body.back_edges.append(back)
            fed_back.add(back.parameter)
            if complete and whole and back.parameter not in fed:
                _report_no_start(back, layer, findings)
            elif whole and back.parameter in sliced:
                _warn_of_sliced(back, sliced[back.parameter], layer, findings)
    if complete and whole:
        _report_unfed(body, fed, findings)
    if complete:
        _check_purposes(layer, body, findings)


def _withdraw_lost(graph: Graph, findings: Findings) -> None:
    """Say no more that a body has no Result, or that a layer reaches none: an entry names one that is not there."""
    if len(findings.diagnostics) <= _MAX_SEARCHED:
        labels = {layer.label for layer in graph.layers}
        for found in findings.diagnostics:
            if (found.code == "E212" and found.span == graph.element.span) or (
                found.code == "W904" and found.layer in labels
            ):
                findings.diagnostics.remove(found)
                return


def _entry(element: Element, layer: Layer, inner: dict[int, Layer], findings: Findings) -> PortMap | None:
    if findings.lacks(element, ("external_port_id", "internal_layer_id"), layer.graph, layer):
        return None
    if not element.attributes.keys() <= ENTRY_ATTRIBUTES:
        report_attributes(element, ENTRY_ATTRIBUTES, findings, layer.graph, layer)
    for child in element.children:
        report_element(child, f"<{element.tag}>", "it has attributes only", findings, layer.graph, layer)
    before = len(findings.diagnostics)
    external = findings.integer(element, "external_port_id", UNCONNECTED, layer)
    if external < UNCONNECTED:
        message = f"`external_port_id` is {external}, but must be a port number, or -1 for none"
        help = "an <input> has the number of an input of the layer, from 0 on, an <output> the id of an output port"
        findings.add("E213", message, element, "external_port_id", layer=layer, help=help)
    internal = _inside(element, "internal_layer_id", _ENDS[element.tag], "E213", layer, inner, findings)
    axis = findings.integer(element, "axis", 0, layer) if "axis" in element.attributes else None
    if axis is not None and axis < 0 and element.tag == "input":
        help = f"OpenVINO reads none from the end here, as the page has them: {_FROM_THE_FIRST}"
        findings.add("E213", f"`axis` is {axis}, but must be 0 or more", element, "axis", layer=layer, help=help)
    start, end = findings.integer(element, "start", 0, layer), findings.integer(element, "end", -1, layer)
    stride, size = findings.integer(element, "stride", 1, layer), findings.integer(element, "part_size", 1, layer)
    purpose = element.attributes.get("purpose", "")
    if internal is None or len(findings.diagnostics) > before:
        return None
    branch = layer.type.lower() in BRANCHES
    if (axis is None or branch) and any(name in element.attributes for name in ("axis", *OF_SLICES)):
        _warn_of_no_axis(element, branch, layer, findings)
        axis = None
    if axis is not None and axis < 0:
        what = "counted from the end, which OpenVINO's plugin does only where it unrolls the loop"
        findings.add("W944", f"`axis` is {axis}, {what}", element, "axis", layer=layer, help=_FROM_THE_FIRST)
    return PortMap(external, internal, axis, start, end, stride, size, purpose, element)


def _inside(
    element: Element, name: str, type: str, code: str, layer: Layer, inner: dict[int, Layer], findings: Findings
) -> Layer | None:
    """The layer of the body that the attribute `name` names by its id, if it is of `type`."""
    id = findings.whole(element, name, layer.graph, layer)
    if id is None:
        return None
    found = inner.get(id)
    if found is None and id in _named_by_edges(inner):  # which is reported
        layer.broken = True
    elif found is None and (layer, id) not in findings.nowhere:
        findings.nowhere.add((layer, id))
        ids = sorted(inside.id for inside in islice(inner.values(), _MAX_SEARCHED) if inside.type == type)
        help = f"the body has no {type}, which `{name}` is to name"
        help = f"the {type}s of the body have the ids {', '.join(map(str, ids[:8]))}" if ids else help
        findings.add(code, f"there is no layer {id} in the body", element, name, layer=layer, help=help)
    elif found and found.type != type:
        layer.broken = True
        if registry().versions(found.type):  # a missing or unknown one is reported
            notes = (Note("this layer", found.span),)
            message = f"layer {found} of the body is not a {type}"
            ids = [inside.id for inside in islice(inner.values(), _MAX_SEARCHED) if inside.type == type]
            help = f"`{name}` names a {type} of the body: {', '.join(map(str, sorted(ids)[:8]))}"
            findings.add(code, message, element, name, layer=layer, notes=notes, help=help if ids else None)
        return None
    return found


def _named_by_edges(inner: dict[int, Layer]) -> set[int | None]:
    """The ids of layers that the edges of a body name."""
    graph = next((layer.graph for layer in inner.values()), None)
    edges = graph.element.find("edges") if graph is not None else None
    found = edges.children if edges is not None else ()
    return {whole_number(edge.attributes.get(end, "")) for edge in found for end in ("from-layer", "to-layer")}


def _check_inputs(layer: Layer, body: LayerBody, findings: Findings) -> None:
    externals: dict[int, PortMap] = {}
    internals: dict[Layer, PortMap] = {}
    for entry in body.inputs:
        if entry.external >= len(layer.inputs) and layer in findings.lacking:
            continue
        if entry.external >= len(layer.inputs):
            message = f"there is no input {entry.external}: the layer has {len(layer.inputs)}"
            help = "`external_port_id` counts the inputs of the layer from 0, whatever ids its ports have"
            findings.add("E213", message, entry.element, "external_port_id", layer=layer, help=help)
            continue
        first = externals.setdefault(entry.external, entry)
        if first is not entry and entry.external != UNCONNECTED:
            _report_twice(entry, first, f"input {entry.external}", "external_port_id", layer, findings)
            continue
        first = internals.setdefault(entry.internal, entry)
        if first is not entry:
            _report_twice(entry, first, f"layer {entry.internal} of the body", "internal_layer_id", layer, findings)
    body.inputs = [entry for entry in body.inputs if entry.external < len(layer.inputs)]


def _report_twice(entry: PortMap, first: PortMap, what: str, attribute: str, layer: Layer, findings: Findings) -> None:
    notes = (Note("the first one", first.element.span),)
    help = "each input, output and Parameter stands in one entry; OpenVINO drops the second one of an external id"
    findings.add("E214", f"{what} is mapped twice", entry.element, attribute, layer=layer, notes=notes, help=help)


def _number_outputs(layer: Layer, body: LayerBody, complete: bool, findings: Findings) -> None:
    """Turn the external ids into output numbers, which are their ranks."""
    first: dict[int, PortMap] = {}
    given: dict[Layer, PortMap] = {}
    branch = layer.type.lower() in BRANCHES
    before = len(findings.diagnostics)
    for entry in body.outputs:
        other = first.setdefault(entry.external, entry)
        if other is not entry and entry.external != UNCONNECTED:
            _report_twice(entry, other, f"output {entry.external}", "external_port_id", layer, findings)
        elif branch and (other := given.setdefault(entry.internal, entry)) is not entry:  # of a loop it may be several
            what = f"layer {entry.internal} of the body"
            _report_twice(entry, other, what, "internal_layer_id", layer, findings)
    rank = {external: number for number, external in enumerate(sorted(first.keys() - {UNCONNECTED}))}
    ids = {value.port.id for value in layer.outputs if value.port.id >= 0}
    told = layer in findings.lacking or len(ids) < len(layer.outputs)  # of ports without ids of their own
    if complete and len(rank) == len(layer.outputs) and not told:
        _warn_of_numbers(layer, first, rank, findings)
    inner = [entry for entry in body.outputs if entry.purpose and entry.external != UNCONNECTED]
    for entry in body.outputs:
        entry.external = rank.get(entry.external, UNCONNECTED)
    beyond = [entry for entry in body.outputs if entry.external >= len(layer.outputs)]
    wrong = inner if len(inner) == len(beyond) else beyond  # most have no output port for their condition
    for entry in wrong if not told else ():
        message = f"this is output number {entry.external}, but the layer has {len(layer.outputs)} output ports"
        if entry.external < len(layer.outputs):
            message = f"the layer has {len(layer.outputs)} output ports, one less than <output>s with this one"
        help = "outputs are numbered by ascending `external_port_id`, so there is one port for each of them"
        help = 'write external_port_id="-1" for a condition that is no output' if entry.purpose else help
        findings.add("E213", message, entry.element, "external_port_id", layer=layer, help=help)
    body.outputs = [entry for entry in body.outputs if entry.external < len(layer.outputs)]
    others = [other.outputs for other in takewhile(lambda other: other is not body, layer.bodies.values())]
    for value in layer.outputs[len(rank) :] if complete and not findings.errors_since(before) else ():
        if any(value.index not in {entry.external for entry in outputs} for outputs in others):
            continue  # which is reported
        message = f"no <output> of the port map of the {body.graph.element.tag} gives this output its value"
        help = "add an <output> with the id of the port, and of a Result of the body, or delete the port"
        findings.add("E213", message, value.port.element, layer=layer, help=help)


def _warn_of_numbers(layer: Layer, entries: dict[int, PortMap], rank: dict[int, int], findings: Findings) -> None:
    """One warning for external ids that are not those of the ports which they come to stand for by their rank."""
    wrong = [external for external, number in rank.items() if layer.outputs[number].port.id != external]
    if not wrong:
        return
    ids = [value.port.id for value in layer.outputs]
    strange = next((external for external in wrong if external not in ids), wrong[0])
    message = f"`external_port_id` {strange} counts as output port {ids[rank[strange]]}"
    listed = ", ".join(map(str, ids))
    help = f"outputs are numbered by ascending `external_port_id`, whatever it is; write those of the ports: {listed}"
    findings.add("W910", message, entries[strange].element, "external_port_id", layer=layer, help=help)


def _back_edge(
    edge: Element, layer: Layer, fed_back: set[Layer], inner: dict[int, Layer], findings: Findings
) -> BackEdge | None:
    if findings.lacks(edge, ("from-layer", "to-layer"), layer.graph, layer):
        return None
    if not edge.attributes.keys() <= EDGE_ATTRIBUTES:
        report_attributes(edge, EDGE_ATTRIBUTES, findings, layer.graph, layer)
    for child in edge.children:
        report_element(child, "<edge>", "it has attributes only", findings, layer.graph, layer)
    ends = [edge.attributes[name].strip() for name in ("from-layer", "to-layer")]
    first, last = (inner.get(int(end)) if end.isdecimal() and len(end) < _MAX_DIGITS else None for end in ends)
    if first is not None and last is not None and (first.type, last.type) == ("Parameter", "Result"):
        message = f"the back edge leads from layer {first} of the body to layer {last}: it is the other way round"
        help = f'write from-layer="{last.id}" to-layer="{first.id}": it hands a Result on to a Parameter'
        findings.add("E215", message, edge, "from-layer", layer=layer, help=help)
        layer.broken = True
        return None
    result = _inside(edge, "from-layer", "Result", "E215", layer, inner, findings)
    parameter = _inside(edge, "to-layer", "Parameter", "E215", layer, inner, findings)
    if result is None or parameter is None:
        return None
    if parameter in fed_back:
        message = f"layer {parameter} of the body has a second back edge"
        findings.add(
            "E215", message, edge, "to-layer", layer=layer, help="only one value can follow in the next iteration"
        )
        return None
    return BackEdge(result, parameter, edge)


def _report_foreign(
    child: Element, where: str, held: str, layer: Layer, inner: dict[int, Layer], findings: Findings
) -> None:
    """Report a child of a port map or of back edges that is none of these; what a misspelt one says is lost."""
    words = ["edge"] if where == "back_edges" else [*PURPOSES]
    close = close_matches(child.tag, words)
    if (close and child.attributes) or _is_entry(child, where):
        message = f"<{child.tag}> is not read: in <{where}> stand {held}"
        help = f"write <{close[0] if close else _meant(child, words, inner)}>; OpenVINO goes on without the element"
        findings.add("E220", message, child, layer=layer, help=help)
        layer.broken = True
    else:
        report_element(child, f"<{where}>", f"it holds {held}", findings, layer.graph, layer)


def _meant(child: Element, words: list[str], inner: dict[int, Layer]) -> str:
    """Which of the `words` an entry of another tag stands for: one of a port map names a Parameter or a Result."""
    id = child.attributes.get("internal_layer_id", "")
    named = inner.get(int(id)) if id.isdecimal() and len(id) < _MAX_DIGITS else None
    return words[-1] if named is not None and named.type == "Result" else words[0]


def _warn_of_no_axis(element: Element, branch: bool, layer: Layer, findings: Findings) -> None:
    names = [name for name in ("axis", *OF_SLICES) if name in element.attributes]
    listed = ", ".join(f"`{name}`" for name in names)
    what = "each iteration gets all of the input" if element.tag == "input" else "the output is the last iteration's"
    help = f"delete {listed}" if branch else f"give the `axis` that is meant, or delete {listed}"
    verb = "means" if len(names) == 1 else "mean"
    message = f"{listed} {verb} nothing here: a branch gets all of the input" if branch else ""
    message = message or f"{listed} without `axis` {verb} nothing: {what}"
    findings.add("W944", message, element, names[0], layer=layer, help=help)


def _warn_of_sliced(back: BackEdge, entry: PortMap, layer: Layer, findings: Findings) -> None:
    notes = (Note("its slices", entry.element.span),)
    help = "a Parameter has either a slice in each iteration or the value of the one before: delete `axis` or the edge"
    message = f"the back edge to layer {back.parameter} of the body has no effect: its <input> is sliced"
    findings.add("W943", message, back.element, "to-layer", layer=layer, notes=notes, help=help)


def _check_purposes(layer: Layer, body: LayerBody, findings: Findings) -> None:
    """Report entries without a port that have no purpose either, purposes that nothing knows, and conditions twice."""
    if layer.type.lower() not in NEEDED_BODIES:  # an op that nobody knows, which is reported, or one of a package
        return
    loop = layer.type.lower() in LOOPS
    conditions = [entry for entry in body.outputs if entry.purpose == PURPOSES["output"]]
    counted = any(entry.external == UNCONNECTED and entry.purpose == PURPOSES["input"] for entry in body.inputs)
    if not loop and conditions and counted:
        message = (
            f"a {layer.type} has neither `{PURPOSES['input']}` nor `{PURPOSES['output']}`, but the port map has both"
        )
        help = 'is type="Loop" meant?'
        findings.add("E213", message, layer.element, "type", layer=layer, help=help)
        return
    if loop and not conditions and (wrong := next((entry for entry in body.outputs if entry.purpose), None)):
        help = f'write purpose="{PURPOSES["output"]}"; a Loop needs one result that says whether to go on'
        message = f"the purpose `{wrong.purpose}` means nothing here"
        findings.add("E213", message, wrong.element, "purpose", layer=layer, help=help)
        return
    if loop and len({entry.internal for entry in conditions}) > 1:
        first, second = conditions[:2]
        notes = (Note("the first one", first.element.span),)
        help = "one result decides whether the loop goes on: delete the `purpose` of the other"
        message = f"layer {second.internal} of the body is a second `execution_condition`"
        findings.add("E214", message, second.element, "purpose", layer=layer, notes=notes, help=help)
        conditions = []
    for entry in conditions[1:] if loop else ():
        help = "one <output> says which result decides whether the loop goes on"
        message = "the `execution_condition` is named twice"
        findings.add("W942", message, entry.element, "purpose", layer=layer, help=help)
    whole = {entry.external for entry in body.outputs}.issuperset(value.index for value in layer.outputs)
    for entry in body.outputs if whole and (conditions or not loop) else ():  # else it is reported what is missing
        if entry.external == UNCONNECTED and not entry.purpose:
            help = 'write the id of an output port, or, of a Loop, purpose="execution_condition"; or delete the entry'
            message = "this entry gives no output a value, and has no purpose"
            findings.add("W942", message, entry.element, "external_port_id", layer=layer, help=help)
    fed_back = {edge.parameter for edge in body.back_edges}
    for tag, entries in (("input", body.inputs), ("output", body.outputs)):
        for entry in entries:
            right = PURPOSES[tag]
            known = loop and entry.purpose == right
            if tag == "input" and entry.external == UNCONNECTED and not known:
                help = "`external_port_id` is the number of an input of the layer, from 0 on"
                if loop and entry.purpose:
                    help = f'write purpose="{right}" if it counts the iterations; {help}'
                elif loop:
                    help += f'; without one the entry needs purpose="{right}"'
                name = "purpose" if loop and entry.purpose else "external_port_id"
                what = "no entry of the port map gives" if entry.internal not in fed_back else "nothing gives"
                message = f"{what} layer {entry.internal} of the body a value"
                if loop and entry.purpose:
                    message = f"the purpose `{entry.purpose}` means nothing here, so {message}"
                findings.add("E213", message, entry.element, name, layer=layer, help=help)
            elif tag == "input" and known and 0 <= entry.external < OF_COUNTS:
                help = 'write external_port_id="-1": the counter gets no input, and OpenVINO fails on one of these'
                message = f"input {entry.external} says how often the loop runs, and is not for the body"
                findings.add("E213", message, entry.element, "external_port_id", layer=layer, help=help)
            elif tag == "input" and known and entry.axis is not None:
                message = "the number of the iteration is not sliced, but the entry has an `axis`"
                help = "delete `axis` and what belongs to it; OpenVINO refuses the model"
                findings.add("E213", message, entry.element, "axis", layer=layer, help=help)
            elif entry.purpose and not known:
                help = f"an <{tag}> of a Loop has `{right}` or none; the others have none"
                message = f"the purpose `{entry.purpose}` means nothing here"
                findings.add("W942", message, entry.element, "purpose", layer=layer, help=help)


def _report_no_start(back: BackEdge, layer: Layer, findings: Findings) -> None:
    message = f"layer {back.parameter} of the body has a back edge, but no <input> that gives its first value"
    help = f'add <input external_port_id="..." internal_layer_id="{back.parameter.id}"/> to the port map'
    findings.add("E215", message, back.element, "to-layer", layer=layer, help=help)


def check_fed(body: LayerBody, findings: Findings) -> None:
    """Report the Parameters of a body that nothing gives a value, though somebody reads them."""
    _report_unfed(body, {entry.internal for entry in body.inputs}, findings)


def _report_unfed(body: LayerBody, fed: set[Layer], findings: Findings) -> None:
    fed = fed | {edge.parameter for edge in body.back_edges}
    for parameter in body.graph.parameters:
        if parameter not in fed and any(value.consumers for value in parameter.outputs):
            help = "map it to an input of the layer with an <input> of the port map"
            message = "no entry of the port map gives this Parameter a value"
            findings.add("E218", message, parameter.element, layer=parameter, help=help)
