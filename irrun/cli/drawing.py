"""A line on a terminal that says how far something is, drawn by rich; `irrun.cli.progress` knows when and what."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from datetime import timedelta
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.file_proxy import FileProxy
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task
from rich.progress import Progress as Bars
from rich.text import Text

from irrun.check.render.text import one_line
from irrun.cli.progress import Progress
from irrun.records import dataclass

EVERY = 0.5
"""Seconds between two looks at how far it is; each takes some milliseconds of the runs that `--repeat` measures."""

_SHORTEST = 12
"""Columns that are left for what is being done, at least."""


class _Terminal(Console):
    """stderr. Lines are as long as they are, and the cursor stays: what is killed could not give it back."""

    def __init__(self) -> None:
        super().__init__(file=sys.stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)

    def show_cursor(self, show: bool = True) -> bool:
        return False


class _Above(FileProxy):
    """What takes the place of `sys.stderr` meanwhile: lines that are written to it stand above what is drawn."""

    @property
    def encoding(self) -> str:  # type: ignore[override] # it has one
        """Without one click would take the stream for broken, and write to the one below."""
        return str(getattr(self.rich_proxied_file, "encoding", "utf-8"))

    def isatty(self) -> bool:
        return True


class _Doing(ProgressColumn):
    """What is being done."""

    def render(self, task: Task) -> _Cut:
        return _Cut(task.description)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A line without its middle where there is no room for all of it: names differ at both ends."""

    text: str

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(_SHORTEST, cell_len(self.text)), cell_len(self.text))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield Text(_without_middle(self.text, options.max_width), no_wrap=True, overflow="ellipsis")


class _Time(ProgressColumn):
    """How long it takes already, and how long still where that can be told."""

    def render(self, task: Task) -> Text:
        left = task.fields["left"]
        still = "" if left is None else f", {_clock(left)} left"
        return Text(f"({_clock(task.fields['seconds'])}{still})", no_wrap=True)


def draw(shown: Progress) -> None:
    """Draw until it has finished, then leave the line as it was."""
    columns: list[ProgressColumn] = [_Doing()]
    if shown.total is not None and shown.total > 1:
        columns += [BarColumn(20), MofNCompleteColumn()]
    terminal = _Terminal()
    bars = Bars(
        *columns,
        _Time(),
        console=terminal,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bars.add_task(total=shown.total, **_state(shown))
    # a terminal that has gone away is nobody's error
    with suppress(OSError, ValueError), redirect_stderr(_Above(terminal, sys.stderr)) as above:
        with bars:
            while not shown.finished.wait(EVERY):
                bars.update(task, refresh=True, **_state(shown))
        above.flush()  # what was written without an end of line


def _state(shown: Progress) -> dict[str, Any]:
    doing = shown.doing if isinstance(shown.doing, str) else shown.doing()
    return {"description": one_line(doing), "completed": shown.done, "seconds": shown.seconds, "left": shown.left}


def _without_middle(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    head = max(width - 3, 0) // 2
    return f"{text[:head]}...{text[len(text) - max(width - 3 - head, 0) :]}"


def _clock(seconds: float) -> str:
    """`7 s`, `3:05`, `1:02:03`."""
    whole = timedelta(seconds=int(seconds))
    return f"{int(seconds)} s" if seconds < 60 else str(whole).removeprefix("0:").removeprefix("0")
