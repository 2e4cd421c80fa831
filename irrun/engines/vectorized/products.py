"""Products of matrices: a large one cut into blocks for the threads, or a batch of small ones shared among them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import broadcast_strides, matrix_of, merged, order_of, reshaped_strides
from irrun.engines.extents import view
from irrun.engines.memory import ALIGNMENT, ITEM
from irrun.engines.picking import picks_of
from irrun.engines.threads import MEMORY_SPEED, PRODUCT_SPEED, Threads, cuts
from irrun.engines.vectorized.posts import Posts, posts_of
from irrun.engines.work import LONGEST_SUM, Arrays, Call, Compiled, Operand, Work, chain
from irrun.spec.op import Array

FEW, FEW_OF_A_VECTOR = 200_000, 9_000
"""Multiplications that OpenBLAS does on one thread of its own accord: there is no need to hold it to that."""

TILE = 16
"""Columns that a block has a multiple of: f32 in the widest vector."""

Place = tuple[tuple[int, ...], tuple[int, ...]]
"""Shape, and strides in bytes, of a view."""


def compile_matmul(work: Work, threads: Threads) -> Compiled | None:
    """MatMul-1 of f32: [*batch, rows, inner] x [*batch, inner, columns], whose batches are broadcast."""
    a, b = work.required(2)
    weights = b.value if b.value is not None and not b.value.flags.aligned else None
    if any(tensor.type != "f32" for tensor in (a, b, work.outputs[0])):
        return None
    a = matrix_of(a, transposed=work.attrs["transpose_a"], row=True)
    b = matrix_of(b, transposed=work.attrs["transpose_b"], row=False)
    places = (a.shape, a.strides), (b.shape, b.strides)
    if a.shape[-1] > LONGEST_SUM:
        return None
    for left, right in (_merged(*places), places):  # posts whose operands vary along a batch may need its axes
        shape = (*np.broadcast_shapes(left[0][:-2], right[0][:-2]), left[0][-2], right[0][-1])
        posts = posts_of(work, shape)
        if posts is not None:
            return _compiled(left, right, shape, posts, threads, weights)
    return None


def compile_picked(work: Work, threads: Threads) -> Compiled | None:
    """PickedProduct-0 of f32: each product by one thread, which goes over its matrix once."""
    picks, weights = picks_of(work), work.required(2)[1]
    if picks is None or weights.compressed is not None or picks.given[-1] > LONGEST_SUM:
        return None
    count = prod(work.required(3)[2].shape)
    pieces = cuts(count, _wanted_pieces((count, *picks.made), picks.given[-1], threads))

    def bind(inputs: Arrays, outputs: Sequence[Any], _: Any) -> Call:
        matrices = inputs[1].swapaxes(1, 2) if work.attrs["transposed"] else inputs[1]
        nothing = picks.nothing()

        def call() -> None:
            sources, targets, places = picks.placed(inputs, outputs)

            def some(piece: int, _: int) -> None:
                for row in range(pieces[piece].start, pieces[piece].stop):
                    number = places[row]
                    np.matmul(sources[row], nothing if number < 0 else matrices[number], targets[row])

            threads.run(some, len(pieces))

        return call

    return Compiled(bind)


COMPILERS = {"MatMul-1": compile_matmul, "PickedProduct-0": compile_picked}


def _compiled(
    left: Place, right: Place, shape: tuple[int, ...], posts: Posts, threads: Threads, weights: Any
) -> Compiled:
    """Multiply matrices that lie as given, into an output that is seen as `shape`; `weights` are the right one where
    these lie at an address that is no multiple of their elements' size."""
    order = None if weights is None else order_of(Operand("f32", *right))
    taken = frozenset(() if order is None else {1})
    copied = [not direct(left), bool(taken) or not direct(right)]
    sizes = [prod(place[0]) if copy else 0 for place, copy in zip((left, right), copied, strict=True)]
    pieces = pieces_of(shape, left[0][-1], threads)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        output = outputs[0].reshape(shape)
        first: list[Call] = []
        matrices = []
        start = 0
        for number, (place, size) in enumerate(zip((left, right), sizes, strict=True)):
            own = scratch[start : start + size * ITEM] if size else None
            start += size * ITEM
            if own is None:
                matrix = view(inputs[number], *place)
            elif number in taken:
                first.append(_bring(view(weights, *place).transpose(order), own, threads))
                matrix = view(own.view(np.float32), *place)
            else:
                matrix = own.view(np.float32).reshape(place[0])
                first.append(partial(np.copyto, matrix, view(inputs[number], *place)))
            matrices.append(np.broadcast_to(matrix, (*shape[:-2], *place[0][-2:])))
        on = posts.bind(inputs, output)
        calls = []
        for piece in pieces:
            *batch, rows, columns = piece
            parts = matrices[0][(*batch, rows)], matrices[1][(*batch, slice(None), columns)]
            calls.append(chain([partial(np.matmul, *parts, output[piece]), *posts.within(on, piece)]))
        few = prod(shape[-2:]) * left[0][-1] < (FEW_OF_A_VECTOR if 1 in shape[-2:] else FEW)
        return chain([*first, calls[0] if few and len(calls) == 1 else threads.call(calls)])

    return Compiled(bind, sum(sizes) * ITEM, taken=taken)


def _bring(dense: Any, room: Array, threads: Threads) -> Call:
    """Copy the bytes of weights that lie in C order; no two threads write to one line of the cache."""
    source = dense.reshape(-1).view(np.uint8)
    pieces = cuts(room.size, threads.pieces(2 * room.size / MEMORY_SPEED), ALIGNMENT)
    return threads.call([partial(np.copyto, room[piece], source[piece]) for piece in pieces])


def _merged(left: Place, right: Place) -> tuple[Place, Place]:
    """The same product with fewer axes: a batch that meets one matrix becomes rows, and batch axes become one."""
    (a, a_strides), (b, b_strides) = left, right
    if prod(b[:-2]) == 1:
        rows = (prod(a[:-1]), a[-1])
        strides = reshaped_strides(a, a_strides, rows)
        if strides is not None:
            return (rows, strides), (b[-2:], b_strides[-2:])
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    parts = [Operand("f32", place[0][:-2], place[1][:-2]) for place in (left, right)]
    sizes, (first, second) = merged(batch, [broadcast_strides(part, batch) for part in parts])
    return (((*sizes, *a[-2:]), (*first, *a_strides[-2:])), ((*sizes, *b[-2:]), (*second, *b_strides[-2:])))


def direct(place: Place) -> bool:
    """Whether BLAS takes the matrices as they lie: with rows or with columns that are dense and do not overlap."""
    (rows, columns), (down, across) = place[0][-2:], place[1][-2:]
    by_rows = (across == ITEM or columns == 1) and (down >= columns * ITEM or rows == 1)
    by_columns = (down == ITEM or rows == 1) and (across >= rows * ITEM or columns == 1)
    return (by_rows or by_columns) and down % ITEM == 0 and across % ITEM == 0


def _wanted_pieces(shape: tuple[int, ...], inner: int, threads: Threads) -> int:
    """Into how many pieces to cut products of this shape, by their operations or by what they read."""
    *batch, rows, columns = shape
    operations = 2.0 * prod(shape) * inner
    bytes_read = ITEM * prod(batch) * inner * (rows + columns)
    return threads.pieces(max(operations / PRODUCT_SPEED, bytes_read / MEMORY_SPEED))


def pieces_of(shape: tuple[int, ...], inner: int, threads: Threads) -> list[tuple[slice, ...]]:
    """Blocks of the result, one for a call of matmul each: cut along a batch, else along columns, else along rows.

    Cutting columns leaves each element of the right matrix, usually the larger one, to one thread, which packs it for
    BLAS; only where there are far more rows it is the other way round.
    """
    *batch, rows, columns = shape
    wanted = _wanted_pieces(shape, inner, threads)
    whole = [slice(0, size) for size in shape]
    axis = max(range(len(batch)), key=batch.__getitem__) if batch else -1
    if not batch or batch[axis] < threads.count:
        axis = len(shape) - (2 if rows >= 4 * columns or columns < 2 * TILE else 1)
    multiple = 1 if axis < len(batch) else TILE
    return [(*whole[:axis], cut, *whole[axis + 1 :]) for cut in cuts(shape[axis], wanted, multiple)]
