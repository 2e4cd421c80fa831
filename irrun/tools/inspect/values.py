"""What the bytes of constants hold: a hash, and numbers that are none or that f16 would lose; read block by block."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from irrun.files import open_regular
from irrun.ir.graph import Layer
from irrun.ir.weights import Blob, Weights
from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype

MOST_READ = 1 << 26
"""Bytes of weights that are read without being asked for."""

_BLOCK = 1 << 22
"""Bytes that are read at once; a multiple of the width of any element."""

_FLOATS = frozenset({"bf16", "f16", "f32", "f64"})

_F16_OVERFLOWS = 65520.0
"""What is that large, or larger, becomes infinite as f16."""

_SMALLEST_F16 = 2.0**-25
"""What is that small, or smaller, becomes 0 as f16."""


@dataclass(frozen=True, slots=True)
class Values:
    """Of one constant: a hash of its bytes, and the elements that are NaN, infinite, 0, or lost as f16.

    `beyond_f16` are finite and become infinite, `flushed_by_f16` are not 0 and become that. Counts are of floats only;
    those of other types are 0.
    """

    hash: str
    nans: int = 0
    infinities: int = 0
    zeros: int = 0
    beyond_f16: int = 0
    flushed_by_f16: int = 0


def read_values(weights: Weights, layers: list[Layer]) -> dict[Layer, Values]:
    """What the constants hold that are right; those that cannot be read any more are left out."""
    found: dict[Layer, Values] = {}
    known: dict[tuple[int, int, str], Values] = {}
    for layer in sorted(layers, key=lambda layer: _place(weights, layer)):
        blob = weights.checked(layer)
        if blob is None:
            continue
        key = (blob.offset, blob.end, blob.element_type)
        if key not in known:
            values = _values(weights, blob)
            if values is None:
                continue
            known[key] = values
        found[layer] = known[key]
    return found


def _place(weights: Weights, layer: Layer) -> int:
    blob = weights.checked(layer)
    return -1 if blob is None else blob.offset


def _values(weights: Weights, blob: Blob) -> Values | None:
    digest = hashlib.blake2b(digest_size=16)
    counts = np.zeros(5, np.int64)
    read = 0
    for block in _blocks(weights, blob):
        digest.update(block)
        read += len(block)
        if blob.element_type in _FLOATS:
            counts += _counts(np.frombuffer(block, numpy_dtype(blob.element_type)))
    if read != blob.end - blob.offset:
        return None
    return Values(digest.hexdigest(), *map(int, counts))


def _blocks(weights: Weights, blob: Blob) -> Iterator[bytes]:
    """The bytes of a constant, some at a time; fewer where the file got shorter meanwhile."""
    if weights.content is not None:
        for begin in range(blob.offset, blob.end, _BLOCK):
            yield bytes(weights.content[begin : min(begin + _BLOCK, blob.end)])
        return
    if weights.path is None or blob.end == blob.offset:
        return
    width = max(ELEMENT_TYPES[blob.element_type].bits // 8, 1)
    try:
        with open_regular(weights.path) as file:
            file.seek(blob.offset)
            for begin in range(blob.offset, blob.end, _BLOCK):
                block = file.read(min(_BLOCK, blob.end - begin))
                yield block[: len(block) // width * width]
    except OSError:
        return


def _counts(numbers: np.ndarray[tuple[int], np.dtype[np.generic]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """NaN, infinities, zeros, and what f16 makes infinite and 0."""
    sizes = np.abs(numbers.astype(np.float64 if numbers.dtype == np.float64 else np.float32, copy=False))
    least, most = (float(np.min(sizes)), float(np.max(sizes))) if sizes.size else (np.inf, 0.0)
    nans = infinities = zeros = beyond = flushed = 0
    if not most < _F16_OVERFLOWS:  # NaN among them makes both NaN
        nans, infinities = int(np.isnan(sizes).sum()), int(np.isinf(sizes).sum())
        beyond = int((sizes >= _F16_OVERFLOWS).sum()) - infinities
    if not least > _SMALLEST_F16:
        zeros = sizes.size - int(np.count_nonzero(sizes))
        flushed = int((sizes <= _SMALLEST_F16).sum()) - zeros
    return np.array([nans, infinities, zeros, beyond, flushed], np.int64)
