"""Repeat: what became of a program of some sizes, done again for others.

Expects a program that was settled from the same decided one as those whose `Course` it may follow; leaves what the
passes that place it would. Of instructions that are of one kind whatever the sizes are the first one is offered to
engines, and what becomes of it becomes of the others. Where that is something else than it was before, the program goes
on as another one did of which all had become the same so far; if there is none, what is left is placed as ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from irrun.records import NamedTuple
from irrun.run.internal_ops import DEQUANTIZE, REORDER
from irrun.run.passes.assignment import Assignment
from irrun.run.passes.planning import Span, lay_out, plan_memory, spans
from irrun.run.passes.setting import Form, Setting, Taken
from irrun.run.passes.shortening import shorten
from irrun.run.program import KERNEL, VIEW, Instruction, Program, Storage
from irrun.spec.traits import Reshaping


class Step(NamedTuple):
    """What an instruction has become, by one of the engines that would compile it, `outcomes` in short, and the number
    of its kind."""

    kind: int
    outcomes: tuple[Hashable, ...]
    made: Sequence[Instruction]


class Course(NamedTuple):
    """What the instructions of a program became, and what brings results into a form that all can read at the `end`.
    `roots` say in which tensor's memory each lies that has a place, and `used` from when to when these memories are in
    use."""

    steps: Sequence[Step]
    end: Sequence[Instruction]
    roots: Mapping[int, int]
    used: Mapping[int, Span]

    def begins_as(self, other: Course, count: int) -> bool:
        """Whether the first instructions became the same as in another course."""
        pairs = zip(self.steps[:count], other.steps[:count], strict=True)
        return all(own.kind == its.kind and own.outcomes == its.outcomes for own, its in pairs)


def course_of(program: Program, placed: Program, forms: Mapping[int, Form], setting: Setting) -> Course:
    """How a program was placed whose instructions have these forms."""
    makers = {
        made: position
        for position, instruction in enumerate(program.instructions)
        for part in instruction.parts
        for made in part.outputs or [part.layer]  # who assigns a variable need not give it on
    }
    made: list[list[Instruction]] = [[] for _ in program.instructions]
    wanted: list[Instruction] = []  # by who comes next
    for instruction in placed.instructions:
        if instruction.op is REORDER or instruction.op is DEQUANTIZE:
            wanted.append(instruction)
            continue
        made[makers[instruction.outputs[0] if instruction.outputs else instruction.layer]] += *wanted, instruction
        wanted = []
    kinds = _Kinds(program, placed, forms)
    steps = []
    for instruction, became in zip(program.instructions, made, strict=True):
        bare = [own.changed(work=None, compiled=None) for own in became]  # which would keep what it was compiled to
        steps.append(Step(kinds.of(instruction, became), tuple(map(_outcome, became)), bare))
    roots = {number: storage.root for number, storage in placed.storage.items()}
    return Course(steps, wanted, roots, spans(placed, setting))


def repeat(
    courses: Sequence[Course], program: Program, read: Iterable[int | None], setting: Setting
) -> tuple[Program, bool] | None:
    """A settled program, of which something reads the tensors `read`, ready for frames, and whether it went as one did
    before; None where it has to be placed from the beginning. Raises what `assign` and `plan_memory` raise."""
    course, *others = courses
    assignment = Assignment(program, setting, {*read})
    for number in program.parameters:
        assignment.place(number)
    placed, models = assignment.program, dict[int, list[_Model]]()
    for position, instruction in enumerate(program.instructions):
        step = course.steps[position]
        known = models.get(step.kind)
        if known is not None:
            if not all(_follow(assignment, course, *pair) for pair in zip(step.made, known, strict=True)):
                return None
            continue
        begin = len(placed.instructions)
        _offer(assignment, instruction)
        became = placed.instructions[begin:]
        outcomes = tuple(map(_outcome, became))
        if outcomes != step.outcomes:
            others = [own for own in others if own.begins_as(course, position)]
            fitting = [own for own in others if own.steps[position].outcomes == outcomes]
            if not fitting:
                return _as_ever(assignment, program.instructions[position + 1 :], setting), False
            course, *others = fitting
            step = course.steps[position]
        models[step.kind] = [_model(own, assignment, setting) for own in became]
    placed = shorten(assignment.finish(), setting)
    before = [*(own for step in course.steps for own in step.made), *course.end]
    if len(placed.instructions) != len(before) or not course.roots.keys() <= placed.storage.keys():
        return None
    placed.instructions = [
        own if own.frees == other.frees else own.changed(frees=other.frees)
        for own, other in zip(placed.instructions, before, strict=True)
    ]
    placed.storage = {number: placed.storage[number] for number in course.roots}
    if any(storage.root != course.roots[number] for number, storage in placed.storage.items()):
        return None
    return lay_out(placed, course.used, setting), True


def _offer(assignment: Assignment, instruction: Instruction) -> None:
    """Have engines take an instruction, or leave it to its kernel."""
    for part in instruction.parts:
        for number in part.outputs:
            assignment.place(number)
    assignment.add(instruction)


def _as_ever(assignment: Assignment, instructions: Sequence[Instruction], setting: Setting) -> Program:
    """A program whose last `instructions` follow no course."""
    for instruction in instructions:
        _offer(assignment, instruction)
    return plan_memory(shorten(assignment.finish(), setting), setting)


class _Model(NamedTuple):
    """The first instruction of a kind, and what an engine has taken of it."""

    instruction: Instruction
    taken: Taken | None


def _model(instruction: Instruction, assignment: Assignment, setting: Setting) -> _Model:
    if instruction.compiled is None or instruction.work is None:
        return _Model(instruction, None)
    engine = setting.engine(instruction.by)
    weights = assignment.weights(instruction)
    taken = Taken(engine, len(instruction.posts), instruction.work, instruction.compiled, weights)
    return _Model(instruction, taken)


def _follow(assignment: Assignment, course: Course, own: Instruction, model: _Model) -> bool:
    """Do with an instruction what was done with its model, as before; False where its weights make a difference."""
    program, taken = assignment.program, model.taken
    if own.by == KERNEL:
        for number in own.results:
            assignment.place(number)
        program.instructions.append(own)
        return True
    if taken is None:
        for number, other in zip(own.outputs, model.instruction.outputs, strict=True):
            if other in program.storage:
                lies, root = program.storage[other], course.roots.get(number)
                root = _root(own, program) if root is None else root
                program.storage[number] = Storage(root, start=lies.start, strides=lies.strides)
        program.instructions.append(own)
        return True
    again = assignment.again(own, taken)
    if again is None:
        return False
    work, compiled = again
    if own.op is REORDER:
        (source,) = own.inputs
        layout = program.storage[model.instruction.outputs[0]].layout
        if source is None or assignment.copy(source, layout, taken.engine, own.layer) != own.outputs[0]:
            return False
    else:
        for number in own.results:
            assignment.place(number)
        for position, layout in compiled.gives.items():
            assignment.lay(own.results[position], layout, taken.engine, own.layer)
    program.instructions.append(own.changed(by=taken.engine.name, work=work, compiled=compiled))
    return True


def _root(view: Instruction, program: Program) -> int:
    """In which tensor's memory the results of a view lie."""
    source = view.port(view.op.view_of or "")
    assert source is not None, "what is a view has one"
    return program.storage[source].root if source in program.storage else source


def _outcome(instruction: Instruction) -> Hashable:
    """What an instruction has become, but for its sizes, and for whose it is where nobody else has to know that."""
    work, compiled = instruction.work, instruction.compiled
    own = instruction.reads, instruction.results, len(instruction.posts)
    if work is None or compiled is None:
        return instruction.by, *own
    gives = tuple((position, layout.strides is None) for position, layout in compiled.gives.items())
    opaque = instruction.by if any(is_known_to_one for _, is_known_to_one in gives) else None
    return opaque, *own, len(work.outputs), compiled.doubtful, compiled.coded, gives


class _Kinds:
    """Kinds of instructions in a program that was placed, by what holds for all sizes.

    What reads codes, or has no form, is of a kind of its own.
    """

    def __init__(self, program: Program, placed: Program, forms: Mapping[int, Form]) -> None:
        self._placed, self._forms = placed, forms
        numbers = (own.outputs[0] for own in program.instructions if own.op is DEQUANTIZE)
        self._coded = {*program.compressed, *numbers}
        self._numbers: dict[Hashable, int] = {}
        self._lying: dict[int, int] = {}  # how tensors lie that do not lie in C order whatever the sizes are

    def of(self, instruction: Instruction, made: Sequence[Instruction]) -> int:
        form = self._forms.get(id(instruction))
        coded = not self._coded.isdisjoint(instruction.operands)
        alone = instruction.outputs if form is None or coded or any(map(self._looks_at_constant, made)) else ()
        number, lying = (-1, ()) if form is None else form
        steps = [(own.by, own.op) for own in made] if len(made) > 1 else ()  # one brings into a layout what others read
        kind = self._number((number, *map(self._lies, lying), *alone, *steps))
        for at, own in enumerate(made):
            for port, number in enumerate(own.results):
                if not self._is_dense(own, number):
                    self._lying[number] = self._number((kind, at, port, "lies"))
        return kind

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def _lies(self, number: int) -> int:
        """How a tensor lies; what sizes tell, which engines may look at, is like nothing else in other sizes."""
        return ~number if number in self._placed.constants else self._lying.get(number, 0)

    def _looks_at_constant(self, instruction: Instruction) -> bool:
        return instruction.by == VIEW and any(root in self._placed.constants for root in self._roots(instruction))

    def _roots(self, instruction: Instruction) -> Iterator[int]:
        storage = self._placed.storage
        return (storage[number].root for number in instruction.results if number in storage)

    def _is_dense(self, instruction: Instruction, number: int) -> bool:
        if instruction.by == VIEW:
            plain = instruction.op.trait(Reshaping) is not None
            return plain and not any(number in self._lying for number in instruction.inputs)
        storage = self._placed.storage.get(number)
        return storage is not None and storage.layout is None
