"""Drop: instructions that change nothing, such as a conversion into the type that is there, or no updates of a tensor.

Expects a folded program; leaves one in which readers of their results read their inputs, and what is converted for the
type of another tensor is constant where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from irrun.interruption import hand_on
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import same_shapes
from irrun.spec.traits import Overwriting, Repeating, Resizing, Retyping

MAX_CONVERTED = 1024
"""Bytes of a constant that is kept in another type."""


def drop(program: Program, setting: Setting) -> Program:
    if not setting.transforms:
        return program
    program = replace(program, constants={**program.constants})
    same: dict[int, int] = {}
    instructions = []
    for instruction in program.instructions:
        if same:
            instruction = instruction.reading(same)
        if _is_constant(instruction, program):
            continue
        found = dict(_unchanged(instruction, program, setting))
        if not found or len(found) < len(instruction.outputs):
            instructions.append(instruction)
        else:
            same.update(found)
    results = tuple(same.get(number, number) for number in program.results)
    return replace(program, instructions=instructions, results=results)


def _is_constant(instruction: Instruction, program: Program) -> bool:
    """Whether the only result is that of a constant for the type of another tensor; then it is one, too."""
    first = instruction.inputs[0] if instruction.inputs else None
    if instruction.op.trait(Retyping) is None or len(instruction.outputs) != 1 or not instruction.plain:
        return False
    if first is None or first not in program.constants or instruction.open:
        return False
    if program.tensors[instruction.outputs[0]].type == "dynamic":
        return False
    array = program.constants[first]
    if array.nbytes > MAX_CONVERTED:
        return False
    try:
        (result,) = instruction.computed([array, *(np.empty(0) for _ in instruction.inputs[1:])])
    except Exception as error:  # the run reports it, with its layer
        hand_on(error)
        return False
    result = result.copy()
    result.flags.writeable = False
    program.constants[instruction.outputs[0]] = result
    return True


def _unchanged(instruction: Instruction, program: Program, setting: Setting) -> Iterator[tuple[int, int]]:
    """The outputs that are inputs as they are, with these."""
    if not instruction.plain or instruction.posts:
        return
    tensors = program.tensors
    if instruction.op.trait(Retyping) is not None:
        for output, number in zip(instruction.outputs, instruction.inputs, strict=False):
            if number is not None and tensors[output].type == tensors[number].type != "dynamic":
                yield output, number
    elif _may_keep_its_shape(instruction):
        (output,), number = instruction.outputs, instruction.inputs[0]
        if (
            number is not None
            and (setting.sizes is not None or not instruction.open)  # there is nothing to object to in equal sizes
            and setting.sized(tensors[number])
            and same_shapes(tensors[output].shape, tensors[number].shape)
        ):
            yield output, number
    elif instruction.op.trait(Overwriting) is not None:
        (output,), (number, _, updates, *_) = instruction.outputs, instruction.inputs
        none = updates is not None and tensors[updates].static and 0 in (tensors[updates].shape or ())
        if number is not None and none and not instruction.open:
            yield output, number
    elif instruction.function == "multiply" and len(instruction.inputs) == 2:
        (output,), (a, b) = instruction.outputs, instruction.inputs
        for number, factor in ((a, b), (b, a)):
            if number is not None and factor is not None and _is_one(factor, program):
                rank, least = tensors[number].rank, program.constants[factor].ndim
                if rank is not None and rank >= least and number not in program.constants:
                    yield output, number
                    return


def _may_keep_its_shape(instruction: Instruction) -> bool:
    """Whether the result is the first input as it is where it has the same shape."""
    resizing = instruction.op.trait(Resizing)
    if resizing is not None:
        return not resizing.padded(instruction.attrs)
    return instruction.op.trait(Repeating) is not None


def _is_one(number: int, program: Program) -> bool:
    array = program.constants.get(number)
    return array is not None and array.size == 1 and array.dtype.kind in "fiu" and bool(array.item() == 1)
