"""Pooling ops: windows of the data reduced to one element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    FLOAT,
    INDEX,
    INT,
    INTEGER,
    INTS,
    NUMERIC,
    UNDECIDED,
    Array,
    Attr,
    Input,
    Node,
    Output,
    Selecting,
    Shapes,
    Size,
    choice,
    fresh,
    numpy_dtype,
    op,
)
from irrun.spec.dims import Answer
from irrun.spec.windows import Axis, axes_of

from ._window import (
    AUTO_PAD,
    OPTIONAL_DILATIONS,
    PADS_BEGIN,
    PADS_END,
    along,
    check_lengths,
    check_windows,
    framed,
)

DATA = Input("data", "T", "[N, C, *spatial]")
RESULT = Output("result", "T", "[N, C, *windows]")
FLOOR_OR_CEIL = Attr("rounding_type", choice("floor", "ceil"), "floor")
FLOOR_CEIL_OR_TORCH = Attr("rounding_type", choice("floor", "ceil", "ceil_torch"), "floor")
POOL = (Attr("strides", INTS, least=1), PADS_BEGIN, PADS_END, Attr("kernel", INTS, least=1), AUTO_PAD)
EXCLUDE_PAD = Attr("exclude-pad", BOOL, assumed=True)
INDEXED = (
    *POOL,
    OPTIONAL_DILATIONS,
    Attr("index_element_type", choice("i32", "i64"), "i64"),
    Attr("axis", INT, 0),
)
UNDILATED = ((), (1,), (1, 1), (1, 1, 1))
INDICES = Output("indices", "index_element_type", "[N, C, *windows]")


def of_elements(attrs: Mapping[str, Any], data: Sequence[Any], result: Sequence[Any]) -> bool:
    """Whether no window is of padding alone."""
    names = ("strides", "pads_begin", "pads_end", "dilations", "auto_pad")
    axes = axes_of(data[2:], attrs["kernel"], **{name: attrs[name] for name in names if name in attrs})
    return all(axis.meet(windows) for axis, windows in zip(axes, result[2:], strict=True))


@op(
    "MaxPool-1",
    types={"T": NUMERIC},
    inputs=[DATA],
    outputs=[RESULT],
    attrs=[*POOL, FLOOR_OR_CEIL],
    traits=[Selecting(of_elements)],
)
def max_pool_1(data: Array, *, kernel: Sequence[int], **window: Any) -> Array:
    """Take the largest element of each window.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes.
        C2: kernel, strides and pads have one value per spatial axis; pads that auto_pad makes ignored may have none.
        C3: the kernel fits into the padded data.

    Choice: as in the reference, padding counts as the lowest finite value, so that is what a window gives that has
    no larger element: one of padding, NaN or -inf only; for f16 and bf16 it is f32's, which is rounded to -inf. NaN
    loses against every number. With same_upper and same_lower there are size / stride windows, rounded up, and with
    `ceil` another one where the kernel is shorter than the stride, as in OpenVINO; with `valid` rounding_type counts,
    as in the page's example.

    Source: pooling/max-pool-1.rst

    >>> op(np.array([[[-1.0, 2, 3, 5, -7, 9, 1]]]), kernel=(3,), strides=(1,), pads_begin=(0,), pads_end=(0,)).tolist()
    [[[3.0, 5.0, 5.0, 9.0, 9.0]]]
    """
    return largest_elements(data, axes_of(data.shape[2:], kernel, **window))


@max_pool_1.shapes
def _(node: Node) -> Shapes:
    return {"windows": pooling_windows(node)}


@op(
    "MaxPool-8",
    of=max_pool_1,
    outputs=[RESULT, INDICES],
    attrs=[*INDEXED, FLOOR_OR_CEIL],
)
def max_pool_8(
    data: Array, *, kernel: Sequence[int], index_element_type: str, axis: int, **window: Any
) -> tuple[Array, Array]:
    """Take the largest element of each window, and its index in the data flattened from `axis` on.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes.
        C2: kernel, strides, pads, and dilations where given, have one value per spatial axis; pads that auto_pad
            makes ignored may have none.
        C3: the dilated kernel fits into the padded data.
        C4: axis lies in [-r, r), r the rank of data.

    Choice: the first of equal elements counts. A window of padding, NaN or -inf only gives the lowest finite value
    and the index of its channel's first element, as in the reference; otherwise as MaxPool-1.

    Source: pooling/max-pool-8.rst

    >>> window = dict(kernel=(2,), strides=(2,), pads_begin=(1,), pads_end=(0,))
    >>> [output.tolist() for output in op(np.array([[[1, 2, 3], [6, 5, 4]]]), **window)]
    [[[[1, 3], [6, 5]]], [[[0, 2], [3, 4]]]]
    """
    return largest_with_index(data, axes_of(data.shape[2:], kernel, **window), axis, index_element_type)


@max_pool_8.shapes
def _(node: Node) -> Shapes:
    return indexed_windows(node)


max_pool_8.lowers("MaxPool-1", dilations=UNDILATED, index_element_type=("i64", "i32"), axis=tuple(range(-5, 5)))


@op(
    "MaxPool-14",
    types={"T": NUMERIC},
    inputs=[DATA],
    outputs=[RESULT, INDICES],
    attrs=[*INDEXED, FLOOR_CEIL_OR_TORCH],
    traits=[Selecting(of_elements)],
)
def max_pool(
    data: Array, *, kernel: Sequence[int], index_element_type: str, axis: int, **window: Any
) -> tuple[Array, Array]:
    """Take the largest element of each window, and its index in the data flattened from `axis` on.

    With rounding_type ceil_torch the last window is dropped where it starts in the padding.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes.
        C2: kernel, strides, pads, and dilations where given, have one value per spatial axis; pads that auto_pad
            makes ignored may have none.
        C3: the dilated kernel fits into the padded data.
        C4: axis lies in [-r, r), r the rank of data.

    Choice: the first of equal elements counts. A window of padding, NaN or -inf only gives the lowest finite value
    and the index of its channel's first element, as in the reference; otherwise as MaxPool-1.

    Source: pooling/max-pool-14.rst

    >>> window = dict(kernel=(2,), strides=(2,), pads_begin=(1,), pads_end=(1,), rounding_type="ceil_torch")
    >>> [output.tolist() for output in op(np.array([[[1, 2, 3]]]), **window)]
    [[[[1, 3]]], [[[0, 2]]]]
    """
    return largest_with_index(data, axes_of(data.shape[2:], kernel, **window), axis, index_element_type)


@max_pool.shapes
def _(node: Node) -> Shapes:
    return indexed_windows(node)


max_pool.lowers("MaxPool-8", reworded={"rounding_type": {"ceil_torch": "ceil"}})


@op("AvgPool-1", types={"T": NUMERIC}, inputs=[DATA], outputs=[RESULT], attrs=[*POOL, FLOOR_OR_CEIL, EXCLUDE_PAD])
def avg_pool_1(data: Array, *, kernel: Sequence[int], exclude_pad: bool, **window: Any) -> Array:
    """Average each window.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes.
        C2: kernel, strides and pads have one value per spatial axis; pads that auto_pad makes ignored may have none.
        C3: the kernel fits into the padded data.
        C4: with exclude-pad, pads as long as the kernel leave no window of padding alone.

    Choice: without exclude-pad the sum is divided by the number of kernel elements, also where a window sticks out
    beyond the padding; but where no axis has any padding, only real elements count, as in the reference. Integers
    are rounded towards zero, 8-bit ones to the nearest even; 16-bit floats are summed in f32. Where rounding up
    makes a window without elements, it gives 0. With same_upper and same_lower there are size / stride windows,
    rounded up, and with `ceil` another one where the kernel is shorter than the stride, as in OpenVINO.

    Source: pooling/avg-pool-1.rst

    >>> window = dict(kernel=(3,), strides=(2,), pads_begin=(1,), pads_end=(0,))
    >>> [op(np.array([[[3.0, 6, 9, 12]]]), exclude_pad=flag, **window).tolist() for flag in (True, False)]
    [[[[4.5, 9.0]]], [[[3.0, 9.0]]]]
    """
    return averages(data, axes_of(data.shape[2:], kernel, **window), exclude_pad)


@avg_pool_1.shapes
def _(node: Node) -> Shapes:
    return {"windows": averaged_windows(node)}


@op(
    "AvgPool-14", types={"T": NUMERIC}, inputs=[DATA], outputs=[RESULT], attrs=[*POOL, FLOOR_CEIL_OR_TORCH, EXCLUDE_PAD]
)
def avg_pool_14(data: Array, *, kernel: Sequence[int], exclude_pad: bool, **window: Any) -> Array:
    """Average each window.

    With rounding_type ceil_torch the last window is dropped where it starts in the padding.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes.
        C2: kernel, strides and pads have one value per spatial axis; pads that auto_pad makes ignored may have none.
        C3: the kernel fits into the padded data.
        C4: with exclude-pad, pads as long as the kernel leave no window of padding alone.

    Choice: as AvgPool-1.

    Source: pooling/avg-pool-14.rst

    >>> window = dict(kernel=(2,), strides=(2,), pads_begin=(1,), pads_end=(1,), rounding_type="ceil_torch")
    >>> op(np.array([[[3.0, 6, 9]]]), exclude_pad=False, **window).tolist()
    [[[1.5, 7.5]]]
    """
    return averages(data, axes_of(data.shape[2:], kernel, **window), exclude_pad)


@avg_pool_14.shapes
def _(node: Node) -> Shapes:
    return {"windows": averaged_windows(node)}


avg_pool_14.lowers("AvgPool-1", reworded={"rounding_type": {"ceil_torch": "ceil"}})


@op(
    "AvgPool-16",
    types={"T": NUMERIC},
    inputs=[DATA],
    outputs=[RESULT],
    attrs=[*POOL, OPTIONAL_DILATIONS, FLOOR_CEIL_OR_TORCH, EXCLUDE_PAD],
)
def avg_pool(data: Array, *, kernel: Sequence[int], exclude_pad: bool, **window: Any) -> Array:
    """Average each window of a kernel that may be dilated.

    With rounding_type ceil_torch the last window is dropped where it starts in the padding.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes.
        C2: kernel, strides, pads, and dilations where given, have one value per spatial axis; pads that auto_pad
            makes ignored may have none.
        C3: the dilated kernel fits into the padded data.
        C4: with exclude-pad, pads as long as the dilated kernel leave no window of padding alone.

    Choice: as AvgPool-1.

    Source: pooling/avg-pool-16.rst

    >>> window = dict(kernel=(2,), strides=(1,), dilations=(2,), pads_begin=(0,), pads_end=(0,))
    >>> op(np.array([[[3.0, 6, 9, 12]]]), exclude_pad=False, **window).tolist()
    [[[6.0, 9.0]]]
    """
    return averages(data, axes_of(data.shape[2:], kernel, **window), exclude_pad)


@avg_pool.shapes
def _(node: Node) -> Shapes:
    return {"windows": averaged_windows(node)}


avg_pool.lowers("AvgPool-14", dilations=UNDILATED)


@op(
    "AdaptiveAvgPool-8",
    types={"T": FLOAT, "T_SHAPE": INDEX},
    lenient_types={"T_SHAPE": NUMERIC},
    inputs=[DATA, Input("output_shape", "T_SHAPE", "[axes]")],
    outputs=[Output("result", "T", "[N, C, *result]")],
)
def adaptive_avg_pool(data: Array, output_shape: Array) -> Array:
    """Average windows that cover the data evenly, as many as output_shape says.

    16-bit floats are summed in f32 and rounded once.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes.
        C2: output_shape has one element per spatial axis.
        C3: the elements of output_shape are 0 or more, and data has an element on every spatial axis.

    Source: pooling/adaptive-avg-pool-8.rst

    >>> op(np.array([[[1.0, 2, 3, 4, 5]]]), np.array([3])).tolist()
    [[[1.5, 3.0, 4.5]]]
    """
    sums = summable(data)
    for number, count in enumerate(output_shape.tolist(), 2):
        index, counts = adaptive_taps(data.shape[number], count)
        shape = [1] * data.ndim
        shape[number] = count
        result = np.zeros((*sums.shape[:number], count, *sums.shape[number + 1 :]), sums.dtype)
        if count < index.shape[1]:  # few large windows
            ahead: Any = (slice(None),) * number
            for window, (first, taps) in enumerate(zip(index[:, 0].tolist(), counts.tolist(), strict=True)):
                np.add.reduce(sums[(*ahead, slice(first, first + taps))], number, out=result[(*ahead, window)])
        else:
            for tap in range(index.shape[1]):
                np.add(result, np.take(sums, index[:, tap], number), out=result, where=(tap < counts).reshape(shape))
        sums = result / counts.reshape(shape).astype(sums.dtype)
    return sums.astype(data.dtype, copy=False)


@adaptive_avg_pool.shapes
def _(node: Node) -> Shapes:
    return {"result": adaptive_sizes(node)}


@op(
    "AdaptiveMaxPool-8",
    types={"T": FLOAT, "T_SHAPE": INDEX},
    lenient_types={"T": INTEGER, "T_SHAPE": NUMERIC},
    inputs=[DATA, Input("output_shape", "T_SHAPE", "[axes]")],
    outputs=[Output("result", "T", "[N, C, *result]"), Output("indices", "index_element_type", "[N, C, *result]")],
    attrs=[Attr("index_element_type", choice("i32", "i64"), "i64")],
)
def adaptive_max_pool(data: Array, output_shape: Array, *, index_element_type: str) -> tuple[Array, Array]:
    """Take the largest element, and its index in its channel, of windows that cover the data evenly.

    Constraints:
        C1: data has 1, 2 or 3 spatial axes.
        C2: output_shape has one element per spatial axis.
        C3: the elements of output_shape are 0 or more, and data has an element on every spatial axis.

    Choice: the first of equal elements counts, and NaN loses against every number.

    Source: pooling/adaptive-max-pool-8.rst

    >>> [output.tolist() for output in op(np.array([[[1.0, 2, 9, 4, 5]]]), np.array([3]))]
    [[[[2.0, 9.0, 5.0]]], [[[1, 2, 4]]]]
    """
    values = summable(data)
    positions: Any = None
    pitch = 1
    for number, count in reversed(list(enumerate(output_shape.tolist(), 2))):
        index, _ = adaptive_taps(data.shape[number], count)
        taps = [np.take(values, index[:, tap], number) for tap in range(index.shape[1])]
        values = taps[0]
        for seen in taps[1:]:
            values = np.fmax(values, seen)
        found = _first_tap(taps, values)
        shape = [1] * data.ndim
        shape[number] = count
        place = index[np.arange(count).reshape(shape), found]
        positions = place * pitch if positions is None else place * pitch + np.take_along_axis(positions, place, number)
        pitch *= data.shape[number]
    return values.astype(data.dtype, copy=False), positions.astype(numpy_dtype(index_element_type), copy=False)


@adaptive_max_pool.shapes
def _(node: Node) -> Shapes:
    return {"result": adaptive_sizes(node)}


def adaptive_sizes(node: Node) -> tuple[Size, ...]:
    spatial = node.dims["spatial"]
    if len(spatial) not in (1, 2, 3):
        node.fail("C1", f"`data` has {len(spatial)} spatial axes, expected 1 to 3", about=["data"])
    count = node.dims.get("axes", len(spatial))
    node.require(
        "C2",
        count == len(spatial),
        f"`output_shape` has {count} elements for {len(spatial)} spatial axes",
        about=["output_shape"],
    )
    for number, size in enumerate(spatial):
        node.require("C3", size >= 1, f"spatial axis {number} of `data` is empty", about=["data"])
    sizes = node.sizes("output_shape") or [fresh() for _ in spatial]
    for size in sizes:
        node.require("C3", size >= 0, f"`output_shape` has {size}, expected 0 or more", about=["output_shape"])
    return tuple(sizes)


def adaptive_taps(size: int, windows: int) -> tuple[Array, Array]:
    """The elements under each window [windows, taps], the last one repeated in shorter ones, and their number."""
    numbers = np.arange(windows)
    starts = numbers * size // max(windows, 1)
    ends = -(-(numbers + 1) * size // max(windows, 1))
    counts = ends - starts
    index = starts[:, np.newaxis] + np.arange(counts.max(initial=1))
    return np.minimum(index, ends[:, np.newaxis] - 1), counts


def pooling_windows(node: Node) -> tuple[Size, ...]:
    """Check the geometry of a pooling op and count its windows."""
    return check_windows(node, "C3", _grid(node))


def _grid(node: Node) -> list[Axis]:
    """The geometry of a pooling op, after requiring that there is as much of it as the data have spatial axes."""
    spatial = node.dims["spatial"]
    if len(spatial) not in (1, 2, 3):
        node.fail("C1", f"`data` has {len(spatial)} spatial axes, expected 1 to 3", about=["data"])
    lists = [name for name in ("kernel", "strides", "dilations", "pads_begin", "pads_end") if name in node.attrs]
    check_lengths(node, "C2", len(spatial), lists, optional=["dilations"], assumed=["pads_begin", "pads_end"])
    attrs = {name: node.attrs[name] for name in (*lists[1:], "auto_pad", "rounding_type")}
    return axes_of(spatial, node.attrs["kernel"], **attrs)


def averaged_windows(node: Node) -> tuple[Size, ...]:
    """As `pooling_windows`, after requiring that there are elements to average: of nothing there is no mean."""
    grid, attrs = _grid(node), node.attrs
    windows = check_windows(node, "C3", grid)
    if not attrs["exclude_pad"] or attrs["auto_pad"] != "explicit":
        return windows
    for number, (axis, count) in enumerate(zip(grid, windows, strict=True)):
        for name, pad in (("pads_begin", axis.begin), ("pads_end", axis.end)):
            if pad < axis.reach:
                continue
            where = "first" if name == "pads_begin" else "last"
            covered: Answer = UNDECIDED
            if where == "first" or axis.stride == 1:  # then the last window ends with the padding, whatever the size is
                covered = False
            elif isinstance(count, int) and isinstance(axis.size, int):
                covered = axis.meet(count)
            message = (
                f"`{name}` is {list(attrs[name])}, but the kernel reaches over {axis.reach} elements along spatial "
                f"axis {number}: the {where} window has none to average, as padding is excluded"
            )
            node.require("C4", covered, message, about=[name])
    return windows


def indexed_windows(node: Node) -> Mapping[str, Any]:
    windows = pooling_windows(node)
    node.axis("C4", node.attrs["axis"], len(node.shape("data")))
    return {"windows": windows}


def lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest finite value of a type that numpy has."""
    return dtype.type(np.iinfo(dtype).min if dtype.kind in "iu" else np.finfo(dtype).min)


def summable(data: Array) -> Array:
    """`data` in f32 where it has 16-bit floats, for which numpy is slow."""
    return data.astype(np.float32) if data.dtype.itemsize == 2 and data.dtype.kind not in "iu" else data


def largest_elements(data: Array, grid: Sequence[Axis]) -> Array:
    """The largest element of each window: a running maximum over the taps of one axis after the other."""
    values = summable(data)
    floor = lowest(values.dtype)
    values = framed(values, grid, floor)
    for number, axis in reversed(list(enumerate(grid, 2))):
        result = np.fmax(along(values, number, axis, 0), floor)
        for tap in range(1, int(axis.kernel)):
            np.fmax(result, along(values, number, axis, tap), out=result)
        values = result
    return values.astype(data.dtype, copy=False)


def largest_with_index(data: Array, grid: Sequence[Axis], axis: int, index_type: str) -> tuple[Array, Array]:
    """The largest element of each window and its index: on each axis, that of the first tap that holds the maximum."""
    elements = summable(data)
    floor = lowest(elements.dtype)
    values, positions = _largest(elements, grid)
    bottom = values == floor
    if bottom.any():  # of elements that are as low, or of padding, NaN and -inf
        there, place = _largest((elements == floor).view(np.int8), grid)
        positions[bottom] = np.where(there > 0, place, 0)[bottom]
    pitch = int(np.prod(data.shape[2:]))
    positions += np.arange(data.shape[0] * data.shape[1]).reshape(*data.shape[:2], *[1] * len(grid)) * pitch
    first = axis % data.ndim
    if first:
        positions %= max(int(np.prod(data.shape[first:])), 1)
    return values.astype(data.dtype, copy=False), positions.astype(numpy_dtype(index_type), copy=False)


def _largest(elements: Array, grid: Sequence[Axis]) -> tuple[Array, Array]:
    """The largest element of each window, padding being as low as any, and its place in the channel."""
    floor = lowest(elements.dtype)
    values = framed(elements, grid, floor)
    positions: Any = None
    pitch = 1
    for number, window in reversed(list(enumerate(grid, 2))):
        taps = [along(values, number, window, tap) for tap in range(int(window.kernel))]
        values = np.fmax(taps[0], floor)
        for seen in taps[1:]:
            np.fmax(values, seen, out=values)
        found = _first_tap(taps, values)
        shape = [1] * elements.ndim
        shape[number] = -1
        place = np.arange(values.shape[number]).reshape(shape) * window.stride + found * window.dilation
        index = (place - int(window.pads[0])) * pitch
        positions = index if positions is None else index + np.take_along_axis(positions, place, number)
        pitch *= elements.shape[number]
    return values, positions


def _first_tap(taps: Sequence[Array], largest: Array) -> Array:
    """The number of the first tap that equals `largest`, as the count of those before it; the last one if none does."""
    before = ~np.isnan(largest) if largest.dtype.kind == "f" else np.ones(largest.shape, np.bool_)
    count: Array = np.zeros(largest.shape, np.int8 if len(taps) <= 127 else np.int64)
    for tap in taps[:-1]:
        before &= tap != largest
        count += before
    return count.astype(np.int64)


def averages(data: Array, grid: Sequence[Axis], exclude_pad: bool) -> Array:
    """The mean of each window: sums over the taps of one axis after the other, divided by counts of elements."""
    kind = data.dtype.kind
    sums = framed(
        data.astype(np.int64) if kind == "i" else data.astype(np.uint64) if kind == "u" else summable(data), grid
    )
    for number, axis in reversed(list(enumerate(grid, 2))):
        result = along(sums, number, axis, 0).copy()
        for tap in range(1, int(axis.kernel)):
            result += along(sums, number, axis, tap)
        sums = result
    padded = any(pad != 0 for axis in grid for pad in axis.pads)
    if padded and not exclude_pad:
        counts = np.full((1,) * len(grid), int(np.prod([int(axis.kernel) for axis in grid])))
    else:
        counts = np.ones((), np.int64)
        for axis in grid:
            counts = np.multiply.outer(counts, _real_elements(axis))
    return _divided(sums, np.maximum(counts, 1), data.dtype)


def _real_elements(axis: Axis) -> Array:
    """How many taps of each window along an axis fall on elements rather than padding."""
    starts = np.arange(int(axis.windows)) * axis.stride - int(axis.pads[0])
    taps = starts[:, np.newaxis] + np.arange(int(axis.kernel)) * axis.dilation
    counts: Array = ((taps >= 0) & (taps < int(axis.size))).sum(axis=1)
    return counts


def _divided(sums: Array, counts: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind not in "iu":
        means: Array = sums / counts.astype(sums.dtype)
    elif dtype.itemsize == 1:
        means = np.rint(sums / counts)
    else:
        means = np.abs(sums) // counts.astype(sums.dtype)
        means = np.sign(sums) * means
    return means.astype(dtype, copy=False)
