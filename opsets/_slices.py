"""Slices start:stop:step of dimensions that may be unknown, by the rules of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from irrun.spec import Array, Dim, Node, Shape, Size, every, fresh, largest, smallest

from ._indexing import normal_axis

ENDLESS = 2**31 - 1
"""INT_MAX: a bound that lies this far out means the end of the axis, whatever its size."""


def slice_length(size: Size, start: Size, stop: Size, step: Size) -> Size:
    """How many elements `start:stop:step` selects from an axis of `size` elements."""
    if isinstance(step, Dim):
        return fresh(0, _high(size))
    first, last = _bound(start, size, step), _bound(stop, size, step)
    if first is None or last is None:
        return fresh(0, _most(size, start, stop, step))
    span: Size = last - first if step > 0 else first - last
    if step > 0 and isinstance(start, int) and -ENDLESS < start < 0 and (last == size) is True:
        span = smallest(size, -start)
    elif isinstance(span, Dim):
        # both bounds lie between the ends of the axis, so a span that begins or ends there is never negative
        edges = (first == 0, (last == size)) if step > 0 else (first == size - 1, (last == -1))
        span = span.within(0, _high(size)) if any(edge is True for edge in edges) else largest(span, 0)
    else:
        span = max(span, 0)
    length: Size = span if abs(step) == 1 else (span + abs(step) - 1) // abs(step)
    return length.within(0, _most(size, start, stop, step)) if isinstance(length, Dim) else length


def _most(size: Size, start: Size, stop: Size, step: int) -> int | None:
    """As many elements as are selected at most, whatever the size of the axis is."""
    near, far = (start, stop) if step > 0 else (stop, start)
    spans: list[Size] = []
    if (near < 0) is True:  # counted from the end of the axis, where the span ends at the latest
        spans.append(-near if step > 0 else -near - 1)
    if (far >= 0) is True:
        spans.append(far if step > 0 else far + 1)
    if every([near < 0, far < 0]) is True or every([near >= 0, far >= 0]) is True:
        spans.append(far - near)
    elif every([near >= 0, far < 0]) is True:
        spans.append(size + far - near)
    highs = [_high(size), *(high for high in map(_high, spans) if high is not None and high < ENDLESS // 2)]
    reaches = [high for high in highs if high is not None]
    return max(-(-min(reaches) // abs(step)), 0) if reaches else None


def _high(size: Size) -> int | None:
    return size if isinstance(size, int) else size.high


def _bound(value: Size, size: Size, step: int) -> Size | None:
    """A bound as a position between the ends of the axis, or None where its sign is unknown."""
    low, high = (0, size) if step > 0 else (-1, size - 1)
    if isinstance(value, int) and abs(value) >= ENDLESS:
        return high if value > 0 else low
    if (value >= 0) is True:
        position = value
    elif (value < 0) is True:
        position = value + size
    elif (value <= 0) is True:  # what cuts off padding that there may be none of, and then all
        position = value + size * smallest(-value, 1)
    else:
        return None
    return smallest(largest(position, low), high)


class Cuts(NamedTuple):
    """The slices of a Slice or SliceScatter, one for each of `axes`."""

    axes: list[int]
    starts: list[Size]
    stops: list[Size]
    steps: list[Size]


def read_cuts(node: Node, labels: Sequence[str], rank: int) -> Cuts | None:
    """The slices in the inputs start, stop, step and axes; None where it is unknown which axes they are for.

    `labels` are those of the rules that steps are not 0, that axes lie within the rank, and that they are unique.
    """
    starts, stops, steps = node.sizes("start"), node.sizes("stop"), node.sizes("step")
    for number, step in enumerate(steps or ()):
        node.require(labels[0], step != 0, f"`step[{number}]` is 0", "step")
    axes: list[Size] | None
    if node.inputs["axes"] is not None:
        axes = node.sizes("axes")
    else:
        count = next((len(sizes) for sizes in (starts, stops, steps) if sizes is not None), None)
        axes = None if count is None else list(range(count))
    if axes is None or any(isinstance(axis, Dim) for axis in axes):
        count = node.dims.get("n", 0)
        message = f"`start` has {count} slices, but `data` has {rank} dimensions"
        node.require(labels[2], count <= rank, message, "start", about=["data"])
        return None
    normal = [normal_axis(node, labels[1], int(axis), rank, "axes", number) for number, axis in enumerate(axes)]
    for number, axis in enumerate(normal):
        if axis in normal[:number]:
            node.fail(labels[2], f"`axes[{number}]` is axis {axis} of `data` once more", "axes", about=["data"])
    return Cuts(normal, *(sizes or [fresh(None) for _ in normal] for sizes in (starts, stops, steps)))


def cut_shape(shape: Shape, cuts: Cuts) -> Shape:
    """The shape of what the cuts select."""
    result = list(shape)
    for axis, start, stop, step in zip(*cuts, strict=True):
        result[axis] = slice_length(shape[axis], start, stop, step)
    return tuple(result)


def any_cut_of(shape: Shape) -> Shape:
    """The shape of what unknown cuts select."""
    return tuple(fresh(0, _high(size)) for size in shape)


def cut_index(rank: int, start: Array, stop: Array, step: Array, axes: Array | None) -> tuple[slice, ...]:
    """What indexes an array of that rank to select the cuts."""
    index = [slice(None)] * rank
    numbers = range(len(start)) if axes is None else axes.tolist()
    for axis, *bounds in zip(numbers, start.tolist(), stop.tolist(), step.tolist(), strict=True):
        index[int(axis)] = slice(*map(int, bounds))
    return tuple(index)


class Part(NamedTuple):
    """What StridedSlice does at one place: `kind` is new, full, shrink or slice, `number` counts along `begin`."""

    kind: str
    number: int


def strided_parts(
    rank: int, count: int, new_axis_mask: Sequence[int], shrink_axis_mask: Sequence[int], ellipsis_mask: Sequence[int]
) -> list[Part] | None:
    """The parts of a StridedSlice of `count` slices; None where these are for more dimensions than the rank.

    An ellipsis goes before a new axis, and that before a shrunk one, where their masks meet.
    """
    if count > rank + len(new_axis_mask) + len(ellipsis_mask):  # a file may say any number
        return None
    kinds = [
        "full"
        if masked(ellipsis_mask, number)
        else "new"
        if masked(new_axis_mask, number)
        else "shrink"
        if masked(shrink_axis_mask, number)
        else "slice"
        for number in range(count)
    ]
    hidden = rank - sum(kind in ("shrink", "slice") for kind in kinds)
    if hidden < 0:
        return None
    parts: list[Part] = []
    for number, kind in enumerate(kinds):
        parts += [Part(kind, number)] * (hidden if kind == "full" else 1)
    return parts if "full" in kinds else parts + [Part("full", count)] * hidden


def masked(mask: Sequence[int], number: int) -> bool:
    """Whether bit `number` of a mask is set; a short mask goes on with zeros."""
    return number < len(mask) and mask[number] == 1
