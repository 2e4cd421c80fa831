"""Chances that labels are spelt in some steps (CTCLoss), a row of labels each, by a kernel of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irrun.engines.compiled.code import FLOATS, LANES, LINE, LONG, Code, Form, long, vectors_of
from irrun.engines.compiled.loops import SHARED_NANOSECONDS
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.spec.op import Array

NEVER = -1e30
"""The log of a chance that there is not: a number, so that differences are numbers, too."""

FAR = -1e20
"""The least log of a chance that f32 tells from none."""

STEP_NANOSECONDS = 50.0
"""What a step of 16 places takes about."""

_FORM = Form(("items", "steps", "vectors", "lengths", "chances", "stays", "skips", "found"))
"""`items` are rows of `vectors` vectors of places, for which there are `chances` in so many `steps`, and what is added
where a path stays and where it skips one. What is `found` of a row has one vector more ahead of it, of no chance."""


def spelt(team: Team, plain: Callable[..., Array], chances: Array, stays: Array, skips: Array, lengths: Array) -> Array:
    """What `plain`, the op library's own, gives."""
    count, steps, places = chances.shape
    if chances.dtype != np.float32 or not chances.size or chances.min(where=chances > -np.inf, initial=0) < FAR:
        return plain(chances, stays, skips, lengths)
    vectors = vectors_of(places)
    ahead = np.full((count, steps, vectors * LANES), NEVER, np.float32)
    np.maximum(chances, np.float32(NEVER), out=ahead[..., :places])
    masks = np.full((2, count, vectors * LANES), NEVER, np.float32)
    masks[..., :places] = np.where((stays, skips), 0, np.float32(NEVER))
    found = np.full((count, (vectors + 1) * LANES), NEVER, np.float32)
    found[:, LANES : LANES + 2] = ahead[:, 0, :2]
    numbers = np.ascontiguousarray(lengths, np.int64)
    given = zip(
        ("lengths", "chances", "stays", "skips", "found"),
        map(data_address, (numbers, ahead, *masks, found)),
        strict=True,
    )
    arguments = _FORM.of(items=count, steps=steps, vectors=vectors, **dict(given))
    address = _FORM.address("ctc loss", _row)
    shared = count > 1 and int(numbers.sum()) * vectors * STEP_NANOSECONDS > SHARED_NANOSECONDS
    team.run(address, data_address(arguments), shared=shared)
    result = found[:, LANES : LANES + places]
    result[(result <= NEVER / 2) | (numbers == 0)[:, None]] = -np.inf
    return result


def _row(c: Code, at: dict[str, Any], number: Any) -> None:
    """The steps of a row. Places are taken from the last one on, since each is what it and those before it were."""
    b = c.b
    size = b.mul(at["vectors"], long(LINE))
    stays, skips = (c.at(at[name], number, size) for name in ("stays", "skips"))
    found = b.add(c.at(at["found"], number, b.add(size, long(LINE))), long(LINE))
    chances = c.at(at["chances"], number, b.mul(at["steps"], size))
    length = c.load(c.at(at["lengths"], number, 8), LONG, 8)

    def step(time: Any) -> None:
        line = c.at(chances, b.add(time, long(1)), size)

        def vector(n: Any) -> None:
            place = c.at(long(0), b.sub(b.sub(at["vectors"], n), long(1)), LINE)
            own = b.add(found, place)
            stayed = b.fadd(c.load(own, FLOATS), c.load(b.add(stays, place), FLOATS))
            gone = c.load(b.sub(own, long(4)), FLOATS)
            skipped = b.fadd(c.load(b.sub(own, long(8)), FLOATS), c.load(b.add(skips, place), FLOATS))
            ways = stayed, gone, skipped
            best = c.greatest(c.greatest(stayed, gone), skipped)  # NaN comes back by the difference from it
            one, other, third = (c.decay(b.fsub(way, best)) for way in ways)
            total = b.fadd(b.fadd(one, other), third)
            c.store(b.fadd(b.fadd(c.log(total), best), c.load(b.add(line, place), FLOATS)), own)

        c.loop(at["vectors"], vector)

    c.times(b.sub(c.most(length, long(1)), long(1)), step)
