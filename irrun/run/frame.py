"""A frame: the memory of a program, and the calls that compute in it. It is used by one run at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from operator import length_hint
from time import perf_counter
from typing import Any

import numpy as np

from irrun.diagnostics import IRError
from irrun.engines.memory import aligned
from irrun.engines.work import Call, Joinable, either
from irrun.interruption import hand_on
from irrun.run.borrowing import Elsewhere, handed_on, lasting, read_as_given
from irrun.run.compiling import EngineFailed
from irrun.run.computation import Computation
from irrun.run.enclosure import Enclosure
from irrun.run.kernels import Kernels
from irrun.run.memory import owner_of, owners
from irrun.run.observation import Observation
from irrun.run.program import VIEW, Instruction, Program, Quick
from irrun.run.session import Run
from irrun.run.specialization import Specialization
from irrun.run.tensors import Tensors
from irrun.spec.op import Array

MAX_JOINED, MAX_SECONDS = 64, 0.02
"""Calls that are made as one, and how long they take on one thread: who interrupts a run need not wait for more, and is
told where it is."""


class Frame:
    """The calls of a program that engines have compiled, bound to the beginning of a `block` of memory.

    `specializations` are its instructions of unknown sizes, by number. Large results are handed on in memory that is
    `given`, large inputs of one that `borrows` are read where they lie. Where it is `checked` all that engines
    compute is held against the ops' kernels.

    Raises EngineFailed where one cannot bind what it has compiled.
    """

    def __init__(
        self,
        program: Program,
        block: Array,
        kernels: Kernels,
        specializations: Mapping[int, Specialization | Enclosure],
        given: Callable[[int], Array],
        borrows: bool,
        checked: bool,
    ) -> None:
        self.program, self._kernels, self._checks = program, kernels, checked
        self._run: Run
        self._computed_by: str | None = None  # the latest instruction, where only the run decides
        begin = aligned(program.scratch)  # scratch comes first: where it lies has been written to by other frames
        self.memory, self.owner = block[begin : begin + program.size], id(owner_of(block))
        self._scratch = block[: program.scratch] if program.scratch else None
        self._tensors = Tensors(program, self.memory)
        self._arrays = self._tensors.arrays
        made = {number for instruction in program.instructions for number in instruction.results}
        self._loose = tuple(made.union(program.parameters) - {*program.storage, *program.constants})
        results = {} if checked else handed_on(program)
        inputs = [] if checked or not borrows else read_as_given(program)
        elsewhere = Elsewhere(self._tensors, kernels, results, inputs, given) if results or inputs else None
        lying = lasting(program) - results.keys()
        self.copied = [position for position, number in enumerate(program.results) if number in lying]
        there = {own.position for own in inputs}
        entries = [entry for entry in enumerate(program.parameters) if entry[0] not in there]
        self._fed = [
            (position, self._tensors.present(number)) for position, number in entries if number in program.storage
        ]
        self._loose_parameters = [(position, number) for position, number in entries if number in self._loose]
        self._computations: dict[int, Computation] = {}
        self._instructions: list[Instruction] = []
        self._calls: list[Call] = []
        for position, instruction in enumerate(program.instructions):
            call = self._call(instruction, specializations.get(position))
            if call is not None:
                self._instructions.append(instruction)
                self._calls.append(call if elsewhere is None else elsewhere.bound(instruction, call))
        self._elsewhere = elsewhere
        self._steps, self._joined = _joined(self._instructions, self._calls)

    @cached_property
    def owners(self) -> set[int]:
        """The ids of the arrays that have the memory of the program, which a meter counts as one."""
        return owners([*self.program.constants.values(), self.memory])

    def execute(self, arrays: Sequence[Array], run: Run, before: Sequence[Array | None] = ()) -> list[Array]:
        """The results for parameters `arrays`, some in the memory of this frame. Raises ExecutionError.

        `before` are the arrays that the same frame was given last, where nobody has written to these since.
        """
        for position, target in self._fed:
            if not before or arrays[position] is not before[position]:
                np.copyto(target, arrays[position])
        for position, number in self._loose_parameters:
            self._arrays[number] = arrays[position]
        if self._elsewhere is not None:
            self._elsewhere.before(arrays, self._engine_call, copied=run.observer is not None)
        self._run = run
        alone = run.observer is None and run.profile is None
        instructions, bound = (self._steps, self._joined) if alone else (self._instructions, self._calls)
        calls = iter(bound)
        run.trail.append((instructions, calls))
        try:
            if alone:
                for call in calls:
                    call()
            else:
                told = None if run.observer is None else Observation(run.observer, run, self._tensors, self._kernels)
                if told is not None and run.watched:
                    told.tell_ahead()
                for number, call in enumerate(calls):
                    self._watched(self._instructions[number], call, run, told)
        except IRError:
            raise
        except Exception as error:
            hand_on(error)
            instruction = instructions[len(bound) - length_hint(calls) - 1]
            raise self._kernels.failed(instruction, f"engine {instruction.by}", error) from error
        else:
            made = self._arrays
            results = [made[number] for number in self.program.results]
            if self._elsewhere is not None:
                self._elsewhere.after()
            return results  # type: ignore[return-value] # all are made
        finally:
            del self._run
            run.trail.pop()
            if self._loose:
                for number in self._loose:
                    self._arrays[number] = None

    def close(self) -> None:
        """Let go of all that refers to this frame in turn, which only the garbage collector would find otherwise."""
        self._calls.clear()
        self._joined.clear()
        self._elsewhere = None

    # What computes an instruction

    def _call(self, instruction: Instruction, specialization: Specialization | Enclosure | None) -> Call | None:
        """The call that computes an instruction; None for a view that is the same in every run."""
        if instruction.compiled is not None:
            return self._engine_call(instruction)
        if isinstance(specialization, Enclosure):
            return self._enclosed_call(instruction, specialization)
        if instruction.by == VIEW and instruction.outputs[0] in self.program.storage:
            if self._arrays[instruction.outputs[0]] is None:  # of a constant
                results = instruction.computed(self._tensors.operands(instruction.reads))
                for number, result in zip(instruction.outputs, results, strict=False):
                    self._arrays[number] = result
            return None
        call: Call
        if specialization is None:
            call = self._kernel_call(instruction)
        else:
            call = partial(self._by_specialization, instruction, specialization)
        return call if instruction.quick is None else self._quick_call(instruction, instruction.quick, call)

    def _engine_call(self, instruction: Instruction) -> Call:
        """The call of what an engine has compiled, bound to the arrays of the frame. Raises EngineFailed.

        Around it lie, from the inside: kernels where its result is in doubt, what takes data that it has judged, the
        comparison where all is checked, and the rule that has to see the data, which what judges does without unless
        it is compared.
        """
        compiled, work = instruction.compiled, instruction.work
        assert compiled is not None
        assert work is not None
        inputs = self._tensors.operands(instruction.reads)
        outputs = [self._tensors.present(number) for number in instruction.results[: len(work.outputs)]]
        try:
            scratch = self._scratch[: compiled.scratch] if self._scratch is not None and compiled.scratch else None
            call = compiled.bind(inputs, outputs, scratch)
            judging = None if compiled.judging is None else compiled.judging(inputs, outputs, scratch)
        except Exception as error:
            hand_on(error)
            raise EngineFailed(instruction.by, instruction.layer, error) from error
        if compiled.doubtful:
            call = partial(self._doubted, instruction, call)
        if self._checks:
            call = partial(self._compared, instruction, call if judging is None else either(judging, call))
            judging = None
        if instruction.open:
            call = partial(self._asked, instruction, call)
        return call if judging is None else either(judging, call)

    def _asked(self, instruction: Instruction, call: Call) -> None:
        self._computation(instruction).check(self._tensors.operands(instruction.inputs), self._run)
        call()

    def _doubted(self, instruction: Instruction, call: Call) -> None:
        call()
        number = instruction.results[0]
        storage = self.program.storage[number]
        numbers = self.memory[storage.offset : storage.offset + storage.nbytes].view(np.float32)
        if np.isfinite(np.dot(numbers, numbers)):  # the quickest way to look at all of them
            return
        given = [None if operand is None else self._tensors.plain(operand) for operand in instruction.operands]
        (result,) = self._computation(instruction)(given, self._run)
        self._tensors.replace(number, result)

    def _compared(self, instruction: Instruction, call: Call) -> None:
        call()
        assert instruction.work is not None
        given = [None if number is None else self._tensors.plain(number) for number in instruction.operands]
        found = [self._tensors.plain(number) for number in instruction.results[: len(instruction.work.outputs)]]
        self._compare(instruction, instruction.by, given, found)

    def _compare(self, instruction: Instruction, by: str, given: Sequence[Array | None], found: list[Array]) -> None:
        if self._checks:
            from irrun.run.comparison import hold  # which other engines than "check" do without

            hold(self._kernels, self._computation(instruction), instruction, by, given, found, self._run)

    def _computation(self, instruction: Instruction) -> Computation:
        found = self._computations.get(id(instruction))
        if found is None:
            found = self._computations[id(instruction)] = self._kernels.computation(self.program, instruction)
        return found

    def _kernel_call(self, instruction: Instruction) -> Call:
        """A call by the kernels of its ops."""
        arrays, operands, store = self._arrays, instruction.operands, self._storing(instruction)
        computation = self._computation(instruction)

        def call() -> None:
            given = [None if number is None else arrays[number] for number in operands]
            store(computation(given, self._run))

        return call

    def _quick_call(self, instruction: Instruction, quick: Quick, otherwise: Call) -> Call:
        """A call by the quick way, if it knows the arrays, or else `otherwise`.

        It does no more than it must: steps have many such calls.
        """
        arrays, operands, store = self._arrays, instruction.operands, self._storing(instruction)

        def call() -> None:
            results = quick([None if number is None else arrays[number] for number in operands], self._run)
            if results is None:
                otherwise()
            else:
                store(results)

        return call

    def _storing(self, instruction: Instruction) -> Callable[[Sequence[Array]], None]:
        """What puts the results of an instruction where others read them, and drops what nobody reads any more."""
        arrays, results, frees = self._arrays, instruction.results, instruction.frees
        if len(results) != 1 or results[0] in self.program.storage:
            return partial(self._store, instruction)
        result = results[0]

        def store(given: Sequence[Array]) -> None:
            arrays[result] = given[0]
            if frees and self._run.observer is None:
                for number in frees:
                    arrays[number] = None

        return store

    def _enclosed_call(self, instruction: Instruction, enclosure: Enclosure) -> Call:
        """A call of several instructions that are a program of their own."""
        arrays, inputs, compute = self._arrays, instruction.inputs, enclosure.compute
        store = self._storing(instruction)

        def call() -> None:
            store(compute([arrays[number] for number in inputs], self._run))  # type: ignore[index, misc] # all are made

        return call

    def _by_specialization(self, instruction: Instruction, specialization: Specialization) -> None:
        given = self._tensors.operands(instruction.operands)
        self._computed_by, results = specialization.compute(given, self._run)
        self._compare(instruction, self._computed_by, given, results)
        self._store(instruction, results)

    def _store(self, instruction: Instruction, results: Sequence[Array]) -> None:
        for number, result in zip(instruction.results, results, strict=False):
            self._tensors.put(number, result)
        if self._run.observer is None:
            self._tensors.free(instruction)

    def _watched(self, instruction: Instruction, call: Call, run: Run, told: Observation | None) -> None:
        """Compute an instruction that somebody looks at."""
        if instruction.enclosed is not None:  # whose own instructions are watched
            call()
            return
        self._computed_by = None
        begin = perf_counter()
        call()
        if run.profile is not None:
            seconds = perf_counter() - begin
            run.profile.add(self.program, instruction, self._computed_by or instruction.by, begin, seconds)
        if told is not None:
            told.tell_results(instruction)
            self._tensors.free(instruction)


def _joined(instructions: Sequence[Instruction], calls: Sequence[Call]) -> tuple[list[Instruction], list[Call]]:
    """Calls in order, as few as can be made as one, and the first instruction of each."""
    steps: list[Instruction] = []
    rows: list[list[Any]] = []
    for instruction, call in zip(instructions, calls, strict=True):
        if rows and _goes_on(rows[-1], call):
            rows[-1].append(call)
        else:
            steps.append(instruction)
            rows.append([call])
    return steps, [row[0] if len(row) == 1 else row[0].joined(row) for row in rows]


def _goes_on(row: Sequence[Call], call: Call) -> bool:
    """Whether a call is made as one with those of a row."""
    first = row[0]
    if not isinstance(call, Joinable) or not isinstance(first, Joinable) or call.joins is not first.joins:
        return False
    return len(row) < MAX_JOINED and sum(own.seconds for own in [*row, call] if isinstance(own, Joinable)) < MAX_SECONDS
