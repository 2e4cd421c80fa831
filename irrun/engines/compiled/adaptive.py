"""Adaptive pooling by compiled loops: windows that cover the data evenly, plane by plane."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import LOWEST, MEMORY, Doubles, Floats, Longs, Places, judged, looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.plain import plain_call
from irrun.engines.work import Arrays, Call, Compiled, Work, either
from irrun.spec.op import Array

PLACED = True
"""Whether somebody reads the indices."""

ELEMENT_NANOSECONDS, LARGEST_NANOSECONDS = 0.4, 1.2
"""What an element takes about that is added up, or compared."""

WINDOW_NANOSECONDS = 4.0
"""What a window takes about besides."""


def average(
    begin: int,
    end: int,
    data: Floats,
    result: Floats,
    sums: Doubles,
    depth: int,
    height: int,
    width: int,
    layers: int,
    rows: int,
    columns: int,
) -> None:
    """Means of [depth, height, width] in [layers, rows, columns] windows; `sums` are [planes, width]."""
    for plane in range(begin, end):
        own, target = plane * width, plane * layers * rows * columns
        for layer in range(layers):
            first, last = layer * depth // layers, ended(layer, depth, layers)
            for row in range(rows):
                top, low = row * height // rows, ended(row, height, rows)
                for x in range(width):
                    sums[own + x] = 0
                for z in range(first, last):
                    for y in range(top, low):
                        source = ((plane * depth + z) * height + y) * width
                        for x in range(width):
                            sums[own + x] += float(data[source + x])
                for column in range(columns):
                    left, right = column * width // columns, ended(column, width, columns)
                    total = 0.0
                    for x in range(left, right):
                        total += sums[own + x]
                    mean = total / float((last - first) * (low - top) * (right - left))
                    result[target + (layer * rows + row) * columns + column] = np.float32(mean)


def greatest(
    begin: int,
    end: int,
    data: Floats,
    result: Floats,
    places: Places,
    outside: Longs,
    depth: int,
    height: int,
    width: int,
    layers: int,
    rows: int,
    columns: int,
) -> None:
    """As `average`, the largest elements and where in a plane they are; `outside` becomes 1 where there is NaN."""
    wrong = 0
    for plane in range(begin, end):
        for window in range(layers * rows * columns):
            layer, row, column = window // columns // rows, window // columns % rows, window % columns
            left, right = column * width // columns, ended(column, width, columns)
            first, last = layer * depth // layers, ended(layer, depth, layers)
            top, low = row * height // rows, ended(row, height, rows)
            best, found = np.float32(LOWEST), (first * height + top) * width + left
            for z in range(first, last):
                for y in range(top, low):
                    source = (z * height + y) * width
                    for x in range(source + left, source + right):
                        value = data[plane * depth * height * width + x]
                        wrong = wrong | (value != value)
                        if value > best:
                            best, found = value, x
            result[plane * layers * rows * columns + window] = best
            if PLACED:
                places[plane * layers * rows * columns + window] = found
    if wrong != 0:
        outside[0] = 1


def ended(number: int, size: int, windows: int) -> int:
    """Where a window ends."""
    return ((number + 1) * size + windows - 1) // windows


def pooling(work: Work, team: Team) -> Compiled | None:
    """AdaptiveAvgPool-8 and AdaptiveMaxPool-8 of f32."""
    (data,), output = work.required(1), work.outputs[0]
    if work.posts or data.type != "f32" or work.constant(1) is None:
        return None
    lacking = (1,) * (5 - len(data.shape))
    spatial = *lacking, *data.shape[2:], *lacking, *output.shape[2:]
    planes, windows = prod(data.shape[:2]), prod(output.shape) * WINDOW_NANOSECONDS
    wants = unordered(work, 1)
    if work.name == "AdaptiveAvgPool-8":
        nanoseconds = prod(data.shape) * ELEMENT_NANOSECONDS + windows
        room = planes * data.shape[-1] * 8

        def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
            arrays = inputs[0], outputs[0], scratch[:room].view(np.float64)
            return looped(team, average, (*arrays, *spatial), planes, nanoseconds)

        return Compiled(bind, scratch=room, wants=wants)
    placed = len(work.outputs) > 1
    kind = MEMORY[work.outputs[1].type] if placed else "Longs"

    def bind_greatest(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        outside = np.zeros(1, np.int64)
        arrays = inputs[0], outputs[0], outputs[1] if placed else np.empty(0, np.int64), outside
        nanoseconds = prod(data.shape) * LARGEST_NANOSECONDS + windows
        loop = looped(team, greatest, (*arrays, *spatial), planes, nanoseconds, PLACED=placed, Places=kind)
        return either(judged(loop, outside), plain_call(work, inputs, outputs))

    return Compiled(bind_greatest, wants=wants)


COMPILERS = dict.fromkeys(("AdaptiveAvgPool-8", "AdaptiveMaxPool-8"), pooling)
