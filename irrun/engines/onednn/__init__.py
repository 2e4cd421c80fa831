"""The engine on oneDNN, where its library is installed (`pip install onednn-cpu-gomp`): x86-64 Linux."""

from __future__ import annotations

from irrun.engines.onednn.engine import OneDNN
from irrun.engines.onednn.library import open_library


def load(
    threads: int,
    *,
    once: bool = False,
    fixed: bool = False,
    compiling: bool = False,
    sparing: bool = False,
) -> OneDNN | None:
    """The engine for `threads` threads within a call, or None where oneDNN is not there.

    `once` says that there will be one run, for which it does not pay to lay out weights anew where they can be read as
    they are, `fixed` that all runs have the same sizes, for which primitives may take long to make. With `compiling` an
    engine is asked behind it that has code of its own for products of few rows, cells, and attention. One that is
    `sparing` leaves to others what takes it longer to prepare than them to compute once.
    """
    library = open_library(threads, once=once, fixed=fixed)
    return None if library is None else OneDNN(library, alone=once or not compiling, sparing=sparing)
