"""Indices into tensors: how gathers and scatters check them, turn them into positions and reduce what meets there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.spec import (
    Array,
    Dim,
    Node,
    Shape,
    Size,
    Sizes,
    broadcast,
    comparable,
    every,
    fresh,
    meet,
    product,
    shape_text,
)

from ._precision import accumulator

UFUNCS = {"sum": "add", "sub": "subtract", "prod": "multiply", "min": "minimum", "max": "maximum", "mean": "add"}
"""The functions of numpy that updates go by."""

FEW = 1 << 9
"""Elements of a mask whose places numpy finds sooner by one call than by several."""

REDUCED = 1 << 16
"""Elements of rows that are reduced at a time."""

ONCE = "counts an axis once"
"""What OpenVINO does where an axis is listed twice."""

PUT_AT_ONCE = 1 << 16
"""Elements."""

WRAPS = "counts negative indices from the end"
"""What OpenVINO does with them, also where the specification has none."""

COLUMNS = 16
"""The fewest that are put at once: those of 4 bytes fill a line of the cache."""


def axis_of(node: Node, label: str, rank: int, name: str = "axis") -> int | None:
    """The axis in input `name`, counted from the front; None where it is unknown. A scalar has none, whatever it is."""
    axis = node.numbers(name)
    if axis is not None:
        return normal_axis(node, label, int(axis[0]), rank, name)
    if rank == 0:
        node.fail(label, f"`{name}` is an axis of a scalar, which has none", about=[name])
    return None


def normal_axis(node: Node, label: str, axis: int, rank: int, name: str = "axis", number: int | None = None) -> int:
    """As `Node.axis`, but every axis of a scalar is reported."""
    if rank == 0:
        node.fail(label, f"`{name}` is {axis}, outside [0, 0) for rank 0", about=[name])
    return node.axis(label, axis, rank, name, number)


def count_once(
    node: Node, label: str, name: str, axes: Sequence[int], places: Collection[int], *, port: bool = True
) -> None:
    """Warn of axes where one is listed twice, so that there are fewer `places`; at the port of that name if so."""
    if len(places) < len(axes):
        message = f"`{name}` is {list(axes)}, which has an axis twice"
        node.tolerate(label, ONCE, message, name if port else None, about=() if port else [name])


def check_shape(node: Node, label: str, name: str, expected: Shape) -> None:
    """Require input `name` to have the shape `expected`."""
    shape = node.shape(name)
    fits = len(shape) == len(expected) and every(a == b for a, b in zip(shape, expected, strict=True))
    node.require(label, fits, f"`{name}` is {shape_text(shape)}, expected {shape_text(expected)}", name)


def check_tuples(node: Node, label: str, name: str, sizes: Sequence[Size], *, negative: bool) -> None:
    """Require column j of input `name` to lie in [0, sizes[j]), or in [-sizes[j], sizes[j]) with `negative`.

    Negative ones of the latter range are a warning without it.
    """
    tensor = node.inputs[name]
    listed = tensor.listed if tensor.known else None
    lows = [-size if negative and isinstance(size, int) else 0 for size in sizes]
    if listed is not None and not any(isinstance(size, Dim) for size in sizes):
        columns = enumerate(zip(lows, sizes, strict=True))
        if all(low <= number < size for n, (low, size) in columns for number in listed[n :: len(sizes)]):
            return
    value = node.value(name)
    if value is None:
        return
    value = comparable(value)
    found: dict[bool, str] = {}
    for column, size in enumerate(sizes):
        part = value[..., column]
        low, most = lows[column], size
        if isinstance(size, Dim):  # what lies beyond the largest that it may be
            node.complete = False
            if size.high is None:
                continue
            low, most = -size.high, size.high
        if part.size and (int(part.min()) < low or int(part.max()) >= most):
            beyond = (part < -most) | (part >= most)
            position = tuple(int(i) for i in np.argwhere(beyond if beyond.any() else part < low)[0])
            where = ", ".join(map(str, (*position, column)))
            message = f"`{name}[{where}]` is {part[position]}, outside [{low}, {size})"
            found.setdefault(bool(beyond.any()), message)
    if True in found:
        node.fail(label, found[True], name)
    if found:
        node.tolerate(label, WRAPS, found[False], name)


def wrapped(indices: Array, size: int) -> Array:
    """Indices as numpy's, with negative ones counted from the end."""
    positions = np.asarray(indices, np.intp, order="C")
    return np.where(positions < 0, positions + size, positions) if (positions < 0).any() else positions


def take(data: Array, indices: Array, axis: int, batch: int) -> Array:
    """The slices of `data` along `axis` at `indices`, which has its first `batch` dimensions in common with it."""
    if isinstance(data, Sizes) and isinstance(indices, Sizes) and not batch:
        return data.take(indices, axis)
    if not batch:
        return np.asarray(np.take(data, indices, axis), data.dtype)
    ahead = np.moveaxis(data, axis, batch)
    taken: Array = ahead[(*grid(indices.shape, range(batch)), indices)]
    inner = indices.ndim - batch  # the dimensions of the indices belong where the axis was
    return np.moveaxis(taken, range(batch, indices.ndim), range(axis, axis + inner))


def grid(shape: Sequence[int], axes: Sequence[int]) -> list[Array]:
    """For each of `axes` the coordinate along it, in a shape that broadcasts to `shape`."""
    rank = len(shape)
    return [np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(rank)]) for axis in axes]


def tuple_positions(tuples: Array, shape: Sequence[int]) -> Array:
    """The row-major position in `shape` of every tuple in the last dimension of `tuples`; negative indices wrap."""
    positions = np.zeros(tuples.shape[:-1], np.intp)
    for column, size in enumerate(shape):
        positions *= size
        positions += _inside(wrapped(tuples[..., column], size), size)
    return positions


def element_positions(indices: Array, shape: Sequence[int], axis: int) -> Array:
    """The row-major position in `shape` of every element of `indices`, which replace the coordinate along `axis`."""
    positions: Array = _inside(wrapped(indices, shape[axis]), shape[axis]) * prod(shape[axis + 1 :])
    for number in range(len(shape)):
        if number != axis:
            if indices.shape[number] > shape[number]:
                raise IndexError(f"{indices.shape[number]} indices along an axis of {shape[number]}")
            positions += grid(indices.shape, [number])[0] * prod(shape[number + 1 :])
    return positions


def _inside(positions: Array, size: int) -> Array:
    """Positions along an axis, which in row-major ones would lead into other rows. Raises IndexError beyond it."""
    if positions.size and (positions.min() < 0 or positions.max() >= size):
        raise IndexError(f"an index is outside [{-size}, {size})")
    return positions


def gather_nd(data: Array, indices: Array, batch: int) -> Array:
    """The slices of `data` at the tuples in the last dimension of `indices`, whose first `batch` ones broadcast."""
    length = indices.shape[-1]
    common = np.broadcast_shapes(data.shape[:batch], indices.shape[:batch])
    indexed, rest = data.shape[batch : batch + length], data.shape[batch + length :]
    positions = np.broadcast_to(tuple_positions(indices, indexed), (*common, *indices.shape[batch:-1]))
    flat = np.broadcast_to(data, (*common, *data.shape[batch:])).reshape(*common, prod(indexed), *rest)
    return np.asarray(flat[(*grid(positions.shape, range(batch)), positions)], data.dtype)


def gather_nd_shape(node: Node, labels: Sequence[str], *, negative: bool) -> Shape:
    """Check a GatherND; `labels` are those of batch_dims, the tuple length, the batch dimensions and the indices."""
    batch = node.attrs["batch_dims"]
    ranks = _ranks(node)
    most = min(ranks.values(), default=batch + 1)
    if not 0 <= batch < most:
        said = " and ".join(f"{name} of rank {rank}" for name, rank in ranks.items())
        node.fail(labels[0], f"`batch_dims` is {batch}, outside [0, {most}) for {said}", about=["batch_dims"])
    data, indices = node.shape("data"), node.shape("indices")
    length = indices[-1]
    over = f"`indices` has tuples of {length}, but `data` has {len(data)} dimensions, {batch} of them batch dimensions"
    node.require(labels[1], length <= len(data) - batch, over, "indices", about=["data"])
    common: list[Size] = []
    for number, (a, b) in enumerate(zip(data[:batch], indices[:batch], strict=True)):
        size = broadcast(a, b)
        if size is None:
            node.fail(
                labels[2], f"dimension {number} is {a} in `data`, but {b} in `indices`", about=["data", "indices"]
            )
        common.append(size)
    rank_known = int(length)  # raises Undecided where the length of the tuples, so the rank, is unknown
    check_tuples(node, labels[3], "indices", data[batch : batch + rank_known], negative=negative)
    return (*common, *indices[batch:-1], *data[batch + rank_known :])


def scatter(target: Array, positions: Array, updates: Array, reduction: str, use_init_val: bool = True) -> None:
    """Reduce `updates` into the rows of `target` at `positions`, in place; `none` lets the last one win.

    `positions` is 1D, `target` and `updates` have rows of the same shape.
    """
    if reduction == "none":
        target[positions] = updates
        return
    xor = reduction == "sub" and target.dtype == np.bool_
    ufunc = np.logical_xor if xor else getattr(np, UFUNCS[reduction])
    wide = accumulator(target.dtype, reduction)
    with np.errstate(all="ignore"):
        if wide == target.dtype and reduction != "mean":
            if not use_init_val:
                target[positions] = _neutral(reduction, target.dtype)
            _reduce(ufunc, target, positions, updates)
            return
        touched, slots = renumbered(positions, len(target))
        total = target[touched].astype(wide)
        if not use_init_val:
            total[...] = _neutral(reduction, wide)
        _reduce(ufunc, total, slots, updates.astype(wide))
        if reduction == "mean":
            counts = np.bincount(slots, minlength=len(touched)) + use_init_val
            counts = counts.astype(wide).reshape(-1, *[1] * (total.ndim - 1))
            total = total // counts if wide.kind in "iuO" else total / counts  # objects are sizes
        target[touched] = total.astype(target.dtype)


def _reduce(ufunc: np.ufunc, target: Array, positions: Array, updates: Array) -> None:
    """`ufunc.at` on rows, which takes several times as long as on single elements, in the same order."""
    inner = prod(target.shape[1:])
    if target.ndim == 1 or not target.flags.c_contiguous or not inner or positions.min(initial=0) < 0:
        ufunc.at(target, positions, updates)
        return
    rows = np.broadcast_to(updates, (len(positions), *target.shape[1:])).reshape(-1, inner)
    elements, columns = target.reshape(-1), np.arange(inner)
    some = max(REDUCED // inner, 1)
    for first in range(0, len(positions), some):
        part = slice(first, first + some)
        ufunc.at(elements, (positions[part, np.newaxis] * inner + columns).ravel(), rows[part].ravel())


def places_of(mask: Array) -> Any:
    """Where a mask of one axis or more holds, in row-major order: [rank, count], as np.nonzero gives it.

    That takes several times as long of more than one axis, unless there are few elements.
    """
    if mask.size <= FEW:
        return np.array(mask.nonzero(), np.int64)
    places = np.flatnonzero(mask)
    found = np.empty((mask.ndim, len(places)), np.int64)
    for axis in range(mask.ndim - 1, 0, -1):
        size = max(mask.shape[axis], 1)
        before = places // size
        np.subtract(places, before * size, out=found[axis])
        places = before
    found[0] = places
    return found


def renumbered(positions: Array, size: int) -> tuple[Array, Array]:
    """The different positions, of those below `size`, in order, and where among them each is: without sorting them."""
    seen = np.zeros(size, np.bool_)
    seen[positions] = True
    different = np.flatnonzero(seen)
    numbers = np.empty(size, np.intp)
    numbers[different] = np.arange(len(different))
    return different, numbers[positions]


def distinct(data: Array) -> tuple[Array, Array, Array]:
    """Of the distinct elements of a vector in order: where each is first, which one each element is, their numbers."""
    if data.dtype.kind not in "iu":
        _, first, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
        return first, inverse, counts
    order = _order(data)
    ordered = data[order]
    new = np.ones(len(data), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], new[1:])
    starts = np.flatnonzero(new)
    inverse = np.empty(len(data), np.intp)
    inverse[order] = np.cumsum(new) - 1
    return order[starts], inverse, np.diff(starts, append=len(data))


def _order(data: Array) -> Any:
    """What sorts a vector of integers, equal ones in their order. Of 16 bits numpy does that ten times as quickly, so
    integers that lie close together are sorted by these, and by the next ones."""
    span = int(data.max()) - int(data.min()) if data.size else 0
    if not data.size or span >= 1 << 32:
        return data.argsort(kind="stable")
    above = (data.astype(np.int64) - data.min().astype(np.int64)).astype(np.uint32)
    order = above.astype(np.uint16).argsort(kind="stable")
    if span < 1 << 16:
        return order
    return order[(above >> 16).astype(np.uint16)[order].argsort(kind="stable")]


def distinct_rows(rows: Array) -> tuple[Array, Array, Array]:
    """As `distinct`, of the rows of a matrix, which may have no elements: by one number for each, as long as there are
    integers for that, and by its place among those that there are then."""
    _, codes, _ = distinct(rows.reshape(-1))
    codes = codes.reshape(rows.shape)
    base, most = int(codes.max(initial=0)) + 1, 1
    numbers = np.zeros(len(rows), np.int64)
    for column in range(rows.shape[1]):
        if most * base >= 1 << 62:
            _, numbers, _ = distinct(numbers)
            most = len(rows)
        numbers = numbers * base + codes[:, column]
        most *= base
    return distinct(numbers)


def _neutral(reduction: str, dtype: np.dtype[Any]) -> Any:
    """The value that changes nothing when it is reduced with another."""
    if reduction in ("sum", "mean"):
        return dtype.type(0)
    if reduction == "prod":
        return dtype.type(1)
    least = reduction == "max"
    if dtype.kind == "b":
        return not least
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if least else limits.max
    return dtype.type(-np.inf if least else np.inf)


def _ranks(node: Node) -> dict[str, int]:
    """The ranks of data and indices that are known."""
    return {name: len(shape) for name in ("data", "indices") if (shape := node.inputs[name].shape) is not None}


def gather_axis(node: Node, label: str) -> int | None:
    """The axis of a Gather, counted from the front; None where it is unknown, or counts from an end that is."""
    data: Shape | None = node.inputs["data"].shape
    if data is not None:
        return axis_of(node, label, len(data))
    given = node.numbers("axis")
    return None if given is None or given[0] < 0 else int(given[0])


def common_dims(node: Node, range_label: str, equal_label: str, axis: int | None) -> int:
    """The batch dimensions of a Gather, after checking their number and their sizes.

    Raises `Undecided` where a rank is unknown, after checking their number against what is known.
    """
    ranks = _ranks(node)
    given: int = node.attrs["batch_dims"]
    batch = given + ranks.get("indices", -given) if given < 0 else given
    limits = [*ranks.values(), *([] if axis is None else [axis])]
    if axis is None and ranks.get("data"):  # no axis lies behind the last one
        limits.append(ranks["data"] - 1)
    if not 0 <= batch <= min(limits, default=batch):
        said = ", ".join(f"{name} of rank {rank}" for name, rank in ranks.items())
        along = "" if axis is None else f"{' and ' if said else ''}axis {axis}"
        node.fail(range_label, f"`batch_dims` is {given} for {said}{along}", about=["batch_dims"])
    data, indices = node.shape("data"), node.shape("indices")
    for number, (a, b) in enumerate(zip(data[:batch], indices[:batch], strict=True)):
        node.require(
            equal_label, a == b, f"dimension {number} is {a} in `data`, but {b} in `indices`", about=["data", "indices"]
        )
    return batch


def gathered_shape(data: Any, indices: Any, axis: int | None, batch: int) -> tuple[Size, ...]:
    common = tuple(map(meet, data[:batch], indices[:batch]))
    if axis is None:
        return (*common, *(fresh() for _ in range(len(data) - 1 + len(indices) - 2 * batch)))
    return (*common, *data[batch:axis], *indices[batch:], *data[axis + 1 :])


def scatter_elements_shapes(node: Node, label: str) -> tuple[Shape | None, Shape | None, int]:
    """The shapes of data and of indices with updates, and their rank, after checking that it is the same."""
    data, indices = node.dims.get("data"), node.dims.get("indices")
    if data is not None and indices is not None and len(data) != len(indices):
        node.fail(
            label,
            f"`indices` and `updates` have rank {len(indices)}, but `data` has rank {len(data)}",
            "indices",
            about=["updates", "data"],
        )
    return data, indices, len(node.dims["indices"] if data is None else data)


def put(data: Array, indices: Array, updates: Array, axis: int) -> Array:
    """A copy of the data with the updates in it, of which the last one in row-major order wins.

    They are put block by block, each of which meets few enough lines of the output to stay in the cache of a core: a
    block holds some rows where the axis runs along them, else some columns.
    """
    output = copy_for(data, updates)
    if not indices.size:
        return output
    split = 0 if axis == data.ndim - 1 else data.ndim - 1
    length = indices.shape[split]
    step = length if split == axis else max(COLUMNS, PUT_AT_ONCE * length // indices.size)
    for begin in range(0, length, step):
        part = (slice(None),) * split + (slice(begin, begin + step),)
        positions = element_positions(indices[part], data.shape, axis)
        window = output.reshape(-1)[begin * prod(data.shape[split + 1 :]) :]
        window[positions.reshape(-1)] = updates[part].reshape(-1)
    return output


def copy_for(data: Array, updates: Array) -> Array:
    """A row-major copy that also holds the updates: dimensions, or longer strings."""
    same = data.dtype == updates.dtype
    return np.array(data, data.dtype if same else np.promote_types(data.dtype, updates.dtype), order="C")


def scatter_nd(data: Array, indices: Array, updates: Array, reduction: str) -> Array:
    """A copy of the data with each row of the updates reduced into the place that its tuple of indices names."""
    length = indices.shape[-1]
    output = copy_for(data, updates)
    rest = prod(data.shape[length:])
    positions = tuple_positions(indices, data.shape[:length]).ravel()
    rows = output.reshape(prod(data.shape[:length]), rest)
    scatter(rows, positions, updates.reshape(len(positions), rest), reduction)
    return output


def check_scatter_nd(node: Node, length_label: str, updates_label: str) -> None:
    """Require tuples of indices no longer than the rank of data, and updates of the shape that they select."""
    length, rank = node.dims["length"], len(node.shape("data"))
    message = f"`indices` has tuples of {length}, but `data` has {rank} dimensions"
    node.require(length_label, length <= rank, message, "indices", about=["data"])
    expected = (*node.shape("indices")[:-1], *node.shape("data")[int(length) :])
    if not expected:  # one element in any shape will do
        single = product(node.shape("updates")) == 1
        node.require(updates_label, single, f"`updates` is {shape_text(node.shape('updates'))}, expected []", "updates")
    else:
        check_shape(node, updates_label, "updates", expected)
