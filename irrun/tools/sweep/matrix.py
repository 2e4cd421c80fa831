"""The matrix of a sweep, models by what was done with them on which device, as a page that needs nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from irrun.check.render.text import one_line
from irrun.diagnostics import EngineError
from irrun.records import dataclass
from irrun.tools.sweep.rows import OK, STATUSES, Row

TEMPLATE = Path(__file__).with_name("matrix.html")

_WORST = ("ok", "not done", "differs", "error", "failed", "timed out", "crashed")
"""Of several rows in one cell the last of these is its colour."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """What has come of one model in one column: the worst status, and the rows that are not ok."""

    status: str
    tasks: int
    well: int
    seconds: float
    bad: tuple[Row, ...]

    @property
    def kind(self) -> str:
        """The class of its style."""
        return self.status.replace(" ", "-")


def check_template() -> None:
    """Raises EngineError where the page cannot be written."""
    if find_spec("jinja2") is None:
        raise EngineError('pages take Jinja2: pip install "irrun[report]"')


def render_matrix(rows: Sequence[Row]) -> bytes:
    """The page. Raises EngineError as `check_template` does."""
    check_template()
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["line"] = one_line
    heads = list(dict.fromkeys((row.do, row.device) for row in rows))
    cells: dict[str, dict[tuple[str, str], list[Row]]] = {}
    for row in rows:
        cells.setdefault(row.model, {}).setdefault((row.do, row.device), []).append(row)
    lines = [
        (model, [_cell(found[head]) if head in found else None for head in heads]) for model, found in cells.items()
    ]
    counts = Counter(row.status for row in rows)
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        heads=heads,
        lines=lines,
        counts=[(status, counts[status]) for status in STATUSES if counts[status]],
        tasks=len(rows),
        versions=dict(sorted({name: text for row in rows for name, text in row.versions.items()}.items())),
    )
    return page.encode("utf-8", "backslashreplace")


def _cell(rows: Sequence[Row]) -> _Cell:
    worst = max((row.status for row in rows), key=_WORST.index)
    bad = tuple(row for row in rows if row.status != OK)
    return _Cell(worst, len(rows), len(rows) - len(bad), sum(row.seconds for row in rows), bad)
