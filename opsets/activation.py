"""Activation ops: non-linear functions applied element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import FLOAT, FLOAT_NUMBER, NUMERIC, Array, Attr, Node, op

from ._elementwise import unary


def _relu(data: Array) -> Any:
    return np.maximum(data, data.dtype.type(0))


relu = unary(
    "ReLU-1",
    _relu,
    """Replace negative elements by zero: max(data, 0). NaN stays NaN.

    Source: activation/relu-1.rst

    >>> op(np.array([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.0, 3.0]
    """,
)
