"""The integer that an unknown size is, once it is known which ones its atoms are that are numbers of their own; and
which sizes are the same ones as far as has been seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from irrun.spec.dims import Atom, Dim, Shape, Size, broadcast


class Unknown(Exception):
    """An atom that nobody has given a number, or that has none for these, or a size beyond all that there are."""


MAX_BITS = 256
"""Of a size: those of a model that squares it again and again would take all time and memory to be written down."""


class Evaluation:
    """Sizes in numbers, for the numbers of atoms by identity; each atom is worked out once."""

    def __init__(self, numbers: Mapping[Any, int]) -> None:
        self._numbers = dict(numbers)
        self._sizes: dict[Any, int] = {}

    @classmethod
    def of(cls, shapes: Iterable[Shape], given: Iterable[Sequence[int]]) -> Evaluation:
        """That in which `shapes` are the `given` ones; what is open in them is a number of its own each."""
        pairs = [pair for shape, sizes in zip(shapes, given, strict=True) for pair in zip(shape, sizes, strict=True)]
        return cls({_identity(size): number for size, number in pairs if isinstance(size, Dim)})

    def size(self, size: Size) -> int:
        """Raises Unknown where it depends on other atoms, or is beyond all, ZeroDivisionError for a quotient by 0."""
        if not isinstance(size, Dim):
            return size
        found = self._sizes.get(size.key)
        if found is None:
            found = self._sizes[size.key] = self._sum(size.terms.items())
        return found

    def shape(self, shape: Iterable[Size]) -> tuple[int, ...]:
        return tuple(map(self.size, shape))

    def told(self, sizes: Iterable[Size]) -> Shape:
        """The sizes, in numbers where these can be told. Raises ZeroDivisionError."""
        found: list[Size] = []
        for size in sizes:
            try:
                found.append(self.size(size))
            except Unknown:
                found.append(size)
        return tuple(found)

    def can_tell(self, sizes: Iterable[Size]) -> bool:
        """Whether all these are numbers, or can be told."""
        try:
            self.shape(sizes)
        except (Unknown, ZeroDivisionError):
            return False
        return True

    def _sum(self, terms: Iterable[tuple[tuple[Atom, ...], int]]) -> int:
        found = sum(factor * prod(map(self._atom, monomial)) for monomial, factor in terms)
        if found.bit_length() > MAX_BITS:
            raise Unknown
        return found

    def _atom(self, atom: Atom) -> int:
        found = self._numbers.get(atom.identity)
        if found is None:
            found = self._numbers[atom.identity] = self._tagged(atom.tag)
        return found

    def _tagged(self, tag: Any) -> int:
        """What the tag of an atom says: an operation, and the keys of what it is done to."""
        match tag:
            case ("+", frozenset() as keys):
                return sum(self._pair(keys))
            case ("*", frozenset() as keys):
                return prod(self._pair(keys))
            case ("//", a, b):
                return self._key(a) // self._key(b)
            case ("%", a, b):
                return self._key(a) % self._key(b)
            case ("min", frozenset() as keys):
                return min(map(self._key, keys))
            case ("max", frozenset() as keys):
                return max(map(self._key, keys))
            case ("broadcast", frozenset() as keys):
                found = broadcast(*map(self._key, keys))
                if isinstance(found, int):
                    return found
        raise Unknown

    def _pair(self, keys: frozenset[Any]) -> tuple[int, int]:
        """Two operands whose order does not matter; one key stands for both where they are equal."""
        sizes = [self._key(key) for key in keys]
        return sizes[0], sizes[-1]

    def _key(self, key: Any) -> int:
        return key if isinstance(key, int) else self._sum(key)


class Presumed:
    """What was true of sizes each time so far, and is presumed to be so; `sizes` are those of the first time."""

    def __init__(self, times: Sequence[Evaluation]) -> None:
        self._times, self.sizes = times, times[0]
        self._first: dict[tuple[int, ...], Dim] = {}
        self._found: dict[Any, Size] = {}
        self._equal: list[tuple[Dim, Dim]] = []
        self._limits: list[tuple[Size, int, bool]] = []

    def holds(self, sizes: Evaluation) -> bool:
        """Whether what was presumed is true of these. Raises what `Evaluation.size` raises."""
        return all(sizes.size(one) == sizes.size(other) for one, other in self._equal) and all(
            (sizes.size(size) <= most) == answer for size, most, answer in self._limits
        )

    def at_most(self, size: Size, most: int) -> bool:
        """Whether a size was at most so large the first time."""
        answer = self.sizes.size(size) <= most
        self._limits.append((size, most, answer))
        return answer

    def shape(self, shape: Iterable[Size]) -> Shape:
        """The shape with sizes that were equal each time as one, the first of them."""
        return tuple(self._one(size) if isinstance(size, Dim) else size for size in shape)

    def _one(self, size: Dim) -> Size:
        found = self._found.get(size.key)
        if found is None:
            found = self._found[size.key] = self._searched(size)
        return found

    def _searched(self, size: Dim) -> Size:
        try:
            first = self._first.setdefault(tuple(time.size(size) for time in self._times), size)
        except (Unknown, ZeroDivisionError):
            return size
        if first.key != size.key:
            self._equal.append((first, size))
        return first


def _identity(size: Dim) -> Any:
    (((atom,), _),) = size.terms.items()
    return atom.identity
