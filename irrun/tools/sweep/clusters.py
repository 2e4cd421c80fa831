"""What `--jobs` means: so many processes of this machine, or a cluster of dask, which schedules there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib.util import find_spec
from time import monotonic
from typing import Any

from irrun.diagnostics import EngineError
from irrun.tools.sweep.course import lost

LOCAL, SCHEME = "local-cluster", "dask://"

_CONNECTING = 10.0
"""Seconds within which a scheduler has to answer."""

_ASKED = 1.0
"""Seconds after which the number of workers is asked for again."""

Jobs = int | Callable[[], int] | None


@contextmanager
def opened(jobs: str | None) -> Iterator[tuple[Executor | None, Jobs]]:
    """The executor that a text means, None for irrun's own processes, and how many batches it does at once.

    Raises ValueError for a text that means none, EngineError where the cluster is not there.
    """
    if jobs is None or (jobs.isdecimal() and 0 < int(jobs) < 10_000):
        yield None, None if jobs is None else int(jobs)
        return
    if jobs != LOCAL and not (jobs.startswith(SCHEME) and len(jobs) > len(SCHEME)):
        raise ValueError(f"`{jobs[:200]}` is no number of processes, {SCHEME}HOST:PORT or {LOCAL}")
    if find_spec("distributed") is None:
        raise EngineError('dask is not installed: pip install "irrun[dask]"')
    with _client(jobs) as client:
        asked, slots = 0.0, 0

        def count() -> int:
            nonlocal asked, slots
            if monotonic() - asked >= _ASKED:
                try:
                    asked, slots = monotonic(), sum(client.nthreads().values())
                except OSError as error:
                    raise lost(error) from None
            return slots

        yield client.get_executor(pure=False), count


@contextmanager
def _client(jobs: str) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    for name in ("distributed", "distributed.client"):  # whatever it tells of a scheduler that is gone, we do
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if jobs == LOCAL:
        with LocalCluster(threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            yield client
        return
    address = jobs.removeprefix(SCHEME)
    try:
        client = Client(f"tcp://{address}", timeout=_CONNECTING)
    except (OSError, ValueError) as error:
        raise EngineError(f"no scheduler of dask answers at {address}: {str(error) or type(error).__name__}") from None
    with client:
        yield client
