"""Tensors that are one number everywhere, and such that are clipped on one side alone."""

from __future__ import annotations

import numpy as np

from irrun.spec.op import Array
from irrun.tools.compare.blocks import numbers
from irrun.tools.compare.causes.case import Case, Cause, number

LEAST = 4
"""Elements of a tensor that may be filled, and different numbers in one that is clipped."""

AT_BOUND = 2
"""Elements that are at a bound, at least, where one is made out."""

_CLIPPED = "look for a ReLU or a Clamp that one side does and the other does not, or fuses into another layer"


def filled(case: Case) -> Cause | None:
    """All of the tensor is one number, where others are expected."""
    if not case.numeric or case.actual.size < LEAST or case.metrics.nonfinite_differing:
        return None
    value = case.actual.flat[0]
    if not bool((case.actual == value).all()) or bool((case.expected == case.expected.flat[0]).all()):
        return None
    r = numbers(case.expected)
    notes = (f"{case.counts} values are wrong: {number(r.min())} .. {number(r.max())} is expected",)
    help = "look at who writes this memory, and whether that is done before it is read"
    never = ": it was never written, or what it is made of was lost" if not value else ""
    return Cause("N219", f"all of it is {number(value)}{never}", notes, help)


def clipped(case: Case) -> Cause | None:
    """What is beyond bounds is at these bounds, on the other side alone or in the model alone."""
    if not case.numeric or not case.small or int(case.wrong.sum()) < AT_BOUND:
        return None
    a, r = numbers(case.actual), numbers(case.expected)
    if not (np.isfinite(a).all() and np.isfinite(r).all()):
        return None
    for inner, outer, does in ((a, r, "which the model does not do here"), (r, a, "which the model does here")):
        bounds = _bounds(inner, outer)
        if bounds is None or not np.isin(inner[case.wrong], bounds).all():
            continue
        if case.same(np.clip(outer, *bounds), inner):
            there = outer[case.wrong]
            note = f"{case.counts} values are wrong: unclipped they are {number(there.min())} .. {number(there.max())}"
            return Cause("N220", f"{_what(bounds, inner is a)}, {does}", (note,), _CLIPPED)
    return None


def _what(bounds: tuple[float, float], clips: bool) -> str:
    """What the other side does, which `clips` or leaves what the model clips."""
    low, high = bounds
    if bounds == (0, np.inf):
        return "what is negative is 0, as behind a ReLU" if clips else "what is negative stays so, as without a ReLU"
    ends = (f"{number(high)} at most" if np.isinf(low) else f"{number(low)} at least") if np.isinf(bounds).any() else ""
    return f"it is {'' if clips else 'not '}clipped to {ends or f'{number(low)} .. {number(high)}'}"


def _bounds(inner: Array, outer: Array) -> tuple[float, float] | None:
    """Between what the numbers of an array lie and those of another one do not; infinite where these do, too."""
    if len(np.unique(inner.ravel()[: 1 << 16])) < LEAST:
        return None
    low, high = float(inner.min()), float(inner.max())
    low = low if outer.min() < low and int((inner == low).sum()) >= AT_BOUND else -np.inf
    high = high if outer.max() > high and int((inner == high).sum()) >= AT_BOUND else np.inf
    return None if np.isinf([low, high]).all() else (low, high)
