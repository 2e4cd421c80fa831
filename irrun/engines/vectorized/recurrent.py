"""Recurrent layers on numpy: one product for the inputs of all time steps, then the loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from irrun.engines.memory import ITEM
from irrun.engines.threads import Threads
from irrun.engines.vectorized.recurrent_loop import (
    KINDS,
    Extent,
    Loop,
    Parameters,
    cell_calls,
    memory_of,
    parameters_of,
)
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.spec.op import Array


def recurrent(work: Work, threads: Threads) -> Compiled | None:
    """A sequence of LSTM, GRU or RNN, or a cell of one, with constant weights."""
    name, attrs = work.name, work.attrs
    cell = "Cell" in name
    kind = KINDS[name[: name.index("Cell" if cell else "Sequence")]]
    first = 1 + kind.states + (0 if cell else 1)
    (X,), (W, R, B) = work.required(1), (work.constant(number) for number in range(first, first + 3))
    if X.type != "f32" or work.posts or attrs.get("input_forget"):
        return None
    if W is None or R is None or (B is None and work.optional(first + 2) is not None):
        return None
    if cell:
        geometry = Extent(1, X.shape[0], 1, X.shape[1], attrs["hidden_size"], False)
    else:
        directions, reverse = W.shape[0], attrs["direction"] != "forward"
        geometry = Extent(directions, X.shape[0], X.shape[1], X.shape[2], attrs["hidden_size"], reverse)
    lengths = None if cell else work.constant(1 + kind.states)
    needed = [] if cell else memory_of(kind, geometry)

    @cache
    def parameters() -> Parameters:
        return parameters_of(kind, geometry, W, R, B, attrs)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        if cell:
            return threads.alone(chain(cell_calls(kind, parameters(), attrs, inputs, outputs)))
        loop = Loop(kind, geometry, parameters(), attrs, inputs, outputs, scratch)
        whole = chain(loop.calls())
        if lengths is not None and (lengths == geometry.steps).all():
            return threads.alone(whole)
        sizes = inputs[1 + kind.states]

        def call() -> None:
            if (sizes == geometry.steps).all():
                whole()
            else:
                loop.run_to(sizes.astype(np.int64))

        return threads.alone(call)

    return Compiled(bind, scratch=ITEM * sum(map(prod, needed)))


COMPILERS = dict.fromkeys(
    (
        *("GRUCell-3", "LSTMCell-1", "LSTMCell-4", "RNNCell-3"),
        *("GRUSequence-5", "LSTMSequence-5", "RNNSequence-5"),
    ),
    recurrent,
)
