"""Data movement ops: the same elements in other places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
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
    MAX_RANK,
    NUMERIC,
    Array,
    Attr,
    Cutting,
    Dim,
    Doubting,
    Input,
    Joining,
    Lookup,
    Node,
    Output,
    Overwriting,
    Padding,
    Permutation,
    Repeating,
    Shape,
    Shapes,
    Size,
    Source,
    Splitting,
    Tensor,
    Undecided,
    Whole,
    choice,
    divided,
    element_type,
    every,
    fresh,
    joined,
    largest,
    meet,
    numpy_dtype,
    op,
    product,
    variation,
)

from ._broadcasting import broadcast_data, broadcast_to_shape
from ._indexing import (
    WRAPS,
    axis_of,
    check_scatter_nd,
    check_shape,
    check_tuples,
    common_dims,
    copy_for,
    count_once,
    distinct,
    distinct_rows,
    element_positions,
    gather_axis,
    gather_nd,
    gather_nd_shape,
    gathered_shape,
    normal_axis,
    put,
    scatter,
    scatter_elements_shapes,
    scatter_nd,
    take,
)
from ._padding import block_inputs, padded, padded_shape
from ._slices import ENDLESS, any_cut_of, cut_index, cut_shape, masked, read_cuts, slice_length, strided_parts
from ._unlikely import crops_beyond, indices_outside, negative_repeats
from ._window import axes_of, check_lengths, check_windows, framed, patches

NUMBER = ANY - {"string"}
"""What pages of this category call numeric, and mean booleans and packed types with it: elements are only moved."""

INDICES = INTEGER | {"i4", "u4"}
"""Indices and repeats of the pages that have any integers for them. Those of four bits OpenVINO reads right in these
places alone: where it asks for axes, sizes or steps before a run it takes their bytes for the numbers."""

ONE = "[] | [1]"
"""The shape of an axis: a scalar, or a tensor of one element."""

BATCH_DIMS = Attr("batch_dims", INT, 0)


@op(
    "Gather-1",
    types={"T": ANY, "T_IND": INDICES, "T_AXIS": INTEGER},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("indices", "T_IND", "[*indices]"),
        Input("axis", "T_AXIS", ONE),
    ],
    outputs=[Output("output", "T", "[*output]")],
    symbolic=True,
    traits=[Lookup("data", "indices", "axis", "batch_dims"), Whole()],
)
def gather_1(data: Array, indices: Array, axis: Array) -> Any:
    """Take slices of the data along an axis.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: each index lies in [0, s), s the size of the axis.

    Negative indices that are constant count from the end, with a warning, where OpenVINO has it so: among constants and
    sizes of shapes, and where it is one index, a scalar or a vector, and the size of the axis is known. For others its
    CPU plugin gives zeros, as for indices above the axis, or for one of more axes what depends on where data lie.

    Source: movement/gather-1.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([1, 0, 0]), np.array(1)).tolist()
    [[2, 1, 1], [4, 3, 3]]
    """
    return take(data, indices.astype("intp"), int(axis.item()) % data.ndim, 0)


def _counts_from_the_end(inputs: Sequence[Source]) -> bool:
    """Whether OpenVINO lets negative indices count from the end."""
    data, indices, axis = inputs
    if not indices.constant():
        return False
    sizes, place = data.tensor.shape, axis.tensor.numbers if axis.tensor.known else None
    one = indices.tensor.shape in ((), (1,))
    if one and sizes and place and axis.tensor.type in INTEGER and -len(sizes) <= place[0] < len(sizes):
        return isinstance(sizes[place[0]], int) or data.settled()
    return data.settled()


def _gather_1_rule(node: Node, lenient: str = "") -> Shapes:
    axis = gather_axis(node, "C1")
    data, indices = node.shape("data"), node.shape("indices")
    node.within("C2", "indices", 0, fresh() if axis is None else data[axis], lenient=lenient)
    return {"output": gathered_shape(data, indices, axis, 0)}


gather_1.shapes(_gather_1_rule)
gather_1.folds(_counts_from_the_end, rule=partial(_gather_1_rule, lenient=WRAPS))


@op("Gather-7", of=gather_1, attrs=[BATCH_DIMS])
def gather_7(data: Array, indices: Array, axis: Array, *, batch_dims: int) -> Any:
    """Take slices of the data along an axis, each batch by indices of its own.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: batch_dims lies in [-q, min(q, r)], q the rank of indices, and is not above axis.
        C3: the first batch_dims dimensions of data and indices are equal.
        C4: each index lies in [0, s), s the size of the axis.

    Negative indices that are constant count from the end, with a warning, where OpenVINO has it so: among constants and
    sizes of shapes, and where it is one index, a scalar or a vector, and the size of the axis is known. For others its
    CPU plugin gives zeros, as for indices above the axis, or for one of more axes what depends on where data lie.

    Source: movement/gather-7.rst

    >>> op(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[0, 2], [1, 1]]), np.array(1), batch_dims=1).tolist()
    [[1, 3], [5, 5]]
    """
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    return take(data, indices.astype("intp"), int(axis.item()) % data.ndim, batch)


def _gather_7_rule(node: Node, lenient: str = "") -> Shapes:
    axis = gather_axis(node, "C1")
    batch = common_dims(node, "C2", "C3", axis)
    data, indices = node.shape("data"), node.shape("indices")
    node.within("C4", "indices", 0, fresh() if axis is None else data[axis], lenient=lenient)
    return {"output": gathered_shape(data, indices, axis, batch)}


gather_7.shapes(_gather_7_rule)
gather_7.folds(_counts_from_the_end, rule=partial(_gather_7_rule, lenient=WRAPS))
gather_7.lowers("Gather-1", batch_dims=0)


@op("Gather-8", of=gather_7, self_checking=True, traits=[*gather_7.traits, Doubting(indices_outside)])
def gather_8(data: Array, indices: Array, axis: Array, *, batch_dims: int) -> Any:
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
    places = indices.astype("intp")
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
    axis = gather_axis(node, "C1")
    batch = common_dims(node, "C2", "C3", axis)
    return {"output": gathered_shape(node.shape("data"), node.shape("indices"), axis, batch)}


gather_8.lowers("Gather-7", natural=["indices"])


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

    Negative indices down to -s count from the end, as in OpenVINO, with a warning.

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
            node.require(
                "C3", a == b, f"dimension {number} is {b} in `indices`, but {a} in `data`", "indices", about=["data"]
            )
            output[number] = meet(a, b)
    node.within("C4", "indices", 0, data[axis], lenient=WRAPS)
    return {"output": tuple(output)}


@op(
    "GatherND-5",
    types={"T": ANY, "T_IND": INDICES},
    inputs=[Input("data", "T", "[n, *data]"), Input("indices", "T_IND", "[*places, length]")],
    outputs=[Output("output", "T", "[*output]")],
    attrs=[Attr("batch_dims", INT, 0, least=0)],
    symbolic=True,
)
def gather_nd_5(data: Array, indices: Array, *, batch_dims: int) -> Any:
    """Take an element or slice of the data for each tuple of indices; batch dimensions come out as one.

    Constraints:
        C1: batch_dims lies in [0, min(r, q)), r and q the ranks of data and indices.
        C2: the last dimension of indices is r - batch_dims or less.
        C3: the first batch_dims dimensions of data and indices are equal or 1.
        C4: each index lies in [0, s), s the size of its dimension.

    Negative indices down to -s count from the end, as in OpenVINO, with a warning.

    Deviation: OpenVINO wants batch dimensions to be equal.

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


@op("GatherND-8", of=gather_nd_5)
def gather_nd_8(data: Array, indices: Array, *, batch_dims: int) -> Any:
    """Take an element or slice of the data for each tuple of indices; negative ones count from the end.

    Constraints:
        C1: batch_dims lies in [0, min(r, q)), r and q the ranks of data and indices.
        C2: the last dimension of indices is r - batch_dims or less.
        C3: the first batch_dims dimensions of data and indices are equal or 1.
        C4: each index lies in [-s, s), s the size of its dimension. (For others OpenVINO's CPU plugin reads anywhere.)

    Deviation: OpenVINO wants batch dimensions to be equal.

    Source: movement/gather-nd-8.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([[0, 0], [-1, 0]])).tolist()
    [1, 3]
    """
    return gather_nd(data, indices, batch_dims)


@gather_nd_8.shapes
def _(node: Node) -> Shapes:
    return {"output": gather_nd_shape(node, ("C1", "C2", "C3", "C4"), negative=True)}


gather_nd_8.lowers("GatherND-5", natural=["indices"], batch_dims=(0, 1))


def _counted(indices: Array, size: Size) -> Array:
    """Indices counted from the front, where they count from the end and the size of the axis is known."""
    positions: Array = indices.astype(np.int64)
    return positions % size if isinstance(size, int) and size else positions


def _element_rows(arrays: Sequence[Any], shape: Shape) -> tuple[Array, Array | None]:
    _, indices, updates, axis = arrays
    along = int(axis.item()) % indices.ndim
    places = np.indices(indices.shape)
    places[along] = _counted(indices, shape[along])
    return places.reshape(indices.ndim, -1).T, None if updates is None else updates.reshape(-1)


def _slice_rows(arrays: Sequence[Any], shape: Shape) -> tuple[Array, Array | None]:
    _, indices, updates, axis = arrays
    along, inner = int(axis.item()) % len(shape), indices.ndim
    if updates is not None:
        updates = np.moveaxis(updates, range(along, along + inner), range(inner)).reshape(indices.size, -1)
    return indices.reshape(-1, 1), updates


def _tuple_rows(arrays: Sequence[Any], shape: Shape) -> tuple[Array, Array | None]:
    _, indices, updates = arrays
    places = np.stack([_counted(indices[..., n], shape[n]) for n in range(indices.shape[-1])], -1)
    places = places.reshape(-1, indices.shape[-1])
    return places, None if updates is None else updates.reshape(len(places), -1)


@op(
    "ScatterElementsUpdate-3",
    types={"T": NUMBER, "T_IND": INDICES, "T_AXIS": INTEGER},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("indices", "T_IND", "[*indices]"),
        Input("updates", "T", "[*indices]"),
        Input("axis", "T_AXIS", ONE),
    ],
    outputs=[Output("output", "T", "[*data]")],
    symbolic=True,
    traits=[Overwriting(_element_rows)],
)
def scatter_elements_update_3(data: Array, indices: Array, updates: Array, axis: Array) -> Any:
    """Copy the data and put each update where its index says: it replaces the coordinate along the axis.

    Where several updates go to one place, the last one in row-major order wins; the specification leaves it open.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: the rank of indices and updates is r.
        C3: no dimension of indices but that of the axis is larger than that of data.
        C4: each index lies in [0, s), s the size of the axis.

    Deviation: OpenVINO lets negative indices count from the end. By the page no dimension of updates is larger than
    that of data; along the axis more updates are taken, as in OpenVINO and in version 12.

    Source: movement/scatter-elements-update-3.rst

    >>> op(np.zeros((2, 3)), np.array([[1, 2], [0, 1]]), np.array([[1.0, 2], [3, 4]]), np.array(1)).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 0.0]]
    """
    return put(data, indices, updates, int(axis.item()) % data.ndim)


@scatter_elements_update_3.shapes
def _(node: Node) -> Shapes:
    data, indices, rank = scatter_elements_shapes(node, "C2")
    axis = axis_of(node, "C1", rank)
    _check_fit("C3", node, data, indices, axis)
    node.within("C4", "indices", 0, fresh() if axis is None or data is None else data[axis])
    return {} if data is not None else {"data": tuple(fresh() for _ in range(rank))}


@op(
    "ScatterElementsUpdate-12",
    of=scatter_elements_update_3,
    types={"T": ANY, "T_IND": INDICES, "T_AXIS": INTEGER},
    attrs=[
        Attr("reduction", choice("none", "sum", "prod", "min", "max", "mean"), "none"),
        Attr("use_init_val", BOOL, True),
    ],
    traits=[Overwriting(_element_rows, only=(("reduction", "none"),))],
)
def scatter_elements_update_12(
    data: Array, indices: Array, updates: Array, axis: Array, *, reduction: str, use_init_val: bool
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
    infinity; sums for an integer mean wrap, and the CPU plugin rounds that mean towards zero.

    Source: movement/scatter-elements-update-12.rst

    >>> op(np.array([2, 3, 4, 6]), np.array([1, 0, 0, -2, -1, 2]), np.array([10, 20, 30, 40, 70, 60]), np.array([0]),
    ...    reduction="sum").tolist()
    [52, 13, 104, 76]
    """
    along = int(axis.item()) % data.ndim
    if reduction == "none":
        return put(data, indices, updates, along)
    output = np.array(data, order="C")
    positions = element_positions(indices, data.shape, along).ravel()
    scatter(output.reshape(-1), positions, updates.ravel(), reduction, use_init_val)
    return output


@scatter_elements_update_12.shapes
def _(node: Node) -> Shapes:
    type, reduction = node.types.get("T"), node.attrs["reduction"]
    if type is not None and reduction != "none" and not _reduces(type, reduction):
        node.fail("C5", f"`reduction` is {reduction} for elements of type {type}", about=["reduction"])
    data, indices, rank = scatter_elements_shapes(node, "C2")
    axis = axis_of(node, "C1", rank)
    _check_fit("C3", node, data, indices, axis)
    size = fresh() if axis is None or data is None else data[axis]
    node.within("C4", "indices", -size, size)
    return {} if data is not None else {"data": tuple(fresh() for _ in range(rank))}


scatter_elements_update_12.lowers(
    "ScatterElementsUpdate-3", natural=["indices"], reduction="none", use_init_val=(True, False)
)


def _check_fit(label: str, node: Node, data: Shape | None, indices: Shape | None, axis: int | None) -> None:
    """Off the axis there are no more updates than elements."""
    for number, (size, updates) in enumerate(zip(data or (), indices or (), strict=False)):
        if axis is not None and number != axis:
            message = f"dimension {number} is {updates} in `indices`, but {size} in `data`"
            node.require(label, updates <= size, message, "indices", about=["data"])


def _reduces(type: str, reduction: str) -> bool:
    return type in NUMERIC or (type == "boolean" and reduction != "mean") or type == "dynamic"


@op(
    "ScatterUpdate-3",
    types={"T": NUMBER, "T_IND": INDICES, "T_AXIS": INTEGER},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("indices", "T_IND", "[*indices]"),
        Input("updates", "T", "[*updates]"),
        Input("axis", "T_AXIS", ONE),
    ],
    outputs=[Output("output", "T", "[*data]")],
    symbolic=True,
    traits=[Overwriting(_slice_rows)],
)
def scatter_update(data: Array, indices: Array, updates: Array, axis: Array) -> Any:
    """Copy the data and put the slices of the updates at the indices along the axis.

    Where several slices go to one place, the last one wins; the specification leaves it open.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: the shape of updates is that of data with the dimensions of indices in place of the axis.
        C3: each index lies in [0, s), s the size of the axis.

    Source: movement/scatter-update-3.rst

    >>> op(np.zeros((2, 3)), np.array([0, 2]), np.array([[1.0, 2], [3, 4]]), np.array(1)).tolist()
    [[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]]
    """
    along, inner = int(axis.item()) % data.ndim, indices.ndim
    output = copy_for(data, updates)
    rows = np.moveaxis(updates, range(along, along + inner), range(inner))
    rows = rows.reshape(indices.size, *data.shape[:along], *data.shape[along + 1 :])
    np.moveaxis(output, along, 0)[indices.ravel().astype(np.intp)] = rows
    return output


@scatter_update.shapes
def _(node: Node) -> None:
    data = node.shape("data")
    axis = axis_of(node, "C1", len(data))
    indices = node.shape("indices")
    node.within("C3", "indices", 0, fresh() if axis is None else data[axis])
    check_shape(node, "C2", "updates", gathered_shape(data, indices, axis, 0))


@op(
    "ScatterNDUpdate-3",
    types={"T": NUMBER, "T_IND": INDEX},
    inputs=[
        Input("data", "T", "[n, *data]"),
        Input("indices", "T_IND", "[*places, length]"),
        Input("updates", "T", "[*updates]"),
    ],
    outputs=[Output("output", "T", "[n, *data]")],
    opsets=frozenset(range(4, 17)),
    symbolic=True,
    traits=[Overwriting(_tuple_rows, depth=1)],
)
def scatter_nd_update_3(data: Array, indices: Array, updates: Array) -> Any:
    """Copy the data and put each element or slice of the updates at its tuple of indices; the last one wins.

    Constraints:
        C1: the last dimension k of indices is r, the rank of data, or less.
        C2: the shape of updates is indices.shape[:-1] + data.shape[k:], or one element where that is a scalar.
        C3: each index lies in [0, s), s the size of its dimension.

    Negative indices down to -s count from the end, as in OpenVINO, with a warning.

    Source: movement/scatter-nd-update-3.rst

    >>> op(np.array([1, 2, 3, 4, 5, 6, 7, 8]), np.array([[4], [3], [1], [7]]), np.array([9, 10, 11, 12])).tolist()
    [1, 11, 3, 10, 9, 6, 7, 12]
    """
    return scatter_nd(data, indices, updates, "none")


@scatter_nd_update_3.shapes
def _(node: Node) -> None:
    check_scatter_nd(node, "C1", "C2")
    check_tuples(node, "C3", "indices", node.shape("data")[: int(node.dims["length"])], negative=False)


@op(
    "ScatterNDUpdate-15",
    of=scatter_nd_update_3,
    attrs=[Attr("reduction", choice("none", "sum", "sub", "prod", "min", "max"), "none")],
    traits=[Overwriting(_tuple_rows, depth=1, only=(("reduction", "none"),))],
)
def scatter_nd_update_15(data: Array, indices: Array, updates: Array, *, reduction: str) -> Any:
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
    return scatter_nd(data, indices, updates, reduction)


@scatter_nd_update_15.shapes
def _(node: Node) -> None:
    type, reduction = node.types.get("T"), node.attrs["reduction"]
    if type is not None and reduction != "none" and not _reduces(type, reduction):
        node.fail("C4", f"`reduction` is {reduction} for elements of type {type}", about=["reduction"])
    check_scatter_nd(node, "C1", "C2")
    check_tuples(node, "C3", "indices", node.shape("data")[: int(node.dims["length"])], negative=True)


scatter_nd_update_15.lowers("ScatterNDUpdate-3", natural=["indices"], reduction="none")


@op(
    "Concat-1",
    types={"T": ANY},
    inputs=[Input("inputs", "T", "...", variadic=True)],
    outputs=[Output("concat_result", "T", "[*output]")],
    attrs=[Attr("axis", INT)],
    symbolic=True,
    traits=[Joining("axis"), Whole()],
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
    return joined(inputs, axis)


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
            node.fail("C2", f"`inputs[{number}]` is a scalar, expected rank 1 or more", about=[("inputs", number)])
        if len(shape) != len(known):
            node.fail(
                "C2",
                f"`inputs[{number}]` has rank {len(shape)}, but `inputs[{first}]` has rank {len(known)}",
                about=[("inputs", number), ("inputs", first)],
            )
    axis = normal_axis(node, "C3", node.attrs["axis"], len(known))
    output = list(known)
    for number, shape in shapes[1:]:
        for place, size in enumerate(shape):
            if place == axis:
                output[axis] += size
                continue
            message = f"dimension {place} is {size} in `inputs[{number}]`, but {output[place]} before"
            node.require("C4", size == output[place], message, about=[("inputs", number)])
            output[place] = meet(output[place], size)
    for _ in range(len(tensors) - len(shapes)):
        output[axis] += fresh()
    return {"output": tuple(output)}


@op(
    "Split-1",
    types={"T": ANY, "T_AXIS": INTEGER},
    inputs=[Input("data", "T", "[*data]"), Input("axis", "T_AXIS", "[]")],
    outputs=[Output("outputs", "T", "...", variadic=True)],
    attrs=[Attr("num_splits", INT, least=1, most=65536)],
    symbolic=True,
    view_of="data",
    traits=[Splitting("axis")],
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
    along = int(axis.item()) % data.ndim
    length, rest = divmod(data.shape[along], num_splits)
    if rest:
        raise ValueError(f"{data.shape[along]} is no multiple of {num_splits}")
    return tuple(data[(slice(None),) * along + (slice(i * length, (i + 1) * length),)] for i in range(num_splits))


@split.shapes
def _(node: Node) -> list[Tensor]:
    parts, type = node.attrs["num_splits"], node.types.get("T", "dynamic")
    data = node.dims.get("data")
    if data is None:
        return [Tensor(type, None)] * parts
    axis = axis_of(node, "C1", len(data))
    if axis is None:
        return [Tensor(type, tuple(fresh() for _ in data))] * parts
    size = data[axis]
    node.require("C2", size % parts == 0, f"axis {axis} has {size} elements, which {parts} parts do not divide", "data")
    return [Tensor(type, (*data[:axis], divided(size, parts), *data[axis + 1 :]))] * parts


@op(
    "VariadicSplit-1",
    types={"T": ANY, "T_AXIS": INTEGER, "T_LENGTHS": INTEGER},
    lenient_types={"T_AXIS": FLOAT, "T_LENGTHS": FLOAT},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("axis", "T_AXIS", ONE),
        Input("split_lengths", "T_LENGTHS", "[parts]"),
    ],
    outputs=[Output("outputs", "T", "...", variadic=True)],
    symbolic=True,
    view_of="data",
    traits=[Splitting("axis")],
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
    traits=[Cutting(("start", "stop"))],
)
def slice_8(data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None) -> Any:
    """Select start:stop:step along some axes, by the rules of Python.

    Constraints:
        C1: no step is 0.
        C2: each axis lies in [-r, r), r the rank of data.
        C3: no axis occurs twice, so there are no more slices than dimensions.

    Source: movement/slice-8.rst

    >>> op(np.arange(10), np.array([9]), np.array([-11]), np.array([-2])).tolist()
    [9, 7, 5, 3, 1]
    """
    return data[cut_index(data.ndim, start, stop, step, axes)]


@slice_8.shapes
def _(node: Node) -> Shapes:
    data, complete = node.shape("data"), node.complete
    cuts = read_cuts(node, ("C1", "C2", "C3"), len(data))
    if cuts is None:
        return {"output": any_cut_of(data)}
    found = cut_shape(data, cuts)
    if not any(isinstance(size, Dim) for size in (*cuts.steps, *(found[axis] for axis in cuts.axes))):
        node.complete = complete  # it is of that size whatever the bounds are
    return {"output": found}


@op(
    "SliceScatter-15",
    types={"T": NUMBER, **SLICE_TYPES},
    inputs=[Input("data", "T", "[d, *data]"), Input("updates", "T", "[*updates]", lenient=True), *SLICE_INPUTS],
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
        C3: no axis occurs twice, so there are no more slices than dimensions.
        C4: updates has the shape of what is selected.

    Source: movement/slice-scatter-15.rst

    >>> op(np.arange(5), np.array([10, 20]), np.array([1]), np.array([9]), np.array([2])).tolist()
    [0, 10, 2, 20, 4]
    """
    output = copy_for(data, updates)
    output[cut_index(data.ndim, start, stop, step, axes)] = updates
    return output


@slice_scatter.shapes
def _(node: Node) -> None:
    data = node.shape("data")
    cuts = read_cuts(node, ("C1", "C2", "C3"), len(data))
    check_shape(node, "C4", "updates", any_cut_of(data) if cuts is None else cut_shape(data, cuts))


@op(
    "StridedSlice-1",
    types={"T": ANY, "T_BEGIN": INTEGER, "T_END": INTEGER, "T_STRIDE": INTEGER},
    lenient_types={"T_STRIDE": FLOAT},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("begin", "T_BEGIN", "[m]"),
        Input("end", "T_END", "[m]"),
        Input("stride", "T_STRIDE", "[m]", optional=True),
    ],
    outputs=[Output("output", "T", "[*output]")],
    attrs=[
        Attr("begin_mask", INTS, least=0, most=1),
        Attr("end_mask", INTS, least=0, most=1, assumed=()),
        Attr("new_axis_mask", INTS, (), least=0, most=1),
        Attr("shrink_axis_mask", INTS, (), least=0, most=1),
        Attr("ellipsis_mask", INTS, (), least=0, most=1),
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
    new_axis_mask: tuple[int, ...],
    shrink_axis_mask: tuple[int, ...],
    ellipsis_mask: tuple[int, ...],
) -> Any:
    """Select begin:end:stride along the first axes; masks leave bounds out, add, remove and skip dimensions.

    Bounds are clamped as in Python, but that a begin before the first element is that element, also in reverse. Where
    masks meet, an ellipsis goes before a new axis, and that before a removed one. Removing a dimension takes the
    element at begin, whatever end and stride are.

    Constraints:
        C1: no stride is 0 where it counts.
        C2: there are at most as many slices as dimensions, new axes and an ellipsis apart.
        C3: ellipsis_mask has at most one 1.
        C4: where a dimension of size s is removed, begin lies in [-s, s).
        C5: the masks that have values have as many as begin_mask.

    Deviation: where the page contradicts itself we do as Python and OpenVINO: begin equal to end selects nothing,
    and end_mask with a negative stride includes element 0. begin_mask also holds where a dimension is removed, by
    the page; OpenVINO's reference differs from its CPU plugin there. The page allows masks of any length each, OpenVINO
    refuses them.

    Source: movement/strided-slice-1.rst

    >>> op(np.arange(6).reshape(2, 3), np.array([0, 1]), np.array([0, 1]), np.array([1, 1]),
    ...    begin_mask=(1, 0), end_mask=(1, 0), shrink_axis_mask=(0, 1)).tolist()
    [1, 4]
    """
    index: list[Any] = []
    sizes = iter(data.shape)
    for kind, i in strided_parts(data.ndim, len(begin), new_axis_mask, shrink_axis_mask, ellipsis_mask) or ():
        if kind == "new":
            index.append(None)
            continue
        size = next(sizes)
        if kind == "full":
            index.append(slice(None))
        elif kind == "shrink":
            index.append(0 if masked(begin_mask, i) else int(begin[i]))
        else:
            start = None if masked(begin_mask, i) else max(int(begin[i]), -size)
            stop = None if masked(end_mask, i) else int(end[i])
            index.append(slice(start, stop, None if stride is None else int(stride[i])))
    return data[(*index, ...)]


@strided_slice.shapes
def _(node: Node) -> Shapes:
    attrs = node.attrs
    if sum(attrs["ellipsis_mask"]) > 1:
        node.fail(
            "C3",
            f"`ellipsis_mask` has {sum(attrs['ellipsis_mask'])} ones, expected one at most",
            about=["ellipsis_mask"],
        )
    given = len(attrs["begin_mask"])
    for name in ("end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"):
        found = len(attrs[name])
        if found not in (0, given):
            node.fail("C5", f"`{name}` has {found} values, but `begin_mask` {given}", about=[name, "begin_mask"])
    data, slices = node.shape("data"), node.dims["m"]
    masks = (attrs["new_axis_mask"], attrs["shrink_axis_mask"], attrs["ellipsis_mask"])
    if isinstance(slices, Dim) and not any(any(mask) for mask in masks):  # however many, each leaves its dimension
        node.require("C2", slices <= len(data), f"`begin` has {slices} slices for {len(data)} dimensions", "begin")
        return {"output": tuple(fresh(0, size.high if isinstance(size, Dim) else size) for size in data)}
    count = int(slices)
    parts = strided_parts(len(data), count, *masks)
    if parts is None:
        node.fail("C2", f"`begin` has {count} slices for {len(data)} dimensions", "begin")
    names = ("begin", "end", "stride")
    begins, ends, strides = (node.sizes(name) or [fresh(None) for _ in range(count)] for name in names)
    if node.inputs["stride"] is None:
        strides = [1] * count
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
            if not ahead and (start < -1) is True:  # the last element is there, or none is
                start = largest(start, -size)
            stop = (ENDLESS if ahead else -ENDLESS) if masked(attrs["end_mask"], i) else ends[i]
            output.append(slice_length(size, start, stop, step))
    return {"output": tuple(output)}


@op(
    "Broadcast-1",
    types={"T": ANY, "T_SHAPE": INTEGER, "T_AXES": INTEGER},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("target_shape", "T_SHAPE", "[n]"),
        Input("axes_mapping", "T_AXES", "...", optional=True),  # OpenVINO writes a scalar where the mode ignores it
    ],
    outputs=[Output("output", "T", "[*output]")],
    attrs=[Attr("mode", choice("numpy", "explicit", "none"), "numpy", demanded=True)],
    symbolic=True,
    view_of="data",
    traits=[Repeating()],
)
def broadcast_1(data: Array, target_shape: Array, axes_mapping: Array | None = None, *, mode: str) -> Any:
    """Repeat the data along dimensions of size 1 until it has the target shape.

    Constraints:
        C1: the sizes in target_shape are 0 or more.
        C2: each dimension of data is 1, or the one of target_shape that it is mapped to: by axes_mapping in mode
            explicit, else counted from the end.
        C3: mode explicit needs axes_mapping, a vector with one axis for each dimension of data.
        C4: the axes in axes_mapping ascend and lie in [0, n), n the size of target_shape.

    Deviation: the mode `none`, which OpenVINO writes into its files, is another word for explicit.

    Source: movement/broadcast-1.rst

    >>> op(np.array([1, 2]), np.array([2, 3]), np.array([0]), mode="explicit").tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    return broadcast_data(data, target_shape, axes_mapping, mode)


broadcast_1.shapes(broadcast_to_shape)

broadcast_3 = variation(
    "Broadcast-3",
    broadcast_1,
    """Repeat the data along dimensions of size 1 until it has the target shape; bidirectional also keeps its own.

    Constraints:
        C1: the sizes in target_shape are 0 or more.
        C2: each dimension of data is 1, or the one of target_shape that it is mapped to: by axes_mapping in mode
            explicit, else counted from the end. In mode bidirectional that one may also be 1 or missing.
        C3: mode explicit, and no other, has axes_mapping, a vector with one axis for each dimension of data.
        C4: the axes in axes_mapping ascend and lie in [0, n), n the size of target_shape.

    Deviation: the page asks for numeric types; as in OpenVINO every type will do, and the mode `none` is explicit.

    Source: movement/broadcast-3.rst

    >>> op(np.array([[1], [2]]), np.array([1, 2]), mode="bidirectional").tolist()
    [[1, 1], [2, 2]]
    """,
    attrs=[Attr("mode", choice("numpy", "explicit", "none", "bidirectional"), "numpy")],
)

broadcast_3.lowers("Broadcast-1", mode=("numpy", "explicit"))


@op(
    "Tile-1",
    types={"T": ANY, "T_REPEATS": INDICES},
    inputs=[Input("data", "T", "[*data]"), Input("repeats", "T_REPEATS", "[n]")],
    outputs=[Output("output", "T", "[*output]")],
    symbolic=True,
    traits=[Doubting(negative_repeats)],
)
def tile(data: Array, repeats: Array) -> Any:
    """Repeat the data along its dimensions; the shorter of the shape and repeats gets ones in front.

    A negative number of repeats counts as 0, as in OpenVINO; the page does not say.

    Source: movement/tile-1.rst

    >>> op(np.array([1, 2]), np.array([2, 2])).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    return np.tile(data, [max(int(times), 0) for times in repeats])


@tile.shapes
def _(node: Node) -> Shapes:
    repeats, data = node.sizes("repeats"), node.shape("data")
    if repeats is None:
        raise Undecided
    rank = max(len(repeats), len(data))
    sizes = (1,) * (rank - len(data)) + data
    times: list[Size] = [1] * (rank - len(repeats))
    times += [largest(number, 0) for number in repeats]
    return {"output": tuple(size * number for size, number in zip(sizes, times, strict=True))}


PAD_TYPES = {"T_BEGIN": INTEGER, "T_END": INTEGER}
PADDING = Padding("pads_begin", "pads_end", "pad_value", "pad_mode")
PAD_MODE = Attr("pad_mode", choice("constant", "edge", "reflect", "symmetric"), assumed="constant")


@op(
    "Pad-1",
    types={"T": NUMBER, **PAD_TYPES},
    lenient_types={"T": frozenset({"string"})},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("pads_begin", "T_BEGIN", "[n]"),
        Input("pads_end", "T_END", "[n]"),
        Input("pad_value", "T", "[]", optional=True),
    ],
    outputs=[Output("output", "T", "[*output]")],
    attrs=[PAD_MODE],
    symbolic=True,
    view_of="data",
    traits=[PADDING],
)
def pad_1(data: Array, pads_begin: Array, pads_end: Array, pad_value: Array | None = None, *, pad_mode: str) -> Any:
    """Add elements in front of and behind the data: a constant, the edge, or a reflection without or with the edge.

    Constraints:
        C1: pads_begin and pads_end have one element for each dimension of data.
        C2: the pads are 0 or more.
        C3: in mode reflect pads are below the size of the dimension, in mode symmetric not above it, also those of 0;
            in mode edge a padded dimension is not empty.
        C4: no more is cropped than there is. (The page has an empty axis then, OpenVINO none or what lies beyond.)
        C5: strings are padded in mode constant only.

    Negative pads crop, as in OpenVINO and in Pad-12, with a warning; so it is with strings, which the page has not.

    Source: movement/pad-1.rst

    >>> op(np.array([1, 2, 3]), np.array([1]), np.array([2]), pad_mode="reflect").tolist()
    [2, 1, 2, 3, 2, 1]
    """
    return padded(data, pads_begin, pads_end, pad_value, pad_mode)


@pad_1.shapes
def _(node: Node) -> Shapes:
    for name in ("pads_begin", "pads_end"):
        for number, pad in enumerate(node.sizes(name) or ()):
            message = f"`{name}[{number}]` is {pad}, expected 0 or more"
            node.require("C2", pad >= 0, message, name, lenient="crops the data")
    _check_mode_of_strings(node, "C5")
    return padded_shape(node, "C1", "C3", "C4")


def _check_mode_of_strings(node: Node, label: str) -> None:
    mode = node.attrs["pad_mode"]
    if mode != "constant" and node.types.get("T") == "string":
        node.fail(label, f"`pad_mode` is {mode} for strings, expected constant", about=["pad_mode"])


pad_12 = variation(
    "Pad-12",
    pad_1,
    """Add elements in front of and behind the data, or crop it where pads are negative.

    What is cropped still counts for a reflection at the other end.

    Constraints:
        C1: pads_begin and pads_end have one element for each dimension of data.
        C2: in mode reflect pads are below the size of the dimension, in mode symmetric not above it, also those of 0;
            in mode edge a padded dimension is not empty.
        C3: strings are padded in mode constant only.
        C4: where anything is left, neither end crops more than there is. (Of what lies beyond it the page says nothing,
            and OpenVINO reads what is there.) Where nothing is left the axis is empty.

    Source: movement/pad-12.rst

    >>> op(np.array([1, 2, 3]), np.array([-1]), np.array([2]), pad_mode="edge").tolist()
    [2, 3, 3, 3]
    """,
    types={"T": ANY, **PAD_TYPES},
    traits=[PADDING, Doubting(crops_beyond)],
)


@pad_12.shapes
def _(node: Node) -> Shapes:
    _check_mode_of_strings(node, "C3")
    return padded_shape(node, "C1", "C2", "C4", clipped=True)


pad_12.lowers("Pad-1", natural=["pads_begin", "pads_end"])


@op(
    "Roll-7",
    types={"T": ANY, "T_IND_1": INDEX, "T_IND_2": INDEX},
    inputs=[Input("data", "T", "[*data]"), Input("shift", "T_IND_1", "[] | [n]"), Input("axes", "T_IND_2", "[] | [m]")],
    outputs=[Output("output", "T", "[*data]")],
)
def roll(data: Array, shift: Array, axes: Array) -> Any:
    """Shift the elements along axes, those that leave at the end coming in at the front; shifts of one axis add up.

    Constraints:
        C1: each axis lies in [-r, r), r the rank of data.
        C2: shift is a scalar, which goes for all axes, or a vector with a number for each axis in a vector of them.

    Source: movement/roll-7.rst

    >>> op(np.array([[1, 2, 3], [4, 5, 6]]), np.array([1, -1]), np.array([0, 1])).tolist()
    [[5, 6, 4], [2, 3, 1]]
    """
    steps = np.broadcast_to(shift.ravel(), axes.size)
    return np.roll(data, tuple(map(int, steps)), tuple(map(int, axes.ravel())))


@roll.shapes
def _(node: Node) -> None:
    shift, axes = node.inputs["shift"].shape, node.inputs["axes"].shape
    if shift and axes is not None:
        if not axes:
            node.fail("C2", "`shift` is a vector, but `axes` a scalar", "shift", about=["axes"])
        message = f"`shift` is a vector of {shift[0]} for {axes[0]} axes, expected a scalar or one for each"
        node.require("C2", shift[0] == axes[0], message, "shift")
    rank = len(node.shape("data"))
    node.within("C1", "axes", -rank, rank)


@op(
    "Transpose-1",
    types={"T": ANY, "T_AXIS": INTEGER},
    inputs=[Input("arg", "T", "[*arg]"), Input("input_order", "T_AXIS", "[n]")],
    outputs=[Output("output", "T", "[*output]")],
    symbolic=True,
    view_of="arg",
    traits=[Permutation("input_order")],
)
def transpose(arg: Array, input_order: Array) -> Any:
    """Put the dimensions into the given order, or into the opposite one where no order is given.

    Constraints:
        C1: input_order holds every axis of arg once, or nothing.

    Source: movement/transpose-1.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([1, 0])).tolist()
    [[1, 3], [2, 4]]
    """
    return arg.transpose([int(axis) for axis in input_order] if len(input_order) else None)


@transpose.shapes
def _(node: Node) -> Shapes:
    count = node.dims.get("n", fresh())
    shape = node.dims.get("arg")
    if shape is None:
        known = isinstance(count, int) and 0 < count <= MAX_RANK
        return {"output": tuple(fresh() for _ in range(count))} if known else {}
    fits = every([count != len(shape), count != 0])
    if fits is True:
        node.fail("C1", f"`input_order` has {count} axes for rank {len(shape)}", "input_order")
    order = node.numbers("input_order")
    if order is None:
        return {"output": shape[::-1] if (count == 0) is True else tuple(fresh() for _ in shape)}
    axes = order or [*range(len(shape))][::-1]
    if sorted(axes) != [*range(len(shape))]:
        node.fail(
            "C1", f"`input_order` is {axes}, expected the axes 0 to {len(shape) - 1} in some order", "input_order"
        )
    return {"output": tuple(shape[axis] for axis in axes)}


BLOCK_ATTRS = (
    Attr("block_size", INT, 1, least=1, demanded=True),
    Attr("mode", choice("blocks_first", "depth_first"), assumed="blocks_first"),
)


@op(
    "DepthToSpace-1",
    types={"T": ANY},
    inputs=[Input("data", "T", "[N, C, D1, *rest]")],
    outputs=[Output("output", "T", "[N, depth, *spatial]")],
    attrs=BLOCK_ATTRS,
    view_of="data",
)
def depth_to_space(data: Array, *, block_size: int, mode: str) -> Any:
    """Move blocks of the depth dimension into the spatial ones.

    Constraints:
        C1: block_size ** K divides C, K the number of spatial dimensions.

    Source: movement/depth-to-space-1.rst

    >>> op(np.arange(8).reshape(1, 4, 1, 2), block_size=2, mode="blocks_first").tolist()
    [[[[0, 2, 1, 3], [4, 6, 5, 7]]]]
    """
    count = data.ndim - 2
    blocks = [block_size] * count
    depth = data.shape[1] // block_size**count
    grouped = [*blocks, depth] if mode == "blocks_first" else [depth, *blocks]
    first = 1 if mode == "blocks_first" else 2
    order = [0, count + 1 if mode == "blocks_first" else 1]
    for number in range(count):
        order += [count + 2 + number, first + number]
    split = data.reshape(data.shape[0], *grouped, *data.shape[2:])
    return split.transpose(order).reshape(data.shape[0], depth, *(size * block_size for size in data.shape[2:]))


@depth_to_space.shapes
def _(node: Node) -> Shapes:
    shape, block = node.shape("data"), node.attrs["block_size"]
    blocks = block ** (len(shape) - 2)
    node.require("C1", shape[1] % blocks == 0, f"`C` is {shape[1]}, which {blocks} does not divide", "data")
    return {"depth": divided(shape[1], blocks), "spatial": tuple(size * block for size in shape[2:])}


@op(
    "SpaceToDepth-1",
    types={"T": ANY},
    inputs=[Input("data", "T", "[N, C, D1, *rest]")],
    outputs=[Output("output", "T", "[N, depth, *spatial]")],
    attrs=BLOCK_ATTRS,
    view_of="data",
)
def space_to_depth(data: Array, *, block_size: int, mode: str) -> Any:
    """Move blocks of the spatial dimensions into the depth one.

    Constraints:
        C1: block_size divides each spatial dimension.

    Source: movement/space-to-depth-1.rst

    >>> op(np.arange(8).reshape(1, 1, 2, 4), block_size=2, mode="blocks_first").tolist()
    [[[[0, 2]], [[1, 3]], [[4, 6]], [[5, 7]]]]
    """
    count = data.ndim - 2
    spatial = [size // block_size for size in data.shape[2:]]
    split = data.reshape(*data.shape[:2], *(n for size in spatial for n in (size, block_size)))
    blocks, rest = range(3, 3 + 2 * count, 2), range(2, 2 + 2 * count, 2)
    order = (0, *blocks, 1, *rest) if mode == "blocks_first" else (0, 1, *blocks, *rest)
    return split.transpose(order).reshape(data.shape[0], data.shape[1] * block_size**count, *spatial)


@space_to_depth.shapes
def _(node: Node) -> Shapes:
    shape, block = node.shape("data"), node.attrs["block_size"]
    for number, size in enumerate(shape[2:], 2):
        node.require("C1", size % block == 0, f"dimension {number} is {size}, which {block} does not divide", "data")
    depth = shape[1] * block ** (len(shape) - 2)
    return {"depth": depth, "spatial": tuple(divided(size, block) for size in shape[2:])}


@op(
    "BatchToSpace-2",
    types={"T": ANY, "T_INT": INTEGER},
    inputs=[
        Input("data", "T", "[batch, D1, *rest]"),
        Input("block_shape", "T_INT", "[n]"),
        Input("crops_begin", "T_INT", "[n]"),
        Input("crops_end", "T_INT", "[n]"),
    ],
    outputs=[Output("output", "T", "[*output]")],
    view_of="data",
)
def batch_to_space(data: Array, block_shape: Array, crops_begin: Array, crops_end: Array) -> Any:
    """Move blocks of the batch into the spatial dimensions, and crop these.

    Constraints:
        C1: block_shape, crops_begin and crops_end have one element for each dimension of data.
        C2: blocks are 1 or more, the first one is 1.
        C3: crops are 0 or more, the first ones are 0.
        C4: the product of block_shape divides the batch.
        C5: no more is cropped than a dimension has.

    Source: movement/batch-to-space-2.rst

    >>> op(np.array([[1, 3], [2, 4]]), np.array([1, 2]), np.array([0, 1]), np.array([0, 0])).tolist()
    [[2, 3, 4]]
    """
    blocks = [int(block) for block in block_shape[1:]]
    count = len(blocks)
    batch = data.shape[0] // prod(blocks)
    order = [count]
    for number in range(count):
        order += [count + 1 + number, number]
    spatial = [size * block for size, block in zip(data.shape[1:], blocks, strict=True)]
    whole = data.reshape(*blocks, batch, *data.shape[1:]).transpose(order).reshape(batch, *spatial)
    ends = (size - int(end) for size, end in zip(whole.shape, crops_end, strict=True))
    return whole[tuple(slice(int(begin), end) for begin, end in zip(crops_begin, ends, strict=True))]


@batch_to_space.shapes
def _(node: Node) -> Shapes:
    data, blocks, begins, ends = block_inputs(node, "C1", "C2", "C3", "crops_begin", "crops_end")
    total = product(blocks)
    node.require("C4", data[0] % total == 0, f"`batch` is {data[0]}, which {total} does not divide", "data")
    output = [divided(data[0], total)]
    for number, (size, block, begin, end) in enumerate(zip(data, blocks, begins, ends, strict=True)):
        if number:
            message = f"{begin} and {end} are cropped from the {size * block} elements of dimension {number}"
            node.require("C5", begin + end <= size * block, message, "crops_begin")
            output.append(size * block - begin - end)
    return {"output": tuple(size.within(0) if isinstance(size, Dim) else size for size in output)}


@op(
    "SpaceToBatch-2",
    types={"T": ANY, "T_INT": INTEGER},
    inputs=[
        Input("data", "T", "[batch, D1, *rest]"),
        Input("block_shape", "T_INT", "[n]"),
        Input("pads_begin", "T_INT", "[n]", lenient=True),
        Input("pads_end", "T_INT", "[n]", lenient=True),
    ],
    outputs=[Output("output", "T", "[*output]")],
    view_of="data",
)
def space_to_batch(data: Array, block_shape: Array, pads_begin: Array, pads_end: Array) -> Any:
    """Pad the spatial dimensions with zeros and move blocks of them into the batch.

    Constraints:
        C1: block_shape, pads_begin and pads_end have one element for each dimension of data.
        C2: blocks are 1 or more, the first one is 1.
        C3: pads are 0 or more, the first ones are 0.
        C4: each block divides its padded dimension.

    Source: movement/space-to-batch-2.rst

    >>> op(np.array([[2, 3, 4]]), np.array([1, 2]), np.array([0, 1]), np.array([0, 0])).tolist()
    [[0, 3], [2, 4]]
    """
    blocks = [int(block) for block in block_shape[1:]]
    whole = padded(data, pads_begin, pads_end, None, "constant")
    spatial = [size // block for size, block in zip(whole.shape[1:], blocks, strict=True)]
    split = whole.reshape(len(data), *(n for pair in zip(spatial, blocks, strict=True) for n in pair))
    order = (*range(2, split.ndim, 2), 0, *range(1, split.ndim, 2))
    return split.transpose(order).reshape(len(data) * prod(blocks), *spatial)


@space_to_batch.shapes
def _(node: Node) -> Shapes:
    data, blocks, begins, ends = block_inputs(node, "C1", "C2", "C3", "pads_begin", "pads_end")
    output = [data[0] * product(blocks)]
    for number, (size, block, begin, end) in enumerate(zip(data, blocks, begins, ends, strict=True)):
        if number:
            padded = size + begin + end
            message = f"dimension {number} is {padded} with its pads, which the block {block} does not divide"
            node.require("C4", padded % block == 0, message, "block_shape")
            output.append(divided(padded, block))
    return {"output": tuple(size.within(0) if isinstance(size, Dim) else size for size in output)}


@op(
    "Reverse-1",
    types={"T1": ANY, "T_AXIS": INTEGER | {"boolean"}},
    inputs=[Input("data", "T1", "[*data]"), Input("axis", "T_AXIS", "[n]")],
    outputs=[Output("output", "T1", "[*data]")],
    attrs=[Attr("mode", choice("index", "mask"), assumed="index")],
    opsets=frozenset({1}),
    view_of="data",
)
def reverse(data: Array, axis: Array, *, mode: str) -> Any:
    """Reverse the data along some axes, given by number or by a mask.

    Constraints:
        C1: axis holds integers in mode index, and booleans in mode mask.
        C2: a mask has one element for each dimension of data; there are at most so many indices.
        C3: each index lies in [0, r), r the rank of data.
        C4: no index is there twice.

    Source: movement/reverse-1.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([False, True]), mode="mask").tolist()
    [[2, 1], [4, 3]]
    """
    axes = np.flatnonzero(axis) if mode == "mask" else axis
    return np.flip(data, tuple(set(map(int, axes))))


@reverse.shapes
def _(node: Node) -> None:
    mask = node.attrs["mode"] == "mask"
    type = node.types.get("T_AXIS")
    if type is not None and mask != (type == "boolean"):
        node.fail("C1", f"`axis` is {type} in mode {node.attrs['mode']}", "axis")
    rank, count = len(node.shape("data")), node.dims["n"]
    message = f"`axis` has {count} elements for data of rank {rank}"
    node.require("C2", count == rank if mask else count <= rank, message, "axis")
    if mask:
        return
    node.within("C3", "axis", 0, rank)
    axes = node.numbers("axis")
    if axes is not None:
        count_once(node, "C4", "axis", axes, set(axes))


@op(
    "ReverseSequence-1",
    types={"T1": ANY, "T2": NUMERIC},
    inputs=[Input("data", "T1", "[D0, D1, *rest]"), Input("seq_lengths", "T2", "[batch]")],
    outputs=[Output("output", "T1", "[D0, D1, *rest]")],
    attrs=[Attr("batch_axis", INT, 0), Attr("seq_axis", INT, 1)],
)
def reverse_sequence(data: Array, seq_lengths: Array, *, batch_axis: int, seq_axis: int) -> Any:
    """Reverse the first elements of each sequence, as many as its length says.

    Constraints:
        C1: batch_axis lies in [-r, r), r the rank of data.
        C2: seq_axis lies in [-r, r) and is another axis than batch_axis.
        C3: seq_lengths has one element for each batch.
        C4: each length lies in [1, s], s the size of seq_axis. One of 0 is that of a sequence of padding: it reverses
            nothing, as 1 does.

    Source: movement/reverse-sequence-1.rst

    >>> op(np.array([[1, 2, 3], [4, 5, 6]]), np.array([2, 3])).tolist()
    [[2, 1, 3], [6, 5, 4]]
    """
    ahead = np.moveaxis(data, (batch_axis, seq_axis), (0, 1))
    places = np.arange(ahead.shape[1])
    lengths = seq_lengths.astype(np.intp)[:, None]
    mirrored = np.where(places < lengths, lengths - 1 - places, places)
    return np.moveaxis(ahead[np.arange(len(ahead))[:, None], mirrored], (0, 1), (batch_axis, seq_axis))


@reverse_sequence.shapes
def _(node: Node) -> Shapes:
    data = node.shape("data")
    batch = normal_axis(node, "C1", node.attrs["batch_axis"], len(data), "batch_axis")
    along = normal_axis(node, "C2", node.attrs["seq_axis"], len(data), "seq_axis")
    if batch == along:
        node.fail("C2", f"`seq_axis` and `batch_axis` are both {along}", about=["seq_axis", "batch_axis"])
    count = node.dims.get("batch", data[batch])
    message = f"`seq_lengths` has {count} elements for {data[batch]} batches"
    node.require("C3", count == data[batch], message, "seq_lengths")
    node.within("C4", "seq_lengths", 0, data[along] + 1)
    lengths = node.numbers("seq_lengths") or []
    if 0 in lengths:
        message = f"`seq_lengths[{lengths.index(0)}]` is 0, expected 1 or more"
        node.tolerate("C4", "reverses nothing there, as with 1", message, "seq_lengths")
    first, second, *rest = (meet(size, count) if axis == batch else size for axis, size in enumerate(data))
    return {"D0": first, "D1": second, "rest": tuple(rest)}


@op(
    "ShuffleChannels-1",
    types={"T": NUMBER},
    inputs=[Input("data", "T", "[*data]")],
    outputs=[Output("output", "T", "[*data]")],
    attrs=[Attr("axis", INT, 1), Attr("group", INT, 1, least=1)],
    opsets=frozenset({1, *range(3, 17)}),
    view_of="data",
)
def shuffle_channels(data: Array, *, axis: int, group: int) -> Any:
    """Interleave the groups of an axis: the first of each group, then the second of each, and so on.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: group divides the size of the axis.

    Source: movement/shuffle-channels-1.rst

    >>> op(np.array([[1, 2, 3, 4, 5, 6]]), group=2).tolist()
    [[1, 4, 2, 5, 3, 6]]
    """
    along = axis % data.ndim
    split = data.reshape(*data.shape[:along], group, data.shape[along] // group, *data.shape[along + 1 :])
    return split.swapaxes(along, along + 1).reshape(data.shape)


@shuffle_channels.shapes
def _(node: Node) -> None:
    data, group = node.shape("data"), node.attrs["group"]
    size = data[normal_axis(node, "C1", node.attrs["axis"], len(data))]
    node.require("C2", size % group == 0, f"the axis has {size} elements, which {group} groups do not divide", "data")


@op(
    "GatherTree-1",
    types={"T": NUMERIC},
    inputs=[
        Input("step_ids", "T", "[MAX_TIME, BATCH_SIZE, BEAM_WIDTH]"),
        Input("parent_ids", "T", "[MAX_TIME, BATCH_SIZE, BEAM_WIDTH]"),
        Input("max_seq_len", "T", "[BATCH_SIZE]"),
        Input("end_token", "T", "[]"),
    ],
    outputs=[Output("final_ids", "T", "[MAX_TIME, BATCH_SIZE, BEAM_WIDTH]")],
)
def gather_tree(step_ids: Array, parent_ids: Array, max_seq_len: Array, end_token: Array) -> Any:
    """Follow each beam from its last step back through its parents; end_token fills what lies behind its first one.

    Constraints:
        C1: the lengths in max_seq_len are 0 or more.
        C2: the parents in steps 1 to max_seq_len - 1 lie in [0, BEAM_WIDTH).

    Source: movement/gather-tree-1.rst

    >>> op(np.array([[[1, 2]], [[3, 4]]]), np.array([[[0, 0]], [[1, 0]]]), np.array([2]), np.array(9)).tolist()
    [[[2, 1]], [[3, 4]]]
    """
    steps, batches, beams = step_ids.shape
    output = np.full(step_ids.shape, end_token, step_ids.dtype)
    lengths = np.minimum(max_seq_len.astype(np.intp), steps)[:, None]
    batch = np.arange(batches)[:, None]
    place = np.broadcast_to(np.arange(beams), (batches, beams))
    for step in reversed(range(steps)):
        inside = step < lengths
        taken = np.where(inside, place, 0)
        output[step] = np.where(inside, step_ids[step, batch, taken], end_token)
        if step:
            place = np.where(inside, parent_ids[step, batch, taken].astype(np.intp), place)
    ended = np.logical_or.accumulate(output == end_token, axis=0)
    output[1:][ended[:-1]] = end_token
    return output


@gather_tree.shapes
def _(node: Node) -> None:
    lengths, parents = node.value("max_seq_len"), node.value("parent_ids")
    for number, length in enumerate(() if lengths is None else lengths):
        node.require("C1", bool(length >= 0), f"`max_seq_len[{number}]` is {length}, expected 0 or more", "max_seq_len")
    if lengths is None or parents is None:
        return
    step = np.arange(len(parents))[:, None, None]
    used = (step >= 1) & (step < lengths[:, None])
    wrong = used & ((parents < 0) | (parents >= parents.shape[2]))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = ", ".join(map(str, place))
        node.fail("C2", f"`parent_ids[{where}]` is {parents[place]}, outside [0, {parents.shape[2]})", "parent_ids")


@op(
    "Unique-10",
    types={"T": ANY, "T_AXIS": INDEX},
    inputs=[Input("data", "T", "[*data]"), Input("axis", "T_AXIS", ONE, optional=True)],
    outputs=[
        Output("values", "T", "[*values]"),
        Output("first", "index_element_type", "[unique]"),
        Output("inverse", "index_element_type", "[total]"),
        Output("counts", "count_element_type", "[unique]"),
    ],
    attrs=[
        Attr("sorted", BOOL, True),
        Attr("index_element_type", choice("i64", "i32"), "i64"),
        Attr("count_element_type", choice("i64", "i32"), "i64"),
    ],
)
def unique(
    data: Array,
    axis: Array | None = None,
    *,
    sorted: bool,
    index_element_type: str,
    count_element_type: str,
) -> Any:
    """Find the distinct elements, or slices along an axis; where they first occur, which one each is, their number.

    Without sorting they come in the order in which they first occur. NaNs count as equal; the page does not say.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: axis is constant.

    Source: movement/unique-10.rst

    >>> [array.tolist() for array in op(np.array([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    along = None if axis is None else int(axis.item()) % max(data.ndim, 1)
    if along is None or data.ndim < 2:
        first, inverse, counts = distinct(data.reshape(-1))
    else:
        slices = np.moveaxis(data, along, 0)
        first, inverse, counts = distinct_rows(slices.reshape(len(slices), prod(slices.shape[1:])))
    if not sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, inverse, counts = first[order], rank[inverse], counts[order]
    values = data.reshape(-1)[first] if along is None else np.take(data, first, along)
    index, count = numpy_dtype(index_element_type), numpy_dtype(count_element_type)
    return values, first.astype(index), inverse.astype(index), counts.astype(count)


@unique.shapes
def _(node: Node) -> Shapes:
    data = node.dims.get("data")
    if data is None:
        return {} if node.inputs["axis"] is not None else {"values": (count := fresh(),), "unique": count}
    axis = None
    if node.inputs["axis"] is not None:
        axis = axis_of(node, "C1", len(data))
        if axis is None:
            return {"values": tuple(fresh() for _ in data)}
    total = product(data) if axis is None else data[axis]
    low, high = (total, total) if isinstance(total, int) else (total.low or 0, total.high)
    found: Size = fresh(min(low, 1), high).within()
    values = (found,) if axis is None else (*data[:axis], found, *data[axis + 1 :])
    return {"values": values, "unique": found, "total": total}


def _axis_varies(inputs: Sequence[Source]) -> bool:
    _, axis = inputs
    return axis.tensor.type != "dynamic" and not axis.constant()  # of what is not known at all something else is said


def _unique_by_a_varying_axis(node: Node) -> None:
    node.fail("C2", "`axis` is known in a run only, expected a Const", "axis")


unique.folds(_axis_varies, rule=_unique_by_a_varying_axis)


@op(
    "Col2Im-15",
    types={"T": NUMERIC | {"boolean"}, "T_IND": INDEX},
    inputs=[
        Input("data", "T", "[N, CK, L] | [CK, L]"),
        Input("output_size", "T_IND", "[2]"),
        Input("kernel_size", "T_IND", "[2]"),
    ],
    outputs=[Output("output", "T", "[*batch, C, H, W]")],
    attrs=[
        Attr("strides", INTS, (1, 1), least=1, demanded=True),
        Attr("dilations", INTS, (1, 1), least=1, demanded=True),
        Attr("pads_begin", INTS, (0, 0), least=0, demanded=True),
        Attr("pads_end", INTS, (0, 0), least=0, demanded=True),
    ],
)
def col_2_im(
    data: Array,
    output_size: Array,
    kernel_size: Array,
    *,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads_begin: tuple[int, ...],
    pads_end: tuple[int, ...],
) -> Any:
    """Add the blocks in the columns of the data into an image, each where a sliding window took it from.

    Constraints:
        C1: strides, dilations, pads_begin and pads_end have two values.
        C2: output_size and kernel_size are 1 or more, and the dilated kernel fits into the padded image.
        C3: the product of kernel_size divides the rows CK.
        C4: the columns L are as many as the windows.

    Deviation: the page lists output_size and kernel_size as attributes, and calls strides `stride`; as in OpenVINO's
    files the sizes are inputs. As there, data may lack the batch.

    Source: movement/col2im-15.rst

    >>> op(np.ones((1, 4, 4)), np.array([3, 3]), np.array([2, 2])).tolist()
    [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """
    kernel, size = [int(n) for n in kernel_size], [int(n) for n in output_size]
    grid = axes_of(size, kernel, strides=strides, pads_begin=pads_begin, pads_end=pads_end, dilations=dilations)
    windows = [int(axis.windows) for axis in grid]
    half = data.dtype.itemsize == 2 and element_type(data.dtype) in FLOAT
    columns = data.reshape(*data.shape[:-2], data.shape[-2] // prod(kernel), *kernel, *windows)
    padded = [n + a + b for n, a, b in zip(size, pads_begin, pads_end, strict=True)]
    image = np.zeros((*columns.shape[:-4], *padded), np.float32 if half else data.dtype)
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            steps = zip((row, column), windows, strides, dilations, strict=True)
            taps: list[Any] = [slice(tap * gap, tap * gap + (n - 1) * step + 1, step) for tap, n, step, gap in steps]
            image[(..., *taps)] += columns[..., row, column, :, :]
    inside: list[Any] = [slice(begin, begin + n) for begin, n in zip(pads_begin, size, strict=True)]
    return image[(..., *inside)].astype(data.dtype)


@col_2_im.shapes
def _(node: Node) -> Shapes:
    check_lengths(node, "C1", 2, ("strides", "dilations", "pads_begin", "pads_end"))
    size = node.sizes("output_size") or [fresh(), fresh()]
    kernel = node.sizes("kernel_size") or [fresh(), fresh()]
    for name, values in (("output_size", size), ("kernel_size", kernel)):
        for number, value in enumerate(values):
            node.require("C2", value >= 1, f"`{name}[{number}]` is {value}, expected 1 or more", name)
    size, kernel = ([n.within(1) if isinstance(n, Dim) else n for n in values] for values in (size, kernel))
    names = ("strides", "pads_begin", "pads_end", "dilations")
    grid = axes_of(size, kernel, **{name: node.attrs[name] for name in names})
    windows = product(check_windows(node, "C2", grid))
    data = node.shape("data")
    rows, columns = data[-2:]
    taps = product(kernel)
    node.require("C3", rows % taps == 0, f"`CK` is {rows}, which a kernel of {taps} elements does not divide", "data")
    node.require("C4", columns == windows, f"`L` is {columns}, expected {windows} windows", "data")
    return {"batch": data[:-2], "C": rows // taps, "H": size[0], "W": size[1]}


@op(
    "ExtractImagePatches-3",
    types={"T": ANY},
    inputs=[Input("data", "T", "[batch, depth, in_rows, in_cols]")],
    outputs=[Output("output", "T", "[batch, patch, out_rows, out_cols]")],
    attrs=[
        Attr("sizes", INTS, least=1),
        Attr("strides", INTS, least=1),
        Attr("rates", INTS, least=1),
        Attr("auto_pad", choice("same_upper", "same_lower", "valid")),
    ],
    view_of="data",
)
def extract_image_patches(
    data: Array, *, sizes: tuple[int, ...], strides: tuple[int, ...], rates: tuple[int, ...], auto_pad: str
) -> Any:
    """Stack the patches under a sliding window in the depth dimension: by row, then column, then depth.

    Constraints:
        C1: sizes, strides and rates have two values.
        C2: with auto_pad valid the dilated patch fits into the image. (Else there are no patches, as in OpenVINO, with
            a warning.)

    Source: movement/extract-image-patches-3.rst

    >>> op(np.arange(9).reshape(1, 1, 3, 3), sizes=(2, 2), strides=(2, 2), rates=(1, 1), auto_pad="valid").tolist()
    [[[[0]], [[1]], [[3]], [[4]]]]
    """
    grid = axes_of(data.shape[2:], sizes, strides=strides, dilations=rates, auto_pad=auto_pad)
    if not all(axis.fits for axis in grid):
        windows = [max(int(axis.windows), 0) for axis in grid]
        return np.zeros((len(data), data.shape[1] * prod(sizes), *windows), data.dtype)
    fill = "" if data.dtype.kind == "U" else 0
    found = patches(framed(data, grid, fill), grid).transpose(0, 2, 3, 1, 4, 5)
    return found.reshape(len(data), prod(found.shape[1:4]), *found.shape[4:])


@extract_image_patches.shapes
def _(node: Node) -> Shapes:
    check_lengths(node, "C1", 2, ("sizes", "strides", "rates"))
    data, attrs = node.shape("data"), node.attrs
    grid = axes_of(
        data[2:], attrs["sizes"], strides=attrs["strides"], dilations=attrs["rates"], auto_pad=attrs["auto_pad"]
    )
    rows, columns = check_windows(node, "C2", grid, lenient="gives no patches")
    return {"patch": data[1] * prod(attrs["sizes"]), "out_rows": rows, "out_cols": columns}
