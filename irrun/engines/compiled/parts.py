"""Ops by their own kernels, with compiled loops in place of some parts of these; see `PARTS` in `irrun.spec.op`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irrun.engines.compiled.ctc_loss import spelt
from irrun.engines.compiled.regions import pooled_regions
from irrun.engines.compiled.rotated_suppression import unsuppressed_rotated
from irrun.engines.compiled.soft_suppression import faded, lowest_decays
from irrun.engines.compiled.suppression import unsuppressed
from irrun.engines.compiled.team import Team
from irrun.engines.plain import op_of, write_results
from irrun.engines.threads import hold_blas
from irrun.engines.work import Arrays, Call, Compiled, OpenCall, Work
from irrun.spec.op import Array, Op, Tensor, Violation, results_of

QUICKER: dict[str, Callable[..., Any]] = {
    "suppress": unsuppressed,
    "suppress_rotated": unsuppressed_rotated,
    "decays": lowest_decays,
    "fade": faded,
    "pool": pooled_regions,
    "spell": spelt,
}
"""What is given for parts of kernels, after the threads and the op library's own."""


def compile(work: Work, team: Team) -> Compiled | None:
    """Ops whose sizes are known."""
    if work.posts:
        return None
    kernel = _kernel(work, team)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        return partial(write_results, kernel, inputs, outputs)

    return Compiled(bind)


def open(work: Work, team: Team) -> OpenCall | None:
    """Ops whose sizes the data tell. What their rules refuse is left to those who tell why."""
    kernel = _kernel(work, team)
    op, types = op_of(work.name), [None if operand is None else operand.type for operand in work.inputs]
    assert op is not None
    asked = any(-1 in operand.shape for operand in work.own[:2] if operand is not None)
    asked = asked or any(operand is not None and operand.value is None for operand in work.own[2:])

    def call(arrays: Sequence[Any]) -> Sequence[Array] | None:
        if asked and not _allowed(op, work, arrays, types):
            return None
        return [np.asarray(result) for result in results_of(kernel(*arrays))]

    return call


def _kernel(work: Work, team: Team) -> Callable[..., Any]:
    """The op's kernel with its attributes, what it asks for, and the compiled loop."""
    op = op_of(work.name)
    assert op is not None
    types = {port.type: operand.type for port, operand in zip(op.outputs, work.outputs, strict=False)}
    context = {"types": types} if "types" in op.context else {}
    parts = {name: partial(QUICKER[name], team, own) for name, own in op.parts.items()}
    # threads of BLAS and those of the team would wait for one another
    return partial(hold_blas, partial(op.kernel, **work.attrs, **context, **parts))


def _allowed(op: Op, work: Work, arrays: Sequence[Any], types: Sequence[str | None]) -> bool:
    given = [None if array is None else Tensor.of(array, type) for array, type in zip(arrays, types, strict=True)]
    try:
        op.infer(given, work.attrs)
    except Violation:
        return False
    return True
