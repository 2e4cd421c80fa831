"""Images of other sizes: each row is made of a few rows of the data, and each of its elements of a few of that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.compiled.loops import Floats, Ints, looped
from irrun.engines.compiled.team import Team
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.vectorized.resampling import kernel_of, matrices
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

LINE = 1 << 14
"""Elements of a row of the data that stays in the cache; longer ones are left to others."""

MAX_TAPS = 8
"""Elements that one of the result is made of; more are left to products of matrices."""

DOWN = ACROSS = 2
"""Rows, and elements of a row, that one of the result is made of."""

ELEMENT_NANOSECONDS = 0.5
"""What it takes about to read and weigh an element."""


def resample(
    begin: int,
    end: int,
    data: Floats,
    result: Floats,
    row_places: Ints,
    row_weights: Floats,
    places: Ints,
    weights: Floats,
    before: int,
    after: int,
    width: int,
    wide: int,
    apart: int,
) -> None:
    """Rows of `wide` elements, `after` of an image, from images of `before` rows of `width` elements.

    Of what an element is made lies `apart`. Weights are [after, DOWN] and [ACROSS, wide].
    """
    line = np.empty(LINE, np.float32)
    for number in range(begin, end):
        row = number % after
        source = (number // after * before + row_places[row]) * width
        for k in range(width):
            total = np.float32(0)
            for tap in range(DOWN):
                total += row_weights[row * DOWN + tap] * data[source + tap * width + k]
            line[k] = total
        for k in range(wide):
            total = np.float32(0)
            for tap in range(ACROSS):
                total += weights[tap * wide + k] * line[places[k] + tap * apart]
            result[number * wide + k] = total


def taps_of(matrix: Array) -> tuple[Array, Array]:
    """Where what each column of a matrix is made of begins, and its weights: [columns, taps]."""
    used = matrix != 0
    first = np.where(used.any(0), used.argmax(0), 0)
    last = np.where(used.any(0), len(used) - 1 - used[::-1].argmax(0), 0)
    taps = int((last - first).max()) + 1
    first = np.minimum(first, len(used) - taps)
    weights = np.take_along_axis(matrix, first + np.arange(taps)[:, None], 0).T
    return first.astype(np.int32), np.ascontiguousarray(weights, np.float32)


def interpolate(work: Work, team: Team) -> Compiled | None:
    """Interpolate-4 and -11 of two axes that follow one another, where `matrices` has them."""
    found = matrices(work)
    if found is None or len(found) != 2 or abs(int(np.diff([*found])[0])) != 1:
        return None
    (data,), output, axis = work.required(1), work.outputs[0], min(found)
    apart, images = prod(data.shape[axis + 2 :]), prod(data.shape[:axis])
    width, wide = data.shape[axis + 1] * apart, output.shape[axis + 1] * apart
    (row_places, row_weights), (columns, column_weights) = (taps_of(found[axis + number]) for number in range(2))
    down, across = row_weights.shape[1], column_weights.shape[1]
    if not is_dense(data) or width > LINE or max(down, across) > MAX_TAPS:
        return None
    places = (columns[:, None] * apart + np.arange(apart)).astype(np.int32).ravel()
    weights = np.ascontiguousarray(np.repeat(column_weights, apart, 0).T)
    before, after = data.shape[axis], output.shape[axis]
    nanoseconds = images * after * (width * down + wide * across) * ELEMENT_NANOSECONDS
    kernel, count = kernel_of(work), len(work.own)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        tables = row_places, row_weights, places, weights
        arguments = (inputs[0], outputs[0], *tables, before, after, width, wide, apart)
        loop = looped(team, resample, arguments, images * after, nanoseconds, DOWN=down, ACROSS=across)
        total = partial(np.einsum, "i->", inputs[0].reshape(-1))

        def call() -> None:
            if np.isfinite(total()):
                loop()
            else:  # what has no weight counts for the op, too
                np.copyto(outputs[0], kernel(*inputs[:count]))

        return [call]

    return with_posts(work, bind)


COMPILERS = dict.fromkeys(("Interpolate-4", "Interpolate-11"), interpolate)
