"""Interpolation on numpy as products with small matrices, one for each axis, cut into tiles because they are banded.

The op itself is asked for the matrices: resampling is linear and goes axis by axis, so its kernel makes of the unit
vectors of an axis the columns of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import broadcast_strides, is_dense, reshaped_strides
from irrun.engines.extents import view
from irrun.engines.orders import in_order, reordered
from irrun.engines.plain import kernel_of, plain_call
from irrun.engines.threads import Threads
from irrun.engines.vectorized.copying import copy_calls
from irrun.engines.vectorized.posts import BLOCK, with_posts
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

MAX_PROBED = 1 << 22
"""Elements of a matrix; a larger one is not made."""

TILE = 32
"""Elements of the result that are computed at once from the part of the data under them."""

MAX_JOINED = 8
"""Elements behind an axis that are few."""

ELEMENT_NANOSECONDS = 1.0


def as_data_lie(work: Work, compile: Callable[[Work], Compiled | None]) -> Compiled | None:
    """What `compile` makes of an Interpolate-4 or -11 whose axes are in the order of memory."""
    order, given = reordered(work), [operand is not None and operand.value is not None for operand in work.own[1:]]
    if order is None or not all(given) or any((*work.attrs["pads_begin"], *work.attrs["pads_end"])):
        return compile(work)
    named = _place_of_axes(work)
    axes = work.constant(named)
    if axes is not None:
        values = {named: np.array([order.index(axis) for axis in axes.tolist()])}
    else:
        values = {number: work.constant(number).reshape(-1)[order] for number in range(1, len(work.own))}
    return in_order(work, order, values, compile)


def interpolate(work: Work, threads: Threads) -> Compiled | None:
    """Interpolate-4 and -11 to constant sizes, without pads; the axes of the result are in the order of the data's."""
    return as_data_lie(work, lambda work: _interpolate(work, threads))


def _interpolate(work: Work, threads: Threads) -> Compiled | None:
    changed = _changed(work)
    if not _constant(work, changed):
        return None
    if not changed or work.attrs["mode"] == "nearest":
        return _nearest(work, changed)
    found = matrices(work)
    return None if found is None else _products(work, found, threads)


def matrices(work: Work) -> dict[int, Any] | None:
    """The axes that change with what each is multiplied by, `[before, after]`, the one that shrinks most first.

    None where that is not all that is done, or not of f32.
    """
    (data,), output, changed = work.required(1), work.outputs[0], _changed(work)
    if data.type != "f32" or work.attrs["mode"] == "nearest" or not _constant(work, changed):
        return None
    return {
        axis: _matrix(work, axis) for axis in sorted(changed, key=lambda axis: output.shape[axis] / data.shape[axis])
    }


def _place_of_axes(work: Work) -> int:
    """Where the axes are among the inputs, if they are given."""
    return 3 if work.name == "Interpolate-4" else 2


def _changed(work: Work) -> list[int]:
    """The axes whose sizes change."""
    (data,), output = work.required(1), work.outputs[0]
    return [axis for axis, (before, after) in enumerate(zip(data.shape, output.shape, strict=True)) if before != after]


def _constant(work: Work, changed: Sequence[int]) -> bool:
    """Whether each axis that changes is resampled by itself, in a way that the data do not tell."""
    (data,), output = work.required(1), work.outputs[0]
    if any(operand is not None and operand.value is None for operand in work.own[1:]):
        return False
    if any((*work.attrs["pads_begin"], *work.attrs["pads_end"])):
        return False
    if work.attrs["antialias"] and len({output.shape[axis] < data.shape[axis] for axis in changed}) > 1:
        return False
    return all(data.shape[axis] * max(output.shape[axis], 1) <= MAX_PROBED for axis in changed)


def _matrix(work: Work, axis: int) -> Any:
    """What the op makes of the unit vectors along an axis of the data: `[before, after]`."""
    (data,), values = work.required(1), [work.constant(number) for number in range(1, len(work.own))]
    given = values.pop() if len(values) == _place_of_axes(work) else None
    place = axis if given is None else given.tolist().index(axis)
    targets = [None if value is None else value.reshape(-1)[place : place + 1] for value in values]
    kernel, before = kernel_of(work), data.shape[axis]
    at_once = MAX_PROBED // max(before, 1)  # all of a long axis would take gigabytes
    with np.errstate(all="ignore"):
        units = (np.eye(min(at_once, before - at), before, at, np.float32) for at in range(0, max(before, 1), at_once))
        return np.concatenate([kernel(unit, *targets, np.array([1])) for unit in units])


def _nearest(work: Work, changed: Sequence[int]) -> Compiled | None:
    """Every element of the result is one of the data: a copy where sizes are multiples; others are refused."""
    (data,), output = work.required(1), work.outputs[0]
    shape: list[int] = []
    expanded: list[Any] = []
    slots: dict[int, int] = {}  # where the repeats of an axis are
    for axis, (before, after) in enumerate(zip(data.shape, output.shape, strict=True)):
        shape.append(before)
        expanded.append(slice(None))
        if axis in changed:
            if after % before or not np.array_equal(
                _matrix(work, axis).argmax(axis=0), np.arange(after) // (after // before)
            ):
                return None
            slots[axis] = len(shape)
            shape.append(after // before)
            expanded.append(None)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        source, target = inputs[0][tuple(expanded)], outputs[0].reshape(shape)
        index = [slice(None)] * len(shape)
        for axis in changed[:-1]:
            index[slots[axis]] = slice(0, 1)
        first = target[tuple(index)]
        calls = copy_calls(first, np.broadcast_to(source, first.shape))
        for axis in reversed(changed[:-1]):
            one = target[tuple(index)]
            index[slots[axis]] = slice(1, None)
            calls.append(partial(np.copyto, target[tuple(index)], one))
            index[slots[axis]] = slice(None)
        return calls

    return with_posts(work, bind)


def _products(work: Work, matrices: Mapping[int, Any], threads: Threads) -> Compiled | None:
    """The axes in turn, each by its matrix `[before, after]`, on blocks that stay in the cache.

    They are blocks of what lies before the first axis. Where the data are not finite, a product with zeros would spread
    that over a tile: then the op itself computes. The result tells, unless there are data that it has no weight for.
    """
    (data,), output = work.required(1), work.outputs[0]
    first = min(matrices)
    outer, shape, whole = prod(data.shape[:first]), data.shape[first:], output.shape[first:]
    strides = reshaped_strides(data.shape, broadcast_strides(data, data.shape), (outer, *shape))
    ahead = prod(data.shape) if strides is None else 0  # elements of a copy of all data
    copied = strides is not None and not is_dense(data)
    shapes = [shape]
    for axis, matrix in matrices.items():
        place = axis - first
        shapes.append((*shapes[-1][:place], matrix.shape[1], *shapes[-1][place + 1 :]))
    rows = max(1, min(outer, BLOCK // prod(whole)))
    rows = min(rows, -(-outer // threads.sharing(prod(output.shape) * ELEMENT_NANOSECONDS)))
    blocks = [slice(begin, min(begin + rows, outer)) for begin in range(0, outer, rows)]
    between = [rows * prod(inner) for inner in (shapes[:-1] if copied else shapes[1:-1])]
    needed = 4 * (ahead + threads.count * sum(between))  # bytes
    ends = np.cumsum(between[:-1], dtype=np.intp)
    unseen = not all(matrix.any(axis=1).all() for matrix in matrices.values())
    steps = [
        _step(matrix, before, axis - first) for before, (axis, matrix) in zip(shapes, matrices.items(), strict=False)
    ]

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> list[Call]:
        numbers = np.empty(0, np.float32) if scratch is None else scratch[:needed].view(np.float32)
        memory = numbers[ahead:].reshape(threads.count, -1)
        if strides is None:
            source = numbers[:ahead].reshape(outer, *shape)
            first_call: list[Call] = [partial(np.copyto, source.reshape(data.shape), inputs[0])]
        else:
            source = view(inputs[0], (outer, *shape), strides)
            first_call = []
        target = outputs[0].reshape(outer, *whole)
        finite, otherwise = np.ones(len(blocks), bool), plain_call(work, inputs, outputs)

        def piece(number: int, thread: int) -> None:
            now = source[blocks[number]]
            free = iter(np.split(memory[thread], ends))
            if copied:
                dense_copy = next(free)[: now.size].reshape(now.shape)
                np.copyto(dense_copy, now)
                now = dense_copy
            seen = not unseen or is_finite(now)
            for position, (come, to, tiles) in enumerate(steps):
                sizes = (len(now), *shapes[position + 1])
                last = position + 1 == len(steps)
                after = target[blocks[number]] if last else next(free)[: prod(sizes)].reshape(sizes)
                _multiply(now.reshape(-1, *come), after.reshape(-1, *to), tiles)
                now = after
            finite[number] = seen and is_finite(now)

        def call() -> None:
            threads.run(piece, len(blocks))
            if not finite.all():
                otherwise()

        return [*first_call, call]

    return with_posts(work, bind, needed)


def is_finite(data: Array) -> bool:
    """Whether all data are finite, and their sum."""
    return bool(np.isfinite(np.einsum("i->", data.reshape(-1))))


Tile = tuple[slice, slice, Any]
"""Elements before, elements after, and the part of the matrix between them that is not 0."""


def _tiles(matrix: Any, *, transposed: bool) -> list[Tile]:
    """The matrix in parts of a few elements after, which need few of those before."""
    tiles = []
    for begin in range(0, matrix.shape[1], TILE):
        after = slice(begin, min(begin + TILE, matrix.shape[1]))
        used = np.flatnonzero(matrix[:, after].any(axis=1))
        before = slice(int(used[0]), int(used[-1]) + 1) if used.size else slice(0, 1)
        part = matrix[before, after]
        tiles.append((before, after, np.ascontiguousarray(part.T if transposed else part)))
    return tiles


def _step(matrix: Any, shape: Sequence[int], axis: int) -> tuple[tuple[int, ...], tuple[int, ...], list[Tile]]:
    """How an axis of arrays of a shape is multiplied: as `[before, inner]` and `[after, inner]`, and the tiles.

    Where few elements lie behind the axis, it is made one with them, so that BLAS has longer rows: `[before * inner]`.
    """
    inner = prod(shape[axis + 1 :])
    if 1 < inner <= MAX_JOINED and matrix.size * inner * inner <= MAX_PROBED:
        matrix, inner = np.kron(matrix, np.eye(inner, dtype=np.float32)), 1
    before, after = matrix.shape
    if inner == 1:
        return (before,), (after,), _tiles(matrix, transposed=False)
    return (before, inner), (after, inner), _tiles(matrix, transposed=True)


def _multiply(source: Array, target: Array, tiles: list[Tile]) -> None:
    """Products of `[outer, before]` or `[outer, before, inner]`."""
    for before, after, part in tiles:
        if source.ndim == 2:
            np.matmul(source[:, before], part, target[:, after])
        else:
            np.matmul(part, source[:, before], target[:, after])


COMPILERS = dict.fromkeys(("Interpolate-4", "Interpolate-11"), interpolate)
