"""Why a tensor differs: the tests of all families in turn, of which the first that explains all of it is the answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from irrun.spec.op import Array
from irrun.tools.compare.causes import (
    affine,
    arrangement,
    changes,
    filling,
    integers,
    nonfinite,
    regions,
    replay,
    rounding,
    ties,
    weights,
)
from irrun.tools.compare.causes.case import Case, Cause, number
from irrun.tools.compare.metrics import Metrics, measure
from irrun.tools.compare.observed import Context, Observed

Test = Callable[[Case], Cause | None]

STRUCTURE: tuple[Test, ...] = (
    integers.one_off,
    affine.scaled,
    arrangement.axes_moved,
    arrangement.shifted,
    arrangement.slices_mixed,
    arrangement.elements_mixed,
    affine.scaled_by_most_slices,
    regions.part,
    affine.scaled_by_slice,
)
"""What shows in the tensor alone."""

TESTS: tuple[Test, ...] = (
    weights.other_values,
    changes.other_constant,
    nonfinite.overflow,
    nonfinite.underflow,
    nonfinite.born,
    integers.narrowed,
    ties.own_tie,
    rounding.ill_conditioned,
    replay.stale,
    replay.swapped,
    filling.filled,
    replay.index_off,
    replay.window_off,
    weights.read_otherwise,
    replay.other_attribute,
    integers.saturated_pairs,
    filling.clipped,
    *STRUCTURE,
    replay.since_the_first_step,
)

UNEXPLAINED = "N299"
"""The code of what no test explains."""

MAX_DOUBTS = 2
"""Known deviations that are named though they may not be the cause."""

_AS_WHOLE = {"input": ("N213", "the model's input differs"), "constant": ("N212", "the weights differ")}
"""What structure means in what no layer has computed."""


def decide(observed: Observed, context: Context) -> Cause:
    """The first cause that suffices for what differs, by tests on the numbers; N299 where none does.

    Texts are compared, too, and tensors of other shapes.
    """
    case = Case(observed, context)
    if observed.actual.shape != observed.expected.shape or not case.metrics.comparable:
        return _deviation(case) or changes.other_layer(case) or changes.other_constant(case) or _of_shape(case)
    again = rounding.repeated(case)
    if again is not None:
        return again
    if case.right:
        return _of_right(case)
    known = _deviation(case)
    if known is not None:
        return known
    whole = _AS_WHOLE.get(observed.source)
    if whole is not None:
        return _of_whole(case, *whole)
    changed = changes.other_layer(case)
    if changed is not None:
        return changed
    watched = _watched(case)
    if watched is not None:
        return watched
    for test in TESTS:
        cause = test(case)
        if cause is not None:
            return _with_doubts(case, cause)
    return _with_doubts(case, _passes(case) or _unexplained(case))


def _with_doubts(case: Case, cause: Cause) -> Cause:
    """The cause, with what is known of the device on conditions that only somebody who knows the data can judge."""
    seen, known = case.observed, case.context.deviations
    doubts = [] if known is None else [entry for entry in known(seen.layer, seen.inputs) if entry[2]]
    notes = tuple(f"a known deviation where {when}: {does}; {because}" for does, because, when in doubts[:MAX_DOUBTS])
    return replace(cause, evidence=(*cause.evidence, *notes))


def _of_right(case: Case) -> Cause:
    """The layer's own result is right: what of our own run differs came with its inputs."""
    seen = case.observed
    total = measure(seen.actual, seen.reference, case.tolerance, seen.precision)
    if total.nonfinite_differing and all(array is None or _finite(array) for array in seen.inputs):
        here = Case(replace(seen, expected=seen.reference, tolerance=case.tolerance), case.context)
        found = nonfinite.born(here)
        if found is not None:
            return found
    tie = ties.inherited_tie(case)
    if tie is not None:
        return tie
    found = rounding.within(case)
    assert found is not None
    return found


def _finite(array: Array) -> bool:
    return not sum(measure(array, array).nonfinite)


def _deviation(case: Case) -> Cause | None:
    """What is known of the device, where it does that on these inputs."""
    seen = case.observed
    if case.context.deviations is None:
        return None
    found = [known for known in case.context.deviations(seen.layer, seen.inputs) if not known[2]]
    if not found:
        return None
    does, because, _ = found[0]
    m = case.metrics
    if m.comparable:
        differing = f"{case.counts} values differ, by {number(m.max_abs)} at most"
    else:
        differing = f"it is {m.type}{list(m.shape)}, expected {m.expected_type}{list(m.expected_shape)}"
    notes = (because, differing)
    return Cause("N104", f"a known deviation: {does}", notes)


def _of_whole(case: Case, code: str, what: str) -> Cause:
    """An input of the model or a weight that differs: there is no layer to blame, but there may be a rule."""
    for test in (nonfinite.rounded_to, filling.filled, integers.narrowed, filling.clipped, *STRUCTURE):
        cause = test(case)
        if cause is not None and cause.code == code:
            return cause
        if cause is not None:
            return Cause(code, f"{what}: {cause.sentence}", cause.evidence, cause.help)
    return Cause(code, what, (_amount(case),), "compare what both sides were given, element by element")


def _watched(case: Case) -> Cause | None:
    """Whether the tensor is right where all tensors are outputs, or wrong only there."""
    tapped = case.context.tapped
    help = "fused layers are computed otherwise; look at them as one, or keep the compiler from fusing them"
    if tapped is not None and tapped.shape == case.expected.shape:
        seen = measure(tapped, case.expected, case.tolerance, case.observed.precision)
        if seen.within(case.tolerance):
            notes = (
                _amount(case),
                f"where all tensors are outputs the same one is right: {number(seen.max_abs)} off at most",
            )
            return Cause("N214", "fusion: it is right where its neighbours are outputs, too", notes, help)
    if case.context.untapped_right:
        notes = (_amount(case), "the outputs of the model are right as long as no other tensor is an output")
        return Cause("N214", "fusion: it is wrong only while it is watched", notes, help)
    return None


def _passes(case: Case) -> Cause | None:
    name = case.context.pass_name
    if name is None:
        return None
    notes = (_amount(case), f"the graph before `{name}` gives the right value, the one after it does not")
    return Cause(
        "N215",
        f"the transformation `{name}` changes the value",
        notes,
        "report it with the two graphs, or disable the pass",
    )


def _of_shape(case: Case) -> Cause:
    found = arrangement.of_other_shape(case)
    if found is not None:
        return found
    m = case.metrics
    note = f"it is {m.type}{list(m.shape)}, expected {m.expected_type}{list(m.expected_shape)}"
    return Cause("N216", "another shape or type", (note,), "compare the shapes that both sides infer, layer by layer")


def _amount(case: Case) -> str:
    m: Metrics = case.metrics
    if not case.numeric:
        return f"{m.mismatches:,} of {m.count:,} values differ"
    text = f"{m.mismatches:,} of {m.count:,} values are beyond the tolerance {case.tolerance.elements}"
    if not m.mismatches:
        text = f"it differs {m.beyond(case.tolerance)}"
    return f"{text}, by {number(m.max_abs)} at most, {m.sqnr:.1f} dB"


def _unexplained(case: Case) -> Cause:
    m = case.metrics
    notes = [_amount(case)]
    if m.worst is not None and m.worst_values is not None:
        found, right = m.worst_values
        notes.append(f"most at {list(m.worst)}: {found}, expected {right}")
    part = f", or {number(m.needed_rtol)} of it" if math.isfinite(m.needed_rtol) else ""
    notes.append(f"the least tolerance that passes is {number(m.needed_atol)} for each element{part}")
    name = case.observed.layer.name if case.observed.layer is not None else "NAME"
    command = f"irrun extract MODEL.xml --around '{name}' --distance 1"
    help = f"cut the layer out with its inputs, and look at it alone: {command}"
    return Cause(UNEXPLAINED, "no cause was found that explains all of it", tuple(notes), help)
