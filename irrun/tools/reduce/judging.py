"""Checks of irrun's own, in a process that may crash: does a model diverge, compile, stay finite, have a diagnostic.

`python -m irrun.tools.reduce.judging` is that process; the classes here are the other end of its pipe.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from irrun.files import Unwritten
from irrun.ir.graph import Layer, Model
from irrun.records import dataclass
from irrun.spec.registry import load_ops
from irrun.tools.compare.sides.contract import Side, SideFailed
from irrun.tools.compare.sides.process import Worker
from irrun.tools.compare.sides.serving import Handler, Tell, serve
from irrun.tools.reduce.outcome import FINE, NOT_MADE, Outcome

_GRACE = 30.0
"""Seconds that a check may take beyond those of the device that it asks."""

_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|'[^']*'|\"[^\"]*\"|`[^`]*`|\d+")
"""What messages about one failure differ in: names, numbers and addresses."""


@dataclass(slots=True)
class Judgement:
    """A check `do` of `HANDLERS` with its settings, in a worker that is started again when it has died; it loads the
    files `ops`."""

    do: str
    settings: Mapping[str, Any]
    timeout: float = 60.0
    ops: Sequence[str] = ()
    _worker: Worker | None = field(default=None, repr=False)

    @property
    def description(self) -> str:
        return "; ".join([self.do, *(f"{name} {value}" for name, value in sorted(self.settings.items()))])

    def shown_by(self, running: bool) -> str:
        settings, given = self.settings, [("--ops", path) for path in self.ops]
        if self.do == "compiles":
            return f"python repro.py {settings['device']}"
        if self.do == "diverges":
            command = ["compare", "min.xml", settings["other"], "--inputs", "inputs.npz"]
            given += [("--tol", text) for text in settings["tolerances"]]
            given += [("--config", f"{name}={value}") for name, value in settings["config"].items()]
        elif self.do == "diagnostic" and not running:
            command = ["validate", "min.xml"]
        else:
            command = ["execute", "min.xml", "--inputs", "inputs.npz", "--engine", "reference"]
        if self.do == "nonfinite":
            command += ["--precision", settings["precision"], "--check-finite"]
        return shlex.join(["irrun", *command, *(part for option in given for part in option)])

    def __call__(self, model: Path, inputs: Path) -> Outcome:
        if self._worker is None:
            self._worker = Worker("irrun.tools.reduce.judging", "the check", self.timeout + _GRACE)
        request = {
            "do": self.do,
            "model": str(model),
            "inputs": str(inputs),
            "timeout": self.timeout,
            "ops": list(self.ops),
        }
        try:
            return Outcome.from_dict(self._worker.call({**request, **self.settings}))
        except SideFailed as error:
            ended = error.signal or _stable(error.reason)
            return Outcome(True, {"check": ended}, str(error))

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close(kill=True)


def _stable(message: str) -> str:
    """The first line of a message without what differs from one model to another."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return _VOLATILE.sub("?", lines[0])[:200] if lines else "failure"


def _diverges(request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Whether `irrun compare` says that a model differs on the other side."""
    from irrun.run.arrays import read_npz
    from irrun.tools.compare.comparison import compared, reference
    from irrun.tools.compare.replay import Course
    from irrun.tools.compare.tolerances import parse

    tolerances = [parse(text) for text in request["tolerances"]]
    executor = reference(Path(request["model"]))
    course = Course("inputs", [executor.named(read_npz(Path(request["inputs"])))])
    try:
        with _opened(request, executor.model) as side:
            found = compared(executor, side, [course], tolerances)
    except SideFailed as error:
        return Outcome(True, {"side": error.signal or f"{error.phase}: {_stable(error.reason)}"}, str(error)).to_dict()
    if found.agrees:
        return FINE.to_dict()
    first = found.first
    detail = next((found.message for found in found.diagnostics if found.severity == "error"), "")
    signature = {"cause": found.cause or "unknown", **({"op": first.layer.type} if first else {})}
    return Outcome(True, signature, detail, (first.layer.name,) if first else ()).to_dict()


_FIRST: list[Side] = []
"""The device that the first model of this process was held against. Later ones use the process that it has started,
which takes longer than most checks; one that has died is started again."""


@contextmanager
def _opened(request: dict[str, Any], model: Model) -> Iterator[Side]:
    from irrun.tools.compare.sides.contract import Options
    from irrun.tools.compare.sides.opening import open_side

    side = open_side(request["other"], model, Options(request["config"], request["timeout"]), *_FIRST)
    if side.kind == "device" and not _FIRST:
        _FIRST.append(side)
    try:
        yield side
    finally:
        if side not in _FIRST:
            side.close()


def _compiles(request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Whether OpenVINO compiles a model for a device."""
    tell("import")
    from openvino import Core

    from irrun.tools.compare.sides.failures import shortened

    core = Core()
    try:
        tell("read")
        model = core.read_model(request["model"])
        tell("compile")
        core.compile_model(model, request["device"], request["config"])
    except RuntimeError as error:
        reason = shortened(str(error))
        return Outcome(True, {"error": _stable(reason)}, reason[:1500]).to_dict()
    return FINE.to_dict()


def _nonfinite(request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Whether finite inputs make NaN or infinity, in an output or on the way. Infinite ones, as parts of a model have
    read them, may make NaN: that is born where no NaN was read, however long before it infinities were."""
    from irrun.run.arrays import read_npz
    from irrun.run.executor import GraphExecutor
    from irrun.run.session import Event
    from irrun.tools.watch.ranges import EVERYTHING, Search

    inputs = read_npz(Path(request["inputs"]))
    executor = GraphExecutor(Path(request["model"]), engine="reference", precision=request["precision"])
    finite = all(map(EVERYTHING.has, inputs.values()))
    search = Search(EVERYTHING)
    first: list[Layer] = []

    def observer(event: Event) -> None:
        search(event)
        if not first and not EVERYTHING.has(event.array):
            first.append(event.layer)

    results = executor.run(inputs, observer=observer)
    found = search.found
    if found is not None and found.layer is not None:
        return Outcome(True, {"born in": found.layer.type}, found.message, (found.layer.name,)).to_dict()
    if not finite or all(map(EVERYTHING.has, results.values())):
        return FINE.to_dict()
    op, name = (first[0].type, first[0].name) if first else ("", "")
    # -inf among zeros, which may be a mask: another failure than one that is none
    return Outcome(True, {"in a mask of": op}, f"output of `{name}`", (name,) if name else ()).to_dict()


def _diagnostic(request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Whether a model has a diagnostic of a code, when it is validated or when it is run."""
    from irrun.check.validate import validate
    from irrun.diagnostics import IRError
    from irrun.run.arrays import read_npz
    from irrun.run.executor import GraphExecutor

    code = request["code"]
    report = validate(Path(request["model"]))
    found = list(report.diagnostics)
    inputs = read_npz(Path(request["inputs"]))
    if report.ok and inputs:
        try:
            GraphExecutor(Path(request["model"]), engine="reference").run(inputs)
        except IRError as error:
            found += error.diagnostics
    for diagnostic in found:
        if diagnostic.code == code:
            layer = diagnostic.layer
            signature = {"code": code, **({"op": layer.type} if layer else {})}
            return Outcome(True, signature, diagnostic.message, (layer.name,) if layer else ()).to_dict()
    return FINE.to_dict()


_LOADED: set[str] = set()
"""Files with custom ops that this process knows."""


def _answered(handler: Handler) -> Handler:
    """A handler whose own errors are no failures of a model: the check cannot be made then."""

    def answer(request: dict[str, Any], tell: Tell) -> dict[str, Any]:
        try:
            for path in request["ops"]:
                if path not in _LOADED:
                    load_ops(path)
                    _LOADED.add(path)
            return handler(request, tell)
        except Unwritten:
            raise
        except Exception as error:  # whatever a library raises
            return Outcome(False, NOT_MADE, str(error).strip() or type(error).__name__).to_dict()

    return answer


_CHECKS: dict[str, Handler] = {
    "diverges": _diverges,
    "compiles": _compiles,
    "nonfinite": _nonfinite,
    "diagnostic": _diagnostic,
}
HANDLERS = {name: _answered(handler) for name, handler in _CHECKS.items()}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(HANDLERS)
