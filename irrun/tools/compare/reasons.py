"""Why tensors of a replay are off: what the tests of causes want to know, and their answers."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from irrun.check.deviations import Deviation, concerning, explaining
from irrun.ir.graph import Layer
from irrun.records import dataclass
from irrun.run.session import Calculation, Event, Observer
from irrun.spec.dtypes import is_exact, is_number
from irrun.spec.op import Array
from irrun.tools.compare.budget import Budget
from irrun.tools.compare.causes.case import Cause
from irrun.tools.compare.causes.decision import UNEXPLAINED, decide
from irrun.tools.compare.narrowed import of_narrow_weights
from irrun.tools.compare.observed import Context, Earlier, Observed
from irrun.tools.compare.replay import Beside, Course, fitting
from irrun.tools.compare.results import Measured
from irrun.tools.compare.sides.constants import is_constant, is_constant_in
from irrun.tools.compare.sides.contract import Change, Changed, Observation, Side, Weighing, may_vary
from irrun.tools.compare.sides.failures import of_device
from irrun.tools.compare.stretches import Stretch
from irrun.tools.compare.tolerances import of_elements
from irrun.tools.folding import computed

MAX_FUSED = 2
"""Known deviations that are named of layers which are computed in one with the one that is off."""

MAX_EARLIER = 4
"""Steps and iterations before one that its tensor is held against, the latest ones."""


@dataclass(frozen=True, slots=True)
class _Own:
    """A tensor of our own run, and what its layer has read there."""

    array: Array
    inputs: Sequence[Array | None]


def reasons(
    beside: Beside,
    side: Side,
    course: Course,
    observed: Sequence[Observation],
    wanted: Mapping[str, int],
    caused: bool = False,
    keys: Sequence[str] | None = None,
) -> dict[str, Cause]:
    """The causes of tensors that are off, by their keys; `wanted` has the step that each is looked at in. `caused` says
    that outputs are wrong only while somebody looks, and `keys` which tensors were watched, if not all. What it takes
    has a `Budget`: behind that layers are not calculated again, which leaves what tensors show by themselves.

    Both runs are done again, so that nothing but these tensors and what their layers read is held at once.
    """
    if not wanted:
        return {}
    own: dict[str, _Own] = {}
    course = replace(course, steps=course.steps[: max(wanted.values()) + 1])  # what follows changes nothing of these

    def ours(step: int) -> Observer:
        def keep(event: Event) -> None:
            if wanted.get(event.name) == step:
                inputs = [None if array is None else array.copy() for array in event.calculation.inputs]
                own[event.name] = _Own(event.array.copy(), inputs)

        return keep

    begin = time.monotonic()
    beside.run(course, ours)
    budget = Budget(time.monotonic() - begin)
    # all that was watched before: a device fuses otherwise where less is, and so rounds otherwise
    again = side.observe(course.steps, keys) if may_vary(side) else None
    weights = side.weights(course.steps, wanted) if isinstance(side, Weighing) else {}
    changes = side.changes() if isinstance(side, Changed) else {}
    found: dict[str, Cause] = {}
    unexplained: dict[str, Array] = {}

    def told(event: Event, other: Array, measured: Measured, before: Stretch) -> None:
        key, step = event.name, measured.where.step
        if wanted.get(key) != step:
            return
        calculation, constants = event.calculation, _constants(event)
        inputs = calculation.inputs
        seen = Observed(
            calculation.op,
            event.layer,
            event.port,
            other,
            event.array,
            own[key].array,
            inputs,
            own[key].inputs,
            beside.computed_in(event, other),
            calculation.attributes,
            constants=constants,
            tolerance=of_elements(measured.tolerance),
        )
        context = Context(
            compute=budget.within(partial(_computed, calculation)),
            compute64=budget.within(partial(_computed, calculation, wide=True)),
            compute_as=budget.within(partial(_computed, calculation, inputs)),
            repeated=None if again is None else again[step].tensors.get(key),
            earlier=list(islice(_earlier(event, step, observed), MAX_EARLIER)),
            constants=_fitting(weights.get(key, {}), inputs),
            changes=_changes(changes, event.layer, before),
            deviations=partial(_deviations, beside, side.name, event) if side.kind == "device" else None,
            untapped_right=caused or None,
        )
        with budget.counting():
            cause = decide(seen, context)
        if cause.code == UNEXPLAINED and budget.over:
            sentence = f"it is not looked into further, as looking for causes has taken {budget.seconds:.0f} s"
            cause = replace(cause, sentence=sentence)
        found[key] = cause
        if cause.code == UNEXPLAINED:
            unexplained[key] = event.array.copy()

    beside.replay(course, observed, told)
    if unexplained and side.kind in ("model", "recorded"):  # which may have other weights than ours
        found |= of_narrow_weights(beside, course, observed, unexplained, wanted)
    return found


def folded(beside: Beside, side: Side, layers: Collection[Layer]) -> list[tuple[Layer, str, str]]:
    """Those of `layers` that are made of constants and that a device is known to compute otherwise, what it does and
    because of what.

    It computes these while it compiles, so that no tap shows them.
    """
    inference = beside.executor.report.inference
    if inference is None:
        return []
    doubtful = [layer for layer in layers if is_constant(layer) and concerning(layer, inference)]
    values = [value for layer in doubtful for value in (*layer.inputs, *layer.outputs) if value is not None]
    arrays = dict(zip(values, computed(beside.executor.model, values), strict=True)) if values else {}
    found: list[tuple[Layer, str, str]] = []
    for layer in doubtful:
        inputs = [None if value is None else arrays[value] for value in layer.inputs]
        told = _known(explaining(layer, inference, inputs, [arrays[value] for value in layer.outputs]), side.name)
        found += [(layer, does, because) for does, because, condition in told if not condition][:1]
    return sorted(found, key=lambda each: each[0].span.line)


def of_fused(beside: Beside, side: Side, layer: Layer) -> list[str]:
    """What a device is known to do otherwise with a layer, and with those that it computes in one with it: what no data
    decide, as nobody has seen these."""
    inference, entry = beside.executor.report.inference, beside.runtime.get(layer.name)
    if side.kind != "device" or inference is None or entry is None:
        return []
    found = []
    for other in inference.nodes:
        if other is layer or other.name in entry.fused:
            known = [row for row in concerning(other, inference) if all(clause[0] == "(" for clause in row.when)]
            for does, because, condition in _known(known, side.name):
                where = f" where {condition}" if condition else ""
                found.append(f"a known deviation of {other.type} `{other.name}`{where}: {does}; {because}")
    return found[:MAX_FUSED]


def _changes(changes: Mapping[Layer, Sequence[Change]], layer: Layer, before: Stretch) -> list[Change]:
    """What the other model has otherwise at a layer, and at those before it of which nothing is known."""
    found = [*changes.get(layer, ())]
    for other in before.layers:
        found += [replace(each, text=f"at `{other.name}` before it {each.text}") for each in changes.get(other, ())]
    return found


def _fitting(theirs: Mapping[int, Array], inputs: Sequence[Array | None]) -> dict[int, Array]:
    """The other side's own constants, by the number of the input, in the types of ours."""
    found = {}
    for number, other in theirs.items():
        ours = inputs[number] if number < len(inputs) else None
        fits = None if ours is None else fitting(other, ours)
        if fits is not None:
            found[number] = fits
    return found


def _deviations(
    beside: Beside, side: str, event: Event, layer: Layer | None, inputs: Sequence[Array | None]
) -> list[tuple[str, str, str]]:
    """What the device of a side is known to do otherwise with a layer on these inputs, because of what, and, where only
    somebody who knows the data can tell, on which condition.

    One that it is known to refuse, but has computed, is not among them.
    """
    inference = beside.executor.report.inference
    if layer is None or inference is None or not concerning(layer, inference):
        return []
    return _known(explaining(layer, inference, inputs, _computed(event.calculation, inputs)), side)


def _known(found: Sequence[Deviation], side: str) -> list[tuple[str, str, str]]:
    computing = [deviation for deviation in found if deviation.kind != "refuses" and of_device(deviation, side)]
    return [(deviation.does, deviation.because, deviation.conditions) for deviation in computing]


def _constants(event: Event) -> frozenset[int]:
    """The inputs that no run changes."""
    values = enumerate(event.layer.inputs)
    return frozenset(n for n, value in values if value is not None and is_constant_in(value, event.path))


def _computed(
    calculation: Calculation,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    wide: bool = False,
) -> list[Array]:
    """The layer's outputs for other inputs, or with other attributes, in f64 and i64 if `wide`; none where it assigns a
    variable."""
    given = [None if array is None else _widened(array) for array in inputs] if wide else inputs
    try:
        return calculation(given, attributes)
    except ValueError:
        return []


def _widened(array: Array) -> Array:
    if not is_number(array) or array.dtype == np.bool_:
        return array
    return array.astype(np.int64 if is_exact(array) else np.float64)


def _earlier(event: Event, step: int, observed: Sequence[Observation]) -> Iterator[Earlier]:
    """The same tensor of iterations before, and of steps before, the latest first."""
    if event.path:
        layer, body, iteration = event.path[-1]
        here, there = f"{layer}/{body}[{iteration}]/", f"{layer}/{body}[{{}}]/"
        for number in range(iteration - 1, -1, -1):
            other = observed[step].tensors.get(event.name.replace(here, there.format(number)))
            if other is not None:
                yield Earlier(f"iteration {number}", other)
    for number in range(step - 1, -1, -1):
        other = observed[number].tensors.get(event.name)
        if other is not None:
            yield Earlier(f"step {number}", other)
