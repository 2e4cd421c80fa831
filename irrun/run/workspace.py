"""A workspace: the memory of a program, and the calls that compute in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

import numpy as np

from irrun.engines.memory import allocate
from irrun.engines.work import BUFFER, Call
from irrun.run.arena import Buffer
from irrun.run.plan import NOT_CONNECTED
from irrun.run.program import VIEW, CheckStep, Program, RunStep, Slot, Unit
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array


class Workspace:
    """Used by one thread at a time. `calls` are the units that compute in a run, in order."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.memory = allocate(program.size)
        scratch = allocate(program.scratch) if program.scratch else None
        self._slots: list[Array | None] = [None] * len(program.slots)
        self._run_step: RunStep
        self._check_step: CheckStep
        for number, slot in enumerate(program.slots):
            if slot.constant is not None:
                self._slots[number] = slot.constant
        for number, buffer in program.fixed.items():
            self._slots[number] = self._array(program.slots[number], buffer)
        bound = {number for number, array in enumerate(self._slots) if array is not None}
        self.calls: list[tuple[Unit, Call]] = []
        for unit in program.units:
            if unit.compiled is not None:
                inputs = [None if number == NOT_CONNECTED else self._slots[number] for number in unit.inputs]
                outputs = [self._present(number) for number in unit.outputs]
                own = scratch[: unit.compiled.scratch] if scratch is not None and unit.compiled.scratch else None
                call = unit.compiled.bind(inputs, outputs, own)
                self.calls.append((unit, partial(self._checked, unit, call) if unit.checked else call))
            elif unit.by == VIEW and bound.issuperset({*unit.inputs} - {NOT_CONNECTED}):
                self._look(unit)
                bound.update(unit.outputs)
            else:
                copied = [number for number in unit.outputs if number in program.fixed]
                self.calls.append((unit, partial(self._kernel, unit, copied)))
        self._calls = [call for _, call in self.calls]

    def _array(self, slot: Slot, buffer: Buffer) -> Array:
        memory = self.memory[buffer.offset : buffer.offset + buffer.size]
        if slot.layout is not None:
            return memory
        return np.ndarray(slot.shape or (), numpy_dtype(slot.type), memory, strides=slot.strides)

    def run(
        self,
        arrays: Sequence[Array],
        run_step: RunStep,
        check_step: CheckStep,
        timed: Callable[[Unit, float, float], None] | None = None,
    ) -> list[Array]:
        """The results for parameters `arrays`, some in the memory of this workspace (`Program.borrowed`).

        `run_step` runs a step that no engine took, `check_step` checks the data of one that an engine took. `timed` is
        told of each unit, when it began, and how many seconds it took.
        """
        program, slots = self.program, self._slots
        for number, array in zip(program.plan.parameters, arrays, strict=True):
            if number in program.fixed:
                np.copyto(self._present(number), array)
            else:
                slots[number] = array
        self._run_step, self._check_step = run_step, check_step
        before = np.setbufsize(BUFFER)
        try:
            if timed is None:
                for call in self._calls:
                    call()
            else:
                for unit, call in self.calls:
                    begin = perf_counter()
                    call()
                    timed(unit, begin, perf_counter() - begin)
        finally:
            np.setbufsize(before)
        results = [self._present(number) for number in program.results]
        for number in {*program.results, *program.plan.parameters}:
            if program.slots[number].constant is None and program.slots[number].root not in program.fixed:
                slots[number] = None
        return results

    def _present(self, number: int) -> Array:
        array = self._slots[number]
        assert array is not None, "a program computes what it reads"
        return array

    def _look(self, unit: Unit) -> None:
        step = unit.steps[0]
        args = [None if number == NOT_CONNECTED else self._slots[number] for number in unit.inputs]
        for number, result in zip(unit.outputs, step.compute(args), strict=False):
            self._slots[number] = result

    def _checked(self, unit: Unit, call: Call) -> None:
        step = unit.steps[0]
        inputs = unit.inputs[: len(step.inputs)]
        self._check_step(step, [None if number == NOT_CONNECTED else self._slots[number] for number in inputs])
        call()

    def _kernel(self, unit: Unit, copied: Sequence[int]) -> None:
        slots = self._slots
        args = [None if number == NOT_CONNECTED else slots[number] for number in unit.inputs]
        results = self._run_step(unit.steps[0], args)
        for number, result in zip(unit.outputs, results, strict=False):
            if number in copied:
                np.copyto(self._present(number), result)
            else:
                slots[number] = result
        for number in unit.frees:
            slots[number] = None
