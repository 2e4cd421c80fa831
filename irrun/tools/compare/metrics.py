"""How far two arrays lie apart, by every measure that a report has; whether that is too far, a tolerance says.

Arrays may be in files and of any size: they are looked at in blocks, three times, with sums in f64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES, element_type, is_exact, is_number
from irrun.spec.op import Array
from irrun.tools.compare.blocks import Distribution, bits, blocks, numbers
from irrun.tools.compare.outlines import Box, Edge
from irrun.tools.compare.steps import floating, steps_between
from irrun.tools.compare.tolerances import EXACT, Tolerance

FLOOR = 1e-3
"""Of the root mean square of what is expected: relative errors of smaller numbers are parts of that."""

EXTREME = 1e100
"""Numbers above it, or below its inverse, are divided by the largest one before they are squared."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is different in an array (a) from the one that is expected (r); errors are abs(a - r) where both are finite.

    Where the shapes differ, or one has texts and the other numbers, only shapes and types say something.

    `max_rel` is relative to abs(r), or to 0.001 of its root mean square (rms) where that is more; `nmax` and `nrmse`
    are the largest error and the rms of all in parts of the rms of r; `sqnr` and `psnr` are in dB, infinite where
    nothing differs. `mean_error` is the mean of a - r with its sign. `scale`, `offset` and `fit` are the best a = scale
    * r + offset and its R^2. `steps_*` count the numbers of `precision` in between.

    `mismatches` are the elements beyond the tolerance, `box` the first and the last index of these along each axis.
    `nonfinite` and `expected_nonfinite` count NaN, +inf and -inf, `nonfinite_differing` the places where these differ.
    `edge` are pairs of a size of what is expected and an error: any tolerance that allows each error for an element of
    that size holds for all elements, sizes being rounded down by an eighth at most.
    `needed_atol`, `needed_rtol` and `needed_factor` are the least tolerance that passes: as a number alone, as a part
    of each element alone, and as a multiple of the one that was given. They are infinite where none does. Where
    `mismatches` are not `counted`, as it is judged again, there is one where there are any.
    """

    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    type: str
    expected_type: str
    count: int
    precision: str
    comparable: bool = True
    equal: bool = True
    max_abs: float = 0.0
    worst: tuple[int, ...] | None = None
    worst_values: tuple[float | int | str, float | int | str] | None = None
    mean_abs: float = 0.0
    mean_error: float = 0.0
    p99_abs: float = 0.0
    max_rel: float = 0.0
    rms: float = 0.0
    nmax: float = 0.0
    nrmse: float = 0.0
    sqnr: float = math.inf
    psnr: float = math.inf
    cosine: float = 1.0
    scale: float = 1.0
    offset: float = 0.0
    fit: float = 1.0
    steps_p50: float = 0.0
    steps_p99: float = 0.0
    steps_max: float = 0.0
    mismatches: int = 0
    box: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    nonfinite: tuple[int, int, int] = (0, 0, 0)
    expected_nonfinite: tuple[int, int, int] = (0, 0, 0)
    nonfinite_differing: int = 0
    needed_atol: float = 0.0
    needed_rtol: float = 0.0
    needed_factor: float = 0.0
    edge: tuple[tuple[float, float], ...] = ()
    counted: bool = True

    @property
    def percent(self) -> float:
        """Mismatches of a hundred elements."""
        return 100.0 * self.mismatches / self.count if self.count else 0.0

    def within(self, tolerance: Tolerance) -> bool:
        """Whether the tolerance that it was measured with holds."""
        if not self.comparable or self.nonfinite_differing:
            return False
        enough = tolerance.sqnr is None or self.sqnr >= tolerance.sqnr
        return enough and self.mismatches <= self._anywhere(tolerance)

    def _anywhere(self, tolerance: Tolerance) -> float:
        """How many elements may be anywhere: of texts none."""
        return 0.0 if "string" in (self.type, self.expected_type) else tolerance.outliers * self.count

    def beyond(self, tolerance: Tolerance) -> str:
        """Which criterion of the tolerance that it was measured with fails, with the figure."""
        parts = []
        differing = self.mismatches + self.nonfinite_differing
        if self.nonfinite_differing or self.mismatches > self._anywhere(tolerance):
            exact = self.type in _EXACT and self.expected_type in _EXACT
            allowed = EXACT if self.type == "string" else tolerance.applied(exact=exact).elements
            where, equal = f"in {differing:,} of {self.count:,} values", "which have to be equal"
            if not self.counted:
                where, equal = f"by {self.max_abs:.4g} at most", "and has to be equal"
            if allowed == EXACT:
                return f"{where}, {equal}"
            parts.append(f"{where}, beyond {allowed}")
        if tolerance.sqnr is not None and self.sqnr < tolerance.sqnr:
            parts.append(f"by {self.sqnr:.1f} dB, of which {tolerance.sqnr:g} dB are wanted")
        return ", and ".join(parts)

    def would_be_within(self, tolerance: Tolerance) -> bool:
        """Whether another tolerance, without outliers, would hold, too; False where it only might."""
        if not self.comparable or self.nonfinite_differing:
            return False
        if tolerance.sqnr is not None and self.sqnr < tolerance.sqnr:
            return False
        if "string" in (self.type, self.expected_type):
            return not self.mismatches
        if tolerance.outliers >= 1:
            return True
        sizes, errors = np.array(self.edge or [(0.0, self.max_abs)]).T
        exact = self.expected_type in _EXACT
        return bool((errors <= tolerance.allowed(sizes, self.rms, exact=exact)).all())

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it; what is not finite as text."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Metrics:
        """What `to_dict` gave, or JSON of that. Raises KeyError where an entry is missing that has no default, and
        ignores what it does not know."""
        return cls(
            **{field.name: _restored(field.name, given[field.name]) for field in fields(cls) if field.name in given}
        )


def measure(actual: Array, expected: Array, tolerance: Tolerance = EXACT, precision: str | None = None) -> Metrics:
    """How far `actual` is from `expected`. `precision` is what steps are counted in, the type of `expected` by default.

    Integers and booleans must be equal but for the `atol` of the tolerance, texts in any case.
    """
    types = element_type(actual.dtype), element_type(expected.dtype)
    precision = floating(precision or types[1])
    comparable = actual.shape == expected.shape and is_number(actual) == is_number(expected)
    head: dict[str, Any] = {
        "shape": actual.shape,
        "expected_shape": expected.shape,
        "type": types[0],
        "expected_type": types[1],
        "count": expected.size,
        "precision": precision,
        "comparable": comparable,
    }
    if not comparable:
        return Metrics(**head, equal=False, needed_atol=math.inf, needed_rtol=math.inf, needed_factor=math.inf)
    if not expected.size:
        return Metrics(**head, equal=types[0] == types[1])
    if not is_number(expected):
        return Metrics(**head, **_of_texts(actual, expected))
    return Metrics(**head, **_Numbers(actual, expected, tolerance, precision).measured())


_EXACT = frozenset({"boolean", *(name for name in ELEMENT_TYPES if name[0] in "iu")})

_NEEDED = ("needed_atol", "needed_rtol", "needed_factor")


def _of_texts(actual: Array, expected: Array) -> dict[str, Any]:
    differing = np.asarray(actual != expected)
    if not differing.any():
        return {}
    box = Box(expected.shape)
    box.add(np.flatnonzero(differing))
    first = tuple(int(place) for place in np.argwhere(differing)[0])
    pair = (str(actual[first]), str(expected[first]))
    found = {"equal": False, "worst": first, "worst_values": pair, "box": box.corners}
    return {**found, "mismatches": int(differing.sum()), **dict.fromkeys(_NEEDED, math.inf)}


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else (math.inf if part else 0.0)


def decibels(ratio: float) -> float:
    return 20.0 * math.log10(ratio) if ratio and ratio != math.inf else -math.inf if not ratio else math.inf


class _Numbers:
    """The measures of two arrays of numbers that have one shape and an element at least."""

    def __init__(self, actual: Array, expected: Array, tolerance: Tolerance, precision: str) -> None:
        self.actual, self.expected, self.tolerance, self.precision = actual, expected, tolerance, precision
        self.exact = is_exact(actual) and is_exact(expected)

    def measured(self) -> dict[str, Any]:
        with np.errstate(all="ignore"):
            found = self._survey()
            found |= self._sums()
            return found | self._errors(found["rms"])

    def _survey(self) -> dict[str, Any]:
        """Counts, largest numbers and means, which the other passes need."""
        equal = self.actual.dtype == self.expected.dtype
        kinds = np.zeros((2, 3), np.int64)
        differing = finite = 0
        largest, means = np.zeros(2), np.zeros(2)
        for one, other in blocks(self.actual, self.expected):
            equal = equal and bool(np.array_equal(bits(one), bits(other)))
            a, r = numbers(one), numbers(other)
            both = np.isfinite(a) & np.isfinite(r)
            if not both.all():
                for row, values in zip(kinds, (a, r), strict=True):
                    row += [int(np.isnan(values).sum()), int((values == np.inf).sum()), int((values == -np.inf).sum())]
                differing += int((~both & ~((a == r) | (np.isnan(a) & np.isnan(r)))).sum())
                a, r = a[both], r[both]
            if a.size:
                finite += a.size
                largest = np.maximum(largest, [np.abs(a).max(), np.abs(r).max()])
                means += (np.array([a.mean(), r.mean()]) - means) * (a.size / finite)
        self.finite, self.largest, self.means = finite, largest, means
        most = float(largest.max())
        self.unit = most if most > EXTREME or 0 < most < 1 / EXTREME else 1.0
        nonfinite, expected = (tuple(int(count) for count in row) for row in kinds)
        return {
            "equal": equal,
            "nonfinite": nonfinite,
            "expected_nonfinite": expected,
            "nonfinite_differing": differing,
        }

    def _pairs(self) -> Any:
        """Blocks of numbers that are finite in both, and where they begin and lie."""
        begin = 0
        for one, other in blocks(self.actual, self.expected):
            a, r = numbers(one), numbers(other)
            error = np.abs(a - r)
            if self.exact:
                error = np.where(one != other, np.maximum(error, 1.0), 0.0)  # i64 beyond 2^53
            both = np.isfinite(a) & np.isfinite(r)
            places = None
            if not both.all():
                places = np.flatnonzero(both) + begin
                a, r, error = a[both], r[both], error[both]
            yield begin, places, a, r, error
            begin += one.size

    def _sums(self) -> dict[str, Any]:
        unit, (mean_a, mean_r) = self.unit, self.means / self.unit
        rr = aa = ar = ee = e = var_r = var_a = cov = 0.0
        for _, _, a, r, error in self._pairs():
            a, r, error = a / unit, r / unit, error / unit
            rr, aa, ar = rr + float(r @ r), aa + float(a @ a), ar + float(a @ r)
            ee, e = ee + float(error @ error), e + float(error.sum())
            from_a, from_r = a - mean_a, r - mean_r
            var_r, var_a = var_r + float(from_r @ from_r), var_a + float(from_a @ from_a)
            cov += float(from_a @ from_r)
        count = max(self.finite, 1)
        rms, rmse = math.sqrt(rr / count), math.sqrt(ee / count)
        cosine = ar / math.sqrt(aa * rr) if aa and rr else float(aa == rr)
        scale = cov / var_r if var_r else 1.0
        left = max(var_a - scale * cov, 0.0) if var_r else var_a
        return {
            "rms": rms * unit,
            "mean_error": float(self.means[0] - self.means[1]),
            "mean_abs": e / count * unit,
            "nrmse": ratio(rmse, rms),
            "sqnr": decibels(ratio(rms, rmse)) if rmse else math.inf,
            "psnr": decibels(ratio(self.largest[1] / unit, rmse)) if rmse else math.inf,
            "cosine": max(-1.0, min(1.0, cosine)),
            "scale": scale,
            "offset": float(mean_a - scale * mean_r) * unit,
            "fit": 1.0 - left / var_a if var_a else float(not left),
        }

    def _errors(self, rms: float) -> dict[str, Any]:
        errors, steps = Distribution(), Distribution()
        few = 0 < self.tolerance.outliers < 1
        least = {name: Distribution() for name in _NEEDED} if few else {}
        box, edge = Box(self.expected.shape), Edge()
        max_abs, worst, max_rel, max_steps, mismatches = 0.0, 0, 0.0, 0.0, 0
        tops = dict.fromkeys(_NEEDED, 0.0)
        for begin, places, a, r, error in self._pairs():
            if not a.size:
                continue
            size = np.abs(r)
            errors.add(error)
            top = int(error.argmax())
            if error[top] > max_abs:
                max_abs, worst = float(error[top]), int(places[top]) if places is not None else begin + top
            if not error[top]:
                steps.add(error)
                for distribution in least.values():
                    distribution.add(error)
                continue
            max_rel = max(max_rel, float(np.nan_to_num(error / np.maximum(size, FLOOR * rms), posinf=np.inf).max()))
            apart = steps_between(a, r, self.precision)
            steps.add(apart)
            edge.add(size, error)
            max_steps = max(max_steps, float(apart.max()))
            allowed = self.tolerance.allowed(size, rms, exact=self.exact)
            wrong = np.flatnonzero(error > allowed)
            mismatches += wrong.size
            box.add(wrong + begin if places is None else places[wrong])
            part = 0.0 if self.exact else size  # of integers no part of their size counts
            for name, unit in zip(_NEEDED, (1.0, part, allowed), strict=True):
                needed = np.where(error > 0, error / unit, 0.0)
                if few:
                    least[name].add(needed)
                tops[name] = max(tops[name], float(needed.max()))
        found = {name: self._needed(least[name], top) for name, top in tops.items()} if few else dict(tops)
        return {
            **found,
            "max_abs": max_abs,
            "worst": self._place(worst) if max_abs else None,
            "worst_values": self._values(worst) if max_abs else None,
            "p99_abs": min(errors.quantile(0.99), max_abs),
            "max_rel": max_rel,
            "nmax": ratio(max_abs, rms),
            "steps_p50": steps.quantile(0.5),
            "steps_p99": min(steps.quantile(0.99), max_steps),
            "steps_max": max_steps,
            "mismatches": mismatches,
            "box": box.corners,
            "edge": edge.pairs,
        }

    def _needed(self, needed: Distribution, top: float) -> float:
        """The least number that passes: the outliers that the tolerance has may need more."""
        edge = needed.quantile(1 - self.tolerance.outliers)
        return min(top, edge * (1 + 2.0**-8))  # of the distribution's bin, which may be as wide

    def _place(self, flat: int) -> tuple[int, ...]:
        return tuple(int(place) for place in np.unravel_index(flat, self.expected.shape)) if self.expected.ndim else ()

    def _values(self, flat: int) -> tuple[float | int, float | int]:
        place, kind = self._place(flat), int if self.exact else float
        return kind(self.actual[place]), kind(self.expected[place])


def plain(value: Any) -> Any:
    """What is not finite as text, as JSON has no numbers for it."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


_NUMBERS = frozenset(field.name for field in fields(Metrics) if field.type == "float")


def _restored(name: str, value: Any) -> Any:
    if name in _NUMBERS:
        return float(value)
    return _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value
