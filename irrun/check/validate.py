"""The check of a model as a whole: everything that is wrong with it, in one report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from irrun.check.declared import compare_declared
from irrun.check.infer import Inference, infer
from irrun.check.mixing import mixed_types
from irrun.diagnostics import LONGEST_NAME, Diagnostic, clipped, limited
from irrun.ir.graph import Layer, Model
from irrun.ir.reader import read
from irrun.spec.attributes import parse_size
from irrun.spec.dims import Dim, Shape, Size, fresh
from irrun.spec.op import Tensor

_DIGITS = 10
"""Of a position, at most: Python refuses to convert texts that are much longer."""

GivenShapes = Mapping[str, Sequence[int | str | None]]
"""Shapes to infer under, by a name of the input.

"?", None or -1 is an unknown size, "2..8" one with bounds; "batch" is an unknown one, the same wherever it stands.
"""


@dataclass(slots=True)
class Report:
    """What is wrong with a model; `diagnostics` are sorted by their place in the file.

    `model` is None where the file could not be read, `inference` where the graph is too broken to be inferred.
    `layers` is the number of layers that could be inferred, `content` the text of the .xml where it came from memory.
    """

    path: Path
    diagnostics: list[Diagnostic]
    model: Model | None = field(default=None, repr=False)
    inference: Inference | None = field(default=None, repr=False)
    layers: int = 0
    content: bytes | None = field(default=None, repr=False)

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
    shapes: GivenShapes | None = None,
    *,
    content: bytes | None = None,
) -> Report:
    """Check a model, or the file that holds one; `weights` is the .bin beside it unless given.

    With `content`, the text of the .xml, only the weights are looked for at the path.

    Never raises for a bad model. Raises ValueError where `shapes` names no input or holds what is no size.
    """
    problems: list[Diagnostic] = []
    if isinstance(model, Model):
        path, found = model.path, model
    else:
        path = Path(model)
        read_model, problems = read(path, None if weights is None else Path(weights), content)
        if read_model is None or any(problem.code == "E110" for problem in problems):  # layers of kernels, not of ops
            return Report(path, _sorted(problems, path), read_model, content=content)
        found = read_model
    inference = infer(found.graph, found.weights, _given(found, shapes or {}))
    later = chain(inference.diagnostics, mixed_types(inference), compare_declared(inference, sizes=not shapes))
    problems = [*problems, *limited(later)]
    return Report(path, _sorted(problems, path), found, inference, len(inference.nodes), content)


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
    if not matches and name.isdecimal() and len(name) < _DIGITS and int(name) < len(parameters):
        return int(name)
    listing = ", ".join(f"`{input_names(layer)[0]}`" for layer in parameters) or "none"
    what = "is the name of several inputs" if matches else "is no input"
    raise ValueError(f"`{clipped(name, LONGEST_NAME)}` {what} of the model; its inputs are {listing}")


def _given(model: Model, shapes: GivenShapes) -> dict[Layer, Tensor]:
    parameters = model.graph.parameters
    names: dict[str, Dim] = {}
    return {
        parameters[find_input(model, name)]: Tensor("dynamic", given_shape(sizes, name, names))
        for name, sizes in shapes.items()
    }


def given_shape(sizes: Sequence[Any], input: str, names: dict[str, Dim]) -> Shape:
    """A shape of `GivenShapes`, for the input that goes by `input`; sizes that have names are looked up in `names`.

    Raises ValueError where it holds something else.
    """
    return tuple(_given_size(size, input, names) for size in sizes)


def _given_size(size: Any, input: str, names: dict[str, Dim]) -> Size:
    if isinstance(size, Dim):
        return size
    text = "?" if size is None else str(size).strip()
    if text.isidentifier():
        return names.setdefault(text, fresh(name=text))
    try:
        return parse_size(text)
    except ValueError as error:
        raise ValueError(f"the shape of `{input}` {error}, or a name such as `batch`") from None
