"""Reports as workflow commands, which GitHub Actions shows at the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.check.codes import CODES
from irrun.check.render.alike import Alike, grouped
from irrun.check.render.identity import relative_path
from irrun.check.render.text import one_line

if TYPE_CHECKING:
    from irrun.check.validate import Report

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render_github(reports: Sequence[Report]) -> str:
    """A command for each cause: GitHub shows ten of a severity in a step."""
    return "\n".join(
        _command(alike, relative_path(report.path)) for report in reports for alike in grouped(report.diagnostics)
    )


def _command(alike: Alike, path: str) -> str:
    diagnostic = alike.first
    properties = {
        "file": path,
        "line": diagnostic.line,
        "col": diagnostic.column,
        "endColumn": diagnostic.end_column,
        "title": f"{diagnostic.code} {CODES[diagnostic.code].title}",
    }
    listed = ",".join(f"{key}={str(value).translate(_PROPERTY)}" for key, value in properties.items() if value)
    more = f" ({alike.more})" if alike.more else ""
    message = one_line(diagnostic.message) + more + (f"\nhelp: {one_line(diagnostic.help)}" if diagnostic.help else "")
    return f"::{_COMMANDS[diagnostic.severity]} {listed}::{message.translate(_DATA)}"
