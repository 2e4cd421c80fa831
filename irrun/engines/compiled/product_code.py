"""What products with compressed weights are compiled to: arguments of kernels, and what all of them do.

A step of codes is two vectors. Codes that share bytes are in an order of their own (`decoding.order_of`): where they
are made numbers for a few rows, these come in that order, else the numbers are brought into that of the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import FLOAT, LANES, LONG, Code, Form, Values, long
from irrun.engines.compiled.decoding import Decoder
from irrun.engines.compiled.post_kernel import FUNCTION
from irrun.records import dataclass

MAX_UNROLLED = 4
"""Steps of a group that are written one after the other instead of as a loop."""

BLOCK_WIDTH = 8
"""Columns of weights that are made f32 at once in blocks: they stay in the first cache."""

FORM = Form(
    (
        *("chunk", "columns", "codes", "code_row", "data", "data_row", "rows", "numbers", "scale", "scale_row"),
        *("scale_group", "zero", "zero_row", "zero_group", "groups", "steps", "result", "result_row"),
        *("part", "room", "room_row", "room_size", "ahead", "pace", "posts", "posts_arguments"),
    )
)
"""Of every kernel: addresses, numbers, and strides in bytes.

Any number of threads may run a kernel on the same arguments: each takes `chunk` columns until all `columns` are taken.
`numbers` are those of 16 codes, `steps` are those of a group. Where weights are made f32 first, that is `part` groups
of some columns at a time, in memory that the first thread finds at `room` and the next one `room_size` bytes behind: of
`BLOCK_WIDTH` columns in blocks, one every `room_row` bytes, and of a chunk as panels. Of these a thread takes one
`ahead` columns behind the last one, likely, whose codes it brings near, `pace` bytes with each line of a panel.
`posts` is a function (`post_kernel`) that is called with `posts_arguments` for columns of the result that are complete,
0 where there are none.
"""


@dataclass(frozen=True, slots=True)
class ProductKind:
    """What a kernel is compiled for: the type of the codes, whether there are scales and zero points, and how many
    columns and rows of the result are computed at once.

    `steps` are those of a group, 0 where they are told in a call. `way` is one of `products.WAYS`. `lanes` are those of
    sums. `rows_type` is f32 or bf16, and so is `result_type` where a few rows are computed at once.
    """

    type: str
    scaled: bool
    shifted: bool
    columns: int
    rows: int
    steps: int = 0
    way: str = "few"
    lanes: int = LANES
    rows_type: str = "f32"
    result_type: str = "f32"


class ProductCode(ABC):
    """The code of a kernel in the making."""

    def __init__(self, function: ir.Function, kind: ProductKind) -> None:
        self._c, self._kind = Code(function), kind
        (self._arguments,) = function.args
        self._at = FORM.loaded(self._c, self._arguments)
        self._decoder = Decoder(self._c, kind.type, self._at["numbers"])

    def write(self) -> None:
        """Chunks of columns until there are none left."""
        c, b, at = self._c, self._c.b, self._at

        def chunk(first: Any) -> None:
            self._part(first, c.least(b.add(first, at["chunk"]), at["columns"]))

        c.share(self._arguments, at["chunk"], at["columns"], chunk)
        b.ret_void()

    def _post(self, first: Any, last: Any, begin: Any, end: Any) -> None:
        """Compute posts of some columns and rows of the result, which are complete."""
        b, at = self._c.b, self._at
        with b.if_then(b.icmp_unsigned("!=", at["posts"], long(0))):
            function = b.inttoptr(at["posts"], FUNCTION.as_pointer())
            b.call(function, [b.inttoptr(at["posts_arguments"], LONG.as_pointer()), first, last, begin, end])

    @abstractmethod
    def _part(self, first: Any, last: Any) -> None:
        """Some columns of the result, with posts."""

    def _factor(self, name: str, column: Any, group: Any) -> Any:
        """The scale or zero point of a group in all lanes; None where there is none."""
        c, b, at = self._c, self._c.b, self._at
        if not (self._kind.scaled if name == "scale" else self._kind.shifted):
            return None
        place = b.add(at[name], b.add(b.mul(column, at[f"{name}_row"]), b.mul(group, at[f"{name}_group"])))
        return c.splat(c.load(place, FLOAT))

    def _steps(self, step: Callable[..., Values | None], *before: Any) -> Values:
        if not 0 < self._kind.steps <= MAX_UNROLLED:
            return self._c.loop(self._at["steps"], step, *before)
        made: Values = before
        for number in range(self._kind.steps):
            made = step(long(number), *made) or ()
        return made
