"""Indices into tensors: how gathers and scatters check them, turn them into positions and reduce what meets there."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.spec import Array, Dim, Node, Shape, Size, broadcast

UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "sub": np.subtract,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mean": np.add,
}


def axis_of(node: Node, label: str, rank: int, name: str = "axis") -> int | None:
    """The axis in input `name`, counted from the front; None where it is unknown."""
    value = node.value(name)
    return None if value is None else normal_axis(node, label, int(value.item()), rank, name)


def normal_axis(node: Node, label: str, axis: int, rank: int, name: str = "axis") -> int:
    """`axis` counted from the front; one outside [-rank, rank) is reported, so every one is for a scalar."""
    if not -rank <= axis < rank:
        node.fail(label, f"`{name}` is {axis}, outside [{-rank}, {rank}) for rank {rank}")
    return axis % rank


def agreed(a: Size, b: Size) -> Size:
    """What is known of a size that is both `a` and `b`."""
    if isinstance(a, int):
        return a
    return b if isinstance(b, int) else a.within(b.low, b.high)


def check_tuples(node: Node, label: str, name: str, sizes: Sequence[Size], *, negative: bool) -> None:
    """Require column j of input `name` to lie in [0, sizes[j]), or [-sizes[j], sizes[j]) where `negative` ones count."""
    value = node.value(name)
    if value is None:
        return
    for column, size in enumerate(sizes):
        if isinstance(size, Dim):
            node.complete = False
            continue
        low = -size if negative else 0
        part = value[..., column]
        if part.size and (int(part.min()) < low or int(part.max()) >= size):
            position = tuple(int(i) for i in np.argwhere((part < low) | (part >= size))[0])
            where = ", ".join(map(str, (*position, column)))
            node.fail(label, f"`{name}[{where}]` is {part[position]}, outside [{low}, {size})", name)


def wrapped(indices: Array, size: int) -> Array:
    """Indices as numpy's, with negative ones counted from the end."""
    positions = np.ascontiguousarray(indices, np.intp)
    return np.where(positions < 0, positions + size, positions) if (positions < 0).any() else positions


def take(data: Array, indices: Array, axis: int, batch: int) -> Array:
    """The slices of `data` along `axis` at `indices`, which has its first `batch` dimensions in common with it."""
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
        positions += wrapped(tuples[..., column], size)
    return positions


def element_positions(indices: Array, shape: Sequence[int], axis: int) -> Array:
    """The row-major position in `shape` of every element of `indices`, which replace the coordinate along `axis`."""
    positions = np.zeros(indices.shape, np.intp)
    for number, size in enumerate(shape):
        positions *= size
        positions += wrapped(indices, size) if number == axis else grid(indices.shape, [number])[0]
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
    data, indices = node.shape("data"), node.shape("indices")
    batch = node.attrs["batch_dims"]
    if not 0 <= batch < min(len(data), len(indices)):
        ranks = f"data of rank {len(data)} and indices of rank {len(indices)}"
        node.fail(labels[0], f"`batch_dims` is {batch}, outside [0, {min(len(data), len(indices))}) for {ranks}")
    length = indices[-1]
    over = f"`indices` has tuples of {length}, but `data` has {len(data)} dimensions, {batch} of them batch dimensions"
    node.require(labels[1], length <= len(data) - batch, over, "indices")
    common: list[Size] = []
    for number, (a, b) in enumerate(zip(data[:batch], indices[:batch], strict=True)):
        size = broadcast(a, b)
        if size is None:
            node.fail(labels[2], f"dimension {number} is {a} in `data`, but {b} in `indices`")
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
    ufunc = np.logical_xor if reduction == "sub" and target.dtype == np.bool_ else UFUNCS[reduction]
    wide = _accumulator(target.dtype, reduction)
    if wide == target.dtype and reduction != "mean":
        if not use_init_val:
            target[positions] = _neutral(reduction, target.dtype)
        ufunc.at(target, positions, updates)
        return
    touched, slots = np.unique(positions, return_inverse=True)
    total = target[touched].astype(wide)
    if not use_init_val:
        total[...] = _neutral(reduction, wide)
    ufunc.at(total, slots, updates.astype(wide))
    if reduction == "mean":
        counts = np.bincount(slots, minlength=len(touched)) + use_init_val
        counts = counts.astype(wide).reshape(-1, *[1] * (total.ndim - 1))
        total = total // counts if wide.kind in "iu" else total / counts
    target[touched] = total.astype(target.dtype)


def _accumulator(dtype: np.dtype[Any], reduction: str) -> np.dtype[Any]:
    """Where sums build up: f32 for the half types, 64 bits for integer means, whose sums must not wrap."""
    if dtype.kind in "iu":
        return np.dtype(f"{dtype.kind}8") if reduction == "mean" else dtype
    if reduction in ("min", "max") or dtype.kind == "b":
        return dtype
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


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
