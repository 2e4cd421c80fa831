"""Chances that labels are spelt by code of our own, against the op library's and against all paths."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from irrun.engines import compiled
from irrun.spec.registry import registry

if not compiled.is_there():
    pytest.skip("llvmlite is not installed", allow_module_level=True)

from irrun.engines.compiled.ctc_loss import spelt
from irrun.engines.compiled.parts import compile as compile_parts
from irrun.engines.compiled.team import Team
from irrun.engines.work import Operand, Work
from irrun.spec.dtypes import element_type

OP = registry().ops["CTCLoss-4"]
PLAIN = OP.parts["spell"]
TEAM = Team(2)


def never(*_: object) -> Any:
    raise AssertionError("this is for the code of our own")


def case(rng: Any, count: int, steps: int, places: int) -> tuple[Any, Any, Any, Any]:
    chances = np.log(rng.dirichlet(np.ones(6), (count, steps)))[..., rng.integers(0, 6, places)].astype(np.float32)
    stays, skips = rng.random((2, count, places)) < 0.7
    skips[:, :2] = False
    lengths = rng.integers(0, steps + 1, count)
    lengths[rng.integers(count)] = steps
    return chances, stays, skips, lengths


@pytest.mark.parametrize("seed", range(60))
def test_rows_of_all_lengths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = case(rng, *(int(rng.integers(1, most)) for most in (6, 40, 50)))
    if seed % 4 == 1:
        given[0][rng.random(given[0].shape) < 0.3] = -np.inf
    if seed % 4 == 2:
        given[0][rng.integers(len(given[0])), -1] = np.nan
    found, expected = spelt(TEAM, never, *given), PLAIN(*given)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_many_steps_are_shared() -> None:
    given = case(np.random.default_rng(1), 9, 300, 101)
    np.testing.assert_allclose(spelt(TEAM, never, *given), PLAIN(*given), rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("change", ["f64", "far"])
def test_what_f32_does_not_tell_is_left_to_the_library(change: str) -> None:
    chances, *others = case(np.random.default_rng(2), 2, 5, 7)
    chances = chances.astype(np.float64) if change == "f64" else np.where(chances < -2, np.float32(-1e25), chances)
    expected = PLAIN(chances, *others)
    np.testing.assert_array_equal(spelt(TEAM, PLAIN, chances, *others), expected)


def test_the_loss_is_that_of_all_paths() -> None:
    rng = np.random.default_rng(3)
    logits = rng.standard_normal((2, 5, 4)).astype(np.float32)
    lengths, labels, counts = np.array([5, 4]), np.array([[0, 1, 1, 0, 0], [2, 0, 0, 0, 0]]), np.array([3, 1])
    arrays = logits, lengths, labels, counts
    operands = [Operand(element_type(array.dtype), array.shape, array.strides) for array in arrays]
    output = Operand("f32", (2,), (4,))
    made = compile_parts(Work("CTCLoss-4", dict(OP.defaults), list(operands), [output]), TEAM)
    assert made is not None
    loss = np.zeros(2, np.float32)
    made.bind(arrays, [loss], None)()
    chances = np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum(-1, keepdims=True)
    for row in range(2):
        total = 0.0
        for path in product(range(4), repeat=int(lengths[row])):
            merged = [label for n, label in enumerate(path) if (n == 0 or path[n - 1] != label) and label != 3]
            if merged == labels[row, : counts[row]].tolist():
                total += float(np.prod(chances[row, range(len(path)), path]))
        np.testing.assert_allclose(loss[row], -np.log(total), rtol=1e-5)
