"""Instructions of unknown sizes that are a program of their own: prepared for the sizes that come again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.run.session import Run
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.preparation import Preparation
    from irrun.run.program import Program


class Enclosure:
    """Safe for threads. `preparation` is that of the `enclosed` program of an instruction, perhaps with other numbers
    of tensors.

    Frames share what computes it: the sizes of a model's inputs often come once, those within a row again.
    """

    def __init__(self, enclosed: Program, preparation: Preparation) -> None:
        self.enclosed, self.preparation = enclosed, preparation

    def compute(self, arrays: Sequence[Array], run: Run) -> list[Array]:
        """The results for the arrays of its inputs, in memory of their own. Raises ExecutionError."""
        meter = run.meter
        # of a run that has failed nobody goes on with what is half done: its block is not released
        block, frame = self.preparation.acquire(arrays, watched=run.watched, meter=meter)
        if meter is not None:
            meter.hold(frame.owner, frame.memory.nbytes)
        try:
            results = frame.execute(arrays, run)
        finally:
            if meter is not None:
                meter.let_go(frame.owner, frame.memory.nbytes)
        for position in frame.copied:
            results[position] = results[position].copy()
        self.preparation.release(block)
        if meter is not None:
            meter.add(*results)
        return results
