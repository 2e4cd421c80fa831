"""Python's garbage collector kept from walking, again and again, what is made in bulk and stays.

What was made is old afterwards, as far as the collector knows, which would walk all of it at once otherwise. It does
not count what became old in this way: so it is made to look at everything when a graph is read, and SELDOM otherwise.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 50_000
"""Containers that are worth keeping from the collector: a megabyte of XML makes more."""

FEW, SELDOM = 8, 100
"""How often something is `made_to_last` until the next who reads a graph has it looked at, and anyone."""

_large = False
"""Whether LARGE has become old that the collector has not seen."""

_lasting = 0
"""How often something has that was `made_to_last`."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the collector: it would walk the growing tree again and again, a third of the time of parsing."""
    global _large
    enabled = gc.isenabled()
    if enabled and (_large or _lasting >= FEW):
        _collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_count()[0] > LARGE:
                _large = _made_old() or _large
            gc.enable()


@contextmanager
def made_to_last() -> Iterator[None]:
    """Without the collector, for what holds no cycles when it is let go: it takes a fifth of the time of such work."""
    global _lasting
    enabled = gc.isenabled()
    if enabled and _lasting >= SELDOM:
        _collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            _lasting += _made_old()
            gc.enable()


def _collect() -> None:
    global _large, _lasting
    gc.collect()
    _large, _lasting = False, 0


def _made_old() -> bool:
    """Have all that there is be old; False where others have frozen something, which stays so."""
    if gc.get_freeze_count():
        return False
    gc.freeze()
    gc.unfreeze()
    return True
