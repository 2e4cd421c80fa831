"""Diagnostics with the lines of the file that they are about, cut to what can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irrun.check.codes import CODES
from irrun.check.render.alike import grouped
from irrun.check.render.text import WIDTH
from irrun.diagnostics import Diagnostic
from irrun.ir.lines import Source
from irrun.tools.report import texts
from irrun.tools.report.finding import Finder


def troubles(diagnostics: Sequence[Diagnostic], source: Source | None, finder: Finder) -> list[dict[str, Any]]:
    """All of them in order, those of one cause once: `layers` are all that it is said of, `layer` the first.

    `excerpt` is the line, and where in it the place is; `more` says where the others are.
    """
    listed = []
    for alike in grouped(diagnostics):
        places = [
            finder.at(None if each.layer is None else each.span, each.layer) for each in (alike.first, *alike.others)
        ]
        layers = list(dict.fromkeys(layer for layer in places if layer is not None))
        listed.append(_told(alike.first, source, places[0]) | {"layers": layers, "more": alike.more})
    return listed


def _told(found: Diagnostic, source: Source | None, layer: int | None) -> dict[str, Any]:
    return {
        "code": found.code,
        "title": CODES[found.code].title if found.code in CODES else "",
        "severity": found.severity,
        "label": found.label,
        "message": texts.value(found.message),
        "line": found.line,
        "column": found.column,
        "layer": layer,
        "about": None if found.layer is None else texts.name(str(found.layer)),
        "help": None if found.help is None else texts.value(found.help),
        "notes": [[texts.value(note.message), note.span.line if note.span else None] for note in found.notes],
        "excerpt": _excerpt(found, source),
    }


def _excerpt(found: Diagnostic, source: Source | None) -> dict[str, Any] | None:
    span = found.span
    if span is None or source is None:
        return None
    start = max(0, span.column - WIDTH // 2)
    line = source.window(span.line, start + 1, WIDTH)
    if line is None:
        return None
    cut = line.rstrip("\r\n").replace("\t", " ")
    shown = "".join(c if c.isprintable() else "\ufffd" for c in cut)
    indent = span.column - 1 - start
    return {"text": shown, "from": indent, "length": max(1, min(span.length, WIDTH - indent))}
