"""Which transformation of OpenVINO changes values first: the graph after each one, run by irrun."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from irrun.diagnostics import InputError, IRError
from irrun.ir.graph import Model
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.spec.op import Array
from irrun.tools.compare.metrics import Metrics, measure
from irrun.tools.compare.replay import Course
from irrun.tools.compare.tolerances import LEVELS

MAX_NAMED = 5
"""Layers that are named of those that a transformation has made or changed."""


class Transformation(Protocol):
    """A graph that a compiler has written down: after the `number`-th of its transformations, called `name`."""

    @property
    def number(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path: ...


@runtime_checkable
class Transforming(Protocol):
    """A side that can write its graph after each of its transformations."""

    def passes(self) -> Sequence[Transformation]: ...


@dataclass(frozen=True, slots=True)
class Trace:
    """What running `total` graphs has shown: `run` of them could be run.

    `changing` is the first one that gives other outputs than the graph before it, `metrics` say by how much, `layers`
    are names of those that it has made or changed.
    """

    total: int
    run: int
    changing: Transformation | None = None
    output: int = 0
    metrics: Metrics | None = None
    layers: tuple[str, ...] = ()


def trace(
    model: Model, passes: Sequence[Transformation], course: Course, tell: Callable[[str], object] = lambda _: None
) -> Trace:
    """Run the graph after each transformation, as long as its outputs stay the same within the rounding of f32."""
    before, known, ran = _outputs(model, course), _signatures(model), 0
    for step in passes:
        tell(f"running the graph after transformation {step.number} of {len(passes)}")
        try:
            executor = GraphExecutor(step.path, engine="reference", precision="auto")
            after = _outputs(executor.model, course, executor)
        except (IRError, InputError):  # ops of compilers alone, or constants that are not written
            continue
        ran += 1
        signatures = _signatures(executor.model)
        for number, (old, new) in enumerate(zip(before, after, strict=False)):
            metrics = measure(new, old, LEVELS["f32"])
            if not metrics.within(LEVELS["f32"]):
                changed = [name for name, kind in signatures.items() if known.get(name) != kind]
                return Trace(len(passes), ran, step, number, metrics, tuple(changed[:MAX_NAMED]))
        before, known = after, signatures
    return Trace(len(passes), ran)


def _outputs(model: Model, course: Course, executor: GraphExecutor | None = None) -> list[Array]:
    """The outputs of all steps, one after the other."""
    executor = executor or GraphExecutor(model, engine="reference", precision="auto")
    session = executor.session()
    return [array for inputs in course.steps for array in session.run(list(inputs.values())).values()]


def _signatures(model: Model) -> Mapping[str, str]:
    """What each layer is, by its name."""
    return {layer.name: f"{layer.type} {sorted(layer.attributes.items())}" for layer in model.graph.layers}
