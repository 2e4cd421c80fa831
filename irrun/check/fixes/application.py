"""Fixes made to the text of a model, again and again until none is left, and what changed as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from pathlib import Path

from irrun.check.finite import MAX_SEARCHED
from irrun.check.fixes import CONNECTING, STALE, with_fixes
from irrun.check.validate import GivenShapes, Report, validate
from irrun.diagnostics import Diagnostic, Fix
from irrun.ir.sources import Source
from irrun.ir.text_edits import Edit, apply
from irrun.ir.xml import as_utf8
from irrun.records import dataclass

MAX_ROUNDS = 50
"""Times that a model is validated and changed; one error may hide the next, as those of the text hide all."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A text with all fixes made, what they are, in order, and the report of the result."""

    before: bytes
    content: bytes
    fixes: tuple[tuple[Diagnostic, Fix], ...]
    report: Report

    @property
    def diff(self) -> str:
        """As `diff -u` prints it; empty where nothing changed."""
        name = self.report.path.as_posix()
        old, new = (_lines(text) for text in (self.before, self.content))
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(old, new, name, name)
        )


def mended(
    path: Path,
    content: bytes,
    weights: Source | None = None,
    shapes: GivenShapes | None = None,
    *,
    unsafe: bool = False,
    wanted: Callable[[str], bool] = lambda code: True,
    searched: int | None = MAX_SEARCHED,
) -> Mended:
    """The text of a model with the fixes of its diagnostics made: the safe ones, or with `unsafe` the likeliest ones.

    Only diagnostics are mended whose code is `wanted`. All other bytes stay as they are. What ports declare stays as it
    is once layers were connected otherwise: it tells whether that was right. The rest is as in `irrun.validate`, which
    raises ValueError.
    """

    def check(text: bytes) -> Report:
        return with_fixes(validate(path, weights, shapes, content=text, searched=searched))

    before, seen = content, {content}
    made: list[tuple[Diagnostic, Fix]] = []
    report = check(content)
    for _ in range(MAX_ROUNDS):
        passed_over = STALE if any(found.code in CONNECTING for found, _ in made) else ()
        chosen = _chosen(report, unsafe, wanted, passed_over)
        edits = [Edit(part.start, part.end, part.text) for _, fix in chosen for part in fix.replacements]
        changed = apply(content, edits)
        if not chosen or changed in seen:
            break
        content = changed
        seen.add(content)
        made += chosen
        report = check(content)
    return Mended(before, content, tuple(made), report)


def _chosen(
    report: Report, unsafe: bool, wanted: Callable[[str], bool], passed_over: Collection[str]
) -> list[tuple[Diagnostic, Fix]]:
    """A fix for each diagnostic that has one, as far as they do not overlap; the others have their turn later."""
    chosen: list[tuple[Diagnostic, Fix]] = []
    taken: list[tuple[int, int]] = []
    for found in report.diagnostics:
        fix = next((fix for fix in found.fixes if fix.safe or unsafe), None)
        if fix is None or found.code in passed_over or not wanted(found.code):
            continue
        parts = [(part.start, part.end) for part in fix.replacements]
        if not any(_overlap(part, other) for part in parts for other in taken):
            chosen.append((found, fix))
            taken += parts
    return chosen


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one == other or (one[0] < other[1] and other[0] < one[1])


def _lines(text: bytes) -> list[str]:
    return as_utf8(text).decode("utf-8", "replace").splitlines(keepends=True)
