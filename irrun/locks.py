"""Locks that are open in a forked child, whoever held them in the parent: its other threads are not there to let go."""

from __future__ import annotations

import os
import weakref
from typing import Any, TypeVar

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


_Lock = TypeVar("_Lock")


def fork_safe(lock: _Lock) -> _Lock:
    """A lock of `threading`, which a child finds open unless the thread that forks holds it itself."""
    _locks.add(lock)
    return lock


def _open_all() -> None:
    for lock in list(_locks):
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
