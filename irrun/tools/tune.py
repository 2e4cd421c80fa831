"""The fewest layers to mark `precise`, so that a device in 16 bits gives outputs that are good enough.

What is right is our own run; whether a set of marks is enough, and is heeded, the device says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, runtime_checkable

from irrun.files import temporary
from irrun.ir.graph import Layer, Model
from irrun.ir.reader import read
from irrun.ir.text_edits import mark_precise
from irrun.ir.writer import model_text
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.run.keys import placed
from irrun.run.session import Event
from irrun.spec.op import FLOAT, Array
from irrun.tools.compare.metrics import measure
from irrun.tools.compare.replay import Beside, Course, Given
from irrun.tools.compare.results import Measured, Where
from irrun.tools.compare.sides.contract import Runtime, Side
from irrun.tools.compare.steps import DIGITS
from irrun.tools.compare.stretches import Stretch
from irrun.tools.compare.tolerances import LEVELS, named

MAX_CHECKS = 30
"""Sets of marks that are tried on the device, unless somebody wants more."""


@runtime_checkable
class Marking(Side, Protocol):
    """A side that can compute another file of the same model."""

    def marked(self, path: Path) -> Side: ...


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was found: `marks` are the layers, by name, and `content` is the text of the model with them.

    That of a model that was changed in memory goes with the .bin that `write_model` writes.

    `before` and `after` are the outputs without and with the marks, the worst one of all runs. `candidates` layers are
    computed in fewer bits than f32, `heeded` of the marked ones no longer; of `untold` ones, in bodies, the device does
    not say. `checks` sets of marks were tried.
    """

    marks: tuple[str, ...]
    content: bytes
    before: Measured
    after: Measured
    candidates: int
    heeded: int
    checks: int
    untold: int = 0

    @property
    def passes(self) -> bool:
        return self.after.holds


def tune(
    executor: GraphExecutor,
    side: Marking,
    courses: Sequence[Course],
    tolerances: Given,
    most: int = MAX_CHECKS,
    tell: Callable[[str], object] = lambda _: None,
) -> Tuned:
    """Find the fewest layers to mark so that all outputs are within their tolerances on the device.

    Layers are marked in the order of what they add of their own, twice as many until that is enough; then as many as
    can be are left out again, half of them at a time. Where all marks together are not enough, they are what is given.
    """
    tell(f"{side.name} shows its tensors")
    search = _Search(executor, side, courses, tolerances, most, tell)
    return search.run()


@dataclass(slots=True)
class _Search:
    executor: GraphExecutor
    side: Marking
    courses: Sequence[Course]
    tolerances: Given
    most: int
    tell: Callable[[str], object]
    checks: int = 0
    _expected: list[list[Mapping[str, Array]]] = field(default_factory=list)
    _seen: dict[frozenset[Layer], Measured] = field(default_factory=dict)
    _text: bytes = b""
    _twins: dict[Layer, Layer] = field(default_factory=dict)

    def run(self) -> Tuned:
        self._text, self._twins = _written(self.executor.model)
        beside = Beside(self.executor, self.side.runtime(), self.side.precision)
        for course in self.courses:
            self._expected.append(list(beside.run(course, lambda _: None)))
        with TemporaryDirectory(prefix="irrun-") as folder:
            before = self._outputs(self.side)
            candidates = [] if before.holds else self._candidates(beside)
            marks = self._grown(candidates, Path(folder)) if candidates else []
            if marks and self._passes(marks, Path(folder)):
                marks = self._shrunk(marks, Path(folder))
            after = self._check(marks, Path(folder)) if marks else before
            heeded = self._heeded(marks, Path(folder)) if marks else 0
        content = self._marked(marks)
        untold = sum(layer.graph.owner is not None for layer in marks)
        names = tuple(placed(layer) if layer.graph.owner else layer.name for layer in marks)
        return Tuned(names, content, before, after, len(candidates), heeded, self.checks, untold)

    def _candidates(self, beside: Beside) -> list[Layer]:
        """The layers that are computed in fewer bits than f32, those first that add most of their own. Those of bodies,
        of which the device shows nothing, stand where the layer stands that has the body."""
        errors: dict[Layer, float] = {}
        counts = Counter(layer.name for layer in self.executor.model.graph.layers)
        inside = _coarse(self.side.precision)

        def told(event: Event, _: Array, measured: Measured, __: Stretch) -> None:
            if event.path or event.layer.graph.owner is not None or counts[event.layer.name] > 1:
                return
            layers = self._in_bodies(event.layer) if inside and event.layer.bodies else []
            entry = beside.runtime.get(event.layer.name)
            if not event.layer.bodies and entry is not None and _coarse(_computed_in(entry)):
                layers = [event.layer]
            for layer in layers:
                errors[layer] = max(errors.get(layer, 0.0), measured.metrics.nrmse)

        for course in self.courses:
            beside.replay(course, self.side.observe(course.steps), told)
        return sorted(errors, key=errors.__getitem__, reverse=True)

    def _in_bodies(self, owner: Layer) -> list[Layer]:
        """The layers in bodies that compute floats."""
        inference = self.executor.report.inference
        layers = [layer for body in owner.bodies.values() for layer in body.graph.walk() if layer.inputs]
        return [
            layer
            for layer in layers
            if inference is None or any(inference.tensor(value).type in FLOAT for value in layer.outputs)
        ]

    def _grown(self, candidates: Sequence[Layer], folder: Path) -> list[Layer]:
        """So many of the first candidates that they are enough, or all."""
        count = 1
        while count < len(candidates) and self.checks < self.most // 3:
            if self._passes(candidates[:count], folder):
                return list(candidates[:count])
            count *= 2
        return list(candidates)

    def _shrunk(self, marks: list[Layer], folder: Path) -> list[Layer]:
        """As few of them as are enough: parts are left out, half of them first, as long as that goes well."""
        size = max(1, len(marks) // 2)
        while True:
            begin = 0
            while begin < len(marks) and self.checks < self.most - 1:
                fewer = [*marks[:begin], *marks[begin + size :]]
                if fewer and self._passes(fewer, folder):
                    marks = fewer
                else:
                    begin += size
            if size == 1 or self.checks >= self.most - 1:
                return marks
            size = max(1, size // 2)

    def _passes(self, marks: Sequence[Layer], folder: Path) -> bool:
        return self._check(marks, folder).holds

    def _check(self, marks: Sequence[Layer], folder: Path) -> Measured:
        """The outputs with these marks, on the device."""
        key = frozenset(marks)
        if key not in self._seen:
            self.checks += 1
            self.tell(f"check {self.checks}: {len(key)} layers marked")
            self._seen[key] = self._outputs(self._side(marks, folder))
        return self._seen[key]

    def _heeded(self, marks: Sequence[Layer], folder: Path) -> int:
        """How many of the marked layers the device computes in f32 then."""
        runtime = self._side(marks, folder).runtime()
        names = [layer.name for layer in marks if layer.graph.owner is None and layer.name in runtime]
        return sum(_computed_in(runtime[name]) in ("f32", "f64") for name in names)

    def _side(self, marks: Sequence[Layer], folder: Path) -> Side:
        path = folder / f"{len(self._seen)}.xml"
        with temporary():
            path.write_bytes(self._marked(marks))
        return self.side.marked(path)

    def _marked(self, marks: Sequence[Layer]) -> bytes:
        return mark_precise(self._text, [self._twins.get(layer, layer) for layer in marks])

    def _outputs(self, side: Side) -> Measured:
        """The worst output of all runs."""
        found: list[Measured] = []
        for course, expected in zip(self.courses, self._expected, strict=True):
            for step, (theirs, ours) in enumerate(zip(side.outputs(course.steps), expected, strict=True)):
                for name, array in theirs.items():
                    tolerance = named(self.tolerances, name) or LEVELS["f32"]
                    found.append(Measured(Where(course.name, step), measure(array, ours[name], tolerance), tolerance))
        return max(found, key=lambda measured: measured.rank)


def _written(model: Model) -> tuple[bytes, dict[Layer, Layer]]:
    """The text of a model; where that is not what it was read from, which layers of it are those of the model, too."""
    if not model.edited:
        return model.path.read_bytes() if model.content is None else model.content, {}
    text = model_text(model)
    again, _ = read(model.path, content=text)
    assert again is not None
    return text, dict(zip(model.graph.walk(), again.graph.walk(), strict=True))


def _computed_in(entry: Runtime) -> str | None:
    """The type that a layer is computed in: where it has compressed weights the device names the type of these, and its
    kernel, such as `brgemm_avx512_bf16`, tells."""
    told = (entry.primitive or "").rpartition("_")[2].lower()
    return told if told in DIGITS else entry.precision


def _coarse(precision: str | None) -> bool:
    """Whether a type has fewer bits than f32."""
    return DIGITS.get(precision or "", 0.0) > DIGITS["f32"]
