"""Where edits gather while two graphs are gone through, and what counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irrun.diagnostics import LayerName
from irrun.tools.diff.constants import STRUCTURE, Delta
from irrun.tools.diff.edits import Edit
from irrun.tools.diff.view import Node
from irrun.tools.diff.wording import Source, port_of, source_ids, tensor_text


class Teller:
    """The edits so far. `path` is where the graphs lie that are gone through.

    `values` is what counts of constants: "exact", "close" or "stats"; `ignored` are aspects that do not count.
    """

    def __init__(self, values: str, ignored: frozenset[str]) -> None:
        self.values, self.ignored = values, ignored
        self.path: tuple[str, ...] = ()
        self.edits: list[Edit] = []

    def add(
        self,
        kind: str,
        message: str,
        before: tuple[LayerName, ...],
        after: tuple[LayerName, ...],
        *,
        place: str = "",
        role: str = "",
        details: Mapping[str, Any],
        readers: tuple[LayerName, ...] = (),
    ) -> None:
        """Tell an edit of several layers."""
        self.edits.append(Edit(kind, message, before, after, self.path, place, role, details, readers))

    def tell(
        self,
        kind: str,
        message: str,
        x: Node | None,
        y: Node | None,
        place: str = "",
        role: str = "",
        **details: Any,
    ) -> None:
        """Tell an edit of one layer, which is `x` in the first model and `y` in the second."""
        before = (x.layer.label,) if x else ()
        after = (y.layer.label,) if y else ()
        self.add(kind, message, before, after, place=place, role=role, details=details)

    def rewired(self, x: Node, y: Node, number: int, old: Source, new: Source) -> None:
        """Tell that an input reads something else."""
        message = "other input" if old and new else "one input more" if new else "one input less"
        place = f"{tensor_text(old)} -> {tensor_text(new)}" if old and new else tensor_text(new or old)
        role = f"{port_of(y, number)} of {y.type}"
        self.tell("rewired", message, x, y, place, role, input=number, old=source_ids(old), new=source_ids(new))

    def counts(self, delta: Delta) -> bool:
        """Whether a difference of values is one, by how closely they are looked at."""
        if "precision" in self.ignored and delta.rounded:
            return False
        if self.values == "stats" and delta.elements > STRUCTURE:
            return not delta.alike
        return self.values == "exact" or not delta.close
