"""How long and how much memory it takes to read models of many layers, beside OpenVINO's read_model, in turn:
python tests/bench/layers.py --counts 10000,100000,1000000 --rounds 3

Whole processes from start to end: the least seconds by the clock and of a processor, and the memory at the peak. The
models are blocks of two branches with weights, as OpenVINO writes them; one of a million layers takes 600 MB of disk.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

_OURS = "import sys; from irrun.__main__ import run; sys.argv = ['irrun', 'validate', sys.argv[1]]; run()"
_THEIRS = "import sys, openvino; openvino.Core().read_model(sys.argv[1])"

Dims = tuple[int, ...]
Tensor = tuple[int, int, str, Dims]
"""The ids of a layer and of its port, the precision and the dims."""


class Writer:
    """The text and the weights of a model, layer by layer."""

    def __init__(self) -> None:
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = bytearray()

    def layer(
        self,
        type: str,
        name: str,
        data: str = "",
        inputs: Sequence[Tensor] = (),
        output: tuple[str, Dims] | None = None,
    ) -> Tensor:
        """Add a layer; its output, which has its name unless it is a constant."""
        number, port = len(self.layers), len(inputs)
        lines = [f'\t\t<layer id="{number}" name="{name}" type="{type}" version="opset1">']
        lines += [f"\t\t\t<data {data} />"] if data else []
        if inputs:
            ports = [_port(id, precision, dims) for id, (_, _, precision, dims) in enumerate(inputs)]
            lines += ["\t\t\t<input>", *ports, "\t\t\t</input>"]
        if output:
            named = "" if type == "Const" else f' names="{name}"'
            lines += ["\t\t\t<output>", _port(port, *output, named), "\t\t\t</output>"]
        self.layers.append("\n".join([*lines, "\t\t</layer>\n"]))
        for to, (layer, source, _, _) in enumerate(inputs):
            ends = f'from-layer="{layer}" from-port="{source}" to-layer="{number}" to-port="{to}"'
            self.edges.append(f"\t\t<edge {ends} />\n")
        return (number, port, *(output or ("", ())))

    def constant(self, name: str, dims: Dims, numbers: Sequence[int] | None = None) -> Tensor:
        """Integers, or as many ones of f32 as there are elements."""
        count = dims[0] if len(dims) == 1 else dims[0] * dims[1]
        content = struct.pack(f"<{count}f", *[1.0] * count) if numbers is None else struct.pack(f"<{count}q", *numbers)
        type, precision = ("f32", "FP32") if numbers is None else ("i64", "I64")
        place = f'offset="{len(self.weights)}" size="{len(content)}"'
        self.weights += content
        shape = ", ".join(map(str, dims))
        return self.layer("Const", name, f'element_type="{type}" shape="{shape}" {place}', (), (precision, dims))

    def block(self, name: str, x: Tensor) -> Tensor:
        """Fourteen layers: a product, a transposition within the rows, a gate beside them, and what came in."""
        rows, cubes = ("FP32", (-1, 16)), ("FP32", (-1, 4, 4))
        numpy = 'auto_broadcast="numpy"'
        w = self.constant(f"{name}/w", (16, 16))
        y = self.layer("MatMul", f"{name}/MatMul", 'transpose_a="false" transpose_b="true"', [x, w], rows)
        y = bias = self.layer("Add", f"{name}/Add", numpy, [y, self.constant(f"{name}/b", (1, 16))], rows)
        y = self.layer("ReLU", f"{name}/ReLU", "", [y], rows)
        shape = self.constant(f"{name}/shape", (3,), (0, 4, 4))
        y = self.layer("Reshape", f"{name}/Reshape", 'special_zero="true"', [y, shape], cubes)
        y = self.layer("Transpose", f"{name}/T", "", [y, self.constant(f"{name}/order", (3,), (0, 2, 1))], cubes)
        shape = self.constant(f"{name}/shape_1", (2,), (0, 16))
        y = self.layer("Reshape", f"{name}/Reshape_1", 'special_zero="true"', [y, shape], rows)
        gate = self.layer("Sigmoid", f"{name}/gate", "", [bias], rows)
        y = self.layer("Multiply", f"{name}/Multiply", numpy, [y, gate], rows)
        return self.layer("Add", f"{name}/residual", numpy, [y, x], rows)

    def text(self) -> bytes:
        layers, edges = "".join(self.layers), "".join(self.edges)
        parts = f"\t<layers>\n{layers}\t</layers>\n\t<edges>\n{edges}\t</edges>\n"
        return f'<?xml version="1.0"?>\n<net name="m" version="11">\n{parts}</net>\n'.encode()


def _port(id: int, precision: str, dims: Dims, named: str = "") -> str:
    sizes = "".join(f"\t\t\t\t\t<dim>{size}</dim>\n" for size in dims)
    return f'\t\t\t\t<port id="{id}" precision="{precision}"{named}>\n{sizes}\t\t\t\t</port>'


def made(count: int) -> Writer:
    """A model of so many layers, or some more."""
    model = Writer()
    x = model.layer("Parameter", "x", 'shape="?,16" element_type="f32"', (), ("FP32", (-1, 16)))
    while len(model.layers) < count - 1:
        x = model.block(f"model/block_{len(model.layers)}", x)
    model.layer("Result", "y", "", [x])
    return model


def measure(code: str, path: Path) -> tuple[float, float, float]:
    """Seconds by the clock, seconds of a processor, and MB of memory at the peak."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{path} is not read: status {os.waitstatus_to_exitcode(status)}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", default="10000,100000", help="numbers of layers, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("layers       s   of theirs   s of a processor   of theirs     MB   of theirs")
    for count in map(int, options.counts.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.xml")
            model = made(count)
            path.write_bytes(model.text())
            path.with_suffix(".bin").write_bytes(model.weights)
            del model
            turns = [(measure(_OURS, path), measure(_THEIRS, path)) for _ in range(options.rounds)]
        ours, theirs = ([min(column) for column in zip(*side, strict=True)] for side in zip(*turns, strict=True))
        (s, cpu, mb), (rs, rcpu, rmb) = ours, [a / b for a, b in zip(ours, theirs, strict=True)]
        print(f"{count:<9,} {s:6.2f} {rs:9.2f} {cpu:16.2f} {rcpu:14.2f} {mb:9.0f} {rmb:8.2f}", flush=True)


if __name__ == "__main__":
    main()
