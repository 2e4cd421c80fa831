"""Reports as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irrun.check.validate import Report
from irrun.diagnostics import Diagnostic, Place

JSON_VERSION = 1
"""Raised when a field of the JSON form changes its meaning or goes; new fields may come at any time."""

Style = Callable[[str, str], str]
"""Paints a text in the colour of a severity, or as "bold" or "dim"."""


def plain(text: str, style: str) -> str:
    return text


def render_text(report: Report, style: Style = plain) -> str:
    """Every diagnostic with the line it is about, and a summary."""
    lines = source_lines(report)
    parts = [render_diagnostic(diagnostic, lines, style) for diagnostic in report.diagnostics]
    parts.append(summary(report, style))
    return "\n".join(parts)


def summary(report: Report, style: Style = plain) -> str:
    errors, warnings = len(report.errors), len(report.warnings)
    if not errors and not warnings:
        layers = len(report.inference.nodes) if report.inference else 0
        return f"{report.path}: {style('ok', 'ok')}, {layers} layers checked"
    counts = [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    return f"{report.path}: {style(', '.join(counts), 'error' if errors else 'warning')}"


def render_diagnostic(diagnostic: Diagnostic, lines: list[str], style: Style = plain) -> str:
    """One diagnostic in the form of compilers: headline, place, excerpt, notes, help."""
    severity = diagnostic.severity
    parts = [f"{style(f'{severity}[{diagnostic.code}]', severity)}{style(f': {diagnostic.message}', 'bold')}"]
    place = diagnostic.place
    where = ":".join(str(part) for part in (diagnostic.file, diagnostic.line, diagnostic.column) if part is not None)
    if where:
        parts.append(f"{style('  -->', 'dim')} {where}")
    if place and 0 < place.line <= len(lines):
        parts += _excerpt(place, lines[place.line - 1], diagnostic, style)
    elif diagnostic.layer:
        parts.append(f"{style('note', 'bold')}: in layer {diagnostic.layer}")
    for note in diagnostic.notes:
        at = f" at line {note.place.line}" if note.place else ""
        parts.append(f"{style('note', 'bold')}: {note.message}{at}")
    if diagnostic.help:
        parts.append(f"{style('help', 'bold')}: {diagnostic.help}")
    return "\n".join(parts) + "\n"


def _excerpt(place: Place, line: str, diagnostic: Diagnostic, style: Style) -> list[str]:
    number = str(place.line)
    gutter = " " * len(number)
    start = max(0, place.column - 80)  # a model on one line has lines of megabytes
    shown = line[start : start + 160].replace("\t", " ")
    caret = " " * (place.column - 1 - start) + "^" * max(1, min(place.length, 160 - (place.column - 1 - start)))
    label = f" layer {diagnostic.layer}" if diagnostic.layer else ""
    bar = style("|", "dim")
    return [
        f"{gutter} {bar}",
        f"{style(number, 'dim')} {bar} {shown}",
        f"{gutter} {bar} {style(caret, diagnostic.severity)}{style(label, 'dim')}",
    ]


def source_lines(report: Report) -> list[str]:
    """The lines of the .xml, or none where it is no text."""
    if not report.diagnostics:
        return []
    try:
        return report.path.read_text("utf-8", errors="replace").split("\n")
    except OSError:
        return []


def to_json(report: Report) -> dict[str, Any]:
    """A report as plain data; README.md describes the fields."""
    return {
        "version": JSON_VERSION,
        "model": str(report.path),
        "ok": report.ok,
        "errors": len(report.errors),
        "warnings": len(report.warnings),
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
        "end_column": diagnostic.place.column + diagnostic.place.length if diagnostic.place else None,
        "layer": layer and {"id": layer.id, "name": layer.name, "type": layer.type},
        "help": diagnostic.help,
        "notes": [
            {"message": note.message, "line": note.place.line if note.place else None} for note in diagnostic.notes
        ],
    }
