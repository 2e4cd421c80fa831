"""How unknown sizes are written: as arithmetic over names, such as `2*batch` or `(seq-1)//2`, where that is short."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irrun.spec.dims import Atom, Terms

Namer = Callable[["Atom"], str | None]
"""The name of an atom, None where it has none and goes by what it is made of."""

LONGEST = 24
"""Characters of an expression that is easier to read than its bounds."""

_MOST_TERMS = 4
_MOST_NESTED = 3


def expression(terms: Terms, name: Namer, atoms: set[Atom], longest: int = LONGEST) -> str | None:
    """A polynomial as arithmetic; None where it is longer than `longest` characters, or something in it has no name.

    The atoms that are named in it are added to `atoms`.
    """
    if len(terms) == 1:
        ((monomial, factor),) = terms.items()
        if factor == 1 and len(monomial) == 1 and (own := name(monomial[0])):
            atoms.add(monomial[0])
            return own
    text = _sum(terms, name, atoms, 0)
    return text if text is not None and len(text) <= longest else None


def _sum(terms: Terms, name: Namer, atoms: set[Atom], depth: int) -> str | None:
    if len(terms) > _MOST_TERMS or depth > _MOST_NESTED:
        return None
    parts: list[tuple[bool, int, str]] = []
    for monomial, factor in terms.items():
        if len(monomial) > _MOST_TERMS:
            return None
        texts = [_atom(atom, name, atoms, depth) for atom in monomial]
        factors = sorted(text for text in texts if text is not None)
        if len(factors) < len(texts):
            return None
        number = abs(factor)
        if number != 1 or len(factors) != 1:
            factors = [*([str(number)] if number != 1 or not factors else []), *map(_bracketed, factors)]
        parts.append((factor < 0, -len(monomial), "*".join(factors)))
    # what is taken away comes last, and a number behind the names
    text = "".join(f"{'-' if negative else '+'}{part}" for negative, _, part in sorted(parts))
    return text.removeprefix("+")


def _atom(atom: Atom, name: Namer, atoms: set[Atom], depth: int) -> str | None:
    given = name(atom)
    if given is not None:
        atoms.add(atom)
        return given
    match atom.tag:
        case ("//" | "%" as sign, left, right):
            sides = [_key(key, name, atoms, depth + 1) for key in (left, right)]
            return sign.join(_bracketed(side) for side in sides if side) if all(sides) else None
        case ("max" | "min" | "broadcast" as word, frozenset() as keys) if len(keys) <= _MOST_TERMS:
            texts = [_key(key, name, atoms, depth + 1) for key in keys]
            return f"{word}({', '.join(sorted(text for text in texts if text))})" if all(texts) else None
    return None


def _key(key: Any, name: Namer, atoms: set[Atom], depth: int) -> str | None:
    if isinstance(key, int):
        return str(key)
    return _sum(dict(key), name, atoms, depth) if isinstance(key, frozenset) and len(key) <= _MOST_TERMS else None


def _bracketed(text: str) -> str:
    return f"({text})" if any(sign in text for sign in "+-*/%") else text
