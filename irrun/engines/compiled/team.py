"""The threads that run a kernel: those of OpenMP, which are oneDNN's, too, or else a pool of our own."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from irrun.engines.compiled.kernels import ARGUMENTS, COUNTERS
from irrun.engines.onednn.bindings import load_parallel
from irrun.engines.vectorized.threads import Threads
from irrun.engines.work import Call
from irrun.spec.op import Array

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_forked = False


@cache
def _parallel() -> Any:
    return load_parallel()


def team_call(address: int, arguments: Array, held: Sequence[Any], threads: int, pool: Threads) -> Call:
    """What runs a kernel on so many threads, with the same arguments each time; their memory is in `held`."""
    kernel, pointer, holding = _KERNEL(address), arguments.ctypes.data, (arguments, *held)
    counters = [(number, int(arguments[number])) for number in map(ARGUMENTS.index, COUNTERS)]

    def alone(_: object = holding) -> None:
        for number, begin in counters:
            arguments[number] = begin
        kernel(pointer)

    def pooled() -> None:
        for number, begin in counters:
            arguments[number] = begin
        pool.run(lambda *_: kernel(pointer), threads)

    def together(_: object = holding) -> None:
        parallel = None if _forked else _parallel()
        if parallel is None:
            pooled()
        else:
            for number, begin in counters:
                arguments[number] = begin
            parallel(address, pointer, threads, 0)

    return alone if threads == 1 else together


def _fork() -> None:
    """In a forked child, which has none of OpenMP's threads, and would wait for them."""
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fork)
