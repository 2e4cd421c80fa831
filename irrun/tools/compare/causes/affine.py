"""Results that are off by a factor or an offset, the same for all elements or for each slice along an axis."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from irrun.spec.op import Array
from irrun.tools.compare.blocks import numbers
from irrun.tools.compare.causes.case import MAX_TRIED, Case, Cause, number
from irrun.tools.compare.steps import DIGITS, floating

NICE = {
    **{float(2**power): f"2^{power}" if power > 3 else str(2**power) for power in range(1, 17)},
    **{1 / 2**power: f"1/{2**power}" for power in range(1, 17)},
    **{
        factor: text
        for one in (3, 5, 6, 7, 9, 10, 12, 100, 127, 255, 1000)
        for factor, text in ((float(one), str(one)), (1 / one, f"1/{one}"))
    },
    127.5: "127.5",
    1 / 127.5: "1/127.5",
    1 / 65535: "1/65535",
    float(np.sqrt(2)): "sqrt(2)",
    float(1 / np.sqrt(2)): "1/sqrt(2)",
    float(np.log2(math.e)): "log2(e)",
    float(np.log(2)): "ln(2)",
    float(np.pi / 180): "pi/180",
    float(180 / np.pi): "180/pi",
    1.0: "1",
}
"""Factors that mean something, and how they are written."""

LEAST_FACTOR, LEAST_LINE = 4, 8
"""Elements of a slice that show a factor, and such that show a factor and an offset."""

LEAST_SCALED = 2.0
"""What a factor changes integers by, in rms, where the result is rounded: less is a shift of some of them."""

_HELP = "look for a normalization or a dequantization that one side does twice, not at all, or in another order"


def scaled(case: Case) -> Cause | None:
    """All elements are the expected ones times one factor, or plus one number."""
    if not case.numeric or case.expected.size < 2 or case.metrics.nonfinite_differing or "b" in _kinds(case):
        return None
    if case.exact and float(case.wrong.mean()) < 0.75:
        return None
    metrics = case.metrics
    r = case.expected
    through = _through_zero(case)
    if through is not None and r.size >= 2:
        factor, text = _nice(through, case)
        nice = text is not None
        if factor != 1 and (nice or r.size >= 4) and _applies(case, factor, 0.0):
            what = f"times {text}" if text else f"times {number(factor)}"
            return Cause("N205", f"a factor: the result is {what}", (_line(case, factor, 0.0),), _HELP)
    if r.size >= 3:
        offset = metrics.mean_error
        if _applies(case, 1.0, offset):
            return Cause("N205", f"an offset: the result is {number(offset)} more", (_line(case, 1.0, offset),), _HELP)
    if r.size >= 5 and metrics.fit > 0.99 and metrics.scale:
        factor, text = _nice(metrics.scale, case)
        if _applies(case, metrics.scale, metrics.offset):
            what = f"times {text or number(factor)}, and {number(metrics.offset)} more"
            return Cause(
                "N205",
                f"a factor and an offset: the result is {what}",
                (_line(case, metrics.scale, metrics.offset),),
                _HELP,
            )
    return None


def _kinds(case: Case) -> str:
    return f"{case.actual.dtype.kind}{case.expected.dtype.kind}"


def _through_zero(case: Case) -> float | None:
    """The best factor without an offset."""
    m = case.metrics
    mean_square = m.rms**2
    if not mean_square:
        return None
    if case.small:
        a, r = numbers(case.actual), numbers(case.expected)
        with np.errstate(all="ignore"):
            factor = float(np.vdot(a, r) / np.vdot(r, r))
        return factor if np.isfinite(factor) and factor else None
    return m.scale or None


def _nice(factor: float, case: Case) -> tuple[float, str | None]:
    """A factor that means something, and its name, where it is as near as rounding allows."""
    room = 2 * DIGITS[floating(case.observed.precision)] / max(1.0, np.sqrt(case.expected.size) / 8) + 1e-6
    for nice, text in NICE.items():
        if abs(abs(factor) - nice) <= room * nice:
            return (nice, text) if factor > 0 else (-nice, f"-{text}")
    return factor, None


def _applies(case: Case, factor: float, offset: float) -> bool:
    """Whether factor and offset make the result of what is expected, to the digits that either has."""
    if factor == 1.0 and not offset:
        return False
    if not case.small:
        return case.metrics.fit > 1 - 1e-6
    with np.errstate(all="ignore"):
        made = numbers(case.expected) * factor + offset
        a = numbers(case.actual)
        if case.exact:
            error = np.abs(np.clip(np.rint(made), -(2.0**63), 2.0**63) - a)
            if float(factor).is_integer():
                return not error.any()
            return bool((error <= 1).all()) and abs(factor - 1) * case.metrics.rms >= LEAST_SCALED
        room = case.room.allowed(np.abs(made), case.metrics.rms * min(1.0, abs(factor)))
        error = np.abs(made - a)
    if (error > room).any():
        return False
    noise = float(np.sqrt(np.mean((a - numbers(case.expected)) ** 2)))
    return float(np.sqrt(np.mean(error**2))) * 4 <= noise


def _line(case: Case, factor: float, offset: float) -> str:
    line = f"actual = {number(factor)} * expected + {number(offset)}"
    return f"{line}, R^2 {case.metrics.fit:.6f}; as it is, {case.counts} values are wrong"


def scaled_by_most_slices(case: Case) -> Cause | None:
    """As `scaled_by_slice`, where most of the tensor is wrong: that is no part of it."""
    return scaled_by_slice(case) if case.wrong.mean() > 0.5 else None


def scaled_by_slice(case: Case) -> Cause | None:
    """Each slice along an axis has a factor and an offset of its own, as channels that are normalized otherwise."""
    if not case.numeric or case.exact or case.expected.size > MAX_TRIED or case.metrics.nonfinite_differing:
        return None
    for (axis, size), offset in product(enumerate(case.expected.shape), (False, True)):
        if size < 2 or case.expected.size // size < (LEAST_LINE if offset else LEAST_FACTOR):
            continue
        a = numbers(np.moveaxis(case.actual, axis, 0)).reshape(size, -1)
        r = numbers(np.moveaxis(case.expected, axis, 0)).reshape(size, -1)
        factors, offsets = _lines(a, r, offset)
        with np.errstate(all="ignore"):
            made = r * factors[:, None] + offsets[:, None]
        if not np.isfinite(made).all() or not factors.all():
            continue
        hypothesis = np.moveaxis(made.reshape(size, *_without(case.expected.shape, axis)), 0, axis)
        room = _strict(case, made)
        if (np.abs(made - a) <= room).all() and case.fits(hypothesis):
            worst = int(np.argmax(np.abs(factors - 1)))
            spread = f", the offsets {number(offsets.min())} .. {number(offsets.max())}" if offset else ""
            notes = (
                f"along axis {axis} the factors are {number(factors.min())} .. {number(factors.max())}{spread};"
                f" slice {worst} is times {number(factors[worst])}",
                f"as it is, {case.counts} values are wrong",
            )
            what = "a factor and an offset" if offset else "a factor"
            return Cause("N205", f"{what} for each slice along axis {axis}", notes, _HELP)
    return None


def _lines(a: Array, r: Array, offset: bool) -> tuple[Array, Array]:
    """The best factor of each row, and the offset if there may be one; a factor of 1 where the row shows none."""
    middle = r.mean(1) if offset else np.zeros(len(r))
    target = a.mean(1) if offset else middle
    from_r, from_a = r - middle[:, None], a - target[:, None]
    squares = (from_r**2).sum(1)
    with np.errstate(all="ignore"):
        factors = np.where(squares > 0, (from_a * from_r).sum(1) / squares, 1.0)
        return factors, target - factors * middle


def _strict(case: Case, made: Array) -> Array:
    return case.room.allowed(np.abs(made), case.metrics.rms)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]
