"""Processors: how many there are, of which kind, and on which threads are: who computes for a caller keeps off its own.

Where all processors are busy, Linux leaves who is woken on the processor of who has woken it. With threads of OpenMP
the caller looks out there for an end to come, and keeps from computing whom it waits for: 200 us in every call.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

_BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY")
"""Variables by which users say where threads of OpenMP are to be."""

_NOTE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_PAUSES = bytes.fromhex("89f9 f390 ffc9 75fa c3")
"""A function of C that pauses as often as it is told, in machine code of x86: `do { pause } while (--n)`."""

USUAL_PAUSE, PAUSES = 50e-9, 200
"""Seconds of a pause where nobody can say, and how many are made to find out."""

CALLS = 8
"""Between two looks: a caller stays where it is for hundreds of calls, as a rule, and a look takes 1 us."""


@cache
def _getcpu() -> Callable[[], int] | None:
    return getattr(ctypes.PyDLL(None), "sched_getcpu", None) if sys.platform == "linux" else None


def processors() -> int:
    """What OMP_NUM_THREADS says, as other libraries read it, else the processors that this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_x86() -> bool:
    """Whether this is a processor with the instructions of x86, of 64 bits."""
    return platform.machine().lower() in ("x86_64", "amd64")


def processor() -> int:
    """The number of the processor that the calling thread is on; -1 where nobody knows."""
    getcpu = _getcpu()
    return -1 if getcpu is None else getcpu()


def pause() -> float:
    """The seconds for which threads that look for work pause between two looks: 10 to 60 ns, as processors differ, of
    which not all say what they are."""
    if not is_x86() or os.name != "posix":
        return USUAL_PAUSE
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # where nobody may write code, as oneDNN does
        return USUAL_PAUSE
    memory.write(_PAUSES)
    function, taken = ctypes.CFUNCTYPE(None, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory))), []
    for _ in range(3):  # one of them is not interrupted
        begin = time.perf_counter()
        function(PAUSES)
        taken.append((time.perf_counter() - begin) / PAUSES)
    return min(taken)


class _Caller(threading.local):
    """What a thread knows of those that OpenMP keeps for it: their ids, of how many, off which processor they are."""

    workers: frozenset[int] = frozenset()
    count = 1
    avoided = -1


_caller = _Caller()


class Placement:
    """Where those are that compute for a caller, `threads` with itself, as OpenMP keeps them.

    `parallel(function, argument, threads, 0)` has them all call a function of C; a caller has the same ones each time.
    `needed` says that they have to be looked after.
    """

    def __init__(self, threads: int, parallel: Callable[[Any, Any, int, int], object]) -> None:
        self._threads, self._parallel, self._calls = threads, parallel, 0
        self.needed = threads > 1 and _getcpu() is not None and not any(name in os.environ for name in _BINDING)

    def look(self) -> None:
        """To be called ahead of each call: have the others off the processor of the caller, sooner or later."""
        self._calls += 1
        if self._calls % CALLS == 0:
            self.keep()

    def keep(self) -> None:
        """Have the others off the processor that the caller is on by now."""
        here = processor()
        if here != _caller.avoided or _caller.count < self._threads:
            self._move(here)

    def _move(self, here: int) -> None:
        _caller.avoided = here
        with suppress(OSError):  # where affinities are nobody's to change, or a thread has ended just now
            allowed = os.sched_getaffinity(0)
            if len(allowed) < self._threads:
                return
            if _caller.count < self._threads or not all(map(_is_own, _caller.workers)):
                _caller.workers, _caller.count = self._found(), self._threads
            for worker in _caller.workers:
                os.sched_setaffinity(worker, allowed - {here})

    def _found(self) -> frozenset[int]:
        """The ids of the others."""
        found = set[int]()
        have_others(lambda: found.add(threading.get_native_id()), self._threads, self._parallel)
        return frozenset(found)


def have_others(function: Callable[[], object], threads: int, parallel: Callable[[Any, Any, int, int], object]) -> None:
    """Have those that OpenMP keeps for this thread, `threads` with itself, call a function of Python."""
    caller = threading.get_native_id()

    def note(_: object) -> None:
        if threading.get_native_id() != caller:
            function()

    parallel(ctypes.cast(_NOTE(note), ctypes.c_void_p), None, threads, 0)


def _is_own(thread: int) -> bool:
    """Whether a thread is one of this process, which it is no more when it has ended, or in a child."""
    return Path(f"/proc/self/task/{thread}").exists()
