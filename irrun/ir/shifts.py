"""Layers whose ids are all off by the same number against those that edges use, as where one was inserted by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from irrun.ir.findings import whole_number
from irrun.ir.graph import Layer
from irrun.ir.xml import Element
from irrun.records import NamedTuple

MAX_EDGES = 20_000
"""Of a graph in which shifts are looked for."""

FEWEST = 3
"""Edges that do not fit where that is worth a look."""

_BY = (1, -1, 2, -2, 3, -3)
"""By how much ids may be off."""

_STARTS = 20
"""Edges that do not fit at whose ends a shift is tried to begin."""

_LEFT = 4
"""One edge of so many that did not fit may still not fit: the layer that was inserted or deleted has some, too."""


class Shift(NamedTuple):
    """The ids of `layers` that follow one another are higher than edges have them, by a number that may be negative.

    It explains `all` edges, or some still do not fit.
    """

    layers: tuple[Layer, ...]
    by: int
    all: bool


class _Edge(NamedTuple):
    """Where an edge begins and ends: the ranks of the ids of two layers among all, and the ids of two ports."""

    producer: int
    output: int
    reader: int
    input: int


def find_shift(layers: Sequence[Layer], edges: Sequence[Element]) -> Shift | None:
    """The part of the layers that have to have other ids for nearly all edges to fit, of which many do not."""
    names = ("from-layer", "from-port", "to-layer", "to-port")
    read = [[whole_number(edge.attributes.get(name, "")) for name in names] for edge in edges[: MAX_EDGES + 1]]
    ends = [each for each in read if None not in each]
    if not FEWEST <= len(ends) <= MAX_EDGES:
        return None
    there = {layer.id for layer in layers}
    if len({id for a, _, c, _ in ends for id in (a, c)} - there) == 1 and _is_one(ends, there, layers):
        return None
    ids = sorted({id for producer, _, reader, _ in ends for id in (producer, reader) if id is not None})
    rank = {id: number for number, id in enumerate(ids)}
    ranked = [_Edge(rank[a or 0], b or 0, rank[c or 0], d or 0) for a, b, c, d in ends]
    best: tuple[int, int, int, int] | None = None
    misfits = 0
    for by in _BY:
        found, misfits = _search(layers, ranked, ids, by)
        if best is None or found[0] > best[0]:
            best = (*found, by)
    assert best is not None
    fitting, low, high, by = best
    left = len(ranked) - fitting
    if misfits < FEWEST or left * _LEFT > misfits:
        return None
    shifted = {ids[number] + by for number in range(low, high)}
    places = [number for number, layer in enumerate(layers) if layer.id in shifted]
    if by < 0:  # the first of two layers of an id is not among them, else the last is not
        places.reverse()
    last: dict[int, Layer] = {layers[number].id: layers[number] for number in reversed(places)}
    chosen = set(last.values())
    return Shift(tuple(layer for layer in layers if layer in chosen), by, left == 0)


def _is_one(ends: Sequence[Sequence[int | None]], there: set[int], layers: Sequence[Layer]) -> bool:
    """Whether all edges fit but those that name an id which no layer has: then it is that of one layer."""
    known = {layer.id: layer for layer in layers}
    return all(
        a not in there or c not in there or _fits(known[a or 0], b or 0, known[c or 0], d or 0) for a, b, c, d in ends
    )


def _search(
    layers: Sequence[Layer], edges: Sequence[_Edge], ids: Sequence[int], by: int
) -> tuple[tuple[int, int, int], int]:
    """How many edges fit at most, and with which ids, from a rank to another, off by a number; and how many do not fit
    with none."""
    plain, moved = {}, {}
    for layer in layers:
        # of two layers with an id the one that is in its place comes second where ids are too high
        if by > 0 or layer.id not in plain:
            plain[layer.id] = layer
        if by < 0 or layer.id not in moved:
            moved[layer.id] = layer
    known = [(plain.get(id), moved.get(id + by)) for id in ids]

    def fits(edge: _Edge, producer: bool, reader: bool) -> bool:
        return _fits(known[edge.producer][producer], edge.output, known[edge.reader][reader], edge.input)

    count = len(ids)
    states = [{(a, b): fits(edge, a, b) for a in (False, True) for b in (False, True)} for edge in edges]

    def total(choice: Callable[[_Edge], tuple[tuple[int, bool, bool], ...]]) -> list[int]:
        """How many edges fit for each border; of an edge from which on its ends are off, and whether they are."""
        changes = [0] * (count + 2)
        for edge, state in zip(edges, states, strict=True):
            before = False
            for border, producer, reader in choice(edge):
                now = state[producer, reader]
                changes[border] += now - before
                before = now
        sums, sum_ = [], 0
        for change in changes[: count + 1]:
            sum_ += change
            sums.append(sum_)
        return sums

    lost = [edge for edge, state in zip(edges, states, strict=True) if not state[False, False]]
    lows = total(partial(_by_low, count))
    starts = {end for edge in lost[:_STARTS] for end in (edge.producer, edge.reader)}
    starts.add(max(range(count + 1), key=lambda at: (lows[at], at)))
    best = -1, 0, 0
    for low in sorted(starts):
        highs = total(partial(_by_high, low))
        high = max(range(count + 1), key=lambda at: (highs[at], at))
        best = max(best, (highs[high], low, high))
    return best, len(lost)


def _by_low(high: int, edge: _Edge) -> tuple[tuple[int, bool, bool], ...]:
    """Which ends of an edge are off, by the lowest rank that is."""
    first, second = sorted((edge.producer, edge.reader))
    return _cases(edge, ((0, lambda rank: rank < high), (first + 1, lambda rank: first < rank < high),
                         (second + 1, lambda rank: second < rank < high)))  # fmt: skip


def _by_high(low: int, edge: _Edge) -> tuple[tuple[int, bool, bool], ...]:
    """Which ends of an edge are off, by the rank from which on none is."""
    first, second = sorted((edge.producer, edge.reader))
    return _cases(edge, ((0, lambda rank: False), (first + 1, lambda rank: low <= rank <= first),
                         (second + 1, lambda rank: low <= rank <= second)))  # fmt: skip


def _cases(edge: _Edge, borders: Sequence[tuple[int, Callable[[int], bool]]]) -> tuple[tuple[int, bool, bool], ...]:
    return tuple((border, off(edge.producer), off(edge.reader)) for border, off in borders)


def _fits(producer: Layer | None, output: int, reader: Layer | None, input: int) -> bool:
    """Whether an edge leads from an output to an input that declares the same, if it declares anything."""
    if producer is None or reader is None:
        return False
    port = next((port for port in reader.input_ports if port.id == input), None)
    value = next((value for value in producer.outputs if value.port.id == output), None)
    if port is None or value is None:
        return False
    return (port.precision is None and not port.dims) or port.declares_as(value.port)
