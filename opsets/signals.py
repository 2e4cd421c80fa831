"""Signal ops: Fourier transforms."""

from __future__ import annotations
