"""What becomes of sums of codes in as few stages as do it, against one after the other."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from irrun.engines.compiled.posts import KernelOperand, KernelPost
from irrun.engines.compiled.stages import (
    LARGEST,
    AddedCodes,
    Affine,
    Limits,
    Posted,
    Rounded,
    Stage,
    magnitude,
    simplified,
)

OPERAND = KernelOperand(1, (1, 1))


def of(*numbers: float) -> Any:
    return np.array(numbers, np.float64)


def done(stages: list[Stage], values: Any, codes: Any) -> Any:
    for stage in stages:
        if isinstance(stage, Affine):
            values = values * stage.factor + stage.shift
        elif isinstance(stage, Limits):
            values = np.fmin(np.fmax(values, stage.least), stage.most)
        elif isinstance(stage, Rounded):
            values = np.rint(values)
        elif isinstance(stage, AddedCodes):
            values = values + codes * stage.factor
        else:
            values = values * np.clip(values + 3, 0, 6) / 6
    return values


@pytest.mark.parametrize("seed", range(100))
def test_fewer_stages_do_the_same(seed: int) -> None:
    """Factors are powers of 2, so that nothing is rounded on the way."""
    rng = np.random.default_rng(seed)

    def factors() -> Any:
        signs = rng.choice([-1, 1], 4) if rng.random() < 0.3 else 1
        return 2.0 ** rng.integers(-3, 4, 4) * signs * (rng.random() < 0.95)

    stages: list[Stage] = [Affine(factors(), of(0))]
    for kind in rng.choice(["affine", "limits", "rounded", "codes", "posted"], 8, p=[0.4, 0.3, 0.1, 0.15, 0.05]):
        if kind == "affine":
            stages.append(Affine(factors(), rng.integers(-8, 9, 4) / 4))
        elif kind == "limits":
            least = rng.choice([-np.inf, -2.0, 0.0])
            stages.append(Limits(of(least), of(rng.choice([0.5, 6.0, np.inf]))))
        elif kind == "rounded":
            stages.append(Rounded())
        elif kind == "codes":
            stages.append(AddedCodes("u8", of(2.0 ** rng.integers(-3, 3)), OPERAND))
        else:
            stages.append(Posted(KernelPost("HSwish-4"), None))
    sums, codes = rng.integers(-1000, 1000, (50, 4)).astype(np.float64), rng.integers(0, 256, (50, 4))
    fewer = simplified(stages)
    assert len(fewer) <= len(stages)
    np.testing.assert_allclose(done(fewer, sums, codes), done(stages, sums, codes), rtol=1e-12)
    assert np.abs(done(fewer, sums, codes)).max() <= magnitude(fewer) * (1 + 1e-12)
    if not any(isinstance(stage, Posted) for stage in stages):  # behind which nobody knows how large numbers are
        kinds = [type(stage) for stage in fewer]
        assert not {(Affine, Affine), (Limits, Limits)} & set(pairwise(kinds))


def test_numbers_of_what_is_left() -> None:
    """A bias, ReLU and what makes codes: one product and sum, and limits."""
    relu, codes = Limits(of(0), of(np.inf)), Limits(of(0), of(255))
    stages = simplified([Affine(of(0.5), of(0)), Affine(of(1), of(3)), relu, Affine(of(4), of(1)), codes])
    affine, limits = stages
    assert isinstance(affine, Affine)
    assert isinstance(limits, Limits)
    assert (affine.factor, affine.shift) == (2, 13)
    assert (limits.least, limits.most) == (1, 255)


def test_numbers_of_a_sum_with_codes() -> None:
    """Rounded to a grid, with codes added: these and the numbers become codes by one factor each."""
    grid: list[Stage] = [Limits(of(0), of(255)), Rounded(), Affine(of(0.5), of(-2))]
    added: list[Stage] = [AddedCodes("i8", of(0.25), OPERAND), Affine(of(1), of(1))]
    stages = simplified([Affine(of(2), of(1)), *grid, *added, Affine(of(8), of(3)), Limits(of(0), of(255))])
    kinds = [type(stage) for stage in stages]
    assert kinds == [Affine, Limits, Rounded, Affine, AddedCodes, Limits]
    assert isinstance(stages[3], Affine)
    assert isinstance(stages[4], AddedCodes)
    assert (stages[3].factor, stages[3].shift, stages[4].factor) == (4, -5, 2)


def test_factors_that_are_none_of_f32_stay_apart() -> None:
    large, small = Affine(of(1e30), of(0)), Affine(of(1e-30), of(0))
    assert simplified([large, large]) == [large, large]
    assert simplified([large, large, small]) == [large, large, small]
    assert len(simplified([small, large])) == 1
    assert magnitude([large, large]) > LARGEST


def test_limits_stay_ahead_of_a_factor_that_turns_them() -> None:
    relu, turned = Limits(of(0), of(np.inf)), Affine(of(-1), of(0))
    assert simplified([Affine(of(1), of(0)), relu, turned])[1:] == [relu, turned]
