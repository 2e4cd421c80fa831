"""How threads work on a call of a kernel together: functions that need no interpreter, so that a call costs little."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import INT, LINE, LONG, Code, called, long
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


def _yield(b: ir.IRBuilder, yielding: Any, waited: Any, most: int, polite: ir.Block, wait: ir.Block) -> None:
    """Go on at `wait`: by way of `polite`, which lets others have the processor, where one has `waited` for more than
    `most`, and the system has a function for that."""
    often = b.and_(b.icmp_unsigned(">", waited, long(most)), b.icmp_unsigned("!=", yielding, long(0)))
    b.cbranch(often, polite, wait)
    b.position_at_end(polite)
    b.call(b.inttoptr(yielding, ir.FunctionType(INT, []).as_pointer()), [])
    b.branch(wait)


def _clock(b: ir.IRBuilder, before: Any) -> Any:
    """A number of cycles; other processors than x86 let no program read theirs, so that looks are counted there."""
    return called(b, "llvm.readcyclecounter", LONG) if is_x86() else b.add(before, long(CYCLES_OF_A_LOOK))


def _lead(function: ir.Function, kernel_type: ir.FunctionType) -> None:
    b = ir.IRBuilder(function.append_basic_block())
    state, kernel, arguments = function.args
    calls, working, code, given = (_shared(b, state, number) for number in range(4))
    b.store(kernel, code)
    b.store(arguments, given)
    b.atomic_rmw("add", calls, long(1), "seq_cst")
    b.call(b.inttoptr(kernel, kernel_type.as_pointer()), [arguments])
    b.atomic_rmw("add", calls, long(1), "seq_cst")
    begin, (wait, more, polite, end) = b.block, [b.append_basic_block() for _ in range(4)]
    b.branch(wait)
    b.position_at_end(wait)
    looks = b.phi(LONG)
    _pause(b)
    b.cbranch(b.icmp_unsigned("==", b.load_atomic(working, "seq_cst", 8), long(0)), end, more)
    b.position_at_end(more)
    # who is at work may wait for this processor, which the system's scheduler gives nobody else in some of its modes
    later, yielding = b.add(looks, long(1)), b.load(_shared(b, state, YIELDING // 8))
    _yield(b, yielding, later, POLITE // CYCLES_OF_A_LOOK, polite, wait)
    b.position_at_end(end)
    b.ret_void()
    for value, block in ((long(0), begin), (later, more), (later, polite)):
        looks.add_incoming(value, block)


def _help(function: ir.Function, kernel_type: ir.FunctionType) -> None:
    b = ir.IRBuilder(function.append_basic_block())
    state, before, patience = function.args
    calls, working, code, given = (_shared(b, state, number) for number in range(4))
    yielding = b.load(_shared(b, state, YIELDING // 8))
    start, begun = b.block, _clock(b, long(0))
    look, found, run, leave, idle, polite, wait, end = (b.append_basic_block() for _ in range(8))
    b.branch(look)
    b.position_at_end(look)
    last, since, time = b.phi(LONG), b.phi(LONG), b.phi(LONG)
    now = b.load_atomic(calls, "seq_cst", 8)
    fresh = b.and_(b.icmp_unsigned("!=", now, last), b.trunc(now, ir.IntType(1)))  # an odd number is a call
    b.cbranch(fresh, found, idle)
    b.position_at_end(found)
    b.atomic_rmw("add", working, long(1), "seq_cst")
    b.cbranch(b.icmp_unsigned("==", b.load_atomic(calls, "seq_cst", 8), now), run, leave)
    b.position_at_end(run)
    b.call(b.inttoptr(b.load(code), kernel_type.as_pointer()), [b.load(given)])
    b.branch(leave)
    b.position_at_end(leave)
    b.atomic_rmw("sub", working, long(1), "seq_cst")
    through = _clock(b, time)
    b.branch(look)
    b.position_at_end(idle)
    _pause(b)
    later = _clock(b, time)
    waited = b.sub(later, since)
    _yield(b, yielding, waited, POLITE, polite, wait)
    b.position_at_end(wait)
    b.cbranch(b.icmp_unsigned(">", waited, patience), end, look)
    b.position_at_end(end)
    b.ret(last)
    times = (since, (begun, through, since)), (time, (begun, through, later))
    for phi, values in ((last, (before, now, last)), *times):
        for value, block in zip(values, (start, leave, wait), strict=True):
            phi.add_incoming(value, block)


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

    with b.if_else(b.icmp_unsigned("==", number, long(0))) as (first, others):
        with first:
            c.loop(c.load(count, LONG, 8), kernel)
            b.store_atomic(long(1), ended, "seq_cst", 8)
        with others:
            start, look, end = b.block, b.append_basic_block(), b.append_basic_block()
            b.branch(look)
            b.position_at_end(look)
            last = b.phi(LONG)
            last.add_incoming(long(0), start)
            last.add_incoming(b.call(help, [state, last, long(0)]), look)
            b.cbranch(b.icmp_unsigned("==", b.load_atomic(ended, "seq_cst", 8), long(0)), look, end)
            b.position_at_end(end)
    b.ret_void()
