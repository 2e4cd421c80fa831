"""Narrow: what takes long is computed in bf16, and what lies between.

Products and convolutions are, and all that leads from one of these to another where an engine computes it in bf16; if
no engine computes any of it in that type, what has its elements from others one by one. Their operands are converted
once, constants ahead, and what joins them behind that. Everything else stays in f32: what is in front of the first
product and behind the last one, layers that are marked as precise, what is computed from integers alone, products that
read variables, or weights of few bits (which `compress` lets engines round), and what a body is given and gives. So do
sums that a normalization reads, and that itself: what adds up from layer to layer would lose a bit in each.

Expects a program in f32, for any inputs; leaves one whose instructions have inputs and outputs of types that their ops
take together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from irrun.engines.work import Engine
from irrun.run.internal_ops import SATURATE
from irrun.run.passes.precision import MAX_SATURATED, Retyping, programs, unrounded
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dtypes import FLOAT_FORMATS
from irrun.spec.op import Tensor
from irrun.spec.traits import (
    Attending,
    Convolving,
    Cutting,
    Elementwise,
    Joining,
    Lookup,
    MatrixProduct,
    Normalizing,
    Padding,
    Permutation,
    Products,
    Reading,
    Reduction,
    Repeating,
    Reshaping,
)

HEAVY = (Products, Convolving, MatrixProduct, Attending)
PASSING = (Elementwise, Joining, Lookup, Padding, Permutation, Repeating, Reshaping)
TYPES = {"f32": "bf16"}


def narrow(program: Program, setting: Setting) -> Program:
    if setting.bf16 is None or not setting.anew:
        return program
    choice = _Choice(program, setting.bf16)
    if not choice.chosen:
        return program
    program, chosen = _saturated(program, choice.chosen, choice.hiding())
    return _Narrowing(program, chosen).run()


def _saturated(program: Program, chosen: set[Instruction], huge: set[int]) -> tuple[Program, set[Instruction]]:
    """The program with tensors made so that none of their numbers is too `huge` for bf16 where what is `chosen` reads
    them; and what is chosen in it."""
    made, again = program.begun(), set[Instruction]()
    instead: dict[int, int] = {}
    for instruction in program.instructions:
        if instruction in chosen:
            for number in huge.intersection(n for n in instruction.inputs if n is not None) - instead.keys():
                tensor = made.tensors[number]
                instead[number] = made.add(Tensor("f32", tensor.shape))
                own = (number,), (instead[number],)
                made.instructions.append(Instruction(instruction.layer, SATURATE, {}, {}, *own, ports=()))
            if not instead.keys().isdisjoint(instruction.inputs):
                instruction = instruction.reading(instead)
            again.add(instruction)
        made.instructions.append(instruction)
    return made, again


def is_heavy(instruction: Instruction) -> bool:
    """Whether an instruction is worth bf16 by itself: a product of some kind."""
    return _has(instruction, HEAVY)


def _has(instruction: Instruction, traits: Iterable[type]) -> bool:
    return any(instruction.op.trait(trait) is not None for trait in traits)


def computed_in_bf16(program: Program, engines: Sequence[Engine]) -> frozenset[str]:
    """The ops that engines compute in bf16; none where no product or convolution is among them."""
    instructions = [instruction for part in programs(program) for instruction in part.instructions]
    names = {instruction.op.name for instruction in instructions}
    computed = frozenset(name for name in names if any(engine.computes(name, "bf16") for engine in engines))
    return computed if any(i.op.name in computed for i in instructions if is_heavy(i)) else frozenset()


def emulated(program: Program, computed: frozenset[str]) -> bool:
    """Whether bf16 is computed in f32, and rounded, by the kernels of ops."""
    return not computed and any(is_heavy(i) for part in programs(program) for i in part.instructions)


class _Narrowing(Retyping):
    def __init__(self, program: Program, chosen: set[Instruction]) -> None:
        super().__init__(program, TYPES, {})
        self._chosen = chosen

    def _types_of(self, instruction: Instruction) -> dict[str, str]:
        return TYPES if instruction in self._chosen else {}


class _Choice:
    """The instructions of a program that are `chosen` to be computed in bf16."""

    def __init__(self, program: Program, computes: frozenset[str]) -> None:
        self._program, self._computes = program, computes
        self._exact = unrounded(program)
        self._stored = self._variables()
        heavy = {i for i in program.instructions if is_heavy(i) and self._may(i) and self._stored.isdisjoint(i.inputs)}
        self.chosen = self._between(heavy)
        self.chosen -= self._normalized()
        self.chosen |= self._joining()
        self.chosen |= self._hiding(self.chosen)

    def _may(self, instruction: Instruction) -> bool:
        if not instruction.plain or instruction.layer.precise or instruction in self._exact:
            return False
        if not self._program.compressed.keys().isdisjoint(instruction.inputs):
            return False
        if self._computes:
            return instruction.op.name in self._computes
        return _has(instruction, HEAVY + PASSING)

    def _floats(self, numbers: Iterable[int | None]) -> set[int]:
        return {number for number in numbers if number is not None and self._program.tensors[number].type == "f32"}

    def _variables(self) -> set[int]:
        """What variables hold, up to the products that read it."""
        found: set[int] = set()
        for instruction in self._program.instructions:
            if instruction.op.trait(Reading) is not None or not (
                found.isdisjoint(instruction.inputs) or is_heavy(instruction)
            ):
                found.update(instruction.outputs)
        return found

    def _between(self, heavy: set[Instruction]) -> set[Instruction]:
        """What leads from one of the `heavy` instructions to another."""
        may = {i for i in self._program.instructions if i in heavy or (self._may(i) and self._floats(i.outputs))}
        may = {i for i in may if i in heavy or self._stored.isdisjoint(i.inputs)}
        made: set[int] = set()
        behind: set[Instruction] = set()
        for instruction in self._program.instructions:
            if instruction in may and (instruction in heavy or not made.isdisjoint(instruction.inputs)):
                behind.add(instruction)
                made.update(instruction.outputs)
        read: set[int] = set()
        found: set[Instruction] = set()
        for instruction in reversed(self._program.instructions):
            if instruction in behind and (instruction in heavy or not read.isdisjoint(instruction.outputs)):
                found.add(instruction)
                read |= self._floats(instruction.inputs)
        return found

    def _normalized(self) -> set[Instruction]:
        """Sums of what is not constant that a normalization reads, these, and what is done to each of their numbers:
        element-wise instructions that read constants besides, or nothing."""
        constants = self._program.constants.keys()
        normalizing = self._normalizing()
        readers: dict[int, list[Instruction]] = {}
        for instruction in self._program.instructions:
            for number in self._floats(instruction.inputs):
                readers.setdefault(number, []).append(instruction)
        found: set[Instruction] = set()
        for instruction in self.chosen:
            read = [reader for number in instruction.outputs for reader in readers.get(number, ())]
            summed = instruction.function == "add" and constants.isdisjoint(instruction.inputs)
            if summed and not normalizing.isdisjoint(read):
                found.add(instruction)
            if instruction not in normalizing:
                continue
            found.add(instruction)
            while (
                len(read) == 1 and _has(read[0], (Elementwise,)) and len(self._floats(read[0].inputs) - constants) == 1
            ):
                found.add(read[0])
                read = [reader for number in read[0].outputs for reader in readers.get(number, ())]
        return found

    def _normalizing(self) -> set[Instruction]:
        """Instructions that bring numbers into proportion to others of them: normalizations, and such as are written
        out, element-wise ones that read what only element-wise ones have made of a reduction."""
        constants = self._program.constants.keys()
        found: set[Instruction] = set()
        reduced: set[int] = set()
        for instruction in self._program.instructions:
            if instruction.op.trait(Normalizing) is not None:
                found.add(instruction)
            elif instruction.op.trait(Reduction) is not None:
                reduced |= self._floats(instruction.outputs)
            elif _has(instruction, (Elementwise,)) and not reduced.isdisjoint(instruction.inputs):
                if self._floats(instruction.inputs) - constants <= reduced:
                    reduced |= self._floats(instruction.outputs)
                else:
                    found.add(instruction)
        return found

    def _joining(self) -> set[Instruction]:
        """Joins that only chosen instructions read: to round what is joined is the same, and half as much is moved."""
        joins = [i for i in self._program.instructions if _has(i, (Joining,)) and self._may(i) and i not in self.chosen]
        readers = self._program.readers() if joins else {}
        return {
            join
            for join in joins
            if self._floats(join.outputs)
            and self._stored.isdisjoint(join.inputs)
            and join.outputs[0] not in self._program.results
            and self.chosen.issuperset(readers.get(join.outputs[0], [join]))
        }

    def hiding(self) -> set[int]:
        """What comes from outside, or is constant and not small, and hides scores in chosen instructions: it is added
        to what has been multiplied, or the mask of an attention. Some write there the lowest number that f32 has."""
        found: set[int] = set()
        for instruction in self.chosen:
            if instruction.op.trait(Attending) is not None:
                found |= self._floats(instruction.inputs[3:4])
            elif instruction.function == "add":
                found |= self._floats(instruction.inputs)
        return found & self._huge(found)

    def _huge(self, wanted: set[int]) -> set[int]:
        """Tensors with numbers, perhaps, that bf16 has none for: what comes from outside, and large constants that have
        such, however these are cut and brought into shape; of all that the `wanted` ones are made of."""
        program, most = self._program, FLOAT_FORMATS["bf16"].largest
        bringing = [i for i in program.instructions if i not in self.chosen and _has(i, (*PASSING, Cutting))]
        needed = {*wanted}
        for instruction in reversed(bringing):
            if not needed.isdisjoint(instruction.outputs):
                needed |= self._floats(instruction.inputs)
        found = needed.intersection(program.parameters)
        for number in needed & program.constants.keys():
            array = program.constants[number]
            if array.size > MAX_SATURATED and not (array.min() >= -most and array.max() <= most):
                found.add(number)
        for instruction in bringing:
            if not found.isdisjoint(instruction.inputs):
                found |= self._floats(instruction.outputs)
        return found

    def _hiding(self, chosen: set[Instruction]) -> set[Instruction]:
        """What makes, for `chosen` ones, something of numbers that bf16 does not have, such as masks of scores.

        They would become infinite, and as constants they need not."""
        most = FLOAT_FORMATS["bf16"].largest
        huge: set[int | None] = {
            number
            for number, array in self._program.constants.items()
            if self._program.tensors[number].type == "f32"
            and array.size <= MAX_SATURATED
            and (np.isfinite(array) & (np.abs(array) > most)).any()
        }
        made: set[Instruction] = set()
        for instruction in self._program.instructions if huge else ():
            if instruction.plain and _has(instruction, PASSING) and not huge.isdisjoint(instruction.inputs):
                made.add(instruction)
                huge.update(instruction.outputs)
        read: set[int | None] = {number for instruction in chosen for number in instruction.inputs}
        found: set[Instruction] = set()
        for instruction in reversed(self._program.instructions) if made else ():
            if instruction in made and not read.isdisjoint(instruction.outputs):
                found.add(instruction)
                read.update(instruction.inputs)
        return found
