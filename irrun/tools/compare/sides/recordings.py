"""Arrays that other tools have written: .npz, .safetensors, Polygraphy's JSON, folders of .npy or ONNX test data.

What comes out is one mapping of names to arrays for each step. Nothing is unpickled, and nothing is believed of a file
that its size does not bear out.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from irrun.diagnostics import EngineError, InputError, clipped
from irrun.files import open_regular
from irrun.records import dataclass
from irrun.run.arrays import parse_npy, read_npy
from irrun.run.memory import as_text, available
from irrun.spec.dtypes import element_type
from irrun.spec.op import Array
from irrun.tools.watch.dump import Dump

Recorded = Sequence[Mapping[str, Array]]
"""What was recorded of each step, by the names that it has there; an array is read when it is asked for."""

_STEP = re.compile(r"(?:step|turn|iteration|test_data_set)[_-]?(\d+)/(.+)", re.DOTALL)
"""A name with the step before it, as in `step2/conv1:0` and tract's `turn_2/conv1`."""

MAX_DIGITS = 9
"""Of the number of a step."""

_LATER = re.compile(r"(.+)@step(\d+)", re.DOTALL)
"""A key of a dump of irrun, of a step behind the first one."""


def read_recorded(path: Path) -> Recorded:
    """The arrays of a file or a folder, step by step.

    Raises InputError where it is none of these or damaged, EngineError where a package is missing to read it.
    """
    if path.is_dir():
        return _folder(path)
    suffix = path.suffix.lower()
    if suffix in (".npz", ".safetensors"):
        return by_step(Dump.open(path))
    if suffix == ".json":
        return read_polygraphy(path)
    if suffix == ".npy":
        return [{path.stem: read_npy(path)}]
    if suffix == ".pb":
        return [{path.stem: _tensor_proto(path)}]
    raise InputError(f"{path} is none of .npz, .npy, .safetensors, .json, .pb, .xml, .onnx, and no folder")


@dataclass(frozen=True, slots=True)
class Renamed(Mapping[str, Array]):
    """Arrays of a `source`, by names that stand for those that they have there."""

    source: Mapping[str, Array]
    names: Mapping[str, str]

    def __getitem__(self, name: str) -> Array:
        return self.source[self.names[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def by_step(arrays: Mapping[str, Array]) -> Recorded:
    """Arrays by name and step, where the names begin or end with it; those without are of all steps, such as an input
    that stays, but of the first one where the later ones are said behind names.

    Steps may be counted from any number on.
    """
    steps: dict[int, dict[str, str]] = {}
    plain: dict[str, str] = {}
    counted = False
    for name in arrays:
        before, behind = _STEP.fullmatch(name), _LATER.fullmatch(name)
        if before is not None and len(before[1]) <= MAX_DIGITS:
            steps.setdefault(int(before[1]), {})[before[2]] = name
        elif behind is not None and len(behind[2]) <= MAX_DIGITS:
            steps.setdefault(int(behind[2]), {})[behind[1]] = name
            counted = True
        else:
            plain[name] = name
    if counted:
        steps[1] = {**plain, **steps.get(1, {})}
        plain = {}
    return [Renamed(arrays, {**plain, **steps[step]}) for step in sorted(steps)] or [Renamed(arrays, plain)]


def read_polygraphy(path: Path) -> Recorded:
    """The outputs that Polygraphy's `--save-outputs` has written, iteration by iteration, of its first runner.

    An array is the base64 of an .npy file, under `values.array`. Raises InputError.
    """
    try:
        with open_regular(path) as stream:
            size = path.stat().st_size
            if size > available():
                raise InputError(f"{path} takes {as_text(size)}, more than there is memory")
            document = json.loads(stream.read())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is no JSON") from None
    iterations = _iterations(document)
    if not iterations:
        raise InputError(f"{path} has no outputs as Polygraphy's --save-outputs writes them")
    return [
        {str(name): _base64(value, f"`{clipped(str(name), 200)}` of {path}") for name, value in iteration.items()}
        for iteration in iterations
    ]


def _iterations(document: Any) -> list[dict[str, Any]]:
    """What is named in each iteration: of results the first runner's, else a list of mappings, as --save-inputs has."""
    if isinstance(document, dict):
        runners = document.get("lst")
        first = runners[0] if isinstance(runners, list) and runners else None
        document = first[1] if isinstance(first, list) and len(first) == 2 else None
    found = []
    for iteration in document if isinstance(document, list) else []:
        named = iteration.get("outputs", iteration) if isinstance(iteration, dict) else None
        if not isinstance(named, dict) or not named:
            return []
        found.append(named)
    return found


def _base64(value: Any, where: str) -> Array:
    """The array of an object of the document."""
    for key in ("values", "array"):
        if isinstance(value, dict) and key in value:
            value = value[key]
    if not isinstance(value, str):
        raise InputError(f"{where} is no array as Polygraphy writes them")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(f"{where} is no base64") from None
    return parse_npy(data, where)


def _folder(path: Path) -> Recorded:
    """The arrays of a folder, and of its folders `step0`, `test_data_set_0` and so on."""
    arrays: dict[str, Array] = {}
    for file in sorted(path.glob("*.safetensors")):
        arrays.update(Dump.open(file))
    for file in _files(path):
        name = file.relative_to(path).with_suffix("").as_posix()
        if file.suffix == ".npy":
            arrays[name] = read_npy(file)
        elif not file.stem.startswith("input_"):
            arrays[name] = _tensor_proto(file)
    if not arrays:
        raise InputError(f"{path} has no .npy, .pb or .safetensors files in it")
    return by_step(arrays)


def _files(path: Path) -> Iterator[Path]:
    for file in sorted(path.rglob("*")):
        if file.suffix in (".npy", ".pb") and file.is_file():
            yield file


def _tensor_proto(path: Path) -> Array:
    """The tensor of a .pb file of ONNX test data. Raises InputError, EngineError where onnx is not installed."""
    if find_spec("onnx") is None:
        raise EngineError(f'{path} is an ONNX tensor, which the onnx package reads: pip install "irrun[onnx]"')
    import onnx
    import onnx.numpy_helper

    tensor = onnx.TensorProto()
    try:
        with open_regular(path) as stream:
            tensor.ParseFromString(stream.read())
        array: Array = np.asarray(onnx.numpy_helper.to_array(tensor))
        if array.dtype.kind == "O":
            array = array.astype(np.str_)
        element_type(array.dtype)
    except Exception as error:  # whatever protobuf and onnx raise
        raise InputError(f"{path} is no ONNX tensor: {clipped(str(error), 200)}") from None
    return array
