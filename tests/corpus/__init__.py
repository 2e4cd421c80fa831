"""A corpus of broken models, generated from valid ones, each with the lines at which its defect may be reported."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpus.defect import Defect

PARTS = ("files", "graphs", "families", "attributes", "constants", "signatures", "bodies", "constraints")


def defects(part: str) -> Iterator[Defect]:
    """The defects that a module of the corpus makes."""
    found: Iterator[Defect] = import_module(f"corpus.{part}").defects()
    return found
