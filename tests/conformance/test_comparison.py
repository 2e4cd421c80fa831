"""Comparison ops, compared with OpenVINO."""

import numpy as np
from openvino import opset1, opset10

from conformance.harness import WIDE, Case, Const, Departure, conformance
from conformance.pdpd import departing

f16, f32, f64, i32, i64 = np.float16, np.float32, np.float64, np.int32, np.int64
inf, nan = np.inf, np.nan

BINARY = {
    "Equal-1": opset1.equal,
    "Greater-1": opset1.greater,
    "GreaterEqual-1": opset1.greater_equal,
    "Less-1": opset1.less,
    "LessEqual-1": opset1.less_equal,
    "NotEqual-1": opset1.not_equal,
}

A, B = np.array([[-1, 2, 3], [5, 2, 7]]), np.array([2, 2, 7])


def binary():
    for op, build in BINARY.items():
        yield Case(op, "f32 broadcast", build, [A.astype(f32), B.astype(f32)])
        yield Case(op, "f16 with dynamic shapes", build, [A[:, None].astype(f16), B.astype(f16)], dynamic=True)
        yield Case(op, "i32", build, [A.astype(i32), B.astype(i32)])
        yield Case(op, "folded i64", build, [Const(A.astype(i64)), Const(np.array(2, i64))])
        yield Case(op, "scalar", build, [np.array(2, f32), np.array(2, f32)])
        yield Case(op, "empty", build, [np.zeros((0, 3), f32), B.astype(f32)], dynamic=True)
        yield Case(op, "none", lambda a, b, build=build: build(a, b, auto_broadcast="none"), [A.astype(f32)] * 2)
        infinite = [np.array([inf, -inf, 0], f32), np.array([inf, 1, inf], f32)]
        yield Case(op, "infinite", build, infinite)
        numbers = np.array([nan, 1, nan], f32), np.array([nan, nan, 2], f32)
        expected = [np.full(3, op == "NotEqual-1")]
        if op in ("Greater-1", "GreaterEqual-1"):
            yield Case(
                op,
                "nan",
                build,
                numbers,
                deviates=Departure(
                    "says that NaN is greater; the reference compares as IEEE 754 does", "a has nan | b has nan", WIDE
                ),
                expected=expected,
            )
        else:
            yield Case(op, "nan", build, numbers)


FINITE = [
    Case(op, title, build, [np.array(data, type)], dynamic=dynamic)
    for op, build in (
        ("IsFinite-10", opset10.is_finite),
        ("IsInf-10", opset10.is_inf),
        ("IsNaN-10", opset10.is_nan),
    )
    for title, data, type, dynamic in (
        ("f32", [[nan, 2.1, 3.7, inf, -inf]], f32, False),
        ("f16", [nan, 2.1, inf, -inf], f16, False),
        ("dynamic shape", [[nan], [inf]], f32, True),
        ("scalar", inf, f32, False),
    )
] + [
    Case(
        "IsInf-10",
        f"{attributes}",
        lambda data, attributes=attributes: opset10.is_inf(data, attributes),
        [np.array([nan, 2.1, inf, -inf], f32)],
    )
    for attributes in (
        {"detect_negative": False},
        {"detect_positive": False},
        {"detect_negative": False, "detect_positive": False},
    )
]

CASES = [
    *binary(),
    *FINITE,
    Case(
        "IsFinite-10",
        "f64 beyond f32",
        opset10.is_finite,
        [np.array([1e300, inf], f64)],
        deviates=Departure(
            "computes in f32, where 1e300 is infinite; the reference computes in f64", "data has numbers beyond f32"
        ),
        expected=[np.array([True, False])],
    ),
    Case(
        "IsFinite-10",
        "subnormal",
        opset10.is_finite,
        [np.array([1e-40, 1], np.float32)],
        deviates=Departure(
            "takes numbers below the least normal one for infinite; they are finite",
            "data is bf16, f32; data > 0 | data < 0",
            WIDE,
        ),
        expected=[np.array([True, True])],
    ),
    *(
        Case(
            op,
            "strings",
            make,
            [np.array(["a", "b"]), np.array(["a", "c"])],
            deviates=Departure("refuses strings; the page has any type", "a is string"),
            expected=[np.array(want)],
        )
        for op, make, want in (
            ("Equal-1", opset1.equal, [True, False]),
            ("NotEqual-1", opset1.not_equal, [False, True]),
        )
    ),
    Case(
        "Equal-1",
        "i64 beyond i32",
        opset1.equal,
        [np.array([2**40], i64), np.array([2**41], i64)],
        deviates=Departure("computes in i32; the reference computes in i64", "a is i64; layer has numbers beyond i32"),
        expected=[np.array([False])],
    ),
    *(
        Case(
            op,
            "i32 beyond 2**24",
            build,
            [np.array([2**24, 2**24 + 1], i32), np.array([2**24 + 1, 2**24], i32)],
            deviates=Departure(
                "computes in f32; the reference compares in the type itself",
                "a is i32, i64, u32, u64; a has numbers beyond 2**24 | b has numbers beyond 2**24",
            ),
            expected=[np.array(want)],
        )
        for op, build, want in (
            ("Equal-1", opset1.equal, [False, False]),
            ("Greater-1", opset1.greater, [False, True]),
            ("GreaterEqual-1", opset1.greater_equal, [False, True]),
            ("Less-1", opset1.less, [True, False]),
            ("LessEqual-1", opset1.less_equal, [True, False]),
            ("NotEqual-1", opset1.not_equal, [True, True]),
        )
    ),
]

CASES += [
    Case(
        "IsInf-10",
        "f64",
        opset10.is_inf,
        [np.array([inf, -inf, 1], f64)],
        deviates=Departure(
            "says that infinity is finite, having clamped it to f32; the page says that it is infinite",
            "data is f64; data has infinity",
        ),
        expected=[np.array([True, True, False])],
    ),
    Case("IsNaN-10", "f64", opset10.is_nan, [np.array([nan, 1e300, inf], f64)]),
]


CASES += departing(
    {
        "Equal-1": np.equal,
        "Greater-1": np.greater,
        "GreaterEqual-1": np.greater_equal,
        "Less-1": np.less,
        "LessEqual-1": np.less_equal,
        "NotEqual-1": np.not_equal,
    },
    f32,
)

test_agrees_with_openvino = conformance(CASES)
