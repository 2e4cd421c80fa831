"""The threads that run a kernel: helpers that look for work for a while before they sleep, and are never waited for.

Whoever calls computes all chunks of columns that nobody else takes: helpers that are still asleep, or have no
processor, come too late and do nothing. OpenMP's threads have to come to a barrier, which takes 100 us where another
process has the processor of one of them.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np

from irrun.engines.compiled.helping import STATE, YIELDING, helping
from irrun.engines.memory import allocate, data_address
from irrun.engines.placement import processor
from irrun.engines.reserve import Reserve
from irrun.locks import fork_safe
from irrun.spec.op import Array

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_LEAD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_HELP = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, *[ctypes.c_uint64] * 2)

SHARED_SECONDS = 25e-6
"""What one thread must need for threads to share it."""

WAKING_SECONDS = 12e-6
"""The same for helpers alone: to wake one costs about as much."""

PATIENCE, LONG_PATIENCE = 300_000, 3_000_000
"""Cycles for which a helper looks for work before it sleeps: some 100 us, or ten times that where there are products of
a step of generated text, since to be woken between two of these takes half as long as a product. A pause of one
processor takes four times as long as that of another, so that looks are no measure."""


class Team:
    """`count` threads, the caller's among them; the others are started when first needed and end with this object.

    Any number of threads may call at once: one has the helpers, the others compute alone meanwhile.

    `parallel` has threads of somebody else's call a function, at an address, with an argument.
    """

    def __init__(self, count: int, parallel: Callable[[int, int], object] | None = None) -> None:
        self.count, self._parallel, self._patience = count, parallel, PATIENCE
        self._busy = fork_safe(threading.Lock())
        self.reserve = Reserve()  # for large results of calls that make their own
        self._forget()
        _teams.add(self)

    def _forget(self) -> None:
        """Begin without helpers, as a forked child has to."""
        self._helpers: list[_Helper] = []
        self._state = allocate(STATE)  # what native code shares: see `helping`
        self._state[...] = 0
        self._state.view(np.uint64)[YIELDING] = yielding()
        self._at = data_address(self._state)

    def expect_steps(self) -> None:
        """Have helpers look for work for longer: there are products of a step of generated text."""
        self._patience = LONG_PATIENCE

    def run(self, address: int, arguments: int, *, shared: bool) -> None:
        """Run a kernel once on arguments that nobody else uses meanwhile."""
        if not shared or self.count == 1 or self._busy.locked():
            _kernel(address)(arguments)
            return
        with self._busy:  # which is left whatever a handler of a signal raises, unlike what is acquired by a call
            self._wake()
            _functions()[0](self._at, address, arguments)

    def beside(self, address: int, arguments: int, *, shared: bool) -> None:
        """As `run`, on the threads of others where there are any, which compute before and behind: helpers that look
        for work would be more threads than there are processors."""
        if shared and self.count > 1 and self._parallel is not None:
            self._parallel(address, arguments)
        else:
            self.run(address, arguments, shared=shared)

    def bound(self, address: int, arguments: int, *, shared: bool, beside: bool) -> Callable[[], object]:
        """A call of `beside` or of `run`, over and over: that of one thread goes to the kernel at once."""
        if not shared or self.count == 1:
            return partial(_kernel(address), arguments)
        return partial(self.beside if beside else self.run, address, arguments, shared=True)

    def _wake(self) -> None:
        while len(self._helpers) < self.count - 1:
            self._helpers.append(_Helper(self, self._state))
        for helper in self._helpers:
            if helper.asleep:
                helper.asleep, helper.caller, helper.patience = False, processor(), self._patience
                helper.start.release()


class _Helper:
    """A thread, and the lock that it waits for when it has nothing to do. The `caller` is on that processor; `patience`
    is for how many cycles it looks for more."""

    def __init__(self, team: Team, state: Array) -> None:
        self.start = threading.Lock()
        self.start.acquire()
        self.asleep = self.ended = False
        self.caller, self.patience = processor(), team._patience
        threading.Thread(target=_serve, args=(self, state), name="irrun-helper", daemon=True).start()
        weakref.finalize(team, _end, self).atexit = False


def _serve(helper: _Helper, state: Array) -> None:
    help, last, avoided = _functions()[1], 0, -1
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    while not helper.ended:
        if helper.caller != avoided and len(allowed) > 1:
            # where all processors are busy, who is woken stays on that of the caller, and takes it from the caller
            avoided = helper.caller
            with suppress(OSError):
                os.sched_setaffinity(0, allowed - {avoided})
        last = help(data_address(state), last, helper.patience)
        helper.asleep = True
        helper.start.acquire()


@cache
def _kernel(address: int) -> Callable[[int], None]:
    return _KERNEL(address)


@cache
def yielding() -> int:
    """Where the system's function lies that lets others have the processor; 0 where there is none."""
    function = getattr(ctypes.PyDLL(None), "sched_yield", None) if os.name == "posix" else None
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _end(helper: _Helper) -> None:
    helper.ended = True
    with suppress(RuntimeError):  # it was woken just now
        helper.start.release()


@cache
def _functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    lead, help, _ = helping()
    return _LEAD(lead), _HELP(help)


_teams: weakref.WeakSet[Team] = weakref.WeakSet()


def _forget_teams() -> None:
    for team in list(_teams):
        team._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_teams)
