"""The processes that are measured: whole ones from start to end, and workers that wait for their turn."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from bench.models import Model

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

_IRRUN = "from irrun.__main__ import run; run()"  # what the console script does

_OPENVINO = """
import sys
import numpy as np
import openvino as ov
model, inputs, output, threads = sys.argv[1:]
hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": int(threads), "PERFORMANCE_HINT": "LATENCY"}
compiled = ov.Core().compile_model(model, "CPU", hints)
with np.load(inputs) as arrays:
    given = {}
    for number, port in enumerate(compiled.inputs):
        names = (*port.names, port.node.friendly_name, str(number))
        given[number] = arrays[next(name for name in names if name in arrays)]
results = compiled(given)
np.savez(output, *(results[port] for port in compiled.outputs))
"""


_READ = "import sys; import openvino as ov; ov.Core().read_model(sys.argv[1])"


@dataclass(frozen=True, slots=True)
class Setting:
    """The interpreter that everything runs in, irrun and its peers, and the threads that each of them may use."""

    python: str
    threads: int

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the processes."""
        threads = str(self.threads)
        return {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": ""}

    def has(self, module: str) -> bool:
        """Whether the interpreter finds a module."""
        script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        return subprocess.run([self.python, "-P", "-c", script], env=self.variables, check=False).returncode == 0


@dataclass(frozen=True, slots=True)
class Peer:
    """What takes part in a measure: a runtime of worker.py in a setting; `name` is what it is called in results.

    One that stands beside the runtime `X` only, such as the X of another checkout, is called `SOMETHING: X`. With
    `twin` it runs the model's twin in its place.
    """

    name: str
    runtime: str
    setting: Setting
    twin: bool = False


def install(folder: Path, checkout: Path = ROOT) -> str:
    """An interpreter with a checkout's irrun as a wheel installs it, compiled, and all that this one has; its path.

    An editable install finds modules in another way, and where PYTHONDONTWRITEBYTECODE is set compiles at every start.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # appended without reading their own .pth files, which is where an editable irrun would come in
    (packages / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(checkout / "irrun", packages / "irrun", ignore=ignored)
    shutil.copytree(checkout / "opsets", packages / "irrun" / "opsets", ignore=ignored)
    compileall.compile_dir(packages / "irrun", quiet=1)
    return str(folder / "bin" / "python")


@dataclass(frozen=True, slots=True)
class Whole:
    """What a process took from its start to its end: seconds, and bytes of physical memory at its peak."""

    seconds: float
    peak: int


def whole(measure: str, peer: Peer, model: Model, output: Path) -> Whole:
    """Check a model, or read it and its inputs, run it once and write its outputs, in a process of its own.

    Raises RuntimeError with what the process said where it fails.
    """
    files, setting = list(map(str, (model.path, model.inputs, output))), peer.setting
    if measure == "check":
        script, arguments = (_IRRUN, ["validate", files[0]]) if peer.runtime == "irrun" else (_READ, files[:1])
    elif peer.runtime == "irrun":
        script, arguments = _IRRUN, ["execute", files[0], "--inputs", files[1], "--output", files[2]]
    else:
        script, arguments = _OPENVINO, [*files, str(setting.threads)]
    with tempfile.TemporaryFile() as said:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [setting.python, "-P", "-c", script, *arguments],
            env=setting.variables,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            said.seek(0)
            raise RuntimeError(said.read().decode(errors="replace").strip() or f"exit status {process.returncode}")
    return Whole(seconds, usage.ru_maxrss * 1024)


class Worker:
    """A process with a model loaded in one runtime; see worker.py. Raises RuntimeError where it cannot be started.

    `load` and `first` are the seconds of loading the model, imports included, and of the first run, with the first of
    the .npz files `inputs`.
    """

    def __init__(self, peer: Peer, path: Path, inputs: Sequence[Path], outputs: Path) -> None:
        setting, arguments = peer.setting, [peer.runtime, path, peer.setting.threads, outputs, *inputs]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, closed with the worker
        self._process = subprocess.Popen(
            [setting.python, "-P", HERE / "worker.py", *map(str, arguments)],
            env=setting.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        try:
            answer = answer_of(self._process, self._said)
        except RuntimeError:
            self.close()
            raise
        self.load, self.first = answer["load"], answer["first"]

    def run(self, numbers: Sequence[int]) -> list[float]:
        """Run the model with the inputs of these numbers, from 0 on, in turn; the seconds of each run."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(list(numbers))}\n")
        self._process.stdin.flush()
        return list(answer_of(self._process, self._said))

    def close(self) -> None:
        self._process.communicate()
        self._said.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def answer_of(process: subprocess.Popen[str], said: IO[bytes]) -> Any:
    """The next line of a process, which is JSON. Raises RuntimeError with what it `said` where it has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait()
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"exit status {process.returncode}")
    return json.loads(line)
