"""The compiled engine: which works it takes."""

from __future__ import annotations

from irrun.engines.extents import bind_copy, checked
from irrun.engines.vectorized.threads import Threads
from irrun.engines.work import Compiled, Layout, Operand, Work


class CompiledEngine:
    """The engine "compiled": products with compressed weights, on `threads` threads. Others cost it nothing."""

    name = "compiled"
    unaligned = False

    def __init__(self, threads: int) -> None:
        self.pool = Threads(threads)
        self.threads = threads

    def compile(self, work: Work) -> Compiled | None:
        tensors = [*work.inputs, *work.outputs]
        if not work.compressed or any(own is not None and (0 in own.shape or own.layout) for own in tensors):
            return None
        from irrun.engines.compiled.products import COMPRESSED  # llvmlite is loaded with the first of them

        compile = COMPRESSED.get(work.name)
        compiled = None if compile is None else compile(work, self.pool)
        return None if compiled is None else checked(work, compiled)

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        """A copy: this engine knows no layouts but numpy's own."""
        if operand.layout is not None or layout is not None:
            raise ValueError(f"the engine {self.name} has no layouts of its own")
        return Compiled(bind_copy)
