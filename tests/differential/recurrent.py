"""Recurrent sequences and cells, also of data and states that are repeated over the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential.builder import Builder, Rejected, Size, Value
from differential.heads import weights
from differential.operands import sizes_of

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}

FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}


def _spread(b: Builder, shape: list[Size]) -> Value:
    """An input of this shape, or one that is repeated along some axes by Broadcast."""
    known = [size for size in shape if isinstance(size, int)]
    if len(known) < len(shape) or b.chance(0.5):
        return b.input(shape)
    smaller = [1, *known[1:]] if b.chance(0.5) else [1 if b.chance(0.5) else size for size in known]
    return b.one("Broadcast-3", b.input(smaller), b.i64(known), mode="numpy")


def _options(b: Builder, kind: str) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    if b.chance(0.25):
        attrs["activations"] = [b.choose(["sigmoid", "tanh", "relu"]) for _ in range(FUNCTIONS[kind])]
    if b.chance(0.15):
        attrs["clip"] = 0.75
    if kind == "GRU":
        attrs["linear_before_reset"] = b.chance(0.5)
    return attrs


def _start(b: Builder, shape: list[Size]) -> Value:
    """The first state: an input, or zeros."""
    known = [size for size in shape if isinstance(size, int)]
    if len(known) == len(shape) and b.chance(0.3):
        return b.constant(np.zeros(known, b.dtype))
    return _spread(b, shape)


def sequence(b: Builder) -> Value:
    if b.dtype != np.float32 and b.dtype.kind != "f":
        raise Rejected
    kind = b.choose([*GATES])
    if b.chance(0.3):
        return repeated(b, kind)
    batch, length, width, hidden = b.dim(0.3), b.dim(0.3), b.choose([1, 3, 5, 8]), b.choose([1, 2, 4, 7])
    direction = b.choose(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    if b.values and b.chance(0.3):
        x = b.pick(3, fixed=[2])
        batch, length, width = sizes_of(x)  # type: ignore[assignment]
    else:
        x = _spread(b, [batch, length, width])
    sizes = [array.shape for array in x.arrays]
    if min(map(min, sizes)) < 1:
        raise Rejected
    lengths = [np.full(shape[0], shape[1], np.int32) for shape in sizes]
    short = b.chance(0.3)
    if short:
        lengths = [b.random.integers(0, shape[1] + 1, shape[0]).astype(np.int32) for shape in sizes]
    constant = isinstance(batch, int) and isinstance(length, int) and not (short and b.chance(0.5))
    ends = b.constant(lengths[0]) if constant else b.parameter(lengths)
    attrs = _options(b, kind)
    gates = GATES[kind] * hidden
    biases = gates + hidden if attrs.get("linear_before_reset") else gates
    states = [_start(b, [batch, ways, hidden]) for _ in range(2 if kind == "LSTM" else 1)]
    tables = [weights(b, shape, 0.5) for shape in ([ways, gates, width], [ways, gates, hidden], [ways, biases])]
    outputs = b.op(f"{kind}Sequence-5", x, *states, ends, *tables, hidden_size=hidden, direction=direction, **attrs)
    return b.choose([outputs[0], outputs[0], *outputs])


def repeated(b: Builder, kind: str) -> Value:
    """A plain sequence over data that are the same for the whole batch."""
    batch, length, width, hidden = b.number(1, 5), b.number(1, 9), b.choose([1, 3, 5, 8]), b.choose([1, 2, 4, 7])
    x = b.one("Broadcast-3", b.input([1, length, width]), b.i64([batch, length, width]), mode="numpy")
    states = [_start(b, [batch, 1, hidden]) for _ in range(2 if kind == "LSTM" else 1)]
    lengths = b.constant(np.full(batch, length, np.int32))
    gates = GATES[kind] * hidden
    shapes = ([1, gates, width], [1, gates, hidden], [1, gates])
    tables = [b.constant(b.data(shape, low=-0.5, high=0.5)) for shape in shapes]
    return b.one(f"{kind}Sequence-5", x, *states, lengths, *tables, hidden_size=hidden, direction="forward")


def cell(b: Builder) -> Value:
    if b.dtype.kind != "f":
        raise Rejected
    kind = b.choose([*GATES])
    batch, width, hidden = b.dim(), b.choose([1, 3, 5, 8]), b.choose([1, 2, 4, 7])
    attrs = _options(b, kind)
    gates = GATES[kind] * hidden
    biases = gates + hidden if attrs.get("linear_before_reset") else gates
    inputs = [_spread(b, [batch, width]), *(_start(b, [batch, hidden]) for _ in range(2 if kind == "LSTM" else 1))]
    tables = [weights(b, shape, 0.5) for shape in ([gates, width], [gates, hidden], [biases])]
    names = {"LSTM": "LSTMCell-4", "GRU": "GRUCell-3", "RNN": "RNNCell-3"}
    return b.choose(b.op(names[kind], *inputs, *tables, hidden_size=hidden, **attrs))
