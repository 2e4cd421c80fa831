"""Runs of ours beside the tensors of another side: what has come together, and what each layer does of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase

import numpy as np

from irrun.diagnostics import ExecutionError
from irrun.ir.graph import Model, Value
from irrun.ir.signature import names_of_results
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.run.results import Results
from irrun.run.session import Event, Observer
from irrun.spec.dtypes import element_type, is_exact, is_number
from irrun.spec.op import Array
from irrun.spec.traits import Converting, Reading
from irrun.tools.compare.glances import glance
from irrun.tools.compare.results import Measured, Where
from irrun.tools.compare.sides.contract import Observation, Runtime
from irrun.tools.compare.steps import DIGITS, is_of
from irrun.tools.compare.stretches import Stretch, Stretches, stretch
from irrun.tools.compare.tolerances import EXACT, INTEGERS, Tolerance, grid_step, named, of_outputs, on_grid, own, terms

Given = Sequence[tuple[str | None, Tolerance]]
"""Tolerances that somebody asks for, by the name of what they are for; None is for all outputs."""

ANYTHING = Tolerance(math.inf)
"""Of what has come together on the way: it is told, not judged."""

MAX_REPLAYS = 9
"""Runs that are tried where tensors of the other side do not fit together."""

Told = Callable[[Event, Array, Measured, Stretch], object]
"""Is told of a tensor that our kernel has made, of the other side's one, how far that is off, and what lies before its
layer of which the other side has shown nothing."""


@dataclass(frozen=True, slots=True)
class Course:
    """Runs that follow one another from a fresh state on, by the `name` of their inputs."""

    name: str
    steps: Sequence[Mapping[str, Array]]


@dataclass(slots=True)
class Beside:
    """A model of ours beside another side, whose `runtime` says how it computes each layer, and in which `precision`
    where it does not say. `converted` says that its tensors are those of another model, to which tools have given the
    names of ours, `alike` that it computes them by our own kernels.
    """

    executor: GraphExecutor
    runtime: Mapping[str, Runtime]
    precision: str | None = None
    tolerances: Given = ()
    converted: bool = False
    alike: bool = False
    least: str = field(init=False)
    """The least precise type that the other side computes any layer in."""
    grids: tuple[str, ...] = field(init=False)
    """"i8" where the model has codes of 8 bits, which rounding may tip: the least precise of what outputs come from,
    with `least`."""
    outputs: dict[Value, tuple[str, ...]] = field(init=False)
    """The names of the outputs that a tensor is."""
    unfit: dict[str, str] = field(init=False, default_factory=dict)
    """The tensors that could not be computed of the other side's, and why."""

    def __post_init__(self) -> None:
        known = [entry.precision for entry in self.runtime.values() if entry.precision is not None]
        known += [self.precision] if self.precision is not None else []
        self.least = max((name for name in known if name in DIGITS), key=DIGITS.__getitem__, default="f32")
        inference = self.executor.report.inference
        tipping = not (self.alike and self.least == "f32")
        self.grids = ("i8",) if tipping and inference is not None and on_grid(inference) else ()
        graph, self.outputs = self.executor.model.graph, {}
        for layer, names in zip(graph.results, names_of_results(graph), strict=True):
            for source in layer.inputs:
                if source is not None:
                    self.outputs[source] = (*self.outputs.get(source, ()), *names)

    def computed_in(self, event: Event, other: Array) -> str:
        """What the other side has computed a tensor in: as it says, or holds it in if that is less precise, or in the
        least precise type that it computes in where all of its numbers are of that, as constants are that are moved.

        Of a layer with bodies it tells nothing, as what it says is of the number of iterations, and neither of one that
        reads a variable: that is held as whatever wrote it and whatever reads it like it. Nor does it where floats come
        of a layer that it says to compute in whole numbers, as of conditions that it computes together with a Select.
        """
        untold = event.path or event.layer.bodies or _reads_a_variable(event)
        entry = None if untold else self.runtime.get(event.layer.name)
        held = element_type(other.dtype)
        precision = None if entry is None else entry.precision
        if precision is None or (held in DIGITS and precision not in DIGITS and precision not in INTEGERS):
            precision = self.precision or self.least
        if precision not in DIGITS or held not in DIGITS:
            return precision
        if DIGITS[held] > DIGITS[precision]:
            return held
        return self.least if DIGITS[self.least] > DIGITS[precision] and is_of(other, self.least) else precision

    def allowed(self, event: Event, precision: str) -> Tolerance:
        """How far what a layer makes in `precision` may be from what the kernel of its op makes of the same inputs."""
        return self._asked(event) or self._own(event, self._shown(event, precision))

    def _shown(self, event: Event, precision: str) -> str:
        """The precision of a layer, or of what it converts if that is less: a tensor is shown in the type that the
        model declares, where a device that computes in a wider one reads digits that nobody sees."""
        inference, source = self.executor.report.inference, next(iter(event.layer.inputs), None)
        if inference is None or source is None or event.calculation.op.trait(Converting) is None:
            return precision
        read = inference.tensor(source).type
        return read if DIGITS.get(read, 0.0) > DIGITS.get(precision, math.inf) else precision

    def allowed_behind(self, event: Event, other: Array) -> Tolerance:
        """How far a tensor may be that comes of several layers of which nobody knows what each has made: as an output
        may, which it perhaps is, by the least precise type on the way."""
        outputs = () if event.path else self.outputs.get(event.layer.outputs[event.port], ())
        asked = self._asked(event) or (named(self.tolerances, *outputs) if outputs else None)
        held = [element_type(array.dtype) for array in (other, event.array)]
        return asked or of_outputs([self.least, *held, *self.grids])

    def judged(self, event: Event, other: Array, where: Where, *, rounds: bool) -> Measured:
        """How far a tensor is off; where what its layer has read is not known but for what `rounds`, it may be as far
        off as an output may."""
        precision = self.computed_in(event, other)
        allowed = self.allowed_behind(event, other) if rounds else self.allowed(event, precision)
        tolerance = allowed.applied(exact=is_exact(other) and is_exact(event.array))
        return Measured(where, glance(other, event.array, tolerance, precision), tolerance)

    def _asked(self, event: Event) -> Tolerance | None:
        return named([entry for entry in self.tolerances if entry[0] is not None], event.layer.name, event.name)

    def _own(self, event: Event, precision: str) -> Tolerance:
        calculation = event.calculation
        op, attributes, inputs = calculation.op, calculation.attributes, calculation.inputs
        shapes = [None if array is None else array.shape for array in inputs]
        count = terms(op, attributes, shapes, event.array.shape)
        if _reads_a_variable(event):
            count = max(count, 1.0)  # what was written there is computed, and nobody sees it before it is read
        return own(precision, count, grid_step(op, attributes, inputs))

    def standing(self, other: Array | None, ours: Array) -> Array | None:
        """The other side's tensor as it stands in our model: in f32 where it is in f64, as what is computed of it here.

        Converters pass the name of a tensor on when they put an Unsqueeze or a Squeeze behind it into its layer: what
        differs in axes of one element only is the same tensor. What reads it tells whether they matter.
        """
        if other is None:
            return None
        if (other.dtype, ours.dtype) == (np.float64, np.float32):
            with np.errstate(over="ignore"):
                other = other.astype(np.float32)
        if not self.converted or other.shape == ours.shape:
            return other
        sizes, expected = ([size for size in array.shape if size != 1] for array in (other, ours))
        return other.reshape(ours.shape) if sizes == expected else other

    def run(self, course: Course, observer: Callable[[int], Observer | None]) -> list[Results]:
        """Our results of each step; each has an observer of its own."""
        session = self.executor.session()
        return [session.run(inputs, observer=observer(step)) for step, inputs in enumerate(course.steps)]

    def accumulated(
        self, course: Course, observed: Sequence[Observation]
    ) -> tuple[list[Results], list[dict[str, Measured]]]:
        """Our results of each step, and how far the other side's tensors have come from ours."""
        found: list[dict[str, Measured]] = [{} for _ in course.steps]

        def observer(step: int) -> Observer | None:
            if not observed:
                return None
            theirs, where, kept = observed[step].tensors, Where(course.name, step), found[step]

            def measured(event: Event) -> None:
                other = self.standing(theirs.get(event.name), event.array)
                if other is not None:
                    kept[event.name] = Measured(where, glance(other, event.array, ANYTHING), ANYTHING)

            return measured

        return self.run(course, observer), found

    def replay(self, course: Course, observed: Sequence[Observation], told: Told) -> None:
        """Run with the other side's tensors in the place of ours, so that each layer reads what it has read there, as
        far as that is known.

        They are of several runs, in which devices fuse other layers and so round otherwise: of two tensors that hold as
        many boxes in each run, one may have more here. Where a layer cannot be computed of such, all that comes before
        it is ours in another run, and `unfit` says so.
        """
        passed = set[tuple[int, str]]()
        for left in reversed(range(MAX_REPLAYS)):
            before = len(passed)
            try:
                self._replay(course, observed, told, passed)
                return
            except ExecutionError as error:
                if len(passed) == before or not left:  # nothing of the other side's is in what fails, or all too much
                    raise
                for diagnostic in error.diagnostics[:1]:
                    name = "a layer" if diagnostic.layer is None else f"{diagnostic.layer.name}:0"
                    self.unfit[name] = f"the other side's tensors there are of runs that differ: {diagnostic.message}"

    def _replay(
        self, course: Course, observed: Sequence[Observation], told: Told, passed: set[tuple[int, str]]
    ) -> None:
        """The same in one run, in which the tensors that were `passed` before, by step and name, are ours, and not told
        again; those that come are added. Raises ExecutionError."""
        stretches = Stretches(lambda event: self._own(event, self.computed_in(event, event.array)) == EXACT)
        held = frozenset(passed)

        def observer(step: int) -> Observer:
            theirs, where = observed[step].tensors, Where(course.name, step)
            stretches.begin()

            def replaced(event: Event) -> Array | None:
                passed.add((step, event.name))
                known = None if (step, event.name) in held else theirs.get(event.name)
                other = self.standing(known, event.array)
                placed = None if other is None else fitting(other, event.array)
                read = stretches.read(event)
                if other is not None:
                    before = stretch(read)
                    told(event, other, self.judged(event, other, where, rounds=before.rounds), before)
                stretches.add(event, read, known=placed is not None)
                return placed

            return replaced

        self.run(course, observer)


def _reads_a_variable(event: Event) -> bool:
    return event.calculation.op.trait(Reading) is not None


def names_in(model: Model) -> set[str]:
    """The names that tolerances may be for: of outputs, layers and tensors."""
    names = {name for listed in names_of_results(model.graph) for name in listed}
    for layer in model.graph.walk():
        names.add(layer.name)
        names.update(f"{layer.name}:{value.index}" for value in layer.outputs)
    return names


def refuse_unknown(names: Collection[str], tolerances: Given, where: str) -> None:
    """Raises ValueError for a tolerance that is for none of `names`."""
    for pattern, _ in tolerances:
        if pattern is not None and pattern not in names and not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"a tolerance is for `{pattern}`, but {where} has no such output or layer")


def fitting(other: Array, ours: Array) -> Array | None:
    """The other side's array in the type of ours, None where it cannot take its place."""
    if other.shape != ours.shape or is_number(other) != is_number(ours):
        return None
    with np.errstate(all="ignore"):
        return other.astype(ours.dtype)
