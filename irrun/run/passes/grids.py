"""Which tensors of a program lie on a grid, and weights that do: what integers can be multiplied with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compressed import CompressedWeights
from irrun.engines.grid import FARTHEST, LARGEST, Coding, Grid, is_on_a_level
from irrun.run.internal_ops import LEVELS
from irrun.run.program import Instruction, Program
from irrun.spec.op import Array
from irrun.spec.traits import (
    Bounded,
    Convolving,
    Joining,
    MatrixProduct,
    Permutation,
    Quantizing,
    Reshaping,
    Resizing,
    Selecting,
    Splitting,
    broadcasts_by_numpy,
)

KEEPING = (Permutation, Reshaping, Selecting)
"""Traits of ops whose results have no values but those of their first input, wherever these stand."""

Value = Callable[[int | None], Array | None]
"""The array of a constant tensor, None for one that is not."""


class Grids:
    """The grids of a program's tensors, as its instructions of quantizations say; `value` has its constants."""

    def __init__(self, program: Program, value: Value) -> None:
        self._program, self._value = program, value
        self.makers = program.makers()
        self._found: dict[int | None, Grid | None] = {}
        self._codings: dict[Instruction, Coding | None] = {}
        self._signed = self._multiplying()

    def of(self, number: int | None) -> Grid | None:
        """The grid of a tensor; None where it is on none that is known."""
        if number not in self._found:
            maker = self.makers.get(number)
            self._found[number] = None if maker is None or number is None else self._made(maker, number)
        return self._found[number]

    def coding(self, instruction: Instruction) -> Coding | None:
        """How a quantization makes codes; None where there is no grid that has its values and zero."""
        if instruction not in self._codings:
            limits = self.limits(instruction)
            nonnegative = self._is_nonnegative(instruction.inputs[0])
            signed = instruction in self._signed
            self._codings[instruction] = (
                None
                if limits is None
                else coding_between(limits, levels_of(instruction), nonnegative=nonnegative, signed=signed)
            )
        return self._codings[instruction]

    def _multiplying(self) -> set[Instruction]:
        """The quantizations whose results other tensors are multiplied by: processors multiply by signed bytes."""
        products = [made for made in self._program.instructions if made.op.trait(MatrixProduct) is not None]
        seen: set[int] = set()
        found: set[Instruction] = set()
        waiting = [made.inputs[1] for made in products]
        while waiting:
            number = waiting.pop()
            maker = None if number in seen else self.makers.get(number)
            if number is None or maker is None:
                continue
            seen.add(number)
            if maker.op.trait(Quantizing) is not None:
                found.add(maker)
            else:
                waiting += kept_by(maker, number, self._program)
        return found

    @np.errstate(all="ignore")
    def limits(self, instruction: Instruction) -> list[Array] | None:
        """The four limits of a quantization, f32, where they are constant and go along axis 1 at most."""
        trait = instruction.op.trait(Quantizing)
        if trait is None or not broadcasts_by_numpy(instruction.attrs):
            return None
        found = [self._value(instruction.port(name)) for name in trait.limits]
        limits = [np.asarray(value, np.float32) for value in found if value is not None]
        shape = self._program.tensors[instruction.outputs[0]].shape
        if len(limits) < len(found) or shape is None or not _along_channels(limits, len(shape)):
            return None
        if not all(limit.size for limit in limits):
            return None
        vectors = np.broadcast_arrays(*(limit.reshape(-1) for limit in limits))
        same = all(np.ptp(vector) == 0 for vector in vectors)
        return [vector[:1] if same else vector for vector in vectors]

    def _is_nonnegative(self, number: int | None) -> bool:
        maker = self.makers.get(number)
        trait = None if maker is None else maker.op.trait(Bounded)
        return maker is not None and trait is not None and trait.least(maker.attrs) >= 0

    def _made(self, maker: Instruction, number: int) -> Grid | None:
        if not maker.plain or self._program.tensors[number].type != "f32":
            return None
        if maker.op.trait(Quantizing) is not None:
            coding = self.coding(maker)
            return None if coding is None else coding.grid
        sources = kept_by(maker, number, self._program)
        grids = {self.of(source) for source in sources}
        grid = next(iter(grids)) if len(grids) == 1 else None
        return grid if grid is not None and len(grid.scale) == 1 else None


def kept_by(maker: Instruction, number: int, program: Program) -> tuple[int | None, ...]:
    """The inputs of `maker` whose values are all that its output `number` has; none where it has others."""
    if maker.op.trait(Joining) is not None:
        return maker.inputs
    selecting = maker.op.trait(Selecting)
    if selecting is not None:
        data, result = (program.tensors[n or 0] for n in (maker.inputs[0], maker.outputs[0]))
        known = data.static and result.static
        if not known or not selecting.whole(maker.attrs, data.shape or (), result.shape or ()):
            return ()
    resizing = maker.op.trait(Resizing)
    if resizing is not None:
        return maker.inputs[:1] if resizing.keeps(maker.attrs) else ()
    kept = any(maker.op.trait(kind) for kind in KEEPING) and maker.outputs[0] == number
    return maker.inputs[:1] if kept or maker.op.trait(Splitting) is not None else ()


def levels_of(instruction: Instruction) -> int:
    """How many levels a quantization has."""
    trait = instruction.op.trait(Quantizing)
    assert trait is not None
    return int(instruction.attrs[trait.levels])


@np.errstate(all="ignore")
def coding_between(
    limits: list[Array], levels: int, *, nonnegative: bool = False, signed: bool = False
) -> Coding | None:
    """How what lies between two limits becomes codes of `levels` between two others, vectors of one or one a channel.

    Where all of it is `nonnegative`, no codes are needed for what is below zero. Others are `signed` if that is wanted.
    """
    low, high, first, last = limits
    span = last.astype(np.float64) - first
    if levels > LEVELS or not (np.all(low < high) and np.all(span > 0) and np.isfinite(span).all()):
        return None
    least = low.astype(np.float64)
    width = high - least
    if not (np.isfinite(width).all() and np.all(levels - 1 <= width * LARGEST)):  # factors are f32
        return None
    if not np.all(np.abs(least) * (levels - 1) <= width * FARTHEST):
        return None
    scale = span / (levels - 1)
    place = -first / scale  # of zero among the levels
    zero = np.rint(place)
    scales = tuple(map(float, scale.astype(np.float32)))
    if not is_on_a_level(place, levels).all() or not all(scales) or not np.isfinite(scales).all():
        return None
    if zero.min() < 0 or zero.max() > levels - 1:
        return None
    if nonnegative and not signed and zero.any() and np.array_equal(low, first) and np.array_equal(high, last):
        if (zero == levels - 1).any():
            return None
        rest = tuple(int(levels - own) for own in zero)
        return Coding(Grid("u8", scales, 0), (0.0,) * len(rest), tuple(map(float, high)), (0,) * len(rest), rest)
    if np.ptp(zero):
        return None
    # where codes of both signs have zero at 0 they are signed: so it need not be subtracted
    start = -int(zero[0]) if 0 < zero[0] <= 128 and levels - 1 - zero[0] <= 127 else -128 * signed
    grid = Grid("i8" if start < 0 else "u8", scales, int(zero[0]) + start)
    count = len(scales)
    return Coding(grid, tuple(map(float, low)), tuple(map(float, high)), (start,) * count, (levels,) * count)


def integer_weights(weights: CompressedWeights, reader: Instruction) -> CompressedWeights | None:
    """Weights of a product as codes of i8 whose zero is 0, scaled for each of its columns or features alone; None where
    they cannot be so, or are several matrices or a vector."""
    if reader.op.trait(MatrixProduct) is not None and len(weights.shape) != 2:
        return None
    if weights.shape != weights.stored or weights.type not in ("i8", "u8", "i4", "u4"):
        return None
    numbers = weights.plain().astype(np.int16)
    if weights.zero is not None:
        if (weights.zero != np.rint(weights.zero)).any() or np.abs(weights.zero).max() > 255:
            return None
        numbers -= weights.zero.astype(np.int16)
    if numbers.min() < -128 or numbers.max() > 127:
        return None
    scale = np.ones((1,) * len(weights.shape), np.float32) if weights.scale is None else weights.scale
    if not np.isfinite(scale).all():  # of which zero is NaN
        return None
    if any(size > 1 for axis, size in enumerate(scale.shape) if axis not in _scaled_axes(reader)):
        return None
    codes = numbers.astype(np.int8).reshape(-1).view(np.uint8)
    return replace(weights, type="i8", codes=codes, scale=scale, zero=None)


@np.errstate(all="ignore")
def quantized_weights(array: Array, limits: list[Array], levels: int) -> CompressedWeights | None:
    """What a quantization makes of constant weights; `limits` broadcast to these."""
    low, high, first, last = (np.asarray(limit, np.float32) for limit in limits)
    span = last.astype(np.float64) - first
    if levels > LEVELS or not (np.all(low < high) and np.all(span > 0)) or not array.size:
        return None
    rank = array.ndim
    scale = np.float32(span / (levels - 1))
    zeros = -first / (span / (levels - 1))
    zero = np.rint(zeros)
    if not np.isfinite(zeros).all() or not is_on_a_level(zeros, levels).all() or not scale.all():
        return None
    level = np.clip(np.rint((array - low) / (high - low) * np.float32(levels - 1)), 0, levels - 1)
    if not np.isfinite(level).all():
        return None

    def brought(factor: Any) -> Array:
        return np.ascontiguousarray(factor, np.float32).reshape((1,) * (rank - factor.ndim) + factor.shape)

    codes = level.astype(np.uint8).reshape(-1)
    return CompressedWeights("u8", codes, array.shape, array.shape, brought(scale), brought(zero))


def _scaled_axes(reader: Instruction) -> tuple[int, ...]:
    """The axes of a product's weights along which its results have scales of their own."""
    trait = reader.op.trait(MatrixProduct)
    if trait is not None:
        return (0,) if reader.attrs[trait.transpose_b] else (1,)
    convolved = reader.op.trait(Convolving)
    return () if convolved is None else (0, 1) if convolved.grouped else (0,)


def _along_channels(limits: list[Array], rank: int) -> bool:
    """Whether limits are the same for all of a tensor, but for its channels."""
    shapes = [(1,) * (rank - limit.ndim) + limit.shape for limit in limits]
    return all(prod(shape) == 1 or (len(shape) > 1 and prod(shape) == shape[1]) for shape in shapes)
