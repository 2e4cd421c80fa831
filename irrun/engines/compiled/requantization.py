"""What becomes of sums of products of codes, or of numbers: scales, a bias, posts, and codes or numbers on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import Strided, channels_last, dense_strides, unless_so
from irrun.engines.compiled.code import LANES
from irrun.engines.compiled.ending import AFFINE, AXES, CODES, LEAST, MOST, ROUNDED, STAYS, Ending
from irrun.engines.compiled.posts import KernelOperand, KernelPost, kernel_posts, operand_arguments
from irrun.engines.compiled.quantization import FAKE_QUANTIZE
from irrun.engines.compiled.stages import (
    WHOLE,
    AddedCodes,
    Affine,
    Given,
    Limits,
    Posted,
    Rounded,
    Stage,
    is_finite,
    magnitude,
    simplified,
)
from irrun.engines.grid import QUANTIZE, Coding, is_held, numbers_along, rounding_of
from irrun.engines.memory import ITEM, aligned, data_address
from irrun.engines.work import Layout, Operand, Post, Work
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

MAX_LEVELS = 1 << 16
"""Of a grid that numbers are rounded to."""


@dataclass(frozen=True, slots=True)
class Requantization:
    """An ending, and what it reads: tables by their names, operands in the order of the steps that have one, and of
    these the ones that want another layout, and those that are codes."""

    ending: Ending
    tables: dict[str, Array]
    operands: tuple[KernelOperand, ...]
    wants: dict[int, Layout]
    coded: frozenset[int]

    def arguments(self, inputs: Sequence[Any]) -> dict[str, int]:
        """Those of a call, when the inputs of the work are known."""
        told = {name: data_address(table) for name, table in self.tables.items()}
        return told | operand_arguments(self.ending.steps, self.operands, inputs, AXES)


def requantization(
    work: Work, first: Affine | Given, sizes: tuple[int, int, int], *, last: bool, uniform: bool = False
) -> Requantization | None:
    """What becomes of sums, or given numbers, in the result of a work: of so many images, pixels in each, and columns,
    which are its `last` axis, or else axis 1; None where that cannot be done by a kernel. Where it is `uniform` it has
    tables of one vector, as one number holds for all columns; None where that is not so."""
    (images, _, columns), (result,) = sizes, work.outputs
    axis = len(result.shape) - 1 if last else 1
    if isinstance(first, Affine) and not is_held(first.factor):
        return None
    laid = _Operands(work, result.shape, last=last)
    stages: list[Stage] = [first]
    for post in work.posts:
        found = _rounding(work, post, axis) if post.name == FAKE_QUANTIZE else None
        found = _coding(post.attrs["coding"], axis) if post.name == QUANTIZE else found
        found = found or _constant(work, post, axis) or _limits(post, stages)
        found = found or laid.codes(post, images, columns) or laid.posted(post, sizes)
        if found is None:
            return None
        stages += found
    stages, operands, steps = simplified(stages), list[KernelOperand](), list[KernelPost]()
    if result.type != "f32":
        stages = _saturated(stages, result.type)
    tables: dict[str, Array] = {}
    for stage in stages:
        for step, own in _steps(stage):
            if uniform and any(values.size > 1 for values in own.values()):
                return None
            width = LANES if uniform else columns
            tables |= {f"{name}{len(steps)}": _table(values, width) for name, values in own.items()}
            steps.append(step)
        if isinstance(stage, AddedCodes | Posted) and stage.operand is not None:
            operands.append(stage.operand)
    ending = Ending(tuple(steps), result.type)
    return Requantization(ending, tables, tuple(operands), laid.wants, frozenset(laid.coded))


def _steps(stage: Stage) -> list[tuple[KernelPost, dict[str, Array]]]:
    """What a kernel does, and its tables."""
    if isinstance(stage, Given):
        return []
    if isinstance(stage, Affine):
        return [(KernelPost(AFFINE), {"factor": stage.factor, "shift": stage.shift})]
    if isinstance(stage, Rounded):
        return [(KernelPost(ROUNDED), {})]
    if isinstance(stage, AddedCodes):
        return [(KernelPost(f"{CODES}-{stage.type}", along=True), {"scale": stage.factor})]
    if isinstance(stage, Posted):
        return [(stage.post, {})]
    made = []
    if (stage.least > -np.inf).any():
        made.append((KernelPost(LEAST, attrs=((STAYS, stage.stays),)), {"least": stage.least}))
    if (stage.most < np.inf).any():
        made.append((KernelPost(MOST), {"most": stage.most}))
    return made


def _saturated(stages: list[Stage], type: str) -> list[Stage]:
    """Without limits at the end beyond which there are no codes, where what becomes codes saturates."""
    *before, last = stages
    if not isinstance(last, Limits) or magnitude(before) > WHOLE:
        return stages
    limits = np.iinfo(numpy_dtype(type))
    least = np.where(last.least <= limits.min, -np.inf, last.least)
    return [*before, Limits(least, np.where(last.most >= limits.max, np.inf, last.most))]


def _limits(post: Post, before: Sequence[Stage]) -> list[Stage] | None:
    """Those of a post that leaves NaN as it is, where there is none."""
    if isinstance(before[0], Given) or not is_finite(before):
        return None
    if post.name == "ReLU-1":
        return [Limits(np.zeros(1), np.full(1, np.inf))]
    if post.name == "Clamp-1":
        least, most = (np.full(1, post.attrs[name], np.float64) for name in ("min", "max"))
        return [Limits(least, most)]
    return None


class _Operands:
    """The operands of posts that are as large as the result, which kernels read in its order: channels last."""

    def __init__(self, work: Work, shape: tuple[int, ...], *, last: bool) -> None:
        self._work, self._shape, self._last = work, shape, last
        self.wants: dict[int, Layout] = {}
        self.coded: set[int] = set()

    def codes(self, post: Post, images: int, columns: int) -> list[Stage] | None:
        """The codes that a post adds; None where it does something else."""
        operand = self._work.other(post)
        if operand is None or operand.codes is None or operand.grid is None or post.name != "Add-1":
            return None
        if operand.shape != self._shape or len(operand.grid.scale) > 1:
            return None
        assert post.operand is not None
        scale = np.array(operand.grid.scale, np.float64)
        self.coded.add(post.operand)
        self._placed(post.operand, operand.codes)
        place = KernelOperand(post.operand, (prod(self._shape) // images, columns))
        return [AddedCodes(operand.codes.type, scale, place), Affine(np.ones(1), -scale * operand.grid.zero)]

    def posted(self, post: Post, sizes: tuple[int, int, int]) -> list[Stage] | None:
        """What kernels do for a post; None where they have nothing for it."""
        images, pixels, columns = sizes
        shape, order = (sizes, (0, 1, 2)) if self._last else ((images, columns, pixels), (0, 2, 1))
        own, read = kernel_posts(replace(self._work, inputs=self._inputs(post), posts=[post]), shape, order)
        return [Posted(own[0], read[0] if read else None)] if own else None

    def _inputs(self, post: Post) -> list[Operand | None]:
        """The inputs of the work as they come where that of the post is laid out as the result."""
        inputs, operand = list(self._work.inputs), self._work.other(post)
        if operand is not None and post.operand is not None and operand.value is None and operand.shape == self._shape:
            inputs[post.operand] = replace(operand, strides=self._placed(post.operand, operand), layout=None)
        return inputs

    def _placed(self, number: int, operand: Operand) -> tuple[int, ...]:
        layout = layout_of(operand, last=self._last)
        self.wants |= unless_so(operand, layout, number)
        return layout.strides


def layout_of(operand: Operand, *, last: bool) -> Strided:
    """In C order, but for axis 1, which comes last if none else is to be the `last`."""
    if not last:
        return channels_last(operand)
    item = numpy_dtype(operand.type).itemsize
    return Strided(dense_strides(operand.shape, item), item * prod(operand.shape))


def _table(values: Array, columns: int) -> Array:
    """One f32 for each column, and 0 for those that fill up the last vector."""
    made = np.zeros(aligned(columns * ITEM) // ITEM, np.float32)
    with np.errstate(over="ignore"):  # limits that f32 does not hold are none
        made[:columns] = values
    return made


def _constant(work: Work, post: Post, axis: int) -> list[Stage] | None:
    """A post that is a product or a sum with a constant, one number or one for each column; None where it is none."""
    operand = work.other(post)
    if operand is None or post.name not in ("Add-1", "Multiply-1", "Subtract-1") or operand.value is None:
        return None
    values = None if operand.type != "f32" else numbers_along(axis, operand.value, work.outputs[0].shape)
    if values is None or not broadcasts_by_numpy(post.attrs) or not np.isfinite(values).all():
        return None
    none, one = np.zeros(1), np.ones(1)
    if post.name == "Multiply-1":
        return [Affine(values, none)]
    if post.name == "Add-1":
        return [Affine(one, values)]
    return [Affine(-one, values) if post.reflected else Affine(one, -values)]


def _coding(coding: Coding, axis: int) -> list[Stage] | None:
    """What makes codes, but for the rounding; None where it is another thing for each channel, and these are none of
    the columns."""
    factor, shift, least, most = coding.linear()
    if axis != 1 and max(own.size for own in (factor, shift, least, most)) > 1:
        return None
    limits = np.iinfo(numpy_dtype(coding.grid.type))
    return [Affine(factor, shift), Limits(np.maximum(least, limits.min), np.minimum(most, limits.max))]


def _rounding(work: Work, post: Post, axis: int) -> list[Stage] | None:
    """A FakeQuantize; None where its limits are no constants for columns, or none that go upwards."""
    found = None if post.attrs["levels"] > MAX_LEVELS else rounding_of(work, post, axis)
    if found is None:
        return None
    level, shift, step, first = found
    limits = Limits(np.zeros(1), np.full(1, post.attrs["levels"] - 1.0), stays=True)
    return [Affine(level, shift), limits, Rounded(), Affine(step, first)]
