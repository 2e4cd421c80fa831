"""Matrices of weights that one product has one below the other, though each lies where it is in the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.engines.compressed import CompressedWeights
from irrun.engines.work import Operand, Work
from irrun.records import dataclass
from irrun.spec.op import Array


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class StackedWeights(CompressedWeights):
    """Matrices [columns, inner] of f32, the `parts`, as one that is nowhere in memory until an engine lays it out."""

    parts: tuple[Array, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[Array]) -> StackedWeights:
        shape = (sum(part.shape[0] for part in parts), parts[0].shape[1])
        return cls("f32", np.empty(0, np.uint8), shape, shape, parts=tuple(parts))

    def write(self, start: int, stop: int, into: Array) -> None:
        begin = 0
        for part in self.parts:
            end = begin + len(part)
            first, last = max(start, begin), min(stop, end)
            if first < last:
                into[first - start : last - start] = part[first - begin : last - begin]
            begin = end


def stacked(operand: Operand | None) -> StackedWeights | None:
    """The weights of an operand that are stacked; None for all others."""
    weights = None if operand is None else operand.compressed
    return weights if isinstance(weights, StackedWeights) else None


def is_stacked(work: Work) -> bool:
    """Whether a work is a product with stacked weights."""
    return len(work.inputs) > 1 and stacked(work.inputs[1]) is not None
