"""Statistics and hashes of arrays."""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import cache
from hashlib import blake2b
from math import inf, isfinite, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.engines.compiled import is_there
from irrun.engines.placement import processors
from irrun.engines.threads import Threads
from irrun.records import dataclass
from irrun.spec.op import Array
from irrun.tools.watch.blocks import (
    FLUSHED_BF16,
    FLUSHED_F16,
    HASHED,
    LARGEST_F16,
    Found,
    Kind,
    bits,
    counted,
    factors,
    of_blocks,
    of_counts,
    sums,
)

if TYPE_CHECKING:
    from irrun.engines.compiled.measures import Measure

COMPILED_BYTES = 1 << 29
"""Bytes that numpy looks at before llvmlite is loaded, where it is not: on so many kernels gain what that takes."""

MAX_THREADS = 4
"""Of numpy; more read memory no sooner."""

HASH = (
    "blake2b-64 of a number for each 65536 bytes, in C order: the sum, modulo 2**64, of their little-endian words "
    "of 8 bytes, the last one filled up with 0, times splitmix64(0) | 1, splitmix64(1) | 1, ...; plus how many bytes"
)
"""CRC-32 takes four times as long as this, and nobody who writes tensors wants two to be taken for one."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of numbers: `minimum`, `maximum`, `mean`, `std` and the largest and the smallest magnitude but 0 are those of the
    finite ones, None where there are none. The others are counts of elements: `subnormal` ones in the array's own type,
    those whose magnitude is finite and `beyond_f16`, above 65504, and those that f16 and bf16 make 0 of, rounding to
    nearest, subnormals kept. Of strings there is the `count` alone.

    All is exact but two: `mean` is within a millionth of `std` of the exact one, `std` within a hundred thousandth of
    itself, or either within 1e-12 of `largest`. They are None where sums or squares of f64 are beyond all numbers.
    """

    count: int
    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    std: float | None = None
    largest: float | int | None = None
    smallest: float | int | None = None
    zeros: int = 0
    nan: int = 0
    positive_infinite: int = 0
    negative_infinite: int = 0
    subnormal: int = 0
    beyond_f16: int = 0
    flushed_f16: int = 0
    flushed_bf16: int = 0

    @property
    def infinite(self) -> int:
        return self.positive_infinite + self.negative_infinite

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def measured(array: Array) -> tuple[Statistics, str]:
    """The statistics of an array, and the hash of its bytes, 16 hexadecimal digits."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "U":
        return Statistics(flat.size), hashed("\0".join(flat.tolist()).encode("utf-8", "surrogatepass"))
    if not flat.size:
        return Statistics(0), hashed(b"")
    found, numbers = (by_kernels if _is_compiled(flat.nbytes) else by_numpy)(flat)
    return of_found(flat.size, found), hashed(numbers.astype("<u8", copy=False).tobytes())


def hashed(content: bytes) -> str:
    """The hash of bytes in which no element is told from another."""
    return blake2b(content, digest_size=8).hexdigest()


def by_numpy(flat: Array) -> tuple[Found, Array]:
    """What is found of dense elements, and the numbers that their hash is made of, u64."""
    if flat.itemsize == 1:
        return of_counts(counted(flat.view(np.uint8)), flat.dtype), sums(flat)
    return of_blocks(flat, _threads()), sums(flat)


def by_kernels(flat: Array) -> tuple[Found, Array]:
    """The same; by numpy what is not to be had otherwise."""
    if flat.itemsize == 1 and flat.size > HASHED:
        from irrun.engines.compiled.measures import counted

        numbers, counts = counted(flat, HASHED, factors())
        return of_counts(counts, flat.dtype), numbers
    measure = None if flat.itemsize == 1 else _measure(flat.dtype)
    if measure is None:
        return by_numpy(flat)
    found = np.empty(-(-flat.nbytes // HASHED), Kind.of(flat.dtype).form)
    measure(flat, found)
    whole = found[0].item()
    if not isfinite(whole[2]):  # sums of f64 are beyond all numbers
        return by_numpy(flat)
    return whole, found["sum"]


def of_found(count: int, found: Found) -> Statistics:
    """The statistics of so many numbers."""
    _, finite, mean, squares, minimum, maximum, smallest, *counts = found
    if not finite:
        return Statistics(count, None, None, None, None, None, None, *counts)
    if isinstance(smallest, int):
        smallest = (smallest + 1) % (1 << 64)
    return Statistics(
        count,
        minimum,
        maximum,
        _number(mean),
        _number(sqrt(max(squares, 0.0) / finite)),
        max(maximum, -minimum),
        smallest if 0 < smallest < inf else None,
        *counts,
    )


def _number(value: float) -> float | None:
    """None where it is beyond all numbers."""
    return value if isfinite(value) else None


@dataclass(slots=True)
class _Effort:
    """Bytes that numpy has looked at in this process."""

    nbytes: int = 0


def _is_compiled(nbytes: int) -> bool:
    """Whether kernels look at an array."""
    _effort.nbytes += nbytes
    return (sys.modules.get("llvmlite") is not None or _effort.nbytes > COMPILED_BYTES) and is_there()


_effort = _Effort()


@cache
def _measure(dtype: np.dtype[Any]) -> Measure | None:
    """What looks at elements of a type; None where nothing but numpy does."""
    from irrun.engines.compiled.measure_kernel import Limits
    from irrun.engines.compiled.measures import Measure

    kind = Kind.of(dtype)
    limits = Limits(*(bits(limit, kind.wide) for limit in (LARGEST_F16, kind.normal, FLUSHED_F16, FLUSHED_BF16)))
    return Measure.of(kind.type, limits, kind.form.names or (), HASHED, factors())


@cache
def _threads() -> Threads:
    return Threads(min(processors(), MAX_THREADS))
