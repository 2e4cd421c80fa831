"""FakeQuantize between numbers that hold for all of a tensor, in one pass, bit by bit what the op's kernel gives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import given_alike, order_of
from irrun.engines.compiled.code import FLOAT, FLOATS, LANES, LINE, Code, Form, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, data_address
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

CHUNK = 1 << 8
"""Vectors that a thread takes at once."""

SHARED = 1 << 15
"""Elements from which on threads share them."""

ELEMENT_SECONDS = 0.3e-9
"""What an element takes about."""

_NUMBERS = ("low", "high", "width", "steps", "span", "first", "last")
_FORM = Form(("items", "vectors", "rest", "numbers", "data", "target"))
"""`items` are chunks of `vectors` whole ones; of one more there are `rest` lanes. `numbers` are f32, in order."""


def fake_quantize(work: Work, team: Team) -> Compiled | None:
    """FakeQuantize-1 of f32 that lie without gaps."""
    data, *limits = work.required(5)
    if work.posts or data.type != "f32" or work.attrs["auto_broadcast"] == "pdpd" or order_of(data) is None:
        return None
    if any(own.value is None or prod(own.shape) != 1 or own.type != "f32" for own in limits):
        return None
    numbers = _numbers([own.value for own in limits if own.value is not None], work.attrs["levels"])
    if numbers is None or work.outputs[0].shape != data.shape:
        return None
    size = prod(data.shape)
    vectors, rest = divmod(size, LANES)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        address = compiled("fake quantize", lambda function: _FORM.shared(function, _chunk))
        told = {"items": max(-(-vectors // CHUNK), 1), "vectors": vectors, "rest": rest}
        told |= {"data": data_address(inputs[0]), "target": data_address(outputs[0]), "numbers": data_address(numbers)}
        held, seconds = (inputs[0], outputs[0], numbers), size * ELEMENT_SECONDS
        return Kernel(team, address, _FORM.of(**told), held, shared=size >= SHARED, seconds=seconds)

    return Compiled(bind, gives=given_alike(data, size * ITEM))


def _numbers(limits: list[Array], levels: int) -> Array | None:
    """Those of `_NUMBERS`; None where limits do not go upwards, or lie too far apart."""
    low, high, first, last = (np.float32(own.reshape(-1)[0]) for own in limits)
    with np.errstate(over="ignore", invalid="ignore"):
        width, span = high - low, last - first
    if not (low < high and np.isfinite(width) and np.isfinite(span)):
        return None
    return np.array([low, high, width, levels - 1, span, first, last], np.float32)


def _chunk(c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    own = {name: c.splat(c.load(b.add(at["numbers"], long(n * ITEM)), FLOAT)) for n, name in enumerate(_NUMBERS)}
    begin = b.mul(item, long(CHUNK))

    def vector(number: Any) -> None:
        place = b.mul(b.add(begin, number), long(LINE))
        c.store(_quantized(c, own, c.load(b.add(at["data"], place), FLOATS)), b.add(at["target"], place))

    c.times(c.least(long(CHUNK), b.sub(at["vectors"], begin)), vector)
    with b.if_then(b.icmp_unsigned("==", b.add(item, long(1)), at["items"])):
        place, inside = b.mul(at["vectors"], long(LINE)), c.first_lanes(at["rest"])
        value = c.some(b.add(at["data"], place), FLOATS, inside)
        c.put(_quantized(c, own, value), b.add(at["target"], place), inside)


def _quantized(c: Code, own: dict[str, Any], value: Any) -> Any:
    """NaN stays what it is, and what is above the highest limit is the last level, whatever rounding makes of that."""
    b = c.b
    above = b.fcmp_ordered(">", value, own["high"])
    value = b.select(b.fcmp_ordered("<", value, own["low"]), own["low"], b.select(above, own["high"], value))
    value = b.fmul(b.fdiv(b.fsub(value, own["low"]), own["width"]), own["steps"])
    value = c.call(f"llvm.rint.v{LANES}f32", FLOATS, value)
    value = b.fadd(b.fmul(b.fdiv(value, own["steps"]), own["span"]), own["first"])
    return b.select(above, own["last"], value)


COMPILERS = {"FakeQuantize-1": fake_quantize}
