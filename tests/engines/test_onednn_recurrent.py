"""Recurrent networks on oneDNN against the plain ops, and the library itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.onednn_works import (
    apply,
    check,
    check_if_taken,
    computed,
    needs_onednn,
    normal,
    prepared,
    refused,
    views,
    work_of,
)

from irrun.spec.op import Array

GATES = {"LSTMSequence-5": 4, "GRUSequence-5": 3, "RNNSequence-5": 1}


def network(name: str, direction: str, batch: int, hidden: int, **attrs: Any) -> tuple[dict[str, Any], list[Array]]:
    directions, steps, inner, gates = 1 + (direction == "bidirectional"), 6, 5, GATES[name]
    states = [normal(batch, directions, hidden, seed=n) for n in range(2 if name.startswith("LSTM") else 1)]
    weights = [
        normal(directions, gates * hidden, size, seed=size) / np.float32(hidden**0.5) for size in (inner, hidden)
    ]
    biases = gates + bool(attrs.get("linear_before_reset"))
    arrays = [
        normal(batch, steps, inner),
        *states,
        np.full(batch, steps),
        *weights,
        normal(directions, biases * hidden),
    ]
    return {"hidden_size": hidden, "direction": direction} | attrs, arrays


def constants(arrays: list[Array]) -> list[int]:
    return list(range(len(arrays) - 4, len(arrays)))


@needs_onednn
@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 8), (3, 8), (1, 33), (2, 300)])
def test_sequences_of_full_length(name: str, direction: str, batch: int, hidden: int) -> None:
    attrs, arrays = network(name, direction, batch, hidden)
    check(name, attrs, arrays, constants(arrays), tolerance=1e-5)


@needs_onednn
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_gru_that_is_linear_before_the_reset(direction: str) -> None:
    attrs, arrays = network("GRUSequence-5", direction, 2, 8, linear_before_reset=True)
    check("GRUSequence-5", attrs, arrays, constants(arrays), tolerance=1e-5)


@needs_onednn
@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
def test_activations_of_a_plain_network(activation: str) -> None:
    attrs, arrays = network("RNNSequence-5", "forward", 2, 8, activations=(activation,))
    check("RNNSequence-5", attrs, arrays, constants(arrays), tolerance=1e-5)


@needs_onednn
@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("hidden", [3, 64])
def test_numbers_that_are_none(name: str, hidden: int) -> None:
    for number in (np.nan, np.inf, -np.inf):
        for position in range(2):
            attrs, arrays = network(name, "forward", 2, hidden)
            arrays[position].flat[4] = number
            check(name, attrs, arrays, constants(arrays), tolerance=1e-5)


@needs_onednn
def test_data_with_the_time_first_and_the_heads_of_results() -> None:
    attrs, arrays = network("LSTMSequence-5", "bidirectional", 3, 8)
    arrays[0] = normal(6, 3, 5).swapaxes(0, 1)
    check("LSTMSequence-5", attrs, arrays, constants(arrays), tolerance=1e-5)
    results = apply("LSTMSequence-5", attrs, *arrays)
    for count in (1, 2):
        work = work_of("LSTMSequence-5", attrs, arrays, results[:count], constants(arrays))
        compiled = prepared(work)
        assert compiled is not None
        for output, result in zip(computed(work, compiled, arrays), results, strict=False):
            np.testing.assert_allclose(output, result, atol=1e-5)


@needs_onednn
@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_data_states_weights_and_biases_that_are_views(name: str, number: int, direction: str) -> None:
    for position in range(len(network(name, direction, 2, 8)[1])):
        attrs, arrays = network(name, direction, 2, 8)
        if arrays[position].dtype == np.float32:
            arrays[position] = views(*arrays[position].shape)[number]
            check_if_taken(name, attrs, arrays, constants(arrays))


@needs_onednn
def test_networks_that_are_not_taken() -> None:
    attrs, arrays = network("LSTMSequence-5", "forward", 2, 8)
    assert refused("LSTMSequence-5", attrs | {"clip": 0.5}, arrays, constants(arrays))
    assert refused("LSTMSequence-5", attrs | {"activations": ("tanh", "tanh", "tanh")}, arrays, constants(arrays))
    assert refused("LSTMSequence-5", attrs, arrays, [])
    plain, given = network("RNNSequence-5", "forward", 2, 8, activations=("relu",))
    assert refused("RNNSequence-5", plain, given, constants(given))
    arrays[3] = np.array([6, 4])
    assert refused("LSTMSequence-5", attrs, arrays, constants(arrays))


@needs_onednn
@pytest.mark.parametrize("name", ["LSTMCell-4", "GRUCell-3", "RNNCell-3"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("hidden", [6, 64])
def test_cells(name: str, batch: int, hidden: int) -> None:
    gates, states = {"LSTMCell-4": (4, 2), "GRUCell-3": (3, 1), "RNNCell-3": (1, 1)}[name]
    for before_reset in (False, True) if gates == 3 else (False,):
        rows = [(gates * hidden, 5), (gates * hidden, hidden), ((gates + before_reset) * hidden,)]
        arrays = [normal(batch, 5), *(normal(batch, hidden, seed=n) for n in range(states))]
        arrays += [normal(*shape, seed=7) / np.float32(4) for shape in rows]
        attrs = {"hidden_size": hidden} | ({"linear_before_reset": before_reset} if gates == 3 else {})
        fixed = range(1 + states, 4 + states)
        compiled = check(name, attrs, arrays, fixed, tolerance=1e-5)
        assert compiled.taken == frozenset(fixed)
        assert refused(name, attrs | {"clip": 0.5}, arrays, fixed)
        for position in range(1 + states):
            for view in views(*arrays[position].shape):
                check_if_taken(name, attrs, [*arrays[:position], view, *arrays[position + 1 :]], fixed)


@needs_onednn
def test_a_cell_of_one_number() -> None:
    one, half = np.float32([[1]]), np.float32([[0.5]])
    arrays = [one, half, half, np.full((4, 1), 2, np.float32), np.zeros((4, 1), np.float32), np.zeros(4, np.float32)]
    work = work_of("LSTMCell-4", {"hidden_size": 1}, arrays, [one, one], [3, 4, 5])
    compiled = prepared(work)
    assert compiled is not None
    hidden, cell = computed(work, compiled, arrays)
    np.testing.assert_allclose(cell, [[0.880797 * (0.5 + 0.964028)]], rtol=1e-5)
    np.testing.assert_allclose(hidden, [[0.880797 * 0.858998]], rtol=1e-5)
