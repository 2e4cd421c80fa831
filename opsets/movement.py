"""Data movement ops: the same elements in other places."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import ANY, INDEX, INT, Array, Attr, Input, Node, Output, Shapes, op

GATHER_INPUTS = (
    Input("data", "T", "[*data]"),
    Input("indices", "T_IND", "[*indices]"),
    Input("axis", "T_AXIS", "[] | [1]"),
)


@op(
    "Gather-8",
    types={"T": ANY, "T_IND": INDEX, "T_AXIS": INDEX},
    inputs=GATHER_INPUTS,
    outputs=[Output("output", "T", "[*output]")],
    attrs=[Attr("batch_dims", INT, 0)],
    symbolic=True,
)
def gather(data: Array, indices: Array, axis: Array, *, batch_dims: int = 0) -> Any:
    """Take slices of the data along an axis. Negative indices count from the end; those outside give zeros.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: batch_dims lies in [-q, min(q, r)], q the rank of indices, and is not above axis.
        C3: the first batch_dims dimensions of data and indices are equal.

    Source: movement/gather-8.rst

    >>> op(np.array([1, 2, 3, 4, 5]), np.array([0, 0, -1]), np.array(0)).tolist()
    [1, 1, 5]
    """
    along = int(axis.item()) % data.ndim
    batch = batch_dims % indices.ndim if batch_dims < 0 else batch_dims
    size = data.shape[along]
    inside = (indices >= -size) & (indices < size)
    taken = _take(data, np.where(inside, indices, 0) % max(size, 1), along, batch)
    if not inside.all():
        wrong = ~inside.reshape(*indices.shape[:batch], *[1] * (along - batch), *indices.shape[batch:], *[1] * (data.ndim - along - 1))
        taken = np.where(wrong, data.dtype.type(), taken)
    return taken


@gather.shapes
def _(node: Node) -> Shapes:
    data, indices = node.shape("data"), node.shape("indices")
    axis = node.value("axis")
    if axis is None:
        return {}
    along = node.axis("C1", int(axis.item()), len(data))
    batch = node.attrs["batch_dims"]
    if not -len(indices) <= batch <= min(len(indices), len(data), along):
        node.fail("C2", f"`batch_dims` is {batch} for data of rank {len(data)}, indices of rank {len(indices)} and axis {along}")
    batch %= max(len(indices), 1)
    for number, (a, b) in enumerate(zip(data[:batch], indices[:batch], strict=True)):
        node.require("C3", a == b, f"dimension {number} is {a} in `data`, but {b} in `indices`")
    return {"output": (*data[:along], *indices[batch:], *data[along + 1 :])}
