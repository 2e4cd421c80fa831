"""Elements taken from where indices along an axis say, and from tables where codes say."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.loops import MEMORY_OF_BYTES, Bytes, Elements, Longs, Places, looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.work import Arrays, Call, Compiled, OpenCall, Work
from irrun.spec.op import Array

ELEMENT_NANOSECONDS = 1.0
"""What an element takes about."""

LOOK_UP_NANOSECONDS = 0.6
"""What a code takes about."""


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


def look_up(begin: int, end: int, codes: Bytes, table: Elements, result: Elements) -> None:
    """What a table has for codes."""
    for place in range(begin, end):
        result[place] = table[codes[place]]


def tabulated(work: Work, team: Team) -> Compiled | None:
    """Table-0."""
    codes, table = work.required(2)
    if work.posts or codes.type not in ("u8", "i8") or table.value is None:
        return None
    kind, type = MEMORY_OF_BYTES[table.value.itemsize]
    count = prod(codes.shape)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        arrays = inputs[0].view(np.uint8), inputs[1].view(type), outputs[0].view(type)
        return looped(team, look_up, arrays, count, count * LOOK_UP_NANOSECONDS, Elements=kind)

    return Compiled(bind, wants=unordered(work))


COMPILERS = {"Table-0": tabulated}
OPENERS = {"GatherElements-6": open}
