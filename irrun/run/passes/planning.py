"""Plan memory: how long each tensor is in use, which share memory, and where those lie whose sizes are known.

Expects a program that engines have taken what they want of; leaves storage for the tensors that engines read and write,
in one block of memory that those which are never in use together share, and in each instruction what it is the last to
read. This is the one place that knows of views and of the lifetime of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from irrun.run.arena import Buffer, place
from irrun.run.memory import outputs_text, refusal, result_bytes, tensor_bytes
from irrun.run.passes.setting import Setting
from irrun.run.program import KERNEL, VIEW, Instruction, Program, Storage
from irrun.spec.op import Tensor

Span = tuple[int, int]
"""The first and the last instruction that uses a tensor."""


def plan_memory(program: Program, setting: Setting) -> Program:
    """Raises ExecutionError where a layer's results take more than the limit, whatever else is in use."""
    program = replace(program, storage=_fixed(program))
    lifetimes = _Lifetimes(program, setting)
    program.instructions = [
        instruction if frees == instruction.frees else instruction.changed(frees=frees)
        for instruction, frees in zip(program.instructions, lifetimes.frees(), strict=True)
    ]
    return lay_out(program, lifetimes.used(), setting)


def frees(program: Program, setting: Setting) -> list[tuple[int, ...]]:
    """What each instruction of a program is the last to read."""
    return _Lifetimes(program, setting).frees()


def spans(program: Program, setting: Setting) -> dict[int, Span]:
    """When each memory of a planned program is in use, by the tensor that it was given to."""
    return _Lifetimes(program, setting).used()


def lay_out(program: Program, used: Mapping[int, Span], setting: Setting) -> Program:
    """Give the tensors that are `used` their places, where it is known what frees which. Raises as `plan_memory`."""
    buffers = {number: Buffer(program.storage[number].nbytes, *span) for number, span in used.items()}
    program.size = place(buffers.values())
    for number, buffer in buffers.items():
        program.storage[number].offset = buffer.offset
    program.scratch = max((i.compiled.scratch for i in program.instructions if i.compiled), default=0)
    program.unsized = any(_is_unsized(instruction, program) for instruction in program.instructions)
    copied = sum(tensor_bytes(program.tensors[number]) for number in program.results if number in program.storage)
    program.peak = max(_peak(program, setting.limit), program.reserved + program.size + program.scratch + copied)
    return program


def _fixed(program: Program) -> dict[int, Storage]:
    """The storage of the tensors whose arrays are bound to calls of engines, and of views of these and of constants."""
    roots: set[int] = set()
    for instruction in program.instructions:
        if instruction.compiled is not None and instruction.work is not None:
            roots.update(instruction.results[: len(instruction.work.outputs)])
            roots.update(program.storage[n].root for n in instruction.reads if n in program.storage)
    kept = roots.union(program.constants)
    return {number: storage for number, storage in program.storage.items() if storage.root in kept}


def touched(instruction: Instruction, *, asked: bool) -> set[int]:
    """The tensors that an instruction reads or makes in a run, its rule included; where somebody may have its kernels
    compute the same, also what these read."""
    compiled = instruction.compiled
    numbers = {*instruction.results, *instruction.reads} if instruction.reads or compiled else set[int | None]()
    if asked or not numbers or instruction.open or (compiled is not None and compiled.doubtful):
        numbers.update(instruction.operands, instruction.results)
    numbers.discard(None)
    return numbers  # type: ignore[return-value] # None is not among them


def looked_at(instruction: Instruction) -> Iterator[int]:
    """The inputs that the arrays of the results may share memory with."""
    if instruction.compiled is not None or instruction.posts:
        return
    inputs = instruction.reads if instruction.by == VIEW else instruction.inputs
    enclosing = bool(instruction.bodies) or instruction.enclosed is not None
    everything = enclosing or not instruction.op.pure  # variables, or what a body passes on
    if not everything and not instruction.op.view_of:
        return
    ports = instruction.op.inputs
    for position, number in enumerate(inputs):
        name = ports[min(position, len(ports) - 1)].name if ports else ""
        if number is not None and (everything or name == instruction.op.view_of):
            yield number


class _Lifetimes:
    """From which instruction to which each tensor is in use; `freed` are the loose ones, by the last to read them."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self.first = dict.fromkeys(program.parameters, -1)
        kept = (*program.results, *(program.parameters if setting.iterated else ()))
        self.last = dict.fromkeys(kept, len(program.instructions))
        self.freed: dict[int, list[int]] = {}
        self._count, self._storage = len(program.instructions), program.storage
        for position, instruction in enumerate(program.instructions):
            for number in instruction.results:
                self.first[number] = position
        last = self.last
        for position, instruction in reversed(list(enumerate(program.instructions))):
            for number in touched(instruction, asked=setting.checked or setting.watched):
                last.setdefault(number, position)
            if instruction.compiled is None:
                longest = max([last[number] for number in instruction.results], default=position)
                for number in looked_at(instruction):
                    last[number] = max(last[number], longest)
        for number, storage in program.storage.items():
            if number in last:
                last[storage.root] = max(last.get(storage.root, -1), last[number])
        for number in last.keys() - program.storage.keys() - program.constants.keys() - program.compressed.keys():
            self.freed.setdefault(last[number], []).append(number)

    def frees(self) -> list[tuple[int, ...]]:
        """What each instruction is the last to read."""
        return [tuple(sorted(self.freed[n])) if n in self.freed else () for n in range(self._count)]

    def used(self) -> dict[int, Span]:
        return {number: self._of(number) for number, storage in self._storage.items() if storage.root == number}

    def _of(self, number: int) -> Span:
        first = self.first.get(number, -1)
        return first, max(self.last.get(number, first), first)


def _is_unsized(instruction: Instruction, program: Program) -> bool:
    if instruction.by != KERNEL:
        return False
    inside = bool(instruction.bodies) or instruction.enclosed is not None
    return instruction.open or inside or any(not program.tensors[n].static for n in instruction.results)


def _peak(program: Program, limit: int) -> int:
    """The bytes in use at the worst moment, as far as they can be told. Raises ExecutionError beyond the limit."""
    live = peak = program.reserved + program.size + program.scratch
    sizes: dict[int, int] = {}
    for instruction in program.instructions:
        if instruction.by == KERNEL:
            results = [program.tensors[number] for number in instruction.results]
            wanted = result_bytes(instruction.op, _inputs(program, instruction), results)
            inside = max((body.peak - body.reserved for _, body in instruction.bodies.values()), default=0)
            if live + wanted + inside > limit:
                raise refusal(instruction.layer, outputs_text(results), wanted, live, limit)
            peak = max(peak, live + wanted + inside)
            if wanted:
                live += wanted
                sizes.update((n, tensor_bytes(program.tensors[n])) for n in instruction.results)
        if sizes:
            live -= sum(sizes.pop(number, 0) for number in instruction.frees)
    return peak


def _inputs(program: Program, instruction: Instruction) -> list[Tensor | None]:
    return [None if number is None else program.tensors[number] for number in instruction.inputs]
