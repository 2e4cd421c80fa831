"""A grid that boxes lie in, for those that compare boxes: what has no cell in common does not meet."""

from __future__ import annotations

import numpy as np

from irrun.engines.compiled.loops import Doubles, Floats, Longs, looped
from irrun.engines.compiled.team import Team
from irrun.records import dataclass
from irrun.spec.op import Array

SIZE = 2
"""Sides of a cell, in those of boxes on average."""

LEAST, MOST = 8, 64
"""Cells of a grid that is of use, and the most along a side."""

MAX_ROOM = 16
"""Cells that a box reaches into on average, at most."""

LOWEST, HIGHEST, SIDES, WILD = 0, 2, 4, 6
"""Where it is noted of boxes: the first and last x and y, the sums of sides, and whether one is not in order."""


@dataclass(frozen=True, slots=True)
class BoxGrid:
    """`columns` times `rows` cells, into which boxes reach `room` times in all.

    `memory` are the boxes, the first and the last column and row of each, two numbers for each cell, and what is kept
    of boxes in cells, [7, room].
    """

    columns: int
    rows: int
    room: int
    memory: tuple[Array, ...]


def grid_of(team: Team, boxes: Array, pixel: float) -> BoxGrid | None:
    """The grid of boxes [n, 4], which end a `pixel` behind their corners; None where none is of use.

    That is so where boxes are large, or so many of different sizes that they reach into many cells, and where one is
    not finite or ends before it begins.
    """
    about, total = np.zeros(7), len(boxes)
    looped(team, survey, (boxes, about, total, float(pixel)), 1, 0)()
    if about[WILD]:
        return None
    extent, sides = about[HIGHEST:SIDES] - about[LOWEST:HIGHEST], about[SIDES:WILD] * (SIZE / total)
    columns, rows = (
        int(min(max(length / side, 1), MOST)) if side > 0 and length < np.inf else 1
        for length, side in zip(extent.tolist(), sides.tolist(), strict=True)
    )
    if columns * rows < LEAST:
        return None
    cells, room = np.empty((total, 4), np.int64), np.zeros(1, np.int64)
    steps = [
        count / length if length > 0 else 0.0 for count, length in zip((columns, rows), extent.tolist(), strict=True)
    ]
    looped(team, place, (boxes, about, cells, room, total, columns, rows, *steps, float(pixel)), 1, 0)()
    if room[0] > MAX_ROOM * total:
        return None
    each = np.empty((2, rows * columns), np.int64)
    return BoxGrid(columns, rows, room.item(), (boxes, cells, *each, np.empty((7, room.item()), np.float32)))


def survey(begin: int, end: int, boxes: Floats, about: Doubles, total: int, pixel: float) -> None:
    """Note what there is to be known of boxes."""
    for _ in range(begin, end):
        for axis in range(2):
            low, high, sides, wild = float(boxes[axis]), float(boxes[axis + 2]), 0.0, 0
            for number in range(total):
                first, last = float(boxes[4 * number + axis]), float(boxes[4 * number + axis + 2])
                wild = wild | int(not (last - first >= 0 and last - first < FAR))  # nor is it with NaN
                low, high = np.minimum(low, first), np.maximum(high, last)
                sides += last - first + pixel
            about[LOWEST + axis], about[HIGHEST + axis], about[SIDES + axis] = low, high + pixel, sides
            if wild != 0:
                about[WILD] = 1.0


FAR = 1e30
"""A side of a box that is none."""


def place(
    begin: int,
    end: int,
    boxes: Floats,
    about: Doubles,
    cells: Longs,
    room: Longs,
    total: int,
    columns: int,
    rows: int,
    across: float,
    down: float,
    pixel: float,
) -> None:
    """The cells that boxes reach into; what lies farther right or down is in no earlier one."""
    for _ in range(begin, end):
        reached = 0
        for number in range(total):
            x0, y0 = float(boxes[4 * number]), float(boxes[4 * number + 1])
            x1, y1 = float(boxes[4 * number + 2]) + pixel, float(boxes[4 * number + 3]) + pixel
            left = min(int((x0 - about[LOWEST]) * across), columns - 1)
            right = min(int((x1 - about[LOWEST]) * across), columns - 1)
            top = min(int((y0 - about[LOWEST + 1]) * down), rows - 1)
            bottom = min(int((y1 - about[LOWEST + 1]) * down), rows - 1)
            cells[4 * number], cells[4 * number + 1] = left, right
            cells[4 * number + 2], cells[4 * number + 3] = top, bottom
            reached += (right - left + 1) * (bottom - top + 1)
        room[0] = reached
