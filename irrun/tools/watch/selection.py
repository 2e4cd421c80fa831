"""Selection: which tensors of a run are wanted, by their layers, the ops of these, and iterations of bodies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

from irrun.ir.graph import Graph, Layer
from irrun.records import dataclass
from irrun.run.keys import unique
from irrun.run.session import Event

Kept = TypeVar("Kept")

ALL = "all"

Iterations = tuple[int, ...] | None
"""Numbers of iterations, those below 0 counted from the last one, which is -1; None are all."""


@dataclass(frozen=True)
class Selection:
    """What is wanted of a run: the tensors that all of this is true of, or every tensor.

    Their layers have names that one of the patterns `layers` fits (`encoder.*`), are of one of the ops `types`
    (`MatMul`), and are at most `distance` edges away from one of the name `around`, or with a tensor of this name, in
    its graph. `iterations` are those of bodies; one that is chosen from several, as those of branches, runs once.
    """

    layers: Sequence[str] = ()
    types: Sequence[str] = ()
    around: str | None = None
    distance: int = 1
    iterations: Iterations = None
    _near: dict[Graph, frozenset[Layer]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def narrow(self) -> bool:
        """Whether some layers are chosen, and others not."""
        return bool(self.layers or self.types or self.around is not None)

    def has(self, layer: Layer) -> bool:
        if self.types and layer.type not in self.types:
            return False
        if self.layers and not any(fnmatchcase(layer.name, pattern) for pattern in self.layers):
            return False
        return self.around is None or layer in self._neighbours(layer.graph, self.around)

    def _neighbours(self, graph: Graph, name: str) -> frozenset[Layer]:
        found = self._near.get(graph)
        if found is None:
            found = self._near[graph] = frozenset(_within(graph, name, self.distance))
        return found


def _names(layer: Layer) -> Iterator[str]:
    """The names that a layer and its tensors go by."""
    yield from (layer.name, unique(layer))
    for value in layer.outputs:
        yield from (*value.port.names, f"{layer.name}:{value.index}")


def _within(graph: Graph, name: str, distance: int) -> set[Layer]:
    """The layers of a graph at most so many edges away from those of a name, either way."""
    reached = edge = {layer for layer in graph.layers if name in _names(layer)}
    for _ in range(distance):
        readers = {reader for layer in edge for value in layer.outputs for reader, _ in value.consumers}
        makers = {value.layer for layer in edge for value in layer.inputs if value is not None}
        edge = (readers | makers) - reached
        if not edge:
            break
        reached = reached | edge
    return reached


def parse_iterations(given: str | int | Iterable[int]) -> Iterations:
    """`all`, `first`, `last`, or numbers such as `0,3,-1`. Raises ValueError."""
    if isinstance(given, int):
        return (given,)
    if not isinstance(given, str):
        return tuple(given)
    if given in (ALL, "first", "last"):
        return {ALL: None, "first": (0,), "last": (-1,)}[given]
    try:
        return tuple(int(number) for number in given.split(","))
    except ValueError:
        raise ValueError(f"`{given}` is not all, first, last, or numbers such as 0,3,-1") from None


class Waiting(Generic[Kept]):
    """What is made of tensors of iterations of which only the last one tells whether they are wanted."""

    def __init__(self, iterations: Iterations) -> None:
        self._first = frozenset(number for number in iterations or () if number >= 0)
        self._last = frozenset(number for number in iterations or () if number < 0)
        self._everything = iterations is None
        self._counts: dict[tuple[object, ...], int] = {}
        self._latest: dict[tuple[object, ...], list[int]] = {}
        self._waiting: dict[tuple[object, ...], list[tuple[list[tuple[tuple[object, ...], int]], Kept]]] = defaultdict(
            list
        )

    def is_over(self, event: Event) -> bool:
        """Whether the run that things wait for has ended, since an event comes from an earlier iteration again."""
        if self._everything or not self._last or not event.path:
            return False
        place = (event.layer, event.port)
        numbers = [number for _, number in self._levels(event)]
        before = self._latest.get(place)
        self._latest[place] = numbers
        return before is not None and numbers <= before

    def asked(self, event: Event) -> bool | None:
        """Whether the tensor of an event is wanted; None where that is not known yet."""
        answer: bool | None = True
        for level, number in () if self._everything else self._levels(event):
            self._counts[level] = max(self._counts.get(level, 0), number + 1)
            if number not in self._first:
                answer = None if self._last and answer is not False else False
        return answer

    def wait(self, event: Event, kept: Kept) -> None:
        """Keep something until it is known, as long as it may be wanted."""
        place = (event.layer, event.port, *(body for _, body, _ in event.path))
        levels = self._levels(event)
        waiting = [entry for entry in self._waiting[place] if self._may(entry[0])]
        self._waiting[place] = [*waiting, (levels, kept)]

    def chosen(self) -> list[Kept]:
        """What is wanted of all that waits, now that there are no more iterations; then nothing waits any more."""
        entries = [entry for waiting in self._waiting.values() for entry in waiting]
        found = [kept for levels, kept in entries if all(self._is(level, number) for level, number in levels)]
        self._waiting.clear()
        self._counts.clear()
        self._latest.clear()
        return found

    def held(self) -> Iterable[Kept]:
        return (kept for waiting in self._waiting.values() for _, kept in waiting)

    def _is(self, level: tuple[object, ...], number: int) -> bool:
        return number in self._first or number - self._counts[level] in self._last

    def _may(self, levels: Sequence[tuple[tuple[object, ...], int]]) -> bool:
        """Whether each number may be wanted still: it is the less one of the last, the more there are."""
        return all(
            number in self._first or any(last <= number - self._counts[level] for last in self._last)
            for level, number in levels
        )

    def _levels(self, event: Event) -> list[tuple[tuple[object, ...], int]]:
        """The iterated bodies that an event comes from, each by what it is in, and the numbers of their iterations."""
        found: list[tuple[tuple[object, ...], int]] = []
        owners: list[Layer] = []
        owner = event.layer.graph.owner
        while owner is not None:
            owners.insert(0, owner)
            owner = owner.graph.owner
        outside: tuple[object, ...] = ()
        for layer, (_, body, number) in zip(owners, event.path, strict=False):
            if len(layer.bodies) == 1:
                found.append(((*outside, layer), number))
            outside = (*outside, layer, body, number)
        return found


def missing(selection: Selection, layers: Iterable[Layer]) -> Mapping[str, str]:
    """What of a selection no layer fits, each with a sentence's beginning for it; nothing where all is there."""
    known = list(layers)
    names = {layer.name for layer in known}
    found = {pattern: "layer" for pattern in selection.layers if not any(fnmatchcase(n, pattern) for n in names)}
    types = {layer.type for layer in known}
    found |= {type: "type" for type in selection.types if type not in types}
    around = selection.around
    if around is not None and not any(around in _names(layer) for layer in known):
        found[around] = "layer"
    return found
