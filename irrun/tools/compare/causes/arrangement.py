"""The right elements in the wrong places: axes in another order, reversed, shifted, or slices that are mixed up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np

from irrun.spec.op import Array
from irrun.tools.compare.blocks import numbers
from irrun.tools.compare.causes.case import MAX_TRIED, Case, Cause, values
from irrun.tools.compare.observed import Observed
from irrun.tools.compare.steps import floating, rounded

MAX_RANK = 5
MAX_SLICES = 2048
"""Slices along an axis that are matched with one another."""

_LAYOUT = "check the layouts that both sides assume, and the Reshape and Transpose layers nearby"


def axes_moved(case: Case) -> Cause | None:
    """The axes are in another order, or the memory is read as if they were."""
    for text, hypothesis in _orders(case.expected):
        if case.fits(hypothesis):
            return Cause("N204", f"another layout: {text}", _evidence(case), _LAYOUT)
    return None


def of_other_shape(case: Case) -> Cause | None:
    """A result of another shape that has the elements of the expected one."""
    a, r = case.actual, case.expected
    if a.size != r.size or not a.size or not case.numeric:
        return None
    if a.ndim == r.ndim <= MAX_RANK:
        for order in permutations(range(r.ndim)):
            moved = r.transpose(order)
            if moved.shape == a.shape and Case(_with(case, moved), case.context).right:
                return Cause("N204", f"another layout: the axes are in the order {list(order)}", _shapes(case), _LAYOUT)
    if Case(_with(case, r.reshape(a.shape)), case.context).right:
        return Cause("N204", "another shape of the same elements in the same order", _shapes(case), _LAYOUT)
    return None


def _with(case: Case, expected: Array) -> Observed:
    return replace(case.observed, expected=expected, tolerance=case.room)


def _shapes(case: Case) -> tuple[str, ...]:
    return (
        f"it has the shape {list(case.actual.shape)}, expected {list(case.expected.shape)}; all elements are found",
    )


def _evidence(case: Case) -> tuple[str, ...]:
    cosine = f"as it is, {case.counts} values are wrong, and the cosine is {case.metrics.cosine:.4f}"
    return (
        f"so arranged, all {case.expected.size:,} values are within the tolerance {case.tolerance.elements}",
        cosine,
    )


def _orders(right: Array) -> Iterator[tuple[str, Array]]:
    """What the tensor may be instead, the simplest first, with how to say that."""
    if not 1 <= right.ndim <= MAX_RANK:
        return
    wide = [axis for axis, size in enumerate(right.shape) if size > 1]
    for axis in wide:
        yield f"reversed along axis {axis}", np.flip(right, axis)
    for count in range(2, len(wide) + 1):
        for axes in combinations(wide, count):
            yield f"reversed along the axes {list(axes)}", np.flip(right, axes)
    for order in permutations(range(right.ndim)):
        if [axis for axis in order if axis in wide] == wide:
            continue
        moved = right.transpose(order)
        if moved.shape == right.shape:
            yield f"the axes are in the order {list(order)}", moved
        else:
            yield f"written with the axes in the order {list(order)}, read as if in theirs", moved.reshape(right.shape)
            back = [order.index(axis) for axis in range(right.ndim)]
            other = right.reshape(moved.shape).transpose(back)
            yield f"read with the axes in the order {list(order)}, written as if in theirs", other


def shifted(case: Case) -> Cause | None:
    """All is one place further along an axis, up to what comes in at the edge."""
    a, r = case.actual, case.expected
    for axis, size in enumerate(r.shape):
        if size < 3 or (size == 3 and r.size < 6):
            continue
        for step in (1, -1):
            to, source = (slice(1, None), slice(None, -1))[::step]
            ahead = (slice(None),) * axis
            moved, kept, found = r[(*ahead, source)], r[(*ahead, to)], a[(*ahead, to)]
            differing = np.asarray(moved != kept)
            if float(differing.mean()) < 0.2 or int(differing.sum()) < 2:
                continue
            if case.fits(moved, found, _noise(found, kept, case)):
                edge = np.take(a, 0 if step > 0 else size - 1, axis)
                rolled = case.same(edge, np.take(r, size - 1 if step > 0 else 0, axis))
                what = "around" if rolled else "in at the edge"
                notes = (
                    f"element i along axis {axis} is what is expected at i {'-' if step > 0 else '+'} 1,"
                    f" in all of {found.size:,} values;"
                    f" other ones come {what}",
                    f"as it is, {case.counts} values are wrong",
                )
                return Cause(
                    "N207",
                    f"shifted by one along axis {axis}",
                    notes,
                    "check paddings, offsets and whether indices count from 0 or 1",
                )
    return None


def _noise(found: Array, kept: Array, case: Case) -> float:
    if not case.numeric:
        return np.inf
    with np.errstate(all="ignore"):
        apart = numbers(found) - numbers(kept)
        apart = apart[np.isfinite(apart)]
    return float(np.sqrt(np.mean(apart**2))) / (case.metrics.rms or 1.0) if apart.size else np.inf


def slices_mixed(case: Case) -> Cause | None:
    """Slices along one axis in another order."""
    a, r = case.actual, case.expected
    if not case.numeric or r.size > MAX_TRIED or case.metrics.nonfinite_differing:
        return None
    for axis, size in enumerate(r.shape):
        if not 3 <= size <= MAX_SLICES or r.size // size < 2:
            continue
        order = matched(np.moveaxis(a, axis, 0).reshape(size, -1), np.moveaxis(r, axis, 0).reshape(size, -1))
        if order is None:
            continue
        if case.fits(np.take(r, order, axis)):
            moved = int((order != np.arange(size)).sum())
            first = int(np.flatnonzero(order != np.arange(size))[0])
            notes = (
                f"{moved:,} of {size:,} slices along axis {axis} are in another place: {first} is what is expected"
                f" at {int(order[first])}",
                *_evidence(case),
            )
            return Cause("N204", f"the slices along axis {axis} are in another order", notes, _LAYOUT)
    return None


def matched(a: Array, r: Array) -> Array | None:
    """For each row of `a` the row of `r` that is nearest by a few random projections; None where that is no order."""
    with np.errstate(all="ignore"):
        wide_a, wide_r = numbers(a), numbers(r)
        chance = np.random.default_rng(2).normal(size=(a.shape[1], 4))
        one, other = wide_a @ chance, wide_r @ chance
        if not np.isfinite(one).all() or not np.isfinite(other).all():
            return None
        apart = np.zeros((len(one), len(other)))
        for column in range(4):
            apart += (one[:, None, column] - other[None, :, column]) ** 2
    order: Array = np.argmin(apart, axis=1)
    return order if len(np.unique(order)) == len(order) else None


def elements_mixed(case: Case) -> Cause | None:
    """The same elements in another order, which no rule was found for."""
    if not case.numeric or case.expected.size < 3 or not case.small or case.metrics.nonfinite_differing:
        return None
    a, r = np.sort(numbers(case.actual), axis=None), np.sort(numbers(case.expected), axis=None)
    wrong = int(case.wrong.sum())
    if wrong < 3 or len(np.unique(r)) < min(4, r.size):
        return None
    precision = floating(case.observed.precision)
    if not case.exact:
        same = float(np.mean(rounded(a, precision) == rounded(r, precision)))
        if same < (0.5 if precision != "f32" else 0.02) and r.size > 64:
            return None
    if case.exact and not np.array_equal(a, r):
        return None
    if not case.exact and not case.fits(r, a):
        return None
    there, here = numbers(case.actual[case.wrong]), numbers(case.expected[case.wrong])
    if float(np.mean((np.sort(there) - np.sort(here)) ** 2)) > 0.25 * float(np.mean((there - here) ** 2)):
        return None  # the tolerance is so wide that few wrong elements go unnoticed among all of them
    notes = (
        f"sorted, all {r.size:,} values are within the tolerance {case.tolerance.elements}",
        f"as it is, {values(wrong, r.size)} are wrong",
    )
    return Cause("N204", "the elements are in another order", notes, _LAYOUT)
