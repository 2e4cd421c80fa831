"""What a comparison has measured, by layers of the model that it was about."""

from __future__ import annotations

from typing import Any

from irrun.tools.compare.results import Comparison, Measured
from irrun.tools.report import texts
from irrun.tools.report.finding import Finder

_METRICS = (
    *("count", "comparable", "equal", "max_abs", "mean_abs", "p99_abs", "max_rel", "rms", "nrmse", "sqnr", "cosine"),
    *("worst", "worst_values", "mismatches", "box", "nonfinite_differing", "needed_factor", "steps_max", "precision"),
    *("shape", "type", "expected_shape", "expected_type", "edge"),
)
"""What the page has of each tensor."""


def compared(comparison: Comparison, finder: Finder) -> dict[str, Any]:
    """`outputs` and `tensors` as `Comparison.to_dict` has them, shorter; numbers that are not finite are texts."""
    return {
        "other": texts.name(comparison.other),
        "model": texts.name(str(comparison.model)),
        "agrees": comparison.agrees,
        "watching": comparison.watching,
        "untapped": [[texts.name(key), texts.value(reason)] for key, reason in comparison.untapped.items()],
        "outputs": [
            {
                "name": texts.name(output.name),
                "layer": finder.at(output.span, output.layer),
                "agrees": output.agrees,
                "runs": output.runs,
                "differing": output.differing,
                "worst": _measured(output.worst),
                "precise": None if output.precise is None else _measured(output.precise),
            }
            for output in comparison.outputs
        ],
        "tensors": [
            {
                "key": texts.name(tensor.key),
                "layer": finder.at(tensor.span, tensor.layer),
                "type": texts.name(tensor.layer.type),
                "agrees": tensor.agrees,
                "runs": tensor.runs,
                "differing": tensor.differing,
                "precision": tensor.precision,
                "primitive": tensor.primitive,
                "fused": [texts.name(name) for name in tensor.fused],
                "cause": tensor.cause,
                "own": _measured(tensor.own),
                "accumulated": None if tensor.accumulated is None else _measured(tensor.accumulated),
            }
            for tensor in sorted(comparison.tensors, key=lambda tensor: tensor.order)
        ],
    }


def _measured(measured: Measured) -> dict[str, Any]:
    metrics = measured.metrics.to_dict()
    return {
        "holds": measured.holds,
        "with": texts.name(str(measured.where)),
        "tolerance": str(measured.tolerance),
        **{name: metrics[name] for name in _METRICS},
    }
