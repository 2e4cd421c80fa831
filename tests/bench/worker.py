"""A process that loads a model with one runtime and then runs it as often as it is told to.

    python worker.py RUNTIME MODEL INPUTS THREADS OUTPUTS

It writes the outputs of the first run to the .npz file OUTPUTS, and the seconds that loading and that run took as a
line of JSON to stdout. For each number of runs on a line of stdin it then writes the seconds of each run.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]
Run = Callable[[], list[np.ndarray]]


def irrun(engine: str | None = None) -> Callable[[str, Arrays, int], Run]:
    """irrun with the engine of that name, or the one that it chooses."""

    def load(path: str, inputs: Arrays, threads: int) -> Run:
        from irrun import GraphExecutor

        known = inspect.signature(GraphExecutor).parameters
        if engine is not None and "engine" not in known:
            raise LookupError("this irrun has no engines to choose from")
        options = {"engine": engine, "threads": threads}
        executor = GraphExecutor(path, **{key: value for key, value in options.items() if key in known and value})
        return lambda: list(executor.run(inputs).values())

    return load


def openvino(path: str, inputs: Arrays, threads: int) -> Run:
    """The CPU plugin, computing in f32 as irrun does; its default on some processors is bf16."""
    import openvino as ov

    hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    compiled = ov.Core().compile_model(path, "CPU", hints)
    given = {}
    for number, port in enumerate(compiled.inputs):
        names = (*port.names, port.node.friendly_name, str(number))
        given[number] = inputs[next(name for name in names if name in inputs)]
    outputs = compiled.outputs

    def run() -> list[np.ndarray]:
        results = compiled(given)
        return [results[port] for port in outputs]

    return run


def onnxruntime(path: str, inputs: Arrays, threads: int) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {port.name: inputs[port.name] for port in session.get_inputs()}
    return lambda: session.run(None, given)


def onnx_reference(path: str, inputs: Arrays, threads: int) -> Run:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(path)
    given = {name: inputs[name] for name in evaluator.input_names}
    return lambda: evaluator.run(None, given)


RUNTIMES = {
    "irrun": irrun(),
    "irrun numpy": irrun("numpy"),
    "irrun onednn": irrun("onednn"),
    "openvino": openvino,
    "onnxruntime": onnxruntime,
    "onnx reference": onnx_reference,
}


def timed(run: Run, times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return seconds


def main() -> None:
    runtime, path, archive, threads, outputs = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    with np.load(archive) as loaded:
        inputs = dict(loaded)
    begin = time.perf_counter()
    run = RUNTIMES[runtime](path, inputs, int(threads))
    loading = time.perf_counter() - begin
    begin = time.perf_counter()
    results = run()
    first = time.perf_counter() - begin
    np.savez(outputs, *(array if array.dtype.kind in "biuf" else array.astype(np.float32) for array in results))
    print(json.dumps({"load": loading, "first": first}), file=answers)
    for line in sys.stdin:
        print(json.dumps(timed(run, int(line))), file=answers)


if __name__ == "__main__":
    main()
