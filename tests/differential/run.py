"""Random models from the command line: python tests/differential/run.py --count 10000 --seed 1

Every model is run by each engine and by the reference, in a process that may crash. What differs is printed, made small
once for each kind, and written to --keep, which also holds how far the series has come, so that it can be gone on with.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from differential.examine import ENGINES, WAYS, Finding, examine
from differential.generate import case
from differential.graph import Case, save
from differential.minimise import described, minimise
from differential.pool import Died, Process, run

Item = tuple[int, int, tuple[str, ...]]


def generated(item: Item, tell: Callable[[str], object]) -> list[Finding]:
    """What goes wrong with a model of a series; every other one is run in one more way."""
    seed, number, engines = item
    tell("generate")
    return examine(case(seed, number), [*engines, WAYS[number % len(WAYS)]] if number % 2 else engines, tell)


def given(item: tuple[Case, tuple[str, ...]], tell: Callable[[str], object]) -> list[Finding]:
    """What goes wrong with a case."""
    return examine(item[0], item[1], tell)


def findings(items: Iterable[Item], jobs: int) -> Iterator[tuple[Item, list[Finding]]]:
    for item, answer in run(generated, items, jobs):
        yield item, listed(answer)


def listed(answer: Any) -> list[Finding]:
    return [Finding(str(answer))] if isinstance(answer, Died) else answer


def smaller(found: Case, kind: str, engines: Sequence[str]) -> Case:
    """The case with less that has a finding of this kind."""
    with Process(given) as process:

        def fails(candidate: Case) -> bool:
            return kind in [finding.kind for finding in listed(process((candidate, tuple(engines))))]

        return minimise(found, fails)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many models")
    parser.add_argument("--seed", type=int, default=0, help="of the series; model N of it is always the same")
    parser.add_argument("--start", type=int, default=0, help="the number of the first model")
    parser.add_argument("--engine", action="append", choices=[*ENGINES, *WAYS], help="may be given several times")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep", type=Path, default=Path("differential-findings"), help="the folder for what is found")
    parser.add_argument("--resume", action="store_true", help="go on where the series ended in --keep")
    parser.add_argument("--replay", type=Path, help="a case.pickle that was kept: run it again, and nothing else")
    parser.add_argument("--alike", type=int, default=1, help="findings of a kind that are made small")
    options = parser.parse_args()
    engines = tuple(options.engine or ENGINES)
    if options.replay:
        kept: Case = pickle.loads(options.replay.read_bytes())
        print(described(kept))
        with Process(given) as process:
            found = listed(process((kept, engines)))
        for finding in found:
            print(f"{finding.kind}: {finding.detail}")
        return 1 if found else 0
    options.keep.mkdir(parents=True, exist_ok=True)
    log = options.keep / f"series-{options.seed}.json"
    done: dict[str, list[str]] = json.loads(log.read_text()) if options.resume and log.exists() else {}
    numbers = [n for n in range(options.start, options.start + options.count) if str(n) not in done]
    kinds: Counter[str] = Counter()
    begin = time.monotonic()
    for item, found in findings([(options.seed, number, engines) for number in numbers], options.jobs):
        number = item[1]
        done[str(number)] = [finding.kind for finding in found]
        for finding in found:
            kinds[finding.kind] += 1
            print(f"{options.seed}/{number} {finding.kind}: {finding.detail}", flush=True)
            if kinds[finding.kind] <= options.alike:
                _keep(options, number, finding, engines)
        if len(done) % 500 == 0:
            log.write_text(json.dumps(done))
            spent = time.monotonic() - begin
            print(f"{len(done)} models in {spent:.0f} s, {sum(kinds.values())} findings", flush=True)
    log.write_text(json.dumps(done))
    print(f"{len(numbers)} models in {time.monotonic() - begin:.0f} s")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    return 1 if any(done.values()) else 0


def _keep(options: argparse.Namespace, number: int, finding: Finding, engines: Sequence[str]) -> None:
    """Write a finding, made small, as a model and as text."""
    try:
        found = case(options.seed, number)
    except Exception as error:
        print(f"  cannot be made: {error!r}")
        return
    own = [engine for engine in (*ENGINES, *WAYS) if finding.kind.startswith((f"{engine}:", f"compare {engine}:"))]
    small = smaller(found, finding.kind, own)
    folder = options.keep / f"{options.seed}-{number}-{''.join(c if c.isalnum() else '-' for c in finding.kind)}"
    folder.mkdir(parents=True, exist_ok=True)
    save(small, folder)
    (folder / "case.pickle").write_bytes(pickle.dumps(small))
    (folder / "finding.txt").write_text(f"{finding.kind}\n{finding.detail}\n{described(small)}\n")
    print(described(small), flush=True)


if __name__ == "__main__":
    sys.exit(main())
