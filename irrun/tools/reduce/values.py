"""Simpler values: constants instead of what computes them, plain numbers in inputs and weights, attributes left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from irrun.check.attributes import read_attributes
from irrun.diagnostics import IRError
from irrun.ir.graph import Layer, Model
from irrun.ir.weights import WeightsError
from irrun.spec.attributes import REQUIRED
from irrun.spec.dtypes import CODES
from irrun.spec.op import Array
from irrun.spec.registry import registry
from irrun.tools.editing import redeclare
from irrun.tools.extract.regions import constant_layers
from irrun.tools.folding import computed, frontier_of
from irrun.tools.reduce.layers import Subject
from irrun.tools.reduce.trials import Trials

Key = TypeVar("Key")

SIMPLER: dict[str, Callable[[Array], Array]] = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "one value": lambda array: np.full_like(array, array.reshape(-1)[0]),
    "whole numbers": np.rint,
}
"""What may stand for floats, the simplest first."""

MAX_ONE_BY_ONE = 8
"""Arrays that are made simpler one by one where all together is too much."""


def simpler_values(subject: Subject, trials: Trials) -> Subject:
    """The subject with values, and attributes, as simple as it still fails alike with. Raises Exhausted."""
    for step in (_folded, _plain_weights, _plain_inputs, _default_attributes):
        subject = step(subject, trials)
    return subject


def _folded(subject: Subject, trials: Trials) -> Subject:
    """What is computed of constants alone as constants."""
    model = subject.model.copy()
    constants = constant_layers(model.graph)
    edge = frontier_of(model.graph, constants)
    if not edge:
        return subject
    try:
        for value, array in zip(edge, computed(model, edge), strict=True):
            model.replace(value, model.add_constant(array))
        model.prune()
        redeclare(model)
    except (IRError, ValueError, TypeError):
        return subject
    return _kept(subject, Subject(model, subject.inputs), trials, "constants computed")


def _plain_weights(subject: Subject, trials: Trials) -> Subject:
    layers = [
        number for number, layer in enumerate(subject.model.graph.walk()) if layer.type == "Const" and _is_float(layer)
    ]
    return _simplified(subject, trials, layers, _with_weights, "weights")


def _plain_inputs(subject: Subject, trials: Trials) -> Subject:
    names = [name for name, array in (subject.inputs or {}).items() if array.dtype.kind in "fV"]
    return _simplified(subject, trials, names, _with_inputs, "inputs")


def _simplified(
    subject: Subject,
    trials: Trials,
    keys: list[Key],
    change: Callable[[Subject, list[Key], Callable[[Array], Array]], Subject | None],
    what: str,
) -> Subject:
    """All of these in the simplest way that will do, else one by one."""
    for groups in ([keys], [[key] for key in keys[:MAX_ONE_BY_ONE]]):
        for group in groups:
            for name, simpler in SIMPLER.items():
                made = change(subject, group, simpler) if group else None
                if made is not None and trials.holds(made.model, made.inputs, f"{what} {name}"):
                    if group == keys:
                        return made
                    subject = made
                    break
    return subject


def _with_weights(subject: Subject, numbers: list[int], simpler: Callable[[Array], Array]) -> Subject | None:
    model, changed = subject.model.copy(), False
    layers = list(model.graph.walk())
    for number in numbers:
        layer = layers[number]
        try:
            array = model.weights.constant(layer)
            other = _as(simpler, array)
            if other.tobytes() != array.tobytes():
                changed = True
                model.set_constant(layer, other, type=layer.attributes["element_type"])
        except (TypeError, ValueError, WeightsError):
            return None
    return Subject(model, subject.inputs) if changed else None


def _with_inputs(subject: Subject, names: list[str], simpler: Callable[[Array], Array]) -> Subject | None:
    given = subject.inputs or {}
    changed = {name: _as(simpler, given[name]) for name in names}
    same = all(changed[name].tobytes() == given[name].tobytes() for name in names)
    return None if same else Subject(subject.model, {**given, **changed})


def _as(simpler: Callable[[Array], Array], array: Array) -> Array:
    if not array.size:
        return array
    with np.errstate(all="ignore"):
        if array.dtype.kind == "V":  # types that numpy has no functions for
            return simpler(array.astype(np.float32)).astype(array.dtype)
        return np.asarray(simpler(array)).astype(array.dtype)


def _is_float(layer: Layer) -> bool:
    type = layer.attributes.get("element_type", "")
    return type.startswith(("f", "bf")) and type not in CODES


def _default_attributes(subject: Subject, trials: Trials) -> Subject:
    """Attributes left out that have a default, all of them or one by one."""
    removable = list(_removable(subject.model))
    for groups in ([removable], [[one] for one in removable] if len(removable) > 1 else []):
        for group in groups:
            model = subject.model.copy()
            layers = list(model.graph.walk())
            try:
                for number, name in group:
                    model.set_attribute(layers[number], name, None)
                redeclare(model)
            except (IRError, ValueError):
                continue
            made = Subject(model, subject.inputs)
            if group and trials.holds(model, made.inputs, f"default {', '.join(name for _, name in group)}"):
                subject = made
                if group == removable:
                    return subject
    return subject


def _removable(model: Model) -> Iterator[tuple[int, str]]:
    """The attributes that are not what they are by default, as numbers of layers and names."""
    for number, layer in enumerate(model.graph.walk()):
        op = registry().find(layer.type, layer.version)
        if op is None or layer.type in ("Const", "Parameter", "Result"):
            continue
        values = read_attributes(op, layer).values or {}
        for attr in op.attrs:
            optional = attr.name in layer.attributes and attr.default is not REQUIRED
            if optional and values.get(attr.keyword) != attr.default:
                yield number, attr.name


def _kept(subject: Subject, other: Subject, trials: Trials, step: str) -> Subject:
    return other if trials.holds(other.model, other.inputs, step) else subject
