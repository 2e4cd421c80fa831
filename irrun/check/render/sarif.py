"""Reports as SARIF 2.1.0, the interchange format of static analysis, which code scanning systems take."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from irrun.check.codes import CODES
from irrun.check.render.identity import identified, relative_path
from irrun.diagnostics import Diagnostic, Fix, LayerName, Span

if TYPE_CHECKING:
    from irrun.check.validate import Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render_sarif(reports: Sequence[Report]) -> str:
    """One run over all models, with the rules that they break."""
    paths = dict.fromkeys(relative_path(report.path) for report in reports)  # the format has each file once
    codes = sorted({diagnostic.code for report in reports for diagnostic in report.diagnostics})
    run = {
        "tool": {"driver": {"name": "irrun", "version": version("irrun"), "rules": [_rule(code) for code in codes]}},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(path)}} for path in paths],
        "results": [
            _result(diagnostic, path, fingerprint, codes) for diagnostic, path, fingerprint in identified(reports)
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str) -> dict[str, Any]:
    entry = CODES[code]
    broken, mended = entry.example
    return {
        "id": code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.explanation},
        "help": {
            "text": f"{entry.explanation}\n\nWrong:\n{broken}\n\nRight:\n{mended}",
            "markdown": f"{entry.explanation}\n\nWrong:\n```\n{broken}\n```\nRight:\n```\n{mended}\n```",
        },
        "defaultConfiguration": {"level": _LEVELS[Diagnostic(code, "").severity]},
    }


def _result(diagnostic: Diagnostic, path: str, fingerprint: str, codes: Sequence[str]) -> dict[str, Any]:
    location = _location(path, diagnostic.span)
    if diagnostic.layer:
        location["logicalLocations"] = [_layer(diagnostic.layer)]
    notes = [note for note in diagnostic.notes if note.span]
    related = [
        {**_location(path, note.span), "id": i, "message": {"text": note.message}} for i, note in enumerate(notes)
    ]
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": diagnostic.message + (f"\nhelp: {diagnostic.help}" if diagnostic.help else "")},
        "locations": [location],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {"irrunDiagnostic/v1": fingerprint},
        **({"fixes": [_fix(fix, path) for fix in diagnostic.fixes]} if diagnostic.fixes else {}),
    }


def _fix(fix: Fix, path: str) -> dict[str, Any]:
    changes = [
        {
            "deletedRegion": {
                "startLine": part.at[0],
                "startColumn": part.at[1],
                "endLine": part.until[0],
                "endColumn": part.until[1],
            },
            "insertedContent": {"text": part.text},
        }
        for part in fix.replacements
    ]
    return {
        "description": {"text": fix.title},
        "artifactChanges": [{"artifactLocation": {"uri": _uri(path)}, "replacements": changes}],
        "properties": {"safe": fix.safe},
    }


def _location(path: str, span: Span | None) -> dict[str, Any]:
    # GitHub shows nothing that has no line
    span = span or Span(1, 1)
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.line,
        "endColumn": span.column + span.length,
    }
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": region}}


def _layer(layer: LayerName) -> dict[str, Any]:
    return {"name": layer.name, "fullyQualifiedName": str(layer), "kind": "layer"}


def _uri(path: str) -> str:
    return Path(path).as_uri() if Path(path).is_absolute() else quote(os.fsencode(path))
