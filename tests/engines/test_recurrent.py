"""Recurrent layers on numpy against the plain kernels: directions, lengths, activations, clipping, cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.works import THREADS, computed, plain, work_of

import irrun
from irrun.engines.vectorized.recurrent import COMPILERS
from irrun.engines.work import Compiled, Post, Work

rng = np.random.default_rng(4)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULT = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}


def numbers(*shape: int) -> Any:
    return (rng.standard_normal(shape) * 0.6).astype(np.float32)


def attributes(kind: str, hidden: int, **attrs: Any) -> dict[str, Any]:
    more = {"linear_before_reset": False} if kind == "GRU" else {}
    plain = {"activations": DEFAULT[kind], "activations_alpha": (), "activations_beta": (), "clip": 0.0}
    return {"hidden_size": hidden} | plain | more | attrs


def made(name: str, attrs: dict[str, Any], arrays: list[Any], constant: Any) -> tuple[Any, Work, Compiled | None]:
    expected = plain(name, attrs, arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    work = work_of(name, attrs, arrays, [(array.shape, "f32") for array in expected], (), constant)
    return expected, work, COMPILERS[name](work, THREADS)


def check(name: str, attrs: dict[str, Any], arrays: list[Any], constant: Any) -> None:
    expected, work, compiled = made(name, attrs, arrays, constant)
    assert compiled is not None
    for got, wanted in zip(computed(compiled, work, arrays), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=4e-6)


def sequence(
    kind: str, lengths: list[int], steps: int, direction: str, inputs: int = 5, hidden: int = 6, **attrs: Any
) -> None:
    batch, directions = len(lengths), 2 if direction == "bidirectional" else 1
    states = [numbers(batch, directions, hidden) for _ in range(2 if kind == "LSTM" else 1)]
    rows = GATES[kind] * hidden
    biases = rows + (hidden if attrs.get("linear_before_reset") else 0)
    scale = np.float32(min(1, 2 / hidden**0.5))
    weights = [*(numbers(directions, rows, size) * scale for size in (inputs, hidden)), numbers(directions, biases)]
    arrays = [numbers(batch, steps, inputs), *states, np.array(lengths, np.int32), *weights]
    constant = range(len(states) + 2, len(arrays))
    full = attributes(kind, hidden, direction=direction, **attrs)
    check(f"{kind}Sequence-5", full, arrays, constant)
    check(f"{kind}Sequence-5", full, arrays, [len(states) + 1, *constant])
    arrays[0] = np.ascontiguousarray(arrays[0].transpose(1, 0, 2)).transpose(1, 0, 2)
    check(f"{kind}Sequence-5", full, arrays, constant)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [[4, 4, 4], [4], [3, 0, 4], [1, 2, 2], [0, 0]])
def test_sequences(kind: str, direction: str, lengths: list[int]) -> None:
    sequence(kind, lengths, 4, direction)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("lengths", [[4, 4, 4], [3, 0, 4]])
def test_linear_before_reset(direction: str, lengths: list[int]) -> None:
    sequence("GRU", lengths, 4, direction, linear_before_reset=True)


@pytest.mark.parametrize("lengths", [[4, 4], [2, 4]])
def test_activations_and_clipping(lengths: list[int]) -> None:
    sequence("LSTM", lengths, 4, "forward", clip=0.3)
    sequence("LSTM", lengths, 4, "forward", activations=("tanh", "relu", "sigmoid"))
    sequence("LSTM", lengths, 4, "forward", activations=("Sigmoid", "Tanh", "Relu"))
    sequence("GRU", lengths, 4, "bidirectional", activations=("relu", "tanh"), clip=0.5)
    sequence("GRU", lengths, 4, "forward", clip=float("inf"))
    sequence("RNN", lengths, 4, "forward", activations=("relu",))


def test_a_long_sequence() -> None:
    sequence("LSTM", [60, 60], 60, "bidirectional", inputs=40, hidden=96)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("bias", [True, False])
def test_cells(kind: str, bias: bool) -> None:
    hidden, rows = 6, GATES[kind] * 6
    states = [numbers(3, hidden) for _ in range(2 if kind == "LSTM" else 1)]
    for linear in (False, True) if kind == "GRU" else (False,):
        attrs = attributes(kind, hidden) | ({"linear_before_reset": linear} if kind == "GRU" else {})
        arrays = [numbers(3, 5), *states, numbers(rows, 5), numbers(rows, hidden)]
        if bias or kind == "RNN":
            arrays.append(numbers(rows + (hidden if linear else 0)))
        version = {"LSTM": "4", "GRU": "3", "RNN": "3"}[kind]
        check(f"{kind}Cell-{version}", attrs, arrays, range(1 + len(states), len(arrays)))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("lengths", [[4, 4], [2, 4]])
def test_a_file_may_leave_out_the_last_outputs(count: int, lengths: list[int]) -> None:
    attrs = attributes("LSTM", 6, direction="forward")
    weights = [numbers(1, 24, 5), numbers(1, 24, 6), numbers(1, 24)]
    arrays = [numbers(2, 4, 5), numbers(2, 1, 6), numbers(2, 1, 6), np.array(lengths, np.int32), *weights]
    expected = plain("LSTMSequence-5", attrs, arrays)[:count]
    work = work_of("LSTMSequence-5", attrs, arrays, [(array.shape, "f32") for array in expected], (), (4, 5, 6))
    compiled = COMPILERS["LSTMSequence-5"](work, THREADS)
    assert compiled is not None
    for got, wanted in zip(computed(compiled, work, arrays), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_what_is_left_to_others() -> None:
    attrs = attributes("RNN", 6)
    arrays = [numbers(3, 5), numbers(3, 6), numbers(6, 5), numbers(6, 6), numbers(6)]
    assert made("RNNCell-3", attrs, arrays, (3, 4))[2] is None
    work = work_of("RNNCell-3", attrs, arrays, [((3, 6), "f32")], [Post("ReLU-1", {})], (2, 3, 4))
    assert COMPILERS["RNNCell-3"](work, THREADS) is None
    coupled = attributes("LSTM", 6) | {"input_forget": True, "weights_format": "fico"}
    cell = [numbers(3, 5), numbers(3, 6), numbers(3, 6), numbers(24, 5), numbers(24, 6), numbers(24)]
    assert made("LSTMCell-1", coupled, cell, (3, 4, 5))[2] is None


@pytest.mark.parametrize("engine", ["reference", "auto", "check"])
def test_peepholes_of_zeros(engine: str) -> None:
    """LSTMCell-1 has them as an input, of which others than zeros are refused: here by a run."""
    g, weights = irrun.build(opset=3), [numbers(12, 4), numbers(12, 3), numbers(12)]
    x, h, c = (g.Parameter(f"f32[2,{size}]") for size in (4, 3, 3))
    peepholes, attrs = g.Parameter("f32[9]"), attributes("LSTM", 3)
    for inputs in ((*weights,), (*weights, peepholes)):
        for state in g.op("LSTMCell-1", x, h, c, *inputs, **attrs):
            g.Result(state)
    executor = irrun.GraphExecutor(g.model, engine=engine)
    arrays = [numbers(2, 4), numbers(2, 3), numbers(2, 3), np.zeros(9, np.float32)]
    plain_h, plain_c, h, c = executor.run(arrays).values()
    np.testing.assert_allclose(h, plain_h, rtol=1e-6)
    np.testing.assert_allclose(c, plain_c, rtol=1e-6)
    arrays[3][2] = 0.5
    with pytest.raises(irrun.IRError, match=r"LSTMCell-1 C4: `P\[2\]` is 0.5, expected zeros"):
        executor.run(arrays)
