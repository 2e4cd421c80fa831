"""Mutants put to irrun in processes of their own: what raises, hangs, dies or takes too much memory is a finding."""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path

from processor import processor_time

from fuzz.seeds import Seed

SECONDS = 5.0
"""Of a processor, so that a busy machine does not look like a hang."""

PATIENCE = 120.0
"""Seconds of waiting for something that needs no processor."""

KILOBYTES = 1 << 20
"""Of resident memory, at its peak, beyond what a process has when it is forked."""

_HOMES = {Path(import_module(name).__file__).parent for name in ("irrun", "irrun.opsets")}
"""The folders of irrun's own modules: the tests may lie in one of that name, too."""

_ADDRESS_SPACE = 6 << 30
"""What a process may ask for besides what that has which it is forked from: a guard for the machine that the test
runs on."""


@dataclass(frozen=True)
class Finding:
    """What went wrong with a mutant: `kind` is the same for what has the same cause, `detail` is for people."""

    number: int
    kind: str
    detail: str


def run(mutant: Callable[[int], Seed], numbers: Iterable[int], processes: int = 1) -> Iterator[Finding | None]:
    """The finding, or None, of each mutant; `mutant` makes number n."""
    todo = iter(numbers)
    workers = [_Worker(mutant) for _ in range(processes)]
    try:
        busy = [worker for worker in workers if worker.give(next(todo, None))]
        while busy:
            wait([worker.connection for worker in busy], timeout=0.5)
            for worker in list(busy):
                yield from worker.collect()
                if worker.idle and not worker.give(next(todo, None)):
                    busy.remove(worker)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that examines one mutant after the other, and the clock that watches it."""

    def __init__(self, mutant: Callable[[int], Seed]) -> None:
        self._mutant = mutant
        self._context = multiprocessing.get_context("fork")
        self.idle = True
        self._number = -1
        self._start()

    def _start(self) -> None:
        self.connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_work, args=(self._mutant, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, number: int | None) -> bool:
        if number is None:
            return False
        if not self._process.is_alive():
            self._start()
        self._number, self.idle, self._since = number, False, time.monotonic()
        self._spent = processor_time(self._process.pid)
        self.connection.send(number)
        return True

    def collect(self) -> Iterator[Finding | None]:
        if self.connection.poll():
            try:
                kind, detail = self.connection.recv()
            except EOFError:
                self._process.join()
                kind, detail = f"died with exit status {self._process.exitcode}", ""
            self.idle = True
            yield Finding(self._number, kind, detail) if kind else None
            if kind.startswith("memory"):
                self.stop()
        elif processor_time(self._process.pid) - self._spent > SECONDS or time.monotonic() - self._since > PATIENCE:
            self.stop()
            self.idle = True
            yield Finding(self._number, "hang", f"more than {SECONDS} s")

    def stop(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self.connection.close()


def _work(mutant: Callable[[int], Seed], connection: Connection) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + KILOBYTES
    with tempfile.TemporaryDirectory() as folder:
        while True:
            try:
                number = connection.recv()
            except (EOFError, OSError):
                return
            made = mutant(number)
            connection.send(examine(made, Path(folder), most))


def examine(model: Seed, folder: Path, most: int = KILOBYTES) -> tuple[str, str]:
    """The kind and the details of what goes wrong with a model, both empty if nothing does; `most` are kilobytes."""
    path = folder / "model.xml"
    path.write_bytes(model.xml)
    path.with_suffix(".bin").write_bytes(model.weights)
    try:
        _check(path)
    except (Exception, RecursionError) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        last = frames[-1] if frames else None
        ours = [frame for frame in frames if not _HOMES.isdisjoint(Path(frame.filename).parents)]
        at = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else f"{last and last.name}"
        if isinstance(error, AssertionError) and not ours:
            at = f"{at}: {str(error)[-200:].rpartition('the rule of')[2][:60]}"
        return f"{type(error).__name__} in {at}", "".join(traceback.format_exception(error))[-3000:]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if peak > most:
        return "memory", f"{peak} kB"
    return "", ""


def _check(path: Path) -> None:
    import irrun
    from irrun.check.codes import CODES
    from irrun.check.render.formats import FORMATS

    report = irrun.validate(path)
    for found in report.diagnostics:
        assert found.code in CODES, found
        assert found.message, found
        assert "\n" not in found.code
        if found.code in INTERNAL:
            raise AssertionError(str(found))
    for render in FORMATS.values():
        text = render([report])
        assert not [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160], render


INTERNAL = ("E309",)
"""Codes that say that irrun itself failed."""
