"""Enclose: instructions in a row whose sizes only the data tell, as programs of their own for the sizes that runs see.

Expects a pruned program for inputs of shapes that are known, or are to be settled; leaves one in which such a row is
one instruction with an `enclosed` program. What works with its sizes belongs to it, where they are numbers. What makes
a size known that was not, such as the places that are not 0, a body or random numbers, stays outside: behind it all
sizes of the row are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace

from irrun.records import dataclass
from irrun.run.internal_ops import ENCLOSED
from irrun.run.memory import tensor_bytes
from irrun.run.passes.planning import plan_memory
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import product
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Tensor

FEWEST = 3
"""Instructions that are worth a program of their own."""

MAX_COPIED = 1 << 18
"""Bytes of a tensor of known shape that is copied for such a program, where it is not constant."""

Origins = frozenset[int]
"""The instructions, by number, that sizes come from which only the data tell."""


def enclose(program: Program, setting: Setting) -> Program:
    known = setting.whole or setting.sizes is not None
    if not known or not setting.transforms or not setting.encloses:
        return program
    if setting.sizes is None and all(tensor.static for tensor in program.tensors):
        return program
    enclosing = _Enclosing(program, setting)
    for number, instruction in enumerate(program.instructions):
        enclosing.add(number, instruction)
    return enclosing.finish()


@dataclass(eq=False, slots=True)
class _Row:
    """Instructions that depend on the same origins, what they read and make, and the rows that have to come before:
    those whose results they read, and all that these need."""

    instructions: list[Instruction] = field(default_factory=list)
    read: set[int] = field(default_factory=set)
    made: set[int] = field(default_factory=set)
    needed: set[Origins] = field(default_factory=set)


class _Enclosing:
    """A program in the making. Rows wait until somebody needs what they make, or the program ends."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self._program, self._setting = program, setting
        self._told = set[int]() if program.sizing is None else set(program.sizing.results)
        self._sized: dict[int, bool] = {}
        self._origins: dict[int, Origins | None] = {}  # of tensors whose sizes are not known; None where none may tell
        self._derived: dict[int, Origins] = {}  # of tensors whose values such sizes tell
        self._rows: dict[Origins, _Row] = {}
        self._instructions: list[Instruction] = []
        self._readers = Counter[int | None](program.results)
        for instruction in program.instructions:
            self._readers.update({*instruction.operands})

    def add(self, number: int, instruction: Instruction) -> None:
        operands = {operand for operand in instruction.operands if operand is not None}
        unsized = {operand for operand in operands if not self._has_sizes(operand)}
        derived = operands & self._derived.keys()
        open_results = [result for result in instruction.results if not self._has_sizes(result)]
        known = [self._origins.get(operand) for operand in unsized] + [self._derived[operand] for operand in derived]
        origins: Origins | None = frozenset()
        for found in known:
            origins = None if origins is None or found is None else origins | found
        stateful = "state" in instruction.op.context  # a variable may be longer in each run
        if open_results and not (instruction.plain and known) and not stateful:
            origins = frozenset({number})  # this is where they come from
        elif not instruction.plain:
            origins = None
        for result in open_results:
            self._origins[result] = origins
        joins = bool(known) and instruction.plain and self._is_fit(instruction, operands)
        joined = origins if joins else None
        if joined is not None and self._is_derived(instruction, operands - derived):
            self._derived.update(dict.fromkeys(instruction.results, joined))
        for other in self._waiting(operands):
            if joined is None or (other in self._rows and joined in self._rows[other].needed):
                self._flush(other)
        if joined is None:
            self._instructions.append(instruction)
            return
        row = self._rows.setdefault(joined, _Row())
        self._need(joined, {other for other in self._waiting(operands) if other != joined})
        row.instructions.append(instruction)
        row.read |= operands - row.made
        row.made.update(instruction.results)

    def finish(self) -> Program:
        while self._rows:
            self._flush(next(iter(self._rows)))
        return replace(self._program, instructions=self._instructions)

    def _is_derived(self, instruction: Instruction, others: set[int]) -> bool:
        """Whether sizes alone decide what an instruction makes: it reads nothing else, or its values are sizes."""
        tensors = self._program.tensors
        told = all(tensors[result].value is not None for result in instruction.results)
        return told or others <= self._program.constants.keys()

    def _is_fit(self, instruction: Instruction, operands: set[int]) -> bool:
        """Whether it is quickly given what it reads, all of which arrays can be."""
        program = self._program
        for number in (*operands, *instruction.results):
            tensor = program.tensors[number]
            if tensor.shape is None or not tensor.numeric:
                return False
        fixed = operands.difference(program.constants, program.compressed, self._told)
        return all(not self._has_sizes(number) or self._is_small(program.tensors[number]) for number in fixed)

    def _has_sizes(self, number: int) -> bool:
        found = self._sized.get(number)
        if found is None:
            found = self._sized[number] = self._setting.sized(self._program.tensors[number])
        return found

    def _is_small(self, tensor: Tensor) -> bool:
        """Whether a tensor that has its sizes is quickly copied."""
        if tensor.static:
            return tensor_bytes(tensor) <= MAX_COPIED
        presumed, most = self._setting.presumed, MAX_COPIED // numpy_dtype(tensor.type).itemsize
        assert presumed is not None, "others have sizes only that are known"
        return presumed.at_most(product(tensor.shape or ()), most)

    def _waiting(self, operands: set[int]) -> list[Origins]:
        """The rows that make some of these, and wait."""
        return [origins for origins, row in self._rows.items() if not row.made.isdisjoint(operands)]

    def _need(self, origins: Origins, others: set[Origins]) -> None:
        """A row reads what others make, and with it all that read what it makes, or what is made of that."""
        more = others.union(*(self._rows[other].needed for other in others))
        if more:
            for own, row in self._rows.items():
                if own == origins or origins in row.needed:
                    row.needed |= more

    def _flush(self, origins: Origins) -> None:
        """Put a row in its place, behind those that it needs; unless that was done with another one."""
        if origins in self._rows:
            needed = [origins, *self._rows.keys() & self._rows[origins].needed]
            for row in sorted(map(self._rows.pop, needed), key=lambda row: len(row.needed)):
                self._put(row)

    def _put(self, row: _Row) -> None:
        """As one instruction if that is worth it."""
        program, first = self._program, row.instructions[0]
        if len(row.instructions) < FEWEST:
            self._instructions += row.instructions
            return
        readers = Counter(self._readers)
        for instruction in row.instructions:
            for operand in {*instruction.operands}:
                readers[operand] -= 1
        results = tuple(sorted(number for number in row.made if readers[number]))
        constants = {n: program.constants[n] for n in row.read if n in program.constants}
        compressed = {n: program.compressed[n] for n in row.read if n in program.compressed}
        instructions = _in_order(row.instructions, results)
        read = dict.fromkeys(number for instruction in instructions for number in instruction.operands)
        parameters = tuple(n for n in read if n in row.read and n not in constants and n not in compressed)
        inner = replace(
            program,
            parameters=parameters,
            results=results,
            instructions=instructions,
            constants=constants,
            compressed=compressed,
            reserved=0,
        )
        inner = plan_memory(inner, replace(self._setting, engines=(), shapes=None))
        self._instructions.append(
            Instruction(first.layer, ENCLOSED, {}, {}, parameters, results, ports=(), enclosed=inner)
        )


def _in_order(instructions: Sequence[Instruction], results: Sequence[int]) -> list[Instruction]:
    """Instructions of a row, each behind those that it needs, in the order that alone tells: so what is alike in all
    else, as experts are, is so in this, too, in whatever order the file has its layers."""
    makers = {number: instruction for instruction in instructions for number in instruction.results}
    ordered: dict[int, Instruction] = {}
    waiting = [(makers[number], False) for number in reversed(results) if number in makers]
    while waiting:
        instruction, ready = waiting.pop()
        if id(instruction) in ordered:
            continue
        if ready:
            ordered[id(instruction)] = instruction
            continue
        waiting.append((instruction, True))
        waiting += [(makers[n], False) for n in reversed(instruction.operands) if n in makers]
    return [*ordered.values(), *(own for own in instructions if id(own) not in ordered)]
