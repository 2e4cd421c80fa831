"""Fuzzing from the command line: python tests/fuzz/mutate.py --count 100000 --seed 1

Every mutant is one of samples, tests/invalid and the conformance cases with something changed. What makes
`irrun.validate` raise, hang for more than 5 s, die, or take more than 1 GiB is written to --keep, minimised.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.minimise import minimise
from fuzz.mutants import mutant
from fuzz.pool import run
from fuzz.seeds import conformance, files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the series; mutant N of it is always the same")
    parser.add_argument("--start", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only-files", action="store_true", help="do without the conformance cases, and OpenVINO")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="the folder for what is found")
    parser.add_argument("--no-minimise", action="store_true")
    options = parser.parse_args()
    import irrun.check.validate
    import irrun.spec.registry  # before the fork: its processes need not load it each

    irrun.spec.registry.registry()
    seeds = [*files(), *([] if options.only_files else conformance())]
    make = partial(mutant, seeds, options.seed)
    kinds: Counter[str] = Counter()
    begin, done = time.monotonic(), 0
    for finding in run(make, range(options.start, options.start + options.count), options.processes):
        done += 1
        if finding is not None:
            kinds[finding.kind] += 1
            if kinds[finding.kind] == 1:
                print(f"mutant {finding.number}: {finding.kind}\n{finding.detail}", flush=True)
                model = make(finding.number)
                if not options.no_minimise:
                    model = minimise(model, finding.kind)
                options.keep.mkdir(exist_ok=True)
                name = "".join(c if c.isalnum() else "-" for c in finding.kind) + f"-{options.seed}-{finding.number}"
                (options.keep / f"{name}.xml").write_bytes(model.xml)
                (options.keep / f"{name}.bin").write_bytes(model.weights)
        if done % 5000 == 0:
            print(f"{done} mutants in {time.monotonic() - begin:.0f} s, {sum(kinds.values())} findings", flush=True)
    print(f"{done} mutants of {len(seeds)} seeds in {time.monotonic() - begin:.0f} s")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
