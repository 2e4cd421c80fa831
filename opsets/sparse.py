"""Sparse ops: rows of embedding tables pooled, and sparse matrices in coordinate form."""

from __future__ import annotations
