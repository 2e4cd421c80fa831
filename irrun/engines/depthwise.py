"""Depthwise convolutions: which of them it pays to have code of our own for, where others have no kernel."""

from __future__ import annotations

from math import prod

from irrun.engines.work import Work

LEAST_DEPTHWISE = 1 << 13
"""Elements of the result from which on it pays."""

FEATURES = (2, 4, 8)
"""Results of a channel, where there are several: so many that a vector has those of whole channels."""


def is_depthwise(work: Work) -> bool:
    """Whether a work is a convolution of f32 of one channel in a group, with constant filters, that is large enough.

    Where that has several FEATURES they fill vectors of 16.
    """
    if work.name != "GroupConvolution-1" or any(own.type != "f32" for own in (*work.required(2), *work.outputs)):
        return False
    filters, result = work.required(2)[1], work.outputs[0].shape
    if filters.value is None or filters.shape[2] != 1 or prod(result) < LEAST_DEPTHWISE:
        return False
    return filters.shape[1] == 1 or (filters.shape[1] in FEATURES and result[1] % 16 == 0)
