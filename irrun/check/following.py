"""What follows from one thing that is not as a port declares, told there: warnings of layers for what they read, and
other outputs of the same layer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from irrun.check.doubts import OF_INPUTS, followers
from irrun.check.infer import Inference, InferredLayer, body_of
from irrun.check.order import doubts_of
from irrun.check.origins import Supposed
from irrun.diagnostics import Diagnostic, LayerName, Note, Span, retold
from irrun.interruption import hand_on
from irrun.ir.graph import Graph, Value

_DECLARED = ("W931", "W932", "E310")
_FOLLOWS = "I903"
"""What is said of ports that are not as declared, and of those for which that follows from others."""

_FOLLOWING = (*OF_INPUTS, "W933")

_OF_RULES = ("E303", "E304", "E305", "E401")

_MOST = 100
"""Warnings of a model that are looked at: where they are more, they are not those of one port."""

_MOST_NOTED = 8
"""Further warnings of one cause that a diagnostic has a note for."""


def told_at_ports(found: Iterable[Diagnostic], inference: Inference) -> list[Diagnostic]:
    """What is found, with such warnings as notes of what is said of the ports."""
    found = [*found]
    refuted = {constant.label for constant in inference.refuted}
    typed = {each.layer for each in found if each.code == "W932"} | refuted  # whose bytes are no such numbers
    found = [each for each in found if each.code != "W913" or each.layer not in typed]
    told = {each.layer for each in found if each.code in (*_DECLARED, _FOLLOWS)}
    told |= {layer.label for layer in followers(inference.nodes, inference.refuted)}  # of which it is not told
    following = [each for each in found if each.code in _FOLLOWING] if told else []
    if not 0 < len(following) <= _MOST:
        return found
    labels = {each.layer for each in following}
    nodes = {layer.label: node for layer, node in inference.nodes.items() if layer.label in labels}
    notes: dict[LayerName | None, list[Note]] = {}
    dropped: set[int] = set()
    for each in following:
        node = nodes.get(each.layer) if each.layer is not None else None
        cause = None if node is None else _cause_of(each, node, inference)
        if cause is not None and cause.layer.label in told:
            dropped.add(id(each))
            notes.setdefault(cause.layer.label, []).append(Note(f"layer {each.layer}: {each.message}", each.span))
    return [
        replace(each, notes=(*each.notes, *notes.pop(each.layer)[:_MOST_NOTED]))
        if each.code in _DECLARED and each.layer in notes
        else each
        for each in found
        if id(each) not in dropped
    ]


def told_once(found: Sequence[Diagnostic], graph: Graph) -> list[Diagnostic]:
    """What is found, with one error where several layers cannot be computed with one constant, for its numbers or in
    the same words; of constants with wrong numbers or types it is not told as well that they are no numbers."""
    errors = [each for each in found if each.code in _OF_RULES and each.layer is not None]
    if not errors or len(found) > _MOST:
        return [*found]
    constants = {layer.span: layer.label for layer in graph.walk() if layer.type == "Const"}
    groups: dict[tuple[LayerName, str], list[Diagnostic]] = {}
    concerned: set[LayerName | None] = set()
    for each in errors:
        read = [constants.get(note.span) for note in each.notes if note.input is not None and note.span is not None]
        itself = len(read) == 1 or each.code == "E303"  # it is its numbers or its type, not its shape beside others
        if read and read[0] is not None:
            words = "" if itself else each.message.split(": ", 1)[-1]
            groups.setdefault((read[0], words), []).append(each)
        if itself:
            concerned.update(read)
    told: dict[int, Diagnostic | None] = {}
    for first, *rest in groups.values():
        others = [each for each in rest if each.layer != first.layer]  # which are independent of each other
        if others:
            notes = [Note(f"nor can layer {each.layer}: {each.message}", each.span) for each in others[:_MOST_NOTED]]
            told |= {id(each): None for each in others} | {id(first): replace(first, notes=(*first.notes, *notes))}
    told |= {id(each): None for each in found if each.code == "W913" and each.layer in concerned - {None}}
    return retold(found, told)


def _cause_of(found: Diagnostic, node: InferredLayer, inference: Inference) -> Value | None:
    """What is not as its port declares, if but for that the layer would give no such warning."""
    supposed = Supposed(node.layer, inference)
    if supposed.nearest is None:
        return None
    try:
        inputs = supposed.inputs()
        scratch = Inference(inference.weights)
        bodies = {name: body_of(body, scratch) for name, body in node.layer.bodies.items()}
        inferred = node.op.infer(inputs, node.attrs, bodies)
    except Exception as error:  # a rule is broken, or fails itself
        hand_on(error)
        return None
    codes = {each.code for each in inferred.tolerated}
    codes |= {each.code for each in doubts_of(node, inputs, inferred.doubts)}
    if found.code in codes or (found.code == "W933" and inferred.widened):
        return None
    return supposed.nearest


def told_together(found: Sequence[Diagnostic], inference: Inference) -> list[Diagnostic]:
    """What is found, with one diagnostic for what has one cause: type and sizes of a port that are not as declared, all
    outputs of a layer without bodies that readers declare as it does, and all that declare one output alike."""
    labels = {each.layer for each in found if each.code in _DECLARED}
    if sum(each.code in _DECLARED for each in found) < 2:
        return [*found]
    places: dict[Span, Hashable] = {}
    for layer in inference.nodes:
        if layer.label in labels:
            agreed = [] if layer.bodies else [value.port.element.span for value in layer.outputs if _is_agreed(value)]
            places.update((span, ("outputs", agreed[0])) for span in agreed)
            for port, value in zip(layer.input_ports, layer.inputs, strict=False):
                if value is not None:
                    places[port.element.span] = value.port.element.span, port.precision, port.dims
    groups: dict[Hashable, list[Diagnostic]] = {}
    for each in found:
        if each.code in _DECLARED and each.span is not None:
            groups.setdefault(places.get(each.span, each.span), []).append(each)
    told: dict[int, Diagnostic | None] = {}
    for group in groups.values():
        if len(group) > 1:
            first = next((each for each in group if each.severity == "error"), group[0])
            told |= {id(each): None for each in group}
            told[id(first)] = _of_all(first, [each for each in group if each is not first])
    return retold(found, told)


def _is_agreed(value: Value) -> bool:
    """Whether all that read an output declare it as its own port does."""
    return all(layer.input_ports[number].declares_as(value.port) for layer, number in value.consumers)


def _of_all(first: Diagnostic, others: Sequence[Diagnostic]) -> Diagnostic:
    """The first one, which says what else is wrong with the same port; other ports are notes."""
    same = [each for each in others if each.span == first.span]
    message = "; it ".join([first.message, *(_without_place(each.message) for each in same)])
    notes = [
        Note(each.message if each.layer == first.layer else f"layer {each.layer}: {each.message}", each.span)
        for each in others
        if each not in same
    ]
    return replace(first, message=message, notes=(*first.notes, *notes[:_MOST_NOTED]))


def _without_place(message: str) -> str:
    """What is said of a port, without `output 0` before it."""
    return message[message.index(" is declared") + 1 :] if " is declared" in message else message
