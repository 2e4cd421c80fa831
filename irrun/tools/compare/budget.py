"""How long causes are looked for: tests calculate layers again and again, and some are loops of many rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

LEAST_SECONDS = 20.0
"""Seconds that the search for the causes of all tensors may take, however short runs are."""

TIMES_A_RUN = 5.0
"""How many times what a run of ours takes it may take, where that is more."""

P = ParamSpec("P")
T = TypeVar("T")


class OutOfTime(Exception):
    """The search has taken its time: nothing is calculated any more."""


class Budget:
    """Time for a search: what is done while it is `counting` takes of it."""

    def __init__(self, run: float) -> None:
        """`run` is how many seconds a run of ours takes."""
        self.seconds = max(LEAST_SECONDS, TIMES_A_RUN * run)
        self._spent = 0.0
        self._begin: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing of it is left."""
        running = 0.0 if self._begin is None else time.monotonic() - self._begin
        return self._spent + running >= self.seconds

    @contextmanager
    def counting(self) -> Iterator[None]:
        self._begin = time.monotonic()
        try:
            yield
        finally:
            self._spent += time.monotonic() - self._begin
            self._begin = None

    def within(self, calculate: Callable[P, T]) -> Callable[P, T]:
        """The same as long as there is time. It raises OutOfTime behind that."""

        def calculated(*args: P.args, **kwargs: P.kwargs) -> T:
            if self.over:
                raise OutOfTime
            return calculate(*args, **kwargs)

        return calculated
