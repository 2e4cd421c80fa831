"""The check of a model as a whole: everything that is wrong with it, in one report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from irrun.check.declared import compare_declared
from irrun.check.infer import Inference, infer
from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Layer, Model
from irrun.ir.reader import read
from irrun.spec.dims import Shape, fresh
from irrun.spec.op import Tensor

Shapes = Mapping[str, Sequence[int | str | None]]
"""Shapes to infer under, by a name of the input; "?", None or -1 is an unknown size."""


@dataclass(slots=True)
class Report:
    """What is wrong with a model; `diagnostics` are sorted by their place in the file.

    `model` is None where the file could not be read, `inference` where the graph is too broken to be inferred.
    """

    path: Path
    diagnostics: list[Diagnostic]
    model: Model | None = field(default=None, repr=False)
    inference: Inference | None = field(default=None, repr=False)

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "error"]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "warning"]

    @property
    def ok(self) -> bool:
        """Whether the model has no errors; warnings do not count."""
        return not self.errors


def validate(
    model: Model | str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    shapes: Shapes | None = None,
) -> Report:
    """Check a model, or the file that holds one; `weights` is the .bin beside it unless given.

    Never raises for a bad model. Raises ValueError where `shapes` names no input.
    """
    problems: list[Diagnostic] = []
    if isinstance(model, Model):
        path, found = model.path, model
    else:
        path = Path(model)
        read_model, problems = read(path, None if weights is None else Path(weights))
        if read_model is None:
            return Report(path, _sorted(problems, path))
        found = read_model
    inference = infer(found.graph, found.weights, _given(found, shapes or {}))
    problems = [*problems, *inference.diagnostics, *compare_declared(inference)]
    return Report(path, _sorted(problems, path), found, inference)


def _sorted(problems: Sequence[Diagnostic], path: Path) -> list[Diagnostic]:
    placed = [problem if problem.file else replace(problem, file=str(path)) for problem in problems]
    return sorted(placed, key=lambda d: (d.line or 0, d.column or 0, d.code))


def input_names(layer: Layer) -> tuple[str, ...]:
    """The names that a Parameter goes by: those of its tensor, and its own."""
    tensor_names = layer.outputs[0].port.names if layer.outputs else ()
    return tuple(dict.fromkeys((*tensor_names, layer.name)))


def find_input(model: Model, name: str) -> int:
    """The number of the input that goes by `name`, or by its position as text. Raises ValueError listing the inputs."""
    parameters = model.graph.parameters
    matches = [number for number, layer in enumerate(parameters) if name in input_names(layer)]
    if len(matches) == 1:
        return matches[0]
    if not matches and name.isdecimal() and int(name) < len(parameters):
        return int(name)
    listing = ", ".join(f"`{input_names(layer)[0]}`" for layer in parameters) or "none"
    what = "is the name of several inputs" if matches else "is no input"
    raise ValueError(f"`{name}` {what} of the model; its inputs are {listing}")


def _given(model: Model, shapes: Shapes) -> dict[Layer, Tensor]:
    parameters = model.graph.parameters
    return {parameters[find_input(model, name)]: Tensor("dynamic", _shape(sizes)) for name, sizes in shapes.items()}


def _shape(sizes: Sequence[Any]) -> Shape:
    return tuple(fresh() if size in ("?", None, -1) else int(size) for size in sizes)
