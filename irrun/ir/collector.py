"""Python's garbage collector kept from walking, again and again, what is made in bulk and stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 50_000
"""Containers that are worth keeping from the garbage collector: a megabyte of XML makes more."""

SELDOM = 100
"""How often something is `made_to_last` until the collector has to look at everything."""

_hidden = False
"""Whether containers were made old that the garbage collector has not counted: it will not look at them by itself."""

_lasting = 0
"""How often something was `made_to_last` since."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the garbage collector: it would walk the growing tree again and again, a third of the time of parsing.

    What was made is old afterwards, as far as the collector knows, which would walk all of it at once otherwise. As it
    does not count what became old in this way, the next one who reads has it look whether that is in use still.
    """
    global _hidden
    enabled = gc.isenabled()
    if enabled and _hidden:
        gc.collect()
        _hidden = False
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_count()[0] > LARGE and not gc.get_freeze_count():  # what others have frozen stays so
                gc.freeze()
                gc.unfreeze()
                _hidden = True
            gc.enable()


@contextmanager
def made_to_last() -> Iterator[None]:
    """Without the garbage collector, for what is let go without its help some time, and old at once.

    It takes a fifth of the time of such work. What others made just before becomes old, too, uncounted: so all of it is
    looked at SELDOM.
    """
    global _lasting
    enabled = gc.isenabled()
    if enabled and _lasting >= SELDOM:
        gc.collect()
        _lasting = 0
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # what others have frozen stays so
                gc.freeze()
                gc.unfreeze()
                _lasting += 1
            gc.enable()
