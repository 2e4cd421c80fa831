"""Rows that products with compressed weights read, in the order and of the type in which their kernels want them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from irrun.engines.axes import Sizes
from irrun.engines.compiled.bf16 import item_of, narrowed
from irrun.engines.compiled.code import FLOATS, LANES, Code, Form, long
from irrun.engines.compiled.decoding import STEP
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.extents import view
from irrun.engines.memory import ITEM, aligned, data_address
from irrun.engines.work import Call
from irrun.records import NamedTuple
from irrun.spec.op import Array

NATURAL = (STEP,), (1,)
"""The way of rows whose numbers lie one after the other."""

SHARED = 1 << 16
"""Numbers from which on threads share their rounding."""

NUMBER_SECONDS = 0.1e-9
"""What one takes about."""

_FORM = Form(("items", "steps", "data", "data_row", "target"))


class Rows(NamedTuple):
    """So many rows of f32 [many, inner], and their strides in bytes, that kernels read by steps in some `way`
    (`decoding.order_of`), as numbers of f32 or bf16."""

    many: int
    inner: int
    strides: tuple[int, int]
    way: tuple[Sizes, Sizes]
    type: str = "f32"

    @property
    def moved(self) -> int:
        """Bytes of scratch for them in their order, where they do not lie so."""
        return aligned(self.many * self.inner * ITEM) if len(self.way[0]) > 1 or self.strides[1] != ITEM else 0

    @property
    def room(self) -> int:
        """Bytes of scratch for all."""
        return self.moved + (0 if self.type == "f32" else aligned(self.many * self.inner * item_of(self.type)))

    @property
    def row(self) -> int:
        """Bytes from row to row, as kernels read them."""
        return self.inner * item_of(self.type) if self.room else self.strides[0]

    def bind(self, team: Team, array: Any, scratch: Any) -> tuple[list[Call], Array]:
        """What brings an array into that form, and what kernels read then, perhaps in `scratch`."""
        sizes, between = self.way
        order = (self.many, self.inner // STEP, *sizes)
        data = view(array, order, (self.strides[0], *(number * self.strides[1] for number in (STEP, *between))))
        calls: list[Call] = []
        if self.moved:
            dense = scratch[: self.many * self.inner * ITEM].view(np.float32).reshape(order)
            calls, data = [partial(np.copyto, dense, data)], dense
        if self.type == "f32":
            return calls, data
        target = scratch[self.moved : self.room]
        return [*calls, _rounding(team, self, data, target)], target


def _rounding(team: Team, rows: Rows, data: Array, target: Array) -> Kernel:
    """What makes rows numbers of bf16."""
    address = _FORM.address("rounded rows", _round)
    lying = {"data": data_address(data), "data_row": data.strides[0], "target": data_address(target)}
    arguments = _FORM.of(items=rows.many, steps=rows.inner // STEP, **lying)
    numbers = rows.many * rows.inner
    seconds = numbers * NUMBER_SECONDS
    return Kernel(team, address, arguments, (data, target), shared=numbers >= SHARED, seconds=seconds)


def _round(c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    source = c.at(at["data"], item, at["data_row"])
    target = c.at(at["target"], b.mul(item, at["steps"]), STEP * item_of("bf16"))

    def step(number: Any) -> None:
        place = c.at(source, number, STEP * ITEM)
        halves = [c.load(b.add(place, long(start * ITEM)), FLOATS) for start in range(0, STEP, LANES)]
        c.keep(narrowed(c, *halves), c.at(target, number, STEP * item_of("bf16")))

    c.loop(at["steps"], step)
