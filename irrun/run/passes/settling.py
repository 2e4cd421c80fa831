"""Settle: what the passes have decided for open sizes, `Decided`, filled in with the sizes of a run.

Expects a program of open sizes that all passes which decide what is computed are through with, `separate` among them.
Leaves what they make of these sizes, ready for those that place it. They have relied on nothing that sizes of 2 and
more may break. Rules that open sizes left a question are asked again with the numbers, once for all instructions that
ask the same; where one finds something else than before the program has to be made from the beginning, which tells what
is wrong, too.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from irrun.records import NamedTuple, dataclass
from irrun.run.passes.folding import Folding
from irrun.run.passes.kinds import forms, known_of
from irrun.run.passes.planning import frees
from irrun.run.passes.separating import is_sized
from irrun.run.passes.setting import Form, Setting
from irrun.run.passes.shortening import checks_itself
from irrun.run.program import Instruction, Program, leading_to
from irrun.spec.dims import Shape
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.evaluation import Evaluation, Presumed, Unknown
from irrun.spec.op import FLOAT, INTEGER, Array, Tensor, Violation
from irrun.spec.traits import Lookup

MAX_COMPARED = 16
"""Elements of a constant of floats that rules may look at; what is larger are numbers to compute with."""

Tensors = Sequence[tuple[Tensor, Sequence[int]]]
"""What is known of tensors, and the numbers of those of which just this is."""

Question = tuple[Instruction, bool]
"""One instruction for all with equal inputs, and whether its rule leaves a check to the run."""


class _Latest(NamedTuple):
    """What came of a portion for the latest sizes, by the `key` of its roots: constants, and the bytes of all of it."""

    key: tuple[Hashable, ...]
    arrays: Mapping[int, Array]
    reserved: int


@dataclass(eq=False, slots=True)
class _Portion:
    """Instructions that depend on the same `roots`, tensors that are told and parameters whose shapes are; for each,
    the tensors that it is the last to read. Of products those that others read are `kept`: a batch is often what it was
    in the run before where a length is not."""

    roots: tuple[int, ...]
    instructions: list[Instruction]
    over: Sequence[Sequence[int]]
    kept: tuple[int, ...]
    latest: _Latest | None = None

    def fold(self, folding: Folding, told: Mapping[int, Array]) -> None:
        """Compute it, or take what came of it."""
        program, latest = folding.program, self.latest  # as it is now: other threads may go on with other sizes
        key = tuple(told[root].tobytes() if root in told else program.tensors[root].shape for root in self.roots)
        if latest is not None and latest.key == key:
            program.constants.update(latest.arrays)
            program.reserved += latest.reserved
            return
        before = program.reserved
        folding.run(self.instructions, self.over)
        if self.kept and all(number in program.constants for number in self.kept):
            arrays = {number: program.constants[number] for number in self.kept}
            self.latest = _Latest(key, arrays, program.reserved - before)


class Decided(NamedTuple):
    """A program of open sizes, and all that is known of it once for the sizes of any run."""

    program: Program
    sizing: Program
    """What computes the last parameters of `program`, without what is `told`."""
    shapes: tuple[Shape, ...]
    """Of the inputs, with open sizes."""
    told: Mapping[int, Tensor]
    """Tensors of `sizing` whose values are sizes."""
    used: Tensors
    """Tensors of `program`, by what is known of them."""
    sized: Tensors
    """Tensors of `sizing` whose kernels check themselves, so that no rule is asked."""
    portions: Sequence[_Portion]
    """The instructions of `sizing`."""
    questions: Sequence[Question]
    """What rules are asked for the sizes of each run."""
    forms: Mapping[int, Form]
    """Of the instructions, by their identity."""
    presumed: Presumed
    """What has to be true of sizes that it is for."""
    read: frozenset[int | None]
    """The tensors of `program` that anything reads."""

    def suits(self, given: Sequence[Sequence[int]]) -> bool:
        """Whether what was presumed is true of shapes."""
        try:
            return self.presumed.holds(Evaluation.of(self.shapes, given))
        except (Unknown, ZeroDivisionError):
            return True


def decided(
    program: Program,
    shapes: tuple[Shape, ...],
    given: Sequence[Sequence[int]],
    setting: Setting,
    presumed: Presumed,
) -> tuple[Decided, Program] | None:
    """What passes have made for inputs of open `shapes`, and the program that this is for the `given` ones; None where
    a rule finds more, or something else. They have relied on what was `presumed`."""
    assert program.sizing is not None
    parts = [part for instruction in program.instructions for part in instruction.parts]
    numbers = {number for part in parts for number in part.outputs}
    asked = {_question(part, program): part for part in parts if part.enclosed is None}
    sizes = presumed.sizes
    numbers.update(program.parameters, program.sizing.parameters)
    used = _grouped([n for n in sorted(numbers) if program.tensors[n].shape is not None], program.tensors)
    told = _told(program.sizing, sizes)
    sizing, alone = _unasked(_untold(program.sizing, told), sizes, told)
    bare = [Tensor(tensor.type, tensor.shape) for tensor in program.sizing.tensors]  # the values are computed
    sized, portions = _grouped(alone, bare), _portions(sizing, told, setting)
    read = frozenset(program.read())
    found = Decided(program, sizing, shapes, told, used, sized, portions, (), {}, presumed, read)
    filled = _filled(found, given, setting)
    if filled is None:
        return None
    folding = Folding(filled, setting)
    answers = {key: _asked(folding, part) for key, part in asked.items()}
    if None in answers.values():
        return None

    def answered(part: Instruction) -> Instruction:
        if part.enclosed is not None:
            return part
        return part.changed(open=answers[_question(part, program)])

    instructions = [
        answered(instruction).changed(posts=tuple(map(answered, instruction.posts)))
        for instruction in program.instructions
    ]
    questions = [
        (part, bool(open))
        for part, open in zip(asked.values(), answers.values(), strict=True)
        if open or not _is_decided(part, program)
    ]
    program = replace(program, instructions=instructions)
    found = Decided(program, sizing, shapes, told, used, sized, portions, questions, forms(program), presumed, read)
    return found, replace(filled, instructions=instructions)


def settle(decided: Decided, given: Sequence[Sequence[int]], setting: Setting) -> Program | None:
    """The program for inputs of these shapes; None where it has to be made from the beginning."""
    program = _filled(decided, given, setting) if decided.suits(given) else None
    if program is None:
        return None
    folding = Folding(program, setting)
    if any(_asked(folding, part) != open for part, open in decided.questions):
        return None
    return program


def _asked(folding: Folding, part: Instruction) -> bool | None:
    """Whether the rule of a part leaves something to the run; None where it finds something else than before."""
    tensors = folding.program.tensors
    before = [tensors[number] for number in part.outputs]
    try:
        found = folding.asked(part)
    except Violation:
        return None
    after = [tensors[number] for number in part.outputs]
    for number, tensor in zip(part.outputs, before, strict=True):  # others know sizes by those that were open
        tensors[number] = tensor
    for place, own in enumerate(before):
        if after[place].type == "dynamic":  # ops of the passes' own leave types to these
            after[place] = Tensor(own.type, after[place].shape, after[place].content)
    same = found.types == part.types and all(map(same_known, before, after))
    return found.open if same else None


def _is_decided(part: Instruction, program: Program) -> bool:
    """Whether the rule of a part says what is known of its outputs already, whatever the sizes turn out to be."""
    assert program.sizing is not None
    return not any(number in program.sizing.results for number in part.inputs) and _says_all(part, program)


def _says_all(part: Instruction, program: Program) -> bool:
    """The same of one that reads nothing of which more will be known than is now."""
    if part.bodies:
        return False
    inferred = part.op.infer(program.known_inputs(part), part.attrs)
    outputs = [program.tensors[number] for number in part.outputs]
    return inferred.decided and [*map(known_of, inferred.outputs[: len(outputs)])] == [*map(known_of, outputs)]


def same_known(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are of one type and one shape, as far as that is known, and the same is known."""
    if a.type != b.type or a.shape is None or b.shape is None:
        return a.type == b.type and a.shape is b.shape
    return len(a.shape) == len(b.shape) and all(
        one == other if isinstance(one, int) and isinstance(other, int) else type(one) is type(other)
        for one, other in zip(a.shape, b.shape, strict=True)
    )


def _filled(decided: Decided, given: Sequence[Sequence[int]], setting: Setting) -> Program | None:
    """The program with all its sizes, and what depends on them alone as constants; None where that cannot be told."""
    program, sizing, sizes = decided.program, decided.sizing, Evaluation.of(decided.shapes, given)
    tensors, own = [*program.tensors], [*sizing.tensors]
    try:
        _fill(tensors, decided.used, sizes)
        _fill(own, decided.sized, sizes)
        told = {number: _valued(tensor, sizes) for number, tensor in decided.told.items()}
    except (Unknown, ZeroDivisionError, OverflowError):
        return None
    for number, array in told.items():
        own[number] = Tensor(own[number].type, array.shape)
    shapes = tuple(tensors[number].shape or () for number in sizing.parameters)
    sizing = replace(sizing, tensors=own, constants=sizing.constants | told)
    folding = Folding(sizing.begun(), replace(setting, shapes=shapes))
    for portion in decided.portions:
        portion.fold(folding, told)
    computed = folding.program
    if any(
        number not in computed.constants
        or not tensors[number].static
        or computed.constants[number].shape != tensors[number].shape
        for number in sizing.results
    ):
        return None
    return replace(
        program,
        tensors=tensors,
        constants=program.constants | {number: computed.constants[number] for number in sizing.results},
        parameters=program.parameters[: len(program.parameters) - len(sizing.results)],
        instructions=[*program.instructions],
        reserved=program.reserved + computed.reserved - sizing.reserved,
        sizing=None,
    )


def _fill(tensors: list[Tensor], known: Tensors, sizes: Evaluation) -> None:
    """Raises ZeroDivisionError where a size cannot be told; those that the data tell stay open."""
    for tensor, numbers in known:
        value = tensor.value
        content = None if value is None else np.array(sizes.told(value.flat), object).reshape(value.shape)
        filled = Tensor(tensor.type, sizes.told(tensor.shape or ()), content)
        for number in numbers:
            tensors[number] = filled


def _told(sizing: Program, sizes: Evaluation) -> dict[int, Tensor]:
    """The tensors that `sizing` makes and whose values are sizes."""
    made = {number: sizing.tensors[number] for own in sizing.instructions for number in own.outputs}
    return {number: tensor for number, tensor in made.items() if tensor.type in INTEGER and is_sized(tensor, sizes)}


def _untold(sizing: Program, told: Container[int]) -> Program:
    """The program without what is told, and what only that reads."""
    kept = [own for own in sizing.instructions if not all(number in told for number in own.outputs)]
    return replace(sizing, instructions=leading_to((n for n in sizing.results if n not in told), kept))


def _portions(sizing: Program, told: Iterable[int], setting: Setting) -> list[_Portion]:
    """The instructions of `sizing` by what they depend on, in an order in which they can be computed."""
    roots = {number: frozenset((number,)) for number in (*told, *sizing.parameters)}
    found: dict[frozenset[int], list[Instruction]] = {}
    for instruction in sizing.instructions:
        own = frozenset[int]().union(*(roots[number] for number in instruction.inputs if number in roots))
        found.setdefault(own, []).append(instruction)
        for number in instruction.outputs:
            roots.setdefault(number, own)
    order = sorted(found, key=len)  # who reads what depends on something depends on that, too
    kept = [_kept(found[own], sizing) if any(each.multiplies for each in found[own]) else () for own in order]
    instructions = [instruction for own in order for instruction in found[own]]
    results = (*sizing.results, *(number for numbers in kept for number in numbers))
    over = iter(frees(replace(sizing, instructions=instructions, results=results), setting))
    return [
        _Portion(tuple(sorted(own)), found[own], [next(over) for _ in found[own]], numbers)
        for own, numbers in zip(order, kept, strict=True)
    ]


def _kept(instructions: Sequence[Instruction], program: Program) -> tuple[int, ...]:
    """What of the results of some instructions others read, or who has the results of the program."""
    made = {number for instruction in instructions for number in instruction.outputs}
    own = {*map(id, instructions)}
    read = {number for other in program.instructions if id(other) not in own for number in other.inputs}
    return tuple(sorted(made & (read | {*program.results})))


def _valued(tensor: Tensor, sizes: Evaluation) -> Array:
    """The array of a tensor whose values are sizes. Raises Unknown, ZeroDivisionError, OverflowError."""
    assert tensor.value is not None
    array = np.array(sizes.shape(tensor.value.flat), numpy_dtype(tensor.type)).reshape(tensor.value.shape)
    array.flags.writeable = False
    return array


def _unasked(sizing: Program, sizes: Evaluation, told: Iterable[int]) -> tuple[Program, list[int]]:
    """The program with what its kernels check themselves, or of which rules say all already, as what leaves no
    question, and the tensors that this makes.

    It reads what is constant once the sizes are known. Of indices that reach beyond the data a rule warns.
    """
    made = {*told, *(number for instruction in sizing.instructions for number in instruction.outputs)}
    alone: list[int] = []
    instructions = []
    for instruction in sizing.instructions:
        numbers = (*instruction.inputs, *instruction.outputs)
        ready = all(number in sizing.constants or _can_be_told(number, made, sizing, sizes) for number in numbers)
        ready = ready and instruction.op.trait(Lookup) is None
        if ready and (checks_itself(instruction, sizing) or _says_all(instruction, sizing)):
            instruction = instruction.changed(open=False)
            alone += instruction.outputs
        instructions.append(instruction)
    return replace(sizing, instructions=instructions), alone


def _can_be_told(number: int | None, made: set[int], sizing: Program, sizes: Evaluation) -> bool:
    """Whether a tensor is one that is `made` of sizes, of a shape that these tell."""
    if number is None or number not in made:
        return False
    tensor = sizing.tensors[number]
    if tensor.type == "dynamic" or tensor.shape is None:
        return False
    return sizes.can_tell(tensor.shape)


def _grouped(numbers: Iterable[int], tensors: Sequence[Tensor]) -> list[tuple[Tensor, list[int]]]:
    """Tensors of which the same is known, as one and all their numbers."""
    found: dict[Hashable, tuple[Tensor, list[int]]] = {}
    for number in numbers:
        tensor = tensors[number]
        key = known_of(tensor) if tensor.content is None else number
        found.setdefault(key, (tensor, []))[1].append(number)
    return list(found.values())


def _question(part: Instruction, program: Program) -> Hashable:
    """All that the rule of a part of a program may look at, whatever the sizes are."""
    if part.bodies:
        return id(part)
    inputs = [None if number is None else _given(number, program) for number in part.inputs]
    outputs = [known_of(program.tensors[number]) for number in part.outputs]
    return part.op, *part.attrs.items(), *sorted(part.types.items()), *inputs, *outputs


def _given(number: int, program: Program) -> Hashable:
    array = program.constants.get(number)
    if array is None:
        assert program.sizing is not None
        return number if number in program.sizing.results else known_of(program.tensors[number])
    if array.size > MAX_COMPARED and program.tensors[number].type in FLOAT:
        return program.tensors[number].type, array.shape
    return id(array) if array.size > MAX_COMPARED else (program.tensors[number].type, array.shape, array.tobytes())
