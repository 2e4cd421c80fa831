"""Recurrent networks as oneDNN has them: which ops it takes, and their primitives with all weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

from irrun.engines.axes import canonical_strides
from irrun.engines.memory import Arranged, aligned
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
    Descriptor,
    Library,
    Primitive,
)
from irrun.engines.onednn.posts import LOGISTIC, TANH
from irrun.engines.onednn.tensors import packed
from irrun.engines.threads import Threads
from irrun.engines.work import Call, Operand, Work, chain
from irrun.records import NamedTuple
from irrun.spec.op import Array

FORWARD, REVERSE, BIDIRECTIONAL = 1, 2, 3
DIRECTIONS = {"forward": FORWARD, "reverse": REVERSE, "bidirectional": BIDIRECTIONAL}
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
FEW_ROWS, MOST_WEIGHTS, MOST_PRODUCTS = range(1, 9), 1 << 17, 1 << 18
"""Of a cell that code of our own computes sooner: its rows, and the most weights and multiplications that it has. They
stay in the second cache of one processor; oneDNN needs 2 us beside them."""
STEP, SPEED = 1e-6, 30e9
"""Seconds that a thread needs for a step beside its multiplications, and how many of these it does in a second."""
STATES, NEW_STATES = (SRC_1, SRC_2), (DST_1, DST_2)


class Network(NamedTuple):
    """A work that oneDNN takes: a sequence, or a cell, which is `single` and has one step and one direction."""

    cell: _Cell
    single: bool
    function: int | None
    """The activation of a plain network."""
    before_reset: bool
    direction: int
    data: Operand
    states: Sequence[Operand]
    lengths: Operand | None
    weights: Any
    """[directions, gates * hidden, inner], as the op has them."""
    recurrence: Any
    biases: Any
    batch: int
    steps: int
    inner: int
    hidden: int

    @property
    def directions(self) -> int:
        return 2 if self.direction == BIDIRECTIONAL else 1

    @property
    def products(self) -> int:
        """Multiplications of a step in one direction."""
        return self.batch * len(self.cell.gates) * self.hidden * (self.inner + self.hidden)

    @property
    def is_small(self) -> bool:
        """Whether one thread is through with a step sooner than several."""
        return self.products < (MAX_ALONE_IN_A_CELL if self.single else MAX_ALONE)

    @property
    def is_small_cell(self) -> bool:
        """Whether it is a cell that code of our own computes sooner: an LSTM, or a GRU with its reset behind the
        product."""
        if not self.single or self.batch not in FEW_ROWS or self.data.type != "f32":
            return False
        known = self.cell.kind == "lstm" or self.before_reset
        return known and self.products <= min(MOST_WEIGHTS * self.batch, MOST_PRODUCTS)

    def is_shared(self, threads: Threads) -> bool:
        """Whether each of two directions has a thread of its own, so that none waits for another in each step."""
        seconds = self.steps * (STEP + self.products / SPEED)
        shared = self.direction == BIDIRECTIONAL and threads.pieces(seconds) > 1
        return shared and (self.is_small or threads.count == 2)

    def source(self, library: Library) -> Descriptor | None:
        """The data as oneDNN has them, [steps, batch, inner]."""
        shape, own = (self.steps, self.batch, self.inner), self.data.strides
        return library.strided(shape, canonical_strides(shape, (0, *own) if self.single else (own[1], own[0], own[2])))

    def target(self, library: Library, directions: int | None = None) -> Descriptor | None:
        """The results of some directions, all unless told, [steps, batch, directions * hidden], in what is `given`."""
        step = 4 * self.directions * self.hidden
        width = self.hidden * (directions or self.directions)
        return library.strided((self.steps, self.batch, width), (step, step * self.steps, 4))

    def given(self, library: Library) -> Descriptor | None:
        """How the results [batch, directions, steps, hidden] lie: those of a step beside each other."""
        width = self.directions * self.hidden
        shape = (self.batch, self.directions, self.steps, self.hidden)
        return library.strided(shape, (4 * width * self.steps, 4 * self.hidden, 4 * width, 4))

    def seen(self, states: Array) -> Array:
        """States, [batch, directions, hidden] also of a cell."""
        return states.reshape(self.batch, self.directions, self.hidden)

    def seen_results(self, results: Array) -> Array:
        """Results, [batch, directions, steps, hidden] also of a cell."""
        return results.reshape(self.batch, self.directions, self.steps, self.hidden)


class Piece(NamedTuple):
    """A primitive for some directions of a network, with their weights."""

    network: Network
    own: slice
    primitive: Primitive
    source: Descriptor
    target: Descriptor
    constants: Sequence[tuple[int, Arranged]]
    shift: Array

    @property
    def room(self) -> int:
        """Bytes that a call needs."""
        return aligned(self.primitive.scratch)

    def bind(
        self, data: Array, results: Array, before: Sequence[Array], after: Sequence[Array | None], scratch: Any
    ) -> Call:
        """A call for data and results that lie as `source` and `target`, and for the states [batch, directions, hidden]
        before and after them; nobody wants those that are None."""
        shape = len(self.shift), self.network.batch, self.network.hidden
        layout = self.primitive.library.dense((1, *shape))
        # oneDNN has states as [directions, batch, hidden]
        given = [states.swapaxes(0, 1) for states in before]
        wanted = [np.empty(shape, np.float32) if states is None else states.swapaxes(0, 1) for states in after]
        read, written = ([_dense(states) for states in own] for own in (given, wanted))
        call = self.primitive.bind(
            [
                (SRC, self.source, data),
                *((number, layout, array) for number, array in zip(STATES, read, strict=False)),
                *((number, self.primitive.layout(number), constant.array()) for number, constant in self.constants),
                (BIAS, self.primitive.layout(BIAS), self.shift),
                (DST, self.target, results),
                *((number, layout, array) for number, array in zip(NEW_STATES, written, strict=False)),
            ],
            scratch,
        )
        return chain([*_copies(read, given), call, *_copies(wanted, written)])


def piece(
    library: Library,
    network: Network,
    own: slice,
    direction: int,
    source: Descriptor | None,
    target: Descriptor | None,
    *,
    small: bool,
    marks: Sequence[float] = (),
) -> Piece | None:
    """What computes the directions `own` one way, or both ways, from data [steps, batch, features] to results beside
    each other; None where oneDNN does not.

    With `marks` the data have one more feature, whose weight is one of these in all rows of a gate, by oneDNN's order.
    """
    cell, hidden, gates = network.cell, network.hidden, len(network.cell.gates)
    count = len(range(network.directions)[own])
    state = library.dense((1, count, network.batch, hidden))
    if source is None or target is None:
        return None
    primitive = library.primitive(
        f"{'lbr_' * network.before_reset}{cell.kind}_forward",
        INFERENCE,
        *(() if network.function is None else (network.function,)),
        direction,
        source,
        *(state,) * cell.states,
        library.any((1, count, source.shape[-1], gates, hidden)),
        library.any((1, count, hidden, gates, hidden)),
        *((None, None) if cell.kind == "lstm" else ()),
        library.dense((1, count, gates + network.before_reset, hidden)),
        target,
        *(state,) * cell.states,
        0,
        *(() if network.function is None else (0.0, 0.0)),
        small=small,
    )
    if primitive is None:
        return None
    constants = [
        (WEIGHTS, _packed(network, own, primitive, WEIGHTS, network.weights, marks)),
        (WEIGHTS_1, _packed(network, own, primitive, WEIGHTS_1, network.recurrence, ())),
    ]
    order = [*cell.gates, *[gates] * network.before_reset]
    biases = network.biases.reshape(network.directions, -1, hidden)[own][:, order]
    return Piece(network, own, primitive, source, target, constants, np.ascontiguousarray(biases))


def _packed(
    network: Network, own: slice, primitive: Primitive, number: int, value: Array, marks: Sequence[float]
) -> Arranged:
    """Weights [directions, gates * hidden, inner] of the directions `own` as [1, directions, inner, gates, hidden]."""
    library, gates, hidden = primitive.library, network.cell.gates, network.hidden
    inner, count = value.shape[-1] + bool(marks), len(range(network.directions)[own])

    def ordered(weights: Array) -> Array:
        table = weights.reshape(network.directions, len(gates), hidden, -1)[own][:, list(gates)]
        if marks:
            last = np.broadcast_to(np.array(marks, table.dtype)[:, None, None], (*table.shape[:-1], 1))
            table = np.concatenate([table, last], axis=-1)
        return np.ascontiguousarray(table)

    step = 4 * inner
    rows = len(gates) * hidden * step
    source = library.strided((1, count, inner, len(gates), hidden), (count * rows, rows, 4, hidden * step, step))
    assert source is not None
    return packed(library, value, source, primitive.layout(number), ordered, own.start)


def network_of(work: Work) -> Network | None:
    """What a work is, if it has constant weights and functions that oneDNN has; None where it does not."""
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
    if weights.value is None or recurrence.value is None or biases.value is None:
        return None
    if any(operand.layout is not None for operand in states):
        return None
    batch, steps, inner = (data.shape[0], 1, data.shape[1]) if single else data.shape
    return Network(
        cell,
        single,
        None if cell.activations else FUNCTIONS[functions[0]],
        bool(attrs.get("linear_before_reset")),
        DIRECTIONS[attrs.get("direction", "forward")],
        data,
        states,
        lengths,
        weights.value,
        recurrence.value,
        biases.value,
        batch,
        steps,
        inner,
        int(attrs["hidden_size"]),
    )


def _dense(states: Array) -> Array:
    """States as they are, or room for them in C order."""
    return states if states.flags.c_contiguous else np.empty(states.shape, states.dtype)


def _copies(targets: Sequence[Array], sources: Sequence[Array]) -> list[Call]:
    """What brings states to where they are not already."""
    pairs = zip(targets, sources, strict=True)
    return [partial(np.copyto, target, source) for target, source in pairs if target is not source]
