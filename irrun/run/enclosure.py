"""Instructions of unknown sizes that are a program of their own: prepared for the sizes that come again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irrun.run.session import Run
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.preparation import Preparation

Enclosed = Callable[[Sequence[Array], Run], list[Array]]
"""Computes the results for the arrays of its inputs. Raises ExecutionError."""


class Enclosure:
    """Safe for threads. `preparation` is that of the `enclosed` program of an instruction."""

    def __init__(self, preparation: Preparation) -> None:
        self.preparation = preparation

    def computation(self) -> Enclosed:
        """What one frame computes it with, which keeps a frame of its own as bodies do."""
        iterations = self.preparation.iterations()

        def compute(arrays: Sequence[Array], run: Run) -> list[Array]:
            results = iterations.once(arrays, run)
            if run.meter is not None:
                for array in results:
                    run.meter.add(array)
            return results

        return compute
