"""What blocks of numbers are like and what their words add up to, found in one look at each element."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import DOUBLE, INT, LONG, SHORT, Code, Form, Variable, long
from irrun.engines.compiled.compiler import addresses
from irrun.engines.compiled.decoding import is_possible
from irrun.engines.compiled.looking import KINDS, Kind, Look
from irrun.records import dataclass
from irrun.spec.dtypes import FLOAT_FORMATS

FORM = Form(("items", "count", "block", "data", "factors", "target"))
"""`items` are blocks of `block` elements, of the `count` at `data`. Of each, as many values of 8 bytes go to `target`
as there are names. `factors` are u64, as many as a block and a line of 64 bytes have words of 8 bytes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Magnitudes that are counted, as the bits of floats: those above `largest_f16`, below `normal` and not above the
    others."""

    largest_f16: int
    normal: int
    flushed_f16: int
    flushed_bf16: int


def addresses_of(type: str, limits: Limits, names: tuple[str, ...]) -> tuple[int, int] | None:
    """Where two functions lie, each of a pointer to what FORM has: one looks at the elements of blocks, the other makes
    the first row of what was found that of all blocks, but for its sum. None where there is no such code. Safe for
    threads.

    By `names` there are of a block the `sum` of its words times their factors, the last one filled up with zeros, and
    of the number of its bytes, modulo 2**64; how many numbers are `finite`, and of these the `mean`, the sum of the
    `squares` of how far they are from it, `minimum`, `maximum` and the magnitude that is the `smallest` but 0; and how
    many are `zeros`, `nan`, `positive` and `negative` infinity, `subnormal`, `beyond` the largest f16, `flushed_f16`
    and `flushed_bf16`, made 0 by such a type. The mean and the squares are f64, as are extremes and the magnitude of
    floats, infinite where there are none; those of integers are integers, and the magnitude is less by 1.
    """
    if type not in KINDS or not is_possible(type) or sys.byteorder != "little":
        return None
    kind, form = KINDS[type], ir.FunctionType(ir.VoidType(), [LONG.as_pointer()])

    def write(look: ir.Function, merge: ir.Function) -> None:
        FORM.shared(look, partial(_block, kind, limits, names))
        _merge(merge, kind, names)

    look, merge = addresses(("measures", type, limits, names), {"look": form, "merge": form}, write)
    return look, merge


def _block(kind: Kind, limits: Limits, names: tuple[str, ...], c: Code, at: dict[str, Any], item: Any) -> None:
    first = c.b.mul(item, at["block"])
    count = c.least(at["block"], c.b.sub(at["count"], first))
    look = Look(c, kind, c.at(at["data"], first, kind.bytes), count, at["factors"])
    found = _integers(look) if kind.real is None else _Floats(look, limits).found()
    row = c.at(at["target"], item, 8 * len(names))
    for number, name in enumerate(names):
        c.store(found.get(name, long(0)), c.b.add(row, long(8 * number)))


def _merge(function: ir.Function, kind: Kind, names: tuple[str, ...]) -> None:
    c = Code(function)
    b, (arguments,) = c.b, function.args
    items, target = (b.load(b.gep(arguments, [ir.Constant(INT, FORM.place(name))])) for name in ("items", "target"))
    reals = {"mean", "squares"} | ({"minimum", "maximum", "smallest"} if kind.real else set())
    types = {name: DOUBLE if name in reals else LONG for name in names}
    whole = {name: c.variable(c.load(b.add(target, long(8 * n)), types[name])) for n, name in enumerate(names)}

    def row(number: Any) -> None:
        place = c.at(target, b.add(number, long(1)), 8 * len(names))
        own = {name: c.load(b.add(place, long(8 * n)), types[name]) for n, name in enumerate(names)}
        before, more = whole["finite"].get(), own["finite"]
        weight = b.fdiv(b.uitofp(more, DOUBLE), b.uitofp(c.most(b.add(before, more), long(1)), DOUBLE))
        apart = b.fsub(own["mean"], whole["mean"].get())
        shift = b.fmul(apart, weight)
        between = b.fmul(b.fmul(apart, shift), b.uitofp(before, DOUBLE))
        whole["mean"].set(b.fadd(whole["mean"].get(), shift))
        whole["squares"].set(b.fadd(whole["squares"].get(), b.fadd(own["squares"], between)))
        for name, sign in (("minimum", "<"), ("maximum", ">"), ("smallest", "<")):
            compare = b.fcmp_ordered if kind.real else b.icmp_signed if kind.signed else b.icmp_unsigned
            if name == "smallest" and not kind.real:
                compare = b.icmp_unsigned
            whole[name].set(b.select(compare(sign, own[name], whole[name].get()), own[name], whole[name].get()))
        for name in names:
            if name not in (*reals, "sum", "minimum", "maximum", "smallest"):
                whole[name].add(own[name])

    c.times(b.sub(items, long(1)), row)
    for n, name in enumerate(names):
        c.store(whole[name].get(), b.add(target, long(8 * n)))
    b.ret_void()


class _Floats:
    """The code that looks at floats: as if all were finite and none small, and once more where some are not."""

    def __init__(self, look: Look, limits: Limits) -> None:
        c, b, kind = look.c, look.b, look.kind
        self._look, self._limits, self._reals = look, limits, ir.VectorType(kind.real, look.lanes)
        self._infinite = look.all(0x7F800000 if kind.bits == INT else 0x7FF0000000000000)
        self._magnitude = look.all((1 << kind.bits.width - 1) - 1)
        pivot = self._bits(look.splat(look.first(lambda held: self._is_finite(self._bits(held)))))
        self._pivot = b.select(self._is_finite(pivot), pivot, look.all(0))
        self._edge = b.bitcast(self._pivot, self._reals)
        self._least, self._most = c.variable(self._edge), c.variable(self._edge)
        look.center(self._double(look.lane(self._edge)))

    def found(self) -> dict[str, Any]:
        look, b, kind = self._look, self._look.b, self._look.kind
        less, size, nonzero = self._sizes()
        tallies = self._tallies(less, size)
        with b.if_then(b.icmp_unsigned(">=", size, look.lane(self._infinite))):
            self._begin_anew()
        counts = {name: look.counted(tally) for name, tally in tallies.items()}
        finite = b.sub(look.count, counts["outside"])
        some = b.icmp_unsigned("!=", finite, long(0))
        none, endless = ir.Constant(DOUBLE, 0.0), ir.Constant(DOUBLE, float("inf"))
        smallest = self._double(b.bitcast(b.add(less, ir.Constant(kind.bits, 1)), kind.real))
        lowest, highest = (
            b.fadd(self._double(look.c.reduced(how, value.get())), none)
            for how, value in (("fmin", self._least), ("fmax", self._most))
        )  # -0.0 becomes 0.0
        return {
            "sum": look.hashed(),
            "finite": finite,
            **look.moments(finite),
            "minimum": b.select(some, lowest, endless),
            "maximum": b.select(some, highest, ir.Constant(DOUBLE, float("-inf"))),
            "smallest": b.select(b.fcmp_ordered(">", smallest, none), smallest, endless),
            "zeros": b.sub(look.count, look.counted(nonzero)),
            "negative": b.sub(b.sub(counts["outside"], counts["nan"]), counts["positive"]),
            **{name: counts[name] for name in ("nan", "positive", "subnormal", "flushed_f16", "flushed_bf16")},
            "beyond": b.sub(counts["beyond"], counts["outside"]),
        }

    def _sizes(self) -> tuple[Any, Any, Variable]:
        """The bits of the smallest magnitude but 0, less 1, those of the largest, and how many are not 0, found as all
        floats are taken into account."""
        look, c, b = self._look, self._look.c, self._look.b
        smallest, largest = c.variable(look.all((1 << look.kind.bits.width) - 1)), c.variable(look.all(0))
        one, nonzero = look.all(1), look.tally()

        def body(held: Any, number: Any, inside: Any) -> None:
            look.hash(held, number)
            bits = self._bits(held)
            self._take(bits, inside)
            size = b.and_(bits, self._magnitude)
            less = b.sub(size, one)  # of 0 the largest of all
            look.extend(smallest, b.icmp_unsigned("<", less, smallest.get()), less)
            look.extend(largest, b.icmp_unsigned(">", size, largest.get()), size)
            nonzero.add(c.least(size, one))

        look.each(body)
        return c.reduced("umin", smallest.get()), c.reduced("umax", largest.get()), nonzero

    def _tallies(self, less: Any, size: Any) -> dict[str, Variable]:
        """How many there are of each kind; by the smallest and the largest magnitude there may be none of all."""
        look, b, limits, kind = self._look, self._look.b, self._limits, self._look.kind
        names = ("outside", "nan", "positive", "beyond", "subnormal", "flushed_f16", "flushed_bf16")
        tallies = {name: look.tally() for name in names}

        def body(held: Any, *_: Any) -> None:
            bits = self._bits(held)
            size = b.and_(bits, self._magnitude)
            less = b.sub(size, look.all(1))
            for name, condition in {
                "outside": b.icmp_unsigned(">=", size, self._infinite),
                "nan": b.icmp_unsigned(">", size, self._infinite),
                "positive": b.icmp_unsigned("==", bits, self._infinite),
                "beyond": b.icmp_unsigned(">", size, look.all(limits.largest_f16)),
                "subnormal": b.icmp_unsigned("<", less, look.all(limits.normal - 1)),
                "flushed_f16": b.icmp_unsigned("<", less, look.all(limits.flushed_f16)),
                "flushed_bf16": b.icmp_unsigned("<", less, look.all(limits.flushed_bf16)),
            }.items():
                look.count_up(tallies[name], condition)

        few = max(limits.normal - 1, limits.flushed_f16, limits.flushed_bf16)
        large = b.icmp_unsigned(">", size, ir.Constant(kind.bits, limits.largest_f16))
        with b.if_then(b.or_(large, b.icmp_unsigned("<", less, ir.Constant(kind.bits, few)))):
            look.each(body)
        return tallies

    def _begin_anew(self) -> None:
        """Take those into account that are finite, and forget what was."""
        look, b = self._look, self._look.b
        for variable in (self._least, self._most):
            variable.set(self._edge)
        look.center(self._double(look.lane(self._edge)))

        def body(held: Any, _: Any, inside: Any) -> None:
            bits = self._bits(held)
            self._take(bits, self._is_finite(bits) if inside is None else b.and_(self._is_finite(bits), inside))

        look.each(body)

    def _take(self, bits: Any, taken: Any) -> None:
        """Take finite numbers into account, those of all lanes where `taken` is None."""
        look, b = self._look, self._look.b
        numbers = b.bitcast(bits if taken is None else b.select(taken, bits, self._pivot), self._reals)
        look.add(self._double(numbers))
        look.extend(self._least, b.fcmp_ordered("<", numbers, self._least.get()), numbers)
        look.extend(self._most, b.fcmp_ordered(">", numbers, self._most.get()), numbers)

    def _bits(self, held: Any) -> Any:
        look, b = self._look, self._look.b
        if look.kind.held == SHORT:
            return b.shl(b.zext(held, look.bits), look.all(16))
        return b.bitcast(held if look.kind.held == look.kind.real else b.fpext(held, self._reals), look.bits)

    def _is_finite(self, bits: Any) -> Any:
        return self._look.b.icmp_unsigned("<", self._look.b.and_(bits, self._magnitude), self._infinite)

    def _double(self, value: Any) -> Any:
        if self._look.kind.real == DOUBLE:
            return value
        return self._look.b.fpext(value, self._look.doubles if value.type == self._reals else DOUBLE)


def _integers(look: Look) -> dict[str, Any]:
    c, b, kind = look.c, look.b, look.kind
    zero, one, none = look.all(0), look.all(1), look.all((1 << kind.bits.width) - 1)
    convert, compare, sign = (b.sitofp, b.icmp_signed, "s") if kind.signed else (b.uitofp, b.icmp_unsigned, "u")
    first = c.load(look.data, kind.held, 1)
    pivot = look.splat(first)
    look.center(convert(first, DOUBLE))
    least, most, smallest = c.variable(pivot), c.variable(pivot), c.variable(none)
    nonzero, beyond = look.tally(), look.tally()

    def body(held: Any, number: Any, inside: Any) -> None:
        look.hash(held, number)
        numbers = held if inside is None else b.select(inside, held, pivot)
        look.add(convert(numbers, look.doubles))
        look.extend(least, compare("<", numbers, least.get()), numbers)
        look.extend(most, compare(">", numbers, most.get()), numbers)
        size = b.select(b.icmp_signed("<", held, zero), b.neg(held), held) if kind.signed else held
        less = b.sub(size, one)  # of 0 the largest of all
        look.extend(smallest, b.icmp_unsigned("<", less, smallest.get()), less)
        nonzero.add(c.least(size, one))
        look.count_up(beyond, b.icmp_unsigned(">", size, look.all(int(FLOAT_FORMATS["f16"].largest))))

    look.each(body)
    found = [c.reduced(f"{sign}min", least.get()), c.reduced(f"{sign}max", most.get())]
    less = c.reduced("umin", smallest.get())
    if kind.bits != LONG:
        found = [(b.sext if kind.signed else b.zext)(value, LONG) for value in found]
        less = b.select(b.icmp_unsigned("==", less, look.lane(none)), long(-1), b.zext(less, LONG))
    return {
        "sum": look.hashed(),
        "finite": look.count,
        **look.moments(look.count),
        **dict(zip(("minimum", "maximum", "smallest"), (*found, less), strict=True)),
        "zeros": b.sub(look.count, look.counted(nonzero)),
        "beyond": look.counted(beyond),
    }
