"""Candidates on their way through the check: written, looked up, checked within limits, kept where they are better."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from irrun.diagnostics import IRError, counted
from irrun.files import Unwritten
from irrun.ir.graph import Graph, Model
from irrun.ir.writer import write_model
from irrun.records import dataclass
from irrun.run.arrays import write_npz
from irrun.spec.op import Array
from irrun.tools.reduce.journal import Journal, content_hash
from irrun.tools.reduce.outcome import FINE, Check, Outcome

QUIET = ("Parameter", "Const", "Result")
"""Layers that compute nothing, which nobody counts."""

MAX_OTHERS = 20
"""Models with other failures that are kept."""

WORK = "work"
"""The folder inside that of a reduction for the model that is being checked; in the end it is removed."""


class Exhausted(Exception):
    """The checks, or the time, that a reduction may take are used up."""


def computing(graph: Graph) -> int:
    """The layers that compute something, in bodies too."""
    return sum(layer.type not in QUIET for layer in graph.walk())


@dataclass(frozen=True, slots=True)
class Limits:
    """How many checks there may be, and how many seconds these may take together."""

    checks: int = 500
    seconds: float = 3600.0


@dataclass(slots=True)
class Trials:
    """The checks of one reduction. What was smallest among those that fail alike lies in `folder` as min.xml, and fails
    as `kept` says.

    `checks` have been made, `known` were in the journal; `sizes` are the layers of what was kept, one after the other.
    """

    check: Check
    folder: Path
    journal: Journal
    limits: Limits
    tell: Callable[[str], object]
    wanted: Outcome | None = None
    kept: Outcome = FINE
    checks: int = 0
    known: int = 0
    sizes: list[int] = field(default_factory=list)
    others: dict[str, int] = field(default_factory=dict)
    last: Outcome = FINE
    _begin: float = field(default_factory=time.monotonic)
    _like: Callable[[Outcome, Outcome], bool] = Outcome.like

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begin

    @property
    def reached(self) -> str:
        """`567 -> 41 -> 3 layers, 38 checks`."""
        steps = " -> ".join(map(str, self.sizes)) or "0"
        noun = "layer" if self.sizes[-1:] == [1] else "layers"
        return f"{steps} {noun}, {counted(self.checks, 'check')}"

    @property
    def progress(self) -> str:
        """`567 -> 41 -> 3 layers, 38 checks, 52 s`."""
        return f"{self.reached}, {self.seconds:.0f} s"

    def first(self, model: Model, inputs: Mapping[str, Array] | None) -> Outcome:
        """The failure of the whole model, which all others are held against."""
        self.wanted = outcome = self._tried(model, inputs, "whole")
        if outcome.fails:
            self._keep(computing(model.graph), outcome)
        return outcome

    def holds(self, model: Model, inputs: Mapping[str, Array] | None, step: str, wanted: Outcome | None = None) -> bool:
        """Whether a model still fails like the first one, or like the one that is `wanted`; it is kept then.

        Raises Exhausted where there are no checks left.
        """
        assert self.wanted is not None
        goal = wanted or self.wanted
        outcome = self.last = self._tried(model, inputs, step)
        if not outcome.like(goal):
            if outcome.fails:
                self._aside(outcome)
            return False
        self._keep(computing(model.graph), outcome)
        return True

    def _tried(self, model: Model, inputs: Mapping[str, Array] | None, step: str) -> Outcome:
        target = self.folder / WORK
        target.mkdir(exist_ok=True)
        try:
            write_model(model, target / "model.xml")
        except (ValueError, IRError):
            return FINE
        write_npz(target / "inputs.npz", inputs or {})
        hash = content_hash(target / "model.xml", target / "model.bin", target / "inputs.npz")
        found = self.journal.find(hash)
        if found is not None:
            self.known += 1
            return found
        if self.checks >= self.limits.checks or (self.checks and self.seconds > self.limits.seconds):
            raise Exhausted
        self.checks += 1
        count = computing(model.graph)
        self.tell(f"{self.reached}: {step}, {counted(count, 'layer')}")
        self.journal.begin(hash)
        begin = time.monotonic()
        try:
            outcome = self.check(target / "model.xml", target / "inputs.npz")
        except Unwritten:  # which says nothing of the model
            self.journal.leave(hash)
            raise
        self.journal.end(hash, outcome, count, step, time.monotonic() - begin)
        return outcome

    def _keep(self, layers: int, outcome: Outcome) -> None:
        self.kept = outcome
        work = self.folder / WORK
        for source, target in (("model.bin", "min.bin"), ("model.xml", "min.xml"), ("inputs.npz", "inputs.npz")):
            (work / source).replace(self.folder / target)
        if not self.sizes or layers < self.sizes[-1]:
            self.sizes.append(layers)

    def _aside(self, outcome: Outcome) -> None:
        """Keep the first model of each other failure."""
        self.others[outcome.kind] = self.others.get(outcome.kind, 0) + 1
        if self.others[outcome.kind] > 1 or len(self.others) > MAX_OTHERS:
            return
        target = self.folder / "interesting" / str(len(self.others))
        shutil.copytree(self.folder / WORK, target, dirs_exist_ok=True)
        (target / "failure.txt").write_text(f"{outcome.kind}\n{outcome.detail}\n", encoding="utf-8")
