"""A process that loads a model with one runtime and then runs it as often as it is told to.

    python worker.py RUNTIME MODEL THREADS OUTPUTS INPUTS...

It runs the model with the first of the .npz files INPUTS, writes the outputs to the .npz file OUTPUTS, and the seconds
that loading and that run took as a line of JSON to stdout. For each list of numbers on a line of stdin, which are those
of INPUTS from 0 on, it then runs the model with each in turn, and writes the list of the seconds of these runs. With
the variable BENCH_ALONE set, it lets no process of ordinary priority have a processor that it wants meanwhile.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]
Run = Callable[[], list[np.ndarray]]
Bind = Callable[[Arrays], Run]
"""A loaded model: what makes a run of inputs."""


def irrun(engine: str | None = None, precision: str | None = None) -> Callable[[str, int], Bind]:
    """irrun with the engine of that name, or the one that it chooses, at a precision of its choice or this one."""

    def load(path: str, threads: int) -> Bind:
        from irrun import GraphExecutor

        known = inspect.signature(GraphExecutor).parameters
        if engine is not None and "engine" not in known:
            raise LookupError("this irrun has no engines to choose from")
        options = {"engine": engine, "threads": threads, "precision": precision}
        executor = GraphExecutor(path, **{key: value for key, value in options.items() if key in known and value})
        return lambda inputs: lambda: list(executor.run(inputs).values())

    return load


def openvino(path: str, threads: int, precision: str = "f32") -> Bind:
    """The CPU plugin, computing in f32 as irrun does; its default on some processors is bf16. One request for all."""
    import openvino as ov
    from ml_dtypes import bfloat16

    hints = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    compiled = ov.Core().compile_model(path, "CPU", hints)
    outputs = compiled.outputs
    narrow = frozenset(port for port in outputs if port.element_type == ov.Type.bf16)

    def bind(inputs: Arrays) -> Run:
        given = {}
        for number, port in enumerate(compiled.inputs):
            names = (*port.names, port.node.friendly_name, str(number))
            given[number] = inputs[next(name for name in names if name in inputs)]

        def run() -> list[np.ndarray]:
            results = compiled(given)
            # bits of bf16 are handed out as f16
            return [results[port].view(bfloat16) if port in narrow else results[port] for port in outputs]

        return run

    return bind


def onnxruntime(path: str, threads: int) -> Bind:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def bind(inputs: Arrays) -> Run:
        given = {port.name: inputs[port.name] for port in session.get_inputs()}
        return lambda: session.run(None, given)

    return bind


def onnx_reference(path: str, threads: int) -> Bind:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(path)

    def bind(inputs: Arrays) -> Run:
        given = {name: inputs[name] for name in evaluator.input_names}
        return lambda: evaluator.run(None, given)

    return bind


RUNTIMES = {
    "irrun": irrun(),
    "irrun numpy": irrun("numpy"),
    "irrun onednn": irrun("onednn"),
    "irrun reference": irrun("reference"),
    "irrun bf16": irrun(precision="bf16"),
    "openvino": openvino,
    "openvino bf16": functools.partial(openvino, precision="bf16"),
    "onnxruntime": onnxruntime,
    "onnx reference": onnx_reference,
}


def storable(dtype: np.dtype) -> Any:
    """The type in which an .npz file holds such an array: strings as str, bf16 and smaller numbers as f32."""
    return str if dtype.kind in "OTU" else dtype if dtype.kind in "biuf" else np.float32


def timed(runs: Iterable[Run]) -> list[float]:
    seconds = []
    for run in runs:
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return seconds


@contextmanager
def alone() -> Iterator[None]:
    """Nothing takes a processor from any thread of this process. Raises PermissionError where that is not allowed."""
    _schedule(os.SCHED_FIFO, 1)
    try:
        yield
    finally:
        _schedule(os.SCHED_OTHER, 0)


@contextmanager
def beside() -> Iterator[None]:
    """All processes are equal."""
    yield


def _schedule(policy: int, priority: int) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))


def main() -> None:
    undisturbed = alone if os.environ.get("BENCH_ALONE") else beside
    runtime, path, threads, outputs, *archives = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    inputs = []
    for archive in archives:
        with np.load(archive) as loaded:
            inputs.append(dict(loaded))
    begin = time.perf_counter()
    bind = RUNTIMES[runtime](path, int(threads))
    loading = time.perf_counter() - begin
    runs = [bind(arrays) for arrays in inputs]
    begin = time.perf_counter()
    results = runs[0]()
    first = time.perf_counter() - begin
    np.savez(outputs, *(array.astype(storable(array.dtype), copy=False) for array in results))
    print(json.dumps({"load": loading, "first": first}), file=answers)
    for line in sys.stdin:
        wanted = [runs[number] for number in json.loads(line)]
        with undisturbed():
            seconds = timed(wanted)
        print(json.dumps(seconds), file=answers)


if __name__ == "__main__":
    main()
