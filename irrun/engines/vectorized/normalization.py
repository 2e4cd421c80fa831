"""Normalizations on numpy: softmax, mean and variance, norms, by blocks of lines that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import axes_of_mvn, broadcast_strides, constant_axes, reshaped_strides
from irrun.engines.extents import view
from irrun.engines.orders import in_order, reordered
from irrun.engines.threads import Threads
from irrun.engines.vectorized import functions
from irrun.engines.vectorized.copying import shared_copies
from irrun.engines.vectorized.elementwise import by_blocks
from irrun.engines.vectorized.posts import nanoseconds_of, posts_of
from irrun.engines.vectorized.reduction import Cut, Lines, line_cuts, lines, square_summation, squeezed, summation
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.spec.op import Array

LINE_NANOSECONDS = 1.0
"""What normalizing takes about for one element."""

SHORT = 24
"""Lines along the last axis that have fewer elements are computed transposed: numpy is slow at short inner loops."""

FAR = np.float32(1 / 4)
"""Where a mean is 4 standard deviations or more, what f32 has rounded off of it is subtracted as well."""

THREE_QUARTERS = 0.75

Normalizer = Callable[[Array, Array], Call]
"""Binds the normalization of lines along axis 1 of `[outer, line]` or `[outer, line, inner]`: (input, output)."""


def by_lines(work: Work, threads: Threads, axes: Sequence[int], normalizer: Normalizer) -> Compiled | None:
    """The work of a normalization of its first input along `axes`, and its posts."""
    (operand,) = work.required(1)
    found = lines(operand, axes)
    if operand.type != "f32" or found is None:
        return None
    return _blocks(work, threads, found, lambda data, output, _: normalizer(data, output))


def _blocks(
    work: Work,
    threads: Threads,
    found: Lines,
    normalizer: Callable[[Array, Array, Cut], Call],
    posts_shape: tuple[int, ...] | None = None,
) -> Compiled | None:
    """The work of a normalizer of blocks of whole lines, which is also told where its block is, and the posts.

    The posts see the output as `posts_shape`, whose first axis is that of the lines, where one is given.
    """
    shape, strides = found.shape, found.strides
    posts = posts_of(work, posts_shape or shape)
    if posts is None:
        return None
    sharing = threads.sharing(prod(shape) * (LINE_NANOSECONDS + nanoseconds_of(work, head=False)))

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        data, output = inputs[0], outputs[0].reshape(shape)
        copy: list[Call] = [] if strides is not None else [shared_copies(threads, [(outputs[0], data)])]
        seen = output if strides is None else view(data, shape, strides)
        on = posts.bind(inputs, output.reshape(posts.shape))
        seen, output = squeezed(seen), squeezed(output)
        calls = []
        for cut in line_cuts(shape, sharing):
            block = cut[: output.ndim]
            call = normalizer(seen[block], output[block], cut)
            calls.append(chain([call, *on(cut[:1] if posts_shape else cut)]))
        every = threads.together(calls, sharing)
        return chain([*copy, every])

    return Compiled(bind)


def _columns(block: Array) -> Any:
    """Memory for one number of each line along axis 1."""
    return np.empty((block.shape[0], 1, *block.shape[2:]), np.float32)


def _softmax(data: Array, output: Array) -> Call:
    if output.ndim == 2 and output.shape[1] < SHORT < output.shape[0]:
        return _transposed(_softmax, data, output)
    edge, total = _columns(output), _columns(output)
    add_up = summation(output, total)

    def call() -> None:
        np.maximum.reduce(data, axis=1, keepdims=True, out=edge)
        np.subtract(data, edge, output)
        functions.decay(output)
        add_up()
        np.reciprocal(total, total)
        np.multiply(output, total, output)

    return call


def _transposed(normalizer: Normalizer, data: Array, output: Array) -> Call:
    """The normalization of `[outer, line]` by way of a copy as `[1, line, outer]`, and back."""
    buffer = np.empty((1, *output.shape[::-1]), np.float32)
    into, back = partial(np.copyto, buffer[0], data.T), partial(np.copyto, output.T, buffer[0])
    return chain([into, normalizer(buffer, buffer), back])


def _log_softmax(data: Array, output: Array) -> Call:
    edge, total = _columns(output), _columns(output)

    def call() -> None:
        np.maximum.reduce(data, axis=1, keepdims=True, out=edge)
        np.subtract(data, edge, output)
        powers = functions.temporary(output)
        np.exp(output, powers)
        summation(powers, total)()
        np.log(total, total)
        np.subtract(output, total, output)

    return call


def softmax(work: Work, threads: Threads) -> Compiled | None:
    """SoftMax-1, SoftMax-8 and LogSoftmax-5."""
    axis = work.attrs["axis"] % max(len(work.outputs[0].shape), 1)
    return by_lines(work, threads, [axis], _log_softmax if work.name == "LogSoftmax-5" else _softmax)


def standardizer(eps: float, *, normalize: bool = True, outside: bool = False) -> Normalizer:
    """Subtracts the mean of a line and perhaps divides by sqrt(variance + eps), or by sqrt(variance) + eps."""
    offset = np.array(eps, np.float32)

    def bind(data: Array, output: Array) -> Call:
        count = np.array(output.shape[1], np.float32)
        total, mean = _columns(output), _columns(output)
        add_up, add_squares = summation(data, mean), square_summation(output, total)
        add_rest, far = summation(output, mean), np.empty(mean.shape, np.bool_)

        def centre() -> None:
            add_up()
            np.divide(mean, count, mean)
            np.subtract(data, mean, output)

        def centre_again() -> None:
            add_rest()
            np.divide(mean, count, mean)
            np.copyto(mean, 0, where=~np.isfinite(mean))  # of what is infinite there is no rest
            np.subtract(output, mean, output)

        def call() -> None:
            centre()
            add_squares()
            np.divide(total, count, total)
            np.multiply(mean, FAR, mean)
            np.multiply(mean, mean, mean)
            if np.greater(mean, total, far).any():
                centre_again()
                add_squares()
                np.divide(total, count, total)
            if outside:
                np.sqrt(total, total)
                np.add(total, offset, total)
            else:
                np.add(total, offset, total)
                np.sqrt(total, total)
            np.reciprocal(total, total)
            np.multiply(output, total, output)

        return call if normalize else chain([centre, centre_again])

    return bind


def mvn(work: Work, threads: Threads) -> Compiled | None:
    """MVN-1, and MVN-6 with constant axes."""
    attrs = work.attrs
    outside = attrs.get("eps_mode") == "outside_sqrt"
    normalizer = standardizer(attrs["eps"], normalize=attrs["normalize_variance"], outside=outside)
    return by_lines(work, threads, axes_of_mvn(work), normalizer)


def normalize_l2(work: Work, threads: Threads) -> Compiled | None:
    """NormalizeL2-1 with constant axes."""
    eps, bound = np.array(work.attrs["eps"], np.float32), np.add if work.attrs["eps_mode"] == "add" else np.maximum

    def normalizer(data: Array, output: Array) -> Call:
        total = _columns(output)
        add_squares = square_summation(data, total)

        def call() -> None:
            add_squares()
            bound(total, eps, out=total)
            np.sqrt(total, total)
            np.divide(data, total, output)

        return call

    return by_lines(work, threads, constant_axes(work), normalizer)


def local_response(work: Work, threads: Threads) -> Compiled | None:
    """LRN-1 along one constant axis."""
    attrs, axes, order = work.attrs, constant_axes(work), reordered(work)
    if len(axes) != 1:
        return None
    reach, beta, bias = (attrs["size"] - 1) // 2, attrs["beta"], np.array(attrs["bias"], np.float32)
    factor = np.array(attrs["alpha"] / attrs["size"], np.float32)

    def normalizer(data: Array, output: Array) -> Call:
        shifts = range(1, min(reach, output.shape[1] - 1) + 1)

        def call() -> None:
            squares, sums = functions.temporary(output), functions.temporary(output, 1)
            np.square(data, squares)
            np.copyto(sums, squares)
            for shift in shifts:
                np.add(sums[:, shift:], squares[:, :-shift], sums[:, shift:])
                np.add(sums[:, :-shift], squares[:, shift:], sums[:, :-shift])
            np.multiply(sums, factor, sums)
            np.add(sums, bias, sums)
            _raise(sums, beta, squares)
            np.divide(data, sums, output)

        return call

    def compile(work: Work) -> Compiled | None:
        return by_lines(work, threads, constant_axes(work), normalizer)

    if order is not None:
        return in_order(work, order, {1: np.array([order.index(axes[0])])}, compile)
    return compile(work)


def _raise(base: Array, exponent: float, room: Array) -> None:
    """`base` to a power, in its place; that of most nets by roots, several times as quick as powers."""
    if exponent == THREE_QUARTERS:
        np.sqrt(base, base)
        np.sqrt(base, room)
        np.multiply(base, room, base)
    else:
        np.power(base, np.float32(exponent), base)


def root_mean_square(work: Work, threads: Threads) -> Compiled | None:
    """Lines along the last axis, over the roots of the means of their squares."""
    eps = np.array(work.attrs["eps"], np.float32)

    def normalizer(data: Array, output: Array) -> Call:
        count, total = np.array(1 / output.shape[1], np.float32), _columns(output)
        add_squares = square_summation(data, total)

        def call() -> None:
            add_squares()
            np.multiply(total, count, total)
            np.add(total, eps, total)
            np.sqrt(total, total)
            np.reciprocal(total, total)
            np.multiply(data, total, output)

        return call

    return by_lines(work, threads, [len(work.outputs[0].shape) - 1], normalizer)


def group_normalization(work: Work, threads: Threads) -> Compiled | None:
    """GroupNormalization-12 with constant scale and bias: a group is a line, and its channels have a scale each."""
    (data,), scale, bias = work.required(1), work.constant(1), work.constant(2)
    if data.type != "f32" or scale is None or bias is None:
        return None
    batches, channels, *spatial = data.shape
    groups = work.attrs["num_groups"]
    outer, each = batches * groups, channels // groups
    scales, biases = (np.tile(value.reshape(groups, each, 1), (batches, 1, 1)) for value in (scale, bias))
    standardize = standardizer(work.attrs["epsilon"])

    def normalizer(data: Array, output: Array, cut: Cut) -> Call:
        parts = output.reshape(-1, each, prod(spatial))
        scaled = partial(np.multiply, parts, scales[cut[0]], parts)
        return chain([standardize(data, output), scaled, partial(np.add, parts, biases[cut[0]], parts)])

    shape = (outer, each * prod(spatial), 1)
    strides = reshaped_strides(data.shape, broadcast_strides(data, data.shape), shape)
    dense = strides is not None and strides[1] == 4
    return _blocks(work, threads, Lines(shape, strides if dense else None), normalizer, (outer, each, prod(spatial)))


def batch_norm(work: Work, threads: Threads) -> Compiled | None:
    """BatchNormInference-1 and -5 with constant statistics, scales and shifts."""
    order = (2, 0, 1, 3, 4) if work.name == "BatchNormInference-1" else (0, 1, 2, 3, 4)
    data, *rest = (work.required(5)[number] for number in order)
    tables = [table.value for table in rest if table.value is not None]
    if data.type != "f32" or len(tables) < 4:
        return None
    gamma, beta, mean, variance = (table.reshape(-1, *[1] * (len(data.shape) - 2)) for table in tables)
    constants = [mean, gamma / np.sqrt(variance + np.float32(work.attrs["epsilon"])), beta]
    operands: list[Operand | None] = [data, *(Operand("f32", table.shape, table.strides, table) for table in constants)]
    posts = [
        replace(
            post,
            operand=None if post.operand is None else post.operand - 1,
            parameters=tuple(number - 1 for number in post.parameters),
        )
        for post in work.posts
    ]
    inner = by_blocks(replace(work, inputs=operands + work.inputs[5:], posts=posts), threads, _scaled, 4)
    if inner is None:
        return None
    bind = inner.bind
    return Compiled(lambda inputs, outputs, _: bind([inputs[order[0]], *constants, *inputs[5:]], outputs, None))


def _scaled(data: Array, centre: Array, scale: Array, shift: Array, output: Array) -> list[Call]:
    return [
        partial(np.subtract, data, centre, output),
        partial(np.multiply, output, scale, output),
        partial(np.add, output, shift, output),
    ]


COMPILERS = {
    **dict.fromkeys(("SoftMax-1", "SoftMax-8", "LogSoftmax-5"), softmax),
    **dict.fromkeys(("BatchNormInference-1", "BatchNormInference-5"), batch_norm),
    "GroupNormalization-12": group_normalization,
    **dict.fromkeys(("MVN-1", "MVN-6"), mvn),
    "LRN-1": local_response,
    "NormalizeL2-1": normalize_l2,
    "RootMeanSquare-0": root_mean_square,
}
