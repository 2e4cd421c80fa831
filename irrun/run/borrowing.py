"""Tensors of a program that lie in memory of the caller: results that are handed on, and inputs as they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irrun.records import NamedTuple
from irrun.run.passes.planning import looked_at
from irrun.run.program import VIEW, Instruction, Program

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
