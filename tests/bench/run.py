"""Measures irrun beside OpenVINO, ONNX Runtime and ONNX's reference evaluator, in turn, on this machine.

    python tests/bench/run.py --models FOLDER [--only NAME] [--measure NAME] [--turns N] [--json FILE] [--plot FILE]
    python tests/bench/run.py --models FOLDER --against CHECKOUT [...]
    python tests/bench/run.py --models FOLDER --engine auto --markdown FILE [...]

FOLDER is what tests/exports/kinds.py has written, or tests/exports/export.py, and tests/bench/twins.py has added ONNX
twins to; or samples/. The measures:

    check     a whole process: `irrun validate`, and OpenVINO's read_model; and its peak of memory
    one-shot  a whole process: read the model and its inputs, run it once, write the outputs; and its peak of memory
    steady    a loaded model, run after run, with each engine of irrun; the others as far as they are installed
    fresh     the first runs with each of the inputs of other shapes that a model has, after one run with its own
    varied    runs with other data of the same shapes each time, as those of a camera are
    ops       single ops at the sizes of the models that they come from
    loops     a Loop and a TensorIterator of 1,000 short iterations
    layers    10,000 tiny element-wise layers: what a layer costs beside its arithmetic
    limits    how fast this machine's memory is

OpenVINO computes in f32, with as many threads; `--precision bf16` has `steady` measured in bf16, too, where
`difference` is how far irrun's outputs are from OpenVINO's in f32, and --json has that of both. OpenVINO must be
installed; onnxruntime, onnx and, for --plot, matplotlib are used where they are. With --against, the irrun of another
checkout, such as one of the commit before, takes their place.
With the variable BENCH_ALONE=1 runs of `steady`, `fresh` and `varied` are not disturbed by what else the machine does,
as far as its processors go: they have real-time priority while they last, which takes Linux and the right to do so.

With --markdown there is a line for each model with its ratios of all measures, the worst first, and for the slow ones
what of them takes longest.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from bench.costs import costs
from bench.measure import Result, measure_fresh, measure_steady, measure_varied, measure_whole
from bench.models import Model, models_in
from bench.options import parser, setting
from bench.processes import HERE, Peer, Setting
from bench.report import plot, record, report
from bench.summary import SLOW, slower, summary

MEASURES = ("check", "one-shot", "steady", "fresh", "varied", "ops", "loops", "layers", "limits")
ENGINES = ("irrun numpy", "irrun onednn")
BF16 = ("irrun bf16", "openvino bf16")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder:
        own = setting(options.python, options.threads, Path(folder) / "own")
        other = setting(options.against, options.threads, Path(folder) / "other") if options.against else None
        if not own.has("openvino"):
            print("openvino is not installed: there is nothing to compare with", file=sys.stderr)
            return 2
        results = measure(options, own, other)
        limits = _limits(own) if "limits" in options.measure else {}
        models = models_in(options.models, slower(results, SLOW)) if options.markdown and options.models else []
        expensive = {model.name: costs(model, own) for model in models if model.name in slower(results, SLOW)}
    print(report(results))
    for result in results:
        if result.measure == "layers" and result.best is not None:
            from bench.graphs import LAYERS

            print(f"{result.runtime}: {result.best / LAYERS * 1e6:.2f} µs a layer at best")
    for name, seconds in limits.items():
        print(f"{name}: {seconds * 1e3:.1f} ms")
    if options.markdown:
        options.markdown.write_text(summary(results, expensive))
    if options.json:
        options.json.write_text(json.dumps(record(results, options.threads) | {"limits": limits}, indent=1) + "\n")
    if options.plot:
        plot(results, options.plot)
    return 0


def measure(options: argparse.Namespace, own: Setting, other: Setting | None) -> list[Result]:
    """All that is asked for. Whole processes come first: they start out with the size of this one."""
    models = models_in(options.models, options.only) if options.models else []
    settings = [own, other] if other else [own]
    engines = ENGINES if all(map(_has_engines, settings)) and options.engine != "auto" else ("irrun",)
    results: list[Result] = []
    for kind in ("check", "one-shot"):
        for model in models if kind in options.measure else ():
            _say(kind, model.name)
            results += measure_whole(kind, model, _peers(("irrun",), own, other), options.turns)
    peers = _peers(engines, own, other)
    if "steady" in options.measure:
        twins = [
            Peer(name, name, own, twin=True)
            for name, module in (("onnxruntime", "onnxruntime"), ("onnx reference", "onnx"))
            if other is None and own.has(module)
        ]
        rounded = [Peer(name, name, own) for name in BF16] if options.precision == "bf16" else []
        for model in models:
            _say("steady", model.name)
            results += measure_steady("steady", model, [*peers, *rounded, *twins], options.turns)
    for model in models if "fresh" in options.measure else ():
        if model.others:
            _say("fresh", model.name)
            results += measure_fresh("fresh", model, peers, options.turns)
    for model in models if "varied" in options.measure else ():
        _say("varied", model.name)
        results += measure_varied("varied", model, peers, options.turns)
    for kind in ("ops", "loops", "layers"):
        for name in _graphs(kind) if kind in options.measure else ():
            if options.only and not any(name.startswith(start) for start in options.only):
                continue
            _say(kind, name)
            results += _made(kind, name, peers, options.turns)
    return results


def _peers(engines: Sequence[str], own: Setting, other: Setting | None) -> list[Peer]:
    """Irrun's engines, and what they are compared with."""
    peers = [Peer(name, name, own) for name in engines]
    if other is None:
        return [*peers, Peer("openvino", "openvino", own)]
    return [*peers, *(Peer(f"against: {name}", name, other) for name in engines)]


def _made(kind: str, name: str, peers: Sequence[Peer], turns: int) -> list[Result]:
    """Measure a model of graphs.py, which is written for the purpose."""
    setting = peers[0].setting
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([setting.python, "-P", HERE / "graphs.py", folder, name], env=setting.variables, check=True)
        model = Model(name, Path(folder) / "model.xml", Path(folder) / "inputs.npz")
        return measure_steady(kind, model, peers, turns)


def _graphs(kind: str) -> list[str]:
    from bench.graphs import GRAPHS  # not at the top: it loads numpy, which counts as the peak of what is started

    return list(GRAPHS[kind])


def _has_engines(setting: Setting) -> bool:
    script = "import inspect, irrun, sys; sys.exit('engine' not in inspect.signature(irrun.GraphExecutor).parameters)"
    done = subprocess.run([setting.python, "-P", "-c", script], env=setting.variables, check=False)
    return done.returncode == 0


def _limits(setting: Setting) -> dict[str, float]:
    done = subprocess.run(
        [setting.python, "-P", HERE / "limits.py"], env=setting.variables, check=True, stdout=subprocess.PIPE
    )
    return dict(json.loads(done.stdout))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    known = parser(__doc__, turns=7)
    known.add_argument("--measure", action="append", choices=MEASURES, help="may be given several times; default: all")
    known.add_argument("--against", type=Path, metavar="PATH", help="a checkout or an interpreter, as for --python")
    known.add_argument(
        "--engine", choices=("each", "auto"), default="each", help="measure the one that irrun chooses; default: each"
    )
    known.add_argument(
        "--precision", choices=("f32", "bf16"), default="f32", help="bf16: `steady` in bf16, too; default: f32"
    )
    known.add_argument("--markdown", type=Path, metavar="FILE", help="write a line for each model, the slowest first")
    known.add_argument("--plot", type=Path, metavar="FILE", help="draw irrun's ratios to OpenVINO")
    options = known.parse_args(arguments)
    if options.plot and options.against:
        known.error("--plot draws ratios to OpenVINO, which takes no part with --against")
    if options.precision == "bf16" and options.against:
        known.error("--precision bf16 is measured beside OpenVINO in bf16, which takes no part with --against")
    options.measure = options.measure or MEASURES
    return options


def _say(measure: str, name: str) -> None:
    print(f"{measure}: {name}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
