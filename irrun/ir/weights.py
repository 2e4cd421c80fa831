"""The .bin file and the arrays that Const layers cut out of it; lines of the XML are the reader's.

Large arrays are views of the file, mapped into memory, which is what makes large models start at once. The price: if
another process shortens the file while such an array is in use, the operating system ends this process (SIGBUS).
What checks a model therefore only reads, and `Weights.changed` says whether it is still safe to look.
"""

from __future__ import annotations

import codecs
import math
import mmap
import os
import re
import stat
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.records import NamedTuple
from irrun.spec.attributes import MAX_RANK, WHOLE
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.spec.pending import Array as Array
from irrun.spelling import advice, blank_help, misspelt

if TYPE_CHECKING:
    from irrun.ir.graph import Layer

Content = bytes | bytearray | memoryview | mmap.mmap
"""What a file holds, where it is in memory already."""

MAX_BYTES = 2**62
"""Of an array, were each element 8 bytes wide: numpy's own limit is 2**63."""

MAX_STRINGS = 2**22
"""In one array."""

MAX_STRING_BYTES = 2**30
"""Of an array of strings: every element takes the room of the longest, so one long string can ask for terabytes."""

MIN_AHEAD, MAPPED = 1 << 23, 1 << 16
"""Bytes of a file that is worth a thread to map it ahead, and of what systems map at once."""

MAX_COPIED = 1 << 16
"""Bytes of a blob that is read rather than mapped."""

_UPPER = {type.upper(): type for type in ELEMENT_TYPES if type not in ("dynamic", "boolean", "f16", "f32", "f64")}
"""Element types in capitals as OpenVINO takes them for those of a Const: all but those that it knows by other words."""

_CHUNK = 1 << 20
"""Bytes that are read at once where a blob is only looked through."""

NEAR = 1 << 18
"""Bytes of elements that are looked at together, while they are in the cache of a processor."""

MAX_REMEMBERED = 4096
"""Texts of shapes whose meaning is kept."""

_OF_BLOB = {"element_type": None, "shape": None, "offset": None, "size": None}.keys()
_GROUPS = {"u3": (8, 3), "u6": (4, 3)}
"""Elements and bytes of a group; a group begun takes all its bytes."""

_TOO_LARGE = 2**64
_SIZE = r"\s*\+?\d+\s*"


class WeightsError(ValueError):
    """A Const is at fault; `code` and `attribute`, the one of its `<data>` that is to blame, if any, say how.

    `missing` is how many bytes the .bin lacks.
    """

    def __init__(
        self, code: str, message: str, attribute: str | None = None, help: str | None = None, missing: int = 0
    ) -> None:
        super().__init__(message)
        self.code, self.attribute, self.help, self.missing = code, attribute, help, missing

    def __reduce__(self) -> tuple[type[WeightsError], tuple[Any, ...]]:
        return type(self), (self.code, *self.args, self.attribute, self.help, self.missing)


class _File:
    """A descriptor that is closed with this object. Others may have closed it, as what becomes a daemon does, and have
    opened something of their own by its `number` since."""

    def __init__(self, number: int) -> None:
        self.number, self.identity = number, _identity(os.fstat(number))
        self.close = weakref.finalize(self, _close, number, self.identity)

    @property
    def status(self) -> os.stat_result | None:
        """What the system says of the file; None where the descriptor is not ours any more."""
        return _status(self.number, self.identity)


def _touch(parts: Sequence[Array]) -> None:
    for part in parts:
        part.max()


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _status(number: int, identity: tuple[int, int]) -> os.stat_result | None:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status if _identity(status) == identity else None


def _close(number: int, identity: tuple[int, int]) -> None:
    if _status(number, identity) is not None:
        os.close(number)


class Blob(NamedTuple):
    """What the `<data>` of a Const says: `size` bytes from `offset` on, to be read as `shape` of `element_type`.

    These are so many `elements`, which take the bytes that are `needed`; of strings, the bytes of the table in front of
    their text. In a `plain` one all numbers are written in digits, with nothing but commas and blanks between them.
    """

    element_type: str
    shape: tuple[int, ...]
    offset: int
    size: int
    elements: int
    needed: int
    plain: bool

    @property
    def end(self) -> int:
        """Where the bytes end that are read."""
        return self.offset + (self.size if self.element_type == "string" else self.needed)


def read_blob(attributes: dict[str, str]) -> Blob:
    """The blob that the attributes of a Const describe. Raises WeightsError."""
    if "value" in attributes:
        help = (
            "write the value to the .bin file and give its `offset` and `size`; OpenVINO reads the text's bytes as data"
        )
        raise WeightsError("E507", "a Const cannot have its value inline", "value", help)
    if not attributes.keys() >= _OF_BLOB:
        raise _lacking([name for name in _OF_BLOB if name not in attributes], attributes)
    written = attributes["element_type"]
    element_type = _UPPER.get(written, written)
    if element_type not in ELEMENT_TYPES or element_type == "dynamic":
        lower = element_type.strip().lower()
        help = f"write `{lower}`" if lower in ELEMENT_TYPES and lower != "dynamic" else "`f32` and `i64` are such types"
        raise WeightsError("E508", f"`{element_type}` is not the element type of a Const", "element_type", help)
    shape, count, plain = _shape(attributes["shape"])
    offset, size = _integer(attributes, "offset"), _integer(attributes, "size")
    plain = plain and (attributes["offset"] + attributes["size"]).replace(" ", "").isdecimal()
    plain = plain and element_type == written
    return Blob(element_type, shape, offset, size, count, bytes_of(element_type, count), plain)


def _lacking(missing: list[str], attributes: dict[str, str]) -> WeightsError:
    """The error of a Const without some of its attributes, at one that seems to be meant for one of these."""
    message = f"the <data> of a Const has no {' and no '.join(f'`{name}`' for name in missing)}"
    meant = misspelt(missing, attributes, _OF_BLOB)
    if meant is not None:
        name, written = meant
        return WeightsError("E505", message, written, f"`{written}` is not read: {advice(written, name)}")
    does = "`offset` and `size` say which bytes of the .bin are its data, `element_type` and `shape` what they are"
    return WeightsError("E505", message, help=does)


def bytes_of(element_type: str, count: int) -> int:
    """What so many elements take; of strings, the table in front of their text."""
    if element_type == "string":
        return 4 * (count + 2)
    if element_type in _GROUPS:
        elements, size = _GROUPS[element_type]
        return -(-count // elements) * size
    return -(-count * ELEMENT_TYPES[element_type].bits // 8)


def _is_short(text: str) -> bool:
    """Whether a text is plain digits, of a number that is not too large for anything."""
    return text.isdecimal() and text.isascii() and len(text) < 19


def _integer(attributes: dict[str, str], name: str) -> int:
    text = attributes[name]
    try:
        number: int = WHOLE.parse(text)
    except ValueError:
        number = _TOO_LARGE
    if number >= _TOO_LARGE:
        message = f"`{name}` is `{text}`, but must be a whole number of bytes"
        help = blank_help(text) or f"write digits alone: `{name}` counts bytes"
        raise WeightsError("E506", message, name, help)
    return number


@lru_cache(MAX_REMEMBERED)
def _shape(text: str) -> tuple[tuple[int, ...], int, bool]:
    """The shape that a text says, its elements, and whether it is plain. Raises WeightsError."""
    items = text.split(",")
    if not items[-1]:
        items.pop()  # OpenVINO takes one trailing comma, and no text for a scalar, but blanks for neither
    for item in items:
        if not _is_short(item) and (not re.fullmatch(_SIZE, item, re.ASCII) or len(item) > 30):
            help = "sizes separated by commas, such as `1,3,224,224`, without brackets; an empty text is a scalar"
            raise WeightsError("E506", f"`{item.strip()}` in the shape `{text}` is not a size", "shape", help)
    shape = tuple(map(int, items))
    if len(shape) > MAX_RANK:
        raise WeightsError(
            "E506",
            f"the shape has {len(shape)} dimensions, but arrays have {MAX_RANK} at most",
            "shape",
            "leave out dimensions of 1, or is the shape a list of something else?",
        )
    if 8 * math.prod([size or 1 for size in shape]) > MAX_BYTES:
        help = "is a size wrong by a factor? The `size` in bytes and the port tell how many there are"
        raise WeightsError("E506", f"the shape `{text}` has more elements than an array can have", "shape", help)
    digits = text.replace(",", "").replace(" ", "")
    return shape, math.prod(shape), not digits or digits.isdecimal()


class Weights:
    """The .bin file of a model, read as far as its Consts are asked for; a model may have none.

    `doubtful` are Consts whose bytes are likely not those of their shape and type, and where that is reported.

    What is added to it lies behind the bytes of the file, and only in memory, until the model is written. Arrays that
    were taken from it stay valid after `close`.
    """

    def __init__(self, path: Path | None, content: Content | None = None) -> None:
        """With its `content`, nothing is looked for at `path`, which is only its name.

        Raises OSError or ValueError if there is something at `path`, but not a readable file.
        """
        self.path = path
        self.content = content
        self.stored: int | None = None if content is None else len(content)
        self._added: list[bytes] = []
        self._starts: list[int] = []
        self._known: dict[bytes, int] = {}
        self._file: _File | None = None
        self._time = 0
        self._bytes: mmap.mmap | None = None
        self._checked: dict[Layer, Blob] = {}
        self.doubtful: dict[Layer, Layer] = {}
        if path is None or content is not None:
            return
        try:
            status = os.fstat(self._opened(path))
        except FileNotFoundError:
            return
        self.stored, self._time = status.st_size, status.st_mtime_ns

    @property
    def _name(self) -> str:
        return self.path.name if self.path else "the weights"

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the file and its map; while arrays still look into it, that goes with the last of them."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._bytes is not None:
            with suppress(BufferError):
                self._bytes.close()
        self._bytes = None

    @property
    def changed(self) -> bool:
        """Whether the file is another one than when it was checked: shorter, longer, or written to."""
        if self._file is None or self.path is None:
            return False
        status = self._file.status
        if status is None:
            try:
                self._opened(self.path)
            except OSError:  # it cannot be told of what is mapped, which stays as long as nobody writes to it
                return self._bytes is None
            status = self._file.status
        return status is None or (status.st_size, status.st_mtime_ns) != (self.stored, self._time)

    @property
    def size(self) -> int | None:
        """Bytes of the file and of what was added; None where there is neither."""
        if not self._added:
            return self.stored
        return self._starts[-1] + len(self._added[-1])

    @property
    def extended(self) -> bool:
        """Whether there are bytes that the file has not."""
        return bool(self._added)

    def add(self, data: bytes) -> int:
        """Keep the bytes of a constant; where they begin. Equal ones are kept once; no bytes take one, as on disk."""
        data = data or b"\0"
        start = self._known.get(data)
        if start is None:
            start = self._known[data] = self.size or 0
            self._starts.append(start)
            self._added.append(data)
        return start

    def shared(self) -> Weights:
        """Weights of the same bytes, to which others are added; the file is not looked up again."""
        other = Weights(None, self.content)
        other.path, other.stored, other._time = self.path, self.stored, self._time
        if self._file is not None:
            assert self.path is not None, "what is open is a file"
            other._file = _File(os.dup(self._opened(self.path)))
        other._added, other._starts, other._known = [*self._added], [*self._starts], {**self._known}
        return other

    def map_ahead(self, apart: Iterable[Layer] = ()) -> None:
        """Have a thread map the file, while what reads it is made ready: who reads it first waits for that. It leaves
        Consts that are `apart`, of which little is read."""
        if self.content is None and (self.stored or 0) >= MIN_AHEAD:
            with suppress(WeightsError):  # who reads it tells of that
                data = np.frombuffer(self._mapped(), np.uint8)
                blobs = [blob for blob in map(self.check, apart) if blob.needed >= MAPPED]
                blobs.sort(key=lambda blob: blob.offset)
                starts, ends = [0, *(blob.end for blob in blobs)], [*(blob.offset for blob in blobs), len(data)]
                parts = [data[start:end:MAPPED] for start, end in zip(starts, ends, strict=True) if start < end]
                if parts:
                    Thread(target=_touch, args=(parts,), name="irrun-weights", daemon=True).start()

    def forget(self, layer: Layer) -> None:
        """Look at a Const anew, whose attributes have changed."""
        self._checked.pop(layer, None)
        self.doubtful.pop(layer, None)

    def blocks(self, layer: Layer) -> Iterator[bytes]:
        """The bytes of a Const of any type, all that its `size` says, in order and some at a time.

        Raises WeightsError as `constant` does.
        """
        blob = self.check(layer)
        for start in range(0, blob.size, 4 * _CHUNK):
            yield self._read(blob.offset + start, min(blob.size - start, 4 * _CHUNK))

    def constant(self, layer: Layer, mapped: bool = True) -> Array:
        """The array of a Const layer, read-only and without a copy where the file holds it as numpy does.

        The array may be unaligned, as the file may. With `mapped` False it is a copy in any case.

        Raises WeightsError where `check` does, or where the file got shorter.
        """
        blob = self.check(layer)
        if blob.element_type == "string" and blob.elements:
            data = self._read(blob.offset, blob.needed + self._text_bytes(blob))
            return _frozen(np.array(_strings(data, blob.elements), dtype=np.str_).reshape(blob.shape))
        if mapped and blob.needed > MAX_COPIED:
            place, offset = self._place(blob.offset)
            return decode(place, blob._replace(offset=offset))
        return decode(self.read(blob), blob._replace(offset=0))

    def low_bits_first(self, layer: Layer) -> Array:
        """The array of a Const of u1, read-only, if the lowest bit of each byte comes first. Raises as `constant`."""
        blob = self.check(layer)
        bits = np.unpackbits(np.frombuffer(self.read(blob), np.uint8), count=blob.elements, bitorder="little")
        return _frozen(bits.reshape(blob.shape))

    def packed(self, layer: Layer) -> Array:
        """The bytes of a Const of numbers as the file has them, a read-only vector; a view of it where they are many.

        Raises WeightsError as `constant` does.
        """
        blob = self.check(layer)
        if blob.needed > MAX_COPIED:
            place, offset = self._place(blob.offset)
            return _frozen(np.frombuffer(place, np.uint8, blob.needed, offset))
        return _frozen(np.frombuffer(self.read(blob), np.uint8))

    def read(self, blob: Blob) -> bytes:
        """The bytes of the elements of a blob of numbers. Raises WeightsError where the file got shorter."""
        return self._read(blob.offset, blob.needed)

    def head(self) -> bytes:
        """The first bytes of the file, which tell what it is. Raises WeightsError."""
        return self._read(0, min(self.stored or 0, 1024))

    def chunks(self, layer: Layer, buffer: bytearray | None = None) -> Iterator[bytes | bytearray]:
        """The elements of a Const of numbers of whole bytes in order, some at a time, as the file has them.

        Chunks of the length of the `buffer` come in it, each in place of the one before: to look at them takes less
        time. Raises WeightsError as `constant` does.
        """
        blob = self.check(layer)
        for first in range(0, blob.needed, NEAR):
            offset, length = blob.offset + first, min(blob.needed - first, NEAR)
            filled = buffer is not None and length == len(buffer) and self._fill(buffer, offset)
            yield buffer if buffer is not None and filled else self._read(offset, length)

    def allocated(self, layer: Layer) -> int:
        """The bytes of memory that `constant` takes for an array; 0 for one that is a view of the file."""
        blob = self.check(layer)
        if blob.element_type == "string":
            longest = max((step for _, steps in self._bounds(blob) for step in steps.tolist()), default=0)
            return 4 * longest * blob.elements + blob.needed + self._text_bytes(blob)
        unpacked = ELEMENT_TYPES[blob.element_type].bits < 8 or blob.element_type == "boolean"
        return blob.elements if unpacked else 0 if blob.needed > MAX_COPIED else blob.needed

    def check(self, layer: Layer) -> Blob:
        """The blob of a Const layer, after all that can be wrong with it. Raises WeightsError."""
        blob = self._checked.get(layer)
        if blob is None:
            blob = self._checked[layer] = self._check(layer)
        return blob

    def checked(self, layer: Layer) -> Blob | None:
        """The blob of a Const layer that was found to be right."""
        return self._checked.get(layer)

    def misread(self, layer: Layer) -> bool:
        """Whether a Const layer says nothing that its elements could be read by."""
        try:
            self.check(layer)
        except WeightsError as error:
            return error.code not in ("E501", "E503")
        return False

    def _check(self, layer: Layer) -> Blob:
        blob = read_blob(layer.attributes)
        if self.size is None:
            if blob.size or blob.elements:
                raise WeightsError("E501", "there is no file of weights")
            return blob
        if blob.offset + blob.size > self.size:
            missing = blob.offset + blob.size - self.size
            message = f"the Const ends at byte {blob.offset + blob.size}, but {self._name} has {self.size} bytes"
            fault = "size" if blob.offset <= self.size else "offset"
            help = "is it this model's .bin, whole?"
            raise WeightsError(
                "E503", f"{message}: {missing} {'is' if missing == 1 else 'are'} missing", fault, help, missing
            )
        if blob.size < blob.needed:
            what = f"{blob.elements} {'element' if blob.elements == 1 else 'elements'} of {blob.element_type}"
            message = f"`size` is {blob.size} bytes, but {what} take {blob.needed}"
            raise WeightsError("E504", message, "size", "`size` or `shape` is wrong, or the element type")
        if blob.element_type == "string":
            self._check_strings(blob)
        return blob

    def _check_strings(self, blob: Blob) -> None:
        """Raises WeightsError unless the blob is: their number, the begin of the first, the end of each, their text."""
        stored, first = np.frombuffer(self._read(blob.offset, 8), "<i4").tolist()
        if stored != blob.elements:
            message = f"the blob holds {stored} strings, but the shape has {blob.elements} elements"
            help = f"write a shape of {stored} elements, or the `offset` of the strings that are meant"
            raise WeightsError("E510", message, "shape", help)
        if blob.elements > MAX_STRINGS:
            raise WeightsError("E509", f"there are {blob.elements} strings, more than {MAX_STRINGS}", "shape")
        longest = 0
        room = blob.size - blob.needed
        for number, steps in self._bounds(blob):
            if first != 0 or (steps < 0).any():
                wrong = number + int(np.argmax(steps < 0)) if first == 0 else 0
                message = f"string {wrong} ends before it begins, or the first does not begin at 0"
                raise WeightsError("E509", message, "offset")
            longest = max(longest, int(steps.max(initial=0)))
        last = self._text_bytes(blob)
        if last > room:
            raise WeightsError("E509", f"the strings take {last} bytes, but `size` leaves {room} for them", "size")
        if 4 * longest * blob.elements > MAX_STRING_BYTES:
            message = f"strings of up to {longest} bytes, {blob.elements} of them, are too large"
            raise WeightsError("E509", message, "size")
        try:
            self._check_text(blob)
        except UnicodeDecodeError as error:
            raise WeightsError("E509", f"a string is not UTF-8: {error.reason}", "offset") from None

    def read_bytes(self, blob: Blob) -> int:
        """How many bytes of a blob its elements take, the text of strings included."""
        return blob.needed + (self._text_bytes(blob) if blob.element_type == "string" and blob.elements else 0)

    def _text_bytes(self, blob: Blob) -> int:
        """Where the last string ends."""
        return int(np.frombuffer(self._read(blob.offset + 4 * (blob.elements + 1), 4), "<i4")[0])

    def _bounds(self, blob: Blob) -> Iterator[tuple[int, Array]]:
        """The lengths of the strings, some at a time, with the number of the first of them."""
        for first in range(0, blob.elements, _CHUNK // 4):
            count = min(blob.elements - first, _CHUNK // 4) + 1
            table = np.frombuffer(self._read(blob.offset + 4 + 4 * first, 4 * count), "<i4")
            yield first, np.diff(table.astype(np.int64))

    def _check_text(self, blob: Blob) -> None:
        """Raises UnicodeDecodeError."""
        begin = blob.offset + blob.needed
        for _, steps in self._bounds(blob):
            total = int(steps.sum())
            near = self._read(begin, total) if total <= 4 * _CHUNK else None
            ends = np.cumsum(steps).tolist()
            for start, stop in pairwise([0, *ends]):
                if near is not None:
                    near[start:stop].decode()
                    continue
                decoder = codecs.getincrementaldecoder("utf-8")()
                for part in range(start, stop, _CHUNK):
                    decoder.decode(self._read(begin + part, min(stop - part, _CHUNK)), part + _CHUNK >= stop)
            begin += total

    def _opened(self, path: Path) -> int:
        """The descriptor of the file, which stays the same whatever takes its place. Raises OSError."""
        if self._file is None or self._file.status is None:
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError("not a regular file")
            file = _File(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)))
            if file.status is None or not stat.S_ISREG(file.status.st_mode):  # it took the place of the one before
                raise OSError("not a regular file")
            if self._file is not None and file.identity != self._file.identity:
                raise OSError("another file has its place")
            if self._file is not None:
                self._file.close.detach()  # the new one may have the number of the old one
            self._file = file
        return self._file.number

    def _read(self, offset: int, size: int) -> bytes:
        """Bytes of the file. Raises WeightsError where they are not there any more."""
        added = self._segment(offset)
        if added is not None:
            return added[0][added[1] : added[1] + size]
        if self.content is not None:
            return bytes(self.content[offset : offset + size])
        data = b""
        try:
            while len(data) < size and self.path is not None:  # Linux reads 2 GB at once at most
                more = _read_at(self._opened(self.path), size - len(data), offset + len(data))
                if not more:
                    break
                data = data + more if data else more
        except OSError as error:
            raise WeightsError("E502", f"`{self.path}` cannot be read: {error.strerror or error}") from None
        if len(data) < size:
            raise WeightsError("E502", f"`{self.path}` got shorter while it was read")
        return data

    def _fill(self, buffer: bytearray, offset: int) -> bool:
        """Read bytes of the file into a buffer, where that can be done at once."""
        if self.content is not None or self.path is None or self._segment(offset) or not hasattr(os, "preadv"):
            return False
        with suppress(OSError):
            return os.preadv(self._opened(self.path), [buffer], offset) == len(buffer)
        return False

    def _segment(self, offset: int) -> tuple[bytes, int] | None:
        """The added bytes that a byte is among, and its number in them."""
        if not self._added or offset < self._starts[0]:
            return None
        number = bisect_right(self._starts, offset) - 1
        return self._added[number], offset - self._starts[number]

    def _place(self, offset: int) -> tuple[Content, int]:
        """What holds a byte, and its number in that."""
        return self._segment(offset) or (self._mapped(), offset)

    def _mapped(self) -> Content:
        if self.content is not None:
            return self.content
        if self.path is None or not self.stored:
            return b""
        if self._bytes is None:
            try:
                self._bytes = mmap.mmap(self._opened(self.path), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise WeightsError("E502", f"`{self.path}` cannot be mapped: {error}") from None
        if len(self._bytes) < (self.stored or 0):
            raise WeightsError("E502", f"`{self.path}` got shorter while it was read")
        return self._bytes


def _read_at(file: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, size, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, size)


def _frozen(array: Array) -> Array:
    if array.flags.writeable:
        array.flags.writeable = False
    return array


def decode(data: Content, blob: Blob) -> Array:
    """The elements of a blob that is not of strings, read-only; no elements may be of any type."""
    return _frozen(_decoded(data, blob) if blob.elements else np.zeros(blob.shape, numpy_dtype(blob.element_type)))


def _decoded(data: Content, blob: Blob) -> Array:
    name, count = blob.element_type, blob.elements
    bits = ELEMENT_TYPES[name].bits
    if bits >= 8 and name != "boolean":
        array: Array = np.frombuffer(data, numpy_dtype(name), count, blob.offset)
        return array.reshape(blob.shape)
    raw = np.frombuffer(data, np.uint8, blob.needed, blob.offset)
    if name == "boolean":
        flags: Array = raw != 0
        return flags.reshape(blob.shape)
    return unpacked(name, raw, count).reshape(blob.shape)


def unpacked(name: str, raw: Array, count: int) -> Array:
    """The first elements of a type of less than 8 bits, from the bytes that hold them."""
    return _from_codes(name, _unpacked(name, raw)[:count])


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


def _strings(data: bytes, count: int) -> list[str]:
    """The strings of a blob, which was checked."""
    bounds = np.frombuffer(data, "<i4", count + 1, 4).tolist()
    text = 4 * (count + 2)
    return [data[text + begin : text + end].decode() for begin, end in pairwise(bounds)]
