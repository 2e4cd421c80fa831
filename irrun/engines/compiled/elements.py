"""Elements taken from where indices along an axis say."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import MEMORY_OF_BYTES, Elements, Longs, Places, looped
from irrun.engines.compiled.team import Team
from irrun.engines.work import OpenCall, Work
from irrun.spec.op import Array

ELEMENT_NANOSECONDS = 1.0
"""What an element takes about."""


def take(
    begin: int,
    end: int,
    data: Elements,
    indices: Places,
    result: Elements,
    outside: Longs,
    size: int,
    count: int,
    inner: int,
) -> None:
    """Rows of indices [outer, count, inner] into data [outer, size, inner]; `outside` becomes 1 if one is."""
    wrong = 0
    for row in range(begin, end):
        source = row // count * size * inner
        for k in range(inner):
            place = indices[row * inner + k]
            inside = min(max(place, 0), size - 1)
            wrong = wrong | (place - inside)
            result[row * inner + k] = data[source + inside * inner + k]
    if wrong != 0:
        outside[0] = 1


def open(work: Work, team: Team) -> OpenCall | None:
    """A call for a work of any sizes."""
    data, indices = work.required(2)
    if work.posts or data.type == "string" or indices.type not in ("i32", "i64"):
        return None
    return partial(_taken, team, work.attrs["axis"])


def _taken(team: Team, axis: int, arrays: Sequence[Any]) -> Sequence[Array] | None:
    data, indices = map(np.ascontiguousarray, arrays[:2])
    rank = data.ndim
    if not data.size or not indices.size or data.itemsize not in MEMORY_OF_BYTES or indices.ndim != rank:
        return None
    if not -rank <= axis < rank:
        return None
    axis %= rank
    before, after = slice(axis), slice(axis + 1, None)
    if data.shape[before] != indices.shape[before] or data.shape[after] != indices.shape[after]:
        return None
    size, count, inner = data.shape[axis], indices.shape[axis], prod(data.shape[after])
    result, outside = np.empty(indices.shape, data.dtype), np.zeros(1, np.int64)
    kind, type = MEMORY_OF_BYTES[data.itemsize]
    constants: dict[str, Hashable] = {"Elements": kind, "Places": MEMORY_OF_BYTES[indices.itemsize][0]}
    arguments = data.view(type), indices, result.view(type), outside, size, count, inner
    looped(team, take, arguments, indices.size // inner, indices.size * ELEMENT_NANOSECONDS, **constants)()
    return None if outside[0] else (result,)


OPENERS = {"GatherElements-6": open}
