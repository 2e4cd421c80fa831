"""Measures `irrun sweep` by workers, beside a shell loop over `irrun execute`, and what of a cluster limits it.

    python tests/bench/sweep.py FOLDER [--models EXPORTS]... [--count N] [--workers 1,2,4] [--turns N] [--dask]

FOLDER is where the models are made, or have been: copies of those in EXPORTS, which scripts in tests/exports write, and
built ones, `--count` together, with three files of inputs each. Sweeps of 1, 2 and 4 workers take turns with a part of
the loop, and with sums in as many processes, which show what others leave of the machine. Each worker computes with one
thread, unless --threads says otherwise. What the command has computed and each worker in the mean is about what a sweep
takes on a machine that does nothing else. With --dask, the same by a scheduler and workers in processes of their own,
and what a batch costs a scheduler whose workers have nothing to do; it needs irrun[dask].
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter, sleep

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from processor import processor_time

from bench.fleet import SETS, fleet
from irrun.tools.sweep.performing import Batch, perform
from irrun.tools.sweep.rows import Row
from irrun.tools.sweep.tasks import Settings, plan

INPUTS = "{folder}/inputs*.npz"
EMPTY_BATCHES = 2000
SUMMED = 2_000_000
"""Numbers for each model that are added up by as many processes as there are workers, together."""

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    models = fleet(options.folder, options.count, options.models, int(options.largest * 1e6))
    tasks = [(model, model.with_name(f"inputs{number}.npz")) for model in models for number in range(SETS)]
    chosen = random.Random(1).sample(tasks, min(options.loop, len(tasks)))
    found: dict[str, list[tuple[float, ...]]] = {}
    print(f"{len(models)} models, {len(tasks)} tasks; load {os.getloadavg()[0]:.1f} at the beginning")
    for turn in range(options.turns):
        for count in options.workers:
            name = f"{count} worker{'s' * (count > 1)}"
            found.setdefault(f"sums, {name}", []).append(_timed(lambda count=count: _summed(len(models), count), count))
            found.setdefault(name, []).append(swept(options.folder, str(count), len(tasks), options.threads))
            if options.dask:
                with cluster(count) as (address, _, workers):
                    measured = swept(options.folder, address, len(tasks), options.threads, workers)
                found.setdefault(f"{name} of a cluster", []).append(measured)
        part = chosen[turn :: options.turns]
        if part:
            whole = len(tasks) / len(part)
            measured = tuple(whole * seconds for seconds in _timed(lambda part=part: _looped(part)))
            found.setdefault(f"a loop of `irrun execute`, by {len(chosen)} tasks", []).append(measured)
        latest = {name: f"{times[-1][0]:.1f}" for name, times in found.items()}
        print(f"turn {turn + 1}: {latest}; load {os.getloadavg()[0]:.1f}")
    _table(found, len(tasks))
    _sent(models)
    if options.dask:
        for workers in (1, 2):
            with cluster(workers) as (address, scheduler, _):
                rate, cost = scheduled(address, scheduler)
            print(f"{workers} idle workers: {rate:.0f} batches a second, {cost:.2f} ms of the scheduler each")
    return 0


def _table(found: dict[str, list[tuple[float, ...]]], count: int) -> None:
    """Medians, and medians of the ratios turn by turn to one worker, of sums to those of one."""
    first = {kind: next(times for name, times in found.items() if name.startswith("sums") == kind) for kind in (0, 1)}
    print("\n| | seconds | beside one | of processors, side by side | beside one | tasks a second |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, times in found.items():
        sums = name.startswith("sums")
        cells = []
        for own, one in zip(zip(*times, strict=True), zip(*first[sums], strict=True), strict=True):
            ratio = statistics.median(mine / other for mine, other in zip(own, one, strict=True))
            cells += [f"{statistics.median(own):.1f}", f"{ratio:.2f}"]
        rate = "" if sums else f"{count / statistics.median(seconds for seconds, _ in times):.1f}"
        print(f"| {name} | {' | '.join(cells)} | {rate} |")


def _timed(work: Callable[[], object], processes: int = 1) -> tuple[float, float]:
    """Seconds, and those that each of several processes has computed, which have ended."""
    begin, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return perf_counter() - begin, computed / processes


def _summed(models: int, processes: int) -> None:
    command = [sys.executable, "-S", "-c", f"sum(range({models * SUMMED // processes}))"]
    for process in [subprocess.Popen(command, start_new_session=True) for _ in range(processes)]:
        process.wait()


def _looped(tasks: Sequence[tuple[Path, Path]]) -> None:
    for model, inputs in tasks:
        command = [sys.executable, "-m", "irrun", "execute", str(model), "--inputs", str(inputs)]
        subprocess.run(command, check=True, **QUIET)


def swept(folder: Path, jobs: str, count: int, threads: int, workers: Sequence[int] = ()) -> tuple[float, float]:
    """Seconds of a whole sweep, with all that starts and ends, and those that the command has computed, and each of its
    workers in the mean: about what it takes where nobody else does anything.

    `workers` are the processes of those that are there already. Raises RuntimeError where a task is not ok.
    """
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "rows.jsonl"
        command = [sys.executable, "-m", "irrun", "sweep", str(folder), "--do", "execute", "--inputs", INPUTS]
        command += ["--jobs", jobs, "--threads", str(threads), "-o", str(output)]
        before = {worker: processor_time(worker) for worker in workers}
        begin = perf_counter()
        with subprocess.Popen(command, **QUIET) as process:
            working = computed = 0.0
            while process.poll() is None:
                computed = max(computed, processor_time(process.pid))
                own = [processor_time(worker) for worker in _children(process.pid)]
                others = [sum(map(processor_time, [worker, *_children(worker)])) - before[worker] for worker in workers]
                working = max(working, sum(own) + sum(others))
                sleep(0.05)
        seconds = perf_counter() - begin
        statuses = Counter(json.loads(line)["status"] for line in output.read_text().splitlines())
    if statuses != {"ok": count}:
        raise RuntimeError(f"not all is well: {dict(statuses)}")
    return seconds, computed + working / (len(workers) or int(jobs))


@contextmanager
def cluster(count: int) -> Iterator[tuple[str, int, list[int]]]:
    """The address of a scheduler with so many workers, all in processes of their own, and these."""
    with tempfile.TemporaryDirectory() as scratch:
        file = ["--scheduler-file", f"{scratch}/scheduler.json", "--no-dashboard"]
        python = [sys.executable, "-m"]
        scheduler = [*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *file]
        worker = [*python, "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *file]
        processes = [subprocess.Popen(scheduler, cwd=scratch, **QUIET)]
        try:
            while not Path(file[1]).exists():
                sleep(0.05)
            processes += [subprocess.Popen(worker, cwd=scratch, **QUIET) for _ in range(count)]
            from distributed import Client

            address = json.loads(Path(file[1]).read_text())["address"]
            with Client(address) as client:
                client.wait_for_workers(count)
            yield address.replace("tcp://", "dask://"), processes[0].pid, [process.pid for process in processes[1:]]
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()


def _nothing(batches: Sequence[Batch], most: float) -> list[list[Row]]:
    return [[Row(batch.model.path, *given, batch.do, "ok") for given in batch.inputs] for batch in batches]


def scheduled(address: str, scheduler: int) -> tuple[float, float]:
    """Batches a second that a cluster gets through where workers only answer, and the scheduler's milliseconds each."""
    from distributed import Client

    (task,) = plan([Path(__file__).parents[2] / "samples" / "cnn" / "model.xml"], ["validate"]).tasks
    batch = Batch(task.do, task.model, "", (("", task.key),), Settings(), task.versions, "/")
    with Client(address.replace("dask://", "tcp://")) as client:
        executor = client.get_executor(pure=False)
        list(executor.map(_nothing, [[batch]] * 100, [1.0] * 100))
        begin, before = perf_counter(), processor_time(scheduler)
        list(executor.map(_nothing, [[batch]] * EMPTY_BATCHES, [1.0] * EMPTY_BATCHES))
        cost = processor_time(scheduler) - before
        return EMPTY_BATCHES / (perf_counter() - begin), 1e3 * cost / EMPTY_BATCHES


def _children(process: int) -> list[int]:
    """The processes that the threads of one have started."""
    found = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def _sent(models: Sequence[Path]) -> None:
    """What goes to a worker and comes back for a model."""
    tasks = plan(models[:1], ["execute"], [INPUTS]).tasks
    inputs = tuple((task.inputs, task.key) for task in tasks)
    for given in (inputs, tuple((f"{name}{number}", key[::-1]) for number in range(32) for name, key in inputs[:2])):
        batch = Batch("execute", tasks[0].model, "auto", given, Settings(), tasks[0].versions, str(Path.cwd()))
        there = len(pickle.dumps((perform, [batch], 1.0)))
        ((row,),) = perform([replace(batch, inputs=inputs[:1])], 1.0)
        back = len(pickle.dumps([[replace(row, inputs=name, key=key) for name, key in given]]))
        print(f"sent for {len(given)} tasks of a model: {there} bytes there, {back} back")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=Path, action="append", default=[], help="exports that are copied")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--largest", type=float, default=30, metavar="MB", help="weights of an export, at most")
    parser.add_argument("--workers", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--loop", type=int, default=60, help="how many tasks of the loop are done")
    parser.add_argument("--dask", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
