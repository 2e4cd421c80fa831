"""How far two sides choose alike: the largest of each row, rankings, and distributions; the rows lie along one axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irrun.records import dataclass
from irrun.spec.op import Array
from irrun.tools.compare.blocks import BLOCK, numbers

PERSISTENCE = 0.9
"""Of the rank-biased overlap: each rank counts so much of the one before it."""

DEPTH = 100
"""Ranks that it looks at: those behind them would add 0.00003."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many of so many `rows` choose alike: of all, those with the same largest element (`top1`), the mean share of
    the `k` largest that both have (`topk`), and the mean rank-biased overlap (`rbo`).

    Of the rows with another largest one, `ties` are those where the expected largest two are closer than twice the
    largest error of the row. `margin` is the least distance of these two among the other rows that flipped, None where
    there are none.
    """

    rows: int
    k: int
    top1: float
    topk: float
    rbo: float
    flips: int
    ties: int
    margin: float | None


@dataclass(frozen=True, slots=True)
class Divergence:
    """The Kullback-Leibler and Jensen-Shannon divergence of rows from those expected, in nats: mean and largest."""

    kl: float
    kl_max: float
    js: float
    js_max: float


def _rows(actual: Array, expected: Array, axis: int) -> Iterator[tuple[Array, Array]]:
    """The rows along an axis, some at a time. Raises ValueError where the shapes differ, or there are no rows."""
    if actual.shape != expected.shape or not expected.ndim or not expected.size:
        raise ValueError(f"rows of {list(actual.shape)} and {list(expected.shape)} cannot be compared")
    a, r = (np.moveaxis(array, axis, -1) for array in (actual, expected))
    a, r = a.reshape(-1, a.shape[-1]), r.reshape(-1, r.shape[-1])
    step = max(1, BLOCK // a.shape[-1])
    for begin in range(0, len(a), step):
        yield numbers(a[begin : begin + step]), numbers(r[begin : begin + step])


def agreement(actual: Array, expected: Array, k: int = 5, axis: int = -1) -> Agreement:
    """How far the largest elements along an axis are the same. Raises ValueError where there are no rows to compare."""
    rows = same = flips = ties = 0
    shared = overlap = 0.0
    margin: float | None = None
    length = expected.shape[axis] if expected.ndim else 0
    k = min(k, length)
    for a, r in _rows(actual, expected, axis):
        first, right = np.argsort(-a, axis=-1, kind="stable"), np.argsort(-r, axis=-1, kind="stable")
        rows += len(a)
        differ = np.flatnonzero(first[:, 0] != right[:, 0])
        same, flips = same + len(a) - len(differ), flips + len(differ)
        for row in differ:
            gap = float(r[row, right[row, 0]] - r[row, right[row, 1]])
            if gap <= 2 * float(np.abs(a[row] - r[row]).max()):
                ties += 1
            else:
                margin = gap if margin is None else min(margin, gap)
        depth = min(length, DEPTH)
        for one, other in zip(first[:, :depth], right[:, :depth], strict=True):
            shared += len(np.intersect1d(one[:k], other[:k])) / k
            overlap += rank_biased_overlap(one, other)
    return Agreement(rows, k, same / rows, shared / rows, overlap / rows, flips, ties, margin)


def rank_biased_overlap(one: Array, other: Array) -> float:
    """How far two rankings agree, from 0 to 1, the first ranks counting most; 1 where all that is given is the same."""
    ranks = np.concatenate([one, other])
    values, places = np.unique(ranks, return_inverse=True)
    if len(values) == len(ranks):
        return 0.0
    when = np.full((2, len(values)), len(one))
    when[0, places[: len(one)]] = np.arange(len(one))
    when[1, places[len(one) :]] = np.arange(len(other))
    both = np.sort(when.max(axis=0))
    common = np.searchsorted(both, np.arange(len(one)), side="right")
    weights = PERSISTENCE ** np.arange(len(one))
    return float((common / np.arange(1, len(one) + 1)) @ weights / weights.sum())


def divergence(actual: Array, expected: Array, axis: int = -1, *, logs: bool = False) -> Divergence:
    """How far rows of probabilities, or with `logs` of their logarithms, are apart.

    Raises ValueError where there are no rows to compare.
    """
    kl: list[Array] = []
    js: list[Array] = []
    with np.errstate(all="ignore"):
        for a, r in _rows(actual, expected, axis):
            p, q = (np.exp(r), np.exp(a)) if logs else (r, a)
            middle = (p + q) / 2
            kl.append(_relative(p, q))
            js.append((_relative(p, middle) + _relative(q, middle)) / 2)
    all_kl, all_js = np.concatenate(kl), np.concatenate(js)
    return Divergence(float(all_kl.mean()), float(all_kl.max()), float(all_js.mean()), float(all_js.max()))


def _relative(p: Array, q: Array) -> Array:
    found: Array = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0).sum(axis=-1)
    return np.maximum(found, 0.0)
