"""Choices that rounding alone decides: which element is larger, which box goes, to which side a number is rounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.spec.dtypes import element_type, is_exact, is_number
from irrun.spec.op import Array, Op
from irrun.spec.traits import Accumulating, Normalizing, Products, Reduction, Transforming
from irrun.tools.compare.blocks import numbers
from irrun.tools.compare.causes.case import Case, Cause, number, values
from irrun.tools.compare.metrics import measure
from irrun.tools.compare.steps import DIGITS, floating
from irrun.tools.compare.tolerances import INTEGERS

TIE = "N103"
"""The code of what is found here."""

TRIES = 12
HIT = 1 / 3
"""Of what is chosen otherwise: must come out just so in one of the tries. Among many that are equal not all do."""

MET = 2 / 3
"""Of what is chosen otherwise, where it does not: must be chosen in one of the tries, wherever, and none twice."""

FEW = 0.25
"""Of all elements may jump, where these are no choices: more is a layer that magnifies what comes in."""

STAYING, GONE = 1 / 4, 3 / 4
"""Of the way that an element goes where inputs move: one that jumps has gone at most or at least that part of it when
they are halfway, where others are near its middle."""

LEAST = 2 * float(np.finfo(np.float32).tiny)
"""What zeros move by where they are chosen from, as no part of them does: nothing that anybody computes is so small."""

APART, MOST_APART = 1 << 16, 1 << 46
"""What whole numbers are multiplied by, so that equal ones may be told apart below, and up to which size they are."""

LARGE = 0.1
"""Of an input: errors that come in are more than rounding where they are above that part of it, rms beside rms or the
largest beside the largest."""


def own_tie(case: Case) -> Cause | None:
    """The side has chosen otherwise among what is equal, up to rounding where that is floats, on the same inputs."""
    if case.metrics.nonfinite_differing and case.numeric:
        return None
    halfway = _halfway(case)
    if halfway is not None:
        return halfway
    digit = DIGITS[floating(case.observed.precision)]
    amounts = [_relative(array, digit, least=case.exact) for array in case.observed.inputs]
    by = "a step of its precision"
    listed = _listed(case)
    if listed is not None:
        amounts[0], by = np.ones(listed.shape), "what tells equal ones apart"
    return _unstable(case, case.observed.inputs, amounts, case.expected, case.wrong, by)


def _halfway(case: Case) -> Cause | None:
    """Integers that the layer rounds to from what it computes of integers, as of images: halves go to either side.

    Its kernel says what it rounds where it is given the same as floats. That it rounds to the nearest shows in what is
    far from halves: both above and below them.
    """
    seen, right = case.observed, case.expected
    kinds = case.actual.dtype.kind, right.dtype.kind
    if not case.exact or "b" in kinds or not any(x is not None and x.dtype == right.dtype for x in seen.inputs):
        return None
    made = [x.astype(np.float64) if x is not None and x.dtype == right.dtype else x for x in seen.inputs]
    found = case.computed(made)
    if found is None or found.dtype.kind != "f" or not np.isfinite(found).all():
        return None
    size = float(np.abs(found).max(initial=0.0))
    near = 4 * DIGITS[floating(seen.precision)] * size
    part = found - np.floor(found)
    far = np.abs(part - 0.5) > near
    nearest = all((np.abs(numbers(array) - found) <= 0.5 + near).all() for array in (case.actual, right))
    if near >= 0.25 or not nearest or not (far & (part > 0.5)).any() or not (far & (part > 0) & (part < 0.5)).any():
        return None
    changed = f"{values(int(case.wrong.sum()), right.size)} rounded to the other side"
    because = f"all of these are halfway between two integers, but for {number(near)} at most, as f32 has numbers here"
    return _tie(changed, because)


def _listed(case: Case) -> Array | None:
    """The first input, whole numbers, of a layer whose result says where these are: equal ones in whatever order."""
    seen = case.observed
    data = seen.inputs[0] if seen.inputs else None
    if seen.op is None or data is None or not is_exact(data) or not is_number(data) or not data.size:
        return None
    outputs = seen.op.outputs
    indices = seen.port < len(outputs) and outputs[seen.port].type in seen.op.attr_names
    free = indices and not seen.attrs.get("stable") and float(np.abs(numbers(data)).max()) < MOST_APART
    return data if free else None


def inherited_tie(case: Case) -> Cause | None:
    """The error that came in with the inputs has tipped a choice; the layer itself is right."""
    seen = case.observed
    if not case.right or len(seen.inputs) != len(seen.reference_inputs):
        return None
    total = measure(seen.actual, seen.reference, case.tolerance, seen.precision)
    if total.within(case.tolerance) or total.nonfinite_differing:
        return None
    pairs = list(zip(seen.inputs, seen.reference_inputs, strict=True))
    if not all(_near(theirs, ours) for theirs, ours in pairs):
        return None
    amounts = [_apart(theirs, ours) for theirs, ours in pairs]
    if case.exact or not case.numeric or not total.comparable:
        return _chosen_otherwise(case, amounts)
    apart = np.abs(numbers(seen.actual) - numbers(seen.reference))
    wrong = apart > case.tolerance.times(2).allowed(np.abs(numbers(seen.reference)), total.rms)
    return _unstable(case, seen.reference_inputs, amounts, seen.reference, wrong, "what its inputs differ by")


def _near(theirs: Array | None, ours: Array | None) -> bool:
    """Whether an input is the same in both runs but for rounding."""
    if theirs is None or ours is None:
        return True
    if theirs.shape != ours.shape or is_exact(ours) or not is_number(ours):
        return np.array_equal(theirs, ours)
    error, size = _error(theirs, ours), np.abs(numbers(ours))
    if not ours.size or not np.isfinite(error).all():
        return not ours.size
    large = LARGE * max(float(size.max()), 1e-30), LARGE**2 * max(float(np.mean(size**2)), 1e-60)
    return bool(error.max() <= large[0] and np.mean(error**2) <= large[1])


def _apart(theirs: Array | None, ours: Array | None) -> Array | None:
    """How far each element of an input may move, by how far it is apart in both runs; None where it is not."""
    if theirs is None or ours is None or is_exact(ours) or not is_number(ours):
        return None
    error = _error(theirs, ours)
    found: Array = np.maximum(error, error.max(initial=0.0) / 2)
    return found


def _error(theirs: Array, ours: Array) -> Array:
    with np.errstate(all="ignore"):
        a, r = numbers(theirs), numbers(ours)
        found: Array = np.where(a == r, 0.0, np.abs(a - r))
    return found


def _chosen_otherwise(case: Case, amounts: Sequence[Array | None]) -> Cause | None:
    """A tie where the result is a choice, whole numbers or how many there are, of inputs that rounding has moved.

    As the layer is right, its kernel chooses as the other side does, on what that had. Codes of few bits are no choice.
    """
    seen = case.observed
    largest = _largest(amounts)
    if not largest or element_type(seen.actual.dtype) in INTEGERS:
        return None
    if seen.actual.shape == seen.reference.shape:
        changed = f"{values(int((seen.actual != seen.reference).sum()), seen.actual.size)} chosen otherwise"
    else:
        changed = f"it is {list(seen.actual.shape)} in shape, and {list(seen.reference.shape)} in our own run"
    because = (
        f"our own kernel chooses so, too, of the inputs there, which differ from ours by {number(largest)} at most"
    )
    return _tie(changed, because)


def _relative(array: Array | None, part: float, *, least: bool) -> Array | None:
    """So large a part of each element; with `least` no less than tells two zeros apart."""
    if array is None or is_exact(array) or not is_number(array):
        return None
    found: Array = np.abs(numbers(array)) * part
    return np.maximum(found, LEAST) if least else found


def _unstable(
    case: Case,
    inputs: Sequence[Array | None],
    amounts: Sequence[Array | None],
    right: Array,
    wrong: Array,
    what: str,
) -> Cause | None:
    """A tie where every wrong element is one that jumps when the inputs move by the amounts, and few do."""
    exact = case.exact or not case.numeric
    if case.observed.op is not None and not exact and _sums(case.observed.op):
        return None
    if not case.small or not wrong.any() or all(amount is None or not amount.any() for amount in amounts):
        return None
    chance = np.random.default_rng(1)
    jumps, hit = np.zeros(right.shape, bool), np.zeros(right.shape, bool)
    chosen = np.unique(right) if exact else None
    with np.errstate(all="ignore"):
        error = None if exact else np.abs(numbers(case.actual) - numbers(right))
        room = None if exact else case.tolerance.allowed(np.abs(numbers(right)), case.metrics.rms)
    for _ in range(TRIES):
        further = [_moved(array, amount, chance) for array, amount in zip(inputs, amounts, strict=True)]
        moved = case.computed(further)
        if moved is None:
            return None
        if chosen is not None:
            jumps |= np.asarray(moved != right)
            hit |= np.asarray(moved == case.actual)
            chosen = np.union1d(chosen, moved)
        elif error is not None and room is not None:
            with np.errstate(all="ignore"):
                apart = np.abs(numbers(moved) - numbers(right))
            far = (apart >= 0.5 * error) & (apart > room)
            if far[wrong].any():
                halfway = case.computed([_between(one, other) for one, other in zip(inputs, further, strict=True)])
                if halfway is None:
                    return None
                with np.errstate(all="ignore"):
                    gone = np.abs(numbers(halfway) - numbers(right)) / apart
                jumps |= far & ((gone <= STAYING) | (gone >= GONE))
            hit = jumps
        if jumps[wrong].all() and (
            hit[wrong].mean() >= HIT or (chosen is not None and _among(case.actual, wrong, right, chosen))
        ):
            break
    else:
        return None
    if error is not None and float(np.mean(jumps)) > FEW + 1 / right.size:
        return None
    changed = f"{values(int(wrong.sum()), right.size)} chosen otherwise"
    most = f"{number(_largest(amounts))} at most"
    return _tie(changed, f"all of these change in our own result, too, when its inputs move by {what}, {most}")


def _sums(op: Op) -> bool:
    """Whether an op adds up what it reads: such numbers follow their inputs, and nothing is chosen."""
    reduction = op.trait(Reduction)
    kinds = (Products, Accumulating, Transforming, Normalizing)
    return any(op.trait(kind) is not None for kind in kinds) or (reduction is not None and reduction.linear)


def _between(one: Array | None, other: Array | None) -> Array | None:
    """Halfway from an input to where it has moved."""
    if one is None or other is None or one is other or is_exact(one):
        return other
    halfway: Array = ((numbers(one) + numbers(other)) / 2).astype(one.dtype)
    return halfway


def _among(actual: Array, wrong: Array, right: Array, chosen: Array) -> bool:
    """Whether a side has chosen of what our own kernel chooses where its inputs move, and nothing twice."""
    met = np.isin(actual[wrong], chosen).mean() >= MET
    return bool(met) and np.unique(actual).size >= np.unique(right).size


def _tie(changed: str, because: str) -> Cause:
    help = "which one is chosen means nothing; compare what it leads to, or the elements as a set"
    sentence = "a tie: the margin of the choice is below the rounding of its inputs"
    return Cause(TIE, sentence, (changed, because), help)


def _largest(amounts: Sequence[Array | None]) -> float:
    return max((float(amount.max(initial=0.0)) for amount in amounts if amount is not None), default=0.0)


def _moved(array: Array | None, amount: Array | None, chance: np.random.Generator) -> Array | None:
    if array is None or amount is None:
        return array
    if is_exact(array):
        return array.astype(np.int64) * APART + chance.integers(0, APART, array.shape)
    moved: Array = (numbers(array) + amount * chance.uniform(-1, 1, array.shape)).astype(array.dtype)
    return moved
