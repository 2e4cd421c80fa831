"""Ops of newer operation sets as older ones that do the same, for releases that do not know the new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irrun.check.infer import InferredLayer, body_of, infer
from irrun.diagnostics import Diagnostic, IRError
from irrun.ir.graph import Layer, Model, Value
from irrun.spec.dims import Shape, Undecided
from irrun.spec.lowering import Decompose, Lowering
from irrun.spec.op import Op, Tensor, Violation
from irrun.spec.registry import opset_number, registry
from irrun.tools.inspect.contents import Contents
from irrun.tools.inspect.releases import Release, asked_of, parse_release, release_text, unreadable

MAX_STEPS = 8
"""Times that an op is replaced by an older one; there are three versions in a row at most."""


def lower(model: Model, given: Sequence[str]) -> None:
    """Write layers as those of a release, such as 2024.2, or of an operation set, such as opset8.

    Raises ValueError where it is neither, IRError with a diagnostic for each layer that has no older form.
    """
    for target in given:
        _lower(model, target)


def _lower(model: Model, target: str) -> None:
    number = opset_number(target)
    release = None if number is not None else parse_release(target)
    refused: dict[Layer, str] = {}
    for _ in range(MAX_STEPS):
        contents = Contents(model, infer(model.graph, model.weights))
        wanting = _beyond(contents, release) if release is not None else _above(contents, number or 0)
        left = {layer: what for layer, what in wanting.items() if layer not in refused}
        if not left:
            break
        for layer in left:
            node = contents.node(layer)
            reason = "its op is not known" if node is None else _lowered(model, layer, node, contents)
            if reason is not None:
                refused[layer] = reason
    name = f"opset{number}" if release is None else f"OpenVINO {release_text(release)}"
    problems = [
        Diagnostic("T101", f"{name} does not have {wanting[layer]}", layer.span, layer.label, _advice(reason))
        for layer, reason in refused.items()
        if layer in wanting
    ]
    if release is not None and not problems:
        problems = list(unreadable(Contents(model, infer(model.graph, model.weights)), release))
    if problems:
        raise IRError(problems)


def _advice(reason: str) -> str:
    return f"no older op is known to do the same: {reason}"


def _beyond(contents: Contents, release: Release) -> dict[Layer, str]:
    return {layer: what for layer, (asked, what) in asked_of(contents).items() if asked > release}


def _above(contents: Contents, number: int) -> dict[Layer, str]:
    found = {}
    for layer in contents.model.graph.walk():
        held = opset_number(layer.version)
        if held is not None and held > number:
            found[layer] = f"{layer.type} of {layer.version}"
    return found


def _lowered(model: Model, layer: Layer, node: InferredLayer, contents: Contents) -> str | None:
    """Give a layer the oldest operation set that has its op, else an older op; why not, where that cannot be."""
    first = f"opset{min(node.op.held_by, default=0)}"
    if node.op.held_by and layer.version != first:
        layer.version = layer.element.attributes["version"] = first
        return None
    lowering = node.op.lowering
    if node.op.decomposition is not None:
        return _decomposed(model, layer, node, node.op.decomposition, contents)
    if lowering is None:
        return f"{node.op.name} is the oldest of its kind"
    return _replaced(model, layer, node, lowering, contents)


def _replaced(model: Model, layer: Layer, node: InferredLayer, lowering: Lowering, contents: Contents) -> str | None:
    reason = _hindrance(layer, node, lowering, contents)
    if reason is not None:
        return reason
    if lowering.older is None:
        model.remove(layer, bridge=0)
        return None
    older = registry().ops[lowering.older]
    tensors = [contents.tensor(value) if value is not None else None for value in layer.inputs]
    order = _order(node, lowering, older, tensors)
    if order is None:
        return "the number of its axes is not known"
    attrs = {name: value for name, value in node.attrs.items() if name in {attr.keyword for attr in older.attrs}}
    changed = dict[str, Any]()
    if lowering.upwards:
        rank = len(tensors[0].shape or ()) if tensors and tensors[0] is not None else 0
        changed[lowering.upwards] = attrs[lowering.upwards] % max(rank, 1)
    for name, words in lowering.reworded.items():
        if attrs[name] in words:
            changed[name] = words[attrs[name]]
    reason = _differs(layer, node, lowering, attrs | changed, order, tensors, contents)
    if reason is not None:
        return reason
    _write(model, layer, older, changed, order, contents)
    return None


def _order(
    node: InferredLayer, lowering: Lowering, older: Op, tensors: Sequence[Tensor | None]
) -> list[int | np.ndarray[Any, Any]] | None:
    if lowering.arrange is not None:
        return lowering.arrange(node.attrs, tensors)
    return list(range(len(tensors) if older.variadic else min(len(tensors), len(older.inputs))))


def _hindrance(layer: Layer, node: InferredLayer, lowering: Lowering, contents: Contents) -> str | None:
    """Which condition of a lowering does not hold."""
    keywords = {attr.name: attr.keyword for attr in node.op.attrs}
    older = None if lowering.older is None else registry().ops[lowering.older]
    for name, allowed in lowering.only.items():
        value = node.attrs.get(keywords.get(name, name))
        if value not in allowed and not (value is None and () in allowed):
            return f"{lowering.older} has no `{name}` of {value}"
    names = [port.name for port in node.op.inputs]
    for name in lowering.natural:
        number = names.index(name)
        value = layer.inputs[number] if number < len(layer.inputs) else None
        known = contents.tensor(value).value if value is not None else None
        if value is not None and (known is None or not _natural(known)):
            return f"`{name}` may be negative, or is not known, and {lowering.older} takes what is 0 or more"
    if older is None:
        return None
    for value in layer.outputs[len(older.outputs) :]:
        if value.consumers and not older.outputs[-1].variadic:
            return f"output {value.index} is read, and {older.name} has {len(older.outputs)}"
    spare = layer.inputs[len(older.inputs) :]
    if lowering.arrange is None and not older.variadic and any(value is not None for value in spare):
        return f"{older.name} takes {len(older.inputs)} inputs"
    if lowering.upwards and (not layer.inputs or contents.tensor(layer.inputs[0]).shape is None):
        return f"the rank of its input is not known, and {older.name} counts axes from the front"
    return None


def _natural(array: np.ndarray[Any, Any]) -> bool:
    """Whether all elements are known to be 0 or more; those of sizes may be unknown, and are not below 0."""
    try:
        return all(bool(item >= 0) for item in array.flat)
    except Undecided:
        return False


def _differs(
    layer: Layer,
    node: InferredLayer,
    lowering: Lowering,
    attrs: Mapping[str, Any],
    order: Sequence[int | np.ndarray[Any, Any]],
    tensors: Sequence[Tensor | None],
    contents: Contents,
) -> str | None:
    """Why the rule of the older op does not say the same."""
    assert lowering.older is not None
    older = registry().ops[lowering.older]
    inputs = [tensors[item] if isinstance(item, int) else Tensor.of(item) for item in order]
    bodies = {name: body_of(body, contents.inference) for name, body in layer.bodies.items()}
    try:
        inferred = older.infer(inputs, {**older.defaults, **attrs}, bodies)
    except Violation as violation:
        return f"{older.name} {violation.label}: {violation.message}"
    if inferred.tolerated:  # by today's OpenVINO; an older one may refuse it
        broken = inferred.tolerated[0].violation
        return f"{older.name} {broken.label}: {broken.message}"
    for one, other in zip(node.outputs, inferred.outputs, strict=False):
        if one.type != other.type:
            return f"{older.name} gives {other.type}, not {one.type}"
        if one.shape is not None and other.shape is not None and len(one.shape) != len(other.shape):
            return f"{older.name} gives another shape"
        for name, words in lowering.reworded.items():
            if node.attrs[name] in words and not _same_sizes(one.shape, other.shape):
                return f"{older.name} has no `{name}` of {node.attrs[name]}, and {attrs[name]} may give other sizes"
    return None


def _same_sizes(shape: Shape | None, other: Shape | None) -> bool:
    """Whether two shapes are known to be the same, also of sizes that are not."""
    known = shape is not None and other is not None and len(shape) == len(other)
    return known and all((a == b) is True for a, b in zip(shape or (), other or (), strict=True))


def _write(
    model: Model,
    layer: Layer,
    older: Op,
    changed: Mapping[str, Any],
    order: Sequence[int | np.ndarray[Any, Any]],
    contents: Contents,
) -> None:
    """Make a layer one of the older op, which has the names of its attributes in common with the newer one."""
    known = {attr.name for attr in older.attrs}
    sources: list[Value | None] = []
    for item in order:
        sources.append(
            layer.inputs[item] if isinstance(item, int) else model.add_constant(item, graph=layer.graph).outputs[0]
        )
    kept = {name: text for name, text in layer.attributes.items() if name in known}
    made = model.add(
        older.type,
        [source for source in sources if source is not None],
        {},
        name=layer.name,
        version=f"opset{min(older.held_by)}",
        outputs=min(len(layer.outputs), len(older.outputs)) if not older.outputs[-1].variadic else len(layer.outputs),
        graph=layer.graph,
    )
    for name, text in kept.items():
        model.set_attribute(made, name, changed.get(name, text))
    made.rt_info = layer.rt_info
    _take_over(model, layer, made.outputs, contents)


def _take_over(model: Model, layer: Layer, outputs: Sequence[Value], contents: Contents) -> None:
    """Let values take the places, and the names, of the outputs of a layer, which goes.

    What was known of these is known of them: layers that read them are looked at before all is inferred again.
    """
    contents.inference.nodes[outputs[0].layer] = contents.inference.nodes[layer]
    for value, other in zip(layer.outputs, outputs, strict=False):
        names, other.port.precision, other.port.dims = value.port.names, value.port.precision, value.port.dims
        for reader, number in list(value.consumers):
            model.rewire(reader, number, other)
        other.port.names, value.port.names = names, ()
    model.remove(layer)


def _decomposed(model: Model, layer: Layer, node: InferredLayer, build: Decompose, contents: Contents) -> str | None:
    """Put several older ops in the place of a layer; why not, where that cannot be."""
    values = {name: value for name, value in zip(node.op.port_names, layer.inputs, strict=False) if value is not None}
    known = {name: contents.tensor(values[name]) if name in values else None for name in node.op.port_names}

    def make(name: str, *inputs: Any, **attrs: Any) -> Value:
        op = registry().ops[name]
        sources = [values[item] if isinstance(item, str) else item for item in inputs]
        sources = [model.add_constant(x, graph=layer.graph) if isinstance(x, np.ndarray) else x for x in sources]
        added = model.add(op.type, sources, attrs, version=f"opset{min(op.held_by)}", graph=layer.graph)
        added.rt_info = layer.rt_info
        return added.outputs[0]

    try:
        made: Value = build(make, known, node.attrs)
    except ValueError as error:
        return str(error)
    _take_over(model, layer, [made], contents)
    model.rename(made.layer, layer.name)
    return None
