"""Products of rows with matrices that indices pick, each multiplied where it lies: none is copied before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides, is_dense
from irrun.engines.compressed import CompressedWeights
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work
from irrun.records import NamedTuple
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import Array

MAX_BOUND = 1 << 10
"""Products of some rows with some matrix that are kept, ready to be computed."""


class Picks(NamedTuple):
    """Rows of the shape `given`, in each of which one with a matrix makes one of the shape `made`."""

    given: tuple[int, ...]
    made: tuple[int, ...]
    size: int

    def placed(self, inputs: Arrays, outputs: Sequence[Any]) -> tuple[Array, Array, list[int]]:
        """Rows and results one by one, and the matrix that each picks, which is -1 for none: one of zeros."""
        numbers = [place + self.size if place < 0 else place for place in inputs[2].reshape(-1).tolist()]
        places = [number if 0 <= number < self.size else -1 for number in numbers]
        return inputs[0].reshape(-1, *self.given), outputs[0].reshape(-1, *self.made), places

    def nothing(self) -> Array:
        """The matrix of zeros."""
        return np.broadcast_to(np.float32(0), (self.given[-1], self.made[-1]))


def picks_of(work: Work) -> Picks | None:
    """How PickedProduct-0 of dense rows of f32 multiplies; None for others."""
    rows, weights, indices = work.required(3)
    column, shape = work.attrs["column"], rows.shape[1:]
    if work.posts or any(own.type != "f32" for own in (rows, weights, work.outputs[0])) or indices.type == "u64":
        return None
    if not is_dense(rows) or (column and shape[-1] != 1):
        return None
    given, made = (own[::-1] if column else own for own in (shape, work.outputs[0].shape[1:]))
    return Picks(given, made, weights.shape[0])


def picked(work: Work, compile: Callable[[Work], Compiled | None]) -> Compiled | None:
    """PickedProduct-0 of compressed matrices, by what `compile` makes of the product of rows with one, MatMul-1."""
    picks, weights = picks_of(work), work.required(2)[1]
    compressed = weights.compressed
    if picks is None or compressed is None or not _has_parts(compressed):
        return None
    left, result = (Operand("f32", own, dense_strides(own)) for own in (picks.given, picks.made))
    plain = replace(weights, shape=weights.shape[1:], strides=weights.strides[1:], value=None)
    attrs = {"transpose_a": False, "transpose_b": work.attrs["transposed"]}

    def product(number: int) -> Compiled | None:
        matrix = replace(plain, compressed=_part(compressed, number))
        return compile(Work("MatMul-1", attrs, [left, matrix], [result]))

    first = product(0)
    if first is None or first.wants or first.gives:
        return None

    def bind(inputs: Arrays, outputs: Sequence[Any], scratch: Any) -> Call:
        nothing = picks.nothing()
        kept: dict[tuple[int, int], Call] = {}

        def bound(source: Array, target: Array, row: int, number: int) -> Call:
            own = product(number)
            assert own is not None, "matrices of one tensor are alike"
            if len(kept) >= MAX_BOUND:
                kept.clear()
            call = kept[row, number] = own.bind([source, None], [target], scratch)
            return call

        def call() -> None:
            sources, targets, places = picks.placed(inputs, outputs)
            for row, number in enumerate(places):
                if number < 0:
                    np.matmul(sources[row], nothing, targets[row])
                else:
                    (kept.get((row, number)) or bound(sources[row], targets[row], row, number))()

        return call

    return Compiled(bind, first.scratch, taken=frozenset({1}))


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
    return replace(weights, codes=codes, stored=weights.stored[1:], shape=weights.shape[1:], scale=scale, zero=zero)
