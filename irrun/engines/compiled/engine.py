"""The compiled engine: which works it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irrun.engines.extents import checked, copied
from irrun.engines.work import Call, Compiled, Layout, OpenCall, Operand, Work, chain

if TYPE_CHECKING:
    from irrun.engines.compiled.team import Team


OPEN = frozenset({"ScaledDotProductAttention-13"})
"""Works that it may have a call for: only they load llvmlite."""


class CompiledEngine:
    """The engine "compiled", on `threads` threads: products with compressed weights, and attention of few rows. Others
    cost it nothing."""

    name = "compiled"
    unaligned = False
    decodes = True
    quantized = False

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._team: Team | None = None
        self._openers: dict[str, Callable[[Work], OpenCall | None]] | None = None

    def compile(self, work: Work) -> Compiled | None:
        tensors = [*work.inputs, *work.outputs]
        if not work.compressed or any(own is not None and (0 in own.shape or own.layout) for own in tensors):
            return None
        from irrun.engines.compiled.products import COMPRESSED  # llvmlite is loaded with the first of them

        compile = COMPRESSED.get(work.name)
        compiled = None if compile is None else compile(work, self._threads())
        return None if compiled is None else checked(work, compiled)

    def together(self, calls: Sequence[Call]) -> None:
        chain(calls)()

    def open(self, work: Work) -> OpenCall | None:
        """A call for attention; products are made for sizes."""
        if work.name not in OPEN:
            return None
        if self._openers is None:
            from irrun.engines.compiled.attention import openers

            self._openers = openers(self._threads())
        return self._openers[work.name](work)

    def _threads(self) -> Team:
        from irrun.engines.compiled.team import Team

        if self._team is None:
            self._team = Team(self.threads)
        return self._team

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        return copied(self.name, operand, layout)
