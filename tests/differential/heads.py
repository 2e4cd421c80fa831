"""Ops that chains begin with: products, convolutions, pools, normalizations, reductions, recurrent layers and more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from differential.builder import Builder, Rejected, Size, Value
from differential.operands import constants, inputs, operand, sizes_of, viewed


def weights(b: Builder, shape: Sequence[int], scale: float = 1.0) -> Value:
    """Constants mostly, some of them narrow, or views; or an input. They are finite: padding times infinity is NaN."""
    special, b.special = b.special, False
    try:
        return _weights(b, shape, scale)
    finally:
        b.special = special


def _weights(b: Builder, shape: Sequence[int], scale: float) -> Value:
    source = (constants if b.chance(0.85) else inputs)(b, -scale, scale)
    return source(shape, None) if b.chance(0.7) else viewed(b, shape, source, b.dtype)


def wanted(value: Value, of: Sequence[Any]) -> None:
    """Raises Rejected unless the value has one of these element types."""
    if value.dtype not in [np.dtype(name) for name in of]:
        raise Rejected


FLOATS = ("f2", "f4", "f8")


def product(b: Builder) -> Value:
    rank = b.choose([1, 2, 2, 2, 3, 3, 4])
    flags = [b.chance(0.35), b.chance(0.35)]
    a = b.pick(rank, fixed=[-2 if flags[0] and rank > 1 else -1])
    k = a.shape[-2 if flags[0] and rank > 1 else -1]
    n = b.size()
    if b.chance(0.15) and rank > 1:
        others = [v for v in b.values if v.rank == rank and v.dtype == a.dtype]
        other = b.choose(others) if others else a
    else:
        batch = [size if b.chance(0.6) else 1 for size in sizes_of(a)[:-2]] if b.chance(0.4) else []
        while batch and batch[0] == 1 and b.chance(0.5):
            batch = batch[1:]
        shape: list[Size] = [*batch, n, k] if flags[1] else [*batch, k, n]
        if b.chance(0.1):
            shape, flags[1] = [k], False
        if all(isinstance(size, int) for size in shape):
            other = weights(b, shape, 1 / max(k, 1) ** 0.5)  # type: ignore[arg-type]
        else:
            other = b.input(shape, low=-1, high=1)
    if b.chance(0.15) and a.constant is False and rank > 1:
        return b.one("MatMul-1", other, a, transpose_a=not flags[1], transpose_b=not flags[0])
    return b.one("MatMul-1", a, other, transpose_a=flags[0], transpose_b=flags[1])


def _window(b: Builder, axes: int, pads: bool = True) -> dict[str, Any]:
    window = {
        "strides": [b.choose([1, 1, 1, 2, 3]) for _ in range(axes)],
        "dilations": [b.choose([1, 1, 1, 2]) for _ in range(axes)],
        "pads_begin": [b.choose([0, 0, 1, 2]) if pads else 0 for _ in range(axes)],
        "pads_end": [b.choose([0, 0, 1, 2]) if pads else 0 for _ in range(axes)],
        "auto_pad": b.choose(["explicit"] * 5 + ["same_upper", "same_lower", "valid"]),
    }
    if b.chance(0.5):
        window["pads_end"] = list(window["pads_begin"])
    return window


def convolution(b: Builder) -> Value:
    axes = b.choose([1, 2, 2, 2, 3])
    x = b.pick(axes + 2, fixed=[1])
    kernel = [b.choose([1, 1, 2, 3, 3, 5]) for _ in range(axes)]
    filters = weights(b, [b.size(), x.shape[1], *kernel], 1 / (x.shape[1] * np.prod(kernel) + 1) ** 0.5)
    return b.one("Convolution-1", x, filters, **_window(b, axes))


def grouped_convolution(b: Builder) -> Value:
    axes = b.choose([1, 2, 2, 2, 3])
    x = b.pick(axes + 2, fixed=[1])
    channels = x.shape[1]
    if not channels:
        raise Rejected
    groups = b.choose([channels, channels, *[n for n in range(1, channels + 1) if channels % n == 0]])
    kernel = [b.choose([1, 2, 3, 3, 5]) for _ in range(axes)]
    shape = [groups, b.choose([1, 1, 2, 3]), channels // groups, *kernel]
    return b.one("GroupConvolution-1", x, weights(b, shape, 0.5), **_window(b, axes))


def transposed_convolution(b: Builder) -> Value:
    axes = b.choose([1, 2, 2, 3])
    x = b.pick(axes + 2, fixed=[1])
    channels = x.shape[1]
    if not channels:
        raise Rejected
    window = _window(b, axes)
    if b.chance(0.3):
        window["output_padding"] = [b.choose([0, 1]) for _ in range(axes)]
    kernel = [b.choose([1, 2, 3, 4]) for _ in range(axes)]
    if b.chance(0.4):
        groups = b.choose([channels, *[n for n in range(1, channels + 1) if channels % n == 0]])
        shape = [groups, channels // groups, b.choose([1, 2, 3]), *kernel]
        return b.one("GroupConvolutionBackpropData-1", x, weights(b, shape, 0.5), **window)
    return b.one("ConvolutionBackpropData-1", x, weights(b, [channels, b.size(), *kernel], 0.5), **window)


def pool(b: Builder) -> Value:
    axes = b.choose([1, 2, 2, 2, 3])
    x = b.pick(axes + 2)
    window = _window(b, axes)
    window["kernel"] = [b.choose([1, 2, 2, 3]) for _ in range(axes)]
    window["rounding_type"] = b.choose(["floor", "ceil"])
    if b.chance(0.5):
        wanted(x, FLOATS)
        del window["dilations"]
        return b.one(b.choose(["AvgPool-1", "AvgPool-14"]), x, **window, **{"exclude-pad": b.chance(0.5)})
    if b.chance(0.6):
        del window["dilations"]
        return b.one("MaxPool-1", x, **window)
    return b.one(b.choose(["MaxPool-8", "MaxPool-14"]), x, **window, axis=b.choose([0, 1, 2]))


def adaptive_pool(b: Builder) -> Value:
    axes = b.choose([1, 2, 3])
    x = b.pick(axes + 2)
    wanted(x, FLOATS)
    shape = b.i64([b.number(1, 4) for _ in range(axes)])
    return b.one(b.choose(["AdaptiveAvgPool-8", "AdaptiveMaxPool-8"]), x, shape)


def axes_of(b: Builder, rank: int, most: int = 8) -> list[int]:
    """Some axes, counted from either end."""
    chosen = b.permutation(rank)[: b.number(1, max(1, min(rank, most)))]
    return [axis - rank if b.chance(0.4) else axis for axis in chosen]


def normalization(b: Builder) -> Value:
    x = b.pick(b.choose([2, 3, 4, 4, 5]), fixed=[1])
    wanted(x, FLOATS)
    channels = x.shape[1]
    vector = [weights(b, [channels]) for _ in range(2)]
    match b.choose(["mvn", "mvn", "group", "group", "batch", "lrn", "l2", "grn"]):
        case "mvn":
            axes = axes_of(b, x.rank) if b.chance(0.6) else [*range(-b.number(1, x.rank - 1), 0)]
            mode = b.choose(["inside_sqrt", "outside_sqrt"])
            return b.one("MVN-6", x, b.i64(axes), normalize_variance=b.chance(0.8), eps=1e-3, eps_mode=mode)
        case "group":
            groups = b.choose([n for n in range(1, channels + 1) if channels % n == 0])
            return b.one("GroupNormalization-12", x, *vector, num_groups=groups, epsilon=1e-3)
        case "batch":
            mean, variance = weights(b, [channels]), b.constant(b.data((channels,), low=0.5, high=2))
            return b.one("BatchNormInference-5", x, *vector, mean, variance, epsilon=1e-3)
        case "lrn":
            axes = [1] if b.chance(0.7) else axes_of(b, x.rank, 2)
            return b.one("LRN-1", x, b.i64(axes), alpha=0.5, beta=0.75, bias=1.0, size=b.choose([1, 3, 5]))
        case "l2":
            return b.one("NormalizeL2-1", x, b.i64(axes_of(b, x.rank)), eps=1e-3, eps_mode=b.choose(["add", "max"]))
    return b.one("GRN-1", x, bias=0.5)


def layer_norm(b: Builder) -> Value:
    """A layer normalization of single ops, as exporters write it; or one of root mean squares."""
    x = b.pick(b.choose([2, 3, 4]), fixed=[-1])
    wanted(x, FLOATS)
    axes = b.i64([-1])
    if b.chance(0.6):
        x = b.one("Subtract-1", x, b.one("ReduceMean-1", x, axes, keep_dims=True), auto_broadcast="numpy")
    square = b.one("Power-1", x, b.constant(np.asarray(2, b.dtype)), auto_broadcast="numpy")
    mean = b.one("ReduceMean-1", square, axes, keep_dims=True)
    shifted = b.one("Add-1", mean, b.constant(np.asarray(1e-3, b.dtype)), auto_broadcast="numpy")
    root = b.one("Sqrt-1", shifted)
    y = b.one("Divide-1", x, root, auto_broadcast="numpy")
    y = b.one("Multiply-1", y, weights(b, [x.shape[-1]]), auto_broadcast="numpy")
    return b.one("Add-1", y, weights(b, [x.shape[-1]]), auto_broadcast="numpy") if b.chance(0.7) else y


def softmax(b: Builder) -> Value:
    x = b.pick(b.choose([1, 2, 3, 4]))
    wanted(x, FLOATS)
    axis = b.number(-x.rank, x.rank - 1)
    return b.one(b.choose(["SoftMax-8", "SoftMax-8", "LogSoftmax-5"]), x, axis=axis)


REDUCTIONS = ("ReduceMax-1", "ReduceMean-1", "ReduceMin-1", "ReduceProd-1", "ReduceSum-1", "ReduceL1-4", "ReduceL2-4")


def reduction(b: Builder) -> Value:
    x = b.pick(b.choose([1, 2, 3, 4]))
    name = b.choose(REDUCTIONS)
    if name in ("ReduceL2-4", "ReduceMean-1"):
        wanted(x, FLOATS)
    return b.one(name, x, b.i64(axes_of(b, x.rank)), keep_dims=b.chance(0.5))


def attention(b: Builder) -> Value:
    batch: list[Size] = [b.dim(), b.choose([1, 2, 4])]
    rows, columns, length, values = b.dim(), b.dim(), b.size(), b.size()
    wanted(b.constant(np.zeros(1, b.dtype)), FLOATS)
    query, key = b.input([*batch, rows, length]), b.input([*batch, columns, length])
    more: list[Value | None] = []
    causal = b.chance(0.4)
    if b.chance(0.5):
        shape = [batch[0] if b.chance(0.3) else 1, 1, rows, columns]
        more = [b.input(shape)] if b.chance(0.6) else [b.input(shape, "?")]
        if b.chance(0.4):
            more.append(b.constant(np.asarray(0.5, b.dtype)))
    value = b.input([*batch, columns, values])
    return b.one("ScaledDotProductAttention-13", query, key, value, *more, causal=causal)


def interpolation(b: Builder) -> Value:
    x = b.pick(b.choose([3, 4, 4, 5]))
    wanted(x, ("f4",))
    axes = sorted(b.permutation(x.rank - 2)[: b.number(1, min(2, x.rank - 2))])
    axes = [axis + 2 for axis in axes]
    mode = b.choose(["nearest", "linear", "linear_onnx", "cubic"])
    attrs: dict[str, Any] = {"mode": mode, "nearest_mode": b.choose(["floor", "ceil", "simple", "round_prefer_floor"])}
    ways = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn"]
    attrs["coordinate_transformation_mode"] = b.choose(ways)
    if b.chance(0.5):
        scales = b.constant(np.asarray([b.choose([0.5, 1.0, 1.5, 2.0]) for _ in axes], np.float32))
        return b.one("Interpolate-11", x, scales, b.i64(axes), shape_calculation_mode="scales", **attrs)
    sizes = b.i64([b.number(1, 9) for _ in axes])
    return b.one("Interpolate-11", x, sizes, b.i64(axes), shape_calculation_mode="sizes", **attrs)


def quantized(b: Builder) -> Value:
    x = b.pick(b.choose([2, 4]))
    wanted(x, ("f4",))
    low, high = (b.constant(np.float32(value)) for value in (-1.5, 1.5))
    return b.one("FakeQuantize-1", x, low, high, low, high, levels=b.choose([2, 16, 256]), auto_broadcast="numpy")


def alone(b: Builder) -> Value:
    """A tensor that is there, of any rank, or an input."""
    return b.pick(b.choose([1, 2, 3, 3, 4, 4, 5]))


def repeated(b: Builder) -> Value:
    """An op of one tensor with itself."""
    x = alone(b)
    return b.one(b.choose(["Add-1", "Multiply-1", "Subtract-1", "Maximum-1"]), x, x, auto_broadcast="numpy")


def combined(b: Builder) -> Value:
    x = alone(b)
    return b.one(b.choose(["Add-1", "Multiply-1", "Maximum-1"]), operand(b, x), x, auto_broadcast="numpy")


def summed(b: Builder) -> Value:
    x = alone(b)
    axis = b.i64(b.number(-x.rank, x.rank - 1))
    return b.one("CumSum-3", x, axis, exclusive=b.chance(0.3), reverse=b.chance(0.3))


def channels_last(b: Builder) -> Value:
    """A large tensor or a convolution of it, transposed, and constants that are folded with the transposition."""
    rows, columns = b.choose([100, 150, 257]), b.choose([48, 64, 150])
    y = b.input([1, columns, rows])
    if b.chance(0.5):
        filters = b.constant(b.data((columns, columns, 1), low=-0.1, high=0.1))
        y = b.one("Convolution-1", y, filters, strides=[1], dilations=[1], pads_begin=[0], pads_end=[0])
        y = b.one(b.choose(["Gelu-7", "ReLU-1", "Tanh-1"]), y)
    y = b.one("Transpose-1", y, b.i64([0, 2, 1]))
    shape = b.choose([(1, rows, columns), (rows, columns), (columns,), (rows, 1)])
    return b.one(b.choose(["Add-1", "Multiply-1"]), y, b.constant(b.data(shape)), auto_broadcast="numpy")


HEADS = (
    *(product,) * 5,
    *(convolution,) * 5,
    *(grouped_convolution,) * 3,
    *(transposed_convolution,) * 2,
    *(pool,) * 4,
    *(normalization,) * 4,
    *(reduction,) * 3,
    *(softmax,) * 2,
    *(channels_last, layer_norm, adaptive_pool, attention, interpolation, quantized, alone, repeated, combined, summed),
)
