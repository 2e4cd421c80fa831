"""Posts of the columns of a result that are complete, as a function that kernels of products call: it is compiled once
for all of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import FLOAT, FLOATS, LANES, LONG, Code, Form, long
from irrun.engines.compiled.compiler import addresses
from irrun.engines.compiled.posts import KernelPost, posted
from irrun.engines.memory import ITEM
from irrun.records import dataclass

FUNCTION = ir.FunctionType(ir.VoidType(), [LONG.as_pointer(), LONG, LONG])
"""Of a pointer to the arguments, the first column, and that behind the last one: whole vectors."""


@dataclass(frozen=True, slots=True)
class PostKind:
    """What such a function is compiled for."""

    posts: tuple[KernelPost, ...]

    @property
    def form(self) -> Form:
        """A result has `rows` rows, `result_row` bytes apart; so have operands, which may lie anywhere."""
        names = [(f"operand{n}", f"operand_row{n}") for n in self.places]
        return Form(("rows", "result", "result_row", *(name for pair in names for name in pair)))

    @property
    def places(self) -> list[int]:
        """Which of the posts have an operand."""
        return [n for n, post in enumerate(self.posts) if post.along is not None]


def address_of(kind: PostKind) -> int:
    """Where the machine code lies, of the type `FUNCTION`. Safe for threads."""
    (address,) = addresses(kind, {"posts": FUNCTION}, partial(_write, kind))
    return address


def _write(kind: PostKind, function: ir.Function) -> None:
    c, (arguments, first, last) = Code(function), function.args
    b, at = c.b, kind.form.loaded(c, arguments)

    def row(number: Any) -> None:
        def vector(block: Any) -> None:
            column = b.add(first, b.mul(block, long(LANES)))

            def read(n: int, along: bool) -> Any:
                start = c.at(at[f"operand{n}"], number, at[f"operand_row{n}"])
                if not along:
                    return c.splat(c.load(start, FLOAT, 1))
                return c.load(c.at(start, column, ITEM), FLOATS, 1)

            place = c.at(c.at(at["result"], number, at["result_row"]), column, ITEM)
            c.store(posted(c, kind.posts, c.load(place, FLOATS), read), place)

        c.loop(b.udiv(b.sub(last, first), long(LANES)), vector)

    c.loop(at["rows"], row)
    b.ret_void()
