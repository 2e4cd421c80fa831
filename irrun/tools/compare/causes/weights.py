"""Constants that are not those of the model, or are read in another order: the layer's own kernel on such ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import permutations

import numpy as np

from irrun.spec.dtypes import is_exact, is_number
from irrun.spec.op import Array
from irrun.spec.traits import Elementwise, MatrixProduct
from irrun.tools.compare.blocks import numbers
from irrun.tools.compare.causes.arrangement import matched
from irrun.tools.compare.causes.case import Case, Cause, number
from irrun.tools.compare.causes.changes import HELP, told
from irrun.tools.compare.causes.replay import gives
from irrun.tools.compare.metrics import measure
from irrun.tools.compare.steps import rounded

MAX_WEIGHT = 1 << 22
MAX_MATRIX = 1 << 26
"""Elements of a weight that is tried in other orders, and of one with two axes, which has few of these."""

MAX_SOLVED = 1 << 11
"""Terms of the sums of a product whose weight is solved for."""

EQUATIONS = 2
"""For each of these, at most."""

MATCHED = 64
"""Numbers by which a slice is found again."""


def other_values(case: Case) -> Cause | None:
    """The other side's constants are not those of the model: one of them, or all that differ together."""
    inputs = list(case.observed.inputs)
    differing = {
        n: theirs
        for n, theirs in case.context.constants.items()
        if n < len(inputs) and (ours := inputs[n]) is not None and not _same(theirs, ours)
    }
    for chosen in [[n] for n in differing] + ([[*differing]] if len(differing) > 1 else []):
        if gives(case, [differing[n] if n in chosen else array for n, array in enumerate(inputs)]):
            return _of_values(case, {n: differing[n] for n in chosen})
    return None


def _same(theirs: Array, ours: Array) -> bool:
    return theirs.shape == ours.shape and np.array_equal(theirs, ours, equal_nan=is_number(ours))


def _of_values(case: Case, theirs: Mapping[int, Array]) -> Cause:
    notes = []
    for n, array in theirs.items():
        ours = case.observed.inputs[n]
        assert ours is not None
        apart = measure(array, ours)
        note = f"{apart.sqnr:.1f} dB, " if math.isfinite(apart.sqnr) else ""
        note = note if apart.comparable else f"shape {list(array.shape)}, not {list(ours.shape)}, "
        odd = f", {apart.nonfinite_differing:,} NaN or infinite elsewhere" if apart.nonfinite_differing else ""
        notes.append(f"constant {n} differs: {note}{number(apart.max_abs)} at most{odd}{_rounded(array, ours)}")
    which = "it" if len(theirs) == 1 else "these together"
    notes.append(f"with {which} our own kernel gives the other side's result; with ours {case.counts} values are wrong")
    inside = not all(_from_outside(case, n) for n in theirs)
    changes = [change for change in case.context.changes if change.constant and inside == (change.outside is None)]
    sentence = f"the weights differ: input{'s' * (len(theirs) > 1)} {', '.join(map(str, theirs))}"
    outside = next((change.outside for change in changes if change.outside is not None), None)
    if outside is not None:
        sentence = f"what comes into the body differs: constant `{outside.name}`"
    evidence = (*notes, *told([change.text for change in changes]))
    return Cause("N212", sentence, evidence, HELP if changes else _WEIGHTS, outside)


def _from_outside(case: Case, n: int) -> bool:
    """Whether an input comes into the body of the layer."""
    value = None if case.observed.layer is None else case.observed.layer.inputs[n]
    return value is not None and value.layer.type == "Parameter"


def _rounded(theirs: Array, ours: Array) -> str:
    """The narrower type that their values are ours in."""
    if is_exact(ours) or not is_number(ours) or theirs.shape != ours.shape:
        return ""
    names = ("f16", "bf16")
    name = next((name for name in names if np.array_equal(rounded(ours, name), numbers(theirs), equal_nan=True)), None)
    return f"; it is ours rounded to {name}" if name else ""


def read_otherwise(case: Case) -> Cause | None:
    """The other side reads the model's constants in another order."""
    inputs = list(case.observed.inputs)
    for n in sorted(case.observed.constants):
        array = inputs[n] if n < len(inputs) else None
        if (
            array is None
            or not is_number(array)
            or not 2 <= array.size <= (MAX_MATRIX if array.ndim == 2 else MAX_WEIGHT)
        ):
            continue
        for text, other in _rearranged(array):
            changed = [*inputs]
            changed[n] = other
            if gives(case, changed):
                note = f"with constant {n} {text} our own kernel gives the other side's result"
                sentence = f"the weights are read otherwise: input {n} is {text}"
                return Cause("N212", sentence, (note, f"as it is, {case.counts} values are wrong"), _WEIGHTS)
        reordered = _reordered(case, n) or _vector(case, n)
        if reordered is not None:
            changed = [*inputs]
            changed[n], axis = reordered
            if gives(case, changed):
                note = (
                    f"so ordered our own kernel gives the other side's result; as it is, {case.counts} values are wrong"
                )
                sentence = f"the weights are read otherwise: the slices of input {n} along axis {axis} are mixed up"
                return Cause("N212", sentence, (note,), _WEIGHTS)
    return None


_WEIGHTS = "compare the .bin that both sides read, and the layouts of weights"


def _rearranged(array: Array) -> Iterator[tuple[str, Array]]:
    wide = [axis for axis, size in enumerate(array.shape) if size > 1]
    if array.ndim >= 2 and array.ndim <= 5 and len(wide) >= 2:
        for order in permutations(range(array.ndim)):
            if [axis for axis in order if axis in wide] == wide:
                continue
            moved = array.transpose(order)
            if moved.shape == array.shape:
                yield f"transposed to the axes {list(order)}", np.ascontiguousarray(moved)
            else:
                yield f"laid out with the axes {list(order)}", moved.reshape(array.shape)
                back = [order.index(axis) for axis in range(array.ndim)]
                yield (
                    f"read with the axes {list(order)}",
                    np.ascontiguousarray(array.reshape(moved.shape).transpose(back)),
                )
    for axis in wide:
        yield f"reversed along axis {axis}", np.ascontiguousarray(np.flip(array, axis))
    if array.dtype.kind in "iu" and array.dtype.itemsize == 1:
        yield "read with the sign bit turned over", array ^ array.dtype.type(-128 if array.dtype.kind == "i" else 128)


def _reordered(case: Case, n: int) -> tuple[Array, int] | None:
    """The matrix that is input `n` of a product with its slices in another order along the axis that is summed over,
    and that axis.

    Equations tell the order: the result and the matrix give the other factor with its columns in that order, where it
    has as many columns as rows, or the result and the other factor give the matrix with its rows so.
    """
    seen = case.observed
    product = None if seen.op is None else seen.op.trait(MatrixProduct)
    if product is None or n != 1 or not case.numeric or not case.small:
        return None
    data, weight = seen.inputs[:2]
    if data is None or weight is None or data.ndim < 2 or weight.ndim != 2 or is_exact(data) or is_exact(weight):
        return None
    turned = bool(seen.attrs[product.transpose_b])
    axis, matrix = int(turned), numbers(weight).T if turned else numbers(weight)
    x = numbers(data)
    x = (np.swapaxes(x, -1, -2) if seen.attrs[product.transpose_a] else x).reshape(-1, len(matrix))
    y = numbers(case.actual).reshape(-1, matrix.shape[1])
    if not 2 < len(matrix) <= MAX_SOLVED or len(x) != len(y) or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    terms, few = len(matrix), slice(0, MATCHED)
    equations = slice(0, EQUATIONS * terms)
    if matrix.shape[1] >= terms:
        order = _order(_solved(matrix.T[equations], y[few].T[equations]), x[few].T)
        order = None if order is None else np.argsort(order)
    elif len(x) >= terms:
        order = _order(_solved(x[equations], y[equations, few]), matrix[:, few])
    else:
        return None
    return None if order is None else (np.take(weight, order, axis), axis)


def _vector(case: Case, n: int) -> tuple[Array, int] | None:
    """The factors or summands that are input `n` in another order, and the axis that they lie along."""
    seen = case.observed
    elementwise = None if seen.op is None else seen.op.trait(Elementwise)
    function = None if elementwise is None else elementwise.function
    undone = None if function is None else _UNDONE.get(function)
    if undone is None or len(seen.inputs) != 2 or not case.numeric or not case.small:
        return None
    weight, data = seen.inputs[n], seen.inputs[1 - n]
    if weight is None or data is None or is_exact(weight):
        return None
    axes = [axis for axis, size in enumerate(weight.shape) if size > 1]
    if len(axes) != 1 or weight.size < 3:
        return None
    with np.errstate(all="ignore"):
        theirs = undone(numbers(case.actual), numbers(data))
    axis = axes[0] - weight.ndim + theirs.ndim
    rows = np.moveaxis(theirs, axis, 0).reshape(theirs.shape[axis], -1)
    if len(rows) != weight.size or not np.isfinite(rows).any(axis=1).all():
        return None
    with np.errstate(all="ignore"):
        found = np.nanmedian(np.where(np.isfinite(rows), rows, np.nan), axis=1)
    order = _order(found[:, None], numbers(weight).reshape(-1, 1))
    return None if order is None else (np.take(weight, order, axes[0]), axes[0])


_UNDONE: dict[str, np.ufunc] = {"add": np.subtract, "multiply": np.divide}
"""What gives one operand back of a result and the other one."""


def _solved(equations: Array, right: Array) -> Array | None:
    """What linear equations, at least as many as unknowns, are solved by; None where they leave some open."""
    q, r = np.linalg.qr(equations)
    diagonal = np.abs(np.diagonal(r))
    if diagonal.min() <= np.finfo(np.float64).eps * len(r) * diagonal.max():
        return None
    found: Array = np.linalg.solve(r, q.T @ right)
    return found


def _order(one: Array | None, other: Array) -> Array | None:
    """Which row of the other each row is."""
    if one is None:
        return None
    if one.shape[1] > 1:
        return matched(one, other)
    order = np.empty(len(one), np.int64)
    order[np.argsort(one[:, 0], kind="stable")] = np.argsort(other[:, 0], kind="stable")
    return order
