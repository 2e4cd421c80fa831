"""What a comparison has found: of outputs, of tensors on the way, and of the layer where it begins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from irrun.check.validate import Report
from irrun.diagnostics import Diagnostic, LayerName, Note, Span
from irrun.records import dataclass
from irrun.tools.compare.metrics import Metrics, plain
from irrun.tools.compare.tolerances import Tolerance

SCHEMA = 1
"""Raised when an entry of `Comparison.to_dict` changes its meaning or goes; new ones may come at any time."""

MAX_EXPONENT = 300
"""Of a ratio that is told in decibels; a larger one is infinite."""


@dataclass(frozen=True, slots=True)
class Where:
    """A run: the name of its inputs, and its number among those that follow one another, from 0."""

    inputs: str
    step: int = 0

    def __str__(self) -> str:
        return f"{self.inputs}, step {self.step}" if self.step else self.inputs


@dataclass(frozen=True, slots=True)
class Measured:
    """How far a tensor is off in one run, beside what it may be."""

    where: Where
    metrics: Metrics
    tolerance: Tolerance

    @property
    def holds(self) -> bool:
        return self.metrics.within(self.tolerance)

    @property
    def rank(self) -> tuple[bool, float]:
        """What makes one worse than another: whether it fails, and by how much."""
        return not self.holds, math.inf if self.metrics.nonfinite_differing else self.share

    @property
    def share(self) -> float:
        """What part of the tolerance all that is finite takes: more than 1 where that is beyond it."""
        metrics, tolerance = self.metrics, self.tolerance
        if tolerance.sqnr is None or not metrics.comparable:
            return metrics.needed_factor
        beyond = (tolerance.sqnr - metrics.sqnr) / 20
        noise = math.inf if beyond > MAX_EXPONENT else 10**beyond
        return noise if tolerance.outliers >= 1 else max(noise, metrics.needed_factor)


@dataclass(frozen=True, slots=True)
class Cache:
    """What the other side keeps what attention has seen of earlier steps in: a `type`, and the `setting` that makes f32
    of it; how far an output is off with that."""

    type: str
    setting: str
    without: Measured

    @property
    def explains(self) -> bool:
        """Whether the output is right then."""
        return self.without.holds


@dataclass(frozen=True, slots=True)
class OutputResult:
    """An output beside that of the other side, where it is the worst of `runs` runs, of which `differing` fail.

    `layer` is its Result. `precise` is the same run with the other side at full precision, where it has that. `cache`
    is the same run with nothing changed but that what attention has seen is kept in f32, where that is kept in fewer
    bits.
    """

    name: str
    layer: LayerName
    span: Span
    worst: Measured
    runs: int
    differing: int
    precise: Measured | None = None
    cache: Cache | None = None

    @property
    def agrees(self) -> bool:
        return not self.differing


@dataclass(frozen=True, slots=True)
class TensorResult:
    """A tensor beside that of the other side, where it is the worst of `runs` runs, of which `differing` fail.

    `own` is what its layer makes of the inputs that the other side gave it, against the same by the kernel of the op;
    `accumulated` is what has come together from the inputs of the model on. `precision`, `primitive` and `fused` are
    how the other side computes the layer, as far as it says so. `cause` is told of the first ones that fail.

    `between` are the names of layers before it of which the other side has shown nothing. Then `own` is what they make
    together, against the same by the kernels of their ops; where these do more than move elements it may be as far off
    as an output may, and it is judged as the `output` that it is, if it is one.
    """

    key: str
    order: int
    layer: LayerName
    span: Span
    port: int
    own: Measured
    accumulated: Measured | None
    runs: int
    differing: int
    precision: str | None = None
    primitive: str | None = None
    fused: tuple[str, ...] = ()
    cause: str | None = None
    between: tuple[str, ...] = ()
    output: str | None = None

    @property
    def agrees(self) -> bool:
        return not self.differing

    @property
    def others(self) -> str:
        """The layers `between`, as a message has them."""
        if len(self.between) == 1:
            return f"`{self.between[0]}` before it"
        return f"one of the {len(self.between):,} layers before it, from `{self.between[0]}` on"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A model beside another side. `tensors` are in the order in which they are computed.

    It `agrees` where all outputs do, and no layer does what its precision does not explain. `first` is where the first
    one stands. `diagnostics` say all that in words; `watching` is by what part of their rms outputs have changed
    because somebody looked at tensors, None where they have not; `untapped` are tensors that could not be looked at,
    with the reason, and `unknown` the names of arrays of the other side that are nothing of the model. Where it keeps
    what attention has seen in few bits, `setting` is what it was given to look at tensors without that. `digest` is the
    SHA-256 of the .xml file.

    `str(comparison)` is what `irrun compare` prints.
    """

    model: Path
    other: str
    outputs: Sequence[OutputResult]
    tensors: Sequence[TensorResult]
    diagnostics: Sequence[Diagnostic]
    watching: float | None = None
    untapped: Mapping[str, str] = field(default_factory=dict)
    unknown: Sequence[str] = ()
    setting: str | None = None
    digest: str | None = None

    @property
    def agrees(self) -> bool:
        return not any(found.severity == "error" for found in self.diagnostics)

    @property
    def first(self) -> TensorResult | None:
        """The first tensor whose layer does what its precision does not explain."""
        return next((result for result in self.tensors if not result.agrees), None)

    @property
    def cause(self) -> str | None:
        """The code of what is wrong first, such as "N201"; None where nothing is."""
        return next((found.code for found in self.diagnostics if found.severity == "error"), None)

    @property
    def report(self) -> Report:
        """The diagnostics as a report, in any form that `irrun validate` knows."""
        return Report(self.model, list(self.diagnostics))

    def table(self, top: int | None = None) -> str:
        """The outputs, and the tensors on the way, `top` of these where there are more; those that fail always."""
        from irrun.tools.compare.table import table

        return table(self, top)

    def __str__(self) -> str:
        from irrun.tools.compare.table import text

        return text(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it, for `from_dict`, and for `irrun compare --recheck`."""
        return {
            "irrun-compare": SCHEMA,
            "model": str(self.model),
            "sha256": self.digest,
            "other": self.other,
            "agrees": self.agrees,
            "outputs": [_of_output(result) for result in self.outputs],
            "tensors": [_of_tensor(result) for result in self.tensors],
            "diagnostics": [asdict(found) for found in self.diagnostics],
            "watching": plain(self.watching),
            "untapped": dict(self.untapped),
            "unknown": list(self.unknown),
            "setting": self.setting,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Comparison:
        """What `to_dict` gave, or JSON of that. Raises ValueError for anything else."""
        if not isinstance(given, Mapping) or given.get("irrun-compare") != SCHEMA:
            raise ValueError(f"it is no comparison of the form {SCHEMA} that `irrun compare -o` writes")
        try:
            return cls(
                Path(given["model"]),
                given["other"],
                [_output(entry) for entry in given["outputs"]],
                [_tensor(entry) for entry in given["tensors"]],
                [_diagnostic(entry) for entry in given["diagnostics"]],
                None if given["watching"] is None else float(given["watching"]),
                given["untapped"],
                given.get("unknown", ()),
                given.get("setting"),
                given.get("sha256"),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"it is a comparison that somebody has changed: {error}") from None


def _of_measured(measured: Measured | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    tolerance = {name: plain(value) for name, value in asdict(measured.tolerance).items()}
    return {"where": asdict(measured.where), "metrics": measured.metrics.to_dict(), "tolerance": tolerance}


def _measured(given: Mapping[str, Any]) -> Measured:
    tolerance: dict[str, Any] = {
        name: None if value is None else float(value) for name, value in given["tolerance"].items()
    }
    return Measured(Where(**given["where"]), Metrics.from_dict(given["metrics"]), Tolerance(**tolerance))


def _optional(given: Mapping[str, Any] | None) -> Measured | None:
    return None if given is None else _measured(given)


def _of_output(result: OutputResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "layer": asdict(result.layer),
        "span": asdict(result.span),
        "agrees": result.agrees,
        "worst": _of_measured(result.worst),
        "runs": result.runs,
        "differing": result.differing,
        "precise": _of_measured(result.precise),
        "cache": None if result.cache is None else _of_cache(result.cache),
    }


def _output(given: Mapping[str, Any]) -> OutputResult:
    worst, precise = _measured(given["worst"]), _optional(given["precise"])
    layer, span = LayerName(**given["layer"]), Span(**given["span"])
    cache = given.get("cache")
    kept = None if cache is None else Cache(cache["type"], cache["setting"], _measured(cache["without"]))
    return OutputResult(given["name"], layer, span, worst, given["runs"], given["differing"], precise, kept)


def _of_cache(cache: Cache) -> dict[str, Any]:
    return {"type": cache.type, "setting": cache.setting, "without": _of_measured(cache.without)}


def _of_tensor(result: TensorResult) -> dict[str, Any]:
    return {
        "key": result.key,
        "order": result.order,
        "layer": asdict(result.layer),
        "span": asdict(result.span),
        "port": result.port,
        "agrees": result.agrees,
        "own": _of_measured(result.own),
        "accumulated": _of_measured(result.accumulated),
        "runs": result.runs,
        "differing": result.differing,
        "precision": result.precision,
        "primitive": result.primitive,
        "fused": list(result.fused),
        "cause": result.cause,
        "between": list(result.between),
        "output": result.output,
    }


def _tensor(given: Mapping[str, Any]) -> TensorResult:
    return TensorResult(
        given["key"],
        given["order"],
        LayerName(**given["layer"]),
        Span(**given["span"]),
        given["port"],
        _measured(given["own"]),
        _optional(given["accumulated"]),
        given["runs"],
        given["differing"],
        given["precision"],
        given["primitive"],
        tuple(given["fused"]),
        given["cause"],
        tuple(given.get("between", ())),
        given.get("output"),
    )


def _diagnostic(given: Mapping[str, Any]) -> Diagnostic:
    notes = tuple(Note(**{**note, "span": _span(note["span"])}) for note in given["notes"])
    layer = None if given["layer"] is None else LayerName(**given["layer"])
    return Diagnostic(**{**given, "span": _span(given["span"]), "layer": layer, "notes": notes, "fixes": ()})


def _span(given: Mapping[str, int] | None) -> Span | None:
    return None if given is None else Span(**given)
