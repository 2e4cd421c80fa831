"""The engine on numpy alone: which module computes which op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from irrun.engines import processors
from irrun.engines.vectorized import (
    attention,
    convolution,
    copies,
    depthwise,
    elementwise,
    embeddings,
    gathers,
    normalization,
    pooling,
    products,
    recurrent,
    reduction,
    resampling,
    transposed_convolution,
)
from irrun.engines.vectorized.threads import Threads
from irrun.engines.work import Call, Compiled, Layout, Operand, Work
from irrun.spec.op import Array

COMPILERS: dict[str, Callable[[Work, Threads], Compiled | None]] = {
    **attention.COMPILERS,
    **convolution.COMPILERS,
    **copies.COMPILERS,
    **depthwise.COMPILERS,
    **elementwise.COMPILERS,
    **embeddings.COMPILERS,
    **gathers.COMPILERS,
    **normalization.COMPILERS,
    **pooling.COMPILERS,
    **products.COMPILERS,
    **recurrent.COMPILERS,
    **reduction.COMPILERS,
    **resampling.COMPILERS,
    **transposed_convolution.COMPILERS,
}
"""What prepares the works of an op, given the threads that it may use; None as its answer leaves the work to others."""


class VectorizedEngine:
    """The engine "numpy". Its pool has `threads` threads, as many as there are processors unless given."""

    name = "numpy"
    unaligned = False

    def __init__(self, threads: int | None = None) -> None:
        self.pool = Threads(threads or processors())
        self.threads = self.pool.count

    def compile(self, work: Work) -> Compiled | None:
        """Prepare a work; None where it is left to others, as all are that have an empty tensor."""
        compiler = COMPILERS.get(work.name)
        tensors = [*work.inputs, *work.outputs]
        if compiler is None or any(tensor is not None and (0 in tensor.shape or tensor.layout) for tensor in tensors):
            return None
        return compiler(work, self.pool)

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        """A copy: this engine knows no layouts but numpy's own."""
        if operand.layout is not None or layout is not None:
            raise ValueError(f"the engine {self.name} has no layouts of its own")
        return Compiled(_copy)


def _copy(inputs: Sequence[Array | None], outputs: Sequence[Array], _: Array | None) -> Call:
    assert inputs[0] is not None
    return partial(np.copyto, outputs[0], inputs[0])
