"""The engine on code of our own, which LLVM compiles where llvmlite is installed: products with compressed weights, of
codes, or of few rows, attention of few rows over a cache and of many, embedding bags, and what moves elements to places
that only a run tells."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

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
