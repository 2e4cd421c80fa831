"""Recurrent networks over sequences of lengths of their own, which a run may be the first to tell.

oneDNN knows no lengths. A sequence runs through all steps; what comes behind its end is overwritten with zeros, and its
last state is the result at its end. A backward direction is a forward one over the sequence in reverse, up to its end.
The last cell states, which are no results, are kept from there on: behind the end the data are zeros and a mark, one
more feature, whose weights open the gate that keeps a cell state and close the one that adds to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.engines.memory import aligned
from irrun.engines.onednn.library import Descriptor, Library
from irrun.engines.onednn.networks import FORWARD, REVERSE, Network, Piece, piece
from irrun.engines.onednn.tensors import given_as
from irrun.engines.plain import plain_call
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.records import NamedTuple
from irrun.spec.op import Array

MARKS = (-1e30, 1e30, 0.0, 0.0)
"""Weights of the mark by gates, i, f, c, o: sigmoid makes 0 and 1 of them, whatever else is added up."""
MOST = 1e30
"""What the squares of weights, and of biases, may add up to at most."""


class _Part(NamedTuple):
    """A direction: `copied` data go in, in the order of a `backward` one, and results of that come out in reverse."""

    piece: Piece
    copied: bool
    backward: bool

    @property
    def rooms(self) -> tuple[int, int, int]:
        """Bytes for the data, the results and the piece."""
        data, results = self.piece.source.nbytes * self.copied, self.piece.target.nbytes * self.backward
        return aligned(data), aligned(results), self.piece.room

    def bind(
        self, data: Array, ends: Array, results: Array, before: Sequence[Array], last: Sequence[Array], scratch: Any
    ) -> Call:
        """A call for data [batch, steps, inner], how many steps count, results [batch, steps, hidden], the first states
        [batch, 1, hidden], and the last ones [batch, hidden], as far as these are wanted."""
        first, second, _ = self.rooms
        given, inner = data.swapaxes(0, 1), data.shape[-1]
        wanted = results.swapaxes(0, 1)
        read = _room(self.piece.source, scratch) if self.copied else given
        made = _room(self.piece.target, scratch[first:]) if self.backward else wanted
        kept = [np.empty(states.shape, np.float32) for states in before]
        rest = None if scratch is None else scratch[first + second :]
        compute = self.piece.bind(read, made, before, kept, rest)
        cells = kept[-1][:, 0]

        def call() -> None:
            lengths = ends.tolist()
            if self.copied:
                for item, end in enumerate(lengths):
                    own = given[:end, item]
                    read[:end, item, :inner] = own[::-1] if self.backward else own
                    read[end:, item, :inner] = 0
                    read[:end, item, inner:] = 0
                    read[end:, item, inner:] = 1
            compute()
            for item, end in enumerate(lengths):
                if self.backward:
                    wanted[:end, item] = made[:end, item][::-1]
                wanted[end:, item] = 0
                for output, state in zip(last, (made[end - 1, item], cells[item]), strict=False):
                    output[item] = state if end else 0

        return call


def compile(library: Library, work: Work, network: Network) -> Compiled | None:
    """Sequences with constant weights."""
    ends, states = network.lengths, network.cell.states
    if ends is None or ends.type not in ("i32", "i64"):
        return None
    marked = len(work.outputs) > states > 1
    if marked and not (_is_moderate(network.recurrence) and _is_moderate(network.biases)):
        return None
    shared = network.is_shared(library.pool)
    parts: list[_Part] = []
    for number in range(network.directions):
        part = _part(library, network, number, small=shared or network.is_small, marked=marked)
        if part is None:
            return None
        parts.append(part)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        calls: list[Call] = []
        for number, part in enumerate(parts):
            room = None if scratch is None else scratch[: sum(part.rooms)]
            scratch = None if scratch is None else scratch[sum(part.rooms) :]
            before = [array[:, number : number + 1] for array in inputs[1 : 1 + states]]
            last = [array[:, number] for array in outputs[1:]]
            calls.append(part.bind(inputs[0], inputs[1 + states], outputs[0][:, number], before, last, room))
        every = library.pool.call(calls) if shared else chain(calls)
        return _doubted(every, outputs[2], plain_call(work, inputs, outputs)) if marked else every

    room = sum(sum(part.rooms) for part in parts)
    taken = range(0) if marked else range(2 + states, len(work.inputs))
    return Compiled(bind, room, gives=given_as(work, network.given(library)), taken=frozenset(taken))


def _part(library: Library, network: Network, number: int, *, small: bool, marked: bool) -> _Part | None:
    """The direction of that number."""
    steps, batch = network.steps, network.batch
    backward = network.direction == REVERSE or number == 1
    copied = backward or marked
    source = library.dense((steps, batch, network.inner + marked)) if copied else network.source(library)
    target = library.dense((steps, batch, network.hidden)) if backward else network.target(library, 1)
    marks, own = MARKS if marked else (), slice(number, number + 1)
    found = piece(library, network, own, FORWARD, source, target, small=small, marks=marks)
    return None if found is None else _Part(found, copied, backward)


def _is_moderate(values: Array) -> bool:
    """Whether what is added up of these, and of states, is nothing beside a mark."""
    return bool(np.vdot(values, values) < MOST)


def _doubted(call: Call, cells: Array, otherwise: Call) -> Call:
    """A call that is made otherwise where a state that is no number may have come into a cell state that was one."""

    def doubted() -> None:
        call()
        if np.isnan(cells).any():
            otherwise()

    return doubted


def _room(layout: Descriptor, scratch: Array) -> Any:
    return scratch[: layout.nbytes].view(np.float32).reshape(layout.shape)
