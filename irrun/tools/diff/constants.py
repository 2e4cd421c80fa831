"""The constants of models: samples that tell them apart, and how the values of two differ; read a piece at a time.

Nothing is mapped into memory: weights of gigabytes pass through a buffer, and only once two of them have to be equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from irrun.diagnostics import Diagnostic, IRError
from irrun.ir.graph import Layer, Model
from irrun.ir.weights import Blob, WeightsError, decode
from irrun.records import dataclass
from irrun.spec.dtypes import ELEMENT_TYPES, NF4, numpy_dtype

Array = np.ndarray[Any, Any]

RTOL, ATOL = 1e-3, 1e-5
"""How far `close` constants may be apart, as a part of the number and as a number."""

ALIKE = 1e-2
"""How far mean, deviation and bounds of constants with alike `stats` may be apart, in standard deviations."""

STRUCTURE = 16
"""Elements up to which a constant says what to do, as axes and sizes do, and is no weight."""

CHUNK = 1 << 16
"""Elements that are looked at together, in the cache: a multiple of 8, so that packed ones begin with a byte."""

PIECE = 16 * CHUNK
"""Elements that are read at once."""

_SINGLE = {"f32", "f16", "bf16", "f8e4m3", "f8e5m2"}
"""Types whose differences are exact enough in f32, which takes half the time."""

_WHOLE = 256
"""Bytes up to which all of a constant is its sample; of others, pieces of it are."""

_PIECES = 4


@dataclass(frozen=True, slots=True)
class Delta:
    """How the `elements` of two constants differ: so many of them, by `largest` at most and `mean` on average over all.

    `largest` is at the flat index `place`, where they are `before` and `after`; infinite where only one is finite.
    With `rounded` each element of the narrower type is the one of the wider type, rounded. With `close` they lie within
    the tolerance, with `alike` their statistics do.
    """

    elements: int
    differing: int
    largest: float
    mean: float
    place: int
    before: object
    after: object
    rounded: bool
    close: bool
    alike: bool


class Constants:
    """The constants of one model; where there are no weights, or with `structure_only`, their types and shapes."""

    def __init__(self, model: Model, structure_only: bool = False) -> None:
        self._weights = model.weights
        self._structure_only = structure_only

    def blob(self, layer: Layer) -> Blob | None:
        """What the file says of a constant, None where that cannot be read."""
        with suppress(WeightsError):
            return self._weights.check(layer)
        return None

    def compared(self, layer: Layer) -> bool:
        """Whether the values of a constant count, and are there."""
        blob = None if self._structure_only else self.blob(layer)
        return blob is not None and (not blob.elements or self._weights.size is not None)

    def sample(self, layer: Layer) -> bytes | None:
        """Some bytes that tell constants apart, all of a small one; None where its values do not count."""
        blob = self.blob(layer)
        if blob is None or not self.compared(layer):
            return None
        size = blob.end - blob.offset if blob.element_type != "string" else blob.size
        if size <= _WHOLE:
            return self._read(blob, 0, size).tobytes()
        step = (size - _WHOLE // _PIECES) // (_PIECES - 1)
        return b"".join(self._read(blob, step * n, _WHOLE // _PIECES).tobytes() for n in range(_PIECES))

    def same_place(self, layer: Layer, other: Constants, there: Layer) -> bool:
        """Whether both are the same bytes of one file."""
        mine, theirs = self.blob(layer), other.blob(there)
        ours, others = self._weights, other._weights
        if mine is None or theirs is None or mine[:5] != theirs[:5]:
            return False
        if ours is others or mine.offset >= min(ours.stored or 0, others.stored or 0):  # or was added in memory
            return ours is others
        if ours.content is not None or others.content is not None:
            return ours.content is others.content
        try:
            return ours.path is not None and others.path is not None and ours.path.samefile(others.path)
        except OSError:
            return False

    def values(self, layer: Layer) -> Array:
        """All elements of a constant that is not large, as a copy. Raises IRError where they cannot be read."""
        blob = self.blob(layer)
        assert blob is not None
        if blob.element_type == "string":
            return self._weights.constant(layer)
        parts = [self._decoded(blob, raw, count) for raw, count in self.pieces(layer)]
        return (np.concatenate(parts) if parts else np.zeros(0, numpy_dtype(blob.element_type))).reshape(blob.shape)

    def pieces(self, layer: Layer) -> Iterator[tuple[Array, int]]:
        """The bytes of a constant of numbers, for so many elements at a time. Raises IRError as `values` does."""
        blob = self.blob(layer)
        assert blob is not None
        done = 0
        for first in range(0, blob.elements, PIECE):
            count = min(blob.elements - first, PIECE)
            size = blob.needed - done if first + count == blob.elements else PIECE * _bits(blob) // 8
            yield self._read(blob, done, size), count
            done += size

    def decoded(self, layer: Layer, raw: Array, count: int) -> Array:
        """The elements in what `pieces` gives."""
        blob = self.blob(layer)
        assert blob is not None
        return self._decoded(blob, raw, count)

    def _decoded(self, blob: Blob, raw: Array, count: int) -> Array:
        piece = blob._replace(offset=0, shape=(count,), elements=count, needed=len(raw))
        array = decode(raw.data, piece)
        return np.asarray(NF4)[array] if blob.element_type == "nf4" else array

    def _read(self, blob: Blob, start: int, size: int) -> Array:
        """So many bytes of a blob. Raises IRError."""
        try:
            return np.frombuffer(self._weights.read(blob._replace(offset=blob.offset + start, needed=size)), np.uint8)
        except WeightsError as error:
            raise IRError([Diagnostic(error.code, str(error), file=str(self._weights.path))]) from None


def _bits(blob: Blob) -> int:
    groups = {"u3": 3, "u6": 6}  # bits of an element in groups of 3 bytes
    return groups.get(blob.element_type) or ELEMENT_TYPES[blob.element_type].bits


def compare(before: Constants, old: Layer, after: Constants, new: Layer, stats: bool = False) -> Delta | None:
    """How the elements of two constants of as many elements differ; None where their type and all bits are the same.

    With `stats`, their statistics are compared. Raises IRError where they cannot be read.
    """
    if before.same_place(old, after, new):
        return None
    mine, theirs = before.blob(old), after.blob(new)
    assert mine is not None
    assert theirs is not None
    if "string" in (mine.element_type, theirs.element_type):
        return _compare_texts(before.values(old), after.values(new), mine.element_type == theirs.element_type)
    same_type = mine.element_type == theirs.element_type
    tally = _Tally(mine.element_type, theirs.element_type, stats)
    for (x, count), (y, _) in zip(before.pieces(old), after.pieces(new), strict=True):
        if same_type and not stats and _equal_bytes(x, y):
            tally.elements += count
            continue
        first, second = before.decoded(old, x, count), after.decoded(new, y, count)
        for start in range(0, count, CHUNK):
            tally.add(first[start : start + CHUNK], second[start : start + CHUNK])
    return None if same_type and not tally.differing else tally.delta()


def _equal_bytes(x: Array, y: Array) -> bool:
    if len(x) % 8 == 0 and len(x) == len(y):
        return bool((x.view(np.uint64) == y.view(np.uint64)).all())
    return np.array_equal(x, y)


def _compare_texts(x: Array, y: Array, same_type: bool) -> Delta | None:
    wrong = np.asarray(x.ravel().astype(str) != y.ravel().astype(str))
    if same_type and not wrong.any():
        return None
    place = int(np.argmax(wrong)) if wrong.size else 0
    values = (str(x.flat[place]), str(y.flat[place])) if wrong.size else ("", "")
    return Delta(wrong.size, int(wrong.sum()), math.inf, math.inf, place, *values, False, False, False)


class _Tally:
    """Counts and sums over pieces of two constants."""

    def __init__(self, before: str, after: str, stats: bool) -> None:
        self.elements = self.differing = self.place = 0
        self._type: Any = np.float32 if {before, after} <= _SINGLE else np.float64
        self._same_type, self._stats = before == after, stats
        self._largest, self._sum = -1.0, 0.0
        self._worst: tuple[object, object] = 0.0, 0.0
        self._rounded = not self._same_type
        self._close = True
        self._moments = np.zeros((2, 2))
        self._bounds = np.array([[math.inf, -math.inf]] * 2)
        self._not_finite = np.zeros((2, 3), np.int64)  # NaN, infinity and -infinity

    def add(self, x: Array, y: Array) -> None:
        first, second = x.astype(self._type, copy=False), y.astype(self._type, copy=False)
        with np.errstate(all="ignore"):
            apart = np.abs(first - second)
            if not np.isfinite(apart).all():
                same = (first == second) | (np.isnan(first) & np.isnan(second))
                apart = np.where(same, 0, np.where(np.isfinite(apart), apart, np.inf))
            self._close = self._close and bool((apart <= ATOL + RTOL * np.abs(first)).all())
            self._rounded = self._rounded and _is_rounded(x, y)
        worst = int(np.argmax(apart))
        if apart[worst] > self._largest:
            self._largest, self.place = float(apart[worst]), self.elements + worst
            integers = x.dtype.kind in "biu" and y.dtype.kind in "biu"
            self._worst = (
                (x[worst].item(), y[worst].item()) if integers else (float(first[worst]), float(second[worst]))
            )
        bits = f"u{x.dtype.itemsize}"
        wrong = x.view(bits) != y.view(bits) if self._same_type else apart > 0
        self.differing += int(np.count_nonzero(wrong))
        self._sum += float(apart.sum(dtype=np.float64))
        self.elements += len(x)
        for side, array in enumerate((first, second) if self._stats else ()):
            finite = array[np.isfinite(array)].astype(np.float64)
            if finite.size < array.size:
                self._not_finite[side] += np.isnan(array).sum(), np.isposinf(array).sum(), np.isneginf(array).sum()
            if finite.size:
                self._moments[side] += finite.sum(), np.square(finite).sum()
                low, high = self._bounds[side]
                self._bounds[side] = min(low, finite.min()), max(high, finite.max())

    def delta(self) -> Delta:
        count = max(self.elements, 1)
        self._bounds[~np.isfinite(self._bounds)] = 0.0
        mean = self._moments[:, 0] / count
        spread = np.sqrt(np.maximum(self._moments[:, 1] / count - mean**2, 0.0))
        room = ALIKE * max(float(spread.max()), 1e-12)
        figures = np.column_stack([mean, spread, self._bounds])
        near = bool((np.abs(figures[0] - figures[1]) <= room).all() and np.ptp(self._not_finite, axis=0).max() == 0)
        alike = near if self.elements and self._stats else False
        largest = max(self._largest, 0.0)
        return Delta(
            self.elements,
            self.differing,
            largest,
            self._sum / count,
            self.place,
            *self._worst,
            self._rounded,
            self._close,
            alike,
        )


def _is_rounded(x: Array, y: Array) -> bool:
    """Whether the elements of the narrower type are those of the other one, rounded."""
    if x.dtype.kind in "biu" or y.dtype.kind in "biu":
        return bool((x.astype(np.float64) == y.astype(np.float64)).all())
    narrow, wide = (y, x) if x.dtype.itemsize > y.dtype.itemsize else (x, y)
    near = wide.astype(narrow.dtype)
    bits = f"u{narrow.dtype.itemsize}"
    if (near.view(bits) == narrow.view(bits)).all():
        return True
    first, second = near.astype(np.float64), narrow.astype(np.float64)
    return bool(((first == second) | (np.isnan(first) & np.isnan(second))).all())
