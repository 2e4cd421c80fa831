"""Arrays that go from one process to another in files: written as bytes, read when somebody looks at them.

A file is an .npy of the bytes that a tensor has in memory, a .json where they are strings; of what type and shape it
is says the stub that goes through the pipe. Nothing is pickled.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict
from weakref import finalize

import numpy as np

from irrun.files import temporary
from irrun.ir.weights import unpacked
from irrun.spec.dtypes import ELEMENT_TYPES, element_type, numpy_dtype
from irrun.spec.op import Array


class Stub(TypedDict):
    """An array that lies in a file: its element type and shape."""

    type: str
    shape: list[int]
    file: str


class Scratch:
    """A private folder, which is removed with the object; maps of files in it stay valid. Raises Unwritten."""

    def __init__(self, within: Path | None = None) -> None:
        with temporary():
            self.path = Path(tempfile.mkdtemp(prefix="irrun-", dir=within))
        self._remove = finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)

    def close(self) -> None:
        self._remove()


class Writer:
    """Writes arrays into a folder, under numbers that `prefix` comes before."""

    def __init__(self, folder: str | Path, prefix: str) -> None:
        self._folder, self._prefix, self._count = Path(folder), prefix, 0

    def write(self, type: str, shape: Sequence[int], raw: Array | list[str]) -> Stub:
        """Write the bytes of a tensor, or its strings in order. Raises Unwritten."""
        path = self._folder / f"{self._prefix}{self._count}{'.json' if isinstance(raw, list) else '.npy'}"
        self._count += 1
        with temporary():
            if isinstance(raw, list):
                path.write_text(json.dumps(raw))
            else:
                with path.open("wb") as stream:
                    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(raw))
                    stream.write(raw.data)  # numpy does not say why it cannot write
        return {"type": type, "shape": list(shape), "file": str(path)}

    def array(self, array: Array, type: str | None = None) -> Stub:
        """Write an array whose elements are `type`, which codes of types that numpy lacks do not show."""
        type = type or element_type(array.dtype)
        return self.write(type, array.shape, raw_of(array, type))


def raw_of(array: Array, type: str) -> Array | list[str]:
    """The bytes [count] that an array has as a tensor, or its strings."""
    if type == "string":
        return [str(text) for text in array.flat]
    flat = np.ascontiguousarray(array).reshape(-1)
    bits = ELEMENT_TYPES[type].bits
    if bits >= 8 or not flat.size:
        return flat.view(np.uint8)
    if type in ("u3", "u6"):
        raise ValueError(f"no input of a device is of type {type}")
    held = flat if type == "f4e2m1" else flat.astype(np.int8)
    codes: Array = held.view(np.uint8) & (1 << bits) - 1
    if type == "u1":
        return np.packbits(codes)
    each = 8 // bits
    codes = np.concatenate([codes, np.zeros(-len(codes) % each, np.uint8)]).reshape(-1, each)
    packed: Array = np.bitwise_or.reduce(codes << np.arange(0, 8, bits, dtype=np.uint8), axis=1, dtype=np.uint8)
    return packed


def raw_from(stub: Stub) -> Array | list[str]:
    """The bytes of a tensor, memory-mapped, or its strings."""
    path = Path(stub["file"])
    if path.suffix == ".json":
        texts: list[str] = json.loads(path.read_text())
        return texts
    empty = 0 in stub["shape"]
    raw: Array = np.load(path, mmap_mode=None if empty else "r", allow_pickle=False)
    return raw


def array_from(stub: Stub) -> Array:
    """The array of a stub, read-only. Raises OSError or ValueError where its file is gone or not what it was."""
    type, shape, raw = stub["type"], tuple(stub["shape"]), raw_from(stub)
    if isinstance(raw, list):
        array: Array = np.array(raw, np.str_).reshape(shape)
    elif 0 < ELEMENT_TYPES[type].bits < 8:
        array = unpacked(type, np.asarray(raw), int(np.prod(shape))).reshape(shape)
    else:
        array = np.asarray(raw).view(numpy_dtype(type)).reshape(shape)
    if array.flags.writeable:
        array.flags.writeable = False
    return array


class Stored(Mapping[str, Array]):
    """Arrays by key that lie in a folder, which is there as long as this is. They are read when they are asked for."""

    def __init__(self, stubs: Mapping[str, Stub], folder: Scratch | None) -> None:
        self._stubs, self._folder = dict(stubs), folder

    def __getitem__(self, key: str) -> Array:
        return array_from(self._stubs[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._stubs)

    def __len__(self) -> int:
        return len(self._stubs)

    def __contains__(self, key: Any) -> bool:
        return key in self._stubs
