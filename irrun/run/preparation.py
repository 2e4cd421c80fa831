"""Frames of a program: made when shapes of its inputs are first seen, and kept for the latest ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence, Set
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from math import inf, prod
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary, proxy

from irrun.diagnostics import Diagnostic, ExecutionError
from irrun.engines.memory import aligned
from irrun.engines.work import Call
from irrun.interruption import hand_on
from irrun.ir.collector import collector_paused
from irrun.ir.weights import Weights
from irrun.locks import fork_safe
from irrun.run.blocks import Block, Blocks, Prepared
from irrun.run.bodies import Iterations
from irrun.run.compiling import EngineFailed, warn_fallback
from irrun.run.enclosure import Enclosure
from irrun.run.frame import Frame
from irrun.run.kernels import Kernels
from irrun.run.memory import Meter
from irrun.run.passes import prepare
from irrun.run.passes.setting import Setting
from irrun.run.patterns import Pattern, Shapes, fits, grown, open_shapes
from irrun.run.program import KERNEL, VIEW, Program
from irrun.run.siblings import compact, kin_of, sibling_of
from irrun.run.specialization import Specialization, at_most_small, is_typed, is_unsized
from irrun.spec.dims import Shape
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.templates import Templates


LEAST_KEPT, MAX_KEPT, MAX_INSTRUCTIONS = 8, 64, 1 << 13
"""Sets of input shapes whose programs are kept: some, and more as long as the instructions of all are not more than so
many, each of which takes some 5 KB. They share memory, and weights are laid out once for all."""

MAX_PATIENT = 32
"""Programs that are kept of a body, or of a row of instructions, whose shapes depend on data."""

PATIENCE, MORE_PATIENCE = 1, 8
"""How often such shapes have come before they get a program: to make one takes as long as it saves in several runs,
and in many where there are no products to be computed, or to all siblings together."""

MOST_LARGER = 2
"""How many times as large as those of a light program inputs may be for which one is taken to be light, too."""

MAX_SEEN = 256
"""Shapes that are remembered, to know them when they come again."""

MAX_PATTERNS = 64
"""Patterns of shapes that grow, of which it is known whether programs for them are worth it."""

MAX_OPEN_WEIGHTS = 1 << 16
"""Bytes of a constant that an instruction of open sizes may read: engines lay out weights once, for sizes they know."""


class _Seen:
    """How often shapes have come, the latest ones. Safe for threads."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Shapes, int] = OrderedDict()
        self._lock = fork_safe(Lock())

    def count(self, shapes: Shapes) -> int:
        """How often they have come before; now they have once more."""
        with self._lock:
            before = self._counts.pop(shapes, 0)
            self._counts[shapes] = before + 1
            while len(self._counts) > MAX_SEEN:
                self._counts.popitem(last=False)
        return before


class Bodies:
    """The bodies of the ops of a program, and those within them, made ready when they are first run. Safe for threads.

    The `kernels` that run them refer to this object weakly: who runs the program keeps it.
    """

    def __init__(self, path: Path, weights: Weights, setting: Setting) -> None:
        self._setting = replace(setting, iterated=True)
        self.kernels = Kernels(path, weights, proxy(self))
        self.made: dict[Program, Preparation] = {}

    def prepared(self, program: Program, patient: bool) -> Preparation:
        """A body, made ready.

        One that is `patient` waits with programs until the same sizes come again, which they do by chance where the
        data tell them and it runs once.
        """
        found = self.made.get(program)
        if found is None:
            made = Preparation(program, self._setting, self.kernels, patient=patient)
            found = self.made.setdefault(program, made)
        return found


class Preparation:
    """The programs of a graph: `general` for any inputs, and others for inputs of known shapes. Safe for threads.

    Each run has a frame of its own, in one of `blocks`, which may be those of several. One that is `patient` makes a
    program for shapes when they come again; until then one does for all, of instructions that are specialised one by
    one. So it is for inputs of a model that are not much larger than those of a program which is light.

    `built` is what all are made of; where it is `ready` it is the general one itself. A sibling has a `model`, of whose
    programs it makes its own in a small part of the time (`irrun.run.siblings`); they count shapes that come together.
    """

    def __init__(
        self,
        built: Program,
        setting: Setting,
        kernels: Kernels,
        *,
        patient: bool = False,
        ready: bool = True,
        model: Preparation | None = None,
        blocks: Blocks | None = None,
    ) -> None:
        self.built, self._kernels = built, kernels
        self._setting = replace(setting, anew=not ready)
        self._declared: tuple[Shape, ...] = tuple(built.tensors[number].shape or () for number in built.parameters)
        self._only = _fixed(built)
        self._ranked = built.is_ranked(built.parameters)
        self._lock = fork_safe(Lock())
        self._inner = setting.iterated or patient  # its results belong to a run, which counts what it takes

        self._general = Prepared(built, {}) if ready else None
        self._open: Prepared | None = None  # for all sizes
        self._kept: OrderedDict[tuple[Shapes, bool], Prepared] = OrderedDict()
        self._patterns: OrderedDict[Pattern, bool] = OrderedDict()  # with whether a program of theirs is worth it
        self._latest: Shapes = ()
        self._templates: Templates | None = None
        self._blocks = blocks or Blocks()

        self._patient = patient and self._ranked  # what is for all sizes is for some rank
        self._enough = PATIENCE if patient and _multiplies(built) else MORE_PATIENCE  # times that shapes have come
        self._seen = _Seen()
        self._light = -1  # elements of inputs up to which programs are, as those that were made tell
        self._heavy = inf  # the fewest of a program that is not light

        self._model = model
        self._seen_by_all: _Seen = _Seen() if model is None else model._seen_by_all  # siblings
        self._models: WeakValueDictionary[Hashable, Preparation] = WeakValueDictionary()  # of the enclosed programs
        self._enclosed = Blocks()  # of these, which run one after the other

    @property
    def general(self) -> Prepared:
        """The program for any inputs, made when it is first needed. Raises ExecutionError where it takes too much."""
        if self._general is None:  # threads that ask at once may make it twice
            self._general = Prepared(prepare(self.built, replace(self._setting, engines=())), {})
        return self._general

    def prepare_ahead(self) -> None:
        """Make the program of a graph whose inputs have sizes that are known already."""
        if self._only is not None:
            with suppress(EngineFailed):  # the first run tries again, and goes on without it
                self.prepared(self._only)

    def acquire(
        self, arrays: Sequence[Array], *, watched: bool = False, meter: Meter | None = None
    ) -> tuple[Block, Frame]:
        """A frame for inputs of these shapes, which is the caller's until its block is released.

        Where a `meter` has no room for its memory it has none, and kernels ask for room one by one.
        """
        while True:
            try:
                prepared = self.prepared(self._only or tuple(array.shape for array in arrays), watched=watched)
                if meter is not None and meter.live + prepared.program.size > meter.limit:
                    prepared = self.general
                return self._framed(prepared)
            except MemoryError as error:
                raise self._kernels.placed(Diagnostic("E603", "there is not enough memory for a run")) from error
            except EngineFailed as error:
                warn_fallback("%s", error)
                self._setting.refused.add((error.layer, error.engine))
                with self._lock:
                    gone = {*self._kept.values(), self._open}
                    self._kept.clear()
                    self._open = None
                    self._drop(gone)

    def _framed(self, prepared: Prepared) -> tuple[Block, Frame]:
        """A block that no run uses, with a frame of a program. Raises EngineFailed, MemoryError."""
        block = self._blocks.take(prepared)
        setting = self._setting
        try:
            if prepared not in block.frames:
                with self._paused():
                    self._finish(prepared.program)
                    block.grow(aligned(prepared.program.scratch) + prepared.program.size)
                    block.frames[prepared] = Frame(
                        *(prepared.program, block.memory, self._kernels, prepared.specializations),
                        *(setting.reserve.lend if self._inner else setting.reserve.take, not self._inner),
                        setting.checked,
                    )
        except BaseException:
            self.release(block)
            raise
        return block, block.frames[prepared]

    def _finish(self, program: Program) -> None:
        """Have all threads do what binding a program would do call by call."""
        left: dict[str, dict[Call, None]] = {}
        for own in program.instructions:
            if own.compiled is not None and (calls := own.compiled.pending()):
                left.setdefault(own.by, {}).update(dict.fromkeys(calls))
        for name, every in left.items():
            if len(every) > 1:
                try:
                    self._setting.engine(name).together([*every])
                except Exception as error:  # who binds it says so, with its layer
                    hand_on(error)

    def release(self, block: Block) -> None:
        """Take back what `acquire` has lent. Safe for threads."""
        self._blocks.release(block)

    def iterations(self, passing: Set[int]) -> Iterations:
        """What runs the program over and over in one frame; results at the positions `passing` are soon read."""
        return Iterations(self, passing, fixed=self._only is not None)

    def prepared(self, shapes: Shapes, *, watched: bool = False) -> Prepared:
        """The program for inputs of these shapes; the one for any inputs where it would take too much memory.

        What grows by one from run to run, as the inputs of a model do that writes text, has one program for all sizes.
        """
        if not self._setting.engines:
            return self.general
        if self._patient and not watched:  # whose instructions are not computed together where somebody looks
            return self._if_they_come_again(shapes)
        with self._lock:
            before, self._latest = self._latest, shapes
            found = self._found(shapes, watched)
        if found is None:
            found = self._growing(grown(before, shapes), watched)
        if found is not None:
            return found
        elements = sum(map(prod, shapes))
        if elements <= MOST_LARGER * self._light and not watched:
            return self._if_they_come_again(shapes)
        made = self._made(shapes, watched)
        if not watched:
            self._weigh(elements, made.program)
        return self._keep((shapes, watched), made)

    def _growing(self, pattern: Pattern | None, watched: bool) -> Prepared | None:
        """The program for shapes of a pattern; None where there is none, or a program of its own is worth more."""
        if pattern is None or self._patterns.get(pattern) is False:  # it was tried
            return None
        made = self._made(pattern, watched)
        worth = made is not self.general and not _reads_weights_openly(made.program)
        with self._lock:
            self._patterns[pattern] = worth
            while len(self._patterns) > MAX_PATTERNS:
                self._patterns.popitem(last=False)
        return self._keep((pattern, watched), made) if worth else None

    def _weigh(self, elements: int, made: Program) -> None:
        """Learn up to how many elements of inputs programs are light, if those are checked: a body may be given what it
        does not declare."""
        if not self._ranked or self._setting.iterated or elements >= self._heavy:
            return
        if _is_light(made):
            self._light = max(self._light, elements)
        else:
            self._light, self._heavy = min(self._light, -(-elements // MOST_LARGER) - 1), elements

    def keeps(self, frame: Frame, meter: Meter | None) -> bool:
        """Whether a frame is the right one still: not where there is no room for it now, or may be a better one."""
        if any(prepared is not None and frame.program is prepared.program for prepared in (self._general, self._open)):
            return False
        return meter is None or meter.live + frame.memory.nbytes <= meter.limit

    def fits(self, frame: Frame, shapes: Shapes, watched: bool) -> bool:
        """Whether a frame is of the program for other shapes, too, as one is whose sizes grow from run to run."""
        with self._lock:
            found = self._found(shapes, watched)
            if found is None or found.program is not frame.program:
                return False
            self._latest = shapes
            return True

    def _if_they_come_again(self, shapes: Shapes) -> Prepared:
        """The program for inputs of these shapes if they have come often enough, or a sibling has it; else the one for
        all sizes."""
        found, model = self._sized(shapes), self._model
        if found is not None:
            return found
        here, anywhere = self._seen.count(shapes), self._seen_by_all.count(shapes)
        often = here >= self._enough or anywhere >= MORE_PATIENCE
        made = self._like_model(shapes) if often or (model is not None and model._sized(shapes) is not None) else None
        if made is None and not often:
            return self._for_all_sizes()
        return self._keep((shapes, False), made or self._made(shapes, False))

    def _sized(self, shapes: Shapes) -> Prepared | None:
        """What is kept for inputs of these shapes."""
        with self._lock:
            return self._found(shapes, watched=False)

    def _for_all_sizes(self) -> Prepared:
        """One program for all sizes of inputs, whose instructions are specialised one by one."""
        if self._open is None:
            self._open = self._like_model(None) or self._prepare(replace(self._setting, shapes=self._declared))
        return self._open

    def _like_model(self, shapes: Shapes | None) -> Prepared | None:
        """The program for inputs of these shapes, or for all sizes, as it is of the model; None where there is none, or
        that cannot be."""
        model = self._model
        if model is None or self._setting.refused:
            return None
        if shapes is None:
            theirs = model._for_all_sizes()
        else:
            theirs = model._sized(shapes) or model._keep((shapes, False), model._made(shapes, False))
        setting = replace(self._setting, shapes=self._declared if shapes is None else shapes)
        if theirs is model._general:
            return None
        with self._paused():
            program = sibling_of(theirs.program, model.built, self.built, setting)
            return None if program is None else Prepared(program, self._specializations(program, setting))

    def _found(self, shapes: Shapes, watched: bool) -> Prepared | None:
        """What is kept for inputs of these shapes, or for a pattern of theirs."""
        key: tuple[Pattern, bool] = shapes, watched
        if key not in self._kept:
            fitting = [(own, watched) for own, worth in self._patterns.items() if worth and fits(own, shapes)]
            key = next((own for own in fitting if own in self._kept), key)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def _keep(self, key: tuple[Shapes, bool], made: Prepared) -> Prepared:
        most = MAX_PATIENT
        if not self._patient:
            most = min(max(MAX_INSTRUCTIONS // max(len(made.program.instructions), 1), LEAST_KEPT), MAX_KEPT)
        with self._lock:
            gone = {self._kept.get(key)}
            self._kept[key] = made
            while len(self._kept) > most:
                gone.add(self._kept.popitem(last=False)[1])
            self._drop(gone)
        return made

    def _drop(self, gone: set[Prepared | None]) -> None:
        """Keep no frames of what is not kept any more."""
        for prepared in gone - {self._general, self._open, *self._kept.values()}:
            if prepared is not None:
                self._blocks.drop(prepared)

    def __del__(self) -> None:
        if hasattr(self, "_enclosed"):  # what a handler of a signal raises may come before
            gone = {*self._kept.values(), self._open, self._general}
            self._kept.clear()
            self._open = self._general = None
            self._drop(gone)

    def _made(self, pattern: Pattern, watched: bool) -> Prepared:
        return self._prepare(replace(self._setting, shapes=open_shapes(pattern), watched=watched))

    def _prepare(self, setting: Setting) -> Prepared:
        with suppress(ExecutionError), self._paused():
            if setting.watched or not setting.whole:
                program = prepare(self.general.program, replace(setting, anew=False))
            elif self._only is not None:
                program = prepare(self.built, setting)
            else:
                from irrun.run.templates import Templates  # which models of fixed sizes do without

                with self._lock:
                    templates = self._templates = self._templates or Templates(self.built)
                program = templates.prepare(setting)
            if program.peak <= setting.limit:
                return Prepared(program, self._specializations(program, setting))
        return self.general

    def _paused(self) -> AbstractContextManager[None]:
        """Without the garbage collector, for a program or a frame; those of other shapes make way for others soon."""
        return collector_paused(lasting=self._patient or len(self._kept) > 1)

    def _specializations(self, program: Program, setting: Setting) -> dict[int, Specialization | Enclosure]:
        if all(instruction.by != KERNEL for instruction in program.instructions):
            return {}
        read = program.read(made=setting.watched)
        found: dict[int, Specialization | Enclosure] = {}
        for position, instruction in enumerate(program.instructions):
            if instruction.enclosed is not None:
                found[position] = self._enclosure(instruction.enclosed)
            elif is_typed(program, instruction):
                made = Specialization(program, instruction, read, setting, self._kernels)
                if made.opened or is_unsized(program, instruction):
                    found[position] = made
        return found

    def _enclosure(self, program: Program) -> Enclosure:
        """What computes an enclosed program, the same as in other programs that are kept."""
        with self._lock:
            kept = [*self._kept.values()]
        for prepared in reversed(kept):  # one template made most of them, the latest above all
            for found in prepared.specializations.values():
                if isinstance(found, Enclosure) and found.enclosed is program:
                    return found
        own, setting = compact(program), replace(self._setting, iterated=False)
        kin = None if own is None else kin_of(own)
        model = None if kin is None else self._models.get(kin)
        made = Preparation(own or program, setting, self._kernels, patient=True, model=model, blocks=self._enclosed)
        if kin is not None and model is None:
            self._models[kin] = made
        return Enclosure(program, made)


def _fixed(program: Program) -> Shapes | None:
    """The shapes of inputs that can have no others."""
    tensors = [program.tensors[number] for number in program.parameters]
    if not all(tensor.static for tensor in tensors):
        return None
    return tuple(tuple(map(int, tensor.shape or ())) for tensor in tensors)


def _multiplies(program: Program) -> bool:
    """Whether any of its instructions adds up products."""
    return any(instruction.multiplies for instruction in program.instructions)


def _is_light(program: Program) -> bool:
    """Whether most instructions of a program of known sizes read so little that kernels compute them in less time than
    it takes to ask their rules again, and those of other sizes have to be asked for one by one."""
    if program.repeats_itself():
        return False
    steps = [instruction for instruction in program.instructions if instruction.by != VIEW]
    if any(own.bodies or (own.enclosed is not None and _multiplies(own.enclosed)) for own in steps):
        return False
    large = [own for own in steps if own.compiled is not None and not at_most_small(program, own)]
    return 2 * len(large) <= len(steps)


def _reads_weights_openly(program: Program) -> bool:
    """Whether an instruction that reads weights has sizes that only a run tells."""
    large = {number for number, array in program.constants.items() if array.nbytes > MAX_OPEN_WEIGHTS}
    weights = large.union(program.compressed)
    return any(is_unsized(program, own) and not weights.isdisjoint(own.operands) for own in program.instructions)
