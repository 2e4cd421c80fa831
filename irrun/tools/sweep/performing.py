"""Batches of tasks as any executor may be given them: each in a process of its own, which is told apart from its tasks.

Whatever a task does, a row comes back; what crashes or hangs takes nothing with it but the process that did it.
"""

from __future__ import annotations

import atexit
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from irrun.engines.placement import processors
from irrun.files import Unwritten, is_there
from irrun.records import dataclass
from irrun.tools.compare.sides.contract import SideFailed
from irrun.tools.compare.sides.process import Worker
from irrun.tools.sweep.rows import CRASHED, FAILED, NOT_DONE, TIMED_OUT, Row
from irrun.tools.sweep.tasks import PACKAGES, Content, Settings, is_file, version_of

ATTEMPTS = 2
"""How often a task is tried whose process dies: it may be the one before, or somebody else, who is to blame."""

_GRACE = 10.0
"""Seconds that a process may take beyond those of its task: to start, and to end itself."""

_REMEMBERED = 8
"""Models that a worker is thought to have ready."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""What libraries read when they are loaded."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Tasks that differ in their inputs alone: pairs of these and a key.

    Paths are taken from `folder` on. So many `workers` share the memory of a machine, as many as processors unless
    given.
    """

    do: str
    model: Content
    device: str
    inputs: tuple[tuple[str, str], ...]
    settings: Settings
    versions: Mapping[str, str]
    folder: str
    workers: int | None = None


@dataclass(slots=True)
class _Held:
    """A worker, and the models that it was given last."""

    worker: Worker
    models: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


class Workers:
    """Processes that do tasks, as many as there are threads that ask; who has a model ready is asked first.

    `stopped` gives why tasks should be given up, or None.
    """

    def __init__(self, stopped: Callable[[], str | None] | None = None) -> None:
        self._stopped = stopped
        self._idle: dict[Settings, list[_Held]] = {}
        self._lock = Lock()

    def perform(self, batches: Sequence[Batch], most: float) -> list[list[Row]]:
        """The rows of batches, as far as it came in `most` seconds: of the last one, those of its first tasks.

        Raises nothing for what a task does.
        """
        until, found = monotonic() + most, list[list[Row]]()
        for batch in batches:
            found.append(self._rows(batch, until))
            if monotonic() >= until:
                break
        return found

    def _rows(self, batch: Batch, until: float) -> list[Row]:
        amiss = _amiss(batch)
        if amiss is not None:
            return [_row(batch, number, status=NOT_DONE, reason=amiss) for number in range(len(batch.inputs))]
        held, rows = self._take(batch), list[Row]()
        try:
            for number in range(len(batch.inputs)):
                if rows and monotonic() >= until:
                    break
                rows.append(self._row(held.worker, batch, number))
        except BaseException:
            held.worker.close(kill=True)
            raise
        held.models.append(batch.model.hash)
        with self._lock:
            self._idle.setdefault(batch.settings, []).append(held)
        return rows

    def close(self) -> None:
        """End the processes that have nothing to do."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for held in (held for listed in idle.values() for held in listed):
            held.worker.close(kill=True)

    def _take(self, batch: Batch) -> _Held:
        with self._lock:
            idle = self._idle.get(batch.settings, [])
            ready = (held for held in reversed(idle) if batch.model.hash in held.models)
            held = next(ready, idle[-1] if idle else None)
            if held is not None:
                idle.remove(held)
                return held
        settings = batch.settings
        env = dict.fromkeys(_THREADS, str(settings.threads or 1))
        return _Held(Worker("irrun.tools.sweep.worker", "the task", settings.timeout + _GRACE, env))

    def _row(self, worker: Worker, batch: Batch, number: int) -> Row:
        request, timeout = _request(batch, number), batch.settings.timeout
        late = f"it took longer than {timeout:g} s"
        for attempt in range(1, ATTEMPTS + 1):
            begin = monotonic()
            try:
                answer = worker.call(request, watch=self._stopped)
            except Unwritten as error:
                return _row(batch, number, status=FAILED, reason=str(error), seconds=monotonic() - begin)
            except SideFailed as error:
                if self._stopped is not None and self._stopped() is not None:
                    raise
                seconds = monotonic() - begin
                if error.signal is None and seconds >= timeout:
                    return _row(
                        batch, number, status=TIMED_OUT, reason=late, seconds=seconds, metrics={"timeout": timeout}
                    )
                if attempt == ATTEMPTS:
                    said = f"; it wrote: {error.said[-1]}" if error.said else ""
                    reason = f"{error.reason}, {ATTEMPTS} times{said}"
                    return _row(batch, number, status=CRASHED, reason=reason, seconds=seconds)
                continue
            if answer["status"] == TIMED_OUT:
                worker.close(kill=True)  # it may be in the middle of anything
                answer |= {"reason": late, "seconds": monotonic() - begin, "metrics": {"timeout": timeout}}
            return _row(batch, number, **answer)
        raise AssertionError


_WORKERS = [Workers()]
"""Those of this process are the last ones; those before it are of processes that it is a copy of."""

atexit.register(lambda: _WORKERS[-1].close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _WORKERS.append(Workers()))


def perform(batches: Sequence[Batch], most: float) -> list[list[Row]]:
    """As `Workers.perform`, with workers that belong to this process: what other executors than irrun's are given."""
    return _WORKERS[-1].perform(batches, most)


def _row(batch: Batch, number: int, **found: Any) -> Row:
    inputs, key = batch.inputs[number]
    return Row(batch.model.path, inputs, batch.device, batch.do, key=key, versions=batch.versions, **found)


def _request(batch: Batch, number: int) -> dict[str, Any]:
    settings, (inputs, _) = batch.settings, batch.inputs[number]
    other = Path(batch.folder, batch.device)
    return {
        "do": batch.do,
        "model": str(Path(batch.folder, batch.model.path)),
        "hash": batch.model.hash,
        "bytes": batch.model.bytes,
        "inputs": str(Path(batch.folder, inputs)) if is_file(inputs) else inputs,
        "device": str(other) if batch.do == "compare" and is_there(other) else batch.device,
        "timeout": settings.timeout,
        "threads": settings.threads or 1,
        "engine": settings.engine,
        "precision": settings.precision,
        "max_memory": settings.max_memory,
        "tolerances": settings.tolerances,
        "config": settings.config,
        "outputs_only": settings.outputs_only,
        "ops": [str(Path(batch.folder, path)) for path in settings.ops],
        "workers": batch.workers or processors(),
    }


def _amiss(batch: Batch) -> str | None:
    """What keeps a batch from being done here as it was planned; None where nothing does."""
    host = f"a worker ({socket.gethostname()}, process {os.getpid()})"
    advice = "put files where all workers have the same path"
    model = Path(batch.folder, batch.model.path)
    files = {model: batch.model.bytes[0], model.with_suffix(".bin"): batch.model.bytes[1]}
    given = [inputs for inputs, _ in batch.inputs if is_file(inputs)]
    others = [Path(batch.folder, path) for path in (*given, *batch.settings.ops)]
    try:
        for path in (*(path for path, size in files.items() if size >= 0), *others):
            if not path.exists():
                return f"{host} does not see {path}: {advice}"
        for path, size in files.items():
            if size >= 0 and path.stat().st_size != size:
                return f"{host} sees another {path}, of {path.stat().st_size:,} bytes instead of {size:,}: {advice}"
    except OSError as error:
        return f"{host} cannot see {error.filename}: {error.strerror}"
    for name in dict.fromkeys((*PACKAGES, *batch.versions)):
        found, planned = version_of(name), batch.versions.get(name)
        if found != planned:
            return f"{host} has {name} {found}, the sweep was planned with {planned}: install the same packages there"
    return None
