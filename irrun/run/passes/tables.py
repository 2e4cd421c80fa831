"""Tables: functions of the elements of a tensor on a grid, as what they give for each of its codes.

A byte has 256 values, so that all that an activation written in many layers does, quantizations on the way included,
is known before the run. It is computed by the ops' own kernels. Also here: a quantization of what was quantized so
already changes nothing and is left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irrun.engines.grid import Coding
from irrun.run.internal_ops import DEQUANTIZE, LEVELS, QUANTIZE
from irrun.run.passes.grids import Grids, kept_by, levels_of
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program, leading_to
from irrun.spec.dims import same_shapes
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.spec.traits import Bounded, Elementwise, Quantizing

CHEAP = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
"""Functions that cost next to nothing behind a product, less than to go over its result again."""


def requantized(program: Program, grids: Grids, setting: Setting) -> Program:
    """The program without quantizations of what is quantized between the same limits, and at most moved since."""
    same: dict[int, int] = {}
    levels: dict[int | None, tuple[int, tuple[float, ...]]] = {}
    instructions = []
    for given in program.instructions:
        instruction = given.reading(same) if same else given
        if instruction.op.trait(Quantizing) is not None:
            limits = _limits(given, program, grids, setting)
            (result,), source = instruction.outputs, instruction.inputs[0]
            if limits is not None:
                count, least, most = levels_of(given), limits[:2], limits[2:]
                if source is not None and least == most and levels.get(source) == (count, least):
                    same[result] = source
                    continue
                levels[result] = count, most
        else:
            for number in instruction.outputs:
                found = {levels.get(source) for source in kept_by(instruction, number, program)}
                if len(found) == 1 and (own := found.pop()) is not None:
                    levels[number] = own
        instructions.append(instruction)
    if not same:
        return program
    results = tuple(same.get(number, number) for number in program.results)
    return replace(program, instructions=instructions, results=results)


def _limits(instruction: Instruction, program: Program, grids: Grids, setting: Setting) -> tuple[float, ...] | None:
    """The four limits of a quantization to codes, where these are numbers for all of the tensor."""
    if not setting.closed(instruction, program) or program.tensors[instruction.outputs[0]].type != "f32":
        return None
    limits = grids.limits(instruction)
    if limits is None or len(limits[0]) > 1 or grids.coding(instruction) is None:
        return None
    return tuple(float(limit[0]) for limit in limits)


class Functions:
    """Which tensors of a program are functions of the elements of a root: of one that is on a grid of one step size."""

    def __init__(self, program: Program, grids: Grids, setting: Setting) -> None:
        self._program, self._grids, self._setting = program, grids, setting
        self._roots: dict[int, tuple[int, ...]] = {}
        self._makers: dict[int, list[Instruction]] = {}
        self._readers = program.readers()
        for instruction in program.instructions:
            if self._is_function(instruction):
                self._note(instruction)

    def roots(self) -> list[int]:
        """All roots, in the order in which functions of them are made."""
        return [*self._makers]

    def of(self, root: int) -> set[int]:
        """The functions of a root."""
        return {number for instruction in self._makers[root] for number in instruction.outputs}

    def ends(self, root: int) -> list[int]:
        """The functions of a root that others read; none where others read the root itself, or where a table for one
        of them is not worth it."""
        inside = self.of(root)
        if self._is_read(root, inside):
            return []
        ends = [number for number in sorted(inside) if self._is_read(number, inside)]
        return ends if all(any(map(_is_dear, self._between(number, root))) for number in ends) else []

    def table(self, number: int, root: int, coding: Coding | None) -> Array:
        """What the function `number` is for each code of a root: its own codes where there is a `coding`."""
        grid = self._grids.of(root)
        assert grid is not None
        codes = np.arange(LEVELS, dtype=np.uint8).view(numpy_dtype(grid.type))
        values = {root: DEQUANTIZE.kernel(codes, grid=grid)}
        for instruction in self._between(number, root):
            (result,) = instruction.outputs
            given = [None if read is None else self._value(values, read) for read in instruction.inputs]
            if result == number and coding is not None:
                with np.errstate(all="ignore"):
                    values[result] = QUANTIZE.kernel(given[0], coding=coding)
            else:
                (values[result],) = instruction.computed(given)
        found: Array = values[number]
        found.flags.writeable = False
        return found

    def _value(self, values: dict[int, Array], number: int) -> Array:
        return values[number] if number in values else self._program.constants[number].reshape(())

    def _is_function(self, instruction: Instruction) -> bool:
        """Whether an instruction is an element-wise one of tensors of the size of its result, and single numbers."""
        program = self._program
        if (
            instruction.op.trait(Elementwise) is None
            or instruction.posts
            or not self._setting.closed(instruction, program)
        ):
            return False
        varying = self._varying(instruction)
        result = program.tensors[instruction.outputs[0]]
        constants = [program.constants[number] for number in instruction.inputs if number in program.constants]
        return (
            bool(varying)
            and all(program.tensors[number].type == "f32" == result.type for number in varying)
            and all(same_shapes(program.tensors[number].shape, result.shape) for number in varying)
            and all(constant.size == 1 for constant in constants)
        )

    def _varying(self, instruction: Instruction) -> list[int]:
        return [number for number in instruction.inputs if number is not None and number not in self._program.constants]

    def _note(self, instruction: Instruction) -> None:
        """Note of which roots the result is a function."""
        (result,) = instruction.outputs
        first, *others = (self._roots.setdefault(number, self._own(number)) for number in self._varying(instruction))
        common = [root for root in first if all(root in roots for roots in others)]
        for root in common:
            self._makers.setdefault(root, []).append(instruction)
        self._roots[result] = (*self._own(result), *common)

    def _own(self, number: int) -> tuple[int, ...]:
        grid = self._grids.of(number)
        return () if grid is None or len(grid.scale) > 1 else (number,)

    def _is_read(self, number: int, inside: set[int]) -> bool:
        """Whether others than makers of the tensors `inside` read a tensor."""
        outside = (not inside.issuperset(reader.outputs) for reader in self._readers[number])
        return number in self._program.results or any(outside)

    def _between(self, number: int, root: int) -> list[Instruction]:
        """The instructions that make a function of a root, in order."""
        return leading_to((number,), self._makers[root])


def _is_dear(instruction: Instruction) -> bool:
    """Whether an element-wise op takes more than what costs next to nothing behind a product."""
    trait = instruction.op.trait(Elementwise)
    others = any(instruction.op.trait(kind) is not None for kind in (Quantizing, Bounded))
    return trait is not None and trait.function not in CHEAP and not others
