"""A model beside another side, as a task of a sweep: what is measured, and whether earlier inputs are to blame."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from irrun.tools.compare.comparison import compared, reference
from irrun.tools.compare.replay import Course
from irrun.tools.compare.results import Comparison
from irrun.tools.compare.sides.contract import Options, SideFailed
from irrun.tools.compare.sides.opening import open_side
from irrun.tools.compare.tolerances import parse
from irrun.tools.sweep.requests import Request, first_of, identity, inputs_of, memory_of, model_bytes, stamp
from irrun.tools.sweep.rows import DIFFERS, OK
from irrun.tools.sweep.shelf import Kept, Made, Shelf

OTHER_SIDE = 256 << 20
"""Bytes that the process of another side takes, or so."""


def compare(request: Request, shelf: Shelf) -> dict[str, Any]:
    """The answer to a request. Raises as `irrun.compare` does."""
    tolerances = [parse(text) for text in request["tolerances"]]
    key = ("compare", *identity(request), request["device"], stamp(request["device"]))

    def make() -> Made:
        executor = reference(Path(request["model"]), None, request["max_memory"])
        held = {} if request["max_memory"] is None else {"max_bytes": request["max_memory"]}
        options = Options(_config(request), request["timeout"], threads=request["threads"], **held)
        return executor, open_side(request["device"], executor.model, options)

    def take() -> Kept:
        return shelf.take(key, 2 * model_bytes(request) + OTHER_SIDE, memory_of(request), make)

    def found(kept: Kept) -> Comparison:
        assert kept.side is not None
        inputs = kept.executor.named(inputs_of(request, kept.executor))
        course = Course(Path(request["inputs"]).name or "no inputs", [inputs])
        kept.runs += 1
        try:
            return compared(kept.executor, kept.side, [course], tolerances, outputs_only=request["outputs_only"])
        except SideFailed:
            shelf.drop(key)
            raise

    kept = take()
    prepared, used = kept.prepared, kept.runs > 0
    comparison = found(kept)
    if comparison.agrees or not used:
        return _answer(comparison, prepared)
    shelf.drop(key)
    alone = found(take())
    return _answer(comparison, prepared, "only after runs on other inputs: ") if alone.agrees else _answer(alone, 0.0)


def _answer(found: Comparison, prepared: float, when: str = "") -> dict[str, Any]:
    worst = [output.worst.metrics for output in found.outputs]
    metrics = {
        "prepare": prepared,
        "outputs": len(found.outputs),
        "differing": sum(not output.agrees for output in found.outputs),
        "tensors": len(found.tensors),
        "layers at fault": sum(not tensor.agrees for tensor in found.tensors),
        **{name: max((getattr(each, name) for each in worst), default=0.0) for name in ("max_abs", "nmax", "nrmse")},
        "sqnr": min((each.sqnr for each in worst), default=math.inf),
    }
    first = first_of([diagnostic for diagnostic in found.diagnostics if diagnostic.severity == "error"])
    if first:
        first["reason"] = f"{when}{first['reason']}"
    return {"status": OK if found.agrees else DIFFERS, **first, "cause": found.cause or "", "metrics": metrics}


def _config(request: Request) -> dict[str, str]:
    """Properties of the device; OpenVINO would take all processors for each of several workers."""
    config = dict(request["config"])
    if request["device"] == "ov:CPU":
        config.setdefault("INFERENCE_NUM_THREADS", str(request["threads"]))
    return config
