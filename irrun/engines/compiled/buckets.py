"""Buckets that numbers fall into, by halves of the boundaries, of many numbers at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import MEMORY, Elements, Places, looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

TYPES = ("f32", "i32", "i64")
"""Of numbers."""

RIGHT = True
"""Whether a bucket has its right boundary."""

LANES = 64
"""Numbers that are looked up at once."""

STEP_NANOSECONDS = 0.7
"""What it takes about to halve the boundaries once more."""


def fall(begin: int, end: int, data: Elements, boundaries: Elements, result: Places, size: int, count: int) -> None:
    """Blocks of LANES of `size` numbers; there are `count` boundaries, one or more."""
    below = np.empty(LANES, np.int64)
    for block in range(begin, end):
        first = block * LANES
        lanes = min(LANES, size - first)
        for k in range(lanes):
            below[k] = 0
        left = count
        while left > 0:
            half = (left + 1) // 2
            for k in range(lanes):
                number, boundary = data[first + k], boundaries[min(below[k] + half, count) - 1]
                passed = boundary < number if RIGHT else not number < boundary
                below[k] = min(below[k] + half, count) if passed else below[k]
            left = left // 2
        for k in range(lanes):
            result[first + k] = below[k]


def bucketize(work: Work, team: Team) -> Compiled | None:
    """Bucketize-3. The op's rule sees to the order of boundaries, which one of them alone has even if it is NaN."""
    data, boundaries = work.required(2)
    size, count = prod(data.shape), prod(boundaries.shape)
    if work.posts or data.type not in TYPES or boundaries.type != data.type:
        return None
    if count == 1 and (boundaries.value is None or np.isnan(boundaries.value).any()):
        return None
    constants: dict[str, Hashable] = {"Elements": MEMORY[data.type], "RIGHT": bool(work.attrs["with_right_bound"])}
    constants["Places"] = MEMORY[work.outputs[0].type]
    nanoseconds = size * count.bit_length() * STEP_NANOSECONDS

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        arguments = (*inputs, outputs[0], size, count)
        return looped(team, fall, arguments, -(-size // LANES), nanoseconds, **constants)

    return Compiled(bind, wants=unordered(work))


COMPILERS = {"Bucketize-3": bucketize}
