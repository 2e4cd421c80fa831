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

_SET = ctypes.c_byte * 128
"""A `sigset_t`."""

_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS")
"""What a thread does to itself: to keep such signals back would only hide who was it."""

_NOTE = ctypes.CFUNCTYPE(None, c_void_p)

MADE_OF_PRODUCTS = ("lstm", "gru", "lbr_gru", "vanilla_rnn", "deconvolution")
"""Kinds of primitives that are made of others, whatever these are called."""

Execute = Callable[[Any, Any, c_int, bytes], object]


def is_exposed(kind: str, implementation: str) -> bool:
    """Whether a primitive may compute on such a stack."""
    if "brg" in implementation:
        return False
    return "gemm" in implementation or kind.startswith(MADE_OF_PRODUCTS)


@cache
def _change() -> Any:
    """pthread_sigmask(how, signals, before)."""
    change = ctypes.PyDLL(None).pthread_sigmask
    change.argtypes, change.restype = (c_int, c_void_p, c_void_p), c_int
    return change


@cache
def _kept_back() -> Any:
    """The signals that are kept back, as a `sigset_t`."""
    library, signals = ctypes.PyDLL(None), _SET()
    library.sigfillset(signals)
    for name in _FAULTS:
        library.sigdelset(signals, int(getattr(signal, name)))
    return signals


class _Pool(threading.local):
    """Of how many threads that OpenMP keeps for this one it is seen to that they handle no signals, and since when."""

    count, forks = 1, 0


_pool = _Pool()
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
    change, kept_back = _change(), _kept_back()

    def call(primitive: Any, stream: Any, count: c_int, arguments: bytes) -> None:
        if threads > 1 and (_pool.count < threads or _pool.forks != _forks):
            _silence(threads, parallel)
        before = _SET()
        change(signal.SIG_BLOCK, None, before)  # ahead of all, so that it is known wherever a handler raises something
        try:
            change(signal.SIG_BLOCK, kept_back, None)
            execute(primitive, stream, count, arguments)
        finally:
            change(signal.SIG_SETMASK, before, None)

    return call


def _silence(threads: int, parallel: Callable[[Any, Any, int, int], object]) -> None:
    """Have the other threads handle no signals."""
    own, change, kept_back = threading.get_native_id(), _change(), _kept_back()
    forks = _forks

    def keep_back(_: object) -> None:
        if threading.get_native_id() != own:
            change(signal.SIG_BLOCK, kept_back, None)

    parallel(ctypes.cast(_NOTE(keep_back), c_void_p), None, threads, 0)
    _pool.count, _pool.forks = threads, forks
