"""Products of rows with one matrix: how the rows lie, and of which there are few."""

from __future__ import annotations

from math import prod

from irrun.engines.axes import dense_strides, matrix_of, reshaped_strides
from irrun.engines.work import Layout, Operand, Work

FEW_ROWS = range(1, 25)
"""Rows that it pays to have code of our own for; more are a product like any other."""

LEAST_COLUMNS = 8
"""Columns of weights from which on it pays to compute 16 at once."""

LEAST_WEIGHTS = 1 << 12
"""Weights for which it pays to load what compiles code."""

MOST_WEIGHTS, MOST_OF_ONE = 1 << 20, 1 << 18
"""Weights up to which it pays, and for one row, as anybody's code goes over many as quickly as memory gives them. They
are laid out for this alone: more rows at other times have them once more."""


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
