"""Matrix ops: products of matrices."""

from __future__ import annotations
