"""How unknown sizes are written: as arithmetic over names, such as `2*batch` or `(seq-1)//2`, where that is short."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irrun.spec.dims import Atom, Terms

Namer = Callable[["Atom"], str | None]
"""The name of an atom, None where it has none and goes by what it is made of."""

LONGEST = 24
"""Characters of an expression that is easier to read than its bounds."""

_MAX_TERMS = 4
_MAX_NESTED = 3


def expression(terms: Terms, name: Namer, atoms: set[Atom], longest: int = LONGEST) -> str | None:
    """A polynomial as arithmetic; None where it is longer than `longest` characters, or something in it has no name.

    The atoms that are named in it are added to `atoms`.
    """
    if len(terms) == 1:
        ((monomial, factor),) = terms.items()
        if factor == 1 and len(monomial) == 1:
            (atom,) = monomial
            own = name(atom)
            if own:
                atoms.add(atom)
            if own or not isinstance(atom.tag, tuple):
                return own or None
    return _sum(terms, name, atoms, longest, 0)


def _sum(terms: Terms, name: Namer, atoms: set[Atom], longest: int, depth: int) -> str | None:
    """What is too long ends the search at once: expressions may nest as deep as a model, and branch at each step."""
    if len(terms) > _MAX_TERMS or depth > _MAX_NESTED:
        return None
    parts: list[tuple[bool, int, str]] = []
    for monomial, factor in terms.items():
        factors = _listed(monomial, lambda atom: _atom(atom, name, atoms, longest, depth), longest)
        if factors is None:
            return None
        number = abs(factor)
        if number != 1 or len(factors) != 1:
            factors = [*([str(number)] if number != 1 or not factors else []), *map(_bracketed, factors)]
        parts.append((factor < 0, -len(monomial), "*".join(factors)))
        if sum(len(part) for _, _, part in parts) > longest:
            return None
    # what is taken away comes last, and a number behind the names
    text = "".join(f"{'-' if negative else '+'}{part}" for negative, _, part in sorted(parts)).removeprefix("+")
    return text if len(text) <= longest else None


def _listed(items: Iterable[Any], write: Callable[[Any], str | None], longest: int) -> list[str] | None:
    """The items in writing, sorted; None where they are too long, or one has none."""
    texts: list[str] = []
    for item in items:
        text = write(item)
        if text is None or sum(map(len, texts)) + len(text) > longest:
            return None
        texts.append(text)
    return sorted(texts)


def _atom(atom: Atom, name: Namer, atoms: set[Atom], longest: int, depth: int) -> str | None:
    given = name(atom)
    if given is not None:
        atoms.add(atom)
        return given

    def key_text(key: Any) -> str | None:
        if isinstance(key, int):
            return str(key)
        return _sum(dict(key), name, atoms, longest, depth + 1) if isinstance(key, frozenset) else None

    match atom.tag:
        case ("//" | "%" as sign, left, right):
            dividend = key_text(left)
            divisor = None if dividend is None else key_text(right)
            return None if dividend is None or divisor is None else f"{_bracketed(dividend)}{sign}{_bracketed(divisor)}"
        case ("max" | "min" | "broadcast" as word, frozenset() as keys):
            texts = _listed(keys, key_text, longest)
            return None if texts is None else f"{word}({', '.join(texts)})"
    return None


def _bracketed(text: str) -> str:
    return f"({text})" if any(sign in text for sign in "+-*/%") else text
