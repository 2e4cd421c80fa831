"""Measures irrun beside OpenVINO, ONNX Runtime and ONNX's reference evaluator, in turn, on this machine.

    python tests/bench/run.py --models FOLDER [--only NAME] [--measure NAME] [--turns N] [--json FILE] [--plot FILE]

FOLDER is what tests/exports/export.py has written, and tests/bench/twins.py has added ONNX twins to; or samples/.
The measures:

    check     a whole process: `irrun validate`, and OpenVINO's read_model; and its peak of memory
    one-shot  a whole process: read the model and its inputs, run it once, write the outputs; and its peak of memory
    steady    a loaded model, run after run, with each engine of irrun; the others as far as they are installed
    ops       single ops at the sizes of the models that they come from
    layers    10,000 tiny element-wise layers: what a layer costs beside its arithmetic
    limits    how fast this machine's memory is

OpenVINO computes in f32, with as many threads. It must be installed; onnxruntime, onnx and, for --plot, matplotlib are
used where they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from bench.measure import Result, measure_steady, measure_whole
from bench.models import Model, models_in
from bench.processes import HERE, Setting, install
from bench.report import geometric_means, plot, report

MEASURES = ("check", "one-shot", "steady", "ops", "layers", "limits")
ENGINES = ("irrun numpy", "irrun onednn")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(options.python or install(Path(folder)), options.threads)
        if not setting.has("openvino"):
            print("openvino is not installed: there is nothing to compare with", file=sys.stderr)
            return 2
        results = measure(options, setting)
        limits = _limits(setting) if "limits" in options.measure else {}
    print(report(results))
    for result in results:
        if result.measure == "layers" and result.best is not None:
            from bench.graphs import LAYERS

            print(f"{result.runtime}: {result.best / LAYERS * 1e6:.2f} µs a layer at best")
    for name, seconds in limits.items():
        print(f"{name}: {seconds * 1e3:.1f} ms")
    if options.json:
        options.json.write_text(json.dumps(_record(options, results, limits), indent=1) + "\n")
    if options.plot:
        plot(results, options.plot)
    return 0


def measure(options: argparse.Namespace, setting: Setting) -> list[Result]:
    """All that is asked for. Whole processes come first: they start out with the size of this one."""
    models = models_in(options.models, options.only) if options.models else []
    engines = [*(ENGINES if _has_engines(setting) else ("irrun",)), "openvino"]
    twins = [
        name for name, module in (("onnxruntime", "onnxruntime"), ("onnx reference", "onnx")) if setting.has(module)
    ]
    results: list[Result] = []
    for kind in ("check", "one-shot"):
        for model in models if kind in options.measure else ():
            _say(kind, model.name)
            results += measure_whole(kind, model, ("irrun", "openvino"), setting, options.turns)
    if "steady" in options.measure:
        for model in models:
            _say("steady", model.name)
            results += measure_steady("steady", model, [*engines, *twins], setting, options.turns)
    for kind in ("ops", "layers"):
        for name in _graphs(kind) if kind in options.measure else ():
            if options.only and not any(name.startswith(start) for start in options.only):
                continue
            _say(kind, name)
            results += _made(kind, name, engines, setting, options.turns)
    return results


def _made(kind: str, name: str, engines: Sequence[str], setting: Setting, turns: int) -> list[Result]:
    """Measure a model of graphs.py, which is written for the purpose."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([setting.python, "-P", HERE / "graphs.py", folder, name], env=setting.variables, check=True)
        model = Model(name, Path(folder) / "model.xml", Path(folder) / "inputs.npz")
        return measure_steady(kind, model, engines, setting, turns)


def _graphs(kind: str) -> list[str]:
    from bench.graphs import GRAPHS, OPS  # not at the top: it loads numpy, which counts as the peak of what is started

    return [name for name in GRAPHS if (name in OPS) == (kind == "ops")]


def _has_engines(setting: Setting) -> bool:
    script = "import inspect, irrun, sys; sys.exit('engine' not in inspect.signature(irrun.GraphExecutor).parameters)"
    done = subprocess.run([setting.python, "-P", "-c", script], env=setting.variables, check=False)
    return done.returncode == 0


def _limits(setting: Setting) -> dict[str, float]:
    done = subprocess.run(
        [setting.python, "-P", HERE / "limits.py"], env=setting.variables, check=True, stdout=subprocess.PIPE
    )
    return dict(json.loads(done.stdout))


def _record(options: argparse.Namespace, results: Sequence[Result], limits: dict[str, float]) -> dict[str, object]:
    packages = ("numpy", "scipy", "openvino", "onnxruntime", "onnx", "onednn-cpu-gomp")
    found = {package.metadata["Name"]: package.version for package in metadata.distributions()}
    measures = dict.fromkeys(result.measure for result in results)
    return {
        "machine": {"platform": platform.platform(), "threads": options.threads, "python": platform.python_version()},
        "versions": {name: found[name] for name in packages if name in found},
        "geometric means": {
            name: geometric_means([result for result in results if result.measure == name]) for name in measures
        },
        "limits": limits,
        "results": [asdict(result) for result in results],
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="where the models of one-shot and steady are")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a model, or how an op begins")
    parser.add_argument("--measure", action="append", choices=MEASURES, help="may be given several times; default: all")
    parser.add_argument("--turns", type=int, default=7, metavar="N", help="of each runtime (default: 7)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="default: all processors")
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="an interpreter with irrun and its peers; default: a copy of irrun, compiled, beside what this one has",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw irrun's ratios to OpenVINO")
    options = parser.parse_args(arguments)
    options.measure = options.measure or MEASURES
    return options


def _say(measure: str, name: str) -> None:
    print(f"{measure}: {name}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
