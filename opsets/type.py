"""Type ops: the same numbers in other element types."""

from __future__ import annotations
