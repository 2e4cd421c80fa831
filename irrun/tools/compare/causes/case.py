"""One tensor under examination: what every test of a cause asks of it, and the answer that a test gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from irrun.diagnostics import IRError
from irrun.ir.graph import Layer
from irrun.records import dataclass
from irrun.spec.dtypes import is_exact, is_number
from irrun.spec.op import Array, Violation
from irrun.tools.compare.blocks import blocks, numbers
from irrun.tools.compare.budget import OutOfTime
from irrun.tools.compare.metrics import Metrics, measure
from irrun.tools.compare.observed import Context, Observed
from irrun.tools.compare.steps import DIGITS, floating
from irrun.tools.compare.tolerances import Tolerance, grid_step, noise_floor, own, terms

MAX_TRIED = 1 << 24
"""Elements of a tensor up to which tests compute layers again, or sort."""

BETTER = 16.0
"""How many times less noise power an explanation must leave, in order not to explain what rounding alone did."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a tensor differs: a key of `irrun.check.codes.CODES`, what happened, numbers that prove it, a way out.

    `at` is the layer to look at, where that is not the one of the tensor.
    """

    code: str
    sentence: str
    evidence: tuple[str, ...] = ()
    help: str | None = None
    at: Layer | None = None

    @property
    def explained(self) -> bool:
        """Whether nothing is wrong."""
        return self.code.startswith("N1")


class Case:
    """A tensor that is examined. What is costly is computed once, when it is asked for."""

    def __init__(self, observed: Observed, context: Context) -> None:
        self.observed, self.context = observed, context
        self.actual, self.expected = observed.actual, observed.expected
        self.exact = is_exact(self.actual) and is_exact(self.expected)
        self.numeric = is_number(self.actual) and is_number(self.expected)

    @cached_property
    def tolerance(self) -> Tolerance:
        seen = self.observed
        if seen.tolerance is not None:
            return seen.tolerance
        return self._of_layer.applied(exact=self.exact)

    @property
    def _of_layer(self) -> Tolerance:
        seen = self.observed
        if seen.op is None:
            return own(seen.precision, 1.0 if seen.terms is None else seen.terms, seen.step)
        shapes = [None if array is None else array.shape for array in seen.inputs]
        count = seen.terms
        if count is None:
            count = terms(seen.op, seen.attrs, shapes, self.expected.shape)
        step = grid_step(seen.op, seen.attrs, seen.inputs) if seen.step is None else seen.step
        return own(seen.precision, count, step)

    @cached_property
    def room(self) -> Tolerance:
        """What an explanation may leave: rounding, also where elements are but moved."""
        if self.exact:
            return self.tolerance
        digit, twice = DIGITS[floating(self.observed.precision)], self.tolerance.times(2)
        return replace(twice, rtol=max(twice.rtol, 4 * digit), spread=max(twice.spread, 2 * digit))

    @cached_property
    def metrics(self) -> Metrics:
        return measure(self.actual, self.expected, self.tolerance, self.observed.precision)

    @cached_property
    def right(self) -> bool:
        """Whether the layer's own result is within the tolerance."""
        return self.metrics.within(self.tolerance)

    @cached_property
    def small(self) -> bool:
        return self.expected.size <= MAX_TRIED

    @cached_property
    def wrong(self) -> Array:
        """Where the own error is beyond the tolerance, a truth for each element, in the tensor's shape."""
        found = np.empty(self.expected.size, bool)
        begin = 0
        for one, other in blocks(self.actual, self.expected):
            found[begin : begin + one.size] = self._wrong(one, other, self.metrics.rms, self.tolerance)[0]
            begin += one.size
        return found.reshape(self.expected.shape)

    def _wrong(self, one: Array, other: Array, rms: float, tolerance: Tolerance) -> tuple[Array, Array]:
        """Which elements of a block are wrong, and the errors of those that are finite."""
        if not self.numeric:
            return np.asarray(one != other), np.zeros(one.size)
        with np.errstate(all="ignore"):
            a, r = numbers(one), numbers(other)
            error = np.abs(a - r)
            both = np.isfinite(a) & np.isfinite(r)
            if self.exact:
                error = np.where(one != other, np.maximum(error, 1.0), 0.0)
            bad = error > tolerance.allowed(np.abs(r), rms, exact=self.exact)
            if not both.all():
                same = (a == r) | (np.isnan(a) & np.isnan(r))
                bad = np.where(both, bad, ~same)
                error = np.where(both, error, 0.0)
        return np.asarray(bad), error

    def same(self, one: Array, other: Array) -> bool:
        """Whether two parts of tensors are equal up to the tolerance."""
        bad, _ = self._wrong(one.ravel(), other.ravel(), self.metrics.rms, self.room)
        return not bad.any()

    def fits(self, hypothesis: Array, actual: Array | None = None, noise: float | None = None) -> bool:
        """Whether all elements are as a hypothesis has them, and much closer to it than to what is expected.

        `actual` is a part of the tensor, of the shape of the hypothesis, and `noise` the own nrmse there in that case.
        """
        actual = self.actual if actual is None else actual
        if hypothesis.shape != actual.shape or not actual.size or is_number(hypothesis) != is_number(actual):
            return False
        tolerance = self.room
        rms, squares = self.metrics.rms, 0.0
        for one, other in blocks(actual, hypothesis):
            bad, error = self._wrong(one, other, rms, tolerance)
            if bad.any():
                return False
            squares += float((error / (rms or 1.0)) @ (error / (rms or 1.0)))
        if self.metrics.nonfinite_differing or not self.numeric:
            return True
        noise = self.metrics.nrmse if noise is None else noise
        return squares / actual.size * BETTER <= noise**2

    def computed(self, inputs: Sequence[Array | None], *, wide: bool = False) -> Array | None:
        """The tensor as the layer's kernel makes it of other inputs, in f64 if `wide`; None where it does not."""
        return self._made(self.context.compute64 if wide else self.context.compute, inputs)

    def computed_as(self, attributes: Mapping[str, Any]) -> Array | None:
        """The tensor as the layer's kernel makes it with other values of attributes; None where it does not."""
        return self._made(self.context.compute_as, attributes)

    def _made(self, compute: Callable[[Any], Sequence[Array]] | None, given: Any) -> Array | None:
        if compute is None or not self.small:
            return None
        try:
            with np.errstate(all="ignore"):
                found = compute(given)
        except (Violation, IRError, MemoryError, OutOfTime):
            return None
        array = found[self.observed.port] if self.observed.port < len(found) else None
        return array if array is not None and array.shape == self.expected.shape else None

    def beyond(self, size: float) -> Array:
        """Where what is expected is finite and larger than a size."""
        found = np.empty(self.expected.size, bool)
        begin = 0
        for (one,) in blocks(self.expected):
            large = np.abs(numbers(one))
            found[begin : begin + one.size] = (large > size) & np.isfinite(large)
            begin += one.size
        return found.reshape(self.expected.shape)

    @cached_property
    def wide(self) -> Array | None:
        """What is expected, in f64."""
        return self.computed(self.observed.inputs, wide=True)

    @cached_property
    def floor(self) -> Array | None:
        compute = self.context.compute
        seen = self.observed
        if compute is None or not self.numeric or self.computed(seen.inputs) is None:
            return None
        try:
            return noise_floor(compute, seen.inputs, seen.port, seen.precision, self.expected, self.wide)
        except OutOfTime:
            return None

    @property
    def counts(self) -> str:
        """How much of the tensor is wrong, as text."""
        return f"{int(self.wrong.sum()):,} of {self.expected.size:,}"


def number(value: Any) -> str:
    """A number for people: five digits, thousands apart."""
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1e7 or (value and abs(value) < 1e-3):
        return f"{value:.4g}"
    return f"{value:,.5g}" if abs(value) < 1e4 else f"{value:,.0f}"


def values(count: int, of: int) -> str:
    return f"{count:,} of {of:,} value{'s' * (of != 1)}"
