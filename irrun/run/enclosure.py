"""Instructions of unknown sizes that are a program of their own: prepared for the sizes that come again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.run.program import Instruction
from irrun.run.session import Run
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.preparation import Preparation


class Enclosure:
    """Safe for threads. `preparation` is that of the `enclosed` program of an instruction."""

    def __init__(self, preparation: Preparation, instruction: Instruction) -> None:
        self._preparation, self._by = preparation, instruction.op.name

    def compute(self, arrays: Sequence[Array | None], run: Run) -> tuple[str, list[Array]]:
        """What computes it, and the results for the arrays of its operands. Raises ExecutionError."""
        given = [array for array in arrays if array is not None]
        meter = run.meter
        block, frame = self._preparation.acquire(given, meter=meter)
        if meter is not None:
            meter.hold(frame.memory)
        try:
            results = frame.execute(given, run)
            for position in frame.copied:
                results[position] = results[position].copy()
        finally:
            if meter is not None:
                meter.let_go(frame.memory)
            self._preparation.release(block)
        if meter is not None:
            for array in results:
                meter.add(array)
        return self._by, results
