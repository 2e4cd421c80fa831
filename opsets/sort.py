"""Sort ops: order among elements."""

from __future__ import annotations
