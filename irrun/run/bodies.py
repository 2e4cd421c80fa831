"""The body of an op in a run: iteration after iteration, in one frame as long as its shapes stay the same."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from irrun.ir.graph import Layer
from irrun.run.memory import MAX_TINY, owner_of, refusal, tensor_bytes
from irrun.run.program import Program
from irrun.run.session import Run
from irrun.spec.body import Body
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.blocks import Block
    from irrun.run.frame import Frame
    from irrun.run.memory import Meter
    from irrun.run.preparation import Preparation

MAX_SMALL = 1024
"""Bytes of a result of a body that is small."""

MAX_HELD = 1 << 20
"""Bytes of a block that a body keeps for itself from one call of its layer to the next."""


class Iterations:
    """Runs of a program, one after the other, in one frame as long as their shapes stay the same.

    They go from `begin` to `end`, and again; a small frame is kept in between, too. Results at the positions `passing`
    are read until the next run ends, or if there is none. After a run `made` are the positions of those in memory that
    it has made, and `nbytes` their bytes where all are small and of sizes that do not change, else None.
    """

    def __init__(self, preparation: Preparation, passing: Set[int], *, fixed: bool) -> None:
        self._preparation, self._passing, self._watched, self._fixed = preparation, passing, False, fixed
        self._meter: Meter | None = None
        self._held: tuple[Block, Frame] | None = None
        self._shapes: list[tuple[int, ...]] = []
        self._before: Sequence[Array] = ()
        self._copied: Sequence[int] = ()
        self._passed: Sequence[int] = ()
        self._looking: Sequence[int] = ()
        self._kept: list[list[tuple[int, Array]] | None] = [None, None]  # what has passed in the runs before
        self._lasting: Sequence[int] = ()
        self._bytes: int | None = None
        self.made: Sequence[int] = ()
        self.nbytes: int | None = None

    def begin(self, run: Run) -> None:
        """Go on in the frame that is held, if this run may: one that looks at tensors, or has less memory, may not."""
        watched = run.watched
        meter = self._meter = run.meter
        if self._held is not None and (watched != self._watched or not self._preparation.keeps(self._held[1], meter)):
            self._release()
        self._watched = watched
        if self._held is not None and meter is not None:
            meter.hold(self._held[1].owner, self._held[1].memory.nbytes)

    def __call__(self, arrays: Sequence[Array], run: Run) -> list[Array]:
        """The results, as arrays that the next run does not write to, but for what passes nor those after it."""
        shapes = [] if self._fixed else [array.shape for array in arrays]
        if self._held is None:
            self._acquire(arrays)
        elif shapes != self._shapes and not self._preparation.fits(self._held[1], tuple(shapes), self._watched):
            self._let_go()
            self._release()
            self._acquire(arrays)
        assert self._held is not None
        self._shapes = shapes
        frame = self._held[1]
        try:
            results = frame.execute(arrays, run, self._before)
        except BaseException:  # wherever that has come in between: nobody goes on with what is half done
            self._held = None
            raise
        self._before = tuple(arrays)
        for position in self._copied:
            results[position] = results[position].copy()
        for position in self._looking:
            if self._is_kept(results[position]):
                results[position] = results[position].copy()
        kept = self._kept
        kept.reverse()
        memory = kept[0]
        if memory is None:
            memory = kept[0] = [(position, np.empty_like(results[position], order="C")) for position in self._passed]
            self.made, self.nbytes = range(len(results)), None
        else:
            self.made, self.nbytes = self._lasting, self._bytes
        for position, array in memory:
            np.copyto(array, results[position])
            results[position] = array
        return results

    def _is_kept(self, array: Array) -> bool:
        """Whether an array looks at memory that a later run writes to."""
        owner = owner_of(array)
        return any(owner is own for kept in self._kept for _, own in kept or ())

    def once(self, arrays: Sequence[Array], run: Run) -> list[Array]:
        """The results of a run that is the only one from `begin` to `end`."""
        self.begin(run)
        try:
            return self(arrays, run)
        finally:
            self.end()

    def end(self) -> None:
        """Let go of what a run has; a frame stays for the next one unless it is large."""
        self._let_go()
        self._meter, self._before, self._kept = None, (), [None, None]
        if self._held is not None and self._held[0].memory.nbytes > MAX_HELD:
            self._release()

    def _acquire(self, arrays: Sequence[Array]) -> None:
        self._held = self._preparation.acquire(arrays, watched=self._watched, meter=self._meter)
        if self._meter is not None:
            self._meter.hold(self._held[1].owner, self._held[1].memory.nbytes)
        frame = self._held[1]
        program = frame.program
        placed = [position for position, number in enumerate(program.results) if number in program.storage]
        self._passed = [own for own in frame.copied if own in self._passing and own in placed]  # of one size each time
        self._copied = [position for position in frame.copied if position not in self._passed]
        made = [own for own, number in enumerate(program.results) if number not in program.constants]
        self._looking = [own for own in made if self._passed and own not in placed]  # by kernels, at parameters perhaps
        self._kept = [None, None]
        self._lasting = [position for position in range(len(program.results)) if position not in self._passed]
        lasting = [program.tensors[program.results[position]] for position in self._lasting]
        small = all(tensor.static and tensor_bytes(tensor) <= MAX_SMALL for tensor in lasting)
        self._bytes = sum(map(tensor_bytes, lasting)) if small else None

    def _let_go(self) -> None:
        if self._held is not None and self._meter is not None:
            self._meter.let_go(self._held[1].owner, self._held[1].memory.nbytes)

    def _release(self) -> None:
        if self._held is not None:
            self._preparation.release(self._held[0])
        self._held, self._before = None, ()


class RunningBody:
    """What an op runs its body with. It is used by one run at a time, from `begin` to `end`."""

    def __init__(self, body: Body, program: Program, preparation: Preparation, layer: Layer, name: str) -> None:
        self._layer, self._name = layer, name
        self._iterations = preparation.iterations(body.passing)
        self._assigns = any(instruction.effects for instruction in program.instructions)
        self._run: Run | None = None
        self._meter: Meter | None = None
        self._plain = self._begun = False
        self._number = self._counted = 0

    def begin(self, run: Run) -> None:
        """Make ready for the calls of one run."""
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
        if self._meter is not None and self._iterations.made:
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
        """What was counted and held for these calls is not any more."""
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
        wanted = self._iterations.nbytes
        if wanted is None:
            wanted = 0
            for position in self._iterations.made:
                array = results[position]
                if array.nbytes <= MAX_TINY:
                    wanted += array.nbytes
                else:
                    meter.add(array)
        self._counted += wanted
        meter.live += wanted
        if meter.live > meter.limit:
            raise refusal(self._layer, "what its body gives", 0, meter.live, meter.limit)
