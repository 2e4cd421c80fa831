"""What OpenVINO says of models, asked in processes that may crash: refused, unstable, or what it computes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from conformance.constraints.row import Row

SECONDS = 12
"""For one model; it hangs if it takes longer."""

FILLS = ("85", "170")
"""What memory holds that nobody has written to, in two processes: results that depend on it are no results."""

SHOWN = 8
"""Values of each output in the table."""

LONGEST = 90
"""Characters of an error in the table."""


class Worker:
    """A process that answers one question after another, and is replaced when it dies."""

    def __init__(self, fill: str) -> None:
        self._fill = fill
        self._process: subprocess.Popen[str] | None = None

    def ask(self, row: Row, constants: bool) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([row.sent(), constants]) + "\n")
        process.stdin.flush()
        ready = wait([process.stdout], SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        return {"state": "hangs" if not ready else "crashes"}

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            environment = os.environ | {"MALLOC_PERTURB_": self._fill, "OMP_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "conformance.constraints.asking"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
                cwd=Path(__file__).parents[2],
            )
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                stream.close()
            self._process = None


class Asker:
    """Asks two workers, and ends them."""

    def __init__(self) -> None:
        self._workers = [Worker(fill) for fill in FILLS]

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()

    def ask(self, row: Row, constants: bool) -> tuple[str, list[Any]]:
        """The answer as the table has it, and the outputs where there are any: type, shape and elements of each."""
        first, second = (worker.ask(row, constants) for worker in self._workers)
        return settled(first, second)


def settled(first: dict[str, Any], second: dict[str, Any]) -> tuple[str, list[Any]]:
    for each in (first, second):
        assert each["state"] != "fault", each["message"]
        if each["state"] in ("crashes", "hangs"):
            return each["state"], []
    if first["state"] != "computes":
        return f"{first['state']}: {first['message']}", []
    if first != second or not first["stable"]:
        return f"unstable: {shown(first['outputs'])}", []
    return f"computes: {shown(first['outputs'])}", first["outputs"]


def shown(outputs: list[Any]) -> str:
    texts = []
    for type, shape, values in outputs:
        more = " ..." if len(values) > SHOWN else ""
        numbers = " ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values[:SHOWN])
        texts.append(f"{type}{shape} {numbers}{more}".strip())
    return "; ".join(texts)


def answer(row: Row, constants: bool, folder: Path) -> dict[str, Any]:
    """What OpenVINO does with a model, in this process."""
    import openvino as ov

    from conformance.harness import array_of, tensor_of

    xml, weights, arrays = row.model(constants)
    path = folder / "model.xml"
    path.write_text(xml, encoding="utf-8")
    path.with_suffix(".bin").write_bytes(weights)
    core = ov.Core()
    state = "refused at read"
    try:
        model = core.read_model(path)
        state = "refused at compile"
        runs = []
        for _ in range(2):
            state = "refused at compile"
            compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
            state = "refused at run"
            request = compiled.create_infer_request()
            for _ in range(2):
                request.infer(dict(enumerate(map(tensor_of, arrays))))
                runs.append([listed(array_of(request.get_output_tensor(i))) for i in range(len(compiled.outputs))])
    except Exception as error:
        return {"state": state, "message": summary(str(error))}
    texts = {json.dumps(run) for run in runs}
    return {"state": "computes", "stable": len(texts) == 1, "outputs": runs[0]}


def listed(array: Any) -> tuple[str, list[int], list[Any]]:
    import numpy as np

    from irrun.spec.dtypes import element_type

    plain = array if array.dtype.kind in "biuU" else array.astype(np.float64)
    return element_type(array.dtype), list(array.shape), plain.ravel().tolist()


def summary(message: str) -> str:
    """The line of an error that says what is wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("Exception from", "Check '", "While validating"))]
    checks = [line.partition("' failed")[0][7:] for line in lines if line.startswith("Check '")]
    text = " / ".join(dict.fromkeys([*checks[:1], *said[-2:]])) or message
    return text[:LONGEST]


def serve() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            entry, constants = json.loads(line)
            try:
                said = answer(Row.loads(json.loads(entry)), constants, Path(folder))
            except Exception as error:
                said = {"state": "fault", "message": f"{type(error).__name__}: {error}"}
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    serve()
