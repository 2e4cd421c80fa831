"""Reports as workflow commands, which GitHub Actions shows at the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.check.codes import CODES
from irrun.check.render.identity import identified
from irrun.check.render.text import one_line
from irrun.diagnostics import Diagnostic

if TYPE_CHECKING:
    from irrun.check.validate import Report

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render_github(reports: Sequence[Report]) -> str:
    return "\n".join(_command(diagnostic, path) for diagnostic, path, _ in identified(reports))


def _command(diagnostic: Diagnostic, path: str) -> str:
    properties = {
        "file": path,
        "line": diagnostic.line,
        "col": diagnostic.column,
        "endColumn": diagnostic.end_column,
        "title": f"{diagnostic.code} {CODES[diagnostic.code].title}",
    }
    listed = ",".join(f"{key}={str(value).translate(_PROPERTY)}" for key, value in properties.items() if value)
    message = one_line(diagnostic.message) + (f"\nhelp: {one_line(diagnostic.help)}" if diagnostic.help else "")
    return f"::{_COMMANDS[diagnostic.severity]} {listed}::{message.translate(_DATA)}"
