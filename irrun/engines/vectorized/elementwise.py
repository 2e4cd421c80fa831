"""Element-wise ops on numpy: small tensors by one bound ufunc call, large ones by blocks that stay in the cache."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from irrun.engines.axes import broadcast_strides, merged
from irrun.engines.vectorized import functions
from irrun.engines.vectorized.blocks import SHARED_NANOSECONDS, cuts, even, share, viewed
from irrun.engines.vectorized.posts import (
    BINARY,
    BLOCK,
    BOOLEAN,
    FLOATS,
    INTEGERS,
    NUMBERS,
    UNARY,
    Stage,
    chain,
    nanoseconds_of,
    operand_strides,
    posts_of,
    stage_of,
)
from irrun.engines.vectorized.threads import Threads
from irrun.engines.work import Call, Compiled, Operand, Work
from irrun.spec.op import Array


def element_wise(work: Work, threads: Threads) -> Compiled | None:
    """An op whose result at a place depends on the elements of its inputs there."""
    operands = own_inputs(work)
    if any(operand is None for operand in operands):
        return None
    stage = _stage(work, [operand for operand in operands if operand is not None])
    return None if stage is None else by_blocks(work, threads, stage, len(operands))


def own_inputs(work: Work) -> list[Operand | None]:
    """The inputs of the op itself."""
    first = min((post.operand for post in work.posts if post.operand is not None), default=len(work.inputs))
    return work.inputs[:first]


def by_blocks(work: Work, threads: Threads, stage: Stage, count: int) -> Compiled | None:
    """The work of a stage whose `count` inputs broadcast to the output, and its posts."""
    whole = work.outputs[0].shape
    names = [*[work.name] * count, *(post.name for post in work.posts if post.operand is not None)]
    numbers = [*range(count), *(post.operand for post in work.posts if post.operand is not None)]
    every = [broadcast_strides(work.outputs[0], whole)]
    for place, (name, number) in enumerate(zip(names, numbers, strict=True)):
        operand = work.inputs[number]
        assert operand is not None
        strides = operand_strides(name if place else "", operand, whole)
        if strides is None:
            return None
        every.append(strides)
    shape, seen = merged(whole, every)
    steps_of = seen[1 : 1 + count]
    posts = posts_of(work, shape)
    if posts is None:
        return None
    nanoseconds = prod(shape) * nanoseconds_of(work)

    def bind(inputs: Sequence[Array | None], outputs: Sequence[Array], _: Array | None) -> Call:
        result = outputs[0].reshape(shape)
        arrays = [
            viewed(array, shape, steps)
            for array, steps in zip(inputs[:count], steps_of, strict=True)
            if array is not None
        ]
        on = posts.bind(inputs, result) if posts else None
        if prod(shape) <= BLOCK:
            calls = stage(*arrays, result)
            return chain([*calls, on(...)] if on else calls)
        shared = threads.count if nanoseconds > SHARED_NANOSECONDS else 1
        blocks = []
        for cut in cuts(shape, even(prod(shape), BLOCK, shared)):
            calls = stage(*(array[cut] if array.ndim else array for array in arrays), result[cut])
            blocks.append(chain([*calls, on(cut)] if on else calls))
        return share(threads, blocks) if shared > 1 else chain(blocks)

    return Compiled(bind)


def _stage(work: Work, operands: list[Operand]) -> Stage | None:
    name, type = work.name, operands[0].type
    if name == "Convert-1":
        return _conversion(type, work.outputs[0].type)
    if name == "Select-1":
        fits = work.attrs["auto_broadcast"] != "pdpd" and operands[1].type in NUMBERS | BOOLEAN
        return _select if fits else None
    if name == "HardSigmoid-1":
        return _hard_sigmoid if type == "f32" else None
    return stage_of(name, work.attrs, type, *operands[1:])


def _conversion(source: str, target: str) -> Stage | None:
    """Conversions that numpy makes as the op does: all but those of floats to integers, and of packed types."""
    if target == "boolean" and source in NUMBERS:
        return lambda data, output: [partial(np.not_equal, data, 0, output)]
    integers = INTEGERS | BOOLEAN
    exact = {("f16", "f32"), ("f32", "f16"), ("f32", "f64"), ("f64", "f32"), ("f16", "f64")}
    truncating = source in ("f32", "f64") and target in ("i32", "i64") and platform.machine() in ("x86_64", "AMD64")
    wrapping = source in integers and target in integers | FLOATS
    if (source, target) in exact or source == target or truncating or wrapping:
        return lambda data, output: [partial(np.copyto, output, data, "unsafe")]
    return None


def _select(condition: Array, then: Array, other: Array, output: Array) -> list[Call]:
    return [partial(np.copyto, output, other), partial(np.copyto, output, then, where=condition)]


def _hard_sigmoid(data: Array, alpha: Array, beta: Array, output: Array) -> list[Call]:
    return [
        partial(np.multiply, data, alpha, output),
        partial(np.add, output, beta, output),
        partial(functions.clip, output, functions.ZERO, functions.ONE, output),
    ]


COMPILERS: dict[str, Callable[[Work, Threads], Compiled | None]] = dict.fromkeys(
    (
        *UNARY,
        *BINARY,
        "Clamp-1",
        "Convert-1",
        "Divide-1",
        "Elu-1",
        "Gelu-7",
        "HardSigmoid-1",
        "Power-1",
        "ReLU-1",
        "Round-5",
        "Select-1",
        "SquaredDifference-1",
    ),
    element_wise,
)
