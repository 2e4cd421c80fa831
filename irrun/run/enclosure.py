"""Instructions of unknown sizes that are a program of their own: prepared for the sizes that come again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.run.session import Run
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.bodies import Iterations
    from irrun.run.preparation import Preparation
    from irrun.run.program import Program


class Enclosure:
    """Safe for threads. `preparation` is that of the `enclosed` program of an instruction, perhaps with other numbers
    of tensors.

    Frames share what computes it: the sizes of a model's inputs often come once, those within a row again.
    """

    def __init__(self, enclosed: Program, preparation: Preparation) -> None:
        self.enclosed, self.preparation = enclosed, preparation
        self._idle: list[Iterations] = []

    def compute(self, arrays: Sequence[Array], run: Run) -> list[Array]:
        """The results for the arrays of its inputs. Raises ExecutionError."""
        try:
            iterations = self._idle.pop()
        except IndexError:  # another thread may have taken the last one just now
            iterations = self.preparation.iterations()
        results = iterations.once(arrays, run)
        self._idle.append(iterations)  # unless it has failed: nobody goes on with what is half done
        if run.meter is not None:
            run.meter.add(*results)
        return results
