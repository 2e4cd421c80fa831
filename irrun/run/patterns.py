"""Patterns of shapes: which sizes of inputs are open, and which of these are equal."""

from __future__ import annotations

from collections.abc import Sequence

from irrun.spec.dims import Shape, fresh

Shapes = tuple[tuple[int, ...], ...]
"""Of the inputs of a program."""

Pattern = tuple[tuple[int, ...], ...]
"""Of shapes: sizes of 0 and more are these, those below 0 are open, equal ones by the same number."""


def open_shapes(pattern: Pattern) -> tuple[Shape, ...]:
    """The shapes of a pattern with a `Dim` of 2 and more for each size that is open."""
    sizes = {size: fresh(2) for shape in pattern for size in shape if size < 0}
    return tuple(tuple(sizes.get(size, size) for size in shape) for shape in pattern)


def pattern_of(shapes: Shapes, declared: Sequence[Shape | None]) -> Pattern:
    """The pattern of shapes; of sizes below 2, and of what the model declares, nothing is open."""
    names: dict[int, int] = {}
    return tuple(
        tuple(
            size if size < 2 or _is_declared(own, axis) else names.setdefault(size, ~len(names))
            for axis, size in enumerate(shape)
        )
        for own, shape in zip(declared, shapes, strict=True)
    )


def _is_declared(shape: Shape | None, axis: int) -> bool:
    """Whether the model says which size an axis of an input has."""
    return shape is not None and axis < len(shape) and isinstance(shape[axis], int)


def grown(before: Shapes, now: Shapes) -> Pattern | None:
    """The pattern of shapes of which some sizes, but not all, are larger by one than in the run before.

    The others are what they were, or 1, as behind a prompt: lengths at random may be larger by one, too.
    """
    if len(before) != len(now) or any(len(a) != len(b) for a, b in zip(before, now, strict=True)):
        return None
    sizes = [pair for old, new in zip(before, now, strict=True) for pair in zip(old, new, strict=True)]
    if any(b not in (a, a + 1, 1) for a, b in sizes):
        return None
    larger = {b for a, b in sizes if b == a + 1 > 1}
    names = {size: -number for number, size in enumerate(sorted(larger), 1)}
    pattern = tuple(
        tuple(names[b] if b == a + 1 and b in names else b for a, b in zip(old, new, strict=True))
        for old, new in zip(before, now, strict=True)
    )
    return pattern if names and not all(min(shape, default=-1) < 0 for shape in pattern) else None


def fits(pattern: Pattern, shapes: Shapes) -> bool:
    """Whether shapes are of a pattern."""
    if len(pattern) != len(shapes):
        return False
    sizes: dict[int, int] = {}
    for wanted, shape in zip(pattern, shapes, strict=True):
        if wanted == shape:
            continue
        if len(wanted) != len(shape):
            return False
        for own, size in zip(wanted, shape, strict=True):
            if size != own and (own >= 0 or size < 2 or sizes.setdefault(own, size) != size):
                return False
    return True
