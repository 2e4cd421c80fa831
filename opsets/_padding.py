"""Margins added to tensors or cut off: what Pad, SpaceToBatch and BatchToSpace share."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import UNDECIDED, Array, Dim, Node, Shapes, Size, every, fresh, largest
from irrun.spec.dims import negate


def padded_shape(node: Node, count_label: str, limit_label: str, crop_label: str, *, clipped: bool = False) -> Shapes:
    """What a Pad makes of its input, after checking the number of pads, how far they may reach, and what they crop.

    Where more is cropped than there is, nothing is left if `clipped`.
    """
    data, mode = node.shape("data"), node.attrs["pad_mode"]
    count = node.dims.get("n", len(data))
    message = f"`pads_begin` has {count} elements for data of rank {len(data)}"
    node.require(count_label, count == len(data), message, "pads_begin")
    pads = [node.sizes(name) or [fresh(None) for _ in data] for name in ("pads_begin", "pads_end")]
    if mode != "constant":
        for name, sizes in zip(("pads_begin", "pads_end"), pads, strict=True):
            for axis, (pad, size) in enumerate(zip(sizes, data, strict=True)):
                fits: Any = pad <= size - (mode == "reflect")
                if mode == "edge":
                    filled, unpadded = size >= 1, pad <= 0
                    fits = True if filled is True or unpadded is True else unpadded if filled is False else UNDECIDED
                node.require(limit_label, fits, f"`{name}[{axis}]` is {pad} for a size of {size} ({mode})", name)
    for axis, (size, begin, end) in enumerate(zip(data, *pads, strict=True)):
        _check_crops(node, crop_label, axis, size, begin, end, clipped)
    return {"output": tuple(largest(size + begin + end, 0) for size, begin, end in zip(data, *pads, strict=True))}


def _check_crops(node: Node, label: str, axis: int, size: Size, begin: Size, end: Size, clipped: bool) -> None:
    """Require that no more is cropped than there is; where nothing is left, it does not matter at which end."""
    cropped = [name for name, pad in (("pads_begin", begin), ("pads_end", end)) if isinstance(pad, int) and pad < 0]
    if not cropped:
        return
    message = f"dimension {axis} has {size} elements, of which pads of {begin} and {end} crop more"
    rest = size + begin + end
    if not clipped:
        node.require(label, rest >= 0, message, cropped[0])
    for name in cropped:
        pad = begin if name == "pads_begin" else end
        node.require(label, _either(rest <= 0, size + pad >= 0), message, name)


def _either(*answers: Any) -> Any:
    """Whether one of the answers is True, `UNDECIDED` where that is open."""
    return negate(every(map(negate, answers)))


def padded(data: Array, pads_begin: Array, pads_end: Array, pad_value: Array | None, mode: str) -> Array:
    """The data with elements added at the ends of its axes, or cut off where pads are negative."""
    pads = [(int(begin), int(end)) for begin, end in zip(pads_begin, pads_end, strict=True)]
    shape = [max(size + begin + end, 0) for size, (begin, end) in zip(data.shape, pads, strict=True)]
    if mode == "constant":
        value = np.zeros((), data.dtype) if pad_value is None else pad_value
        output = np.full(shape, value, np.promote_types(data.dtype, value.dtype))
        source = [(max(-begin, 0), size + min(end, 0)) for size, (begin, end) in zip(data.shape, pads, strict=True)]
        if all(first < last for first, last in source):
            kept = tuple(slice(first, last) for first, last in source)
            moves = zip(source, pads, strict=True)
            output[tuple(slice(first + begin, last + begin) for (first, last), (begin, _) in moves)] = data[kept]
        return output
    for axis, (size, (begin, end)) in enumerate(zip(data.shape, pads, strict=True)):
        if begin or end:
            data = np.take(data, _mirrored(np.arange(-begin, size + end), size, mode), axis)
    return data


def _mirrored(places: Array, size: int, mode: str) -> Array:
    """Places before and behind an axis as places on it: at its edge, or reflected."""
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    beyond = 1 if mode == "symmetric" else 0
    places = np.where(places < 0, -places - beyond, places)
    return np.where(places >= size, 2 * size - 2 + beyond - places, places)


def block_inputs(node: Node, count: str, least: str, margin: str, begin: str, end: str) -> list[Any]:
    """The shape of data, the blocks and the margins, after checking their number and their values."""
    data = node.shape("data")
    given = node.dims.get("n", len(data))
    message = f"`block_shape` has {given} elements for data of rank {len(data)}"
    node.require(count, given == len(data), message, "block_shape")
    result: list[Any] = [data]
    for name in ("block_shape", begin, end):
        label, low = (least, 1) if name == "block_shape" else (margin, 0)
        sizes = node.sizes(name) or [fresh(low) for _ in data]
        for number, size in enumerate(sizes):
            ok: Any = size >= low if number else size == low
            expected = f"{low} or more" if number else f"{low}"
            node.require(label, ok, f"`{name}[{number}]` is {size}, expected {expected}", name)
        result.append([size.within(low) if isinstance(size, Dim) else size for size in sizes])
    return result
