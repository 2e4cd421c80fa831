"""Axes of tensors that are walked through together."""

from __future__ import annotations

from collections.abc import Sequence


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The least axes that tensors of one shape and of these strides can be seen with, all in the same way."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(kept[-1] == own[axis] * size for kept, own in zip(steps, strides, strict=True)):
            sizes[-1] *= size
            for kept, own in zip(steps, strides, strict=True):
                kept[-1] = own[axis]
            continue
        sizes.append(size)
        for kept, own in zip(steps, strides, strict=True):
            kept.append(own[axis])
    return tuple(sizes), [tuple(kept) for kept in steps]
