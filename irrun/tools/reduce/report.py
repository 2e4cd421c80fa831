"""What a reduction leaves for a bug tracker: expected outputs, a script that shows the failure, and a report."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from irrun.check.render.text import one_line
from irrun.diagnostics import EngineError, InputError, IRError, clipped, counted
from irrun.files import atomic_write
from irrun.ir.graph import Graph, Model
from irrun.ir.reader import read_model
from irrun.run.arrays import read_npz, widened, write_npz
from irrun.run.executor import GraphExecutor
from irrun.spec.dtypes import element_type
from irrun.spec.op import Array
from irrun.tools.reduce.trials import QUIET

if TYPE_CHECKING:
    from irrun.tools.reduce.outcome import Check
    from irrun.tools.reduce.reduction import Reduced

REPRO = '''"""min.xml by OpenVINO, beside what is expected: python repro.py [DEVICE]"""

import sys
from pathlib import Path

import numpy as np
import openvino as ov

here = Path(__file__).parent
device = sys.argv[1] if len(sys.argv) > 1 else "CPU"
inputs = np.load(here / "inputs.npz")
expected = np.load(here / "expected.npz") if (here / "expected.npz").exists() else {}
core = ov.Core()
print("OpenVINO", ov.__version__, "on", device)
compiled = core.compile_model(here / "min.xml", device)
if len(inputs) < len(compiled.inputs):
    sys.exit("it is compiled; there are no inputs to run it on")
results = compiled([inputs[name] for name in inputs])  # in the order of the inputs
for output, name in zip(compiled.outputs, expected):
    found, wanted = np.asarray(results[output]), expected[name]
    print(name, found.dtype, found.shape, "expected", wanted.shape)
    if found.shape == wanted.shape and found.dtype.kind in "biuf":
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        print("  largest difference", np.abs(found.astype(float)[~same] - wanted.astype(float)[~same]).max(initial=0))
        print("  not finite", int((~np.isfinite(found)).sum()), "expected", int((~np.isfinite(wanted)).sum()))
'''

COMPILED = 'compiled = core.compile_model(here / "min.xml", device)\n'
"""The line of the script that gives way where .npz files, and numpy, lack types of inputs and outputs."""

MAX_LISTED = 40
"""Layers that a report lists."""


def write_report(found: Reduced, original: Model, check: Check, folder: Path, *, running: bool) -> None:
    """Write expected.npz, repro.py and REPORT.md beside the smallest model, which has inputs where it is `running`.

    Raises OSError.
    """
    model = read_model(found.model)
    inputs = read_npz(folder / "inputs.npz")
    outputs: dict[str, Array] | None = None
    try:
        outputs = GraphExecutor(model, engine="reference", precision="auto").run(inputs)
        write_npz(folder / "expected.npz", outputs)
    except (IRError, InputError, EngineError, MemoryError):
        (folder / "expected.npz").unlink(missing_ok=True)  # of an earlier one
    atomic_write(folder / "repro.py", _script(model).encode())
    commands = [check.shown_by(running)] + (["python repro.py CPU"] if outputs is not None else [])
    described = check.description, list(dict.fromkeys(commands))
    text = "\n".join(_report(found, model, original, *described, inputs, outputs))
    atomic_write(folder / "REPORT.md", text.encode("utf-8", "backslashreplace"))


def _script(model: Model) -> str:
    """The script, which has OpenVINO convert what is held in a wider type in .npz files."""
    lines = []
    for kind, ports in (("input", model.inputs), ("output", model.outputs)):
        for number, port in enumerate(ports):
            held = port.type if port.type == "dynamic" else element_type(widened(np.empty(0, port.dtype)).dtype)
            if held != port.type:
                lines.append(f"ports.{kind}({number}).tensor().set_element_type(ov.Type.{held})  # for {port.type}\n")
    if not lines:
        return REPRO
    begin = 'ports = ov.preprocess.PrePostProcessor(core.read_model(here / "min.xml"))\n'
    return REPRO.replace(COMPILED, "".join([begin, *lines, "compiled = core.compile_model(ports.build(), device)\n"]))


def _report(
    found: Reduced,
    model: Model,
    original: Model,
    check: str,
    commands: Sequence[str],
    inputs: dict[str, Array],
    outputs: dict[str, Array] | None,
) -> list[str]:
    kinds = list(dict.fromkeys(layer.type for layer in model.graph.walk() if layer.type not in QUIET))
    title = ", ".join(kinds) or "a model without layers that compute"
    lines = [f"# {title}: {found.outcome.kind}", ""]
    lines += [f"A model of {counted(found.sizes[0], 'layer')} fails; so does this one of {found.sizes[-1]}.", ""]
    lines += ["## What happens", "", "```", f"check: {check}", f"failure: {found.outcome.kind}"]
    lines += [*clipped(found.outcome.detail, 2000).splitlines(), "```", ""]
    lines += ["## The model", "", *_layers(model.graph), ""]
    lines += ["| input | type | shape | values |", "| --- | --- | --- | --- |"]
    lines += [_row(name, array) for name, array in inputs.items()]
    if outputs is not None:
        lines += ["", "| output | type | shape | expected |", "| --- | --- | --- | --- |"]
        lines += [_row(name, array) for name, array in outputs.items()]
    lines += ["", "## How to see it", "", "```", *commands, "```", ""]
    if outputs is not None:
        lines += ["`expected.npz` is what irrun computes by the written specification of the operations.", ""]
    lines += ["## Where", "", *(f"- {name} {version}" for name, version in _versions()), ""]
    lines += [f"Found from {_code(original.name)} by `irrun reduce`: {found.progress}"]
    if found.exhausted:
        lines[-1] += ", which was all it was allowed; a smaller model may fail as well"
    if found.others:
        listed = "; ".join(f"{kind} ({count})" for kind, count in found.others.items())
        lines += ["", f"Other failures on the way, in `interesting/`: {listed}"]
    return [*lines, ""]


def _layers(graph: Graph) -> list[str]:
    lines = ["| layer | operation | inputs | attributes |", "| --- | --- | --- | --- |"]
    listed = [layer for layer in graph.walk() if layer.type != "Const"]
    for layer in listed[:MAX_LISTED]:
        read = [_tensor(value.port.precision, value.port.dims) for value in layer.inputs if value]
        given = ", ".join(f"{name}={text}" for name, text in layer.attributes.items() if name != "output_names")
        kind = f"{layer.type} ({layer.version})"
        lines.append(f"| {_cell(layer.name)} | {_cell(kind)} | {_cell(', '.join(read))} | {_cell(given)} |")
    if len(listed) > MAX_LISTED:
        lines.append(f"| and {len(listed) - MAX_LISTED} more | | | |")
    return lines


def _tensor(type: str | None, dims: tuple[int, ...]) -> str:
    return f"{type or '?'}[{', '.join('?' if size < 0 else str(size) for size in dims)}]"


def _row(name: str, array: Array) -> str:
    shape = "[" + ", ".join(map(str, array.shape)) + "]"
    return f"| {_cell(name)} | {element_type(array.dtype)} | {shape} | {_cell(_values(array))} |"


def _values(array: Array) -> str:
    """A few values, or the range of many."""
    if array.size <= 4 or array.dtype.kind not in "biufV":
        return clipped(", ".join(map(str, array.reshape(-1)[:4].tolist())), 100)
    numbers = array.astype(np.float64)
    bad = int((~np.isfinite(numbers)).sum())
    finite = numbers[np.isfinite(numbers)]
    said = f"{finite.min():.4g} .. {finite.max():.4g}, mean {finite.mean():.4g}" if finite.size else "none finite"
    return said + (f", {bad} not finite" if bad else "")


def _cell(text: str) -> str:
    """A text as code, in which nothing has a meaning of its own; names hold any characters."""
    return _code(clipped(text, 200)).replace("|", "\\|") if text else ""


def _code(text: str) -> str:
    shown = one_line(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence} {shown} {fence}" if "`" in shown else f"`{shown}`"


def _versions() -> list[tuple[str, str]]:
    from importlib.metadata import PackageNotFoundError, version

    found = [("Python", platform.python_version()), ("platform", platform.platform())]
    for name in ("irrun", "openvino", "numpy"):
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found
