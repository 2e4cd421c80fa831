"""Measures `irrun sweep` by workers, beside a shell loop over `irrun execute`, and what of a cluster limits it.

    python tests/bench/sweep.py FOLDER [--models EXPORTS]... [--count N] [--workers 1,2,4] [--turns N] [--dask]

FOLDER is where the models are made, or have been: copies of those in EXPORTS, which scripts in tests/exports write, and
built ones, `--count` together, with three files of inputs each. Sweeps of 1, 2 and 4 workers take turns with a part of
the loop. With --dask, the same by a scheduler and workers in processes of their own, the bytes that are sent, and how
many batches a second a scheduler gets through that have nothing to do; it needs irrun[dask].
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter, sleep

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from bench.fleet import SETS, fleet
from irrun.tools.sweep.performing import Batch, perform
from irrun.tools.sweep.rows import Row
from irrun.tools.sweep.tasks import Settings, plan

INPUTS = "{folder}/inputs*.npz"
EMPTY_BATCHES = 4000
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    models = fleet(options.folder, options.count, options.models, int(options.largest * 1e6))
    tasks = [(model, model.with_name(f"inputs{number}.npz")) for model in models for number in range(SETS)]
    chosen = random.Random(1).sample(tasks, min(options.loop, len(tasks)))
    seconds: dict[int, list[float]] = {count: [] for count in options.workers}
    clusters: dict[int, list[float]] = {count: [] for count in options.workers if options.dask}
    loops: list[float] = []
    print(f"{len(models)} models, {len(tasks)} tasks; load {os.getloadavg()[0]:.1f} at the beginning")
    for turn in range(options.turns):
        for count in options.workers:
            seconds[count].append(swept(options.folder, str(count), len(tasks)))
            if options.dask:
                with cluster(count) as address:
                    clusters[count].append(swept(options.folder, address, len(tasks)))
        begin, part = perf_counter(), chosen[turn :: options.turns]
        for model, inputs in part:
            command = [sys.executable, "-m", "irrun", "execute", str(model), "--inputs", str(inputs)]
            subprocess.run(command, check=True, **QUIET)
        loops.append((perf_counter() - begin) / len(part) * len(tasks))
        print(f"turn {turn + 1}: {seconds}, cluster {clusters}, loop {loops[-1]:.1f}; load {os.getloadavg()[0]:.1f}")
    print("\n| | seconds | tasks a second | beside one worker |\n| --- | ---: | ---: | ---: |")
    for name, found in (("workers", seconds), ("workers of a cluster", clusters)):
        for count, times in found.items():
            one = statistics.median(seconds[min(seconds)])
            middle = statistics.median(times)
            print(f"| {count} {name} | {middle:.1f} | {len(tasks) / middle:.1f} | {middle / one:.2f} |")
    loop = statistics.median(loops)
    print(f"| loop over `irrun execute` | {loop:.0f} | {len(tasks) / loop:.1f} | {loop / one:.2f} |")
    _sent(models)
    if options.dask:
        for workers in (1, 2):
            with cluster(workers) as address:
                print(
                    f"scheduler: {scheduled(address):.0f} batches a second, {workers} workers that have nothing to do"
                )
    return 0


def swept(folder: Path, jobs: str, count: int) -> float:
    """Seconds of a whole sweep, with all that starts and ends. Raises where a task is not ok."""
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "rows.jsonl"
        command = [sys.executable, "-m", "irrun", "sweep", str(folder), "--do", "execute", "--inputs", INPUTS]
        begin = perf_counter()
        subprocess.run([*command, "--jobs", jobs, "-o", str(output)], check=False, **QUIET)
        seconds = perf_counter() - begin
        statuses = Counter(json.loads(line)["status"] for line in output.read_text().splitlines())
    if statuses != {"ok": count}:
        raise RuntimeError(f"not all is well: {dict(statuses)}")
    return seconds


@contextmanager
def cluster(count: int) -> Iterator[str]:
    """The address of a scheduler with so many workers, all in processes of their own."""
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
            yield address.replace("tcp://", "dask://")
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()


def _nothing(batch: Batch) -> list[Row]:
    return [Row(batch.model.path, inputs, batch.device, batch.do, "ok", key=key) for inputs, key in batch.inputs]


def scheduled(address: str) -> float:
    """Batches a second that a cluster gets through where workers only answer."""
    from distributed import Client

    (task,) = plan([Path(__file__).parents[2] / "samples" / "cnn" / "model.xml"], ["validate"]).tasks
    batch = Batch(task.do, task.model, "", (("", task.key),), Settings(), task.versions, "/")
    with Client(address.replace("dask://", "tcp://")) as client:
        executor = client.get_executor(pure=False)
        list(executor.map(_nothing, [batch] * 100))
        begin = perf_counter()
        list(executor.map(_nothing, [batch] * EMPTY_BATCHES))
        return EMPTY_BATCHES / (perf_counter() - begin)


def _sent(models: Sequence[Path]) -> None:
    """What goes to a worker and comes back for a model."""
    tasks = plan(models[:1], ["execute"], [INPUTS]).tasks
    inputs = tuple((task.inputs, task.key) for task in tasks)
    for given in (inputs, inputs[:1] * 64):
        batch = Batch("execute", tasks[0].model, "auto", given, Settings(), tasks[0].versions, str(Path.cwd()))
        there = len(pickle.dumps((perform, batch)))
        back = len(pickle.dumps(perform(batch)))
        print(f"sent for {len(given)} tasks of a model: {there} bytes there, {back} back")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=Path, action="append", default=[], help="exports that are copied")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--largest", type=float, default=30, metavar="MB", help="weights of an export, at most")
    parser.add_argument("--workers", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--loop", type=int, default=60, help="how many tasks of the loop are done")
    parser.add_argument("--dask", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
