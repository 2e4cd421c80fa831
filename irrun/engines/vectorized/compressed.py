"""Products and look-ups with weights that stay compressed: a block of them is made f32 while it is in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.compressed import CompressedWeights
from irrun.engines.extents import view
from irrun.engines.memory import ITEM, aligned
from irrun.engines.rows import rows_of
from irrun.engines.threads import PRODUCT_SPEED, Threads, cuts
from irrun.engines.vectorized.posts import Index, posts_of, with_posts
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.spec.op import Array

DECODED = 1 << 16
"""Elements of a block of weights: as f32 it stays in the cache of a processor."""

DECODE_SPEED = 0.8e9
"""Elements per second that one thread makes f32, about."""

Posted = Callable[[Index], list[Call]]
"""Binds the posts of a work to a part of its result."""


def matmul(work: Work, threads: Threads) -> Compiled | None:
    """MatMul-1 of f32 rows and compressed weights, [inner, columns] or transposed."""
    left, right = work.required(2)
    weights = right.compressed
    found = None if left.compressed is not None else rows_of(work)
    if found is None or weights is None:
        return None
    rows, strides, wants = found
    transposed = bool(work.attrs["transpose_b"])
    columns, inner = weights.shape if transposed else weights.shape[::-1]
    posts = posts_of(work, (rows, columns))
    if posts is None or any(operand is not None and operand.compressed for operand in work.inputs[2:]):
        return None
    step = max(DECODED // weights.shape[1], 1)
    count = threads.pieces(2.0 * rows * columns * inner / PRODUCT_SPEED + columns * inner / DECODE_SPEED)
    pieces = cuts(weights.shape[0], count, min(step, -(-weights.shape[0] // count)))
    room = aligned(min(step, weights.shape[0]) * weights.shape[1] * ITEM)
    sums = 0 if transposed else 2 * aligned(rows * columns * ITEM)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        data = view(inputs[0], (rows, inner), strides)
        result = outputs[0].reshape(rows, columns)
        on = posts.bind(inputs, result)
        own = [scratch[n * (room + sums) : (n + 1) * (room + sums)] for n in range(len(pieces))]
        blocks = [memory[:room].view(np.float32) for memory in own]
        if transposed:
            calls = [_columns(weights, *args, step, data, result, on) for args in zip(pieces, blocks, strict=True)]
            return threads.call(calls)
        parts = [memory[room:].view(np.float32) for memory in own]
        half, size = sums // ITEM // 2, rows * columns
        totals = [part[:size].reshape(rows, columns) for part in parts]
        spares = [part[half : half + size].reshape(rows, columns) for part in parts]
        calls = [
            partial(_add_rows, weights, piece, block, step, data, total, spare)
            for piece, block, total, spare in zip(pieces, blocks, totals, spares, strict=True)
        ]
        copy = partial(np.copyto, result, totals[0])
        added = [partial(np.add, result, total, result) for total in totals[1:]]
        return chain([threads.call(calls), copy, *added, *on(...)])

    return Compiled(bind, (room + sums) * len(pieces), wants, taken=frozenset({1}))


def _columns(
    weights: CompressedWeights, piece: slice, block: Array, step: int, data: Array, result: Array, on: Posted
) -> Call:
    """The columns `piece` of the result, posts included, for weights [columns, inner]."""
    calls: list[Call] = []
    for start in range(piece.start, piece.stop, step):
        stop = min(start + step, piece.stop)
        matrix = block[: (stop - start) * weights.shape[1]].reshape(stop - start, -1)
        index = (slice(None), slice(start, stop))
        calls += [partial(weights.write, start, stop, matrix), partial(np.matmul, data, matrix.T, result[index])]
        calls += on(index)
    return chain(calls)


def _add_rows(
    weights: CompressedWeights, piece: slice, block: Array, step: int, data: Array, total: Array, spare: Array
) -> None:
    """The part of the result that the rows `piece` of weights [inner, columns] give, as `total`."""
    target = total
    for start in range(piece.start, piece.stop, step):
        stop = min(start + step, piece.stop)
        matrix = block[: (stop - start) * weights.shape[1]].reshape(stop - start, -1)
        weights.write(start, stop, matrix)
        np.matmul(data[:, start:stop], matrix, target)
        if target is spare:
            np.add(total, spare, total)
        target = spare


def gather(work: Work, threads: Threads) -> Compiled | None:
    """Gather-1, -7 and -8 of rows of compressed weights. Indices of the first two were checked."""
    (table, indices), weights = work.required(2), work.required(1)[0].compressed
    if weights is None or not is_dense(indices) or work.outputs[0].type != "f32":
        return None
    size, count = table.shape[0], prod(indices.shape)
    needed = aligned(count * np.dtype(np.intp).itemsize)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> list[Call]:
        places = scratch[: count * np.dtype(np.intp).itemsize].view(np.intp)
        given = inputs[1].reshape(count)
        target = outputs[0].reshape(count, *table.shape[1:])

        def call() -> None:
            np.copyto(places, given, "unsafe")
            if count and places.min() >= 0 and places.max() < size:
                weights.take(places, target)
                return
            outside = (places < -size) | (places >= size)
            places[outside] = 0
            places[places < 0] += size
            weights.take(places, target)
            target[outside] = 0

        return [call]

    return with_posts(work, bind, needed, taken=frozenset({0}))


COMPRESSED = {"MatMul-1": matmul, **dict.fromkeys(("Gather-1", "Gather-7", "Gather-8"), gather)}
"""For works of which an input is compressed."""
