"""What another model has otherwise than ours, at the layers that compute with it, as `irrun.diff` tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from irrun.diagnostics import IRError, LayerName
from irrun.ir.graph import Layer, Model
from irrun.spec.registry import registry
from irrun.spec.traits import Quantizing
from irrun.tools.compare.sides.constants import is_constant
from irrun.tools.compare.sides.contract import Change
from irrun.tools.diff import diff
from irrun.tools.diff.edits import Edit
from irrun.tools.diff.view import path_of
from irrun.tools.diff.wording import value_text

COMPUTED = ("opset", "attribute", "retyped", "reshaped", "constant", "replaced", "inserted", "removed", "rewired")
"""Kinds of edits that may give other numbers."""

FOLLOWING = ("retyped", "reshaped")
"""Those that follow from something else where they are of what is computed."""


def changes_of(ours: Model, theirs: Model) -> Mapping[Layer, list[Change]]:
    """What is otherwise, by the layers of ours that compute with it; nothing where the models cannot be matched."""
    try:
        edits = diff(ours, theirs).edits
    except IRError:
        return {}
    here, there = _by_place(ours), _by_place(theirs)
    found: dict[Layer, list[Change]] = {}
    for edit in edits:
        if edit.kind not in COMPUTED:
            continue
        mine = _found(here, edit, (*edit.before, *edit.readers))
        about = [*_found(here, edit, edit.before), *_found(there, edit, edit.after)]
        if edit.kind in FOLLOWING and any(layer.inputs and not is_constant(layer) for layer in about):
            continue
        constant = all(is_constant(layer) for layer in about)
        for start in mine:
            for layer, outside in _computing(start):
                quantizes = any(_quantizes(each) for each in (layer, *about))
                change = Change(_text(edit, about, layer), constant, quantizes, outside)
                if change not in found.setdefault(layer, []):
                    found[layer].append(change)
    return found


def _by_place(model: Model) -> Mapping[tuple[tuple[str, ...], int], Layer]:
    return {(path_of(layer.graph), layer.id): layer for layer in model.graph.walk()}


def _found(
    layers: Mapping[tuple[tuple[str, ...], int], Layer], edit: Edit, labels: tuple[LayerName, ...]
) -> list[Layer]:
    return [layers[edit.path, label.id] for label in labels if (edit.path, label.id) in layers]


def _quantizes(layer: Layer) -> bool:
    op = registry().find(layer.type, layer.version)
    return op is not None and op.trait(Quantizing) is not None


def _computing(start: Layer) -> Iterator[tuple[Layer, Layer | None]]:
    """The layer, or those that read it where it is a constant or an input, in bodies, too, each with what comes into
    the body from outside; the one around the body where it is a result of that."""
    todo: list[tuple[Layer, Layer | None]] = [(start, None)]
    seen = set()
    while todo:
        layer, outside = entry = todo.pop()
        if entry in seen:
            continue
        seen.add(entry)
        if layer.type == "Result" and layer.graph.owner is not None:
            yield layer.graph.owner, None
        elif layer.inputs and not is_constant(layer):
            yield entry
        else:
            for reader, number in (consumer for value in layer.outputs for consumer in value.consumers):
                todo.append((reader, outside))
                ports = (port for body in reader.bodies.values() for port in body.inputs)
                todo += [(port.internal, outside or layer) for port in ports if port.external == number]


def _text(edit: Edit, about: Sequence[Layer], layer: Layer) -> str:
    """An edit of these layers of both models, as what is here and what is there, where it is told of a layer."""
    details, name = edit.details, f"`{edit.layers[0].name}`"
    if edit.kind == "attribute" and "attribute" in details:
        old, new = (tuple(v) if isinstance(v := details[key], list) else v for key in ("old", "new"))
        return f"attribute `{details['attribute']}` is {value_text(old)} here and {value_text(new)} there"
    if edit.kind == "inserted":
        return f"the other model has {edit.message} {edit.place}"
    if edit.kind == "removed":
        return f"the other model has no {edit.message} {edit.place}"
    if edit.kind == "rewired" and not edit.place:
        return f"{name} {edit.message}"
    here, arrow, there = (edit.place if edit.kind == "rewired" else edit.message).partition(" -> ")
    if "removed" in details:
        computing = [each for each in about if not is_constant(each)]
        if len(computing) == 2 and len(edit.before) == len(edit.after) == 1:
            here, there = map(_op, computing)
            if layer is computing[0]:
                return f"the other model's layer is {there}, not {here}"
            here = f"{here} {name}"
        return f"the other model has {there} in place of {here}"
    what = edit.role if edit.kind == "rewired" else f"constant {name}, {edit.role}," if edit.role else name
    return f"{what} is {here} here and {there} there" if arrow else f"{what} has {edit.message}{_figures(details)}"


def _op(layer: Layer) -> str:
    op = registry().find(layer.type, layer.version)
    return layer.type if op is None else op.name


def _figures(details: Mapping[str, Any]) -> str:
    """How much the values of a constant differ."""
    if "max_delta" not in details:
        return ""
    return f": {details['differing']:,} of {details['elements']:,} differ, by {details['max_delta']:.3g} at most"
