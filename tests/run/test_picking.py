"""Matrices that indices pick, for a product each, are multiplied where they lie, as experts of a model are."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import irrun
from irrun.engines import picking as parts
from irrun.engines.threads import Threads
from irrun.run.internal_ops import PICKED_PRODUCT
from irrun.run.passes import picking
from run.models import PLAIN, anything, i64, model, saved

EXPERTS, INNER, COLUMNS, PICKED = 5, 128, 48, 7
WEIGHTS = np.random.default_rng(0).normal(0, 1, (EXPERTS, INNER, COLUMNS)).astype(np.float32)


@pytest.fixture(autouse=True)
def _no_matrix_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "LEAST", 1)


def stored(b: Any, weights: Any, kind: str) -> Any:
    """Weights as they are, as f16, or as i8 with a scale for each row, or for each of two groups of it."""
    if kind == "f32":
        return b.constant(weights)
    if kind == "f16":
        return b.one("Convert-1", b.constant(weights.astype(np.float16)), destination_type="f32")
    shape = weights.shape if kind == "i8" else (*weights.shape[:2], 2, weights.shape[2] // 2)
    codes = b.constant(np.clip(np.round(weights * 20), -127, 127).astype(np.int8).reshape(shape))
    scale = b.constant(np.random.default_rng(1).uniform(0.04, 0.06, (*shape[:-1], 1)).astype(np.float32))
    scaled = b.one("Multiply-1", b.one("Convert-1", codes, destination_type="f32"), scale, auto_broadcast="numpy")
    return scaled if kind == "i8" else b.one("Reshape-1", scaled, i64(b, weights.shape), special_zero=False)


def experts(folder: Path, kind: str, *, left: bool, transposed: bool, rows: int = 1, batch: int = PICKED) -> Path:
    """The product of x with the experts that y picks: `left` of it, lying as [columns, inner] where `transposed`."""
    b = model()
    x = anything(b, "f4", (batch, INNER, rows) if left else (batch, rows, INNER))
    y = anything(b, "i8", (batch,))
    weights = np.ascontiguousarray(WEIGHTS.swapaxes(1, 2)) if transposed else WEIGHTS
    found = b.one("Gather-8", stored(b, weights, kind), y, i64(b, 0), batch_dims=0)
    turned = {"transpose_a": not transposed} if left else {"transpose_b": transposed}
    product = b.one("MatMul-1", *((found, x) if left else (x, found)), **(PLAIN | turned))
    b.result(b.one("ReLU-1", product))
    return saved(b, folder)


def picks(executor: irrun.GraphExecutor) -> list[tuple[str, bool]]:
    """By whom products with picked matrices are computed, and whether these stay compressed."""
    kept = [prepared.program for prepared in executor._whole.preparation._kept.values()]
    return [
        (own.by, own.inputs[1] in program.compressed)
        for program in kept
        for own in program.instructions
        if own.op is PICKED_PRODUCT
    ]


@pytest.mark.parametrize("engine", ["numpy", "onednn", "check"])
@pytest.mark.parametrize("kind", ["f32", "f16", "i8", "groups"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_with_picked_matrices(tmp_path: Path, engine: str, kind: str, left: bool, transposed: bool) -> None:
    path = experts(tmp_path, kind, left=left, transposed=transposed)
    ours, plain = (irrun.GraphExecutor(path, engine=name) for name in (engine, "reference"))
    rng = np.random.default_rng(3)
    with patch.object(parts, "MAX_BOUND", 5):
        for number in range(4):
            x = rng.normal(0, 1, (PICKED, INNER, 1) if left else (PICKED, 1, INNER)).astype(np.float32)
            y = rng.integers(-EXPERTS - number % 2, EXPERTS + number % 2, PICKED)  # those outside pick zeros
            (found,), (expected,) = ours.run([x, y]).values(), plain.run([x, y]).values()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    ((by, compressed),) = picks(ours)
    assert compressed == (transposed and kind != "f32")
    assert by == ("numpy" if engine == "numpy" or not compressed else "compiled")


@pytest.mark.parametrize("left", [False, True])
def test_a_profile_counts_what_picked_matrices_take(tmp_path: Path, left: bool) -> None:
    path, counts = experts(tmp_path, "f32", left=left, transposed=False), []
    shape = (PICKED, INNER, 1) if left else (PICKED, 1, INNER)
    for executor in (irrun.GraphExecutor(path, engine=engine) for engine in ("numpy", "reference")):
        profile = irrun.Profile()
        executor.run([np.ones(shape, np.float32), np.zeros(PICKED, np.int64)], profile=profile)
        counts.append(sum(entry.operations for entry in profile.entries.values()))
    assert counts == [2 * PICKED * INNER * COLUMNS] * 2


@pytest.mark.parametrize("left", [False, True])
def test_threads_share_what_is_picked(tmp_path: Path, left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each product is by one of them, so that the same comes of it bit by bit; a matrix may be picked several times."""
    path = experts(tmp_path, "f32", left=left, transposed=False)
    alone = irrun.GraphExecutor(path, engine="numpy", threads=1)
    monkeypatch.setattr("irrun.engines.threads.SHARED_SECONDS", 1e-7)
    ours, rng, shared = irrun.GraphExecutor(path, engine="numpy", threads=2), np.random.default_rng(5), []
    run = Threads.run
    monkeypatch.setattr(Threads, "run", lambda self, piece, count: shared.append(count) or run(self, piece, count))
    for _ in range(4):
        x = rng.normal(0, 1, (PICKED, INNER, 1) if left else (PICKED, 1, INNER)).astype(np.float32)
        y = rng.integers(-EXPERTS - 1, EXPERTS + 1, PICKED)
        (found,), (expected,) = ours.run([x, y]).values(), alone.run([x, y]).values()
        np.testing.assert_array_equal(found, expected)
    assert shared.count(4) == 4


def test_several_rows_for_each_matrix_and_sizes_that_change(tmp_path: Path) -> None:
    path = experts(tmp_path, "f32", left=False, transposed=False, rows=3, batch=-1)
    ours, plain = (irrun.GraphExecutor(path, engine=name) for name in ("numpy", "reference"))
    rng = np.random.default_rng(4)
    for batch in (2, 7, 2, 5, 0, 9, 1):
        x, y = rng.normal(0, 1, (batch, 3, INNER)).astype(np.float32), rng.integers(0, EXPERTS, batch)
        (found,), (expected,) = ours.run([x, y]).values(), plain.run([x, y]).values()
        np.testing.assert_allclose(found, expected, atol=1e-4)
    assert picks(ours)


def test_matrices_that_others_read_too_are_copied(tmp_path: Path) -> None:
    b = model()
    x, y = anything(b, "f4", (PICKED, 1, INNER)), anything(b, "i8", (PICKED,))
    found = b.one("Gather-8", b.constant(WEIGHTS), y, i64(b, 0), batch_dims=0)
    b.result(b.one("MatMul-1", x, found, **PLAIN))
    b.result(found)
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    given = np.ones((PICKED, 1, INNER), np.float32), np.arange(PICKED) % EXPERTS
    product, copied = ours.run([*given]).values()
    np.testing.assert_array_equal(copied, WEIGHTS[given[1]])
    np.testing.assert_allclose(product, given[0] @ copied, rtol=1e-4, atol=1e-4)
    assert not picks(ours)
