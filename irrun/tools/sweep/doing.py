"""What a worker does with a model: a function for each kind of task, over executors that it keeps for the next one."""

from __future__ import annotations

import gc
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from irrun.check.finite import not_finite
from irrun.check.validate import validate
from irrun.diagnostics import Diagnostic, EngineError, InputError, IRError
from irrun.run.arrays import read_npz
from irrun.run.executor import GraphExecutor
from irrun.run.memory import available
from irrun.spec.op import Array
from irrun.tools.compare.comparison import compared, reference
from irrun.tools.compare.replay import Course
from irrun.tools.compare.results import Comparison
from irrun.tools.compare.sides.contract import Options, Side, SideFailed
from irrun.tools.compare.sides.opening import open_side
from irrun.tools.compare.tolerances import parse
from irrun.tools.inspect.inspection import inspect
from irrun.tools.sweep.rows import CRASHED, DIFFERS, ERROR, FAILED, OK
from irrun.tools.sweep.tasks import RANDOM, is_file

MOST_KEPT = 8
"""Models that are kept ready, at most."""

_BESIDE_WEIGHTS, _OTHER_SIDE = 16 << 20, 256 << 20
"""Bytes that a model takes beside its weights, or so, and what the process of another side takes."""

Request = dict[str, Any]


@dataclass(slots=True)
class _Kept:
    """A model that is ready, and the other side where it is compared; both take about so many `bytes`.

    `prepared` is how many seconds that took, for who has asked for it, and 0 for all others.
    """

    executor: GraphExecutor
    side: Side | None
    bytes: int
    prepared: float
    runs: int = 0

    def close(self) -> None:
        if self.side is not None:
            with suppress(Exception):  # whatever is left of it
                self.side.close()


class Shelf:
    """Models that were used last, up to `MOST_KEPT`, and up to as many bytes as a worker may have."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def take(
        self, key: Hashable, bytes: int, most: int, make: Callable[[], tuple[GraphExecutor, Side | None]]
    ) -> _Kept:
        """What goes by `key`, made where it is not there; others are given up for it."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            found.prepared = 0.0
            return found
        while self._kept and (
            len(self._kept) >= MOST_KEPT or bytes + sum(kept.bytes for kept in self._kept.values()) > most
        ):
            self._kept.popitem(last=False)[1].close()
            gc.collect()  # executors are full of cycles
        begin = perf_counter()
        executor, side = make()
        self._kept[key] = made = _Kept(executor, side, bytes, perf_counter() - begin)
        return made

    def drop(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            kept.close()


_SHELF = Shelf()


def done(request: Request) -> dict[str, Any]:
    """What a task has come to: the parts of its row that depend on the work."""
    begin = perf_counter()
    try:
        answer = _DOING[request["do"]](request)
    except IRError as error:
        answer = {"status": ERROR, **_of(error.diagnostics)}
    except InputError as error:
        answer = {"status": ERROR, "reason": str(error)}
    except SideFailed as error:
        failure = error.diagnostic(Path(request["model"]))
        known = "".join(f"; {text}" for text in error.known)
        answer = {"status": FAILED, "reason": f"{failure.message}{known}", "code": failure.code}
    except MemoryError as error:
        answer = {"status": CRASHED, "reason": f"out of memory: {error}" if str(error) else "out of memory"}
    except EngineError as error:
        answer = {"status": FAILED, "reason": str(error)}
    except (ValueError, OSError) as error:
        answer = {"status": FAILED if request["do"] == "compare" else ERROR, "reason": str(error)}
    except RecursionError:
        answer = {"status": CRASHED, "reason": "it nests too deep"}
    except Exception as error:  # a mistake of ours, or of a custom op
        answer = {"status": CRASHED, "reason": f"{type(error).__name__}: {error}"}
    metrics = {name: float(number) for name, number in answer.pop("metrics", {}).items() if math.isfinite(number)}
    return {**answer, "seconds": perf_counter() - begin, "metrics": metrics}


def _validate(request: Request) -> dict[str, Any]:
    report = validate(Path(request["model"]))
    metrics = {"errors": len(report.errors), "warnings": len(report.warnings), "layers": report.layers}
    return {"status": OK if report.ok else ERROR, **_of(report.errors), "metrics": metrics}


def _inspect(request: Request) -> dict[str, Any]:
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
    return {"status": OK if found.ok else ERROR, **_of(errors), "metrics": metrics}


def _execute(request: Request) -> dict[str, Any]:
    def make() -> tuple[GraphExecutor, None]:
        options = {name: request[name] for name in ("engine", "precision", "max_memory", "threads")}
        return GraphExecutor(Path(request["model"]), **options), None

    kept = _SHELF.take(("execute", request["hash"]), _bytes(request), _most(request), make)
    inputs = _inputs(request, kept.executor)
    begin = perf_counter()
    results = kept.executor.session().run(inputs)
    ran = perf_counter() - begin
    doubtful = sum(_nonfinite(array) for array in results.values())
    metrics = {"prepare": kept.prepared, "run": ran, "outputs": len(results), "nonfinite": doubtful}
    return {"status": OK, "metrics": metrics}


def _compare(request: Request) -> dict[str, Any]:
    tolerances = [parse(text) for text in request["tolerances"]]
    key = ("compare", request["hash"], request["device"])

    def make() -> tuple[GraphExecutor, Side]:
        executor = reference(Path(request["model"]), None, request["max_memory"])
        held = {} if request["max_memory"] is None else {"max_bytes": request["max_memory"]}
        options = Options(_config(request), request["timeout"], threads=request["threads"], **held)
        return executor, open_side(request["device"], executor.model, options)

    def found(kept: _Kept) -> Comparison:
        assert kept.side is not None
        inputs = kept.executor.named(_inputs(request, kept.executor))
        course = Course(Path(request["inputs"]).name or "no inputs", [inputs])
        kept.runs += 1
        try:
            return compared(kept.executor, kept.side, [course], tolerances, outputs_only=request["outputs_only"])
        except SideFailed:
            _SHELF.drop(key)
            raise

    def take() -> _Kept:
        return _SHELF.take(key, 2 * _bytes(request) + _OTHER_SIDE, _most(request), make)

    kept = take()
    prepared, used = kept.prepared, kept.runs > 0
    comparison = found(kept)
    if not comparison.agrees and used:  # is it these inputs, or those before?
        _SHELF.drop(key)
        alone = found(take())
        if alone.agrees:
            return _compared(comparison, prepared, "only after runs on other inputs: ")
        comparison = alone
    return _compared(comparison, prepared)


def _compared(found: Comparison, prepared: float, when: str = "") -> dict[str, Any]:
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
    errors = [diagnostic for diagnostic in found.diagnostics if diagnostic.severity == "error"]
    described = _of(errors)
    if when:
        described["reason"] = f"{when}{described['reason']}"
    cause = {"cause": found.cause or "", "metrics": metrics}
    return {"status": OK if found.agrees else DIFFERS, **described, **cause}


_DOING: dict[str, Callable[[Request], dict[str, Any]]] = {
    "validate": _validate,
    "inspect": _inspect,
    "execute": _execute,
    "compare": _compare,
}


def _of(diagnostics: list[Diagnostic]) -> dict[str, str]:
    """The first of them, and how many more there are."""
    if not diagnostics:
        return {}
    first, *others = diagnostics
    where = f"line {first.line}: " if first.line else ""
    more = f" (and {len(others)} more)" if others else ""
    return {"reason": f"{where}{first.message}{more}", "code": first.code}


def _inputs(request: Request, executor: GraphExecutor) -> dict[str, Any]:
    given = request["inputs"]
    if is_file(given):
        return dict(read_npz(Path(given), executor.max_memory))
    return executor.random_inputs(int(given.removeprefix(RANDOM))) if given else {}


def _config(request: Request) -> dict[str, str]:
    """Properties of the device; OpenVINO would take all processors for each of several workers."""
    config = dict(request["config"])
    if request["device"] == "ov:CPU":
        config.setdefault("INFERENCE_NUM_THREADS", str(request["threads"]))
    return config


def _bytes(request: Request) -> int:
    xml, weights = request["bytes"]
    return int(2 * max(weights, 0) + 8 * max(xml, 0) + _BESIDE_WEIGHTS)


def _most(request: Request) -> int:
    return int(available() // (4 * request["workers"]))


def _nonfinite(array: Array) -> int:
    if array.dtype.kind not in "fV":
        return 0
    found = not_finite([array.ravel()], array.shape)
    return 0 if found is None else int(found.nans + found.infinities)
