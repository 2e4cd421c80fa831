"""Random models whose inputs come in sizes that they were not made for: settled programs against those made in full."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from differential.generate import case
from differential.graph import Case, Feed, Graph, save

import irrun
from irrun.run import preparation, templates
from irrun.run.passes import place, prepare
from irrun.run.templates import Templates
from run.verification import verify

SIZES = (0, 1, 2, 3, 4, 6, 9)
RUNS = 10


def opened(made: Case, rng: np.random.Generator) -> Case:
    """The model with most axes of its inputs open, and all others."""
    for layer in made.graph.walk():
        layer.outputs = [(type, (-1,) * len(dims)) for type, dims in layer.outputs]
    for number in made.graph.of_type("Parameter"):
        layer = made.graph.layers[number]
        array = made.feeds[0][_name(made.graph, number)]
        kept = [size if rng.random() < 0.3 else -1 for size in array.shape]
        layer.outputs = [(layer.outputs[0][0], tuple(kept))]
        layer.attrs = {**layer.attrs, "shape": ",".join("?" if size < 0 else str(size) for size in kept)}
    return made


def _name(graph: Graph, number: int) -> str:
    return f"x{graph.of_type('Parameter').index(number)}"


def resized(made: Case, rng: np.random.Generator) -> Feed:
    """Inputs of other sizes where these are open: those that were equal still are."""
    sizes = {size: int(rng.choice(SIZES)) if rng.random() < 0.8 else size for size in range(64)}
    feed: Feed = {}
    for number in made.graph.of_type("Parameter"):
        name, dims = _name(made.graph, number), made.graph.layers[number].outputs[0][1]
        array = made.feeds[0][name]
        shape = [sizes.get(size, size) if own < 0 else size for own, size in zip(dims, array.shape, strict=True)]
        feed[name] = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    return feed


@contextmanager
def in_full() -> Iterator[None]:
    """Programs are made from the beginning for all sizes."""
    with (
        patch.object(preparation, "_is_light", lambda program: False),
        patch.object(Templates, "prepare", lambda self, setting: prepare(self._program, setting)),
    ):
        yield


@contextmanager
def settled(counts: dict[str, int]) -> Iterator[None]:
    """Settled programs, which are there from the second time of a pattern on, are verified; how many there have been,
    and how many of these were placed as one before, or began so."""

    def placed(program: Any, setting: Any) -> Any:
        verify(program)
        made = place(program, setting)
        verify(made, planned=True, asked=setting.checked or setting.watched, iterated=setting.iterated)
        return made

    settle, repeat = templates.settle, templates.repeat

    def repeated(course: Any, program: Any, read: Any, setting: Any) -> Any:
        made = repeat(course, program, read, setting)
        counts["not repeated" if made is None else "repeated" if made[1] else "begun"] += 1
        if made is not None:
            found, anew = made[0], place(program, setting)
            verify(found, planned=True, asked=setting.checked or setting.watched, iterated=setting.iterated)
            assert [own.by for own in found.instructions] == [own.by for own in anew.instructions]
            assert (found.size, found.scratch, found.peak) == (anew.size, anew.scratch, anew.peak)
        return made

    def counted(*args: Any) -> Any:
        program = settle(*args)
        counts["settled" if program is not None else "not settled"] += 1
        return program

    with (
        patch.object(preparation, "_is_light", lambda program: False),
        patch.object(templates, "PATIENCE", 1),
        patch.object(templates, "place", placed),
        patch.object(templates, "settle", counted),
        patch.object(templates, "repeat", repeated),
    ):
        yield


def outcome(executor: irrun.GraphExecutor, feed: Feed) -> list[np.ndarray] | str:
    try:
        return list(executor.run(feed).values())
    except irrun.IRError as error:
        return str(error)


def differences(seed: int, number: int, engine: str, counts: dict[str, int]) -> list[str]:
    """What is not the same where programs are settled."""
    rng = np.random.default_rng([seed, number, 1])
    made = opened(case(seed, number), rng)
    feeds = [made.feeds[0], *(resized(made, rng) for _ in range(RUNS))]
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = save(replace(made), Path(name))
        try:
            ours, full = (irrun.GraphExecutor(path, engine=engine, precision="declared", threads=1) for _ in range(2))
        except irrun.IRError:
            return []
        found = []
        for turn, feed in enumerate(feeds * 2):
            with in_full():
                expected = outcome(full, feed)
            with settled(counts):
                given = outcome(ours, feed)
            if not _equal(given, expected):
                shapes = {name: array.shape for name, array in feed.items()}
                found.append(f"{seed} {number} {engine}, run {turn} of {shapes}: {given} instead of {expected}")
    return found


def _equal(a: list[np.ndarray] | str, b: list[np.ndarray] | str) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return all(
        x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True)
    )
