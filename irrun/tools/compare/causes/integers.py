"""Integers that do not fit their type: those that are clipped or wrap around, and such that are one off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irrun.spec.dtypes import is_exact, is_number
from irrun.spec.op import Array
from irrun.spec.traits import Convolving, MatrixProduct
from irrun.tools.compare.blocks import numbers
from irrun.tools.compare.causes.case import Case, Cause, number, values

RANGES = {
    "i8": (-128, 127),
    "u8": (0, 255),
    "i16": (-(2**15), 2**15 - 1),
    "u16": (0, 2**16 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "u32": (0, 2**32 - 1),
}
"""The least and the largest number of each type, narrow ones first."""

MOST_PAIRS = 256
"""Pairs of products that are computed one by one."""


def narrowed(case: Case) -> Cause | None:
    """Results that are beyond a narrower type are clipped to it, or wrap around."""
    if not case.numeric or not case.wrong.any():
        return None
    exact = case.wide if case.wide is not None else numbers(case.expected)
    exact = exact if exact.dtype.kind in "iu" else numbers(exact)
    if not np.isfinite(numbers(exact)).all():
        return None
    for name, (low, high) in RANGES.items():
        outside = (exact < low) | (exact > high)
        if not outside.any() or (case.wrong & ~outside).any():
            continue
        clipped = np.clip(exact, low, high)
        width = high - low + 1
        wrapped = low + np.mod(
            np.trunc(exact) - low if exact.dtype.kind == "f" else exact.astype(np.int64) - low, width
        )
        for hypothesis, what in ((clipped, "is clipped to"), (wrapped, "wraps around in")):
            if not (case.exact or low or numbers(hypothesis)[case.wrong].any()):
                continue  # that is a ReLU
            all_of_them = case.same(case.actual[outside], numbers(hypothesis)[outside])
            if all_of_them and np.array_equal(numbers(hypothesis)[case.wrong], numbers(case.actual)[case.wrong]):
                there = numbers(exact)[case.wrong]
                notes = (
                    f"{values(int(case.wrong.sum()), case.expected.size)} are wrong, all beyond {name}"
                    f" ({low:,} .. {high:,}):"
                    f" there {number(there.min())} .. {number(there.max())} is right",
                )
                return Cause(
                    "N208",
                    f"what is beyond {name} {what} it",
                    notes,
                    "use a wider type for this layer, or smaller numbers",
                )
    return None


def one_off(case: Case) -> Cause | None:
    """Integer results that are all one more, or one less, as indices that count from 1 are."""
    if not case.exact or case.expected.dtype.kind == "b" or case.actual.dtype.kind == "b" or case.expected.size < 2:
        return None
    with np.errstate(all="ignore"):
        apart = numbers(case.actual) - numbers(case.expected)
    if abs(apart.flat[0]) == 1 and (apart == apart.flat[0]).all():
        more = "more" if apart.flat[0] > 0 else "less"
        notes = (f"all {case.expected.size:,} values are 1 {more} than what is expected",)
        return Cause("N207", "indices are off by one", notes, "one side counts from 0 and the other one from 1")
    return None


def saturated_pairs(case: Case) -> Cause | None:
    """Products of codes of 8 bits, two of which are added up in 16 bits, as processors without VNNI do."""
    seen = case.observed
    if seen.op is None or case.context.compute is None or len(seen.inputs) < 2 or not case.numeric:
        return None
    data, weights = seen.inputs[:2]
    if data is None or weights is None or not case.small:
        return None
    steps = _step(data), _step(weights)
    if None in steps:
        return None
    unit = float(steps[0] or 1) * float(steps[1] or 1)
    total, pairs, saturated = np.zeros(case.expected.shape), 0, 0
    for part in _pairs(case, data, weights):
        found = case.computed(part)
        if found is None:
            return None
        codes = np.rint(numbers(found) / unit)
        saturated += int(((codes > 32767) | (codes < -32768)).sum())
        total += np.clip(codes, -32768, 32767) * unit
        pairs += codes.size
    if not saturated or not case.fits(total.astype(case.expected.dtype)):
        return None
    notes = (
        f"{saturated:,} of {pairs:,} sums of two products of 8-bit codes are beyond 16 bits (-32,768 .. 32,767)",
        f"with these clipped our own result is the other side's; {case.counts} values are wrong,"
        f" by {number(case.metrics.max_abs)} at most",
    )
    help = "quantize the weights to 7 bits, or run where the processor has VNNI"
    return Cause("N208", "sums of two products of 8-bit codes saturate", notes, help)


def _step(array: Array) -> float | None:
    """The distance between the codes of an array that has few values, which are multiples of it."""
    if not is_number(array) or not array.size:
        return None
    if is_exact(array):
        return 1.0 if array.dtype.itemsize == 1 else None
    found = np.unique(numbers(array))
    if len(found) < 3 or len(found) > 256 or not np.isfinite(found).all():
        return None
    step = float(np.diff(found).min())
    codes = found / step
    if np.abs(codes - np.rint(codes)).max() > 1e-2 or np.abs(codes).max() > 255.5:
        return None
    return step


def _pairs(case: Case, data: Array, weights: Array) -> Iterator[list[Array | None]]:
    """The inputs with all but two neighbouring terms of each sum as zeros, pair by pair."""
    seen = case.observed
    assert seen.op is not None
    product, convolving = seen.op.trait(MatrixProduct), seen.op.trait(Convolving)
    if product is not None and data.ndim >= 2:
        axis = data.ndim - (2 if seen.attrs[product.transpose_a] else 1)
    elif convolving is not None and not convolving.grouped and data.ndim >= 3:
        axis = 1
    else:
        return
    size = data.shape[axis]
    windows = int(np.prod(weights.shape[2:])) if convolving is not None else 1
    if windows != 1 or size > 2 * MOST_PAIRS:
        return
    for begin in range(0, size, 2):
        alone = np.zeros_like(data)
        chosen = (slice(None),) * axis + (slice(begin, begin + 2),)
        alone[chosen] = data[chosen]
        yield [alone, *seen.inputs[1:]]
