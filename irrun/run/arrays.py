"""Arrays in files: .npz and .npy read without trust, .npz written whole or not at all."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from irrun.diagnostics import InputError
from irrun.files import whole_file
from irrun.spec.dtypes import element_type
from irrun.spec.op import Array

INDEX = "irrun.json"
"""The member of an .npz file that says which element type each array has in the model."""

_WIDER = {
    **dict.fromkeys(("bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1"), np.float32),
    "i4": np.int8,
    "u4": np.uint8,
    "u2": np.uint8,
}
"""What .npy has no name for is held in the next wider type, which loses nothing."""


def read_npz(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file by name. Raises InputError for a file that is none, or has more than arrays in it."""
    arrays = {}
    with _failing_as_input_error(path), zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member == INDEX:
                continue
            if not member.endswith(".npy"):
                raise InputError(f"{path} has a member `{member}`, which is no array")
            with archive.open(member) as stream:
                arrays[member.removesuffix(".npy")] = _read(stream, f"member `{member}` of {path}")
    return arrays


def read_npy(path: Path) -> Array:
    """The array in an .npy file. Raises InputError for a file that is none."""
    with _failing_as_input_error(path), path.open("rb") as stream:
        return _read(stream, str(path))


def _read(stream: Any, where: str) -> Array:
    try:
        return np.lib.format.read_array(stream, allow_pickle=False)
    except ValueError as error:
        pickled = "Object arrays" in str(error)
        reason = "it holds Python objects, which irrun never unpickles" if pickled else str(error)
        raise InputError(f"{where} cannot be read as an array: {reason}") from None


@contextmanager
def _failing_as_input_error(path: Path) -> Iterator[None]:
    try:
        yield
    except zipfile.BadZipFile:
        raise InputError(f"{path} is not an .npz file: save one with numpy.savez(path, name=array)") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name, any name; the file appears when it is complete. Raises OSError."""
    with whole_file(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        index = []
        for name, array in arrays.items():
            type = element_type(array.dtype)
            held = array.astype(_WIDER[type]) if type in _WIDER else array
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, held, allow_pickle=False)
            index.append({"name": name, "type": type, "stored_as": element_type(held.dtype), "shape": array.shape})
        archive.writestr(INDEX, json.dumps({"arrays": index}, indent=1))
