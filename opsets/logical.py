"""Logical ops: and, or, exclusive or and not of booleans, element by element."""

from __future__ import annotations

from ._elementwise import binary, unary

BOOLEAN = frozenset({"boolean"})

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

logical_not = unary(
    "LogicalNot-1",
    "logical_not",
    """Whether elements are false.

    Source: logical/logical-not-1.rst

    >>> op(np.array([True, False])).tolist()
    [False, True]
    """,
    types=BOOLEAN,
    symbolic=True,
)
