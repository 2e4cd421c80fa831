"""What blocks of numbers are like, by numpy, and the form that this is written down in, whatever has found it."""

from __future__ import annotations

from functools import cache
from math import inf, isfinite
from typing import Any

import numpy as np

from irrun.engines.threads import Threads
from irrun.records import dataclass
from irrun.spec.dtypes import FLOAT_FORMATS, element_type
from irrun.spec.op import Array

HASHED = 1 << 16
"""Bytes that one number of a hash is made of."""

BLOCK = 1 << 16
"""Elements that are looked at together."""

ROW = 1024
"""Elements that are added up in their own type; the sums of rows are added up in f64."""

LARGEST_F16 = FLOAT_FORMATS["f16"].largest
FLUSHED_F16, FLUSHED_BF16 = (FLOAT_FORMATS[name].least / 2 for name in ("f16", "bf16"))
"""Half of the least subnormal number: what is not more becomes 0."""

PLAIN = (1e-15, 1e16)
"""Magnitudes between which squares of f32 are no subnormal numbers, and their sums finite."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How elements of a type are looked at: as `wide` floats, of which those below `normal` are subnormal in their own
    type, or as integers. `form` is that of what is found of a block.

    Of a form are `finite`, how many numbers are neither infinite nor NaN; of these the `mean`, the sum of the `squares`
    of how far they are from it, `minimum`, `maximum`, and the magnitude that is the `smallest` but 0: those of integers
    are integers, the magnitude less 1 modulo 2**64; those of floats are f64, and infinite where there are none; and
    COUNTS. The `sum` is what a hash is made of, see `sums`.
    """

    type: str
    wide: np.dtype[Any]
    normal: float
    form: np.dtype[Any]

    @staticmethod
    @cache
    def of(dtype: np.dtype[Any]) -> Kind:
        type = element_type(dtype)
        if type[0] in "iu" or type == "boolean":
            return Kind(type, np.dtype(np.float32), 0.0, _form("u8" if type[0] == "u" else "i8", "u8"))
        if type in ("f16", "f32", "f64"):
            wide, normal = np.dtype(np.float64 if dtype.itemsize == 8 else np.float32), np.finfo(dtype).smallest_normal
        else:
            import ml_dtypes

            wide, normal = np.dtype(np.float32), ml_dtypes.finfo(dtype).smallest_normal  # type: ignore[no-untyped-call]
        return Kind(type, wide, float(normal), _form("f8", "f8"))


Found = tuple[Any, ...]
"""A row of the form of a kind, as Python's numbers. Its `sum` is 0 unless kernels have found it."""

_NONE = (1 << 64) - 1

COUNTS = ("zeros", "nan", "positive", "negative", "subnormal", "beyond", "flushed_f16", "flushed_bf16")


def _form(extreme: str, magnitude: str) -> np.dtype[Any]:
    fields = [("sum", "u8"), ("finite", "i8"), ("mean", "f8"), ("squares", "f8")]
    fields += [("minimum", extreme), ("maximum", extreme), ("smallest", magnitude)]
    return np.dtype([*fields, *((name, "i8") for name in COUNTS)])


@cache
def factors() -> Array:
    """Those of the words of 8 bytes in HASHED bytes, and of as many more as a line of a cache has."""
    state = np.arange(1, (HASHED + 64) // 8 + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state ^ (state >> np.uint64(31))) | np.uint64(1)


def sums(flat: Array) -> Array:
    """A number for each HASHED bytes, u64: the sum of their words times `factors`, plus how many bytes there are."""
    content = flat.view(np.uint8)
    whole, rest = divmod(content.size, HASHED)
    found = np.zeros(whole + bool(rest), np.uint64)
    if whole:
        words = content[: whole * HASHED].view("<u8").reshape(whole, -1)
        np.dot(words, factors()[: words.shape[1]], out=found[:whole])
        found[:whole] += np.uint64(HASHED)
    if rest:
        last = np.zeros(-(-rest // 8), "<u8")
        last.view(np.uint8)[:rest] = content[-rest:]
        found[whole] = np.dot(last, factors()[: last.size]) + np.uint64(rest)
    return found


def counted(content: Array) -> Array:
    """How often each byte is there, i64 [256]."""
    found = np.zeros(256, np.int64)
    for start in range(0, content.size, BLOCK):
        found += np.bincount(content[start : start + BLOCK], minlength=256)
    return found


def of_counts(counts: Array, dtype: np.dtype[Any]) -> Found:
    """What elements of one byte are like of which there are so many of each."""
    kind = Kind.of(dtype)
    codes = counts.nonzero()[0]
    counts, bytes = counts[codes], codes.astype(np.uint8)
    if kind.form["minimum"].kind != "f":
        numbers = (bytes if kind.type == "boolean" else bytes.view(dtype)).astype(np.int64)
        sizes = np.abs(numbers)
        smallest = sizes.min(initial=256, where=sizes > 0) - 1 if sizes.any() else _NONE
        whole = int(numbers.min()), int(numbers.max()), int(smallest)
        return *_spread(counts, numbers), *whole, int(counts[sizes == 0].sum()), *(0,) * 7
    values = bytes.view(dtype).astype(np.float64)
    strange = [counts[here].sum() for here in (np.isnan(values), values == inf, values == -inf)]
    finite = np.isfinite(values)
    counts, own = counts[finite], values[finite]
    sizes = np.abs(own)
    tiny = [sizes < kind.normal, sizes <= FLUSHED_F16, sizes <= FLUSHED_BF16]
    zeros, subnormal, f16, bf16 = (
        int(counts[here].sum()) for here in (sizes == 0, *((sizes > 0) & here for here in tiny))
    )
    beyond = int(counts[sizes > LARGEST_F16].sum())
    edges = own.min(initial=inf), own.max(initial=-inf), sizes.min(initial=inf, where=sizes > 0)
    least, most, smallest = map(float, edges)
    rare = (*map(int, strange), subnormal, beyond, f16, bf16)
    return *_spread(counts, own), least + 0.0, most + 0.0, smallest, zeros, *rare


def _spread(counts: Array, numbers: Array) -> tuple[int, int, float, float]:
    """The first fields of what is found of so many of each number."""
    finite = int(counts.sum())
    mean = float(np.dot(counts, numbers)) / max(finite, 1)
    return 0, finite, mean, float(np.dot(counts, (numbers - mean) ** 2))


def of_blocks(flat: Array, threads: Threads) -> Found:
    """What elements of more than a byte are like, BLOCK by BLOCK."""
    kind = Kind.of(flat.dtype)
    look = _integers if flat.dtype.kind in "iu" else _floats
    starts = range(0, flat.size, BLOCK)
    found: list[Any] = [None] * len(starts)

    def piece(number: int, _: int) -> None:
        with np.errstate(all="ignore"):
            for index in range(number, len(starts), pieces):
                found[index] = look(flat[starts[index] : starts[index] + BLOCK], kind)

    pieces = min(len(starts), threads.count)
    threads.run(piece, pieces)
    return found[0] if len(found) == 1 else _together(np.array(found, kind.form))


def _together(found: Array) -> Found:
    counts = [int(found[name].sum()) for name in COUNTS]
    finite = int(found["finite"].sum())
    weights, means = found["finite"] / max(finite, 1), found["mean"]
    with np.errstate(all="ignore"):
        mean = means[0] + np.dot(weights, means - means[0])
        squares = found["squares"].sum() + finite * np.dot(weights, (means - mean) ** 2)
    edges = found["minimum"].min(), found["maximum"].max(), found["smallest"].min()
    return 0, finite, float(mean), float(squares), *(edge.item() for edge in edges), *counts


def _integers(numbers: Array, _: Kind) -> Found:
    doubles = numbers.astype(np.float64)
    mean = float(doubles.mean())
    doubles -= mean
    squares = float(np.dot(doubles, doubles))
    sizes = np.abs(numbers).view(f"u{numbers.itemsize}")  # the least number of all is its own, and right without sign
    zeros = numbers.size - int(np.count_nonzero(sizes))
    beyond = int(np.count_nonzero(sizes > int(LARGEST_F16))) if sizes.max() > LARGEST_F16 else 0
    less = int((sizes - sizes.dtype.type(1)).min()) if zeros < numbers.size else _NONE  # of 0 the largest of all
    edges = int(numbers.min()), int(numbers.max()), less
    return 0, numbers.size, mean, squares, *edges, zeros, 0, 0, 0, 0, beyond, 0, 0


def _floats(block: Array, kind: Kind) -> Found:
    numbers = block.astype(kind.wide, copy=False)
    least, most = float(np.minimum.reduce(numbers)), float(np.maximum.reduce(numbers))
    zeros = subnormal = beyond = f16 = bf16 = nan = positive = negative = 0
    if not (isfinite(least) and isfinite(most)):
        nan = int(np.count_nonzero(np.isnan(numbers)))
        positive, negative = int(np.count_nonzero(numbers == inf)), int(np.count_nonzero(numbers == -inf))
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return 0, 0, 0.0, 0.0, inf, -inf, inf, 0, nan, positive, negative, 0, 0, 0, 0
        least, most = float(numbers.min()), float(numbers.max())
    limits = _Limits.of(numbers.dtype)
    magnitudes = np.bitwise_and(numbers.view(limits.unsigned), limits.magnitude)
    smallest, less = np.minimum.reduce(magnitudes), limits.unsigned.type(0)
    if smallest == 0:
        zeros = int(np.count_nonzero(magnitudes == 0))
        less = limits.unsigned.type(1)
        np.subtract(magnitudes, less, out=magnitudes)  # 0 becomes the largest of all, and others keep their order
        smallest = np.minimum.reduce(magnitudes) + less
    size = float(smallest.view(numbers.dtype)) if zeros < numbers.size else inf
    if size < kind.normal:
        subnormal = int(np.count_nonzero(magnitudes < limits.unsigned.type(bits(kind.normal, numbers.dtype)) - less))
    if size <= FLUSHED_F16:
        f16 = int(np.count_nonzero(magnitudes <= limits.flushed_f16 - less))
    if size <= FLUSHED_BF16:
        bf16 = int(np.count_nonzero(magnitudes <= limits.flushed_bf16 - less))
    if most > LARGEST_F16 or least < -LARGEST_F16:
        beyond = int(np.count_nonzero((numbers > LARGEST_F16) | (numbers < -LARGEST_F16)))
    mean, squares = _moments(numbers, max(-least, most))
    edges = least + 0.0, most + 0.0, size
    return 0, numbers.size, mean, squares, *edges, zeros, nan, positive, negative, subnormal, beyond, f16, bf16


def _moments(numbers: Array, largest: float) -> tuple[float, float]:
    """The mean of finite floats, and the sum of the squares of how far they are from it; `largest` is a magnitude."""
    if PLAIN[0] < largest < PLAIN[1]:
        mean = _total(numbers) / numbers.size
        square, around = mean * mean * numbers.size, float(np.dot(numbers, numbers))
        if 2 * square > around:  # so much of it is the mean's that it would cancel out
            apart = numbers - numbers.dtype.type(mean)
            shift = _total(apart) / numbers.size
            mean, around = float(numbers.dtype.type(mean)) + shift, float(np.dot(apart, apart))
            square = shift * shift * numbers.size
        return mean, around - square
    if not largest:
        return 0.0, 0.0
    scaled = numbers.astype(np.float64) / largest
    return float(scaled.mean()) * largest, float(scaled.var()) * numbers.size * largest * largest


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

    unsigned: np.dtype[Any]
    magnitude: Any
    flushed_f16: Any
    flushed_bf16: Any

    @staticmethod
    @cache
    def of(dtype: np.dtype[Any]) -> _Limits:
        unsigned = np.dtype(f"u{dtype.itemsize}")
        flushed = [unsigned.type(bits(limit, dtype)) for limit in (FLUSHED_F16, FLUSHED_BF16)]
        return _Limits(unsigned, unsigned.type(np.iinfo(unsigned).max >> 1), *flushed)


@cache
def bits(number: float, dtype: np.dtype[Any]) -> int:
    return int(np.array([number], dtype).view(f"u{dtype.itemsize}")[0])
