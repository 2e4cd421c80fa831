"""Shape patterns: `[num_emb, *emb_dims]` as the specification prints it, bound to shapes and expanded into shapes.

A name is a dimension, a starred name any number of dimensions, a number that very size; `...` is any shape at all.
The same name is the same dimension wherever it stands.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from irrun.records import NamedTuple
from irrun.spec.dims import Dim, Shape, Size, fresh, incompatible, meet


class Pattern(NamedTuple):
    """A parsed pattern: the dimensions before the starred one, the starred one (None: there is none), those after."""

    text: str
    head: tuple[str | int, ...]
    star: str | None
    tail: tuple[str | int, ...]
    anything: bool = False

    def fits(self, rank: int) -> bool:
        if self.anything:
            return True
        fixed = len(self.head) + len(self.tail)
        return rank >= fixed if self.star else rank == fixed


class Mismatch(Exception):
    """A shape does not fit its pattern. `code` is E304 (a dimension) or E305 (the rank), `about` another port."""

    def __init__(self, code: str, message: str, *about: str) -> None:
        super().__init__(message)
        self.code = code
        self.about = about


def parse_pattern(text: str) -> Pattern:
    """Read `[N, C, *spatial]`, `[]` or `...`."""
    text = text.strip()
    if text == "...":
        return Pattern(text, (), None, (), anything=True)
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"{text!r} is not a shape pattern")
    parts = [part.strip() for part in text[1:-1].split(",") if part.strip()]
    stars = [number for number, part in enumerate(parts) if part.startswith("*")]
    if len(stars) > 1:
        raise ValueError(f"{text!r} has more than one starred name")
    names: list[str | int] = [int(part) if part.isdecimal() else part for part in parts]
    if not stars:
        return Pattern(text, tuple(names), None, ())
    split = stars[0]
    return Pattern(text, tuple(names[:split]), parts[split][1:], tuple(names[split + 1 :]))


def bind(
    patterns: Sequence[Pattern],
    port: str,
    shape: Shape,
    dims: MutableMapping[str, Any],
    origins: MutableMapping[str, str],
) -> None:
    """Bind the names of the first pattern that has the rank of `shape`; `origins` says which port bound a name.

    Raises `Mismatch` where no pattern fits or a name is bound to another size already.
    """
    rank = len(shape)
    for pattern in patterns:
        if pattern.fits(rank):
            break
    else:
        expected = " or ".join(pattern.text if pattern.text != "[]" else "a scalar" for pattern in patterns)
        raise Mismatch("E305", f"`{port}` has rank {rank}, expected {expected}")
    if pattern.anything:
        return
    start, stop = len(pattern.head), rank - len(pattern.tail)
    for name, size in zip(pattern.head, shape, strict=False):
        _bind_name(name, port, size, dims, origins)
    if pattern.star:
        _bind_star(pattern.star, port, shape[start:stop], dims, origins)
        for name, size in zip(pattern.tail, shape[stop:], strict=True):
            _bind_name(name, port, size, dims, origins)


def _bind_name(
    name: str | int, port: str, size: Size, dims: MutableMapping[str, Any], origins: MutableMapping[str, str]
) -> None:
    if isinstance(name, int):
        if (size == name) is False:
            raise Mismatch("E304", f"`{port}` has a dimension of {size}, expected {name}")
        return
    bound = dims.get(name)
    if bound is None:
        dims[name] = size
        origins[name] = port
        return
    if (bound == size) is False:
        if origins[name] == port:
            raise Mismatch("E304", f"`{name}` is {bound} and {size} in `{port}`, expected one size for both")
        raise Mismatch("E304", f"`{name}` is {size} in `{port}`, but {bound} in `{origins[name]}`", origins[name])
    dims[name] = meet(bound, size)


def _bind_star(
    name: str, port: str, shape: Shape, dims: MutableMapping[str, Any], origins: MutableMapping[str, str]
) -> None:
    bound = dims.get(name)
    if bound is None:
        dims[name] = shape
        origins[name] = port
        return
    if incompatible(bound, shape):
        found, expected = shape_text(shape), shape_text(bound)
        raise Mismatch("E304", f"`{name}` is {found} in `{port}`, but {expected} in `{origins[name]}`", origins[name])
    dims[name] = tuple(map(meet, bound, shape))


def expand(pattern: Pattern, dims: MutableMapping[str, Any]) -> Shape | None:
    """The shape of `pattern`; an unbound name becomes a new unknown size, a starred one an unknown rank."""
    if pattern.anything:
        return None
    middle: Shape = ()
    if pattern.star:
        if dims.get(pattern.star) is None:
            return None
        middle = dims[pattern.star]
    return (
        *(_size_of(name, dims) for name in pattern.head),
        *middle,
        *(_size_of(name, dims) for name in pattern.tail),
    )


def _size_of(name: str | int, dims: MutableMapping[str, Any]) -> Size:
    if isinstance(name, int):
        return name
    size: Size | None = dims.get(name)
    if size is None:
        size = dims[name] = fresh()
    return size.within(0) if isinstance(size, Dim) else size


def shape_text(shape: Shape | None, *, names: bool = True) -> str:
    """A shape as messages print it: `[1, batch, 2..8]`, or `[...]` where the rank is unknown; `?` for `names=False`.

    >>> from irrun.spec.dims import fresh
    >>> shape_text((1, fresh(name="batch"), fresh(2, 8))), shape_text(()), shape_text(None)
    ('[1, batch, 2..8]', '[]', '[...]')
    """
    if shape is None:
        return "[...]"
    sizes = shape if names else (size.bounds if isinstance(size, Dim) else size for size in shape)
    return f"[{', '.join(map(str, sizes))}]"
