"""Where the time of a run goes: how long each layer takes, what computes it, and how fast that is."""

from __future__ import annotations

import json
from dataclasses import field
from typing import TYPE_CHECKING

from irrun.check.render.text import cells, one_line, padded
from irrun.records import dataclass
from irrun.run.internal_ops import REORDER
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Products

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from irrun.run.program import Instruction, Program

_WIDEST = 44
"""Columns that a name or a shape is padded to at most."""


@dataclass(slots=True)
class Entry:
    """Layers that are computed together, by the engine `by`: `seconds` of all their `calls`, and how many of both were
    in the first run, which prepares what others find: `early` calls in `first` seconds."""

    name: str
    type: str
    shape: str
    by: str
    operations: int
    calls: int = 0
    seconds: float = 0.0
    early: int = 0
    first: float = 0.0


@dataclass(slots=True)
class Profile:
    """What `GraphExecutor.run(..., profile=profile)` takes down, over as many runs as one likes.

    `runs` is how many have begun. `entries` are in the order of the first run; `events` are (entry, begin, seconds) by
    a clock that only runs forward.
    """

    runs: int = 0
    entries: dict[object, Entry] = field(default_factory=dict)
    events: list[tuple[Entry, float, float]] = field(default_factory=list)

    def add(self, program: Program, instruction: Instruction, by: str, begin: float, seconds: float) -> None:
        key = (by, *(part.layer for part in instruction.parts), *instruction.results)
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = _entry(program, instruction, by)
        entry.calls += 1
        entry.seconds += seconds
        if self.runs < 2:
            entry.early += 1
            entry.first += seconds
        self.events.append((entry, begin, seconds))

    def begin(self) -> None:
        """Another run begins."""
        self.runs += 1

    def later(self, entry: Entry) -> float:
        """Seconds that layers take in a run: in those after the first one on average, if there are any."""
        return (entry.seconds - entry.first) / (self.runs - 1) if self.runs > 1 else entry.first

    def _calls(self, entry: Entry) -> int:
        """How many calls `later` is of."""
        return entry.calls - entry.early if self.runs > 1 else entry.early

    def __post_init__(self) -> None:
        import scipy.fft
        import scipy.special  # noqa: F401, which kernels import when they are first called: that is nobody's time

    def table(self) -> str:
        """A line for each layer or chain of layers, in the order of the run, and the sums for each op and engine.

        Times are milliseconds of a run: of the first one, and of later ones on average, of which shares and rates are.
        They are empty where a layer was not computed so in the first run, or in none of the later ones.
        """
        total = sum(map(self.later, self.entries.values())) or 1.0
        rows = [("layer", "type", "shape", "engine", "calls", "first", "ms", "share", "GFLOP/s")]
        sums: dict[tuple[str, str], list[float]] = {}
        for entry in self.entries.values():
            later, calls = self.later(entry), self._calls(entry)
            speed = entry.operations * calls / max(1, self.runs - 1) / later / 1e9 if later else 0.0
            first = _milliseconds(entry.first) if entry.early else ""
            times = (_milliseconds(later), f"{later / total:.1%}", f"{speed:#.3g}" if speed else "")
            told = times if calls else ("", "", "")
            rows.append(
                (one_line(entry.name), one_line(entry.type), entry.shape, entry.by, str(entry.calls), first, *told)
            )
            part = sums.setdefault((entry.type.partition(" ")[0], entry.by), [0, 0.0, 0.0])
            for position, value in enumerate((1, entry.first, later)):
                part[position] += value
        first = _milliseconds(sum(entry.first for entry in self.entries.values()))
        ends = (first, _milliseconds(sum(map(self.later, self.entries.values()))), "100.0%")
        rows.append(("total", "", "", "", "", *ends, ""))
        heads = [("type", "engine", "layers", "first", "ms", "share")]
        for (type, by), (count, early, time) in sorted(sums.items(), key=lambda item: -item[1][2]):
            heads.append((type, by, f"{count:.0f}", _milliseconds(early), _milliseconds(time), f"{time / total:.1%}"))
        heads.append(("total", "", str(len(self.entries)), *ends))
        return "\n".join([*_columns(rows), "", *_columns(heads), ""])

    def trace(self) -> str:
        """The events as JSON that chrome://tracing and Perfetto show; times in microseconds."""
        start = self.events[0][1] if self.events else 0.0
        events = [
            {
                "name": entry.name,
                "cat": entry.by,
                "ph": "X",
                "ts": round((begin - start) * 1e6, 3),
                "dur": round(seconds * 1e6, 3),
                "pid": 1,
                "tid": 1,
                "args": {"type": entry.type, "shape": entry.shape, "engine": entry.by},
            }
            for entry, begin, seconds in self.events
        ]
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _entry(program: Program, instruction: Instruction, by: str) -> Entry:
    results = [program.tensors[number] for number in instruction.results[:2]]
    return Entry(
        _name(instruction),
        " + ".join(part.op.type for part in instruction.parts),
        ", ".join(f"{tensor.type}{shape_text(tensor.shape)}" for tensor in results),
        by,
        operations(program, instruction),
    )


def _name(instruction: Instruction) -> str:
    if instruction.op is REORDER:
        return "(reorder)"
    return "(convert)" if all(part.ports == () for part in instruction.parts) else instruction.layer.name


def operations(program: Program, instruction: Instruction) -> int:
    """The multiplications and additions of products of matrices and convolutions; 0 for ops that are not made of them.

    Those of sizes that only the run knows count nothing.
    """
    products = instruction.op.trait(Products)
    if products is None:
        return 0
    inputs = [program.tensors[number] for number in instruction.inputs[:2] if number is not None]
    return products.known(inputs, instruction.attrs, program.tensors[instruction.outputs[0]])


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of columns; those of numbers, which all but the first four are, are flush right."""
    rows = [[_cut(cell, _WIDEST) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    numeric = [all(row[column][:1].isdigit() or not row[column] for row in rows[1:]) for column in range(len(widths))]
    for row in rows:
        yield "  ".join(map(padded, row, widths, numeric)).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
