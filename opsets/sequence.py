"""Sequence ops: recurrent cells and what surrounds them."""

from __future__ import annotations
