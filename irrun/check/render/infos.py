"""Which forms of a report have infos, apart from what makes these forms, which takes long to load."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irrun.check.validate import Report

FOR_PEOPLE = ("text", "concise", "github", "junit")
"""Those that have infos only where these are asked for; programs make their own choice."""


def listed(report: Report, format: str, verbose: bool) -> Report:
    """The report with what it has for that form: without infos of codes I... where nobody has asked for them."""
    if verbose or format not in FOR_PEOPLE:
        return report
    kept = [found for found in report.diagnostics if found.code[0] != "I"]
    return replace(report, diagnostics=kept, hidden=len(report.diagnostics) - len(kept))
