"""Boxes that better ones hide, found by compiled loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irrun.engines.compiled.box_grid import grid_of
from irrun.engines.compiled.loops import Bytes, Floats, Longs, looped
from irrun.engines.compiled.team import Team
from irrun.spec.op import Array

TOGETHER = 32
"""Boxes that stay with which one is compared before it is asked whether it is hidden."""

BELOW = 1 - 1e-6
"""Part of a limit that a quotient is not above, rounded or not, if its dividend is not above that of the divisor."""

PAIRS = 1 << 18
"""Boxes of a group times those that may stay from which on only those are compared that lie near one another."""

BOX_NANOSECONDS = 60.0
"""What a box takes about."""


def keep_unsuppressed(
    begin: int,
    end: int,
    boxes: Floats,
    ends: Longs,
    kept: Floats,
    stays: Bytes,
    total: int,
    most: int,
    threshold: float,
    eta: float,
    pixel: float,
) -> None:
    """Groups of boxes [total, 4], from ends[group] to ends[group + 1]; `kept` [7, total] are what is compared with.

    Most overlap too little by far, which takes no division to see; only where that is not so it is made.
    """
    one = np.float32(pixel)
    for group in range(begin, end):
        first, last = ends[group], ends[group + 1]
        count = 0
        limit = threshold
        for number in range(first, last):
            if count == most:
                break
            x0, y0, x1, y1 = boxes[4 * number], boxes[4 * number + 1], boxes[4 * number + 2], boxes[4 * number + 3]
            if not is_hidden(kept, total, first, first + count, x0, y0, x1, y1, one, limit):
                if eta < 1 and limit > 0.5:
                    limit = limit * eta
                keep(kept, total, first + count, x0, y0, x1, y1, one, limit)
                stays[number] = 1
                count = count + 1


def is_hidden(
    kept: Floats,
    total: int,
    first: int,
    last: int,
    x0: np.float32,
    y0: np.float32,
    x1: np.float32,
    y1: np.float32,
    one: np.float32,
    limit: float,
) -> bool:
    """Whether one of the boxes from `first` to `last` of those that are kept hides another one."""
    over = np.empty(TOGETHER, np.float32)
    area = (x1 - x0 + one) * (y1 - y0 + one)
    hidden = 0
    start = first
    while start < last and hidden == 0:
        stop = min(start + TOGETHER, last)
        near = int(limit < 0)
        for other in range(start, stop):
            shared = shared_by(kept, total, other, x0, y0, x1, y1, one)
            union = kept[4 * total + other] + area - shared
            over[other - start] = shared - kept[6 * total + other] * union
        for place in range(stop - start):
            near = near | int(over[place] >= 0)
        if near != 0:
            for other in range(start, stop):
                shared = shared_by(kept, total, other, x0, y0, x1, y1, one)
                union = kept[4 * total + other] + area - shared
                iou = shared / union if shared > 0 else np.float32(0)
                hidden = hidden | int(iou > kept[5 * total + other])
        start = stop
    return hidden != 0


def keep(
    kept: Floats,
    total: int,
    place: int,
    x0: np.float32,
    y0: np.float32,
    x1: np.float32,
    y1: np.float32,
    one: np.float32,
    limit: float,
) -> int:
    """Put a box among those that are kept."""
    kept[place], kept[total + place], kept[2 * total + place], kept[3 * total + place] = x0, y0, x1, y1
    kept[4 * total + place], kept[5 * total + place] = (x1 - x0 + one) * (y1 - y0 + one), np.float32(limit)
    kept[6 * total + place] = np.float32(limit * BELOW)
    return 0


def keep_near(
    begin: int,
    end: int,
    boxes: Floats,
    cells: Longs,
    starts: Longs,
    filled: Longs,
    kept: Floats,
    stays: Bytes,
    total: int,
    room: int,
    columns: int,
    rows: int,
    most: int,
    threshold: float,
    eta: float,
    pixel: float,
) -> None:
    """As `keep_unsuppressed` for one group, with boxes kept in each of the cells [rows, columns] that they reach into.

    `cells` [total, 4] are the first and the last column and row of each: boxes without a cell in common do not meet.
    """
    one = np.float32(pixel)
    for _ in range(begin, end):
        for cell in range(rows * columns):
            filled[cell] = 0
        for number in range(total):
            for row in range(cells[4 * number + 2], cells[4 * number + 3] + 1):
                for column in range(cells[4 * number], cells[4 * number + 1] + 1):
                    filled[row * columns + column] = filled[row * columns + column] + 1
        place = 0
        for cell in range(rows * columns):
            starts[cell] = place
            place += filled[cell]
            filled[cell] = 0
        count = 0
        limit = threshold
        for number in range(total):
            if count == most:
                break
            x0, y0, x1, y1 = boxes[4 * number], boxes[4 * number + 1], boxes[4 * number + 2], boxes[4 * number + 3]
            hidden = 0
            for row in range(cells[4 * number + 2], cells[4 * number + 3] + 1):
                for column in range(cells[4 * number], cells[4 * number + 1] + 1):
                    first = starts[row * columns + column]
                    last = first + filled[row * columns + column]
                    if hidden == 0:
                        hidden = int(is_hidden(kept, room, first, last, x0, y0, x1, y1, one, limit))
            if hidden == 0:
                if eta < 1 and limit > 0.5:
                    limit = limit * eta
                for row in range(cells[4 * number + 2], cells[4 * number + 3] + 1):
                    for column in range(cells[4 * number], cells[4 * number + 1] + 1):
                        cell = row * columns + column
                        keep(kept, room, starts[cell] + filled[cell], x0, y0, x1, y1, one, limit)
                        filled[cell] = filled[cell] + 1
                stays[number] = 1
                count = count + 1


def shared_by(
    kept: Floats,
    total: int,
    other: int,
    x0: np.float32,
    y0: np.float32,
    x1: np.float32,
    y1: np.float32,
    one: np.float32,
) -> np.float32:
    """What a box that is kept has in common with another one."""
    across = np.minimum(kept[2 * total + other], x1) - np.maximum(kept[other], x0)
    down = np.minimum(kept[3 * total + other], y1) - np.maximum(kept[total + other], y0)
    width, height = np.maximum(across + one, 0), np.maximum(down + one, 0)
    if not ACROSS_GAPS:
        width = np.float32(0) if across < 0 else width
        height = np.float32(0) if down < 0 else height
    shared: np.float32 = width * height
    return shared


ACROSS_GAPS = False
"""Whether boxes less than a pixel apart overlap."""


def unsuppressed(
    team: Team,
    plain: Callable[..., Array],
    boxes: Array,
    ends: Array,
    threshold: float,
    *,
    pixel: float = 0.0,
    across_gaps: bool = False,
    most: int = -1,
    eta: float = 1.0,
) -> Array:
    """What `plain`, the op library's own, gives: which boxes [n, 4] of groups stay."""
    if boxes.dtype != np.float32:
        return plain(boxes, ends, threshold, pixel=pixel, across_gaps=across_gaps, most=most, eta=eta)
    total = len(boxes)
    stays = np.zeros(total, np.bool_)
    bounds = np.array([0, *ends.tolist()], np.int64)
    numbers = float(threshold), float(eta), float(pixel)
    constants = {"ACROSS_GAPS": bool(across_gaps)}
    many = total * (total if most < 0 else min(most, total)) >= PAIRS
    if many and len(ends) == 1 and threshold >= 0 and pixel >= 0:
        grid = grid_of(team, np.ascontiguousarray(boxes), pixel)
        if grid is not None:
            given = stays.view(np.uint8), total, grid.room, grid.columns, grid.rows, most
            looped(team, keep_near, (*grid.memory, *given, *numbers), 1, 0, **constants)()
            return stays
    kept = np.empty((7, total), np.float32)
    arguments = (np.ascontiguousarray(boxes), bounds, kept, stays.view(np.uint8), total, most)
    nanoseconds = total * BOX_NANOSECONDS if len(ends) > 1 else 0
    looped(team, keep_unsuppressed, (*arguments, *numbers), len(ends), nanoseconds, **constants)()
    return stays
