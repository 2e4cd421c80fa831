"""Measures the three ops that irrun began with beside OpenVINO, and beside the bytes that they have to move.

    python tests/bench/founding.py [--only NAME] [--turns N] [--threads N] [--json FILE]

An op reads its inputs and writes its outputs, and of a table the rows that it is asked for, each as often as it is. The
limit is what a copy takes that reads and writes as many bytes, by as many threads, measured after each op. OpenVINO
computes in f32. Sizes are those of the table in the README, a tenth, ten times as many, and such as repeat themselves.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

import numpy as np

from bench.graphs import FOUNDING
from bench.measure import Result, measure_steady
from bench.models import Model
from bench.options import parser, setting
from bench.processes import HERE, Peer, Setting
from bench.report import ratio, record

COPIED = 1 << 26
"""Bytes of the array that is copied to know the limit."""

TIMES = 9


@dataclass(frozen=True, slots=True)
class Row:
    """What an op came to: seconds of irrun and of OpenVINO, how many times as fast irrun is, the bytes that have to be
    moved, and the seconds that a copy of as many takes."""

    name: str
    ours: float
    theirs: float
    times: float
    moved: int
    limit: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser(__doc__, turns=7).parse_args(arguments)
    rows, results = list[Row](), list[Result]()
    with tempfile.TemporaryDirectory() as folder:
        own = setting(options.python, options.threads, Path(folder) / "own")
        if not own.has("openvino"):
            print("openvino is not installed: there is nothing to compare with", file=sys.stderr)
            return 2
        for name in FOUNDING:
            if options.only and not any(name.startswith(start) for start in options.only):
                continue
            print(name, file=sys.stderr, flush=True)
            row, found = measure(name, own, options.turns)
            rows.append(row)
            results += found
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(record(results, options.threads), indent=1) + "\n")
    return 0


def measure(name: str, own: Setting, turns: int) -> tuple[Row, list[Result]]:
    """One op, run after run, in turn with OpenVINO."""
    peers = [Peer(peer, peer, own) for peer in ("irrun", "openvino")]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run([own.python, "-P", HERE / "graphs.py", folder, name], env=own.variables, check=True)
        model = Model(name, folder / "model.xml", folder / "inputs.npz")
        ours, theirs = measure_steady("founding", model, peers, turns)
        moved = bytes_moved(model)
    limit = moved / copied_per_second(own.threads)
    seconds = [statistics.median(result.seconds) for result in (ours, theirs)]
    return Row(name, *seconds, 1 / (ratio(ours, theirs) or np.nan), moved, limit), [ours, theirs]


def bytes_moved(model: Model) -> int:
    """What is read and written of the inputs and the outputs, and of the rows that a table is asked for."""
    from irrun import GraphExecutor

    with np.load(model.inputs) as loaded:
        inputs = dict(loaded)
    executor = GraphExecutor(model.path)
    outputs = executor.run(inputs)
    moved = sum(array.nbytes for array in (*inputs.values(), *outputs.values()))
    if "segment_ids" in inputs:
        (rows,) = outputs.values()
        moved += inputs["indices"].size * rows[0].nbytes
    return moved


def copied_per_second(threads: int) -> float:
    """Bytes read and written per second by threads that copy an array, each a part of it."""
    source = np.ones(COPIED, np.uint8)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(TIMES):
            begin = time.perf_counter()
            list(pool.map(lambda pair: np.copyto(*pair), parts))
            seconds.append(time.perf_counter() - begin)
    return 2 * COPIED / statistics.median(seconds)


def table(rows: Sequence[Row]) -> str:
    """As the README has it."""
    lines = ["| op | irrun | OpenVINO | times as fast | to be moved | a copy of that |", "| --- |" + " ---: |" * 5]
    for row in rows:
        ours, theirs, limit = (f"{seconds * 1e3:,.1f} ms" for seconds in (row.ours, row.theirs, row.limit))
        lines.append(f"| {row.name} | {ours} | {theirs} | {row.times:.1f} | {row.moved / 1e6:,.0f} MB | {limit} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
