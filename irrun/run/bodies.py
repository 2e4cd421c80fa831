"""The body of an op in a run: iteration after iteration, in one frame as long as its shapes stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from irrun.ir.graph import Layer
from irrun.run.memory import MAX_TINY, refusal
from irrun.run.program import Program
from irrun.run.session import Run
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.memory import Meter


class Prepared(Protocol):
    """A program that is made ready for arrays of any shapes."""

    def iterations(self) -> Iterations: ...


class Iterations(Protocol):
    """Runs of one program, one after the other, from `begin` to `end`, and again. Results are nobody else's.

    `results` are the bytes of these where all are small and of sizes that do not change, else None.
    """

    results: int | None

    def begin(self, run: Run) -> None: ...

    def __call__(self, arrays: Sequence[Array], run: Run) -> list[Array]: ...

    def once(self, arrays: Sequence[Array], run: Run) -> list[Array]: ...

    def end(self) -> None: ...


class RunningBody:
    """What an op runs its body with. It is used by one run at a time, from `begin` to `end`."""

    def __init__(self, program: Program, prepared: Prepared, layer: Layer, name: str) -> None:
        self._layer, self._name = layer, name
        self._iterations = prepared.iterations()
        self._assigns = any(instruction.effects for instruction in program.instructions)
        self._run: Run | None = None
        self._meter: Meter | None = None
        self._plain = self._begun = False
        self._number = self._counted = 0

    def begin(self, run: Run) -> None:
        self._run = run

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        run = self._run
        assert run is not None, "a body runs between `begin` and `end`"
        if not self._begun:  # a branch that is not taken costs nothing
            self._begun = True
            self._meter = run.meter
            self._plain = run.observer is None and run.profile is None and not self._assigns
            self._iterations.begin(run)
        results = self._iterations(arrays, run) if self._plain else self._among_others(arrays, run)
        if self._meter is not None:
            self._count(results, self._meter)
        return results

    def once(self, arrays: Sequence[Array], run: Run) -> list[Array]:
        """A run that is the only one from `begin` to `end`."""
        if self._assigns or run.observer is not None or run.profile is not None:
            self.begin(run)
            try:
                return self(arrays)
            finally:
                self.end()
        return self._iterations.once(arrays, run)

    def end(self) -> None:
        self._run = None
        if not self._begun:
            return
        self._begun = False
        self._iterations.end()
        if self._meter is not None:
            self._meter.live -= self._counted
        self._meter = None
        self._number = self._counted = 0

    def _among_others(self, arrays: Sequence[Array], run: Run) -> list[Array]:
        """An iteration that somebody looks at, or that assigns variables."""
        if run.observer is not None or run.profile is not None:
            run = run.inside(self._layer, self._name, self._number)
        self._number += 1
        if not self._assigns:
            return self._iterations(arrays, run)
        outside = run.variables.enter()
        results = self._iterations(arrays, run)
        run.variables.leave(outside)
        return results

    def _count(self, results: Sequence[Array], meter: Meter) -> None:
        """What is small is in use until the layer is through: to follow each takes longer than to make it."""
        wanted = self._iterations.results
        if wanted is None:
            wanted = 0
            for array in results:
                if array.nbytes <= MAX_TINY:
                    wanted += array.nbytes
                else:
                    meter.add(array)
        self._counted += wanted
        meter.live += wanted
        if meter.live > meter.limit:
            raise refusal(self._layer, "what its body gives", 0, meter.live, meter.limit)
