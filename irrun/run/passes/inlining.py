"""Inline: where it is known which body runs, its instructions take the place of the one that would run it.

Expects a folded program for inputs of known shapes; leaves a folded one, in which no condition of a branch is constant
but of such as read or write variables.
"""

from __future__ import annotations

from collections.abc import Mapping

from irrun.run.passes.folding import fold
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.body import Body
from irrun.spec.traits import Branching

MAX_DEPTH = 32
"""Branches in each other that are looked into."""


def inline(program: Program, setting: Setting) -> Program:
    if setting.shapes is None or not setting.transforms:
        return program
    for _ in range(MAX_DEPTH):
        found = _Inlining(program)
        if not found.run():
            break
        program = fold(found.program, setting)
    return program


class _Inlining:
    """A program in the making."""

    def __init__(self, program: Program) -> None:
        self._given, self.program = program, program.begun()
        self._same: dict[int, int] = {}

    def run(self) -> bool:
        """Whether there was anything to do."""
        for instruction in self._given.instructions:
            if self._same:
                instruction = instruction.reading(self._same)
            chosen = self._chosen(instruction)
            if chosen is None:
                self.program.instructions.append(instruction)
            else:
                self._splice(instruction, *chosen)
        self.program.results = tuple(self._same.get(number, number) for number in self._given.results)
        return bool(self._same)

    def _chosen(self, instruction: Instruction) -> tuple[Body, Program] | None:
        """The body that runs, if that is known and it can be spliced in."""
        branching = instruction.op.trait(Branching)
        if branching is None or instruction.posts:
            return None
        condition = self._given.constant(instruction.port(branching.condition))
        if condition is None or condition.size != 1:
            return None
        name = branching.then if condition.item() else branching.otherwise
        body, program = instruction.bodies[name]
        connected = {port.parameter for port in body.inputs if port.external >= 0}
        if len(connected) < len(program.parameters) or not _is_pure(program) or program.compressed:
            return None
        return body, program

    def _splice(self, instruction: Instruction, body: Body, inner: Program) -> None:
        program = self.program
        program.reserved += inner.reserved
        numbers: dict[int, int] = {}
        for port in body.inputs:
            given = instruction.inputs[port.external]
            assert given is not None, "what a body reads is connected"
            numbers[inner.parameters[port.parameter]] = given
        for number, constant in inner.constants.items():
            numbers[number] = program.add(inner.tensors[number])
            program.constants[numbers[number]] = constant
        for part in inner.instructions:
            for number in part.outputs:
                numbers[number] = program.add(inner.tensors[number])
            program.instructions.append(_renumbered(part, numbers))
        for output in body.outputs:
            if output.external >= 0:
                self._same[instruction.outputs[output.external]] = numbers[inner.results[output.result]]


def _renumbered(instruction: Instruction, numbers: Mapping[int, int]) -> Instruction:
    inputs = tuple(None if number is None else numbers[number] for number in instruction.inputs)
    return instruction.changed(
        inputs=inputs, outputs=tuple(numbers[n] for n in instruction.outputs), frees=(), reads=()
    )


def _is_pure(program: Program) -> bool:
    """Whether nothing in it depends on when it runs, and what it gives is that of its instructions as they are."""
    return all(
        instruction.op.pure
        and not instruction.effects
        and not instruction.posts
        and "state" not in instruction.op.context
        and all(map(_is_pure, (body for _, body in instruction.bodies.values())))
        for instruction in program.instructions
    )
