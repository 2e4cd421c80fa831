"""Quantization ops: floating-point tensors restricted to few values."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import (
    FLOAT,
    INT,
    Array,
    Attr,
    Doubting,
    Elementwise,
    Input,
    Node,
    Output,
    Quantizing,
    Shapes,
    broadcast_shapes,
    choice,
    incompatible,
    meet,
    numpy_dtype,
    op,
    shape_text,
)

from ._elementwise import AUTO_BROADCAST, aligned, broadcast_result
from ._unlikely import exchanged_limits

LIMITS = ("input_low", "input_high", "output_low", "output_high")


@op(
    "FakeQuantize-1",
    types={"T": FLOAT},
    inputs=[Input("X", "T", "..."), *(Input(name, "T", "...", lenient=True) for name in LIMITS)],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[Attr("levels", INT, least=2), *AUTO_BROADCAST],
    traits=[Elementwise(1), Quantizing(LIMITS, "levels"), Doubting(exchanged_limits)],
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
        span, one = last - first, X.dtype.type(1)
        whole = span == steps  # what is not divided in between stays whole for any number of levels
        level /= np.where(whole, one, steps)
        level *= np.where(whole, one, span)
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
        fits = result is not None and not incompatible(result, x)
        node.require(
            "C1",
            fits,
            f"`{name}` is {shape_text(tensor.shape)}, which does not broadcast to {shape_text(x)} ({mode})",
            about=[name],
        )
        if result is not None:
            x = tuple(map(meet, x, result))
    return {"result": x}


@op(
    "FakeConvert-13",
    types={"T": FLOAT - {"f64"}},
    inputs=[
        Input("data", "T", "[*data]"),
        Input("scale", "T", "[*scale]"),
        Input("shift", "T", "[*shift]", optional=True),
    ],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[Attr("destination_type", choice("f8e4m3", "f8e5m2"), assumed="f8e4m3")],
)
def fake_convert(data: Array, scale: Array, shift: Array | None = None, *, destination_type: str) -> Any:
    """Scale and shift the data, round it to an 8-bit float type, and shift and scale it back.

    Constraints:
        C1: scale broadcasts to the shape of data by numpy's rule, and does not change it.
        C2: shift has the shape of scale.

    Choice: what is beyond the range of the 8-bit type becomes its largest value, infinity too, as in the reference,
    where the conversion that the page names would give NaN or infinity. NaN stays NaN.

    Source: quantization/fake-convert-13.rst

    >>> op(np.float32([0.3, 17, 500]), np.float32(1), destination_type="f8e4m3").tolist()
    [0.3125, 16.0, 448.0]
    """
    narrow = numpy_dtype(destination_type)
    limit = data.dtype.type(448 if destination_type == "f8e4m3" else 57344)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        moved = data * scale if shift is None else data * scale - shift
        rounded = np.clip(moved, -limit, limit).astype(narrow).astype(data.dtype)
        return (rounded if shift is None else rounded + shift) / scale


@fake_convert.shapes
def _(node: Node) -> Shapes:
    data, scale = node.shape("data"), node.shape("scale")
    result = broadcast_shapes(data, scale)
    fits = result is not None and not incompatible(result, data)
    node.require(
        "C1", fits, f"`scale` is {shape_text(scale)}, which does not broadcast to {shape_text(data)}", about=["scale"]
    )
    if node.inputs["shift"] is not None:
        shift = node.shape("shift")
        same = not incompatible(shift, scale)
        node.require(
            "C2", same, f"`shift` is {shape_text(shift)}, but `scale` is {shape_text(scale)}", about=["shift", "scale"]
        )
    return {"result": data if result is None else tuple(map(meet, data, result))}
