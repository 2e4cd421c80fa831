"""The threads of the numpy engine: a pool that waits for slices of work, and the threads of numpy's BLAS.

Only what is here starts threads. BLAS is held to one thread while the pool computes: slices of one large product on our
threads are as quick as OpenBLAS's own threads, what follows can be done to a slice while it is in the cache, and the
threads of OpenBLAS, which wait by spinning, take no time from ours.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from irrun.engines.work import BUFFER, Call, chain
from irrun.spec.op import Array

_Kind = TypeVar("_Kind")

Piece = Callable[[int, int], object]
"""Computes one piece of a work: (number of the piece, number of the thread)."""

SHARED_SECONDS = 120e-6
"""What one thread must need at least for a work to be shared: to wake another one and wait for it costs 20 to 40 us."""

SHARED_NANOSECONDS = 400_000
"""The same for blocks that are small enough for the cache: sharing the interpreter costs for each of their calls."""

PRODUCT_SPEED = 90e9
"""Floating point operations per second of one thread in a product of matrices, about."""

_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


class Threads:
    """`count` threads, the caller's among them; they are started when first needed and end with this object.

    Any number of threads may call `run` at once: one has the pool, the others compute alone meanwhile.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._busy = threading.Lock()
        self._workers: list[_Worker] = []
        _pools.add(self)

    def run(self, function: Piece, pieces: int) -> None:
        """Call `function(piece, thread)` for each piece in range(pieces), with thread in range(count).

        At a time no two pieces have the same thread, so that each can have its own scratch. An exception of a piece
        is raised here, after all that was begun has ended.
        """
        enter_blas()
        try:
            if pieces <= 1 or self.count == 1 or not self._busy.acquire(blocking=False):
                for piece in range(pieces):
                    function(piece, 0)
                return
            try:
                self._share(function, pieces)
            finally:
                self._busy.release()
        finally:
            leave_blas()

    def pieces(self, seconds: float) -> int:
        """How many pieces to cut a work into for which one thread needs `seconds`: more than threads if it is long."""
        if self.count == 1 or seconds < SHARED_SECONDS:
            return 1
        return self.count if seconds < 10 * SHARED_SECONDS else 2 * self.count

    def alone(self, call: Call) -> Call:
        """A call that only the caller's thread makes, with BLAS at one thread."""
        return partial(self.run, lambda *_: call(), 1)

    def call(self, calls: Sequence[Call]) -> Call:
        """One call that makes all of `calls`, each on any thread, in any order."""
        pieces = tuple(calls)
        return partial(self.run, lambda piece, _: pieces[piece](), len(pieces))

    def sharing(self, nanoseconds: float) -> int:
        """How many threads should share the blocks of a work that one thread needs `nanoseconds` for."""
        return self.count if nanoseconds > SHARED_NANOSECONDS else 1

    def each(
        self,
        pieces: Sequence[_Kind],
        bind: Callable[[_Kind, Array], list[Call]],
        scratch: Any,
        room: int,
        *,
        shared: bool,
        blas: bool = False,
    ) -> Call:
        """One call that makes the calls that `bind` gives for each of the pieces and memory of f32 for them.

        Of that, `room` bytes of `scratch`, each thread has its own. Unless `shared` only the caller's thread computes,
        with BLAS at one thread if `blas` says that the calls need it.
        """
        rooms = [range(thread * room, (thread + 1) * room) for thread in range(self.count if shared else 1)]
        memories = [scratch[own.start : own.stop].view(np.float32) if room else np.empty(0) for own in rooms]
        calls = [[chain(bind(piece, memory)) for piece in pieces] for memory in memories]
        if len(calls) > 1:
            return partial(self.run, lambda piece, thread: calls[thread][piece](), len(pieces))
        return self.alone(chain(calls[0])) if blas else chain(calls[0])

    def _share(self, function: Piece, pieces: int) -> None:
        while len(self._workers) < self.count - 1:
            self._workers.append(_Worker(self, len(self._workers) + 1))
        workers = self._workers[: pieces - 1]
        todo = iter(range(pieces))
        ended = False
        for worker in workers:
            worker.function, worker.todo, worker.error = function, todo, None
            worker.start.release()
        try:
            for piece in todo:
                function(piece, 0)
        finally:
            for _ in todo:  # after an exception nothing more is begun
                pass
            try:
                for worker in workers:
                    worker.done.acquire()
                ended = True
            finally:
                if not ended:  # interrupted while waiting: what still runs must not be taken for the next work's
                    self._workers = []
        for worker in workers:
            if worker.error is not None:
                raise worker.error

    def _forget(self) -> None:
        """In a forked child, which has none of the threads."""
        self._busy = threading.Lock()
        self._workers = []


def cuts(length: int, pieces: int, multiple: int = 1) -> list[slice]:
    """At most `pieces` slices of about the same length that cover `length` elements, all but the last of whole units.

    A unit has `multiple` elements: the width of a vector or of a kernel's tile.
    """
    units = -(-length // multiple)
    pieces = max(min(pieces, units), 1)
    ends = [min(units * piece // pieces * multiple, length) for piece in range(pieces + 1)]
    return [slice(start, end) for start, end in pairwise(ends)]


def blocks(shape: Sequence[int], limit: int) -> list[tuple[slice, ...]]:
    """Indices that cover an array of `shape` in blocks of at most `limit` elements, cut along the first axes."""
    if prod(shape) <= limit or not shape:
        return [tuple(slice(0, size) for size in shape)]
    rest = prod(shape[1:])
    parts = cuts(shape[0], -(-shape[0] // max(limit // rest, 1)))
    inner = blocks(shape[1:], limit)
    return [(part, *index) for part in parts for index in inner]


def even_blocks(shape: Sequence[int], most: int, threads: int) -> list[tuple[slice, ...]]:
    """Blocks of at most `most` elements, as many for each thread as for the others where whole rows allow that."""
    count = -(-prod(shape) // most)
    share = -(-prod(shape) // (-(-count // threads) * threads))
    row = next(rest for rest in (prod(shape[axis + 1 :]) for axis in range(len(shape))) if rest <= share)
    return blocks(shape, min(-(-share // row) * row, most))


class _Worker:
    """A thread and its two signals, each a lock that is taken to wait and released to signal."""

    def __init__(self, owner: Threads, number: int) -> None:
        self.start, self.done = threading.Lock(), threading.Lock()
        self.start.acquire()
        self.done.acquire()
        self.function: Piece | None = None
        self.todo: Iterator[int] = iter(())
        self.error: BaseException | None = None
        threading.Thread(target=_serve, args=(self, number), name=f"irrun-{number}", daemon=True).start()
        weakref.finalize(owner, _stop, self).atexit = False


def _serve(worker: _Worker, number: int) -> None:
    while True:
        worker.start.acquire()
        function, todo = worker.function, worker.todo
        if function is None:
            return
        try:
            with np.errstate(all="ignore"):  # settings of each thread
                np.setbufsize(BUFFER)
                for piece in todo:
                    function(piece, number)
        except BaseException as error:
            worker.error = error
            for _ in todo:
                pass
        worker.function = function = None
        worker.done.release()


def _stop(worker: _Worker) -> None:
    worker.function = None
    worker.start.release()


_pools: weakref.WeakSet[Threads] = weakref.WeakSet()


def _forget_pools() -> None:
    for pool in list(_pools):
        pool._forget()
    _blas.users, _blas.lock = 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


class _Blas:
    """How many of us want BLAS at one thread, and how many threads it had before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before = 1


_blas = _Blas()


@cache
def _openblas() -> tuple[Callable[[int], object], Callable[[], int]] | None:
    """The functions that set and get the number of threads of the OpenBLAS that numpy has brought along."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs", package / ".libs"):
        for path in sorted(folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))  # numpy has loaded it: this is the same one
            except OSError:
                continue
            for name in _SETTERS:
                if hasattr(library, name):
                    return getattr(library, name), getattr(library, name.replace("set_num", "get_num"))
    return None


def enter_blas() -> None:
    """Hold BLAS to one thread until `leave_blas`; calls nest. Without OpenBLAS nothing happens."""
    with _blas.lock:
        _blas.users += 1
        if _blas.users == 1 and (found := _openblas()):
            _blas.before = found[1]()
            found[0](1)


def leave_blas() -> None:
    """End what `enter_blas` has begun: after the last one BLAS has as many threads as before."""
    with _blas.lock:
        _blas.users -= 1
        if _blas.users == 0 and (found := _openblas()):
            found[0](_blas.before)
