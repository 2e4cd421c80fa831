"""What the bytes of constants hold: a hash, and numbers that are none or that f16 would lose; read block by block."""

from __future__ import annotations

import hashlib

import numpy as np

from irrun.ir.graph import Layer
from irrun.ir.weights import Blob, Weights
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype

MOST_READ = 1 << 26
"""Bytes of weights that are read without being asked for."""

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
    """What the constants hold that are right. Raises WeightsError where the file got shorter."""
    found: dict[Layer, Values] = {}
    known: dict[tuple[int, int, str], Values] = {}
    for layer in sorted(layers, key=lambda layer: _place(weights, layer)):
        blob = weights.checked(layer)
        if blob is None:
            continue
        key = (blob.offset, blob.end, blob.element_type)
        if key not in known:
            known[key] = _values(weights, layer, blob)
        found[layer] = known[key]
    return found


def _place(weights: Weights, layer: Layer) -> int:
    blob = weights.checked(layer)
    return -1 if blob is None else blob.offset


def _values(weights: Weights, layer: Layer, blob: Blob) -> Values:
    digest = hashlib.blake2b(digest_size=16)
    counts = np.zeros(5, np.int64)
    left = blob.end - blob.offset
    for block in weights.blocks(layer):
        read = block[:left]
        digest.update(read)
        left -= len(read)
        if blob.element_type in _FLOATS:
            counts += _counts(np.frombuffer(read, numpy_dtype(blob.element_type)))
    return Values(digest.hexdigest(), *map(int, counts))


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
