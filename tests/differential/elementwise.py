"""Element-wise ops, alone and in chains, with every kind of second operand on either side."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential.builder import Builder, Value
from differential.operands import operand

PLAIN = (
    *("Abs-1", "Ceiling-1", "Erf-1", "Exp-1", "Floor-1", "Gelu-2", "HSigmoid-5", "HSwish-4", "Log-1", "Mish-4"),
    *("Negative-1", "ReLU-1", "Sigmoid-1", "SoftPlus-4", "Sqrt-1", "Swish-4", "Tanh-1", "Sin-1", "Cos-1", "Atan-1"),
    *("Sign-1", "SoftSign-9", "Asinh-4", "Tan-1", "Sinh-1", "Asin-1"),
)
"""Without attributes. Those that are fused stand here, and some that are not."""

OF_INTEGERS = ("Abs-1", "Negative-1", "ReLU-1", "Sign-1")

FUSED = (
    "ReLU-1",
    "Sigmoid-1",
    "Tanh-1",
    "Gelu-2",
    "HSwish-4",
    "Swish-4",
    "Abs-1",
    "Negative-1",
    "SoftPlus-4",
    "Mish-4",
)


def unary(b: Builder, x: Value) -> Value:
    if x.dtype.kind == "b":
        return b.one("LogicalNot-1", x)
    if not x.float:
        if b.chance(0.3):
            low, high = float(b.number(-4, 0)), float(b.number(1, 6))
            return b.one("Clamp-1", x, min=low + 0.5 * b.chance(0.2), max=high)
        return b.one(b.choose(OF_INTEGERS if x.dtype.kind == "i" else ("ReLU-1",)), x)
    if b.fusible and b.chance(0.8):
        return b.one(b.choose(FUSED), x)
    match b.choose(["plain"] * 5 + ["fused"] * 5 + ["Clamp", "Elu", "Gelu", "Round", "Swish", "Selu", "HardSigmoid"]):
        case "plain":
            return b.one(b.choose(PLAIN), x)
        case "fused":
            return b.one(b.choose(FUSED), x)
        case "Clamp":
            return b.one("Clamp-1", x, min=b.choose([-1.0, 0.0, -0.25]), max=b.choose([1.0, 6.0, 0.5]))
        case "Elu":
            return b.one("Elu-1", x, alpha=b.choose([1.0, 0.5, 2.0]))
        case "Gelu":
            return b.one("Gelu-7", x, approximation_mode=b.choose(["erf", "tanh"]))
        case "Round":
            return b.one("Round-5", x, mode=b.choose(["half_to_even", "half_away_from_zero"]))
        case "Swish":
            return b.one("Swish-4", x, scalar(b, x, b.choose([1.0, 0.5, 2.0])))
        case "Selu":
            return b.one("Selu-1", x, scalar(b, x, 1.5), scalar(b, x, 1.25))
    return b.one("HardSigmoid-1", x, scalar(b, x, 0.25), scalar(b, x, 0.5))


def scalar(b: Builder, x: Value, number: float) -> Value:
    """A constant of one element, or an input of it."""
    array = np.asarray(number).astype(x.dtype)
    return b.constant(array) if b.chance(0.8) else b.parameter([array] * b.sets)


ARITHMETIC = (
    *("Add-1", "Add-1", "Add-1", "Multiply-1", "Multiply-1", "Subtract-1", "Divide-1", "Maximum-1", "Minimum-1"),
    *("Add-1", "Multiply-1", "Subtract-1", "Divide-1", "Maximum-1", "Minimum-1", "Power-1", "PReLU-1", "Power-1"),
    *("SquaredDifference-1", "SquaredDifference-1", "PReLU-1", "Mod-1", "FloorMod-1"),
)

FUSED_OF_TWO = (
    *("Add-1", "Add-1", "Multiply-1", "Subtract-1", "Divide-1", "Maximum-1", "Minimum-1", "SquaredDifference-1"),
    "PReLU-1",
)

COMPARISONS = ("Equal-1", "Greater-1", "GreaterEqual-1", "Less-1", "LessEqual-1", "NotEqual-1")


def binary(b: Builder, x: Value) -> Value:
    if x.dtype.kind == "b":
        name = b.choose(["LogicalAnd-1", "LogicalOr-1", "LogicalXor-1"])
        return b.one(name, x, operand(b, x), auto_broadcast="numpy")
    name = b.choose(FUSED_OF_TWO if b.fusible and b.chance(0.9) else ARITHMETIC)
    if name == "Power-1":
        return power(b, x)
    if name == "PReLU-1":
        return prelu(b, x)
    divides = name in ("Divide-1", "Mod-1", "FloorMod-1")
    attrs: dict[str, Any] = {"auto_broadcast": "numpy"}
    if name == "Divide-1" and b.chance(0.3):
        attrs["m_pythondiv"] = b.choose([True, False])
    other = operand(b, x, 0.5, 3) if divides and x.float else operand(b, x)
    if divides and not x.float:
        if not other.sure or any((array == 0).any() for array in other.arrays):
            other = b.constant(np.asarray(b.number(1, 4), x.dtype))
        return b.one(name, x, other, **attrs)
    if other.shape == x.shape and b.chance(0.1):
        attrs["auto_broadcast"] = "none"
    return b.one(name, other, x, **attrs) if b.chance(0.35) else b.one(name, x, other, **attrs)


def power(b: Builder, x: Value) -> Value:
    attrs = {"auto_broadcast": "numpy"}
    if not x.float:
        if b.chance(0.5):
            return b.one("Power-1", x, b.constant(np.asarray(b.number(0, 3), x.dtype)), **attrs)
        return b.one("Power-1", b.constant(np.asarray(b.number(1, 2), x.dtype)), x, **attrs)
    match b.choose(["number", "number", "base", "tensor", "of"]):
        case "number":
            number = b.choose([2.0, 3.0, 0.5, -1.0, 1.0, 0.0, 4.0, 1.7])
            return b.one("Power-1", x, scalar(b, x, number), **attrs)
        case "base":
            return b.one("Power-1", scalar(b, x, b.choose([2.0, 3.0, 0.5, 1.0])), x, **attrs)
        case "tensor":
            return b.one("Power-1", x, operand(b, x, 0.5, 2.5), **attrs)
    return b.one("Power-1", operand(b, x, 0.5, 2.5), x, **attrs)


def prelu(b: Builder, x: Value) -> Value:
    if b.chance(0.5) and x.rank > 1 and x.fixed[1]:
        slope = b.constant(b.data((x.shape[1],), x.dtype))
    else:
        slope = operand(b, x) if b.chance(0.6) else scalar(b, x, b.choose([0.25, 0.0, -1.0, 2.0]))
    return b.one("PReLU-1", x, slope)


def selected(b: Builder, x: Value) -> Value:
    """A comparison, and a choice by it."""
    condition = b.one(b.choose(COMPARISONS), x, operand(b, x), auto_broadcast="numpy")
    if b.chance(0.3):
        condition = b.one("LogicalNot-1", condition)
    parts = [x, operand(b, x)]
    return b.one("Select-1", condition, *(parts if b.chance(0.5) else parts[::-1]), auto_broadcast="numpy")


def converted(b: Builder, x: Value) -> Value:
    """To another type and back."""
    names = {"f4": "f32", "f2": "f16", "f8": "f64", "i4": "i32", "i8": "i64", "i1": "i8", "u1": "u8"}
    other = b.choose(["f16", "i32", "i8", "f64", "i64"] if b.chance(0.5) else ["f64", "f64", "f16", "bf16", "f32"])
    back = names.get(x.dtype.str[1:], "f32")
    return b.one("Convert-1", b.one("Convert-1", x, destination_type=other), destination_type=back)


def step(b: Builder, x: Value) -> Value:
    match b.choose(["unary"] * 8 + ["binary"] * 9 + ([] if b.fusible else ["select", "convert"])):
        case "unary":
            return unary(b, x)
        case "binary":
            return binary(b, x)
        case "select" if x.dtype.kind != "b":
            return selected(b, x)
        case "convert" if x.float:
            return converted(b, x)
    return unary(b, x)


def chain(b: Builder, x: Value, count: int) -> Value:
    """`count` ops behind each other, of which each reads the one before."""
    for _ in range(count):
        x = b.attempt([step], x)
    return x
