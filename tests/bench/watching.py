"""How long and how much memory a run takes that somebody looks at, beside one that nobody does.

    python tests/bench/watching.py MODEL.xml [--random 7] [--rounds 9]

Prints, for statistics of every tensor (`--dump FILE.jsonl`) and for `--check-finite`, the ratio of the quickest run to
the quickest plain one, the runs taken in turn, the least processor time of all threads, which says more where the
machine is busy, and the peak of a process of its own beside that of a plain one. Then, for some element types, how much
memory one thread measures in a second, by kernels and by numpy.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import irrun
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.tools.watch.dump import Recording
from irrun.tools.watch.entries import Entry
from irrun.tools.watch.ranges import EVERYTHING, Glance
from irrun.tools.watch.selection import Selection
from irrun.tools.watch.statistics import by_kernels, by_numpy

TYPES = ("f32", "f16", "bf16", "f64", "i32", "i64", "u8")


def peak(*arguments: str) -> float:
    """Megabytes that `irrun execute` takes at most, in a process of its own."""
    code = (
        "import resource, subprocess, sys; "
        "subprocess.run([sys.executable, '-m', 'irrun', 'execute', *sys.argv[1:]], check=True, capture_output=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def speed(type: str, by: Callable[[Array], object]) -> float:
    """Billions of bytes that are measured in a second of a processor."""
    array = (np.random.default_rng(7).standard_normal(1 << 22) * 30).astype(numpy_dtype(type))
    busy = []
    for _ in range(7):
        begin = process_time()
        by(array)
        busy.append(process_time() - begin)
    return float(array.nbytes / min(busy) / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--random", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    executor = irrun.GraphExecutor(options.model)
    inputs = executor.random_inputs(options.random)
    entries: list[Entry] = []
    with tempfile.TemporaryDirectory() as folder:
        observers = {
            "plain": lambda: None,
            "nothing done": lambda: lambda event: None,
            "statistics": lambda: Recording(Selection(), False, lambda entry, array: entries.append(entry)),
            "check finite": lambda: Glance(EVERYTHING).observer(),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in observers}
        for _ in range(options.rounds + 1):
            for name, observer in observers.items():
                session = executor.session()
                entries.clear()
                begin, busy = perf_counter(), process_time()
                session.run(inputs, observer=observer())
                times[name].append((perf_counter() - begin, process_time() - busy))
        quickest = {name: [min(values) for values in zip(*found[1:], strict=True)] for name, found in times.items()}
        for name, (seconds, busy) in quickest.items():
            ratios = [own / plain for own, plain in zip((seconds, busy), quickest["plain"], strict=True)]
            print(f"{name}: {1e3 * seconds:.1f} ms, {ratios[0]:.2f} of a plain run;", end=" ")
            print(f"{1e3 * busy:.1f} ms of processors, {ratios[1]:.2f}")
        plain = peak(options.model, "--random", str(options.random))
        for name, given in (
            ("statistics", ["--dump", str(Path(folder) / "d.jsonl")]),
            ("check finite", ["--check-finite"]),
        ):
            print(f"{name}: {peak(options.model, '--random', str(options.random), *given) - plain:+.0f} MB at the peak")
    for type in TYPES:
        speeds = (speed(type, by) for by in (by_kernels, by_numpy))
        print(f"{type}: {' and '.join(f'{value:.2f}' for value in speeds)} GB in a second of a processor")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
