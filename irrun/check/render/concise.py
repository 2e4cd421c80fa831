"""Reports as one line for each diagnostic, for editors and problem matchers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.check.render.text import one_line

if TYPE_CHECKING:
    from irrun.check.validate import Report


def render_concise(reports: Sequence[Report]) -> str:
    """`file:line:column: severity[code] message`, with 1:1 for what has no place in the file."""
    return "\n".join(
        f"{one_line(found.file or str(report.path))}:{found.line or 1}:{found.column or 1}: "
        f"{found.severity}[{found.code}] {one_line(found.message)}"
        for report in reports
        for found in report.diagnostics
    )
