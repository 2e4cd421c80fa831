"""What the other model is known to have otherwise: layers, attributes, and what comes before the layer."""

from __future__ import annotations

from irrun.tools.compare.causes.case import Case, Cause

MAX_CHANGES = 8
"""Those that are told of a layer."""

HELP = "`irrun diff` tells all that differs between the two models"


def other_layer(case: Case) -> Cause | None:
    """The other model does not compute the layer as this one does, or hands other tensors to it."""
    changes = [change for change in case.context.changes if not change.constant]
    if not changes:
        return None
    first = next((change for change in changes if change.quantizes), changes[0])
    others = [change.text for change in case.context.changes if change is not first]
    quantized = "quantization: " if first.quantizes else ""
    return Cause("N218", f"{quantized}{first.text}", (*told(others), _extent(case)), HELP)


def other_constant(case: Case) -> Cause | None:
    """A constant has other values, where nothing has shown that they explain all of it."""
    changes = [change for change in case.context.changes if change.constant and change.outside is None]
    if not changes:
        return None
    first, *others = (change.text for change in changes)
    return Cause("N212", first, (*told(others), _extent(case)), HELP)


def _extent(case: Case) -> str:
    return f"{case.counts} values are wrong" if case.metrics.comparable else "the result is of another shape or type"


def told(texts: list[str]) -> tuple[str, ...]:
    """The first ones, and how many more there are."""
    more = [f"and {len(texts) - MAX_CHANGES:,} more"] if len(texts) > MAX_CHANGES else []
    return (*texts[:MAX_CHANGES], *more)
