"""LSTM cells, and GRU cells with the reset behind the product, of few rows with constant weights.

They are what loops have that go over a sequence, and models that are run for each piece of a stream. oneDNN needs twice
as long for small ones, and cannot be called together with the products around them.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides
from irrun.engines.compiled.cell_kernel import SUMS, CellKind, address_of, rows_at_once
from irrun.engines.compiled.code import LANES, LINE
from irrun.engines.compiled.panels import PRODUCTS
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, Arranged, allocate_lasting, arranged_once, data_address
from irrun.engines.onednn.networks import Network, network_of
from irrun.engines.work import Arrays, Call, Compiled, Layout, Work
from irrun.spec.op import Array

SECONDS = 0.2e-6
"""That one thread needs for the functions of 16 hidden units, about."""


def cell(work: Work, team: Team) -> Compiled | None:
    """LSTMCell-4 and GRUCell-3 of f32."""
    network = network_of(work)
    if network is None or not network.is_small_cell:
        return None
    read = work.required(1 + network.cell.states)
    rows = [(own.shape[-1] * ITEM, own.strides[-1]) if own.shape[0] == 1 else own.strides for own in read]
    wants: dict[int, Layout | None] = {}
    for number, (own, strides) in enumerate(zip(read, rows, strict=True)):
        if strides[0] < 0 or (own.shape[-1] > 1 and strides[1] != ITEM):
            wants[number], rows[number] = None, dense_strides(own.shape)
    blocks = -(-network.batch // rows_at_once())
    kind = CellKind(network.cell.kind, -(-network.batch // blocks), len(work.outputs))
    return _compiled(kind, [own[0] for own in rows], wants, team, network)


def _compiled(
    kind: CellKind, rows: Sequence[int], wants: dict[int, Layout | None], team: Team, network: Network
) -> Compiled:
    """For data and states whose rows are so many bytes apart."""

    def again(work: Work) -> Compiled:
        other = network_of(work)
        assert other is not None
        return _compiled(kind, rows, wants, team, other)

    states = network.cell.states
    weights = range(1 + states, 4 + states)
    bind = partial(_bind, kind, rows, network, _arranged_once(network), team)
    return Compiled(bind, 0, wants, taken=frozenset(weights), again=again)


def _bind(
    kind: CellKind,
    rows: Sequence[int],
    network: Network,
    arranged: Arranged,
    team: Team,
    inputs: Arrays,
    outputs: Sequence[Array],
    _: Any,
) -> Call:
    numbers = arranged.array()
    panels = -(-network.hidden // LANES)
    weights, biases = numbers[: -panels * SUMS], numbers[-panels * SUMS :]
    seconds = network.products / PRODUCTS + network.batch * panels * SECONDS
    told = {"items": 1, "panels": panels, "panel": weights.nbytes // panels}
    told |= {"weights": data_address(weights), "biases": data_address(biases)}
    told |= {"rows": network.batch, "inner": network.inner, "hidden": network.hidden}
    told |= {"data": data_address(inputs[0]), "data_row": rows[0]}
    for own in range(network.cell.states):
        told |= {f"before_{own}": data_address(inputs[1 + own]), f"before_row_{own}": rows[1 + own]}
    told |= {f"after_{own}": data_address(output) for own, output in enumerate(outputs)}
    held = arranged, numbers, inputs, outputs
    return Kernel(team, address_of(kind), kind.form.of(**told), held, shared=False, seconds=seconds)


def _arranged(network: Network, _: Array) -> Array:
    """Lines of 16 hidden units: of each panel the weights of all gates for each element of the data, then for each of
    the state; and behind those of all panels the biases of each one's sums. What is not there is 0."""
    gates, hidden, inner = len(network.cell.gates), network.hidden, network.inner
    panels = -(-hidden // LANES)
    count = panels * (gates * (inner + hidden) + SUMS)
    memory = allocate_lasting(count * LINE).view(np.float32).reshape(-1, LANES)
    memory[...] = 0
    weights, biases = memory[: -panels * SUMS], memory[-panels * SUMS :]
    lines = weights.reshape(panels, inner + hidden, gates, LANES)
    for given, target in ((network.weights, lines[:, :inner]), (network.recurrence, lines[:, inner:])):
        _lay(given.reshape(gates, hidden, -1), target.transpose(2, 0, 3, 1))
    rows = network.biases.reshape(-1, hidden, 1)
    _lay(rows, biases.reshape(panels, SUMS, LANES).transpose(1, 0, 2)[: len(rows), ..., None])
    return memory


def _lay(given: Array, target: Array) -> None:
    """Numbers [gates, hidden, count] to where they lie as [gates, panels, 16, count]."""
    whole, rest = divmod(given.shape[1], LANES)
    target[:, :whole] = given[:, : whole * LANES].reshape(len(given), whole, LANES, given.shape[2])
    if rest:
        target[:, whole, :rest] = given[:, whole * LANES :]


_cells: weakref.WeakValueDictionary[tuple[Hashable, ...], Arranged] = weakref.WeakValueDictionary()


def _arranged_once(network: Network) -> Arranged:
    """The numbers of a cell, which works of other numbers of rows share."""
    return arranged_once(_cells, [network.weights, network.recurrence, network.biases], partial(_arranged, network))


COMPILERS = dict.fromkeys(("LSTMCell-4", "GRUCell-3"), cell)
