"""Locks that are open in a forked child, whoever held them in the parent: its other threads are not there to let go."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from threading import Lock
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


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Latest(OrderedDict[_Key, _Value]):
    """What was used latest, no more than `most` of it. `recall` and `keep` are safe for threads."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._lock = most, fork_safe(Lock())

    def recall(self, key: _Key) -> tuple[_Value] | None:
        """The value of a key, which is used now, in a tuple; None where there is none."""
        with self._lock:
            if key not in self:
                return None
            self.move_to_end(key)
            return (self[key],)

    def keep(self, key: _Key, value: _Value) -> None:
        with self._lock:
            old, self[key] = self.get(key), value
            gone = self.popitem(last=False) if len(self) > self._most else None
        del old, gone  # what they end with may take a while, or need this lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
