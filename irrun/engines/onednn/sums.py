"""What is made of sums of products of codes: factors, zero points, a bias, and the posts that these take in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from irrun.engines.grid import is_held
from irrun.engines.onednn.library import POST, SCALES, SRC, SRC_1, WEIGHTS, ZERO_POINTS
from irrun.engines.onednn.posts import ADD, LINEAR, MUL, RECTIFY, Chain
from irrun.records import NamedTuple
from irrun.spec.op import Array


class Sums(NamedTuple):
    """The result is a sum times `factors` plus `bias`, vectors in f64 of one number or one for each channel.

    `zeros` are the codes of zero by the arguments whose codes they are; None for one that is given in the run.
    """

    factors: Array
    zeros: Mapping[int, int | None]
    bias: Array | None = None

    def with_posts(self, posts: Chain) -> tuple[Sums, Chain]:
        """The same with fewer posts: those that only scale and shift the sums are done by factors and bias."""
        sums, taken, chain = self, 0, _merged(posts)
        for number, (kind, algorithm, *rest) in enumerate(chain.posts, 1):
            constant = chain.constants.get(number * POST + SRC_1)
            if kind == "eltwise" and algorithm == LINEAR:
                changed = sums._linear(np.asarray(rest[0]), np.asarray(rest[1]))
            elif kind == "binary" and constant is not None and algorithm == MUL:
                changed = sums._linear(constant().astype(np.float64).reshape(-1), np.asarray(0.0))
            elif kind == "binary" and constant is not None and algorithm == ADD:
                changed = sums._linear(np.asarray(1.0), constant().astype(np.float64).reshape(-1))
            else:
                break
            if not changed.is_held:
                break
            sums, taken = changed, number
        return sums, _without(chain, set(range(taken)))

    @property
    def is_held(self) -> bool:
        """Whether f32 holds factors and bias."""
        return is_held(self.factors) and (self.bias is None or is_held(self.bias))

    def centered(self, totals: Array) -> Sums:
        """The same with the zero point of the data in the bias, for which there are faster kernels.

        `totals` are the sums of the weights of each channel, all of which every result must have multiplied with codes.
        """
        zero = self.zeros[SRC]
        assert zero is not None
        bias = -zero * self.factors * totals + (0.0 if self.bias is None else self.bias)
        return self._replace(zeros={**self.zeros, SRC: 0}, bias=bias if np.any(bias) else None)

    def _linear(self, factor: Array, shift: Array) -> Sums:
        bias = shift if self.bias is None else self.bias * factor + shift
        return self._replace(factors=self.factors * factor, bias=bias if np.any(bias) else None)

    def biases(self, count: int) -> Array:
        """The bias of each of `count` channels, f32."""
        return np.ascontiguousarray(np.broadcast_to(0.0 if self.bias is None else self.bias, count), np.float32)

    @property
    def quantities(self) -> dict[int, Array]:
        """The scales and zero points of a primitive."""
        given: dict[int, Array] = {SCALES + WEIGHTS: self.factors.astype(np.float32)}
        return given | {ZERO_POINTS + number: np.array([zero], np.int32) for number, zero in self.zeros.items() if zero}

    def masks(self, along: int) -> list[tuple[int, int]]:
        """How quantities go along the axes of their arguments; `along` is the mask of channels in the weights."""
        given = [(ZERO_POINTS + number, 0) for number, zero in self.zeros.items() if zero is None]
        return given + [(number, along if array.size > 1 else 0) for number, array in self.quantities.items()]


def _merged(chain: Chain) -> Chain:
    """The posts with linear functions that follow one another as one, also where a ReLU lies between them."""
    posts, gone = list(chain.posts), set[int]()
    for number in range(len(posts) - 1):
        follower = number + 1
        if posts[number][:2] != ("eltwise", LINEAR):
            continue
        scale, shift = posts[number][2:]
        if posts[follower] == ("eltwise", *RECTIFY) and not shift and scale > 0:
            posts[number], posts[follower] = posts[follower], posts[number]
        elif posts[follower][:2] == ("eltwise", LINEAR):
            factor, more = posts[follower][2:]
            joined = scale * factor, shift * factor + more
            if is_held(np.array(joined)):
                posts[follower] = ("eltwise", LINEAR, *joined)
                gone.add(number)
    return _without(replace(chain, posts=posts), gone)


def _without(chain: Chain, gone: set[int]) -> Chain:
    """The chain without the posts of these numbers, from 0 on, which have no operands of the work."""
    kept = [number for number in range(len(chain.posts)) if number not in gone]
    moved = {(old + 1) * POST + SRC_1: (new + 1) * POST + SRC_1 for new, old in enumerate(kept)}
    return Chain(
        [chain.posts[number] for number in kept],
        {moved[number]: operand for number, operand in chain.inputs.items()},
        [moved[number] for number in chain.free],
        {moved[number]: constant for number, constant in chain.constants.items() if number in moved},
    )
