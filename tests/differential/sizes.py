"""Random models whose inputs come in sizes that do not fit together: who refuses them, and what others compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from run.resizing import opened

from differential.generate import case
from differential.graph import Array, Case, Feed

RUNS = 5


def unfitting(seed: int, number: int) -> Case:
    """Number `number` of the series `seed` with most sizes of its inputs open: runs as it was made for at the beginning
    and at the end, and others in between, in which each size may be another one."""
    rng = np.random.default_rng([seed, number, 2])
    made = opened(case(seed, number), rng)
    first = made.feeds[0]
    sizes = [dims for n in made.graph.of_type("Parameter") for _, dims in made.graph.layers[n].outputs]
    others = [_changed(first, sizes, rng) for _ in range(RUNS)]
    return replace(made, feeds=[first, *others, first])


def _changed(feed: Feed, sizes: list[tuple[int, ...]], rng: np.random.Generator) -> Feed:
    def resized(array: Array, declared: tuple[int, ...]) -> Array:
        shape = [
            int(rng.choice([0, 1, size + 1, 2])) if own < 0 and rng.random() < 0.25 else size
            for size, own in zip(array.shape, declared, strict=True)
        ]
        return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)

    return {name: resized(array, declared) for (name, array), declared in zip(feed.items(), sizes, strict=True)}
