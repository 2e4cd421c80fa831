"""Logical ops: and, or, exclusive or and not of booleans, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.spec import BOOLEAN, NUMERIC, Array

from ._elementwise import binary, unary

logical_and = binary(
    "LogicalAnd-1",
    "logical_and",
    """Whether both elements are true.

    Source: logical/logical-and-1.rst

    >>> op(np.array([True, True, False]), np.array([True, False, False])).tolist()
    [True, False, False]
    """,
    types=BOOLEAN,
    symbolic=True,
    commutative=True,
)

logical_or = binary(
    "LogicalOr-1",
    "logical_or",
    """Whether at least one of two elements is true.

    Source: logical/logical-or-1.rst

    >>> op(np.array([True, True, False]), np.array([True, False, False])).tolist()
    [True, True, False]
    """,
    types=BOOLEAN,
    symbolic=True,
    commutative=True,
)

logical_xor = binary(
    "LogicalXor-1",
    "logical_xor",
    """Whether exactly one of two elements is true.

    Source: logical/logical-xor-1.rst

    >>> op(np.array([True, True, False]), np.array([True, False, False])).tolist()
    [False, True, False]
    """,
    types=BOOLEAN,
    symbolic=True,
    commutative=True,
)

xor = binary(
    "Xor-1",
    "logical_xor",
    """Whether exactly one of two elements is true: the name that opset1 has for LogicalXor as well.

    Source: logical/logical-xor-1.rst

    >>> op(np.array([True, True, False]), np.array([True, False, False])).tolist()
    [False, True, False]
    """,
    types=BOOLEAN,
    symbolic=True,
    commutative=True,
    opsets=frozenset({1}),
)


def _negated(data: Array) -> Any:
    return np.logical_not(data).astype(data.dtype, copy=False)


logical_not = unary(
    "LogicalNot-1",
    _negated,
    """Whether elements are false. Of numbers, which the page does not have, those that are 0 give 1, others 0.

    Source: logical/logical-not-1.rst

    >>> op(np.array([True, False])).tolist()
    [False, True]
    """,
    types=BOOLEAN,
    lenient_types=NUMERIC,
    symbolic=True,
)
