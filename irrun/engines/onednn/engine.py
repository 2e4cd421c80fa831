"""The oneDNN engine: which works it takes, and who compiles them."""

from __future__ import annotations

from collections.abc import Callable

from irrun.engines.extents import checked
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
from irrun.engines.onednn.library import Layout, Library
from irrun.engines.onednn.posts import BINARY, DIFFERENT, FUNCTIONS
from irrun.engines.work import Compiled, Operand, Work

COMPILERS: dict[str, Callable[[Library, Work], Compiled | None]] = {
    **dict.fromkeys(("Convolution-1", "GroupConvolution-1"), convolution.compile),
    **dict.fromkeys(("ConvolutionBackpropData-1", "GroupConvolutionBackpropData-1"), convolution.compile),
    "MatMul-1": products.compile,
    **dict.fromkeys(("MaxPool-1", "MaxPool-8", "MaxPool-14", "AvgPool-1", "AvgPool-14", "AvgPool-16"), pooling.compile),
    **dict.fromkeys(recurrent.CELLS, recurrent.compile),
    "ScaledDotProductAttention-13": attention.compile,
    "MVN-6": normalization.compile_mvn,
    **dict.fromkeys(("Reshape-1", "Squeeze-1", "Unsqueeze-1", "Transpose-1"), copies.compile),
    "ReduceMean-1": pooling.compile_mean,
    **dict.fromkeys({*FUNCTIONS, *BINARY, "SquaredDifference-1"} - DIFFERENT, elementwise.compile),
}


class OneDNN:
    """The engine: it takes f32 tensors of known, non-empty shapes."""

    name = "onednn"
    unaligned = True

    def __init__(self, library: Library) -> None:
        self._library = library
        self.threads = library.threads

    def compile(self, work: Work) -> Compiled | None:
        compiler = COMPILERS.get(work.name)
        if compiler is None or not all(_taken(operand) for operand in (*work.inputs[:1], *work.outputs)):
            return None
        compiled = compiler(self._library, work)
        return None if compiled is None else checked(work, compiled)

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        return copies.reorder(self._library, operand, layout)


def _taken(operand: Operand | None) -> bool:
    return operand is not None and operand.type == "f32" and all(operand.shape)
