"""Every compiler of both engines on random views, with random ops behind it, against the ops' own kernels."""

from __future__ import annotations

import pytest
from engines.onednn_works import ENGINE, needs_onednn
from engines.strided import Draw, assert_equal, case_of, computed, work_on

from irrun.engines.onednn import engine as onednn
from irrun.engines.onednn.posts import CLIPPING, DEQUANTIZE, QUANTIZE
from irrun.engines.vectorized.engine import MODULES, VectorizedEngine, of_module
from irrun.engines.work import Engine
from irrun.run.internal_ops import PICKED_PRODUCT, TABLE

SEEDS = 20
OF_CODES = CLIPPING | {QUANTIZE, DEQUANTIZE, "Concat-1"}
"""Ops that oneDNN takes where codes are made or read, or where channels come last."""

ELSEWHERE = {"BinaryConvolution-1", TABLE.name, PICKED_PRODUCT.name}
"""The filters of the first are bits, which no array of numpy is; the others have tests of their own."""

VECTORIZED = VectorizedEngine(2)
OPS = [op for ops in MODULES.values() for op in ops.split() if of_module(op, "COMPILERS")]


def taken(engine: Engine, name: str, seeds: range) -> int:
    """How many of the works of an op an engine takes, which it must compute as the op's kernel does."""
    count = 0
    for seed in seeds:
        draw = Draw(seed)
        work, arrays, expected = work_on(draw, case_of(draw, name), engine)
        compiled = engine.compile(work)
        if compiled is None:
            continue
        count += 1
        try:
            assert_equal(computed(engine, work, compiled, arrays), expected)
        except Exception as error:
            raise AssertionError(f"{name} of seed {seed}") from error
    return count


@pytest.mark.parametrize("name", [op for op in OPS if op not in ELSEWHERE])
def test_numpy_on_views(name: str) -> None:
    assert taken(VECTORIZED, name, range(SEEDS)) > 0


def test_numpy_on_weights_at_any_address_that_are_multiplied_once() -> None:
    assert taken(VectorizedEngine(2, once=True), "MatMul-1", range(500, 500 + 10 * SEEDS)) > SEEDS


@needs_onednn
@pytest.mark.parametrize("name", sorted(onednn.COMPILERS["f32"].keys() - OF_CODES))
def test_onednn_on_views(name: str) -> None:
    """Without AVX-512 oneDNN pools few layouts, and so takes few of the means."""
    assert ENGINE is not None
    assert taken(ENGINE, name, range(100, 100 + 2 * SEEDS)) or taken(ENGINE, name, range(300, 300 + 20 * SEEDS))
