"""What elements of a tensor may be like: the words behind `has` in a condition, and the types that can be so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.records import dataclass
from irrun.spec.op import FLOAT, Array

REALS = FLOAT | {"f8e4m3", "f8e5m2", "f8e8m0"}
WIDE = FLOAT | {"u32", "i64", "u64"}
_WITH_A_LOWEST = frozenset({"f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
_FINITE = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Property:
    """`test` says which elements, or rows, of an array have it; `types` are those that can, None for all of numbers."""

    test: Callable[[Array], Any]
    types: frozenset[str] | None = None

    def holds(self, array: Array) -> bool:
        """Whether any of them has."""
        with np.errstate(all="ignore"):
            return bool(np.any(self.test(array)))


def _reals(array: Array) -> Array:
    """Floats that numpy's functions take, also of the types that are not its own."""
    return array if array.dtype.kind == "f" and array.dtype.itemsize > 1 else array.astype(np.float64)


def _beyond_i32(array: Array) -> Any:
    return (array >= 2**31) | (array < -(2**31))


def _below_a_half(array: Array) -> Any:
    """By less than a sum of half a number tells, in f32."""
    size = np.abs(_reals(array)).astype(np.float32)
    part = size - np.floor(size)
    return (part < 0.5) & (np.floor(size + np.float32(0.5)) > np.floor(size))


def _next_to_1(array: Array) -> Any:
    size = np.abs(_reals(array))
    return (size > 0.99) & (size < 1)


def _lowest(array: Array) -> Any:
    return array == (np.finfo if array.dtype.kind == "f" else np.iinfo)(array.dtype).min


def _several(array: Array) -> Any:
    """A row, along the last axis, in which more than one number is above 0."""
    return np.sum(_reals(array) > 0, axis=-1) > 1


def _hides_all(array: Array) -> Any:
    """A row, along the last axis, in which nothing is true."""
    if not array.ndim or not array.shape[-1]:
        return False
    return ~np.any(array, axis=-1)


def _falling(array: Array) -> Any:
    return np.diff(array.ravel()) < 0


def _labels_twice(array: Array) -> bool:
    """An equation of Einsum without a result, and with an operand that has a label twice."""
    if array.dtype.kind != "U":
        return False
    operands, _, result = str(array).partition("->")
    return not result and any(len(set(labels)) < len(labels) for labels in operands.replace(".", "").split(","))


PROPERTIES = {
    "nan": Property(lambda array: np.isnan(_reals(array)), REALS),
    "infinity": Property(lambda array: np.isinf(_reals(array)), REALS),
    "+infinity": Property(lambda array: _reals(array) == np.inf, REALS),
    "-infinity": Property(lambda array: _reals(array) == -np.inf, REALS),
    "negative numbers": Property(lambda array: array < 0, None),
    "fractions": Property(lambda array: np.isfinite(_reals(array)) & (_reals(array) % 1 != 0), REALS),
    "odd numbers": Property(lambda array: array % 2 == 1, None),
    "numbers out of order": Property(_falling, None),
    "labels twice and no result": Property(_labels_twice, None),
    "blanks": Property(lambda array: array.dtype.kind == "U" and np.char.find(array, " ") >= 0, None),
    "numbers beyond i32": Property(_beyond_i32, WIDE),
    "numbers beyond 2**24": Property(lambda array: np.abs(array.astype(np.float64)) > 2**24, WIDE | {"i32"}),
    "numbers beyond f32": Property(lambda array: (np.abs(array) > _FINITE) & ~np.isinf(array), frozenset({"f64"})),
    "numbers just below a half": Property(_below_a_half, REALS),
    "the lowest number of its type": Property(_lowest, _WITH_A_LOWEST),
    "numbers next to 1": Property(_next_to_1, REALS),
    "rows of several chances": Property(_several, REALS),
    "rows that hide all": Property(_hides_all, frozenset({"boolean"})),
}
