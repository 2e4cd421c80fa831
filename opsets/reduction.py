"""Reduction ops: axes folded into one element."""

from __future__ import annotations
