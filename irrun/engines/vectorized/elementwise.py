"""Element-wise ops on numpy: small tensors by one bound ufunc call, large ones by blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import broadcast_strides, is_dense, merged
from irrun.engines.orders import in_order, is_of_images, reordered
from irrun.engines.placement import is_x86
from irrun.engines.threads import Threads, even_blocks
from irrun.engines.vectorized import functions
from irrun.engines.vectorized.posts import (
    BINARY,
    BLOCK,
    BOOLEAN,
    FLOATS,
    INTEGERS,
    NUMBERS,
    UNARY,
    Stage,
    nanoseconds_of,
    operand_strides,
    posts_of,
    stage_of,
    viewed,
)
from irrun.engines.vectorized.quantization import fake_convert_stage, fake_quantize_stage
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy


def element_wise(work: Work, threads: Threads) -> Compiled | None:
    """An op whose result at a place depends on the elements of its inputs there.

    It lies as the first of them does; in C order where that lies as nobody wants it, and another one in C order.
    """
    operands = work.required(len(work.own))
    stage = _stage(work, operands)
    if stage is None:
        return None

    def compiled(work: Work) -> Compiled | None:
        return by_blocks(work, threads, stage, len(operands))

    numpy = work.name != "PReLU-1" and broadcasts_by_numpy(work.attrs)
    order = reordered(work) if numpy and operands[0].shape == work.outputs[0].shape else None
    if order is not None and not is_of_images(operands[0]) and _reads_whole_rows(work):
        order = None
    return compiled(work) if order is None else in_order(work, order, None, compiled) or compiled(work)


def _reads_whole_rows(work: Work) -> bool:
    """Whether an input but the first lies in C order and is as large as the result."""
    whole = work.outputs[0].shape
    return any(own is not None and own.shape == whole and is_dense(own) for own in work.inputs[1:])


def by_blocks(work: Work, threads: Threads, stage: Stage, count: int) -> Compiled | None:
    """The work of a stage whose `count` inputs broadcast to the output, and its posts."""
    whole = work.outputs[0].shape
    named = [("", work.inputs[0]), *((work.name, operand) for operand in work.inputs[1:count])]
    named += [(post.name, work.other(post)) for post in work.posts]
    strides = [operand_strides(name, operand, whole) for name, operand in named if operand is not None]
    shape, (_, *seen) = merged(whole, [broadcast_strides(work.outputs[0], whole), *strides])
    posts = posts_of(work, shape)
    if posts is None:
        return None
    sharing = threads.sharing(prod(shape) * nanoseconds_of(work))

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        result = outputs[0].reshape(shape)
        arrays = [viewed(array, shape, steps) for array, steps in zip(inputs[:count], seen, strict=False)]
        on = posts.bind(inputs, result)
        if prod(shape) <= BLOCK:
            return chain([*stage(*arrays, result), *on(...)])
        calls = [
            chain([*stage(*(array[cut] if array.ndim else array for array in arrays), result[cut]), *on(cut)])
            for cut in even_blocks(shape, BLOCK, sharing)
        ]
        return threads.together(calls, sharing)

    return Compiled(bind)


def _stage(work: Work, operands: list[Operand]) -> Stage | None:
    name, type = work.name, operands[0].type
    if name == "FakeQuantize-1":
        return fake_quantize_stage(work.attrs, type, fixed=all(operand.value is not None for operand in operands[1:]))
    if name == "FakeConvert-13":
        constant = type == "f32" and all(operand.value is not None for operand in operands[1:])
        return fake_convert_stage(work.attrs) if constant else None
    if name == "Convert-1":
        return _conversion(type, work.outputs[0].type)
    if name == "Select-1":
        fits = broadcasts_by_numpy(work.attrs) and operands[1].type in NUMBERS | BOOLEAN
        return _select if fits else None
    if name == "HardSigmoid-1":
        return _hard_sigmoid if type == "f32" else None
    return stage_of(name, work.attrs, type, *operands[1:])


def _conversion(source: str, target: str) -> Stage | None:
    """Conversions that numpy makes as the op does: all but those of floats to integers, and of packed types."""
    if target == "boolean" and source in NUMBERS:
        return lambda data, output: [partial(np.not_equal, data, 0, output)]
    integers = INTEGERS | BOOLEAN
    exact = {
        ("f16", "f32"),
        ("f32", "f16"),
        ("f32", "f64"),
        ("f64", "f32"),
        ("f16", "f64"),
        ("f32", "bf16"),
        ("bf16", "f32"),
    }
    truncating = source in ("f32", "f64") and target in ("i32", "i64") and is_x86()
    if source == "f32" and target in ("i8", "u8", "i16", "u16") and is_x86():
        return lambda data, output: [partial(_wrapped, data, output)]
    wrapping = source in integers and target in integers | FLOATS
    if (source, target) in exact or source == target or truncating or wrapping:
        return lambda data, output: [partial(np.copyto, output, data, "unsafe")]
    return None


def _wrapped(data: Array, output: Array) -> None:
    """Truncated to i32, and that modulo what the output holds."""
    middle = functions.temporary(output).view(np.int32)
    np.copyto(middle, data, "unsafe")
    np.copyto(output, middle, "unsafe")


def _select(condition: Array, then: Array, other: Array, output: Array) -> list[Call]:
    return [partial(np.copyto, output, other), partial(functions.put, output, then, condition)]


def _hard_sigmoid(data: Array, alpha: Array, beta: Array, output: Array) -> list[Call]:
    return [
        partial(np.multiply, data, alpha, output),
        partial(np.add, output, beta, output),
        partial(functions.clip, output, functions.ZERO, functions.ONE, output),
    ]


COMPILERS = dict.fromkeys(
    (
        *UNARY,
        *BINARY,
        *("Clamp-1", "Convert-1", "Divide-1", "Elu-1", "Gelu-7", "HardSigmoid-1", "Power-1", "ReLU-1", "Round-5"),
        *("FakeConvert-13", "FakeQuantize-1", "Select-1", "SquaredDifference-1"),
    ),
    element_wise,
)
