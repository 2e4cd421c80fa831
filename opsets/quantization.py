"""Quantization ops: values snapped to a grid."""

from __future__ import annotations
