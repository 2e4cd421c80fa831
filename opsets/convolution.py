"""Convolution ops: dot products of a kernel with every window of the data."""

from __future__ import annotations
