"""Tensors of which one part is wrong and the rest is right: a box, some slices, the tail behind a multiple of 8."""

from __future__ import annotations

import numpy as np

from irrun.spec.op import Array
from irrun.tools.compare.causes.case import Case, Cause, number, values

DENSE = 0.8
"""Of a part that is wrong as a whole: some values in it may be right by chance."""

WIDTHS = (64, 32, 16, 8, 4)
"""Elements that processors handle at a time."""


def part(case: Case) -> Cause | None:
    """Wrong elements that fill slices along one axis, or a box, and right ones everywhere else."""
    wrong = case.wrong
    count = int(wrong.sum())
    if not count or count == wrong.size or wrong.ndim == 0:
        return None
    values_there = case.actual[wrong]
    stuck = bool((values_there == values_there.flat[0]).all()) and count > 1 and case.numeric
    # where the number that fills a part is right by chance it belongs to the part all the same
    filled = wrong | np.asarray(case.actual == values_there.flat[0]) if stuck else wrong
    found = _slices(wrong, filled) or _box(wrong, filled)
    if found is None:
        return None
    what, notes = found
    if stuck:
        notes.append(f"all of these are {number(values_there.flat[0])}")
    notes.append(f"{values(count, wrong.size)} are wrong, all others within the tolerance {case.tolerance.elements}")
    help = "look at how the layer is split among threads, blocks or batches there"
    return Cause("N206", f"a part of the tensor is wrong: {what}", tuple(notes), help)


def _slices(wrong: Array, filled: Array) -> tuple[str, list[str]] | None:
    for axis, size in enumerate(wrong.shape):
        if size < 2:
            continue
        others = tuple(other for other in range(wrong.ndim) if other != axis)
        bad = np.flatnonzero(wrong.any(axis=others))
        share = filled.mean(axis=others) if others else filled.astype(float)
        if len(bad) == size or float(share[bad].mean()) < DENSE:
            continue
        text = _indices(bad, size)
        if text is None:
            continue
        return f"{text} along axis {axis}", [
            f"{len(bad):,} of {size:,} slices along axis {axis} are wrong, {share[bad].mean():.0%} of each"
        ]
    return None


def _indices(bad: Array, size: int) -> str | None:
    """How indices are said; None for several without a pattern."""
    first, last = int(bad[0]), int(bad[-1])
    if len(bad) == 1:
        return f"slice {first}"
    if last - first + 1 == len(bad):
        if last == size - 1:
            width = next((width for width in WIDTHS if first % width == 0 and first), None)
            return f"the tail from {first} on" + (f", behind a multiple of {width}" if width else "")
        return f"slices {first} to {last}"
    steps = np.unique(np.diff(bad))
    if len(steps) == 1 and len(bad) > 2:
        step = int(steps[0])
        return f"every {'other' if step == 2 else f'{step}th'} slice from {first} on"
    if len(bad) <= 8:
        return f"the slices {', '.join(map(str, bad.tolist()))}"
    return None


def _box(wrong: Array, filled: Array) -> tuple[str, list[str]] | None:
    places = np.argwhere(wrong)
    low, high = places.min(axis=0), places.max(axis=0)
    box = filled[tuple(slice(int(a), int(b) + 1) for a, b in zip(low, high, strict=True))]
    share = float(box.mean())
    if share < DENSE or box.size == wrong.size:
        return None
    text = ", ".join(
        str(int(a)) if a == b else f"{a}:{b + 1}" for a, b in zip(low.tolist(), high.tolist(), strict=True)
    )
    if box.size == 1:
        return f"the element [{text}]", []
    return f"the box [{text}]", [f"{share:.0%} of the box are wrong"]
