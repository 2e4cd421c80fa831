"""Prints, as JSON, the seconds that the memory of this machine needs for what the embedding op has to move.

The table has 100,000 rows of 128 f32, 51 MB; 500,000 rows of it are 256 MB.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

TIMES = 20


def least(call: Callable[[], object]) -> float:
    seconds = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def main() -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((100_000, 128), np.float32)
    indices = rng.integers(0, len(table), 500_000)
    rows = table[indices]
    halves = np.split(rows, 2)
    copy = np.empty_like(rows)
    with ThreadPoolExecutor(2) as pool:
        limits = {
            "read 256 MB in order, one thread": least(lambda: rows.max()),
            "read 256 MB in order, two threads": least(lambda: list(pool.map(np.max, halves))),
            "copy 256 MB in order, one thread": least(lambda: np.copyto(copy, rows)),
            "read and copy 500,000 rows, one thread": least(lambda: np.take(table, indices, 0, out=copy, mode="clip")),
        }
    print(json.dumps(limits))


if __name__ == "__main__":
    main()
