"""Python functions as code: a small language of numbers in memory, for loops that numpy has no function for.

Parameters are annotated: `int` and `float` are 64 bits wide; `Floats`, `Doubles`, `Ints`, `Longs` and `Bytes` are
memory that nothing else has, whose elements are read and written as `memory[position]`, and never checked; so is what
`np.empty` gives, of a size that is known. Integers that are read are 64 bits wide, f32 stay f32. Functions assign,
branch, loop (`while`, `for ... in range`), and call others of their kind and those of FUNCTIONS. Types are never mixed
but by `int`, `np.int32`, `float` and `np.float32`; a number that is written out takes the type of the other one. What
is known when it is compiled, a constant of the module or one that `translated` is given, decides branches then; these
may also name what memory holds, and the types of numbers. Python computes the same on arrays, only slowly.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.arithmetic import FUNCTIONS, Arithmetic, Value, alike, has_type, typed
from irrun.engines.compiled.code import BOOL, BYTE, DOUBLE, FLOAT, INT, LONG, long
from irrun.records import dataclass

NUMBERS: dict[str, ir.Type] = {"int": LONG, "float": DOUBLE, "np.float32": FLOAT}
ELEMENTS: dict[str, ir.Type] = {"Floats": FLOAT, "Doubles": DOUBLE, "Ints": INT, "Longs": LONG, "Bytes": BYTE}

ELEMENTS_OF: dict[Any, ir.Type] = {np.float32: FLOAT, np.float64: DOUBLE, np.int32: INT, np.int64: LONG, np.uint8: BYTE}


def translated(module: ir.Module, function: Callable[..., Any], constants: Mapping[str, Hashable]) -> ir.Function:
    """A function as code of a module; memory comes as pointers. Raises TypeError where it does what there is not."""
    return _Function(module, function, constants).write()


@dataclass(frozen=True, slots=True)
class _Memory:
    """An address, and the type of what lies there."""

    address: ir.Value
    element: ir.Type


class _Function:
    """A function in the making."""

    def __init__(self, module: ir.Module, function: Callable[..., Any], constants: Mapping[str, Hashable]) -> None:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        assert isinstance(tree, ast.FunctionDef)
        self._tree = tree
        self._python, self._constants = function, constants
        annotated = [(given.arg, ast.unparse(given.annotation)) for given in tree.args.args if given.annotation]
        parameters = [(name, str(constants.get(kind, kind))) for name, kind in annotated]
        types = [NUMBERS[kind] if kind in NUMBERS else ELEMENTS[kind].as_pointer() for _, kind in parameters]
        result = _result(self._tree, constants)
        self._function = ir.Function(module, ir.FunctionType(result, types), module.get_unique_name(function.__name__))
        self._function.linkage = "internal"
        if result != ir.VoidType():
            self._function.attributes.add("alwaysinline")
        self._start = self._function.append_basic_block()
        self.b = ir.IRBuilder(self._function.append_basic_block())
        self._a = Arithmetic(self.b)
        self._first = self.b.block
        self._variables: dict[str, Any] = {}
        self._memories: dict[str, _Memory] = {}
        self._around: list[tuple[ir.Block, ir.Block]] = []  # where `continue` and `break` lead to
        for (name, kind), argument in zip(parameters, self._function.args, strict=True):
            if kind in NUMBERS:
                self._assign(name, argument)
            else:
                argument.add_attribute("noalias")
                self._memories[name] = _Memory(argument, ELEMENTS[kind])

    def write(self) -> ir.Function:
        self._all(self._tree.body)
        if self._function.function_type.return_type == ir.VoidType():
            self.b.ret_void()
        else:
            self.b.unreachable()
        ir.IRBuilder(self._start).branch(self._first)
        return self._function

    # Statements

    def _all(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._do(statement)

    def _do(self, node: Any) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                made = [self._value(value) for value in values]
                for target, value in zip(targets, made, strict=True):
                    self._put(target, value)
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="empty"), args=[count, kind]),
            ):
                self._reserve(name, self._value(count), ELEMENTS_OF[self._called(kind)])
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                self._put(target, self._value(value))
            case ast.AugAssign(target=target, op=op, value=value):
                self._put(target, self._a.binary(op, self._value(target), self._value(value)))
            case ast.If(test=test, body=body, orelse=other):
                self._if(test, body, other)
            case ast.While(test=test, body=body, orelse=[]):
                self._loop(lambda: typed(self._condition(test), BOOL), body, lambda: None)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=given), orelse=[]):
                self._for(name, [self._value(value) for value in given], node)
            case ast.Break():
                self._leave(self._around[-1][1])
            case ast.Continue():
                self._leave(self._around[-1][0])
            case ast.Return(value=ast.expr() as value):
                self.b.ret(typed(self._value(value), self._function.function_type.return_type))
                self.b.position_at_end(self.b.append_basic_block())
            case ast.Expr(value=ast.Constant()):  # the docstring
                pass
            case ast.Expr(value=value):
                self._value(value)
            case _:
                raise self._unknown(node)

    def _reserve(self, name: str, count: Value, element: ir.Type) -> None:
        if not isinstance(count, int):
            raise TypeError(f"{self._python.__name__}: `{name}` has no size that is known")
        if name not in self._memories:
            place = ir.IRBuilder(self._start).alloca(ir.ArrayType(element, count))
            place.align = 64
            address = ir.IRBuilder(self._start).bitcast(place, element.as_pointer())
            self._memories[name] = _Memory(address, element)

    def _put(self, target: Any, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self._assign(name, value)
            case ast.Subscript(value=memory, slice=position):
                place, element = self._place(memory, position)
                if isinstance(element, ir.IntType):
                    value = self._a.resized(self._a.whole(value), element)
                self.b.store(typed(value, element), place)
            case _:
                raise self._unknown(target)

    def _assign(self, name: str, value: Value) -> None:
        if not isinstance(value, ir.Value):
            value = typed(value, DOUBLE if isinstance(value, float) else BOOL if isinstance(value, bool) else LONG)
        if name not in self._variables:
            self._variables[name] = ir.IRBuilder(self._start).alloca(value.type, name=name)
        place = self._variables[name]
        self.b.store(typed(value, place.type.pointee), place)

    def _if(self, test: Any, body: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> None:
        condition = self._condition(test)
        if not isinstance(condition, ir.Value):
            self._all(body if condition else other)
            return
        then, otherwise, end = (self.b.append_basic_block() for _ in range(3))
        self.b.cbranch(condition, then, otherwise)
        for block, statements in ((then, body), (otherwise, other)):
            self.b.position_at_end(block)
            self._all(statements)
            self.b.branch(end)
        self.b.position_at_end(end)

    def _for(self, name: str, given: Sequence[Value], node: ast.For) -> None:
        first, last = (self._a.whole(value) for value in ((0, *given) if len(given) == 1 else given[:2]))
        step = given[2] if len(given) > 2 else 1
        if not isinstance(step, int) or step == 0:
            raise self._unknown(node.iter)
        number = ir.IRBuilder(self._start).alloca(LONG)
        self.b.store(first, number)

        def left() -> Any:
            self._assign(name, self.b.load(number))
            return self.b.icmp_signed("<" if step > 0 else ">", self.b.load(number), last)

        self._loop(left, node.body, lambda: self.b.store(self.b.add(self.b.load(number), long(step)), number))

    def _loop(self, test: Callable[[], Any], body: Sequence[ast.stmt], then: Callable[[], Any]) -> None:
        look, inside, following, end = (self.b.append_basic_block() for _ in range(4))
        self.b.branch(look)
        self.b.position_at_end(look)
        self.b.cbranch(test(), inside, end)
        self._around.append((following, end))
        self.b.position_at_end(inside)
        self._all(body)
        self.b.branch(following)
        self._around.pop()
        self.b.position_at_end(following)
        then()
        self.b.branch(look)
        self.b.position_at_end(end)

    def _leave(self, block: ir.Block) -> None:
        self.b.branch(block)
        self.b.position_at_end(self.b.append_basic_block())  # of what is never reached

    # Expressions

    def _value(self, node: Any) -> Value:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self._variables:
                return self.b.load(self._variables[name])
            case ast.Name(id=name) if name in self._memories:
                return self._memories[name]
            case ast.Name(id=name):
                return self._known(name)
            case ast.Subscript(value=memory, slice=position):
                place, element = self._place(memory, position)
                value = self.b.load(place)
                return self._a.resized(value, LONG) if isinstance(element, ir.IntType) else value
            case ast.BinOp(left=left, op=op, right=right):
                return self._a.binary(op, self._value(left), self._value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self._value(operand)
                if not isinstance(value, ir.Value):
                    return -value
                return self.b.neg(value) if value.type == LONG else self.b.fneg(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = self._condition(operand)
                return self.b.not_(value) if isinstance(value, ir.Value) else not value
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._a.comparison(self._value(left), ops, [self._value(other) for other in others])
            case ast.BoolOp(op=op, values=values):
                return self._chosen(values, isinstance(op, ast.And))
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._either(test, body, other)
            case ast.Call(func=function, args=arguments):
                return self._call(self._called(function), [self._value(argument) for argument in arguments])
            case _:
                raise self._unknown(node)

    def _condition(self, node: ast.expr) -> Value:
        value = self._value(node)
        if has_type(value, LONG):
            return self.b.icmp_signed("!=", value, long(0))
        return value if isinstance(value, ir.Value) else bool(value)

    def _known(self, name: str) -> Value:
        return self._constants[name] if name in self._constants else self._python.__globals__[name]

    def _called(self, node: Any) -> Any:
        if isinstance(node, ast.Attribute):
            return getattr(self._called(node.value), node.attr)
        names = {**self._python.__globals__, **self._constants}
        return names[node.id] if node.id in names else names["__builtins__"][node.id]

    def _place(self, memory: Any, position: Any) -> tuple[ir.Value, ir.Type]:
        found = self._memories[memory.id]
        return self.b.gep(found.address, [self._a.whole(self._value(position))]), found.element

    def _chosen(self, values: Sequence[ast.expr], every: bool) -> Value:
        """`and` or `or`: what comes behind is only asked where that matters."""
        found = self._condition(values[0])
        if len(values) == 1:
            return found
        if not isinstance(found, ir.Value):
            return self._chosen(values[1:], every) if bool(found) is every else found
        before, rest, end = self.b.block, *(self.b.append_basic_block() for _ in range(2))
        self.b.cbranch(found, *((rest, end) if every else (end, rest)))
        self.b.position_at_end(rest)
        other = typed(self._chosen(values[1:], every), BOOL)
        asked = self.b.block
        self.b.branch(end)
        self.b.position_at_end(end)
        result = self.b.phi(BOOL)
        result.add_incoming(ir.Constant(BOOL, not every), before)
        result.add_incoming(other, asked)
        return result

    def _either(self, test: ast.expr, body: ast.expr, other: ast.expr) -> Value:
        condition = self._condition(test)
        if not isinstance(condition, ir.Value):
            return self._value(body if condition else other)
        then, otherwise, end = (self.b.append_basic_block() for _ in range(3))
        self.b.cbranch(condition, then, otherwise)
        made: list[Value] = []
        for block, node in ((then, body), (otherwise, other)):
            self.b.position_at_end(block)
            made.append((self._value(node), self.b.block))
        (one, first), (two, second) = made
        one, two = alike(one, two)
        result_type = one.type
        for block in (first, second):
            self.b.position_at_end(block)
            self.b.branch(end)
        self.b.position_at_end(end)
        result = self.b.phi(result_type)
        result.add_incoming(one, first)
        result.add_incoming(two, second)
        return result

    def _call(self, function: Any, given: Sequence[Value]) -> Value:
        if function in (int, float, np.float32, np.int32):
            return self._a.converted(function, *given)
        if not any(isinstance(value, ir.Value | _Memory) for value in given):
            return function(*given)
        if function in (min, max) or function in FUNCTIONS:
            return self._a.applied(function, given)
        own = translated(self.b.module, function, self._constants)
        arguments = [
            value.address if isinstance(value, _Memory) else typed(value, argument.type)
            for value, argument in zip(given, own.args, strict=True)
        ]
        return self.b.call(own, arguments)

    def _unknown(self, node: Any) -> TypeError:
        return TypeError(f"{self._python.__name__}: loops have no `{ast.unparse(node)}`")


def _result(tree: ast.FunctionDef, constants: Mapping[str, Hashable]) -> ir.Type:
    kind = "None" if tree.returns is None else ast.unparse(tree.returns)
    kind = str(constants.get(kind, kind))
    return {"None": ir.VoidType(), "bool": BOOL, **NUMBERS}[kind]
