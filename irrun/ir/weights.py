"""The .bin file, memory-mapped, and the arrays that Const layers cut out of it; lines of the XML are the reader's."""

from __future__ import annotations

import math
import mmap
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype

if TYPE_CHECKING:
    from irrun.ir.graph import Layer

Array = npt.NDArray[Any]

MAX_BYTES = 2**62
"""Of an array, were each element 8 bytes wide: numpy's own limit is 2**63."""

MAX_RANK = 64
"""numpy's own limit."""

MAX_STRING_BYTES = 2**32
"""Of an array of strings: every element takes the room of the longest, so one long string can ask for terabytes."""

_GROUPS = {"u3": (8, 3), "u6": (4, 3)}
"""Elements and bytes of a group; a group begun takes all its bytes."""

_INTEGER = re.compile(r"\s*\+?\d+\s*", re.ASCII)


class WeightsError(ValueError):
    """A Const is at fault; `code` and `attribute`, the one of its `<data>` that is to blame, if any, say how.

    `missing` is how many bytes the .bin lacks.
    """

    def __init__(
        self, code: str, message: str, attribute: str | None = None, help: str | None = None, missing: int = 0
    ) -> None:
        super().__init__(message)
        self.code, self.attribute, self.help, self.missing = code, attribute, help, missing


@dataclass(frozen=True, slots=True)
class Blob:
    """What the `<data>` of a Const says: `size` bytes from `offset` on, to be read as `shape` of `element_type`."""

    element_type: str
    shape: tuple[int, ...]
    offset: int
    size: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """Where the bytes end that are read."""
        return self.offset + (self.size if self.element_type == "string" else self.needed)

    @property
    def excess(self) -> int:
        """Bytes that nothing reads. OpenVINO writes a byte for a tensor without elements."""
        return 0 if self.element_type == "string" else max(self.size - max(self.needed, 1), 0)

    @property
    def needed(self) -> int:
        """The bytes that the elements take; of strings, the bytes of the table in front of their text."""
        if self.element_type == "string":
            return 4 * (self.count + 2)
        if self.element_type in _GROUPS:
            elements, size = _GROUPS[self.element_type]
            return -(-self.count // elements) * size
        return -(-self.count * ELEMENT_TYPES[self.element_type].bits // 8)


def read_blob(attributes: dict[str, str]) -> Blob:
    """The blob that the attributes of a Const describe. Raises WeightsError."""
    if "value" in attributes:
        help = (
            "write the value to the .bin file and give its `offset` and `size`; OpenVINO reads the text's bytes as data"
        )
        raise WeightsError("E507", "a Const cannot have its value inline", "value", help)
    missing = [name for name in ("element_type", "shape", "offset", "size") if name not in attributes]
    if missing:
        raise WeightsError("E505", f"the <data> of a Const has no {' and no '.join(f'`{name}`' for name in missing)}")
    element_type = attributes["element_type"]
    if element_type not in ELEMENT_TYPES or element_type == "dynamic":
        lower = element_type.strip().lower()
        help = f"write `{lower}`" if lower in ELEMENT_TYPES and lower != "dynamic" else "`f32` and `i64` are such types"
        raise WeightsError("E508", f"`{element_type}` is not the element type of a Const", "element_type", help)
    shape = _shape(attributes["shape"])
    return Blob(element_type, shape, _integer(attributes, "offset"), _integer(attributes, "size"))


def _integer(attributes: dict[str, str], name: str) -> int:
    text = attributes[name]
    if not _INTEGER.fullmatch(text) or len(text) > 30 or int(text) >= 2**64:
        raise WeightsError("E506", f"`{name}` is `{text}`, but must be a whole number of bytes", name)
    return int(text)


def _shape(text: str) -> tuple[int, ...]:
    items = text.split(",") if text.strip() else []
    if items and not items[-1].strip():
        items.pop()  # OpenVINO takes one trailing comma
    for item in items:
        if not _INTEGER.fullmatch(item) or len(item) > 30:
            help = "sizes separated by commas, such as `1,3,224,224`, without brackets; an empty text is a scalar"
            raise WeightsError("E506", f"`{item.strip()}` in the shape `{text}` is not a size", "shape", help)
    shape = tuple(map(int, items))
    if len(shape) > MAX_RANK:
        raise WeightsError(
            "E506", f"the shape has {len(shape)} dimensions, but arrays have {MAX_RANK} at most", "shape"
        )
    if 8 * int(np.prod([max(size, 1) for size in shape], dtype=object)) > MAX_BYTES:
        raise WeightsError("E506", f"the shape `{text}` has more elements than an array can have", "shape")
    return shape


class Weights:
    """The .bin file of a model, read as far as its Consts are asked for; a model may have none.

    Arrays that were taken from it stay valid after `close`.
    """

    def __init__(self, path: Path | None) -> None:
        """Raises OSError or ValueError if there is something at `path`, but not a readable file."""
        self.path = path
        self.size: int | None = None
        self._bytes: mmap.mmap | None = None
        self._checked: dict[Layer, Blob] = {}
        self.overlapping: set[Layer] = set()
        if path is None:
            return
        try:
            status = path.stat()
        except FileNotFoundError:
            return
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        if not os.access(path, os.R_OK):
            raise PermissionError("reading it is not permitted")
        self.size = status.st_size

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the map of the file; while arrays still look into it, it goes with the last of them."""
        if self._bytes is not None:
            with suppress(BufferError):
                self._bytes.close()
        self._bytes = None

    def constant(self, layer: Layer) -> Array:
        """The array of a Const layer, read-only and without a copy where the file holds it as numpy does.

        The array may be unaligned, as the file may.

        Raises WeightsError where `check` does.
        """
        blob = self.check(layer)
        data = self._mapped()
        if blob.element_type == "string":
            return _frozen(np.array(_strings(data, blob), dtype=np.str_).reshape(blob.shape))
        if not blob.count:
            return _frozen(np.zeros(blob.shape, numpy_dtype(blob.element_type)))
        return _frozen(decode(data, blob))

    def check(self, layer: Layer) -> Blob:
        """The blob of a Const layer, after all that can be wrong with it. Raises WeightsError."""
        if layer not in self._checked:
            self._checked[layer] = self._check(layer)
        return self._checked[layer]

    def checked(self, layer: Layer) -> Blob | None:
        """The blob of a Const layer that was found to be right."""
        return self._checked.get(layer)

    def doubts(self, layer: Layer) -> bool:
        """Whether the shape, the type or the place of a Const layer is not that of its blob, or cannot be read."""
        try:
            return self.check(layer).excess > 0 or layer in self.overlapping
        except WeightsError as error:
            return error.code not in ("E501", "E503")

    def _check(self, layer: Layer) -> Blob:
        blob = read_blob(layer.attributes)
        if self.path is None or self.size is None:
            if blob.size or blob.count:
                raise WeightsError("E501", "there is no file of weights")
            return blob
        if blob.offset + blob.size > self.size:
            missing = blob.offset + blob.size - self.size
            message = f"the Const ends at byte {blob.offset + blob.size}, but {self.path.name} has {self.size} bytes"
            fault = "size" if blob.offset <= self.size else "offset"
            help = "is it this model's .bin, whole?"
            raise WeightsError("E503", f"{message}: {missing} are missing", fault, help, missing)
        if blob.size < blob.needed:
            what = f"{blob.count} {'element' if blob.count == 1 else 'elements'} of {blob.element_type}"
            message = f"`size` is {blob.size} bytes, but {what} take {blob.needed}"
            raise WeightsError("E504", message, "size", "`size` or `shape` is wrong, or the element type")
        if blob.element_type == "string":
            _check_strings(self._mapped(), blob)
        return blob

    def _mapped(self) -> mmap.mmap | bytes:
        if self.path is None or not self.size:
            return b""
        if self._bytes is None:
            try:
                with self.path.open("rb") as file:
                    self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise WeightsError("E502", f"`{self.path}` cannot be mapped: {error}") from None
        return self._bytes


def _frozen(array: Array) -> Array:
    if array.flags.writeable:
        array.flags.writeable = False
    return array


def decode(data: mmap.mmap | bytes, blob: Blob) -> Array:
    """The elements of a blob that is not of strings and not empty."""
    name, count = blob.element_type, blob.count
    raw = np.frombuffer(data, np.uint8, blob.needed, blob.offset)
    bits = ELEMENT_TYPES[name].bits
    if bits < 8:
        codes = _unpacked(name, raw)[:count]
        return _from_codes(name, codes).reshape(blob.shape)
    if name == "boolean":
        flags: Array = raw != 0
        return flags.reshape(blob.shape)
    array: Array = np.frombuffer(data, numpy_dtype(name), count, blob.offset)
    return array.reshape(blob.shape)


def _unpacked(name: str, raw: Array) -> Array:
    """One code of an element a byte, from the packed bytes; whole bytes or groups of them."""
    if name == "u1":
        return np.unpackbits(raw)
    if name == "u3":
        low, high = raw.reshape(-1, 3)[:, :2], raw.reshape(-1, 3)[:, 2:]
        codes = (low[:, :, None] >> np.array([6, 4, 2, 0], np.uint8) & 3).reshape(-1, 8)
        return (codes | np.unpackbits(high, axis=1) << 2).ravel()
    if name == "u6":
        low, high = raw.reshape(-1, 3)[:, :2], raw.reshape(-1, 3)[:, 2:]
        codes = (low[:, :, None] >> np.array([4, 0], np.uint8) & 15).reshape(-1, 4)
        return (codes | (high >> np.array([6, 4, 2, 0], np.uint8) & 3) << 4).ravel()
    if name == "u2":
        return (raw[:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3).ravel()
    return (raw[:, None] >> np.array([0, 4], np.uint8) & 15).ravel()


def _from_codes(name: str, codes: Array) -> Array:
    dtype = numpy_dtype(name)
    if name == "i4":
        return ((codes ^ 8).view(np.int8) - 8).astype(dtype)
    if name in ("u2", "u4"):
        return codes.astype(dtype)
    return codes if name in ("u1", "u3", "u6", "nf4") else codes.view(dtype)


def _table(data: mmap.mmap | bytes, blob: Blob) -> tuple[Array, int]:
    """The byte bounds of the strings, and where in the file the text begins that they count from."""
    return np.frombuffer(data, "<i4", blob.count + 1, blob.offset + 4), blob.offset + blob.needed


def _strings(data: mmap.mmap | bytes, blob: Blob) -> list[str]:
    bounds, text = _table(data, blob)
    return [data[text + begin : text + end].decode() for begin, end in pairwise(bounds)]


def _check_strings(data: mmap.mmap | bytes, blob: Blob) -> None:
    """Raises WeightsError unless the blob is: their number, the begin of the first, the end of each, their text."""
    stored = int(np.frombuffer(data, "<i4", 1, blob.offset)[0])
    if stored != blob.count:
        raise WeightsError("E510", f"the blob holds {stored} strings, but the shape has {blob.count} elements", "shape")
    bounds, text = _table(data, blob)
    room = blob.offset + blob.size - text
    steps = np.diff(bounds.astype(np.int64))
    if bounds[0] != 0 or (steps < 0).any():
        wrong = int(np.argmax(steps < 0)) if bounds[0] == 0 else 0
        raise WeightsError("E509", f"string {wrong} ends before it begins, or the first does not begin at 0", "offset")
    if bounds[-1] > room:
        raise WeightsError("E509", f"the strings take {bounds[-1]} bytes, but `size` leaves {room} for them", "size")
    if steps.size and 4 * int(steps.max()) * blob.count > MAX_STRING_BYTES:
        raise WeightsError("E509", f"strings of up to {steps.max()} bytes, {blob.count} of them, are too large", "size")
    try:
        _strings(data, blob)
    except UnicodeDecodeError as error:
        raise WeightsError("E509", f"a string is not UTF-8: {error.reason}", "offset") from None
