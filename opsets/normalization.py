"""Normalization ops: statistics taken out of the data."""

from __future__ import annotations
