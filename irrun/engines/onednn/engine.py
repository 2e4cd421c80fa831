"""The oneDNN engine: which works it takes, and who compiles them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from irrun.engines.onednn import (
    attention,
    convolution,
    copies,
    elementwise,
    normalization,
    pooling,
    products,
    recurrent,
)
from irrun.engines.onednn.library import Descriptor, Library
from irrun.engines.work import Call, Compiled, Operand, Work, chain

MODULES = (attention, convolution, copies, elementwise, normalization, pooling, products, recurrent)
COMPILERS: dict[str, Callable[[Library, Work], Compiled | None]] = {
    op: compile for module in MODULES for op, compile in module.COMPILERS.items()
}


class OneDNN:
    """The engine: it takes f32 tensors of known, non-empty shapes."""

    name = "onednn"
    unaligned = True
    decodes = False

    def __init__(self, library: Library) -> None:
        self._library = library
        self.threads = library.threads

    def compile(self, work: Work) -> Compiled | None:
        if (
            work.compressed
            or work.name not in COMPILERS
            or not all(_taken(operand) for operand in (*work.inputs[:1], *work.outputs))
        ):
            return None
        return self._library.works.compiled(self.name, work, partial(COMPILERS[work.name], self._library))

    def together(self, calls: Sequence[Call]) -> None:
        chain(calls)()

    def open(self, work: Work) -> None:
        """Its primitives are made for sizes."""

    def reorder(self, operand: Operand, layout: Descriptor | None) -> Compiled:
        return copies.reorder(self._library, operand, layout)


def _taken(operand: Operand | None) -> bool:
    return operand is not None and operand.type == "f32" and all(operand.shape)
