"""The measures. Runtimes take turns (A B A B ...), so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.models import Model
from bench.processes import Peer, Worker, whole

TURN = 0.2
"""Seconds that a turn of a worker should last."""

MAX_RUNS = 200
"""In one turn."""

VARIED = 24
"""Sets of other data."""

SLOW = 3.0
"""Seconds of a run from which on there is one turn only; and none, but the first run, from three times that on."""


@dataclass(slots=True)
class Result:
    """What one runtime did with one model: `seconds` has the median of each turn, `best` is that of all runs.

    Where the whole process was measured, `peaks` are bytes of physical memory. `difference` is the largest one of an
    output from OpenVINO's, or else from that of the peer beside it, relative to the largest number of it. `failure`
    says why there is nothing else.
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


def measure_whole(measure: str, model: Model, peers: Sequence[Peer], turns: int) -> list[Result]:
    """Whole processes: `check` reads the model, `one-shot` runs it once and writes the outputs; and peaks of memory."""
    results = [Result(measure, model.name, peer.name) for peer in peers]
    with tempfile.TemporaryDirectory() as folder:
        # one turn before, to have the files in memory
        for turn, (result, peer) in itertools.product(range(-1, turns), list(zip(results, peers, strict=True))):
            if result.failure is not None:
                continue
            try:
                done = whole(measure, peer, model, Path(folder) / "output.npz")
            except RuntimeError as error:
                result.failure = str(error)
                continue
            if turn >= 0:
                result.seconds.append(done.seconds)
                result.peaks.append(done.peak)
    for result in results:
        result.best = min(result.seconds, default=None)
    return results


def measure_steady(measure: str, model: Model, peers: Sequence[Peer], turns: int) -> list[Result]:
    """Steady state: runs of a model that is loaded, each peer in a process of its own."""
    peers = [peer for peer in peers if not peer.twin or model.twin is not None]
    results = [Result(measure, model.name, peer.name) for peer in peers]
    workers: dict[str, Worker] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number, (result, peer) in enumerate(zip(results, peers, strict=True)):
            path = model.twin if peer.twin and model.twin else model.path
            try:
                worker = Worker(peer, path, [model.inputs], folder / f"{number}.npz")
            except RuntimeError as error:
                result.failure = str(error)
                continue
            workers[result.runtime] = stack.enter_context(worker)
            result.load, result.first = worker.load, worker.first
        measured = [result for result in results if result.runtime in workers]
        _compare(results, folder)
        _take_turns(measured, workers, turns)
    return results


def measure_fresh(measure: str, model: Model, peers: Sequence[Peer], turns: int) -> list[Result]:
    """The first runs with inputs of other shapes, one after the other in a process that has run the model once."""
    results = [Result(measure, model.name, peer.name) for peer in peers]
    with tempfile.TemporaryDirectory() as folder:
        for _, (result, peer) in itertools.product(range(turns), list(zip(results, peers, strict=True))):
            if result.failure is not None:
                continue
            try:
                with Worker(peer, model.path, [model.inputs, *model.others], Path(folder) / "outputs.npz") as worker:
                    result.seconds += worker.run(range(1, 1 + len(model.others)))
                    result.load, result.first = worker.load, worker.first
            except RuntimeError as error:
                result.failure = str(error)
    for result in results:
        result.best = min(result.seconds, default=None)
    return results


def measure_varied(measure: str, model: Model, peers: Sequence[Peer], turns: int) -> list[Result]:
    """Runs with other data of the same shapes, as those of a camera are: sizes that the data tell change each time."""
    with tempfile.TemporaryDirectory() as folder:
        return measure_fresh(measure, replace(model, others=varied(model.inputs, Path(folder))), peers, turns)


def varied(inputs: Path, folder: Path) -> tuple[Path, ...]:
    """Files of inputs, written to `folder`, with other data: half as much as floats vary is added to each at random,
    and integers are drawn from those that are there, unless they are in order, as lengths, masks and segments are."""
    import numpy as np  # not at the top: what this process takes counts as the peak of those it starts

    random, paths = np.random.default_rng(0), [folder / f"{number}.npz" for number in range(VARIED)]
    with np.load(inputs) as file:
        arrays = dict(file)
    for path in paths:
        np.savez(path, **{name: _moved(array, random) for name, array in arrays.items()})
    return tuple(paths)


def _moved(array: Any, random: Any) -> Any:
    import numpy as np

    if array.dtype.kind in "iu":
        steps = np.diff(array.reshape(-1))
        in_order = bool((steps >= 0).all() or (steps <= 0).all())
        return array if in_order else random.choice(array.reshape(-1), array.shape)
    if array.dtype.kind != "f":
        return array
    return (array + random.standard_normal(array.shape) * (array.std() / 2)).astype(array.dtype)


def _take_turns(results: Sequence[Result], workers: dict[str, Worker], turns: int) -> None:
    runs: dict[str, int] = {}
    every: dict[str, list[float]] = {}
    for result in results:
        first = workers[result.runtime].first
        # the first run may compile much, and the second one more, for sizes that have come again: both say nothing
        # of how many runs a turn has room for
        once = first if first > 3 * SLOW else workers[result.runtime].run([0, 0])[1]
        runs[result.runtime] = max(1, min(MAX_RUNS, int(TURN / once)))
        every[result.runtime] = [once] if once > 3 * SLOW else []
        result.seconds = [once] if once > 3 * SLOW else []
    for _, result in itertools.product(range(turns), results):
        if result.seconds and result.seconds[0] > SLOW:
            continue
        seconds = workers[result.runtime].run([0] * runs[result.runtime])
        every[result.runtime] += seconds
        result.seconds.append(statistics.median(seconds))
    for result in results:
        result.best = min(every[result.runtime])


def _compare(results: Sequence[Result], folder: Path) -> None:
    """Note how far the outputs of each are from OpenVINO's, or where that does not take part, from its peer's."""
    import numpy as np  # not at the top: what this process takes counts as the peak of those it starts

    loaded = {}
    for number, result in enumerate(results):
        if result.failure is None:
            with np.load(folder / f"{number}.npz") as arrays:
                loaded[result.runtime] = list(arrays.values())
    for result in results:
        arrays = loaded.get(result.runtime)
        beside = [name for name in loaded if name.endswith(f": {result.runtime}")]
        other = next((name for name in ("openvino", *beside) if name in loaded), result.runtime)
        if arrays is None or other == result.runtime:
            continue
        expected = loaded[other]
        if [array.shape for array in arrays] != [array.shape for array in expected]:
            print(f"{result.model}: {result.runtime} has outputs of other shapes than {other}", file=sys.stderr)
            continue
        result.difference = max((distance(*pair) for pair in zip(arrays, expected, strict=True)), default=0.0)


def distance(ours: Any, theirs: Any) -> float:
    """The largest difference of two arrays, relative to the largest finite number of the second.

    It is infinite where one of them alone is NaN or infinite, and where strings differ.
    """
    import numpy as np  # as above

    if theirs.dtype.kind == "U":
        return 0.0 if (ours == theirs).all() else np.inf
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    differing = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    if not differing.any():
        return 0.0
    largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0) or 1.0
    with np.errstate(invalid="ignore"):
        found = float(np.abs(ours[differing] - theirs[differing]).max()) / float(largest)
    return np.inf if np.isnan(found) else found
