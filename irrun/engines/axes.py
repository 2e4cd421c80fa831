"""Strides: of tensors in C order, broadcast or reshaped, and of axes that several are walked through together."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irrun.engines.work import Layout, Operand, Work
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Strided:
    """A layout that everybody can read."""

    strides: tuple[int, ...]
    nbytes: int


def constant_axes(work: Work) -> list[int]:
    """The axes of the first input that the second one names, in order; none where it is not constant."""
    named, rank = work.constant(1), len(work.inputs[0].shape) if work.inputs[0] is not None else 0
    return sorted({int(axis) % rank for axis in named.ravel()}) if named is not None and rank else []


def axes_of_mvn(work: Work) -> list[int]:
    """The axes that an MVN-1 or MVN-6 goes along, in order; none where they are not constant."""
    if work.name == "MVN-6":
        return constant_axes(work)
    rank, attrs = len(work.outputs[0].shape), work.attrs
    axes = attrs["reduction_axes"] or range(1 if attrs["across_channels"] else 2, rank)
    return sorted({axis % rank for axis in axes})


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The least axes that tensors of one shape and of these strides can be seen with, all in the same way."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(kept[-1] == own[axis] * size for kept, own in zip(steps, strides, strict=True)):
            sizes[-1] *= size
            for kept, own in zip(steps, strides, strict=True):
                kept[-1] = own[axis]
            continue
        sizes.append(size)
        for kept, own in zip(steps, strides, strict=True):
            kept.append(own[axis])
    return tuple(sizes), [tuple(kept) for kept in steps]


def dense_strides(shape: Sequence[int], itemsize: int = 4) -> tuple[int, ...]:
    """The strides in bytes of an array in C order, of f32 unless its elements take `itemsize` bytes."""
    return tuple(itemsize * prod(shape[number + 1 :]) for number in range(len(shape)))


def matrix_of(operand: Operand, *, transposed: bool, row: bool) -> Operand:
    """An operand of a product with two axes at least, as it is multiplied; a vector becomes a `row` or a column."""
    shape, strides = operand.shape, operand.strides
    if len(shape) == 1:
        step = numpy_dtype(operand.type).itemsize
        return Operand(operand.type, *(((1, *shape), (step, *strides)) if row else ((*shape, 1), (*strides, step))))
    if transposed:
        shape, strides = (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])
    return Operand(operand.type, shape, strides)


def canonical_strides(shape: Sequence[int], strides: Sequence[int], itemsize: int = 4) -> tuple[int, ...]:
    """The strides with those of axes of one element as if the axis went on; numpy leaves them to chance."""
    result = list(strides)
    for number in reversed(range(len(shape))):
        if shape[number] == 1:
            inner = [(strides[n] * shape[n]) for n in range(number + 1, len(shape)) if shape[n] > 1]
            result[number] = max(inner, default=itemsize)
    return tuple(result)


def broadcast_strides(operand: Operand, shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an operand where it is broadcast to `shape`: 0 for axes that it has one element of, or none."""
    own = (0 if size == 1 else stride for size, stride in zip(operand.shape, operand.strides, strict=True))
    return (*[0] * (len(shape) - len(operand.shape)), *own)


def order_of(operand: Operand) -> list[int] | None:
    """The axes of an operand from the outermost in memory to the innermost; None where there are gaps between them."""
    shape, item = operand.shape, numpy_dtype(operand.type).itemsize
    order, _ = _by_steps(operand)
    dense = ordered_strides(order, [shape[axis] for axis in order], item)
    axes = zip(shape, dense, operand.strides, strict=True)
    return order if all(size == 1 or step == own for size, step, own in axes) else None


def spread_order(operand: Operand) -> list[int] | None:
    """As `order_of`, where there may be gaps between lines of elements that are neighbours; None where elements are no
    neighbours along any axis, or where lines overlap or lie backwards."""
    shape, extent = operand.shape, numpy_dtype(operand.type).itemsize
    order, steps = _by_steps(operand)
    for number, axis in enumerate(axis for axis in reversed(order) if shape[axis] != 1):
        if steps[axis] < extent or (number == 0 and steps[axis] != extent):
            return None
        extent = steps[axis] * shape[axis]
    return order


def _by_steps(operand: Operand) -> tuple[list[int], tuple[int, ...]]:
    """The axes from the longest stride to the shortest, those of one element first, and the strides as they count."""
    shape = operand.shape
    steps = canonical_strides(shape, operand.strides, numpy_dtype(operand.type).itemsize)
    return sorted(range(len(shape)), key=lambda axis: (shape[axis] > 1) * -steps[axis]), steps


def ordered_strides(order: Sequence[int], moved: Sequence[int], item: int) -> tuple[int, ...]:
    """The strides of an array whose axes lie in memory in `order`, of sizes `moved`, without gaps."""
    dense = dense_strides(moved, item)
    return tuple(dense[order.index(axis)] for axis in range(len(order)))


def is_dense(operand: Operand) -> bool:
    """Whether the elements of an operand lie in C order, without gaps."""
    step = numpy_dtype(operand.type).itemsize
    for size, stride in zip(reversed(operand.shape), reversed(operand.strides), strict=False):
        if size != 1 and stride != step:
            return False
        step *= size
    return operand.layout is None


def lies_so(operand: Operand, layout: Layout) -> bool:
    """Whether an operand is in a layout already; axes of one element are as good anywhere."""
    if operand.layout is not None:
        return operand.layout == layout
    if layout.strides is None:
        return False
    sizes = zip(operand.shape, operand.strides, layout.strides, strict=True)
    return all(size == 1 or stride == other for size, stride, other in sizes)


def unless_so(operand: Operand, layout: Layout, number: int = 0) -> dict[int, Layout]:
    """The layout that an input of this number is to come in, or an output comes in: none where it is in it already."""
    return {} if lies_so(operand, layout) else {number: layout}


def given_alike(operand: Operand, nbytes: int) -> dict[int, Layout]:
    """The layout of a first output that lies as an operand of its shape does, which has no gaps: none in C order."""
    return {} if is_dense(operand) else {0: Strided(operand.strides, nbytes)}


def has_channels_last(operand: Operand) -> bool:
    """Whether the elements of an operand lie without gaps, in C order but for axis 1, which comes last."""
    axes = (0, *range(2, len(operand.shape)), 1)
    shape, strides = (tuple(own[axis] for axis in axes) for own in (operand.shape, operand.strides))
    return operand.layout is None and is_dense(Operand(operand.type, shape, strides))


def channels_last(operand: Operand) -> Strided:
    """The layout in which an operand has axis 1 last, and lies in C order otherwise."""
    shape, item = operand.shape, numpy_dtype(operand.type).itemsize
    order = [0, *range(2, len(shape)), 1]
    return Strided(ordered_strides(order, [shape[axis] for axis in order], item), item * prod(shape))


def reshaped_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The strides of a view as `target`, as many elements in the same order; None where there is no such view."""
    axes = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    result: list[int] = []
    for size in reversed(target):
        if size == 1:
            result.append(0)
            continue
        if not axes:
            return None
        length, stride = axes.pop()
        while length % size and axes and axes[-1][1] == length * stride:
            length *= axes.pop()[0]
        if length % size:
            return None
        if length > size:
            axes.append((length // size, size * stride))
        result.append(stride)
    return tuple(reversed(result))
