"""Sparse ops: rows of embedding tables pooled, and sparse matrices in coordinate form."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import (
    INDEX,
    NUMERIC,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Output,
    Shapes,
    Size,
    choice,
    fresh,
    largest,
    op,
)

from ._precision import accumulator

EMB_TABLE = Input("emb_table", "T", "[num_emb, *emb_dims]")
REDUCTION = Attr("reduction", choice("sum", "mean"), "sum")


@op(
    "SparseFillEmptyRows-16",
    types={"T": NUMERIC, "T_IDX": INDEX},
    inputs=[
        Input("values", "T", "[M]"),
        Input("dense_shape", "T_IDX", "[2]"),
        Input("indices", "T_IDX", "[M, 2]"),
        Input("default_value", "T", "[]"),
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
        C2: each row in indices lies in [0, dense_shape[0]). (OpenVINO drops the values of others where they are not
            constant.)
        C3: each column in indices lies in [0, dense_shape[1]).

    The example of the page declares default_value with `<dim>0</dim>`, a tensor without elements; its text and
    OpenVINO say scalar. A row is filled also where dense_shape has no column 0.

    Source: sparse/fill-empty-rows-16.rst

    >>> indices, filled, empty = op(np.array([1, 3]), np.array([3, 3]), np.array([[0, 0], [2, 2]]), np.array(42))
    >>> indices.tolist(), filled.tolist(), empty.tolist()
    ([[0, 0], [1, 0], [2, 2]], [1, 42, 3], [False, True, False])
    """
    empty = np.bincount(indices[:, 0], minlength=int(dense_shape[0])) == 0
    rows = np.flatnonzero(empty).astype(indices.dtype)
    places = np.concatenate([indices, np.stack([rows, np.zeros_like(rows)], 1)])
    filled = np.concatenate([values, np.full(len(rows), default_value, values.dtype)])
    order = _row_major_order(places, dense_shape)
    return places[order], filled[order], empty


@sparse_fill_empty_rows.shapes
def _(node: Node) -> Shapes:
    rows, columns = node.sizes("dense_shape") or (fresh(None), fresh(None))
    for number, size in enumerate((rows, columns)):
        node.require("C1", size >= 0, f"`dense_shape[{number}]` is {size}, expected 0 or more", "dense_shape")
    rows = rows.within(0) if isinstance(rows, Dim) else rows
    indices = node.value("indices")
    if indices is not None:
        _check_places("C2", node, indices, 0, rows)
        _check_places("C3", node, indices, 1, columns)
        given = len(indices)
        filled = given + rows - _distinct(indices[:, 0])
        return {"M'": filled.within(given) if isinstance(filled, Dim) else filled, "rows": rows}
    given = node.dims.get("M", fresh())
    least, most = largest(given, rows), given + rows
    if (least == most) is True:
        return {"M'": most, "rows": rows}
    low = least.low if isinstance(least, Dim) else least
    high = most.high if isinstance(most, Dim) else most
    return {"M'": fresh(low, high), "rows": rows}


def _row_major_order(places: Array, dense_shape: Array) -> Array:
    """The order of places in a matrix; equal ones keep theirs."""
    rows, columns = places[:, 0].astype(np.int64), places[:, 1]
    height, width = dense_shape.tolist()
    if height * width >= 2**63:
        return np.lexsort((columns, rows))
    return np.argsort(rows * width + columns, kind="stable")


def _check_places(label: str, node: Node, indices: Array, axis: int, size: Size) -> None:
    """Require column `axis` of `indices` to lie in [0, size)."""
    places = indices[:, axis]
    high = size.high if isinstance(size, Dim) else size
    if places.size == 0 or (places.min() >= 0 and (high is None or places.max() < high)):
        return
    at = int(np.argmax((places < 0) | (False if high is None else places >= high)))
    what = ("row", "column")[axis]
    message = f"`indices[{at}, {axis}]`, a {what}, is {places[at]}, outside [0, {'?' if high is None else high})"
    node.fail(label, message, "indices")


def _distinct(numbers: Array) -> int:
    """How many different numbers there are."""
    if (numbers[1:] < numbers[:-1]).any():
        numbers = np.sort(numbers)
    return int(np.count_nonzero(numbers[1:] != numbers[:-1])) + min(len(numbers), 1)


@op(
    "EmbeddingSegmentsSum-3",
    types={"T": NUMERIC, "T_IND": INDEX},
    inputs=[
        EMB_TABLE,
        Input("indices", "T_IND", "[num_indices]"),
        Input("segment_ids", "T_IND", "[num_indices]"),
        Input("num_segments", "T_IND", "[]"),
        Input("default_index", "T_IND", "[]", optional=True),
        Input("per_sample_weights", "T", "[num_indices]", optional=True),
    ],
    outputs=[Output("segments", "T", "[num_segments, *emb_dims]")],
)
def embedding_segments_sum(
    emb_table: Array,
    indices: Array,
    segment_ids: Array,
    num_segments: Array,
    default_index: Array | None = None,
    per_sample_weights: Array | None = None,
) -> Any:
    """Sum the weighted rows of each segment; an empty segment is the default row, unweighted, or zeros.

    Constraints:
        C1: num_segments is 0 or more.
        C2: segment_ids lie in [0, num_segments); they should be sorted: others are computed, with a warning.
        C3: indices lie in [0, num_emb).
        C4: default_index lies in [0, num_emb), or is -1, which stands for zeros.
        C5: per_sample_weights, input 5, need a default_index, input 4, before them; -1 stands for none.

    Deviation: the page has no default_index of -1, but converters write it and OpenVINO takes it; OpenVINO does not
    check indices. Sums of f16 and bf16 are computed in f32 and rounded once; sums of integers wrap around.

    Source: sparse/embedding-segments-sum-3.rst

    >>> table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> op(table, np.array([0, 2, 1]), np.array([0, 0, 2]), np.array(3)).tolist()
    [[6.0, 8.0], [0.0, 0.0], [3.0, 4.0]]
    """
    order = np.argsort(segment_ids, kind="stable")
    weights = None if per_sample_weights is None else per_sample_weights[order]
    counts = np.bincount(segment_ids, minlength=int(num_segments))
    return _pooled(emb_table, indices[order], counts, default_index, weights, "sum")


@embedding_segments_sum.shapes
def _(node: Node) -> Shapes:
    _check_weights_have_a_default("C5", node)
    count = node.size("num_segments")
    node.require("C1", count >= 0, f"`num_segments` is {count}, expected 0 or more", "num_segments")
    node.within("C2", "segment_ids", 0, count)
    ids = node.value("segment_ids")
    if ids is not None and (falls := np.flatnonzero(ids[1:] < ids[:-1])).size:
        at = int(falls[0]) + 1
        node.warn(f"`segment_ids[{at}]` is {ids[at]}, below {ids[at - 1]} before it; they should be sorted")
    _check_rows("C3", "C4", node)
    return {"num_segments": count}


@op(
    "EmbeddingBagOffsetsSum-3",
    types={"T": NUMERIC, "T_IND": INDEX},
    inputs=[
        EMB_TABLE,
        Input("indices", "T_IND", "[num_indices]"),
        Input("offsets", "T_IND", "[batch]"),
        Input("default_index", "T_IND", "[]", optional=True),
        Input("per_sample_weights", "T", "[num_indices]", optional=True),
    ],
    outputs=[Output("bags", "T", "[batch, *emb_dims]")],
)
def embedding_bag_offsets_sum(
    emb_table: Array,
    indices: Array,
    offsets: Array,
    default_index: Array | None = None,
    per_sample_weights: Array | None = None,
) -> Any:
    """Sum the weighted rows of each bag, whose indices begin at its offset; an empty one is the default row, or zeros.

    Indices before the first offset are in no bag.

    Constraints:
        C1: offsets lie in [0, num_indices]; one that is num_indices begins an empty bag.
        C2: offsets do not fall.
        C3: indices lie in [0, num_emb).
        C4: default_index lies in [0, num_emb), or is -1, which stands for zeros.
        C5: per_sample_weights, input 4, need a default_index, input 3, before them; -1 stands for none.

    Deviation: OpenVINO's reference refuses an empty last bag, and its CPU plugin reads outside memory there.
    Sums of f16 and bf16 are computed in f32 and rounded once; sums of integers wrap around.

    Source: sparse/embedding-bag-offsets-sum-3.rst

    >>> table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> op(table, np.array([0, 2, 1]), np.array([0, 2, 2]), np.array(2)).tolist()
    [[6.0, 8.0], [5.0, 6.0], [3.0, 4.0]]
    """
    return _pooled_from(emb_table, indices, offsets, default_index, per_sample_weights, "sum")


@embedding_bag_offsets_sum.shapes
def _(node: Node) -> None:
    _check_offsets(node)


@op("EmbeddingBagOffsets-15", of=embedding_bag_offsets_sum, attrs=[REDUCTION])
def embedding_bag_offsets(
    emb_table: Array,
    indices: Array,
    offsets: Array,
    default_index: Array | None = None,
    per_sample_weights: Array | None = None,
    *,
    reduction: str,
) -> Any:
    """Pool the rows of each bag, whose indices begin at its offset; an empty one is the default row, or zeros.

    Indices before the first offset are in no bag.

    Constraints:
        C1: offsets lie in [0, num_indices]; one that is num_indices begins an empty bag.
        C2: offsets do not fall.
        C3: indices lie in [0, num_emb).
        C4: default_index lies in [0, num_emb), or is -1, which stands for zeros.
        C5: per_sample_weights, input 4, need a default_index, input 3, before them; -1 stands for none.
        C6: per_sample_weights are only for the reduction `sum`.

    Deviation: OpenVINO's reference refuses an empty last bag, and its CPU plugin reads outside memory there.
    f16 and bf16 are computed in f32 and rounded once; sums of integers wrap around, their mean is exact and truncated.

    Source: sparse/embedding-bag-offsets-15.rst

    >>> table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> op(table, np.array([0, 2, 1]), np.array([0, 2, 2]), reduction="mean").tolist()
    [[3.0, 4.0], [0.0, 0.0], [3.0, 4.0]]
    """
    return _pooled_from(emb_table, indices, offsets, default_index, per_sample_weights, reduction)


@embedding_bag_offsets.shapes
def _(node: Node) -> None:
    _check_reduction("C6", node)
    _check_offsets(node)


embedding_bag_offsets.lowers("EmbeddingBagOffsetsSum-3", natural=["default_index"], reduction="sum")


@op(
    "EmbeddingBagPackedSum-3",
    types={"T": NUMERIC, "T_IND": INDEX},
    inputs=[
        EMB_TABLE,
        Input("indices", "T_IND", "[batch, indices_per_bag]"),
        Input("per_sample_weights", "T", "[batch, indices_per_bag]", optional=True),
    ],
    outputs=[Output("bags", "T", "[batch, *emb_dims]")],
)
def embedding_bag_packed_sum(emb_table: Array, indices: Array, per_sample_weights: Array | None = None) -> Any:
    """Sum the weighted rows of each bag, which is a row of indices; without any, the sum is zeros.

    Constraints:
        C1: indices lie in [0, num_emb).

    Sums of f16 and bf16 are computed in f32 and rounded once; sums of integers wrap around.

    Source: sparse/embedding-bag-packed-sum-3.rst

    >>> op(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([[0, 2], [1, 1]])).tolist()
    [[6.0, 8.0], [6.0, 8.0]]
    """
    return _pooled_rows(emb_table, indices, per_sample_weights, "sum")


@embedding_bag_packed_sum.shapes
def _(node: Node) -> None:
    node.within("C1", "indices", 0, _size(node, "num_emb"))


@op("EmbeddingBagPacked-15", of=embedding_bag_packed_sum, attrs=[REDUCTION])
def embedding_bag_packed(
    emb_table: Array, indices: Array, per_sample_weights: Array | None = None, *, reduction: str
) -> Any:
    """Pool the rows of each bag, which is a row of indices; without any, the result is zeros.

    Constraints:
        C1: indices lie in [0, num_emb).
        C2: per_sample_weights are only for the reduction `sum`.

    f16 and bf16 are computed in f32 and rounded once; sums of integers wrap around, their mean is exact and truncated.

    Source: sparse/embedding-bag-packed-15.rst

    >>> op(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([[0, 2], [1, 1]]), reduction="mean").tolist()
    [[3.0, 4.0], [3.0, 4.0]]
    """
    return _pooled_rows(emb_table, indices, per_sample_weights, reduction)


@embedding_bag_packed.shapes
def _(node: Node) -> None:
    _check_reduction("C2", node)
    node.within("C1", "indices", 0, _size(node, "num_emb"))


embedding_bag_packed.lowers("EmbeddingBagPackedSum-3", reduction="sum")


def _pooled_from(
    emb_table: Array,
    indices: Array,
    offsets: Array,
    default_index: Array | None,
    weights: Array | None,
    reduction: str,
) -> Array:
    """The rows of bags that begin at `offsets` in the indices."""
    first = int(offsets[0]) if len(offsets) else len(indices)
    counts = np.diff(offsets, append=len(indices))
    return _pooled(
        emb_table, indices[first:], counts, default_index, None if weights is None else weights[first:], reduction
    )


def _pooled_rows(emb_table: Array, indices: Array, weights: Array | None, reduction: str) -> Array:
    """The rows of bags that are rows of the indices, [batch, indices_per_bag]."""
    counts = np.full(len(indices), indices.shape[1])
    return _pooled(emb_table, indices.ravel(), counts, None, None if weights is None else weights.ravel(), reduction)


def _pooled(
    emb_table: Array,
    indices: Array,
    counts: Array,
    default_index: Array | None,
    weights: Array | None,
    reduction: str,
) -> Array:
    """The sum or mean of the rows of each bag; bag after bag lies in the indices, and has `counts` of them."""
    wide = accumulator(emb_table.dtype, reduction)
    rows = emb_table[indices].astype(wide, copy=False)
    if weights is not None:
        rows *= weights.astype(wide, copy=False).reshape(-1, *[1] * (rows.ndim - 1))
    bags = np.zeros((len(counts), *emb_table.shape[1:]), wide)
    filled = counts > 0
    if filled.any():
        starts = np.cumsum(counts) - counts
        bags[filled] = np.add.reduceat(rows, starts[filled], 0, wide)
    if reduction == "mean":
        divisors = np.maximum(counts, 1).astype(wide).reshape(-1, *[1] * (rows.ndim - 1))
        bags = _truncated_quotient(bags, divisors) if wide.kind in "iu" else bags / divisors
    if default_index is not None and default_index >= 0:
        bags[~filled] = emb_table[default_index]
    return bags.astype(emb_table.dtype, copy=False)


def _truncated_quotient(a: Array, b: Array) -> Array:
    """a / b of integers, b positive, without its fraction."""
    quotient = a // b
    return quotient + ((a < 0) & (quotient * b != a))  # type: ignore[no-any-return]


def _check_offsets(node: Node) -> None:
    _check_weights_have_a_default("C5", node)
    num_indices = _size(node, "num_indices")
    node.within("C1", "offsets", 0, num_indices + 1)
    offsets = node.value("offsets")
    if offsets is not None and (offsets[1:] < offsets[:-1]).any():
        at = int(np.argmax(offsets[1:] < offsets[:-1])) + 1
        message = f"`offsets[{at}]` is {offsets[at]}, below {offsets[at - 1]} before it"
        node.fail("C2", message, "offsets")
    _check_rows("C3", "C4", node)


def _size(node: Node, name: str) -> Size:
    found = node.dims.get(name)
    return fresh() if found is None else found


def _check_rows(indices_label: str, default_label: str, node: Node) -> None:
    num_emb = _size(node, "num_emb")
    node.within(indices_label, "indices", 0, num_emb)
    node.within(default_label, "default_index", -1, num_emb)


def _check_weights_have_a_default(label: str, node: Node) -> None:
    if node.inputs["per_sample_weights"] is not None and node.inputs["default_index"] is None:
        names = [port.name for port in node.op.inputs]
        weights, default = names.index("per_sample_weights"), names.index("default_index")
        message = (
            f"`per_sample_weights` is input {weights}, but `default_index`, input {default}, is not connected; "
            "it cannot be left out, and -1 stands for none"
        )
        node.fail(label, message, "per_sample_weights", about=["default_index"])


def _check_reduction(label: str, node: Node) -> None:
    if node.attrs["reduction"] == "mean" and node.inputs["per_sample_weights"] is not None:
        node.fail(
            label,
            "`per_sample_weights` is connected, but `reduction` is mean",
            "per_sample_weights",
            about=["reduction"],
        )
