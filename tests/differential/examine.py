"""A case run by every engine, against the reference."""

from __future__ import annotations

import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from differential.compare import explained, wrong
from differential.evaluation import evaluated, excepted
from differential.graph import Array, Case, save

ENGINES = ("numpy", "onednn", "auto once", "auto")


@dataclass(frozen=True)
class Finding:
    """What went wrong: `kind` is the same for what has the same cause, perhaps; `detail` is for people."""

    kind: str
    detail: str = ""


def outputs(item: tuple[Case, str], tell: Callable[[str], object]) -> list[list[Array]]:
    """The outputs of all runs of a case by an engine."""
    import irrun

    case, engine = item
    with tempfile.TemporaryDirectory() as name:
        executor = irrun.GraphExecutor(save(case, Path(name)), engine=engine, threads=case.threads)
        return [list(executor.run(feed).values()) for feed in case.feeds]


Outcome = dict[str, Array] | str
"""The outputs of a run, or the code of the error that it ended with."""


def examine(
    case: Case, engines: Sequence[str] = ENGINES, tell: Callable[[str], object] = lambda _: None
) -> list[Finding]:
    """What goes wrong with a case, under the first engine of which it is true; `tell` is told what is done next."""
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        path = save(case, folder)
        other = folder / "other"
        other.mkdir()
        expected: list[Outcome] = []
        tell("reference")
        findings += _outcomes(case, path, "reference", expected)
        if len(expected) == len(case.feeds):
            findings += _by_kernels(case, expected, other)
            for engine in engines:
                found: list[Outcome] = []
                tell(engine)
                new = _outcomes(case, path, engine, found)
                tell(f"compare {engine}")
                if len(found) == len(expected):
                    new = new + _differences(case, engine, found, expected, other)
                kinds = {finding.kind.partition(": ")[2] for finding in findings}
                findings += [finding for finding in new if finding.kind.partition(": ")[2] not in kinds]
    return findings


def _outcomes(case: Case, path: Path, engine: str, outcomes: list[Outcome]) -> list[Finding]:
    """Run all feeds by an engine, and check that arrays are the caller's own."""
    import irrun

    options: dict[str, Any] = {"once": True} if engine.endswith(" once") else {}
    given: list[tuple[Array, Array]] = []
    findings: dict[str, Finding] = {}

    def note(kind: str, detail: str) -> None:
        findings.setdefault(kind, Finding(f"{engine}: {kind}", detail))

    try:
        executor = irrun.GraphExecutor(path, engine=engine.split()[0], threads=case.threads, **options)
        for number, feed in enumerate(case.feeds):
            own = {name: np.array(array) for name, array in feed.items()}
            try:
                outputs = executor.run(own)
            except irrun.ExecutionError as error:
                outcomes.append(error.diagnostics[0].code)
                if outcomes[-1] == "E602":
                    note("E602", str(error))
                continue
            for name, array in feed.items():
                if not _same(own[name], array):
                    note("changes its input", f"{name} in run {number}")
            arrays = [*own.values(), *(array for array, _ in given)]
            for name, array in outputs.items():
                if any(np.shares_memory(array, other) for other in arrays if array.size):
                    note("shares memory", f"{name} in run {number}")
                arrays.append(array)
            if any(not _same(array, before) for array, before in given):
                note("changes what it handed out", f"in run {number}")
            given += [(array, array.copy()) for array in outputs.values()]
            outcomes.append({name: array.copy() for name, array in outputs.items()})
    except irrun.IRError as error:
        note(f"{error.diagnostics[0].code} before a run", str(error))
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        at = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
        text = "".join(traceback.format_exception(error))[-2500:]
        note(f"{type(error).__name__} in {at}", text)
    return [*findings.values()]


def _same(one: Array, other: Array) -> bool:
    return one.tobytes() == other.tobytes() if one.dtype != object else bool((one == other).all())


def _differences(
    case: Case, engine: str, found: Sequence[Outcome], expected: Sequence[Outcome], folder: Path
) -> list[Finding]:
    """The first difference of each kind."""
    for run, (one, other) in enumerate(zip(found, expected, strict=True)):
        if isinstance(one, str) or isinstance(other, str):
            if isinstance(one, str) and isinstance(other, str) and one == other:
                continue
            texts = [outcome if isinstance(outcome, str) else "outputs" for outcome in (one, other)]
            return [Finding(f"{engine}: {texts[0]} for {texts[1]}", f"in run {run}")]
        if list(one) != list(other):
            return [Finding(f"{engine}: other outputs", f"{list(one)}, expected {list(other)}")]
        for output, name in enumerate(other):
            kind, detail = _difference(one[name], other[name])
            if not kind:
                continue
            if kind == "another shape":
                return [Finding(f"{engine}: {kind}", f"run {run}, output {output} `{name}`: {detail}")]
            if engine in ("onednn", "auto") and excepted(case)[output]:
                continue
            if not explained(case, run, output, one[name], other[name], folder):
                return [Finding(f"{engine}: {kind}", f"run {run}, output {output} `{name}`: {detail}")]
    return []


def _difference(found: Array, expected: Array) -> tuple[str, str]:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        detail = f"{found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}"
        return "another shape", detail
    bad = wrong(found, expected)
    if not bad.any():
        return "", ""
    at = tuple(int(n) for n in np.argwhere(bad)[0])
    kind = "differs"
    if expected.dtype.kind == "f" and np.isfinite(found[bad]).all() != np.isfinite(expected[bad]).all():
        kind = "NaN or inf elsewhere"
    detail = f"{bad.sum()} of {bad.size} elements; at {list(at)} {found[at]!r}, expected {expected[at]!r}"
    return kind, detail


def _by_kernels(case: Case, outcomes: Sequence[Outcome], folder: Path) -> list[Finding]:
    """The reference against the ops' kernels called one by one."""
    for run, (feed, outcome) in enumerate(zip(case.feeds, outcomes, strict=True)):
        try:
            values = evaluated(case, feed)
        except Exception:
            return []
        if isinstance(outcome, str):
            return [Finding(f"reference: {outcome} for outputs", f"in run {run}")]
        layers = case.graph.layers
        refs = [layers[number].inputs[0] for number in case.graph.of_type("Result")]
        for output, (ref, found) in enumerate(zip(refs, outcome.values(), strict=True)):
            assert ref is not None
            kind, detail = _difference(found, values[ref[0]][ref[1]])
            if kind and (kind == "another shape" or not explained(case, run, output, found, found, folder)):
                return [Finding(f"reference: {kind}", f"run {run}, output {output}: {detail}")]
    return []
