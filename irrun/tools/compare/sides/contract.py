"""What the other side of a comparison is: what may be asked of it, what it answers, and how it fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from irrun.diagnostics import Diagnostic, IRError, LayerName, Note, Span, clipped
from irrun.ir.graph import Layer
from irrun.records import dataclass
from irrun.spec.op import Array

PHASES = {
    "start": "starting",
    "import": "being imported",
    "device": "looking for the device",
    "read": "reading the model",
    "compile": "compiling the model",
    "tap": "adding outputs to the model",
    "run": "running the model",
}
"""What a side does, one after the other, as it reads in a message."""

LONGEST_REASON = 1500
"""Characters of what a side says of its failure."""

Steps = Sequence[Mapping[str, Array]]
"""Inputs of runs that are done one after the other, from a fresh state on."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a side is opened. What does not concern it is left aside.

    `config` are settings of a device, as texts. A call of another process may take `timeout` seconds, and of what is
    watched there no more than `max_bytes` bytes are computed at once. `engine`, `precision` and `threads` are irrun's,
    where it is the other side as well; without a precision another model is computed in f32, where it declares f16 or
    bf16, too.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 600.0
    max_bytes: int = 2 << 30
    engine: str = "reference"
    precision: str | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Runtime:
    """How the other side computes one layer of our model.

    `precision` is an element type name ("bf16"), `primitive` what it calls the code that does it, `fused` the names of
    all layers that are computed in the same step.
    """

    precision: str | None
    primitive: str | None = None
    fused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What another model has otherwise, in words.

    `constant` says that it is the value of one, `quantizes` that it rounds to a grid. `outside` is the constant that it
    is, where that comes into a body from there.
    """

    text: str
    constant: bool = False
    quantizes: bool = False
    outside: Layer | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What the other side made of one set of inputs.

    `outputs` go by the keys of our results, `tensors` by `layer:port` of ours, as `irrun.Event.name` has it; both are
    read when they are asked for, which has to be before the side is closed. `seconds` is what the run took. Where it
    took several runs to watch all tensors, `repeats` are the outputs of the others: watching has changed nothing only
    if all of them are as without. Then `runs` has the number of the run that each tensor is of.
    """

    outputs: Mapping[str, Array]
    tensors: Mapping[str, Array]
    seconds: float
    repeats: tuple[Mapping[str, Array], ...] = ()
    runs: Mapping[str, int] = field(default_factory=dict)


class Side(Protocol):
    """The other side of a comparison. Calls raise SideFailed, InputError where inputs do not fit, and ValueError for a
    key that is no tensor of ours.

    `kind` says what it is: "device", "model", "recorded" or "engine"; `untapped` why tensors cannot be watched, by key,
    as far as that is known from what was observed.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def precision(self) -> str | None:
        """The type that floats are computed in where `runtime` does not tell; None where that is not known."""
        ...

    @property
    def untapped(self) -> Mapping[str, str]: ...

    def outputs(self, steps: Steps) -> list[Mapping[str, Array]]:
        """The outputs of each step, by the keys of our results."""
        ...

    def observe(self, steps: Steps, keys: Collection[str] | None = None) -> list[Observation]:
        """The tensors of these keys, or all that can be watched, of each step."""
        ...

    def cut(self, steps: Steps, keys: Collection[str]) -> list[Mapping[str, Array]]:
        """The tensors of each step, each as the output of a model that ends there, so that nothing else is watched."""
        ...

    def runtime(self) -> Mapping[str, Runtime]:
        """How each layer is computed, by its name, as far as that is known."""
        ...

    def precise(self) -> Side | None:
        """The same side at full precision; None where it has no other one. It ends with this one."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Stepwise(Protocol):
    """A side whose steps are there already, in an order of their own."""

    def part(self, begin: int, count: int) -> Side:
        """So many of the steps, from one on. Raises InputError where there are not as many."""
        ...


@runtime_checkable
class Naming(Protocol):
    """A side whose arrays go by names that people have given them."""

    @property
    def unknown(self) -> Collection[str]:
        """The names of arrays that are nothing of our model."""
        ...


@runtime_checkable
class Weighing(Protocol):
    """A side that is a model with constants of its own."""

    def weights(self, steps: Steps, keys: Collection[str]) -> Mapping[str, Mapping[int, Array]]:
        """What the layers of these tensors read of its constants, by the number of the input."""
        ...


@runtime_checkable
class Changed(Protocol):
    """A side that is a model of which is known what it has otherwise than ours."""

    def changes(self) -> Mapping[Layer, Sequence[Change]]:
        """What is otherwise, by the layers of ours that compute with it."""
        ...


@runtime_checkable
class Alike(Protocol):
    """A side that irrun computes."""

    @property
    def rounds_alike(self) -> bool:
        """Whether kernels and grids are those of our own run, so that rounding tips no number to another step."""
        ...


@runtime_checkable
class Steady(Protocol):
    """A side that may be known to give the same whenever it is asked, so that it need not run again to tell."""

    @property
    def steady(self) -> bool: ...


def may_vary(side: Side) -> bool:
    """Whether a side may give something else for the same inputs."""
    return side.kind in ("device", "model") and not (isinstance(side, Steady) and side.steady)


@runtime_checkable
class Caching(Protocol):
    """A side that may keep what attention has seen of earlier steps in another type than it computes in."""

    def cached_in(self) -> tuple[str, str] | None:
        """That type, and the setting that makes f32 of it; None where it is as precise, or not known."""
        ...

    def uncompressed(self) -> Side:
        """The same side with this in f32. It ends with this one."""
        ...


class SideFailed(Exception):
    """The other side could not do what it was asked for: it said so, crashed, or took too long.

    `phase` is one of PHASES, `signal` what ended its process ("SIGSEGV"), `said` the last lines that it wrote. Where it
    names a layer of our model, that is `layer`, at `span` of our file; where the side is a model of its own both are of
    its `file`. `known` is what is known of the device and fits.
    Another call may be tried.
    """

    def __init__(
        self,
        side: str,
        phase: str,
        reason: str,
        said: tuple[str, ...] = (),
        signal: str | None = None,
        layer: LayerName | None = None,
        span: Span | None = None,
        help: str | None = None,
        known: tuple[str, ...] = (),
        file: str | None = None,
    ) -> None:
        super().__init__(side, phase, reason, said, signal, layer, span, help, known, file)
        self.side, self.phase, self.reason, self.said = side, phase, clipped(reason, LONGEST_REASON), said
        self.signal, self.layer, self.span, self.help, self.known, self.file = signal, layer, span, help, known, file

    @classmethod
    def of_model(cls, side: str, phase: str, error: IRError) -> SideFailed:
        """What is wrong with the model that a side is, at its place in that one's file."""
        first = error.diagnostics[0]
        return cls(side, phase, str(error), layer=first.layer, span=first.span, file=first.file)

    def __str__(self) -> str:
        lines = [f"{self.side} failed while {PHASES.get(self.phase, self.phase)}: {self.reason}"]
        if self.layer is not None:
            lines.append(f"note: it names layer {self.layer}{f' at line {self.span.line}' if self.span else ''}")
        lines += [f"note: {text}" for text in self.known]
        lines += [f"note: it wrote: {clipped(line, 300)}" for line in self.said]
        return "\n  ".join([*lines, *([f"help: {self.help}"] if self.help else [])])

    def diagnostic(self, path: Path) -> Diagnostic:
        """The failure at the line of the layer that it names, in the file of the model, or of the side's own."""
        reason, *further = self.reason.split("\n")
        further = [line.strip().removeprefix("note: ") for line in further if line.strip()]
        written = [f"it wrote: {clipped(line, 300)}" for line in self.said]
        notes = tuple(Note(text) for text in (*further, *self.known, *written))
        message = f"{self.side} failed while {PHASES.get(self.phase, self.phase)}: {reason}"
        return Diagnostic("E701", message, self.span, self.layer, self.help, notes, file=self.file or str(path))

    def placed(self, layer: Any) -> SideFailed:
        """The same failure, of which is known that it names a layer of our model."""
        return SideFailed(
            self.side, self.phase, self.reason, self.said, self.signal, layer.label, layer.span, self.help, self.known
        )

    def knowing(self, known: tuple[str, ...]) -> SideFailed:
        """The same failure, with what is known of the device and fits."""
        return SideFailed(
            self.side,
            self.phase,
            self.reason,
            self.said,
            self.signal,
            self.layer,
            self.span,
            self.help,
            known,
            self.file,
        )
