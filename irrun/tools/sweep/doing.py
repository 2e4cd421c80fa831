"""What a worker does with a model: a function for each kind of task, and what of its errors is a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from irrun.check.finite import not_finite
from irrun.check.validate import validate
from irrun.diagnostics import EngineError, InputError, IRError
from irrun.files import Unwritten
from irrun.run.executor import GraphExecutor
from irrun.spec.op import Array
from irrun.tools.compare.sides.contract import SideFailed
from irrun.tools.sweep.requests import Request, first_of, identity, inputs_of, memory_of, model_bytes
from irrun.tools.sweep.rows import CRASHED, ERROR, FAILED, OK
from irrun.tools.sweep.shelf import Made, Shelf

_SHELF = Shelf()


def done(request: Request) -> dict[str, Any]:
    """What a task has come to: the parts of its row that depend on the work. Raises nothing that a task raises,
    but Unwritten."""
    begin = perf_counter()
    try:
        answer = _DOING[request["do"]](request)
    except Unwritten:
        raise
    except IRError as error:
        answer = {"status": ERROR, **first_of(error.diagnostics)}
    except InputError as error:
        answer = {"status": ERROR, "reason": str(error)}
    except SideFailed as error:
        failure = error.diagnostic(Path(request["model"]))
        known = "".join(f"; {text}" for text in error.known)
        answer = {"status": FAILED, "reason": f"{failure.message.splitlines()[0]}{known}", "code": failure.code}
    except EngineError as error:
        answer = {"status": FAILED, "reason": str(error)}
    except (ValueError, OSError) as error:
        answer = {"status": FAILED if request["do"] == "compare" else ERROR, "reason": str(error)}
    except MemoryError as error:
        answer = {"status": CRASHED, "reason": f"out of memory: {error}" if str(error) else "out of memory"}
    except Exception as error:  # a mistake of ours, or of a custom op
        answer = {"status": CRASHED, "reason": f"{type(error).__name__}: {error}"}
    metrics = {name: float(number) for name, number in answer.pop("metrics", {}).items() if math.isfinite(number)}
    return {**answer, "seconds": perf_counter() - begin, "metrics": metrics}


def _validate(request: Request) -> dict[str, Any]:
    report = validate(Path(request["model"]))
    metrics = {"errors": len(report.errors), "warnings": len(report.warnings), "layers": report.layers}
    return {"status": OK if report.ok else ERROR, **first_of(report.errors), "metrics": metrics}


def _inspect(request: Request) -> dict[str, Any]:
    from irrun.tools.inspect.inspection import inspect  # which others need not wait for

    found = inspect(Path(request["model"]))
    numbers: dict[str, Any] = {"layers": None if found.layers is None else len(found.layers)}
    if found.costs is not None:
        numbers |= {"macs": found.costs.macs, "flops": found.costs.flops, "bytes": found.costs.bytes}
        numbers["coverage"] = found.costs.coverage
    if found.peak is not None:
        numbers["peak"] = found.peak.bytes
    if found.weights is not None:
        numbers |= {"parameters": found.weights.elements, "weights": found.weights.bytes}
    metrics = {name: number for name, number in numbers.items() if isinstance(number, int | float)}
    errors = [diagnostic for diagnostic in found.diagnostics if diagnostic.severity == "error"]
    return {"status": OK if found.ok else ERROR, **first_of(errors), "metrics": metrics}


def _execute(request: Request) -> dict[str, Any]:
    def make() -> Made:
        options = {name: request[name] for name in ("engine", "precision", "max_memory", "threads")}
        return GraphExecutor(Path(request["model"]), **options), None

    kept = _SHELF.take(("execute", *identity(request)), model_bytes(request), memory_of(request), make)
    inputs = inputs_of(request, kept.executor)
    begin = perf_counter()
    results = kept.executor.session().run(inputs)
    ran = perf_counter() - begin
    doubtful = sum(_nonfinite(array) for array in results.values())
    metrics = {"prepare": kept.prepared, "run": ran, "outputs": len(results), "nonfinite": doubtful}
    return {"status": OK, "metrics": metrics}


def _compare(request: Request) -> dict[str, Any]:
    from irrun.tools.sweep.comparing import compare  # which others need not wait for

    return compare(request, _SHELF)


_DOING: dict[str, Callable[[Request], dict[str, Any]]] = {
    "validate": _validate,
    "inspect": _inspect,
    "execute": _execute,
    "compare": _compare,
}


def _nonfinite(array: Array) -> int:
    if array.dtype.kind not in "fV":
        return 0
    found = not_finite([array.ravel()], array.shape)
    return 0 if found is None else int(found.nans + found.infinities)
