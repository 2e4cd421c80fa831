"""The compiled engine: which works it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from irrun.engines.extents import checked, copied
from irrun.engines.work import Call, Compiled, Layout, OpenCall, Operand, Work, chain
from irrun.spec.op import Op
from irrun.spec.registry import registry

if TYPE_CHECKING:
    from irrun.engines.compiled.team import Team


MODULES = {
    "GridSample-9": "sampling",
    **dict.fromkeys(("NV12toRGB-8", "NV12toBGR-8", "I420toRGB-8", "I420toBGR-8"), "colours"),
    **dict.fromkeys(("ROIPooling-1", "PSROIPooling-1", "DeformablePSROIPooling-1"), "bins"),
}
"""The module that compiles an op, by its table `COMPILERS`. Only they, ops of which the module `parts` has quicker
parts, attention and products with compressed weights load llvmlite."""

ATTENDING = frozenset({"ScaledDotProductAttention-13"})


def op_of(name: str) -> Op | None:
    """The op of a work, without loading more of the library than was."""
    type, _, version = name.rpartition("-")
    op = registry().find(type, f"opset{version}")
    return op if op is not None and op.name == name else None


def _has_parts(name: str) -> bool:
    op = op_of(name)
    return op is not None and bool(op.parts)


def _compiler(name: str) -> Callable[[Work, Team], Compiled | None] | None:
    """What prepares the works of an op that is a loop."""
    if _has_parts(name):
        return _module("parts").compile  # type: ignore[no-any-return] # of a module that is loaded late
    return _module(MODULES[name]).COMPILERS[name] if name in MODULES else None


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
            compiler = _compiler(work.name)
            compiled = None if compiler is None else compiler(work, self._threads())
            return None if compiled is None else checked(work, compiled)
        from irrun.engines.compiled.products import COMPRESSED  # llvmlite is loaded with the first of them

        compile = COMPRESSED.get(work.name)
        compiled = None if compile is None else compile(work, self._threads())
        return None if compiled is None else checked(work, compiled)

    def together(self, calls: Sequence[Call]) -> None:
        chain(calls)()

    def open(self, work: Work) -> OpenCall | None:
        """A call for attention, and for ops whose sizes the data tell; others are made for sizes."""
        if _has_parts(work.name):
            call: OpenCall | None = _module("parts").open(work, self._threads())
            return call
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
