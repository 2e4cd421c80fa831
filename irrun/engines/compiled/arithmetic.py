"""Arithmetic of the language of loops, on numbers that are known and on values of the code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.code import BOOL, BYTE, DOUBLE, FLOAT, INT, LONG, applied, long
from irrun.records import dataclass

Value = Any
"""Of an expression: a number that is known (or a string), a value of the code, or memory."""

FUNCTIONS: dict[Callable[..., Any], str] = {
    np.floor: "floor",
    np.ceil: "ceil",
    np.trunc: "trunc",
    np.rint: "rint",
    np.sqrt: "sqrt",
    np.minimum: "minimum",
    np.maximum: "maximum",
    np.copysign: "copysign",
    abs: "fabs",
}
"""Of floats. Besides there are `min` and `max` of integers, and the conversions."""

OPERATORS: dict[type[ast.AST], tuple[Callable[[Any, Any], Any], str, str]] = {
    ast.Add: (operator.add, "add", "fadd"),
    ast.Sub: (operator.sub, "sub", "fsub"),
    ast.Mult: (operator.mul, "mul", "fmul"),
    ast.Div: (operator.truediv, "", "fdiv"),
    ast.FloorDiv: (operator.floordiv, "sdiv", ""),
    ast.Mod: (operator.mod, "srem", ""),
    ast.BitAnd: (operator.and_, "and_", ""),
    ast.BitOr: (operator.or_, "or_", ""),
    ast.BitXor: (operator.xor, "xor", ""),
}
"""Of numbers that are known, of integers and of floats."""

COMPARISONS: dict[type[ast.AST], tuple[Callable[[Any, Any], Any], str]] = {
    ast.Lt: (operator.lt, "<"),
    ast.LtE: (operator.le, "<="),
    ast.Gt: (operator.gt, ">"),
    ast.GtE: (operator.ge, ">="),
    ast.Eq: (operator.eq, "=="),
    ast.NotEq: (operator.ne, "!="),
}


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What writes operations down where its builder stands."""

    b: ir.IRBuilder

    def whole(self, value: Value) -> ir.Value:
        """An integer of 64 bits."""
        return self.b.zext(value, LONG) if has_type(value, BOOL) else typed(value, LONG)

    def resized(self, value: ir.Value, type: ir.IntType) -> ir.Value:
        """An integer of another width; bytes are unsigned, others signed."""
        if value.type.width > type.width:
            return self.b.trunc(value, type)
        if value.type.width == type.width:
            return value
        return self.b.zext(value, type) if value.type == BYTE else self.b.sext(value, type)

    def binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        """What an operator of Python makes of two values: quotients of integers are rounded down."""
        known, whole, real = OPERATORS[type(op)]
        if not isinstance(left, ir.Value) and not isinstance(right, ir.Value):
            return known(left, right)
        left, right = alike(*(self.whole(own) if has_type(own, BOOL) else own for own in (left, right)))
        if left.type in (FLOAT, DOUBLE):
            return getattr(self.b, real)(left, right)
        made = getattr(self.b, whole)(left, right)
        if not isinstance(op, ast.FloorDiv | ast.Mod):
            return made
        rest = made if isinstance(op, ast.Mod) else self.b.srem(left, right)
        zero = long(0)
        opposite = self.b.icmp_signed("<", self.b.xor(rest, right), zero)
        below = self.b.and_(self.b.icmp_signed("!=", rest, zero), opposite)  # Python's quotients are rounded down
        change = right if isinstance(op, ast.Mod) else long(-1)
        return self.b.add(made, self.b.select(below, change, zero))

    def comparison(self, left: Value, ops: Sequence[ast.cmpop], others: Sequence[Value]) -> Value:
        """Whether all of a chain of comparisons hold; of NaN none but `!=` does."""
        found: Any = True
        for op, right in zip(ops, others, strict=True):
            known, sign = COMPARISONS[type(op)]
            one: Any
            if not isinstance(left, ir.Value) and not isinstance(right, ir.Value):
                one = known(left, right)
            else:
                a, b = alike(left, right)
                if a.type not in (FLOAT, DOUBLE):
                    one = self.b.icmp_signed(sign, a, b)
                elif sign == "!=":
                    one = self.b.fcmp_unordered(sign, a, b)  # which NaN is
                else:
                    one = self.b.fcmp_ordered(sign, a, b)
            found = one if found is True else self.b.and_(*alike(found, one))
            left = right
        return found

    def applied(self, function: Callable[..., Any], given: Sequence[Value]) -> ir.Value:
        """One of FUNCTIONS, or `min` or `max`."""
        if function in (min, max):
            left, right = (self.whole(value) for value in given)
            sign = "<" if function is min else ">"
            return self.b.select(self.b.icmp_signed(sign, left, right), left, right)
        return applied(self.b, FUNCTIONS[function], *(alike(*given) if len(given) == 2 else given))

    def converted(self, target: Any, value: Value) -> Value:
        """A value as the type that a name of Python or numpy stands for, i64 for all integers."""
        type = {int: LONG, np.int32: LONG, float: DOUBLE, np.float32: FLOAT}[target]
        if not isinstance(value, ir.Value):
            return ir.Constant(type, target(value))
        if value.type == type:
            return value
        if value.type in (LONG, BOOL):
            if type == LONG:
                return self.whole(value)
            return self.b.sitofp(self.whole(value), type)
        if type == LONG:  # of 32 bits processors convert several at once
            return self.resized(self._saturated(value, INT if target is np.int32 else LONG), LONG)
        return self.b.fptrunc(value, type) if type == FLOAT else self.b.fpext(value, type)

    def _saturated(self, value: ir.Value, type: ir.IntType) -> ir.Value:
        """A float as the nearest integer towards 0 that the type has, 0 for NaN; what LLVM has for that it does one by
        one."""
        b, end = self.b, 2.0 ** (type.width - 1)
        low, high = ir.Constant(value.type, -end), ir.Constant(value.type, end)
        below, above = b.fcmp_ordered("<", value, low), b.fcmp_ordered(">=", value, high)
        outside = b.or_(b.fcmp_unordered("uno", value, value), b.or_(below, above))
        inside = b.fptosi(b.select(outside, ir.Constant(value.type, 0), value), type)
        made = b.select(above, ir.Constant(type, int(end) - 1), inside)
        return b.select(below, ir.Constant(type, -int(end)), made)


def has_type(value: Value, type: ir.Type) -> bool:
    return isinstance(value, ir.Value) and value.type == type


def typed(value: Value, type: ir.Type) -> ir.Value:
    """A value of a type; numbers that are known take any."""
    if not isinstance(value, ir.Value):
        if type in (LONG, BOOL) and isinstance(value, float):
            raise TypeError(f"{value} is no integer")
        return ir.Constant(type, value)
    if value.type != type:
        raise TypeError(f"{value.type} where {type} is expected")
    return value


def alike(left: Value, right: Value) -> tuple[ir.Value, ir.Value]:
    """Two values of one type."""
    if not isinstance(left, ir.Value) and not isinstance(right, ir.Value):
        kind = DOUBLE if isinstance(left, float) or isinstance(right, float) else LONG
        return ir.Constant(kind, left), ir.Constant(kind, right)
    kind = left.type if isinstance(left, ir.Value) else right.type
    return typed(left, kind), typed(right, kind)
