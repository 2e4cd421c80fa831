"""The op that divides lines by the roots of the means of their squares: `passes.normalizing` puts it in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from irrun.spec.op import Array, Input, Op, Output
from irrun.spec.traits import Normalizing


def _divide(data: Array, *, eps: float) -> Array:
    mean = np.mean(np.square(data), axis=-1, keepdims=True)
    return np.asarray(data * (1 / np.sqrt(mean + np.float32(eps))))


@cache
def with_eps(eps: float) -> Mapping[str, Any]:
    """The attributes of the op, which all instructions share that have the same `eps`: so they are of one kind."""
    return {"eps": eps}


ROOT_MEAN_SQUARE = Op(
    "RootMeanSquare-0",
    _divide,
    [Input("data", "f32", "[*data]")],
    [Output("output", "f32", "[*data]")],
    traits=[Normalizing()],
)
"""Each line along the last axis of `data`, times 1 / sqrt(mean of the squares + the attribute `eps`)."""
