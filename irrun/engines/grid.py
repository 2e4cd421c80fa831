"""Tensors on a grid: few values at even distances, each of which stands in a byte as its number, its code."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from irrun.engines.compressed import CompressedWeights
from irrun.records import NamedTuple
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

if TYPE_CHECKING:
    from irrun.engines.work import Post, Work

QUANTIZE = "Quantize-0"
"""The op that brings numbers onto a grid as codes; as numbers still FakeQuantize does."""

INTEGER = "Integer"
"""How the names of ops begin that take codes, and their zero point as their third input."""

PRODUCTS = frozenset(
    f"{kind}{op}" for kind in ("", INTEGER) for op in ("Convolution-1", "GroupConvolution-1", "MatMul-1")
)
"""Works that may be of codes, and of constant weights."""

LARGEST = float(np.finfo(np.float32).max)
"""Number of f32."""

MAX_TERMS = 1 << 16
"""Of a sum: so many products of codes less a zero point with bytes fit into 32 bits, half as many of two such codes."""

OFF_A_LEVEL = 2.0**-22
"""Tolerance, per level, of the distance of zero's place from a whole number: limits are rounded to f32. What lies
farther is another grid: sums of products would pile up the difference."""

FARTHEST = 2.0**20
"""Levels between the least limit and 0, at most, where numbers become levels by a factor and a shift: f32 has parts of
a level there still."""


class Grid(NamedTuple):
    """The f32 values scale * (code - zero) of codes of the element type `type`, "u8" or "i8".

    There is one `scale`, above 0, for all of the tensor, or one for each channel along axis 1.
    """

    type: str
    scale: tuple[float, ...]
    zero: int


class Coding(NamedTuple):
    """How numbers become codes on a `grid`: `low` and what is below is the code `first`, `high` and what is above the
    last one of `levels` at even distances. What lies between is rounded to the nearest level, halves to the even one
    or to the even code, which is its neighbour where `first` is odd.

    There is one of each for all of the tensor, or one for each channel along axis 1.
    """

    grid: Grid
    low: tuple[float, ...]
    high: tuple[float, ...]
    first: tuple[int, ...]
    levels: tuple[int, ...]

    def linear(self) -> tuple[Array, Array, Array, Array]:
        """Vectors of a factor and a shift, which bring a number to its code but for rounding, and of the least and the
        largest code, which are infinite where the type has no codes beyond them."""
        low, high, first, levels = (np.array(own, np.float64) for own in (self.low, self.high, self.first, self.levels))
        factor = (levels - 1) / (high - low)
        shift = first - low * factor
        shift = np.where(is_on_a_level(shift, levels), np.rint(shift), shift)
        limits = np.iinfo(numpy_dtype(self.grid.type))
        last = first + levels - 1
        return factor, shift, np.where(first > limits.min, first, -np.inf), np.where(last < limits.max, last, np.inf)


def is_on_a_level(place: Array, levels: Array | int) -> Array:
    """Whether places among so many levels are whole numbers, but for the rounding of limits."""
    on: Array = np.abs(place - np.rint(place)) <= levels * OFF_A_LEVEL
    return on


def numbers_along(axis: int, value: Array, shape: tuple[int, ...]) -> Array | None:
    """The numbers of a constant in f64: one, or one for each element along an axis of what it broadcasts to; None where
    it has others."""
    own = (*(1,) * (len(shape) - value.ndim), *value.shape)
    one = value.size == 1 or own[axis : axis + 1] == shape[axis : axis + 1] == (value.size,)
    return value.reshape(-1).astype(np.float64) if one else None


@np.errstate(invalid="ignore")
def rounding_of(
    work: Work, post: Post, axis: int, types: Collection[str] = ("f32",)
) -> tuple[Array, Array, Array, Array] | None:
    """How a FakeQuantize brings numbers to levels, but for the rounding, and back: a factor and a shift each, one of
    them or one for each place along an axis of the result. None where its limits are no constants of that many numbers
    and of some types, do not go upwards, or lie too close."""
    found = []
    for number in post.parameters:
        operand = work.inputs[number]
        if operand is None or operand.value is None or operand.type not in types:
            return None
        found.append(numbers_along(axis, operand.value, work.outputs[0].shape))
    bounds = [values for values in found if values is not None]
    if post.name != "FakeQuantize-1" or len(bounds) < 4 or not broadcasts_by_numpy(post.attrs):
        return None
    (low, high, first, last), steps = bounds, post.attrs["levels"] - 1
    if not ((low < high).all() and np.isfinite(high - low).all() and np.isfinite(last - first).all()):
        return None
    level = steps / (high - low)
    if not is_held(level) or np.abs(low * level).max() > FARTHEST:
        return None
    return level, -low * level, (last - first) / steps, first


def is_held(values: Array) -> bool:
    """Whether numbers are none that are infinite in f32, or NaN."""
    return bool((np.abs(values) <= LARGEST).all())


def is_of_codes(work: Work) -> bool:
    """Whether a work is a product of codes, of no more terms than 32 bits hold."""
    if work.name not in PRODUCTS:
        return False
    data, other = work.required(2)
    shape = other.shape
    if work.name.endswith("MatMul-1"):
        terms = shape[-1 if len(shape) < 2 or work.attrs["transpose_b"] else -2]
    else:
        terms = prod(shape[2 if "Group" in work.name else 1 :])
    most = MAX_TERMS if other.grid is None or not other.grid.zero else MAX_TERMS // 2
    return (data.codes is not None or work.name.startswith(INTEGER)) and terms <= most


def is_of_integers(weights: CompressedWeights, channels: Collection[int]) -> bool:
    """Whether codes can be multiplied by those of weights, of which `channels` are the axes of channels of the result:
    bytes with a sign, without a zero point, and with scales that are the same for all that is summed."""
    if weights.type != "i8" or weights.zero is not None or weights.stored != weights.shape or weights.scale is None:
        return False
    return all(size == 1 or axis in channels for axis, size in enumerate(weights.scale.shape))


def channels_of(rank: int, *, grouped: bool | None, transposed: bool) -> tuple[int, ...]:
    """The axes of weights that are channels of the result: of a convolution, if it is known whether that is `grouped`,
    or of a product of matrices, the second one of which may be `transposed`."""
    if grouped is not None:
        return (0, 1) if grouped else (0,)
    return () if rank < 2 else (rank - 2 if transposed else rank - 1,)


def multiplies_codes(work: Work) -> bool:
    """Whether a product has constant weights that codes can be multiplied by."""
    weights = work.required(2)[1].compressed
    if weights is None:
        return False
    grouped = None if work.name.endswith("MatMul-1") else "Group" in work.name
    transposed = work.attrs.get("transpose_b", False)
    return is_of_integers(weights, channels_of(len(weights.shape), grouped=grouped, transposed=transposed))


def factors_of(weights: CompressedWeights, grid: Grid, *, grouped: bool) -> Array:
    """What sums of products of codes are multiplied with, f64: one number, or one for each channel of the result."""
    assert weights.scale is not None
    scale = weights.scale.astype(np.float64)
    if grouped and len(grid.scale) > 1:  # one channel in each group
        scale = scale * np.reshape(grid.scale, (-1, *[1] * (scale.ndim - 1)))
    elif len(grid.scale) == 1:
        scale = scale * grid.scale[0]
    if scale.size == 1:
        return scale.reshape(1)
    axes = weights.shape[:2] if grouped else scale.shape if scale.ndim == 2 else scale.shape[:1]
    spread = np.broadcast_to(scale, (*axes, *scale.shape[len(axes) :]))
    return np.ascontiguousarray(spread).reshape(-1)
