"""From `<edge>` elements to connections between the layers of one graph, and inputs that nothing reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from irrun.diagnostics import Note
from irrun.ir.findings import Findings, whole_number
from irrun.ir.graph import Graph, Layer, Port, Value
from irrun.ir.identities import MAX_LOOSE, Identities
from irrun.ir.layers import UNKNOWN_ID
from irrun.ir.plain import PlainEdge
from irrun.ir.shifts import FEWEST, Shift, find_shift
from irrun.ir.unread import EDGE_ATTRIBUTES, joined, members, report_attributes, report_element
from irrun.ir.xml import Deferred, Element
from irrun.records import dataclass

_ENDS = ("from-layer", "from-port", "to-layer", "to-port")

_MAX_PAIRED = 100
"""Edges of a graph that arrive at a wrong port for which an input is looked for that they can be meant for."""

TURN = "turn"
DELETE = "delete"
"""What mends an edge from an input to an output: turned round it is what was meant, or it is there already."""

RENUMBER = "renumber"
"""What mends ids of ports that edges have other ones for: these, for all ports of the layer, stand behind it."""

_NOWHERE = (-1.0,)
"""How well edges fit a layer none of whose ports they name."""

_MAX_NOTED = 8
"""Edges that a diagnostic has a note for."""


@dataclass(eq=False, repr=False, slots=True)
class _Stray:
    """An edge that brings `value` to a port which is not there, or which has another edge, the `first` one.

    It may stand for `others`, into ports of the same layer that are not there either."""

    edge: Element
    value: Value | None
    reader: Layer
    port: int | None
    number: int | None = None
    first: Element | None = None
    others: list[Element] = field(default_factory=list)


@dataclass(eq=False, repr=False, slots=True)
class _Lost:
    """An edge that arrives nowhere, and what it says of that all the same: what it brings, and numbers of a layer and
    a port."""

    edge: Element
    value: Value | None = None
    reader: int | None = None
    port: int | None = None


@dataclass(eq=False, repr=False, slots=True)
class _Backward:
    """An edge from an input of `reader`, the one of this number, to an output: both its ends are there, exchanged."""

    edge: Element
    value: Value
    reader: Layer
    number: int


_Gap = list[tuple[Element, str, Layer | None]]
"""The edges that name a layer which is not there, each with the name of this end and the layer at the other one."""


@dataclass(eq=False, repr=False, slots=True)
class _Index:
    """What connecting edges has found. Of layers that are doubtful nothing else is reported: one cause, one diagnostic.

    `written` has layers by the text of their id, if all of their ports have ids of their own; `nameless` are the
    positions of ports that have none, by their layer and whether they are outputs. `lost` are the edges that arrive
    nowhere, each of which leaves some input without one, as may do each of the `strays`. `gaps` are the ids that only
    edges have, `missing` the output ports; `backward` are edges that lead from an input to an output. Where ids are
    `shifted` edges have other ones for some layers, and for the ports of those that are `off`, which is reported.
    """

    identities: Identities
    written: dict[str | None, Layer] = field(default_factory=dict)
    nameless: dict[tuple[Layer, bool], list[int]] = field(default_factory=dict)
    strays: list[_Stray] = field(default_factory=list)
    gaps: dict[int, _Gap] = field(default_factory=dict)
    missing: dict[tuple[Layer, int], list[Element]] = field(default_factory=dict)
    lost: list[_Lost] = field(default_factory=list)
    backward: list[_Backward] = field(default_factory=list)
    shifted: bool = False

    @property
    def troubles(self) -> int:
        """How many edges lead astray."""
        return sum(map(len, (self.strays, self.gaps, self.missing, self.lost, self.backward)))


def connect(graph: Graph, findings: Findings) -> None:
    """Fill the inputs of the layers and the consumers of their values."""
    lists = joined(graph, "edges", findings)
    if not any(listed.children for listed in lists):
        ports = sum(len(layer.input_ports) for layer in graph.layers)
        help = "without edges no layer has inputs"
        if not lists and ports:
            message = f"<{graph.element.tag}> has no <edges>"
            findings.add("E112", message, graph.element, graph=graph, layer=graph.owner, help=help)
        elif ports > 1:
            findings.add("E112", "<edges> is empty", lists[0], graph=graph, layer=graph.owner, help=help)
        if not lists or ports > 1:
            _index(graph, findings)
            return
    before = len(findings.diagnostics)
    index = _connected(graph, lists, findings)
    if index.troubles >= FEWEST or index.identities.doubtful:
        shift = find_shift(graph.layers, [edge for listed in lists for edge in listed.children])
        if shift is not None:
            del findings.diagnostics[before:]
            _disconnect(graph)
            _report_shift(shift, findings)
            index = _connected(graph, lists, findings, shift)
    off = _ports_off(index, lists) if index.strays or index.missing else {}
    if off and not index.shifted:
        del findings.diagnostics[before:]
        _disconnect(graph)
        index = _connected(graph, lists, findings, off=off)
        _report_ports(off, findings)
    _turn_back(index, findings)
    _report_gaps(graph, index, findings)
    _report_missing_outputs(index, findings)
    _report_unconnected(graph, index, findings)


def _connected(
    graph: Graph,
    lists: Sequence[Element],
    findings: Findings,
    shift: Shift | None = None,
    off: Mapping[Layer, tuple[int, ...]] | None = None,
) -> _Index:
    """Connect what can be connected; what else was found is noted down, and not yet reported.

    Edges have other ids for the ports of layers that are `off`: these, of all of them, inputs first.
    """
    index = _index(graph, findings, shift)
    known: dict[tuple[Layer, bool], dict[int, int]] = {}
    for layer, ids in (off or {}).items():
        index.written.pop(str(layer.id), None)
        count = len(layer.input_ports)
        for output, own in enumerate((ids[:count], ids[count:])):
            known[layer, bool(output)] = {id: at for at, id in enumerate(own)}
    if index.identities.loose:
        _identify(graph, index, [edge for listed in lists for edge in listed.children])
    misplaced: list[Element] = []
    for edge in members(lists[0], "edge", findings, graph, graph.owner):
        if edge.tag != "edge":
            misplaced.append(edge)
        elif not _connect_plainly(edge, index):
            _connect_edge(edge, graph, index, known, findings)
    for more in lists[1:]:
        misplaced += members(more, "edge", findings, graph, graph.owner)
    for edge in misplaced:  # which is reported
        if not _connect_plainly(edge, index):
            _connect_edge(edge, graph, index, known, findings, spare=True)
    return index


def _disconnect(graph: Graph) -> None:
    graph.unsure = False
    for layer in graph.layers:
        layer.inputs = [None] * len(layer.inputs)
        layer.input_edges = [None] * len(layer.input_edges)
        for value in layer.outputs:
            value.consumers.clear()


def _ports_off(index: _Index, lists: Sequence[Element]) -> dict[Layer, tuple[int, ...]]:
    """Layers for whose ports edges have other ids, as far as one mistake explains that; and these ids, inputs first."""
    suspects = {stray.reader for stray in index.strays} | {layer for layer, _ in index.missing}
    suspects -= index.identities.doubtful
    ids = {str(layer.id): layer for layer in suspects}
    named: dict[tuple[Layer, bool], set[int]] = {}
    for edge in (edge for listed in lists for edge in listed.children):
        for output, side in ((True, "from"), (False, "to")):
            layer = ids.get(edge.attributes.get(f"{side}-layer", ""))
            port = _plain_number(edge.attributes.get(f"{side}-port"))
            if layer is not None and port is not None:
                named.setdefault((layer, output), set()).add(port)
    off = {}
    for layer in suspects:
        inputs, outputs = named.get((layer, False), set()), named.get((layer, True), set())
        meant = _all_off(layer, inputs, outputs) or _one_off(layer, inputs, outputs)
        if meant is not None:
            off[layer] = meant
    return off


def _all_off(layer: Layer, inputs: set[int], outputs: set[int]) -> tuple[int, ...] | None:
    """The ids for ports of a layer by which edges name these `inputs` and `outputs`, if all are off by one number."""
    there, given = [port.id for port in layer.input_ports], [value.port.id for value in layer.outputs]
    by = there[0] - min(inputs) if there and inputs else 0
    if not by or not outputs or not {*there}.isdisjoint(given):
        return None
    if sorted(port + by for port in inputs) != sorted(there) or not {port + by for port in outputs} <= {*given}:
        return None
    return tuple(id - by for id in (*there, *given))


def _one_off(layer: Layer, inputs: set[int], outputs: set[int]) -> tuple[int, ...] | None:
    """The ids for ports of a layer by which edges name these `inputs` and `outputs`, if the only port that they do not
    name has the id of one on the other side, or each side has such a port and the ids of these are exchanged.

    With them all ids are as everybody writes them, which leaves no doubt.
    """
    there, given = [port.id for port in layer.input_ports], [value.port.id for value in layer.outputs]
    meant: list[int] = []
    changed = 0
    for own, ends in ((there, inputs), (given, outputs)):
        lost = ends.difference(own)
        bare = [at for at, id in enumerate(own) if id not in ends]
        if lost and not len(lost) == len(bare) == 1:
            return None
        changed += len(lost)
        ids = dict(zip(bare, lost, strict=False))
        meant += [ids.get(at, id) for at, id in enumerate(own)]
    written = there + given
    if meant != [*range(len(meant))]:
        return None
    doubled, exchanged = len({*written}) < len(written), sorted(written) == meant
    return tuple(meant) if (changed == 1 and doubled) or (changed == 2 and exchanged) else None


def _report_ports(off: Mapping[Layer, tuple[int, ...]], findings: Findings) -> None:
    for layer, ids in off.items():
        ports = [*layer.input_ports, *(value.port for value in layer.outputs)]
        changed = [(port, id) for port, id in zip(ports, ids, strict=True) if port.id != id]
        port, id = changed[0]
        notes: tuple[Note, ...] = ()
        if len(changed) == len(ports) > 1 and port.id - id == changed[-1][0].id - changed[-1][1]:
            how = "higher" if port.id > id else "lower"
            message = f"the ids of all ports of layer {layer} are {how} by {abs(port.id - id)} than those that edges "
            message += "have"
            help = "edges name ports by ids, not by positions: change the ones or the others"
        elif len(changed) == 1:
            side = "input" if port in layer.input_ports else "output"
            message = f"two ports of layer {layer} have the id {port.id}, and edges name an {side} port {id}, which is "
            message += "not there"
            help = f"give this {side} port the id {id}: it is the only one that no edge names"
            same = (each for each in ports if each.id == port.id and each is not port)
            notes = tuple(Note("the other port of this id", each.element.span) for each in same)
        else:
            low, high = sorted((port.id, id))
            message = f"the ids of ports {low} and {high} of layer {layer} seem to be exchanged"
            help = f"edges lead to an input port {id}, and begin at an output port {port.id}: "
            help += "exchange the ids, or change the edges"
            notes = (Note("the other port", changed[1][0].element.span),)
        remedy = " ".join([RENUMBER, *map(str, ids)])
        findings.add("E206", message, port.element, "id", layer=layer, help=help, notes=notes, remedy=remedy)


def _report_shift(shift: Shift, findings: Findings) -> None:
    first, last, number = shift.layers[0], shift.layers[-1], abs(shift.by)
    how = f"{('one', 'two', 'three')[number - 1]} {'higher' if shift.by > 0 else 'lower'}"
    message = f"the ids of {len(shift.layers)} layers, from {first} to {last}, are {how} than those that edges have"
    help = f"was a layer {'inserted' if shift.by > 0 else 'deleted'} here? give these layers ids that are "
    help += f"{how.replace('higher', 'lower') if shift.by > 0 else how.replace('lower', 'higher')}, or change the edges"
    findings.add("E226", message, first.element, "id", layer=first, help=help)


def _index(graph: Graph, findings: Findings, shift: Shift | None = None) -> _Index:
    off = dict.fromkeys(shift.layers, shift.by) if shift is not None else {}
    identities = Identities({})
    index = _Index(identities)
    for layer in off:
        identities.layers[layer.id - off[layer]] = layer
    alike: dict[int, list[Layer]] = {}
    for layer in graph.layers:
        if not layer.element.deferred:  # else its ports have ids of their own
            _note_nameless(layer, index)
        if layer.id == UNKNOWN_ID:
            identities.loose.append([layer])
            identities.doubtful.add(layer)
            continue
        id = layer.id - off.get(layer, 0)
        first = identities.layers.setdefault(id, layer)
        if first is not layer and shift is not None:  # it was inserted: edges have its id for the one behind it
            if not shift.all:  # unless both have the same one there
                identities.doubtful |= {layer, *(each for each in graph.layers if each.id == layer.id - shift.by)}
            continue
        if first is not layer:
            group = alike.setdefault(layer.id, [first])
            group.append(layer)
            identities.loose.append(group)
            identities.doubtful |= {first, layer}
            message = f"layer id {layer.id} is used twice"
            notes = (Note(f"layer {first} has it, too", first.span),)
            help = "give the layer an id of its own and mend its edges; OpenVINO keeps only the last layer of an id"
            findings.add("E203", message, layer.element, "id", layer=layer, help=help, notes=notes)
    if identities.loose:
        graph.unsure = True
        findings.identities[graph] = identities
    strange = identities.doubtful.union(layer for layer, _ in index.nameless)
    if shift is not None:
        _identify_ends(graph, identities, findings)
        index.shifted = True
        index.written = {str(id): layer for id, layer in identities.layers.items() if layer not in strange}
        return index
    index.written = {str(layer.id): layer for layer in graph.layers if layer not in strange}
    return index


def _identify_ends(graph: Graph, identities: Identities, findings: Findings) -> None:
    """Have entries of port maps name the layers of a body as edges do, if that makes more of them Parameters and
    Results."""
    owner, tag = graph.owner, graph.element.tag
    if owner is None:
        return
    entries = [entry for map in owner.element.findall(tag.replace("body", "port_map")) for entry in map.children]
    ids = [(entry.tag == "input", whole_number(entry.attributes.get("internal_layer_id", ""))) for entry in entries]
    plain = {layer.id: layer for layer in reversed(graph.layers)}

    def fitting(layers: dict[int, Layer]) -> int:
        ends = ((layers.get(-1 if id is None else id), "Parameter" if first else "Result") for first, id in ids)
        return sum(layer is not None and layer.type == type for layer, type in ends)

    if fitting(identities.layers) >= fitting(plain):
        findings.identities[graph] = identities


def _note_nameless(layer: Layer, index: _Index) -> None:
    """Note down the ports of a layer that have no id, or that of another one before them."""
    for output, ids in enumerate(([port.id for port in layer.input_ports], [each.port.id for each in layer.outputs])):
        if UNKNOWN_ID in ids or (len(ids) > 1 and len(set(ids)) < len(ids)):
            first = {id: at for at, id in reversed([*enumerate(ids)])}
            nameless = [at for at, id in enumerate(ids) if id == UNKNOWN_ID or first[id] < at]
            index.nameless[layer, bool(output)] = nameless


def _connect_plainly(edge: Element, index: _Index) -> bool:
    """Connect an edge as nearly all are written; False, with nothing done, where that needs a closer look.

    The ports of its layers are numbered on from 0, inputs first, and the ids stand in both places in the same way.
    """
    plain: PlainEdge | None = edge.take() if isinstance(edge, Deferred) else None
    if plain is None:
        given = edge.attributes
        if len(given) > len(_ENDS) or edge.children:
            return False
        ends: Sequence[str | None] = [given.get(name) for name in _ENDS]
    else:
        ends = plain
    producer, reader = index.written.get(ends[0]), index.written.get(ends[2])
    output, number = _plain_number(ends[1]), _plain_number(ends[3])
    if producer is None or reader is None or output is None or number is None:
        return False
    position = output - len(producer.input_ports)
    if not 0 <= position < len(producer.outputs) or number >= len(reader.inputs):
        return False
    value = producer.outputs[position]
    if value.port.id != output or reader.input_ports[number].id != number or reader.input_edges[number] is not None:
        return False
    reader.input_edges[number] = edge
    reader.inputs[number] = value
    value.consumers.append((reader, number))
    return True


@lru_cache
def _plain_number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and text.isascii() and len(text) < 10 else None


def _connect_edge(
    edge: Element,
    graph: Graph,
    index: _Index,
    ports: dict[tuple[Layer, bool], dict[int, int]],
    findings: Findings,
    *,
    spare: bool = False,
) -> None:
    """Connect an edge, or report what is wrong with it; of a `spare` one not that its port has another one."""
    if len(edge.attributes) > len(_ENDS):
        report_attributes(edge, EDGE_ATTRIBUTES, findings, graph)
    for child in edge.children:
        report_element(child, "<edge>", "it has attributes only", findings, graph)
    findings.lacks(edge, _ENDS, graph)
    from_layer, from_port, to_layer, to_port = (
        findings.whole(edge, name, graph) if name in edge.attributes else None for name in _ENDS
    )
    layers, doubtful = index.identities.layers, index.identities.doubtful
    producer, reader = (layers.get(id) if id is not None else None for id in (from_layer, to_layer))
    sure = producer is not None and producer not in doubtful
    output = _port(from_port, producer, True, ports) if producer is not None and sure else None
    value = producer.outputs[output] if producer is not None and output is not None else None
    number = _port(to_port, reader, False, ports) if reader is not None and reader not in doubtful else None
    other = reader.input_edges[number] if reader is not None and number is not None else None
    if sure and producer and reader and value is None and number is None and reader not in doubtful:
        begin, end = _port(to_port, reader, True, ports), _port(from_port, producer, False, ports)
        if begin is not None and end is not None:
            index.backward.append(_Backward(edge, reader.outputs[begin], producer, end))
            return
    if producer is None and from_layer is not None:
        index.gaps.setdefault(from_layer, []).append((edge, "from-layer", reader))
    elif producer is not None and sure and from_port is not None and value is None and other is None:
        index.missing.setdefault((producer, from_port), []).append(edge)
    if reader is None and to_layer is not None:
        index.gaps.setdefault(to_layer, []).append((edge, "to-layer", producer))
    if reader is None or to_port is None:
        index.lost.append(_Lost(edge, value, to_layer, to_port))
        return
    if reader in doubtful:
        return
    if number is None:
        index.strays.append(_Stray(edge, value, reader, to_port))
        return
    if other is not None:
        if not spare:
            index.strays.append(_Stray(edge, value, reader, to_port, number, other))
        return
    reader.input_edges[number] = edge
    if value is not None:
        reader.inputs[number] = value
        value.consumers.append((reader, number))


def _turn_back(index: _Index, findings: Findings) -> None:
    """Report edges that lead from inputs to outputs; once all others are there they are connected as they are meant."""
    for backward in index.backward:
        edge, value, reader, number = backward.edge, backward.value, backward.reader, backward.number
        port, other = reader.input_ports[number].id, reader.input_edges[number]
        message = f"the edge leads from an input of layer {reader} to an output of layer {value.layer}"
        help = f'turn it round: from-layer="{value.layer.id}" from-port="{value.port.id}" '
        help += f'to-layer="{reader.id}" to-port="{port}"'
        notes: tuple[Note, ...] = ()
        remedy = TURN
        if other is not None:
            remedy = DELETE
            help, notes = "delete it: another edge leads to this input", (Note("the other one", other.span),)
        else:
            reader.input_edges[number] = edge
            reader.inputs[number] = value
            value.consumers.append((reader, number))
        findings.add("E206", message, edge, layer=reader, help=help, notes=notes, remedy=remedy)


def _report_gaps(graph: Graph, index: _Index, findings: Findings) -> None:
    """One error for each layer that edges name and that is not there, at the first of them."""
    where = f"this {graph.element.tag}" if graph.owner else "the model"
    for gap in index.gaps.values():
        edge, name, other = gap[0]
        number, help = edge.attributes[name], None
        notes: tuple[Note, ...] = ()
        if index.identities.layers:
            low, high = min(index.identities.layers), max(index.identities.layers)
            inside = number.isdecimal() and len(number) < len(str(high)) + 1 and low < int(number) < high
            through = len({end for _, end, _ in gap}) > 1
            help = f"its ids go from {low} to {high}"
            if through:
                help += "; edges lead to it and from it: was the layer deleted, or its id changed?"
            elif inside:
                help += ", without it: was the layer deleted, or its id changed?"
        others = {layer for _, _, layer in gap}  # which have an edge, if it leads nowhere
        unnamed = [layer for layer in _unnamed(graph) if layer not in others] if len(index.gaps) == 1 else []
        if len(unnamed) == 1:
            help = f"no edge names layer {unnamed[0]}: is that the one that is meant?"
            notes = (Note(f"layer {unnamed[0]}", unnamed[0].span),)
        message = f"there is no layer {number} in {where}"
        if index.shifted:
            message, help = f"there is no layer that edges have the id {number} for", "was it deleted?"
        notes += _naming([each for each, _, _ in gap[1:]])
        findings.add("E205", message, edge, name, graph=graph, layer=other, help=help, notes=notes)


def _identify(graph: Graph, index: _Index, edges: Sequence[Element]) -> None:
    """Find the layers whose own id cannot be read, or is that of another one, by the ids that only edges name: each of
    these is that of the layer which it fits best. Where most edges fit that it is doubtful no more."""
    identities = index.identities
    gaps: dict[int, _Gap] = {}
    for edge in edges:
        for name in ("from-layer", "to-layer"):
            id = whole_number(edge.attributes.get(name, ""))
            if id is not None and id not in identities.layers:
                gaps.setdefault(id, []).append((edge, name, None))
    if len(gaps) > MAX_LOOSE:
        return
    places: dict[Layer, int] = {}
    following = 0
    for layer in graph.layers:
        places[layer] = following
        following = following if layer.id == UNKNOWN_ID else layer.id + 1
    groups, identities.loose = identities.loose[:MAX_LOOSE], identities.loose[MAX_LOOSE:]
    named: set[Layer] = set()
    for group in groups:
        fits = {
            (id, layer): _fit(id, gap, layer, places[layer])
            for id, gap in gaps.items()
            for layer in group[:MAX_LOOSE]
            if layer not in named
        }
        id, layer = max(fits, key=fits.__getitem__, default=(UNKNOWN_ID, group[0]))
        if fits.get((id, layer), _NOWHERE) == _NOWHERE:
            identities.loose.append(group)
            continue
        identities.layers[id] = layer
        named.add(layer)
        del gaps[id]
        if fits[id, layer][0]:
            identities.doubtful.discard(layer)
    for group in {group[0]: group for group in groups}.values():
        left = [layer for layer in group if layer not in named]
        if left and left[0].id != UNKNOWN_ID:
            identities.layers[left[0].id] = left[0]
        if len(left) == 1 and len(group) > 1 and identities.doubtful.isdisjoint(set(group) - {left[0]}):
            identities.doubtful.discard(left[0])


def _fit(number: int, gap: _Gap, layer: Layer, following: int) -> tuple[float, ...]:
    """How well edges that name an id fit the ports of a layer, most of them or not, and how near that is to the one
    `following` that of the layer before it."""
    ends: dict[str, set[str | None]] = {"to-layer": set(), "from-layer": set()}
    for edge, name, _ in gap:
        ends[name].add(edge.attributes.get(name.replace("layer", "port")))
    inputs = {str(port.id) for port in layer.input_ports}
    outputs = {str(value.port.id) for value in layer.outputs}
    fitting = len(ends["to-layer"] & inputs) + len(ends["from-layer"] & outputs)
    strange = len(ends["to-layer"] - inputs) + len(ends["from-layer"] - outputs)
    if not fitting and (number != following or (ends["to-layer"] and not inputs)):
        return _NOWHERE
    return fitting > strange, -strange, -len(inputs - ends["to-layer"]), -abs(number - following)


def _naming(rest: Sequence[Element]) -> tuple[Note, ...]:
    """Notes for further edges that name what is not there."""
    return tuple(Note("this edge names it, too", edge.span) for edge in rest[:_MAX_NOTED])


def _report_missing_outputs(index: _Index, findings: Findings) -> None:
    """One error for each output port that edges name and that is not there, at the first of them."""
    for (producer, port), (edge, *rest) in _of_readable_ports(index).items():
        message = f"layer {producer} has no output port {port}"
        help = _port_help(producer, port, True)
        findings.add("E206", message, edge, "from-port", layer=producer, help=help, notes=_naming(rest))
        findings.lacking[producer, True] += 1


def _of_readable_ports(index: _Index) -> dict[tuple[Layer, int], list[Element]]:
    """The missing output ports, without those that are meant by edges for ports whose own id is at fault."""
    found = dict(index.missing)
    for (layer, output), positions in index.nameless.items() if index.missing else ():
        if output:
            ids = [port for producer, port in index.missing if producer is layer]
            for id in _meant(ids, [len(layer.input_ports) + at for at in positions]):
                del found[layer, id]
    return found


def _meant(ids: Sequence[int], positions: Sequence[int]) -> list[int]:
    """The ids of those that edges name which are meant for ports without one: the numbers of their positions first."""
    return [*(id for id in ids if id in positions), *(id for id in ids if id not in positions)][: len(positions)]


def _unnamed(graph: Graph) -> list[Layer]:
    """The layers of which no edge says anything."""
    return [layer for layer in graph.layers if not _is_connected(layer) and (layer.inputs or layer.outputs)]


def _is_connected(layer: Layer) -> bool:
    return any(layer.input_edges) or any(value.consumers for value in layer.outputs)


def _port(id: int | None, layer: Layer, output: bool, ports: dict[tuple[Layer, bool], dict[int, int]]) -> int | None:
    """The position of the port with this id among the inputs of `layer`, or its outputs."""
    known = ports.get((layer, output))
    if known is None:
        listed = [value.port for value in layer.outputs] if output else layer.input_ports
        known = ports[layer, output] = {port.id: number for number, port in reversed(list(enumerate(listed)))}
    return known.get(id) if id is not None else None


def _port_help(layer: Layer, id: int | None, output: bool) -> str:
    outputs = [value.port for value in layer.outputs]
    same, other = (outputs, layer.input_ports) if output else (layer.input_ports, outputs)
    side, opposite = ("output", "input") if output else ("input", "output")
    ids = ", ".join(str(port.id) for port in same[:8]) + (", ..." if len(same) > 8 else "")
    help = f"its {side} ports are {ids}" if same else f"it has no {side} ports"
    return help + (f"; {id} is an {opposite} port" if _has(other, id) else "")


def _has(ports: list[Port], id: int | None) -> bool:
    return any(port.id == id for port in ports)


def _report_unconnected(graph: Graph, index: _Index, findings: Findings) -> None:
    """Report edges into wrong ports, each with the input that it leaves without one, and other inputs without one."""
    bare = {
        port: layer
        for layer in graph.layers
        if None in layer.input_edges and layer not in index.identities.doubtful
        for at, (port, edge) in enumerate(zip(layer.input_ports, layer.input_edges, strict=True))
        if edge is None and at not in index.nameless.get((layer, False), ())
    }
    strays = _of_readable_inputs(index, bare)
    for number, stray in enumerate(strays):
        _report_stray(stray, bare if number < _MAX_PAIRED else {}, findings, alone=len(strays) == 1)
    left = _without_lost([*bare.items()], graph, index)
    alone = dict.fromkeys(layer for _, layer in left if len(layer.input_ports) > 1 and not _is_connected(layer))
    for layer in alone:
        message, help = "no edge leads to this layer, nor does one begin at it", "connect it, or delete it"
        findings.add("E208", message, layer.element, layer=layer, help=help)
    for port, layer in left:
        if layer in alone:
            continue
        message = f"no edge leads to input port {port.id}"
        help = "add an <edge>, or delete the <port> if the input is optional and the last one"
        findings.add("E208", message, port.element, layer=layer, help=help)


def _of_readable_inputs(index: _Index, bare: dict[Port, Layer]) -> list[_Stray]:
    """The edges into wrong ports, without those that are meant for ports whose own id is at fault. Of a layer to whose
    ports no edge leads the first one stands for all, and the ports that these leave are `bare` no longer."""
    by_reader: dict[Layer, list[_Stray]] = {}
    for stray in index.strays:
        by_reader.setdefault(stray.reader, []).append(stray)
    dropped: set[_Stray] = set()
    for reader, strays in by_reader.items():
        ports = reader.input_ports
        positions = list(index.nameless.get((reader, False), ()))
        for stray in sorted(strays, key=lambda stray: stray.port not in positions) if positions else ():
            fitting = [at for at in positions if stray.number is None or ports[at].id == stray.port]
            if fitting:
                at = stray.port if stray.port in fitting else fitting[0]
                positions.remove(at)
                dropped.add(stray)
        left = [stray for stray in strays if stray not in dropped]
        if len(left) > 1 and not any(reader.input_edges):
            others = left[1:]
            left[0].others = [stray.edge for stray in others]
            dropped.update(others)
            for port in [port for port in ports if port in bare][1 : len(others) + 1]:
                del bare[port]
    return [stray for stray in index.strays if stray not in dropped]


def _without_lost(left: list[tuple[Port, Layer]], graph: Graph, index: _Index) -> list[tuple[Port, Layer]]:
    """Inputs without those that the edges which arrive nowhere can be meant for."""
    if len(left) <= len(index.lost):
        return []
    if len(index.lost) > _MAX_PAIRED:
        return left
    edges = [edge for listed in graph.element.findall("edges") for edge in listed.children] if index.lost else []
    before = dict(zip(edges[1:], edges, strict=False))
    for lost in index.lost:
        previous = before.get(lost.edge)
        number = _plain_number(previous.attributes.get("to-layer")) if previous is not None else None
        likeness = [_likeness(lost, number or 0, *place) for place in left]
        del left[likeness.index(max(likeness))]
    return left


def _likeness(lost: _Lost, before: int, port: Port, layer: Layer) -> tuple[float, ...]:
    """How likely it is that an edge is meant for an input: by the layer and the port that it names, what is declared
    there, whether that comes behind where it begins, and how near it is to where the edge before it in the file leads.
    """
    behind = lost.value is None or layer.id > lost.value.layer.id
    near = -abs(layer.id - before)
    return layer.id == lost.reader, port.id == lost.port, _carries(lost.value, port), behind, near


def _report_stray(stray: _Stray, bare: dict[Port, Layer], findings: Findings, *, alone: bool) -> None:
    """Report an edge into a wrong port, of two into one that which is the likelier to be meant for another input.

    That input is `bare` no longer. Nothing is said of what the layer gives: nobody knows what it reads.
    """
    reader, edge, other = stray.reader, stray.edge, stray.first
    port, moved = _left_by(stray, bare, alone=alone)
    if moved:
        edge, other = other or edge, edge
    notes = [Note("the other one" if moved else "the first one", other.span)] if other is not None else []
    help = "an input has one source; delete one of the edges, or let it lead to the port that it is meant for"
    if port is not None:
        layer = bare.pop(port)
        notes.append(Note(f"no edge leads to input port {port.id} of layer {layer}", port.element.span))
        help = f"is it meant for input port {port.id} of layer {layer}, to which no edge leads?"
    if other is None:
        missing = _port_help(reader, stray.port, False)
        message = f"layer {reader} has no input port {stray.port}"
        help = f"{missing}; {help}" if port is not None else missing
        notes += [Note("nor has it the port of this edge", edge.span) for edge in stray.others[:_MAX_NOTED]]
        findings.add("E206", message, edge, "to-port", layer=reader, help=help, notes=tuple(notes))
        findings.lacking[reader, False] += 1 + len(stray.others)
    else:
        message = f"input port {stray.port} of layer {reader} has a second edge"
        findings.add("E207", message, edge, "to-port", layer=reader, help=help, notes=tuple(notes))
    if other is None or port is not None or edge.attributes != other.attributes:
        reader.broken = True


def _left_by(stray: _Stray, bare: dict[Port, Layer], *, alone: bool) -> tuple[Port | None, bool]:
    """The input that one wrong number leaves without an edge, and whether it is that of the first edge, not the second.

    It is another port of the layer, or the port of that number of another one; what is declared of it tells which. Of
    an edge that is `alone` in this it is the only one that there is.
    """
    reader = stray.reader
    own = [port for port in reader.input_ports if port in bare]
    others = [port for port, layer in bare.items() if port.id == stray.port and layer is not reader]
    taken = reader.input_ports[stray.number] if stray.number is not None else None
    first = reader.inputs[stray.number] if stray.number is not None else None
    last = list(bare) if alone and len(bare) == 1 else []
    for port in (*own, *others, *last):
        if _carries(stray.value, port):
            return port, False
        if taken is not None and _carries(first, port) and _carries(stray.value, taken):
            return port, True
    left = own or last
    return (left[0] if left else None), False


def _carries(value: Value | None, port: Port) -> bool:
    """Whether a value is declared as an input is; of one that nobody knows nothing speaks against it."""
    return value is None or port.declares_as(value.port)
