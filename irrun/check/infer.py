"""Inference: what is known of every tensor of a model before it runs, and which rules its layers break.

Layers are taken in an order in which producers come first. A layer that fails makes its outputs unknown, so one cause
gives one diagnostic and the rest of the model is still checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from irrun.check.attributes import read_attributes
from irrun.check.documentation import close_matches, constraint_text, source_page
from irrun.diagnostics import Diagnostic, Note
from irrun.ir.graph import Body as LayerBody
from irrun.ir.graph import Graph, Layer, Value
from irrun.ir.structure import topological_order
from irrun.ir.weights import Weights, WeightsError
from irrun.ir.xml import attribute_place
from irrun.spec.body import Body, BodyInput, BodyOutput
from irrun.spec.dims import fresh, product
from irrun.spec.dtypes import CODES, ELEMENT_TYPES, numpy_dtype
from irrun.spec.op import Op, Tensor, Violation
from irrun.spec.patterns import shape_text
from irrun.spec.registry import opset_number, registry

MOST_PROPAGATED = 4096
"""Elements of a tensor whose value is carried along: shapes, axes and small tables, not weights."""

MOST_INVENTED = 16
"""Elements of an unknown integer tensor that get a dimension each, so that equal ones stay equal."""

_UNKNOWN = Tensor("dynamic", None)
_TUPLE_FIELDS = ("axis", "start", "end", "stride", "part_size", "purpose")


@dataclass(eq=False, slots=True)
class Node:
    """A layer with its op, its attributes and what is known of its outputs; `complete` as in `irrun.spec.op.Node`."""

    layer: Layer
    op: Op
    attrs: dict[str, Any]
    types: Mapping[str, str]
    outputs: list[Tensor]
    complete: bool


@dataclass(eq=False, slots=True)
class Inference:
    """What is known of a model. `nodes` holds the layers that could be inferred, producers first, bodies included."""

    weights: Weights
    nodes: dict[Layer, Node] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    seen: set[tuple[Any, ...]] = field(default_factory=set)
    visited: set[Graph] = field(default_factory=set)

    def tensor(self, value: Value | None) -> Tensor:
        """What is known of a value; of None, an input whose edge the reader has found wanting, nothing."""
        if value is None:
            return _UNKNOWN
        node = self.nodes.get(value.layer)
        return node.outputs[value.index] if node and value.index < len(node.outputs) else _UNKNOWN

    def report(self, diagnostic: Diagnostic) -> None:
        # a body is inferred several times, for every round of a loop and every branch
        key = (diagnostic.code, diagnostic.place, diagnostic.layer)
        if key not in self.seen:
            self.seen.add(key)
            self.diagnostics.append(diagnostic)


def infer(graph: Graph, weights: Weights, parameters: Mapping[Layer, Tensor] | None = None) -> Inference:
    """Infer a whole model; `parameters` replaces what its Parameters declare."""
    inference = Inference(weights)
    infer_graph(graph, inference, parameters or {})
    return inference


def infer_graph(graph: Graph, inference: Inference, parameters: Mapping[Layer, Tensor]) -> None:
    """Infer one graph into `inference`, overwriting what is there of an earlier round."""
    inference.visited.add(graph)
    for layer in topological_order(graph):
        given = parameters.get(layer)
        inference.nodes.pop(layer, None)
        node = infer_layer(layer, inference)
        if node is not None:
            if given is not None and node.outputs:
                node.outputs = [_meet(node.outputs[0], given)]
            inference.nodes[layer] = node
        for body in layer.bodies.values():
            if body.graph not in inference.visited:  # the rule did not ask for it: check it by what it declares
                infer_graph(body.graph, inference, {})


def infer_layer(layer: Layer, inference: Inference) -> Node | None:
    """Infer one layer from what is known of its inputs; None where it fails, which is reported."""
    op = find_op(layer, inference)
    if op is None:
        return None
    attrs, problems = read_attributes(op, layer)
    for problem in problems:
        inference.report(problem)
    if attrs is None:
        return None
    inputs = [inference.tensor(value) for value in layer.inputs]
    bodies = {name: body_of(body, inference) for name, body in layer.bodies.items()}
    try:
        inferred = op.infer(inputs, attrs, bodies)
    except Violation as violation:
        inference.report(violated(violation, op, layer, inputs))
        return None
    if op.outputs and op.outputs[-1].variadic and not inferred.complete:  # how many there are, only a run tells
        inferred.outputs.extend([_UNKNOWN] * (len(layer.outputs) - len(inferred.outputs)))
    if len(inferred.outputs) < len(layer.outputs):
        message = f"{op.name} declares {len(layer.outputs)} outputs, expected {len(inferred.outputs)}"
        inference.report(Diagnostic("E302", message, layer.outputs[-1].port.element.place, layer.label))
    outputs = _with_values(op, attrs, inputs, inferred.outputs, inferred.types, layer, inference.weights)
    return Node(layer, op, attrs, inferred.types, outputs, inferred.complete)


def find_op(layer: Layer, inference: Inference) -> Op | None:
    known = registry()
    op = known.find(layer.type, layer.version)
    if op is not None:
        return op
    versions = known.versions(layer.type)
    name = "version"
    hint: str | None = None
    if versions and opset_number(layer.version) is None:
        message = f"`{layer.version}` is not an operation set that the reader knows"
        hint = "write opset1 to opset17; custom ops come from --ops FILE"
    elif versions:
        held = sorted(number for op in versions for number in known.opsets(op))
        message = f"{layer.version} does not contain {layer.type}"
        hint = f"{versions[0].type} is in opset{held[0]} to opset{held[-1]}" if held else None
    else:
        name, message = "type", f"unknown op `{layer.type}` of {layer.version}"
        close = close_matches(layer.type, known.types())
        hint = f"did you mean `{close[0]}`?" if close else "a custom op can be declared in a module given with --ops"
    place = attribute_place(layer.element, name)
    inference.report(Diagnostic("E301", message, place, layer.label, hint))
    return None


def violated(violation: Violation, op: Op, layer: Layer, inputs: Sequence[Tensor | None]) -> Diagnostic:
    """The diagnostic of a broken rule, with where the offending input comes from and what is known of it."""
    constraint = violation.label.startswith("C")
    notes = []
    place = layer.place
    names = [port.name for port in op.inputs]
    position = names.index(violation.port) if violation.port in names else len(inputs)
    tensor = inputs[position] if position < len(inputs) else None
    value = layer.inputs[position] if position < len(layer.inputs) else None
    if tensor is not None and value is not None:
        what = f"`{violation.port}` is {tensor.type}{shape_text(tensor.shape)}, from layer {value.layer}"
        notes.append(Note(what, value.layer.place))
        place = layer.input_ports[position].element.place
    return Diagnostic(
        "E401" if constraint else violation.label,
        f"{op.name} {violation.label}: {violation.message}" if constraint else violation.message,
        place,
        layer.label,
        help=f"{constraint_text(op, violation.label) + '; ' if constraint else ''}see {source_page(op)}",
        notes=tuple(notes),
        label=violation.label if constraint else None,
    )


def body_of(body: LayerBody, inference: Inference, run: Callable[..., Any] | None = None) -> Body:
    """A body as ops see it: port maps by number, and a way to infer it."""
    parameters = body.graph.parameters
    results = body.graph.results
    return Body(
        inputs=tuple(
            BodyInput(
                entry.external, parameters.index(entry.internal), *(getattr(entry, name) for name in _TUPLE_FIELDS)
            )
            for entry in body.inputs
        ),
        outputs=tuple(
            BodyOutput(entry.external, results.index(entry.internal), *(getattr(entry, name) for name in _TUPLE_FIELDS))
            for entry in body.outputs
        ),
        back_edges=tuple((results.index(edge.result), parameters.index(edge.parameter)) for edge in body.back_edges),
        parameters=len(parameters),
        results=len(results),
        infer=partial(infer_body, body.graph, inference),
        run=run,
        declared=tuple(_declared(parameter, inference) for parameter in parameters),
    )


def _declared(parameter: Layer, inference: Inference) -> Tensor:
    node = infer_layer(parameter, inference)
    return node.outputs[0] if node is not None and node.outputs else _UNKNOWN


def infer_body(graph: Graph, inference: Inference, tensors: Sequence[Tensor]) -> list[Tensor]:
    """What is known of the results of a body whose parameters are `tensors`."""
    infer_graph(graph, inference, dict(zip(graph.parameters, tensors, strict=True)))
    return [inference.tensor(layer.inputs[0] if layer.inputs else None) for layer in graph.results]


def _meet(declared: Tensor, given: Tensor) -> Tensor:
    """What is known of a parameter that declares one thing and is given another."""
    type = declared.type if given.type == "dynamic" else given.type
    shape = declared.shape if given.shape is None else given.shape
    return Tensor(type, shape, given.value)


def _with_values(
    op: Op,
    attrs: Mapping[str, Any],
    inputs: Sequence[Tensor | None],
    outputs: list[Tensor],
    types: Mapping[str, str],
    layer: Layer,
    weights: Weights,
) -> list[Tensor]:
    """The outputs with their values, as far as these can be computed before the run and are worth it."""
    if layer.type == "Const":
        return [_constant(layer, outputs[0], weights)]
    if any(tensor.value is not None for tensor in outputs):
        return outputs
    values = [tensor.value for tensor in inputs if tensor is not None]
    connected = sum(tensor is not None for tensor in inputs)
    if values and len(values) == connected and all(value is not None for value in values):
        computed = _compute(op, attrs, inputs, outputs, types)
        if computed is not None:
            return computed
    return [_invent(tensor) for tensor in outputs]


def _constant(layer: Layer, tensor: Tensor, weights: Weights) -> Tensor:
    if not tensor.static or tensor.type == "dynamic":
        return tensor
    # types that must be unpacked cost time and memory; nobody asks for the value of large ones before the run
    packed = tensor.type == "string" or ELEMENT_TYPES[tensor.type].bits < 8 or tensor.type in CODES
    if packed and product(tensor.shape or ()) > MOST_PROPAGATED:
        return tensor
    try:
        return Tensor(tensor.type, tensor.shape, weights.constant(layer))
    except WeightsError:  # the reader has reported it
        return tensor


def _compute(
    op: Op,
    attrs: Mapping[str, Any],
    inputs: Sequence[Tensor | None],
    outputs: Sequence[Tensor],
    types: Mapping[str, str],
) -> list[Tensor] | None:
    """The outputs computed by the op's own kernel, or None."""
    values = [None if tensor is None else tensor.value for tensor in inputs]
    arrays = [value for value in values if value is not None]
    symbolic = any(value.dtype == object for value in arrays)
    small = sum(value.size for value in arrays) <= MOST_PROPAGATED
    if not (op.pure and small and op.context <= {"types", "warn"} and (op.symbolic or not symbolic)):
        return None
    if not all(_small(tensor) for tensor in outputs):
        return None
    context = {"types": types, "warn": _ignore}
    extra = {name: context[name] for name in op.context}
    try:
        with np.errstate(all="ignore"):
            results = op.kernel(*values, **attrs, **extra)
        results = results if isinstance(results, tuple | list) else (results,)
        return [_valued(tensor, np.asarray(result)) for tensor, result in zip(outputs, results, strict=True)]
    except Exception:  # a question about an unknown dimension, or a failure that the run will report better
        return None


def _ignore(message: str) -> None:
    """Warnings about data are the run's."""


def _valued(tensor: Tensor, value: Any) -> Tensor:
    if value.dtype == object and tensor.type in ELEMENT_TYPES and all(isinstance(item, int) for item in value.flat):
        value = value.astype(numpy_dtype(tensor.type))
    return Tensor(tensor.type, tensor.shape, value)


def _small(tensor: Tensor) -> bool:
    return tensor.static and (product(tensor.shape or ()) <= MOST_PROPAGATED) is True


def _invent(tensor: Tensor) -> Tensor:
    """An unknown small tensor of integers with a dimension for each element."""
    if tensor.type not in ("i32", "i64") or tensor.shape is None or len(tensor.shape) > 1 or not tensor.static:
        return tensor
    count = int(product(tensor.shape))
    if count > MOST_INVENTED:
        return tensor
    value = np.empty(count, object)
    value[:] = [fresh(None) for _ in range(count)]
    return Tensor(tensor.type, tensor.shape, value.reshape([int(size) for size in tensor.shape]))
