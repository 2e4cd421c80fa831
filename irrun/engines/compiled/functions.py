"""Element-wise functions of vectors of f32, by `Code.exp` and `Code.decay`; each takes code and a vector, or two."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from irrun.engines.compiled.code import Code, floats
from irrun.engines.vectorized.functions import ERF, NORMAL

_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
"""Of Cephes: with them x + x^3 * polynomial(x^2) is tanh(x) where |x| is below 0.625."""

_LOG1P = tuple(2 / power for power in (15, 13, 11, 9, 7, 5, 3))
"""With them 2s + s^3 * polynomial(s^2) is log((1 + s) / (1 - s)) where s is at most 1/3."""

_TANH_GELU = tuple(2 * math.sqrt(2 / math.pi) * factor for factor in (0.044715, 1))


def relu(c: Code, x: Any) -> Any:
    """max(x, 0); NaN stays NaN."""
    return c.b.select(c.b.fcmp_ordered("<", x, floats(0.0)), floats(0.0), x)


def sigmoid(c: Code, x: Any) -> Any:
    """1 / (1 + exp(-x)), of exp(-|x|), which is no infinity."""
    b = c.b
    power = c.decay(b.fneg(_magnitude(c, x)))
    share = b.fdiv(floats(1.0), b.fadd(power, floats(1.0)))
    return b.select(b.fcmp_ordered("<", x, floats(0.0)), b.fmul(power, share), share)


def tanh(c: Code, x: Any) -> Any:
    """The hyperbolic tangent: near 0 a polynomial, elsewhere of exp(-2|x|)."""
    b = c.b
    size, square = _magnitude(c, x), b.fmul(x, x)
    power = c.decay(b.fmul(size, floats(-2.0)))
    far = b.fdiv(b.fsub(floats(1.0), power), b.fadd(floats(1.0), power))
    near = c.fma(b.fmul(c.polynomial(_TANH, square), square), x, x)
    result = b.select(b.fcmp_ordered("<", size, floats(0.625)), near, far)
    return c.applied("copysign", result, x)


def erf(c: Code, x: Any) -> Any:
    """The error function, as the tanh of x times a polynomial of its square."""
    return tanh(c, c.b.fmul(x, c.polynomial([float(value) for value in reversed(ERF)], c.b.fmul(x, x))))


def elu(alpha: float, c: Code, x: Any) -> Any:
    """x where it is above 0, else alpha * (exp(x) - 1), as 2t / (1 - t), t = tanh(x / 2), which loses no digits."""
    b = c.b
    half = tanh(c, b.fmul(x, floats(0.5)))
    below = b.fmul(b.fdiv(b.fadd(half, half), b.fsub(floats(1.0), half)), floats(float(np.float32(alpha))))
    return b.select(b.fcmp_ordered(">", x, floats(0.0)), x, below)


def exp(c: Code, x: Any) -> Any:
    """exp of any number."""
    return c.exp(_at_most(105.0, c, x))  # of which it is infinity already


def mish(c: Code, x: Any) -> Any:
    """x * tanh(log(1 + exp(x))), as x * n / (n + 2), where n is exp(x) * (exp(x) + 2); from 20 on that is x."""
    b = c.b
    power = c.exp(_at_most(20.0, c, x))
    odds = b.fmul(power, b.fadd(power, floats(2.0)))
    return b.fmul(x, b.fdiv(odds, b.fadd(odds, floats(2.0))))


def softplus(c: Code, x: Any) -> Any:
    """log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|))."""
    b = c.b
    power = c.decay(b.fneg(_magnitude(c, x)))
    part = b.fdiv(power, b.fadd(power, floats(2.0)))
    square = b.fmul(part, part)
    cube = b.fmul(part, square)
    return b.fadd(relu(c, x), c.fma(c.polynomial(_LOG1P, square), cube, b.fadd(part, part)))


def prelu(c: Code, x: Any, slope: Any) -> Any:
    """x where it is not below 0, else slope * x."""
    return c.b.select(c.b.fcmp_ordered("<", x, floats(0.0)), c.b.fmul(x, slope), x)


def maximum(c: Code, one: Any, other: Any) -> Any:
    """The greater of two, NaN where either is."""
    return _chosen(c, ">", one, other)


def minimum(c: Code, one: Any, other: Any) -> Any:
    """The smaller of two, NaN where either is."""
    return _chosen(c, "<", one, other)


def _chosen(c: Code, sign: str, one: Any, other: Any) -> Any:
    """The first of two where it compares so with the other; NaN where either is."""
    own = c.b.select(c.b.fcmp_ordered(sign, one, other), one, other)
    return c.b.select(c.b.fcmp_unordered("uno", one, one), one, own)


def _operator(name: str) -> Callable[[Code, Any, Any], Any]:
    """What LLVM has an operator for."""
    return lambda c, one, other: getattr(c.b, name)(one, other)


def swish(c: Code, x: Any) -> Any:
    """x * sigmoid(x)."""
    return c.b.fmul(x, sigmoid(c, x))


def gelu(c: Code, x: Any) -> Any:
    """x times the normal distribution function of x."""
    odds = c.polynomial([-value for value in reversed(NORMAL)], c.b.fmul(x, x))
    return c.b.fmul(x, sigmoid(c, c.b.fmul(x, odds)))


def tanh_gelu(c: Code, x: Any) -> Any:
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2, as x times the sigmoid of twice that argument."""
    odds = c.polynomial(_TANH_GELU, c.b.fmul(x, x))
    return c.b.fmul(x, sigmoid(c, c.b.fmul(x, odds)))


def hswish(c: Code, x: Any) -> Any:
    """x * min(max(x + 3, 0), 6) / 6."""
    return c.b.fmul(x, hsigmoid(c, x))


def hsigmoid(c: Code, x: Any) -> Any:
    """min(max(x + 3, 0), 6) / 6."""
    return c.b.fmul(clamp(0.0, 6.0, c, c.b.fadd(x, floats(3.0))), floats(1 / 6))


def softsign(c: Code, x: Any) -> Any:
    """x / (1 + |x|)."""
    return c.b.fdiv(x, c.b.fadd(_magnitude(c, x), floats(1.0)))


def squared_difference(c: Code, one: Any, other: Any) -> Any:
    """(one - other)^2."""
    difference = c.b.fsub(one, other)
    return c.b.fmul(difference, difference)


def clamp(least: float, most: float, c: Code, x: Any) -> Any:
    """What is between two limits; NaN is left as it is. A limit that f32 does not hold is none: it is infinity."""
    b = c.b
    with np.errstate(over="ignore"):
        low, high = (floats(float(np.float32(limit))) for limit in (least, most))
    above = b.select(b.fcmp_ordered("<", x, low), low, x)
    return b.select(b.fcmp_ordered(">", above, high), high, above)


def _at_most(most: float, c: Code, x: Any) -> Any:
    return c.b.select(c.b.fcmp_ordered(">", x, floats(most)), floats(most), x)


def _rounded(name: str) -> Callable[[Code, Any], Any]:
    """What LLVM rounds to whole numbers by."""
    return lambda c, x: c.applied(name, x)


def _root(c: Code, x: Any) -> Any:
    return c.applied("sqrt", x)


def _negative(c: Code, x: Any) -> Any:
    return c.b.fneg(x)


def _magnitude(c: Code, x: Any) -> Any:
    return c.applied("fabs", x)


_FUNCTIONS: dict[str, Callable[[Code, Any], Any]] = {
    "Abs-1": _magnitude,
    "Ceiling-1": _rounded("ceil"),
    "Erf-1": erf,
    "Exp-1": exp,
    "Floor-1": _rounded("floor"),
    "Gelu-2": gelu,
    "HSigmoid-5": hsigmoid,
    "HSwish-4": hswish,
    "Mish-4": mish,
    "Negative-1": _negative,
    "ReLU-1": relu,
    "Sigmoid-1": sigmoid,
    "SoftPlus-4": softplus,
    "SoftSign-9": softsign,
    "Sqrt-1": _root,
    "Swish-4": swish,
    "Tanh-1": tanh,
}

BINARY: dict[str, Callable[[Code, Any, Any], Any]] = {
    "Add-1": _operator("fadd"),
    "Divide-1": _operator("fdiv"),
    "Maximum-1": maximum,
    "Minimum-1": minimum,
    "Multiply-1": _operator("fmul"),
    "PReLU-1": prelu,
    "SquaredDifference-1": squared_difference,
    "Subtract-1": _operator("fsub"),
}
"""Functions of two vectors."""


def function_of(name: str, attrs: Mapping[str, Any]) -> Callable[[Code, Any], Any] | None:
    """That of an op of one input; None where there is none."""
    if name == "Gelu-7":
        return gelu if attrs["approximation_mode"] == "erf" else tanh_gelu
    if name == "Elu-1":
        return partial(elu, attrs["alpha"])
    if name == "Clamp-1":
        return partial(clamp, attrs["min"], attrs["max"])
    if name == "Round-5":
        return _rounded("rint" if attrs["mode"] == "half_to_even" else "round")
    return _FUNCTIONS.get(name)
