"""Arrays in files: .npz and .npy read without trust, .npz written whole or not at all.

Nothing is allocated because a file says so: headers are read by hand, sizes are compared with what is there, and data
are read as they come, up to a limit. Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import io
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from irrun.diagnostics import InputError, clipped
from irrun.files import open_regular, whole_file
from irrun.records import NamedTuple
from irrun.run.memory import as_text, available
from irrun.spec.dtypes import WIDER, element_type, numpy_dtype
from irrun.spec.op import Array

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000
"""Bytes of a header; it names a type and a shape."""

_AS_NUMPY_WRITES = re.compile(
    r"\{'descr': '([<>|][a-zA-Z]\d+)', 'fortran_order': (True|False), 'shape': \((\d+,|\d+(?:, \d+)+|)\), \}\s*"
)
"""A header as nearly all are: to read any needs a module that takes longer to load than most arrays take to read."""

_MAX_DIMENSIONS = 64
_LONGEST_NAME = 60_000
"""Bytes of the name of an array that .npz can hold."""

_CHUNK = 1 << 20
_CACHED = 1 << 16
"""Bytes that are written at a time: few enough to be in a cache from when their checksum is taken until they go."""

_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error)
"""What zipfile raises for files that are not what they say."""


class _Header(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    length: int


def read_npz(path: Path, most: int | None = None) -> dict[str, Array]:
    """The arrays of an .npz file by name, of `most` bytes together: the physical memory unless given.

    Raises InputError for a file that is none, or has more than arrays in it.
    """
    most = available() if most is None else most
    with _failing_as_input_error(path), open_regular(path) as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            raise InputError(f"{path} is an .npy file: give it with --input NAME={path}")
        file.seek(0)
        with open_npz(file, path) as archive:
            return _members(archive, path, most)


def read_npy(path: Path, most: int | None = None) -> Array:
    """The array in an .npy file, of `most` bytes. Raises InputError for a file that is none."""
    with _failing_as_input_error(path), open_regular(path) as file:
        size = file.seek(0, 2)
        file.seek(0)
        if file.read(4) == b"PK\x03\x04":
            raise InputError(f"{path} is an .npz file: give it with --inputs {path}")
        file.seek(0)
        return _read(file, size, str(path), available() if most is None else most)


def parse_npy(content: bytes, where: str) -> Array:
    """The array in the bytes of an .npy file, which messages call `where`. Raises InputError for what is none."""
    return _read(io.BytesIO(content), len(content), where, len(content))


def open_npz(file: IO[bytes], path: Path) -> zipfile.ZipFile:
    """An .npz file that has been opened, for `read_member`. Raises InputError for a file that is none."""
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGED:
        raise InputError(
            f"{path} is not an .npz file, or not a whole one: save one with numpy.savez(path, name=array)"
        ) from None
    for name, count in Counter(info.filename for info in archive.infolist()).items():
        if count > 1:
            raise InputError(f"{path} has {count} members `{clipped(name, 200)}`")
    return archive


def _members(archive: zipfile.ZipFile, path: Path, most: int) -> dict[str, Array]:
    infos = archive.infolist()
    total = sum(info.file_size for info in infos)
    if total > most:
        raise InputError(
            f"the arrays in {path} take {as_text(total)}, more than the limit of {as_text(most)} (--max-memory)"
        )
    return {info.filename.removesuffix(".npy"): read_member(archive, info, path, most) for info in infos}


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, most: int) -> Array:
    """One array of an .npz file, of `most` bytes. Raises InputError, and OSError."""
    with _member(archive, info, path) as (stream, where):
        return _read(stream, info.file_size, where, most)


def member_shape(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> tuple[str, tuple[int, ...]]:
    """The element type that an array of an .npz file was written as, and its shape. Raises InputError, and OSError."""
    with _member(archive, info, path) as (stream, where):
        header = _header(stream, where)
    type = info.comment.decode("ascii", "replace")
    try:
        return type if type in WIDER else element_type(header.dtype), header.shape
    except TypeError as error:
        raise InputError(f"{where}: {error}") from None


@contextmanager
def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Iterator[tuple[IO[bytes], str]]:
    """A member as a stream, and what it is called. Raises InputError where it is no array of an .npz file."""
    name = info.filename
    where = f"member `{clipped(name, 200)}` of {path}"
    if not name.endswith(".npy"):
        raise InputError(f"{path} has a member `{clipped(name, 200)}`, which is no array")
    if info.flag_bits & 1:
        raise InputError(f"{where} is encrypted")
    if info.compress_type not in _METHODS:
        raise InputError(f"{where} is compressed in a way that numpy does not use: save it with numpy.savez")
    try:
        with archive.open(info) as stream:
            yield stream, where
    except InputError:
        raise
    except _DAMAGED as error:
        raise InputError(f"{where} is damaged: {error or type(error).__name__}") from None


def _read(stream: IO[bytes], size: int, where: str, most: int) -> Array:
    """The array in `size` bytes of .npy format, of `most` bytes at most."""
    header = _header(stream, where)
    dtype, shape = header.dtype, header.shape
    count = math.prod(shape)
    wanted, held = count * dtype.itemsize, size - header.length
    if wanted > held:
        raise InputError(f"{where} is cut short: its header says {wanted} bytes of data, but {max(held, 0)} follow")
    if wanted < held:
        raise InputError(f"{where} goes on after its array: its header says {wanted} bytes, but {held} follow")
    if wanted > most:
        raise InputError(f"{where} takes {as_text(wanted)}, more than the limit of {as_text(most)} (--max-memory)")
    if count and not dtype.itemsize:
        raise InputError(f"{where} has elements of no bytes")
    data = bytearray()
    while len(data) < wanted:
        part = stream.read(min(_CHUNK, wanted - len(data)))
        if not part:
            raise InputError(f"{where} is cut short: {wanted - len(data)} of its {wanted} bytes are missing")
        data += part
    stream.read(1)  # at the end of a member its checksum is compared
    try:
        array: Array = np.frombuffer(data, dtype) if count else np.empty(count, dtype)
        return array.reshape(shape, order="F" if header.fortran_order else "C")
    except (ValueError, OverflowError) as error:
        raise InputError(f"{where} cannot be read as an array: {error}") from None


def _header(stream: IO[bytes], where: str) -> _Header:
    """What an .npy file says of its array. Raises InputError."""
    start = stream.read(8)
    if start[:6] != _MAGIC or len(start) < 8:
        raise InputError(f"{where} is no array in .npy format")
    major = start[6]
    if major not in (1, 2, 3):
        raise InputError(f"{where} is in version {major} of the .npy format, which is not known")
    wide = 2 if major == 1 else 4
    length = int.from_bytes(stream.read(wide), "little")
    if length > _MAX_HEADER:
        raise InputError(f"{where} has a header of {length} bytes, more than {_MAX_HEADER}")
    text = stream.read(length)
    try:
        fields = _fields(text.decode("utf-8" if major == 3 else "latin-1").strip())
        if len(text) < length or not isinstance(fields, dict) or fields.keys() != {"descr", "fortran_order", "shape"}:
            raise ValueError
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise InputError(f"{where} has a header that is no description of an array") from None
    shape, fortran_order = fields["shape"], fields["fortran_order"]
    if not isinstance(shape, tuple) or not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise InputError(f"{where} has the shape {clipped(repr(shape), 200)}, which is none")
    if len(shape) > _MAX_DIMENSIONS:
        raise InputError(f"{where} has {len(shape)} dimensions, more than {_MAX_DIMENSIONS}")
    return _Header(_dtype(fields["descr"], where), shape, bool(fortran_order), 8 + wide + length)


def _fields(text: str) -> Any:
    """What a header says, by name. Raises what `ast.literal_eval` does."""
    usual = _AS_NUMPY_WRITES.fullmatch(text)
    if usual and not re.search(r"\b0\d", usual[3]):
        sizes = tuple(int(size) for size in usual[3].split(",") if size)
        return {"descr": usual[1], "fortran_order": usual[2] == "True", "shape": sizes}
    import ast

    return ast.literal_eval(text)


def _dtype(descr: Any, where: str) -> np.dtype[Any]:
    if not isinstance(descr, str):
        raise InputError(f"{where} is an array of records, which the IR has no element type for")
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, SyntaxError, OverflowError):
        raise InputError(f"{where} has the type {clipped(descr, 200)!r}, which numpy does not know") from None
    if dtype.hasobject:
        raise InputError(f"{where} cannot be read as an array: it holds Python objects, which irrun never unpickles")
    if dtype.names or dtype.subdtype:
        raise InputError(f"{where} is an array of records, which the IR has no element type for")
    if dtype.kind == "V":
        how = "save bf16, f8 and f4 as float32, i4 as int8"
        raise InputError(f"{where} holds elements of {dtype.itemsize} bytes without a type: {how}")
    return dtype


@contextmanager
def _failing_as_input_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise InputError(f"{path} takes more memory than there is") from None


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name, any name; the file appears when it is complete. Raises OSError."""
    with whole_file(path) as stream:
        dump_npz(stream, arrays)


def dump_npz(stream: IO[bytes], arrays: Mapping[str, Array]) -> None:
    """Write an .npz file of arrays by name to a stream that can be sought in. Raises OSError.

    The comment of a member is the element type that its array has in the model, which numpy does not look at.
    """
    for name in arrays:
        if len(name.encode()) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, f"the name of an output has {len(name):,} characters")
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            write_member(archive, name, array)


def write_member(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    """Add an array to an .npz file that is open for writing, as `dump_npz` does. Raises OSError."""
    info = zipfile.ZipInfo(f"{name}.npy")  # of no time, so that equal arrays make equal files
    info.comment = element_type(array.dtype).encode()
    with archive.open(info, "w", force_zip64=True) as member:
        _write(member, widened(array))


def _write(stream: IO[bytes], array: Array) -> None:
    """Write an array as .npy, without a copy of it where it lies in C order."""
    if not array.flags.c_contiguous or not array.nbytes:
        np.lib.format.write_array(stream, array, allow_pickle=False)
        return
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    content = array.reshape(-1).view(np.uint8).data
    for begin in range(0, len(content), _CACHED):
        stream.write(content[begin : begin + _CACHED])


def widened(array: Array) -> Array:
    """The array in a type that .npy has a name for, with the same elements."""
    type = element_type(array.dtype)
    return array.astype(numpy_dtype(WIDER[type])) if type in WIDER else array
