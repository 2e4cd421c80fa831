"""The oneDNN engine: which works it takes, and who compiles them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import prod

from irrun.engines.axes import dense_strides, is_dense
from irrun.engines.depthwise import is_depthwise
from irrun.engines.grid import QUANTIZE, is_of_codes
from irrun.engines.heads import LEAST_SCORES, is_streamed, scores_of
from irrun.engines.onednn import attention, copies, elementwise, normalization, products
from irrun.engines.onednn.library import FEW_ELEMENTS, Descriptor, Library
from irrun.engines.onednn.posts import DEQUANTIZE
from irrun.engines.onednn.tensors import itemsize
from irrun.engines.orders import is_of_short_rows
from irrun.engines.rows import LEAST_JOINED, is_of_few_narrow_rows, is_of_few_rows, strips_of
from irrun.engines.work import Call, Compiled, Layout, Operand, Work

Compiler = Callable[[Library, Work], Compiled | None]

LATE = {
    "convolution": "Convolution-1 GroupConvolution-1 ConvolutionBackpropData-1 GroupConvolutionBackpropData-1",
    "pooling": "MaxPool-1 MaxPool-8 MaxPool-14 AvgPool-1 AvgPool-14 AvgPool-16 ReduceMean-1",
    "contraction": "Einsum-7",
    "recurrent": "LSTMSequence-5 LSTMCell-4 GRUSequence-5 GRUCell-3 RNNSequence-5 RNNCell-3",
}
"""Modules that are loaded with the first work of their tables `COMPILERS`, which are of these ops: models of matrices
need none of them. That of products of codes, `quantized`, is another one."""


def _late(module: str) -> dict[str, Compiler]:
    def compile(library: Library, work: Work) -> Compiled | None:
        compilers: dict[str, Compiler] = import_module(f"irrun.engines.onednn.{module}").COMPILERS
        return compilers[work.name](library, work)

    return dict.fromkeys(LATE[module].split(), compile)


def _dequantize(library: Library, work: Work) -> Compiled | None:
    from irrun.engines.onednn.quantized import dequantize

    return dequantize(library, work)


def _quick_depthwise(library: Library, work: Work) -> Compiled | None:
    from irrun.engines.onednn.convolution import quick_depthwise

    return quick_depthwise(library, work)


def _joined(*tables: Mapping[str, Compiler]) -> dict[str, Compiler]:
    return {op: compile for table in tables for op, compile in table.items()}


_OF_FLOATS = _joined(
    *(module.COMPILERS for module in (attention, copies, elementwise, normalization, products)),
    *(_late(module) for module in ("convolution", "pooling")),
)
COMPILERS: dict[str, dict[str, Compiler]] = {
    "f32": _joined(_OF_FLOATS, _late("contraction"), _late("recurrent"), {DEQUANTIZE: _dequantize}),
    "bf16": _joined(_OF_FLOATS, *(module.BF16_COMPILERS for module in (copies, elementwise, normalization))),
    "f16": _joined(copies.F16_COMPILERS),
}
"""By element type; works in which several occur are of the last one here."""

SMALL_CELLS = frozenset({"LSTMCell-4", "GRUCell-3"})
"""Ops that others have code of their own for, where there are few rows."""

VERY_FEW = 4
"""Rows for which oneDNN goes over weights more slowly than memory gives them, however many these are."""

PREPARED_LONG = frozenset({"Convolution-1", "ConvolutionBackpropData-1"})
"""Works of f32 whose code takes some 5 ms to make, each, and whose weights are laid out anew: in a single run numpy is
as quick with what needs the most operations, and several times as quick with many of them."""

CODES = frozenset({"u8", "i8"})
CODED = frozenset(
    {QUANTIZE, DEQUANTIZE, *copies.COMPILERS, *(op for op in LATE["pooling"].split() if op.startswith("MaxPool"))}
)
"""Ops that are computed on codes, or make them."""


class OneDNN:
    """The engine: it takes f32 and bf16 tensors of known, non-empty shapes, and converts f16. Unless it is `alone` it
    leaves products of few rows to others, attention that is worth code of its own, and depthwise convolutions that it
    has no kernel for; one that is `sparing` leaves convolutions."""

    name = "onednn"
    decodes = coding = False

    def __init__(self, library: Library, *, alone: bool = True, sparing: bool = False) -> None:
        self._library, self.alone, self._sparing = library, alone, sparing
        self.threads, self.wide = library.threads, library.wide
        self.quantized, self.pairs = library.exact, library.pairs
        self._compiling = False  # whether what compiles code for others is loaded

    @property
    def leaves_codes(self) -> bool:
        """Whether it leaves codes to others: it would not add up products of bytes exactly, but the processor can."""
        return self.pairs and not self.quantized

    def parallel(self, address: int, argument: int) -> None:
        """Have each of its threads call a function of C with an argument, and wait for them."""
        self._library.parallel(address, argument)

    def expect_compiled(self) -> None:
        """Learn that what compiles code for others is loaded, so that none of these works has to be worth that."""
        self._compiling = True

    def compile(self, work: Work) -> Compiled | None:
        if self.quantized and is_of_codes(work):
            from irrun.engines.onednn import quantized

            found = self._library.works.compiled("codes", work, partial(quantized.compile, self._library))
            if found is not None:
                return found
        tensors = (*work.inputs[:1], *work.outputs)
        types = {None if operand is None else operand.type for operand in tensors}
        if types & CODES and _is_coding(work) and types <= CODES | {"f32"}:
            types = {"f32"}
        if (
            work.compressed
            or not types <= COMPILERS.keys()
            or any(operand is None or 0 in operand.shape for operand in tensors)
            or (not self.alone and self._leaves(work))
            or (self._sparing and work.name in PREPARED_LONG and types == {"f32"})
        ):
            return None
        type = next(type for type in ("f16", "bf16", "f32") if type in types)
        compiler = COMPILERS[type].get(work.name)
        if compiler is None:
            return None
        prepare = partial(_quick_depthwise if not self.alone and is_depthwise(work) else compiler, self._library)
        if "bf16" in types:
            prepare = partial(_made_dense, prepare)
        return self._library.works.compiled(self.name, work, prepare)

    def _leaves(self, work: Work) -> bool:
        """Whether others compute a work sooner."""
        if work.name in elementwise.COMPILERS:
            return is_of_short_rows(work) or self._leaves_elements(work)
        if work.name == "Concat-1":
            return prod(work.outputs[0].shape) >= LEAST_JOINED and strips_of(work) is not None
        return self._leaves_rows(work) or self._leaves_scores(work) or _leaves_cell(work)

    def _leaves_elements(self, work: Work) -> bool:
        """Whether a work is of so few elements of f32 that one thread computes them: it costs others less to call that,
        next to nothing in one call with what comes before and behind. To prepare it costs them more, which is for sizes
        that do not change."""
        (result,) = work.outputs
        few = prod(result.shape) < FEW_ELEMENTS and result.type == "f32"
        plain = all(own.layout is None for own in work.tensors)  # what lies in blocks others would have to reorder
        return few and plain and self._compiling and self._library.lasting

    def _leaves_rows(self, work: Work) -> bool:
        """Whether a work is a product of few rows that others compute sooner. Where vectors are wide, or sizes change,
        these are very few, or so little to do that oneDNN has one thread for it: else it is as quick, or saves less in
        the runs of a length than it takes to lay weights out for others once more."""
        if is_of_few_narrow_rows(work):
            return self._library.bf16 and not self._library.once
        if not is_of_few_rows(work):
            return False
        right = work.required(2)[1]
        rows = prod(work.outputs[0].shape) // right.shape[-2 if work.attrs["transpose_b"] else -1]
        worth = not self.wide and self._library.lasting
        return worth or rows <= VERY_FEW or rows * prod(right.shape) < products.FEW_OF_WEIGHTS

    def _leaves_scores(self, work: Work) -> bool:
        """Whether a work is attention that others compute without keeping its scores, on vectors that add products, or
        in tiles. Where there are few of these, that is as quick here, but takes three primitives for each of the sizes
        that change."""
        there = self._library.bf16 if work.outputs[0].type == "bf16" else self._library.pairs
        if not there or not is_streamed(work):
            return False
        return scores_of(work) >= LEAST_SCORES or (not self._library.lasting and self._compiling)

    def unaligned(self, name: str) -> bool:
        """It lays them out anew, or reads them as they are."""
        return True

    def computes(self, name: str, type: str) -> bool:
        return name in COMPILERS.get(type, ()) and (type != "bf16" or self._library.bf16)

    def together(self, calls: Sequence[Call]) -> None:
        self._library.pool.call(calls)()

    def open(self, work: Work) -> None:
        """Its primitives are made for sizes."""

    def reorder(self, operand: Operand, layout: Descriptor | None) -> Compiled:
        return copies.reorder(self._library, operand, layout)


def _leaves_cell(work: Work) -> bool:
    """Whether a work is a recurrent cell of few rows, which others compute sooner."""
    if work.name not in SMALL_CELLS:
        return False
    from irrun.engines.onednn.networks import network_of

    network = network_of(work)
    return network is not None and network.is_small_cell


def _made_dense(prepare: Callable[[Work], Compiled | None], work: Work) -> Compiled | None:
    """A work of bf16, which no other engine computes, on inputs that are made dense where it is not taken otherwise."""
    compiled = prepare(work)
    wants: dict[int, Layout | None] = {}
    inputs = list(work.inputs)
    for number, operand in enumerate(inputs):
        if compiled is None and operand is not None and operand.value is None and not is_dense(operand):
            strides = dense_strides(operand.shape, itemsize(operand))
            inputs[number], wants[number] = Operand(operand.type, operand.shape, strides), None
    if not wants:
        return compiled
    compiled = prepare(replace(work, inputs=inputs))
    return None if compiled is None else replace(compiled, wants={**wants, **compiled.wants})


def _is_coding(work: Work) -> bool:
    """Whether a work is done on codes, or makes them."""
    return work.name in CODED or any(post.name in CODED for post in work.posts[-1:])
