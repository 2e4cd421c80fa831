"""Pooling ops: windows reduced to one element."""

from __future__ import annotations
