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
    placed,
    prepared,
    refused,
    room,
    views,
    work_of,
)

from irrun.spec.op import Array

GATES = {"LSTMSequence-5": 4, "GRUSequence-5": 3, "RNNSequence-5": 1}


def network(
    name: str, direction: str, batch: int, hidden: int, steps: int = 6, **attrs: Any
) -> tuple[dict[str, Any], list[Array]]:
    directions, inner, gates = 1 + (direction == "bidirectional"), 5, GATES[name]
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
@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("lengths", "hidden"), [((6, 6), 8), ((3, 0, 6), 8), ((1, 5), 33), ((4,), 8), ((0, 0), 8), ((2, 6), 300)]
)
def test_sequences_of_lengths_of_their_own(name: str, direction: str, lengths: tuple[int, ...], hidden: int) -> None:
    attrs, arrays = network(name, direction, len(lengths), hidden)
    ends, first = len(arrays) - 4, len(arrays) - 3
    for type in (np.int32, np.int64):
        arrays[ends] = np.array(lengths, type)
        check(name, attrs, arrays, constants(arrays)[1:], tolerance=1e-5)
    check(name, attrs, arrays, constants(arrays), tolerance=1e-5)
    arrays[0] = np.ascontiguousarray(arrays[0].swapaxes(0, 1)).swapaxes(0, 1)
    compiled = check(name, attrs, arrays, constants(arrays)[1:], tolerance=1e-5)
    # what keeps the last cell states of an LSTM has doubts at times, and then reads the weights
    assert compiled.taken == (frozenset() if name.startswith("LSTM") else frozenset(range(first, first + 3)))


@needs_onednn
@pytest.mark.parametrize("name", GATES)
def test_two_directions_on_two_threads(name: str) -> None:
    for before_reset in (False, True) if name.startswith("GRU") else (False,):
        more = {"linear_before_reset": True} if before_reset else {}
        attrs, arrays = network(name, "bidirectional", 3, 96, 60, **more)
        check(name, attrs, arrays, constants(arrays), tolerance=1e-5)
        arrays[-4] = np.array([60, 17, 44])
        check(name, attrs, arrays, constants(arrays)[1:], tolerance=1e-5)


@needs_onednn
@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_what_comes_behind_the_end_of_a_sequence_is_nothing(name: str, direction: str) -> None:
    attrs, arrays = network(name, direction, 3, 8)
    lengths = arrays[-4] = np.array([2, 6, 0])
    wanted = apply(name, attrs, *arrays)
    for number in (np.nan, np.inf, -np.inf):
        for item, length in enumerate(lengths):
            arrays[0][item, length:] = number
        arrays[1][2] = number  # of a sequence that is empty
        check(name, attrs, arrays, constants(arrays)[1:], tolerance=1e-5)
        for result, expected in zip(apply(name, attrs, *arrays), wanted, strict=True):
            np.testing.assert_array_equal(result, expected)


@needs_onednn
def test_lengths_that_change_from_call_to_call() -> None:
    attrs, arrays = network("LSTMSequence-5", "bidirectional", 2, 8)
    work = work_of("LSTMSequence-5", attrs, arrays, apply("LSTMSequence-5", attrs, *arrays), constants(arrays)[1:])
    compiled = prepared(work)
    assert compiled is not None
    outputs = [placed(own.shape, compiled.gives.get(number)) for number, own in enumerate(work.outputs)]
    call = compiled.bind(arrays, outputs, room(compiled.scratch))
    for lengths in ([6, 6], [0, 3], [6, 1], [5, 6]):
        arrays[3][:] = lengths
        call()
        for output, wanted in zip(outputs, apply("LSTMSequence-5", attrs, *arrays), strict=True):
            np.testing.assert_allclose(output, wanted, atol=1e-5)


@needs_onednn
def test_a_cell_state_behind_a_state_that_is_no_number() -> None:
    one, inf = np.ones((1, 1, 1), np.float32), np.float32(np.inf)
    attrs = {"hidden_size": 1, "direction": "forward"}
    weights = np.float32([[[1, 1], [1, 1], [1, 1], [1, -1]]])  # inf - inf in the last gate, of what comes out
    last = [np.ones((1, 4, 1), np.float32), np.zeros((1, 4), np.float32)]
    arrays = [np.full((1, 3, 2), inf), one, one, np.array([1]), weights, *last]
    with np.errstate(invalid="ignore"):
        check("LSTMSequence-5", attrs, arrays, (4, 5, 6))
    hidden, cell = apply("LSTMSequence-5", attrs, *arrays)[1:]
    assert np.isnan(hidden).all()
    assert cell.ravel().tolist() == [2]


@needs_onednn
def test_weights_that_are_larger_than_any_mark() -> None:
    attrs, arrays = network("LSTMSequence-5", "forward", 2, 8)
    arrays[3] = np.array([6, 4])
    assert not refused("LSTMSequence-5", attrs, arrays, constants(arrays))
    for position in (5, 6):
        for number in (1e20, np.inf, np.nan):
            others = [array.copy() for array in arrays]
            others[position].flat[3] = number
            assert refused("LSTMSequence-5", attrs, others, constants(arrays))


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
        work = work_of("LSTMSequence-5", attrs, arrays, results[:count], constants(arrays)[1:])
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
            arrays[-4] = np.array([5, 3])
            check_if_taken(name, attrs, arrays, constants(arrays)[1:])


@needs_onednn
def test_a_state_that_is_repeated() -> None:
    attrs, arrays = network("GRUSequence-5", "bidirectional", 2, 8)
    arrays[1] = np.broadcast_to(np.float32(0.5), arrays[1].shape)
    check("GRUSequence-5", attrs, arrays, constants(arrays), tolerance=1e-5)
    check("GRUSequence-5", attrs, arrays, constants(arrays)[1:], tolerance=1e-5)


@needs_onednn
def test_networks_that_are_not_taken() -> None:
    attrs, arrays = network("LSTMSequence-5", "forward", 2, 8)
    assert refused("LSTMSequence-5", attrs | {"clip": 0.5}, arrays, constants(arrays))
    assert refused("LSTMSequence-5", attrs | {"activations": ("tanh", "tanh", "tanh")}, arrays, constants(arrays))
    assert refused("LSTMSequence-5", attrs, arrays, [])
    plain, given = network("RNNSequence-5", "forward", 2, 8, activations=("relu",))
    assert refused("RNNSequence-5", plain, given, constants(given))
    arrays[3] = np.array([6, 4], np.float32)
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
