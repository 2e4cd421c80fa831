"""Images of other sizes: each row is made of a few rows of the data, and each of its elements of a few of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.compiled.loops import Floats, Ints, looped
from irrun.engines.compiled.team import Team
from irrun.engines.orders import is_of_short_rows
from irrun.engines.plain import plain_call
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.vectorized.resampling import as_data_lie, matrices
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

LINE = 1 << 14
"""Elements of a row of the data that stays in the cache; longer ones are left to others."""

SHORT_LINE = 1 << 12
"""Numbers of a row of vectors that stay in the smallest cache."""

VECTOR = 16
"""Numbers that lie side by side from which on they are made as vectors, not looked for one by one."""

MAX_TAPS = 8
"""Elements that one of the result is made of; more are left to products of matrices."""

DOWN = ACROSS = 2
"""Rows, and elements of a row, that one of the result is made of."""

PART, AT_ONCE = 1 << 12, 64
"""Elements that are looked at one after the other, and beside one another."""

ELEMENT_NANOSECONDS, VECTOR_NANOSECONDS, LOOK_NANOSECONDS = 0.5, 0.1, 0.1
"""What it takes about to read and weigh an element, and one of a vector, and to look at one."""


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


def resample_vectors(
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
    block: int,
) -> None:
    """As `resample`, of images whose elements are vectors of `apart` numbers, `block` of which are made at once.

    The weights of columns are [wide, ACROSS].
    """
    line = np.empty(LINE, np.float32)
    for number in range(begin, end):
        row = number % after
        source = (number // after * before + row_places[row]) * width * apart
        first = 0
        while first < apart:
            count = min(block, apart - first)
            for column in range(width):
                place = source + column * apart + first
                for k in range(count):
                    total = np.float32(0)
                    for tap in range(DOWN):
                        total += row_weights[row * DOWN + tap] * data[place + tap * width * apart + k]
                    line[column * block + k] = total
            for column in range(wide):
                place = (number * wide + column) * apart + first
                for k in range(count):
                    total = np.float32(0)
                    for tap in range(ACROSS):
                        total += weights[column * ACROSS + tap] * line[(places[column] + tap) * block + k]
                    result[place + k] = total
            first += block


def look_beyond(begin: int, end: int, data: Floats, found: Floats, size: int) -> None:
    """For parts of PART of the `size` data what each makes of them times 0: NaN where one is not finite, else 0."""
    totals = np.empty(AT_ONCE, np.float32)
    for number in range(begin, end):
        start = number * PART
        count = min(PART, size - start)
        for k in range(AT_ONCE):
            totals[k] = np.float32(0)
        for block in range(count // AT_ONCE):
            place = start + block * AT_ONCE
            for k in range(AT_ONCE):
                totals[k] = totals[k] + data[place + k] * np.float32(0)
        total = np.float32(0)
        for k in range(AT_ONCE):
            total += totals[k]
        for place in range(start + count // AT_ONCE * AT_ONCE, start + count):
            total += data[place] * np.float32(0)
        found[number] = total


def taps_of(matrix: Array) -> tuple[Array, Array]:
    """Where what each column of a matrix is made of begins, and its weights: [columns, taps]."""
    used = matrix != 0
    first = used.argmax(0)
    last = np.where(used.any(0), len(used) - 1 - used[::-1].argmax(0), 0)
    taps = int((last - first).max()) + 1
    first = np.minimum(first, len(used) - taps)
    weights = np.take_along_axis(matrix, first + np.arange(taps)[:, None], 0).T
    return first.astype(np.int32), np.ascontiguousarray(weights, np.float32)


def interpolate(work: Work, team: Team) -> Compiled | None:
    """Interpolate-4 and -11 of two axes that follow one another in memory, where `matrices` has them."""
    return as_data_lie(work, lambda work: _interpolate(work, team))


def _interpolate(work: Work, team: Team) -> Compiled | None:
    found = None if work.posts and is_of_short_rows(work) else matrices(work)
    if found is None or len(found) != 2 or abs(int(np.diff([*found])[0])) != 1:
        return None
    (data,), output, axis = work.required(1), work.outputs[0], min(found)
    apart, images = prod(data.shape[axis + 2 :]), prod(data.shape[:axis])
    width, wide = data.shape[axis + 1] * apart, output.shape[axis + 1] * apart
    (row_places, row_weights), (columns, column_weights) = (taps_of(found[axis + number]) for number in range(2))
    down, across = row_weights.shape[1], column_weights.shape[1]
    block = min(apart, SHORT_LINE // data.shape[axis + 1] // VECTOR * VECTOR)
    block = block or VECTOR  # of a long row
    joined = apart < VECTOR
    room = width if joined else data.shape[axis + 1] * block
    if not is_dense(data) or room > LINE or max(down, across) > MAX_TAPS:
        return None
    before, after = data.shape[axis], output.shape[axis]
    sizes: tuple[int, ...]
    function: Callable[..., None]
    if joined:
        places = (columns[:, None] * apart + np.arange(apart)).astype(np.int32).ravel()
        weights = np.ascontiguousarray(np.repeat(column_weights, apart, 0).T)
        sizes, function = (before, after, width, wide, apart), resample
    else:
        places, weights = columns, column_weights
        sizes, function = (before, after, data.shape[axis + 1], output.shape[axis + 1], apart, block), resample_vectors
    element = ELEMENT_NANOSECONDS if joined else VECTOR_NANOSECONDS
    nanoseconds = images * after * (width * down + wide * across) * element

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        tables = row_places, row_weights, places, weights
        arguments = (inputs[0], outputs[0], *tables, *sizes)
        loop = looped(team, function, arguments, images * after, nanoseconds, DOWN=down, ACROSS=across)
        otherwise, size = plain_call(work, inputs, outputs), inputs[0].size
        found = np.empty(-(-size // PART), np.float32)
        look = looped(team, look_beyond, (inputs[0], found, size), len(found), size * LOOK_NANOSECONDS)

        def call() -> None:
            look()
            if np.isnan(found).any():  # what has no weight counts for the op, too
                otherwise()
            else:
                loop()

        return [call]

    return with_posts(work, bind)


COMPILERS = dict.fromkeys(("Interpolate-4", "Interpolate-11"), interpolate)
