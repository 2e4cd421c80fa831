"""Quantization ops: floating-point tensors restricted to few values."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import FLOAT, INT, Array, Attr, Input, Node, Output, Shapes, op, shape_text

from ._elementwise import AUTO_BROADCAST, aligned, broadcast_result

LIMITS = ("input_low", "input_high", "output_low", "output_high")


@op(
    "FakeQuantize-1",
    types={"T": FLOAT},
    inputs=[Input("X", "T", "..."), *(Input(name, "T", "...") for name in LIMITS)],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[Attr("levels", INT, least=2), *AUTO_BROADCAST],
)
def fake_quantize(
    X: Array,
    input_low: Array,
    input_high: Array,
    output_low: Array,
    output_high: Array,
    *,
    levels: int,
    auto_broadcast: str,
    auto_broadcast_axis: int,
) -> Any:
    """Round each element to the nearest of `levels` values between the input limits, and map them to the output limits.

    Halves are rounded to even. What is not above the smaller input limit gives output_low, what is above the larger
    one output_high; input_low may be above input_high. 16-bit floats are computed in f32 and rounded once.

    Constraints:
        C1: the limits broadcast to the shape of X as auto_broadcast says, and do not change it.

    Choice: NaN stays NaN, as the formula says; OpenVINO's CPU plugin gives output_low.

    Source: quantization/fake-quantize-1.rst

    >>> x, low, high = np.array([-1, 0.2, 0.6, 2]), np.array(0.0), np.array(1.0)
    >>> op(x, low, high, np.array(-1.0), np.array(3.0), levels=5).tolist()
    [-1.0, 0.0, 1.0, 3.0]
    """
    dtype = X.dtype
    limits = [
        aligned(X, limit, auto_broadcast, auto_broadcast_axis)
        for limit in (input_low, input_high, output_low, output_high)
    ]
    if dtype.itemsize == 2:
        X, *limits = (array.astype(np.float32) for array in (X, *limits))
    low, high, first, last = limits
    steps = X.dtype.type(levels - 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        level = np.asarray(X - low)
        level /= high - low
        level *= steps
        np.rint(level, out=level)
        level /= steps
        level *= last - first
        level += first
    np.copyto(level, first, where=np.minimum(low, high) >= X)
    np.copyto(level, last, where=np.maximum(low, high) < X)
    return level.astype(dtype, copy=False)


@fake_quantize.shapes
def _(node: Node) -> Shapes:
    x, mode, axis = node.shape("X"), node.attrs["auto_broadcast"], node.attrs["auto_broadcast_axis"]
    for name in LIMITS:
        tensor = node.inputs[name]
        if tensor.shape is None:
            continue
        result = broadcast_result(x, tensor.shape, mode, axis)
        fits = (
            result is not None
            and len(result) == len(x)
            and all((a == b) is not False for a, b in zip(result, x, strict=True))
        )
        node.require(
            "C1", fits, f"`{name}` is {shape_text(tensor.shape)}, which does not broadcast to {shape_text(x)} ({mode})"
        )
    return {"result": x}
