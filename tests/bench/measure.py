"""The measures. Runtimes take turns (A B A B ...), so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.models import Model
from bench.processes import Setting, Worker, whole

TURN = 0.2
"""Seconds that a turn of a worker should last."""

MOST_RUNS = 200
"""In one turn."""

SLOW = 3.0
"""Seconds of a run from which on there is one turn only; and none, but the first run, from three times that on."""

TWINNED = ("onnxruntime", "onnx reference")
"""The runtimes that take the ONNX twin of a model."""


@dataclass(slots=True)
class Result:
    """What one runtime did with one model: `seconds` has the median of each turn, `best` is that of all runs.

    Where the whole process was measured, `peaks` are bytes of physical memory. `difference` is the largest one of an
    output from OpenVINO's, relative to the largest number of it. `failure` says why there is nothing else.
    """

    measure: str
    model: str
    runtime: str
    seconds: list[float] = field(default_factory=list)
    best: float | None = None
    peaks: list[int] = field(default_factory=list)
    load: float | None = None
    first: float | None = None
    difference: float | None = None
    failure: str | None = None


def measure_whole(measure: str, model: Model, runtimes: Sequence[str], setting: Setting, turns: int) -> list[Result]:
    """Whole processes: `check` reads the model, `one-shot` runs it once and writes the outputs; and peaks of memory."""
    results = [Result(measure, model.name, runtime) for runtime in runtimes]
    with tempfile.TemporaryDirectory() as folder:
        for turn, result in itertools.product(range(-1, turns), results):  # one before, to have the files in memory
            if result.failure is not None:
                continue
            try:
                done = whole(measure, result.runtime, model, setting, Path(folder) / "output.npz")
            except RuntimeError as error:
                result.failure = str(error)
                continue
            if turn >= 0:
                result.seconds.append(done.seconds)
                result.peaks.append(done.peak)
    for result in results:
        result.best = min(result.seconds, default=None)
    return results


def measure_steady(measure: str, model: Model, runtimes: Sequence[str], setting: Setting, turns: int) -> list[Result]:
    """Steady state: runs of a model that is loaded, each runtime in a process of its own."""
    results = [
        Result(measure, model.name, runtime) for runtime in runtimes if runtime not in TWINNED or model.twin is not None
    ]
    workers: dict[str, Worker] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number, result in enumerate(results):
            path = model.twin if result.runtime in TWINNED and model.twin else model.path
            try:
                worker = Worker(result.runtime, path, model, setting, folder / f"{number}.npz")
            except RuntimeError as error:
                result.failure = str(error)
                continue
            workers[result.runtime] = stack.enter_context(worker)
            result.load, result.first = worker.load, worker.first
        measured = [result for result in results if result.runtime in workers]
        _compare(results, folder)
        _take_turns(measured, workers, turns)
    return results


def _take_turns(results: Sequence[Result], workers: dict[str, Worker], turns: int) -> None:
    runs: dict[str, int] = {}
    every: dict[str, list[float]] = {}
    for result in results:
        first = workers[result.runtime].first
        once = first if first > SLOW else workers[result.runtime].run(1)[0]  # the first run may compile much
        runs[result.runtime] = max(1, min(MOST_RUNS, int(TURN / once)))
        every[result.runtime] = [once] if once > 3 * SLOW else []
        result.seconds = [once] if once > 3 * SLOW else []
    for _, result in itertools.product(range(turns), results):
        if result.seconds and result.seconds[0] > SLOW:
            continue
        seconds = workers[result.runtime].run(runs[result.runtime])
        every[result.runtime] += seconds
        result.seconds.append(statistics.median(seconds))
    for result in results:
        result.best = min(every[result.runtime])


def _compare(results: Sequence[Result], folder: Path) -> None:
    """Note how far the outputs of each are from OpenVINO's."""
    import numpy as np  # not at the top: what this process takes counts as the peak of those it starts

    loaded = {}
    for number, result in enumerate(results):
        if result.failure is None:
            with np.load(folder / f"{number}.npz") as arrays:
                loaded[result.runtime] = list(arrays.values())
    expected = loaded.get("openvino")
    for result in results:
        arrays = loaded.get(result.runtime)
        if expected is None or arrays is None or result.runtime == "openvino":
            continue
        if [array.shape for array in arrays] != [array.shape for array in expected]:
            print(f"{result.model}: {result.runtime} has outputs of other shapes than OpenVINO", file=sys.stderr)
            continue
        result.difference = 0.0
        for ours, theirs in zip(arrays, expected, strict=True):
            ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
            if ours.size:
                largest = float(np.abs(theirs).max()) or 1.0
                result.difference = max(result.difference, float(np.abs(ours - theirs).max()) / largest)
