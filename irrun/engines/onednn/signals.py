"""Signals, kept from coming while oneDNN has its stack where the frame of a handler would overwrite the heap.

Its products of f32 other than `brgemm`, which recurrent layers and some convolutions are made of, too, point the stack
at memory that they have allocated. What Linux puts below it for a handler, of whatever signal, goes over data, and over
what malloc has noted there. So the thread that calls them handles signals afterwards, and those that OpenMP keeps for
it handle none at all, which others are there for.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from ctypes import c_int, c_void_p
from functools import cache
from typing import Any

from irrun.engines.placement import have_others

_SET = ctypes.c_byte * 128
"""A `sigset_t`."""

_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS")
"""What a thread does to itself: to keep such signals back would only hide who was it."""

Execute = Callable[[Any, Any, c_int, bytes], object]


@cache
def _change() -> Any:
    """pthread_sigmask(how, signals, before), which is given a `c_int` and two `c_void_p`, or None: to have their types
    looked at would take as long as the call."""
    return ctypes.PyDLL(None)["pthread_sigmask"]


@cache
def _kept_back() -> Any:
    """The signals that are kept back, as a `sigset_t`."""
    library, signals = ctypes.PyDLL(None), _SET()
    library.sigfillset(signals)
    for name in _FAULTS:
        library.sigdelset(signals, int(getattr(signal, name)))
    return signals


class _Caller(threading.local):
    """Of a thread, `before` is where the signals are noted that it has kept back before, also by their address; and it
    is seen to that of so many threads which OpenMP keeps for it all others handle none, `count` since so many `forks`.
    """

    count, forks = 1, 0

    def __init__(self) -> None:
        self.noted = _SET()
        self.before = c_void_p(ctypes.addressof(self.noted))


_caller = _Caller()
_forks = 0


def _forget() -> None:
    """Others take the places of these threads when the process has forked."""
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forget)


def sheltered(execute: Execute, threads: int, parallel: Callable[[Any, Any, int, int], object]) -> Execute:
    """The same call, on `threads` threads, with no signal coming in between.

    `parallel(function, argument, threads, 0)` has them all call a function of C.
    """
    change, kept_back = _change(), c_void_p(ctypes.addressof(_kept_back()))
    block, restore = c_int(signal.SIG_BLOCK), c_int(signal.SIG_SETMASK)

    def call(primitive: Any, stream: Any, count: c_int, arguments: bytes) -> None:
        caller = _caller
        if threads > 1 and (caller.count < threads or caller.forks != _forks):
            _silence(threads, parallel)
        before = caller.before
        try:
            change(block, kept_back, before)  # a handler that raises something does so after calls, not ahead of them
            execute(primitive, stream, count, arguments)
        finally:
            change(restore, before, None)

    return call


def _silence(threads: int, parallel: Callable[[Any, Any, int, int], object]) -> None:
    """Have the other threads handle no signals."""
    forks = _forks
    have_others(lambda: _change()(c_int(signal.SIG_BLOCK), _kept_back(), None), threads, parallel)
    _caller.count, _caller.forks = threads, forks
