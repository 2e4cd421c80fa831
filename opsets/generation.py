"""Generation ops: tensors made from a few parameters."""

from __future__ import annotations
