"""All that a report holds of a model, as a plain dict: what the tools beside this one know, layer by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import Any

from irrun.check.deviations import deviating_layers
from irrun.check.infer import Inference
from irrun.check.render.text import source_at, source_of
from irrun.check.validate import GivenShapes, Report, validate
from irrun.diagnostics import Diagnostic, IRError
from irrun.ir.graph import Layer, Model
from irrun.ir.lines import Source as Text
from irrun.ir.sources import Source
from irrun.records import dataclass
from irrun.tools.compare.results import Comparison
from irrun.tools.diff import Difference
from irrun.tools.inspect.contents import Contents
from irrun.tools.inspect.inspection import EXECUTED, Inspection, inspected
from irrun.tools.report.comparing import compared
from irrun.tools.report.differing import differences
from irrun.tools.report.facts import Place, constants, facts
from irrun.tools.report.finding import Finder
from irrun.tools.report.layers import columns, taken
from irrun.tools.report.lifetimes import lifetimes
from irrun.tools.report.troubles import troubles

FORMAT = 1
"""Raised when an entry changes its meaning or goes."""


@dataclass(eq=False)
class Subject:
    """A model that a report is about, and what is known of it."""

    model: Model
    report: Report
    contents: Contents
    found: Inspection

    @cached_property
    def finder(self) -> Finder:
        return Finder(self.contents.paths)

    @cached_property
    def places(self) -> dict[Place, int]:
        """The number of each layer by what an inspection calls it."""
        numbered = enumerate(self.contents.paths.items())
        return {(path, layer.id, layer.span.line): number for number, (layer, path) in numbered}

    @cached_property
    def numbers(self) -> dict[Layer, int]:
        return {layer: number for number, layer in enumerate(self.contents.paths)}

    @property
    def source(self) -> Text | None:
        return source_of(self.report) or source_at(self.report.path)


def subject(model: Source, weights: Source | None = None, shapes: GivenShapes | None = None) -> Subject:
    """A model, which may have errors. Raises IRError where it cannot be read or is an execution graph, whose layers are
    no operations, and what `irrun.inspect` raises."""
    report = validate(model, weights, shapes)
    if report.model is None or any(found.code == EXECUTED for found in report.diagnostics):
        raise IRError(report.errors)
    contents = Contents(report.model, report.inference or Inference(report.model.weights))
    return Subject(report.model, report, contents, inspected(report, shapes, contents=contents))


def collected(
    about: Subject,
    *,
    timing: dict[str, Any] | None = None,
    comparison: Comparison | None = None,
    difference: Difference | None = None,
) -> dict[str, Any]:
    """What the page shows of a model; `timing` is what `irrun.tools.report.timing.timed` gives."""
    found, contents = about.found, about.contents
    evaluation = taken(contents)
    diagnostics = _diagnostics(about, comparison)
    told = troubles(diagnostics, about.source if diagnostics else None, about.finder)
    return {
        "format": FORMAT,
        "irrun": version("irrun"),
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "summary": facts(found, about.places, evaluation),
        "counts": Counter(found.severity for found in diagnostics),
        "diagnostics": told,
        "layers": columns(contents, found.layers or (), found.sizes, evaluation),
        "memory": lifetimes(contents, evaluation),
        "weights": constants(found, about.places),
        "profile": timing,
        "comparison": None if comparison is None else compared(comparison, about.finder),
        "difference": None if difference is None else differences(difference, about.finder),
    }


def _diagnostics(about: Subject, comparison: Comparison | None) -> Sequence[Diagnostic]:
    """Those of the file, what OpenVINO is known to do otherwise, and what a comparison has found: the worst first."""
    report = about.report
    known = () if report.inference is None else deviating_layers(report.inference)
    told = [*report.diagnostics, *(() if comparison is None else comparison.diagnostics)]
    told += [replace(found, file=str(report.path)) for found in known]
    rank = {"error": 0, "warning": 1}
    return sorted(told, key=lambda d: (rank.get(d.severity, 2), d.line or 0, d.column or 0, d.code))
