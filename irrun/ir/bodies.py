"""The bodies of TensorIterator, Loop and If: which there must be, their port maps and back edges; the graphs inside are
read like any other."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from irrun.diagnostics import Note
from irrun.ir.findings import Findings, whole_number
from irrun.ir.graph import BackEdge, Graph, Layer, LayerBody, Port, PortMap, Value
from irrun.ir.identities import Identities
from irrun.ir.unread import EDGE_ATTRIBUTES, ENTRY_ATTRIBUTES, report_attributes, report_element
from irrun.ir.xml import Element
from irrun.records import dataclass
from irrun.spec.registry import registry
from irrun.spelling import close_matches, misspelt

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

OF_SLICES = {"start": 0, "end": -1, "stride": 1, "part_size": 1}
"""What says which slices an entry is for, and what goes without saying."""
ENTRY_ENDS = ("external_port_id", "internal_layer_id")
BACK_ENDS = ("from-layer", "to-layer")
_FROM_THE_FIRST = "count the axes from the first one, which is 0"
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
    return element.attributes.keys() >= {*(BACK_ENDS if tag == "back_edges" else ENTRY_ENDS)}


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


def read_maps(layer: Layer, tag: str, body: LayerBody, told: set[Value], findings: Findings) -> None:
    """Fill the port maps and back edges of `body`, which the element `tag` of `layer` holds.

    Of outputs of the layer to which nothing gives a value it is `told` once, whichever of its bodies do not.
    """
    inner = _Inner(body, findings)
    port_map = layer.element.find(MAP_OF[tag])
    back_edges = layer.element.find("back_edges") if tag == "body" else None
    for listed in (port_map, back_edges):
        if listed is not None and listed.attributes:
            report_attributes(listed, (), findings, layer.graph, layer)
    entries = [
        _entry(child, layer, inner, findings)
        for child in (port_map.children if port_map else ())
        if child.tag in PURPOSES
        or _report_foreign(child, MAP_OF[tag], "<input>s and <output>s", layer, inner, findings)
    ]
    inputs = [entry for entry in entries if entry.element.tag == "input"]
    outputs = [entry for entry in entries if entry.element.tag == "output"]
    body.inputs = [entry.port_map for entry in inputs if entry.port_map is not None]
    body.outputs = [entry.port_map for entry in outputs if entry.port_map is not None]
    if any(entry.internal is None for entry in outputs):
        _withdraw_lost(body.graph, findings)
    twice = _check_inputs(layer, inputs, inner, findings)
    body.inputs = [each for each in body.inputs if each.external < len(layer.inputs) and each.internal not in twice]
    before = len(findings.diagnostics)
    if port_map is not None:
        _number_outputs(layer, body, outputs, inner, told, findings)
    body.lost = findings.errors_since(before)
    fed_back: dict[Layer, Element] = {}
    sliced = {entry.internal: entry for entry in body.inputs if entry.axis is not None}
    for edge in back_edges.children if back_edges else ():
        if edge.tag != "edge" and not _report_foreign(edge, "back_edges", "<edge>s", layer, inner, findings):
            continue
        result, parameter = _back_edge(edge, layer, inner, findings)
        if parameter is None:
            continue
        if parameter in fed_back:
            message = f"layer {parameter} of the body has a second back edge"
            help = "only one value can follow in the next iteration"
            findings.add("E215", message, edge, "to-layer", layer=layer, help=help)
            continue
        fed_back[parameter] = edge
        if result is not None:
            body.back_edges.append(BackEdge(result, parameter, edge))
        if parameter in sliced:
            _warn_of_sliced(edge, sliced[parameter], layer, findings)
    if port_map is not None:
        fed = {entry.internal for entry in inputs}
        hungry = [each for each in body.graph.parameters if each not in fed and (each in fed_back or _is_read(each))]
        hungry = _without_lost(hungry, inputs, layer, body.graph)
        _report_hungry(hungry, fed_back, layer, findings)
        if _check_purposes(layer, inputs, outputs, fed_back, findings):
            _report_unmapped(layer, inputs, hungry, findings)
    body.lost |= any(entry.port_map is None for entry in outputs)
    sound = {entry.port_map for entry in outputs}
    body.outputs = [entry for entry in body.outputs if entry in sound]


@dataclass(eq=False, repr=False, slots=True)
class _Entry:
    """An entry of a port map as far as it can be read: `external` and `internal` are None where they cannot, the latter
    too where the layer is none of the right type. One that is `lost` may be meant for any such layer. There is a
    `port_map` where all of it can be read."""

    element: Element
    external: int | None
    internal: Layer | None
    lost: bool
    axis: int | None = None
    port_map: PortMap | None = None

    @property
    def purpose(self) -> str:
        return self.element.attributes.get("purpose", "")


class _Inner:
    """The layers of a body as its owner names them; `nowhere` are ids that it has not, which is reported."""

    def __init__(self, body: LayerBody, findings: Findings) -> None:
        self.body, graph = body, body.graph
        known = findings.identities.get(graph)
        self.identities = known or Identities({layer.id: layer for layer in reversed(graph.layers)})
        self.nowhere: set[int] = set()
        self._named: set[int | None] | None = None

    def is_missed(self, id: int) -> bool:
        """Whether edges of the body name a layer that is not there, or the body has none at all."""
        if self._named is None:
            found = self.body.graph.element.find("edges")
            edges = found.children if found is not None else ()
            self._named = {whole_number(edge.attributes.get(end, "")) for edge in edges for end in BACK_ENDS}
        return id in self._named or (self.body.graph.unsure and not self.body.graph.layers)

    def ids(self, type: str) -> list[int]:
        """The ids of its layers of a type."""
        layers = islice(self.identities.layers.items(), _MAX_SEARCHED)
        return sorted(id for id, layer in layers if layer.type == type)


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


def _entry(element: Element, layer: Layer, inner: _Inner, findings: Findings) -> _Entry:
    """An entry of a port map as far as it can be read; what is wrong with it by itself is reported."""
    _report_unread(element, ENTRY_ENDS, ENTRY_ATTRIBUTES, layer, findings)
    external = findings.integer(element, "external_port_id", UNCONNECTED, layer)
    if external is not None and external < UNCONNECTED:
        message = f"`external_port_id` is {external}, but must be a port number, or -1 for none"
        help = "an <input> has the number of an input of the layer, from 0 on, an <output> the id of an output port"
        findings.add("E213", message, element, "external_port_id", layer=layer, help=help)
        external = None
    internal, lost = _inside(element, "internal_layer_id", _ENDS[element.tag], "E213", layer, inner, findings)
    entry = _Entry(element, external if "external_port_id" in element.attributes else None, internal, lost)
    if "axis" in element.attributes:
        entry.axis = findings.integer(element, "axis", 0, layer)
    axis = 0 if "axis" in element.attributes and entry.axis is None else entry.axis
    if axis is not None and axis < 0 and element.tag == "input":
        help = f"OpenVINO reads none from the end here, as the page has them: {_FROM_THE_FIRST}"
        findings.add("E213", f"`axis` is {axis}, but must be 0 or more", element, "axis", layer=layer, help=help)
        entry.axis = None
    slices = [findings.integer(element, name, default, layer) for name, default in OF_SLICES.items()]
    sound = (entry.axis is None) == ("axis" not in element.attributes)
    branch = layer.type.lower() in BRANCHES
    if (axis is None or branch) and any(name in element.attributes for name in ("axis", *OF_SLICES)):
        _warn_of_no_axis(element, branch, layer, findings)
        axis = None
    if axis is not None and axis < 0 and element.tag == "output":
        what = "counted from the end, which OpenVINO's plugin does only where it unrolls the loop"
        findings.add("W944", f"`axis` is {axis}, {what}", element, "axis", layer=layer, help=_FROM_THE_FIRST)
    match (entry.external, internal, *slices):
        case (int() as port, Layer() as inside, int() as start, int() as end, int() as stride, int() as size) if sound:
            entry.port_map = PortMap(port, inside, axis, start, end, stride, size, entry.purpose, element)
    return entry


def _report_unread(
    element: Element, ends: tuple[str, str], known: Collection[str], layer: Layer, findings: Findings
) -> None:
    """Report ends that an entry of a port map, or a back edge, lacks, and what nothing reads of it."""
    given = element.attributes
    if findings.lacks(element, ends, layer.graph, layer):
        meant = misspelt([name for name in ends if name not in given], given, ends)
        known = known if meant is None else {*known, meant[1]}
    if not given.keys() <= set(known):
        report_attributes(element, known, findings, layer.graph, layer)
    for child in element.children:
        report_element(child, f"<{element.tag}>", "it has attributes only", findings, layer.graph, layer)


def _inside(
    element: Element, name: str, type: str, code: str, layer: Layer, inner: _Inner, findings: Findings
) -> tuple[Layer | None, bool]:
    """The layer of the body that the attribute `name` names by its id, if it is of `type`; and where it is not, whether
    any one may be meant."""
    id = findings.whole(element, name, layer.graph, layer) if name in element.attributes else None
    if id is None:
        return None, True
    found = inner.identities.find(id, type)
    if found is None:
        inner.body.broken = True
        if inner.is_missed(id):  # which is reported
            return None, False
        if id in inner.nowhere:
            return None, True
        inner.nowhere.add(id)
        ids = inner.ids(type)
        help = f"the body has no {type}, which `{name}` is to name"
        help = f"the {type}s of the body have the ids {', '.join(map(str, ids[:8]))}" if ids else help
        findings.add(code, f"there is no layer {id} in the body", element, name, layer=layer, help=help)
        return None, True
    if found.type != type:
        inner.body.broken = True
        if not registry().versions(found.type):  # a missing or unknown one is reported, and may be right
            return None, False
        ids = inner.ids(type)
        message = f"layer {found} of the body is not a {type}"
        help = f"`{name}` names a {type} of the body: {', '.join(map(str, ids[:8]))}"
        notes = (Note("this layer", found.span),)
        findings.add(code, message, element, name, layer=layer, notes=notes, help=help if ids else None)
        return None, True
    return found, False


def _check_inputs(layer: Layer, entries: list[_Entry], inner: _Inner, findings: Findings) -> set[Layer]:
    """Report inputs that are not there, or are mapped twice; the Parameters of which nobody knows for that reason what
    they get."""
    externals: dict[int, _Entry] = {}
    internals: dict[Layer, _Entry] = {}
    twice: set[Layer] = set()
    for entry in entries:
        external, told = entry.external, False
        if external is not None and external >= len(layer.inputs) + findings.lacking[layer, False]:
            message = f"there is no input {external}: the layer has {len(layer.inputs)}"
            help = "`external_port_id` counts the inputs of the layer from 0, whatever ids its ports have"
            findings.add("E213", message, entry.element, "external_port_id", layer=layer, help=help)
        elif external not in (None, UNCONNECTED) and (first := externals.setdefault(external, entry)) is not entry:
            _report_twice(entry, first, f"input {external}", "external_port_id", layer, findings)
            told = True
            twice |= {each.internal for each in (first, entry) if each.internal is not None}
        if entry.internal is None or (first := internals.setdefault(entry.internal, entry)) is entry:
            continue
        twice.add(entry.internal)
        entry.lost = entry.element.attributes != first.element.attributes
        if not told and entry.internal not in inner.identities.doubtful:
            _report_twice(entry, first, f"layer {entry.internal} of the body", "internal_layer_id", layer, findings)
    return twice


def _report_twice(entry: _Entry, first: _Entry, what: str, attribute: str, layer: Layer, findings: Findings) -> None:
    notes = (Note("the first one", first.element.span),)
    help = "each input, output and Parameter stands in one entry; OpenVINO drops the second one of an external id"
    findings.add("E214", f"{what} is mapped twice", entry.element, attribute, layer=layer, notes=notes, help=help)


def _number_outputs(
    layer: Layer, body: LayerBody, entries: list[_Entry], inner: _Inner, told: set[Value], findings: Findings
) -> None:
    """Turn the external ids into output numbers, which are their ranks."""
    first: dict[int, _Entry] = {}
    given: dict[Layer, _Entry] = {}
    unknown: list[_Entry] = []  # which may be any output
    branch = layer.type.lower() in BRANCHES
    for entry in entries:
        other = entry if entry.external is None else first.setdefault(entry.external, entry)
        if entry.external is None:
            unknown.append(entry)
        if other is not entry and entry.external != UNCONNECTED:
            _report_twice(entry, other, f"output {entry.external}", "external_port_id", layer, findings)
            unknown += [entry] if entry.element.attributes != other.element.attributes else []
        elif (
            branch
            and entry.internal is not None
            and (other := given.setdefault(entry.internal, entry)) is not entry  # of a loop it may be several
            and entry.internal not in inner.identities.doubtful
        ):
            what = f"layer {entry.internal} of the body"
            _report_twice(entry, other, what, "internal_layer_id", layer, findings)
    first.pop(UNCONNECTED, None)
    rank = {external: number for number, external in enumerate(sorted(first))}
    ids = {value.port.id for value in layer.outputs if value.port.id >= 0}
    missed = findings.lacking[layer, True]
    if unknown or missed or len(ids) < len(layer.outputs):  # of ports without ids of their own it is told
        pass
    elif len(rank) == len(layer.outputs):
        _warn_of_numbers(layer, first, rank, findings)
    for port_map in body.outputs:
        port_map.external = rank.get(port_map.external, UNCONNECTED)
    if len(ids) == len(layer.outputs):
        _report_beyond(layer, entries, rank, missed, findings)
    body.outputs = [entry for entry in body.outputs if entry.external < len(layer.outputs)]
    portless = [entry for entry in entries if entry.external == UNCONNECTED and not entry.purpose]
    for value in _left(layer, first, entries, unknown):
        if value in told:
            continue
        told.add(value)
        if portless:
            message = f"`external_port_id` is {UNCONNECTED}, for no output, but no entry gives one of them its value"
            help = f'write external_port_id="{value.port.id}"'
            notes = (Note("the output without a value", value.port.element.span),)
            entry = portless.pop(0)
            findings.add("E213", message, entry.element, "external_port_id", layer=layer, help=help, notes=notes)
            continue
        message = f"no <output> of the port map of the {body.graph.element.tag} gives this output its value"
        help = "add an <output> with the id of the port, and of a Result of the body, or delete the port"
        findings.add("E213", message, value.port.element, layer=layer, help=help)


def _report_beyond(layer: Layer, entries: list[_Entry], rank: dict[int, int], missed: int, findings: Findings) -> None:
    """Report entries for more outputs than there are, but for as many as edges name beyond these, too."""
    count = len(layer.outputs)
    outer = [entry for entry in entries if entry.external is not None and entry.external != UNCONNECTED]
    numbers = {entry: rank[entry.external] for entry in outer if entry.external is not None}
    beyond = [entry for entry in outer if numbers[entry] >= count + missed]
    conditions = [entry for entry in outer if entry.purpose]
    wrong = conditions if len(conditions) == len(beyond) else beyond  # most have no output port for their condition
    for entry in wrong:
        message = f"this is output number {numbers[entry]}, but the layer has {count} output ports"
        if numbers[entry] < count:
            message = f"the layer has {count} output ports, one less than <output>s with this one"
        help = "outputs are numbered by ascending `external_port_id`, so there is one port for each of them"
        help = 'write external_port_id="-1" for a condition that is no output' if entry.purpose else help
        findings.add("E213", message, entry.element, "external_port_id", layer=layer, help=help)


def _left(layer: Layer, first: dict[int, _Entry], entries: list[_Entry], unknown: list[_Entry]) -> list[Value]:
    """The outputs of a layer to which no entry gives a value, without those that `unknown` ones may be meant for."""
    count = len(layer.outputs) - len(first)
    if count <= len(unknown):
        return []
    left = [value for value in layer.outputs if value.port.id not in first]
    left = left if len(left) == count else layer.outputs[len(first) :]
    if count > _MAX_SEARCHED:
        return left[len(unknown) :]
    for entry in unknown:
        place = entries.index(entry)
        left.remove(min(left, key=lambda value: abs(value.index - place)))
    return left


def _warn_of_numbers(layer: Layer, entries: dict[int, _Entry], rank: dict[int, int], findings: Findings) -> None:
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


def _back_edge(edge: Element, layer: Layer, inner: _Inner, findings: Findings) -> tuple[Layer | None, Layer | None]:
    """The Result and the Parameter of a back edge, each None where it leads to none, which is reported."""
    _report_unread(edge, BACK_ENDS, EDGE_ATTRIBUTES, layer, findings)
    ids = [whole_number(edge.attributes.get(name, "")) for name in BACK_ENDS]
    first, last = (None if id is None else inner.identities.layers.get(id) for id in ids)
    if first is not None and last is not None and (first.type, last.type) == ("Parameter", "Result"):
        message = f"the back edge leads from layer {first} of the body to layer {last}: it is the other way round"
        help = f'write from-layer="{ids[1]}" to-layer="{ids[0]}": it hands a Result on to a Parameter'
        findings.add("E215", message, edge, "from-layer", layer=layer, help=help)
        return None, None
    result, _ = _inside(edge, "from-layer", "Result", "E215", layer, inner, findings)
    parameter, _ = _inside(edge, "to-layer", "Parameter", "E215", layer, inner, findings)
    return result, parameter


def _report_foreign(child: Element, where: str, held: str, layer: Layer, inner: _Inner, findings: Findings) -> bool:
    """Report a child of a port map or of back edges that is none of these; whether it is one but for its tag, which it
    gets then: what it says is lost otherwise."""
    words = ["edge"] if where == "back_edges" else [*PURPOSES]
    close = close_matches(child.tag, words)
    whole = _is_entry(child, where)
    if (close and child.attributes) or whole:
        meant = close[0] if close else _meant(child, words, inner)
        message = f"<{child.tag}> is not read: in <{where}> stand {held}"
        help = f"write <{meant}>; OpenVINO goes on without the element"
        findings.add("E220", message, child, layer=layer, help=help)
        child.tag = meant if whole else child.tag
        return whole
    report_element(child, f"<{where}>", f"it holds {held}", findings, layer.graph, layer)
    return False


def _meant(child: Element, words: list[str], inner: _Inner) -> str:
    """Which of the `words` an entry of another tag stands for: one of a port map names a Parameter or a Result."""
    id = whole_number(child.attributes.get("internal_layer_id", ""))
    named = None if id is None else inner.identities.layers.get(id)
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


def _warn_of_sliced(edge: Element, entry: PortMap, layer: Layer, findings: Findings) -> None:
    notes = (Note("its slices", entry.element.span),)
    help = "a Parameter has either a slice in each iteration or the value of the one before: delete `axis` or the edge"
    message = f"the back edge to layer {entry.internal} of the body has no effect: its <input> is sliced"
    findings.add("W943", message, edge, "to-layer", layer=layer, notes=notes, help=help)


def _check_purposes(
    layer: Layer, inputs: list[_Entry], outputs: list[_Entry], fed_back: Collection[Layer], findings: Findings
) -> bool:
    """Report entries without a port that have no purpose either, purposes that nothing knows, and conditions twice;
    whether these are the entries of a layer of its type."""
    if layer.type.lower() not in NEEDED_BODIES:  # an op that nobody knows, which is reported, or one of a package
        return False
    loop = layer.type.lower() in LOOPS
    conditions = [entry for entry in outputs if entry.purpose == PURPOSES["output"]]
    counted = any(entry.external == UNCONNECTED and entry.purpose == PURPOSES["input"] for entry in inputs)
    if not loop and conditions and counted:
        message = (
            f"a {layer.type} has neither `{PURPOSES['input']}` nor `{PURPOSES['output']}`, but the port map has both"
        )
        help = 'is type="Loop" meant?'
        findings.add("E213", message, layer.element, "type", layer=layer, help=help)
        return False
    if loop and not conditions and (wrong := next((entry for entry in outputs if entry.purpose), None)):
        help = f'write purpose="{PURPOSES["output"]}"; a Loop needs one result that says whether to go on'
        message = f"the purpose `{wrong.purpose}` means nothing here"
        findings.add("E213", message, wrong.element, "purpose", layer=layer, help=help)
        outputs = [entry for entry in outputs if entry is not wrong]
        wrong.port_map = None
    named = [entry for entry in conditions if entry.internal is not None]
    if loop and len({entry.internal for entry in named}) > 1:
        first, second = named[:2]
        notes = (Note("the first one", first.element.span),)
        help = "one result decides whether the loop goes on: delete the `purpose` of the other"
        message = f"layer {second.internal} of the body is a second `execution_condition`"
        findings.add("E214", message, second.element, "purpose", layer=layer, notes=notes, help=help)
        for entry in conditions:
            entry.port_map = None
        conditions = []
    for entry in conditions[1:] if loop else ():
        help = "one <output> says which result decides whether the loop goes on"
        message = "the `execution_condition` is named twice"
        findings.add("W942", message, entry.element, "purpose", layer=layer, help=help)
    known = {entry.external for entry in outputs} - {UNCONNECTED}
    whole = None not in known and len(known) >= len(layer.outputs)
    for entry in outputs if whole and (conditions or not loop) else ():  # else it is reported what is missing
        if entry.external == UNCONNECTED and not entry.purpose:
            help = 'write the id of an output port, or, of a Loop, purpose="execution_condition"; or delete the entry'
            message = "this entry gives no output a value, and has no purpose"
            findings.add("W942", message, entry.element, "external_port_id", layer=layer, help=help)
    for entry in inputs:
        _check_purpose_of_input(entry, layer, fed_back, findings, loop=loop)
    for entry in outputs:
        if entry.purpose and not (loop and entry.purpose == PURPOSES["output"]):
            _warn_of_purpose(entry, layer, findings)
    return True


def _check_purpose_of_input(
    entry: _Entry, layer: Layer, fed_back: Collection[Layer], findings: Findings, *, loop: bool
) -> None:
    right = PURPOSES["input"]
    known = loop and entry.purpose == right
    if entry.external == UNCONNECTED and not known:
        help = "`external_port_id` is the number of an input of the layer, from 0 on"
        if loop and entry.purpose:
            help = f'write purpose="{right}" if it counts the iterations; {help}'
        elif loop:
            help += f'; without one the entry needs purpose="{right}"'
        name = "purpose" if loop and entry.purpose else "external_port_id"
        what = "no entry of the port map gives" if entry.internal not in fed_back else "nothing gives"
        inside = f"layer {entry.internal}" if entry.internal is not None else "a Parameter"
        message = f"{what} {inside} of the body a value"
        if loop and entry.purpose:
            message = f"the purpose `{entry.purpose}` means nothing here, so {message}"
        findings.add("E213", message, entry.element, name, layer=layer, help=help)
    elif known and entry.external is not None and 0 <= entry.external < OF_COUNTS:
        help = 'write external_port_id="-1": the counter gets no input, and OpenVINO fails on one of these'
        message = f"input {entry.external} says how often the loop runs, and is not for the body"
        findings.add("E213", message, entry.element, "external_port_id", layer=layer, help=help)
    elif known and entry.axis is not None:
        message = "the number of the iteration is not sliced, but the entry has an `axis`"
        help = "delete `axis` and what belongs to it; OpenVINO refuses the model"
        findings.add("E213", message, entry.element, "axis", layer=layer, help=help)
    elif entry.purpose and not known:
        _warn_of_purpose(entry, layer, findings)


def _warn_of_purpose(entry: _Entry, layer: Layer, findings: Findings) -> None:
    tag = entry.element.tag
    help = f"an <{tag}> of a Loop has `{PURPOSES[tag]}` or none; the others have none"
    message = f"the purpose `{entry.purpose}` means nothing here"
    findings.add("W942", message, entry.element, "purpose", layer=layer, help=help)


def _without_lost(hungry: list[Layer], entries: list[_Entry], layer: Layer, graph: Graph) -> list[Layer]:
    """Parameters to which no entry gives a value, without those that entries can be meant for which name none: each
    is for the one that declares what the input does, and has its place among the others."""
    lost = [(number, entry) for number, entry in enumerate(entries) if entry.lost]
    if len(hungry) <= len(lost):
        return []
    if not lost or len(hungry) > _MAX_SEARCHED:
        return hungry[len(lost) :]
    places = {parameter: number for number, parameter in enumerate(graph.parameters)}
    fed = {each.external: places[each.internal] for each in entries if each.external is not None and each.internal}
    for number, entry in lost:
        before = max((at for at in fed if entry.external is not None and 0 <= at < entry.external), default=None)
        place = number if before is None or entry.external is None else fed[before] + entry.external - before
        hungry.remove(
            max(hungry, key=lambda parameter: (_feeds(entry, layer, parameter), -abs(places[parameter] - place)))
        )
    return hungry


def _feeds(entry: _Entry, layer: Layer, parameter: Layer) -> bool:
    """Whether an input is declared as a Parameter, but for its sizes where it is sliced."""
    if entry.external is None or not 0 <= entry.external < len(layer.input_ports) or not parameter.outputs:
        return True
    given, wanted = layer.input_ports[entry.external], parameter.outputs[0].port
    if "axis" not in entry.element.attributes:
        return given.declares_as(wanted)
    return all(_likeness(given, wanted)[:2])


def _report_unmapped(layer: Layer, entries: list[_Entry], hungry: list[Layer], findings: Findings) -> None:
    """Report inputs of a loop that no entry takes, without those that entries which name none, or Parameters that get
    no value, which is reported, can be meant for."""
    type = layer.type.lower()
    if type in BRANCHES:
        return
    taken = {entry.external for entry in entries}
    own = OF_COUNTS if type in LOOPS else 0
    left = [at for at in range(own, len(layer.inputs)) if at not in taken]
    left = [at for at in left if layer.input_edges[at] is not None]
    for parameter in hungry[:_MAX_SEARCHED] if left else ():
        wanted = parameter.outputs[0].port if parameter.outputs else None
        left.remove(max(left, key=lambda at: _likeness(layer.input_ports[at], wanted)))
        if not left:
            break
    counting = [entry for entry in entries if entry.external == UNCONNECTED and entry.purpose == PURPOSES["input"]]
    named = sum(own <= external < len(layer.inputs) for external in taken if external is not None)
    for at in left[len(entries) - len(counting) - named :]:
        message = f"no <input> of the port map takes input {at}"
        help = "map it to a Parameter of the body, or delete the port and its edge; OpenVINO refuses the model"
        findings.add("E213", message, layer.input_ports[at].element, layer=layer, help=help)


def _likeness(given: Port, wanted: Port | None) -> tuple[bool, ...]:
    """How much an input is declared as a Parameter, which may get slices of it."""
    if wanted is None:
        return ()
    return given.precision in (None, wanted.precision), len(given.dims) == len(wanted.dims), given.dims == wanted.dims


def _report_hungry(parameters: list[Layer], fed_back: dict[Layer, Element], layer: Layer, findings: Findings) -> None:
    """Report Parameters to which no entry gives a value."""
    for parameter in parameters:
        if parameter in fed_back:
            message = f"layer {parameter} of the body has a back edge, but no <input> that gives its first value"
            help = f'add <input external_port_id="..." internal_layer_id="{parameter.id}"/> to the port map'
            findings.add("E215", message, fed_back[parameter], "to-layer", layer=layer, help=help)
        else:
            help = "map it to an input of the layer with an <input> of the port map"
            message = "no entry of the port map gives this Parameter a value"
            findings.add("E218", message, parameter.element, layer=parameter, help=help)


def _is_read(parameter: Layer) -> bool:
    return any(value.consumers for value in parameter.outputs)


def check_fed(layer: Layer, body: LayerBody, findings: Findings) -> None:
    """Report the Parameters of a body that nothing gives a value, though somebody reads them."""
    fed = {entry.internal for entry in body.inputs} | {edge.parameter for edge in body.back_edges}
    hungry = [each for each in body.graph.parameters if each not in fed and _is_read(each)]
    _report_hungry(hungry, {}, layer, findings)
