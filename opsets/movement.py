"""Data movement ops: the same elements in other places."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from irrun.spec import (
    ANY,
    BOOL,
    FLOAT,
    INDEX,
    INT,
    INTEGER,
    INTS,
    NUMERIC,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Output,
    Shape,
    Shapes,
    Size,
    Tensor,
    Undecided,
    broadcast,
    choice,
    every,
    fresh,
    largest,
    numpy_dtype,
    op,
    product,
    shape_text,
)

from ._indexing import (
    agreed,
    axis_of,
    check_tuples,
    element_positions,
    gather_nd,
    gather_nd_shape,
    normal_axis,
    scatter,
    take,
    tuple_positions,
)
from ._slices import cut_index, cut_shape, masked, read_cuts, slice_length, strided_parts
from ._window import axes_of, check_lengths, check_windows, framed, patches

NUMBER = ANY - {"string"}
"""What pages of this category call numeric, and mean booleans and packed types with it: elements are only moved."""

ONE = "[] | [1]"
"""The shape of an axis: a scalar, or a tensor of one element."""

GATHER_TYPES = {"T": ANY, "T_IND": INTEGER, "T_AXIS": INTEGER}
GATHER_INPUTS = (
    Input("data", "T", "[*data]"),
    Input("indices", "T_IND", "[*indices]"),
    Input("axis", "T_AXIS", ONE),
)
GATHER_OUTPUTS = (Output("output", "T", "[*output]"),)
BATCH_DIMS = Attr("batch_dims", INT, 0)


@op("Gather-1", types=GATHER_TYPES, inputs=GATHER_INPUTS, outputs=GATHER_OUTPUTS, symbolic=True)
def gather_1(data: Array, indices: Array, axis: Array) -> Any:
    """Take slices of the data along an axis.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: each index lies in [0, s), s the size of the axis.

    Deviation: OpenVINO lets negative indices count from the end, and gives zeros for some that lie outside.

    Source: movement/gather-1.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([1, 0, 0]), np.array(1)).tolist()
    [[2, 1, 1], [4, 3, 3]]
    """
    return take(data, indices.astype(np.intp), int(axis.item()) % data.ndim, 0)


@gather_1.shapes
def _(node: Node) -> Shapes:
    data, indices = node.shape("data"), node.shape("indices")
    axis = axis_of(node, "C1", len(data))
    node.within("C2", "indices", 0, fresh() if axis is None else data[axis])
    return {"output": _gathered(data, indices, axis, 0)}


@op("Gather-7", types=GATHER_TYPES, inputs=GATHER_INPUTS, outputs=GATHER_OUTPUTS, attrs=[BATCH_DIMS], symbolic=True)
def gather_7(data: Array, indices: Array, axis: Array, *, batch_dims: int = 0) -> Any:
    """Take slices of the data along an axis, each batch by indices of its own.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: batch_dims lies in [-q, min(q, r)], q the rank of indices, and is not above axis.
        C3: the first batch_dims dimensions of data and indices are equal.
        C4: each index lies in [0, s), s the size of the axis.

    Deviation: OpenVINO lets negative indices count from the end, and gives zeros for some that lie outside.

    Source: movement/gather-7.rst

    >>> op(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[0, 2], [1, 1]]), np.array(1), batch_dims=1).tolist()
    [[1, 3], [5, 5]]
    """
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    return take(data, indices.astype(np.intp), int(axis.item()) % data.ndim, batch)


@gather_7.shapes
def _(node: Node) -> Shapes:
    data, indices = node.shape("data"), node.shape("indices")
    axis = axis_of(node, "C1", len(data))
    batch = _batch_dims(node, "C2", "C3", axis)
    node.within("C4", "indices", 0, fresh() if axis is None else data[axis])
    return {"output": _gathered(data, indices, axis, batch)}


@op("Gather-8", types=GATHER_TYPES, inputs=GATHER_INPUTS, outputs=GATHER_OUTPUTS, attrs=[BATCH_DIMS], symbolic=True)
def gather_8(data: Array, indices: Array, axis: Array, *, batch_dims: int = 0) -> Any:
    """Take slices of the data along an axis. Negative indices count from the end; those outside give zeros.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: batch_dims lies in [-q, min(q, r)], q the rank of indices, and is not above axis.
        C3: the first batch_dims dimensions of data and indices are equal.

    Source: movement/gather-8.rst

    >>> op(np.array([1, 2, 3, 4, 5]), np.array([0, -1, 9]), np.array(0)).tolist()
    [1, 5, 0]
    """
    along = int(axis.item()) % data.ndim
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    size = data.shape[along]
    places = indices.astype(np.intp)
    inside = (places >= -size) & (places < size)
    if inside.all():
        return take(data, places, along, batch)
    zero = np.zeros((), data.dtype)
    shape = (*data.shape[:along], *indices.shape[batch:], *data.shape[along + 1 :])
    if not size:
        return np.full(shape, zero)
    taken = take(data, np.where(inside, places, 0), along, batch)
    middle = (*indices.shape[:batch], *[1] * (along - batch), *indices.shape[batch:], *[1] * (data.ndim - along - 1))
    return np.where(inside.reshape(middle), taken, zero)


@gather_8.shapes
def _(node: Node) -> Shapes:
    data, indices = node.shape("data"), node.shape("indices")
    axis = axis_of(node, "C1", len(data))
    return {"output": _gathered(data, indices, axis, _batch_dims(node, "C2", "C3", axis))}


def _batch_dims(node: Node, range_label: str, equal_label: str, axis: int | None) -> int:
    """The batch dimensions of a Gather, after checking their number and their sizes."""
    data, indices = node.shape("data"), node.shape("indices")
    given: int = node.attrs["batch_dims"]
    batch = given + len(indices) if given < 0 else given
    most = min(len(data), len(indices), len(data) if axis is None else axis)
    if not 0 <= batch <= most:
        ranks = f"data of rank {len(data)}, indices of rank {len(indices)}"
        node.fail(range_label, f"`batch_dims` is {given} for {ranks}" + ("" if axis is None else f" and axis {axis}"))
    for number, (a, b) in enumerate(zip(data[:batch], indices[:batch], strict=True)):
        node.require(equal_label, a == b, f"dimension {number} is {a} in `data`, but {b} in `indices`")
    return batch


def _gathered(data: Any, indices: Any, axis: int | None, batch: int) -> tuple[Size, ...]:
    common = tuple(map(agreed, data[:batch], indices[:batch]))
    if axis is None:
        return (*common, *(fresh() for _ in range(len(data) - 1 + len(indices) - 2 * batch)))
    return (*common, *data[batch:axis], *indices[batch:], *data[axis + 1 :])


@op(
    "GatherElements-6",
    types={"T": ANY, "T_IND": INDEX},
    inputs=[Input("data", "T", "[n, *data]"), Input("indices", "T_IND", "[m, *indices]")],
    outputs=[Output("output", "T", "[*output]")],
    attrs=[Attr("axis", INT)],
    symbolic=True,
)
def gather_elements(data: Array, indices: Array, *, axis: int) -> Any:
    """Take one element of the data for each index, which replaces the coordinate of its place along the axis.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: the rank of indices is r.
        C3: data and indices have the same dimensions except along the axis.
        C4: each index lies in [0, s), s the size of the axis.

    Deviation: OpenVINO lets negative indices count from the end.

    Source: movement/gather-elements-6.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([[0, 1], [0, 0]]), axis=0).tolist()
    [[1, 4], [1, 2]]
    """
    return np.take_along_axis(data, indices.astype(np.intp), axis)


@gather_elements.shapes
def _(node: Node) -> Shapes:
    data, indices = node.inputs["data"].shape, node.inputs["indices"].shape
    axis = normal_axis(node, "C1", node.attrs["axis"], len(data or node.shape("indices")))
    if data is None or indices is None:
        return {"output": indices}
    if len(indices) != len(data):
        node.fail("C2", f"`indices` has rank {len(indices)}, expected {len(data)}", "indices")
    output = list(indices)
    for number, (a, b) in enumerate(zip(data, indices, strict=True)):
        if number != axis:
            node.require("C3", a == b, f"dimension {number} is {b} in `indices`, but {a} in `data`", "indices")
            output[number] = agreed(a, b)
    node.within("C4", "indices", 0, data[axis])
    return {"output": tuple(output)}


GATHER_ND = {
    "types": {"T": ANY, "T_IND": INTEGER},
    "inputs": [Input("data", "T", "[n, *data]"), Input("indices", "T_IND", "[*places, length]")],
    "outputs": [Output("output", "T", "[*output]")],
    "attrs": [Attr("batch_dims", INT, 0, least=0)],
    "symbolic": True,
}


@op("GatherND-5", **GATHER_ND)
def gather_nd_5(data: Array, indices: Array, *, batch_dims: int = 0) -> Any:
    """Take an element or slice of the data for each tuple of indices; batch dimensions come out as one.

    Constraints:
        C1: batch_dims lies in [0, min(r, q)), r and q the ranks of data and indices.
        C2: the last dimension of indices is r - batch_dims or less.
        C3: the first batch_dims dimensions of data and indices are equal or 1.
        C4: each index lies in [0, s), s the size of its dimension.

    Deviation: OpenVINO wants batch dimensions to be equal, and lets negative indices count from the end.

    Source: movement/gather-nd-5.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([[1], [0]]), batch_dims=1).tolist()
    [2, 3]
    """
    gathered = gather_nd(data, indices, batch_dims)
    if batch_dims < 2:
        return gathered
    return gathered.reshape(prod(gathered.shape[:batch_dims]), *gathered.shape[batch_dims:])


@gather_nd_5.shapes
def _(node: Node) -> Shapes:
    batch = node.attrs["batch_dims"]
    shape = gather_nd_shape(node, ("C1", "C2", "C3", "C4"), negative=False)
    return {"output": (product(shape[:batch]), *shape[batch:]) if batch else shape}


@op("GatherND-8", **GATHER_ND)
def gather_nd_8(data: Array, indices: Array, *, batch_dims: int = 0) -> Any:
    """Take an element or slice of the data for each tuple of indices; negative ones count from the end.

    Constraints:
        C1: batch_dims lies in [0, min(r, q)), r and q the ranks of data and indices.
        C2: the last dimension of indices is r - batch_dims or less.
        C3: the first batch_dims dimensions of data and indices are equal or 1.
        C4: each index lies in [-s, s), s the size of its dimension.

    Deviation: OpenVINO wants batch dimensions to be equal, and gives zeros for indices outside.

    Source: movement/gather-nd-8.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([[0, 0], [-1, 0]])).tolist()
    [1, 3]
    """
    return gather_nd(data, indices, batch_dims)


@gather_nd_8.shapes
def _(node: Node) -> Shapes:
    return {"output": gather_nd_shape(node, ("C1", "C2", "C3", "C4"), negative=True)}


SCATTER_ELEMENTS_INPUTS = (
    Input("data", "T", "[*data]"),
    Input("indices", "T_IND", "[*indices]"),
    Input("updates", "T", "[*indices]"),
    Input("axis", "T_AXIS", ONE),
)


@op(
    "ScatterElementsUpdate-3",
    types={"T": NUMBER, "T_IND": INTEGER, "T_AXIS": INTEGER},
    inputs=SCATTER_ELEMENTS_INPUTS,
    outputs=[Output("output", "T", "[*data]")],
    symbolic=True,
)
def scatter_elements_update_3(data: Array, indices: Array, updates: Array, axis: Array) -> Any:
    """Copy the data and put each update where its index says: it replaces the coordinate along the axis.

    Where several updates go to one place, the last one in row-major order wins; the specification leaves it open.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: the rank of indices and updates is r.
        C3: no dimension of indices is larger than that of data.
        C4: each index lies in [0, s), s the size of the axis.

    Deviation: OpenVINO lets negative indices count from the end, does not notice indices that lie outside, and takes
    more updates along the axis than the data has elements there.

    Source: movement/scatter-elements-update-3.rst

    >>> op(np.zeros((2, 3)), np.array([[1, 2], [0, 1]]), np.array([[1.0, 2], [3, 4]]), np.array(1)).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 0.0]]
    """
    return _put(data, indices, updates, int(axis.item()) % data.ndim)


@scatter_elements_update_3.shapes
def _(node: Node) -> Shapes:
    data, indices, rank = _scatter_elements_shapes(node, "C2")
    axis = axis_of(node, "C1", rank)
    for number, (size, updates) in enumerate(zip(data or (), indices or (), strict=False)):
        message = f"dimension {number} is {updates} in `indices`, but {size} in `data`"
        node.require("C3", updates <= size, message, "indices")
    node.within("C4", "indices", 0, fresh() if axis is None or data is None else data[axis])
    return {} if data is not None else {"data": tuple(fresh() for _ in range(rank))}


@op(
    "ScatterElementsUpdate-12",
    types={"T": ANY, "T_IND": INTEGER, "T_AXIS": INTEGER},
    inputs=SCATTER_ELEMENTS_INPUTS,
    outputs=[Output("output", "T", "[*data]")],
    attrs=[
        Attr("reduction", choice("none", "sum", "prod", "min", "max", "mean"), "none"),
        Attr("use_init_val", BOOL, True),
    ],
    symbolic=True,
)
def scatter_elements_update_12(
    data: Array, indices: Array, updates: Array, axis: Array, *, reduction: str = "none", use_init_val: bool = True
) -> Any:
    """Copy the data and reduce each update into the place that its index says, along the axis.

    Negative indices count from the end. With use_init_val=false the data at places that get an update do not take
    part. `none` overwrites: the last update in row-major order wins, which the specification leaves open. Sums and
    products of f16 and bf16 build up in f32 and are rounded once, those of integers wrap; integer means are exact
    and rounded down. For booleans sum and max are OR, prod and min AND. Where a NaN takes part, min and max are NaN.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: the rank of indices and updates is r.
        C3: no dimension of indices but that of the axis is larger than that of data.
        C4: each index lies in [-s, s), s the size of the axis.
        C5: the reduction suits the type: no mean of booleans, nothing but none for strings and packed types.

    Deviation: in OpenVINO min and max without the initial value start from the largest finite number, not from
    infinity, sums for an integer mean wrap, and indices that lie outside go unnoticed.

    Source: movement/scatter-elements-update-12.rst

    >>> op(np.array([2, 3, 4, 6]), np.array([1, 0, 0, -2, -1, 2]), np.array([10, 20, 30, 40, 70, 60]), np.array([0]),
    ...    reduction="sum").tolist()
    [52, 13, 104, 76]
    """
    along = int(axis.item()) % data.ndim
    if reduction == "none":
        return _put(data, indices, updates, along)
    output = np.array(data, order="C")
    positions = element_positions(indices, data.shape, along).ravel()
    scatter(output.reshape(-1), positions, updates.ravel(), reduction, use_init_val)
    return output


@scatter_elements_update_12.shapes
def _(node: Node) -> Shapes:
    type, reduction = node.types.get("T"), node.attrs["reduction"]
    if type is not None and reduction != "none" and not _reduces(type, reduction):
        node.fail("C5", f"`reduction` is {reduction} for elements of type {type}")
    data, indices, rank = _scatter_elements_shapes(node, "C2")
    axis = axis_of(node, "C1", rank)
    for number, (size, updates) in enumerate(zip(data or (), indices or (), strict=False)):
        if axis is not None and number != axis:
            message = f"dimension {number} is {updates} in `indices`, but {size} in `data`"
            node.require("C3", updates <= size, message, "indices")
    size = fresh() if axis is None or data is None else data[axis]
    node.within("C4", "indices", -size, size)
    return {} if data is not None else {"data": tuple(fresh() for _ in range(rank))}


def _reduces(type: str, reduction: str) -> bool:
    return type in NUMERIC or (type == "boolean" and reduction != "mean") or type == "dynamic"


def _scatter_elements_shapes(node: Node, label: str) -> tuple[Shape | None, Shape | None, int]:
    """The shapes of data and of indices with updates, and their rank, after checking that it is the same."""
    data, indices = node.dims.get("data"), node.dims.get("indices")
    if data is not None and indices is not None and len(data) != len(indices):
        node.fail(label, f"`indices` and `updates` have rank {len(indices)}, but `data` has rank {len(data)}", "indices")
    return data, indices, len(node.dims["indices"] if data is None else data)


def _put(data: Array, indices: Array, updates: Array, axis: int) -> Array:
    """A copy of the data with the updates in it, of which the last one in row-major order wins."""
    output = _copy(data, updates)
    window = output[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
    if indices.size:
        # numpy walks along the memory of the indices, so row-major order needs them contiguous
        np.put_along_axis(window, np.ascontiguousarray(indices, np.intp), np.ascontiguousarray(updates), axis)
    return output


def _copy(data: Array, updates: Array) -> Array:
    """A row-major copy that also holds the updates: dimensions, or longer strings."""
    same = data.dtype == updates.dtype
    return np.array(data, data.dtype if same else np.promote_types(data.dtype, updates.dtype), order="C")


@op(
    "ScatterUpdate-3",
    types={"T": NUMBER, "T_IND": INTEGER, "T_AXIS": INTEGER},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("indices", "T_IND", "[*indices]"),
        Input("updates", "T", "[*updates]"),
        Input("axis", "T_AXIS", ONE),
    ],
    outputs=[Output("output", "T", "[*data]")],
    symbolic=True,
)
def scatter_update(data: Array, indices: Array, updates: Array, axis: Array) -> Any:
    """Copy the data and put the slices of the updates at the indices along the axis.

    Where several slices go to one place, the last one wins; the specification leaves it open.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: the shape of updates is that of data with the dimensions of indices in place of the axis.
        C3: each index lies in [0, s), s the size of the axis.

    Deviation: the CPU plugin of OpenVINO writes outside the tensor for negative indices.

    Source: movement/scatter-update-3.rst

    >>> op(np.zeros((2, 3)), np.array([0, 2]), np.array([[1.0, 2], [3, 4]]), np.array(1)).tolist()
    [[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]]
    """
    along, inner = int(axis.item()) % data.ndim, indices.ndim
    output = _copy(data, updates)
    rows = np.moveaxis(updates, range(along, along + inner), range(inner))
    rows = rows.reshape(indices.size, *data.shape[:along], *data.shape[along + 1 :])
    np.moveaxis(output, along, 0)[indices.ravel().astype(np.intp)] = rows
    return output


@scatter_update.shapes
def _(node: Node) -> None:
    data, indices = node.shape("data"), node.shape("indices")
    axis = axis_of(node, "C1", len(data))
    node.within("C3", "indices", 0, fresh() if axis is None else data[axis])
    updates = node.shape("updates")
    expected = _gathered(data, indices, axis, 0)
    fits = len(updates) == len(expected) and every(a == b for a, b in zip(updates, expected, strict=True))
    node.require("C2", fits, f"`updates` is {shape_text(updates)}, expected {shape_text(expected)}", "updates")


SCATTER_ND_INPUTS = (
    Input("data", "T", "[n, *data]"),
    Input("indices", "T_IND", "[*places, length]"),
    Input("updates", "T", "[*updates]"),
)
SCATTER_ND_OUTPUTS = (Output("output", "T", "[n, *data]"),)


@op(
    "ScatterNDUpdate-3",
    types={"T": NUMBER, "T_IND": INDEX},
    inputs=SCATTER_ND_INPUTS,
    outputs=SCATTER_ND_OUTPUTS,
    opsets=frozenset(range(4, 17)),
    symbolic=True,
)
def scatter_nd_update_3(data: Array, indices: Array, updates: Array) -> Any:
    """Copy the data and put each element or slice of the updates at its tuple of indices; the last one wins.

    Constraints:
        C1: the last dimension k of indices is r, the rank of data, or less.
        C2: the shape of updates is indices.shape[:-1] + data.shape[k:], or one element where that is a scalar.
        C3: each index lies in [0, s), s the size of its dimension.

    Deviation: OpenVINO lets negative indices count from the end.

    Source: movement/scatter-nd-update-3.rst

    >>> op(np.array([1, 2, 3, 4, 5, 6, 7, 8]), np.array([[4], [3], [1], [7]]), np.array([9, 10, 11, 12])).tolist()
    [1, 11, 3, 10, 9, 6, 7, 12]
    """
    return _scattered(data, indices, updates, "none")


@scatter_nd_update_3.shapes
def _(node: Node) -> None:
    _check_scatter_nd(node, "C1", "C2")
    check_tuples(node, "C3", "indices", node.shape("data")[: int(node.dims["length"])], negative=False)


@op(
    "ScatterNDUpdate-15",
    types={"T": NUMBER, "T_IND": INDEX},
    inputs=SCATTER_ND_INPUTS,
    outputs=SCATTER_ND_OUTPUTS,
    attrs=[Attr("reduction", choice("none", "sum", "sub", "prod", "min", "max"), "none")],
    symbolic=True,
)
def scatter_nd_update_15(data: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Any:
    """Copy the data and reduce each element or slice of the updates into the place of its tuple of indices.

    Negative indices count from the end. `none` overwrites: the last update in row-major order wins, which the
    specification leaves open. f16 and bf16 are reduced in f32 and rounded once, integers wrap. For booleans sum and
    max are OR, sub is XOR, prod and min are AND.

    Constraints:
        C1: the last dimension k of indices is r, the rank of data, or less.
        C2: the shape of updates is indices.shape[:-1] + data.shape[k:], or one element where that is a scalar.
        C3: each index lies in [-s, s), s the size of its dimension.
        C4: packed types have no reduction but none.

    Source: movement/scatter-nd-update-15.rst

    >>> op(np.array([1, 2, 3, 4]), np.array([[0], [2], [-3], [-3], [0]]), np.array([10, 20, 30, 40, 50]),
    ...    reduction="sum").tolist()
    [61, 72, 23, 4]
    """
    return _scattered(data, indices, updates, reduction)


@scatter_nd_update_15.shapes
def _(node: Node) -> None:
    type, reduction = node.types.get("T"), node.attrs["reduction"]
    if type is not None and reduction != "none" and not _reduces(type, reduction):
        node.fail("C4", f"`reduction` is {reduction} for elements of type {type}")
    _check_scatter_nd(node, "C1", "C2")
    check_tuples(node, "C3", "indices", node.shape("data")[: int(node.dims["length"])], negative=True)


def _scattered(data: Array, indices: Array, updates: Array, reduction: str) -> Array:
    length = indices.shape[-1]
    output = _copy(data, updates)
    rest = prod(data.shape[length:])
    positions = tuple_positions(indices, data.shape[:length]).ravel()
    rows = output.reshape(prod(data.shape[:length]), rest)
    scatter(rows, positions, updates.reshape(len(positions), rest), reduction)
    return output


def _check_scatter_nd(node: Node, length_label: str, updates_label: str) -> None:
    length, rank = node.dims["length"], len(node.shape("data"))
    message = f"`indices` has tuples of {length}, but `data` has {rank} dimensions"
    node.require(length_label, length <= rank, message, "indices")
    updates = node.shape("updates")
    expected = (*node.shape("indices")[:-1], *node.shape("data")[int(length) :])
    if not expected:
        fits = product(updates) == 1
    else:
        fits = len(updates) == len(expected) and every(a == b for a, b in zip(updates, expected, strict=True))
    message = f"`updates` is {shape_text(updates)}, expected {shape_text(expected)}"
    node.require(updates_label, fits, message, "updates")


@op(
    "Concat-1",
    types={"T": ANY},
    inputs=[Input("inputs", "T", "...", variadic=True)],
    outputs=[Output("concat_result", "T", "[*output]")],
    attrs=[Attr("axis", INT)],
    symbolic=True,
)
def concat(*inputs: Array, axis: int) -> Any:
    """Join tensors along an axis.

    Constraints:
        C1: there is at least one input.
        C2: all inputs have the same rank, which is 1 or more.
        C3: axis lies in [-r, r), r that rank.
        C4: the inputs have the same dimensions except along the axis.

    Deviation: the page asks for numeric types; as in OpenVINO every type will do.

    Source: movement/concat-1.rst

    >>> op(np.array([[1], [2]]), np.array([[3, 4], [5, 6]]), axis=1).tolist()
    [[1, 3, 4], [2, 5, 6]]
    """
    return np.concatenate(inputs, axis)


@concat.shapes
def _(node: Node) -> Shapes:
    tensors: list[Tensor] = node.inputs["inputs"]
    if not tensors:
        node.fail("C1", "0 inputs, expected 1 or more")
    shapes = [(number, tensor.shape) for number, tensor in enumerate(tensors) if tensor.shape is not None]
    if not shapes:
        raise Undecided
    first, known = shapes[0]
    for number, shape in shapes:
        if not shape:
            node.fail("C2", f"`inputs[{number}]` is a scalar, expected rank 1 or more")
        if len(shape) != len(known):
            node.fail("C2", f"`inputs[{number}]` has rank {len(shape)}, but `inputs[{first}]` has rank {len(known)}")
    axis = normal_axis(node, "C3", node.attrs["axis"], len(known))
    output = list(known)
    for number, shape in shapes[1:]:
        for place, size in enumerate(shape):
            if place == axis:
                output[axis] += size
                continue
            message = f"dimension {place} is {size} in `inputs[{number}]`, but {output[place]} before"
            node.require("C4", size == output[place], message)
            output[place] = agreed(output[place], size)
    for _ in range(len(tensors) - len(shapes)):
        output[axis] += fresh()
    return {"output": tuple(output)}


@op(
    "Split-1",
    types={"T": ANY, "T_AXIS": INTEGER},
    inputs=[Input("data", "T", "[*data]"), Input("axis", "T_AXIS", "[]")],
    outputs=[Output("outputs", "T", "...", variadic=True)],
    attrs=[Attr("num_splits", INT, least=1)],
    symbolic=True,
    view_of="data",
)
def split(data: Array, axis: Array, *, num_splits: int) -> Any:
    """Cut a tensor into parts of one length along an axis.

    An axis of size 0 gives empty parts.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: num_splits divides the size of the axis.

    Source: movement/split-1.rst

    >>> [part.tolist() for part in op(np.array([1, 2, 3, 4]), np.array(0), num_splits=2)]
    [[1, 2], [3, 4]]
    """
    return tuple(np.split(data, num_splits, int(axis.item())))


@split.shapes
def _(node: Node) -> list[Tensor]:
    parts, type = node.attrs["num_splits"], node.types.get("T", "dynamic")
    data = node.dims.get("data")
    if data is None:
        return [Tensor(type, None)] * parts
    axis = axis_of(node, "C1", len(data))
    if axis is None:
        return [Tensor(type, tuple(fresh() for _ in data)) for _ in range(parts)]
    size = data[axis]
    node.require("C2", size % parts == 0, f"axis {axis} has {size} elements, which {parts} parts do not divide", "data")
    return [Tensor(type, (*data[:axis], size // parts, *data[axis + 1 :]))] * parts


@op(
    "VariadicSplit-1",
    types={"T": ANY, "T_AXIS": INTEGER, "T_LENGTHS": INTEGER},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("axis", "T_AXIS", ONE),
        Input("split_lengths", "T_LENGTHS", "[parts]"),
    ],
    outputs=[Output("outputs", "T", "...", variadic=True)],
    symbolic=True,
    view_of="data",
)
def variadic_split(data: Array, axis: Array, split_lengths: Array) -> Any:
    """Cut a tensor into parts of given lengths along an axis; one length may be -1, for what the others leave.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: each length is 0 or more, but one may be -1.
        C3: the lengths add up to the size of the axis; with a -1 they leave 0 or more.

    Source: movement/variadic-split-1.rst

    >>> [part.tolist() for part in op(np.array([1, 2, 3, 4]), np.array(0), np.array([1, -1]))]
    [[1], [2, 3, 4]]
    """
    along = int(axis.item())
    lengths = [int(length) for length in split_lengths]
    if -1 in lengths:
        lengths[lengths.index(-1)] += data.shape[along] - sum(lengths)
    return tuple(np.split(data, np.cumsum(lengths[:-1]), along)) if lengths else ()


@variadic_split.shapes
def _(node: Node) -> list[Tensor]:
    lengths = node.sizes("split_lengths")
    data = node.dims.get("data")
    axis = None if data is None else axis_of(node, "C1", len(data))
    for number, length in enumerate(lengths or ()):
        node.require("C2", length >= -1, f"`split_lengths[{number}]` is {length}, expected -1 or more", "split_lengths")
    if lengths is None:
        raise Undecided
    rests = [number for number, length in enumerate(lengths) if (length == -1) is True]
    if len(rests) > 1:
        message = f"`split_lengths[{rests[1]}]` is -1, but so is `split_lengths[{rests[0]}]`"
        node.fail("C2", message, "split_lengths")
    type = node.types.get("T", "dynamic")
    if data is None:
        return [Tensor(type, None)] * len(lengths)
    if axis is None:
        return [Tensor(type, tuple(fresh() for _ in data)) for _ in lengths]
    size: Size = data[axis]
    signs_known = all(number in rests or (length >= 0) is True for number, length in enumerate(lengths))
    if signs_known:
        left: Size = size - sum(length for number, length in enumerate(lengths) if number not in rests)
        message = f"the lengths leave {left} of the {size} elements of axis {axis}"
        node.require("C3", left >= 0 if rests else left == 0, message, "split_lengths")
        for number in rests:
            lengths[number] = left
    return [
        Tensor(type, (*data[:axis], length if isinstance(length, int) else length.within(0), *data[axis + 1 :]))
        for length in (lengths if signs_known else [fresh() if isinstance(n, Dim) or n < 0 else n for n in lengths])
    ]


SLICE_INPUTS = (
    Input("start", "T_START", "[n]"),
    Input("stop", "T_STOP", "[n]"),
    Input("step", "T_STEP", "[n]"),
    Input("axes", "T_AXIS", "[n]", optional=True),
)
SLICE_TYPES = dict.fromkeys(("T_START", "T_STOP", "T_STEP", "T_AXIS"), INTEGER)


@op(
    "Slice-8",
    types={"T": ANY, **SLICE_TYPES},
    inputs=[Input("data", "T", "[d, *data]"), *SLICE_INPUTS],
    outputs=[Output("output", "T", "[*output]")],
    symbolic=True,
    view_of="data",
)
def slice_8(data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None) -> Any:
    """Select start:stop:step along some axes, by the rules of Python.

    Constraints:
        C1: no step is 0.
        C2: each axis lies in [-r, r), r the rank of data.
        C3: no axis occurs twice.

    Source: movement/slice-8.rst

    >>> op(np.arange(10), np.array([9]), np.array([-11]), np.array([-2])).tolist()
    [9, 7, 5, 3, 1]
    """
    return data[cut_index(data.ndim, start, stop, step, axes)]


@slice_8.shapes
def _(node: Node) -> Shapes:
    data = node.shape("data")
    cuts = read_cuts(node, ("C1", "C2", "C3"), len(data))
    if cuts is None:
        return {"output": tuple(fresh(0, size if isinstance(size, int) else size.high) for size in data)}
    return {"output": cut_shape(data, cuts)}


@op(
    "SliceScatter-15",
    types={"T": NUMBER, **SLICE_TYPES},
    inputs=[Input("data", "T", "[d, *data]"), Input("updates", "T", "[*updates]"), *SLICE_INPUTS],
    outputs=[Output("output", "T", "[d, *data]")],
    symbolic=True,
)
def slice_scatter(
    data: Array, updates: Array, start: Array, stop: Array, step: Array, axes: Array | None = None
) -> Any:
    """Copy the data and put the updates where start:stop:step selects along some axes.

    Constraints:
        C1: no step is 0.
        C2: each axis lies in [-r, r), r the rank of data.
        C3: no axis occurs twice.
        C4: updates has the shape of what is selected.

    Source: movement/slice-scatter-15.rst

    >>> op(np.arange(5), np.array([10, 20]), np.array([1]), np.array([9]), np.array([2])).tolist()
    [0, 10, 2, 20, 4]
    """
    output = _copy(data, updates)
    output[cut_index(data.ndim, start, stop, step, axes)] = updates
    return output


@slice_scatter.shapes
def _(node: Node) -> None:
    data = node.shape("data")
    cuts = read_cuts(node, ("C1", "C2", "C3"), len(data))
    updates = node.shape("updates")
    expected = tuple(fresh() for _ in data) if cuts is None else cut_shape(data, cuts)
    fits = len(updates) == len(expected) and every(a == b for a, b in zip(updates, expected, strict=True))
    node.require("C4", fits, f"`updates` is {shape_text(updates)}, expected {shape_text(expected)}", "updates")


MASK = {"kind": INTS, "least": 0, "most": 1}


@op(
    "StridedSlice-1",
    types={"T": ANY, "T_BEGIN": INTEGER, "T_END": INTEGER, "T_STRIDE": INTEGER},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("begin", "T_BEGIN", "[m]"),
        Input("end", "T_END", "[m]"),
        Input("stride", "T_STRIDE", "[m]", optional=True),
    ],
    outputs=[Output("output", "T", "[*output]")],
    attrs=[
        Attr("begin_mask", **MASK),
        Attr("end_mask", **MASK),
        Attr("new_axis_mask", default=(0,), **MASK),
        Attr("shrink_axis_mask", default=(0,), **MASK),
        Attr("ellipsis_mask", default=(0,), **MASK),
    ],
    symbolic=True,
    view_of="data",
)
def strided_slice(
    data: Array,
    begin: Array,
    end: Array,
    stride: Array | None = None,
    *,
    begin_mask: tuple[int, ...],
    end_mask: tuple[int, ...],
    new_axis_mask: tuple[int, ...] = (0,),
    shrink_axis_mask: tuple[int, ...] = (0,),
    ellipsis_mask: tuple[int, ...] = (0,),
) -> Any:
    """Select begin:end:stride along the first axes; masks leave bounds out, add, remove and skip dimensions.

    Bounds are clamped as in Python. Where masks meet, an ellipsis goes before a new axis, and that before a removed
    one. Removing a dimension takes the element at begin, whatever end and stride are.

    Constraints:
        C1: no stride is 0 where it counts.
        C2: there are at most as many slices as dimensions, new axes and an ellipsis apart.
        C3: ellipsis_mask has at most one 1.
        C4: where a dimension of size s is removed, begin lies in [-s, s).

    Deviation: where the page contradicts itself we do as Python and OpenVINO: begin equal to end selects nothing,
    and end_mask with a negative stride includes element 0. begin_mask also holds where a dimension is removed, by
    the page; OpenVINO's reference differs from its CPU plugin there.

    Source: movement/strided-slice-1.rst

    >>> op(np.arange(6).reshape(2, 3), np.array([0, 1]), np.array([0, 1]), np.array([1, 1]),
    ...    begin_mask=(1, 0), end_mask=(1, 0), shrink_axis_mask=(0, 1)).tolist()
    [1, 4]
    """
    index: list[Any] = []
    for kind, i in strided_parts(data.ndim, len(begin), new_axis_mask, shrink_axis_mask, ellipsis_mask) or ():
        if kind == "new":
            index.append(None)
        elif kind == "full":
            index.append(slice(None))
        elif kind == "shrink":
            index.append(0 if masked(begin_mask, i) else int(begin[i]))
        else:
            start = None if masked(begin_mask, i) else int(begin[i])
            stop = None if masked(end_mask, i) else int(end[i])
            index.append(slice(start, stop, None if stride is None else int(stride[i])))
    return data[(*index, ...)]


@strided_slice.shapes
def _(node: Node) -> Shapes:
    attrs = node.attrs
    if sum(attrs["ellipsis_mask"]) > 1:
        node.fail("C3", f"`ellipsis_mask` has {sum(attrs['ellipsis_mask'])} ones, expected one at most")
    data, count = node.shape("data"), int(node.dims["m"])
    masks = (attrs["new_axis_mask"], attrs["shrink_axis_mask"], attrs["ellipsis_mask"])
    parts = strided_parts(len(data), count, *masks)
    if parts is None:
        node.fail("C2", f"`begin` has {count} slices for {len(data)} dimensions", "begin")
    unknown = [fresh(None) for _ in range(count)]
    begins, ends = node.sizes("begin") or unknown, node.sizes("end") or unknown
    strides = [1] * count if node.inputs["stride"] is None else node.sizes("stride") or unknown
    output: list[Size] = []
    sizes = iter(data)
    for kind, i in parts:
        if kind == "new":
            output.append(1)
            continue
        size = next(sizes)
        if kind == "full":
            output.append(size)
        elif kind == "shrink":
            at = 0 if masked(attrs["begin_mask"], i) else begins[i]
            inside = every([at >= -size, at < size])
            node.require("C4", inside, f"`begin[{i}]` is {at}, outside [{-size}, {size})", "begin")
        else:
            step = strides[i]
            node.require("C1", step != 0, f"`stride[{i}]` is 0", "stride")
            ahead = isinstance(step, Dim) or step > 0
            start = (-ENDLESS if ahead else ENDLESS) if masked(attrs["begin_mask"], i) else begins[i]
            stop = (ENDLESS if ahead else -ENDLESS) if masked(attrs["end_mask"], i) else ends[i]
            output.append(slice_length(size, start, stop, step))
    return {"output": tuple(output)}


BROADCAST_INPUTS = (
    Input("data", "T", "[*data]"),
    Input("target_shape", "T_SHAPE", "[n]"),
    Input("axes_mapping", "T_AXES", "...", optional=True),  # OpenVINO writes a scalar where the mode ignores it
)
BROADCAST_TYPES = {"T": ANY, "T_SHAPE": INTEGER, "T_AXES": INTEGER}


@op(
    "Broadcast-1",
    types=BROADCAST_TYPES,
    inputs=BROADCAST_INPUTS,
    outputs=[Output("output", "T", "[*output]")],
    attrs=[Attr("mode", choice("numpy", "explicit"), "numpy")],
    opsets=frozenset({1, 2}),
    symbolic=True,
    view_of="data",
)
def broadcast_1(data: Array, target_shape: Array, axes_mapping: Array | None = None, *, mode: str = "numpy") -> Any:
    """Repeat the data along dimensions of size 1 until it has the target shape.

    Constraints:
        C1: the sizes in target_shape are 0 or more.
        C2: each dimension of data is 1, or the one of target_shape that it is mapped to: by axes_mapping in mode
            explicit, else counted from the end.
        C3: mode explicit needs axes_mapping, with one axis for each dimension of data.
        C4: the axes in axes_mapping ascend and lie in [0, n), n the size of target_shape.

    Source: movement/broadcast-1.rst

    >>> op(np.array([1, 2]), np.array([2, 3]), np.array([0]), mode="explicit").tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    return _broadcasted(data, target_shape, axes_mapping, mode)


@op(
    "Broadcast-3",
    types=BROADCAST_TYPES,
    inputs=BROADCAST_INPUTS,
    outputs=[Output("output", "T", "[*output]")],
    attrs=[Attr("mode", choice("numpy", "explicit", "bidirectional"), "numpy")],
    symbolic=True,
    view_of="data",
)
def broadcast_3(data: Array, target_shape: Array, axes_mapping: Array | None = None, *, mode: str = "numpy") -> Any:
    """Repeat the data along dimensions of size 1 until it has the target shape; bidirectional also keeps its own.

    Constraints:
        C1: the sizes in target_shape are 0 or more.
        C2: each dimension of data is 1, or the one of target_shape that it is mapped to: by axes_mapping in mode
            explicit, else counted from the end. In mode bidirectional that one may also be 1 or missing.
        C3: mode explicit needs axes_mapping, with one axis for each dimension of data.
        C4: the axes in axes_mapping ascend and lie in [0, n), n the size of target_shape.

    Deviation: the page asks for numeric types; as in OpenVINO every type will do.

    Source: movement/broadcast-3.rst

    >>> op(np.array([[1], [2]]), np.array([1, 2]), mode="bidirectional").tolist()
    [[1, 1], [2, 2]]
    """
    return _broadcasted(data, target_shape, axes_mapping, mode)


def _broadcasted(data: Array, target_shape: Array, axes_mapping: Array | None, mode: str) -> Array:
    target = tuple(int(size) for size in target_shape)
    if mode == "bidirectional":
        target = np.broadcast_shapes(data.shape, target)
    elif mode == "explicit" and axes_mapping is not None:
        shape = np.ones(len(target), np.intp)
        shape[axes_mapping] = data.shape
        data = data.reshape(shape)
    return np.broadcast_to(data, target)


@broadcast_1.shapes
@broadcast_3.shapes
def _(node: Node) -> Shapes:
    mode = node.attrs["mode"]
    target = node.sizes("target_shape")
    for number, size in enumerate(target or ()):
        node.require("C1", size >= 0, f"`target_shape[{number}]` is {size}, expected 0 or more", "target_shape")
    data = node.shape("data")
    axes: list[Size] | None = None
    if mode == "explicit":
        mapping = node.inputs["axes_mapping"]
        if mapping is None:
            node.fail("C3", "`axes_mapping` is not connected, but `mode` is explicit")
        axes = node.sizes("axes_mapping")
        count = None if axes is None else len(axes)
        if count not in (None, len(data)):
            node.fail("C3", f"`axes_mapping` has {count} axes for data of rank {len(data)}", "axes_mapping")
    if target is None:
        raise Undecided
    output: list[Size] = [size.within(0) if isinstance(size, Dim) else size for size in target]
    if mode == "bidirectional":
        output = [1] * (len(data) - len(output)) + output
    if mode != "explicit":
        axes = list(range(len(output) - len(data), len(output)))
        if len(data) > len(output):
            node.fail("C2", f"`data` has rank {len(data)}, but `target_shape` has {len(output)} sizes", "data")
    if axes is None or any(isinstance(axis, Dim) for axis in axes):
        return {"output": tuple(output)}
    for number, (size, axis) in enumerate(zip(data, map(int, axes), strict=True)):
        if not 0 <= axis < len(output) or (number and axis <= axes[number - 1]):
            message = f"`axes_mapping[{number}]` is {axis}, expected ascending axes in [0, {len(output)})"
            node.fail("C4", message, "axes_mapping")
        wanted = output[axis]
        message = f"dimension {number} of `data` is {size}, which does not broadcast to {wanted}"
        if mode == "bidirectional":
            both = broadcast(size, wanted)
            if both is None:
                node.fail("C2", message, "data")
            output[axis] = both
        elif (size == 1) is not True:
            node.require("C2", (size == wanted) if (size == 1) is False else every([True, _maybe(size, wanted)]), message, "data")
            output[axis] = agreed(wanted, size) if (size == 1) is False else wanted
    return {"output": tuple(output)}
