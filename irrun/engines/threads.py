"""Threads of our own: a pool that waits for slices of work, and the threads of numpy's BLAS.

Only what is here starts threads. BLAS is held to one thread while the pool computes: slices of one large product on our
threads are as quick as OpenBLAS's own threads, what follows can be done to a slice while it is in the cache, and the
threads of OpenBLAS, which wait by spinning, take no time from ours.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import pairwise
from math import prod
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np

from irrun.engines.work import BUFFER, Call, chain
from irrun.locks import fork_safe
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

MEMORY_SPEED = 20e9
"""Bytes per second at which one thread reads a matrix that it uses once, about."""

WAIT = 0.1
"""Seconds after which who waits for other threads looks again, in case that an interruption took the signal."""

_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


class Threads:
    """`count` threads, the caller's among them; they are started when first needed and end with this object.

    Any number of threads may call `run` at once: the others help whom they come to first, and each caller computes what
    nobody has begun. An exception that a handler of a signal raises, wherever it comes, leaves nothing behind: when
    `run` ends no thread computes for it any more.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._starting = fork_safe(threading.Lock())
        self._forget()
        _pools.add(self)

    def _forget(self) -> None:
        """Begin without other threads, as a forked child has to."""
        self._numbers: set[int] = set()  # of those that were started
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        weakref.finalize(self, self._tasks.put, None).atexit = False

    def run(self, function: Piece, pieces: int) -> None:
        """Call `function(piece, thread)` for each piece in range(pieces), with thread in range(count).

        At a time no two pieces have the same thread, so that each can have its own scratch. An exception of a piece
        is raised here, after all that was begun has ended.
        """
        hold_blas(self._run, function, pieces)

    def _run(self, function: Piece, pieces: int) -> None:
        if pieces > 1 and self.count > 1:
            self._share(function, pieces)
            return
        for piece in range(pieces):
            function(piece, 0)

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

    def together(self, calls: Sequence[Call], sharing: int) -> Call:
        """As `call` where several threads are `sharing` several calls; else they are made in order."""
        return self.call(calls) if sharing > 1 and len(calls) > 1 else chain(calls)

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
        task = _Task(function, pieces)
        try:
            for number in range(1, min(pieces, self.count)):
                if number not in self._numbers:
                    self._start(number)
                self._tasks.put(task)
            for piece in task.todo:
                function(piece, 0)
        finally:
            try:
                task.end()
            except BaseException:  # it was interrupted, but the memory that others write to is for the next run
                task.end()
                raise
        if task.errors:
            raise task.errors[0]

    def _start(self, number: int) -> None:
        with self._starting:  # two of one number would have one scratch
            if number not in self._numbers:
                self._numbers.add(number)
                serving = partial(_serve, self._tasks, number)
                threading.Thread(target=serving, name=f"irrun-{number}", daemon=True).start()


class _Task:
    """A work of which `todo` are the pieces that nobody has begun, and the threads of the pool that have `entered` and
    `left` it."""

    def __init__(self, function: Piece, pieces: int) -> None:
        self.function, self.todo = function, iter(range(pieces))
        self.entered: list[int] = []
        self.left: list[int] = []
        self.errors: list[BaseException] = []
        self._signals: SimpleQueue[None] = SimpleQueue()

    def help(self, number: int) -> None:
        """Compute pieces as thread `number` of the pool, until there are none."""
        self.entered.append(number)
        try:
            for piece in self.todo:
                self.function(piece, number)
        except BaseException as error:
            self.errors.append(error)
            self._drop()
        self.left.append(number)
        self._signals.put(None)

    def end(self) -> None:
        """Wait until nobody computes pieces; none is begun any more."""
        self._drop()
        while len(self.left) < len(self.entered):  # who enters from now on finds nothing to do
            with suppress(Empty):
                self._signals.get(timeout=WAIT)

    def _drop(self) -> None:
        for _ in self.todo:
            pass


def _serve(tasks: SimpleQueue[_Task | None], number: int) -> None:
    with np.errstate(all="ignore"):  # settings of each thread
        np.setbufsize(BUFFER)
        while True:
            task = tasks.get()
            if task is None:
                tasks.put(None)  # for the next one
                return
            task.help(number)
            del task


def cuts(length: int, pieces: int, multiple: int = 1) -> list[slice]:
    """At most `pieces` slices of about the same length that cover `length` elements, all but the last of whole units.

    A unit has `multiple` elements: the width of a vector or of a kernel's tile.
    """
    units = -(-length // multiple)
    pieces = max(min(pieces, units), 1)
    ends = [min(units * piece // pieces * multiple, length) for piece in range(pieces + 1)]
    return [slice(start, end) for start, end in pairwise(ends)]


def lengths(slices: Sequence[slice]) -> list[int]:
    """How many elements each of some has, as `cuts` and `blocks` make them."""
    return [own.stop - own.start for own in slices]


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


_pools: weakref.WeakSet[Threads] = weakref.WeakSet()


def _forget_pools() -> None:
    for pool in list(_pools):
        pool._forget()
    _blas.users.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


class _Blas:
    """Who of us wants BLAS at one thread, and how many threads it had `before` the first of them, None while it is as
    it was."""

    def __init__(self) -> None:
        self.lock = fork_safe(threading.Lock())
        self.users: set[object] = set()
        self.before: int | None = None


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


def hold_blas(call: Callable[..., _Kind], *given: Any) -> _Kind:
    """What a call gives, made with BLAS held to one thread, as calls within it may be, where numpy has OpenBLAS.

    After the last of all that hold it BLAS has as many threads as before, wherever these were interrupted.
    """
    user = object()
    try:
        _enter(user)
        return call(*given)
    finally:
        try:
            _leave(user)
        except BaseException:  # it was interrupted
            _leave(user)
            raise


def _enter(user: object) -> None:
    with _blas.lock:
        _blas.users.add(user)
        if len(_blas.users) == 1 and (found := _openblas()):
            if _blas.before is None:
                _blas.before = found[1]()
            found[0](1)


def _leave(user: object) -> None:
    with _blas.lock:
        _blas.users.discard(user)
        if not _blas.users and _blas.before is not None and (found := _openblas()):
            found[0](_blas.before)
            _blas.before = None
