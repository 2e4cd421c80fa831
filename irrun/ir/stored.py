"""Constants that have not been read yet; a list of their elements comes without numpy, which takes longer to load than
most models to check."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from irrun.ir.weights import Array, Blob, Weights, WeightsError, decode
from irrun.spec.pending import Pending

_CODES = {
    "boolean": "?",
    "f16": "e",
    "f32": "f",
    "f64": "d",
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
}
"""The types that `struct` knows."""


class Stored(Pending):
    """The value of a Const of numbers, which is read once; there is none where the file got shorter."""

    __slots__ = ("_array", "_blob", "_bytes", "_weights")

    def __init__(self, weights: Weights, blob: Blob) -> None:
        super().__init__(blob.elements)
        self._weights, self._blob = weights, blob
        self._bytes: bytes | None = None
        self._array: Array | None = None

    def array(self) -> Array | None:
        if self._array is None and (data := self._read()) is not None:
            self._array = decode(data, self._blob._replace(offset=0))
        return self._array

    def numbers(self) -> list[Any] | None:
        code, data = _CODES.get(self._blob.element_type), self._read()
        if code is None or data is None:
            return super().numbers()
        return list(struct.unpack(f"<{self.size}{code}", data))

    @property
    def known(self) -> bool:
        return self._read() is not None

    @property
    def key(self) -> Hashable:
        return self._read()

    def _read(self) -> bytes | None:
        if self._bytes is None:
            with suppress(WeightsError):
                self._bytes = self._weights.read(self._blob)
        return self._bytes
