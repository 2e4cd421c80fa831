"""How agreement with OpenVINO is tested: one model per case, run by both, compared in type, shape and value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset1

import irrun
from irrun.spec.dtypes import element_type


@dataclass(frozen=True)
class Const:
    """An input that the model holds as a constant."""

    array: Any


@dataclass(frozen=True)
class Case:
    """A model of (mostly) one op.

    `build` makes the op's node from one node per input; `inputs` are arrays, which become Parameters, or `Const`s.
    With `dynamic` the Parameters are declared with the right rank and all sizes unknown. Where OpenVINO departs from
    the specification, `deviates` says how, and `expected` holds the outputs that the specification gives.
    """

    op: str
    title: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    dynamic: bool = False
    deviates: str | None = None
    expected: Sequence[Any] | None = field(default=None)
    rtol: float = 1e-5
    atol: float = 1e-6

    def __str__(self) -> str:
        return f"{self.op} {self.title}"


def conformance(cases: Sequence[Case]) -> Callable[..., None]:
    """A test that runs every case."""

    @pytest.mark.parametrize("case", cases, ids=str)
    def test(case: Case, tmp_path: Path) -> None:
        check(case, tmp_path)

    return test


def check(case: Case, folder: Path) -> None:
    model, arrays = model_of(case)
    path = folder / "model.xml"
    ov.serialize(model, path, path.with_suffix(".bin"))
    report = irrun.validate(path)
    assert not report.diagnostics, "\n".join(map(str, report.diagnostics))
    ops = {layer.type.lower() for layer in irrun.read_model(path).graph.layers}
    assert case.op.rpartition("-")[0].lower() in ops | {"constant"}, f"OpenVINO wrote {ops}, not the op under test"
    got = list(irrun.GraphExecutor(path).run(arrays).values())
    if case.deviates is None:
        compare(got, reference(path, arrays), case)
    else:
        assert case.expected is not None, "a deviation needs the expected outputs"
        compare(got, [np.asarray(array) for array in case.expected], case)


def model_of(case: Case) -> tuple[ov.Model, list[Any]]:
    nodes, parameters, arrays = [], [], []
    for item in case.inputs:
        if isinstance(item, Const):
            nodes.append(constant(np.asarray(item.array)))
            continue
        array = np.asarray(item)
        shape = [-1] * array.ndim if case.dynamic else list(array.shape)
        parameters.append(opset1.parameter(shape, ov.Type.string if array.dtype.kind == "U" else ov_type(array)))
        nodes.append(parameters[-1])
        arrays.append(array)
    node = case.build(*nodes)
    outputs = node if isinstance(node, list) else node.outputs()
    return ov.Model([opset1.result(output) for output in outputs], parameters), arrays


def ov_type(array: Any) -> ov.Type:
    return getattr(ov.Type, element_type(array.dtype))


def constant(array: Any) -> Any:
    """A constant of the array's element type; types that OpenVINO's Python binding does not take go as raw bytes."""
    name = element_type(array.dtype)
    if name in ("bf16", "f8e4m3", "f8e5m2", "f8e8m0"):
        tensor = ov.Tensor(getattr(ov.Type, name), list(array.shape))
        tensor.data.view(np.uint8 if array.itemsize == 1 else np.uint16)[...] = array.view(f"u{array.itemsize}")
        return ov.op.Constant(tensor)
    return opset1.constant(array)


def reference(path: Path, arrays: Sequence[Any]) -> list[Any]:
    """What OpenVINO's CPU plugin computes at full precision."""
    core = ov.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    tensors = [tensor_of(array) for array in arrays]
    request = compiled.create_infer_request()
    request.infer(dict(enumerate(tensors)))
    return [array_of(request.get_output_tensor(i)) for i in range(len(compiled.outputs))]


def tensor_of(array: Any) -> ov.Tensor:
    if array.dtype.kind == "U":
        return ov.Tensor(np.asarray(array))
    if array.dtype.name == "bfloat16":
        tensor = ov.Tensor(ov.Type.bf16, list(array.shape))
        tensor.data.view(np.uint16)[...] = array.view(np.uint16)
        return tensor
    return ov.Tensor(np.array(array, order="C"))  # a scalar keeps its rank only through a copy


def array_of(tensor: ov.Tensor) -> Any:
    name = tensor.element_type.get_type_name()
    if name == "string":
        return np.asarray(tensor.str_data).reshape(list(tensor.shape))
    if name == "bf16":
        return tensor.data.view(np.uint16).view(irrun.spec.numpy_dtype("bf16")).reshape(list(tensor.shape)).copy()
    return tensor.data.copy().reshape(list(tensor.shape))


def compare(got: Sequence[Any], want: Sequence[Any], case: Case) -> None:
    assert len(got) == len(want)
    for number, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        where = f"output {number}"
        assert ours.shape == theirs.shape, where
        assert ours.dtype == theirs.dtype or ours.dtype.kind == theirs.dtype.kind == "U", where
        if ours.dtype.kind in "biuU":
            np.testing.assert_array_equal(ours, theirs, where)
        else:
            a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
            np.testing.assert_allclose(a, b, case.rtol, case.atol, err_msg=where)
