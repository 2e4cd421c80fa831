"""Whether an edited model computes what the model computed before, on inputs that both take."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irrun.ir.graph import Model
from irrun.ir.sources import Source
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.spec.op import Array


@dataclass(frozen=True, slots=True)
class Verified:
    """A line for each output that both models have, and whether all of them agree."""

    ok: bool
    lines: tuple[str, ...]


def verify(
    before: Source, weights: Source | None, after: Model, inputs: Mapping[str, Array], tolerance: float
) -> Verified:
    """Run both models and compare the outputs that both have by name, or by position where there are equally many.

    Raises IRError where one cannot be run, InputError where the arrays do not fit one, ValueError where the models have
    no output in common.
    """
    old, new = GraphExecutor(before, weights, once=True), GraphExecutor(after, once=True)
    expected, actual = old.run(inputs), new.run(_renamed(old, new, inputs))
    pairs = [(name, name) for name in expected if name in actual]
    if len(expected) == len(actual) and len(pairs) < len(expected):
        pairs = list(zip(expected, actual, strict=True))
    if not pairs:
        raise ValueError(f"the models have no output in common: {', '.join(expected)}; {', '.join(actual)}")
    lines, good = [], True
    for name, other in pairs:
        agree, line = _compared(expected[name], actual[other], tolerance)
        good &= agree
        lines.append(f"{other}: {line}")
    return Verified(good, tuple(lines))


def _renamed(old: GraphExecutor, new: GraphExecutor, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """The inputs by their names in the new model: those whose names it lacks are those of its inputs that are new."""
    given = old.named(inputs)
    ours, theirs = ([*dict.fromkeys(info.name for info in model.inputs)] for model in (old, new))
    gone, come = ([name for name in one if name not in other] for one, other in ((ours, theirs), (theirs, ours)))
    if not gone or len(gone) != len(come):
        return inputs
    return {dict(zip(gone, come, strict=True)).get(name, name): array for name, array in given.items()}


def _compared(expected: Array, actual: Array, tolerance: float) -> tuple[bool, str]:
    if expected.shape != actual.shape:
        return False, f"the shape was {list(expected.shape)} and is {list(actual.shape)}"
    if expected.dtype.kind in "USb" or expected.dtype.kind in "iu":
        different = int(np.count_nonzero(expected != actual))
        return not different, f"{different} of {expected.size} elements differ" if different else "the same"
    one, two = np.asarray(expected, np.float64), np.asarray(actual, np.float64)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    if same.all():
        return True, "the same"
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(one - two)[~same]
    finite = np.abs(one[np.isfinite(one)])
    scale = float(finite.max(initial=0.0)) or 1.0
    worst = float(errors.max()) / scale if np.isfinite(errors).all() else float("inf")
    return worst <= tolerance, f"differs by {worst:.2g} of its largest number"
