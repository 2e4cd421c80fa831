"""Bitwise ops: and, or, exclusive or, not and shifts of the bits of integers, element by element."""

from __future__ import annotations

from irrun.spec import BOOLEAN, INTEGER, UNSPECIFIED, Node, Shapes, numpy_dtype

from ._elementwise import binary, broadcast_rule, unary

BITS = INTEGER | BOOLEAN

bitwise_and = binary(
    "BitwiseAnd-13",
    "bitwise_and",
    """And of the bits of integers, or of booleans.

    Source: bitwise/bitwise-and-13.rst

    >>> op(np.array([21, 120], np.uint8), np.array([3, 37], np.uint8)).tolist()
    [1, 32]
    """,
    types=BITS,
    commutative=True,
)

bitwise_and.lowers("LogicalAnd-1")

bitwise_or = binary(
    "BitwiseOr-13",
    "bitwise_or",
    """Or of the bits of integers, or of booleans.

    Source: bitwise/bitwise-or-13.rst

    >>> op(np.array([21, 120], np.uint8), np.array([3, 37], np.uint8)).tolist()
    [23, 125]
    """,
    types=BITS,
    commutative=True,
)

bitwise_or.lowers("LogicalOr-1")

bitwise_xor = binary(
    "BitwiseXor-13",
    "bitwise_xor",
    """Exclusive or of the bits of integers, or of booleans.

    Source: bitwise/bitwise-xor-13.rst

    >>> op(np.array([21, 120], np.uint8), np.array([3, 37], np.uint8)).tolist()
    [22, 93]
    """,
    types=BITS,
    commutative=True,
)

bitwise_xor.lowers("LogicalXor-1")

bitwise_not = unary(
    "BitwiseNot-13",
    "invert",
    """The bits of integers, or booleans, turned over.

    Source: bitwise/bitwise-not-13.rst

    >>> op(np.array([1, 3], np.uint8)).tolist()
    [254, 252]
    """,
    types=BITS,
)

bitwise_not.lowers("LogicalNot-1")


def shift_rule(node: Node) -> Shapes:
    shapes = broadcast_rule(node)
    counts, type = node.inputs["b"], node.types.get("T")
    if type is None or not counts.known:
        node.complete = node.complete and type is not None and counts.known
        return shapes
    width = 8 * numpy_dtype(type).itemsize
    if (listed := counts.listed) is not None and all(0 <= int(count) < width for count in listed):
        return shapes
    wrong = ((counts.value < 0) | (counts.value >= width)).ravel()
    if wrong.any():
        count = counts.value.ravel()[int(wrong.argmax())]
        node.warn(f"`b` holds {count}, and {type} has {width} bits: all of them are shifted out here", "b", UNSPECIFIED)
    return shapes


bitwise_left_shift = binary(
    "BitwiseLeftShift-15",
    "left_shift",
    """The bits of integers shifted up by b places; those that leave the type are lost.

    The page leaves counts below zero, and of the width of the type or more, to the hardware: here they shift
    everything out, which gives 0, with a warning.

    Source: bitwise/bitwise-left-shift-15.rst

    >>> op(np.array([1, 3, 200], np.uint8), np.array([3, 1, 1], np.uint8)).tolist()
    [8, 6, 144]
    """,
    types=INTEGER,
    rule=shift_rule,
)

bitwise_right_shift = binary(
    "BitwiseRightShift-15",
    "right_shift",
    """The bits of integers shifted down by b places, the sign kept.

    The page leaves counts below zero, and of the width of the type or more, to the hardware: here they shift
    everything out, which gives 0, or -1 for a negative number, with a warning.

    Source: bitwise/bitwise-right-shift-15.rst

    >>> op(np.array([8, 5, -8]), np.array([3, 1, 1])).tolist()
    [1, 2, -4]
    """,
    types=INTEGER,
    rule=shift_rule,
)
