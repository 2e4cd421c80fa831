"""Work done in processes of their own, which may crash or hang: what one of them did last is told."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from processor import processor_time

SECONDS = 30.0
"""Of a processor, so that a busy machine does not look like a hang."""

PATIENCE = 120.0
"""Seconds of waiting for something that needs no processor."""

_ADDRESS_SPACE = 16 << 30

Task = Callable[[Any, Callable[[str], object]], Any]
"""What is done with an item; it calls its second argument with what it does next. A function of a module."""


class Died(str):
    """The result of an item whose process died or hung, and what it was doing."""


def run(task: Task, items: Iterable[Any], jobs: int = 1) -> Generator[tuple[Any, Any]]:
    """Each item with the task's result, or with a `Died`, as they are done."""
    todo = iter(items)
    workers = [_Worker(task) for _ in range(jobs)]
    try:
        busy = [worker for worker in workers if worker.give(todo)]
        while busy:
            wait([worker.connection for worker in busy], timeout=0.5)
            for worker in list(busy):
                yield from worker.collect()
                if worker.idle and not worker.give(todo):
                    busy.remove(worker)
    finally:
        for worker in workers:
            worker.stop()


class Process:
    """A process for items that come one at a time, in a `with` statement; it is called with an item."""

    def __init__(self, task: Task) -> None:
        self._items: list[Any] = []
        self._results = run(task, self._given())

    def _given(self) -> Iterator[Any]:
        while self._items:
            yield self._items.pop()

    def __call__(self, item: Any) -> Any:
        """The task's result, or a `Died`."""
        self._items.append(item)
        return next(self._results)[1]

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._results.close()


class _Worker:
    """A process that does one item after the other, and the clock that watches it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._context = multiprocessing.get_context("spawn")  # a fork would share the threads of OpenMP
        self.idle = True
        self._start()

    def _start(self) -> None:
        self.connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_work, args=(self._task, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, todo: Iterator[Any]) -> bool:
        item = next(todo, self)
        if item is self:
            return False
        if not self._process.is_alive():
            self.connection.close()
            self._start()
        self._item, self._doing, self.idle = item, "starting", False
        self._since, self._spent = time.monotonic(), processor_time(self._process.pid)
        self.connection.send(item)
        return True

    def collect(self) -> Iterator[tuple[Any, Any]]:
        while not self.idle and self.connection.poll():
            try:
                done, answer = self.connection.recv()
            except (EOFError, OSError):
                self._process.join()
                done, answer = True, Died(f"{self._doing}: died with exit status {self._process.exitcode}")
            if done:
                self.idle = True
                yield self._item, answer
            else:
                self._doing = answer
        had = 0.0 if self.idle else processor_time(self._process.pid) - self._spent
        if not self.idle and (had > SECONDS or time.monotonic() - self._since > PATIENCE):
            self._process.kill()
            self._process.join()
            self.idle = True
            yield self._item, Died(f"{self._doing}: hangs")

    def stop(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self.connection.close()


def _work(task: Task, connection: Connection) -> None:
    os.environ["OMP_WAIT_POLICY"] = "passive"  # threads that spin are in each other's way where there are many
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            item = connection.recv()
        except (EOFError, OSError):
            return
        connection.send((True, task(item, lambda doing: connection.send((False, doing)))))
