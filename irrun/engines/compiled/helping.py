"""How threads work on a call of a kernel together: functions that need no interpreter, so that a call costs little."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import BOOL, INT, LINE, LONG, Code, Values, called, long
from irrun.engines.compiled.compiler import addresses
from irrun.engines.placement import is_x86

CYCLES_OF_A_LOOK = 100
"""About, with the pause in it."""

POLITE = 300_000
"""Cycles after which who looks for work lets others have the processor between two looks."""


STATE = 5 * 64
"""Bytes that those who lead and help share."""

YIELDING = 4 * 64 // 8
"""The place among the u64 of these of the system's function that lets others have the processor, 0 where there is
none."""


def helping() -> tuple[int, int, int]:
    """Where three functions lie. `lead` and `help` are given u64 that threads share: the number of calls and ends of
    calls, then, each 64 bytes on, how many helpers are at work, the kernel and its arguments, and what is YIELDING.

    `lead(shared, kernel, arguments)` runs a kernel with those that help, until it is through and none is at work.
    `help(shared, last, patience)` helps with calls that it sees, until it has seen none for so many cycles of the
    processor's clock: it returns the number of the last one that it has helped with, and is given that the next time.

    `sequence(arguments)` is a kernel that runs others in turn: of all that run it, the first one leads, the others
    help. The arguments are u64: how many have come, whether all is done (both 0 before a call), how many kernels there
    are, and where they are told; 64 bytes on, the state that they share. What is told of each kernel is where it is,
    where its arguments are, of which the first one is made 0 ahead of it, where another one is, and what that is made.
    """
    kernel_type = ir.FunctionType(ir.VoidType(), [LONG])
    types = {
        "lead": ir.FunctionType(ir.VoidType(), [LONG] * 3),
        "help": ir.FunctionType(LONG, [LONG] * 3),
        "sequence": kernel_type,
    }

    def write(lead: ir.Function, help: ir.Function, sequence: ir.Function) -> None:
        _lead(lead, kernel_type)
        _help(help, kernel_type)
        _sequence(sequence, lead, help)

    lead, help, sequence = addresses("helping", types, write)
    return lead, help, sequence


def _shared(b: ir.IRBuilder, state: Any, number: int) -> Any:
    return b.inttoptr(b.add(state, long(64 * number)), LONG.as_pointer())


def _pause(b: ir.IRBuilder) -> None:
    if is_x86():
        called(b, "llvm.x86.sse2.pause", ir.VoidType())


def _yield(b: ir.IRBuilder, yielding: Any, waited: Any, most: int) -> None:
    """Let others have the processor where one has `waited` for more than `most`, and the system has a function for
    that."""
    with b.if_then(b.and_(b.icmp_unsigned(">", waited, long(most)), b.icmp_unsigned("!=", yielding, long(0)))):
        b.call(b.inttoptr(yielding, ir.FunctionType(INT, []).as_pointer()), [])


def _clock(b: ir.IRBuilder, before: Any) -> Any:
    """A number of cycles; other processors than x86 let no program read theirs, so that looks are counted there."""
    return called(b, "llvm.readcyclecounter", LONG) if is_x86() else b.add(before, long(CYCLES_OF_A_LOOK))


def _lead(function: ir.Function, kernel_type: ir.FunctionType) -> None:
    c = Code(function)
    b, (state, kernel, arguments) = c.b, function.args
    calls, working, code, given = (_shared(b, state, number) for number in range(4))
    b.store(kernel, code)
    b.store(arguments, given)
    b.atomic_rmw("add", calls, long(1), "seq_cst")
    b.call(b.inttoptr(kernel, kernel_type.as_pointer()), [arguments])
    b.atomic_rmw("add", calls, long(1), "seq_cst")
    yielding = b.load(_shared(b, state, YIELDING // 8))

    def look(looks: Any) -> tuple[Any, Values]:
        # who is at work may wait for this processor, which the scheduler gives nobody else in some of its modes
        _yield(b, yielding, looks, POLITE // CYCLES_OF_A_LOOK)
        _pause(b)
        return b.icmp_unsigned("!=", b.load_atomic(working, "seq_cst", 8), long(0)), (b.add(looks, long(1)),)

    c.repeat(look, long(0))
    b.ret_void()


def _help(function: ir.Function, kernel_type: ir.FunctionType) -> None:
    c = Code(function)
    b, (state, before, patience) = c.b, function.args
    calls, working, code, given = (_shared(b, state, number) for number in range(4))
    yielding, begun = b.load(_shared(b, state, YIELDING // 8)), _clock(b, long(0))

    def look(last: Any, since: Any, time: Any) -> tuple[Any, Values]:
        now = b.load_atomic(calls, "seq_cst", 8)
        fresh = b.and_(b.icmp_unsigned("!=", now, last), b.trunc(now, BOOL))  # an odd number is a call
        with b.if_else(fresh) as (found, idle):
            with found:
                b.atomic_rmw("add", working, long(1), "seq_cst")
                with b.if_then(b.icmp_unsigned("==", b.load_atomic(calls, "seq_cst", 8), now)):
                    b.call(b.inttoptr(b.load(code), kernel_type.as_pointer()), [b.load(given)])
                b.atomic_rmw("sub", working, long(1), "seq_cst")
                through = _clock(b, time)
                helped = b.block, (BOOL(1), now, through, through)
            with idle:
                _pause(b)
                later = _clock(b, time)
                waited = b.sub(later, since)
                _yield(b, yielding, waited, POLITE)
                waits = b.block, (b.icmp_unsigned("<=", waited, patience), last, since, later)
        more, *made = phis = [b.phi(type) for type in (BOOL, LONG, LONG, LONG)]
        for block, values in (helped, waits):
            for phi, value in zip(phis, values, strict=True):
                phi.add_incoming(value, block)
        return more, made

    b.ret(c.repeat(look, before, begun, begun)[0])


def _sequence(function: ir.Function, lead: ir.Function, help: ir.Function) -> None:
    c = Code(function)
    b, (arguments,) = c.b, function.args
    come, done, count, kernels = (b.add(arguments, long(8 * number)) for number in range(4))
    state = b.add(arguments, long(LINE))
    number = b.atomic_rmw("add", b.inttoptr(come, LONG.as_pointer()), long(1), "seq_cst")
    ended = b.inttoptr(done, LONG.as_pointer())

    def kernel(number: Any) -> None:
        place = c.at(c.load(kernels, LONG, 8), number, 32)
        address, given, counted, begin = (c.load(b.add(place, long(8 * n)), LONG, 8) for n in range(4))
        c.store(long(0), given)
        c.store(begin, counted)
        b.call(lead, [state, address, given])

    def look(last: Any) -> tuple[Any, Values]:
        helped = b.call(help, [state, last, long(0)])
        return b.icmp_unsigned("==", b.load_atomic(ended, "seq_cst", 8), long(0)), (helped,)

    with b.if_else(b.icmp_unsigned("==", number, long(0))) as (first, others):
        with first:
            c.loop(c.load(count, LONG, 8), kernel)
            b.store_atomic(long(1), ended, "seq_cst", 8)
        with others:
            c.repeat(look, long(0))
    b.ret_void()
