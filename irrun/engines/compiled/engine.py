"""The compiled engine: which works it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from irrun.engines.extents import checked, copied
from irrun.engines.work import Call, Compiled, Layout, OpenCall, Operand, Work, chain

if TYPE_CHECKING:
    from irrun.engines.compiled.team import Team


BAGS = frozenset(
    {
        "EmbeddingSegmentsSum-3",
        *("EmbeddingBagOffsetsSum-3", "EmbeddingBagOffsets-15", "EmbeddingBagPackedSum-3", "EmbeddingBagPacked-15"),
    }
)
"""Works that sum rows of tables."""

OPEN = {
    "ScaledDotProductAttention-13": "attention",
    "SparseFillEmptyRows-16": "sparse",
    "ScatterElementsUpdate-3": "scatter",
    "ScatterElementsUpdate-12": "scatter",
}
"""Works that it may have a call for, and the modules that have it: only they load llvmlite."""


class CompiledEngine:
    """The engine "compiled", on `threads` threads: products with compressed weights, embedding bags, and what `OPEN`
    names. Others cost it nothing."""

    name = "compiled"
    unaligned = False
    decodes = True

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._team: Team | None = None
        self._openers: dict[str, dict[str, Callable[[Work], OpenCall | None]]] = {}

    def compile(self, work: Work) -> Compiled | None:
        tensors = [*work.inputs, *work.outputs]
        if any(own is not None and (0 in own.shape or own.layout) for own in tensors):
            return None
        compiled: Compiled | None = None
        if work.compressed:
            from irrun.engines.compiled.products import COMPRESSED  # llvmlite is loaded with the first of them

            compile = COMPRESSED.get(work.name)
            compiled = None if compile is None else compile(work, self._threads())
        elif work.name in BAGS and work.required(1)[0].type == "f32":
            from irrun.engines.compiled.bags import embedding_bags

            compiled = embedding_bags(work, self._threads())
        return None if compiled is None else checked(work, compiled)

    def together(self, calls: Sequence[Call]) -> None:
        chain(calls)()

    def open(self, work: Work) -> OpenCall | None:
        """A call for what `OPEN` names; products are made for sizes."""
        module = OPEN.get(work.name)
        if module is None:
            return None
        if module not in self._openers:
            openers = import_module(f"irrun.engines.compiled.{module}").openers
            self._openers[module] = openers(self._threads())
        return self._openers[module][work.name](work)

    def _threads(self) -> Team:
        from irrun.engines.compiled.team import Team

        if self._team is None:
            self._team = Team(self.threads)
        return self._team

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        return copied(self.name, operand, layout)
