"""Smaller sizes: a size that inputs have, wherever it stands, as one number after another that may do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from irrun.diagnostics import IRError
from irrun.ir.graph import Layer, Model
from irrun.ir.signature import names_of
from irrun.ir.weights import WeightsError
from irrun.spec.dtypes import CODES
from irrun.spec.op import Array
from irrun.tools.editing import redeclare
from irrun.tools.reduce.layers import Subject
from irrun.tools.reduce.trials import Trials

MAX_SHAPE = 16
"""Elements of an integer constant that may be a shape."""

MAX_SIZES = 8
"""Different sizes that are tried, the largest first."""


def smaller_sizes(subject: Subject, trials: Trials) -> Subject:
    """The subject with sizes as small as it still fails alike with. Raises Exhausted.

    Inputs and weights are cut where they have the size; shapes that constants hold are changed with them.
    """
    for size in _sizes(subject.inputs or {})[:MAX_SIZES]:
        for other in (1, 2, size // 2):
            if other >= size:
                continue
            made = _with_size(subject, size, other, weights=True) or _with_size(subject, size, other, weights=False)
            if made is not None and trials.holds(made.model, made.inputs, f"size {size} as {other}"):
                subject = made
                break
    return subject


def _sizes(inputs: Mapping[str, Array]) -> list[int]:
    """The sizes of the inputs, those first that most elements hang on."""
    counts: Counter[int] = Counter()
    for array in inputs.values():
        for size in set(array.shape):
            counts[size] += array.size
    return [size for size, _ in sorted(counts.items(), key=lambda item: (-item[1], -item[0])) if size > 1]


def _with_size(subject: Subject, size: int, other: int, *, weights: bool) -> Subject | None:
    """The subject with one size as another, in `weights`, too; None where that is no model."""
    model = subject.model.copy()
    try:
        inputs = _cut_inputs(model, subject.inputs or {}, size, other)
        for layer in list(model.graph.walk()):
            if layer.type == "Const":
                _cut_constant(model, layer, size, other, weights=weights)
        redeclare(model)
    except (IRError, ValueError, TypeError, WeightsError):
        return None
    return Subject(model, inputs)


def _cut_inputs(model: Model, given: Mapping[str, Array], size: int, other: int) -> dict[str, Array]:
    inputs = {}
    for layer in model.graph.parameters:
        name = next(name for name in names_of(layer) if name in given)
        array = _cut(given[name], size, other)
        if array.dtype.kind in "iu" and array.size and int(array.max()) >= other and int(array.max()) < size:
            array = np.minimum(array, other - 1)  # it may count what there are fewer of now
        inputs[name] = array
        model.set_attribute(layer, "shape", ",".join(map(str, array.shape)))
    return inputs


def _cut_constant(model: Model, layer: Layer, size: int, other: int, *, weights: bool) -> None:
    type = layer.attributes.get("element_type", "")
    shape = model.weights.check(layer).shape
    if type in CODES:
        return
    if type in ("i32", "i64") and len(shape) <= 1 and int(np.prod(shape)) <= MAX_SHAPE:
        array = model.weights.constant(layer)
        changed = np.where(array == size, np.asarray(other, array.dtype), array)
        if not np.array_equal(changed, array):
            model.set_constant(layer, changed, type=type)
    elif weights and size in shape:
        model.set_constant(layer, _cut(model.weights.constant(layer), size, other), type=type)


def _cut(array: Array, size: int, other: int) -> Array:
    """The first elements along each axis of the size."""
    index = tuple(slice(0, other) if length == size else slice(None) for length in array.shape)
    return np.ascontiguousarray(array[index]).reshape([other if s == size else s for s in array.shape])
