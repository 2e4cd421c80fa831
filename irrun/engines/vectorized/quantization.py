"""FakeQuantize and FakeConvert as passes over blocks that stay in the cache, bit by bit what the ops' kernels give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from irrun.engines.extents import once
from irrun.engines.vectorized import functions
from irrun.engines.work import Call, chain
from irrun.spec.dtypes import FLOAT_FORMATS, numpy_dtype
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

EXPONENT = np.int32(0x7F800000)


def fake_quantize_stage(attrs: Mapping[str, Any], type: str, *, fixed: bool = True) -> Callable[..., list[Call]] | None:
    """Binds FakeQuantize-1 to a block of `type`, given it, the four limits and the output; None if it is not taken.

    What the limits hold is looked at right away where they are `fixed`, else in every call.
    """
    if not broadcasts_by_numpy(attrs) or type not in ("f32", "f64"):
        return None
    return partial(_bound, numpy_dtype(type).type(attrs["levels"] - 1), fixed)


def fake_convert_stage(attrs: Mapping[str, Any]) -> Callable[..., list[Call]]:
    """Binds FakeConvert-13 to a block of f32, given it, the scale, the shift if there is one, and the output."""
    narrow, digit = FLOAT_FORMATS[attrs["destination_type"]], FLOAT_FORMATS["f32"].digit
    numbers = (-narrow.largest, narrow.largest, narrow.normal, 1.5 * narrow.digit / digit)
    low, high, least, factor = (np.array(number, np.float32) for number in numbers)
    return partial(_converted, low, high, partial(_narrowed, least, factor))


def _converted(
    low: Array, high: Array, narrowed: Callable[[Array], None], data: Array, scale: Array, *others: Array
) -> list[Call]:
    *shift, output = others
    return [
        partial(np.multiply, data, scale, output),
        *(partial(np.subtract, output, own, output) for own in shift),
        partial(functions.clip, output, low, high, output),
        partial(narrowed, output),
        *(partial(np.add, output, own, output) for own in shift),
        partial(np.divide, output, scale, output),
    ]


def _narrowed(least: Array, factor: Array, output: Array) -> None:
    """Round to as many bits as `factor` leaves of those of f32 beside it: it is 1.5 times what has no others."""
    far, near = functions.temporary(output), functions.temporary(output, 1)
    np.bitwise_and(output.view(np.int32), EXPONENT, far.view(np.int32))  # powers of two
    np.maximum(far, least, out=far)
    np.multiply(far, factor, far)
    np.add(output, far, near)
    np.subtract(near, far, near)
    np.copysign(near, output, output)


def _bound(
    steps: Any, fixed: bool, data: Array, low: Array, high: Array, first: Array, last: Array, output: Array
) -> list[Call]:
    low, high, first, last = map(once, (low, high, first, last))
    bound = partial(_passes, steps, data, low, high, first, last, output)
    return bound() if fixed else [lambda: chain(bound())()]


def _passes(steps: Any, data: Array, low: Array, high: Array, first: Array, last: Array, output: Array) -> list[Call]:
    with np.errstate(over="ignore", invalid="ignore"):
        width, span, number = high - low, last - first, np.asarray(steps)
    whole = span == number
    mapped: list[Call] = []
    if not whole.all():
        divisor, factor = (np.where(whole, number.dtype.type(1), own) for own in (number, span))
        mapped = [partial(np.divide, output, divisor, output), partial(np.multiply, output, factor, output)]
    scaled: list[Call] = [
        *([partial(np.subtract, output, low, output)] if np.any(low) else []),
        partial(np.divide, output, width, output),
        partial(np.multiply, output, number, output),
        partial(np.rint, output, output),
        *mapped,
        *([partial(np.add, output, first, output)] if np.any(first) or not np.all(span > 0) else []),
    ]
    if not (np.all(low < high) and np.isfinite(width).all() and np.isfinite(span).all()):
        return [partial(_masked, scaled, data, np.minimum(low, high), np.maximum(low, high), first, last, output)]
    clipped: list[Call] = [partial(functions.clip, data, low, high, output), *scaled]
    if np.array_equal(span + first, last):  # what is clipped comes out as the last level does
        return clipped
    return [partial(_corrected, clipped, data, high, last, output)]


def _masked(
    scaled: list[Call], data: Array, least: Array, most: Array, first: Array, last: Array, output: Array
) -> None:
    """The passes over data that lie within the limits, and the outer levels for all others."""
    below, above = np.less_equal(data, least), np.greater(data, most)
    np.copyto(output, data)
    for call in scaled:
        call()
    functions.put(output, first, below)
    functions.put(output, last, above)


def _corrected(clipped: list[Call], data: Array, high: Array, last: Array, output: Array) -> None:
    """The passes over clipped data, and the last level where it comes out otherwise by rounding."""
    above = np.greater(data, high)
    for call in clipped:
        call()
    functions.put(output, last, above)
