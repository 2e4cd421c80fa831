"""Activation ops: non-linear functions applied element by element, softmax along an axis, and the identity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from irrun.spec import (
    ANY,
    FLOAT,
    FLOAT_NUMBER,
    INT,
    NO_NAN,
    NUMERIC,
    Array,
    Attr,
    Bounded,
    Elementwise,
    Input,
    Node,
    Output,
    Shape,
    Size,
    Tensor,
    Weighing,
    choice,
    largest,
    op,
    product,
    shape_text,
    smallest,
    variation,
)

from ._elementwise import dtype_of, real, unary
from ._precision import total


@op(
    "Clamp-1",
    types={"T": NUMERIC},
    inputs=[Input("data", "T", "[*shape]")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[Attr("min", FLOAT_NUMBER, least=NO_NAN), Attr("max", FLOAT_NUMBER, least=NO_NAN)],
    symbolic=True,
    traits=[Elementwise(1), Bounded(lambda attrs: float(attrs["min"]))],
)
def clamp(data: Array, *, min: float, max: float) -> Any:
    """Replace elements below min by min and those above max by max. NaN stays NaN.

    For integers min is rounded up and max down, and both are brought into the range of the type.

    Constraints:
        C1: min is not above max, and neither is NaN. (The page does not say it; OpenVINO refuses such a layer.)

    Source: activation/clamp-1.rst

    >>> op(np.array([-1, 1, 5]), min=0.4, max=2.6).tolist()
    [1, 1, 2]
    """
    if data.dtype == object:
        return np.frompyfunc(partial(_clipped_size, low=min, high=max), 1, 1)(data)
    if data.dtype.kind not in "iu":
        return _clip(data, low=min, high=max)
    limits = np.iinfo(data.dtype)
    low, high = (
        int(edge) if limits.min <= edge <= limits.max else limits.min if edge < 0 else limits.max
        for edge in (np.ceil(min), np.floor(max))
    )
    dtype = data.dtype.type
    return np.minimum(np.maximum(data, dtype(low)), dtype(high))


@clamp.shapes
def _(node: Node) -> None:
    low, high = node.attrs["min"], node.attrs["max"]
    for name in ("min", "max"):
        node.require("C1", node.attrs[name] == node.attrs[name], f"`{name}` is NaN, expected a number", about=[name])
    node.require("C1", low <= high, f"`min` is {low}, above `max`, which is {high}", about=["min", "max"])


def _clipped_size(size: Size, *, low: float, high: float) -> Size:
    """`size` between the edges, of which those count that an i64 may be beyond."""
    if low > -(2**63):
        size = largest(size, math.ceil(low))
    return smallest(size, math.floor(high)) if high < 2**63 else size


@real
def _clip(data: Array, *, low: float, high: float) -> Any:
    return np.clip(data, data.dtype.type(low), data.dtype.type(high))


@real
def _elu(data: Array, *, alpha: float) -> Any:
    result = np.minimum(data, 0)
    np.expm1(result, out=result)
    result *= alpha
    return np.where(data >= 0, data, result)


elu = unary(
    "Elu-1",
    _elu,
    """Exponential linear unit: x where it is above 0, else alpha * (exp(x) - 1).

    Source: activation/elu-1.rst

    >>> op(np.array([-np.inf, 0.0, 2.0]), alpha=0.5).tolist()
    [-0.5, 0.0, 2.0]
    """,
    types=FLOAT,
    attrs=[Attr("alpha", FLOAT_NUMBER, least=0, lenient=True)],
    waning=True,
)

exp = unary(
    "Exp-1",
    real("exp", "trunc"),
    """The exponential function.

    Deviation: the page has floats only; OpenVINO also takes integers, whose results are truncated here as in its
    reference (exp(1) is 2). One that the type does not hold is the lowest value of the type.

    Source: activation/exp-1.rst

    >>> op(np.array([0.0, -np.inf])).tolist()
    [1.0, 0.0]
    """,
)


@real
def _gelu(data: Array, *, approximation_mode: str) -> Any:
    from scipy.special import expit, ndtr  # neither of which loses digits where it is nearly 0

    if approximation_mode == "tanh":
        result = data * data
        result *= 0.044715
        result += 1
        result *= data
        result *= 2 * math.sqrt(2 / math.pi)
        expit(result, out=result)  # (1 + tanh(x)) / 2 is that of 2 x
    else:
        result = ndtr(data)
    result *= data
    return result


gelu_2 = unary(
    "Gelu-2",
    partial(_gelu, approximation_mode="erf"),
    """Gaussian error linear unit: x * (1 + erf(x / sqrt(2))) / 2.

    Source: activation/gelu-2.rst

    >>> op(np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [-0.1587, 0.0, 0.8413]
    """,
    types=FLOAT,
    waning=True,
)

gelu_7 = unary(
    "Gelu-7",
    _gelu,
    """Gaussian error linear unit, by the error function or by the hyperbolic tangent that approximates it.

    `erf` is x * (1 + erf(x / sqrt(2))) / 2, `tanh` is x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2.

    Source: activation/gelu-7.rst

    >>> op(np.array([-1.0, 0.0, 1.0]), approximation_mode="tanh").round(4).tolist()
    [-0.1588, 0.0, 0.8412]
    """,
    types=FLOAT,
    attrs=[Attr("approximation_mode", choice("erf", "tanh"), "erf")],
    waning=True,
)


@op(
    "HardSigmoid-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[*shape]"), Input("alpha", "T", "[]"), Input("beta", "T", "[]")],
    outputs=[Output("result", "T", "[*shape]")],
    traits=[Elementwise(1)],
)
@real
def hard_sigmoid(data: Array, alpha: Array, beta: Array) -> Any:
    """Hard sigmoid: alpha * x + beta, kept within [0, 1].

    Source: activation/hard-sigmoid-1.rst

    >>> op(np.array([-5.0, 1.0, 5.0]), np.array(0.25), np.array(0.5)).tolist()
    [0.0, 0.75, 1.0]
    """
    result = data * alpha
    result += beta
    return np.clip(result, 0, 1, out=result)


@real
def _hsigmoid(data: Array) -> Any:
    result = data + 3
    np.clip(result, 0, 6, out=result)
    result /= 6
    return result


hsigmoid = unary(
    "HSigmoid-5",
    _hsigmoid,
    """Hard version of the sigmoid: min(max(x + 3, 0), 6) / 6.

    Source: activation/hsigmoid-5.rst

    >>> op(np.array([-4.0, 0.0, 1.5, 4.0])).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """,
    types=FLOAT,
    waning=True,
)


@real
def _hswish(data: Array) -> Any:
    result = data + 3
    np.clip(result, 0, 6, out=result)
    result /= 6  # first, or the greatest numbers would overflow
    result *= data
    return result


hswish = unary(
    "HSwish-4",
    _hswish,
    """Hard version of swish: x * min(max(x + 3, 0), 6) / 6.

    Source: activation/hswish-4.rst

    >>> op(np.array([-1.5, 0.0, 1.5, 4.0])).tolist()
    [-0.375, 0.0, 1.125, 4.0]
    """,
    types=FLOAT,
    waning=True,
)


@op(
    "Identity-16",
    types={"T": ANY},
    inputs=[Input("input", "T", "[*shape]")],
    outputs=[Output("output", "T", "[*shape]")],
    symbolic=True,
    view_of="input",
    traits=[Elementwise(1)],
)
def identity(input: Array) -> Any:
    """The input itself.

    Source: activation/identity-16.rst

    >>> op(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2], [3, 4]]
    """
    return input


identity.lowers(None)


def _shifted(data: Array, axis: int) -> Any:
    """`data` less its maximum along `axis`, so that no exponential overflows."""
    return data - data.max(axis, keepdims=True, initial=-np.inf)


@op(
    "LogSoftmax-5",
    types={"T": FLOAT},
    inputs=[Input("x", "T", "[*shape]")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[Attr("axis", INT, 1)],
)
@real
def log_softmax(x: Array, *, axis: int) -> Any:
    """The natural logarithm of softmax along an axis.

    Constraints:
        C1: axis lies in [-r, r), r the rank of x.

    Source: activation/log-soft-max-5.rst

    >>> op(np.array([[0.0, 0.0], [-np.inf, 1.0]])).round(4).tolist()
    [[-0.6931, -0.6931], [-inf, 0.0]]
    """
    result = _shifted(x, axis)
    result -= np.log(total(np.exp(result), [axis % max(x.ndim, 1)], keepdims=True))
    return result


@log_softmax.shapes
def _(node: Node) -> None:
    node.axis("C1", node.attrs["axis"], len(node.shape("x")))


@real
def _mish(data: Array) -> Any:
    result = np.exp(data)
    np.log1p(result, out=result)
    np.tanh(result, out=result)
    result *= data
    return result


mish = unary(
    "Mish-4",
    _mish,
    """Mish: x * tanh(log(1 + exp(x))).

    Source: activation/mish-4.rst

    >>> op(np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [-0.3034, 0.0, 0.8651]
    """,
    types=FLOAT,
    waning=True,
)


@op(
    "PReLU-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[*shape]"), Input("slope", "T", "...", lenient=True)],
    outputs=[Output("result", "T", "[*shape]")],
    traits=[Elementwise(2, broadcast="slopes")],
)
def prelu(data: Array, slope: Array) -> Any:
    """Multiply negative elements by a slope, given as a whole, for each channel (axis 1), or by numpy broadcasting.

    Constraints:
        C1: slope is a vector with one element per channel, or broadcasts into data by numpy's rule.

    Deviation: a scalar slope, which the page excludes, is taken as OpenVINO takes it.

    Source: activation/prelu-1.rst

    >>> op(np.array([[-1.0, -1.0], [2.0, -2.0]]), np.array([0.5, 3.0])).tolist()
    [[-0.5, -3.0], [2.0, -6.0]]
    """
    if _per_channel(data.shape, slope.shape):
        slope = slope.reshape(-1, *[1] * (data.ndim - 2))
    slope = slope.reshape(_without_leading_ones(data.ndim, slope.shape))
    with np.errstate(all="ignore"):
        return np.where(data < 0, data * slope, data)


@prelu.shapes
def _(node: Node) -> None:
    data, slope = node.shape("data"), node.shape("slope")
    if _per_channel(data, slope):
        return
    sizes = _without_leading_ones(len(data), slope)
    wrong = len(sizes) > len(data) or any(
        (a == 1) is False and (a == b) is False for a, b in zip(sizes[::-1], data[::-1], strict=False)
    )
    if wrong:
        node.fail("C1", f"`slope` is {shape_text(slope)}, which does not broadcast into {shape_text(data)}", "slope")


def _per_channel(data: Shape, slope: Shape) -> bool:
    """Whether `slope` may be a vector of one element per channel."""
    return len(slope) == 1 and len(data) > 1 and (slope[0] == data[1]) is not False


def _without_leading_ones(rank: int, shape: Shape) -> tuple[Size, ...]:
    while len(shape) > rank and (shape[0] == 1) is True:
        shape = shape[1:]
    return shape


def _relu(data: Array) -> Any:
    return np.maximum(data, data.dtype.type(0))


relu = unary(
    "ReLU-1",
    _relu,
    """Replace negative elements by zero: max(data, 0). NaN stays NaN.

    Source: activation/relu-1.rst

    >>> op(np.array([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.0, 3.0]
    """,
    least=0,
)


@op(
    "Selu-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[*shape]"), Input("alpha", "T", "..."), Input("lambda", "T", "...")],
    outputs=[Output("result", "T", "[*shape]")],
    traits=[Elementwise(1)],
)
@real
def selu(data: Array, alpha: Array, lambda_: Array) -> Any:
    """Scaled exponential linear unit: lambda * x where x is above 0, else lambda * alpha * (exp(x) - 1).

    Constraints:
        C1: alpha and lambda have one element, in a scalar or a vector.

    Deviation: alpha and lambda may also be scalars, as OpenVINO takes them; the page has vectors of one element.

    Source: activation/selu-1.rst

    >>> op(np.array([-np.inf, 0.0, 2.0]), np.array([0.5]), np.array([3.0])).tolist()
    [-1.5, 0.0, 6.0]
    """
    result = np.minimum(data, 0)
    np.expm1(result, out=result)
    result *= alpha.reshape(())
    np.copyto(result, data, where=data > 0)
    result *= lambda_.reshape(())
    return result


@selu.shapes
def _(node: Node) -> None:
    for name in ("alpha", "lambda"):
        shape = node.shape(name)
        found = f"`{name}` is {shape_text(shape)}, expected [1]"
        node.require("C1", product(shape) == 1, found, about=[name])
        node.require("C1", len(shape) < 2, found, about=[name], lenient="takes its one element")


@real
def _sigmoid(data: Array) -> Any:
    result = np.negative(data)
    np.exp(result, out=result)
    result += 1
    return np.reciprocal(result, out=result)


sigmoid = unary(
    "Sigmoid-1",
    _sigmoid,
    """Sigmoid: 1 / (1 + exp(-x)).

    Source: activation/sigmoid-1.rst

    >>> op(np.array([-np.inf, 0.0, np.inf])).tolist()
    [0.0, 0.5, 1.0]
    """,
    least=0,
    types=FLOAT,
)


@op(
    "SoftMax-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[*shape]")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[Attr("axis", INT, 1, least=0, assumed=0, demanded=True)],
    traits=[Weighing("axis")],
)
@real
def softmax_1(data: Array, *, axis: int) -> Any:
    """Exponentials along an axis, divided by their sum. NaN where all are -inf, or one is inf.

    Constraints:
        C1: axis lies in [0, r), r the rank of data.

    Source: activation/softmax-1.rst

    >>> op(np.array([[0.0, 0.0], [1.0, 2.0]])).round(4).tolist()
    [[0.5, 0.5], [0.2689, 0.7311]]
    """
    result = _shifted(data, axis)
    np.exp(result, out=result)
    result /= total(result, [axis % max(data.ndim, 1)], keepdims=True)
    return result


@softmax_1.shapes
def _(node: Node) -> None:
    axis, rank = node.attrs["axis"], len(node.shape("data"))
    node.require(
        "C1", 0 <= axis < max(rank, 1), f"`axis` is {axis}, outside [0, {max(rank, 1)}) for rank {rank}", about=["axis"]
    )


softmax_8 = variation(
    "SoftMax-8",
    softmax_1,
    """Exponentials along an axis, divided by their sum. NaN where all are -inf, or one is inf.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.

    Source: activation/softmax-8.rst

    >>> op(np.array([[0.0, 0.0], [1.0, 2.0]]), axis=-1).round(4).tolist()
    [[0.5, 0.5], [0.2689, 0.7311]]
    """,
    attrs=[Attr("axis", INT, 1)],
)


@softmax_8.shapes
def _(node: Node) -> None:
    node.axis("C1", node.attrs["axis"], len(node.shape("data")))


softmax_8.lowers("SoftMax-1", upwards="axis")


@real
def _softplus(data: Array) -> Any:
    result = np.abs(data)
    np.negative(result, out=result)
    np.exp(result, out=result)
    np.log1p(result, out=result)
    result += np.maximum(data, 0)
    return result


softplus = unary(
    "SoftPlus-4",
    _softplus,
    """SoftPlus: log(1 + exp(x)), computed as max(x, 0) + log(1 + exp(-|x|)).

    Deviation: the page goes over to x above a threshold, for stability; this form needs none, and differs by less than
    the 1e-6 that the page allows.

    Source: activation/softplus-4.rst

    >>> op(np.array([-1.0, 0.0, 1.0, 1000.0])).round(4).tolist()
    [0.3133, 0.6931, 1.3133, 1000.0]
    """,
    types=FLOAT,
)


@real
def _softsign(data: Array) -> Any:
    result = np.abs(data)
    result += 1
    return np.divide(data, result, out=result)


softsign = unary(
    "SoftSign-9",
    _softsign,
    """SoftSign: x / (1 + |x|).

    Source: activation/softsign-9.rst

    >>> op(np.array([-1.0, 0.0, 3.0])).tolist()
    [-0.5, 0.0, 0.75]
    """,
    types=FLOAT,
)


@softsign.decomposes
def _(make: Callable[..., Any], tensors: Mapping[str, Tensor | None], attrs: Mapping[str, Any]) -> Any:
    one = np.array(1, dtype_of(tensors["data"]))
    return make("Divide-1", "data", make("Add-1", make("Abs-1", "data"), one))


@op(
    "Swish-4",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[*shape]"), Input("beta", "T", "[]", optional=True)],
    outputs=[Output("result", "T", "[*shape]")],
    traits=[Elementwise(1)],
)
@real
def swish(data: Array, beta: Array | None = None) -> Any:
    """Swish: x / (1 + exp(-beta * x)), with a beta of 1 unless it is given.

    Constraints:
        C1: beta is not negative.

    Source: activation/swish-4.rst

    >>> op(np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [-0.2689, 0.0, 0.7311]
    """
    result = np.negative(data)
    if beta is not None:
        result *= beta
    np.exp(result, out=result)
    result += 1
    return np.divide(data, result, out=result)


@swish.shapes
def _(node: Node) -> None:
    beta = node.value("beta")
    if beta is not None:
        message = f"`beta` is {beta.item()}, expected 0 or more"
        node.require("C1", not beta.item() < 0, message, "beta", lenient="computes with it")
