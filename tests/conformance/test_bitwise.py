"""Bitwise ops, compared with OpenVINO."""

import numpy as np
from openvino import opset13, opset15

from conformance.harness import Case, Departure, conformance
from conformance.pdpd import departing

i32, i64, i8, u8 = np.int32, np.int64, np.int8, np.uint8

BINARY = {
    "BitwiseAnd-13": opset13.bitwise_and,
    "BitwiseOr-13": opset13.bitwise_or,
    "BitwiseXor-13": opset13.bitwise_xor,
}
SHIFTS = {
    "BitwiseLeftShift-15": opset15.bitwise_left_shift,
    "BitwiseRightShift-15": opset15.bitwise_right_shift,
}

A, B = np.array([[21, 120, 0], [-1, 7, -100]]), np.array([3, 37, -2])
COUNTS = np.array([1, 3, 5])

MODULO = Departure(
    "takes the count modulo 32; the page leaves it to the hardware, all bits are shifted out here", "b < 0 | b >= 32"
)
HALVED = Departure("computes in i32; the page has 64 bits", "a is i64, u64; layer has numbers beyond i32 | b > 31")

CASES = [
    *(
        Case(op, title, build, [A.astype(type), B.astype(type)], dynamic=dynamic)
        for op, build in BINARY.items()
        for title, type, dynamic in (
            ("i32", i32, False),
            ("i8", i8, False),
            ("u8", u8, False),
            ("boolean", bool, False),
            ("i32 with dynamic shapes", i32, True),
        )
    ),
    *(
        Case("BitwiseNot-13", np.dtype(type).name, opset13.bitwise_not, [A.astype(type)], dynamic=type is i64)
        for type in (i32, i64, i8, u8, bool)
    ),
    *(
        Case(op, title, build, [A.astype(type), COUNTS.astype(type)], dynamic=dynamic)
        for op, build in SHIFTS.items()
        for title, type, dynamic in (
            ("i32", i32, False),
            ("u8", u8, False),
            ("i8", i8, False),
            ("i32 with dynamic shapes", i32, True),
        )
    ),
    Case(
        "BitwiseLeftShift-15",
        "by the width and more",
        opset15.bitwise_left_shift,
        [np.array([1, 1], i32), np.array([33, -1], i32)],
        deviates=MODULO,
        expected=[np.array([0, 0], i32)],
    ),
]

CASES += [
    Case(
        "BitwiseLeftShift-15",
        "i64 by more than 31",
        opset15.bitwise_left_shift,
        [np.array([1], i64), np.array([40], i64)],
        deviates=HALVED,
        expected=[np.array([2**40], i64)],
    ),
    Case(
        "BitwiseRightShift-15",
        "i64 by more than 31",
        opset15.bitwise_right_shift,
        [np.array([1000], i64), np.array([40], i64)],
        deviates=HALVED,
        expected=[np.array([0], i64)],
    ),
    Case(
        "BitwiseRightShift-15",
        "by the width and more",
        opset15.bitwise_right_shift,
        [np.array([8, -8], i32), np.array([33, 32], i32)],
        deviates=MODULO,
        expected=[np.array([0, -1], i32)],
    ),
]

CASES += departing(
    {"BitwiseAnd-13": np.bitwise_and, "BitwiseOr-13": np.bitwise_or, "BitwiseXor-13": np.bitwise_xor}, i32
)

test_agrees_with_openvino = conformance(CASES)
