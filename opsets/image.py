"""Image ops: pixels resampled and recoded."""

from __future__ import annotations
