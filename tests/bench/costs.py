"""What of a model takes irrun longest: a process that profiles a few runs of it.

    python costs.py MODEL INPUTS THREADS

writes the largest sums of an op and engine as a line of JSON: [what, share of the time of a run].
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.models import Model
    from bench.processes import Setting

RUNS = 5
SHOWN = 3


def costs(model: Model, setting: Setting) -> list[tuple[str, float]]:
    """The most expensive parts of a run; none where it fails."""
    done = subprocess.run(
        [setting.python, "-P", Path(__file__), model.path, model.inputs, str(setting.threads)],
        env=setting.variables,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return [(what, share) for what, share in json.loads(done.stdout)] if done.returncode == 0 else []


def main() -> None:
    import numpy as np

    from irrun import GraphExecutor
    from irrun.run.profile import Profile

    path, inputs, threads = sys.argv[1:]
    executor = GraphExecutor(path, threads=int(threads))
    with np.load(inputs) as loaded:
        arrays = dict(loaded)
    executor.run(arrays)
    profile = Profile()
    for _ in range(RUNS):
        executor.run(arrays, profile=profile)
    sums: dict[str, float] = {}
    for entry in profile.entries.values():
        what = f"{entry.type} ({entry.by})"
        sums[what] = sums.get(what, 0.0) + entry.seconds
    total = sum(sums.values()) or 1.0
    largest = sorted(sums.items(), key=lambda item: -item[1])[:SHOWN]
    print(json.dumps([(what, seconds / total) for what, seconds in largest]))


if __name__ == "__main__":
    main()
