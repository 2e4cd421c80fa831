"""Arithmetic ops: sums, products and elementary functions, element by element."""

from __future__ import annotations
