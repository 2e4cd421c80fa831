"""Measures irrun on language models: tokens per second, the first token, loading, and memory.

    python tests/bench/language.py --models FOLDER [--only NAME] [--prompt N] [--tokens N] [--curve] [--beams K]
                                   [--engine NAME] [--against CHECKOUT] [--turns N] [--threads N] [--json FILE]

FOLDER is what `tests/exports/language.py FOLDER` has written. Every turn of a runtime is a new process, which loads the
model, generates once, and then once more, which is what is measured but for `loaded`. Runtimes take turns, OpenVINO
last; it computes in f32 with its cache in f32 and without dynamic quantization, with as many threads. All are greedy:

    tokens/s   tokens after the first, by the median step
    first      the prompt, up to its first token, in seconds
    loaded     from before the import of the runtime to the first token of a process, in seconds
    peak       physical memory of the process, in MiB
    tokens     how many of those generated are the first to agree with OpenVINO's

Instead, --curve measures a step as the cache grows to 4,096 tokens, and the memory that is held then; --beams K does
beam search with K beams, whose rows are reordered at every step. A ratio is irrun's figure over OpenVINO's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from bench.options import parser, setting
from bench.processes import HERE, Peer, answer_of

SEED = 20260401
ENGINES = ("auto", "onednn", "numpy", "reference")
SIZES = (64, 256, 512, 1024, 2048, 3072, 4096)

Figures = dict[str, list[float]]
"""What the turns of a runtime have measured."""


class Generator:
    """A process with a language model loaded in one runtime; see language_worker.py. `load` is in seconds."""

    def __init__(self, peer: Peer, path: Path) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, closed with the generator
        self._process = subprocess.Popen(
            [peer.setting.python, "-P", HERE / "language_worker.py", peer.runtime, path, str(peer.setting.threads)],
            env=peer.setting.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        try:
            self.load: float = answer_of(self._process, self._said)["load"]
        except RuntimeError:
            self.__exit__(None, None, None)
            raise

    def run(self, **job: Any) -> dict[str, Any]:
        """The answer to a job. Raises RuntimeError with what the process said where it fails."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(job)}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = answer_of(self._process, self._said)
        return answer

    def __enter__(self) -> Generator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        self._said.close()


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    models = [
        path
        for path in sorted(options.models.glob("*/*.xml"))
        if not options.only or any(path.parent.name.startswith(name) for name in options.only)
    ]
    if not models:
        print(f"there is no model in {options.models}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        own = setting(options.python, options.threads, Path(folder) / "own")
        names = ["irrun" if engine == "auto" else f"irrun {engine}" for engine in options.engine]
        peers = [Peer(name, name, own) for name in names]
        if options.against:
            other = setting(options.against, options.threads, Path(folder) / "against")
            peers += [Peer(f"against: {name}", name, other) for name in names]
        peers += [Peer("openvino", "openvino", own)] if own.has("openvino") else []
        records = []
        for path in models:
            if options.curve:
                taken = [measure_curve(path, peers, options.turns, prompt(max(SIZES), options.vocabulary))]
            else:
                taken = [
                    measure(
                        path, peers, options.turns, prompt(length, options.vocabulary), options.tokens, options.beams
                    )
                    for length in options.prompt
                ]
            print("\n".join(lines(taken)), flush=True)
            records += taken
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "results": records}, indent=1) + "\n")
    return 0


def prompt(length: int, vocabulary: int) -> list[list[int]]:
    """One row of seeded ids below `vocabulary`."""
    return [random.Random(SEED).choices(range(vocabulary), k=length)]


def in_turn(
    path: Path, peers: Sequence[Peer], turns: int, take: Callable[[Generator], dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """What `take` has measured in each turn of each runtime, or {"failure": why} once."""
    found: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in peers}
    for _, peer in itertools.product(range(turns), peers):
        if any("failure" in answer for answer in found[peer.name]):
            continue
        try:
            with Generator(peer, path) as generator:
                found[peer.name].append(take(generator))
        except RuntimeError as error:
            found[peer.name] = [{"failure": str(error)}]
    return found


def measure(
    path: Path, peers: Sequence[Peer], turns: int, rows: list[list[int]], count: int, beams: int | None = None
) -> dict[str, Any]:
    """`count` tokens from a prompt of one row, greedily or with `beams`."""
    job: dict[str, Any] = {"prompt": rows, "tokens": count} | ({"beams": beams} if beams else {})

    def take(generator: Generator) -> dict[str, Any]:
        cold, warm = generator.run(**job), generator.run(**job)
        return {
            "tokens/s": 1 / statistics.median(warm["steps"]),
            "first": warm["first"],
            "loaded": generator.load + cold["first"],
            "peak": warm["peak"] / 2**20,
            "generated": warm["tokens"],
        }

    found = in_turn(path, peers, turns, take)
    name = f"{path.parent.name} {len(rows[0])}" + (f" beams {beams}" if beams else "")
    return {"model": name, "measures": ["tokens/s", "first", "loaded", "peak"], "found": found}


def measure_curve(path: Path, peers: Sequence[Peer], turns: int, rows: list[list[int]]) -> dict[str, Any]:
    """Milliseconds of a step, and MiB held, behind each of `SIZES`."""

    def take(generator: Generator) -> dict[str, Any]:
        answer = generator.run(prompt=rows, sizes=SIZES)
        figures: dict[str, Any] = {"generated": answer["tokens"]}
        for size, seconds, held in zip(SIZES, answer["steps"], answer["held"], strict=True):
            figures |= {f"{size} ms": statistics.median(seconds) * 1e3, f"{size} MiB": held / 2**20}
        return figures

    measures = [f"{size} {unit}" for unit in ("ms", "MiB") for size in SIZES]
    return {"model": path.parent.name, "measures": measures, "found": in_turn(path, peers, turns, take)}


def lines(records: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each runtime and measure: its median, and the ratio to OpenVINO's in the same turns."""
    shown = []
    for record in records:
        shown.append(record["model"])
        theirs = record["found"].get("openvino", [])
        for name, turns in record["found"].items():
            if "failure" in turns[0]:
                shown.append(f"  {name:20} not measured: {turns[0]['failure']}")
                continue
            cells = []
            for measure in record["measures"]:
                cell = f"{measure} {statistics.median(turn[measure] for turn in turns):.4g}"
                if name != "openvino" and theirs and "failure" not in theirs[0]:
                    ratios = [a[measure] / b[measure] for a, b in zip(turns, theirs, strict=True)]
                    cell += f" ({statistics.median(ratios):.2f})"
                cells.append(cell)
            if name != "openvino" and theirs and "failure" not in theirs[0]:
                wanted, own = theirs[0]["generated"], turns[0]["generated"]
                same = next((n for n, (a, b) in enumerate(zip(own, wanted, strict=True)) if a != b), len(wanted))
                cells.append(f"tokens {same} of {len(wanted)}")
            shown.append(f"  {name:20} {', '.join(cells)}")
    return shown


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    known = parser(__doc__, turns=3)
    known.add_argument("--prompt", action="append", type=int, metavar="N", help="its tokens; default: 32 and 512")
    known.add_argument("--vocabulary", type=int, default=32000, metavar="N", help="ids of prompts; default: 32000")
    known.add_argument("--tokens", type=int, default=64, metavar="N", help="that are generated; default: 64")
    known.add_argument("--curve", action="store_true", help="steps as the cache grows instead")
    known.add_argument("--beams", type=int, metavar="K", help="beam search instead")
    known.add_argument("--engine", action="append", choices=ENGINES, help="may be given several times; default: auto")
    known.add_argument("--against", type=Path, metavar="CHECKOUT", help="another irrun, which takes part too")
    options = known.parse_args(arguments)
    if options.models is None:
        known.error("--models is needed")
    options.prompt, options.engine = options.prompt or [32, 512], options.engine or ["auto"]
    return options


if __name__ == "__main__":
    sys.exit(main())
