"""From a model that fails to the smallest one that fails alike: the flow of a reduction."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from irrun.ir.document import xml_text
from irrun.ir.graph import Model
from irrun.records import dataclass
from irrun.spec.op import Array
from irrun.tools.reduce.journal import Journal, content_hash
from irrun.tools.reduce.layers import Subject, fewer_layers, inside_bodies
from irrun.tools.reduce.outcome import NOT_MADE, Check, Outcome
from irrun.tools.reduce.report import write_report
from irrun.tools.reduce.sizes import smaller_sizes
from irrun.tools.reduce.trials import WORK, Exhausted, Limits, Trials
from irrun.tools.reduce.values import simpler_values

MAX_DEPTH = 32
"""Bodies in each other that are gone into."""

FILES = ("min.xml", "min.bin", "inputs.npz", "expected.npz", "repro.py", "REPORT.md", "reduce.jsonl")
"""What a reduction writes to its folder, beside folders of its own."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """What was found: the failure of the smallest model, layers of those on the way, and how many checks and seconds
    that took.

    `exhausted` where there was no time, or no check, left to go on with. `others` are other failures that were seen,
    and how often.
    """

    model: Path
    outcome: Outcome
    sizes: tuple[int, ...]
    checks: int
    seconds: float
    exhausted: bool
    others: Mapping[str, int]
    progress: str


class NoFailure(Exception):
    """The check finds nothing wrong with the model."""


def reduce(
    model: Model,
    inputs: Mapping[str, Array] | None,
    check: Check,
    folder: Path,
    limits: Limits | None = None,
    tell: Callable[[str], object] = lambda _: None,
    said: Callable[[str], object] = lambda _: None,
) -> Reduced:
    """Find the smallest model that fails `check` in the same way, and write it to `folder`, with a report.

    Without `inputs` the model is not run: that is for checks that do not run it either.
    What was checked stays in `reduce.jsonl`, with which the same reduction goes on. `tell` is told what is being done,
    `said` what has been reached.

    Raises NoFailure where the whole model does not fail, and leaves no file then; ValueError where the folder holds
    another reduction or the check cannot be made, IRError and InputError where the model cannot be run on the inputs,
    and OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    task = {"model": _hash_of(model), "inputs": _hash_of_inputs(inputs or {}), "check": check.description}
    with closing(Journal(folder / "reduce.jsonl", task)) as journal, closing(check):
        trials = Trials(check, folder, journal, limits or Limits(), tell)
        try:
            outcome = trials.first(model, inputs)
            if outcome.signature == NOT_MADE:
                if not trials.known:  # a check that can be made is another one
                    journal.drop()
                raise ValueError(outcome.detail)
            if not outcome.fails:
                journal.drop()
                raise NoFailure(outcome.detail)
            exhausted = _steps(Subject(model, inputs), trials, said)
        finally:
            shutil.rmtree(folder / WORK, ignore_errors=True)
        found = Reduced(
            folder / "min.xml",
            trials.kept,
            tuple(trials.sizes),
            trials.checks,
            trials.seconds,
            exhausted,
            dict(trials.others),
            trials.progress,
        )
    write_report(found, model, check, folder, running=inputs is not None)
    return found


def _steps(subject: Subject, trials: Trials, said: Callable[[str], object]) -> bool:
    """Make the subject smaller step by step; whether it had to end early."""
    try:
        assert trials.wanted is not None
        for _ in range(MAX_DEPTH):
            subject = fewer_layers(subject, trials, trials.wanted.hints)
            said(trials.progress)
            inner = inside_bodies(subject, trials)
            if inner is None:
                break
            subject = inner
            said(trials.progress)
        subject = smaller_sizes(subject, trials)
        subject = simpler_values(subject, trials)
    except Exhausted:
        return True
    return False


def _hash_of(model: Model) -> str:
    weights = model.weights.path
    if model.content is None and not model.edited and weights is not None:
        return content_hash(model.path, weights)
    return blake2b(xml_text(model, {}), digest_size=16).hexdigest()


def _hash_of_inputs(inputs: Mapping[str, Array]) -> str:
    digest = blake2b(digest_size=16)
    for name, array in sorted(inputs.items()):
        digest.update(f"{name} {array.dtype} {array.shape};".encode() + array.tobytes())
    return digest.hexdigest()
