"""What the layer's own kernel makes of other inputs: earlier ones, swapped ones, indices and windows one further; and
of attributes that are read otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np

from irrun.spec.attributes import BOOL, INT, Attr
from irrun.spec.dtypes import is_exact, is_number
from irrun.spec.op import Array
from irrun.spec.traits import Elementwise, Iterating, Lookup, MatrixProduct, Reading, Reshaping
from irrun.tools.compare.causes.case import Case, Cause, number


def stale(case: Case) -> Cause | None:
    """The tensor is that of another time, or made of the inputs of another time."""
    for earlier in case.context.earlier:
        if earlier.actual.shape == case.actual.shape and not np.array_equal(earlier.actual, case.expected):
            same = earlier.actual.dtype == case.actual.dtype and np.array_equal(earlier.actual, case.actual)
            if (
                (same and len(np.unique(case.actual)) > 1)
                or (same and case.actual.size == 1)
                or case.fits(earlier.actual)
            ):
                how = "to the bit" if same else "up to rounding"
                note = f"it is {how} that of {earlier.label}; {case.counts} values should have changed"
                return Cause("N210", f"stale: the tensor is that of {earlier.label}", (note,), _STATE)
    for earlier in case.context.earlier:
        found = None if earlier.inputs is None else _of_one_old_input(case, earlier.inputs)
        if found is not None:
            note = f"our own kernel gives the same with {found} of {earlier.label}; {case.counts} values are wrong"
            return Cause("N210", f"stale: it is computed with {found} of {earlier.label}", (note,), _STATE)
    return None


_STATE = "reset the state between requests, and look for buffers that are reused too early"


def _of_one_old_input(case: Case, old: Sequence[Array | None]) -> str | None:
    new = case.observed.inputs
    if len(old) != len(new):
        return None
    changed = [
        number
        for number, (one, other) in enumerate(zip(old, new, strict=True))
        if one is not None and other is not None and not (one.shape == other.shape and np.array_equal(one, other))
    ]
    for chosen in [*((one,) for one in changed), tuple(changed)]:
        if not chosen:
            continue
        found = case.computed([old[n] if n in chosen else array for n, array in enumerate(new)])
        if found is not None and case.fits(found):
            return f"input{'s' * (len(chosen) > 1)} {', '.join(map(str, chosen))}"
    return None


def since_the_first_step(case: Case) -> Cause | None:
    """It was right in earlier steps, and the layer is one that reads a state."""
    steps = [earlier for earlier in case.context.earlier if earlier.right is not None]
    op = case.observed.op
    if not steps or not steps[0].right or op is None or op.trait(Reading) is None:
        return None
    note = f"{steps[0].label} was right; now {case.counts} values are wrong, by {number(case.metrics.max_abs)} at most"
    return Cause("N210", "the state is wrong after the first step", (note,), _STATE)


def swapped(case: Case) -> Cause | None:
    """The inputs are in another order, or one is read twice.

    Whole numbers of loops stay: one may be the number of rounds, and another one a number that nobody waits for.
    """
    op = case.observed.op
    loops = op is not None and op.trait(Iterating) is not None
    inputs = list(case.observed.inputs)
    shaped = [n for n, array in enumerate(inputs) if array is not None and n not in case.observed.constants]
    known = [n for n, array in enumerate(inputs) if array is not None and not (loops and is_exact(array))]
    for one, other in combinations(known, 2):
        if not (_alike(inputs[one], inputs[other]) or _stretched(case, inputs[one], inputs[other])):
            continue
        changed = [*inputs]
        changed[one], changed[other] = inputs[other], inputs[one]
        if gives(case, changed):
            return _swap(case, f"inputs {one} and {other} are swapped", "with these swapped")
    for one, other in permutations(known, 2):
        if not _alike(inputs[one], inputs[other]):
            continue
        changed = [*inputs]
        changed[one] = inputs[other]
        if gives(case, changed):
            return _swap(case, f"input {other} is read in place of input {one}", "so computed")
    if 2 < len(shaped) <= 4 and shaped[0] in known and all(_alike(inputs[shaped[0]], inputs[n]) for n in shaped):
        for order in permutations(shaped):
            changed = [*inputs]
            for place, source in zip(shaped, order, strict=True):
                changed[place] = inputs[source]
            if gives(case, changed):
                return _swap(case, f"the inputs are in the order {list(order)}", "so ordered")
    for n in shaped:
        array = inputs[n]
        assert array is not None
        if array.shape == case.actual.shape and is_number(array) == case.numeric and case.fits(array):
            return _swap(case, f"the result is input {n} as it is", "that is: not computed at all,", own=False)
    return None


def _swap(case: Case, what: str, how: str, *, own: bool = True) -> Cause:
    end = "our own kernel gives the same" if own else "it agrees"
    notes = (f"{how} {end} up to {case.tolerance.elements}; as it is, {case.counts} values are wrong",)
    return Cause(
        "N211", f"a wrong input: {what}", notes, "compare the order of the edges with what the other side was given"
    )


def _alike(one: Array | None, other: Array | None) -> bool:
    return (
        one is not None
        and other is not None
        and one.shape == other.shape
        and one.dtype == other.dtype
        and not np.array_equal(one, other)
    )


def _stretched(case: Case, one: Array | None, other: Array | None) -> bool:
    """Whether they are operands of other shapes, of which the smaller one is repeated."""
    op = case.observed.op
    if op is None or op.trait(Elementwise) is None or one is None or other is None:
        return False
    return bool(one.dtype == other.dtype) and one.shape != other.shape


def other_attribute(case: Case) -> Cause | None:
    """An attribute is read as another one of its words, as another axis, or the other way round."""
    seen = case.observed
    for attribute in () if seen.op is None else seen.op.attrs:
        for other in _other_values(attribute, seen.attrs.get(attribute.keyword), case.expected.ndim):
            found = case.computed_as({attribute.keyword: other})
            if found is not None and case.fits(found):
                said = f"`{attribute.name}` is read as {str(other).lower()}"
                note = f"so read our own kernel gives the same; as it is, {case.counts} values are wrong"
                help = "the other side was given another value, or does not look at it: try it with one layer alone"
                return Cause("N222", f"an attribute: {said}", (note,), help)
    return None


def _other_values(attribute: Attr, value: Any, rank: int) -> list[Any]:
    """All that an attribute may be besides, where these are few."""
    if value is None:
        return []
    if attribute.kind is BOOL:
        return [not value]
    if attribute.kind is INT and attribute.name.endswith("axis"):
        return [axis for axis in range(rank) if axis != value % rank]
    return [word for word in attribute.kind.words if word != value]


def gives(case: Case, inputs: Sequence[Array | None]) -> bool:
    """Whether our own kernel makes the other side's result of these inputs."""
    found = case.computed(inputs)
    return found is not None and case.fits(found)


def window_off(case: Case) -> Cause | None:
    """The kernel on data that are one place further along a spatial axis, as with other paddings."""
    op = case.observed.op
    data = case.observed.inputs[0] if case.observed.inputs else None
    if op is None or data is None or data.ndim < 3 or not is_number(data) or not data.size:
        return None
    if op.trait(Elementwise) is not None or op.trait(MatrixProduct) is not None or op.trait(Reshaping) is not None:
        return None
    for axis in range(2, data.ndim):
        ahead, size = (slice(None),) * axis, data.shape[axis]
        for step in (1, -1) if size > 2 else ():
            to, source = (slice(1, None), slice(None, -1))[::step]
            moved = np.zeros_like(data)
            moved[(*ahead, to)] = data[(*ahead, source)]
            if gives(case, [moved, *case.observed.inputs[1:]]):
                note = "with its data one place further our own kernel gives the same"
                help = "one side pads, crops or rounds a size otherwise: compare the paddings, and auto_pad"
                wrong = f"as it is, {case.counts} values are wrong"
                return Cause("N207", f"windows are off by one along axis {axis}", (note, wrong), help)
    return None


def index_off(case: Case) -> Cause | None:
    """The kernel on indices that are one more, or one less, and of a look-up still in the table."""
    seen = case.observed
    lookup = None if seen.op is None else seen.op.trait(Lookup)
    for n, array in enumerate(seen.inputs):
        if array is None or array.dtype.kind not in "iu" or not array.size:
            continue
        if lookup is not None and seen.op is not None and seen.op.port_names[n] != lookup.indices:
            continue
        for step in (1, -1):
            changed = list(seen.inputs)
            moved = changed[n] = array + array.dtype.type(step) if step > 0 else array - array.dtype.type(1)
            if _inside(case, array, moved) and gives(case, changed):
                way = "plus" if step > 0 else "minus"
                note = f"with input {n} {way} 1 our own kernel gives the same; as it is, {case.counts} values are wrong"
                help = "one side counts from 0 and the other one from 1"
                return Cause("N207", f"indices are off by one: input {n}", (note,), help)
    return None


def _inside(case: Case, array: Array, moved: Array) -> bool:
    """Whether indices of a look-up that were moved are still in its table, and counted from the same end."""
    op = case.observed.op
    lookup = None if op is None else op.trait(Lookup)
    if op is None or lookup is None:
        return True
    given = dict(zip(op.port_names, case.observed.inputs, strict=False))
    table, axis = given[lookup.table], given[lookup.axis]
    if table is None or axis is None:
        return False
    size = table.shape[int(axis.flat[0])]
    return bool((np.where(array < 0, (moved >= -size) & (moved < 0), (moved >= 0) & (moved < size))).all())
