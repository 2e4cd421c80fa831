"""The engine on code of our own, which LLVM compiles where llvmlite is installed: products with compressed weights, of
codes, or of few rows, attention of few rows over a cache and of many, embedding bags, and what moves elements to places
that only a run tells."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irrun.engines.compiled.engine import CompiledEngine


OLDEST = 0, 45
"""The first llvmlite with LLVM 20: older ones, which come with older versions of numba, end the process over some of
what is compiled here."""


@cache
def is_there() -> bool:
    """Whether llvmlite is installed, and is not too old. It is imported with the first work."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return False
    with suppress(OSError, ValueError):  # importlib.metadata would take as long as all else
        text = Path(spec.origin).with_name("_version.py").read_text()
        version = text.partition("version_version = '")[2].split(".")
        return (int(version[0]), int(version[1])) >= OLDEST
    return True


def load(
    threads: int,
    parallel: Callable[[int, int], object] | None = None,
    *,
    once: bool = False,
    quantized: bool = False,
) -> CompiledEngine:
    """The engine for `threads` threads. Products of few rows with weights of f32 are its own where it is given what has
    threads call a function, at an address, with an argument: those of the engine that computes other products. `once`
    says that there will be one run. Products of codes are its own where it is to be `quantized`, for which the
    processor needs AVX2."""
    from irrun.engines.compiled.engine import CompiledEngine

    return CompiledEngine(threads, parallel, once=once, quantized=quantized)
