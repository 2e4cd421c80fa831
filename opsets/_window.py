"""Windows that slide over spatial axes: what convolution, pooling and patch extraction check and compute alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.spec import INTS, Array, Attr, Dim, EachAxis, Node, Size, choice, largest
from irrun.spec.windows import Axis
from irrun.spec.windows import axes_of as axes_of

STRIDES = Attr("strides", INTS, least=1, assumed=EachAxis(1))
AUTOMATIC = ("auto_pad", ("same_upper", "same_lower", "valid"))
"""Where nothing reads pads."""

PADS_BEGIN = Attr("pads_begin", INTS, least=0, assumed=EachAxis(0), unread=AUTOMATIC)
PADS_END = Attr("pads_end", INTS, least=0, assumed=EachAxis(0), unread=AUTOMATIC)
DILATIONS = Attr("dilations", INTS, least=1, assumed=EachAxis(1))
OPTIONAL_DILATIONS = Attr("dilations", INTS, (), least=1)
AUTO_PAD = Attr("auto_pad", choice("explicit", "same_upper", "same_lower", "valid"), "explicit")

COLUMN_BYTES = 64 << 20
"""How much memory the columns of one block of windows may take."""


def check_lengths(
    node: Node,
    label: str,
    rank: int,
    names: Sequence[str],
    optional: Sequence[str] = (),
    assumed: Sequence[str] = (),
) -> None:
    """Require the list attributes `names` to have one value per spatial axis.

    `optional` ones may be empty, and so may pads that nothing reads; of those that are `assumed` OpenVINO takes the
    usual values then.
    """
    automatic = node.attrs.get("auto_pad", "explicit") != "explicit"
    for name in names:
        values, pads = node.attrs[name], name in ("pads_begin", "pads_end")
        if len(values) == rank or (not values and (name in optional or (pads and automatic))):
            continue
        does = f"takes {0 if pads else 1} for every axis" if not values and name in assumed else ""
        message = f"`{name}` has {len(values) or 'no'} values for {rank} spatial axes"
        node.require(label, False, message, about=[name], lenient=does)


def check_windows(node: Node, label: str, grid: Sequence[Axis], *, lenient: str = "") -> tuple[Size, ...]:
    """The windows along every axis, after requiring that each padded axis holds the kernel.

    Where that is `lenient`, which is what OpenVINO does then, an axis that does not hold it has no windows.
    """
    for number, axis in enumerate(grid):
        padded = axis.size + sum(axis.pads) if not axis.auto_pad.startswith("same") else axis.size
        message = f"the kernel reaches over {axis.reach} elements, but spatial axis {number} has {padded} with padding"
        node.require(label, axis.fits, message, lenient=lenient)
    windows = [largest(axis.windows, 0) if lenient else axis.windows for axis in grid]
    least = 0 if lenient or (grid and grid[0].auto_pad.startswith("same")) else 1
    return tuple(count.within(least) if isinstance(count, Dim) else count for count in windows)


def framed(data: Array, grid: Sequence[Axis], fill: Any = 0) -> Array:
    """`data` [N, C, *spatial], each axis cut or filled to what the windows cover; a view where nothing is added."""
    inside: list[Any] = [...]
    source: list[Any] = [...]
    shape = list(data.shape)
    for number, axis in enumerate(grid, data.ndim - len(grid)):
        begin, covered = int(axis.pads[0]), covered_length(axis)
        kept = max(min(data.shape[number], covered - begin), 0)
        shape[number] = covered
        source.append(slice(0, kept))
        inside.append(slice(begin, begin + kept))
    view: Array = data[tuple(source)]
    if list(view.shape) == shape:
        return view
    frame = np.full(shape, fill, data.dtype)
    frame[tuple(inside)] = view
    return frame


def covered_length(axis: Axis) -> int:
    """Elements of the padded axis from the first tap of the first window to the last tap of the last one."""
    windows = int(axis.windows)
    return (windows - 1) * axis.stride + int(axis.reach) if windows else 0


def patches(frame: Array, grid: Sequence[Axis]) -> Array:
    """A view [N, C, *kernel, *windows] of what `framed` made."""
    count, first = len(grid), frame.ndim - len(grid)
    kernel = [int(axis.kernel) for axis in grid]
    windows = [int(axis.windows) for axis in grid]
    strides = frame.strides[first:]
    taps = [stride * axis.dilation for stride, axis in zip(strides, grid, strict=True)]
    steps = [stride * axis.stride for stride, axis in zip(strides, grid, strict=True)]
    if 0 in windows or 0 in frame.shape[:first]:
        return np.zeros((*frame.shape[: frame.ndim - count], *kernel, *windows), frame.dtype)
    return np.lib.stride_tricks.as_strided(
        frame,
        (*frame.shape[:first], *kernel, *windows),
        (*frame.strides[:first], *taps, *steps),
        writeable=False,
    )


def along(frame: Array, number: int, axis: Axis, tap: int) -> Array:
    """What tap number `tap` of the kernel sees at every window along the axis `number` of `frame`, as a view."""
    start = tap * axis.dilation
    stop = start + (int(axis.windows) - 1) * axis.stride + 1
    view: Array = frame[(slice(None),) * number + (slice(start, max(stop, start), axis.stride),)]
    return view


def blocks(counts: Sequence[int], bytes_each: int, limit: int = COLUMN_BYTES) -> list[tuple[Any, ...]]:
    """Slices that cover an array of `counts` windows in blocks of at most `limit` bytes, cut along the first axes."""
    steps = list(counts)
    for number, count in enumerate(counts):
        total = bytes_each * int(np.prod(steps, dtype=np.int64))
        if total <= limit or count == 0:
            break
        steps[number] = max(int(count * limit // total), 1)
    starts = [range(0, count, max(step, 1)) for count, step in zip(counts, steps, strict=True)]
    cuts: list[tuple[Any, ...]] = [()]
    for span, step in zip(starts, steps, strict=True):
        cuts = [(*cut, slice(start, start + max(step, 1))) for cut in cuts for start in span]
    return cuts
