"""Condition ops: choices that depend on data."""

from __future__ import annotations
