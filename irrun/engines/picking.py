"""Products of rows with matrices that indices pick, each multiplied where it lies: none is copied before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides, is_dense
from irrun.engines.compressed import CompressedWeights
from irrun.engines.memory import ITEM
from irrun.engines.threads import MEMORY_SPEED, Threads
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work
from irrun.spec.dtypes import ELEMENT_TYPES

MAX_BOUND = 1 << 10
"""Products of some rows with some matrix that are kept, ready to be computed."""


def picked(work: Work, compile: Callable[[Work], Compiled | None], threads: Threads | None = None) -> Compiled | None:
    """PickedProduct-0, by what `compile` makes of the product of some rows with one of the matrices, MatMul-1.

    These are shared by `threads` where they are many enough, unless each is by itself.
    """
    rows, weights, indices = work.required(3)
    column, shape = work.attrs["column"], rows.shape[1:]
    if work.posts or any(own.type != "f32" for own in (rows, weights, work.outputs[0])) or indices.type == "u64":
        return None
    if not is_dense(rows) or (column and shape[-1] != 1):
        return None
    given, made = (own[::-1] if column else own for own in (shape, work.outputs[0].shape[1:]))
    size = weights.shape[0]
    compressed = weights.compressed
    if compressed is not None and not _has_parts(compressed):
        return None
    left, result = (Operand("f32", own, dense_strides(own)) for own in (given, made))
    plain = replace(weights, shape=weights.shape[1:], strides=weights.strides[1:], value=None)
    attrs = {"transpose_a": False, "transpose_b": work.attrs["transposed"]}

    def product(number: int) -> Compiled | None:
        matrix = plain if compressed is None else replace(plain, compressed=_part(compressed, number))
        return compile(Work("MatMul-1", attrs, [left, matrix], [result]))

    first = product(0)
    if first is None or first.wants or first.gives:
        return None
    seconds = prod(indices.shape) * prod(weights.shape[1:]) * ITEM / MEMORY_SPEED
    shared = threads is not None and not first.scratch and threads.pieces(seconds) > 1

    def bind(inputs: Arrays, outputs: Sequence[Any], scratch: Any) -> Call:
        matrices, places = inputs[1], inputs[2].reshape(-1)
        sources, targets = inputs[0].reshape(-1, *given), outputs[0].reshape(-1, *made)
        nothing = np.broadcast_to(np.float32(0), (given[-1], made[-1]))
        kept: dict[tuple[int, int], Call] = {}

        def bound(row: int, number: int) -> Call:
            own = first if compressed is None else product(number)
            assert own is not None, "matrices of one tensor are alike"
            if len(kept) >= MAX_BOUND:
                kept.clear()
            matrix = None if compressed is not None else matrices[number]
            call = kept[row, number] = own.bind([sources[row], matrix], [targets[row]], scratch)
            return call

        def calls() -> Iterator[Call]:
            for row, place in enumerate(places.tolist()):
                number = place + size if place < 0 else place
                if 0 <= number < size:
                    yield kept.get((row, number)) or bound(row, number)
                else:
                    yield partial(np.matmul, sources[row], nothing, targets[row])

        def in_order() -> None:
            for call in calls():
                call()

        def together() -> None:
            assert threads is not None
            threads.call([*calls()])()

        return together if shared else in_order

    return Compiled(bind, first.scratch, taken=frozenset() if compressed is None else frozenset({1}))


def _has_parts(weights: CompressedWeights) -> bool:
    """Whether the codes of each matrix begin with a byte and with a group."""
    bits = ELEMENT_TYPES[weights.type].bits
    return weights.stored[0] == weights.shape[0] and prod(weights.shape[1:]) * bits % 8 == 0


def _part(weights: CompressedWeights, number: int) -> CompressedWeights:
    """One of the matrices, which lies where it lay."""
    scale, zero = (
        None if factor is None else factor[number if factor.shape[0] > 1 else 0]
        for factor in (weights.scale, weights.zero)
    )
    size = weights.codes.size // weights.shape[0]
    codes = weights.codes.reshape(-1)[number * size : (number + 1) * size]
    return CompressedWeights(weights.type, codes, weights.stored[1:], weights.shape[1:], scale, zero)
