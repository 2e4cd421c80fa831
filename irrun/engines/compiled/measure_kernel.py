"""What blocks of numbers are like and what their words add up to, found in one look at each element."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import DOUBLE, INT, LONG, SHORT, Code, Form, long
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
    found = _integers(look) if kind.real is None else _floats(look, limits)
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


def _floats(look: Look, limits: Limits) -> dict[str, Any]:
    c, b, kind = look.c, look.b, look.kind
    width, reals = kind.bits.width, ir.VectorType(kind.real, look.lanes)
    infinite = look.all(0x7F800000 if kind.bits == INT else 0x7FF0000000000000)
    magnitude, one = look.all((1 << width - 1) - 1), look.all(1)

    def bits_of(held: Any) -> Any:
        if kind.held == SHORT:
            return b.shl(b.zext(held, look.bits), look.all(16))
        return b.bitcast(held if kind.held == kind.real else b.fpext(held, reals), look.bits)

    def is_finite(bits: Any) -> Any:
        return b.icmp_unsigned("<", b.and_(bits, magnitude), infinite)

    def double(value: Any) -> Any:
        return value if kind.real == DOUBLE else b.fpext(value, look.doubles if value.type == reals else DOUBLE)

    pivot = bits_of(look.splat(look.first(lambda held: is_finite(bits_of(held)))))
    pivot = b.select(is_finite(pivot), pivot, look.all(0))
    edge = b.bitcast(pivot, reals)
    least, most = c.variable(edge), c.variable(edge)
    look.center(double(look.lane(edge)))
    smallest, largest, nonzero = c.variable(look.all((1 << width) - 1)), c.variable(look.all(0)), look.tally()

    def take(bits: Any, taken: Any) -> None:
        """Take finite numbers into account, those of all lanes where `taken` is None."""
        numbers = b.bitcast(bits if taken is None else b.select(taken, bits, pivot), reals)
        look.add(double(numbers))
        look.extend(least, b.fcmp_ordered("<", numbers, least.get()), numbers)
        look.extend(most, b.fcmp_ordered(">", numbers, most.get()), numbers)

    def first_look(held: Any, number: Any, inside: Any) -> None:
        look.hash(held, number)
        bits = bits_of(held)
        take(bits, inside)
        size = b.and_(bits, magnitude)
        less = b.sub(size, one)  # of 0 the largest of all
        look.extend(smallest, b.icmp_unsigned("<", less, smallest.get()), less)
        look.extend(largest, b.icmp_unsigned(">", size, largest.get()), size)
        nonzero.add(c.least(size, one))

    look.each(first_look)
    less, size = look.reduced("umin", smallest.get()), look.reduced("umax", largest.get())
    counted = ("outside", "nan", "positive", "beyond", "subnormal", "flushed_f16", "flushed_bf16")
    tallies = {name: look.tally() for name in counted}

    def count(held: Any, *_: Any) -> None:
        bits = bits_of(held)
        size = b.and_(bits, magnitude)
        less = b.sub(size, one)
        for name, condition in {
            "outside": b.icmp_unsigned(">=", size, infinite),
            "nan": b.icmp_unsigned(">", size, infinite),
            "positive": b.icmp_unsigned("==", bits, infinite),
            "beyond": b.icmp_unsigned(">", size, look.all(limits.largest_f16)),
            "subnormal": b.icmp_unsigned("<", less, look.all(limits.normal - 1)),
            "flushed_f16": b.icmp_unsigned("<", less, look.all(limits.flushed_f16)),
            "flushed_bf16": b.icmp_unsigned("<", less, look.all(limits.flushed_bf16)),
        }.items():
            look.count_up(tallies[name], condition)

    def careful_look(held: Any, _: Any, inside: Any) -> None:
        bits = bits_of(held)
        take(bits, is_finite(bits) if inside is None else b.and_(is_finite(bits), inside))

    few = max(limits.normal - 1, limits.flushed_f16, limits.flushed_bf16)
    large = b.icmp_unsigned(">", size, ir.Constant(kind.bits, limits.largest_f16))
    with b.if_then(b.or_(large, b.icmp_unsigned("<", less, ir.Constant(kind.bits, few)))):
        look.each(count)
    with b.if_then(b.icmp_unsigned(">=", size, look.lane(infinite))):
        for variable in (least, most):
            variable.set(edge)
        look.center(double(look.lane(edge)))
        look.each(careful_look)
    counts = {name: look.counted(tally) for name, tally in tallies.items()}
    finite = b.sub(look.count, counts["outside"])
    some = b.icmp_unsigned("!=", finite, long(0))
    none, endless = ir.Constant(DOUBLE, 0.0), ir.Constant(DOUBLE, float("inf"))
    size = double(b.bitcast(b.add(less, ir.Constant(kind.bits, 1)), kind.real))
    lowest, highest = (
        b.fadd(double(look.reduced(how, value.get())), none) for how, value in (("fmin", least), ("fmax", most))
    )  # -0.0 becomes 0.0
    return {
        "sum": look.hashed(),
        "finite": finite,
        **look.moments(finite),
        "minimum": b.select(some, lowest, endless),
        "maximum": b.select(some, highest, ir.Constant(DOUBLE, float("-inf"))),
        "smallest": b.select(b.fcmp_ordered(">", size, none), size, endless),
        "zeros": b.sub(look.count, look.counted(nonzero)),
        "negative": b.sub(b.sub(counts["outside"], counts["nan"]), counts["positive"]),
        **{name: counts[name] for name in ("nan", "positive", "subnormal", "flushed_f16", "flushed_bf16")},
        "beyond": b.sub(counts["beyond"], counts["outside"]),
    }


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
    found = [look.reduced(f"{sign}min", least.get()), look.reduced(f"{sign}max", most.get())]
    less = look.reduced("umin", smallest.get())
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
