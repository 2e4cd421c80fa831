"""What inference knows of a model: a table with a line for each layer, and what its sizes are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from irrun.check.render.text import cells, one_line, padded
from irrun.records import dataclass
from irrun.spec.dims import Atom, Dim

if TYPE_CHECKING:
    from irrun.check.infer import Inference
    from irrun.check.validate import Report
    from irrun.ir.graph import Graph
    from irrun.spec.op import Tensor

_WIDEST = 40
"""Columns that types and shapes are padded to at most."""

_MAX_SHOWN = 8
"""Elements of a tensor of integers whose value is shown."""

_LONGEST = 120
"""Characters of arithmetic that stands below the table only."""


def render_shapes(report: Report) -> str:
    """Id, type and name of every layer, the type and shape of its outputs, and the values of short integer ones.

    Equal unknown sizes look alike: those without a name are numbered. Layers of bodies are indented.
    """
    if report.model is None or report.inference is None:
        return ""
    sizes = _Sizes()
    rows = [("id", "type", "outputs", "name"), *_rows(report.model.graph, report.inference, sizes, "")]
    widths = [min(_WIDEST, max(cells(row[column]) for row in rows)) for column in range(3)]
    lines = ["  ".join((*map(padded, row[:3], widths), row[3])).rstrip() for row in rows]
    return "\n".join([*lines, *sizes.legend(), ""])


def _rows(graph: Graph, inference: Inference, sizes: _Sizes, indent: str) -> Iterator[tuple[str, str, str, str]]:
    for layer in graph.layers:
        node = inference.nodes.get(layer)
        tensors = (node.outputs or map(inference.tensor, layer.inputs)) if node else ()  # a Result gives what it takes
        outputs = ", ".join(_tensor_text(tensor, sizes) for tensor in tensors) if node else "unknown"
        yield f"{indent}{layer.id}", one_line(layer.type), outputs, one_line(layer.name)
        for tag, body in layer.bodies.items():
            yield f"{indent}  {tag}", "", "", ""
            yield from _rows(body.graph, inference, sizes, f"{indent}    ")


def _tensor_text(tensor: Tensor, sizes: _Sizes) -> str:
    shape = "..." if tensor.shape is None else ", ".join(map(sizes.text, tensor.shape))
    text = f"{tensor.type}[{shape}]"
    value = tensor.value
    if value is None or value.ndim > 1 or not 0 < value.size <= _MAX_SHOWN or value.dtype.kind not in "iuO":
        return text
    items = [sizes.text(item) for item in value.ravel().tolist()]
    if all(item.startswith("?") for item in items):
        return text
    return f"{text} = {', '.join(items)}" if value.ndim == 0 else f"{text} = [{', '.join(items)}]"


@dataclass
class _Sizes:
    """How sizes are written in one table: `numbers` has those that have no name or are long arithmetic."""

    numbers: dict[Any, str] = field(default_factory=dict)
    explained: dict[str, str] = field(default_factory=dict)

    def text(self, size: Any) -> str:
        if not isinstance(size, Dim):
            return str(size)
        before = dict(self.numbers)
        atoms: set[Atom] = set()
        text = size.expression(self._name, atoms)
        if text is None:
            self.numbers = before
            text = self._number(size.key)
            formula = size.expression(longest=_LONGEST)
            parts = ([f"= {formula}"] if formula else []) + (
                [f"in {size.bounds}"] if size.high is not None or (size.low or 0) > 1 else []
            )
            if parts:
                self.explained[text] = " ".join(parts)
        for atom in atoms:
            if atom.bounded:
                self.explained[self._name(atom) or ""] = f"in {Dim({(atom,): 1}, atom.low, atom.high).bounds}"
        return text

    def _name(self, atom: Atom) -> str | None:
        if atom.name or isinstance(atom.tag, tuple):
            return atom.name
        return self._number(atom)

    def _number(self, key: Any) -> str:
        return self.numbers.setdefault(key, f"?{len(self.numbers) + 1}")

    def legend(self) -> list[str]:
        return ["", *(f"{name} {what}" for name, what in self.explained.items())] if self.explained else []
