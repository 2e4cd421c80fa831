"""Reports as JSON for programs: an object for each model, or a line for each diagnostic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irrun.check.render.text import count
from irrun.diagnostics import Diagnostic, Fix

if TYPE_CHECKING:
    from irrun.check.validate import Report

VERSION = 1
"""Raised when a field changes its meaning or goes; new fields may come at any time."""


def render_json(reports: Sequence[Report]) -> str:
    """One object, or a list of them unless there is exactly one model."""
    found = [_report(report) for report in reports]
    return json.dumps(found[0] if len(found) == 1 else found, indent=2)


def render_jsonl(reports: Sequence[Report]) -> str:
    """Each diagnostic as in `render_json`, on a line of its own."""
    return "\n".join(json.dumps(_diagnostic(found)) for report in reports for found in report.diagnostics)


def _report(report: Report) -> dict[str, Any]:
    return {
        "version": VERSION,
        "model": str(report.path),
        "ok": report.ok,
        "errors": count(report.errors),
        "warnings": count(report.warnings),
        "infos": count(report.infos),
        "diagnostics": [_diagnostic(diagnostic) for diagnostic in report.diagnostics],
    }


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    layer = diagnostic.layer
    return {
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "constraint": diagnostic.label,
        "message": diagnostic.message,
        "file": diagnostic.file,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_column": diagnostic.end_column,
        "layer": layer and {"id": layer.id, "name": layer.name, "type": layer.type},
        "help": diagnostic.help,
        "notes": [
            {"message": note.message, "line": note.span.line if note.span else None} for note in diagnostic.notes
        ],
        "fixes": [_fix(fix) for fix in diagnostic.fixes],
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "title": fix.title,
        "safe": fix.safe,
        "replacements": [
            {
                "line": part.at[0],
                "column": part.at[1],
                "end_line": part.until[0],
                "end_column": part.until[1],
                "text": part.text,
            }
            for part in fix.replacements
        ],
    }
