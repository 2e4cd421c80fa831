"""What becomes of sums of codes, or of given numbers, one stage after the other, each with numbers in f64: one, or one
for each column.

There are as few as do it: products and sums with constants (`Affine`) become one where nothing is between them but
limits and codes that are added, which are changed so that they may come later; and limits become one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.engines.compiled.posts import KernelOperand, KernelPost
from irrun.engines.grid import LARGEST, is_held
from irrun.records import dataclass
from irrun.spec.op import Array

WHOLE = 2.0**30
"""What numbers that are rounded to i32 are below, with room."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Any numbers of f32, infinite ones and NaN among them, in place of sums of codes."""


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """x * factor + shift."""

    factor: Array
    shift: Array


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """What is between two limits, which may be infinite; NaN becomes the least, or `stays`."""

    least: Array
    most: Array
    stays: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """The nearest whole number, of two the even one."""


@dataclass(frozen=True, slots=True, eq=False)
class AddedCodes:
    """x + code * factor, with codes of a type from an operand."""

    type: str
    factor: Array
    operand: KernelOperand


@dataclass(frozen=True, slots=True, eq=False)
class Posted:
    """What a post of kernels does."""

    post: KernelPost
    operand: KernelOperand | None


Stage = Given | Affine | Limits | Rounded | AddedCodes | Posted


def is_finite(stages: Sequence[Stage]) -> bool:
    """Whether sums of codes stay numbers of f32, whatever they are."""
    return magnitude(stages) <= LARGEST


def magnitude(stages: Sequence[Stage]) -> float:
    """What no sum of codes gets beyond, which is an i32; infinity where nobody knows. NaN is not looked at."""
    most = 2.0**31
    for stage in stages:
        if isinstance(stage, Affine):
            if most <= LARGEST:  # infinity times 0 is NaN
                most = float((most * np.abs(stage.factor) + np.abs(stage.shift)).max())
        elif isinstance(stage, Limits):
            most = min(most, float(np.maximum(np.abs(stage.least), np.abs(stage.most)).max()))
        elif isinstance(stage, AddedCodes):
            most += 256 * float(np.abs(stage.factor).max())
        elif isinstance(stage, Posted | Given):
            most = np.inf
    return most


def simplified(stages: Sequence[Stage]) -> list[Stage]:
    """Stages that do the same, but for what is rounded on the way."""
    made: list[Stage] = []
    for stage in stages:
        passed: list[Stage] = []  # what it has come ahead of
        while made and is_finite(made):
            joined = _joined(made[-1], stage)
            changed = _behind(made[-1], stage) if joined is None else None
            if joined is not None:
                stage = joined
            elif changed is not None:
                passed.append(changed)
            else:
                break
            made.pop()
        made += [stage, *reversed(passed)]
    return made


def _joined(first: Stage, second: Stage) -> Stage | None:
    """One stage that does what two do; None where there is none."""
    if isinstance(first, Affine) and isinstance(second, Affine):
        factor, shift = first.factor * second.factor, first.shift * second.factor + second.shift
        return Affine(factor, shift) if is_held(factor) and is_held(shift) else None
    if isinstance(first, Limits) and isinstance(second, Limits):
        least, most = (np.clip(limit, second.least, second.most) for limit in (first.least, first.most))
        return Limits(least, most, first.stays and second.stays)
    return None


def _behind(first: Stage, second: Stage) -> Stage | None:
    """The first of two stages as it is where the second one, an affine one, comes ahead of it; None where it cannot."""
    if not isinstance(second, Affine):
        return None
    if isinstance(first, Limits) and (second.factor > 0).all():
        least, most = (limit * second.factor + second.shift for limit in (first.least, first.most))
        return Limits(least, most, first.stays)
    if isinstance(first, AddedCodes) and is_held(first.factor * second.factor):
        return AddedCodes(first.type, first.factor * second.factor, first.operand)
    return None
