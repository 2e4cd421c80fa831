"""The compiled engine: which works it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from irrun.engines.extents import checked, copied
from irrun.engines.work import Call, Compiled, Layout, OpenCall, Operand, Work, chain

if TYPE_CHECKING:
    from irrun.engines.compiled.team import Team


SUPPRESSING = frozenset(
    {
        *(f"NonMaxSuppression-{version}" for version in (1, 3, 4, 5, 9)),
        *("MulticlassNms-8", "MulticlassNms-9", "DetectionOutput-1", "DetectionOutput-8", "Proposal-1", "Proposal-4"),
        *("GenerateProposals-9", "ExperimentalDetectronGenerateProposalsSingleImage-6"),
        *("ExperimentalDetectronDetectionOutput-6", "MatrixNms-8"),
    }
)
"""Ops that remove boxes which others overlap."""

MODULES = {**dict.fromkeys(SUPPRESSING, "suppression"), "GridSample-9": "sampling"}
"""Where works are compiled, by the `compile` of a module, or called as they come, by its `open`. Only they, attention
and products with compressed weights load llvmlite."""


ATTENDING = frozenset({"ScaledDotProductAttention-13"})


def _module(name: str) -> Any:
    return import_module(f"irrun.engines.compiled.{name}")


class CompiledEngine:
    """The engine "compiled", on `threads` threads: products with compressed weights, attention of few rows, and ops
    that are loops. Others cost it nothing."""

    name = "compiled"
    unaligned = False
    decodes = True

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._team: Team | None = None
        self._openers: dict[str, Callable[[Work], OpenCall | None]] | None = None

    def compile(self, work: Work) -> Compiled | None:
        tensors = [*work.inputs, *work.outputs]
        if any(own is not None and (0 in own.shape or own.layout) for own in tensors):
            return None
        if not work.compressed:
            module = MODULES.get(work.name)
            compiled = None if module is None else _module(module).compile(work, self._threads())
            return None if compiled is None else checked(work, compiled)
        from irrun.engines.compiled.products import COMPRESSED  # llvmlite is loaded with the first of them

        compile = COMPRESSED.get(work.name)
        compiled = None if compile is None else compile(work, self._threads())
        return None if compiled is None else checked(work, compiled)

    def computes(self, name: str, type: str) -> bool:
        """What it takes is decided by weights, not by ops."""
        return False

    def together(self, calls: Sequence[Call]) -> None:
        chain(calls)()

    def open(self, work: Work) -> OpenCall | None:
        """A call for attention, and for ops whose sizes the data tell; others are made for sizes."""
        if work.name in MODULES and not work.compressed:
            open = getattr(_module(MODULES[work.name]), "open", None)
            return None if open is None else open(work, self._threads())
        if work.name not in ATTENDING:
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
