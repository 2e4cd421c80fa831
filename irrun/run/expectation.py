"""Results beside those that are expected: which differ by more than they may, and where most."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irrun.diagnostics import InputError
from irrun.run.results import Results
from irrun.spec.dtypes import element_type, is_number
from irrun.spec.op import Array
from irrun.spec.patterns import shape_text


def differences(results: Results, expected: Mapping[str, Array], rtol: float, atol: float) -> list[str]:
    """A sentence for each result that is not as `expected`; none where all are. Not all need be expected.

    An element may be `atol + rtol * abs(expected)` from what is expected, integers and others not at all; NaN is equal
    to NaN.
    Raises InputError where there is no output of a name, or nothing is expected.
    """
    if not expected:
        raise InputError("no array is expected")
    found = []
    for name, wanted in expected.items():
        try:
            result = results[name]
        except KeyError as error:
            raise InputError(error.args[0]) from None
        sentence = _difference(result, wanted, rtol, atol)
        if sentence:
            found.append(f"`{name}` {sentence}")
    return found


def in_order(results: Results, expected: Mapping[str, Array]) -> dict[str, Array] | None:
    """The arrays that numpy has numbered, as they had no names, by the names of outputs in order; None for others."""
    numbered = [f"arr_{number}" for number in range(len(expected))]
    if sorted(numbered) != sorted(expected) or any(name in results for name in numbered):
        return None
    if len(expected) > len(results):
        return None
    return {name: expected[number] for name, number in zip(results, numbered, strict=False)}


def unexpected(results: Results, expected: Mapping[str, Array]) -> list[str]:
    """The names of the results of which nothing is `expected`, by any of the names that they go by."""
    there = {results.key(name) for name in expected}
    return [name for name in results if name not in there]


def _difference(result: Array, wanted: Array, rtol: float, atol: float) -> str:
    if result.shape != wanted.shape:
        return f"has shape {shape_text(result.shape)}, expected {shape_text(wanted.shape)}"
    if not is_number(result) or not is_number(wanted):
        wrong = np.asarray(result != wanted)
        apart = wrong.astype(np.float64)
    else:
        exact = result.dtype.kind in "biu" and wanted.dtype.kind in "biu"
        found, goal = (array.astype(np.float64) for array in (result, wanted))
        with np.errstate(all="ignore"):
            apart = np.abs(found - goal)
            allowed = np.zeros_like(goal) if exact else atol + rtol * np.abs(goal)
            same = (found == goal) | (np.isnan(found) & np.isnan(goal))
            wrong = np.asarray(~same & ~((apart <= allowed) & np.isfinite(goal)))
            apart = np.where(same, 0.0, np.where(np.isfinite(apart), apart / np.maximum(allowed, 1e-300), np.inf))
    if not wrong.any():
        return ""
    place = np.unravel_index(int(np.argmax(np.where(wrong, apart, -1.0))), wrong.shape)
    where = f" at [{', '.join(str(int(index)) for index in place)}]" if place else ""
    counts = f"{int(wrong.sum()):,} of {wrong.size:,} element{'s' * (wrong.size != 1)}"
    values = f"{_text(result[place])}, expected {_text(wanted[place])}"
    return f"({element_type(result.dtype)}) differs in {counts}, most{where}: {values}"


def _text(value: object) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
