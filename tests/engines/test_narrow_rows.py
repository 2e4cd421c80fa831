"""Products of a few rows of bf16 with weights of bf16, as they lie, against f64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from engines.works import computed, work_of

from irrun.engines import onednn
from irrun.engines.compiled import bf16
from irrun.engines.compiled.engine import CompiledEngine

pytestmark = pytest.mark.skipif(not bf16.is_made(), reason="the processor multiplies no bf16")

BF16, F32 = ml_dtypes.bfloat16, np.float32
rng = np.random.default_rng(0)


def random(*shape):
    return rng.standard_normal(shape, F32).astype(BF16)


def product(rows, weights, type="bf16", posts=(), turned=True):
    """The work on arrays that multiplies rows by weights [columns, inner]."""
    outputs = [((*rows.shape[:-1], weights.shape[0 if turned else 1]), type)]
    attrs = {"transpose_a": False, "transpose_b": turned}
    return work_of("MatMul-1", attrs, [rows, weights], outputs, posts=posts, constant=(1,))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("columns", "inner"), [(128, 32), (33, 160), (768, 768), (8, 4096), (4100, 96)])
@pytest.mark.parametrize("shape", [(1,), (2,), (1, 3), (2, 2), (5,), (8,)])
def test_sizes(shape, columns, inner, threads):
    rows, weights = random(*shape, inner), random(columns, inner)
    exact = rows.astype(np.float64) @ weights.astype(np.float64).T
    for type, rounding in (("f32", 0), ("bf16", 2.0**-8)):
        work = product(rows, weights, type)
        (found,) = computed(CompiledEngine(threads).compile(work), work, [rows, weights])
        np.testing.assert_allclose(found.astype(np.float64), exact, rounding * 1.01, 1e-6 * np.abs(exact).max())


def test_numbers_that_are_none():
    rows, weights = random(3, 64), random(128, 64)
    rows[0, 5], rows[1, 6], weights[7, 8] = np.nan, np.inf, -np.inf
    work = product(rows, weights)
    (found,) = computed(CompiledEngine(1).compile(work), work, [rows, weights])
    with np.errstate(invalid="ignore"):
        expected = rows.astype(F32) @ weights.astype(F32).T
    for kind in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(kind(found.astype(F32)), kind(expected))


def test_results_are_rounded_to_even():
    rows, weights = np.zeros((2, 32), BF16), np.zeros((128, 32), BF16)
    rows[:, :2] = [[1, 2.0**-8], [1, 3 * 2.0**-8]]
    weights[:, :2] = 1
    work = product(rows, weights)
    (found,) = computed(CompiledEngine(1).compile(work), work, [rows, weights])
    assert found[:, 0].tolist() == [1, 1 + 2.0**-6]


@pytest.mark.parametrize(
    ("rows", "weights", "turned"),
    [
        (random(9, 64), random(128, 64), True),
        (random(2, 48), random(128, 48), True),
        (random(2, 64), random(64, 128), False),
        (random(64, 2).T, random(128, 64), True),
        (random(2, 64), random(64, 128).T, True),
        (random(2, 64), random(4, 64), True),
        (random(2, 64).astype(F32), random(128, 64), True),
    ],
)
def test_what_is_left_to_others(rows, weights, turned):
    assert CompiledEngine(1).compile(product(rows, weights, turned=turned)) is None


@pytest.mark.skipif(onednn.load(1) is None, reason="oneDNN is not installed")
@pytest.mark.parametrize(("rows", "few"), [(1, True), (8, True), (9, False)])
def test_one_engine_takes_a_product(rows, few):
    work = product(random(rows, 64), random(128, 64))
    for once in (False, True):
        for compiling in (False, True):
            engine = onednn.load(2, once=once, compiling=compiling)
            assert (engine.compile(work) is None) == (few and compiling and not once)
