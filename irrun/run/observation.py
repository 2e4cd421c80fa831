"""What the observer of a run is told: of each tensor when it is there, and how it may be calculated again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from irrun.diagnostics import Diagnostic, ExecutionError
from irrun.interruption import hand_on
from irrun.records import NamedTuple, dataclass
from irrun.run.kernels import Kernels
from irrun.run.program import Instruction
from irrun.run.session import Event, Fused, Observer, Run
from irrun.run.tensors import Tensors
from irrun.spec.op import Array, Op


@dataclass(slots=True, eq=False)
class Observation:
    """An observer of a run of a program, told of its `tensors`. All that tells it raises ExecutionError where it fails,
    or gives what does not fit. What is settled is told once all is there that it reads: `missing` is what is still to
    be made, `waiting` who reads that."""

    observer: Observer
    run: Run
    tensors: Tensors
    kernels: Kernels
    missing: set[int] = field(default_factory=set)
    waiting: dict[int, list[Instruction]] = field(default_factory=dict)

    def tell_ahead(self) -> None:
        """Tell of what is there before anything is computed."""
        program = self.tensors.program
        for number in program.parameters:
            self._tell_unchanged(number)
        self.missing.update(number for instruction in program.instructions for number in instruction.results)
        for instruction in program.settled:
            self._tell_settled(instruction)

    def tell_results(self, instruction: Instruction) -> None:
        """Tell of what an instruction has made."""
        tensors, last = self.tensors, instruction
        if instruction.posts:
            last = next((part for part in reversed(instruction.parts) if part.ports != ()), instruction)
        for port, number in zip(_ports(last), instruction.results, strict=False):
            if port is not None and tensors.arrays[number] is not None:
                if isinstance(self.observer, Fused) and self.observer.passes(last.layer, tensors.raw(number)):
                    continue
                self._tell(last, port, number)
            self._tell_unchanged(number)
        self.missing.difference_update(instruction.results)
        for number in instruction.results:
            for settled in self.waiting.pop(number, ()):
                self._tell_settled(settled)

    def _tell_settled(self, instruction: Instruction) -> None:
        """Tell of what an instruction gives for these shapes, or wait until what it reads is there."""
        missing = next((n for n in instruction.inputs if n is not None and n in self.missing), None)
        if missing is not None:
            self.waiting.setdefault(missing, []).append(instruction)
            return
        for port, number in zip(_ports(instruction), instruction.results, strict=False):
            if port is not None:
                self._tell(instruction, port, number)
            self._tell_unchanged(number)

    def _tell_unchanged(self, number: int) -> None:
        """Tell of conversions of a tensor that change nothing."""
        for conversion in self.tensors.program.shown.get(number, ()):
            if self.tensors.arrays[number] is not None:
                self._tell(conversion, 0, number)

    def _tell(self, part: Instruction, port: int, number: int) -> None:
        """Tell of a tensor, which another array takes the place of if the observer gives one."""
        calculation = _Calculation(self.tensors, self.kernels, part, self.run)
        event = Event(part.layer, port, self.run.path, _frozen(self.tensors.plain(number)), calculation)
        try:
            given = self.observer(event)
        except ExecutionError as error:
            raise self.kernels.placed(*error.diagnostics) from None
        except Exception as error:
            hand_on(error)
            raise self.kernels.failed(part, "the observer", error) from error
        if given is None:
            return
        array = self._fitting(given, event)
        if number not in self.tensors.program.constants:
            self.tensors.replace(number, array)
        elif array.tobytes() != event.array.tobytes():
            message = f"the observer gave another array for output {port}, which inputs of these shapes settle"
            help = "have it give another array for what reads it"
            raise self.kernels.placed(Diagnostic("E602", message, part.layer.span, part.layer.label, help=help))

    def _fitting(self, given: object, event: Event) -> Array:
        """The array that an observer gives in place of the event's."""
        array, expected = np.asarray(given), event.array
        if array.shape != expected.shape or array.dtype != expected.dtype:
            found = f"{array.dtype}{list(array.shape)}"
            message = (
                f"the observer gave {found} for output {event.port}, expected {expected.dtype}{list(expected.shape)}"
            )
            raise self.kernels.placed(Diagnostic("E602", message, event.layer.span, event.layer.label))
        return array


class _Calculation(NamedTuple):
    """How an instruction of a program is computed, for who looks at what it has made."""

    tensors: Tensors
    kernels: Kernels
    instruction: Instruction
    run: Run

    @property
    def op(self) -> Op:
        return self.instruction.op

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.instruction.attrs

    @property
    def inputs(self) -> list[Array | None]:
        """What the instruction reads, as read-only arrays, before it is written over."""
        numbers = self.instruction.inputs
        return [None if number is None else _frozen(self.tensors.values(number)) for number in numbers]

    def __call__(self, inputs: Sequence[Array | None], attributes: Mapping[str, Any] | None = None) -> list[Array]:
        instruction = self.instruction
        if instruction.effects:
            raise ValueError(f"layer {instruction.layer} assigns a variable")
        if attributes is not None:
            instruction = instruction.changed(attrs={**instruction.attrs, **attributes})
        run = replace(self.run, observer=None, profile=None, meter=None)
        return self.kernels.computation(self.tensors.program, instruction)(inputs, run)


def _ports(instruction: Instruction) -> Sequence[int | None]:
    """The outputs of its layer that the results of an instruction are, None for what is none of these."""
    if instruction.ports is None:
        return range(len(instruction.results))
    return instruction.ports or (None,) * len(instruction.results)


def _frozen(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
