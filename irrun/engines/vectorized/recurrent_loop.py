"""The loop of a recurrent layer, and the single step of a cell: few calls on fixed memory for each time step.

Arrays are `[directions, ..., batch, features]`: both directions take a step in the same calls. Gates stand side by side
with those of the same activation function next to each other: f, i, o, c of an LSTM, z, r, h of a GRU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np

from irrun.engines.vectorized import functions
from irrun.engines.work import Arrays, Call
from irrun.records import NamedTuple
from irrun.spec.op import Array


class Kind(NamedTuple):
    """A kind of network: its gates, in the order of the loop, by their place in the weights; and its states."""

    gates: tuple[int, ...]
    curved: int
    """How many gates, the first ones, have the first activation function."""
    states: int


KINDS = {"LSTM": Kind((0, 1, 3, 2), 3, 2), "GRU": Kind((0, 1, 2), 2, 1), "RNN": Kind((0,), 0, 1)}


class Extent(NamedTuple):
    """The sizes of a layer; a cell has one step and one direction."""

    directions: int
    batch: int
    steps: int
    inputs: int
    hidden: int
    reverse: bool
    """Whether the last direction runs backward."""

    def backward(self, direction: int) -> bool:
        return self.reverse and direction == self.directions - 1


class Parameters(NamedTuple):
    """Weights as the loop has them, from `[directions, gates * hidden, ...]`."""

    W: Any
    """[directions, gates * hidden, inputs]"""
    R: Any
    """[directions, hidden, gates * hidden]"""
    bias: Any
    """[directions, 1, gates * hidden], of the projected inputs"""
    recurrent_bias: Any
    """[directions, 1, hidden], of the recurrent part of the last gate, or None"""


def halved(attrs: Any) -> bool:
    """Whether arguments of the sigmoid come halved, so that one tanh computes all gates: (1 + tanh(x / 2)) / 2."""
    names = [name.lower() for name in attrs["activations"]]
    return names[:2] == ["sigmoid", "tanh"] and not 0 < attrs["clip"] < inf


def parameters_of(kind: Kind, geometry: Extent, W: Any, R: Any, B: Any, attrs: Any) -> Parameters:
    """The weights [directions, gates * hidden, ...] and biases of an op with its gates in the order of the loop, and
    what sigmoids are given halved where it is to come so."""
    directions, hidden, count = geometry.directions, geometry.hidden, len(kind.gates)
    order = list(kind.gates)
    factors = np.array([0.5 if halved(attrs) and gate < kind.curved else 1 for gate in range(count)], np.float32)
    W = W.reshape(directions, count, hidden, -1)[:, order] * factors[:, None, None]
    R = R.reshape(directions, count, hidden, hidden)[:, order] * factors[:, None, None]
    bias: Any = np.zeros((directions, 1, count * hidden), np.float32)
    recurrent_bias = None
    if B is not None:
        B = B.reshape(directions, -1, hidden)
        bias = (B[:, order] * factors[:, None]).reshape(directions, 1, -1)
        recurrent_bias = B[:, None, count] if attrs.get("linear_before_reset") else None
    return Parameters(
        W.reshape(directions, count * hidden, -1),
        np.ascontiguousarray(R.reshape(directions, count * hidden, hidden).swapaxes(1, 2)),
        bias,
        recurrent_bias,
    )


def memory_of(kind: Kind, geometry: Extent) -> list[tuple[int, ...]]:
    """The shapes of what a loop needs: inputs, projected inputs, outputs, gates, two states, and one more of them."""
    directions, batch, steps, hidden = geometry.directions, geometry.batch, geometry.steps, geometry.hidden
    gates = len(kind.gates) * hidden
    state = (directions, batch, hidden)
    return [
        (directions, steps, batch, geometry.inputs),
        (directions, steps, batch, gates),
        (directions, steps, batch, hidden),
        (directions, batch, gates),
        state,
        state,
        state,
    ]


class Loop:
    """A recurrent layer bound to its memory."""

    def __init__(
        self,
        kind: Kind,
        geometry: Extent,
        parameters: Parameters,
        attrs: Any,
        inputs: Arrays,
        outputs: Sequence[Array],
        scratch: Array,
    ) -> None:
        self.kind, self.geometry, self.parameters, self.attrs = kind, geometry, parameters, attrs
        self.before_reset = bool(attrs.get("linear_before_reset"))
        parts, start, memory = [], 0, scratch[: scratch.size // 4 * 4].view(np.float32)
        for shape in memory_of(kind, geometry):
            parts.append(memory[start : start + prod(shape)].reshape(shape))
            start += prod(shape)
        self.X, self.projected, self.hidden, self.gates, self.first, self.cell, self.other = parts
        data, *states = inputs[: 1 + kind.states]
        self.data = data.transpose(1, 0, 2)  # [steps, batch, inputs]
        # [directions, batch, hidden]
        self.states = [state.transpose(1, 0, 2) for state in states if state is not None]
        self.Y = outputs[0].transpose(1, 2, 0, 3)  # [directions, steps, batch, hidden]
        self.last = [output.transpose(1, 0, 2) for output in outputs[1:]]  # a file may leave out the last outputs

    def calls(self) -> list[Call]:
        """Everything, for sequences of full length."""
        geometry = self.geometry
        calls = self._given()
        orders = [slice(None, None, -1 if geometry.backward(n) else 1) for n in range(geometry.directions)]
        calls += [partial(np.copyto, X, self.data[order]) for X, order in zip(self.X, orders, strict=True)]
        calls += self._projection()
        before = self.first
        for time in range(geometry.steps):
            calls += self._step(time, before, self.hidden[:, time])
            before = self.hidden[:, time]
        results = zip(self.Y, self.hidden, orders, strict=True)
        calls += [partial(np.copyto, Y, hidden[order]) for Y, hidden, order in results]
        calls += [partial(np.copyto, last, state) for last, state in zip(self.last, (before, self.cell), strict=False)]
        return calls

    def run_to(self, lengths: Any) -> None:
        """Everything, for sequences of lengths of their own."""
        geometry = self.geometry
        times = np.arange(geometry.steps)[:, None]
        alive = times < lengths  # [steps, batch]
        backward = np.where(alive, lengths - 1 - times, times)[:, :, None]
        for call in self._given():
            call()
        for direction in range(geometry.directions):
            flipped = geometry.backward(direction)
            self.X[direction] = np.take_along_axis(self.data, backward, 0) if flipped else self.data
        for call in self._projection():
            call()
        for time in range(geometry.steps):
            before = self.hidden[:, time - 1] if time else self.first
            cell = self.cell.copy()
            for call in self._step(time, before, self.hidden[:, time]):
                call()
            ended = ~alive[time, :, None]
            np.copyto(self.hidden[:, time], before, where=ended)
            np.copyto(self.cell, cell, where=ended)
        some = (lengths > 0)[:, None]
        for last, state in zip(self.last, (self.hidden[:, -1], self.cell), strict=False):
            last[...] = np.where(some, state, 0)
        outputs = np.where(alive[:, :, None], self.hidden, 0)
        if geometry.reverse:
            outputs[-1] = np.take_along_axis(outputs[-1], backward, 0)
        self.Y[...] = outputs

    def _given(self) -> list[Call]:
        return [
            partial(np.copyto, memory, state)
            for memory, state in zip((self.first, self.cell), self.states, strict=False)
        ]

    def _projection(self) -> list[Call]:
        calls: list[Call] = []
        for X, W, bias, result in zip(self.X, self.parameters.W, self.parameters.bias, self.projected, strict=True):
            rows = X.shape[0] * X.shape[1]
            product = result.reshape(rows, -1)
            calls.append(partial(np.matmul, X.reshape(rows, -1), W.T, product))
            calls.append(partial(np.add, product, bias, product))
        return calls

    def _step(self, time: int, before: Any, after: Any) -> list[Call]:
        """The calls of a step, from the hidden state `before` to the one `after`; the cell state is changed."""
        inputs, gates, R, size = self.projected[:, time], self.gates, self.parameters.R, self.geometry.hidden
        if len(self.kind.gates) == 1:
            product = partial(np.matmul, before, R, after)
            return [product, partial(np.add, after, inputs, after), *activated(self.attrs, 0, after)]
        if self.kind.states == 2:
            product = partial(np.matmul, before, R, gates)
            states = lstm_states(self.attrs, gates, self.cell, self.cell, after)
            return [product, partial(np.add, gates, inputs, gates), *states]
        gates, late = gates[..., : 2 * size], None
        calls: list[Call] = []
        if self.before_reset:
            calls = [partial(np.matmul, before, R, self.gates)]
            if self.parameters.recurrent_bias is not None:
                last = self.gates[..., 2 * size :]
                calls.append(partial(np.add, last, self.parameters.recurrent_bias, last))
        else:
            calls, late = [partial(np.matmul, before, R[..., : 2 * size], gates)], R[..., 2 * size :]
        candidate = self.other if late is not None else self.gates[..., 2 * size :]
        calls.append(partial(np.add, gates, inputs[..., : 2 * size], gates))
        return calls + gru_state(self.attrs, gates, inputs[..., 2 * size :], candidate, late, before, after)


def cell_calls(kind: Kind, parameters: Parameters, attrs: Any, inputs: Arrays, outputs: Sequence[Array]) -> list[Call]:
    """The step of a cell: its state, a 1 and its data side by side, times all weights and biases at once."""
    data, state, *cell = (array for array in inputs[: 1 + kind.states] if array is not None)
    size = state.shape[1]
    table: Any = np.concatenate([parameters.R[0], parameters.bias[0], parameters.W[0].T])
    side = np.ones((len(data), len(table)), np.float32)
    calls: list[Call] = [
        partial(np.copyto, side[:, :size], state),
        partial(np.copyto, side[:, size + 1 :], data),
    ]
    if not kind.curved:
        return [*calls, partial(np.matmul, side, table, outputs[0]), *activated(attrs, 0, outputs[0])]
    gates = np.empty((len(data), len(kind.gates) * size if cell else 2 * size), np.float32)
    calls.append(partial(np.matmul, side, table[:, : gates.shape[1]].copy(), gates))
    if cell:
        after = outputs[1] if len(outputs) > 1 else np.empty_like(outputs[0])
        return calls + lstm_states(attrs, gates, cell[0], after, outputs[0])
    # the candidate of a GRU is made of what the data give and, later, of what the state gives
    given, candidate, late = np.empty_like(outputs[0]), np.empty_like(outputs[0]), parameters.R[0, :, 2 * size :]
    calls.append(partial(np.matmul, side[:, size:], table[size:, 2 * size :].copy(), given))
    if attrs.get("linear_before_reset"):
        bias = np.zeros((1, size), np.float32) if parameters.recurrent_bias is None else parameters.recurrent_bias[0]
        calls.append(partial(np.matmul, side[:, : size + 1], np.concatenate([late, bias.reshape(1, size)]), candidate))
        late = None
    return calls + gru_state(attrs, gates, given, candidate, late, state, outputs[0])


def lstm_states(attrs: Any, gates: Any, before: Any, cell: Any, after: Any) -> list[Call]:
    """The calls from the arguments of all gates and the cell state `before` to the next states."""
    size = after.shape[-1]
    forget, take, output, candidate = (gates[..., size * k : size * (k + 1)] for k in range(4))
    return [
        *_gated(attrs, gates, 3 * size),
        partial(np.multiply, before, forget, cell),
        partial(np.multiply, candidate, take, candidate),
        partial(np.add, cell, candidate, cell),
        *(ACTIVATIONS[attrs["activations"][2].lower()](cell, after)),
        partial(np.multiply, after, output, after),
    ]


def gru_state(attrs: Any, gates: Any, given: Any, candidate: Any, late: Any, before: Any, after: Any) -> list[Call]:
    """The calls from the arguments of the first two gates, and what the data give to the last one, to the next state.

    `candidate` holds what the state gives to it, unless there are `late` weights for the state that is reset before.
    """
    size = after.shape[-1]
    update, reset = gates[..., :size], gates[..., size:]
    if late is None:
        recurrent: list[Call] = [partial(np.multiply, candidate, reset, candidate)]
    else:
        recurrent = [partial(np.multiply, before, reset, after), partial(np.matmul, after, late, candidate)]
    return [
        *_gated(attrs, gates, 2 * size),
        *recurrent,
        partial(np.add, candidate, given, candidate),
        *activated(attrs, 1, candidate),
        partial(np.subtract, before, candidate, after),
        partial(np.multiply, after, update, after),
        partial(np.add, after, candidate, after),
    ]


def _gated(attrs: Any, gates: Any, edge: int) -> list[Call]:
    """The activations of gates, up to `edge` the first one, and from there on the second one."""
    first, second = gates[..., :edge], gates[..., edge:]
    if halved(attrs):
        return [
            partial(np.tanh, gates, gates),
            partial(np.multiply, first, functions.HALF, first),
            partial(np.add, first, functions.HALF, first),
        ]
    return [*activated(attrs, 0, first), *(activated(attrs, 1, second) if second.size else [])]


def activated(attrs: Any, number: int, gates: Any) -> list[Call]:
    """The activation of that number, of gates that are clipped before."""
    clip = attrs["clip"]
    limits = np.array([-clip, clip], np.float32)
    clipped = [partial(functions.clip, gates, limits[0], limits[1], gates)] if 0 < clip < inf else []
    return [*clipped, *ACTIVATIONS[attrs["activations"][number].lower()](gates, gates)]


ACTIVATIONS: dict[str, Callable[[Any, Any], list[Call]]] = {
    "relu": lambda x, output: [partial(functions.clip, x, functions.ZERO, functions.INFINITY, output)],
    "sigmoid": lambda x, output: [partial(functions.sigmoid, x, output)],
    "tanh": lambda x, output: [partial(np.tanh, x, output)],
}
