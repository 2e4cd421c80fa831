"""Models of ops that `irrun edit --target` writes as older ones, read and computed by an old release of OpenVINO.

    python tests/exports/lowering.py FOLDER WHEEL

FOLDER is where models go, WHEEL what `pip install --target WHEEL openvino==2023.0.0` has made. The models are those of
the conformance suite for every op that has an older form, once as they are, and once with all inputs but the first as
constants, as indices must be known. Each is lowered to the operation set of the older ops; the old release computes it,
and irrun the model as it was. Prints a line for each op, and what differs; ends with 1 where something does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino as ov
from conformance.harness import Case, all_cases, model_of, ours

import irrun
from irrun.diagnostics import IRError
from irrun.ir.graph import Model
from irrun.spec.op import Op
from irrun.spec.registry import opset_number, registry
from irrun.tools.edit import EditError, Step, edit

_RUN = """
import json, sys
import numpy as np
import openvino.runtime as ov
core = ov.Core()
for path in json.loads(sys.stdin.read()):
    try:
        compiled = core.compile_model(core.read_model(path + ".xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        given = np.load(path + ".npz")
        request = compiled.create_infer_request()
        request.infer([given[name] for name in given.files])
        tensors = [request.get_output_tensor(number) for number in range(len(compiled.outputs))]
        # views of tensors whose shapes only the run told have wrong strides in 2023.0
        plain = [np.empty(tuple(t.shape), t.data.dtype) for t in tensors]
        arrays = [np.lib.stride_tricks.as_strided(t.data, p.shape, p.strides) for t, p in zip(tensors, plain)]
        np.savez(path + ".out.npz", *arrays)
    except Exception as error:
        print(path + ": " + str(error).replace(chr(10), " ")[-200:], flush=True)
"""


NEWEST = 11
"""Operation set that the old release has."""


@dataclass(frozen=True)
class Written:
    """A lowered model, and what irrun computes with the model as it was."""

    op: str
    case: Case
    path: Path
    expected: list[np.ndarray]


def chain(op: Op) -> Iterator[str]:
    """The operation sets of the older forms of an op, one after the other."""
    if op.decomposition is not None:
        yield f"opset{min(op.version - 1, NEWEST)}"
    while op.lowering is not None:
        if op.lowering.older is None:
            yield f"opset{op.version - 1}"
            return
        op = registry().ops[op.lowering.older]
        yield f"opset{min(op.held_by)}"


def variants(model: Model, arrays: Sequence[np.ndarray]) -> Iterator[tuple[Model, list[np.ndarray]]]:
    yield model.copy(), list(arrays)
    if len(arrays) < 2:
        return
    fixed = model.copy()
    for parameter, array in list(zip(fixed.graph.parameters, arrays, strict=True))[1:]:
        layer = fixed.add_constant(array, type=parameter.attributes["element_type"])
        fixed.replace(parameter, layer)
        if parameter in fixed.graph.layers:
            fixed.remove(parameter)
    yield fixed, [arrays[0]]


def write(folder: Path, refused: Counter[str]) -> list[Written]:
    ops = {name: op for name, op in registry().ops.items() if op.lowering or op.decomposition}
    written = []
    for case in all_cases():
        if case.op not in ops or case.deviates or case.crashes or case.later:
            continue
        path = folder / "source.xml"
        model, arrays = model_of(case)
        ov.serialize(model, path, path.with_suffix(".bin"))
        for variant, given in variants(irrun.read_model(path), arrays):
            if any(array.dtype.kind in "US" or array.dtype.type.__module__ == "ml_dtypes" for array in given):
                continue
            if not all(array.ndim for array in given):  # of which 2023.0 takes other numbers
                continue
            expected = ours(variant, given)
            for target in chain(ops[case.op]):
                if NEWEST < (opset_number(target) or 0) < ops[case.op].version - 1:
                    continue
                lowered = variant.copy()
                try:
                    edit(lowered, [Step("target", target)])
                except (EditError, IRError):
                    refused[case.op] += 1
                    continue
                where = folder / f"{len(written)}"
                irrun.write_model(lowered, where.with_suffix(".xml"))
                np.savez(where.with_suffix(".npz"), *given)
                written.append(Written(f"{case.op} to {target}", case, where, expected))
    return written


def main(folder: Path, wheel: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    refused: Counter[str] = Counter()
    written = write(folder, refused)
    names = json.dumps([str(each.path) for each in written])
    environment = {**os.environ, "PYTHONPATH": str(wheel)}
    done = subprocess.run([sys.executable, "-c", _RUN], input=names, capture_output=True, text=True, env=environment)
    print(done.stdout + done.stderr[-2000:])
    good: Counter[str] = Counter()
    failed = 0
    for each in written:
        out = each.path.with_suffix(".out.npz")
        if not out.exists():
            failed += 1
            print(f"{each.op}: {each.case}: not computed")
            continue
        results = list(np.load(out).values())
        half = any(np.asarray(array).dtype.itemsize == 2 for array in each.expected)
        relative, absolute = (4e-3, 4e-3) if half else (max(each.case.rtol, 1e-4), 1e-5)
        same = len(results) == len(each.expected) and all(
            one.shape == other.shape
            and np.allclose(one.astype(float), np.asarray(other).astype(float), relative, absolute, equal_nan=True)
            for one, other in zip(results, each.expected, strict=True)
        )
        good[each.op] += same
        if not same:
            failed += 1
            print(f"{each.op}: {each.case}: differs")
    for op, count in sorted(good.items()):
        print(f"{op}: {count} models agree")
    print(f"{len(good)} lowerings of {len({op.split()[0] for op in good})} op versions, {failed} failures")
    print("refused:", dict(refused))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
