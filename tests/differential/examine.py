"""A case run by every engine, against the reference."""

from __future__ import annotations

import logging
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from differential.compare import STEPS, explained, wrong
from differential.evaluation import evaluated, excepted
from differential.graph import Array, Body, Case, Feed, save

ENGINES = ("numpy", "onednn")

WAYS = (
    "auto once",
    "auto",
    "check",
    "onednn observed",
    "numpy observed",
    "onednn at once",
    "numpy at once",
    "numpy sessions",
)

"""Other ways to run a case, each tried with some of them: with an observer, in several threads at the same time."""


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
        executor = irrun.GraphExecutor(
            save(case, Path(name)), engine=engine, threads=case.threads, precision="declared"
        )
        return [list(executor.run(feed).values()) for feed in case.feeds]


MAX_LOOKS = 3
"""Runs of which the differences of an output are looked at again, which takes long."""

FAULTS = ("E602", "E604")
"""Codes that say that an engine, or a kernel, is at fault."""

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
    from differential.sealing import weights_sealed
    from irrun.run import preparation, specialization

    # all of these models are small, and run a few times only
    small = patch.multiple(specialization, MAX_SMALL=0, MAX_SINGLE=0)
    with small, patch.object(preparation, "MORE_PATIENCE", preparation.PATIENCE), weights_sealed():
        return _run(case, path, engine, outcomes)


def _run(case: Case, path: Path, engine: str, outcomes: list[Outcome]) -> list[Finding]:
    import irrun

    name, _, way = engine.partition(" ")
    findings: dict[str, Finding] = {}
    notes: list[str] = []

    def note(kind: str, detail: str) -> None:
        findings.setdefault(kind, Finding(f"{engine}: {kind}", detail))

    handler = logging.Handler()
    handler.emit = lambda record: notes.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("irrun")
    logger.addHandler(handler)
    try:
        executor = irrun.GraphExecutor(
            path, engine=name, threads=case.threads, once=way == "once", precision="declared"
        )
        options = {"observer": lambda event: None} if way == "observed" else {}
        run = partial(executor.run, **options)
        if way == "sessions":
            _in_two_sessions(case, executor, note, outcomes)
        elif way == "at once" and not any(layer.type == "Assign" for layer in case.graph.walk()):
            with ThreadPoolExecutor(3) as pool:
                outcomes += list(pool.map(partial(_outcome, run, note), case.feeds))
        else:
            _one_by_one(case, run, note, outcomes)
    except irrun.IRError as error:
        note(f"{error.diagnostics[0].code} before a run", str(error))
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        at = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
        text = "".join(traceback.format_exception(error))[-2500:]
        note(f"{type(error).__name__} in {at}", text)
    finally:
        logger.removeHandler(handler)
    if "E604" in findings and any(layer.type in STEPS for layer in case.graph.walk()):
        del findings["E604"]  # what is computed together is compared at its end, which a step makes much of
    if notes:
        note("passed over", notes[0])
    return [*findings.values()]


Note = Callable[[str, str], object]


def _outcome(run: Callable[..., dict[str, Array]], note: Note, feed: Feed) -> Outcome:
    import irrun

    own = {name: np.array(array) for name, array in feed.items()}
    try:
        outputs = run(own)
    except irrun.ExecutionError as error:
        code = error.diagnostics[0].code
        if code in FAULTS:
            note(code, str(error))
        return code
    for name, array in feed.items():
        if not _same(own[name], array):
            note("changes its input", name)
    arrays = [*own.values()]
    for name, array in outputs.items():
        if any(np.shares_memory(array, other) for other in arrays if array.size):
            note("shares memory", name)
        arrays.append(array)
    return outputs


def _one_by_one(case: Case, run: Callable[..., dict[str, Array]], note: Note, outcomes: list[Outcome]) -> None:
    """Runs behind each other; none of them may change what those before it gave."""
    given: list[tuple[Array, Array]] = []
    for feed in case.feeds:
        outcome = _outcome(run, note, feed)
        if not isinstance(outcome, str):
            if any(np.shares_memory(array, old) for array in outcome.values() for old, _ in given if array.size):
                note("shares memory", "with what an earlier run gave")
            if any(not _same(array, before) for array, before in given):
                note("changes what it handed out", "")
            given += [(array, array.copy()) for array in outcome.values()]
            outcome = {name: array.copy() for name, array in outcome.items()}
        outcomes.append(outcome)


def _in_two_sessions(case: Case, executor: Any, note: Note, outcomes: list[Outcome]) -> None:
    """Each run in two sessions, whose variables are no business of each other or of the executor."""
    sessions = [executor.session(), executor.session()]
    # what comes behind a size that data tell is computed together from the second time on, and may be rounded otherwise
    rounded = case.kind == "dependent" or _branches_apart(case)
    for feed in case.feeds:
        # so are small inputs of other sizes than those that came first, which have a program at once
        alike = _rounded_alike if rounded or _sizes(feed) != _sizes(case.feeds[0]) else _same
        first, second = (_outcome(session.run, note, feed) for session in sessions)
        if isinstance(first, str) or isinstance(second, str):
            if not (isinstance(first, str) and isinstance(second, str) and first == second):
                note("differs between sessions", f"{first}, {second}"[:300])
        elif any(not alike(one, other) for one, other in zip(first.values(), second.values(), strict=True)):
            note("differs between sessions", "")
        outcomes.append(first)


def _sizes(feed: Feed) -> list[tuple[int, ...]]:
    return [array.shape for array in feed.values()]


def _branches_apart(case: Case) -> bool:
    """Whether an If has branches that give other shapes, so that its condition tells that of its result."""

    def given(body: Body) -> list[object]:
        layers = body.graph.layers
        refs = [layers[layer].inputs[0] for layer in body.graph.of_type("Result")]
        return [ref and layers[ref[0]].outputs[ref[1]] for ref in refs]

    bodies = [list(layer.bodies.values()) for layer in case.graph.walk() if layer.type == "If"]
    return any(given(branch) != given(other) for branch, other in bodies)


def _same(one: Array, other: Array) -> bool:
    return one.tobytes() == other.tobytes()


def _rounded_alike(one: Array, other: Array) -> bool:
    return one.shape == other.shape and not wrong(one, other).any()


def _differences(
    case: Case, engine: str, found: Sequence[Outcome], expected: Sequence[Outcome], folder: Path
) -> list[Finding]:
    """The first difference that rounding does not explain."""
    seen: Counter[int] = Counter()
    for run, (one, other) in enumerate(zip(found, expected, strict=True)):
        if isinstance(one, str) and one in FAULTS:
            continue
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
            if not engine.startswith("numpy") and excepted(case)[output]:
                continue
            seen[output] += 1
            if seen[output] <= MAX_LOOKS and not explained(case, run, output, one[name], other[name], folder):
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
    if any(layer.type == "Assign" for layer in case.graph.walk()):
        return []
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
