"""Constants whose bytes are likely not their own: what follows from a wrong shape or type is told once, there."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from irrun.diagnostics import Diagnostic, Note
from irrun.ir.graph import Layer
from irrun.ir.weights import Weights
from irrun.ir.xml import attribute_span

DOUBTS = ("W905", "W909")
"""What is said of such a constant as long as all that reads it can do with it."""

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
            if value is None or value.layer in seen:
                continue
            source = value.layer
            if source in weights.doubtful and (far == 0 or _contradicts_itself(source, weights)):
                return source
            seen.add(source)
            waiting.append((source, far + 1))
    return None


def _contradicts_itself(constant: Layer, weights: Weights) -> bool:
    blob, port = weights.checked(constant), constant.outputs[0].port
    if blob is None:
        return False
    return port.precision not in (None, blob.element_type) or bool(port.dims and port.dims != blob.shape)


def misshapen_inputs(layer: Layer, weights: Weights) -> Iterator[tuple[int, Layer]]:
    """The constants that a layer reads whose ports declare as many elements, but other sizes, and where it does so."""
    for number, value in enumerate(layer.inputs):
        if value is None or value.layer.type != "Const" or (blob := weights.checked(value.layer)) is None:
            continue
        dims = value.port.dims
        if dims and dims != blob.shape and math.prod(dims) == math.prod(blob.shape):
            yield number, value.layer


def followers(layers: Iterable[Layer], constants: Collection[Layer]) -> set[Layer]:
    """Constants and all that depends on them, of layers that come behind those which they read."""
    found: set[Layer] = set()
    if constants:
        for layer in layers:
            if layer in constants or any(value is not None and value.layer in found for value in layer.inputs):
                found.add(layer)
    return found


def refuted(problems: Iterable[Diagnostic], mistaken: Mapping[Layer, Diagnostic], weights: Weights) -> list[Diagnostic]:
    """The problems, with doubts of constants as errors where something cannot be computed with them."""
    own = [constant for constant in mistaken if constant not in weights.doubtful]
    told_of = {constant: weights.doubtful.get(constant, constant).label for constant in mistaken}
    causes = {told_of[constant]: found for constant, found in reversed([*mistaken.items()])}
    problems = [*problems, *(_contradiction(constant) for constant in own)]
    told = [
        _as_error(problem, causes.pop(problem.layer)) if problem.code in DOUBTS and problem.layer in causes else problem
        for problem in problems
    ]
    return [*told, *causes.values()]  # of models that were read before, doubts are not reported again


def _contradiction(constant: Layer) -> Diagnostic:
    port = constant.outputs[0].port
    message = f"the shape is [{constant.attributes['shape']}], but the port declares {list(port.dims)}"
    return Diagnostic(DOUBTS[0], message, attribute_span(constant.data or constant.element, "shape"), constant.label)


def _as_error(doubt: Diagnostic, found: Diagnostic) -> Diagnostic:
    notes = (*doubt.notes, Note(f"layer {found.layer}: {found.message}", found.span), *found.notes)
    message = f"{doubt.message}, and what reads it cannot be computed"
    help = "OpenVINO goes by the shape, the type and the offset, and refuses the model: one of them is wrong"
    return replace(doubt, code="E511", message=message, help=help, notes=notes)
