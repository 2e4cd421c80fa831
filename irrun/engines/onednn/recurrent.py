"""Recurrent networks over sequences that are all of full length, and cells: LSTM, GRU and plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irrun.engines.onednn import lengths
from irrun.engines.onednn.library import Library
from irrun.engines.onednn.networks import CELLS, FORWARD, REVERSE, Network, Piece, network_of, piece
from irrun.engines.onednn.tensors import given_as
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array


def compile(library: Library, work: Work) -> Compiled | None:
    """Sequences, and cells as such of one step, with constant weights."""
    network = network_of(work)
    if network is None:
        return None
    ends = network.lengths
    if ends is None or (ends.value is not None and (ends.value == network.steps).all()):
        return _whole(library, work, network)
    return lengths.compile(library, work, network)


def _whole(library: Library, work: Work, network: Network) -> Compiled | None:
    """All steps of all sequences."""
    shared = network.is_shared(library.pool)
    alone = slice(0, network.directions), network.direction
    source, small = network.source(library), shared or network.is_small
    pieces: list[Piece] = []
    for own, direction in [(slice(0, 1), FORWARD), (slice(1, 2), REVERSE)] if shared else [alone]:
        target = network.target(library, own.stop - own.start)
        found = piece(library, network, own, direction, source, target, small=small)
        if found is None:
            return None
        pieces.append(found)
    states = network.cell.states

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        before = [network.seen(array) for array in inputs[1 : 1 + states]]
        # the first state of a cell is the result itself, and the last outputs may not be there
        last = [None] * network.single + [network.seen(array) for array in outputs[1:]] + [None] * states
        results = network.seen_results(outputs[0])
        calls: list[Call] = []
        for found in pieces:
            own, room = found.own, None if scratch is None else scratch[: found.room]
            scratch = None if scratch is None else scratch[found.room :]
            after = [None if array is None else array[:, own] for array in last[:states]]
            calls.append(found.bind(inputs[0], results[:, own], [array[:, own] for array in before], after, room))
        return library.pool.call(calls) if shared else calls[0]

    room = sum(found.room for found in pieces)
    gives = given_as(work, None if network.single else network.given(library))
    return Compiled(bind, room, gives=gives, taken=frozenset(range(1 + states, len(work.inputs))))


COMPILERS = dict.fromkeys(CELLS, compile)
