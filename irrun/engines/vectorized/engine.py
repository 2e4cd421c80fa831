"""The engine on numpy alone: which module computes which op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

from irrun.engines import processors
from irrun.engines.signature import Memory
from irrun.engines.vectorized import compressed
from irrun.engines.vectorized.copying import copied
from irrun.engines.vectorized.threads import Threads
from irrun.engines.vectorized.widening import widened
from irrun.engines.work import Call, Compiled, Layout, OpenCall, Operand, Work

Compiler = Callable[[Work, Threads], Compiled | None]
"""What prepares the works of an op, given the threads that it may use; None as its answer leaves the work to others."""

MODULES = (
    *("elementwise", "products", "convolution", "depthwise", "pooling", "reduction", "normalization", "copies"),
    *("gathers", "attention", "resampling", "recurrent", "transposed_convolution", "embeddings"),
    *("contraction", "binary_convolution", "tables", "fourier"),
)
"""Each has a table `COMPILERS` of the ops that it computes. They are loaded in this order, as far as a model needs."""


MOVING = frozenset({"copies", "gathers"})
"""Modules of ops that only move elements, of whatever type."""

CONVERSION = "Convert-1"
"""The op between types."""


def compilers_of(module: str) -> dict[str, Compiler]:
    """The table of a module."""
    compilers: dict[str, Compiler] = import_module(f"irrun.engines.vectorized.{module}").COMPILERS
    return compilers


@cache
def module_of(op: str) -> str | None:
    """The module that computes an op."""
    return next((module for module in MODULES if op in compilers_of(module)), None)


@cache
def compiler_of(op: str) -> Compiler | None:
    """What prepares the works of an op."""
    module = module_of(op)
    return None if module is None else compilers_of(module)[op]


@cache
def opener_of(op: str) -> Callable[[Work, Threads], OpenCall | None] | None:
    """What gives calls for works of an op whose sizes are open, if its module has a table `OPENERS` of such."""
    module = module_of(op)
    openers = {} if module is None else getattr(import_module(f"irrun.engines.vectorized.{module}"), "OPENERS", {})
    return openers.get(op)


class VectorizedEngine:
    """The engine "numpy". Its pool has `threads` threads, as many as there are processors unless given."""

    name = "numpy"
    unaligned = False
    decodes = False
    quantized = False

    def __init__(self, threads: int | None = None) -> None:
        self.pool = Threads(threads or processors())
        self.threads = self.pool.count
        self._works = Memory()

    def compile(self, work: Work) -> Compiled | None:
        """Prepare a work; None where it is left to others, as all are that have an empty tensor."""
        tensors = [*work.inputs, *work.outputs]
        compiler = compressed.COMPRESSED.get(work.name) if work.compressed else compiler_of(work.name)
        if compiler is None or any(own is not None and (0 in own.shape or own.layout) for own in tensors):
            return None

        def prepare(work: Work) -> Compiled | None:
            narrow = any(own is not None and own.type == "bf16" for own in (*work.inputs, *work.outputs))
            if not narrow or (not work.posts and (work.name == CONVERSION or module_of(work.name) in MOVING)):
                return compiler(work, self.pool)
            return widened(work, lambda wide: compiler(wide, self.pool))

        return self._works.compiled(self.name, work, prepare)

    def computes(self, name: str, type: str) -> bool:
        module = module_of(name)
        return module is not None and (type == "f32" or module in MOVING)

    def together(self, calls: Sequence[Call]) -> None:
        self.pool.call(calls)()

    def open(self, work: Work) -> OpenCall | None:
        opener = opener_of(work.name)
        return None if opener is None else opener(work, self.pool)

    def reorder(self, operand: Operand, layout: Layout | None) -> Compiled:
        return copied(self.name, operand, layout, self.pool)
