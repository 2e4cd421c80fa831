"""Which tensor of one model is which of another: by names, by structure, and by value where nothing else is left.

Only the graphs of the models themselves are aligned, not those of bodies.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping

import numpy as np

from irrun.ir.graph import Graph, Layer, Value
from irrun.records import dataclass
from irrun.spec.op import Array
from irrun.tools.compare.sides.structure import Surroundings, ordered
from irrun.tools.compare.sides.tensors import key_of

COSINE = 0.9999
"""From which on tensors of one shape are taken for the same."""

TELLING = 16
"""Elements from which on a cosine says something; fewer have to be equal to `CLOSE`."""

CLOSE = 1e-3

_NUMBERED = re.compile(r"_\d+$")
"""The end of a name that a tool has made up, and another time gives to another layer."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tensors that are the same. `how` is "tensor name", "layer name", "structure", "neighbours" or "value"."""

    ours: Value
    theirs: Value
    how: str


class Alignment:
    """The tensors of two graphs in pairs: `all` of them."""

    def __init__(self, ours: Graph, theirs: Graph) -> None:
        self.all: list[Pair] = []
        self._ours, self._theirs = ordered(ours), ordered(theirs)
        self._counts = Counter(layer.name for layer in self._ours)
        self._taken: set[Value] = set()
        self._mine: dict[Value, Value] = {}
        self._match("tensor name", lambda value: value.port.names)
        mine, other = Surroundings(self._ours), Surroundings(self._theirs)
        shapes = {**mine.found, **other.found}

        def named(value: Value) -> Iterable[Hashable]:
            title = (value.layer.name, value.layer.type)
            yield *title, shapes[value].up, None
            yield *title, None, shapes[value].down

        self._match("layer name", named)
        self._match("structure", lambda value: [shapes[value]])
        self._match("structure", lambda value: [shapes[value].up] if value.layer.inputs else [])
        self._match("structure", lambda value: [shapes[value].down])
        self._spread()
        self._match("layer name", _own_name)
        self._spread()
        self._replace()

    @property
    def pairs(self) -> dict[str, Pair]:
        """The pairs by the keys of our tensors, as far as these are clear."""
        return {key_of(pair.ours): pair for pair in self.all if self._counts[pair.ours.layer.name] == 1}

    def unaligned(self) -> tuple[list[Value], list[Value]]:
        """The tensors of both models that nothing is known of."""
        ours = [value for value in _values(self._ours) if value not in self._mine]
        return ours, [value for value in _values(self._theirs) if value not in self._taken]

    def by_value(self, ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> None:
        """Pair tensors that are best alike, as both models made them of the same inputs; by `number_of` each."""
        mine, other = self.unaligned()
        places = {value: number for number, value in enumerate(_values(self._theirs))}
        best: dict[Value, tuple[float, Value]] = {}
        for value, low, high in self._windows(mine, places):
            array = ours.get(number_of(value))
            if array is None:
                continue
            for candidate in other:
                there = theirs.get(number_of(candidate))
                if there is None or not low < places[candidate] < high:
                    continue
                likeness = alike(array, there)
                if likeness > best.get(candidate, (0.0, value))[0]:
                    best[candidate] = (likeness, value)
        chosen: dict[Value, tuple[float, Value]] = {}
        for candidate, (likeness, value) in best.items():
            if likeness > chosen.get(value, (0.0, candidate))[0]:
                chosen[value] = (likeness, candidate)
        for value, (_, candidate) in chosen.items():
            self._add(value, candidate, "value")

    def _windows(self, mine: list[Value], places: Mapping[Value, int]) -> Iterator[tuple[Value, int, int]]:
        """Between which places of the other model a tensor of ours may be: those of what is aligned around it."""
        wanted, low = set(mine), -1
        lows: dict[Value, int] = {}
        for value in _values(self._ours):
            if value in wanted:
                lows[value] = low
            elif value in self._mine and value.layer.inputs:
                low = max(low, places[self._mine[value]])
        high = len(places)
        for value in reversed([*_values(self._ours)]):
            if value in wanted:
                yield value, lows[value], max(high, lows[value] + 1)
            elif value in self._mine and value.layer.inputs:
                high = min(high, places[self._mine[value]])

    def _match(self, how: str, names: Callable[[Value], Iterable[Hashable]]) -> None:
        """Pair what has a name that nothing else has on its side."""
        mine, other = _unique(self._ours, self._mine, names), _unique(self._theirs, self._taken, names)
        for name, value in mine.items():
            there = other.get(name)
            if there is not None and value not in self._mine and there not in self._taken:
                self._add(value, there, how)

    def _add(self, value: Value, there: Value, how: str) -> Pair:
        self._mine[value] = there
        self._taken.add(there)
        pair = Pair(value, there, how)
        self.all.append(pair)
        return pair

    def _spread(self) -> None:
        """Pair what stands in one place beside layers that are paired: the only readers of a type, and what is read."""
        left = [*self.all]
        while left:
            pair = left.pop()
            mine, other = _readers(pair.ours, self._mine), _readers(pair.theirs, self._taken)
            beside = [
                (layers[0], other[place][0]) for place, layers in mine.items() if len(layers) == 1 == len(other[place])
            ]
            for source, read in zip(pair.ours.layer.inputs, pair.theirs.layer.inputs, strict=False):
                if source is not None and read is not None and source.index == read.index:
                    beside.append((source.layer, read.layer))
            for layer, there in beside:
                if self._alike(layer, there):
                    pairs = zip(layer.outputs, there.outputs, strict=True)
                    left += [self._add(value, made, "neighbours") for value, made in pairs]

    def _replace(self) -> None:
        """Pair what layers of one name make in one shape of the same, whatever their types are."""
        there = {layer.name: layer for layer in self._theirs}
        for layer in self._ours:
            other = there.get(layer.name)
            if other is None or layer.type == other.type or not layer.inputs or self._counts[layer.name] > 1:
                continue
            dims = [[value.port.dims for value in each.outputs] for each in (layer, other)]
            if dims[0] == dims[1] and self._alike(layer, other, typed=False):
                for value, made in zip(layer.outputs, other.outputs, strict=True):
                    self._add(value, made, "layer name")

    def _alike(self, mine: Layer, other: Layer, *, typed: bool = True) -> bool:
        """Whether layers of which nothing is known are of one form, and read nothing that is known to be different."""
        form, outputs = _form(mine), zip(mine.outputs, other.outputs, strict=False)
        if form[not typed :] != _form(other)[not typed :]:
            return False
        if any(value in self._mine or made in self._taken for value, made in outputs):
            return False
        for source, read in zip(mine.inputs, other.inputs, strict=True):
            known = None if source is None else self._mine.get(source)
            if known is not read and (known is not None or read in self._taken):
                return False
        return True


def _form(layer: Layer) -> tuple[str, int, int]:
    return layer.type, len(layer.inputs), len(layer.outputs)


def _readers(value: Value, known: Container[Value]) -> Mapping[Hashable, list[Layer]]:
    """Readers of a tensor of whose outputs none is known, by what they are and as which input they read it."""
    found: dict[Hashable, list[Layer]] = defaultdict(list)
    for layer, number in value.consumers:
        if layer.outputs and not any(output in known for output in layer.outputs):
            found[_form(layer), number].append(layer)
    return found


def number_of(value: Value) -> str:
    """A name for a tensor that no other one of its graph has, whatever layers are called."""
    return f"{value.layer.id}:{value.index}"


def alike(ours: Array, theirs: Array) -> float:
    """The cosine of two tensors of numbers that may be the same, else 0."""
    if ours.shape != theirs.shape or not ours.size or "U" in (ours.dtype.kind, theirs.dtype.kind):
        return 0.0
    with np.errstate(all="ignore"):
        a, b = ours.astype(np.float64).ravel(), theirs.astype(np.float64).ravel()
        size = np.sqrt((a @ a) * (b @ b))
        if not np.isfinite(size) or not size:
            return 0.0
        cosine = float(a @ b / size)
        near = float(np.max(np.abs(a - b))) <= CLOSE * float(np.max(np.abs(a)))
    return cosine if cosine > COSINE and (near or ours.size >= TELLING) else 0.0


def _unique(
    layers: Iterable[Layer], known: Container[Value], names: Callable[[Value], Iterable[Hashable]]
) -> dict[Hashable, Value]:
    """Those tensors that are not known yet, by the names that only one of them has."""
    listed = [(name, value) for value in _values(layers) if value not in known for name in dict.fromkeys(names(value))]
    counts = Counter(name for name, _ in listed)
    return {name: value for name, value in listed if counts[name] == 1}


def _own_name(value: Value) -> Iterable[Hashable]:
    layer = value.layer
    if not _NUMBERED.search(layer.name):
        yield layer.name, layer.type, value.index, value.port.dims


def _values(layers: Iterable[Layer]) -> Iterator[Value]:
    return (value for layer in layers for value in layer.outputs)
