"""Which layers are constant: those that depend on no input of the model, variable or random number."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from irrun.ir.graph import Layer, Value
from irrun.spec.op import Source, Tensor
from irrun.spec.traits import Measuring

if TYPE_CHECKING:
    from irrun.check.infer import Inference

MAX_SOURCES = 2000
"""Layers in front of an input that are looked at to find out whether it is constant."""


def constant_layers(inference: Inference) -> set[Layer]:
    """All layers that are constant."""
    found: set[Layer] = set()
    for layer in inference.nodes:  # producers first
        if _stands(layer, inference) and all(value is not None and value.layer in found for value in layer.inputs):
            found.add(layer)
    return found


def is_constant(value: Value | None, inference: Inference, *, shapes: bool = False) -> bool:
    """Whether a value is known before a run, or of a layer that is constant, or would be if all `shapes` were; False if
    too many layers lead to that."""
    if value is None:
        return False
    return is_known(inference.tensor(value)) or _depends_on_constants(value.layer, inference, shapes=shapes)


def source_of(value: Value | None, inference: Inference) -> Source:
    """A value as an op asks for it that is another one before a run."""
    constant = partial(is_constant, value, inference)
    return Source(inference.tensor(value), constant, partial(constant, shapes=True))


def is_known(tensor: Tensor) -> bool:
    """Whether a tensor is known before a run and has elements, such as the shape of an input whose sizes are known."""
    return tensor.known and not is_empty(tensor)


def is_empty(tensor: Tensor) -> bool:
    return any(isinstance(size, int) and size == 0 for size in tensor.shape or ())


def _stands(layer: Layer, inference: Inference) -> bool:
    """Whether a layer is constant if its inputs are."""
    node = inference.nodes.get(layer)
    return layer.type == "Const" or (bool(layer.inputs) and node is not None and node.op.pure)


def _depends_on_constants(layer: Layer, inference: Inference, *, shapes: bool) -> bool:
    """Whether a layer is one of `constant_layers`, or would be if all `shapes` were constants, by looking at those in
    front of it; False if they are too many."""
    seen: set[Layer] = set()
    pending = [layer]
    while pending:
        layer = pending.pop()
        if layer in seen:
            continue
        seen.add(layer)
        node = inference.nodes.get(layer)
        if shapes and node is not None and node.op.trait(Measuring) is not None:
            continue
        if not _stands(layer, inference) or len(seen) > MAX_SOURCES:
            return False
        pending += [value.layer for value in layer.inputs if value is not None]
    return True
