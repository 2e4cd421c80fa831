"""Arithmetic ops: sums, products, remainders, rounding, elementary functions; by element or along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    BOOLEAN,
    FLOAT,
    INDEX,
    INTEGER,
    NUMERIC,
    SIGNED,
    Array,
    Attr,
    Elementwise,
    Filling,
    Input,
    Node,
    Op,
    Output,
    Shapes,
    Size,
    Undecided,
    choice,
    fresh,
    largest,
    op,
    product,
    quiet,
    smallest,
)

from ._elementwise import (
    AUTO_BROADCAST,
    BROADCAST_CONSTRAINT,
    Function,
    aligned,
    binary,
    broadcast_rule,
    called,
    nearest,
    real,
    unary,
)
from ._precision import widened

OPSET17 = frozenset({17})

FEW = 1024
"""Elements that are computed one by one sooner than a library is loaded."""

DIVISOR_CONSTRAINT = """    C2: no element of an integer divisor is 0.
"""

OF_INTEGERS = """
Integers are computed in f64 and {}.
A result that their type does not hold, NaN included, is its lowest value. (OpenVINO leaves that case to C++.)
"""


def elementary(name: str, function: Function, doc: str, whole: Function = nearest) -> Op:
    """A function of real numbers as an op; `whole` makes integers of its values where the tensor holds integers."""
    first, _, rest = cleandoc(doc).partition("\n")
    how = "truncated" if whole == "trunc" else "rounded to the nearest, halves away from 0"
    return unary(name, real(function, whole), f"{first}\n{OF_INTEGERS.format(how)}{rest}")


def divisor_rule(node: Node) -> Shapes:
    if node.types.get("T") in INTEGER:
        few = (product(node.inputs["b"].shape or ()) <= FEW) is True
        listed = node.numbers("b") if few else None
        divisor = node.value("b") if listed is None or 0 in listed else None
        if divisor is not None and not divisor.all():
            position = tuple(int(i) for i in np.argwhere(divisor == 0)[0])
            where = f"[{', '.join(map(str, position))}]" if position else ""
            node.fail("C2", f"`b{where}` is 0, expected a divisor other than 0", "b")
    return broadcast_rule(node)


def _integral(name: str) -> Callable[[Array], Any]:
    """The function `name` of numpy, which leaves integers as they are."""
    compute = called(name)
    return lambda data: data if data.dtype.kind in "iuO" else compute(data)


abs_ = unary(
    "Abs-1",
    "absolute",
    """Absolute value; the lowest value of a signed integer type stays itself.

    Source: arithmetic/abs-1.rst

    >>> op(np.array([-2.5, 0.0, 3.0])).tolist()
    [2.5, 0.0, 3.0]
    """,
    symbolic=True,
    whole=True,
)

acos = elementary(
    "Acos-1",
    "arccos",
    """Inverse cosine, in radians; NaN outside [-1, 1].

    Source: arithmetic/acos-1.rst

    >>> op(np.array([1.0, 0.5])).round(4).tolist()
    [0.0, 1.0472]
    """,
)

acosh = elementary(
    "Acosh-4",
    "arccosh",
    """Inverse hyperbolic cosine; NaN below 1.

    The page calls it Acosh-3, but opset4 is the first that holds it.

    Source: arithmetic/acosh-3.rst

    >>> op(np.array([1.0, 2.0])).round(4).tolist()
    [0.0, 1.317]
    """,
)

add = binary(
    "Add-1",
    "add",
    """Sum. Integers wrap around.

    Source: arithmetic/add-1.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([10, 20])).tolist()
    [[11, 22], [13, 24]]
    """,
    symbolic=True,
    whole=True,
    commutative=True,
)

asin = elementary(
    "Asin-1",
    "arcsin",
    """Inverse sine, in radians; NaN outside [-1, 1].

    Source: arithmetic/asin-1.rst

    >>> op(np.array([0.0, 0.5])).round(4).tolist()
    [0.0, 0.5236]
    """,
    "trunc",
)

asinh = elementary(
    "Asinh-4",
    "arcsinh",
    """Inverse hyperbolic sine.

    The page calls it Asinh-3, but opset4 is the first that holds it.

    Source: arithmetic/asinh-3.rst

    >>> op(np.array([0.0, 2.0])).round(4).tolist()
    [0.0, 1.4436]
    """,
)

atan = elementary(
    "Atan-1",
    "arctan",
    """Inverse tangent, in radians.

    Source: arithmetic/atan-1.rst

    >>> op(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.7854]
    """,
)

atan2 = binary(
    "Atan2-17",
    "arctan2",
    """Angle of the point (b, a), the inverse tangent of a / b in the quadrant of both, in radians from -pi to pi.

    Zeros and infinities have the angles that C has: pi of (0, -0), pi / 4 of two infinities. The page calls the inputs
    y and x. No release of OpenVINO up to 2026.4.1 has the op.

    Source: arithmetic/atan2-17.rst

    >>> op(np.array([1.0, 1.0, -1.0, 0.0]), np.array([1.0, -1.0, 0.0, -2.0])).round(4).tolist()
    [0.7854, 2.3562, -1.5708, 3.1416]
    """,
    types=FLOAT,
    opsets=OPSET17,
)


def _atanh(data: Array) -> Any:
    if data.dtype.kind not in "iu":
        return real(np.arctanh)(data)
    limits = np.iinfo(data.dtype)
    zero, lowest, highest = map(data.dtype.type, (0, limits.min, limits.max))
    return np.where(data > 0, highest, np.where(data < 0, lowest, zero))


atanh = unary(
    "Atanh-4",
    _atanh,
    """Inverse hyperbolic tangent; NaN outside [-1, 1].

    For integers it is the highest value of the type above 0, and the lowest one below. The page calls the op Atanh-3,
    but opset4 is the first that holds it.

    Source: arithmetic/atanh-3.rst

    >>> op(np.array([0.0, 0.5, 1.0])).round(4).tolist()
    [0.0, 0.5493, inf]
    """,
)

ceiling = unary(
    "Ceiling-1",
    _integral("ceil"),
    """The least integer that is not below.

    Source: arithmetic/ceiling-1.rst

    >>> op(np.array([-1.5, 0.2, 3.0])).tolist()
    [-1.0, 1.0, 3.0]
    """,
    symbolic=True,
    whole=True,
    view_of="data",
)

cos = elementary(
    "Cos-1",
    "cos",
    """Cosine of an angle in radians.

    Source: arithmetic/cos-1.rst

    >>> op(np.array([0.0, 1.0])).round(4).tolist()
    [1.0, 0.5403]
    """,
)

cosh = elementary(
    "Cosh-1",
    "cosh",
    """Hyperbolic cosine.

    Source: arithmetic/cosh-1.rst

    >>> op(np.array([0.0, 1.0])).round(4).tolist()
    [1.0, 1.5431]
    """,
)


@op(
    "CumSum-3",
    types={"T": NUMERIC, "T_AXIS": INDEX},
    lenient_types={"T": BOOLEAN},
    inputs=[Input("data", "T", "[*shape]"), Input("axis", "T_AXIS", "[]", optional=True)],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[Attr("exclusive", BOOL, False), Attr("reverse", BOOL, False)],
)
def cum_sum(data: Array, axis: Array | None = None, *, exclusive: bool, reverse: bool) -> Any:
    """Sum of the elements up to each one along an axis (0 unless given), from the end with reverse.

    With exclusive an element is not part of its own sum. Integers wrap around; floats are added in f64. Booleans, which
    converters write for masks of PyTorch and OpenVINO takes, are counted in u8, as it does.

    Constraints:
        C1: axis lies in [-r, r), r the rank of data.
        C2: data has an axis. A scalar is summed like a vector of one element.

    Source: arithmetic/cumsum-3.rst

    >>> op(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array(0), exclusive=True, reverse=True).tolist()
    [14.0, 12.0, 9.0, 5.0, 0.0]
    """
    data = data.view(np.uint8) if data.dtype == np.bool_ else data
    wide = data.dtype if data.dtype.kind in "iu" else np.dtype(np.float64)
    sums = np.zeros(data.shape or (1,), wide)
    # views with the axis last and in the direction of the summation, of the input and of the sums
    source, target = (
        np.moveaxis(array, 0 if axis is None else int(axis.item()), -1) for array in (np.atleast_1d(data), sums)
    )
    if reverse:
        source, target = source[..., ::-1], target[..., ::-1]
    if exclusive:
        source, target = source[..., :-1], target[..., 1:]
    with np.errstate(all="ignore"):
        np.cumsum(source, -1, wide, out=target)
        return sums.reshape(data.shape).astype(data.dtype, copy=False)


@cum_sum.shapes
def _(node: Node) -> None:
    if node.types.get("T") == "boolean":
        node.types["T"] = "u8"
    axis, rank = node.value("axis"), len(node.shape("data"))
    node.require("C2", rank > 0, "`data` is a scalar, expected an axis", about=["data"], lenient="sums its one element")
    if axis is not None:
        node.axis("C1", int(axis.item()), rank)


@op(
    "Divide-1",
    types={"T": NUMERIC},
    inputs=[Input("a", "T", "..."), Input("b", "T", "...")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[Attr("m_pythondiv", BOOL, True), *AUTO_BROADCAST],
    symbolic=True,
    traits=[Elementwise(2)],
)
def divide(
    a: Array, b: Array, *, m_pythondiv: bool, auto_broadcast: str, auto_broadcast_axis: int, types: dict[str, str]
) -> Any:
    """Quotient. That of integers is rounded down, with m_pythondiv=false towards 0; lowest / -1 is lowest.

    Constraints:
        C1: the shapes of the inputs fit under auto_broadcast: equal for `none`, aligned at the last axis for `numpy`;
            for `pdpd` the second one fits into the first from auto_broadcast_axis on.
        C2: no element of an integer divisor is 0.

    Source: arithmetic/divide-1.rst

    >>> op(np.array([-7, 7]), np.array([2, 2])).tolist()
    [-4, 3]
    """
    b = aligned(a, b, auto_broadcast, auto_broadcast_axis)
    symbolic = object in (a.dtype, b.dtype)
    with quiet(a, b):
        if types["T"] in FLOAT:
            if symbolic:
                raise Undecided  # dimensions have no fractions
            return np.divide(a, b)
        if m_pythondiv:
            return a // b
        if symbolic:
            return np.frompyfunc(_truncated_quotient, 2, 1)(a, b)
        quotient = np.floor_divide(a, b)
        inexact = (quotient * b != a) & ((a < 0) != (b < 0))
        return quotient + inexact.astype(quotient.dtype)


divide.shapes(divisor_rule)


def _truncated_quotient(a: Size, b: Size) -> Size:
    return a // b if bool(a < 0) == bool(b < 0) else -(-a // b)


def _erf(data: Array) -> Any:
    if data.size <= FEW and data.dtype == np.float32:  # the same numbers, without what it takes to load scipy.special
        return np.array([math.erf(x) for x in data.ravel().tolist()], np.float32)
    from scipy.special import erf

    return erf(data)


erf = elementary(
    "Erf-1",
    _erf,
    """Gauss error function.

    Source: arithmetic/erf-1.rst

    >>> op(np.array([0.0, 0.5, -1.0])).round(4).tolist()
    [0.0, 0.5205, -0.8427]
    """,
)


@real
def _erf_inv(data: Array) -> Any:
    from scipy.special import erfinv

    return erfinv(data)


erf_inv = unary(
    "ErfInv-17",
    _erf_inv,
    """Inverse of the Gauss error function: infinite at -1 and 1, NaN beyond.

    Source: arithmetic/erfinv-17.rst

    >>> op(np.array([0.0, 0.5, 1.0, 2.0])).round(4).tolist()
    [0.0, 0.4769, inf, nan]
    """,
    types=FLOAT,
    opsets=OPSET17,
)

floor = unary(
    "Floor-1",
    _integral("floor"),
    """The greatest integer that is not above.

    Source: arithmetic/floor-1.rst

    >>> op(np.array([-1.5, 0.2, 3.0])).tolist()
    [-2.0, 0.0, 3.0]
    """,
    symbolic=True,
    whole=True,
    view_of="data",
)

floor_mod = binary(
    "FloorMod-1",
    "mod",
    """Remainder of the division rounded down; it has the sign of the divisor. NaN for a float divisor of 0.

    Source: arithmetic/floormod-1.rst

    >>> op(np.array([-7, 7, -7]), np.array([3, -3, -3])).tolist()
    [2, -2, -1]
    """,
    symbolic=True,
    rule=divisor_rule,
    constraints=BROADCAST_CONSTRAINT + DIVISOR_CONSTRAINT,
)

log = elementary(
    "Log-1",
    "log",
    """Natural logarithm; -inf at 0, NaN below.

    Source: arithmetic/log-1.rst

    >>> op(np.array([1.0, 2.0, 0.0])).round(4).tolist()
    [0.0, 0.6931, -inf]
    """,
    "trunc",
)


def _maximum(a: Array, b: Array) -> Any:
    if object in (a.dtype, b.dtype):
        return np.frompyfunc(largest, 2, 1)(a, b)
    return np.maximum(a, b)


maximum = binary(
    "Maximum-1",
    _maximum,
    """The greater of two elements. NaN where one is NaN.

    Deviation: in OpenVINO it depends on the order of the inputs whether NaN wins.

    Source: arithmetic/maximum-1.rst

    >>> op(np.array([1, 5, 3]), np.array([4, 2, 3])).tolist()
    [4, 5, 3]
    """,
    symbolic=True,
    whole=True,
    commutative=True,
)


def _minimum(a: Array, b: Array) -> Any:
    if object in (a.dtype, b.dtype):
        return np.frompyfunc(smallest, 2, 1)(a, b)
    return np.minimum(a, b)


minimum = binary(
    "Minimum-1",
    _minimum,
    """The lesser of two elements. NaN where one is NaN.

    Deviation: in OpenVINO it depends on the order of the inputs whether NaN wins.

    Source: arithmetic/minimum-1.rst

    >>> op(np.array([1, 5, 3]), np.array([4, 2, 3])).tolist()
    [1, 2, 3]
    """,
    symbolic=True,
    whole=True,
    commutative=True,
)


def _mod(a: Array, b: Array) -> Any:
    if object in (a.dtype, b.dtype):
        return np.frompyfunc(_truncated_remainder, 2, 1)(a, b)
    return np.fmod(a, b)


def _truncated_remainder(a: Size, b: Size) -> Size:
    divisor = -b if b < 0 else b
    return -(-a % divisor) if a < 0 else a % divisor


mod = binary(
    "Mod-1",
    _mod,
    """Remainder of the division rounded towards 0; it has the sign of the dividend. NaN for a float divisor of 0.

    Source: arithmetic/mod-1.rst

    >>> op(np.array([-7, 7, -7]), np.array([3, -3, -3])).tolist()
    [-1, 1, -1]
    """,
    symbolic=True,
    rule=divisor_rule,
    constraints=BROADCAST_CONSTRAINT + DIVISOR_CONSTRAINT,
)

multiply = binary(
    "Multiply-1",
    "multiply",
    """Product. Integers wrap around.

    Source: arithmetic/multiply-1.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([10, 20])).tolist()
    [[10, 40], [30, 80]]
    """,
    symbolic=True,
    whole=True,
    commutative=True,
)

negative = unary(
    "Negative-1",
    "negative",
    """The number of the other sign; the lowest value of an integer type stays itself.

    Source: arithmetic/negative-1.rst

    >>> op(np.array([-2.5, 3.0])).tolist()
    [2.5, -3.0]
    """,
    types=FLOAT | SIGNED,
    symbolic=True,
    whole=True,
)


def _power(a: Array, b: Array) -> Any:
    dtype = a.dtype.type
    if a.dtype.kind not in "iu":
        if b.size == 1 and b.ndim <= a.ndim and b.item() == 2:
            return np.multiply(a, a)
        result = np.power(a, b)
        halves = b == 0.5
        if not np.any(halves):
            return result
        # numpy takes the root where a row has one exponent of 0.5, which is another one of -infinity and of -0
        return np.where(halves & ((a == 0) | (a == -np.inf)), np.abs(a), result)
    below = b < 0
    if not below.any():
        return np.power(a, b)
    # the reciprocal of 1 is 1 and that of -1 alternates; that of 0 does not exist, the others are fractions
    one, none, lowest = dtype(1), dtype(0), dtype(np.iinfo(dtype).min)
    inverse = np.where(a == -1, one - dtype(2) * (b & one), np.where(a == 1, one, np.where(a == 0, lowest, none)))
    return np.where(below, inverse, np.power(a, np.where(below, none, b)))


power = binary(
    "Power-1",
    _power,
    """a to the power of b. 0 to the power of 0 is 1, -infinity to that of 0.5 is infinity, and -0 is 0.

    Integers wrap around; a negative exponent truncates (2 to the power of -1 is 0), and of 0 gives the lowest value of
    the type. (OpenVINO goes through f64 and leaves what does not fit to C++.)

    Source: arithmetic/power-1.rst

    >>> op(np.array([2.0, 9.0, -8.0]), np.array([3.0, 0.5, 1.0])).tolist()
    [8.0, 3.0, -8.0]
    """,
)


def _round(data: Array, *, mode: str) -> Any:
    if data.dtype.kind in "iu":
        return data
    return np.rint(data) if mode == "half_to_even" else real(nearest)(data)


round_ = unary(
    "Round-5",
    _round,
    """The nearest integer, of halves the even one or the one away from 0. The sign of a zero is kept.

    Source: arithmetic/round-5.rst

    >>> op(np.array([-4.5, -1.9, -1.5, 0.5, 0.9, 1.5, 2.3, 2.5]), mode="half_away_from_zero").tolist()
    [-5.0, -2.0, -2.0, 1.0, 1.0, 2.0, 2.0, 3.0]
    """,
    attrs=[Attr("mode", choice("half_to_even", "half_away_from_zero"), "half_to_even")],
    view_of="data",
)


@op(
    "SegmentMax-16",
    types={"T": NUMERIC, "T_IDX1": INDEX, "T_IDX2": INDEX},
    inputs=[
        Input("data", "T", "[n, *inner]"),
        Input("segment_ids", "T_IDX1", "[n]"),
        Input("num_segments", "T_IDX2", "[]", optional=True),
    ],
    outputs=[Output("result", "T", "[segments, *inner]")],
    attrs=[Attr("fill_mode", choice("ZERO", "LOWEST"), assumed="ZERO")],
    traits=[Filling("fill_mode", "LOWEST")],
)
def segment_max(data: Array, segment_ids: Array, num_segments: Array | None = None, *, fill_mode: str) -> Any:
    """The maximum of the slices of each segment; an empty segment is 0 or the lowest finite value of the type.

    Without num_segments the last segment is that of the last slice. NaN where a slice has NaN.

    Constraints:
        C1: num_segments is 0 or more.
        C2: segment_ids are in ascending order.
        C3: segment_ids lie in [0, num_segments). (OpenVINO drops slices of later segments.)

    Deviation: the IR calls the page's attribute empty_segment_value fill_mode.

    Source: arithmetic/segment-max-16.rst

    >>> op(np.array([3, 1, 4, 1, 5]), np.array([0, 0, 2, 3, 3]), fill_mode="ZERO").tolist()
    [3, 0, 4, 5]
    """
    dtype = data.dtype.type
    lowest = np.iinfo(dtype).min if data.dtype.kind in "iu" else np.nextafter(dtype(-np.inf), dtype(0))
    last = int(segment_ids[-1]) if segment_ids.size else -1
    segments = last + 1 if num_segments is None else int(num_segments.item())
    result = np.full((segments, *data.shape[1:]), 0 if fill_mode == "ZERO" else lowest, data.dtype)
    if segment_ids.size:
        starts = np.flatnonzero(np.diff(segment_ids, prepend=-1))
        result[segment_ids[starts]] = np.maximum.reduceat(data, starts, axis=0)
    return result


@segment_max.shapes
def _(node: Node) -> Shapes:
    ids = node.value("segment_ids")
    if ids is not None and (np.diff(ids) < 0).any():
        position = int(np.argmax(np.diff(ids) < 0)) + 1
        node.fail(
            "C2", f"`segment_ids[{position}]` is {ids[position]}, below {ids[position - 1]} before it", "segment_ids"
        )
    if node.inputs["num_segments"] is None:
        node.within("C3", "segment_ids", 0, 2**63)
        return {"segments": fresh() if ids is None else int(ids[-1]) + 1 if ids.size else 0}
    segments = node.size("num_segments")
    node.require("C1", segments >= 0, f"`num_segments` is {segments}, expected 0 or more", "num_segments")
    node.within("C3", "segment_ids", 0, segments)
    return {"segments": segments}


sign = unary(
    "Sign-1",
    "sign",
    """-1, 0 or 1 for a number below, equal to or above 0; NaN for NaN.

    Source: arithmetic/sign-1.rst

    >>> op(np.array([-2.5, 0.0, 3.0])).tolist()
    [-1.0, 0.0, 1.0]
    """,
)

sin = elementary(
    "Sin-1",
    "sin",
    """Sine of an angle in radians.

    Source: arithmetic/sin-1.rst

    >>> op(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.8415]
    """,
    "trunc",
)

sinh = elementary(
    "Sinh-1",
    "sinh",
    """Hyperbolic sine.

    Source: arithmetic/sinh-1.rst

    >>> op(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 1.1752]
    """,
)

sqrt = elementary(
    "Sqrt-1",
    "sqrt",
    """Square root; NaN below 0.

    Source: arithmetic/sqrt-1.rst

    >>> op(np.array([4, 7, 9, 10])).tolist()
    [2, 3, 3, 3]
    """,
)


def _squared_difference(a: Array, b: Array) -> Any:
    difference = np.asarray(np.subtract(widened(a), widened(b)))
    return np.multiply(difference, difference, out=difference).astype(a.dtype, copy=False)


squared_difference = binary(
    "SquaredDifference-1",
    _squared_difference,
    """Square of the difference. f16 and bf16 are computed in f32 and rounded once; integers wrap around.

    Source: arithmetic/squared-difference-1.rst

    >>> op(np.array([1.0, 5.0]), np.array([3.0, 2.0])).tolist()
    [4.0, 9.0]
    """,
    commutative=True,
)

subtract = binary(
    "Subtract-1",
    "subtract",
    """Difference. Integers wrap around.

    Source: arithmetic/subtract-1.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([10, 20])).tolist()
    [[-9, -18], [-7, -16]]
    """,
    symbolic=True,
    whole=True,
)

tan = elementary(
    "Tan-1",
    "tan",
    """Tangent of an angle in radians.

    Source: arithmetic/tan-1.rst

    >>> op(np.array([-2, -1, 0, 1, 2])).tolist()
    [2, -2, 0, 2, -2]
    """,
)

tanh = elementary(
    "Tanh-1",
    "tanh",
    """Hyperbolic tangent.

    Source: arithmetic/tanh-1.rst

    >>> op(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.7616]
    """,
)
