"""Broadcasting one tensor to a shape, as the Broadcast ops do it."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import UNDECIDED, Array, Dim, Node, Shapes, Size, Sizes, Undecided, broadcast, meet

EXPLICIT = ("explicit", "none")
"""The modes that map axes by axes_mapping; OpenVINO writes `none` for explicit into files of opset1."""


def broadcast_data(data: Array, target_shape: Array, axes_mapping: Array | None, mode: str) -> Any:
    """A view of the data in the target shape."""
    target = tuple(int(size) for size in target_shape)
    if mode == "bidirectional":
        target = np.broadcast_shapes(data.shape, target)
    elif mode in EXPLICIT and axes_mapping is not None:
        shape = np.ones(len(target), np.intp)
        shape[axes_mapping] = data.shape or 1
        data = data.reshape(shape)
    if isinstance(data, Sizes):
        return data.spread(target)
    return np.broadcast_to(data, target)


def broadcast_to_shape(node: Node) -> Shapes:
    """The rule of both Broadcasts, with the labels C1 to C4 of their docstrings."""
    mode = node.attrs["mode"]
    target = node.sizes("target_shape")
    for number, size in enumerate(target or ()):
        node.require("C1", size >= 0, f"`target_shape[{number}]` is {size}, expected 0 or more", "target_shape")
    rank = node.inputs["data"].rank
    axes: list[Size] | None = None
    if mode in EXPLICIT:
        mapping = node.inputs["axes_mapping"]
        if mapping is None:
            message = "`axes_mapping` is not connected, but `mode` is explicit"
            does = "counts dimensions from the end, as in mode numpy" if node.op.version == 1 else ""
            node.require("C3", False, message, about=["axes_mapping", "mode"], lenient=does)
            mode = "numpy"
        elif mapping.rank not in (None, 1):
            message = f"`axes_mapping` has rank {mapping.rank}, expected a vector with an axis for each of `data`"
            node.fail("C3", message, "axes_mapping", about=["data"])
        axes = node.sizes("axes_mapping")
        count = None if axes is None else len(axes)
        if rank is not None and count not in (None, rank):
            message = f"`axes_mapping` has {count} axes for data of rank {rank}"
            does = "takes the scalar for a vector of one element" if (rank, count) == (0, 1) else ""
            node.require("C3", False, message, "axes_mapping", lenient=does)
    elif node.op.version > 1 and node.inputs["axes_mapping"] is not None:
        node.fail("C3", f"`axes_mapping` is connected, but `mode` is {mode}", about=["axes_mapping", "mode"])
    if target is None:
        raise Undecided
    output: list[Size] = [size.within(0) if isinstance(size, Dim) else size for size in target]
    if rank is None and mode != "bidirectional":
        node.complete = False
        return {"output": tuple(output)}
    data = node.shape("data")
    if axes and not data:
        data = (1,)
    if mode == "bidirectional":
        output = [*[1] * (len(data) - len(output)), *output]
    if mode not in EXPLICIT:
        axes = list(range(len(output) - len(data), len(output)))
        if len(data) > len(output):
            node.fail(
                "C2",
                f"`data` has rank {len(data)}, but `target_shape` has {len(output)} sizes",
                "data",
                about=["target_shape"],
            )
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
        else:
            same, single = size == wanted, bool(rank) and size == 1  # a scalar's axis has to be 1 in the target, too
            fits = True if single is True or same is True else single if same is False else UNDECIDED
            node.require("C2", fits, message, "data")
            output[axis] = meet(wanted, size) if single is False else wanted
    return {"output": tuple(output)}
