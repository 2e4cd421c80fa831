"""Templates: what is computed is decided once for inputs of open sizes, and settled for each that come.

Shapes are of one pattern where the same sizes are 0 or 1, and the same ones are equal. A pattern that comes again, or
some times more where little in the program is alike, gets a template, `Decided`, if that gives the program which the
passes have made of shapes before from the beginning. Sizes that follow from those of the inputs are taken for equal
where they were for all shapes of the pattern so far, as sizes of images are that went through different layers; shapes
for which they are not have a template made anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from threading import Lock

from irrun.locks import fork_safe
from irrun.records import dataclass
from irrun.run.passes import decide, place
from irrun.run.passes.repeating import Course, course_of, repeat
from irrun.run.passes.setting import Setting
from irrun.run.passes.settling import Decided, decided, same_known, settle
from irrun.run.patterns import Pattern, Shapes, open_shapes, pattern_of
from irrun.run.program import Instruction, Program
from irrun.spec.evaluation import Evaluation, Presumed
from irrun.spec.op import Array, Violation

MAX_KEPT = 16
"""Patterns that are remembered."""

MAX_COURSES = 8
"""Ways in which programs of a template were placed: engines choose by sizes."""

MAX_TRIED, MAX_SEEN = 3, 8
"""Templates that are made of one pattern, and shapes that they are made by."""

PATIENCE = 3
"""Programs that repeat themselves gain much by a template. It takes as long to make as two in full, so that for others
some of these come first."""


@dataclass(eq=False, slots=True)
class _Template:
    """What was decided, and in which ways programs of it were placed."""

    decided: Decided
    courses: list[Course] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Known:
    """What is known of a pattern: shapes that were `seen`, the latest ones first, of which programs were made in full,
    and the `last` of these until somebody makes a template; how often one was made, `MAX_TRIED` where there can be no
    other one."""

    seen: list[Shapes] = field(default_factory=list)
    last: Program | None = None
    tried: int = 0
    template: _Template | None = None


class Templates:
    """The templates of a program for any inputs. Safe for threads, which may make the same twice."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lock = fork_safe(Lock())
        self._kept: OrderedDict[Pattern, _Known] = OrderedDict()

    def prepare(self, setting: Setting) -> Program:
        """The program for inputs of the shapes of `setting`, whose sizes are all known. Raises ExecutionError."""
        shapes = tuple(tuple(map(int, shape)) for shape in setting.shapes or ())
        pattern = pattern_of(shapes, [self._program.tensors[number].shape for number in self._program.parameters])
        with self._lock:
            known = self._kept.setdefault(pattern, _Known())
            self._kept.move_to_end(pattern)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
            last, seen = known.last, known.seen
            if last is not None and len(seen) >= (1 if last.repeats_itself() else PATIENCE):
                known.last = None
            else:
                last = None
        if last is not None:
            decided = self._decided(pattern, (shapes, *seen), last, setting)
            known.tried = MAX_TRIED if decided is None else known.tried + 1
            known.template = None if decided is None else _Template(decided)
        template = known.template  # as it is now: other threads may find that it does not do
        if template is not None:
            settled = settle(template.decided, shapes, setting)
            if settled is not None:
                return self._placed(settled, template, setting)
        made = decide(self._program, setting)
        suited = template is not None and template.decided.suits(shapes)  # so that something else is wrong with them
        if known.tried < MAX_TRIED and not suited and _is_sound(made):
            known.seen, known.last, known.template = [shapes, *known.seen[: MAX_SEEN - 1]], made, None
        return place(made, setting)

    def _decided(self, pattern: Pattern, seen: Sequence[Shapes], made: Program, setting: Setting) -> Decided | None:
        """The template of a pattern, if what it gives for the latest but one of the shapes that were `seen` is the
        program that was made of them."""
        now, shapes, *others = seen
        setting = replace(setting, shapes=shapes)
        open = open_shapes(pattern)
        presumed = Presumed([Evaluation.of(open, given) for given in (shapes, now, *others)])
        own = replace(setting, shapes=open, presumed=presumed)
        found = decided(decide(self._program, own), open, shapes, setting, presumed)
        return found[0] if found is not None and alike(made, found[1]) else None

    def _placed(self, settled: Program, template: _Template, setting: Setting) -> Program:
        """A settled program, placed as one before it, if it can be."""
        forms = template.decided.forms
        setting = replace(setting, forms=forms)
        courses = [] if setting.refused else template.courses
        repeated = repeat(courses, settled, template.decided.read, setting) if courses else None
        placed, known = (place(settled, setting), False) if repeated is None else repeated
        if not known:
            course = course_of(settled, placed, forms, setting)
            template.courses = [course, *courses[: MAX_COURSES - 1]]
        return placed


def _is_sound(program: Program) -> bool:
    """Whether no instruction of a program is known to break its rule, after which nothing is known of what it gives."""
    parts = (part for instruction in program.instructions for part in instruction.parts)
    return all(_keeps_rule(part, program) for part in parts if not program.is_ranked(part.outputs))


def _keeps_rule(part: Instruction, program: Program) -> bool:
    """Whether the rule of a part just does not know how many axes there are."""
    if part.bodies or part.enclosed is not None:
        return False
    try:
        part.op.infer(program.known_inputs(part), part.attrs)
    except Violation:
        return False
    return True


def alike(a: Program, b: Program) -> bool:
    """Whether two programs whose sizes are known, and that no engine has seen, do the same in the same order."""
    mine, its = ([*_single(program)] for program in (a, b))
    if len(mine) != len(its) or len(a.compressed) != len(b.compressed):
        return False
    numbers: dict[int | None, int | None] = {None: None, **dict(zip(a.parameters, b.parameters, strict=True))}

    def same(own: Sequence[int | None], other: Sequence[int | None]) -> bool:
        return len(own) == len(other) and all(
            numbers[x] == y if x in numbers else x is not None and y is not None and _same_constant(a, x, b, y)
            for x, y in zip(own, other, strict=True)
        )

    for (one, row), (two, other_row) in zip(mine, its, strict=True):
        if len(one.posts) != len(two.posts) or row != other_row:
            return False
        for part, other in zip(one.parts, two.parts, strict=True):
            if not _same_part(part, other) or not same(part.inputs, other.inputs):
                return False
            for x, y in zip(part.outputs, other.outputs, strict=True):
                if not (row or same_known(a.tensors[x], b.tensors[y])):
                    return False
                numbers[x] = y
    return same(a.results, b.results) and (a.variables, a.borders) == (b.variables, b.borders)


def _single(program: Program) -> Iterator[tuple[Instruction, int]]:
    """The instructions one by one, and the number of the row that each is enclosed in, 0 for none."""
    rows = 0
    for instruction in program.instructions:
        if instruction.enclosed is None:
            yield instruction, 0
            continue
        rows += 1
        for inner in instruction.enclosed.instructions:
            yield inner, rows


def _same_part(a: Instruction, b: Instruction) -> bool:
    mine, other = (
        (part.layer, part.op, part.open, part.effects, part.ports, part.types, len(part.outputs)) for part in (a, b)
    )
    bodies = [{name: (id(body), id(program)) for name, (body, program) in part.bodies.items()} for part in (a, b)]
    attrs = a.attrs is b.attrs or repr(a.attrs) == repr(b.attrs)
    return mine == other and attrs and bodies[0] == bodies[1] and (a.quick is None) == (b.quick is None)


def _same_constant(a: Program, own: int, b: Program, other: int) -> bool:
    if own in a.compressed or other in b.compressed:
        return a.compressed.get(own) is b.compressed.get(other)
    mine, its = a.constants.get(own), b.constants.get(other)
    return mine is not None and its is not None and (mine is its or _same_array(mine, its))


def _same_array(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
