"""The compiled engine: which works it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any

from irrun.engines.axes import is_dense
from irrun.engines.depthwise import LEAST_DEPTHWISE
from irrun.engines.extents import checked
from irrun.engines.grid import QUANTIZE, is_of_codes, multiplies_codes
from irrun.engines.heads import LEAST_SCORES, scores_of
from irrun.engines.plain import op_of
from irrun.engines.rows import columns_of, is_of_any_rows, is_of_few_narrow_rows, is_of_few_rows
from irrun.engines.threads import Threads
from irrun.engines.vectorized.copying import copied
from irrun.engines.vectorized.engine import MODULES as VECTORIZED
from irrun.engines.work import Call, Compiled, Layout, OpenCall, Operand, Work

if TYPE_CHECKING:
    from irrun.engines.compiled.team import Team


MOVING = frozenset(VECTORIZED["copies"].split()) - {"Slice-8"}
"""Ops that only move elements, of which those are taken that turn most of these. Where a slice begins only the run may
tell."""

REDUCTIONS = frozenset(VECTORIZED["reduction"].split())
"""Ops that fold axes."""

OPENED = frozenset(
    {
        *("ScaledDotProductAttention-13", "GatherElements-6", "ScatterElementsUpdate-3", "ScatterElementsUpdate-12"),
        *("EmbeddingSegmentsSum-3", "MatMul-1", "SparseFillEmptyRows-16", "TopK-1", "TopK-3", "TopK-11"),
    }
)
"""Ops whose modules have calls for any sizes: those of others need not be loaded to know that they have none."""

MODULES = {
    "adaptive": "AdaptiveAvgPool-8 AdaptiveMaxPool-8",
    "attention": "ScaledDotProductAttention-13",
    "bins": "ROIPooling-1 PSROIPooling-1 DeformablePSROIPooling-1",
    "buckets": "Bucketize-3",
    "cells": "LSTMCell-4 GRUCell-3",
    "centring": "NormalizeL2-1",
    "columns": "Gather-1 Gather-7 Gather-8",
    "deformable": "DeformableConvolution-1 DeformableConvolution-8",
    "depthwise": "GroupConvolution-1",
    "elements": "GatherElements-6",
    "elementwise": """
        Add-1 Divide-1 Maximum-1 Minimum-1 Multiply-1 PReLU-1 SquaredDifference-1 Subtract-1 Abs-1 Ceiling-1 Clamp-1
        Elu-1 Erf-1 Exp-1 FakeQuantize-1 Floor-1 Gelu-2 Gelu-7 HSigmoid-5 HSwish-4 Mish-4 Negative-1 ReLU-1 Round-5
        Sigmoid-1 SoftPlus-4 SoftSign-9 Sqrt-1 Swish-4 Tanh-1
    """,
    "embedding_bags": VECTORIZED["embeddings"],
    "conversion": "Convert-1",
    "folding": VECTORIZED["reduction"],
    "normalization": "GroupNormalization-12 MVN-1 MVN-6 RootMeanSquare-0",
    "panels": "MatMul-1",
    "remainders": "Mod-1 FloorMod-1",
    "resampling": "Interpolate-4 Interpolate-11",
    "sampling": "GridSample-9",
    "scatter": "ScatterElementsUpdate-3 ScatterElementsUpdate-12",
    "select": "Select-1",
    "softmax": "SoftMax-1 SoftMax-8 LogSoftmax-5",
    "sparse": "SparseFillEmptyRows-16",
    "sums": "CumSum-3",
    "tables": "Table-0",
    "top_k": "TopK-1 TopK-3 TopK-11",
    "transposition": " ".join(MOVING),
    "yuv_to_rgb": "NV12toRGB-8 NV12toBGR-8 I420toRGB-8 I420toBGR-8",
}
"""Of these ops each has a table `COMPILERS` of what prepares works, `OPENERS` of what has a call for any sizes. Only
they, ops of which the module `parts` has quicker parts, and products with compressed weights load llvmlite."""

_MODULE_OF = {op: module for module, ops in MODULES.items() for op in ops.split()}

_PICKING = frozenset(MODULES["columns"].split())

ELEMENTWISE = frozenset(MODULES["elementwise"].split()) - {"FakeQuantize-1"}
"""Element-wise ops that begin a chain which is taken as a whole."""

UNTAKEN: dict[str, tuple[str, object]] = dict.fromkeys(("Interpolate-4", "Interpolate-11"), ("mode", "nearest"))
"""Attributes with which the module of an op takes no work: these are no reason to load llvmlite."""

LEAST = {
    **dict.fromkeys(("SoftMax-1", "SoftMax-8", "LogSoftmax-5"), 1 << 14),
    **dict.fromkeys(("GroupNormalization-12", "MVN-1", "MVN-6", "NormalizeL2-1", "RootMeanSquare-0"), 1 << 14),
    **dict.fromkeys(("Interpolate-4", "Interpolate-11", "Convert-1", "Select-1", "Table-0"), 1 << 16),
    **dict.fromkeys(("Mod-1", "FloorMod-1", *_PICKING), 1 << 16),
    "ScaledDotProductAttention-13": LEAST_SCORES,
    "Bucketize-3": 1 << 13,
    "GroupConvolution-1": LEAST_DEPTHWISE,
    **dict.fromkeys(("CTCLoss-4", "AdaptiveAvgPool-8", "AdaptiveMaxPool-8", "LSTMCell-4", "GRUCell-3"), 1),
    "FakeQuantize-1": 1 << 15,
    **dict.fromkeys(ELEMENTWISE, 1 << 16),
    **dict.fromkeys(MOVING, 1 << 16),
    **dict.fromkeys(REDUCTIONS, 1 << 16),
}
"""Elements of the result of an op, of the data of a reduction, or scores of an attention, from which on works that are
computed several times are a reason to load llvmlite; once it is there it takes smaller ones, too."""

OF_BF16 = 8
"""How many times as long an element of bf16 takes without it, about."""

CONVERSIONS = frozenset({*((type, "f32") for type in ("f16", "u8", "i8", "u16", "i16")), ("f32", "f16")})
"""Types that the module `conversion` converts, and into which ones."""

LEAST_CODED = 1 << 14
"""Codes that it makes: fewer are left to others."""


@cache
def _of_module(name: str, table: str) -> Any:
    """What a table of the module for works of a name has, None where it has nothing."""
    if name in _MODULE_OF:
        return getattr(import_module(f"irrun.engines.compiled.{_MODULE_OF[name]}"), table, {}).get(name)
    op = op_of(name)
    if op is None or not op.parts:
        return None
    parts = import_module("irrun.engines.compiled.parts")
    return parts.compile if table == "COMPILERS" else parts.open


def _makes_codes(work: Work) -> bool:
    """Whether a work is of element-wise ops that make codes."""
    made = work.posts[-1].name if work.posts else work.name
    return made == QUANTIZE and (work.name == QUANTIZE or _MODULE_OF.get(work.name) == "elementwise")


def _is_of_integers(work: Work) -> bool:
    """Whether a work is of codes and constant weights that these can be multiplied by."""
    return is_of_codes(work) and multiplies_codes(work)


class CompiledEngine:
    """The engine "compiled", on `threads` threads: products with compressed weights, and what `MODULES` names, products
    of few rows only where it is given what has threads call a function in `parallel`, at an address, with an argument:
    those of the engine that computes other products. Others cost it nothing. It calls `loaded` once llvmlite is. `once`
    says that there will be one run. Where it is `quantized` it multiplies codes, where it is `coding` it makes them,
    with the processor's AVX2."""

    name = "compiled"
    decodes = True

    def __init__(
        self,
        threads: int,
        parallel: Callable[[int, int], object] | None = None,
        *,
        loaded: Callable[[], object] | None = None,
        once: bool = False,
        quantized: bool = False,
        coding: bool = False,
    ) -> None:
        self.threads, self._parallel, self._loaded, self._once = threads, parallel, loaded, once
        self.quantized, self.coding = quantized, coding
        self._team: Team | None = None
        self._pool = Threads(threads)

    def compile(self, work: Work) -> Compiled | None:
        if any(0 in own.shape or own.layout for own in work.tensors):
            return None
        if work.name in UNTAKEN and UNTAKEN[work.name] in work.attrs.items():
            return None
        if self._team is None and not self._is_reason(work):
            return None
        narrow = is_of_few_narrow_rows(work)
        few = narrow or (self._parallel is not None and is_of_few_rows(work))
        if work.name == "MatMul-1" and not work.compressed and not few:
            return None
        if self.quantized and _is_of_integers(work):
            compile = import_module("irrun.engines.compiled.integers").COMPILERS[work.name]
        elif _makes_codes(work):
            if not self.coding or prod(work.outputs[0].shape) < LEAST_CODED:
                return None
            compile = import_module("irrun.engines.compiled.coding").coded
        elif narrow:
            from irrun.engines.compiled.products import narrow_rows

            compile = narrow_rows
        elif work.compressed:
            from irrun.engines.compiled.products import COMPRESSED  # llvmlite is loaded with the first of them

            compile = COMPRESSED.get(work.name)
        else:
            compile = _of_module(work.name, "COMPILERS")
        compiled = None if compile is None else compile(work, self._threads())
        return None if compiled is None else checked(work, compiled)

    def _is_reason(self, work: Work) -> bool:
        """Whether a work is worth loading llvmlite, which takes as long as what it saves in a single run."""
        if work.name not in LEAST or (self.quantized and _is_of_integers(work)):
            return True
        if work.name == "Convert-1" and (work.required(1)[0].type, work.outputs[0].type) not in CONVERSIONS:
            return False
        if work.name in _PICKING and columns_of(work) is None:
            return False
        if work.name in MOVING and all(own is None or is_dense(own) for own in work.inputs):
            return False
        if _makes_codes(work):
            return self.coding
        size = prod(work.outputs[0].shape)
        if work.name == "ScaledDotProductAttention-13":
            size = scores_of(work)
        if work.name in REDUCTIONS:
            size = prod(work.required(1)[0].shape)
        ease = OF_BF16 if work.outputs[0].type == "bf16" else 1
        return not self._once and size * ease >= LEAST[work.name]

    def unaligned(self, name: str) -> bool:
        """Weights are laid out anew, and what posts read is read from anywhere."""
        return name == "MatMul-1" and self._parallel is not None

    def computes(self, name: str, type: str) -> bool:
        """What it takes is decided by weights, not by ops."""
        return False

    def together(self, calls: Sequence[Call]) -> None:
        self._pool.call(calls)()

    def open(self, work: Work) -> OpenCall | None:
        """A call for attention, small products, and ops whose sizes the data tell; others are made for sizes."""
        if work.name in _MODULE_OF and work.name not in OPENED:
            return None
        own = is_of_any_rows(work) and self._parallel is not None and not self._once
        if not own if work.name == "MatMul-1" else work.posts:
            return None
        open: Callable[[Work, Team], OpenCall | None] | None = _of_module(work.name, "OPENERS")
        return None if open is None or work.compressed else open(work, self._threads())

    def _threads(self) -> Team:
        from irrun.engines.compiled.team import Team

        if self._team is None:
            self._team = Team(self.threads, self._parallel)
            if self._loaded is not None:
                self._loaded()
        return self._team

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        if self._team is not None:
            from irrun.engines.compiled.transposition import reorder

            turned = reorder(operand, layout, self._team)
            if turned is not None:
                return turned
        return copied(self.name, operand, layout, self._pool)
