"""Statistics and hashes of arrays, in few passes over blocks that stay in a processor's cache."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cache
from hashlib import blake2b
from math import isfinite, sqrt
from threading import local
from typing import Any

import numpy as np

from irrun.spec.dtypes import element_type
from irrun.spec.op import Array

BLOCK = 1 << 16
"""Elements that are looked at together."""

ROW = 1024
"""Elements that are added up in their own type; the sums of rows are added up in f64."""

SHARED_BLOCKS = 2
"""Blocks from which on several threads look at them."""

MAX_THREADS = 4

LARGEST_F16 = 65504.0
FLUSHED_F16, FLUSHED_BF16 = 2.0**-25, 2.0**-134
"""Half of the least subnormal number: what is not more becomes 0."""

HASH = (
    "blake2b-64 of a number for each 65536 elements, in C order: the sum, modulo 2**64, of their little-endian words "
    "of 8 bytes, the last one filled up with 0, times splitmix64(0) | 1, splitmix64(1) | 1, ...; plus how many bytes"
)
"""CRC-32 takes four times as long as this, and nobody who writes tensors wants two to be taken for one."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of numbers: `minimum`, `maximum`, `mean`, `std` and the largest and the smallest magnitude but 0 are those of the
    finite ones, None where there are none. The others are counts of elements: `subnormal` ones in the array's own type,
    those whose magnitude is finite and `beyond_f16`, above 65504, and those that f16 and bf16 make 0 of, rounding to
    nearest, subnormals kept. Of strings there is the `count` alone.
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
    starts = range(0, flat.size, BLOCK)
    kind = _Kind.of(flat.dtype)
    if len(starts) >= SHARED_BLOCKS and (pool := _pool()) is not None:
        share = -(-len(starts) // (pool[1] * 2))
        pieces = [starts[first : first + share] for first in range(0, len(starts), share)]
        found = [part for parts in pool[0].map(lambda piece: _parts(flat, piece, kind), pieces) for part in parts]
    else:
        found = _parts(flat, starts, kind)
    digest = blake2b(struct.pack(f"<{len(found)}Q", *(part.sum for part in found)), digest_size=8).hexdigest()
    return _together(found, flat.size), digest


def hashed(content: bytes) -> str:
    """The hash of bytes in which no element is told from another."""
    return blake2b(content, digest_size=8).hexdigest()


def _sum(block: Array) -> int:
    """A number of the bytes, as `HASH` has it."""
    content = block.view(np.uint8)
    even = content.size & ~7
    words, rest = content[:even].view("<u8"), content[even:].tobytes()
    factors = _factors()
    total = int(np.dot(words, factors[: words.size])) if words.size else 0
    return (total + int.from_bytes(rest, "little") * int(factors[words.size]) + content.size) % (1 << 64)


@cache
def _factors() -> Array:
    """As many as a block of the widest elements has words, and one."""
    state = np.arange(1, 2 * BLOCK + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state ^ (state >> np.uint64(31))) | np.uint64(1)


@dataclass(slots=True)
class _Part:
    """What is known of one block; `squares` is the sum of the squares of how far numbers are from their mean."""

    sum: int
    finite: int = 0
    minimum: Any = None
    maximum: Any = None
    mean: float = 0.0
    squares: float = 0.0
    smallest: Any = None
    zeros: int = 0
    nan: int = 0
    positive: int = 0
    negative: int = 0
    subnormal: int = 0
    beyond: int = 0
    flushed_f16: int = 0
    flushed_bf16: int = 0


@dataclass(frozen=True, slots=True)
class _Kind:
    """How numbers of a type are looked at: as `wide` ones, of which those below `least` are subnormal there; None are
    integers."""

    wide: np.dtype[Any] | None
    least: float

    @staticmethod
    @cache
    def of(dtype: np.dtype[Any]) -> _Kind:
        if dtype.kind == "f":
            wide = np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)
            return _Kind(wide, float(np.finfo(dtype).smallest_normal))
        if dtype.kind in "biu" or element_type(dtype)[0] in "iu":
            return _Kind(None, 0.0)
        import ml_dtypes

        return _Kind(np.dtype(np.float32), float(ml_dtypes.finfo(dtype).smallest_normal))  # type: ignore[no-untyped-call]


def _parts(flat: Array, starts: Sequence[int], kind: _Kind) -> list[_Part]:
    with np.errstate(all="ignore"):
        return [_part(flat[start : start + BLOCK], kind) for start in starts]


def _part(block: Array, kind: _Kind) -> _Part:
    part = _Part(_sum(block))
    if kind.wide is None:
        _integers(block, part)
    else:
        _floats(block.astype(kind.wide, copy=False), kind, part)
    return part


def _integers(block: Array, part: _Part) -> None:
    numbers = block.astype(np.uint8 if block.dtype == bool else np.int8) if block.dtype.kind in "bV" else block
    least, most = int(numbers.min()), int(numbers.max())
    doubles = numbers.astype(np.float64)
    part.finite, part.minimum, part.maximum = block.size, least, most
    part.mean = float(doubles.mean())
    doubles -= part.mean
    part.squares = float(np.dot(doubles, doubles))
    part.zeros = block.size - int(np.count_nonzero(numbers))
    if part.zeros < block.size:
        positive = least if least > 0 else int(numbers[numbers > 0].min()) if most > 0 else None
        negative = most if most < 0 else int(numbers[numbers < 0].max()) if least < 0 else None
        part.smallest = min(abs(number) for number in (positive, negative) if number is not None)
    if most > LARGEST_F16 or least < -LARGEST_F16:
        part.beyond = int(np.count_nonzero((numbers > int(LARGEST_F16)) | (numbers < -int(LARGEST_F16))))


def _floats(numbers: Array, kind: _Kind, part: _Part) -> None:
    least, most = float(np.minimum.reduce(numbers)), float(np.maximum.reduce(numbers))
    if not (isfinite(least) and isfinite(most)):
        part.nan = int(np.count_nonzero(np.isnan(numbers)))
        part.positive = int(np.count_nonzero(numbers == np.inf))
        part.negative = int(np.count_nonzero(numbers == -np.inf))
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return
        least, most = float(numbers.min()), float(numbers.max())
    part.finite, part.minimum, part.maximum = numbers.size, least, most
    limits = _Limits.of(numbers.dtype)
    rest, magnitudes = (room[: numbers.size] for room in _scratch(limits))
    _moments(numbers, rest, part)
    np.bitwise_and(numbers.view(limits.unsigned), limits.magnitude, out=magnitudes)
    smallest, less = np.minimum.reduce(magnitudes), limits.unsigned.type(0)
    if smallest == 0:
        part.zeros = int(np.count_nonzero(magnitudes == 0))
        if part.zeros == numbers.size:
            return
        less = limits.unsigned.type(1)
        np.subtract(magnitudes, less, out=magnitudes)  # 0 becomes the largest of all, and others keep their order
        smallest = np.minimum.reduce(magnitudes) + less
    part.smallest = float(smallest.view(numbers.dtype))
    if part.smallest < kind.least:
        part.subnormal = int(
            np.count_nonzero(magnitudes < limits.unsigned.type(_bits(kind.least, numbers.dtype)) - less)
        )
    if part.smallest <= FLUSHED_F16:
        part.flushed_f16 = int(np.count_nonzero(magnitudes <= limits.flushed_f16 - less))
    if part.smallest <= FLUSHED_BF16:
        part.flushed_bf16 = int(np.count_nonzero(magnitudes <= limits.flushed_bf16 - less))
    if most > LARGEST_F16 or least < -LARGEST_F16:
        part.beyond = int(np.count_nonzero((numbers > LARGEST_F16) | (numbers < -LARGEST_F16)))


def _moments(numbers: Array, rest: Array, part: _Part) -> None:
    """The mean, and how far numbers are from it; `rest` is room for as many."""
    part.mean = _total(numbers) / numbers.size
    if isfinite(part.mean):
        square, around = part.mean * part.mean * numbers.size, float(np.dot(numbers, numbers))
        if 2 * square <= around:  # too little of it is the mean's to cancel out
            part.squares = around - square
        else:
            np.subtract(numbers, part.mean, out=rest)
            part.squares = float(np.dot(rest, rest))
    if not (isfinite(part.mean) and isfinite(part.squares)):  # too large to be squared in their type
        scale = float(np.abs(numbers).max())
        scaled = numbers.astype(np.float64) / scale
        part.mean = float(scaled.mean()) * scale
        part.squares = float(scaled.var()) * numbers.size * scale * scale


def _total(numbers: Array) -> float:
    """Their sum, by BLAS in short rows: as exact as numpy's, in a third of the time."""
    long = numbers.size // ROW * ROW
    rows = np.dot(numbers[:long].reshape(-1, ROW), _ones(numbers.dtype))
    return float(rows.sum(dtype=np.float64)) + float(np.add.reduce(numbers[long:]))


@cache
def _ones(dtype: np.dtype[Any]) -> Array:
    return np.ones(ROW, dtype)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Magnitudes as the bits of floats of a type."""

    floats: np.dtype[Any]
    unsigned: np.dtype[Any]
    magnitude: Any
    flushed_f16: Any
    flushed_bf16: Any

    @staticmethod
    @cache
    def of(dtype: np.dtype[Any]) -> _Limits:
        unsigned = np.dtype(f"u{dtype.itemsize}")
        most = np.iinfo(unsigned).max
        flushed = [unsigned.type(_bits(limit, dtype)) for limit in (FLUSHED_F16, FLUSHED_BF16)]
        return _Limits(dtype, unsigned, unsigned.type(most >> 1), *flushed)


@cache
def _bits(number: float, dtype: np.dtype[Any]) -> int:
    return int(np.array([number], dtype).view(f"u{dtype.itemsize}")[0])


_own = local()


def _scratch(limits: _Limits) -> tuple[Array, Array]:
    """Room for a block, which is the thread's own, and for its magnitudes."""
    found: dict[str, tuple[Array, Array]] = _own.__dict__.setdefault("found", {})
    if limits.floats.char not in found:
        found[limits.floats.char] = (np.empty(BLOCK, limits.floats), np.empty(BLOCK, limits.unsigned))
    return found[limits.floats.char]


@cache
def _pool() -> tuple[ThreadPoolExecutor, int] | None:
    """Threads that look at blocks, and how many; None where there is one processor."""
    count = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MAX_THREADS)
    return (ThreadPoolExecutor(count, "irrun-statistics"), count) if count > 1 else None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _together(parts: Sequence[_Part], count: int) -> Statistics:
    if len(parts) == 1 and parts[0].finite:
        return _alone(parts[0], count)
    known = [part for part in parts if part.finite]
    if not known:
        counts = {"nan": sum(part.nan for part in parts)}
        counts["positive_infinite"] = sum(part.positive for part in parts)
        return Statistics(count, **counts, negative_infinite=sum(part.negative for part in parts))
    finite, mean, squares = 0, 0.0, 0.0
    for part in known:
        whole = finite + part.finite
        apart = part.mean - mean
        mean += apart * (part.finite / whole)
        squares += part.squares + apart * apart * (finite * part.finite / whole)
        finite = whole
    minimum, maximum = min(part.minimum for part in known), max(part.maximum for part in known)
    return Statistics(
        count,
        minimum,
        maximum,
        _finite(mean),
        _finite(sqrt(max(squares, 0.0) / finite)),
        max(abs(minimum), abs(maximum)),
        min((part.smallest for part in known if part.smallest is not None), default=None),
        sum(part.zeros for part in parts),
        sum(part.nan for part in parts),
        sum(part.positive for part in parts),
        sum(part.negative for part in parts),
        sum(part.subnormal for part in parts),
        sum(part.beyond for part in parts),
        sum(part.flushed_f16 for part in parts),
        sum(part.flushed_bf16 for part in parts),
    )


def _alone(part: _Part, count: int) -> Statistics:
    return Statistics(
        count,
        part.minimum,
        part.maximum,
        _finite(part.mean),
        _finite(sqrt(part.squares / part.finite)),
        max(abs(part.minimum), abs(part.maximum)),
        part.smallest,
        part.zeros,
        part.nan,
        part.positive,
        part.negative,
        part.subnormal,
        part.beyond,
        part.flushed_f16,
        part.flushed_bf16,
    )


def _finite(number: float) -> float | None:
    """None where it is beyond all numbers."""
    return number if isfinite(number) else None
