"""The numbers that a floating-point precision has: rounding to them, and distances counted in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec.dtypes import FLOAT_FORMATS, numpy_dtype
from irrun.spec.op import Array

DIGITS = {**{name: numbers.digit for name, numbers in FLOAT_FORMATS.items()}, "tf32": 2.0**-10}
"""The relative distance of a number of each precision to the next one."""

LARGEST = {name: FLOAT_FORMATS[name].largest for name in ("f16", "bf16", "f32", "f8e4m3")}
"""The largest finite number of each."""

LEAST = {name: FLOAT_FORMATS[name].least for name in ("f16", "bf16", "f32")}
NORMAL = {name: FLOAT_FORMATS[name].normal for name in LEAST}
"""The least numbers above zero: that there are, and that have all their digits. Many devices have only the latter."""


LOOKED_AT = 256
"""Numbers that are looked at before all of them are."""


def floating(precision: str) -> str:
    """The floating-point precision whose steps count for a layer computed in `precision`: f32 for integers."""
    return precision if precision in DIGITS else "f32"


def rounded(values: Array, precision: str) -> Array:
    """Numbers rounded to a floating-point precision, as f64."""
    if precision == "tf32":  # f32 with the last 13 of 23 digits rounded off; no array has that type
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        kept = ((bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)
        return np.where(np.isfinite(values), kept.astype(np.float64), values)
    with np.errstate(all="ignore"):
        return values.astype(numpy_dtype(precision)).astype(np.float64)


def is_of(values: Array, precision: str) -> bool:
    """Whether rounding to a precision changes no number."""
    some = values.reshape(-1)[:LOOKED_AT]  # which most tensors end with
    return all(np.array_equal(rounded(each, precision), each, equal_nan=True) for each in (some, values))


def ordinals(values: Array, precision: str) -> Array:
    """The numbers of a precision counted from zero on, as int64: neighbours differ by 1. `values` may be any numbers.

    What is infinite is beside the largest number; NaN has no place, and any count.
    """
    if precision == "tf32":
        return ordinals(rounded(values, "tf32"), "f32") >> 13
    dtype = numpy_dtype(precision)
    with np.errstate(all="ignore"):
        narrow = np.ascontiguousarray(values.astype(dtype))
    signed: np.dtype[Any] = np.dtype(f"i{dtype.itemsize}")
    bits = narrow.view(signed).astype(np.int64)
    size = 8 * dtype.itemsize
    magnitude = bits & np.int64((1 << (size - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude)


def steps_between(first: Array, second: Array, precision: str) -> Array:
    """How many numbers of a precision further one array is than the other, as f64; NaN counts as any number."""
    one, other = ordinals(first, precision), ordinals(second, precision)
    low, high = np.minimum(one, other), np.maximum(one, other)
    distance = high.astype(np.uint64) - low.astype(np.uint64)  # wraps around to the right distance
    return distance.astype(np.float64)
