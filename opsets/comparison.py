"""Comparison ops: two tensors, or one and a question, to booleans."""

from __future__ import annotations
