"""Weights that a model keeps in fewer bits than it computes with: what their rounding may have changed.

The other side's own weights need not be known for that, as where normalizations were folded into ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from irrun.ir.graph import Layer, Model
from irrun.run.executor import GraphExecutor
from irrun.run.session import Event
from irrun.spec.op import Array
from irrun.spec.traits import Converting
from irrun.tools.compare.causes.case import Cause, number
from irrun.tools.compare.metrics import measure
from irrun.tools.compare.replay import Beside, Course
from irrun.tools.compare.results import Measured
from irrun.tools.compare.sides.contract import Observation
from irrun.tools.compare.stretches import Stretch

ROOM = 4.0
"""How many times what such rounding does by chance a tensor may be off, in rms and at most."""


def of_narrow_weights(
    beside: Beside,
    course: Course,
    observed: Sequence[Observation],
    expected: Mapping[str, Array],
    steps: Mapping[str, int],
) -> dict[str, Cause]:
    """The causes of tensors that are off by no more than weights which are moved by half a step of their type at random
    make of them; `expected` has what our kernels make of the weights as they are, in these `steps`."""
    executor = beside.executor
    types = _narrow(executor)
    if not types:
        return {}
    moved = GraphExecutor(
        _moved(executor.model, types), engine="reference", precision="auto", max_memory=executor.max_memory
    )
    found: dict[str, Cause] = {}

    def told(event: Event, other: Array, measured: Measured, _: Stretch) -> None:
        right = expected.get(event.name) if steps.get(event.name) == measured.where.step else None
        if right is None or other.shape != right.shape:
            return
        off, chance = measure(other, right), measure(event.array, right)
        if off.nonfinite_differing or off.nrmse > ROOM * chance.nrmse or off.max_abs > ROOM * chance.max_abs:
            return
        kept = " and ".join(sorted(set(types.values())))
        notes = (
            f"it is off by {number(off.max_abs)} at most, {off.sqnr:.1f} dB",
            f"weights that are moved by half a step of {kept} at random change it by {number(chance.max_abs)} at most,"
            f" {chance.sqnr:.1f} dB",
        )
        help = f"that is compression to {kept}: convert the model without it, which tells whether all else is right"
        found[event.name] = Cause("N212", f"the weights are kept in {kept}", notes, help)

    replace(beside, executor=moved).replay(course, observed, told)
    return found


def _narrow(executor: GraphExecutor) -> dict[Layer, str]:
    """The constants that are kept in f16 or bf16 and only read to be converted, with these types."""
    inference = executor.report.inference
    nodes = {} if inference is None else inference.nodes
    found = {}
    for layer in executor.model.graph.walk():
        type = layer.attributes.get("element_type", "")
        readers = [nodes.get(reader) for value in layer.outputs for reader, _ in value.consumers]
        converted = readers and all(node is not None and node.op.trait(Converting) is not None for node in readers)
        if layer.type == "Const" and type in ("f16", "bf16") and converted:
            found[layer] = type
    return found


def _moved(model: Model, types: Mapping[Layer, str]) -> Model:
    """The model with these constants in f32, each number moved by up to half of what it is from the next one."""
    chance = np.random.default_rng(0)
    copy = model.copy()
    for layer, other in zip(model.graph.walk(), copy.graph.walk(), strict=True):
        if layer in types:
            kept = model.weights.constant(layer)
            wide = kept.astype(np.float32)
            with np.errstate(all="ignore"):
                step = np.nextafter(kept, kept.dtype.type(np.inf)).astype(np.float32) - wide
            moved = np.where(np.isfinite(step), step, 0) * chance.uniform(-0.5, 0.5, kept.shape)
            copy.set_constant(other, wide + moved.astype(np.float32), type="f32")
    return copy
