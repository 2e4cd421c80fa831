"""A line on a terminal that says how far something is, drawn by rich; `irrun.cli.progress` knows when and what."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task
from rich.progress import Progress as Bars
from rich.text import Text

from irrun.check.render.text import one_line
from irrun.cli.progress import Progress

EVERY = 0.25
"""Seconds between two looks at how far it is."""


class _Terminal(Console):
    """stderr. Lines are as long as they are, and the cursor stays: what is killed could not give it back."""

    def __init__(self) -> None:
        super().__init__(file=sys.stderr, soft_wrap=True, highlight=False)

    def show_cursor(self, show: bool = True) -> bool:
        return False


class _Doing(ProgressColumn):
    """What is being done, cut where there is no room."""

    def render(self, task: Task) -> Text:
        return Text(task.description, no_wrap=True, overflow="ellipsis")


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
    bars = Bars(*columns, _Time(), console=_Terminal(), auto_refresh=False, transient=True, redirect_stdout=False)
    task = bars.add_task(total=shown.total, **_state(shown))
    with suppress(OSError, ValueError), bars:  # a terminal that has gone away
        while not shown.finished.wait(EVERY):
            bars.update(task, refresh=True, **_state(shown))
        sys.stderr.flush()  # what stands there without an end of line


def _state(shown: Progress) -> dict[str, Any]:
    doing = shown.doing if isinstance(shown.doing, str) else shown.doing()
    return {"description": one_line(doing), "completed": shown.done, "seconds": shown.seconds, "left": shown.left}


def _clock(seconds: float) -> str:
    """`7 s`, `3:05`, `1:02:03`."""
    whole = timedelta(seconds=int(seconds))
    return f"{int(seconds)} s" if seconds < 60 else str(whole).removeprefix("0:").removeprefix("0")
