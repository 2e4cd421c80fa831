"""How costs in unknown sizes are written: as arithmetic over the names of these, as short as it can be said.

Sizes that broadcast to each other are taken to be equal, which they are wherever none of them is 1: of models that take
`ids` and `mask`, nobody wants to read of broadcast(ids.1, mask.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from irrun.records import dataclass
from irrun.spec.dims import Atom, Dim, Size

_LONGEST = 90
"""Characters of a term."""

_MOST_TERMS = 8

_DEEPEST = 8
"""Levels of arithmetic in arithmetic that are looked into."""

_DEEPEST_RANKED = 3
"""The same, where all of it is compared."""


@dataclass(slots=True)
class Sizes:
    """The sizes of one model: `numbers` has those without a name, `equal` the one that stands for others."""

    numbers: dict[Any, str] = field(default_factory=dict)
    equal: dict[Atom, Atom] = field(default_factory=dict)
    _known: dict[Atom, Size] = field(default_factory=dict, repr=False)
    _texts: dict[Any, int | str | None] = field(default_factory=dict, repr=False)

    def learn(self, sizes: Iterable[Size | None]) -> None:
        """Take sizes to be equal that broadcast to each other in what is given."""
        self._forget()
        seen: set[Any] = set()
        for size in sizes:
            if isinstance(size, Dim):
                for keys in _broadcasts(size.terms, seen):
                    alone = sorted(_operands(keys, _DEEPEST_RANKED), key=_rank)
                    for atom in alone[1:]:
                        a, b = sorted((self._standing(alone[0]), self._standing(atom)), key=_rank)
                        if a is not b:
                            self.equal[b] = a

    def call(self, sizes: Iterable[Dim], name: str) -> None:
        """Take unknown sizes without names to be equal, and give them one."""
        self._forget()
        alone = [atom for size in sizes if (atom := _alone(size.key)) is not None and atom.name is None]
        for atom in alone:
            self.numbers[atom] = name
            if atom is not alone[0]:
                self.equal[atom] = alone[0]

    def _forget(self) -> None:
        self._known.clear()
        self._texts.clear()

    def text(self, size: Size | None) -> int | str | None:
        """A number, or arithmetic, with "?" for terms that are too long; None for what is not known."""
        if not isinstance(size, Dim):
            return size
        if size.key not in self._texts:
            self._texts[size.key] = self._text(size)
        return self._texts[size.key]

    def _text(self, size: Dim) -> int | str | None:
        plain = self._plain(size.terms, _DEEPEST)
        if not isinstance(plain, Dim):
            return plain
        nameless = {atom for monomial in plain.terms for atom in monomial if not atom.name}
        for atom in sorted((atom for atom in nameless if not isinstance(atom.tag, tuple)), key=_rank):
            self._name(atom)  # numbered by age: monomials have no order of their own
        terms = sorted(
            (-len(monomial), -abs(factor), self._term(monomial, factor)) for monomial, factor in plain.terms.items()
        )
        written = [text for *_, text in terms[:_MOST_TERMS]]
        if len(terms) > _MOST_TERMS:
            written.append(f"{len(terms) - _MOST_TERMS} more terms")
        return " + ".join(written).replace("+ -", "- ")

    def _term(self, monomial: tuple[Atom, ...], factor: int) -> str:
        return Dim({monomial: factor}, None, None).expression(self._name, longest=_LONGEST) or "?"

    def shape(self, shape: Iterable[Size] | None) -> str:
        return "[...]" if shape is None else f"[{', '.join(str(self.text(size)) for size in shape)}]"

    def _name(self, atom: Atom) -> str | None:
        if atom.name or isinstance(atom.tag, tuple):
            return atom.name
        return self.numbers.setdefault(atom, f"?{len(self.numbers) + 1}")

    def _standing(self, atom: Atom) -> Atom:
        while atom in self.equal:
            atom = self.equal[atom]
        return atom

    def _plain(self, terms: Any, deep: int) -> Size:
        """A polynomial without broadcasts, in the sizes that stand for others."""
        total: Size = 0
        for monomial, factor in terms.items():
            product: Size = factor
            for atom in monomial:
                product = product * self._plain_atom(atom, deep)
            total = total + product
        return total

    def _plain_atom(self, atom: Atom, deep: int) -> Size:
        if atom not in self._known:
            plain: Size = Dim({(self._standing(atom),): 1}, 0, None)
            match atom.tag:
                case ("broadcast", frozenset() as keys) if deep:
                    best = min(keys, key=_plainness)
                    plain = best if isinstance(best, int) else self._plain(dict(best), deep - 1)
            self._known[atom] = plain
        return self._known[atom]


def _broadcasts(terms: Iterable[Any], seen: set[Any]) -> Iterator[frozenset[Any]]:
    """The sizes that broadcast to each other, in a polynomial and in what it is made of; each atom is `seen` once."""
    pending = [terms]
    while pending:
        for monomial in pending.pop():
            for atom in set(monomial) - seen:
                seen.add(atom)
                match atom.tag:
                    case ("broadcast", frozenset() as keys):
                        yield keys
                        pending += [dict(key) for key in keys if not isinstance(key, int)]


def _operands(keys: Iterable[Any], deep: int) -> Iterator[Atom]:
    """The unknown sizes that broadcast to each other, also those in a broadcast that another size broadcasts to."""
    for key in keys:
        if isinstance(key, int) or len(key) != 1:
            continue
        ((monomial, factor),) = key
        if factor == 1 and len(monomial) == 1:
            match monomial[0].tag:
                case ("broadcast", frozenset() as inner):
                    yield from _operands(inner, deep - 1) if deep else ()
                case int():
                    yield monomial[0]


def _alone(key: Any) -> Atom | None:
    """The unknown size that a key is, and nothing more."""
    if isinstance(key, int) or len(key) != 1:
        return None
    ((monomial, factor),) = key
    return monomial[0] if factor == 1 and len(monomial) == 1 and not isinstance(monomial[0].tag, tuple) else None


def _rank(atom: Atom) -> tuple[bool, Any]:
    """Sizes with names first, then the older ones."""
    return atom.name is None, atom.tag


def _plainness(key: Any, deep: int = _DEEPEST_RANKED) -> tuple[int, int, str]:
    """The least of these is the shortest to say of sizes that are equal: numbers, names, what is made of names."""
    if isinstance(key, int):
        return 0, 0, str(key)
    worst = 0
    for atom in (atom for monomial, _ in key for atom in monomial):
        match atom.tag:
            case ("broadcast", frozenset() as keys) if deep:
                kind, *_ = min(_plainness(other, deep - 1) for other in keys)
            case tuple():
                kind = 3
            case _:
                kind = 1 if atom.name else 2
        worst = max(worst, kind)
    return worst, len(key), Dim(dict(key), None, None).expression(_by_age, longest=_LONGEST) or ""


def _by_age(atom: Atom) -> str | None:
    return None if isinstance(atom.tag, tuple) else f"{atom.tag:012}"
