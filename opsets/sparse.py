"""Sparse ops: rows of embedding tables pooled, and sparse matrices in coordinate form."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from irrun.spec import (
    INDEX,
    NUMERIC,
    Array,
    Attr,
    Input,
    Node,
    Output,
    Shapes,
    Size,
    choice,
    fresh,
    largest,
    op,
    product,
)

EMB_TABLE = Input("emb_table", "T", "[num_emb, *emb_dims]")
REDUCTION = Attr("reduction", choice("sum", "mean"), "sum")
OFFSETS_INPUTS = [
    EMB_TABLE,
    Input("indices", "T_IND", "[num_indices]"),
    Input("offsets", "T_IND", "[batch]"),
    Input("default_index", "T_IND", "[]", optional=True),
    Input("per_sample_weights", "T", "[num_indices]", optional=True),
]
PACKED_INPUTS = [
    EMB_TABLE,
    Input("indices", "T_IND", "[batch, indices_per_bag]"),
    Input("per_sample_weights", "T", "[batch, indices_per_bag]", optional=True),
]


@op(
    "SparseFillEmptyRows-16",
    types={"T": NUMERIC, "T_IDX": INDEX},
    inputs=[
        Input("values", "T", "[M]"),
        Input("dense_shape", "T_IDX", "[2]"),
        Input("indices", "T_IDX", "[M, 2]"),
        Input("default_value", "T", "[] | ..."),  # the rule reports any other rank, and says why it occurs
    ],
    outputs=[
        Output("output_indices", "T_IDX", "[M', 2]"),
        Output("output_values", "T", "[M']"),
        Output("empty_row_indicator", "boolean", "[rows]"),
    ],
)
def sparse_fill_empty_rows(values: Array, dense_shape: Array, indices: Array, default_value: Array) -> Any:
    """Give each empty row of a sparse matrix the default value in column 0; the result is in row-major order.

    Elements at the same place keep their order.

    Constraints:
        C1: the sizes in dense_shape are 0 or more.
        C2: each row in indices lies in [0, dense_shape[0]).
        C3: each column in indices lies in [0, dense_shape[1]).

    Deviation: OpenVINO drops the values of rows outside dense_shape where they are not constant.
    The example of the page declares default_value with `<dim>0</dim>`, a tensor without elements; its text and
    OpenVINO say scalar. A row is filled also where dense_shape has no column 0.

    Source: sparse/fill-empty-rows-16.rst

    >>> indices, filled, empty = op(np.array([1, 3]), np.array([3, 3]), np.array([[0, 0], [2, 2]]), np.array(42))
    >>> indices.tolist(), filled.tolist(), empty.tolist()
    ([[0, 0], [1, 0], [2, 2]], [1, 42, 3], [False, True, False])
    """
    rows, columns = indices[:, 0], indices[:, 1]
    if not ((rows[1:] > rows[:-1]) | ((rows[1:] == rows[:-1]) & (columns[1:] >= columns[:-1]))).all():
        order = np.lexsort((columns, rows))
        values, indices = values[order], indices[order]
    counts = np.bincount(rows, minlength=int(dense_shape[0]))
    empty = counts == 0
    ends = np.cumsum(counts + empty)
    filled = ends[empty] - 1
    total = len(values) + len(filled)
    given = np.ones(total, np.bool_)
    given[filled] = False
    output_indices = np.zeros((total, 2), indices.dtype)
    output_indices[given] = indices
    output_indices[filled, 0] = np.flatnonzero(empty)
    output_values = np.full(total, default_value, values.dtype)
    output_values[given] = values
    return output_indices, output_values, empty


@sparse_fill_empty_rows.shapes
def _(node: Node) -> Shapes:
    if node.inputs["default_value"].rank not in (0, None):
        message = (
            f"`default_value` has rank {node.inputs['default_value'].rank}, expected a scalar: a port without <dim> "
            "(the specification's example has <dim>0</dim>, which is a tensor without elements)"
        )
        node.fail("E305", message, "default_value")
    rows, columns = node.sizes("dense_shape") or (fresh(None), fresh(None))
    for number, size in enumerate((rows, columns)):
        node.require("C1", size >= 0, f"`dense_shape[{number}]` is {size}, expected 0 or more", "dense_shape")
    m = node.dims.get("M", fresh())
    indices = node.value("indices")
    if indices is None:
        return {"M'": _between(largest(m, rows), m + rows), "rows": rows}
    _check_places("C2", node, indices[:, 0], 0, rows)
    _check_places("C3", node, indices[:, 1], 1, columns)
    return {"M'": _at_least(len(indices), len(indices) + rows - _distinct(indices[:, 0])), "rows": rows}
