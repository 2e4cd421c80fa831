"""Recurrent networks over sequences that are all of full length, and cells: LSTM, GRU and plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

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
    Layout,
    Library,
    Primitive,
)
from irrun.engines.onednn.posts import LOGISTIC, RELU, TANH
from irrun.engines.onednn.tensors import Packed, lies_so
from irrun.engines.work import Call, Compiled, Operand, Work
from irrun.engines.work import Layout as AnyLayout
from irrun.spec.op import Array

DIRECTIONS = {"forward": 1, "reverse": 2, "bidirectional": 3}
FUNCTIONS = {"tanh": TANH, "relu": RELU, "sigmoid": LOGISTIC}


@dataclass(frozen=True, slots=True)
class _Cell:
    """A kind of recurrent op: its primitive, its activations, and its gates in the order that oneDNN has them in."""

    kind: str
    activations: tuple[str, ...]
    gates: tuple[int, ...]
    states: int = 1


_LSTM = _Cell("lstm", ("sigmoid", "tanh", "tanh"), (1, 0, 2, 3), states=2)
_GRU = _Cell("gru", ("sigmoid", "tanh"), (0, 1, 2))
_RNN = _Cell("vanilla_rnn", (), (0,))
CELLS = {
    "LSTMSequence-5": _LSTM,
    "GRUSequence-5": _GRU,
    "RNNSequence-5": _RNN,
    "LSTMCell-4": _LSTM,
    "GRUCell-3": _GRU,
    "RNNCell-3": _RNN,
}
MOST_ALONE, MOST_ALONE_IN_A_CELL = 500_000, 2_000_000
"""Multiplications of a step that one thread does sooner than two, which wait for each other twice in every step.

For a single step another thread has to be woken up, too.
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
        small=batch * gates * hidden * (inner + hidden) < (MOST_ALONE_IN_A_CELL if single else MOST_ALONE),
    )
    if primitive is None or target is None or given is None:
        return None
    order = list(cell.gates) + [gates] * before_reset
    packed = {
        WEIGHTS: _packed(library, primitive, WEIGHTS, weights.value.reshape(directions, -1, inner), cell.gates),
        WEIGHTS_1: _packed(library, primitive, WEIGHTS_1, recurrence.value.reshape(directions, -1, hidden), cell.gates),
    }
    shift = np.ascontiguousarray(biases.value.reshape(directions, -1, hidden)[:, order])
    reading, writing = STATES[: cell.states], NEW_STATES[: cell.states]

    def bind(inputs: Sequence[Array | None], outputs: Sequence[Array], scratch: Array | None) -> Call:
        read = [array for array in inputs[: 1 + cell.states] if array is not None]
        before = [_States(array, directions, batch, hidden) for array in read[1:]]
        after = [_States(None, directions, batch, hidden)] if single else []  # the first state is the result itself
        after += [_States(array, directions, batch, hidden) for array in outputs[1:]]
        after += [_States(None, directions, batch, hidden) for _ in range(cell.states - len(after))]
        call = primitive.bind(
            [
                (SRC, source, read[0]),
                *((number, state, own.array) for number, own in zip(reading, before, strict=True)),
                *((number, constant.layout, constant.array()) for number, constant in packed.items()),
                (BIAS, primitive.layout(BIAS), shift),
                (DST, target, outputs[0]),
                *((number, state, own.array) for number, own in zip(writing, after, strict=True)),
            ],
            scratch,
        )
        if directions == 1 or batch == 1:
            return call

        def both() -> None:
            for own in before:
                own.read()
            call()
            for own in after:
                own.write()

        return both

    count = len(work.inputs)
    gives: dict[int, AnyLayout] = {} if single or lies_so(work.outputs[0], given) else {0: given}
    return Compiled(bind, primitive.scratch, gives=gives, taken=frozenset(range(1 + cell.states, count)))


class _States:
    """States [batch, directions, hidden], as an array [directions, batch, hidden] that oneDNN reads or writes."""

    def __init__(self, outside: Array | None, directions: int, batch: int, hidden: int) -> None:
        same = outside is not None and (directions == 1 or batch == 1)
        self.array = outside if same and outside is not None else np.empty((directions, batch, hidden), np.float32)
        self._outside: Array | None = None
        if outside is not None and not same:
            self._outside = outside.view(np.float32).reshape(batch, directions, hidden).swapaxes(0, 1)

    def read(self) -> None:
        if self._outside is not None:
            np.copyto(self.array, self._outside)

    def write(self) -> None:
        if self._outside is not None:
            np.copyto(self._outside, self.array)


def _time_first(data: Operand) -> tuple[int, ...]:
    return (0, *data.strides) if len(data.shape) == 2 else (data.strides[1], data.strides[0], data.strides[2])


def _packed(library: Library, primitive: Primitive, number: int, value: Array, gates: Sequence[int]) -> Packed:
    """Weights [directions, gates * hidden, inner] as [1, directions, inner, gates, hidden]."""
    directions, rows, inner = value.shape
    hidden = rows // len(gates)
    ordered = np.ascontiguousarray(value.reshape(directions, len(gates), hidden, inner)[:, list(gates)])
    step = 4 * inner
    source = library.strided(
        (1, directions, inner, len(gates), hidden),
        (directions * rows * step, rows * step, 4, hidden * step, step),
    )
    assert source is not None
    layout: Layout = primitive.layout(number)
    return Packed(library, ordered, source, layout)


COMPILERS = dict.fromkeys(CELLS, compile)
