"""Tensors of a program that lie in memory of the caller: results that are handed on, and inputs as they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irrun.diagnostics import Diagnostic
from irrun.engines.memory import data_address
from irrun.engines.work import Call
from irrun.records import NamedTuple, dataclass
from irrun.run.compiling import EngineFailed
from irrun.run.kernels import Kernels
from irrun.run.passes.planning import looked_at
from irrun.run.program import VIEW, Instruction, Program
from irrun.run.tensors import Tensors
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

MIN_OWN = 1 << 20
"""Bytes of an input or a result for which calls are bound to other memory, rather than that it is copied."""

MAX_READERS = 4
"""Calls that are bound anew for an input: it takes each about as long as to copy a quarter of `MIN_OWN`."""


class Given(NamedTuple):
    """An input that is read where it lies: its position, the tensors that lie in it, and who reads these."""

    position: int
    numbers: Sequence[int]
    readers: Sequence[Instruction]


def handed_on(program: Program) -> dict[int, Instruction]:
    """The results that may have memory of their own in each run, with what makes them: an engine, and nothing else
    than the caller reads them."""
    wanted = {
        number
        for number, count in Counter(program.results).items()
        if count == 1
        and (storage := program.storage.get(number)) is not None
        and storage.root == number
        and storage.layout is None
        and storage.nbytes >= MIN_OWN
    }
    found: dict[int, Instruction] = {}
    if wanted:
        wanted -= {storage.root for number, storage in program.storage.items() if storage.root != number}
        wanted = wanted.difference(*(own.operands for own in program.instructions))
        wanted = wanted.difference(*(own.reads for own in program.instructions))
        for instruction in program.instructions:
            if not wanted.isdisjoint(instruction.results) and _is_only_called(instruction):
                found.update(dict.fromkeys(wanted.intersection(instruction.results), instruction))
    return found


def read_as_given(program: Program) -> list[Given]:
    """The inputs that may be read where they lie: by few engines, which only look at them while they compute."""
    found = []
    for position, parameter in enumerate(program.parameters):
        storage = program.storage.get(parameter)
        if storage is None or storage.root != parameter or storage.layout is not None or storage.nbytes < MIN_OWN:
            continue
        numbers = {number for number, own in program.storage.items() if own.root == parameter}
        if not numbers.isdisjoint(program.results):
            continue
        reading = [own for own in program.instructions if not numbers.isdisjoint((*own.operands, *own.reads))]
        readers = [own for own in reading if own.by != VIEW]
        viewed = all(numbers.issuperset(own.outputs) for own in reading if own.by == VIEW)
        if viewed and all(map(_is_only_called, readers)) and len(readers) <= MAX_READERS:
            found.append(Given(position, sorted(numbers), readers))
    return found


def _is_only_called(instruction: Instruction) -> bool:
    """Whether an engine's call is all that computes an instruction: nobody looks at its result."""
    return instruction.compiled is not None and not instruction.compiled.doubtful


def lasting(program: Program) -> set[int]:
    """The tensors whose arrays may share memory with the frame."""
    found = set(program.storage)
    for instruction in program.instructions:
        if not (found.issuperset(instruction.results) or found.isdisjoint(looked_at(instruction))):
            found.update(instruction.results)
    return found


@dataclass(eq=False, slots=True)
class _Binding:
    """Makes the call that is bound now; None where it is to be bound before the next run."""

    call: Call | None = None

    def __call__(self) -> object:
        return self.call()  # type: ignore[misc]


class Elsewhere:
    """The `results` and `inputs` of a program that lie elsewhere in each run, and the calls that make and read these.

    Calls are bound anew `before` a run where that is not where they were bound to. Results are made in memory that is
    `taken`, of which nothing is kept `after` it.
    """

    def __init__(
        self,
        tensors: Tensors,
        kernels: Kernels,
        results: Mapping[int, Instruction],
        inputs: Sequence[Given],
        take: Callable[[int], Array],
    ) -> None:
        self._tensors, self._kernels, self._take = tensors, kernels, take
        self._results, self._inputs = results, inputs
        moving = (*results.values(), *(reader for given in inputs for reader in given.readers))
        self._bindings = {instruction: _Binding() for instruction in moving}
        for number in results:
            self._place(number)

    def bound(self, instruction: Instruction, call: Call) -> Call:
        """The call of an instruction, or what makes the one that is bound now."""
        binding = self._bindings.get(instruction)
        if binding is None:
            return call
        binding.call = call
        return binding

    def before(self, arrays: Sequence[Array], bind: Callable[[Instruction], Call], *, copied: bool) -> None:
        """Have all bound to where it lies, inputs to the frame's memory if they are `copied`. Raises ExecutionError."""
        for given in self._inputs:
            self._look_at(given, arrays[given.position], copied)
        try:
            for number in self._results:
                if self._tensors.arrays[number] is None:
                    self._place(number)
            for instruction, binding in self._bindings.items():
                if binding.call is None:
                    binding.call = bind(instruction)
        except MemoryError as error:
            raise self._kernels.placed(Diagnostic("E603", "there is not enough memory for a run")) from error
        except EngineFailed as error:
            raise self._kernels.failed(instruction, f"engine {instruction.by}", error) from error

    def after(self) -> None:
        """Keep nothing of the results that are the caller's now."""
        for number, maker in self._results.items():
            self._tensors.arrays[number] = None
            self._bindings[maker].call = None

    def _place(self, number: int) -> None:
        """Have memory of its own for a result."""
        tensor, storage = self._tensors.program.tensors[number], self._tensors.program.storage[number]
        memory = self._take(storage.nbytes).view(numpy_dtype(tensor.type))
        self._tensors.arrays[number] = memory.reshape(tensor.shape)

    def _look_at(self, given: Given, array: Array, copied: bool) -> None:
        """Have what reads an input read it where it lies, or where it is copied to if it does not lie as it should, or
        somebody may write to it. What it was bound to last is held until another one comes."""
        tensors, storage = self._tensors, self._tensors.program.storage
        number = tensors.program.parameters[given.position]
        bound = tensors.present(number)
        if copied or not (array.flags.c_contiguous and array.flags.aligned and array.dtype == bound.dtype):
            placed = tensors.placed(number, storage[number])
            np.copyto(placed, array)
            array = placed
        if data_address(array) == data_address(bound):
            return
        memory = array.reshape(-1).view(np.uint8)
        for other in given.numbers:
            tensors.arrays[other] = tensors.placed(other, storage[other], memory)
        for reader in given.readers:
            self._bindings[reader].call = None
