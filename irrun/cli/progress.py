"""How far long work is: the one way in which commands show it, on a terminal and nowhere else.

What is drawn is in `irrun.cli.drawing`, which is loaded once something has lasted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TypeVar

Item = TypeVar("Item")

LASTING = 2.0
"""Seconds after which people want to know that something is still going on."""

_DUMB = ("dumb", "unknown")
"""What TERM says of terminals on which nothing can be taken back."""


class Progress:
    """What is being done, how much of it is done, and of how much where that is known.

    Whoever works writes these, and the thread that draws reads them: to be told something takes no time.
    """

    __slots__ = ("begin", "doing", "done", "finished", "label", "total")

    def __init__(self, label: str, total: int | None = None) -> None:
        self.label, self.total, self.done = label, total, 0
        self.doing: str | Callable[[], str] = label
        self.begin = monotonic()
        self.finished = Event()

    def tell(self, doing: str | Callable[[], str]) -> None:
        """Say what is being done now; a function is asked for it, by another thread, whenever it is drawn."""
        self.doing = doing

    def advance(self) -> None:
        """Say that one more part is done."""
        self.done += 1

    def each(self, items: Iterable[Item], name: Callable[[Item], str] | None = None) -> Iterator[Item]:
        """The items, each of which is a part; by its `name` people see which one it is."""
        for item in items:
            if name is not None:
                self.doing = f"{self.label} {name(item)}"
            yield item
            self.done += 1

    @property
    def seconds(self) -> float:
        return monotonic() - self.begin

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes if it goes on as so far; None where nobody can know."""
        if self.total is None or not self.done:
            return None
        return self.seconds * max(self.total - self.done, 0) / self.done


def is_dumb() -> bool:
    """Whether the terminal shows what is written to it, and no more: colours are signs among others there."""
    return os.environ.get("TERM", "").lower() in _DUMB


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Progress]:
    """Shows on stderr how far the block is once it has lasted, and takes it away at its end.

    A thread of its own draws, so that what is waited for is not held up. What is written to `sys.stderr` meanwhile
    stands above. Nothing is drawn where stderr is no terminal, or one on which nothing can be taken back.
    """
    shown = Progress(label, total)
    if not sys.stderr.isatty() or is_dumb():
        yield shown
        return
    drawer = Thread(target=_draw, args=(shown,), daemon=True)
    drawer.start()
    try:
        yield shown
    finally:
        shown.finished.set()
        drawer.join()


def _draw(shown: Progress) -> None:
    if shown.finished.wait(LASTING):
        return
    from irrun.cli.drawing import draw

    draw(shown)
