"""Kernels that are run one behind the other in one call: between two of them threads meet in native code, which takes a
tenth of the time that it takes to call each from Python and to have OpenMP's threads begin and end it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from irrun.engines.compiled.code import LINE
from irrun.engines.compiled.helping import STATE, YIELDING, helping
from irrun.engines.compiled.team import Team, yielding
from irrun.engines.memory import allocate, data_address
from irrun.engines.work import Joinable
from irrun.spec.op import Array

MET_SECONDS = 12e-6
"""What one thread must need for all that others can share of a sequence for them to come to it: to meet them takes 1 us
and more."""


class Kernel(Joinable):
    """A call of a kernel whose items threads share, as `Form.shared` writes it. Made alone it has no thread but the
    caller's unless it is `shared`, in a sequence that takes long all of the team. One thread needs about `seconds` for
    it. Where it is `whole` there is one item, which others can only take over, with what lies in the caller's cache. It
    is made `beside` what threads of others compute, if so, else by those of the team.

    `held` is the memory of its arguments. Some of these count: before a call the first one is 0, and `counted` has the
    number of another one and what that is.
    """

    def __init__(
        self,
        team: Team,
        address: int,
        arguments: Array,
        held: Sequence[Any],
        *,
        shared: bool,
        seconds: float,
        whole: bool = False,
        counted: tuple[int, int] = (0, 0),
        beside: bool = True,
    ) -> None:
        self._team, self._address, self._arguments, self.shared = team, address, arguments, shared
        self._pointer, self._held, self._counted = data_address(arguments), held, counted
        self.joins, self.seconds, self.whole, self.beside = team, seconds, whole, beside
        self._run = team.bound(address, self._pointer, shared=shared, beside=beside)

    def __call__(self) -> None:
        arguments, (number, begin) = self._arguments, self._counted
        arguments[0] = 0
        arguments[number] = begin
        self._run()

    def joined(self, calls: Sequence[Kernel]) -> Sequenced:
        return Sequenced(self._team, calls)

    @property
    def told(self) -> tuple[int, int, int, int]:
        """What a sequence is told of it: where it is, where its arguments are, and what counts, and is this before."""
        number, begin = self._counted
        return self._address, self._pointer, self._pointer + 8 * number, begin


class Sequenced:
    """One call of several kernels of a team, in order, by the caller alone where he is through with all of them before
    others would come."""

    def __init__(self, team: Team, kernels: Sequence[Kernel]) -> None:
        self._kernels = kernels
        seconds = sum(kernel.seconds for kernel in kernels if not kernel.whole)
        self._shared = seconds > MET_SECONDS or any(kernel.shared for kernel in kernels)
        self._listed = np.array([kernel.told for kernel in kernels], np.uint64)
        self._arguments = allocate(LINE + STATE).view(np.uint64)
        self._arguments[...] = 0
        self._arguments[2:4] = len(kernels), data_address(self._listed)
        self._arguments[LINE // 8 + YIELDING] = yielding()
        beside = all(kernel.beside for kernel in kernels)
        self._run = team.bound(_address(), data_address(self._arguments), shared=self._shared, beside=beside)

    def __call__(self) -> None:
        self._arguments[:2] = 0
        self._run()


@cache
def _address() -> int:
    return helping()[2]
