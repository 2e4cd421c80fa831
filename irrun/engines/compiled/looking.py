"""Parts that kernels are written down of which look at all elements of a block, whatever their type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.code import DOUBLE, FLOAT, INT, LONG, SHORT, Code, Variable, long
from irrun.records import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """Elements: what memory holds, and as what they are looked at; `real` is None for integers."""

    held: ir.Type
    bytes: int
    bits: ir.IntType
    real: ir.Type | None = None
    signed: bool = True


KINDS = {
    "f64": Kind(DOUBLE, 8, LONG, DOUBLE),
    "f32": Kind(FLOAT, 4, INT, FLOAT),
    "f16": Kind(ir.HalfType(), 2, INT, FLOAT),
    "bf16": Kind(SHORT, 2, INT, FLOAT),
    **{f"i{bits.width}": Kind(bits, bits.width // 8, bits) for bits in (SHORT, INT, LONG)},
    **{f"u{bits.width}": Kind(bits, bits.width // 8, bits, signed=False) for bits in (SHORT, INT, LONG)},
}


class Look:
    """The code that looks at `count` elements at `data`, several at a time, the last ones with zeros behind them."""

    def __init__(self, c: Code, kind: Kind, data: Any, count: Any, factors: Any) -> None:
        self.c, self.b, self.kind, self.data, self.count = c, c.b, kind, data, count
        self.lanes = lanes = 8 if kind.bits == LONG else 16
        self.held, self.bits, self.doubles, self.longs = (
            ir.VectorType(type, lanes) for type in (kind.held, kind.bits, DOUBLE, LONG)
        )
        self._words = ir.VectorType(LONG, lanes * kind.bytes // 8)
        self._factors, self._step = factors, lanes * kind.bytes
        self._whole, self._rest = c.b.udiv(count, long(lanes)), c.b.urem(count, long(lanes))
        self._inside = c.b.icmp_unsigned("<", ir.Constant(self.longs, list(range(lanes))), self.splat(self._rest))
        with c.b.goto_entry_block():
            self._end = c.b.ptrtoint(c.b.alloca(self.held), LONG)
        self._sum = c.variable(ir.Constant(self._words, None))
        self._total, self._squares = (c.variable(ir.Constant(self.doubles, None)) for _ in range(2))
        self._center: Any = None

    def all(self, value: int) -> ir.Constant:
        """A constant with the same bits in all lanes."""
        return ir.Constant(self.bits, [value] * self.lanes)

    def splat(self, value: Any) -> Any:
        """A vector with a value in all lanes."""
        return self.c.splat(value, self.lanes)

    def lane(self, vector: Any) -> Any:
        """The first lane of a vector."""
        return self.b.extract_element(vector, ir.Constant(INT, 0))

    def each(self, body: Callable[[Any, Any, Any], None]) -> None:
        """Do what `body` does with all elements: given so many, how often that was done before, and which of them there
        are, None for all."""
        c = self.c

        def full(number: Any) -> None:
            body(c.load(c.at(self.data, number, self._step), self.held, 1), number, None)

        c.times(self._whole, full)
        c.keep(ir.Constant(self.held, None), self._end)
        c.copy(c.at(self.data, self._whole, self._step), self._end, self.b.mul(self._rest, long(self.kind.bytes)))
        body(c.load(self._end, self.held, 1), self._whole, self._inside)

    def first(self, wanted: Callable[[Any], Any]) -> Any:
        """The first element such that `wanted` is true of a vector of it; the last one where there is none."""
        c, b = self.c, self.b

        def look(number: Any, _: Any) -> tuple[Any, Any]:
            value = c.load(c.at(self.data, number, self.kind.bytes), self.kind.held, 1)
            following = b.add(number, long(1))
            more = b.icmp_unsigned("<", following, self.count)
            return b.and_(more, b.not_(self.lane(wanted(self.splat(value))))), (following, value)

        return c.repeat(look, long(0), ir.Constant(self.kind.held, None))[1]

    def hash(self, held: Any, number: Any) -> None:
        """Take the elements of a vector, the one of this number, into what `hashed` gives."""
        words = self.b.bitcast(held, self._words)
        self._sum.add(self.b.mul(words, self.c.load(self.c.at(self._factors, number, self._step), self._words, 8)))

    def hashed(self) -> Any:
        """A number of 64 bits that others than these elements hardly have."""
        total = self.c.reduced("add", self._sum.get())
        return self.b.add(total, self.b.mul(self.count, long(self.kind.bytes)))

    def tally(self) -> Variable:
        """A count for each lane; `counted` makes one of them."""
        return self.c.variable(self.all(0))

    def count_up(self, tally: Variable, condition: Any) -> None:
        """Add 1 to the lanes of a tally where a condition holds."""
        tally.set(self.b.sub(tally.get(), self.b.sext(condition, self.bits)))

    def counted(self, tally: Variable) -> Any:
        """The sum of the lanes of a tally, a u64."""
        value = tally.get()
        return self.c.reduced("add", value if self.bits == self.longs else self.b.zext(value, self.longs))

    def extend(self, edge: Variable, condition: Any, value: Any) -> None:
        """Set the lanes of an edge to a value where a condition holds."""
        edge.set(self.b.select(condition, value, edge.get()))

    def center(self, around: Any) -> None:
        """Begin to add up how far numbers are from one of them.

        In f64 that is enough: at most as many times the squares around the mean are added up as there are numbers.
        """
        self._center = around
        for sum in (self._total, self._squares):
            sum.set(ir.Constant(self.doubles, None))

    def add(self, numbers: Any) -> None:
        """Add up a vector of f64, as told by `center`."""
        apart = self.b.fsub(numbers, self.splat(self._center))
        self._total.set(self.b.fadd(self._total.get(), apart))
        self._squares.set(self.c.fma(apart, apart, self._squares.get()))

    def moments(self, finite: Any) -> dict[str, Any]:
        """The mean of all that were added up, as many of which are `finite`, and the squares around it."""
        count = self.b.uitofp(self.c.most(finite, long(1)), DOUBLE)
        total, squares = (self._added(sum) for sum in (self._total, self._squares))
        shift = self.b.fdiv(total, count)
        mean = self.b.fadd(self._center, shift)
        return {"mean": mean, "squares": self.b.fsub(squares, self.b.fmul(total, shift))}

    def _added(self, variable: Variable) -> Any:
        """One lane after the other, so that the sum is the same everywhere."""
        first = ir.Constant(DOUBLE, -0.0)
        return self.c.reduced("fadd", variable.get(), first)
