"""Reports as a GitLab code quality report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.check.render.identity import identified

if TYPE_CHECKING:
    from irrun.check.validate import Report

_SEVERITIES = {"error": "major", "warning": "minor", "info": "info"}


def render_gitlab(reports: Sequence[Report]) -> str:
    issues = [
        {
            "description": f"{diagnostic.code}: {diagnostic.message}",
            "check_name": diagnostic.code,
            "fingerprint": fingerprint,
            "severity": _SEVERITIES[diagnostic.severity],
            "location": {"path": path, "lines": {"begin": diagnostic.line or 1}},
        }
        for diagnostic, path, fingerprint in identified(reports)
    ]
    return json.dumps(issues, indent=2)
