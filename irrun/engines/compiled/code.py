"""Parts that any kernel is written down of: loops, loads and stores of vectors of f32, and what is done to these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.compiler import compiled
from irrun.engines.memory import ITEM
from irrun.records import dataclass
from irrun.spec.op import Array

LANES = 16
"""Of vectors, whatever the processor has: LLVM makes several of one where they are too wide."""

LINE = LANES * ITEM
"""Bytes of a vector of f32."""

FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
BOOL, BYTE, SHORT, INT, LONG = map(ir.IntType, (1, 8, 16, 32, 64))
FLOATS, BYTES, SHORTS, INTS = (ir.VectorType(type, LANES) for type in (FLOAT, BYTE, SHORT, INT))
HALF_INTS = ir.VectorType(INT, LANES // 2)

NUMBERS = ir.Constant(INTS, list(range(LANES)))
"""Those of lanes."""

Values = Sequence[Any]

_MAGIC = 1.5 * 2**23
"""Added to an f32 of less than 2**22 it leaves no fraction, and its bits are those of an integer."""

_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""Of Cephes: with them 1 + r + r * r * polynomial(r) is exp(r), where that is between sqrt(1/2) and sqrt(2)."""

_LOG = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
"""Of Cephes: with them r - r * r / 2 + r^3 * polynomial(r) is log(1 + r), where 1 + r is between those, too."""

_LN2 = (0.693359375, -2.12194440e-4)
"""ln(2) as two f32, the first of which has few bits."""

_LOG2_E = 1.4426950408889634

_EXP2 = (0.009582853059, 0.05590642465, 0.2402409861, 0.6931241934, 1.0)
"""With them polynomial(x) is 2**x between -1/2 and 1/2, but for 3e-6 of it, and 1 for 0."""

_LEAST, _LOWEST = -87.33654, -103.9721
"""Of what is less exp is no normal number, and 0."""


def long(value: int) -> ir.Constant:
    """A constant of 64 bits."""
    return ir.Constant(LONG, value)


def ints(value: int) -> ir.Constant:
    """A constant vector of i32 with a number in all lanes."""
    return ir.Constant(INTS, [value] * LANES)


def floats(value: float) -> ir.Constant:
    """A constant vector of f32 with a number in all lanes."""
    return ir.Constant(FLOATS, [value] * LANES)


def vectors_of(size: int) -> int:
    """How many vectors a row has."""
    return -(-size // LANES)


def lanes_of(size: int) -> list[tuple[int, int]]:
    """Where the vectors of a row of f32 begin, in bytes, and how many of their lanes there are."""
    return [(start * ITEM, min(LANES, size - start)) for start in range(0, size, LANES)]


def _suffix(type: ir.Type) -> str:
    """Of the names of LLVM's functions of numbers, and of vectors of these."""
    many, element = (f"v{type.count}", type.element) if isinstance(type, ir.VectorType) else ("", type)
    return f"{many}i{element.width}" if isinstance(element, ir.IntType) else f"{many}f{64 if element == DOUBLE else 32}"


def called(b: ir.IRBuilder, name: str, type: ir.Type, *arguments: Any) -> Any:
    """What one of LLVM's functions gives, by its name and the type of that."""
    function = b.module.globals.get(name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(type, [own.type for own in arguments]), name)
    return b.call(function, arguments)


def applied(b: ir.IRBuilder, name: str, *given: Any) -> Any:
    """What one of LLVM's functions makes of numbers, or of vectors of these, of one type."""
    type = given[0].type
    return called(b, f"llvm.{name}.{_suffix(type)}", type, *given)


class Code:
    """The code of a function in the making. Addresses are u64."""

    def __init__(self, function: ir.Function) -> None:
        self.b = ir.IRBuilder(function.append_basic_block())

    def at(self, address: Any, number: Any, step: Any) -> Any:
        """The address of what has a number among things that lie so many bytes apart."""
        return self.b.add(address, self.b.mul(number, step if isinstance(step, ir.Value) else long(step)))

    def load(self, address: Any, type: ir.Type, align: int = 4) -> Any:
        """What lies at an address that is a multiple of `align` bytes."""
        value = self.b.load(self.b.inttoptr(address, type.as_pointer()))
        value.align = align
        return value

    def store(self, value: Any, address: Any) -> None:
        """Write to an address that is a multiple of 4 bytes."""
        self.put(value, address, None)

    def some(self, address: Any, type: ir.VectorType, inside: Any, align: int | None = None) -> Any:
        """The lanes of a vector in memory that are `inside`, zeros for others, which are not read; all where it is
        None."""
        own = align or (4 if type is FLOATS else 1)
        if inside is None:
            return self.load(address, type, own)
        pointer = self.b.inttoptr(address, type.as_pointer())
        arguments = pointer, ir.Constant(INT, own), inside, ir.Constant(type, None)
        return self.call(f"llvm.masked.load.{_suffix(type)}.p0", type, *arguments)

    def put(self, value: Any, address: Any, inside: Any, align: int = 4) -> None:
        """Store the lanes of a vector that are `inside`; nothing is written for others. None are all."""
        pointer = self.b.inttoptr(address, value.type.as_pointer())
        if inside is None:
            self.b.store(value, pointer).align = align
            return
        arguments = value, pointer, ir.Constant(INT, align), inside
        self.call(f"llvm.masked.store.{_suffix(value.type)}.p0", ir.VoidType(), *arguments)

    def read(self, address: Any, lanes: int) -> Any:
        """The first lanes of a vector in memory, zeros for the others, which are not read."""
        if lanes == LANES:
            return self.load(address, FLOATS)
        type = ir.VectorType(FLOAT, lanes)
        order = ir.Constant(INTS, [min(lane, lanes) for lane in range(LANES)])
        return self.b.shuffle_vector(self.load(address, type), ir.Constant(type, None), order)

    def write(self, value: Any, address: Any, lanes: int) -> None:
        """Store the first lanes of a vector."""
        if lanes < LANES:
            value = self.b.shuffle_vector(value, value, ir.Constant(ir.VectorType(INT, lanes), list(range(lanes))))
        self.store(value, address)

    def prefetch(self, address: Any, *, near: bool = True) -> None:
        """Have a line brought into the cache, the first one if it is to be `near`; where there is no memory that does
        no harm."""
        hints = [ir.Constant(INT, value) for value in (0, 3 if near else 2, 1)]
        self.call("llvm.prefetch.p0", ir.VoidType(), self.b.inttoptr(address, BYTE.as_pointer()), *hints)

    def least(self, one: Any, other: Any) -> Any:
        """The smaller of two u64."""
        return self.b.select(self.b.icmp_unsigned("<", one, other), one, other)

    def most(self, one: Any, other: Any) -> Any:
        """The larger of two u64."""
        return self.b.select(self.b.icmp_unsigned("<", one, other), other, one)

    def greatest(self, one: Any, other: Any) -> Any:
        """The greater float of two; the other one where the first is none."""
        return self.b.select(self.b.fcmp_ordered(">", one, other), one, other)

    def blocks(self, count: Any, size: Any) -> Any:
        """How many blocks of a size there are; the last one may be smaller."""
        return self.b.udiv(self.b.add(count, self.b.sub(size, long(1))), size)

    def splat(self, value: Any, lanes: int = LANES) -> Any:
        """A vector with a number in all lanes."""
        nothing = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
        first = self.b.insert_element(nothing, value, ir.Constant(INT, 0))
        return self.b.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INT, lanes), None))

    def first_lanes(self, count: Any) -> Any:
        """Which lanes are among the first `count`, a u64."""
        return self.b.icmp_signed("<", NUMBERS, self.splat(self.b.trunc(count, INT)))

    def fma(self, one: Any, other: Any, total: Any) -> Any:
        """one * other + total, rounded once where the processor has that."""
        return self.applied("fmuladd", one, other, total)

    def sum(self, vector: Any) -> Any:
        """The sum of all lanes, added up in any order."""
        total = self.reduced("fadd", vector, ir.Constant(vector.type.element, 0.0))
        total.fastmath.add("reassoc")
        return total

    def sums(self, vectors: Values, lanes: int) -> Any:
        """Sums of `lanes` lanes that follow one another, for each vector in turn, until there is one vector: each sum
        is still spread over as many lanes less as there were vectors. Vectors are a power of 2."""
        left, width = list(vectors), vectors[0].type.count
        while len(left) > 1:
            half = lanes // 2
            low = [start + n for start in range(0, 2 * width, lanes) for n in range(half)]
            order = [ir.Constant(ir.VectorType(INT, width), [n + more for n in low]) for more in (0, half)]
            left = [
                self.b.fadd(*(self.b.shuffle_vector(one, other, own) for own in order))
                for one, other in zip(left[::2], left[1::2], strict=True)
            ]
            lanes = half
        return left[0]

    def transposed(self, vectors: Values) -> Values:
        """Of 16 vectors the first lanes, then the second ones, and so on; of fewer, a power of 2, those of each so many
        lanes: halves of pairs that are ever nearer change places."""
        made, width = list(vectors), len(vectors) // 2
        while width:
            low = [LANES + lane - width if lane & width else lane for lane in range(LANES)]
            for n in (n for n in range(len(made)) if not n & width):
                pair = made[n], made[n + width]
                for place, lanes in ((n, low), (n + width, [lane + width for lane in low])):
                    made[place] = self.b.shuffle_vector(*pair, ir.Constant(INTS, lanes))
            width //= 2
        return made

    def peak(self, vector: Any) -> Any:
        """The greatest lane of a vector of numbers."""
        return self.reduced("fmax", vector)

    def reduced(self, how: str, vector: Any, *before: Any) -> Any:
        """What all lanes make together; of floats that are added up, behind what is `before` them."""
        made = self.call(f"llvm.vector.reduce.{how}.{_suffix(vector.type)}", vector.type.element, *before, vector)
        if how in ("fmin", "fmax"):  # of lanes that are no NaN
            made.fastmath.add("nnan")
        return made

    def polynomial(self, factors: Sequence[float], x: Any) -> Any:
        """That of a vector; the constant factor comes last."""
        first, *others = factors
        total = floats(first)
        for factor in others:
            total = self.fma(total, x, floats(factor))
        return total

    def exp(self, vector: Any) -> Any:
        """exp of numbers up to 105, within 2 units in the last place, as are those too small for a normal number; of
        -inf it is 0, of NaN it is NaN."""
        b = self.b
        nothing = b.fcmp_ordered("<", vector, floats(_LOWEST))
        result, number = self._power(b.select(nothing, floats(0.0), vector))
        half = b.ashr(number, ints(1))
        for part in (half, b.sub(number, half)):  # 2**number may be too small where the product is not
            result = b.fmul(result, self._power_of_two(part))
        return b.select(nothing, floats(0.0), result)

    def decay(self, vector: Any) -> Any:
        """exp of numbers up to 0, within 2 units in the last place, and 0 where that is no normal number: beside a sum
        it is nothing, and some processors take a hundred times as long to compute with it; of NaN it is NaN."""
        b = self.b
        nothing = b.fcmp_ordered("<", vector, floats(_LEAST))
        result, number = self._power(b.select(nothing, floats(0.0), vector))
        return b.select(nothing, floats(0.0), b.fmul(result, self._power_of_two(number)))

    def rough_decay(self, vector: Any) -> Any:
        """The same within 3e-6 of it, for what is rounded to bf16; for 0 it is 1."""
        b = self.b
        power = b.fmul(vector, floats(_LOG2_E))
        shifted = b.fadd(power, floats(_MAGIC))
        made = self.polynomial(_EXP2, b.fsub(power, b.fsub(shifted, floats(_MAGIC))))
        bits = b.add(b.bitcast(made, INTS), b.shl(b.bitcast(shifted, INTS), ints(23)))
        return b.select(b.fcmp_ordered("<", vector, floats(_LEAST + 1)), floats(0.0), b.bitcast(bits, FLOATS))

    def _power(self, x: Any) -> tuple[Any, Any]:
        """A number between sqrt(1/2) and sqrt(2), and the power of 2 with which that is exp(x)."""
        b = self.b
        power = self.fma(x, floats(_LOG2_E), floats(_MAGIC))
        whole = b.fsub(power, floats(_MAGIC))
        rest = self.fma(whole, floats(-_LN2[1]), self.fma(whole, floats(-_LN2[0]), x))
        total = self.polynomial(_EXP, rest)
        result = self.fma(total, b.fmul(rest, rest), b.fadd(rest, floats(1.0)))
        return result, b.sub(b.bitcast(power, INTS), b.bitcast(floats(_MAGIC), INTS))

    def _power_of_two(self, number: Any) -> Any:
        return self.b.bitcast(self.b.shl(self.b.add(number, ints(127)), ints(23)), FLOATS)

    def log(self, vector: Any) -> Any:
        """log of normal numbers above 0, within 2 units in the last place; of NaN it is NaN."""
        b = self.b
        bits = b.bitcast(vector, INTS)
        part = b.bitcast(b.or_(b.and_(bits, ints(0x7FFFFF)), ints(0x3F000000)), FLOATS)  # between 1/2 and 1
        small = b.fcmp_ordered("<", part, floats(0.5**0.5))
        power = b.sub(b.lshr(bits, ints(23)), b.select(small, ints(127), ints(126)))
        rest = b.fsub(b.select(small, b.fadd(part, part), part), floats(1.0))
        total = self.polynomial(_LOG, rest)
        square, whole = b.fmul(rest, rest), b.sitofp(power, FLOATS)
        small_part = self.fma(whole, floats(_LN2[1]), b.fmul(total, b.fmul(rest, square)))
        made = b.fadd(rest, self.fma(square, floats(-0.5), small_part))
        return b.select(b.fcmp_unordered("uno", vector, vector), vector, self.fma(whole, floats(_LN2[0]), made))

    def call(self, name: str, type: ir.Type, *arguments: Any) -> Any:
        return called(self.b, name, type, *arguments)

    def applied(self, name: str, *given: Any) -> Any:
        return applied(self.b, name, *given)

    def repeat(self, body: Callable[..., tuple[Any, Values]], *before: Any) -> Values:
        """The values after `body` has made those of the next time of the last ones, once and then as long as what it
        gives with them is true."""
        b = self.b
        start, again, end = b.block, b.append_basic_block(), b.append_basic_block()
        b.branch(again)
        b.position_at_end(again)
        held = [b.phi(value.type) for value in before]
        for value, first in zip(held, before, strict=True):
            value.add_incoming(first, start)
        more, made = body(*held)
        for value, new in zip(held, made, strict=True):
            value.add_incoming(new, b.block)
        b.cbranch(more, again, end)
        b.position_at_end(end)
        return made

    def loop(self, count: Any, body: Callable[..., Values | None], *before: Any) -> Values:
        """As `repeat`, so many times, at least once: `body` is given the number of the time first."""

        def step(number: Any, *held: Any) -> tuple[Any, Values]:
            made = body(number, *held) or ()
            following = self.b.add(number, long(1))
            return self.b.icmp_unsigned("<", following, count), (following, *made)

        return self.repeat(step, long(0), *before)[1:]

    def times(self, count: Any, body: Callable[[Any], None]) -> None:
        """What `body` does `count` times, which may be none; values that it changes are in variables."""
        with self.b.if_then(self.b.icmp_unsigned("!=", count, long(0))):
            self.loop(count, body)

    def variable(self, value: Any) -> Variable:
        """A value that changes."""
        with self.b.goto_entry_block():
            place = self.b.alloca(value.type)
        self.b.store(value, place)
        return Variable(self.b, place)

    def number(self, address: Any, size: int) -> Any:
        """A signed integer of so many bytes, as an i64."""
        value = self.load(address, ir.IntType(8 * size), 1)
        return value if size == 8 else self.b.sext(value, LONG)

    def copy(self, source: Any, target: Any, count: Any) -> None:
        """Copy so many bytes to where there are others."""
        b, whole = self.b, ir.VectorType(BYTE, 64)
        lines = b.lshr(count, long(6))

        def line(number: Any) -> None:
            place = b.shl(number, long(6))
            self.keep(self.load(b.add(source, place), whole, 1), b.add(target, place))

        def byte(number: Any) -> None:
            place = b.add(b.shl(lines, long(6)), number)
            self.keep(self.load(b.add(source, place), BYTE, 1), b.add(target, place))

        self.times(lines, line)
        self.times(b.and_(count, long(63)), byte)

    def keep(self, value: Any, address: Any) -> None:
        """Store a value at any address, aligned or not."""
        self.put(value, address, None, 1)

    def share(self, next: Any, step: Any, count: Any, body: Callable[[Any], None]) -> None:
        """What `body` does with every `step`-th number below `count`: each is taken by one of the threads that run
        this, from the u64 that `next` points to on."""
        b = self.b
        take, taken, end = (b.append_basic_block() for _ in range(3))
        b.branch(take)
        b.position_at_end(take)
        number = b.atomic_rmw("add", next, step, "monotonic")
        b.cbranch(b.icmp_unsigned("<", number, count), taken, end)
        b.position_at_end(taken)
        body(number)
        b.branch(take)
        b.position_at_end(end)


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that changes as code goes on. LLVM's passes put it in a register."""

    b: ir.IRBuilder
    place: Any

    def get(self) -> Any:
        return self.b.load(self.place)

    def set(self, value: Any) -> None:
        self.b.store(value, self.place)

    def add(self, value: Any) -> None:
        self.set(self.b.add(self.get(), value))


@dataclass(frozen=True, slots=True)
class Form:
    """What a kernel is given: values of 64 bits by these names, one after the other in memory, and first the number of
    the item that a thread takes next, 0 before a call."""

    names: tuple[str, ...]

    def place(self, name: str) -> int:
        """Which of the values in memory has a name: a call has to set anew those that a kernel changes."""
        return 1 + self.names.index(name)

    def of(self, **values: int) -> Array:
        """The arguments of a call."""
        return np.array([0, *map(values.__getitem__, self.names)], np.uint64)

    def loaded(self, c: Code, arguments: Any) -> dict[str, Any]:
        """The values, of a pointer to arguments."""
        places = {name: c.b.gep(arguments, [ir.Constant(INT, n)]) for n, name in enumerate(self.names, 1)}
        return {name: c.b.load(place) for name, place in places.items()}

    def claimed(self, c: Code, arguments: Any, at: dict[str, Any]) -> Any:
        """Where the thread that runs this has `room_size` bytes for itself: at `room`, which moves behind them."""
        place = c.b.gep(arguments, [ir.Constant(INT, self.place("room"))])
        return c.b.atomic_rmw("add", place, at["room_size"], "monotonic")

    def shared(self, function: ir.Function, body: Callable[[Code, dict[str, Any], Any], None]) -> None:
        """Write a function of a pointer to arguments, which does what `body` writes for all items below `items`, given
        the code in the making, the arguments and the number of an item. Threads that run it share the items."""
        c, (arguments,) = Code(function), function.args
        at = self.loaded(c, arguments)
        c.share(arguments, long(1), at["items"], lambda item: body(c, at, item))
        c.b.ret_void()

    def address(self, kind: Hashable, body: Callable[[Code, dict[str, Any], Any], None], *, passes: bool = True) -> int:
        """Where the machine code of such a function lies, as `compiled` has it. Safe for threads."""
        return compiled(kind, lambda function: self.shared(function, body), passes=passes)
