"""Gathers on numpy: slices at indices along an axis, elements and slices at constant places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.extents import extent_of, view
from irrun.engines.threads import Threads, cuts
from irrun.engines.vectorized.copying import BYTE_NANOSECONDS, shared_copies
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.work import OPEN_GROWTH, Arrays, Call, Compiled, OpenCall, Work
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

FEW_ELEMENTS = 1 << 15
"""Of a result that is gathered one by one: where each is takes 8 bytes."""

FEW = 64
"""Numbers of which Python finds the least sooner than numpy."""


def gather(work: Work, threads: Threads) -> Compiled | None:
    """Gather-1, -7 and -8 along a constant axis, without batch dimensions.

    Indices that are not constant come only to Gather-8, whose negative ones count from the end and whose others
    outside give zeros; those of the other versions were checked.
    """
    (data, indices), axes = work.required(2), work.constant(2)
    if axes is None or "string" in (data.type, indices.type) or indices.type == "u64":  # which intp does not hold
        return None
    axis = int(axes.item()) % len(data.shape)
    if work.attrs.get("batch_dims", 0) not in (0, -len(indices.shape)):
        return None
    if indices.value is not None:
        return _constant(work, axis, indices.value, threads)
    if work.name != "Gather-8" or not is_dense(data):
        return None
    size, count = data.shape[axis], prod(indices.shape)
    needed = count * np.dtype(np.intp).itemsize
    shape = (prod(data.shape[:axis]), size, prod(data.shape[axis + 1 :]))

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> list[Call]:
        source, given = inputs[0].reshape(shape), inputs[1]
        target = outputs[0].reshape(shape[0], count, shape[2])
        places = scratch[:needed].view(np.intp)
        same = places.reshape(given.shape)
        take = _taken(source, places, target, threads)

        def call() -> None:
            np.copyto(same, given, "unsafe")
            few = places.tolist() if count <= FEW else (places.min(), places.max())
            if min(few) >= -size and max(few) < size:
                take()
                return
            outside = (places < -size) | (places >= size)
            places[outside] = 0
            take()
            target[:, outside] = 0

        def one() -> None:
            place = int(given.item())
            if -size <= place < size:
                np.copyto(target, source[:, place : place + 1 or None])
            else:
                target.fill(0)

        return [one if count == 1 else call]

    return with_posts(work, bind, needed)


def _taken(source: Array, places: Array, target: Array, threads: Threads) -> Call:
    """Takes `[outer, places, inner]` out of `[outer, size, inner]`; negative places count from the end."""
    if source.shape[0] == 1:  # numpy takes rows of a matrix quicker
        source, target, axis = source[0], target[0], 0
    else:
        axis = 1
    sharing = threads.sharing(target.nbytes * BYTE_NANOSECONDS)
    if sharing == 1 or axis == 1 or len(places) < sharing:
        return partial(np.take, source, places, axis, target, "wrap")
    parts = cuts(len(places), 2 * sharing)
    return threads.call([partial(np.take, source, places[cut], 0, target[cut], "wrap") for cut in parts])


def _constant(work: Work, axis: int, indices: Array, threads: Threads) -> Compiled | None:
    """A gather at constant indices: a strided copy where they go up or down by equal steps."""
    (data,) = work.required(1)
    size = data.shape[axis]
    places = indices.astype(np.intp).ravel()
    if ((places < -size) | (places >= size)).any():
        return None
    places %= size
    steps = np.diff(places)
    even = bool(steps.size == 0 or (steps == steps[0]).all())
    outer, inner = data.shape[:axis], data.shape[axis + 1 :]
    if not even and is_dense(data):
        return _flat(work, places, (prod(outer), size, prod(inner)), threads)
    if not even:
        return _spread(work, axis, places)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        target = outputs[0].reshape(*outer, len(places), *inner)
        return [shared_copies(threads, [(target, _stepped(inputs[0], axis, places))])]

    return with_posts(work, bind)


def _spread(work: Work, axis: int, places: Array) -> Compiled | None:
    """A gather of few elements, each by itself, of data that lie in any order, such as a transposition."""
    (data,), result = work.required(1), work.outputs[0]
    item = np.dtype(numpy_dtype(data.type)).itemsize
    if prod(result.shape) > FEW_ELEMENTS or any(step % item or step < 0 for step in data.strides):
        return None
    sizes = (*data.shape[:axis], len(places), *data.shape[axis + 1 :])
    positions = np.zeros(sizes, np.intp)
    for number, step in enumerate(data.strides):
        along = places if number == axis else np.arange(sizes[number])
        positions += (along * (step // item)).reshape([-1 if n == number else 1 for n in range(len(sizes))])
    length = extent_of(data.shape, data.strides, item)[1] // item

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        elements = view(inputs[0], (length,), (item,))
        return [partial(np.take, elements, positions, 0, outputs[0].reshape(sizes), "wrap")]

    return with_posts(work, bind)


def _stepped(array: Any, axis: int, places: Array) -> Any:
    """The view of an array at places along an axis that follow one another by equal steps."""
    first, step = int(places[0]), int(places[1] - places[0]) if len(places) > 1 else 1
    before = (slice(None),) * axis
    if step == 0:
        return np.broadcast_to(
            array[*before, first : first + 1], (*array.shape[:axis], len(places), *array.shape[axis + 1 :])
        )
    end = first + step * len(places)
    return array[*before, slice(first, end if end >= 0 else None, step)]


def gather_elements(work: Work, threads: Threads) -> Compiled | None:
    """GatherElements-6 at constant indices."""
    (data,), indices = work.required(1), work.constant(1)
    if indices is None or not is_dense(data):
        return None
    axis = work.attrs["axis"] % len(data.shape)
    places = np.zeros(indices.shape, np.intp)
    for number, size in enumerate(data.shape):
        along = np.arange(indices.shape[number]).reshape([-1 if i == number else 1 for i in range(len(data.shape))])
        places *= size
        places += indices.astype(np.intp) % size if number == axis else along
    return _flat(work, places.ravel(), (1, prod(data.shape), 1), threads)


def gather_nd(work: Work, threads: Threads) -> Compiled | None:
    """GatherND-5 and -8 at constant indices, without batch dimensions."""
    (data,), indices = work.required(1), work.constant(1)
    if indices is None or not is_dense(data) or work.attrs.get("batch_dims", 0):
        return None
    length = indices.shape[-1]
    places = np.zeros(indices.shape[:-1], np.intp)
    for column, size in enumerate(data.shape[:length]):
        places *= size
        places += indices[..., column].astype(np.intp) % size
    return _flat(work, places.ravel(), (1, prod(data.shape[:length]), prod(data.shape[length:])), threads)


def open_gather(work: Work, _: Threads) -> OpenCall | None:
    """Gather-1, -7 and -8 of any sizes, with batch dimensions along the axis that follows these; what counts from the
    end is left to the kernel."""
    given = work.attrs.get("batch_dims", 0)
    if work.posts or "string" in [operand.type for operand in work.required(2)]:
        return None

    def call(arrays: Sequence[Any]) -> Sequence[Array] | None:
        data, indices, axes = arrays
        if axes.size != 1 or not -data.ndim <= axes.item() < data.ndim:
            return None
        axis = axes.item()
        batch = given + indices.ndim if given < 0 else given
        if batch and (axis % data.ndim != batch or not _of_batches(data, indices, batch)):
            return None
        if not indices.size:
            return [np.empty((*data.shape[:axis], *indices.shape[batch:], *data.shape[axis:][1:]), data.dtype)]
        if indices.min() < 0 or indices.max() >= data.shape[axis]:
            return None
        slices = indices.size // prod(indices.shape[:batch])
        if data.nbytes // data.shape[axis] * slices > OPEN_GROWTH * (data.nbytes + indices.nbytes):
            return None
        if not batch:
            return [np.asarray(data.take(indices, axis))]
        places = indices + _starts(indices, batch, data.shape[axis])
        return [np.asarray(data.reshape(-1, *data.shape[batch + 1 :]).take(places, 0))]

    return call


def open_gather_nd(work: Work, _: Threads) -> OpenCall | None:
    """GatherND-5 and -8 of any sizes; what counts from the end is left to the kernel."""
    batch = work.attrs.get("batch_dims", 0)
    if work.posts or "string" in [operand.type for operand in work.required(2)]:
        return None
    if batch > 1 and work.name == "GatherND-5":  # whose result has these dimensions as one
        return None

    def call(arrays: Sequence[Any]) -> Sequence[Array] | None:
        data, tuples = arrays
        length = tuples.shape[-1] if tuples.ndim else 0
        if not 0 < length <= data.ndim - batch or not _of_batches(data, tuples[..., 0], batch):
            return None
        rest = data.shape[batch + length :]
        if not tuples.size:
            return [np.empty((*tuples.shape[:-1], *rest), data.dtype)]
        if not data.size or not data.flags.c_contiguous:
            return None
        if data.itemsize * (tuples.size // length) * prod(rest) > OPEN_GROWTH * (data.nbytes + tuples.nbytes):
            return None
        places: Any = _starts(tuples[..., 0], batch, 1) if batch else 0
        for column, size in enumerate(data.shape[batch : batch + length]):
            own = tuples[..., column]
            if own.min() < 0 or own.max() >= size:
                return None
            places = places * size + own.astype(np.intp, copy=False)
        return [np.asarray(data.reshape(-1, *rest).take(places, 0))]

    return call


def _of_batches(data: Array, places: Array, batch: int) -> bool:
    """Whether data, which lie in C order, and places have their first dimensions in common."""
    common = batch <= places.ndim and data.shape[:batch] == places.shape[:batch]
    return common and (not batch or data.flags.c_contiguous)


def _starts(places: Array, batch: int, size: int) -> Array:
    """Where what is there of each batch begins, `size` behind the one before, for places in all of them."""
    shape = places.shape[:batch]
    return np.arange(0, prod(shape) * size, size).reshape(*shape, *[1] * (places.ndim - batch))


def _flat(work: Work, places: Array, shape: tuple[int, int, int], threads: Threads) -> Compiled | None:
    """Slices of the data, seen as `shape`, `[outer, size, inner]`, at constant places along its second axis."""
    outer, _, inner = shape

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        return [_taken(inputs[0].reshape(shape), places, outputs[0].reshape(outer, len(places), inner), threads)]

    return with_posts(work, bind)


COMPILERS = {
    **dict.fromkeys(("Gather-1", "Gather-7", "Gather-8"), gather),
    "GatherElements-6": gather_elements,
    **dict.fromkeys(("GatherND-5", "GatherND-8"), gather_nd),
}

OPENERS = {
    **dict.fromkeys(("Gather-1", "Gather-7", "Gather-8"), open_gather),
    **dict.fromkeys(("GatherND-5", "GatherND-8"), open_gather_nd),
}
