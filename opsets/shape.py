"""Shape ops: other shapes for the same elements."""

from __future__ import annotations
