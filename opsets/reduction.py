"""Reduction ops: axes folded into one element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    INTEGER,
    NUMERIC,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Op,
    Output,
    Shape,
    Shapes,
    Size,
    fresh,
    largest,
    product,
    smallest,
)

DOC = """{first}

The result has the rank of data without the axes, or 1 in their place with keep_dims. Without axes each element is
reduced by itself.

Constraints:
    C1: axes lie in [-r, r), r the rank of data; for a scalar 0 and -1 are taken, too.
    C2: axes are unique.

{notes}
Deviation: OpenVINO takes an axis that is named twice as one.

Source: reduction/{page}.rst

>>> op(np.array({data}), np.array([1])).tolist()
{example}
"""

Reduce = Callable[[Array, tuple[int, ...], bool], Any]


def _reduction(
    name: str,
    reduce: Reduce,
    first: str,
    page: str,
    example: str,
    notes: str = "",
    types: frozenset[str] = NUMERIC,
    symbolic: bool = False,
) -> Op:
    def kernel(data: Array, axes: Array, *, keep_dims: bool) -> Any:
        along = tuple(sorted({int(axis) % data.ndim for axis in axes.ravel()})) if data.ndim else ()
        return np.asarray(reduce(data, along, keep_dims)).astype(data.dtype, copy=False)

    example_data = "[[1, 2], [3, 4]]" if types == NUMERIC else "[[True, False], [True, True]]"
    return Op(
        name,
        kernel,
        inputs=[Input("data", "T", "..."), Input("axes", "T_IND", "[] | [num_axes]")],
        outputs=[Output("result", "T", "[*shape]")],
        attrs=[Attr("keep_dims", BOOL, False)],
        types={"T": types, "T_IND": INTEGER},
        symbolic=symbolic,
        rule=_shapes,
        doc=DOC.format(first=first, page=page, example=example, notes=notes and notes + "\n", data=example_data),
    )


def _shapes(node: Node) -> Shapes:
    data = node.shape("data")
    axes = node.value("axes")
    keep_dims = node.attrs["keep_dims"]
    if axes is None:
        number = 1 if node.inputs["axes"].rank == 0 else node.dims.get("num_axes")
        shape = _possible_shape(data, number if isinstance(number, int) else None, keep_dims)
        return {} if shape is None else {"shape": shape}
    along: list[int] = []
    for axis in axes.ravel().tolist():
        position = node.axis("C1", axis, len(data), "axes")
        if position in along:
            node.fail("C2", f"`axes` is {axes.tolist()}, which names axis {position} twice", "axes")
        along.append(position)
    if keep_dims:
        return {"shape": tuple(1 if axis in along else size for axis, size in enumerate(data))}
    return {"shape": tuple(size for axis, size in enumerate(data) if axis not in along)}


def _possible_shape(data: Shape, number: int | None, keep_dims: bool) -> Shape | None:
    """What is known of the result where the axes are unknown: their number at most (None: nothing)."""
    rank = len(data)
    if rank == 0 or number == 0:
        return data
    if number is not None and number >= rank:
        return (1,) * rank if keep_dims else ()
    if keep_dims:
        return tuple(_one_of((size, 1)) for size in data)
    return None if number is None else tuple(_one_of(data[i : i + number + 1]) for i in range(rank - number))


def _one_of(sizes: Shape) -> Size:
    if all((size == sizes[0]) is True for size in sizes):
        return sizes[0]
    lows = [size.low or 0 if isinstance(size, Dim) else size for size in sizes]
    highs = [size.high if isinstance(size, Dim) else size for size in sizes]
    known = [high for high in highs if high is not None]
    return fresh(min(lows), max(known) if len(known) == len(highs) else None)


def _sum(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.sum(_wide(data), axis=axes, keepdims=keep_dims)


def _prod(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.prod(_wide(data), axis=axes, keepdims=keep_dims)


def _mean(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    total = np.asarray(_sum(data, axes, keep_dims))
    count = np.asarray(max(_count(data, axes), 1), total.dtype)
    return (total - np.fmod(total, count)) // count if total.dtype.kind in "iu" else total / count


def _l1(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.sum(np.abs(_wide(data)), axis=axes, keepdims=keep_dims)


def _l2(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.sqrt(np.sum(np.square(_wide(data)), axis=axes, keepdims=keep_dims))


def _max(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    if data.dtype == object:
        return _fold(largest, data, axes, keep_dims)
    if _count(data, axes):
        return np.fmax.reduce(data, axis=axes, keepdims=keep_dims)
    none = np.iinfo(data.dtype).min if data.dtype.kind in "iu" else np.nextafter(*np.array([-np.inf, 0], data.dtype))
    return np.fmax.reduce(data, axis=axes, keepdims=keep_dims, initial=none)


def _min(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    if data.dtype == object:
        return _fold(smallest, data, axes, keep_dims)
    if _count(data, axes):
        return np.fmin.reduce(data, axis=axes, keepdims=keep_dims)
    none = np.iinfo(data.dtype).max if data.dtype.kind in "iu" else np.array(np.inf, data.dtype)
    return np.fmin.reduce(data, axis=axes, keepdims=keep_dims, initial=none)


def _all(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.all(data, axis=axes, keepdims=keep_dims)


def _any(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.any(data, axis=axes, keepdims=keep_dims)


def _wide(data: Array) -> Array:
    """The data in a type that sums of them fit into: f32 for f16 and bf16, 64 bits for integers."""
    if data.dtype.kind in "iu":
        return data.astype(f"{data.dtype.kind}8", copy=False)
    return data.astype(np.float32) if data.dtype != object and data.dtype.itemsize == 2 else data


def _count(data: Array, axes: tuple[int, ...]) -> int:
    """How many elements are reduced to one."""
    return int(product(data.shape[axis] for axis in axes))


def _fold(choose: Callable[..., Size], data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """`data` of ints and dimensions, reduced one axis after the other."""
    for axis in reversed(axes):
        data = np.frompyfunc(choose, 2, 1).reduce(data, axis=axis, keepdims=keep_dims)
    return data


WRAPS = "f16 and bf16 are computed in f32 and rounded once; integers wrap around."
TRUNCATES = "f16 and bf16 are computed in f32 and rounded once; for integers it is exact and loses its fraction."
SKIPS_NAN = """NaN is skipped, unless there is nothing else. Of nothing the result is the {none}, which the page
leaves undefined. OpenVINO gives the {limit} finite number where all elements are {sign}infinity."""
MAX_NOTES = SKIPS_NAN.format(none="lowest finite number", limit="lowest", sign="-")
MIN_NOTES = """NaN is skipped, unless there is nothing else. Of nothing the result is infinity, or the largest integer,
which the page leaves undefined; OpenVINO's CPU plugin gives the largest finite number."""
MEAN_NOTES = TRUNCATES + " The mean of nothing is 0. OpenVINO\nlets the sum of small integers saturate."
NORM_NOTES = " The page calls it\nthe identity without axes, but OpenVINO gives the absolute values, and so do we."

reduce_sum = _reduction("ReduceSum-1", _sum, "The sum over axes.", "reduce-sum-1", "[3, 7]", WRAPS, symbolic=True)
