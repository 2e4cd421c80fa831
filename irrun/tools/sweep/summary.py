"""A sweep as text: how many tasks have come to what, the rows that are not well, and a line over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from irrun.check.render.text import Style, one_line, plain
from irrun.diagnostics import clipped
from irrun.tools.inspect.tables import columns, cut
from irrun.tools.sweep.rows import AT_FAULT, OK, STATUSES, Row
from irrun.tools.sweep.sweeping import Sweep

MOST_LISTED = 20
"""Rows that are not well that are listed; all of them are in the results."""

_LONGEST, _LONGEST_REASON = 44, 240


def text(found: Sweep, style: Style = plain) -> str:
    """All of it for people."""
    return "\n".join([*_table(found.rows, style), *_listed(found.rows, style), verdict(found, style)])


def verdict(found: Sweep, style: Style = plain) -> str:
    """A line: what has come of all tasks, and what of that was done now."""
    counts = found.counts
    tasks = f"{len(found.rows):,} task{'s' * (len(found.rows) != 1)}"
    parts = [style(f"{counts[status]:,} {status}", colour(status)) for status in STATUSES if counts[status]]
    if not found.done:
        return f"{tasks}: {', '.join(parts)}; nothing to do, all rows were there"
    alike = len(found.rows) - found.done - found.known
    before = f", {found.known:,} were there" if found.known else ""
    same = f", {alike:,} of the same content" if alike > 0 else ""
    workers = f"{found.jobs:,} worker{'s' * (found.jobs != 1)}"
    return f"{tasks}: {', '.join(parts)}; {found.done:,} done in {found.seconds:.1f} s on {workers}{before}{same}"


def colour(status: str) -> str:
    return "ok" if status == OK else "error" if status in AT_FAULT else "warning"


def _table(rows: Sequence[Row], style: Style) -> Iterator[str]:
    """Counts and times by what was done, and on which device."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.do, row.device), []).append(row)
    shown = [status for status in STATUSES if status == OK or any(row.status == status for row in rows)]
    lines = [("do", "device", "tasks", *shown, "mean s", "longest s")]
    for (do, device), group in groups.items():
        counts = Counter(row.status for row in group)
        seconds = [row.seconds for row in group]
        numbers = (f"{counts[status]:,}" if counts[status] else "" for status in shown)
        times = (f"{sum(seconds) / len(seconds):.3g}", f"{max(seconds):.3g}")
        lines.append((do, cut(one_line(device), _LONGEST), f"{len(group):,}", *numbers, *times))
    yield from columns(lines, "ll" + "r" * (len(lines[0]) - 2), style)
    yield ""


def _listed(rows: Sequence[Row], style: Style) -> Iterator[str]:
    bad = sorted((row for row in rows if row.status != OK), key=lambda row: -STATUSES.index(row.status))
    for row in bad[:MOST_LISTED]:
        code = f"[{row.cause or row.code}]" if row.cause or row.code else ""
        where = ", ".join(one_line(part) for part in (row.model, row.inputs, row.device) if part)
        reason = clipped(one_line(row.reason), _LONGEST_REASON)
        yield f"{style(f'{row.status}{code}', colour(row.status))}: {row.do} {where}: {reason}"
    if len(bad) > MOST_LISTED:
        yield f"and {len(bad) - MOST_LISTED:,} more like these"
    if bad:
        yield ""
