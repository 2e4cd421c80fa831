"""Reduction ops: axes folded into one element."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    BOOLEAN,
    INTEGER,
    NUMERIC,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Op,
    Output,
    Reduction,
    Shape,
    Shapes,
    Size,
    Sizes,
    fresh,
    largest,
    product,
    smallest,
)

from ._indexing import ONCE
from ._precision import total

DOC = """{first}

The result has the rank of data without the axes, or 1 in their place with keep_dims. Without axes each element is
reduced by itself.

Constraints:
    C1: axes lie in [-r, r), r the rank of data; for a scalar 0 is taken, too, but not with keep_dims.
    C2: axes are unique.

{notes}Deviation: OpenVINO takes an axis that is named twice as one.

Source: reduction/{page}.rst

>>> op(np.array({data}), np.array([1])).tolist()
{example}
"""

WRAPS = "f16 and bf16 are computed in f32 and rounded once; integers wrap around."
MEAN = """f16 and bf16 are computed in f32 and rounded once. The mean of integers is that of their sum in 64 bits,
without its fraction; OpenVINO lets the sum of small integers overflow. The mean of nothing is 0."""
MAX = """NaN is skipped, unless there is nothing else. The maximum of nothing, which the page leaves undefined, is the
lowest finite number, for f16 and bf16 that of f32, which is rounded to -infinity; OpenVINO gives the lowest number for
elements that are all -infinity, too, where we give -infinity."""
MIN = """NaN is skipped, unless there is nothing else. The minimum of nothing, which the page leaves undefined, is
infinity, or the largest integer; the CPU plugin of OpenVINO gives the largest finite number."""
L1 = """f16 and bf16 are computed in f32 and rounded once; integers wrap around.
Without axes the result is the absolute value, as in OpenVINO; the page says that it is the element itself."""
L2 = """f16 and bf16 are computed in f32 and rounded once; for integers the fraction is dropped.
Without axes the result is the absolute value, as in OpenVINO; the page says that it is the element itself."""

Reduce = Callable[[Array, tuple[int, ...], bool], Any]
Limit = Callable[["np.dtype[Any]"], Any]


def _reduction(
    name: str,
    reduce: Reduce,
    first: str,
    example: str,
    notes: str = "",
    types: frozenset[str] = NUMERIC,
    symbolic: bool = False,
    linear: bool = False,
) -> Op:
    def kernel(data: Array, axes: Array, *, keep_dims: bool) -> Any:
        along = tuple(sorted({int(axis) % data.ndim for axis in axes.ravel()})) if data.ndim else ()
        result = reduce(data, along, keep_dims)
        return result if isinstance(result, Sizes) else np.asarray(result).astype(data.dtype, copy=False)

    page = re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    example_data = "[[1, 2], [3, 4]]" if types == NUMERIC else "[[True, False], [True, True]]"
    return Op(
        name,
        kernel,
        inputs=[Input("data", "T", "..."), Input("axes", "T_IND", "[] | [num_axes]")],
        outputs=[Output("result", "T", "[*shape]")],
        attrs=[Attr("keep_dims", BOOL, False)],
        types={"T": types, "T_IND": INTEGER},
        symbolic=symbolic,
        traits=[Reduction("axes", "keep_dims", linear)],
        rule=_shapes,
        doc=DOC.format(first=first, page=page, example=example, notes=notes and notes + "\n\n", data=example_data),
    )


def _shapes(node: Node) -> Shapes:
    data = node.shape("data")
    axes = node.numbers("axes")
    keep_dims = node.attrs["keep_dims"]
    if axes is None:
        number = 1 if node.inputs["axes"].rank == 0 else node.dims.get("num_axes")
        shape = _possible_shape(data, number if isinstance(number, int) else None, keep_dims)
        return {} if shape is None else {"shape": shape}
    kept = not data and bool(axes) and keep_dims
    node.require("C1", not kept, "`data` is a scalar, which has no axis to keep", about=["data"])
    along: list[int] = []
    for axis in axes:
        position = node.axis("C1", axis, len(data), "axes")
        if position in along:
            message = f"`axes` is {axes}, which names axis {position} twice"
            node.tolerate("C2", ONCE, message, "axes")
        else:
            along.append(position)
    if keep_dims:
        return {"shape": tuple(1 if axis in along else size for axis, size in enumerate(data))}
    return {"shape": tuple(size for axis, size in enumerate(data) if axis not in along)}


def _possible_shape(data: Shape, number: int | None, keep_dims: bool) -> Shape | None:
    """What is known of the result where the axes are unknown: their number at most (None: nothing). Of several some may
    be the same."""
    rank = len(data)
    if rank == 0 or number == 0:
        return data
    if keep_dims:
        return tuple(1 if rank == number == 1 else _one_of((size, 1)) for size in data)
    return tuple(map(_one_of, pairwise(data))) if number == 1 else None


def _one_of(sizes: Shape) -> Size:
    if all((size == sizes[0]) is True for size in sizes):
        return sizes[0]
    lows = [size.low or 0 if isinstance(size, Dim) else size for size in sizes]
    highs = [size.high if isinstance(size, Dim) else size for size in sizes]
    known = [high for high in highs if high is not None]
    return fresh(min(lows), max(known) if len(known) == len(highs) else None)


def _sum(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return total(_wide(data), axes, keepdims=keep_dims)


def _prod(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return _wide(data).prod(axis=axes, keepdims=keep_dims)


def _mean(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    sums = np.asarray(_sum(data, axes, keep_dims))
    count = np.asarray(max(_count(data, axes), 1), sums.dtype)
    return (sums - np.fmod(sums, count)) // count if sums.dtype.kind in "iu" else sums / count


def _l1(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return total(np.abs(_wide(data)), axes, keepdims=keep_dims)


def _l2(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.sqrt(total(np.square(_wide(data)), axes, keepdims=keep_dims))


def _extreme(
    pick: str, pick_size: Callable[..., Size], limit: Limit, data: Array, axes: tuple[int, ...], keep_dims: bool
) -> Any:
    """The extreme that the ufunc `pick` finds, or `pick_size` among dimensions; that of nothing is `limit`."""
    if data.dtype == object:
        for axis in reversed(axes):
            data = np.frompyfunc(pick_size, 2, 1).reduce(data, axis=axis, keepdims=keep_dims)
        return data
    data = _single(data)
    initial = {} if _count(data, axes) else {"initial": limit(data.dtype)}
    return getattr(np, pick).reduce(data, axis=axes, keepdims=keep_dims, **initial)


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else np.nextafter(*np.array([-np.inf, 0], dtype))


def _highest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.array(np.inf, dtype)


_max = partial(_extreme, "fmax", largest, _lowest)
_min = partial(_extreme, "fmin", smallest, _highest)


def _all(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.all(data, axis=axes, keepdims=keep_dims)


def _any(data: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
    return np.any(data, axis=axes, keepdims=keep_dims)


def _wide(data: Array) -> Array:
    """The data in a type that sums of them fit into: f32 for f16 and bf16, 64 bits for integers."""
    if data.dtype.kind in "iu":
        return data.astype(f"{data.dtype.kind}8", copy=False)
    return _single(data)


def _single(data: Array) -> Array:
    """The data, with f16 and bf16 as f32."""
    half = data.dtype != object and data.dtype.kind not in "iu" and data.dtype.itemsize == 2
    return data.astype(np.float32) if half else data


def _count(data: Array, axes: tuple[int, ...]) -> int:
    """How many elements are reduced to one."""
    return int(product(data.shape[axis] for axis in axes))


reduce_sum = _reduction("ReduceSum-1", _sum, "The sum over axes.", "[3, 7]", WRAPS, symbolic=True, linear=True)
reduce_prod = _reduction("ReduceProd-1", _prod, "The product over axes.", "[2, 12]", WRAPS, symbolic=True)
reduce_mean = _reduction("ReduceMean-1", _mean, "The mean over axes.", "[1, 3]", MEAN, linear=True)
reduce_max = _reduction("ReduceMax-1", _max, "The maximum over axes.", "[2, 4]", MAX, symbolic=True)
reduce_min = _reduction("ReduceMin-1", _min, "The minimum over axes.", "[1, 3]", MIN, symbolic=True)
reduce_l1 = _reduction("ReduceL1-4", _l1, "The sum of absolute values over axes.", "[3, 7]", L1)
reduce_l2 = _reduction("ReduceL2-4", _l2, "The root of the sum of squares over axes.", "[2, 5]", L2)
reduce_and = _reduction("ReduceLogicalAnd-1", _all, "Whether all are true over axes.", "[False, True]", types=BOOLEAN)
reduce_or = _reduction("ReduceLogicalOr-1", _any, "Whether any is true over axes.", "[True, True]", types=BOOLEAN)
