"""Files of dumps: written tensor by tensor, whole or not at all, and read one array at a time, without trust.

An .npz file has an array for each key, and under the name `irrun.jsonl` the index, lines of JSON in an array of bytes,
so that all in it are arrays for numpy. A .safetensors file has the same tensors, in types that it has names for, but no
strings. A .jsonl file is the index alone.
"""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from irrun.diagnostics import InputError, clipped
from irrun.files import open_regular, whole_file
from irrun.run.arrays import member_shape, open_npz, read_member, widened, write_member
from irrun.run.memory import as_text, available
from irrun.spec.dtypes import element_type, numpy_dtype
from irrun.spec.op import Array
from irrun.tools.watch.entries import INDEX, Entry, Index, heading, read_index

_SAFETENSORS = {
    "boolean": "BOOL",
    "bf16": "BF16",
    "f8e4m3": "F8_E4M3",
    "f8e5m2": "F8_E5M2",
    **{type: type.upper() for type in ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64")},
}
"""What element types are called there."""

_TYPES = {name: type for type, name in _SAFETENSORS.items()}

_MAX_HEADER = 100_000_000
"""Bytes of a header of a .safetensors file, as its own library has it."""


class Writer(Protocol):
    """Takes tensors one by one; an array is looked at before `add` returns, and no longer."""

    def add(self, entry: Entry, array: Array | None) -> None: ...


@contextmanager
def writing(path: Path, run: Mapping[str, Any]) -> Iterator[Writer]:
    """A writer for a file that appears, complete, when nothing has gone wrong. Raises OSError.

    The end of its name says which kind it is: .safetensors, .jsonl, or for any other one .npz.
    """
    kind = path.suffix.lower()
    with whole_file(path) as stream, tempfile.TemporaryFile(dir=path.absolute().parent) as spool:
        if kind == ".jsonl":
            yield _Lines(stream, heading(run))
        elif kind == ".safetensors":
            tensors = _Safetensors(stream, spool, heading(run))
            yield tensors
            tensors.finish()
        else:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                arrays = _Npz(archive, heading(run))
                yield arrays
                arrays.finish()


class _Lines:
    def __init__(self, stream: IO[bytes], head: str) -> None:
        self._stream = stream
        self._stream.write(head.encode() + b"\n")

    def add(self, entry: Entry, array: Array | None) -> None:
        self._stream.write(entry.as_json().encode() + b"\n")


class _Npz:
    def __init__(self, archive: zipfile.ZipFile, head: str) -> None:
        self._archive = archive
        self._index = bytearray(head.encode() + b"\n")

    def add(self, entry: Entry, array: Array | None) -> None:
        self._index += entry.as_json().encode() + b"\n"
        if array is not None:
            write_member(self._archive, entry.key, array)

    def finish(self) -> None:
        write_member(self._archive, INDEX, np.frombuffer(self._index, np.uint8))


class _Safetensors:
    """Its header, which comes first, has the places of all arrays: those wait in `spool`."""

    def __init__(self, stream: IO[bytes], spool: IO[bytes], head: str) -> None:
        self._stream, self._spool = stream, spool
        self._index = bytearray(head.encode() + b"\n")
        self._header: dict[str, dict[str, Any]] = {}

    def add(self, entry: Entry, array: Array | None) -> None:
        self._index += entry.as_json().encode() + b"\n"
        if array is not None and array.dtype.kind != "U":
            self._put(entry.key, array)

    def finish(self) -> None:
        self._put(INDEX, np.frombuffer(self._index, np.uint8))
        header = json.dumps(self._header, separators=(",", ":")).encode()
        header += b" " * (-len(header) % 8)
        self._stream.write(struct.pack("<Q", len(header)) + header)
        self._spool.seek(0)
        shutil.copyfileobj(self._spool, self._stream, 1 << 20)

    def _put(self, key: str, array: Array) -> None:
        held = array if element_type(array.dtype) in _SAFETENSORS else widened(array)
        begin = self._spool.tell()
        self._spool.write(np.ascontiguousarray(held).reshape(-1).view(np.uint8).data)
        dtype = _SAFETENSORS[element_type(held.dtype)]
        self._header[key] = {"dtype": dtype, "shape": held.shape, "data_offsets": [begin, self._spool.tell()]}


class Reader(Protocol):
    """Arrays of a file, by key: each is read when it is asked for."""

    index: Index
    keys: list[str]

    def read(self, key: str) -> Array: ...

    def close(self) -> None: ...


def reading(path: Path) -> Reader:
    """A reader of a file, by what is in it; an array may have as many bytes as there is memory. Raises InputError."""
    most = available()
    try:
        file = open_regular(path)
        try:
            start = file.read(9)
            file.seek(0)
            if start[:2] == b"PK":
                return _NpzReader(file, path, most)
            if start[8:] == b"{":
                return _SafetensorsReader(file, path, most)
            if start[:1] == b"{":
                return _LinesReader(file, path, most)
            raise InputError(f"{path} is no dump: expected an .npz, .safetensors or .jsonl file")
        except BaseException:
            file.close()
            raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


class _LinesReader:
    def __init__(self, file: IO[bytes], path: Path, most: int) -> None:
        if (size := path.stat().st_size) > most:
            raise InputError(f"{path} takes {as_text(size)}, more than the limit of {as_text(most)}")
        self.keys: list[str] = []
        self.index = read_index(file.read(size).split(b"\n"), str(path))
        file.close()

    def read(self, key: str) -> Array:
        raise KeyError(key)

    def close(self) -> None: ...


class _NpzReader:
    def __init__(self, file: IO[bytes], path: Path, most: int) -> None:
        self._file, self._path, self._most = file, path, most
        self._archive = open_npz(file, path)
        self._members = {info.filename.removesuffix(".npy"): info for info in self._archive.infolist()}
        index = self._members.pop(INDEX, None)
        self.keys = list(self._members)
        if index is not None:
            self.index = _index(read_member(self._archive, index, path, most), path)
        else:
            headers = {key: member_shape(self._archive, info, path) for key, info in self._members.items()}
            self.index = Index({}, {k: Entry.named(k, *headers[k], number) for number, k in enumerate(headers)})

    def read(self, key: str) -> Array:
        return _typed(read_member(self._archive, self._members[key], self._path, self._most), key, self)

    def close(self) -> None:
        self._archive.close()
        self._file.close()


class _SafetensorsReader:
    def __init__(self, file: IO[bytes], path: Path, most: int) -> None:
        self._file, self._path, self._most = file, path, most
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _MAX_HEADER:
            raise InputError(f"{path} has a header of {length} bytes, more than {_MAX_HEADER}")
        self._begin = 8 + length
        held = path.stat().st_size - self._begin
        try:
            header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            self._places = {str(key): _place(value, held) for key, value in header.items()}
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise InputError(f"{path} is damaged: {clipped(str(error), 300)}") from None
        index = self._places.get(INDEX)
        self.keys = [key for key in self._places if key != INDEX]
        if index is not None:
            self.index = _index(self._raw(INDEX), path)
        else:
            named = ((key, *self._places[key][:2]) for key in self.keys)
            self.index = Index({}, {k: Entry.named(k, type, shape, n) for n, (k, type, shape) in enumerate(named)})

    def read(self, key: str) -> Array:
        return _typed(self._raw(key), key, self)

    def close(self) -> None:
        self._file.close()

    def _raw(self, key: str) -> Array:
        type, shape, begin, end = self._places[key]
        where = f"`{clipped(key, 200)}` of {self._path}"
        if end - begin > self._most:
            raise InputError(f"{where} takes {as_text(end - begin)}, more than the limit of {as_text(self._most)}")
        self._file.seek(self._begin + begin)
        data = bytearray(self._file.read(end - begin))
        if len(data) < end - begin:
            raise InputError(f"{where} is cut short")
        array: Array = np.frombuffer(data, np.uint8).view(numpy_dtype(type)).reshape(shape)
        return array


def _place(value: Any, held: int) -> tuple[str, tuple[int, ...], int, int]:
    """The element type, shape, first byte and end of an array. Raises ValueError."""
    fields = value if isinstance(value, dict) else {}
    type, shape, ends = _TYPES.get(str(fields.get("dtype"))), fields.get("shape"), fields.get("data_offsets")
    if type is None:
        raise ValueError(f"its header has the type {fields.get('dtype')!r}, which is not known")
    if not isinstance(shape, list) or not isinstance(ends, list) or len(ends) != 2 or len(shape) > 64:
        raise ValueError("its header has no good shape or place of an array")
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in (*shape, *ends)):
        raise ValueError("its header has no good shape or place of an array")
    if ends[0] > ends[1] or ends[1] > held or prod(shape) * numpy_dtype(type).itemsize != ends[1] - ends[0]:
        raise ValueError("its header has an array that is not where it says, or not of its shape")
    return type, tuple(shape), ends[0], ends[1]


def _index(array: Array, path: Path) -> Index:
    if array.dtype != np.uint8 or array.ndim != 1:
        raise InputError(f"`{INDEX}` of {path} is no array of bytes")
    return read_index(array.tobytes().split(b"\n"), f"`{INDEX}` of {path}")


def _typed(array: Array, key: str, reader: Reader) -> Array:
    """The array in the type that its entry has. Raises InputError where it is another one."""
    entry = reader.index.entries.get(key)
    if entry is None:
        raise InputError(f"`{clipped(key, 200)}` is an array that the index of its file does not have")
    if array.shape != entry.shape:
        raise InputError(f"`{clipped(key, 200)}` is of shape {array.shape}, and its file's index says {entry.shape}")
    if entry.type == "string" or array.dtype.kind == "U":
        return array
    return array.astype(numpy_dtype(entry.type), copy=False)
