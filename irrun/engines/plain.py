"""Ops by their own kernels, for what an engine is not made for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irrun.engines.work import Arrays, Call, Work
from irrun.spec.op import Array, Op, results_of
from irrun.spec.registry import registry


def op_of(name: str) -> Op | None:
    """The op of a work, without loading more of the library than was."""
    type, _, version = name.rpartition("-")
    op = registry().find(type, f"opset{version}")
    return op if op is not None and op.name == name else None


def kernel_of(work: Work) -> Callable[..., Any]:
    """The kernel of a work's op, with the attributes."""
    op = op_of(work.name)
    assert op is not None, "the work is of a known op"
    return partial(op.kernel, **work.attrs)


def plain_call(work: Work, inputs: Arrays, outputs: Sequence[Array]) -> Call:
    """A call by the kernel of a work's op, which asks for nothing but its inputs; posts are left to others."""
    return partial(write_results, kernel_of(work), inputs[: len(work.own)], outputs)


def write_results(kernel: Any, inputs: Arrays, outputs: Sequence[Array]) -> None:
    """Have a kernel compute, and its first results where they are wanted."""
    for output, result in zip(outputs, results_of(kernel(*inputs)), strict=False):
        np.copyto(output, result)
