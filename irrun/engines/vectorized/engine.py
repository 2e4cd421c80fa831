"""The engine on numpy alone: which module computes which op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

from irrun.engines.threads import Threads
from irrun.engines.vectorized import compressed, functions
from irrun.engines.vectorized.copying import copied
from irrun.engines.vectorized.widening import widened
from irrun.engines.work import Call, Compiled, Layout, OpenCall, Operand, Post, Work
from irrun.engines.work_cache import WorkCache

Compiler = Callable[[Work, Threads], Compiled | None]
"""What prepares the works of an op, given the threads that it may use; None as its answer leaves the work to others."""

Opener = Callable[[Work, Threads], OpenCall | None]
"""What gives calls for works of an op whose sizes are open."""

MODULES = {
    "elementwise": """
        Abs-1 Acos-1 Acosh-4 Asin-1 Asinh-4 Atan-1 Atanh-4 BitwiseNot-13 Ceiling-1 Cos-1 Cosh-1 Erf-1 Exp-1 Floor-1
        Gelu-2 HSigmoid-5 HSwish-4 Log-1 LogicalNot-1 Mish-4 Negative-1 Sigmoid-1 Sign-1 Sin-1 Sinh-1 SoftPlus-4
        SoftSign-9 Sqrt-1 Swish-4 Tan-1 Tanh-1 Add-1 BitwiseAnd-13 BitwiseOr-13 BitwiseXor-13 Equal-1 FloorMod-1
        Greater-1 GreaterEqual-1 Less-1 LessEqual-1 LogicalAnd-1 LogicalOr-1 LogicalXor-1 Maximum-1 Minimum-1 Mod-1
        Multiply-1 NotEqual-1 PReLU-1 Subtract-1 Xor-1 Clamp-1 Convert-1 Divide-1 Elu-1 Gelu-7 HardSigmoid-1 Power-1
        ReLU-1 Round-5 FakeConvert-13 FakeQuantize-1 Select-1 SquaredDifference-1
    """,
    "products": "MatMul-1 PickedProduct-0",
    "convolution": "Convolution-1",
    "depthwise": "GroupConvolution-1",
    "pooling": "MaxPool-1 MaxPool-8 MaxPool-14 AvgPool-1 AvgPool-14 AvgPool-16",
    "reduction": """
        ReduceSum-1 ReduceProd-1 ReduceMax-1 ReduceMin-1 ReduceMean-1 ReduceLogicalAnd-1 ReduceLogicalOr-1
        ReduceL1-4 ReduceL2-4
    """,
    "normalization": """
        SoftMax-1 SoftMax-8 LogSoftmax-5 BatchNormInference-1 BatchNormInference-5 GroupNormalization-12 MVN-1 MVN-6
        LRN-1 NormalizeL2-1 RootMeanSquare-0
    """,
    "copies": """
        Reshape-1 Squeeze-1 Squeeze-15 Unsqueeze-1 Broadcast-1 Broadcast-3 Concat-1 DepthToSpace-1 Pad-1 Pad-12
        ReorgYolo-1 Roll-7 ShuffleChannels-1 Slice-8 SpaceToDepth-1 Split-1 VariadicSplit-1 StridedSlice-1 Tile-1
        Transpose-1
    """,
    "places": "NonZero-3 OneHot-1 OneHot-16",
    "gathers": "Gather-1 Gather-7 Gather-8 GatherElements-6 GatherND-5 GatherND-8",
    "scatters": "ScatterNDUpdate-3 ScatterNDUpdate-15 ScatterUpdate-3",
    "attention": "ScaledDotProductAttention-13",
    "resampling": "Interpolate-4 Interpolate-11",
    "recurrent": "GRUCell-3 LSTMCell-1 LSTMCell-4 RNNCell-3 GRUSequence-5 LSTMSequence-5 RNNSequence-5",
    "transposed_convolution": "ConvolutionBackpropData-1 GroupConvolutionBackpropData-1",
    "embeddings": """
        EmbeddingSegmentsSum-3 EmbeddingBagOffsetsSum-3 EmbeddingBagOffsets-15 EmbeddingBagPackedSum-3
        EmbeddingBagPacked-15
    """,
    "contraction": "Einsum-7",
    "binary_convolution": "BinaryConvolution-1",
    "tables": "Table-0",
    "fourier": "DFT-7 IDFT-7 RDFT-9 IRDFT-9 STFT-15",
}
"""Of these ops each has a table `COMPILERS` of what prepares works, `OPENERS` of what has a call for any sizes. They
are loaded as far as a model needs them."""

_MODULE_OF = {op: module for module, ops in MODULES.items() for op in ops.split()}

MOVING = frozenset({"copies", "gathers", "scatters"})
"""Modules of ops that only move elements, of whatever type."""

CONVERSION = "Convert-1"
"""The op between types."""

SLOW, MANY = frozenset({"Sigmoid-1", "Swish-4"}), 1 << 14
"""Functions that numpy takes several times as long for as compiled code does, where it does not use AVX-512, and the
elements from which on these are worth a pass of their own. FakeQuantize is eight passes of numpy's."""

QUANTIZING = frozenset({"FakeQuantize-1"})


def module_of(op: str) -> str | None:
    """The module that computes an op."""
    return _MODULE_OF.get(op)


@cache
def of_module(op: str, table: str) -> Any:
    """What a table of the module that computes an op has for it, None where it has nothing."""
    module = module_of(op)
    return None if module is None else getattr(import_module(f"irrun.engines.vectorized.{module}"), table, {}).get(op)


class VectorizedEngine:
    """The engine "numpy". Its pool has `threads` threads.

    With `compiling` an engine is asked before it that compiles element-wise functions, with `quantizing` one that
    compiles quantizations. `once` says that works are computed once.
    """

    name = "numpy"
    decodes = coding = False
    quantized = False

    def __init__(self, threads: int, *, compiling: bool = False, quantizing: bool = False, once: bool = False) -> None:
        self._once = once
        self._slow = SLOW if compiling and not functions.WIDE_EXP2 else frozenset[str]()
        if quantizing:
            self._slow |= QUANTIZING
        self.threads, self.pool = threads, Threads(threads)
        self._works = WorkCache()

    def compile(self, work: Work) -> Compiled | None:
        """Prepare a work; None where it is left to others, as all are that have an empty tensor.

        Posts that others are quicker with are left to these, which are asked for them when they stand alone.
        """
        compiler: Compiler | None = (
            compressed.COMPRESSED.get(work.name) if work.compressed else of_module(work.name, "COMPILERS")
        )
        if compiler is None or any(0 in own.shape or own.layout for own in work.tensors):
            return None
        if any(self._is_slow(work, post) for post in work.posts) and prod(work.outputs[0].shape) >= MANY:
            return None

        def prepare(work: Work) -> Compiled | None:
            narrow = any(own.type == "bf16" for own in work.tensors)
            if not narrow or (not work.posts and (work.name == CONVERSION or module_of(work.name) in MOVING)):
                return compiler(work, self.pool)
            return widened(work, lambda wide: compiler(wide, self.pool))

        return self._works.compiled(self.name, work, prepare)

    def _is_slow(self, work: Work, post: Post) -> bool:
        """Whether others are quicker with a post, whose limits hold for all of the tensor if it has any."""
        limits = [work.inputs[number] for number in post.parameters]
        return post.name in self._slow and all(own is not None and prod(own.shape) == 1 for own in limits)

    def unaligned(self, name: str) -> bool:
        """Weights that are multiplied once are brought to memory that others have been in before them, which is at
        hand; for all else that is unaligned numpy takes several times as long."""
        return self._once and name == "MatMul-1"

    def computes(self, name: str, type: str) -> bool:
        module = module_of(name)
        return module is not None and (type == "f32" or module in MOVING)

    def together(self, calls: Sequence[Call]) -> None:
        self.pool.call(calls)()

    def open(self, work: Work) -> OpenCall | None:
        opener: Opener | None = None if work.posts else of_module(work.name, "OPENERS")
        return None if opener is None else opener(work, self.pool)

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        return copied(self.name, operand, layout, self.pool)
