"""How irrun agrees with OpenVINO on models that others have trained and converted: a line of a table for each.

    python tests/exports/agreement.py MODELS_DIR [NAME...] [--layers]

MODELS_DIR is what tests/exports/published.py wrote. A line has the errors and warnings of `irrun validate`, and the
largest difference of each engine's outputs from OpenVINO's CPU plugin at f32, in parts of the largest number of the
output. Where that is above 1e-3, as for quantized models, it has also how far all are from the graph computed in f64 by
irrun's reference, and is well if no engine is twice as far as OpenVINO. With --layers the first layers that differ by
more than 1e-3 are named: OpenVINO is asked for them as outputs. It ends with status 1 where a model is not well.

It needs openvino, which runs in f32.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import openvino as ov

import irrun
from irrun.run.session import Event

ENGINES = ("reference", "numpy", "auto")
ALLOWED = 1e-3

ROOM = 2
"""How many times as far from the graph in f64 as OpenVINO a result that differs by more may be: both are chance."""

FACTORS = (1.0, 0.8, 0.6)
"""By which the inputs of such a model are multiplied, for several results."""


def distance(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference, in parts of the largest number of the output that it is in; NaN must be in both."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
            return np.inf
        if a.dtype.kind in "biuU":
            worst = max(worst, float(np.mean(a != b)) if a.size else 0.0)
        elif a.size:
            x, y = a.astype(np.float64), b.astype(np.float64)
            finite = np.isfinite(x) & np.isfinite(y)
            if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
                return np.inf
            x, y = x[finite], y[finite]
            worst = max(worst, float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30))) if x.size else worst
    return worst


def theirs(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    core = ov.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled.create_infer_request().infer(inputs)
    return [np.array(found[port]) for port in compiled.outputs]


def exact(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What the graph gives where all of it is computed in f64."""
    return list(irrun.GraphExecutor(path, engine="reference", precision="f64").run(inputs).values())


def distances_from_exact(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, float]:
    """How far the engines and OpenVINO are from the graph in f64, as the mean over inputs of several sizes."""
    sums = dict.fromkeys((*ENGINES, "OpenVINO"), 0.0)
    for factor in FACTORS:
        scaled = {
            key: array * array.dtype.type(factor) if array.dtype.kind == "f" else array for key, array in inputs.items()
        }
        judge = exact(path, scaled)
        for engine in ENGINES:
            found = list(irrun.GraphExecutor(path, engine=engine, precision="auto").run(scaled).values())
            sums[engine] += distance(found, judge) / len(FACTORS)
        sums["OpenVINO"] += distance(theirs(path, scaled), judge) / len(FACTORS)
    return sums


def line(folder: Path) -> tuple[str, bool]:
    """The line of a model, and whether all is well."""
    path = folder / "model.xml"
    with np.load(folder / "inputs.npz") as file:
        inputs = {name: file[name] for name in file.files}
    report = irrun.validate(path)
    codes = sorted({found.code for found in report.diagnostics})
    cells, good = [], report.ok
    if report.model is not None and report.ok:
        expected = theirs(path, inputs)
        found = {}
        for engine in ENGINES:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found[engine] = list(
                    irrun.GraphExecutor(report.model, engine=engine, precision="auto").run(inputs).values()
                )
            cells.append(f"{distance(found[engine], expected):.1e}" + (f" ({len(told)} warnings)" if told else ""))
        good = all(distance(outputs, expected) <= ALLOWED for outputs in found.values())
        if not good:  # of a quantized model: one step of a grid that falls otherwise grows on the way
            far = distances_from_exact(path, inputs)
            cells.append("from f64: " + ", ".join(f"{name} {value:.1e}" for name, value in far.items()))
            good = all(value <= max(ALLOWED, ROOM * far["OpenVINO"]) for value in far.values())
    layers = len(report.model.graph.layers) if report.model else 0
    return f"| {folder.name} | {layers} | {', '.join(codes) or '-'} | {' | '.join(cells)} |", good


def differing_layers(folder: Path, most: int = 5) -> list[str]:
    """The first layers whose results differ, in the order of irrun's run, with how much."""
    path = folder / "model.xml"
    with np.load(folder / "inputs.npz") as file:
        inputs = {name: file[name] for name in file.files}
    made: dict[tuple[str, int], np.ndarray] = {}

    def note(event: Event) -> None:
        if not event.path:
            made[event.layer.name, event.port] = event.array.copy()

    irrun.GraphExecutor(path).run(inputs, observer=note)
    core = ov.Core()
    model = core.read_model(path)
    nodes = {op.get_friendly_name(): op for op in model.get_ordered_ops()}
    wanted = [key for key in made if key[0] in nodes and nodes[key[0]].get_type_name() not in ("Result", "Constant")]
    ports = [model.add_outputs(nodes[name].output(port))[0] for name, port in wanted]
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    request.infer(inputs)
    lines = []
    for key, port in zip(wanted, ports, strict=True):
        found = distance([made[key]], [np.array(request.get_tensor(port).data)])
        if found > ALLOWED and len(lines) < most:
            lines.append(f"    {key[0]}.{key[1]} ({nodes[key[0]].get_type_name()}): {found:.1e}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--layers", action="store_true")
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.models.glob("*/model.xml"))
    folders = [folder for folder in folders if not options.names or folder.name in options.names]
    print(f"| model | layers | diagnostics | {' | '.join(ENGINES)} |\n|---|---|---|{'---|' * len(ENGINES)}")
    failed = []
    for folder in folders:
        try:
            text, good = line(folder)
        except Exception as error:
            text, good = f"| {folder.name} | {type(error).__name__}: {str(error)[:200]} |", False
        print(text, flush=True)
        if not good:
            failed.append(folder.name)
            if options.layers:
                print(*differing_layers(folder), sep="\n", flush=True)
    print(f"\n{len(folders)} models, {len(failed)} of them not as OpenVINO has them: {', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
