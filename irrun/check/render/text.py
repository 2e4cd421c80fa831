"""Reports as text for people: every diagnostic with the line that it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irrun.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from irrun.check.validate import Report

WIDTH = 160
"""Columns of an excerpt: a model on one line has lines of megabytes."""

Style = Callable[[str, str], str]
"""Paints a text in the colour of a severity, or as "bold" or "dim"."""


def plain(text: str, style: str) -> str:
    return text


def one_line(text: str) -> str:
    """`text` with line breaks and control characters spelt out: names and paths may hold any."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def render_text(reports: Sequence[Report], style: Style = plain) -> str:
    return "\n".join(render_report(report, style) for report in reports)


def render_report(report: Report, style: Style = plain) -> str:
    """Every diagnostic with the line it is about, and a summary."""
    lines = source_lines(report)
    parts = [render_diagnostic(diagnostic, lines, style) for diagnostic in report.diagnostics]
    parts.append(summary(report, style))
    return "\n".join(parts)


def summary(report: Report, style: Style = plain) -> str:
    path = one_line(str(report.path))
    errors, warnings = len(report.errors), len(report.warnings)
    if not errors and not warnings:
        return f"{path}: {style('ok', 'ok')}, {report.layers} layers checked"
    return f"{path}: {style(', '.join(_counts(errors, warnings)), 'error' if errors else 'warning')}"


def overview(reports: Sequence[Report], skipped: int = 0) -> str:
    """A line over several models; `skipped` is the number of files that were none."""
    clean = sum(not report.diagnostics for report in reports)
    errors = sum(len(report.errors) for report in reports)
    warnings = sum(len(report.warnings) for report in reports)
    models = f"{len(reports)} model{'s' * (len(reports) != 1)}"
    counts = ", ".join([f"{clean} ok", *_counts(errors, warnings)]) if reports else "nothing to check"
    foreign = f"; {skipped} other .xml file{'s' * (skipped != 1)} skipped" if skipped else ""
    return f"{models}: {counts}{foreign}"


def _counts(errors: int, warnings: int) -> list[str]:
    return [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n]


def render_diagnostic(diagnostic: Diagnostic, lines: list[str], style: Style = plain) -> str:
    """One diagnostic in the form of compilers: headline, place, excerpt, notes, help."""
    severity = diagnostic.severity
    message = one_line(diagnostic.message)
    parts = [f"{style(f'{severity}[{diagnostic.code}]', severity)}{style(f': {message}', 'bold')}"]
    place = diagnostic.place
    where = ":".join(str(part) for part in (diagnostic.file, diagnostic.line, diagnostic.column) if part is not None)
    if where:
        parts.append(f"{style('  -->', 'dim')} {one_line(where)}")
    if place and 0 < place.line <= len(lines):
        parts += _excerpt(place, lines[place.line - 1], diagnostic, style)
    elif diagnostic.layer:
        parts.append(f"{style('note', 'bold')}: in layer {one_line(str(diagnostic.layer))}")
    for note in diagnostic.notes:
        at = f" at line {note.place.line}" if note.place else ""
        parts.append(f"{style('note', 'bold')}: {one_line(note.message)}{at}")
    if diagnostic.help:
        parts.append(f"{style('help', 'bold')}: {one_line(diagnostic.help)}")
    return "\n".join(parts) + "\n"


def _excerpt(place: Place, line: str, diagnostic: Diagnostic, style: Style) -> list[str]:
    number = str(place.line)
    gutter = " " * len(number)
    start = max(0, place.column - WIDTH // 2)
    cut = line[start : start + WIDTH].rstrip("\r").replace("\t", " ")
    shown = "".join(c if c.isprintable() else "\ufffd" for c in cut)  # one for one, so that the caret stays in place
    indent = place.column - 1 - start
    caret = " " * indent + "^" * max(1, min(place.length, WIDTH - indent))
    label = f" layer {one_line(str(diagnostic.layer))}" if diagnostic.layer else ""
    bar = style("|", "dim")
    return [
        f"{gutter} {bar}",
        f"{style(number, 'dim')} {bar} {shown}",
        f"{gutter} {bar} {style(caret, diagnostic.severity)}{style(label, 'dim')}",
    ]


def source_lines(report: Report) -> list[str]:
    """The lines of the .xml, or none where it cannot be read."""
    if not report.diagnostics:
        return []
    if report.content is not None:
        return report.content.decode("utf-8", "replace").split("\n")
    try:
        return report.path.read_text("utf-8", errors="replace").split("\n")
    except (OSError, ValueError):
        return []
