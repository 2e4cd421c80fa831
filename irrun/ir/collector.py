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

FEW, SELDOM = 16_000, 500_000
"""Containers of what is lasting that are made until the next who reads a graph has them looked at, and who makes more;
the latter after twice as many each time that next to nothing was found, `MOST` times `SELDOM` at most."""

MOST, NEXT_TO_NOTHING = 16, 1000
"""See there; the second one in objects."""

PYTHONS_OWN = 1000
"""Objects that Python may have frozen itself: 3.12 begins with some hundred. Who freezes on purpose has many more."""

_large = False
"""Whether LARGE has become old that the collector has not seen."""

_lasting = 0
"""Containers of what was lasting that have."""

_patience = 1
"""How many times `SELDOM` it may."""

_frozen = False
"""Whether others have frozen something, for good: to count what is frozen takes long where it is much."""


def _is_frozen() -> bool:
    global _frozen
    _frozen = _frozen or gc.get_freeze_count() >= PYTHONS_OWN
    return _frozen


@contextmanager
def collector_paused(*, lasting: bool = False) -> Iterator[None]:
    """Without the collector: it would walk the growing tree again and again, a third of the time of parsing.

    What is `lasting` holds no cycles when it is let go, and is old however little it is.
    """
    global _large, _lasting, _patience
    enabled = gc.isenabled()
    if enabled and (_lasting >= SELDOM * _patience if lasting else _large or _lasting >= FEW):
        found = gc.collect()
        _large, _lasting = False, 0
        if lasting:
            _patience = min(2 * _patience, MOST) if found < NEXT_TO_NOTHING else 1
    before = gc.get_count()[0]
    try:
        gc.disable()
        yield
    finally:
        try:
            made = gc.get_count()[0]
            large = made > LARGE
            if enabled and (lasting or large) and not _is_frozen():  # what others have frozen stays so
                gc.freeze()
                gc.unfreeze()
                _large, _lasting = _large or not lasting, _lasting + lasting * max(made - before, 0)
        finally:
            if enabled:
                gc.enable()  # also where a handler of a signal has raised something just now
