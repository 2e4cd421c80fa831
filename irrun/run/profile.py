"""Where the time of a run goes: how long each layer takes, what computes it, and how fast that is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from irrun.spec.patterns import shape_text
from irrun.spec.traits import Products

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from irrun.run.plan import Step
    from irrun.run.program import Unit
    from irrun.spec.dims import Shape

_WIDEST = 44
"""Columns that a name or a shape is padded to at most."""


@dataclass(slots=True)
class Entry:
    """Layers that are computed together: `seconds` of all their `calls`."""

    unit: Unit
    calls: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Profile:
    """What `GraphExecutor.run(..., profile=profile)` takes down, over as many runs as one likes.

    `entries` are in the order of the first run; `events` are (unit, begin, seconds) by a clock that only runs forward.
    """

    entries: dict[object, Entry] = field(default_factory=dict)
    events: list[tuple[Unit, float, float]] = field(default_factory=list)

    def add(self, unit: Unit, begin: float, seconds: float) -> None:
        key = (unit.by, *(step.node.layer for step in unit.steps), *unit.outputs)
        entry = self.entries.setdefault(key, Entry(unit))
        entry.calls += 1
        entry.seconds += seconds
        self.events.append((unit, begin, seconds))

    def table(self) -> str:
        """A line for each layer or chain of layers, in the order of the run, and the sums for each op and engine."""
        total = sum(entry.seconds for entry in self.entries.values()) or 1.0
        rows = [("layer", "type", "shape", "engine", "calls", "ms", "share", "GFLOP/s")]
        sums: dict[tuple[str, str], list[float]] = {}
        for entry in self.entries.values():
            unit, mean = entry.unit, entry.seconds / entry.calls
            rate = f"{operations(unit.steps) / mean / 1e9:#.3g}" if mean and operations(unit.steps) else ""
            share = f"{entry.seconds / total:.1%}"
            rows.append(
                (_name(unit), _type(unit), _shape(unit), unit.by, str(entry.calls), f"{mean * 1e3:.3f}", share, rate)
            )
            part = sums.setdefault((_type(unit).partition(" ")[0], unit.by), [0, 0.0])
            part[0] += entry.calls
            part[1] += entry.seconds
        lines = list(_aligned(rows))
        heads = [("type", "engine", "calls", "ms", "share")]
        for (type, by), (calls, seconds) in sorted(sums.items(), key=lambda item: -item[1][1]):
            heads.append((type, by, f"{calls:.0f}", f"{seconds * 1e3:.3f}", f"{seconds / total:.1%}"))
        return "\n".join([*lines, "", *_aligned(heads), ""])

    def trace(self) -> str:
        """The events as JSON that chrome://tracing and Perfetto show; times in microseconds."""
        start = self.events[0][1] if self.events else 0.0
        events = [
            {
                "name": _name(unit),
                "cat": unit.by,
                "ph": "X",
                "ts": round((begin - start) * 1e6, 3),
                "dur": round(seconds * 1e6, 3),
                "pid": 1,
                "tid": 1,
                "args": {"type": _type(unit), "shape": _shape(unit), "engine": unit.by},
            }
            for unit, begin, seconds in self.events
        ]
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def operations(steps: Sequence[Step]) -> int:
    """The multiplications and additions of products of matrices and convolutions; 0 for ops that are not made of them.

    Those of sizes that are not known, as in a graph that is run layer by layer for the first time, count nothing.
    """
    products = steps[0].node.op.trait(Products) if steps else None
    if products is None:
        return 0
    node = steps[0].node
    shapes = [_static(shape) for shape in (*steps[0].shapes[:2], node.outputs[0].shape)]
    known = [shape for shape in shapes if shape is not None]
    return products.count(known[:-1], node.attrs, known[-1]) if len(known) == len(shapes) else 0


def _static(shape: Shape | None) -> tuple[int, ...] | None:
    return shape if shape is not None and all(isinstance(size, int) for size in shape) else None  # type: ignore[return-value]


def _name(unit: Unit) -> str:
    return unit.steps[0].node.layer.name if unit.steps else "(reorder)"


def _type(unit: Unit) -> str:
    return " + ".join(step.node.op.type for step in unit.steps) or "Reorder"


def _shape(unit: Unit) -> str:
    outputs = unit.steps[-1].node.outputs if unit.steps else ()
    return ", ".join(f"{tensor.type}{shape_text(tensor.shape)}" for tensor in outputs[:2])


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of columns; those of numbers, which all but the first four are, are flush right."""
    widths = [min(_WIDEST, max(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    numeric = [all(row[column][:1].isdigit() or not row[column] for row in rows[1:]) for column in range(len(widths))]
    for row in rows:
        cells = [_cut(cell, width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
