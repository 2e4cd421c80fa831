"""Causes that are no fault: rounding, rounding that has added up, and results that differ from run to run."""

from __future__ import annotations

import numpy as np

from irrun.tools.compare.blocks import blocks, numbers
from irrun.tools.compare.causes.case import Case, Cause, number
from irrun.tools.compare.metrics import measure

ROOM = 4.0
"""How many times its noise floor an element may be off, and besides the rms of that of all elements."""


def repeated(case: Case) -> Cause | None:
    """The other side gives another result each time."""
    again = case.context.repeated
    if again is None or again.shape != case.actual.shape:
        return None
    apart = measure(again, case.actual, case.tolerance, case.observed.precision)
    if apart.within(case.tolerance):
        if apart.equal or not case.right:
            return None
        sentence = "differs from run to run, within what rounding may do"
        return Cause(
            "N105",
            sentence,
            (
                f"two equal runs are {number(apart.max_abs)} apart at most,"
                f" {apart.steps_max:g} steps of {apart.precision}",
            ),
        )
    changed = apart.mismatches + apart.nonfinite_differing
    notes = [f"{changed:,} of {apart.count:,} values change between two equal runs, by {number(apart.max_abs)} at most"]
    if apart.nonfinite_differing:
        notes.append(f"{apart.nonfinite_differing:,} of them are finite in one run only")
    notes.append(f"the result is {number(case.metrics.max_abs)} from what is expected, at most")
    help = "run it with one thread and one stream: a race, or memory that is read before it is written, goes away then"
    return Cause("N209", "the other side gives another result each time", tuple(notes), help)


def within(case: Case) -> Cause | None:
    """The layer's own result is right; what differs came with its inputs."""
    if not case.right:
        return None
    seen, own = case.observed, case.metrics
    steps = f"{own.steps_p99:g} steps of {own.precision} (p99)"
    small = f"own error {number(own.max_abs)} at most, {steps}; the tolerance is {case.tolerance.elements}"
    total = measure(seen.actual, seen.reference, case.tolerance, seen.precision)
    if total.within(case.tolerance):
        return Cause("N101", f"rounding in {seen.precision}", (small,))
    grown = f"{number(total.max_abs)} from our own run at most, {total.sqnr:.1f} dB"
    if total.nonfinite_differing:
        grown = f"{total.nonfinite_differing:,} of {total.count:,} values are finite on one side only"
    notes = (small, grown, *_incoming(case))
    return Cause("N102", "what came with its inputs: the layer's own result is right", notes)


def _incoming(case: Case) -> list[str]:
    notes = []
    pairs = zip(case.observed.inputs, case.observed.reference_inputs, strict=False)
    for position, (theirs, ours) in enumerate(pairs):
        if theirs is None or ours is None or theirs.shape != ours.shape:
            continue
        apart = measure(theirs, ours, precision=case.observed.precision)
        if not apart.equal and apart.max_abs:
            notes.append(f"input {position} differs by {number(apart.max_abs)} at most, {apart.sqnr:.1f} dB")
        elif apart.nonfinite_differing:
            notes.append(f"input {position} is finite on one side only in {apart.nonfinite_differing:,} places")
    return notes


def _quiet(case: Case, room: float) -> bool:
    """Whether all errors together are as much below what is expected as is wanted, or within so much."""
    metrics, sqnr = case.metrics, case.tolerance.sqnr
    return sqnr is None or metrics.sqnr >= sqnr or metrics.nrmse * metrics.rms <= room


def ill_conditioned(case: Case) -> Cause | None:
    """The layer makes as much of the rounding of its inputs by itself."""
    floor = None if case.exact or case.metrics.nonfinite_differing else case.floor
    if floor is None:
        return None
    floor = np.where(np.isfinite(floor), floor, 0.0)
    typical = float(np.sqrt(np.mean(floor**2)))
    if not typical or not _quiet(case, ROOM * typical):
        return None
    for one, other, noise in blocks(case.actual, case.expected, floor):
        with np.errstate(all="ignore"):
            a, r = numbers(one), numbers(other)
            error = np.where(a == r, 0.0, np.abs(a - r))
            room = case.tolerance.allowed(np.abs(r), case.metrics.rms) + ROOM * (noise + typical)
        if (error > room).any():
            return None
    seen = case.observed
    notes = (
        f"own error {number(case.metrics.max_abs)} at most, above the tolerance {case.tolerance.elements}",
        f"inputs moved by half a step of {seen.precision}, or f64 in place of f32, change our own result by"
        f" {number(floor.max())} at most, and {number(typical)} rms",
    )
    help = (
        "no device does better in this precision: mark the layer `precise`, or rescale what it subtracts or divides by"
    )
    return Cause("N101", f"rounding in {seen.precision}, which the layer magnifies", notes, help)
