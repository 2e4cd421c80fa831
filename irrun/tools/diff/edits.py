"""What is told of two models: edits, each of one kind, and what they come to together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from irrun.diagnostics import LayerName
from irrun.records import dataclass

KINDS = {
    "input": "an input of the model is there in only one of them, or has other names",
    "output": "an output of the model is there in only one of them, or has other names",
    "order": "inputs or outputs come in another order",
    "variable": "a variable is there in only one of them",
    "opset": "the same op, of another version",
    "attribute": "an attribute has another value",
    "retyped": "the same values, or the same input, in another element type",
    "reshaped": "the same values, or the same input, in another shape",
    "constant": "a constant has other values",
    "replaced": "layers take the place of others",
    "inserted": "layers that were not there",
    "removed": "layers that are not there any more",
    "rewired": "an input is connected to another tensor",
    "rt_info": "runtime information differs",
    "names": "a tensor inside the model has other names",
    "renamed": "a layer has another name",
}
"""The kinds of edits, in the order in which they are told."""

SILENT = ("names", "renamed")
"""Kinds that make no other model: only names inside it differ."""

TOLERANCE = "1e-3 of each number and 1e-3 of its tensor's root mean square (at least 1e-5)"
"""What floats may be apart on the same inputs; `irrun.tools.diff.numeric` computes it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One difference. `message` says what changed, the same for all places where the same happened.

    `role` says to what: the input of a type of op (`filters` of Convolution), empty where `message` says all.
    `before` and `after` are the layers that it is about, in the two models, and `path` the layers and bodies that these
    lie in. `place` says where it happened, in words. `details` are its figures and values, for programs. `readers` are
    the layers of the first model that read what took the place of something else.
    """

    kind: str
    message: str
    before: tuple[LayerName, ...] = ()
    after: tuple[LayerName, ...] = ()
    path: tuple[str, ...] = ()
    place: str = ""
    role: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    readers: tuple[LayerName, ...] = ()

    @property
    def layers(self) -> tuple[LayerName, ...]:
        """The layers that name it: those of the first model, or of the second where they are new."""
        return self.before or self.after


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first tensor whose values differ when both models run on the same inputs.

    `tensor` is what the first model calls it, `other` the second; `sentence` says by how much. `compared` are the
    tensors that were looked at up to there, all of them where `tensor` is empty: then nothing differs.
    """

    tensor: str
    other: str
    sentence: str
    compared: int

    def __str__(self) -> str:
        if not self.tensor:
            return f"all {self.compared:,} tensors that both have are equal, floats within {TOLERANCE}"
        also = "" if self.tensor == self.other else f" (`{self.other}` in the second model)"
        place = f"number {self.compared:,} in order"
        return f"the first tensor that differs is `{self.tensor}`{also}, {place}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Difference:
    """What `irrun.diff` found: `edits` from the first model to the second, by kind and then in the order of layers.

    `layers` is how many layers the models have, `matched` how many are in both, `followed` of how many tensors type or
    shape differ only because of what is told. It is true where the models differ.
    """

    paths: tuple[Path, Path]
    edits: tuple[Edit, ...]
    layers: tuple[int, int]
    matched: int
    followed: int
    divergence: Divergence | None = None
    ids: bool = True

    @property
    def equal(self) -> bool:
        """Whether both are the same model, whatever its layers and the tensors inside it are called."""
        return all(edit.kind in SILENT for edit in self.edits) and not (self.divergence and self.divergence.tensor)

    def __bool__(self) -> bool:
        return not self.equal

    def __str__(self) -> str:
        return self.render()

    def render(self, format: str = "text") -> str:
        """The difference as "text" for people, or as "json". Raises ValueError for another format."""
        from irrun.tools.diff.rendering import RENDERERS

        if format not in RENDERERS:
            raise ValueError(f"there is no format {format!r}; there are {', '.join(RENDERERS)}")
        return RENDERERS[format](self)
