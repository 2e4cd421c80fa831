"""What OpenVINO says of a model, asked in a process of its own that may crash: a path a line in, JSON a line out."""

import json
import subprocess
import sys
from collections.abc import Iterable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

SECONDS = 30


def answer(path: str, how: str) -> dict[str, Any]:
    import numpy as np
    import openvino as ov

    core = ov.Core()
    said: dict[str, Any] = {}
    try:
        model = core.read_model(path)
    except Exception as error:
        return {"answer": "refused", "by": "read_model", "said": str(error)[:600]}
    if how == "outputs":
        node = next(op for op in model.get_ops() if op.get_friendly_name() == "node")
        said["outputs"] = [
            [output.get_element_type().get_type_name(), str(output.get_partial_shape())] for output in node.outputs()
        ]
        return said
    try:
        compiled = core.compile_model(model, "CPU")
    except Exception as error:
        return {"answer": "refused", "by": "compile_model", "said": str(error)[:600]}
    if how == "run":
        inputs = []
        for port in compiled.inputs:
            shape = [dim.get_length() if dim.is_static else 2 for dim in port.partial_shape]
            kind = port.element_type.get_type_name()
            if kind == "string":
                inputs.append(np.full(shape, "ab"))
            else:
                inputs.append(ov.Tensor(port.element_type, ov.Shape(shape)))
                inputs[-1].data[...] = 0 if kind not in ("f32", "f16", "f64") else 0.5
        try:
            compiled(inputs)
        except Exception as error:
            return {"answer": "refused", "by": "run", "said": str(error)[:600]}
    return {"answer": "accepted"}


def worker() -> None:
    for line in sys.stdin:
        how, path = line.rstrip("\n").split(" ", 1)
        print(json.dumps(answer(path, how)), flush=True)


def ask(paths: Iterable[Path], how: str) -> list[dict[str, Any]]:
    """The answers, in order; `how` is outputs, compile or run."""
    answers: list[dict[str, Any]] = []
    process: subprocess.Popen[str] | None = None
    for path in paths:
        if process is None:
            process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{how} {path}\n")
        process.stdin.flush()
        ready = wait([process.stdout], SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            answers.append(json.loads(line))
            continue
        if ready:
            answers.append({"answer": "crashes", "said": f"exit {process.wait()}"})
        else:
            answers.append({"answer": "hangs", "said": f"{SECONDS} s"})
            process.kill()
        process = None
    if process is not None:
        process.kill()
    return answers


if __name__ == "__main__":
    worker()
