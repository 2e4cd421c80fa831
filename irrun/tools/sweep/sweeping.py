"""A sweep: what of a plan is missing goes to an executor batch by batch, and rows are written down as they come."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

from irrun.engines.placement import processors
from irrun.ir.discovery import find_models
from irrun.records import dataclass
from irrun.tools.sweep.course import Course, Tell
from irrun.tools.sweep.log import Log
from irrun.tools.sweep.performing import Batch, Workers, perform
from irrun.tools.sweep.rows import CRASHED, FAILED, NOT_DONE, OK, TIMED_OUT, Row
from irrun.tools.sweep.tasks import Plan, Settings, Task, plan

MOST_IN_BATCH = 64
"""Tasks of one model that are sent at once."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The rows of all tasks, in the order of these. `done` of them were made now, in `seconds`, on `jobs` workers;
    `known` were there, and the others are of the same content as one of these."""

    rows: tuple[Row, ...]
    done: int
    known: int
    seconds: float
    jobs: int

    @property
    def counts(self) -> Counter[str]:
        """How many rows have a status."""
        return Counter(row.status for row in self.rows)

    @property
    def ok(self) -> bool:
        return all(row.status == OK for row in self.rows)


def sweep(
    models: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    do: str | Iterable[str],
    inputs: str | Sequence[str] = (),
    *,
    seeds: Sequence[int] = (),
    against: str | Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    again: bool = False,
    tolerances: Iterable[str] = (),
    config: Mapping[str, str] | None = None,
    ops: Iterable[str | os.PathLike[str]] = (),
    **settings: Any,
) -> Sweep:
    """Do something with many models, on many inputs, on several devices: a row for each.

    `models` are .xml files, folders of them and patterns; `do` is "validate", "inspect", "execute" or "compare", or
    several of them. `inputs` are patterns of .npz files, in which `{folder}` and `{name}` stand for the folder of a
    model and its name without `.xml`; `seeds` make up inputs. `against` are other sides, as `irrun.compare` takes them.

    Rows go to `output`, .jsonl or .parquet, one by one; what is in it already, by content, is not done again. With
    `again`, what has crashed or taken too long before is. `executor` does the tasks, in `jobs` batches at once; unless
    one is given, so many processes of this machine do, as many as processors by default. `tolerances` are texts as
    `irrun compare --tol` takes them, `config` properties of devices, `ops` files with custom ops; `settings` are
    `timeout`, `threads`, `engine`, `precision`, `max_memory` and `outputs_only`, as in
    `irrun.tools.sweep.tasks.Settings`.

    Raises FileNotFoundError where there are no models or inputs, ValueError for what cannot be done or a file of
    something else, OSError where files cannot be read or written, EngineError where the executor does no more tasks.

    >>> import irrun
    >>> found = irrun.sweep("samples/cnn/model.xml", ["validate", "execute"], "{folder}/inputs.npz", jobs=1)
    >>> [(row.do, row.status) for row in found.rows]
    [('validate', 'ok'), ('execute', 'ok')]
    """
    named = [models] if isinstance(models, str | os.PathLike) else list(models)
    paths, _ = find_models([os.fspath(name) for name in named])
    planned = plan(
        paths,
        [do] if isinstance(do, str) else do,
        [inputs] if isinstance(inputs, str) else inputs,
        seeds,
        [against] if isinstance(against, str) else against,
        Settings(
            tolerances=tuple(tolerances),
            config=tuple(sorted((config or {}).items())),
            ops=tuple(os.fspath(path) for path in ops),
            **settings,
        ),
    )
    return swept(planned, None if output is None else Path(output), executor, jobs, again=again)


def swept(
    planned: Plan,
    output: Path | None = None,
    executor: Executor | None = None,
    jobs: int | Callable[[], int] | None = None,
    *,
    again: bool = False,
    tell: Tell = lambda done, of: None,
) -> Sweep:
    """As `sweep`, of what is planned already. `jobs` may be asked again and again, as workers come and go."""
    begin = monotonic()
    log = None if output is None else Log(output)
    try:
        known = {row.place: row for row in (() if log is None else log.rows)}
        by_key = {row.key: row for row in known.values() if _counts(row, planned.settings, again)}
        places = defaultdict(list)
        for task in planned.tasks:
            places[task.key].append(task)
        missing = [tasks[0] for key, tasks in places.items() if key not in by_key]
        found = {key: row for key, row in by_key.items() if key in places}

        def keep(rows: Iterable[Row]) -> None:
            new = [_of(row, task) for row in rows for task in places[row.key]]
            if log is not None:
                log.add(row for row in new if known.get(row.place) != row)
            found.update((row.key, row) for row in new)

        keep(list(found.values()))
        several = jobs if callable(jobs) else lambda: _jobs(executor, jobs)
        if missing:
            _work(missing, planned, executor, several, keep, tell)
        if log is not None:
            log.close()
            log = None
    finally:
        if log is not None:
            log.abandon()
    rows = tuple(_of(found[task.key], task) for task in planned.tasks)
    return Sweep(rows, len(missing), len(places) - len(missing), monotonic() - begin, several())


def _counts(row: Row, settings: Settings, again: bool) -> bool:
    """Whether a row that is there need not be made again."""
    if row.status == TIMED_OUT and row.metrics.get("timeout", 0.0) < settings.timeout:
        return False
    return row.status != NOT_DONE and not (again and row.status in (CRASHED, FAILED, TIMED_OUT))


def _of(row: Row, task: Task) -> Row:
    """The row of a task that is of the same content."""
    return replace(row, model=task.model.path, inputs=task.inputs, device=task.device)


def _jobs(executor: Executor | None, jobs: int | None) -> int:
    if jobs is not None:
        return jobs
    held = getattr(executor, "_max_workers", None)  # of the pools of the standard library
    return held if isinstance(held, int) else processors()


def _work(
    missing: Sequence[Task],
    planned: Plan,
    executor: Executor | None,
    jobs: Callable[[], int],
    keep: Callable[[Iterable[Row]], object],
    tell: Tell,
) -> None:
    if executor is not None:
        Course(_batches(missing, planned, jobs(), None), executor.submit, perform, jobs, near=False).run(keep, tell)
        return
    count = jobs()
    threads = planned.settings.threads or max(1, processors() // count)
    planned = replace(planned, settings=replace(planned.settings, threads=threads))
    with _pool(count) as (pool, workers):
        Course(_batches(missing, planned, count, count), pool.submit, workers.perform, jobs, near=True).run(keep, tell)


@contextmanager
def _pool(count: int) -> Iterator[tuple[Executor, Workers]]:
    """Threads that wait for as many processes, which end with them."""
    stop = Event()
    workers = Workers(lambda: "the sweep was stopped" if stop.is_set() else None)
    pool = ThreadPoolExecutor(count)
    try:
        yield pool, workers
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        workers.close()


def _batches(missing: Sequence[Task], planned: Plan, jobs: int, workers: int | None) -> list[Batch]:
    """Tasks of one model together, those of large ones first, so that nobody is left with one of them at the end."""
    groups: dict[tuple[str, str, str], list[Task]] = defaultdict(list)
    for task in missing:
        groups[task.model.hash, task.do, task.device].append(task)
    most = MOST_IN_BATCH if len(groups) >= 2 * jobs else max(1, min(MOST_IN_BATCH, -(-len(missing) // (2 * jobs))))
    ordered = sorted(groups.values(), key=lambda tasks: (-sum(tasks[0].model.bytes), tasks[0].model.hash))
    folder = str(Path.cwd())
    return [
        Batch(
            first.do,
            first.model,
            first.device,
            tuple((task.inputs, task.key) for task in tasks[begin : begin + most]),
            planned.settings,
            first.versions,
            folder,
            workers,
        )
        for first, *others in ordered
        for tasks in [[first, *others]]
        for begin in range(0, len(tasks), most)
    ]
