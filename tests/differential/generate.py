"""Random models with the inputs of their runs: number n of a seed is always the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from differential.builder import Builder, Rejected, Value
from differential.control import CONTROL
from differential.dependent import DEPENDENT
from differential.elementwise import chain
from differential.graph import Case, Feed
from differential.heads import (
    HEADS,
    alone,
    convolution,
    grouped_convolution,
    normalization,
    pool,
    product,
    transposed_convolution,
)
from differential.movement import MOVES
from differential.recurrent import cell, sequence
from differential.state import variable

MAX_TRIES = 20

QUICK = (product, convolution, grouped_convolution, transposed_convolution, pool, alone, normalization)
"""Heads that oneDNN takes."""

BEGINNINGS = (*HEADS, sequence, sequence, sequence, cell, cell)


def case(seed: int, number: int) -> Case:
    """Number `number` of the series `seed`."""
    random = np.random.default_rng([seed, number])
    for _ in range(MAX_TRIES):
        kind = str(random.choice([*KINDS], p=[weight for _, weight in KINDS.values()]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return KINDS[kind][0](_builder(random, kind), kind)
        except Rejected:
            continue
    raise AssertionError(f"no model for {seed}, {number}")


def _builder(random: np.random.Generator, kind: str) -> Builder:
    dtypes = ["f4"] * 17 + ["f2", "f8", "f8", "i4", "i8", "i1", "u1"]
    dynamic = random.random() < (0.35 if kind in ("chain", "dag", "control") else 0.6)
    fusible = kind == "chain" and random.random() < 0.5
    dtype = "f4" if kind == "variable" or fusible else str(random.choice(dtypes))
    sets = 3 if dynamic or kind in ("variable", "dependent") else 2
    many = dynamic and random.random() < 0.08
    if many:
        sets = 11  # so that programs are settled from templates
    b = Builder(random, sets, dtype, special=random.random() < 0.12)
    b.fusible = fusible
    b.large = random.random() < 0.06
    b.empty = random.random() < 0.04
    if dynamic:
        low = 0 if b.empty else 1
        b.open = [
            tuple(map(int, random.permutation(14)[:sets] + 2))  # of one pattern, as a rule
            if many and b.chance(0.7)
            else tuple(b.number(low, 9) for _ in range(sets))
            for _ in range(b.number(1, 3))
        ]
    return b


def _chains(b: Builder, kind: str) -> Case:
    """Heads with element-wise ops behind them, one or two of them."""
    b.again = b.choose([0.2, 0.8])
    for _ in range(b.choose([1, 1, 1, 2, 2, 3, 4])):
        x = b.attempt(QUICK if b.fusible else BEGINNINGS)
        if b.chance(0.2):
            b.keep(x)
        y = chain(b, x, b.choose([0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 9, 14]))
        if b.chance(0.25):
            y = b.attempt(MOVES)
            y = chain(b, y, b.number(0, 3))
        b.keep(y)
        if b.chance(0.5):
            results(b, y)
    return finished(b, kind)


def _graph(b: Builder, kind: str) -> Case:
    """Anything that reads anything."""
    b.again = 0.8
    b.keep(b.attempt(BEGINNINGS))
    for _ in range(b.number(3, 9)):
        match b.choose(["move", "move", "move", "chain", "head"]):
            case "move":
                y = b.attempt(MOVES)
            case "chain":
                y = chain(b, b.choose(b.values[-4:]), b.number(1, 3))
            case _:
                y = b.attempt(BEGINNINGS)
        b.keep(y)
    return finished(b, kind)


def _mixed(parts: tuple[Callable[[Builder], Value], ...]) -> Callable[[Builder, str], Case]:
    """Some of these parts, among other things."""

    def made(b: Builder, kind: str) -> Case:
        b.again = 0.7
        if b.chance(0.6):
            b.keep(chain(b, b.attempt(BEGINNINGS), b.number(0, 2)))
        for _ in range(b.choose([1, 1, 2])):
            b.keep(b.attempt(parts))
            if b.chance(0.6):
                b.keep(chain(b, b.values[-1], b.number(1, 3)))
            if b.chance(0.4):
                b.keep(b.attempt(MOVES if b.chance(0.5) else BEGINNINGS))
        return finished(b, kind)

    return made


def results(b: Builder, value: Value) -> None:
    """A Result, seldom a second one of the same tensor, or one of the same numbers in another shape."""
    read = {b.graph.layers[number].inputs[0] for number in b.graph.of_type("Result")}
    if value.ref not in read or b.chance(0.03):
        b.result(value)
    if b.chance(0.02):
        shape = b.constant(np.int64([-1]))
        b.result(b.one("Reshape-1", value, shape, special_zero=False))


def finished(b: Builder, kind: str) -> Case:
    """The case: the last tensor and some others are results; runs take the sets of sizes in turn."""
    results(b, b.values[-1])
    for value in b.values[:-1]:
        if b.chance(0.25):
            results(b, value)
    if b.chance(0.03) and b.graph.of_type("Parameter"):
        number = b.choose(b.graph.of_type("Parameter"))
        b.graph.add(type(b.graph.layers[number])("Result-1", [(number, 0)]))
    if b.state:
        order = list(range(b.sets))
    elif b.open or kind == "dependent":
        order = [0, 1, 0, 2, 2, *range(3, b.sets), *range(3 if b.sets > 3 else 0)]
    else:
        order = [0, 1, 0]
    feeds = [b.feeds[number] for number in order]
    if b.chance(0.12):
        feeds.insert(b.number(0, len(feeds)), failing(b, b.choose(feeds)))
    return b.case(kind, feeds)


def failing(b: Builder, feed: Feed) -> Feed:
    """Inputs of which integers, such as indices, are perhaps not what the model can do with."""
    wrong = {}
    endless = any(layer.type == "Loop" for layer in b.graph.walk())  # with a negative number of turns
    for name, array in feed.items():
        wrong[name] = array
        if array.dtype.kind == "i" and array.dtype.itemsize > 1 and array.size and b.chance(0.7):
            wrong[name] = array.copy()
            wrong[name].reshape(-1)[b.number(0, array.size - 1)] = b.choose([11, 23] if endless else [11, -11, 23])
    return wrong


KINDS: dict[str, tuple[Callable[[Builder, str], Case], float]] = {
    "chain": (_chains, 0.5),
    "dag": (_graph, 0.26),
    "control": (_mixed(CONTROL), 0.1),
    "dependent": (_mixed(DEPENDENT), 0.09),
    "variable": (_mixed((variable, variable, *CONTROL[:1])), 0.05),
}
