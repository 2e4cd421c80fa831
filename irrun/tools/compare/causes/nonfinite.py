"""Numbers that leave the range of their type: NaN and infinity, overflow and underflow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.spec.dtypes import is_exact, is_number
from irrun.spec.op import Array
from irrun.spec.traits import Elementwise, Normalizing, Products, Reduction
from irrun.tools.compare.blocks import numbers
from irrun.tools.compare.causes.arrangement import axes_moved, shifted
from irrun.tools.compare.causes.case import Case, Cause, number, values
from irrun.tools.compare.steps import LARGEST, LEAST, NORMAL, rounded

MASKED = -1e9
"""A score below it hides an element of a row."""

_PRECISE = "keep the layer in f32 (mark it `precise`), or scale what goes into it"


def _narrow(case: Case) -> list[str]:
    """The types that may have been too small, that of the other side first."""
    said = case.observed.precision
    return [name for name in dict.fromkeys([said, "f16", "bf16"]) if name in LARGEST]


def overflow(case: Case) -> Cause | None:
    """What is too large for a type is infinite, NaN, or the largest number of that type."""
    if case.exact or not case.numeric or not case.wrong.any():
        return None
    wrong = case.wrong
    a, r = numbers(case.actual[wrong]), numbers(case.expected[wrong])
    with np.errstate(all="ignore"):
        lost = ~np.isfinite(a) & np.isfinite(r)
        for name in _narrow(case):
            most = LARGEST[name]
            rounded_up = most * (1 + 2.0**-12)
            if (case.beyond(most * (1 + 1e-2)) & ~wrong & ~_at(case.actual, most)).any():
                continue
            gone = lost & (np.abs(r) >= most * (1 - 1e-2)) & ~(np.isinf(a) & (np.sign(a) != np.sign(r)))
            clamped = _at(a, most) & (np.abs(r) > most) & (np.sign(a) == np.sign(r))
            if (gone | clamped).all() and (gone | (np.abs(r) > rounded_up)).any():
                sizes = np.abs(r)
                what = (
                    "infinite or NaN"
                    if gone.all()
                    else f"{number(most)} in size"
                    if clamped.all()
                    else "clamped or infinite"
                )
                notes = (
                    f"{values(len(a), case.expected.size)} are {what}; there |expected| is"
                    f" {number(sizes.min())} .. {number(sizes.max())},"
                    f" and {name} ends at {number(most)}",
                )
                return Cause("N202", f"overflow of {name}", notes, _PRECISE)
    return _inner_overflow(case, lost) or _vanished(case)


def _at(array: Array, most: float) -> Array:
    """Where an array is the largest number of a type."""
    return np.asarray(np.abs(np.abs(numbers(array)) - most) <= most * 1e-3)


def _vanished(case: Case) -> Cause | None:
    """What is divided by the infinite sum of its squares is zero: all of a group whose squares add up to too much."""
    op, inputs, shape = case.observed.op, case.observed.inputs, case.expected.shape
    data = inputs[0] if inputs else None
    if op is None or op.trait(Normalizing) is None or data is None or data.shape != shape or not case.small:
        return None
    if (case.actual[case.wrong] != 0).any() or not np.isfinite(numbers(data)).all():
        return None
    x, zero, rank = numbers(data).reshape(shape), np.asarray(case.actual == 0).reshape(shape), len(shape)
    groups = [tuple(range(first, rank)) for first in range(rank)] + [(axis,) for axis in range(rank - 1)]
    for axes in groups:
        squares = np.square(x - x.mean(axes, keepdims=True)).sum(axes, keepdims=True)
        for name in _narrow(case):
            large = squares > LARGEST[name]
            right = np.array_equal(zero.all(axes, keepdims=True), large) and not (case.wrong & ~large).any()
            if large.any() and right:
                least, most = number(squares[large].min()), number(squares[large].max())
                notes = (
                    f"{case.counts} values are wrong: they are 0 where the squares add up to {least} .. {most}",
                    f"{name} ends at {number(LARGEST[name])}, and what is divided by infinity is 0",
                )
                return Cause("N202", f"overflow of {name} in the squares of the layer", notes, _PRECISE)
    return None


def _inner_overflow(case: Case, lost: Array) -> Cause | None:
    """Sums or squares on the way to a result that would fit do not fit themselves."""
    seen = case.observed
    name = seen.precision
    if name not in LARGEST or not lost.all() or not lost.any():
        return None
    most, op = LARGEST[name], seen.op
    finite = all(array is None or not is_number(array) or np.isfinite(numbers(array)).all() for array in seen.inputs)
    if not finite:
        return None
    absolute = [
        array if array is None or is_exact(array) or not is_number(array) else np.abs(array) for array in seen.inputs
    ]
    summed = op is not None and (op.trait(Products) is not None or op.trait(Reduction) is not None)
    bound = case.computed(absolute, wide=case.context.compute64 is not None) if summed else None
    if bound is not None:
        sums = numbers(bound)[case.wrong]
        if (sums > most).all():
            reach = f"{number(sums.min())} .. {number(sums.max())}"
            note = f"the terms of the sums there add up to {reach} in size, and {name} ends at {number(most)}"
            return Cause("N202", f"overflow of {name} in the sums of the layer", (_lost(case), note), _PRECISE)
    if op is not None and (op.trait(Elementwise) is not None or op.trait(Products) is not None):
        return None
    sizes = [
        float(np.abs(numbers(array)).max())
        for array in absolute
        if array is not None and array.size and array.dtype.kind not in "biuU"
    ]
    if (
        sizes
        and max(sizes) ** 2 > most
        and (op is None or op.trait(Normalizing) or op.trait(Reduction) or len(sizes) > 0)
    ):
        note = f"its inputs reach {number(max(sizes))}, whose square {number(max(sizes) ** 2)} is above {number(most)}"
        return Cause("N202", f"overflow of {name} in the squares of the layer", (_lost(case), note), _PRECISE)
    return None


def _lost(case: Case) -> str:
    return f"{values(int(case.wrong.sum()), case.expected.size)} are infinite or NaN, where finite ones are expected"


def underflow(case: Case) -> Cause | None:
    """What is too small for a type is zero, in the result or in what the layer divides by."""
    if case.exact or not case.numeric or not case.wrong.any():
        return None
    wrong = case.wrong
    a, r = numbers(case.actual[wrong]), numbers(case.expected[wrong])
    names = [name for name in _narrow(case) if name in NORMAL]
    for name in names:
        if (a == 0).all() and (r != 0).all() and (np.abs(r) < NORMAL[name]).all():
            note = (
                f"{values(len(a), case.expected.size)} are 0; there |expected| is {number(np.abs(r).min())} .."
                f" {number(np.abs(r).max())}, and the numbers of {name} with all their digits begin at"
                f" {number(NORMAL[name])}"
            )
            return Cause("N203", f"underflow of {name} to zero", (note,), _PRECISE)
    for name in names:
        for least, what in ((LEAST[name] / 2, "zero"), (NORMAL[name], "subnormal")):
            flushed, counts = _flushed(case.observed.inputs, least)
            if not sum(counts):
                continue
            found = case.computed(flushed)
            if found is not None and case.fits(found):
                which = ", ".join(f"{count:,} of input {position}" for position, count in enumerate(counts) if count)
                notes = (
                    f"with what is {what} in {name} as 0 ({which}) our own kernel gives the same",
                    f"{case.counts} values are wrong; {name} has nothing below {number(least)}",
                )
                return Cause("N203", f"underflow of {name} to zero in the inputs of the layer", notes, _PRECISE)
    return None


def _flushed(inputs: Sequence[Array | None], least: float) -> tuple[list[Array | None], list[int]]:
    """The inputs with zeros in place of what is smaller, and how many there are in each."""
    found: list[Array | None] = []
    counts = []
    for array in inputs:
        if array is None or is_exact(array) or not is_number(array):
            found.append(array)
            counts.append(0)
            continue
        sizes = np.abs(numbers(array))
        small = (sizes > 0) & (sizes < least)
        counts.append(int(small.sum()))
        found.append(np.where(small, np.zeros((), array.dtype), array))
    return found, counts


def born(case: Case) -> Cause | None:
    """NaN or infinity that is not in the inputs."""
    seen = case.observed
    if not case.numeric or not case.metrics.nonfinite_differing:
        return None
    moved = _moved(case)
    if moved is not None:
        return moved
    lost = ~np.isfinite(numbers(case.actual)) & np.isfinite(numbers(case.expected))
    if not lost.any():
        count = case.metrics.nonfinite_differing
        notes = (
            f"{values(count, case.expected.size)} are not the same of NaN, inf and -inf, or finite in place of these",
        )
        return Cause("N201", "NaN and infinity are treated differently", notes)
    a = numbers(case.actual)
    nans, infinite = int((np.isnan(a) & lost).sum()), int((np.isinf(a) & lost).sum())
    parts = (f"{nans:,} NaN" if nans else "", f"{infinite:,} infinite" if infinite else "")
    said = " and ".join(text for text in parts if text)
    proofs = [f"of {case.expected.size:,} values {said}, where the expected ones are finite"]
    bad_inputs = [
        position
        for position, array in enumerate(seen.inputs)
        if array is not None and is_number(array) and not np.isfinite(numbers(array)).all()
    ]
    if bad_inputs:
        proofs.append(f"not finite themselves: inputs {', '.join(map(str, bad_inputs))}")
    else:
        proofs.append("all inputs are finite")
    kind, proof = _kind(case, lost)
    proofs += [proof] if proof else []
    sentence = f"{'NaN' if nans >= infinite else 'infinity'} is born here{f': {kind}' if kind else ''}"
    return Cause("N201", sentence, tuple(proofs), "guard the operation, as with a larger epsilon or a finite mask")


def _moved(case: Case) -> Cause | None:
    """What is not finite is expected, but in another place, as all the rest is."""
    if np.isfinite(numbers(case.expected)).all() or np.isfinite(numbers(case.actual)).all():
        return None
    return axes_moved(case) or shifted(case)


def _kind(case: Case, lost: Array) -> tuple[str, str]:
    """Of what the numbers come, and the proof; empty where the inputs do not show it."""
    seen = case.observed
    op, shape = seen.op, case.expected.shape
    floats = [numbers(array) for array in seen.inputs if array is not None and array.dtype.kind in "fV" and array.size]
    elementwise = None if op is None else op.trait(Elementwise)
    if elementwise is not None and floats:
        try:
            here = [np.broadcast_to(array, shape)[lost] for array in floats[: elementwise.arity]]
        except ValueError:
            here = []
        if len(here) == 1 and (here[0] < 0).all() and not (floats[0][np.broadcast_to(~lost, shape)] < 0).any():
            return (
                "of a negative number",
                f"there the input is {number(here[0].min())} .. {number(here[0].max())}, elsewhere 0 or more",
            )
        if len(here) == 1 and (here[0] == 0).all():
            return "of zero", "the input is 0 in all these places"
        if len(here) >= 2:
            one, other = here[:2]
            if (other == 0).all():
                both = (one == 0).all()
                return (
                    "0/0" if both else "division by zero"
                ), f"input 1 is 0 in all these places{', and input 0 too' if both else ''}"
            if (np.isinf(one) & np.isinf(other)).all():
                return "inf - inf or inf / inf", "both inputs are infinite in all these places"
            if ((one == 0) & np.isinf(other) | (other == 0) & np.isinf(one)).all():
                return "0 * inf", "one input is 0 and the other infinite in all these places"
            if (one < 0).all():
                return "a power of a negative number", f"there input 0 is {number(one.min())} .. {number(one.max())}"
        return "", ""
    for array in floats:
        if array.shape == shape and array.ndim:
            rows = (array <= MASKED).all(axis=-1)
            hit = lost.any(axis=-1)
            if rows.any() and not (hit & ~rows).any():
                return (
                    "a row that is masked whole",
                    f"{int(rows.sum()):,} of {rows.size:,} rows have nothing above {number(MASKED)}",
                )
            same = np.ptp(array, axis=-1) == 0
            if hit.any() and not (hit & ~same).any():
                return (
                    "0/0, a row without spread",
                    f"all elements are equal in {int(same.sum()):,} of {same.size:,} rows",
                )
    if any((array == 0).all() for array in floats):
        return "0/0", "an input is 0 everywhere"
    if floats and any(np.isinf(array).any() for array in floats):
        infinite = sum(int(np.isinf(array).sum()) for array in floats)
        zero = any((array == 0).any() for array in floats)
        return ("0 * inf or inf - inf" if zero else "inf - inf"), f"the inputs have {infinite:,} infinite values"
    return "", ""


def rounded_to(case: Case) -> Cause | None:
    """A weight that is right but for the type that it is kept in."""
    if case.exact or not case.numeric or case.observed.source != "constant":
        return None
    for name in ("f16", "bf16", "f8e4m3", "f8e5m2"):
        if np.array_equal(rounded(case.expected, name), numbers(case.actual), equal_nan=True):
            notes = (
                f"all {case.expected.size:,} values are those of the model rounded to {name},"
                f" {number(case.metrics.max_abs)} off at most",
            )
            help = f"that is compression to {name}: convert the model without it, where these digits count"
            return Cause("N212", f"the weights are kept in {name}", notes, help)
    return None
