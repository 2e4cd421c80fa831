"""Converts the backend tests that the onnx package carries to OpenVINO IR, and infers them with OpenVINO.

    python tests/onnx/convert.py OUT_DIR [NAME...]

writes for each case OUT_DIR/NAME/case.json, whose `converted` is false where OpenVINO cannot read the model. Of the
others it writes NAME.xml and NAME.bin and for each data set N of the case the arrays inputs.npz and expected.npz, and
openvino.npz, what OpenVINO's CPU plugin infers in f32, in the folder OUT_DIR/NAME/N. Where OpenVINO does not infer, or
crashes, `failure` in case.json says so. Cases that the folder holds already are left as they are.

Inputs are those that OpenVINO keeps, in its order. An array is keyed by its position and its numpy type, such as
"0 bfloat16"; types that .npz cannot hold are widened.

Cases whose inputs or outputs are not all tensors are out. It needs onnx and openvino; it forks.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader, runner

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
LIGHT = Path(loader.DATA_DIR) / "light"
BATCH = 50
"""Cases that one process runs."""

SECONDS = 300
"""What a process may take before it counts as crashed."""

TYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e8m0": ml_dtypes.float8_e8m0fnu,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
    "i4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
    "u2": ml_dtypes.uint2,
}
"""numpy's names for the element types that it does not have itself."""

PLACES = {
    "i4": np.array([0, 4], np.uint8),
    "u4": np.array([0, 4], np.uint8),
    "f4e2m1": np.array([0, 4], np.uint8),
    "u2": np.array([0, 2, 4, 6], np.uint8),
}
"""The first bit of each element in a byte."""

Case = Any  # onnx.backend.test.case.test_case.TestCase
Arrays = list[np.ndarray]


# Cases, in one form: where onnx has a folder or a model without data, they are read and made.


def cases() -> dict[str, Case]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = [case for kind in KINDS for case in loader.load_model_tests(kind=kind)]
    return {case.name: case for case in found}


def model_of(case: Case) -> onnx.ModelProto:
    if case.model is not None:
        return case.model
    return onnx.load(LIGHT / Path(case.url).name if case.url else Path(case.model_dir) / "model.onnx")


def data_of(case: Case, model: onnx.ModelProto) -> Iterator[tuple[Arrays, Arrays]]:
    """Inputs and expected outputs of each data set. Raises TypeError where one of them is no tensor."""
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield list(map(array_of, inputs)), list(map(array_of, outputs))
    elif case.url:
        path = LIGHT / Path(case.url).name
        values = {initializer.name for initializer in model.graph.initializer}
        inputs = [runner.Runner.generate_dummy_data(x) for x in model.graph.input if x.name not in values]
        yield inputs, [read(path.with_name(f"{path.stem}_output_0.pb"), model.graph.output[0])]
    else:
        for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
            yield (
                [read(path, port) for path, port in numbered(folder, "input", model.graph.input)],
                [read(path, port) for path, port in numbered(folder, "output", model.graph.output)],
            )


def numbered(folder: Path, word: str, ports: Sequence[Any]) -> Iterator[tuple[Path, Any]]:
    for number in range(len(list(folder.glob(f"{word}_*.pb")))):
        yield folder / f"{word}_{number}.pb", ports[number]


def read(path: Path, port: onnx.ValueInfoProto) -> np.ndarray:
    if not port.type.HasField("tensor_type"):
        raise TypeError(f"{port.name} is no tensor")
    return array_of(onnx.load_tensor(path))


def array_of(value: Any) -> np.ndarray:
    array = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
    if not isinstance(array, np.ndarray | np.generic):
        raise TypeError(f"a {type(value).__name__} is no tensor")
    array = np.asarray(array)
    if array.dtype.kind != "O":
        return array
    texts = [item.decode() if isinstance(item, bytes) else item for item in array.ravel()]
    return np.array(texts, np.str_).reshape(array.shape)


def save(path: Path, arrays: Sequence[np.ndarray]) -> None:
    np.savez(path, **{f"{n} {type_name(array)}": held(array) for n, array in enumerate(arrays)})


def type_name(array: np.ndarray) -> str:
    return "str" if array.dtype.kind == "U" else array.dtype.name


def held(array: np.ndarray) -> np.ndarray:
    name = array.dtype.name
    if name not in {np.dtype(type).name for type in TYPES.values()}:
        return array
    return array.astype(np.uint8 if name.startswith("u") else np.int8 if name.startswith("i") else np.float32)


# OpenVINO, which only the children import.


def run(batch: Sequence[Case], out: Path) -> None:
    for case in batch:
        folder = out / case.name
        folder.mkdir(exist_ok=True)
        verdict = {"kind": case.kind, "rtol": case.rtol, "atol": case.atol, "converted": False}
        try:
            model = model_of(case)
            convert(model, list(data_of(case, model)), folder)
            verdict["converted"] = True
            infer(folder)
        except Exception as error:  # whatever a converter raises
            verdict["failure"] = f"{type(error).__name__}: {error}"
        write(folder, verdict)


def convert(model: onnx.ModelProto, data: Sequence[tuple[Arrays, Arrays]], folder: Path) -> None:
    import openvino as ov

    path = folder / "model.onnx"
    onnx.save(model, path)
    converted = ov.Core().read_model(path)
    values = {initializer.name for initializer in model.graph.initializer}
    names = [port.name for port in model.graph.input if port.name not in values]
    found = [port.node.friendly_name for port in converted.inputs]
    # an input that is a result as well goes by the result's name
    kept = [names.index(name) if name in names else n for n, name in enumerate(found)]
    for number, (inputs, expected) in enumerate(data):
        (folder / str(number)).mkdir(exist_ok=True)
        save(folder / str(number) / "inputs.npz", [inputs[n] for n in kept])
        save(folder / str(number) / "expected.npz", expected)
    ov.save_model(converted, folder / f"{folder.name}.xml", compress_to_fp16=False)
    path.unlink()


def infer(folder: Path) -> None:
    import openvino as ov

    compiled = ov.Core().compile_model(folder / f"{folder.name}.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for path in sorted(folder.glob("*/inputs.npz")):
        request = compiled.create_infer_request()
        with np.load(path) as inputs:
            request.infer({n: tensor_of(key.split()[1], array) for n, (key, array) in enumerate(inputs.items())})
        tensors = [request.get_output_tensor(n) for n in range(len(compiled.outputs))]
        save(path.with_name("openvino.npz"), [array_from(tensor) for tensor in tensors])


def tensor_of(name: str, array: np.ndarray) -> Any:
    import openvino as ov

    for element, dtype in TYPES.items():
        if np.dtype(dtype).name == name:
            tensor = ov.Tensor(getattr(ov.Type, element), list(array.shape))
            tensor.data.reshape(-1).view(np.uint8)[...] = packed(array.astype(dtype), element)
            return tensor
    return ov.Tensor(np.array(array, order="C"))  # a scalar keeps its rank only through a copy


def packed(array: np.ndarray, element: str) -> np.ndarray:
    """The bytes of an array, the first of several elements per byte in the low bits."""
    codes = array.reshape(-1).view(np.uint8)
    if element not in PLACES:
        return codes
    places = PLACES[element]
    codes = np.pad(codes, (0, -len(codes) % len(places))).reshape(-1, len(places))
    return np.bitwise_or.reduce((codes & 255 >> places[-1]) << places, axis=1)


def array_from(tensor: Any) -> np.ndarray:
    element, shape = tensor.element_type.get_type_name(), list(tensor.shape)
    if element == "string":
        return np.asarray(tensor.str_data, np.str_).reshape(shape)
    if element not in TYPES:
        return tensor.data.copy().reshape(shape)
    codes = tensor.data.reshape(-1).view(np.uint8)
    if element in PLACES:
        places = PLACES[element]
        codes = (codes[:, np.newaxis] >> places & 255 >> places[-1]).reshape(-1)[: tensor.size]
    array = codes.view(TYPES[element]) if element != "i4" else ((codes ^ 8).view(np.int8) - 8).astype(TYPES[element])
    return array.reshape(shape).copy()


# The parent: a crash costs the case in which it happens.


def write(folder: Path, verdict: dict[str, Any]) -> None:
    (folder / "case.json").write_text(json.dumps(verdict, indent=1))


def convert_all(todo: Sequence[Case], out: Path) -> None:
    fork = multiprocessing.get_context("fork")
    while todo:
        process = fork.Process(target=run, args=(todo, out))
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
        todo = [case for case in todo if not (out / case.name / "case.json").exists()]
        if process.exitcode and todo:
            crashed, *todo = todo
            folder = out / crashed.name
            converted = (folder / f"{crashed.name}.xml").exists() and not (folder / "model.onnx").exists()
            verdict = {"kind": crashed.kind, "rtol": crashed.rtol, "atol": crashed.atol, "converted": converted}
            write(folder, verdict | {"failure": f"OpenVINO crashed or hung (exit code {process.exitcode})"})


def main() -> None:
    parser = argparse.ArgumentParser(description="Convert ONNX's backend tests to OpenVINO IR.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of cases, such as test_abs; all by default")
    arguments = parser.parse_args()
    every = cases()
    if unknown := set(arguments.names) - set(every):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    wanted = [every[name] for name in arguments.names or every]
    todo = [case for case in wanted if not (arguments.out / case.name / "case.json").exists()]
    for first in range(0, len(todo), BATCH):
        print(f"{first} of {len(todo)}", flush=True)
        convert_all(todo[first : first + BATCH], arguments.out)


if __name__ == "__main__":
    main()
