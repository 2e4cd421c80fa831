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
    quantized,
    recurrent,
)
from irrun.engines.onednn.library import Descriptor, Library
from irrun.engines.onednn.posts import QUANTIZE
from irrun.engines.onednn.quantized import DEQUANTIZE
from irrun.engines.work import Call, Compiled, Operand, Work, chain

MODULES = (attention, convolution, copies, elementwise, normalization, pooling, products, recurrent)
COMPILERS: dict[str, Callable[[Library, Work], Compiled | None]] = {
    op: compile for module in MODULES for op, compile in module.COMPILERS.items()
}
COMPILERS[DEQUANTIZE] = quantized.dequantize
CODES = frozenset({"u8", "i8"})
CODED = frozenset(
    {QUANTIZE, DEQUANTIZE, *copies.COMPILERS, *(op for op in pooling.COMPILERS if op.startswith("MaxPool"))}
)
"""Ops that are computed on codes, or make them."""


class OneDNN:
    """The engine: it takes f32 tensors of known, non-empty shapes."""

    name = "onednn"
    unaligned = True
    decodes = False

    def __init__(self, library: Library) -> None:
        self._library = library
        self.threads = library.threads
        self.quantized = library.exact

    def compile(self, work: Work) -> Compiled | None:
        if self.quantized and quantized.concerns(work):
            found = self._library.works.compiled("codes", work, partial(quantized.compile, self._library))
            if found is not None:
                return found
        if (
            work.compressed
            or work.name not in COMPILERS
            or not all(_taken(work, operand) for operand in (*work.inputs[:1], *work.outputs))
        ):
            return None
        return self._library.works.compiled(self.name, work, partial(COMPILERS[work.name], self._library))

    def together(self, calls: Sequence[Call]) -> None:
        chain(calls)()

    def open(self, work: Work) -> None:
        """Its primitives are made for sizes."""

    def reorder(self, operand: Operand, layout: Descriptor | None) -> Compiled:
        return copies.reorder(self._library, operand, layout)


def _taken(work: Work, operand: Operand | None) -> bool:
    if operand is None or not all(operand.shape):
        return False
    coding = work.name in CODED or any(post.name in CODED for post in work.posts[-1:])
    return operand.type == "f32" or (operand.type in CODES and coding)
