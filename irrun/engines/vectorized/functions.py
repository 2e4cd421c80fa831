"""Functions of f32 blocks that take several passes, with temporaries that each thread keeps.

Every function takes its inputs and then the output, which may be its first input. Blocks are meant to fit into the
cache: there a pass costs a tenth of a nanosecond an element, and a polynomial of several passes is quick.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from irrun.engines.extents import once
from irrun.spec.op import Array

_core = import_module("numpy._core._multiarray_umath")

clip: Callable[..., object] = _core.clip
"""The ufunc (x, low, high, output) that np.clip comes to in several steps; np.maximum is slow with a scalar."""

WIDE_EXP2 = sys.platform == "linux" and bool(getattr(_core, "__cpu_features__", {}).get("AVX512_SKX"))
"""Whether numpy's exp2 is vectorized here, and with that twice as quick as its exp; else it is several times slower."""


EXACT = 2.0**27
"""Quotients of f32 below this are whole in f64 where they are so exactly only, and their products are exact."""

FAR, FAR_2 = 126 * math.log(2), 126.0
"""What exp, and exp2, make numbers of that are about the least, or the largest, of f32."""

MANY, SEEN = 1 << 12, 1 << 9
"""Numbers that are worth a look at some of them, and how many these are."""

LONG_RUN = 8
"""Elements of a mask that are alike, on average, where numpy copies what it chooses quickly."""


def _scalar(value: float) -> Array:
    """What ufuncs take with the least ado."""
    return np.array(value, np.float32)


ZERO, ONE, TWO, THREE, SIX, TWENTY, MINUS_ONE = map(_scalar, (0, 1, 2, 3, 6, 20, -1))
SIXTH, HALF = _scalar(1 / 6), _scalar(0.5)
INFINITY = _scalar(math.inf)
LN_2 = _scalar(math.log(2))
LOG2_E = _scalar(math.log2(math.e))
MINUS_LOG2_E = _scalar(-math.log2(math.e))

EXPONENT = math.log2(math.e) if WIDE_EXP2 else 1.0
"""What a number is multiplied by for `exponential` to make exp of it."""

NORMAL = tuple(
    value / math.log2(math.e)
    for value in (
        -2.3022072315216064,
        -0.10483857989311218,
        9.559301543049514e-05,
        0.00015938938304316252,
        -1.1452426406322047e-05,
        3.8504475696754525e-07,
        -5.209903175540376e-09,
    )
)
"""Coefficients, the constant first, of q in 1 / (1 + exp(x * q(x^2))), the normal distribution function.

A minimax fit by linear programming of x times that function over [-5.6, 5.6], to 7e-8; outside, x * q(x^2) grows on.
"""

GELU = [_scalar(value * EXPONENT) for value in NORMAL]
"""The same for the exponential function that is quick here."""

ERF = [
    _scalar(value)
    for value in (
        1.128379225730896,
        0.10276905447244644,
        -0.0001918307680170983,
        -0.0006197846960276365,
        8.763733058003709e-05,
        -5.668476205755724e-06,
        1.4185222596552194e-07,
    )
]
"""Coefficients, the constant first, of q in tanh(x * q(x^2)), the error function, fitted likewise to 1e-7 of it."""

TANH_GELU = [_scalar(-2 * math.sqrt(2 / math.pi) * factor * EXPONENT) for factor in (1, 0.044715)]


class _Temporaries(threading.local):
    def __init__(self) -> None:
        self.buffers: list[Array] = [np.empty(0, np.float32)] * 2


_temporaries = _Temporaries()


def temporary(block: Array, number: int = 0) -> Any:
    """Memory of the shape of a block, of this thread: the same memory whenever the `number` is the same."""
    buffers = _temporaries.buffers
    if buffers[number].size < block.size:
        buffers[number] = np.empty(block.size, np.float32)
    return buffers[number][: block.size].reshape(block.shape)


def put(output: Array, values: Array, mask: Array) -> None:
    """Put `values` where a mask holds. Both broadcast to the output.

    numpy copies runs of what holds quickly, but where it does not foresee these takes ten times as long as to choose by
    bits, which are the elements' own.
    """
    seen = once(mask)
    changes = np.count_nonzero(seen[..., 1:] != seen[..., :-1]) if mask.ndim else 0
    if output.itemsize != 4 or changes * LONG_RUN < seen.size:
        np.copyto(output, values, where=mask)
        return
    bits, chosen = output.view(np.int32), temporary(output).view(np.int32)
    np.bitwise_xor(bits, values.view(np.int32), chosen)
    np.multiply(chosen, mask.view(np.int8), chosen)
    np.bitwise_xor(bits, chosen, bits)


def rest(x: Array, divisor: Array, output: Array) -> None:
    """What is left of integers by one divisor; numpy divides by it ten times as quickly as it finds that."""
    quotient = temporary(output).view(output.dtype) if output.itemsize == 4 else np.empty_like(output)
    np.floor_divide(x, divisor, quotient)
    np.multiply(quotient, divisor, quotient)
    np.subtract(x, quotient, output)


def fmod(x: Array, divisor: Array, output: Array) -> None:
    """What is left of numbers of any type when the quotient is rounded towards 0, with the sign of x."""
    _left(np.trunc, np.fmod, x, divisor, x, output)


def mod(x: Array, divisor: Array, output: Array) -> None:
    """What is left of numbers of any type when the quotient is rounded down, with the sign of the divisor."""
    _left(np.floor, np.mod, x, divisor, divisor, output)


def _left(whole: np.ufunc, plain: np.ufunc, x: Array, divisor: Array, signed: Array, output: Array) -> None:
    """What is left of x; of f32 by f64, in which quotients and products are exact enough, while numpy's own function, a
    bit of the quotient after the other, takes ten times as long."""
    if output.dtype != np.float32:
        plain(x, divisor, output)
        return
    quotient = np.empty(output.shape, np.float64)
    np.divide(x, divisor, quotient, dtype=np.float64)
    whole(quotient, quotient)
    if not (np.abs(quotient).max(initial=0) < EXACT and np.isfinite(divisor).all()):
        plain(x, divisor, output)
        return
    np.multiply(quotient, divisor, quotient)
    np.subtract(x, quotient, quotient)
    np.copysign(quotient, signed, output, casting="same_kind")


def negative(x: Array, output: Array) -> None:
    """-x; np.negative is wrong for some arrays with a stride of 16 bytes (numpy 2.4)."""
    np.multiply(x, -1, output)


def exp(x: Array, output: Array) -> None:
    """exp(x), through exp2 where that is quick; then the relative error grows to |x| * 1e-7."""
    if WIDE_EXP2 and not _is_far(x, FAR):
        _exp_by_exp2(x, LOG2_E, output)
    else:
        np.exp(x, output)


def _exp_by_exp2(x: Array, factor: Array, output: Array) -> None:
    """exp of x or of -x, as the factor is LOG2_E or MINUS_LOG2_E."""
    np.multiply(x, factor, output)
    np.exp2(output, output)


def decay(x: Array) -> None:
    """In the place of numbers up to 0, exp of them, as `exp`; nothing where there are some that make no normal number,
    with which some processors take a hundred times as long to compute."""
    if _is_far(x, FAR):
        np.copyto(x, -INFINITY, where=x < -FAR)
        np.exp(x, x)
    elif WIDE_EXP2:
        _exp_by_exp2(x, LOG2_E, x)
    else:
        np.exp(x, x)


def exp_of_negative(x: Array, output: Array) -> None:
    """exp(-x), as `exp`."""
    if WIDE_EXP2 and not _is_far(x, FAR):
        _exp_by_exp2(x, MINUS_LOG2_E, output)
    else:
        np.multiply(x, MINUS_ONE, output)
        np.exp(output, output)


def exponential(x: Array) -> None:
    """In the place of x, two to the power of it where exp2 is quick on numbers as usual, else exp(x)."""
    if not WIDE_EXP2:
        np.exp(x, x)
    elif _is_far(x, FAR_2):
        np.multiply(x, LN_2, x)
        np.exp(x, x)
    else:
        np.exp2(x, x)


def _is_far(x: Array, limit: float) -> bool:
    """Whether there are numbers beyond the limit among some of x: there exp2 takes up to a hundred times as long."""
    if x.size < MANY:
        return False
    step = x.size // SEEN | 1  # odd, to come by all columns
    seen = x.reshape(-1)[::step] if x.flags.c_contiguous else x[..., ::step]
    return bool(np.maximum.reduce(seen, None) > limit or np.minimum.reduce(seen, None) < -limit)


def sigmoid(x: Array, output: Array) -> None:
    """1 / (1 + exp(-x))."""
    exp_of_negative(x, output)
    np.add(output, ONE, output)
    np.reciprocal(output, output)


def swish(x: Array, output: Array) -> None:
    """x / (1 + exp(-x))."""
    divisor = temporary(output)
    exp_of_negative(x, divisor)
    np.add(divisor, ONE, divisor)
    np.divide(x, divisor, output)


def scaled_swish(x: Array, beta: Array, output: Array) -> None:
    """x / (1 + exp(-beta * x))."""
    divisor = temporary(output)
    np.multiply(x, beta, divisor)
    exp_of_negative(divisor, divisor)
    np.add(divisor, ONE, divisor)
    np.divide(x, divisor, output)


def hsigmoid(x: Array, output: Array) -> None:
    """min(max(x + 3, 0), 6) / 6."""
    np.add(x, THREE, output)
    clip(output, ZERO, SIX, output)
    np.multiply(output, SIXTH, output)


def hswish(x: Array, output: Array) -> None:
    """x * min(max(x + 3, 0), 6) / 6."""
    factor = temporary(output)
    hsigmoid(x, factor)
    np.multiply(x, factor, output)


def elu(alpha: Array, x: Array, output: Array) -> None:
    """x where it is above 0, else alpha * (exp(x) - 1)."""
    below = temporary(output)
    clip(x, -INFINITY, ZERO, below)
    np.expm1(below, below)
    np.multiply(below, alpha, below)
    clip(x, ZERO, INFINITY, output)
    np.add(output, below, output)


def prelu(x: Array, slope: Array, output: Array) -> None:
    """x where it is not below 0, else slope * x, for a finite slope."""
    below = temporary(output)
    clip(x, -INFINITY, ZERO, below)
    np.multiply(below, slope, below)
    clip(x, ZERO, INFINITY, output)
    np.add(output, below, output)


def any_prelu(x: Array, slope: Array, output: Array) -> None:
    """x where it is not below 0, else slope * x, for any slope."""
    below = temporary(output)
    np.multiply(x, slope, below)
    if output is not x:
        np.copyto(output, x)
    np.copyto(output, below, where=np.less(x, ZERO))


def mish(x: Array, output: Array) -> None:
    """x * tanh(log(1 + exp(x))), as x * n / (n + 2), where n is exp(x) * (exp(x) + 2); from 20 on that is x."""
    factor, divisor = temporary(output), temporary(output, 1)
    clip(x, -INFINITY, TWENTY, factor)
    exp(factor, factor)
    np.add(factor, TWO, divisor)
    np.multiply(factor, divisor, factor)
    np.add(factor, TWO, divisor)
    np.divide(factor, divisor, factor)
    np.multiply(x, factor, output)


def softplus(x: Array, output: Array) -> None:
    """log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|))."""
    rest = temporary(output)
    np.absolute(x, rest)
    exp_of_negative(rest, rest)
    np.log1p(rest, rest)
    clip(x, ZERO, INFINITY, output)
    np.add(output, rest, output)


def softsign(x: Array, output: Array) -> None:
    """x / (1 + |x|)."""
    divisor = temporary(output)
    np.absolute(x, divisor)
    np.add(divisor, ONE, divisor)
    np.divide(x, divisor, output)


def nearest(x: Array, output: Array) -> None:
    """The nearest integer, of halves the one away from 0."""
    whole, rest = temporary(output), temporary(output, 1)
    np.trunc(x, whole)
    np.subtract(x, whole, rest)
    np.absolute(rest, rest)
    np.greater_equal(rest, HALF, rest)
    np.copysign(rest, x, rest)
    np.add(whole, rest, output)


def cube(x: Array, output: Array) -> None:
    """x to the power of 3."""
    square = temporary(output)
    np.multiply(x, x, square)
    np.multiply(x, square, output)


def any_power(x: Array, exponent: Array, output: Array) -> None:
    """x to any power. numpy takes the root where a row has one exponent of 0.5, which is another one of -infinity and
    of -0."""
    halves = np.equal(exponent, HALF)
    if not halves.any():
        np.power(x, exponent, output)
        return
    edges, magnitudes = halves & (np.equal(x, ZERO) | np.equal(x, -INFINITY)), np.absolute(x)  # it may be the output
    np.power(x, exponent, output)
    np.copyto(output, magnitudes, where=edges)


def tanh_gelu(x: Array, output: Array) -> None:
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2, as x / (1 + exp(-2 * that argument))."""
    divisor = temporary(output)
    np.multiply(x, x, divisor)
    np.multiply(divisor, TANH_GELU[1], divisor)
    np.add(divisor, TANH_GELU[0], divisor)
    np.multiply(divisor, x, divisor)
    exponential(divisor)
    np.add(divisor, ONE, divisor)
    np.divide(x, divisor, output)


def gelu(x: Array, output: Array) -> None:
    """x times the normal distribution function of x, that is x * (1 + erf(x / sqrt(2))) / 2."""
    divisor = temporary(output)
    _odd_polynomial(GELU, x, divisor)
    exponential(divisor)
    np.add(divisor, ONE, divisor)
    np.divide(x, divisor, output)


def erf(x: Array, output: Array) -> None:
    """The error function."""
    argument = temporary(output)
    _odd_polynomial(ERF, x, argument)
    np.tanh(argument, output)


def _odd_polynomial(coefficients: list[Array], x: Array, output: Array) -> None:
    """x * q(x^2), q given by its coefficients, the constant first; the output is not x."""
    square = temporary(output, 1)
    np.multiply(x, x, square)
    np.multiply(square, coefficients[-1], output)
    for coefficient in coefficients[-2:0:-1]:
        np.add(output, coefficient, output)
        np.multiply(output, square, output)
    np.add(output, coefficients[0], output)
    np.multiply(output, x, output)
