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

BAGS = frozenset(
    {
        "EmbeddingSegmentsSum-3",
        *("EmbeddingBagOffsetsSum-3", "EmbeddingBagOffsets-15", "EmbeddingBagPackedSum-3", "EmbeddingBagPacked-15"),
    }
)
"""Ops that sum rows of tables."""

MODULES = {
    **dict.fromkeys(SUPPRESSING, "suppression"),
    **dict.fromkeys(BAGS, "bags"),
    **dict.fromkeys(("DeformableConvolution-1", "DeformableConvolution-8"), "deformable"),
    "GridSample-9": "sampling",
    "ScaledDotProductAttention-13": "attention",
    "ScatterElementsUpdate-3": "scatter",
    "ScatterElementsUpdate-12": "scatter",
    "SparseFillEmptyRows-16": "sparse",
}
"""Where works are compiled, by the `compile` of a module, or have a call for any sizes, by its `open`. Only they and
products with compressed weights load llvmlite."""


def _of_module(name: str, function: str) -> Any:
    """A function of the module for works of a name, None where there is none."""
    module = MODULES.get(name)
    return None if module is None else getattr(import_module(f"irrun.engines.compiled.{module}"), function, None)


class CompiledEngine:
    """The engine "compiled", on `threads` threads: products with compressed weights, and what `MODULES` names. Others
    cost it nothing."""

    name = "compiled"
    unaligned = False
    decodes = True

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._team: Team | None = None

    def compile(self, work: Work) -> Compiled | None:
        tensors = [*work.inputs, *work.outputs]
        if any(own is not None and (0 in own.shape or own.layout) for own in tensors):
            return None
        if work.compressed:
            from irrun.engines.compiled.products import COMPRESSED  # llvmlite is loaded with the first of them

            compile = COMPRESSED.get(work.name)
        else:
            compile = _of_module(work.name, "compile")
        compiled = None if compile is None else compile(work, self._threads())
        return None if compiled is None else checked(work, compiled)

    def computes(self, name: str, type: str) -> bool:
        """What it takes is decided by weights, not by ops."""
        return False

    def together(self, calls: Sequence[Call]) -> None:
        chain(calls)()

    def open(self, work: Work) -> OpenCall | None:
        """A call for attention, and for ops whose sizes the data tell; others are made for sizes."""
        open: Callable[[Work, Team], OpenCall | None] | None = _of_module(work.name, "open")
        return None if open is None or work.compressed else open(work, self._threads())

    def _threads(self) -> Team:
        from irrun.engines.compiled.team import Team

        if self._team is None:
            self._team = Team(self.threads)
        return self._team

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        return copied(self.name, operand, layout)
