"""What a worker is asked for, as it comes through the pipe, and what of it every kind of task needs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irrun.diagnostics import Diagnostic
from irrun.run.arrays import read_npz
from irrun.run.executor import GraphExecutor
from irrun.run.memory import available
from irrun.tools.sweep.tasks import RANDOM, is_file

_BESIDE_WEIGHTS = 16 << 20
"""Bytes that a model takes beside its weights, or so."""

Request = dict[str, Any]


def inputs_of(request: Request, executor: GraphExecutor) -> dict[str, Any]:
    """The arrays of a task, by the names that they are given by. Raises InputError."""
    given = request["inputs"]
    if is_file(given):
        return dict(read_npz(Path(given), executor.max_memory))
    return executor.random_inputs(int(given.removeprefix(RANDOM))) if given else {}


def identity(request: Request) -> tuple[object, ...]:
    """What is another one where the model is, or was written to since: then what is ready is of no use any more."""
    path = Path(request["model"])
    return request["hash"], str(path), stamp(str(path)), stamp(str(path.with_suffix(".bin")))


def stamp(name: str) -> tuple[int, int] | None:
    """When a file was written to, and how many bytes it has; None for what is no file."""
    try:
        status = os.stat(name)  # noqa: PTH116, Path.stat raises for some texts
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def first_of(diagnostics: Sequence[Diagnostic]) -> dict[str, str]:
    """The first of them as parts of a row, and how many more there are."""
    if not diagnostics:
        return {}
    first, *others = diagnostics
    where = f"line {first.line}: " if first.line else ""
    more = f" (and {len(others)} more)" if others else ""
    return {"reason": f"{where}{first.message}{more}", "code": first.code}


def model_bytes(request: Request) -> int:
    """About what a model takes that is ready: its weights as they are and as engines pack them."""
    xml, weights = request["bytes"]
    return int(2 * max(weights, 0) + 8 * max(xml, 0) + _BESIDE_WEIGHTS)


def memory_of(request: Request) -> int:
    """Bytes that a worker may take for models that are ready: its share of a quarter of what there is."""
    return int(available() // (4 * request["workers"]))
