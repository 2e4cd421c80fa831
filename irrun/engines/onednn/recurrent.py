"""Recurrent networks over sequences that are all of full length, and cells: LSTM, GRU and plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

from irrun.engines.axes import canonical_strides, is_dense
from irrun.engines.onednn.library import (
    BIAS,
    DST,
    DST_1,
    DST_2,
    INFERENCE,
    SRC,
    SRC_1,
    SRC_2,
    WEIGHTS,
    WEIGHTS_1,
    Library,
    Primitive,
)
from irrun.engines.onednn.posts import LOGISTIC, TANH
from irrun.engines.onednn.tensors import Packed, given_as, packed
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.records import NamedTuple
from irrun.spec.op import Array

DIRECTIONS = {"forward": 1, "reverse": 2, "bidirectional": 3}
FUNCTIONS = {"tanh": TANH, "sigmoid": LOGISTIC}
"""Of plain networks; ReLU, which makes a number of NaN here, is left to others."""


class _Cell(NamedTuple):
    """A kind of recurrent op: its primitive, its activations, and its gates in the order that oneDNN has them in."""

    kind: str
    activations: tuple[str, ...]
    gates: tuple[int, ...]
    states: int = 1


CELLS = {
    **dict.fromkeys(
        ("LSTMSequence-5", "LSTMCell-4"), _Cell("lstm", ("sigmoid", "tanh", "tanh"), (1, 0, 2, 3), states=2)
    ),
    **dict.fromkeys(("GRUSequence-5", "GRUCell-3"), _Cell("gru", ("sigmoid", "tanh"), (0, 1, 2))),
    **dict.fromkeys(("RNNSequence-5", "RNNCell-3"), _Cell("vanilla_rnn", (), (0,))),
}
MAX_ALONE, MAX_ALONE_IN_A_CELL = 500_000, 300_000
"""Multiplications of a step that one thread does sooner than two, which wait for each other twice in every step of a
sequence. In a single step they do so once, and each has half of the weights, which may stay in its cache.
"""
STATES, NEW_STATES = (SRC_1, SRC_2), (DST_1, DST_2)


def compile(library: Library, work: Work) -> Compiled | None:
    """Sequences, and cells as such of one step, with constant weights."""
    cell, attrs = CELLS[work.name], work.attrs
    single = "Cell" in work.name
    data, *states, weights, recurrence, biases = [operand for operand in work.inputs if operand is not None]
    functions = tuple(name.lower() for name in attrs["activations"])
    lengths = None if single or len(states) <= cell.states else states.pop()
    if len(states) != cell.states or work.posts or 0 < attrs["clip"] < inf:
        return None
    if functions[: len(cell.activations)] != cell.activations or data.layout is not None:
        return None
    if not cell.activations and functions[0] not in FUNCTIONS:
        return None
    if not single and (lengths is None or lengths.value is None or (lengths.value != data.shape[1]).any()):
        return None
    if weights.value is None or recurrence.value is None or biases.value is None:
        return None
    if not all(is_dense(operand) for operand in states):
        return None

    before_reset = bool(attrs.get("linear_before_reset"))
    batch, steps, inner = (data.shape[0], 1, data.shape[1]) if single else data.shape
    directions, hidden = 1 if single else weights.shape[0], int(attrs["hidden_size"])
    gates = len(cell.gates)
    source = library.strided((steps, batch, inner), canonical_strides((steps, batch, inner), _time_first(data)))
    if source is None:
        return None
    state = library.dense((1, directions, batch, hidden))
    # oneDNN writes [batch, steps, directions * hidden]
    width = directions * hidden
    target = library.strided((steps, batch, width), (4 * width, 4 * width * steps, 4))
    result = (batch, directions, steps, hidden)
    given = library.strided(result, (4 * width * steps, 4 * hidden, 4 * width, 4))
    primitive = library.primitive(
        f"{'lbr_' * before_reset}{cell.kind}_forward",
        INFERENCE,
        *((FUNCTIONS[functions[0]],) if cell.kind == "vanilla_rnn" else ()),
        DIRECTIONS[attrs.get("direction", "forward")],
        source,
        *(state,) * cell.states,
        library.any((1, directions, inner, gates, hidden)),
        library.any((1, directions, hidden, gates, hidden)),
        *((None, None) if cell.kind == "lstm" else ()),
        library.dense((1, directions, gates + before_reset, hidden)),
        target,
        *(state,) * cell.states,
        0,
        *((0.0, 0.0) if cell.kind == "vanilla_rnn" else ()),
        small=batch * gates * hidden * (inner + hidden) < (MAX_ALONE_IN_A_CELL if single else MAX_ALONE),
    )
    if primitive is None or target is None:
        return None
    order = list(cell.gates) + [gates] * before_reset
    laid_out = {
        WEIGHTS: _packed(library, primitive, WEIGHTS, weights.value, (directions, inner), cell.gates),
        WEIGHTS_1: _packed(library, primitive, WEIGHTS_1, recurrence.value, (directions, hidden), cell.gates),
    }
    shift = np.ascontiguousarray(biases.value.reshape(directions, -1, hidden)[:, order])
    reading, writing = STATES[: cell.states], NEW_STATES[: cell.states]

    def seen(states: Array) -> Array:
        """States [batch, directions, hidden] as oneDNN has them: [directions, batch, hidden]."""
        return states.reshape(batch, directions, hidden).swapaxes(0, 1)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        spare = [np.empty((directions, batch, hidden), np.float32) for _ in range(cell.states)]
        before = [seen(array) for array in inputs[1 : 1 + cell.states]]
        # the first state of a cell is the result itself
        after = [*spare[:single], *(seen(array) for array in outputs[1:]), *spare[single:]][: cell.states]
        read, written = ([_dense(states) for states in own] for own in (before, after))
        call = primitive.bind(
            [
                (SRC, source, inputs[0]),
                *((number, state, array) for number, array in zip(reading, read, strict=True)),
                *((number, constant.layout, constant.array()) for number, constant in laid_out.items()),
                (BIAS, primitive.layout(BIAS), shift),
                (DST, target, outputs[0]),
                *((number, state, array) for number, array in zip(writing, written, strict=True)),
            ],
            scratch,
        )
        return chain([*_copies(read, before), call, *_copies(after, written)])

    gives = given_as(work, None if single else given)
    return Compiled(bind, primitive.scratch, gives=gives, taken=frozenset(range(1 + cell.states, len(work.inputs))))


def _dense(states: Array) -> Array:
    return states if states.flags.c_contiguous else np.empty(states.shape, states.dtype)


def _copies(targets: Sequence[Array], sources: Sequence[Array]) -> list[Call]:
    pairs = zip(targets, sources, strict=True)
    return [partial(np.copyto, target, source) for target, source in pairs if target is not source]


def _time_first(data: Operand) -> tuple[int, ...]:
    return (0, *data.strides) if len(data.shape) == 2 else (data.strides[1], data.strides[0], data.strides[2])


def _packed(
    library: Library, primitive: Primitive, number: int, value: Array, shape: tuple[int, int], gates: Sequence[int]
) -> Packed:
    """Weights [directions, gates * hidden, inner], of which `shape` is the outer two, as [1, directions, inner, gates,
    hidden]."""
    directions, inner = shape
    hidden = value.size // (directions * len(gates) * inner)
    step = 4 * inner
    source = library.strided(
        (1, directions, inner, len(gates), hidden),
        (directions * len(gates) * hidden * step, len(gates) * hidden * step, 4, hidden * step, step),
    )
    assert source is not None

    def ordered(weights: Array) -> Array:
        return np.ascontiguousarray(weights.reshape(directions, len(gates), hidden, inner)[:, list(gates)])

    return packed(library, value, source, primitive.layout(number), ordered)


COMPILERS = dict.fromkeys(CELLS, compile)
