"""Loops that are compiled as they stand in Python, and calls of them, which threads share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir

from irrun.engines.axes import is_dense
from irrun.engines.compiled.code import DOUBLE, INT, LONG, Code
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.compiled.translation import translated
from irrun.engines.memory import data_address
from irrun.engines.work import Call, Judging, Layout, Work
from irrun.spec.op import Array

Floats: TypeAlias = Array
Doubles: TypeAlias = Array
Ints: TypeAlias = Array
Longs: TypeAlias = Array
Bytes: TypeAlias = Array
"""What memory is called in annotations of loops, see `translation`."""

Elements: TypeAlias = Array
Places: TypeAlias = Array
"""What memory is called whose kind a constant of that name tells: that of elements, and that of indices."""

MEMORY = {"f32": "Floats", "u8": "Bytes", "i8": "Bytes", "boolean": "Bytes", "i32": "Ints", "i64": "Longs"}
"""What memory of element types is called."""

MEMORY_OF_BYTES: dict[int, tuple[str, type[np.generic]]] = {
    1: ("Bytes", np.uint8),
    4: ("Ints", np.int32),
    8: ("Longs", np.int64),
}
"""What memory of elements of so many bytes is called where it does not matter which they are, and seen as."""

LOWEST = float("-inf")

HEAD = ("next", "chunk", "count")
"""What comes before the arguments of a function of loops, in its machine code's: u64 each."""

SHARED_NANOSECONDS = 60_000
"""What one thread must need for threads to share it."""

CHUNKS = 8
"""Parts of a work for each thread, so that threads end at the same time."""


def address_of(function: Callable[..., None], constants: Mapping[str, Hashable]) -> int:
    """Where the machine code of `function(begin, end, ...)` lies, which does what is numbered from begin to end.

    It is a function of a pointer to u64: those of HEAD, and the arguments, addresses and the bits of i64 and f64. Any
    number of threads may run it on the same ones: each takes `chunk` numbers, from `next` on, until `count` are taken.
    """
    kind = (function.__module__, function.__qualname__, tuple(sorted(constants.items())))
    return compiled(kind, lambda kernel: _write(kernel, function, constants))


def _write(kernel: ir.Function, function: Callable[..., None], constants: Mapping[str, Hashable]) -> None:
    body = translated(kernel.module, function, constants)
    c = Code(kernel)
    words = [c.b.gep(kernel.args[0], [ir.Constant(INT, n)]) for n in range(len(HEAD) + len(body.args) - 2)]
    chunk, count = (c.b.load(word) for word in words[1:3])
    arguments = []
    for word, argument in zip(words[3:], body.args[2:], strict=True):
        value = c.b.load(word)
        if argument.type == DOUBLE:
            value = c.b.bitcast(value, DOUBLE)
        elif argument.type != LONG:
            value = c.b.inttoptr(value, argument.type)
        arguments.append(value)

    def part(first: Any) -> None:
        c.b.call(body, [first, c.least(c.b.add(first, chunk), count), *arguments])

    c.share(words[0], chunk, count, part)
    c.b.ret_void()


def looped(
    team: Team,
    function: Callable[..., None],
    arguments: Sequence[Any],
    count: int,
    nanoseconds: float,
    **constants: Hashable,
) -> Call:
    """What calls `function(begin, end, *arguments)` for numbers below `count`, which takes `nanoseconds` on one thread.

    Arguments are dense arrays of the types that it is annotated with, and numbers. `constants` are what it knows when
    it is compiled.
    """
    address = address_of(function, constants)
    shared = team.count > 1 and nanoseconds > SHARED_NANOSECONDS
    chunk = max(-(-count // (team.count * CHUNKS)), 1) if shared else max(count, 1)
    numbers = np.array([0, chunk, count, *map(_word, arguments)], np.int64)
    seconds, whole = nanoseconds * 1e-9, chunk >= count
    return Kernel(team, address, numbers, arguments, shared=shared, seconds=seconds, whole=whole)


def judged(loop: Call, outside: Array) -> Judging:
    """A loop that says whether the data were as it is made for: it sets `outside`, one number, where they were not."""

    def fits() -> bool:
        outside[0] = 0
        loop()
        return not outside[0]

    return fits


def unordered(work: Work, first: int | None = None) -> dict[int, Layout | None]:
    """The inputs, or the `first` ones of them, that are not in C order, which loops want them in."""
    inputs = enumerate(work.inputs[:first])
    return {number: None for number, operand in inputs if operand is not None and not is_dense(operand)}


def _word(argument: Any) -> int:
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous, "loops read memory as it lies"
        return data_address(argument)
    return int(np.float64(argument).view(np.int64)) if isinstance(argument, float) else int(argument)
