"""Constants whose bytes are likely not their own: what follows from a wrong shape or type is told once, there."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from irrun.diagnostics import Diagnostic, LayerName, Note
from irrun.ir.constants import contradicts_port
from irrun.ir.graph import Layer, outside
from irrun.ir.weights import Weights
from irrun.ir.xml import attribute_span

OF_INPUTS = ("W947", "W948", "W949", "W951", "W952", "W954")
"""What is said of layers for the types, shapes and numbers of what they read."""

DOUBTS = ("W905", "W909")
"""What is said of such a constant as long as all that reads it can do with it."""

_OF_SHAPES, _FEW = ("i32", "i64"), 64
"""Element types of constants that shapes are made of, and as many elements as these have."""

MAX_ASKED = 4096
"""Layers that are looked at for such a constant."""


def doubtful_source(layer: Layer, weights: Weights) -> Layer | None:
    """The nearest constant that may be why a layer is wrong: one that it reads, or one further off whose own port says
    something else than its data do, as happens where only these were changed."""
    if not weights.doubtful:
        return None
    seen, waiting = {layer}, deque([(layer, 0)])
    while waiting and len(seen) < MAX_ASKED:
        reader, far = waiting.popleft()
        for value in reader.inputs:
            while value is not None and value.layer.type == "Parameter":  # of a body gets something outside
                value = outside(value.layer)
            if value is None or value.layer in seen:
                continue
            source = value.layer
            if source in weights.doubtful and (far == 0 or _reaches_far(source, weights)):
                moved = weights.doubtful[source]
                read = any(other is not None and other.layer is moved for other in reader.inputs)
                return moved if read else source
            seen.add(source)
            waiting.append((source, far + 1))
    return None


def _reaches_far(constant: Layer, weights: Weights) -> bool:
    """Whether a doubtful constant may be why layers fail that do not read it: its port says something else than its
    data do, or these are few integers which make shapes, and it is the one that has moved."""
    blob = weights.checked(constant)
    if blob is None:
        return False
    shapes = blob.element_type in _OF_SHAPES and blob.elements <= _FEW and weights.doubtful[constant] is constant
    return shapes or contradicts_port(constant, blob)


def followers(layers: Iterable[Layer], constants: Collection[Layer]) -> set[Layer]:
    """Constants and all that depends on them, of layers that come behind those which they read."""
    found: set[Layer] = set()
    if constants:
        for layer in layers:
            if layer in constants or any(value is not None and value.layer in found for value in layer.inputs):
                found.add(layer)
    return found


def of_sound_inputs(
    found: Iterable[Diagnostic], layers: Iterable[Layer], constants: Collection[Layer]
) -> Iterator[Diagnostic]:
    """The diagnostics but for those of inputs that depend on doubtful `constants`, of which the doubt is told."""
    labels = {layer.label for layer in followers(layers, constants)}
    return (each for each in found if each.code not in OF_INPUTS or each.layer not in labels)


def refuted(problems: Iterable[Diagnostic], mistaken: Mapping[Layer, Diagnostic], weights: Weights) -> list[Diagnostic]:
    """The problems, with doubts of constants as errors where something cannot be computed with them."""
    own = [constant for constant in mistaken if constant not in weights.doubtful]
    problems = [*problems, *(_contradiction(constant) for constant in own)]
    causes: dict[LayerName | None, Diagnostic] = {}
    for constant, found in mistaken.items():
        at = weights.doubtful.get(constant, constant)
        pair = next((problem for problem in problems if _is_of_pair(problem, at, constant)), None)
        if pair is not None and at not in mistaken:  # of the two that share bytes it is the other one that fails
            problems[problems.index(pair)] = _at_other(pair, at, constant)
            at = constant
        causes.setdefault(at.label, found)
    told = [
        _as_error(problem, causes.pop(problem.layer)) if problem.code in DOUBTS and problem.layer in causes else problem
        for problem in problems
    ]
    return [*told, *causes.values()]  # of models that were read before, doubts are not reported again


def _is_of_pair(problem: Diagnostic, at: Layer, other: Layer) -> bool:
    """Whether it says that one constant shares bytes with another one, and with no more."""
    return problem.code == "W909" and problem.layer == at.label and problem.message.endswith(f"of layer {other}")


def _at_other(doubt: Diagnostic, at: Layer, other: Layer) -> Diagnostic:
    """The same of two constants that share bytes, said of the other one."""
    message = doubt.message.removesuffix(str(other)) + str(at)
    notes = (Note(f"the bytes of layer {at}", doubt.span), *doubt.notes[1:])
    span = attribute_span(other.data or other.element, "offset")
    return replace(doubt, message=message, span=span, layer=other.label, notes=notes)


def _contradiction(constant: Layer) -> Diagnostic:
    """What is said of a constant that is as large as its port declares, or is not doubted for its size otherwise."""
    port, data = constant.outputs[0].port, constant.data or constant.element
    type = constant.attributes["element_type"].lower()
    if port.precision not in (None, type):
        message, name = f"the element type is {type}, but the port declares {port.precision}", "element_type"
    else:
        message, name = (
            f"the shape is [{constant.attributes['shape']}], but the port declares {list(port.dims)}",
            "shape",
        )
    return Diagnostic(DOUBTS[0], message, attribute_span(data, name), constant.label)


def _as_error(doubt: Diagnostic, found: Diagnostic) -> Diagnostic:
    notes = (*doubt.notes, Note(f"layer {found.layer}: {found.message}", found.span), *found.notes)
    message = f"{doubt.message}, and what reads it cannot be computed"
    help = "OpenVINO goes by the shape, the type and the offset: one of them is wrong"
    help = doubt.help or help if doubt.code == "W909" else help
    return replace(doubt, code="E511", message=message, help=help, notes=notes)
