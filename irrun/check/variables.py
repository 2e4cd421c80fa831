"""Variables: what Assigns store against what the ReadValues of the same name declare."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

from irrun.check.doubts import doubtful_source
from irrun.check.infer import Inference, InferredLayer
from irrun.check.origins import as_told, cause_of, misdeclared
from irrun.diagnostics import Diagnostic, Note
from irrun.ir.graph import Graph, Layer, leading_to
from irrun.ir.structure import lacks_layers
from irrun.ir.xml import attribute_span
from irrun.spec.dims import Dim, Size
from irrun.spec.op import Tensor
from irrun.spec.patterns import shape_text

_SINCE = 6
"""The opset whose ReadValue declares what a variable may hold; that before goes by its initial value."""


def check_variables(inference: Inference) -> Iterator[Diagnostic]:
    """Errors of variables that cannot hold what is stored, or that are declared in two ways."""
    read: dict[tuple[Graph, str], InferredLayer] = {}
    built: set[tuple[Graph, str]] = set()
    stored: list[tuple[InferredLayer, str]] = []
    for node in [node for node in inference.nodes.values() if node.layer.type in ("ReadValue", "Assign")]:
        name = node.attrs["variable_id"]
        if node.layer.type == "Assign":
            stored.append((node, name))
            continue
        yield from _narrower(node, name, inference)
        first = read.setdefault((node.layer.graph, name), node)
        if not inference.unbuilt.holds(node.layer):
            built.add((node.layer.graph, name))
        if first is not node and first.layer.id != node.layer.id:  # one id of two layers is reported
            yield from _twice(node, first, name)
    lost = cache(lacks_layers)  # most models never ask, and others for every variable
    for node, name in stored:
        reader = read.get((node.layer.graph, name))
        if reader is not None and ("variable_type" in reader.attrs) == (node.op.version < _SINCE):
            help = f"OpenVINO holds variables of opset3 to opset5 apart from later ones: write {reader.layer.version}"
            message = f"variable `{name}` is read by {reader.op.name}, which no {node.op.name} stores for"
            yield Diagnostic("E219", message, node.layer.span, node.layer.label, help)
        elif (
            reader is not None
            and (node.layer.graph, name) not in built
            and not inference.unbuilt.holds(node.layer)  # as in the body of a loop that nobody reads
            and not lost(node.layer.graph)  # one of those that are not there may read it
        ):
            notes = (Note(f"layer {reader.layer} reads it", reader.layer.span),)
            message = f"variable `{name}` is stored, but its ReadValue reaches no Result or Assign: nobody reads it"
            help = "connect what the ReadValue gives, or delete both"
            yield Diagnostic("E219", message, node.layer.span, node.layer.label, help, notes)
        elif reader is not None and node.op.version < _SINCE and _is_independent(node.layer, reader.layer):
            notes = (Note(f"layer {reader.layer} reads it", reader.layer.span),)
            message = f"what is stored of variable `{name}` does not depend on its ReadValue"
            help = f"OpenVINO looks for it among what leads to an Assign before opset{_SINCE}, and refuses the model"
            yield Diagnostic("E219", message, node.layer.span, node.layer.label, help, notes)
        elif reader is not None:
            yield from _misfit(node, reader, name, inference)


def _is_independent(layer: Layer, other: Layer) -> bool:
    """Whether nothing that leads to a layer is the other one, nor has an input without an edge, which is reported."""
    leading = leading_to([layer])
    return other not in leading and not any(None in each.inputs for each in leading)


def _narrower(node: InferredLayer, name: str, inference: Inference) -> Iterator[Diagnostic]:
    """An error where a variable cannot have all sizes that its initial value may have, as OpenVINO demands."""
    source = node.layer.inputs[0] if node.layer.inputs else None
    given = inference.tensor(source).shape
    declared = node.attrs.get("variable_shape")
    if declared is None or source is None:
        return
    if given is None and (source.layer.type != "Parameter" or source.layer not in inference.nodes):
        return  # of others OpenVINO may know the rank
    if given is not None and all(itertools.starmap(_holds, zip(declared, given, strict=False))):
        return
    constants = (layer for layer in leading_to([node.layer]) if layer.type == "Const")
    if any(inference.weights.checked(layer) is None for layer in constants):  # which is reported
        return
    message = f"`init_value` is {shape_text(given)}, but variable `{name}` is declared as {shape_text(declared)}"
    help = "write a `variable_shape` that leaves open what the initial value does; OpenVINO refuses the model"
    span = attribute_span(node.layer.data or node.layer.element, "variable_shape")
    yield Diagnostic("E304", message, span, node.layer.label, help)


def _holds(declared: Size, given: Size) -> bool:
    """Whether a size that is declared may be each one that may be given."""
    if isinstance(given, int):  # which the rule of the op has looked at
        return True
    low, high = (declared, declared) if isinstance(declared, int) else (declared.low, declared.high)
    above = low is None or low <= (given.low or 0)
    return above and (high is None or (given.high is not None and given.high <= high))


def _twice(node: InferredLayer, first: InferredLayer, name: str) -> Iterator[Diagnostic]:
    notes = (Note(f"layer {first.layer} reads it, too", first.layer.span),)
    span = node.layer.span
    mine, other = node.outputs[0], first.outputs[0]
    if _fits(other, mine) and _fits(mine, other):
        help = "let the readers of one read the other; OpenVINO's CPU plugin does not run a model with two"
        yield Diagnostic("W912", f"variable `{name}` is read twice", span, node.layer.label, help, notes)
    else:
        message = f"variable `{name}` is {_text(mine)} here, but {_text(other)} in layer {first.layer}"
        help = "a variable has one type and one shape: write them alike, or give it another `variable_id`"
        yield Diagnostic("E304", message, span, node.layer.label, help, notes)


def _misfit(node: InferredLayer, reader: InferredLayer, name: str, inference: Inference) -> Iterator[Diagnostic]:
    given, declared = inference.tensor(node.layer.inputs[0]), reader.outputs[0]
    causes = {node.layer.inputs[0], *reader.layer.outputs} & inference.betrayed.keys()  # of which it is told
    if _fits(declared, given) or causes:
        return
    notes = (Note(f"layer {reader.layer} reads it", reader.layer.span),)
    message = f"what is stored is {_text(given)}, but variable `{name}` is {_text(declared)}"
    help = "a variable keeps its type and its shape, of which `variable_shape` may leave sizes open"
    code = "E303" if "dynamic" not in (given.type, declared.type) and given.type != declared.type else "E304"
    found = Diagnostic(code, message, node.layer.input_ports[0].element.span, node.layer.label, help, notes)
    doubtful = [doubtful_source(layer, inference.weights) for layer in (node.layer, reader.layer)]
    source = next(filter(None, doubtful), None)
    if source is not None:
        inference.refuted.setdefault(source, found)
        return
    owner = node.layer.graph.owner
    if owner is not None and any(
        each.layer == owner.label and each.severity == "error" for each in inference.diagnostics
    ):
        return  # what its body gets is not what was meant, of which it is told
    cause = cause_of(node.op, node.layer, node.attrs, inference)
    if owner is not None and (cause is None or cause.layer.type == "Parameter"):
        cause = next(iter(misdeclared(owner, inference)), cause)
    if cause is None and not as_told(reader.layer.outputs[0].port, declared):
        cause = reader.layer.outputs[0]
    if cause is not None:
        inference.betrayed.setdefault(cause, []).append(found)
    yield found


def _text(tensor: Tensor) -> str:
    return f"{tensor.type}{shape_text(tensor.shape)}"


def _fits(declared: Tensor, given: Tensor) -> bool:
    """Whether a variable that is `declared` so may hold a tensor of which `given` is known."""
    if "dynamic" not in (declared.type, given.type) and declared.type != given.type:
        return False
    if declared.shape is None or given.shape is None:
        return True
    sizes = zip(declared.shape, given.shape, strict=False)
    return len(declared.shape) == len(given.shape) and all(itertools.starmap(_meet, sizes))


def _meet(declared: Size, given: Size) -> bool:
    """Whether a size may be one that is declared. An open one is another one after each run: bounds alone count."""
    bounds = [(size.low, size.high) if isinstance(size, Dim) else (size, size) for size in (declared, given)]
    (low, high), (least, most) = bounds
    return (high is None or least is None or least <= high) and (low is None or most is None or low <= most)
