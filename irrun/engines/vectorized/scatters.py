"""Scatters on numpy: elements and slices put at constant places, as where a part of a tensor is assigned to, and slices
at places along an axis that only a run tells, as where a loop fills a list of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides, reshaped_strides
from irrun.engines.extents import view
from irrun.engines.threads import Threads
from irrun.engines.vectorized.copying import shared_copies
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.work import Arrays, Call, Compiled, OpenCall, Work
from irrun.records import NamedTuple
from irrun.spec.op import Array


class Box(NamedTuple):
    """Places that go up by equal steps along some axes, the first of them at `start`."""

    start: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]


def compile(work: Work, threads: Threads) -> Compiled | None:
    """ScatterNDUpdate-3 and -15 without a reduction, at constant places that are those of a part of the data.

    Others, which may come twice, are left to the kernel.
    """
    data, indices, updates = work.required(3)
    if data.type == "string" or work.attrs.get("reduction", "none") != "none" or indices.value is None:
        return None
    length = indices.shape[-1]
    places = _places(indices.value, data.shape[:length])
    box = None if places is None else box_of(places)
    if box is None:
        return None
    rest = data.shape[length:]
    slices, shape = (prod(data.shape[:length]), *rest), (*box.shape, *rest)
    come = reshaped_strides(updates.shape, updates.strides, shape)
    if come is None or 0 in shape:
        return None
    whole = prod(box.shape) == slices[0]

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        (output,) = outputs
        rows = output.reshape(slices)
        strides = dense_strides(slices, output.itemsize)
        steps = (*(step * strides[0] for step in box.steps), *strides[1:])
        put = shared_copies(threads, [(view(rows[box.start :], shape, steps), view(inputs[2], shape, come))])
        return [put] if whole else [shared_copies(threads, [(output, inputs[0])]), put]

    return with_posts(work, bind)


def _places(indices: Array, sizes: Sequence[int]) -> Array | None:
    """The row-major place of each tuple of indices, of which negative ones count from the end; None where one is
    outside."""
    places = np.zeros(indices.shape[:-1], np.intp)
    for column, size in enumerate(sizes):
        own = indices[..., column].astype(np.intp)
        own[own < 0] += size
        if own.size and (own.min() < 0 or own.max() >= size):
            return None
        places = places * size + own
    return places.ravel()


def box_of(places: Array) -> Box | None:
    """The axes along which places go up, each a whole number of times; None where they do not, or there are none."""
    if not places.size or (np.diff(places) <= 0).any():
        return None
    start, shape, steps = int(places[0]), list[int](), list[int]()
    while places.size > 1:
        differences = np.diff(places)
        step = differences[0]
        others = np.flatnonzero(differences != step)
        count = int(others[0]) + 1 if others.size else places.size
        if places.size % count:
            return None
        rows = places.reshape(-1, count)
        if (np.diff(rows, axis=1) != step).any():
            return None
        shape.insert(0, count)
        steps.insert(0, int(step))
        places = rows[:, 0]
    return Box(start, tuple(shape), tuple(steps))


def open_slices(work: Work, _: Threads) -> OpenCall | None:
    """ScatterUpdate-3 of any sizes."""
    types = {operand.type for operand in work.required(4)}
    return None if types & {"string", "u64"} else _put_slices  # an index of u64 may be more than intp holds


def _put_slices(arrays: Sequence[Any]) -> Sequence[Array] | None:
    data, indices, updates, axes = arrays
    axis = int(axes.item())
    if not -data.ndim <= axis < data.ndim:
        return None
    axis %= data.ndim
    before, behind = data.shape[:axis], data.shape[axis + 1 :]
    if updates.shape != (*before, *indices.shape, *behind) or updates.dtype != data.dtype or not indices.size:
        return None
    one = indices.size == 1
    least, most = (indices.item(),) * 2 if one else (indices.min(), indices.max())
    if least < 0 or most >= data.shape[axis]:
        return None
    result = data.copy()
    if one:
        result[(slice(None),) * axis + (least,)] = updates.reshape((*before, *behind))
    else:
        rows = updates.reshape((*before, indices.size, *behind))
        result[(slice(None),) * axis + (indices.reshape(-1).astype(np.intp),)] = rows
    return [result]


COMPILERS = dict.fromkeys(("ScatterNDUpdate-3", "ScatterNDUpdate-15"), compile)

OPENERS = {"ScatterUpdate-3": open_slices}
