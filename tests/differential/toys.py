"""Tasks that do what models should not do, for tests of the pool."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def harmful(item: str, tell: Callable[[str], object]) -> str:
    """Do what the item says."""
    tell(item)
    if item == "die":
        os._exit(3)
    if item == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    return item.upper()
