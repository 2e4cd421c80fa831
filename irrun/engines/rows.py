"""Rows: products of these with one matrix, of which there are few; few columns that are taken; and short ones that are
put side by side."""

from __future__ import annotations

from math import prod

from irrun.engines.axes import channels_last, dense_strides, is_dense, matrix_of, merged, reshaped_strides
from irrun.engines.memory import ITEM
from irrun.engines.work import Layout, Operand, Work
from irrun.records import NamedTuple
from irrun.spec.dtypes import numpy_dtype

FEW_ROWS = range(1, 25)
"""Rows that it pays to have code of our own for; more are a product like any other."""

VERY_FEW_ROWS, NARROW_STEP = range(1, 9), 32
"""Rows of bf16 that it does for, over which oneDNN goes with one thread alone, and elements of a column that our code
takes at once."""

MOST_COLUMNS = 8
"""Of rows that others are made of, and of these."""

LEAST_JOINED, MOST_OF_A_STRIP = 1 << 16, 1 << 10
"""Elements from which on rows are joined by code of our own, and bytes of a row for which that has no loop."""

LEAST_COLUMNS = 8
"""Columns of weights from which on it pays to compute 16 at once."""

LEAST_WEIGHTS = 1 << 12
"""Weights for which it pays to load what compiles code."""

MOST_WEIGHTS, MOST_OF_ONE = 1 << 20, 1 << 18
"""Weights up to which it pays, and for one row, as anybody's code goes over many as quickly as memory gives them. They
are laid out for this alone: more rows at other times have them once more."""

SMALL_WEIGHTS, SMALL_ROWS = 1 << 18, 1 << 16
"""Weights, and numbers in rows, that stay in a processor's second cache: our code goes over any number of such rows
about as quickly as oneDNN's, which takes several times as long to make for each number as to compute with it."""


def rows_of(work: Work) -> tuple[int, tuple[int, int], dict[int, Layout | None]] | None:
    """The first input of a product with one matrix as rows: how many, their strides, and what it has to be brought to
    before (`Compiled.wants`); None where that cannot be."""
    left, result = work.required(1)[0], work.outputs[0]
    if left.type != "f32" or result.type != "f32" or left.layout is not None or (len(left.shape) == 1 and work.posts):
        return None
    for operand, wants in ((left, {}), (Operand("f32", left.shape, dense_strides(left.shape)), {0: None})):
        a = matrix_of(operand, transposed=work.attrs["transpose_a"], row=True)
        rows = prod(a.shape[:-1])
        strides = reshaped_strides(a.shape, a.strides, (rows, a.shape[-1]))
        if strides is not None and min(strides) >= 0:
            return rows, (strides[0], strides[1]), dict(wants)
    return None


def columns_of(work: Work) -> tuple[int, ...] | None:
    """The columns that a gather takes of rows of a few, of elements of 4 bytes, where they are constant."""
    if not work.name.startswith("Gather-") or work.posts:
        return None
    (data, indices), axis = work.required(2), work.constant(2)
    given = indices.value
    if axis is None or given is None or given.ndim != 1 or work.attrs.get("batch_dims", 0) or data.layout is not None:
        return None
    rank, places = len(data.shape), [int(place) for place in given[: MOST_COLUMNS + 1]]
    if data.type == "string" or numpy_dtype(data.type).itemsize != ITEM or int(axis.item()) not in (-1, rank - 1):
        return None
    width = data.shape[-1]
    if not 1 < width <= MOST_COLUMNS or not 0 < len(places) <= MOST_COLUMNS:
        return None
    least = -width if work.name == "Gather-8" else 0
    if min(places) < least or max(places) >= width:
        return None
    return tuple(place % width for place in places)


class Strips(NamedTuple):
    """So many `rows` of `size` bytes, which begin `step` bytes after one another and are to be put `apart`."""

    rows: int
    size: int
    step: int
    apart: int


def strips_of(work: Work) -> list[Strips] | None:
    """The channels of each place of the images that a Concat-1 joins, where they come last in all inputs, and are to
    come last in the result; None where that is not so."""
    (result,) = work.outputs
    rank = len(result.shape)
    if rank < 3 or work.attrs["axis"] % rank != 1 or work.posts or result.type == "string":
        return None
    last, item = channels_last(result).strides, numpy_dtype(result.type).itemsize
    found: list[Strips] = []
    for operand in work.inputs:
        if operand is None or operand.layout is not None or 0 in operand.shape or operand.value is not None:
            return None
        ahead = [(own[0], *own[2:]) for own in (operand.shape, operand.strides, last)]
        rows, steps = merged(ahead[0], ahead[1:])
        size = operand.shape[1] * item
        if len(rows) != 1 or operand.shape[1] == 1 or operand.strides[1] != item or not item <= size <= MOST_OF_A_STRIP:
            return None
        if steps[0][0] < size:
            return None
        found.append(Strips(rows[0], size, steps[0][0], steps[1][0]))
    return found


def is_of_few_rows(work: Work) -> bool:
    """Whether a work is the product of few rows of f32 with a constant matrix."""
    if work.name != "MatMul-1" or work.compressed:
        return False
    right = work.required(2)[1]
    if right.value is None or right.type != "f32" or len(right.shape) < 2 or prod(right.shape[:-2]) != 1:
        return False
    columns, size = right.shape[-2 if work.attrs["transpose_b"] else -1], prod(right.shape)
    if columns < LEAST_COLUMNS or not LEAST_WEIGHTS <= size <= MOST_WEIGHTS:
        return False
    found = rows_of(work)
    return found is not None and found[0] in FEW_ROWS and (found[0] > 1 or size <= MOST_OF_ONE)


def is_of_few_narrow_rows(work: Work) -> bool:
    """Whether a work is the product of very few rows of bf16 with a constant matrix of which columns lie one after the
    other, with nothing behind it but a conversion."""
    if work.name != "MatMul-1" or work.compressed or work.attrs["transpose_a"] or not work.attrs["transpose_b"]:
        return False
    left, right = work.required(2)
    if right.value is None or len(right.shape) != 2 or not len(left.shape) > 1 or left.layout is not None:
        return False
    columns, inner = right.shape
    there = left.type == right.type == "bf16" and is_dense(left) and is_dense(right) and right.value.flags.aligned
    if not there or inner % NARROW_STEP or columns < LEAST_COLUMNS or columns * inner < LEAST_WEIGHTS:
        return False
    return prod(left.shape[:-1]) in VERY_FEW_ROWS and [post.name for post in work.posts] in ([], ["Convert-1"])


def is_of_any_rows(work: Work) -> bool:
    """Whether a work is the product of rows of f32, however many, with a small constant matrix of two axes."""
    if work.name != "MatMul-1" or work.compressed or work.attrs["transpose_a"] or None in work.inputs:
        return False
    left, right = work.required(2)
    if right.value is None or len(right.shape) != 2 or len(left.shape) < 2:
        return False
    columns = right.shape[-2 if work.attrs["transpose_b"] else -1]
    small = columns >= LEAST_COLUMNS and LEAST_WEIGHTS <= prod(right.shape) <= SMALL_WEIGHTS
    return small and all(own.type == "f32" for own in (left, right, *work.outputs))
