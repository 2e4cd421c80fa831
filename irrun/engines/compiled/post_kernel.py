"""Posts of the columns of a result that are complete, as a function that kernels of products call: it is compiled once
for all of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import FLOATS, LANES, LONG, Code, Form, long
from irrun.engines.compiled.compiler import addresses
from irrun.engines.compiled.posts import KernelPost, operand_names, posted, read_operand
from irrun.engines.memory import ITEM
from irrun.records import dataclass

FUNCTION = ir.FunctionType(ir.VoidType(), [LONG.as_pointer(), *[LONG] * 4])
"""Of a pointer to the arguments, the first column and that behind the last one, which are whole vectors, and rows in
the same way."""

AXES = ("row",)
"""Along which operands are told their bytes from one to the next."""


@dataclass(frozen=True, slots=True)
class PostKind:
    """What such a function is compiled for."""

    posts: tuple[KernelPost, ...]

    @property
    def form(self) -> Form:
        """A result has rows `result_row` bytes apart; so have operands, which may lie anywhere."""
        return Form(("result", "result_row", *operand_names(self.posts, AXES)))


def address_of(kind: PostKind) -> int:
    """Where the machine code lies, of the type `FUNCTION`. Safe for threads."""
    (address,) = addresses(kind, {"posts": FUNCTION}, partial(_write, kind))
    return address


def _write(kind: PostKind, function: ir.Function) -> None:
    c, (arguments, first, last, begin, end) = Code(function), function.args
    b, at = c.b, kind.form.loaded(c, arguments)

    def row(count: Any) -> None:
        number = b.add(begin, count)

        def vector(block: Any) -> None:
            column = b.add(first, b.mul(block, long(LANES)))

            def read(n: int, along: bool) -> Any:
                return read_operand(c, at, n, {"row": number}, column, None, along=along)

            place = c.at(c.at(at["result"], number, at["result_row"]), column, ITEM)
            c.store(posted(c, kind.posts, c.load(place, FLOATS), read), place)

        c.loop(b.udiv(b.sub(last, first), long(LANES)), vector)

    c.loop(b.sub(end, begin), row)
    b.ret_void()
