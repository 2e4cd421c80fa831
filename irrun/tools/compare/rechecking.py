"""Comparisons judged by other tolerances, without running anything."""

from __future__ import annotations

from dataclasses import replace

from irrun.tools.compare.causes.ties import TIE
from irrun.tools.compare.findings import of_asked, of_outputs
from irrun.tools.compare.replay import Given, refuse_unknown
from irrun.tools.compare.results import Comparison, Measured, OutputResult, TensorResult
from irrun.tools.compare.tolerances import Tolerance, named

OF_OUTPUTS = frozenset({"N101", "N102", "N106", "N200"})
"""What `of_outputs` says."""


def rejudged(comparison: Comparison, tolerances: Given) -> Comparison:
    """The comparison with other tolerances for outputs and layers by the names that they are for; None is all outputs.

    Of several runs the worst one counts, which is all that is known of them. What is said of layers and outputs that
    agree now is left out, but for ties. Raises ValueError for a tolerance with outliers: they were counted for another
    one, and for one that is for nothing.
    """
    names = {name for result in comparison.tensors for name in (result.layer.name, result.key)}
    refuse_unknown(names | {result.name for result in comparison.outputs}, tolerances, "the comparison")
    for _, tolerance in tolerances:
        if tolerance.outliers and tolerance.sqnr is None:
            raise ValueError("how many outliers there are was counted for another tolerance: give one without")
    layers = [entry for entry in tolerances if entry[0] is not None]
    outputs = [_output(result, named(tolerances, result.name)) for result in comparison.outputs]
    tensors = [_tensor(result, _asked(result, layers, tolerances)) for result in comparison.tensors]
    at_fault = {result.layer for result in tensors if not result.agrees}
    judged = {result.layer for result in tensors}
    told = [
        found
        for found in comparison.diagnostics
        if found.code not in OF_OUTPUTS and (found.code == TIE or found.layer not in judged or found.layer in at_fault)
    ]
    told_of = {found.layer for found in told if found.severity == "error"}
    new = [result for result in tensors if not result.agrees and result.layer not in told_of]
    told += of_asked(comparison.model, new)
    failing, tied = bool(at_fault), any(found.code == TIE for found in told)
    told += of_outputs(comparison.model, comparison.other, outputs, comparison.watching, failing=failing, tied=tied)
    return replace(comparison, outputs=outputs, tensors=tensors, diagnostics=told)


def _asked(result: TensorResult, layers: Given, tolerances: Given) -> Tolerance | None:
    """The tolerance for a tensor by the name of its layer, or by that of the output that it is judged as."""
    asked = named(layers, result.layer.name, result.key)
    return named(tolerances, result.output) if asked is None and result.output is not None else asked


def _again(measured: Measured, tolerance: Tolerance) -> tuple[Measured, bool]:
    metrics = measured.metrics
    holds = metrics.would_be_within(tolerance)
    if metrics.comparable and "string" not in (metrics.type, metrics.expected_type):
        beyond = not metrics.would_be_within(tolerance.elements)
        metrics = replace(metrics, mismatches=int(beyond), counted=False)
    return replace(measured, metrics=metrics, tolerance=tolerance), holds


def _output(result: OutputResult, tolerance: Tolerance | None) -> OutputResult:
    if tolerance is None:
        return result
    worst, holds = _again(result.worst, tolerance)
    return replace(result, worst=worst, differing=0 if holds else max(1, result.differing))


def _tensor(result: TensorResult, tolerance: Tolerance | None) -> TensorResult:
    if tolerance is None:
        return result
    own, holds = _again(result.own, tolerance)
    return replace(result, own=own, differing=0 if holds else max(1, result.differing))
