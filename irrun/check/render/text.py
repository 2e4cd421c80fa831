"""Reports as text for people: every diagnostic with the line that it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from irrun.check.render.alike import grouped
from irrun.diagnostics import Diagnostic, Span, counted
from irrun.files import open_regular, read_most
from irrun.ir.lines import Source
from irrun.ir.reader import MAX_XML_BYTES
from irrun.ir.xml import as_utf8

if TYPE_CHECKING:
    from irrun.check.validate import Report

WIDTH = 160
"""Columns of an excerpt: a model on one line has lines of megabytes."""

Style = Callable[[str, str], str]
"""Paints a text in the colour of a severity, or as "bold" or "dim"."""


MAX_FAILED = 20
"""Models with errors that are named at the end."""


def plain(text: str, style: str) -> str:
    return text


def one_line(text: str) -> str:
    """`text` with line breaks and control characters spelt out: names and paths may hold any."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def cells(text: str) -> int:
    """Columns of a terminal that a text takes: wide characters take two, and those that go on top of others none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int, right: bool = False) -> str:
    """A text of so many cells, at least, flush left or right."""
    room = " " * (width - cells(text))
    return room + text if right else text + room


def render_text(reports: Sequence[Report], style: Style = plain) -> str:
    return "\n".join(render_report(report, style) for report in reports)


def render_report(report: Report, style: Style = plain) -> str:
    """Every diagnostic with the line it is about, those of one cause once, and a summary."""
    source = source_of(report)
    parts = [render_diagnostic(alike.first, source, style, alike.more) for alike in grouped(report.diagnostics)]
    parts.append(summary(report, style))
    return "\n".join(parts)


def summary(report: Report, style: Style = plain) -> str:
    path = one_line(str(report.path))
    errors, warnings, infos = map(count, (report.errors, report.warnings, report.infos))
    shown = _counts(errors, warnings, infos)
    hidden = f"; {', '.join(_counts(infos=report.hidden))} with --verbose" if report.hidden else ""
    if not errors and not warnings:
        checked = [style("ok", "ok"), f"{counted(report.layers, 'layer')} checked", *shown]
        return f"{path}: {', '.join(checked)}{hidden}"
    return f"{path}: {style(', '.join(shown), 'error' if errors else 'warning')}{hidden}"


def overview(reports: Sequence[Report], skipped: int = 0) -> str:
    """A line over several models; `skipped` is the number of files that were none."""
    clean = sum(not (report.errors or report.warnings) for report in reports)
    errors = sum(count(report.errors) for report in reports)
    warnings = sum(count(report.warnings) for report in reports)
    models = f"{len(reports)} model{'s' * (len(reports) != 1)}"
    counts = ", ".join([f"{clean} ok", *_counts(errors, warnings)]) if reports else "nothing to check"
    foreign = f"; {skipped} other .xml file{'s' * (skipped != 1)} skipped" if skipped else ""
    failed = [one_line(str(report.path)) for report in reports if report.errors]
    more = f" and {len(failed) - MAX_FAILED} more" if len(failed) > MAX_FAILED else ""
    names = f"\nerrors in {', '.join(failed[:MAX_FAILED])}{more}" if failed and len(reports) > 1 else ""
    return f"{models}: {counts}{foreign}{names}"


def count(diagnostics: Sequence[Diagnostic]) -> int:
    """How many there are, those that are not listed included."""
    return sum(found.number for found in diagnostics)


def _counts(errors: int = 0, warnings: int = 0, infos: int = 0) -> list[str]:
    numbers = ((errors, "error"), (warnings, "warning"), (infos, "info"))
    return [f"{n} {word}{'s' * (n != 1)}" for n, word in numbers if n]


def render_diagnostic(
    diagnostic: Diagnostic, source: Source | None, style: Style = plain, more: str | None = None
) -> str:
    """One diagnostic in the form of compilers: headline, place, excerpt from the `source`, notes, help.

    `more` says how many others have the same cause, and where.
    """
    severity = diagnostic.severity
    message = one_line(diagnostic.message)
    parts = [f"{style(f'{severity}[{diagnostic.code}]', severity)}{style(f': {message}', 'bold')}"]
    span = diagnostic.span
    where = ":".join(str(part) for part in (diagnostic.file, diagnostic.line, diagnostic.column) if part is not None)
    if where:
        parts.append(f"{style('  -->', 'dim')} {one_line(where)}")
    start = max(0, span.column - WIDTH // 2) if span else 0
    line = source.window(span.line, start + 1, WIDTH) if source and span else None
    if span and line is not None:
        parts += _excerpt(span, line, start, diagnostic, style)
    elif diagnostic.layer:
        parts.append(f"{style('note', 'bold')}: in layer {one_line(str(diagnostic.layer))}")
    for note in diagnostic.notes:
        at = f" at line {note.span.line}" if note.span else ""
        parts.append(f"{style('note', 'bold')}: {one_line(note.message)}{at}")
    if more:
        parts.append(f"{style('note', 'bold')}: {more}")
    if diagnostic.help:
        parts.append(f"{style('help', 'bold')}: {one_line(diagnostic.help)}")
    return "\n".join(parts) + "\n"


def _excerpt(span: Span, line: str, start: int, diagnostic: Diagnostic, style: Style) -> list[str]:
    """The part of a line that begins behind `start` characters, and a caret below the place."""
    number = str(span.line)
    gutter = " " * len(number)
    cut = line.rstrip("\r").replace("\t", " ")
    shown = "".join(c if c.isprintable() else "\ufffd" for c in cut)  # one for one, so that the caret stays in place
    indent = span.column - 1 - start
    length = max(1, min(span.length, WIDTH - indent))
    caret = " " * cells(shown[:indent]) + "^" * max(1, cells(shown[indent : indent + length]))
    label = f" layer {one_line(str(diagnostic.layer))}" if diagnostic.layer else ""
    bar = style("|", "dim")
    return [
        f"{gutter} {bar}",
        f"{style(number, 'dim')} {bar} {shown}",
        f"{gutter} {bar} {style(caret, diagnostic.severity)}{style(label, 'dim')}",
    ]


def source_of(report: Report) -> Source | None:
    """The text of the .xml, None where it cannot be read, or not needed."""
    if not report.diagnostics:
        return None
    if report.content is not None:
        return Source(as_utf8(report.content))
    return source_at(report.path)


def source_at(path: Path) -> Source | None:
    try:
        with open_regular(path) as file:
            return Source(as_utf8(read_most(file, MAX_XML_BYTES)))
    except (OSError, ValueError):
        return None
