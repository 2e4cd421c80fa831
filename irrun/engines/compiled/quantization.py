"""FakeQuantize between numbers that hold for all of a tensor, in one pass, bit by bit what the op's kernel gives.

Chains that it is a part of are in `elementwise`, with what is written down of it here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import given_alike, order_of
from irrun.engines.compiled.code import FLOAT, FLOATS, LANES, LINE, Code, Form, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, data_address
from irrun.engines.work import Arrays, Call, Compiled, Post, Work
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

FAKE_QUANTIZE = "FakeQuantize-1"
LIMITS = (1, 2, 3, 4)
"""The numbers of its inputs that are limits."""

CHUNK = 1 << 8
"""Vectors that a thread takes at once."""

SHARED = 1 << 15
"""Elements from which on threads share them."""

ELEMENT_SECONDS = 0.3e-9
"""What an element takes about."""

_NUMBERS = ("low", "high", "width", "steps", "divisor", "factor", "first", "last")
_FORM = Form(("items", "vectors", "rest", "numbers", "data", "target"))
"""`items` are chunks of `vectors` whole ones; of one more there are `rest` lanes. `numbers` are f32, in order."""


def fake_quantize(work: Work, team: Team) -> Compiled | None:
    """FakeQuantize-1 of f32 that lie without gaps."""
    (data,) = work.required(1)
    if work.posts or data.type != "f32" or order_of(data) is None:
        return None
    numbers = numbers_of(work, Post(work.name, work.attrs, parameters=LIMITS))
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


def _chunk(c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    own = loaded(c, at["numbers"])
    begin = b.mul(item, long(CHUNK))

    def vector(number: Any) -> None:
        place = b.mul(b.add(begin, number), long(LINE))
        c.store(quantized(c, own, c.load(b.add(at["data"], place), FLOATS)), b.add(at["target"], place))

    c.times(c.least(long(CHUNK), b.sub(at["vectors"], begin)), vector)
    with b.if_then(b.icmp_unsigned("==", b.add(item, long(1)), at["items"])):
        place, inside = b.mul(at["vectors"], long(LINE)), c.first_lanes(at["rest"])
        value = c.some(b.add(at["data"], place), FLOATS, inside)
        c.put(quantized(c, own, value), b.add(at["target"], place), inside)


def loaded(c: Code, address: Any) -> dict[str, Any]:
    """The numbers of a quantization, each in all lanes."""
    return {name: c.splat(c.load(c.b.add(address, long(n * ITEM)), FLOAT)) for n, name in enumerate(_NUMBERS)}


def quantized(c: Code, own: Mapping[str, Any], value: Any) -> Any:
    """NaN stays what it is, and what is above the highest limit is the last level, whatever rounding makes of that."""
    b = c.b
    above = b.fcmp_ordered(">", value, own["high"])
    value = b.select(b.fcmp_ordered("<", value, own["low"]), own["low"], b.select(above, own["high"], value))
    value = b.fmul(b.fdiv(b.fsub(value, own["low"]), own["width"]), own["steps"])
    value = c.call(f"llvm.rint.v{LANES}f32", FLOATS, value)
    value = b.fadd(b.fmul(b.fdiv(value, own["divisor"]), own["factor"]), own["first"])
    return b.select(above, own["last"], value)
