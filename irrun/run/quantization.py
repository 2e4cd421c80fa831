"""The ops between numbers and their codes on a grid: no layer is of them, `passes.quantization` puts them in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.engines.grid import Grid
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Input, Op, Output
from irrun.spec.traits import Elementwise


def _quantize(data: Array, *, grid: Grid, low: Sequence[float], high: Sequence[float]) -> Array:
    """The codes of the nearest of the levels of a grid, the first of which is for `low` and the last one for `high`.

    There is one limit for all of the tensor, or one for each channel along axis 1. Halves go to the even level. NaN is
    `low`, as it is for OpenVINO's CPU plugin: codes have no NaN.
    """
    least, most = _along_channels(low, data.ndim), _along_channels(high, data.ndim)
    level = np.asarray(data - least)
    level /= most - least
    level *= np.float32(grid.levels - 1)
    np.rint(level, out=level)
    np.copyto(level, 0, where=~(data > least))
    np.copyto(level, grid.levels - 1, where=data > most)
    level += np.float32(grid.first)
    return level.astype(numpy_dtype(grid.type))


def _dequantize(codes: Array, *, grid: Grid) -> Array:
    """The numbers that codes stand for, f32."""
    number: Array = (codes.astype(np.float32) - np.float32(grid.zero)) * _along_channels(grid.scale, codes.ndim)
    return number


def _along_channels(values: Sequence[float], rank: int) -> Array:
    array = np.array(values, np.float32)
    return array.reshape(()) if array.size == 1 else array.reshape(-1, *[1] * (rank - 2))


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
