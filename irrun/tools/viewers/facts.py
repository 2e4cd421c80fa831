"""What viewers are told of each layer: types and shapes, costs, diagnostics, times and errors, whoever shows them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from irrun.check.infer import Inference
from irrun.check.validate import Report
from irrun.diagnostics import LONGEST_NAME, Diagnostic, LayerName, Span, clipped
from irrun.ir.graph import Graph, Layer, Model
from irrun.records import dataclass
from irrun.run.keys import unique
from irrun.run.profile import Profile
from irrun.spec.dims import Size
from irrun.spec.patterns import shape_text
from irrun.tools.compare.results import Comparison, Measured
from irrun.tools.inspect.contents import Contents
from irrun.tools.inspect.costs import Costs, LayerCost, costs
from irrun.tools.inspect.sizes import Sizes

LONGEST = 1000
"""Characters of a text that a viewer shows in a line."""

EXACT = 1 << 53
"""Integers up to here are numbers in JavaScript; larger ones lose their last digits."""

Number = int | float | str
"""A number, or text where there is none that JSON has."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one layer.

    `path` is its name, and is no other layer's: behind those of the layers whose body it lies in, as keys of tensors
    have it. `tensors` are the types and shapes that were inferred of its outputs. `time` are the seconds of a call, and
    what computes it, None where it was not measured; `together` is the layer that it was computed with. `own` and
    `accumulated` are the worst of its outputs.
    """

    layer: Layer
    path: str
    cost: LayerCost
    tensors: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    time: tuple[float, str] | None = None
    together: Layer | None = None
    own: Measured | None = None
    accumulated: Measured | None = None


@dataclass(frozen=True, slots=True)
class Viewed:
    """A model with what is known of its `layers`, those of bodies behind their owner. `loose` are diagnostics that are
    about no layer."""

    path: Path
    model: Model
    inference: Inference
    layers: Sequence[Facts]
    costs: Costs
    loose: Sequence[Diagnostic]
    sizes: Sizes = field(repr=False)

    def size(self, size: Size | None) -> Number | None:
        """A size as JSON has it: arithmetic, and what JavaScript has no number for, as text."""
        plain = self.sizes.text(size)
        return f"{plain:,}" if isinstance(plain, int) and abs(plain) > EXACT else plain

    @property
    def summary(self) -> dict[str, Number]:
        """What is said of the model as a whole."""
        said: dict[str, Number] = {"layers": len(self.layers)}
        for name, size in (("MACs", self.costs.macs), ("bytes", self.costs.bytes)):
            text = self.size(size)
            if text is not None:
                said[name] = text
        seconds = [facts.time[0] for facts in self.layers if facts.time is not None]
        if seconds:
            said["time, ms"] = milliseconds(sum(seconds))
        return said


def viewed(report: Report, profile: Profile | None = None, comparison: Comparison | None = None) -> Viewed:
    """What viewers are told of a model that was validated, with times and errors of runs of the same model.

    Raises ValueError where there is no graph to show, saying why.
    """
    model = report.model
    if model is None:
        reasons = "; ".join(str(found) for found in report.errors[:3]) or "it could not be read"
        raise ValueError(f"there is no graph to show: {reasons}")
    inference = report.inference or Inference(model.weights)
    contents = Contents(model, inference)
    counted, sums = costs(contents)
    index = _Index(model.graph)
    diagnostics: defaultdict[Layer | None, list[Diagnostic]] = defaultdict(list)
    for found in [*report.diagnostics, *([] if comparison is None else comparison.diagnostics)]:
        diagnostics[None if found.layer is None else index.find(found.layer, found.span)].append(found)
    times, company = _times(index, profile)
    own, accumulated = _errors(index, comparison)
    layers = [
        Facts(
            layer,
            path,
            cost,
            tuple(f"{tensor.type}{shape_text(tensor.shape)}" for tensor in map(contents.tensor, layer.outputs)),
            tuple(diagnostics.get(layer, ())),
            times.get(layer),
            company.get(layer),
            own.get(layer),
            accumulated.get(layer),
        )
        for (layer, path), cost in zip(_paths(model.graph, ""), counted, strict=True)
    ]
    sizes = Sizes()
    sizes.learn((sums.macs, sums.bytes))
    return Viewed(report.path, model, inference, layers, sums, diagnostics[None], sizes)


def milliseconds(seconds: float) -> float:
    return round(seconds * 1e3, 6)


def error(measured: Measured) -> Number:
    """The rms of what is off, in parts of the rms of what is right; text where it is no number."""
    metrics = measured.metrics
    if not metrics.comparable:
        return "another shape or type"
    if metrics.nonfinite_differing or not math.isfinite(metrics.nrmse):
        return "not finite"
    return float(f"{metrics.nrmse:.4g}")


def _paths(graph: Graph, before: str) -> Iterator[tuple[Layer, str]]:
    for layer in graph.layers:
        path = f"{before}{unique(layer)}"
        yield layer, path
        for tag, body in layer.bodies.items():
            yield from _paths(body.graph, f"{path}/{tag}/")


class _Index:
    """The layers of a model by what diagnostics, profiles and comparisons say of them."""

    def __init__(self, graph: Graph) -> None:
        self._named: defaultdict[tuple[int, str, str], list[Layer]] = defaultdict(list)
        for layer in graph.walk():
            self._named[_name(layer.label)].append(layer)

    def find(self, label: LayerName, span: Span | None) -> Layer | None:
        """The layer of this name; of several, in bodies, the last one that begins at the spot or before it."""
        found = self._named.get(_name(label), [])
        if span is not None and len(found) > 1:
            before = [layer for layer in found if (layer.span.line, layer.span.column) <= (span.line, span.column)]
            return before[-1] if before else found[0]
        return found[0] if found else None


def _name(label: LayerName) -> tuple[int, str, str]:
    return label.id, clipped(label.name, LONGEST_NAME), clipped(label.type, LONGEST_NAME)


def _times(index: _Index, profile: Profile | None) -> tuple[Mapping[Layer, tuple[float, str]], Mapping[Layer, Layer]]:
    """The seconds that each layer takes in a run, and what computes it; layers that are computed with another one."""
    times: dict[Layer, tuple[float, str]] = {}
    company: dict[Layer, Layer] = {}
    if profile is None:
        return times, company
    for key, entry in profile.entries.items():
        parts = [part for part in key if isinstance(part, Layer)] if isinstance(key, tuple) else []
        layers = [layer for part in parts if (layer := index.find(part.label, part.span)) is not None]
        if not layers:
            continue
        first, *others = layers
        before, by = times.get(first, (0.0, ""))
        taken = profile.later(entry)
        times[first] = (before + taken, entry.by if taken else by or entry.by)
        company.update({layer: first for layer in others if layer is not first})
    return times, company


def _errors(index: _Index, comparison: Comparison | None) -> tuple[Mapping[Layer, Measured], Mapping[Layer, Measured]]:
    """The own error of each layer, and what has come together up to it: of its worst output and iteration."""
    own: dict[Layer, Measured] = {}
    accumulated: dict[Layer, Measured] = {}
    for result in () if comparison is None else comparison.tensors:
        layer = index.find(result.layer, result.span)
        if layer is not None:
            own[layer] = _worst((own.get(layer), result.own))
            if result.accumulated is not None:
                accumulated[layer] = _worst((accumulated.get(layer), result.accumulated))
    return own, accumulated


def _worst(measured: Iterable[Measured | None]) -> Measured:
    return max((one for one in measured if one is not None), key=lambda one: one.rank)
