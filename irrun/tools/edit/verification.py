"""Whether an edited model computes what the model computed before, on inputs that both take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce

import numpy as np

from irrun.diagnostics import InputError
from irrun.ir.graph import Model
from irrun.ir.sources import Source
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.spec.op import Array
from irrun.tools.edit.preprocessing import Preprocessing


@dataclass(frozen=True, slots=True)
class Verified:
    """A line for each output that both models have, and whether all of them agree."""

    ok: bool
    lines: tuple[str, ...]


def verify(
    before: Source,
    weights: Source | None,
    after: Model,
    inputs: Mapping[str, Array],
    tolerance: float,
    preprocessings: Sequence[Preprocessing] = (),
) -> Verified:
    """Run both models on inputs of the one before, and compare the outputs that both have by name, or by position where
    there are equally many. Where data are preprocessed now, the new model gets data that become these inputs.

    Raises IRError where one cannot be run, InputError where the arrays do not fit one, ValueError where the models have
    no output in common.
    """
    # what is computed before a model has the types that it declares: so both models see the same numbers
    precision = "declared" if preprocessings else None
    old = GraphExecutor(before, weights, once=True, precision=precision)
    new = GraphExecutor(after, once=True, precision=precision)
    with _told_of("before"):
        given = old.named(inputs)
    names = _new_names(old, new)
    data = {names.get(name, name): array for name, array in given.items()}
    origins = {names.get(name, name): name for name in given}
    for info, parameter in zip(new.inputs, after.graph.parameters, strict=True):
        chain = [step for step in preprocessings if step.parameter is parameter]
        if chain and info.name in data:
            data[info.name] = reduce(lambda array, step: step.data_for(array), chain, data[info.name])
            given[origins[info.name]] = reduce(lambda array, step: step(array), reversed(chain), data[info.name])
    with _told_of("after"):
        data = new.named(data)
    expected, actual = old.run(given), new.run(data)
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


@contextmanager
def _told_of(when: str) -> Iterator[None]:
    """Say which of the two models does not take the arrays."""
    try:
        yield
    except InputError as error:
        raise InputError(*(f"the model {when} the edit: {problem}" for problem in error.problems)) from None


def _new_names(old: GraphExecutor, new: GraphExecutor) -> dict[str, str]:
    """What inputs are called in the new model: those whose names it lacks are those of its inputs that are new."""
    ours, theirs = ([*dict.fromkeys(info.name for info in model.inputs)] for model in (old, new))
    gone, come = ([name for name in one if name not in other] for one, other in ((ours, theirs), (theirs, ours)))
    return dict(zip(gone, come, strict=True)) if len(gone) == len(come) else {}


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
