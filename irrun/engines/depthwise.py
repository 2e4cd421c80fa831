"""Depthwise convolutions: which of them it pays to have code of our own for, where others have no kernel."""

from __future__ import annotations

from math import prod

from irrun.engines.work import Work

LEAST_DEPTHWISE = 1 << 13
"""Elements of the result from which on it pays."""


def is_depthwise(work: Work) -> bool:
    """Whether a work is a convolution of f32 of one channel in a group, with constant filters, that is large enough."""
    if work.name != "GroupConvolution-1" or any(own.type != "f32" for own in (*work.required(2), *work.outputs)):
        return False
    filters = work.required(2)[1]
    return filters.value is not None and filters.shape[1:3] == (1, 1) and prod(work.outputs[0].shape) >= LEAST_DEPTHWISE
