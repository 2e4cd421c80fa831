"""LSTM and GRU cells of few rows, held against the op's kernel."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from irrun.engines import load_engines
from irrun.engines.compiled import cells
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.onednn.networks import FEW_ROWS, MOST_PRODUCTS, MOST_WEIGHTS
from irrun.engines.work import Compiled, Work

ENGINE = CompiledEngine(2)
CELLS = {"LSTMCell-4": (4, 2, ("sigmoid", "tanh", "tanh")), "GRUCell-3": (3, 1, ("sigmoid", "tanh"))}


def attributes(name: str, hidden: int) -> dict[str, Any]:
    return {"hidden_size": hidden, "activations": CELLS[name][2], "clip": 0.0} | (
        {"linear_before_reset": True} if "GRU" in name else {}
    )


def arrays_of(name: str, batch: int, inner: int, hidden: int) -> list[Any]:
    gates, states, _ = CELLS[name]
    random = np.random.default_rng((batch, inner, hidden))
    shapes = [(batch, inner), *[(batch, hidden)] * states, (gates * hidden, inner), (gates * hidden, hidden)]
    return [random.normal(size=shape).astype(np.float32) for shape in (*shapes, (4 * hidden,))]


def prepared(
    name: str, arrays: Sequence[Any], outputs: int = 2, engine: Any = ENGINE, **attrs: Any
) -> tuple[Work, Compiled | None]:
    """A work whose weights are known, and what the engine makes of it."""
    states = CELLS[name][1]
    results = [(own.shape, "f32") for own in arrays[1 : 1 + min(states, outputs)]]
    own = attributes(name, arrays[1].shape[1]) | attrs
    work = work_of(name, own, arrays, results, constant=range(1 + states, 4 + states))
    return work, engine.compile(work)


def check(name: str, arrays: Sequence[Any], outputs: int = 2) -> Compiled:
    states = CELLS[name][1]
    work, compiled = prepared(name, arrays, outputs)
    assert compiled is not None
    assert compiled.taken == set(range(1 + states, 4 + states))
    expected = plain(name, attributes(name, arrays[1].shape[1]), arrays)
    given = [*arrays[: 1 + states], None, None, None]
    for number in compiled.wants:
        given[number] = np.ascontiguousarray(given[number])
    found = computed(compiled, work, given)
    for own, other in zip(found, expected if states > 1 else [expected], strict=False):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-5)
    return compiled


def test_a_cell_of_one_number():
    one, half = np.float32([[1]]), np.float32([[0.5]])
    arrays = [one, half, half, np.full((4, 1), 2, np.float32), np.zeros((4, 1), np.float32), np.zeros(4, np.float32)]
    work, compiled = prepared("LSTMCell-4", arrays)
    assert compiled is not None
    hidden, cell = computed(compiled, work, [*arrays[:3], None, None, None])
    np.testing.assert_allclose(cell, [[0.880797 * (0.5 + 0.964028)]], rtol=1e-5)
    np.testing.assert_allclose(hidden, [[0.880797 * 0.858998]], rtol=1e-5)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("batch", FEW_ROWS)
@pytest.mark.parametrize("hidden", [1, 15, 16, 17, 33, 64])
def test_rows_and_hidden_units(name, batch, hidden):
    for inner in (1, 2, 7, 40):
        check(name, arrays_of(name, batch, inner, hidden))


def test_nobody_reads_the_cell_state():
    check("LSTMCell-4", arrays_of("LSTMCell-4", 3, 5, 20), outputs=1)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("batch", [1, 3])
def test_data_and_states_that_lie_otherwise(name, batch):
    arrays = arrays_of(name, batch, 6, 20)
    for number in range(1 + CELLS[name][1]):
        width = arrays[number].shape[1]
        beside = np.zeros((2 * batch, width + 3), np.float32)
        beside[::2, 1 : 1 + width] = arrays[number]
        turned = np.asfortranarray(arrays[number])
        reversed_rows = np.ascontiguousarray(arrays[number][::-1])[::-1]
        repeated = np.broadcast_to(arrays[number][:1], arrays[number].shape)
        backwards = np.ascontiguousarray(arrays[number][:, ::-1])[:, ::-1]
        spread = np.repeat(arrays[number], 2, axis=1)[:, ::2]
        one = np.broadcast_to(arrays[number][:, :1], arrays[number].shape)
        for view in (beside[::2, 1 : 1 + width], turned, reversed_rows, repeated, backwards, spread, one):
            check(name, [*arrays[:number], view, *arrays[number + 1 :]])


@pytest.mark.parametrize("name", CELLS)
def test_numbers_that_are_none_and_those_without_end(name):
    arrays = arrays_of(name, 4, 5, 17)
    arrays[0][0, 0], arrays[0][1, 2], arrays[1][2, 3] = np.nan, np.inf, np.nan
    arrays[0][3] *= 1e30
    check(name, arrays)


@pytest.mark.parametrize("name", CELLS)
def test_weights_are_laid_out_once_for_all_rows(name):
    states = CELLS[name][1]
    arrays = arrays_of(name, 4, 9, 30)
    found = [prepared(name, [*(own[:rows] for own in arrays[: 1 + states]), *arrays[1 + states :]]) for rows in (1, 4)]
    assert len(cells._cells) == 1
    del found
    gc.collect()
    assert not cells._cells


@pytest.mark.parametrize("name", CELLS)
def test_again_with_other_weights(name):
    states = CELLS[name][1]
    arrays = arrays_of(name, 2, 9, 30)
    _, first = prepared(name, arrays)
    others = [*arrays[: 1 + states], *(own[::-1].copy() for own in arrays[1 + states :])]
    work, _ = prepared(name, others)
    assert first is not None
    assert first.again is not None
    found = computed(first.again(work), work, [*others[: 1 + states], None, None, None])
    expected = plain(name, attributes(name, 30), others)
    np.testing.assert_allclose(found[0], expected[0] if states > 1 else expected, rtol=1e-5, atol=1e-5)


def test_cells_that_are_not_taken():
    arrays = arrays_of("LSTMCell-4", 2, 5, 16)
    assert prepared("LSTMCell-4", arrays)[1] is not None
    assert prepared("LSTMCell-4", arrays, clip=0.5)[1] is None
    assert prepared("LSTMCell-4", arrays, activations=("sigmoid", "relu", "tanh"))[1] is None
    assert prepared("LSTMCell-4", arrays_of("LSTMCell-4", FEW_ROWS.stop, 5, 16))[1] is None
    assert prepared("LSTMCell-4", arrays, engine=CompiledEngine(2, once=True))[1] is None, "llvmlite takes longer"
    size = int((MOST_WEIGHTS / 8) ** 0.5)
    assert prepared("LSTMCell-4", arrays_of("LSTMCell-4", 1, size, size))[1] is not None
    assert prepared("LSTMCell-4", arrays_of("LSTMCell-4", 1, size + 1, size))[1] is None
    rows = MOST_PRODUCTS // MOST_WEIGHTS
    assert prepared("LSTMCell-4", arrays_of("LSTMCell-4", rows, size, size))[1] is not None
    assert prepared("LSTMCell-4", arrays_of("LSTMCell-4", rows + 1, size, size))[1] is None
    gru = [*arrays_of("GRUCell-3", 2, 5, 16)[:4], np.zeros(48, np.float32)]
    assert prepared("GRUCell-3", gru, linear_before_reset=False)[1] is None
    work = work_of("LSTMCell-4", attributes("LSTMCell-4", 16), arrays, [((2, 16), "f32")] * 2)
    assert ENGINE.compile(work) is None, "weights that are no constants"


def test_onednn_leaves_them_to_who_computes_them_sooner():
    engines = {engine.name: engine for engine in load_engines("auto", 2)}
    if "onednn" not in engines:
        pytest.skip("oneDNN is not installed")
    small, large = (arrays_of("LSTMCell-4", 1, size, size) for size in (64, 256))
    assert prepared("LSTMCell-4", small, engine=engines["onednn"])[1] is None
    assert prepared("LSTMCell-4", small, engine=engines["compiled"])[1] is not None
    assert prepared("LSTMCell-4", large, engine=engines["onednn"])[1] is not None
    once = {engine.name: engine for engine in load_engines("auto", 2, once=True)}
    assert prepared("LSTMCell-4", small, engine=once["onednn"])[1] is not None
