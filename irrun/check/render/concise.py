"""Reports as one line for each cause, for editors and problem matchers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.check.render.alike import Alike, grouped
from irrun.check.render.text import one_line

if TYPE_CHECKING:
    from irrun.check.validate import Report


def render_concise(reports: Sequence[Report]) -> str:
    """`file:line:column: severity[code] message`, with 1:1 for what has no place in the file.

    What has one cause is one line, at the first place, which ends with the lines of the others.
    """
    return "\n".join(_line(alike, report) for report in reports for alike in grouped(report.diagnostics))


def _line(alike: Alike, report: Report) -> str:
    found = alike.first
    place = f"{one_line(found.file or str(report.path))}:{found.line or 1}:{found.column or 1}"
    more = f" ({alike.more})" if alike.more else ""
    return f"{place}: {found.severity}[{found.code}] {one_line(found.message)}{more}"
