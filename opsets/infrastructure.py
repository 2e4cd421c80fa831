"""Infrastructure ops: parameters, constants, results, loops and state."""

from __future__ import annotations
