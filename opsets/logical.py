"""Logical ops on booleans."""

from __future__ import annotations
