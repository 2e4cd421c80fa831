"""The ops that passes put in, which no layer is of: on codes, of normalization, and for what engines and rows need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from irrun.engines.grid import Coding, Grid
from irrun.spec.dims import Shape, Size, product
from irrun.spec.dtypes import FLOAT_FORMATS, numpy_dtype
from irrun.spec.op import Array, Input, Node, Op, Output, Tensor
from irrun.spec.traits import Elementwise, Normalizing, Products

LEVELS = 256
"""The most levels of a grid: as many as a byte has codes."""


def _quantize(data: Array, *, coding: Coding) -> Array:
    """The codes of numbers. NaN is the lowest one, as it is for OpenVINO's CPU plugin: codes have no NaN."""
    low, high = _along_channels(coding.low, data.ndim), _along_channels(coding.high, data.ndim)
    steps, first = _along_channels(coding.levels, data.ndim) - 1, _along_channels(coding.first, data.ndim)
    level = np.asarray(data - low)
    level /= high - low
    level *= steps
    np.rint(level, out=level)
    np.copyto(level, 0, where=~(data > low))
    np.copyto(level, steps, where=data > high)
    level += first
    return level.astype(numpy_dtype(coding.grid.type))


def _dequantize(codes: Array, *, grid: Grid) -> Array:
    """The numbers that codes stand for, f32."""
    number: Array = (codes.astype(np.float32) - np.float32(grid.zero)) * _along_channels(grid.scale, codes.ndim)
    return number


def _look_up(codes: Array, table: Array) -> Array:
    """What a table has for each code; the elements of i8 stand for those of the same bytes as u8."""
    found: Array = table[codes.view(np.uint8)]
    return found


@cache
def integer_product(product: Op) -> Op:
    """The op `product` of codes less a zero point, which is found in the run, with constant whole numbers, as f32."""

    def kernel(codes: Array, weights: Array, zero: Array, **attrs: Any) -> Array:
        sums: Array = product.kernel(codes.astype(np.float64) - zero, weights.astype(np.float64), **attrs)
        return sums.astype(np.float32)

    def rule(node: Node) -> list[Tensor]:
        operands = [Tensor("f32", node.inputs[name].shape) for name in ("codes", "weights")]
        return list(product.infer(operands, node.attrs).outputs)

    inputs = [Input("codes", "dynamic", "..."), Input("weights", "f32", "..."), Input("zero", "i32", "...")]
    return Op(f"Integer{product.name}", kernel, inputs, [Output("sums", "f32", "...")], rule=rule)


def _divide(data: Array, *, eps: float) -> Array:
    """Lines by the roots of the means of their squares."""
    mean = np.sum(np.square(data), axis=-1, keepdims=True) / np.float32(data.shape[-1])  # np.mean warns of empty lines
    return np.asarray(data * (1 / np.sqrt(mean + np.float32(eps))))


@cache
def with_eps(eps: float) -> Mapping[str, Any]:
    """The attributes of ROOT_MEAN_SQUARE, shared by all instructions of the same `eps`: so they are of one kind."""
    return {"eps": eps}


def _multiply_picked(rows: Array, weights: Array, indices: Array, *, transposed: bool, column: bool) -> Array:
    """The product of each batch of rows with the matrix that its index picks, outside of which all are 0."""
    places, size = indices.astype(np.intp), len(weights)
    inside = (places >= -size) & (places < size)
    matrices = np.where(inside[:, None, None], weights[np.where(inside, places, 0)], np.float32(0))
    left, right = (own.swapaxes(1, 2) if turned else own for own, turned in ((rows, column), (matrices, transposed)))
    result: Array = left @ right
    return result.swapaxes(1, 2) if column else result


def _picked_shape(node: Node) -> list[Tensor]:
    rows, weights = node.shape("rows"), node.shape("weights")
    columns = weights[1 if node.attrs["transposed"] else 2]
    return [Tensor("f32", (rows[0], columns, rows[2]) if node.attrs["column"] else (*rows[:2], columns))]


def _picked_operations(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    return 2 * product(result) * shapes[0][1 if attrs["column"] else 2]


@cache
def picking(*, transposed: bool, column: bool) -> Mapping[str, Any]:
    """The attributes of PICKED_PRODUCT, shared by all instructions of the same ones."""
    return {"transposed": transposed, "column": column}


def _along_channels(values: Sequence[float], rank: int) -> Array:
    array = np.array(values, np.float32)
    return array.reshape(()) if array.size == 1 else array.reshape(-1, *[1] * (rank - 2))


def _saturate(data: Array) -> Array:
    """The numbers that bf16 has none for as its largest ones; what is infinite, or none, stays so."""
    most = FLOAT_FORMATS["bf16"].largest
    return np.where(np.isinf(data), data, np.clip(data, np.float32(-most), np.float32(most)))


SATURATE = Op(
    "Saturate-0",
    _saturate,
    [Input("data", "f32", "[*data]")],
    [Output("output", "f32", "[*data]")],
    traits=[Elementwise(1)],
)
"""What is in front of a conversion to bf16 of what hides scores, as the lowest number of f32 does."""

QUANTIZE = Op(
    "Quantize-0",
    _quantize,
    [Input("data", "f32", "[*data]")],
    [Output("codes", "dynamic", "[*data]")],
    traits=[Elementwise(1)],
)
DEQUANTIZE = Op(
    "Dequantize-0", _dequantize, [Input("codes", "dynamic", "[*codes]")], [Output("data", "f32", "[*codes]")]
)
TABLE = Op(
    "Table-0",
    _look_up,
    [Input("codes", "dynamic", "[*codes]"), Input("table", "dynamic", f"[{LEVELS}]")],
    [Output("data", "dynamic", "[*codes]")],
)
ROOT_MEAN_SQUARE = Op(
    "RootMeanSquare-0",
    _divide,
    [Input("data", "f32", "[*data]")],
    [Output("output", "f32", "[*data]")],
    traits=[Normalizing()],
)
"""Each line along the last axis of `data`, times 1 / sqrt(mean of the squares + the attribute `eps`)."""

PICKED_PRODUCT = Op(
    "PickedProduct-0",
    _multiply_picked,
    [Input("rows", "f32", "[b, r, k]"), Input("weights", "f32", "[e, m, n]"), Input("indices", "dynamic", "[b]")],
    [Output("output", "f32", "...")],
    rule=_picked_shape,
    traits=[Products(_picked_operations)],
)
"""The product of `rows` [b, r, k] with one of the `weights` [e, k, n] for each b, or [e, n, k] where these are
`transposed`; of a `column` [b, k, r] it is the column [b, n, r]. Negative indices count from the end, and those outside
pick zeros."""

REORDER = Op("Reorder-0", lambda data: data, [Input("data", "dynamic", "...")], [Output("output", "dynamic", "...")])
"""What brings a tensor into another layout; no layer is of it."""

ENCLOSED = Op(
    "Enclosed-0",
    lambda *inputs: inputs,
    [Input("inputs", "dynamic", "...", variadic=True)],
    [Output("outputs", "dynamic", "...", variadic=True)],
)
"""What stands for a row of instructions; no layer is of it."""
