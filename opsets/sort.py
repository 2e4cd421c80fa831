"""Sort ops: order among elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    INT,
    INTEGER,
    NUMERIC,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Op,
    Output,
    Shapes,
    choice,
    every,
    numpy_dtype,
    op,
    shape_text,
)

TOP_K_ATTRS = (
    Attr("axis", INT),
    Attr("mode", choice("min", "max")),
    Attr("sort", choice("value", "index", "none")),
    Attr("index_element_type", choice("i32", "i64"), "i32"),
)
TOP_K_DOC = """The k largest or smallest elements along an axis, and their indices.

Constraints:
    C1: axis lies in [-r, r), r the rank of data, which is 1 or more.
    C2: k lies in [1, the size of data along axis].

Of equal elements the one with the lower index comes first and is taken first, whatever the mode and `stable`. NaN is
smaller than any number, as the page of TopK-3 says: last for `max`, first for `min`. sort=none is sort=value.

Deviation: the place of NaN in OpenVINO depends on the order of the elements, and so does that of sort=none.

Source: sort/top-k-{version}.rst

>>> values, indices = op(np.array([5, 3, 1, 2, 5, 5]), np.array(4), axis=0, mode="min", sort="index"{stable})
>>> values.tolist(), indices.tolist()
([5, 3, 1, 2], [0, 1, 2, 3])
"""


def _top_k(data: Array, k: Array, *, axis: int, mode: str, sort: str, index_element_type: str) -> Any:
    count = int(k)
    ranks = np.moveaxis(_ranks(data, mode), axis, -1)
    if count == 1:
        indices = ranks.argmin(-1, keepdims=True)
    else:
        indices = _first(ranks, count)
        if sort != "index":
            order = np.argsort(np.take_along_axis(ranks, indices, -1), -1, kind="stable")
            indices = np.take_along_axis(indices, order, -1)
    indices = np.moveaxis(indices, -1, axis)
    return np.take_along_axis(data, indices, axis), indices.astype(numpy_dtype(index_element_type))


def _top_k_stable(
    data: Array, k: Array, *, axis: int, mode: str, sort: str, index_element_type: str, stable: bool
) -> Any:
    return _top_k(data, k, axis=axis, mode=mode, sort=sort, index_element_type=index_element_type)


def _ranks(data: Array, mode: str) -> Array:
    """Integers in the order of the data, the element wanted first being the lowest."""
    ranks = data
    if data.dtype.kind not in "iu":
        numbers = data.astype(np.float64 if data.dtype == np.float64 else np.float32) + 0  # -0 becomes 0
        ranks = numbers.view(f"i{numbers.itemsize}")
        limits = np.iinfo(ranks.dtype)
        ranks = np.where(ranks < 0, ranks ^ limits.max, ranks)  # negative numbers are stored as sign and magnitude
        ranks[np.isnan(numbers)] = limits.min
    return ~ranks if mode == "max" else ranks


def _first(ranks: Array, count: int) -> Array:
    """The indices of the `count` lowest elements along the last axis, ascending; of equal ones the first are taken."""
    worst = np.partition(ranks, count - 1, -1)[..., count - 1 : count]
    better, equal = ranks < worst, ranks == worst
    room = count - np.count_nonzero(better, -1, keepdims=True)
    taken = better | (equal & (np.cumsum(equal, -1) <= room))
    return np.nonzero(taken)[-1].reshape(*ranks.shape[:-1], count)


def _top_k_shapes(node: Node) -> Shapes:
    k = node.size("k")
    node.require("C2", k >= 1, f"`k` is {k}, expected 1 or more", "k")
    data = node.shape("data")
    if not data:
        node.fail("C1", "`data` is a scalar, which has no axis", "data")
    axis = node.axis("C1", node.attrs["axis"], len(data))
    size = data[axis]
    node.require("C2", k <= size, f"`k` is {k}, above {size}, the size of `data` along axis {axis}", "k")
    if isinstance(k, Dim):
        k = k.within(1, size.high if isinstance(size, Dim) else size)
    return {"shape": (*data[:axis], k, *data[axis + 1 :])}


def _declared(version: int, k_types: frozenset[str], stable: bool = False) -> Op:
    return Op(
        f"TopK-{version}",
        _top_k_stable if stable else _top_k,
        inputs=[Input("data", "T", "..."), Input("k", "T_K", "[]")],
        outputs=[Output("values", "T", "[*shape]"), Output("indices", "index_element_type", "[*shape]")],
        attrs=(*TOP_K_ATTRS, Attr("stable", BOOL, False)) if stable else TOP_K_ATTRS,
        types={"T": NUMERIC, "T_K": k_types},
        rule=_top_k_shapes,
        doc=TOP_K_DOC.format(version=version, stable=", stable=True" if stable else ""),
    )


top_k_1 = _declared(1, frozenset({"i8", "i32", "i64"}))  # the page is silent; OpenVINO takes no others
top_k_3 = _declared(3, INTEGER)
top_k_11 = _declared(11, INTEGER, stable=True)


@op(
    "SearchSorted-15",
    types={"T": NUMERIC},
    inputs=[Input("sorted", "T", "[size] | [*batch, size]"), Input("values", "T", "[*values]")],
    outputs=[Output("indices", "output_type", "[*values]")],
    attrs=[Attr("right_mode", BOOL, False), Attr("output_type", choice("i64", "i32"), "i64")],
)
def search_sorted(sorted: Array, values: Array, *, right_mode: bool, output_type: str) -> Any:
    """Where each value would go into its sorted row: before equal elements, or behind them with right_mode.

    The attribute is `right` on the page, `right_mode` in files; `output_type` is in files only. One row serves
    values of any shape. Rows that do not rise, and NaN, give what a binary search happens on.

    Constraints:
        C1: sorted is one row, or has the dimensions of values but for the last.

    Source: sort/search-sorted-15.rst

    >>> op(np.array([1, 3, 3, 7]), np.array([3, 8]), right_mode=True).tolist()
    [3, 4]
    """
    if sorted.ndim == 1:
        found = _insertion(sorted, values, right_mode)
    else:
        count = math.prod(values.shape[:-1])
        rows, wanted = sorted.reshape(count, -1 if sorted.size else 0), values.reshape(count, values.shape[-1])
        found = np.empty(wanted.shape, np.int64)
        for row, some, places in zip(rows, wanted, found, strict=True):
            places[...] = _insertion(row, some, right_mode)
    return found.astype(numpy_dtype(output_type)).reshape(values.shape)


def _insertion(row: Array, values: Array, right: bool) -> Array:
    if row.dtype == numpy_dtype("bf16"):  # numpy has no search for it
        row, values = row.astype(np.float32), values.astype(np.float32)
    return np.asarray(np.searchsorted(row, values, "right" if right else "left"))


@search_sorted.shapes
def _(node: Node) -> None:
    rows, values = node.shape("sorted"), node.shape("values")
    if len(rows) == 1:
        return
    fits = len(rows) == len(values) and every(a == b for a, b in zip(rows[:-1], values[:-1], strict=True))
    node.require("C1", fits, f"`sorted` is {shape_text(rows)} and `values` is {shape_text(values)}", "sorted")
