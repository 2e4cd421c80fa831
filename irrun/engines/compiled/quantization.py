"""FakeQuantize between numbers that hold for all of a tensor, as `elementwise` writes it down, alone and in chains: bit
by bit what the op's kernel gives."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.code import FLOAT, Code, long
from irrun.engines.memory import ITEM
from irrun.engines.work import Post, Work
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

FAKE_QUANTIZE = "FakeQuantize-1"
LIMITS = (1, 2, 3, 4)
"""The numbers of its inputs that are limits."""

_NUMBERS = ("low", "high", "width", "steps", "divisor", "factor", "first", "last")


def numbers_of(work: Work, post: Post) -> Array | None:
    """What `loaded` loads, of a quantization among what is done in a work; None where its limits are no numbers that
    hold for all of the tensor, do not go upwards, or lie too far apart."""
    limits = [work.inputs[number] for number in post.parameters]
    if len(limits) < len(LIMITS) or not broadcasts_by_numpy(post.attrs):
        return None
    values = [None if own is None or own.type != "f32" or prod(own.shape) != 1 else own.value for own in limits]
    if any(value is None for value in values):
        return None
    low, high, first, last = (np.float32(value.reshape(-1)[0]) for value in values if value is not None)
    with np.errstate(over="ignore", invalid="ignore"):
        width, span = high - low, last - first
    if not (low < high and np.isfinite(width) and np.isfinite(span)):
        return None
    steps = post.attrs["levels"] - 1
    divisor, factor = (1, 1) if span == np.float32(steps) else (steps, span)
    return np.array([low, high, width, steps, divisor, factor, first, last], np.float32)


def loaded(c: Code, address: Any) -> dict[str, Any]:
    """The numbers of a quantization, each in all lanes."""
    return {name: c.splat(c.load(c.b.add(address, long(n * ITEM)), FLOAT)) for n, name in enumerate(_NUMBERS)}


def quantized(c: Code, own: Mapping[str, Any], value: Any) -> Any:
    """NaN stays what it is, and what is above the highest limit is the last level, whatever rounding makes of that."""
    b = c.b
    above = b.fcmp_ordered(">", value, own["high"])
    value = b.select(b.fcmp_ordered("<", value, own["low"]), own["low"], b.select(above, own["high"], value))
    value = b.fmul(b.fdiv(b.fsub(value, own["low"]), own["width"]), own["steps"])
    value = c.applied("rint", value)
    value = b.fadd(b.fmul(b.fdiv(value, own["divisor"]), own["factor"]), own["first"])
    return b.select(above, own["last"], value)
