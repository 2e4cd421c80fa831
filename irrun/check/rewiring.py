"""Inputs that read what they do not declare, but would not if two edges were exchanged, or one began elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations

from irrun.check.infer import Inference
from irrun.diagnostics import Diagnostic, LayerName, Note
from irrun.ir.graph import Graph, Layer, Port, Value, leading_to
from irrun.records import NamedTuple

MAX_LOOKED_AT = 1000
"""Inputs of a model that are not as declared: where they are more, that is no matter of single edges."""

_FEW = 64
"""Diagnostics of a model among which those of two edges that are exchanged are looked for."""

_COMPARED = 8
"""Other inputs, of the same shapes, that one is compared with."""

_OF_RULES = ("E303", "E304", "E305", "E401")
_OF_READERS = ("W931", "W932", *_OF_RULES, "E310")
"""What is said of a layer where an edge to it begins at another one than it should; of one that cannot be computed."""

_CYCLE = "E209"

_EDGES = "OpenVINO goes by the edges"


class Contradiction(NamedTuple):
    """An input that reads something else than it declares, and what is to be said of it."""

    layer: Layer
    number: int
    source: Value
    said: Sequence[Diagnostic]

    @property
    def port(self) -> Port:
        return self.layer.input_ports[self.number]

    def mirrors(self, other: Contradiction) -> bool:
        """Whether each of two declares what the other one reads, and may read it."""
        if not (self.port.declares_as(other.source.port) and other.port.declares_as(self.source.port)):
            return False
        if self.layer is other.layer or self.source.layer is other.source.layer:
            return True
        return self.may_read(other.source) and other.may_read(self.source)

    def may_read(self, value: Value) -> bool:
        """Whether a value is not made of the layer itself."""
        return self.layer not in leading_to([value.layer])


def told_at_readers(
    dead: Iterable[Diagnostic], found: Sequence[Diagnostic], graph: Graph
) -> tuple[set[LayerName | None], list[Diagnostic]]:
    """The layers that are `dead` since an edge begins elsewhere, as what is found of its reader says by then."""
    told: set[LayerName | None] = set()
    found = [*found]
    unread = {each.layer: each for each in dead}
    layers = [layer for layer in graph.walk() if layer.label in unread] if unread else []
    for layer in layers[:_COMPARED]:
        reader = _only_lost_reader(layer)
        at = next((number for number, each in enumerate(found) if reader is not None and _is_about(each, reader)), None)
        if at is None:
            continue
        told.add(layer.label)
        message = f"nothing reads layer {layer}, whose output is as an input here declares: is the edge to begin there?"
        texts = (found[at].help or "", *(note.message for note in found[at].notes))
        if not any(f"layer {layer}" in text for text in texts):
            found[at] = replace(found[at], notes=(*found[at].notes, Note(message, layer.span)))
    return told, found


def told_of_edges(found: Sequence[Diagnostic], graph: Graph) -> list[Diagnostic]:
    """What is found, with one diagnostic where two edges are exchanged, of which each may keep a layer from being
    computed, or lead back to where it begins; and errors of layers with the edge that may be why."""
    said = [each for each in found if each.code in (*_OF_READERS, _CYCLE)]
    if not any(each.severity == "error" for each in said) or len(said) > _FEW:
        return [*found]
    merged, dropped = _exchanges(said, graph)
    rules = {each.layer: each for each in said if each.code in _OF_RULES and id(each) not in merged.keys() | dropped}
    unread: dict[Graph, list[Value]] = {}
    for layer in graph.walk() if rules else ():
        if layer.label in rules:
            each = rules[layer.label]
            merged[id(each)] = _with_edge(each, layer, unread)
    return [merged.get(id(each), each) for each in found if id(each) not in dropped]


def _exchanges(said: Sequence[Diagnostic], graph: Graph) -> tuple[dict[int, Diagnostic], set[int]]:
    """What is to be said in place of diagnostics, by their id(), where two edges are exchanged; and what no more is."""
    ends = [end for layer in graph.walk() for end in _off(layer, said)]
    ends.sort(key=lambda end: (end.said[0].severity != "error", end.port.element.offset))  # of which one is left
    merged: dict[int, Diagnostic] = {}
    dropped: set[int] = set()
    for number, one in enumerate(ends):
        for other in ends[number + 1 :]:
            first, second = ([each for each in end.said if id(each) not in dropped] for end in (one, other))
            if not first or id(first[0]) in merged or not one.mirrors(other):
                continue
            rest = [each for each in (*first[1:], *second) if each is not first[0]]
            if rest:
                merged[id(first[0])] = _of_both(first[0], one, other, rest)
                dropped |= {id(each) for each in rest}
    return merged, dropped


def _with_edge(found: Diagnostic, layer: Layer, unread: dict[Graph, list[Value]]) -> Diagnostic:
    """An error of a layer with what tells that an edge to it begins at another layer than it should, if anything."""
    ends = [
        Contradiction(layer, number, source, ())
        for number, source in enumerate(layer.inputs)
        if source is not None and not layer.input_ports[number].declares_as(source.port)
    ]
    for one, other in combinations(ends[:_COMPARED], 2):
        if one.mirrors(other):
            return _of_both(found, one, other, ())
    if len(ends) != 1:
        return found
    (end,) = ends
    message = f"input {end.number} is not declared as what it reads, layer {end.source.layer}"
    value = _other_source(end, unread)
    if value is None:
        message += ": is the edge to it right?"
    else:
        message += f", but as output port {value.port.id} of layer {value.layer}: is the edge to begin there?"
    return replace(found, notes=(*found.notes, Note(message, end.port.element.span)))


def _of_both(found: Diagnostic, one: Contradiction, other: Contradiction, rest: Sequence[Diagnostic]) -> Diagnostic:
    """What is found of one input, as of two whose edges are exchanged."""
    of_one, of_other = ("", "") if one.layer is other.layer else (f" of layer {one.layer}", f" of layer {other.layer}")
    what = f"input {other.number}{of_other} declares what input {one.number}{of_one} reads"
    what += ", and reads what that one declares"
    others = [Note(f"layer {each.layer}: {each.message}", each.span) for each in rest]
    help = f"the edges to both seem to be exchanged, as to where they begin; {found.help or _EDGES}"
    return replace(found, notes=(Note(what, other.port.element.span), *found.notes, *others), help=help)


def _off(layer: Layer, said: Sequence[Diagnostic]) -> Iterator[Contradiction]:
    """The inputs of a layer that do not declare what they read, with what of that is said: of the layer, of that in
    whose body it is a Result, or of a cycle that it is in."""
    owner = layer.graph.owner if layer.graph.owner is not None and layer in layer.graph.results else None
    names = {each.label for each in (layer, owner) if each is not None}
    about = [each for each in said if each.layer in names or _leads_through(each, layer)]
    if not about:
        return
    off = [
        Contradiction(layer, number, source, about)
        for number, source in enumerate(layer.inputs)
        if source is not None and not layer.input_ports[number].declares_as(source.port)
    ]
    spans = {each.port.element.span for each in off}
    for end in off:
        cyclic = [each for each in about if each.code != _CYCLE or _leads_through(each, end.source.layer)]
        own = [each for each in cyclic if each.span == end.port.element.span or each.span not in spans]
        if own:
            yield end._replace(said=own)


def _leads_through(found: Diagnostic, layer: Layer) -> bool:
    return found.code == _CYCLE and any(note.span == layer.span for note in found.notes)


def _only_lost_reader(layer: Layer) -> Layer | None:
    """The only layer with an input that is declared as an output of a layer which nobody reads, and reads another."""
    unread = [value.port for value in layer.outputs if not value.consumers]
    readers = [
        reader
        for reader in layer.graph.layers
        for port, source in zip(reader.input_ports, reader.inputs, strict=True)
        if source is not None and (port.dims or port.precision) and not port.declares_as(source.port)
        if any(port.declares_as(output) for output in unread)
    ]
    return readers[0] if len(readers) == 1 else None


def _is_about(found: Diagnostic, layer: Layer) -> bool:
    """Whether it is about what a layer reads."""
    return found.layer == layer.label and found.code in _OF_READERS


def said_of_inputs(found: Sequence[Contradiction], inference: Inference) -> Iterator[Diagnostic]:
    """The warnings of inputs that are not as declared: one of two that are exchanged, at the first one."""
    if len(found) > MAX_LOOKED_AT:
        yield from chain.from_iterable(each.said for each in found)
        return
    alike: dict[tuple[Graph, tuple[int, ...], tuple[int, ...]], list[Contradiction]] = {}
    for each in found:
        alike.setdefault((each.layer.graph, each.port.dims, each.source.port.dims), []).append(each)
    unread: dict[Graph, list[Value]] = {}
    done: set[tuple[Layer, int]] = set()
    for each in found:
        if (each.layer, each.number) in done:
            continue
        done.add((each.layer, each.number))
        others = alike.get((each.layer.graph, each.source.port.dims, each.port.dims), [])
        left = [other for other in others if (other.layer, other.number) not in done]
        left.sort(key=lambda other: (other.layer is not each.layer, other.source.layer is not each.source.layer))
        other = next(filter(each.mirrors, left[:_COMPARED]), None)
        if other is not None:
            done.add((other.layer, other.number))
            yield _exchanged(each, other, inference)
        elif (value := _other_source(each, unread)) is not None:
            what = f"output port {value.port.id} of layer {value.layer} is as declared"
            yield _rewired([(each, value)], f"{what}: is the edge meant to begin there? {_EDGES}", inference)
        else:
            yield from each.said


def _exchanged(one: Contradiction, other: Contradiction, inference: Inference) -> Diagnostic:
    where = f"input {other.number}" + (f" of layer {other.layer}" if other.layer is not one.layer else "")
    note = Note(f"{where} declares what this one reads, and reads what this one declares", other.port.element.span)
    help = f"the edges to both seem to be exchanged, as to where they begin; {_EDGES}"
    found = _rewired([(one, other.source), (other, one.source)], help, inference)
    return replace(found, notes=(note,))


def _rewired(changes: Sequence[tuple[Contradiction, Value]], help: str, inference: Inference) -> Diagnostic:
    """What is said of the first of these inputs, with the values that they and others should read."""
    said = changes[0][0].said[-1]
    edges = [(each.layer.input_edges[each.number], value) for each, value in changes]
    inference.rewired[said.span] = [(edge, value) for edge, value in edges if edge is not None]
    return replace(said, help=help)


def _other_source(found: Contradiction, unread: dict[Graph, list[Value]]) -> Value | None:
    """The only other output of the same layer that is as an input declares; else the only value that nobody reads."""
    port, source, graph = found.port, found.source, found.layer.graph
    fitting = [value for value in source.layer.outputs if value is not source and port.declares_as(value.port)]
    if not fitting:
        if graph not in unread:
            values = [value for layer in graph.layers for value in layer.outputs if not value.consumers]
            unread[graph] = [value for value in values if value.layer.type not in ("Assign", "Result")]
        fitting = [value for value in unread[graph][:_COMPARED] if port.declares_as(value.port)]
        fitting = [value for value in fitting if found.may_read(value)]
    return fitting[0] if len(fitting) == 1 else None
