"""The engine on code of our own, which LLVM compiles where llvmlite is installed: products with compressed weights,
attention of few rows over a cache, embedding bags, and what moves elements to places that only a run tells."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irrun.engines.compiled.engine import CompiledEngine


def load(threads: int) -> CompiledEngine | None:
    """The engine for `threads` threads, or None where llvmlite is not there. It is imported with the first work."""
    if find_spec("llvmlite") is None:
        return None
    from irrun.engines.compiled.engine import CompiledEngine

    return CompiledEngine(threads)
