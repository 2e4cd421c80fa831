"""Assertions for tests of models: results of one run held against those of another; needs no pytest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from irrun.spec.op import FLOAT, Array
from irrun.tools.compare.metrics import Metrics, measure
from irrun.tools.compare.tolerances import LEVELS, Tolerance

MAX_LISTED = 20
"""Tensors that a message goes into."""


def assert_close(
    actual: Any,
    expected: Any,
    precision: str = "f32",
    *,
    atol: float | None = None,
    rtol: float | None = None,
    outliers: float = 0.0,
    names: Collection[str] | None = None,
) -> None:
    """Raise AssertionError where results differ by more than `precision` allows.

    Both are arrays, or mappings of arrays by name, which must have the same names; of these only `names` are looked at,
    if given. `precision` is how the least precise layer computes: "f32", "f16", "bf16", "i8", "f64", or "exact". With
    `atol` or `rtol` an element may be `atol + rtol * abs(expected)` off instead, and a share of `outliers` anywhere.
    Integers must be equal but for `atol`, texts in any case, and NaN and infinities in the same places.

    The message has the place that differs most, and the least tolerance that would pass. Raises ValueError where there
    is no such precision, or a tolerance is negative or no number.

    >>> import numpy as np
    >>> assert_close(np.float32([1, 2, 3]), np.float32([1, 2, 3.01]), "bf16")
    >>> assert_close({"y": np.float32([1, 2])}, {"y": np.float32([1, 3])}, atol=0.5)
    Traceback (most recent call last):
        ...
    AssertionError: `y` differs in 1 of 2 values, beyond 0.5
      most at [1]: 2.0, expected 3.0
      9.5 dB, nmax 0.447, cosine 0.989949, 4194304 steps of f32 (p99), NaN or infinite elsewhere: 0
      passes with atol=1, or rtol=0.333
    """
    tolerance = _tolerance(precision, atol, rtol, outliers)
    pairs = _pairs(actual, expected, names)
    failures = []
    for name, found, right in pairs:
        metrics = measure(found, right, tolerance, precision)
        if not metrics.within(tolerance):
            failures.append(_text(name, metrics, tolerance))
    if failures:
        more = len(failures) - MAX_LISTED
        raise AssertionError("\n".join(failures[:MAX_LISTED] + ([f"{more} more differ"] if more > 0 else [])))


def _tolerance(precision: str, atol: float | None, rtol: float | None, outliers: float) -> Tolerance:
    if precision not in LEVELS:
        raise ValueError(f"there is no precision `{precision}`; there are {', '.join(LEVELS)}")
    for name, value in (("atol", atol), ("rtol", rtol), ("outliers", outliers)):
        if value is not None and not 0 <= value < np.inf:
            raise ValueError(f"`{name}` is {value}, expected a finite number of 0 or more")
    if atol is None and rtol is None:
        level = LEVELS[precision]
        return Tolerance(level.atol, level.rtol, outliers, level.spread, level.sqnr)
    return Tolerance(atol or 0.0, rtol or 0.0, outliers)


def _pairs(actual: Any, expected: Any, names: Collection[str] | None) -> list[tuple[str, Array, Array]]:
    """The arrays that are compared, with their names. Raises AssertionError where one side lacks some."""
    if isinstance(actual, Mapping) != isinstance(expected, Mapping):
        kinds = ["a mapping" if isinstance(side, Mapping) else "an array" for side in (actual, expected)]
        raise AssertionError(f"the result is {kinds[0]}, expected {kinds[1]}")
    if not isinstance(actual, Mapping):
        if names is not None:
            raise ValueError("`names` are of mappings of arrays")
        return [("", np.asarray(actual), np.asarray(expected))]
    wanted = list(dict.fromkeys([*expected, *actual])) if names is None else list(names)
    for side, given in (("result", actual), ("what is expected", expected)):
        lacking = [name for name in wanted if name not in given]
        if lacking:
            listed = ", ".join(f"`{name}`" for name in lacking)
            raise AssertionError(
                f"{side} has no {listed}; it has {', '.join(f'`{name}`' for name in given) or 'nothing'}"
            )
    return [(name, np.asarray(actual[name]), np.asarray(expected[name])) for name in wanted]


def _text(name: str, metrics: Metrics, tolerance: Tolerance) -> str:
    """What differs, in a few lines."""
    what = f"`{name}`" if name else "the result"
    if not metrics.comparable:
        found, right = (f"{kind}{list(shape)}" for kind, shape in _forms(metrics))
        return f"{what} is {found}, expected {right}"
    lines = [f"{what} differs {metrics.beyond(tolerance)}"]
    if metrics.worst is not None and metrics.worst_values is not None:
        one, other = metrics.worst_values
        where = f" at {list(metrics.worst)}" if metrics.worst else ""
        lines.append(f"  most{where}: {one!r}, expected {other!r}")
    if metrics.type == "string" or metrics.expected_type == "string":
        return "\n".join(lines)
    if metrics.type in FLOAT or metrics.expected_type in FLOAT:
        steps = f" {metrics.steps_p99:.0f} steps of {metrics.precision} (p99),"
        rest = f"{steps} NaN or infinite elsewhere: {metrics.nonfinite_differing:,}"
        lines.append(f"  {metrics.sqnr:.1f} dB, nmax {metrics.nmax:.3g}, cosine {metrics.cosine:.6g},{rest}")
    if metrics.nonfinite_differing:
        lines.append("  no tolerance passes: NaN and infinities must be in the same places")
    else:
        relative = f", or rtol={_up(metrics.needed_rtol)}" if np.isfinite(metrics.needed_rtol) else ""
        lines.append(f"  passes with atol={_up(metrics.needed_atol)}{relative}")
    return "\n".join(lines)


def _forms(metrics: Metrics) -> list[tuple[str, tuple[int, ...]]]:
    return [(metrics.type, metrics.shape), (metrics.expected_type, metrics.expected_shape)]


def _up(value: float) -> str:
    """A number of three digits that is not below `value`."""
    text = f"{value:.3g}"
    if float(text) >= value:
        return text
    return f"{float(text) + 10.0 ** (np.floor(np.log10(value)) - 2):.3g}"
