"""The flow of a comparison: outputs first, then tensors on the way, each layer's own error, and why it is there.

What people are told to do by hand is done here in turn: the other side against itself, at its own precision and at full
precision, with somebody looking and without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Layer, Model, leading_to
from irrun.ir.signature import names_of, names_of_results
from irrun.ir.sources import Source
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.run.inputs import Inputs
from irrun.run.keys import key
from irrun.run.results import Results
from irrun.run.session import Event
from irrun.spec.dtypes import element_type
from irrun.spec.op import Array
from irrun.spec.traits import Reading
from irrun.tools.compare import findings
from irrun.tools.compare.causes.case import Cause
from irrun.tools.compare.causes.decision import decide
from irrun.tools.compare.causes.ties import TIE
from irrun.tools.compare.locating import first_wrong
from irrun.tools.compare.metrics import measure
from irrun.tools.compare.observed import Context, Observed
from irrun.tools.compare.passes import Transforming, trace
from irrun.tools.compare.reasons import folded, of_fused, reasons
from irrun.tools.compare.replay import Beside, Course, Given, names_in, refuse_unknown
from irrun.tools.compare.results import Cache, Comparison, Measured, OutputResult, TensorResult, Where
from irrun.tools.compare.sides.contract import (
    Alike,
    Caching,
    Naming,
    Observation,
    Options,
    Side,
    SideFailed,
    Stepwise,
    may_vary,
)
from irrun.tools.compare.sides.failures import known
from irrun.tools.compare.sides.opening import open_side
from irrun.tools.compare.steps import DIGITS
from irrun.tools.compare.stretches import NOTHING, Stretch
from irrun.tools.compare.together import Apart, Place, of_several_runs, together
from irrun.tools.compare.tolerances import EXACT, LEVELS, Tolerance, named, of_outputs, of_whole_numbers, parse
from irrun.tools.watch.origin import structure

MAX_REASONS = 10
"""Layers that are off in a run of which causes are looked for, the first ones."""

Tell = Callable[[str], object]
"""Is told what is being done."""


def compare(
    model: Model | Source,
    other: str | Side,
    inputs: Inputs | Sequence[Mapping[str, Array]],
    weights: Source | None = None,
    *,
    consecutive: bool = False,
    tolerances: Sequence[str] | Given = (),
    options: Options | None = None,
    outputs_only: bool = False,
    passes: bool = False,
    max_memory: int | None = None,
) -> Comparison:
    """A model beside another side: which layer is wrong first, since when, and why.

    `other` is "ov:CPU" or another device of OpenVINO, the path of an IR, of an ONNX model, of a dump or of outputs of
    another tool, "engine:numpy" and the like, or "precision:f16" and the like (see `irrun.tools.compare.sides`).
    `inputs` are those of a run, as `GraphExecutor.run` takes them, or a list of mappings, for a run each: of one
    session where they are `consecutive`, as prefill and decoding are, else each from a fresh state on.
    With `outputs_only` no tensors on the way are looked at; with `passes` the graph after each transformation of
    OpenVINO is run, on the first inputs, to find the one that changes values.
    `tolerances` are texts as `irrun compare --tol` takes them, such as "f32" or "logits:1e-3,1e-2", or pairs of a name,
    or None for all outputs, and a `Tolerance`.

    Raises IRError where the model cannot be run, InputError where inputs do not fit, ExecutionError where they break a
    constraint of a layer, ValueError where there is no such side, or tolerances are none, EngineError where it is not
    installed, SideFailed where it fails, OSError where the temporary folder cannot be written.

    >>> import irrun
    >>> executor = irrun.GraphExecutor("samples/cnn/model.xml")
    >>> found = irrun.compare("samples/cnn/model.xml", "engine:numpy", executor.random_inputs(7))
    >>> found.agrees, found.first, [output.name for output in found.outputs]
    (True, None, ['probabilities'])
    """
    asked = [parse(given) if isinstance(given, str) else given for given in tolerances]
    executor = reference(model, weights, max_memory)
    several = not isinstance(inputs, Mapping) and all(isinstance(given, Mapping) for given in inputs)
    steps = [executor.named(given) for given in inputs] if several else [executor.named(inputs)]
    if consecutive or len(steps) == 1:
        courses = [Course("inputs", steps)]
    else:
        courses = [Course(f"inputs {number}", [given]) for number, given in enumerate(steps)]
    if not isinstance(other, str):
        return compared(executor, other, courses, asked, outputs_only=outputs_only, passes=passes)
    with closing(open_side(other, executor.model, options)) as side:
        return compared(executor, side, courses, asked, outputs_only=outputs_only, passes=passes)


def reference(model: Model | Source, weights: Source | None = None, max_memory: int | None = None) -> GraphExecutor:
    """What is right: the kernels of the ops one by one, on f32 where the model declares f16 or bf16."""
    return GraphExecutor(model, weights, engine="reference", precision="auto", max_memory=max_memory)


def compared(
    executor: GraphExecutor,
    side: Side,
    courses: Sequence[Course],
    tolerances: Given = (),
    *,
    outputs_only: bool = False,
    passes: bool = False,
    tell: Tell = lambda _: None,
) -> Comparison:
    """As `compare`, of what is open already. `tell` is told what is being done."""
    refuse_unknown(names_in(executor.model), tolerances, "the model")
    flow, begin = _Flow(executor, side, tolerances, tell), 0
    try:
        for course in courses:
            flow.run(course, outputs_only, begin)
            begin += len(course.steps)
        if passes:
            flow.trace(courses[0])
    except SideFailed as error:
        inference = executor.report.inference
        raise (error if inference is None else error.knowing(known(error, inference))) from None
    return flow.comparison()


@dataclass(slots=True)
class _Seen:
    """A tensor or an output in several runs: the worst one, and how many there were."""

    worst: Measured
    runs: int = 0
    differing: int = 0
    precise: Measured | None = None
    cache: Cache | None = None
    accumulated: Measured | None = None
    event: tuple[Layer, int] | None = None
    cause: Cause | None = None
    before: Stretch = NOTHING

    def add(self, measured: Measured) -> bool:
        """Count a run; whether it is the worst so far."""
        self.runs += 1
        self.differing += not measured.holds
        if self.runs > 1 and measured.rank <= self.worst.rank:
            return False
        self.worst = measured
        return True


class _Flow:
    """One model beside one other side, and what is found of them run by run."""

    def __init__(self, executor: GraphExecutor, side: Side, tolerances: Given, tell: Tell) -> None:
        self._executor, self._side, self._tolerances, self._tell = executor, side, tolerances, tell
        self._beside = Beside(executor, {})
        self._quantized = bool(self._beside.grids)
        inference, graph = executor.report.inference, executor.model.graph
        self._exact = frozenset[str]() if inference is None else of_whole_numbers(inference, graph)
        self._outputs: dict[str, _Seen] = {}
        self._tensors: dict[str, _Seen] = {}
        self._notes: list[Diagnostic] = []
        self._watching: float | None = None
        self._runs = 0
        self._looked: Side = side
        self._cache: tuple[str, str] | None = None

    def run(self, course: Course, outputs_only: bool, begin: int) -> None:
        """Compare a course, which begins at this step of what was recorded."""
        side = self._side
        self._runs += len(course.steps)
        if isinstance(side, Stepwise):
            side = side.part(begin, len(course.steps))
        self._tell(f"{side.name} runs on {course.name}")
        try:
            theirs = side.outputs(course.steps)
        except SideFailed as error:
            if error.phase == "run":
                self._beside.run(course, lambda _: None)  # raises where the inputs are at fault
            raise
        converted = side.kind in ("model", "recorded")
        alike = self._quantized and isinstance(side, Alike) and side.rounds_alike
        given = side.runtime(), side.precision, self._tolerances, converted, alike
        beside = self._beside = Beside(self._executor, *given)
        self._repeated(course, theirs)
        looked = self._looked = self._uncompressed(side)
        observed: Sequence[Observation] = []
        if not outputs_only:
            self._tell(f"{looked.name} shows its tensors on {course.name}")
            observed = looked.observe(course.steps)
            self._fed(course, observed)
        self._tell(f"irrun runs on {course.name}")
        results, accumulated = beside.accumulated(course, observed)
        failing = self._judged(course, theirs, results)
        if failing and looked is not side and self._cache is not None:
            self._tell(f"{looked.name} runs on {course.name}")
            theirs = looked.outputs(course.steps)
            self._kept(course, theirs, results, self._cache)
        if not observed:
            return
        cured, caused = self._watched(theirs, observed, results)
        self._tell(f"irrun replays {course.name} layer by layer")
        self._replayed(course, observed, accumulated, failing, caused)
        if failing and cured is not None and not self._rounded():
            self._tell(f"{looked.name} runs models that end earlier")
            self._located(course, cured, observed[cured])
        if failing and side.kind == "device" and not any(seen.differing for seen in self._tensors.values()):
            self._folded()

    def comparison(self) -> Comparison:
        graph, path = self._executor.model.graph, self._executor.model.path
        outputs = [
            OutputResult(name, layer.label, layer.span, seen.worst, seen.runs, seen.differing, seen.precise, seen.cache)
            for layer, (name, *_) in zip(graph.results, names_of_results(graph), strict=True)
            if (seen := self._outputs.get(name)) is not None
        ]
        tensors = [self._tensor(key, order, seen) for order, (key, seen) in enumerate(self._tensors.items())]
        causes = {key: seen.cause for key, seen in self._tensors.items() if seen.cause is not None}
        told = [*self._notes, *findings.of_layers(path, self._side.name, tensors, causes)]
        failing = any(not result.agrees for result in tensors)
        tied = any(cause.code == TIE for cause in causes.values())
        told += findings.of_outputs(path, self._side.name, outputs, self._watching, failing=failing, tied=tied)
        unknown = sorted(self._side.unknown) if isinstance(self._side, Naming) else []
        told += findings.of_missing(self._executor.model, self._side.name, outputs, self._runs, unknown)
        untapped = {**self._side.untapped, **self._looked.untapped, **self._beside.unfit}
        setting = None if self._cache is None else self._cache[1]
        digest = structure(self._executor.model)
        watching = self._watching
        return Comparison(path, self._side.name, outputs, tensors, told, watching, untapped, unknown, setting, digest)

    def _tensor(self, key: str, order: int, seen: _Seen) -> TensorResult:
        assert seen.event is not None
        layer, port = seen.event
        entry = self._beside.runtime.get(layer.name)
        explained = seen.cause is not None and seen.cause.explained
        at = layer if seen.cause is None or seen.cause.at is None else seen.cause.at
        return TensorResult(
            key,
            order,
            at.label,
            at.span,
            port,
            seen.worst,
            seen.accumulated,
            seen.runs,
            0 if explained else seen.differing,
            None if entry is None else entry.precision,
            None if entry is None else entry.primitive,
            () if entry is None else entry.fused,
            None if seen.cause is None else seen.cause.code,
            tuple(layer.name for layer in seen.before.layers),
            next(iter(self._beside.outputs.get(layer.outputs[port], ())), None) if seen.before.rounds else None,
        )

    def trace(self, course: Course) -> None:
        """Find the transformation of OpenVINO that changes values. Raises ValueError for another side."""
        if not isinstance(self._side, Transforming):
            raise ValueError(f"{self._side.name} has no transformations to look at: they are those of OpenVINO")
        self._tell(f"{self._side.name} writes the graph after each transformation")
        found = trace(self._executor.model, self._side.passes(), course, self._tell)
        self._notes.append(findings.of_passes(self._executor.model, found))

    # Outputs

    def _allowed(self, name: str, *arrays: Array) -> Tolerance:
        """How far an output may be off: as is settled, or by the least precise type on the way and that either side
        has it in."""
        held = [element_type(array.dtype) for array in arrays]
        return self._settled(name) or of_outputs([self._beside.least, *held, *self._beside.grids])

    def _settled(self, name: str) -> Tolerance | None:
        """How far an output may be off in any precision: as somebody says; what is computed of integers alone is
        exact."""
        return named(self._tolerances, name) or (EXACT if name in self._exact else None)

    def _judged(self, course: Course, theirs: Sequence[Mapping[str, Array]], results: Sequence[Results]) -> bool:
        """Take down how far outputs are off; whether any is too far."""
        coarse: list[tuple[int, str]] = []
        failing = False
        for step, (other, ours) in enumerate(zip(theirs, results, strict=True)):
            for name, array in other.items():
                if name not in ours:
                    continue
                tolerance = self._allowed(name, array, ours[name])
                measured = Measured(Where(course.name, step), measure(array, ours[name], tolerance), tolerance)
                self._outputs.setdefault(name, _Seen(measured)).add(measured)
                if not measured.holds or not measured.metrics.would_be_within(LEVELS["f32"]):
                    coarse.append((step, name))
                failing |= not measured.holds
        if coarse:
            self._precisely(course, results, coarse)
        return failing

    def _precisely(self, course: Course, results: Sequence[Results], differing: Sequence[tuple[int, str]]) -> None:
        """Have the other side at full precision, too, where it has another one."""
        precise = self._side.precise()
        if precise is None:
            return
        self._tell(f"{precise.name} runs on {course.name}")
        theirs = precise.outputs(course.steps)
        for step, name in differing:
            seen = self._outputs[name]
            if name not in theirs[step] or seen.worst.where != Where(course.name, step):
                continue
            grids = self._beside.grids
            tolerance = self._settled(name) or (of_outputs(grids) if grids else LEVELS["f32"])
            seen.precise = Measured(
                seen.worst.where, measure(theirs[step][name], results[step][name], tolerance), tolerance
            )

    def _uncompressed(self, side: Side) -> Side:
        """The side that is looked at: one that keeps what attention has seen in fewer bits than it computes in does so
        in no tensor that can be watched, so layers behind it would be blamed. It keeps that in f32 then."""
        inference = self._executor.report.inference
        nodes = () if inference is None else inference.nodes.values()
        if not isinstance(side, Caching) or not any(node.op.trait(Reading) is not None for node in nodes):
            return side
        self._cache = side.cached_in()
        return side if self._cache is None else side.uncompressed()

    def _kept(
        self,
        course: Course,
        theirs: Sequence[Mapping[str, Array]],
        results: Sequence[Results],
        cache: tuple[str, str],
    ) -> None:
        """Take down how far outputs that are off are so where what attention has seen is kept in f32."""
        for name, seen in self._outputs.items():
            where, tolerance = seen.worst.where, seen.worst.tolerance
            if not seen.worst.holds and where.inputs == course.name:
                metrics = measure(theirs[where.step][name], results[where.step][name], tolerance)
                seen.cache = Cache(*cache, Measured(where, metrics, tolerance))

    def _rounded(self) -> bool:
        """Whether all outputs that are off are right at full precision: then rounding has added up."""
        off = [seen for seen in self._outputs.values() if seen.differing]
        return all(seen.precise is not None and seen.precise.holds for seen in off)

    def _repeated(self, course: Course, theirs: Sequence[Mapping[str, Array]]) -> None:
        """Run the other side a second time, where it might give something else."""
        if not may_vary(self._side):
            return
        again = self._side.outputs(course.steps)
        for step, (first, second) in enumerate(zip(theirs, again, strict=True)):
            for name, array in first.items():
                tolerance = self._allowed(name, array)
                metrics = measure(second[name], array, tolerance)
                if not metrics.equal:
                    measured = Measured(Where(course.name, step), metrics, tolerance)
                    self._notes.append(findings.unsteady(self._executor.model, self._side.name, name, measured))

    # Tensors on the way

    def _fed(self, course: Course, observed: Sequence[Observation]) -> None:
        """What the model is given, where the other side says what it was given."""
        for layer in self._executor.model.graph.parameters:
            for step, observation in enumerate(observed):
                other = observation.tensors.get(key(layer, 0, ()))
                given = next((course.steps[step][name] for name in names_of(layer) if name in course.steps[step]), None)
                if other is None or given is None:
                    continue
                metrics = measure(other, given)
                if not metrics.equal and not metrics.within(LEVELS["exact"]):
                    seen = Observed(None, layer, 0, other, given, given, source="input")
                    where = Where(course.name, step)
                    self._notes.append(findings.of_input(self._executor.model, layer, where, decide(seen, Context())))

    def _watched(
        self, theirs: Sequence[Mapping[str, Array]], observed: Sequence[Observation], results: Sequence[Results]
    ) -> tuple[int | None, bool]:
        """Whether outputs change because somebody looks: the first step in which they are right only then, and whether
        there is one in which they are wrong only then."""
        cured, caused = None, False
        for step, observation in enumerate(observed):
            for name, array in theirs[step].items():
                ours = results[step].get(name)
                if ours is None:
                    continue
                tolerance = self._allowed(name, array, ours)
                for run in (observation.outputs, *observation.repeats):
                    if name not in run:
                        continue
                    changed = measure(run[name], array)
                    if changed.equal:
                        continue
                    self._watching = max(self._watching or 0.0, changed.nmax)
                    right, seen = (measure(found, ours, tolerance).within(tolerance) for found in (array, run[name]))
                    if seen and not right and cured is None:
                        cured = step
                    caused |= right and not seen
        return cured, caused

    def _replayed(
        self,
        course: Course,
        observed: Sequence[Observation],
        accumulated: Sequence[Mapping[str, Measured]],
        failing: bool,
        caused: bool,
    ) -> None:
        """Take down the own error of every layer, and why the first ones are off; where outputs are `failing` also
        which choices rounding has tipped, in layers that are right."""
        wrong: dict[str, int] = {}
        tipped: dict[str, int] = {}
        apart: dict[Place, Apart] = {}

        def taken(key: str, measured: Measured, before: Stretch) -> None:
            seen, step = self._tensors[key], measured.where.step
            if seen.add(measured):
                seen.accumulated = accumulated[step].get(key)
                seen.before = before
            if not measured.holds and key not in wrong and seen.cause is None:
                wrong[key] = step

        def told(event: Event, other: Array, measured: Measured, before: Stretch) -> None:
            if _unread(event):
                return
            key, where = event.name, measured.where
            self._tensors.setdefault(key, _Seen(measured)).event = (event.layer, event.port)
            shown = frozenset() if measured.holds else of_several_runs(event, before, observed[where.step])
            if shown:
                behind = self._beside.judged(event, other, where, rounds=True)
                apart[key, where.step] = Apart(shown, behind, before)
                return
            taken(key, measured, before)
            if failing and measured.holds and key not in tipped and self._tips(event, accumulated[where.step]):
                tipped[key] = where.step

        self._beside.replay(course, observed, told)
        if apart:
            self._tell(f"{self._looked.name} shows tensors of {course.name} together")
        joint = together(self._beside, self._looked, course, apart)
        for place, each in apart.items():
            taken(place[0], joint.measured.get(place, each.measured), each.before)
        first = {key: wrong[key] for key in self._tensors if key in wrong}
        first = dict(list(first.items())[:MAX_REASONS])
        right = dict([(key, step) for key, step in tipped.items() if key not in wrong][:MAX_REASONS])
        if not first and not right:
            return
        self._tell("why layers are off")
        in_one = {key: step for key, step in first.items() if (key, step) in joint.measured}
        left = {key: step for key, step in (first | right).items() if key not in in_one}
        found = reasons(self._beside, self._looked, course, observed, left, caused)
        found |= reasons(self._beside, self._looked, course, joint.observed, in_one, caused, joint.keys)
        for name, cause in found.items():
            if name in first or cause.code == TIE:
                self._tensors[name].cause = self._asked(name, cause)

    def _asked(self, name: str, cause: Cause) -> Cause:
        """The cause of a tensor; what explains it is none where somebody asks for less than that."""
        seen = self._tensors[name]
        assert seen.event is not None
        asked = [entry for entry in self._tolerances if entry[0] is not None]
        if not cause.explained or seen.worst.holds or named(asked, seen.event[0].name, name) is None:
            return cause
        notes = (f"otherwise it would be explained: {cause.sentence}", *cause.evidence)
        return Cause("N221", f"more than --tol allows, {seen.worst.tolerance}", notes, cause.help)

    def _tips(self, event: Event, accumulated: Mapping[str, Measured]) -> bool:
        """Whether a tensor has come further from ours than an output may, and nothing that its layer reads has."""
        read = [key(value.layer, value.index, event.path) for value in event.layer.inputs if value is not None]
        return not self._near(accumulated.get(event.name)) and all(self._near(accumulated.get(name)) for name in read)

    def _near(self, measured: Measured | None) -> bool:
        """Whether what has come together on the way to a tensor is no more than outputs may be off; so is nothing."""
        if measured is None:
            return True
        floats = measured.metrics.expected_type in DIGITS
        allowed = of_outputs([self._beside.least, *self._beside.grids]) if floats else EXACT
        return measured.metrics.would_be_within(allowed)

    def _folded(self) -> None:
        """What is known of layers that outputs come from and no tensor shows, as they are computed of constants."""
        graph = self._executor.model.graph
        off = {
            layer
            for layer, (name, *_) in zip(graph.results, names_of_results(graph), strict=True)
            if name in self._outputs and self._outputs[name].differing
        }
        for layer, does, because in folded(self._beside, self._side, leading_to(off)):
            path = self._executor.model.path
            self._notes.append(findings.of_folded(path, self._side.name, layer, does, because))

    def _located(self, course: Course, step: int, observation: Observation) -> None:
        """The first layer at which a model that ends there is wrong."""
        keys = [key for key in self._tensors if key in observation.tensors]
        found = first_wrong(self._beside, self._looked, course, step, keys)
        if found is None:
            return
        key, array, measured = found
        seen = self._tensors[key]
        assert seen.event is not None
        layer, port = seen.event
        tapped = observation.tensors[key]
        looked = Observed(None, layer, port, array, tapped, tapped, precision=self._beside.least)
        cause = decide(looked, Context(tapped=tapped))
        seen.cause = replace(cause, evidence=(*cause.evidence, *of_fused(self._beside, self._side, layer)))
        seen.worst, seen.differing = replace(measured, where=Where(course.name, step)), 1


def _unread(event: Event) -> bool:
    """Whether a tensor is one of several that its layer makes and nothing reads it: what it is means nothing then."""
    outputs = event.layer.outputs
    return len(outputs) > 1 and not outputs[event.port].consumers
