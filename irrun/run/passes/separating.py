"""Separate: what depends on nothing but sizes becomes a program of its own, `sizing`, in one that is to be settled.

Expects a folded program. Leaves one in which the results of `sizing` are further parameters, behind those of the model,
so that the passes behind it rely on nothing but their shapes. Once the sizes are known they are constants (`settle`).
"""

from __future__ import annotations

from dataclasses import replace

from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program, leading_to
from irrun.spec.evaluation import Evaluation
from irrun.spec.op import Tensor


def separate(program: Program, setting: Setting) -> Program:
    known = setting.sizes
    if known is None:
        return program
    derived: set[int] = set()
    sizing, others = [], []
    for instruction in program.instructions:
        if _is_derived(instruction, program, derived, known):
            sizing.append(instruction)
            derived.update(instruction.outputs)
        else:
            others.append(instruction)
    read = {number for instruction in others for number in instruction.inputs} | {*program.results}
    results = tuple(sorted(derived & read))
    made = {number for instruction in sizing for number in instruction.inputs} - derived - program.constants.keys()
    tensors = [*program.tensors]
    for number in results:
        tensors[number] = Tensor(tensors[number].type, tensors[number].shape)
    parameters = tuple(sorted(number for number in made if number is not None))
    return replace(
        program,
        tensors=tensors,
        parameters=(*program.parameters, *results),
        instructions=others,
        sizing=replace(program, parameters=parameters, results=results, instructions=leading_to(results, sizing)),
    )


def _is_derived(instruction: Instruction, program: Program, derived: set[int], known: Evaluation) -> bool:
    """Whether sizes alone decide what an instruction makes: it reads nothing else, or its values are sizes."""
    if not instruction.plain or instruction.effects:
        return False
    connected = [number for number in instruction.inputs if number is not None]
    if connected and all(number in derived or number in program.constants for number in connected):
        return True
    return all(is_sized(program.tensors[number], known) for number in instruction.outputs)


def is_sized(tensor: Tensor, known: Evaluation) -> bool:
    """Whether the values of a tensor are known as sizes, in terms of those that are `known`."""
    return tensor.value is not None and known.can_tell(tensor.value.flat)
