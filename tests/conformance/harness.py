"""How agreement with OpenVINO is tested: one model per case, run by both, compared in type, shape and value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import openvino as ov
import pytest
from openvino import opset1

import irrun
from irrun.engines import ENGINES
from irrun.engines.onednn import load as load_onednn
from irrun.spec.dtypes import element_type
from irrun.spec.registry import registry
from irrun.tools.inspect.releases import LATER, _table

OPS = {name: op for name, op in registry().ops.items() if _table().ops[name] != LATER}
"""What this OpenVINO has: not what only the specification has."""

WIDE, NARROW = "with AVX-512", "without AVX-512"
"""Processors on which OpenVINO does something else than on others."""

FEATURES: dict[str, bool] = getattr(np._core._multiarray_umath, "__cpu_features__", {})


@dataclass(frozen=True)
class Const:
    """An input that the model holds as a constant."""

    array: Any


@dataclass(frozen=True)
class Departure:
    """How OpenVINO's CPU plugin departs from the specification.

    `text` says "what it does; what the specification or the reference says". What it does starts with "refuses" if it
    fails with an error. `when` are the conditions under which it may do that with other layers of the op, too, in the
    language of `irrun.check.deviations.conditions` and with "; " between them; the op, its types, attributes and data
    count, and not what the case happens to have. That OpenVINO does it in runs, and not where a layer is computed
    before them, goes without saying if the case has an input. Where it is seen `on` some processors alone these are
    WIDE or NARROW; what it does on others is not looked at.
    """

    text: str
    when: str = ""
    on: str = ""

    @property
    def does(self) -> str:
        does = self.text.partition("; ")[0]
        return f"{does} ({self.on})" if self.on else does

    @property
    def here(self) -> bool:
        """Whether it is there to be seen on this processor."""
        return self.on in ("", WIDE if FEATURES.get("AVX512_SKX") else NARROW)

    @property
    def because(self) -> str:
        return self.text.partition("; ")[2]


ANY_INTEGER = "i8, i16, i32, i64, u8, u16, u32, u64"
"""Types in a condition."""

RESET = "reset"
"""Among the inputs of later runs: the model's state is reset."""


@dataclass(frozen=True)
class Case:
    """A model of (mostly) one op.

    `build` makes the op's node from one node per input, or a list of outputs; nodes in that list are sinks. `inputs`
    are arrays, which become Parameters, or `Const`s. With `dynamic` the Parameters are declared with the right rank
    and all sizes unknown. `later` has the arrays of further runs of a model with state, or RESET between them; all
    outputs of all runs are compared.

    Where OpenVINO's CPU plugin departs from the specification, `deviates` says how, and `expected` holds the outputs
    that the specification gives. With `crashes` it ends the process, or reads memory that is not its own, so that what
    it does depends on chance: then it is not run. All other departures are checked to be there. Such cases are listed
    in DEVIATIONS.md and in irrun/check/deviations/known.json.

    `left_out` are attributes that the file lacks, though OpenVINO writes them. `edit` changes the file otherwise, given
    its root: what the page allows, but OpenVINO neither takes nor writes.
    """

    op: str
    title: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    dynamic: bool = False
    deviates: Departure | None = None
    expected: Sequence[Any] | None = field(default=None)
    rtol: float = 1e-5
    atol: float = 1e-6
    later: Sequence[Any] = ()
    crashes: bool = False
    left_out: Sequence[str] = ()
    edit: Callable[[Element], None] | None = None

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
    write(model, path, case)
    report = irrun.validate(path)
    # where OpenVINO departs, it may also write shapes into the file that are not those of the specification
    found = report.errors if case.deviates else [d for d in report.diagnostics if d.code != "W913"]  # NaN on purpose
    assert not found, "\n".join(map(str, found))
    assert report.inference is not None
    ops = {node.op.name for node in report.inference.nodes.values()}
    assert case.op in ops, f"OpenVINO wrote {ops}, not the op under test"
    assert case.deviates is None or case.expected is not None, "a deviation needs the expected outputs"
    expected = reference(path, arrays, case.later) if case.deviates is None else wanted(case)
    with catch_warnings():
        if case.deviates is not None:  # data that are doubtful, too, are told of in runs
            simplefilter("ignore", UserWarning)
        for engine in engines():
            compare(ours(report.model, arrays, case.later, engine), expected, case, f"engine {engine}")
    if case.deviates is None:
        return
    if not case.crashes and case.deviates.here:
        departure = departs(path, arrays, case)
        assert departure, f"OpenVINO no longer deviates; it did: {case.deviates.text}"
        refuses = case.deviates.does.startswith("refuses")
        assert (departure == "refuses") is refuses, f"OpenVINO {departure}, but is said to do: {case.deviates.text}"


def wanted(case: Case) -> list[Any]:
    return [np.asarray(array) for array in case.expected or ()]


def departs(path: Path, arrays: Sequence[Any], case: Case) -> str | None:
    """How OpenVINO departs from what is expected."""
    try:
        outputs = reference(path, arrays, case.later)
    except RuntimeError:
        return "refuses"
    try:
        compare(outputs, wanted(case), case)
    except AssertionError:
        return "gives something else"
    return None


def write(model: ov.Model, path: Path, case: Case) -> None:
    """The file of the case's model."""
    ov.serialize(model, path, path.with_suffix(".bin"))
    for name in case.left_out:
        text, found = re.subn(f' {name}="[^"]*"', "", path.read_text(encoding="utf-8"))
        assert found == 1, f"{name} stands in the file {found} times"
        path.write_text(text, encoding="utf-8")
    if case.edit is not None:
        tree = ElementTree.parse(path)
        case.edit(tree.getroot())
        tree.write(path, encoding="utf-8")


def with_attribute(name: str, text: str) -> Callable[[Element], None]:
    """An edit that gives an attribute another value."""

    def edit(root: Element) -> None:
        (data,) = (element for element in root.iter("data") if name in element.attrib)
        data.set(name, text)

    return edit


def with_unknown_ranks(*numbers: int) -> Callable[[Element], None]:
    """An edit that declares nothing of the shapes of some Parameters."""

    def edit(root: Element) -> None:
        parameters = [layer for layer in root.iter("layer") if layer.get("type") == "Parameter"]
        for number in numbers:
            data, port = parameters[number].find("data"), parameters[number].find("output/port")
            assert data is not None
            assert port is not None
            data.set("shape", "...")
            for size in port.findall("dim"):
                port.remove(size)

    return edit


def without_input(type: str, number: int) -> Callable[[Element], None]:
    """An edit that takes an input away from the layer of a type."""

    def edit(root: Element) -> None:
        (layer,) = (element for element in root.iter("layer") if element.get("type") == type)
        ports, edges = layer.find("input"), root.find("edges")
        assert ports is not None
        assert edges is not None
        ports.remove(next(port for port in ports if port.get("id") == str(number)))
        end = layer.get("id"), str(number)
        edges.remove(next(edge for edge in edges if (edge.get("to-layer"), edge.get("to-port")) == end))

    return edit


def without_conversions(root: Element) -> None:
    """An edit that connects what reads a Convert with what it reads."""
    layers, edges = root.find("layers"), root.find("edges")
    assert layers is not None
    assert edges is not None
    for layer in [layer for layer in layers if layer.get("type") == "Convert"]:
        source = next(edge for edge in edges if edge.get("to-layer") == layer.get("id"))
        for edge in edges:
            if edge.get("from-layer") == layer.get("id"):
                edge.set("from-layer", source.attrib["from-layer"])
                edge.set("from-port", source.attrib["from-port"])
        edges.remove(source)
        layers.remove(layer)


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
    results = [opset1.result(output) for output in outputs if not isinstance(output, ov.Node)]
    sinks = [output for output in outputs if isinstance(output, ov.Node)]
    return ov.Model(results, sinks, parameters, "model"), arrays


def ov_type(array: Any) -> ov.Type:
    return getattr(ov.Type, element_type(array.dtype))


def constant(array: Any) -> Any:
    """A constant of the array's element type; types that OpenVINO's Python binding does not take go as raw bytes."""
    name = element_type(array.dtype)
    if not array.size:
        return ov.op.Constant(getattr(ov.Type, name), ov.Shape(list(array.shape)), [])
    if name in ("bf16", "f8e4m3", "f8e5m2", "f8e8m0"):
        tensor = ov.Tensor(getattr(ov.Type, name), list(array.shape))
        tensor.data.view(np.uint8 if array.itemsize == 1 else np.uint16)[...] = array.view(f"u{array.itemsize}")
        return ov.op.Constant(tensor)
    return opset1.constant(array)


@cache
def engines() -> list[str]:
    """The engines that there are here."""
    return [name for name in ENGINES if name not in ("auto", "onednn") or (name == "onednn" and load_onednn(1))]


def ours(model: Any, arrays: Sequence[Any], later: Sequence[Any] = (), engine: str = "auto") -> list[Any]:
    """What irrun computes in all runs."""
    executor = irrun.GraphExecutor(model, engine=engine)
    outputs: list[Any] = []
    for inputs in (arrays, *later):
        if inputs is RESET:
            executor.reset_state()
        else:
            outputs += executor.run([np.asarray(array) for array in inputs]).values()
    return outputs


def reference(path: Path, arrays: Sequence[Any], later: Sequence[Any] = ()) -> list[Any]:
    """What OpenVINO's CPU plugin computes in all runs, at full precision."""
    core = ov.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    outputs: list[Any] = []
    for inputs in (arrays, *later):
        if inputs is RESET:
            request.reset_state()
        else:
            # `infer` loses errors of layers where OpenVINO has one thread
            request.start_async(dict(enumerate(tensor_of(np.asarray(array)) for array in inputs)))
            request.wait()
            outputs += [array_of(request.get_output_tensor(i)) for i in range(len(compiled.outputs))]
    return outputs


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


WITHOUT_CASES = ("test_constraints", "test_coverage", "test_deviations", "test_mixed_types")
"""Modules about cases of others."""


def all_cases() -> list[Case]:
    """Every case of the suite."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))
    modules = [import_module(f"conformance.{name}") for name in names if name not in WITHOUT_CASES]
    return [case for module in modules for case in module.CASES]


def compare(got: Sequence[Any], want: Sequence[Any], case: Case, what: str = "irrun") -> None:
    assert len(got) == len(want)
    for number, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        where = f"output {number} of {what}"
        assert ours.shape == theirs.shape, where
        assert ours.dtype == theirs.dtype or ours.dtype.kind == theirs.dtype.kind == "U", where
        if ours.dtype.kind in "biuU":
            np.testing.assert_array_equal(ours, theirs, where)
        else:
            a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
            np.testing.assert_allclose(a, b, case.rtol, case.atol, err_msg=where)
