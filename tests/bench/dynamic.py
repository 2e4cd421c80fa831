"""Measures irrun on models of unknown batch and length, as the lengths of their inputs keep changing.

    python tests/bench/dynamic.py --models FOLDER [--only NAME] [--measure NAME] [--engine NAME] [--json FILE]

FOLDER is what `tests/exports/export.py FOLDER --dynamic` has written: every input is [batch, length], and those of a
decoder have a length of their own. Batches are 1 or 2, lengths 8 to 256. The measures:

    fresh     the first run with a length that the process has not seen, and the runs of that length after it
    static    run after run with one length, beside OpenVINO and beside the same model with these sizes declared
    sequence  50 random lengths in a new process, which has loaded the model and run it once; and OpenVINO's time

OpenVINO computes in f32, with as many threads, by one request; it must be installed here, too, where it declares sizes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

import numpy as np

from bench.measure import Result, measure_steady
from bench.models import Model, models_in
from bench.options import parser, setting
from bench.processes import Peer, Setting, Worker
from bench.report import record, report

SEED = 20260401
MEASURES = ("fresh", "static", "sequence")
ENGINES = ("auto", "onednn", "numpy", "reference")
SHORTEST, LONGEST = 8, 256
WARM, FRESH, REPEATS = 4, 12, 6
"""Lengths that come before the fresh ones, these, and the runs of each after its first."""

SEQUENCE = 50


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of the inputs of a run: the batch, the length, and that of what a decoder is given."""

    batch: int
    length: int
    target: int


FIXED = (Sizes(1, 16, 16), Sizes(2, 64, 64), Sizes(1, 200, 200))
"""Where the static twin is made for."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder:
        own = setting(options.python, options.threads, Path(folder) / "own")
        if not own.has("openvino"):
            print("openvino is not installed: there is nothing to compare with", file=sys.stderr)
            return 2
        results = measure(options, own)
    print(report(results))
    for line in ranges([result for result in results if result.measure == "fresh"]):
        print(line)
    if options.json:
        options.json.write_text(json.dumps(record(results, options.threads), indent=1) + "\n")
    return 0


def measure(options: argparse.Namespace, own: Setting) -> list[Result]:
    """All that is asked for."""
    names = ["irrun" if engine == "auto" else f"irrun {engine}" for engine in options.engine]
    peers = [Peer(name, name, own) for name in names]
    rival = Peer("openvino", "openvino", own)
    results: list[Result] = []
    for kind, model in itertools.product(MEASURES, models_in(options.models, options.only)):
        if kind not in options.measure:
            continue
        print(f"{kind}: {model.name}", file=sys.stderr, flush=True)
        if kind == "fresh":
            for peer in peers:
                results += measure_fresh(model, peer)
        elif kind == "static":
            statics = [Peer(f"static: {peer.name}", peer.runtime, own, twin=True) for peer in peers]
            for sizes in FIXED:
                results += measure_static(model, [*peers, *statics, rival], sizes, options.turns)
        else:
            results += measure_sequence(model, [*peers, rival], options.turns)
    return results


def measure_fresh(model: Model, peer: Peer) -> list[Result]:
    """`seconds` of the first run with each length, and, as `repeated: NAME`, the median of those that follow it."""
    first, repeated = (Result("fresh", model.name, name) for name in (peer.name, f"repeated: {peer.name}"))
    drawn = distinct_sizes(np.random.default_rng(SEED), WARM + FRESH)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            with Worker(peer, model.path, write_inputs(model, drawn, folder), folder / "outputs.npz") as worker:
                worker.run(range(WARM))
                for number in range(WARM, WARM + FRESH):
                    fresh, *others = worker.run([number] * (1 + REPEATS))
                    first.seconds.append(fresh)
                    repeated.seconds.append(statistics.median(others))
                first.load, first.first = worker.load, worker.first
        except RuntimeError as error:
            first.failure = str(error)
    return [first, repeated]


def measure_static(model: Model, peers: Sequence[Peer], sizes: Sizes, turns: int) -> list[Result]:
    """Steady state with inputs of these sizes, of the model and of its twin that has them declared."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (inputs,) = write_inputs(model, [sizes], folder)
        twin = folder / "static.xml"
        write_static(model, inputs, twin)
        name = f"{model.name} {sizes.batch} x {sizes.length}"
        return measure_steady("static", Model(name, model.path, inputs, twin), peers, turns)


def measure_sequence(model: Model, peers: Sequence[Peer], turns: int) -> list[Result]:
    """`seconds` have the sum of all runs of each turn, which is a new process; `load` is that of the last one."""
    results = [Result("sequence", model.name, peer.name) for peer in peers]
    rng = np.random.default_rng(SEED)
    drawn = [random_sizes(rng, length) for length in rng.integers(SHORTEST, LONGEST + 1, 1 + SEQUENCE)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        inputs = write_inputs(model, drawn, folder)
        for _, (result, peer) in itertools.product(range(turns), list(zip(results, peers, strict=True))):
            if result.failure is not None:
                continue
            try:
                with Worker(peer, model.path, inputs, folder / "outputs.npz") as worker:
                    result.seconds.append(sum(worker.run(range(1, 1 + SEQUENCE))))
                    result.load, result.first = worker.load, worker.first
            except RuntimeError as error:
                result.failure = str(error)
    return results


def distinct_sizes(rng: np.random.Generator, count: int) -> list[Sizes]:
    """Sizes of which no two have the same length."""
    return [random_sizes(rng, length) for length in rng.permutation(np.arange(SHORTEST, LONGEST + 1))[:count]]


def random_sizes(rng: np.random.Generator, length: int) -> Sizes:
    """Sizes of that length."""
    return Sizes(int(rng.integers(1, 3)), int(length), int(rng.integers(SHORTEST, LONGEST + 1)))


def write_inputs(model: Model, drawn: Sequence[Sizes], folder: Path) -> list[Path]:
    """Write an .npz file for each of `drawn`."""
    with np.load(model.inputs) as arrays:
        example = dict(arrays)
    paths = [folder / f"inputs{number}.npz" for number in range(len(drawn))]
    for path, sizes in zip(paths, drawn, strict=True):
        np.savez(path, **resized(example, sizes))
    return paths


def resized(example: dict[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    """Inputs [batch, length] of these sizes: those of `example`, from their beginning again where they end."""
    lengths = {name: sizes.target if name.startswith("decoder") else sizes.length for name in example}
    return {
        name: array[np.ix_(np.arange(sizes.batch) % array.shape[0], np.arange(lengths[name]) % array.shape[1])]
        for name, array in example.items()
    }


def write_static(model: Model, inputs: Path, path: Path) -> None:
    """Write the model with the shapes of `inputs` declared."""
    import openvino as ov

    twin = ov.Core().read_model(model.path)
    with np.load(inputs) as arrays:
        twin.reshape({name: ov.PartialShape(list(array.shape)) for name, array in arrays.items()})
    ov.save_model(twin, path, compress_to_fp16=False)


def ranges(results: Sequence[Result]) -> list[str]:
    """Lines that say what the ratios of first runs are, which come as pairs with the repeated ones: by length."""
    lines = []
    for first, repeated in zip(results[::2], results[1::2], strict=True):
        ratios = [a / b for a, b in zip(first.seconds, repeated.seconds, strict=True)]
        if ratios:
            found = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
            lines.append(f"{first.model}: {first.runtime} / {repeated.runtime} of one length: {found}")
    return lines


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    known = parser(__doc__, turns=3)
    known.add_argument("--measure", action="append", choices=MEASURES, help="may be given several times; default: all")
    known.add_argument("--engine", action="append", choices=ENGINES, help="may be given several times; default: auto")
    options = known.parse_args(arguments)
    if options.models is None:
        known.error("--models is needed")
    options.measure, options.engine = options.measure or MEASURES, options.engine or ["auto"]
    return options


if __name__ == "__main__":
    sys.exit(main())
