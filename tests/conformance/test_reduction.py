"""Reduction ops, against OpenVINO."""

from functools import partial

import numpy as np
from openvino import opset1, opset4

from conformance.harness import ANY_INTEGER, Case, Const, Departure, conformance

random = np.random.default_rng(13)
CUBE = random.standard_normal((2, 3, 4, 5)).astype(np.float32)
WHOLE = random.integers(-5, 6, (3, 4)).astype(np.int32)
TRUTH = random.random((2, 3, 4)) > 0.3
NAN, INF = float("nan"), float("inf")

BUILD = {
    "ReduceSum-1": opset1.reduce_sum,
    "ReduceProd-1": opset1.reduce_prod,
    "ReduceMean-1": opset1.reduce_mean,
    "ReduceMax-1": opset1.reduce_max,
    "ReduceMin-1": opset1.reduce_min,
    "ReduceL1-4": opset4.reduce_l1,
    "ReduceL2-4": opset4.reduce_l2,
    "ReduceLogicalAnd-1": opset1.reduce_logical_and,
    "ReduceLogicalOr-1": opset1.reduce_logical_or,
}


def reduce(op, title, data, axes, keep_dims=False, **rest):
    axes = axes if isinstance(axes, np.ndarray | Const) else Const(np.array(axes, np.int64))
    return Case(op, title, partial(BUILD[op], keep_dims=keep_dims), [np.asarray(data), axes], **rest)


CASES = []
for op in BUILD:
    data = TRUTH if "Logical" in op else CUBE
    CASES += [
        reduce(op, "last axis", data, [-1]),
        reduce(op, "scalar axis, kept", data, 1, keep_dims=True),
        reduce(op, "two axes", data, [2, 0]),
        reduce(op, "all axes", data, [0, 1, 2] if data is TRUTH else [0, 1, 2, 3]),
        reduce(op, "dynamic", data, [1, -1], keep_dims=True, dynamic=True),
        reduce(op, "axes of i32", data, Const(np.array([1], np.int32))),
        reduce(
            op,
            "any number of axes",
            data[:, 0, :1],
            np.array([1]),
            dynamic=True,
            deviates=Departure(
                "refuses results of unknown rank; the page does not tell them from others", "result is of unknown rank"
            ),
            expected=[np.abs(data[:, 0, 0]) if "ReduceL" in op and data is CUBE else data[:, 0, 0]],
        ),
        reduce(op, "nothing, kept", data[:0], [0], keep_dims=True)
        if op not in ("ReduceMin-1",)
        else reduce(
            op,
            "nothing, kept",
            data[:0],
            [0],
            keep_dims=True,
            deviates=Departure(
                "gives the largest finite number; the reference gives infinity",
                "data is f16, bf16, f32, f64; data is empty",
            ),
            expected=[np.full((1, 3, 4, 5), np.inf, np.float32)],
        ),
    ]
    if data is CUBE:
        CASES += [
            reduce(op, "i32", WHOLE, [1]),
            reduce(op, "axes known at run time", CUBE, np.array([2, 0]), keep_dims=True),
            reduce(op, "f16", CUBE.astype(np.float16), [1, 2], rtol=2e-3, atol=2e-3),
            reduce(op, "i64", WHOLE.astype(np.int64), [0], keep_dims=True),
        ]

CASES += [
    reduce("ReduceMean-1", "u8", np.array([[10, 21], [30, 40]], np.uint8), [1]),
    reduce(
        *("ReduceMean-1", "u8 whose sum is no u8", np.array([200, 200], np.uint8), [0]),
        deviates=Departure(
            "sums in u8 and saturates; a mean of such numbers lies among them", "data is u8; sum of data > 255"
        ),
        expected=[np.array(200, np.uint8)],
    ),
    reduce(
        *("ReduceSum-1", "i8 overflow", np.array([100, 100], np.int8), [0]),
        deviates=Departure("saturates; the reference wraps around", "data is i8, u8; result overflows"),
        expected=[np.array(-56, np.int8)],
    ),
    reduce(
        *("ReduceProd-1", "u8 overflow", np.array([5, 6, 7, 8], np.uint8), [0]),
        deviates=Departure("saturates; the reference wraps around", "data is i8, u8; result overflows"),
        expected=[np.array(144, np.uint8)],
    ),
    reduce(
        *("ReduceMax-1", "-infinity", np.array([-INF, -INF], np.float32), [0]),
        deviates=Departure("starts at the lowest finite number; the page gives an element", "result has -infinity"),
        expected=[np.array(-INF, np.float32)],
    ),
    reduce("ReduceMax-1", "nan before all others", np.array([NAN, 1, 2], np.float32), [0]),
    *(
        reduce(
            *(op, "nan", np.array([first, NAN, 2], np.float32), [0]),
            deviates=Departure("forgets what comes before a NaN; the reference skips NaN", "data has nan"),
            expected=[np.array(first, np.float32)],
        )
        for op, first in (("ReduceMin-1", 1), ("ReduceMax-1", 3))
    ),
]

NO_AXES = np.zeros(0, np.int64)
for op in BUILD:
    data = TRUTH if "Logical" in op else CUBE[0, 0]
    unreduced = np.abs(data) if op in ("ReduceL1-4", "ReduceL2-4") else data
    CASES += [
        reduce(
            *(op, "no axes", data, Const(NO_AXES)),
            deviates=Departure("refuses axes without an element; by the page nothing is reduced", "axes is empty"),
            expected=[unreduced],
        ),
        reduce(
            *(op, "no axes as an input", data, NO_AXES),
            deviates=Departure("refuses axes without an element; by the page nothing is reduced", "axes is empty"),
            expected=[unreduced],
        ),
    ]
CASES += [
    reduce("ReduceMean-1", "i32 below 0", np.array([-1, -2], np.int32), [0]),
    reduce("ReduceProd-1", "i32 beyond the type", np.full(21, 3, np.int32), [0]),
    reduce("ReduceSum-1", "f16 beyond the type", np.array([60000, 60000], np.float16), [0]),
    reduce("ReduceMax-1", "nothing of i32", np.zeros((0, 2), np.int32), [0]),
    reduce("ReduceMin-1", "nothing of i32", np.zeros((0, 2), np.int32), [0]),
    *(
        reduce(
            *(op, "i32 beyond 2**24", np.array([2**24 + 1, 2**24 + 3], np.int32), [0]),
            deviates=Departure(
                "computes in f32; the page gives an element",
                "data is i32, i64, u32, u64; data has numbers beyond 2**24",
            ),
            expected=[np.array(want, np.int32)],
        )
        for op, want in (("ReduceMax-1", 2**24 + 3), ("ReduceMin-1", 2**24 + 1))
    ),
]

SIX = np.float64(np.random.default_rng(29).integers(-9, 9, (2, 3, 2, 2, 1, 3)))
CASES += [
    reduce(
        *(op, f"{type}, axes apart in 6 dimensions", SIX.astype(dtype), [0, 2]),
        deviates=Departure(
            "rounds to the nearest where axes apart are reduced in more than 5 dimensions; the reference truncates",
            f"data is {ANY_INTEGER}; rank of data > 5; size of axes > 1; (the axes are not adjacent)",
        ),
        expected=[np.trunc(want(SIX)).astype(dtype)],
    )
    for op, want in (
        ("ReduceMean-1", lambda data: data.mean((0, 2))),
        ("ReduceL2-4", lambda data: np.sqrt((data**2).sum((0, 2)))),
    )
    for type, dtype in (("i32", np.int32), ("i64", np.int64))
]
CASES += [
    reduce(
        *("ReduceL2-4", f"{type} whose squares add up beyond the type", np.full(9, 10, dtype), [0]),
        deviates=Departure(
            "adds up squares in 8 bits and saturates; the root of the sum is a number of the type",
            "data is i8, u8; (squares add up beyond the type)",
        ),
        expected=[np.array(30, dtype)],
    )
    for type, dtype in (("i8", np.int8), ("u8", np.uint8))
]


def as_codes(op, data, axes):
    """Quarters from -8 on, as their codes in u8."""
    limits = [opset1.constant(np.float32(limit)) for limit in (-8, 55.75, 0, 255)]
    return opset1.convert(opset1.fake_quantize(BUILD[op](data, axes, True), *limits, levels=256), "u8")


CASES += [
    Case(
        op,
        "codes of the result",
        partial(as_codes, op),
        [np.array([[0.25, 0.75]], np.float32), Const(np.array([1]))],
        deviates=Departure(
            "rounds to integers first where a FakeQuantize makes i8 or u8 of the result; the page gives an element",
            "data is f16, bf16, f32; rank of data > 1; result is not handed out; "
            "(a FakeQuantize makes i8 or u8 of the result)",
        ),
        expected=[np.array([[want]], np.uint8)],
    )
    for op, want in (("ReduceMax-1", 35), ("ReduceMin-1", 33))
]


def from_codes_to_codes(op, data, axes):
    """Integers from -64 to 191, as codes from -128 to 127 before and after."""
    limits = [opset1.constant(np.float32(limit)) for limit in (-64, 191, -64, 191, -128, 127)]
    found = BUILD[op](opset1.fake_quantize(data, *limits[:4], levels=256), axes, True)
    return opset1.convert(opset1.fake_quantize(found, *limits[:2], *limits[4:], levels=256), "i8")


CASES += [
    Case(
        op,
        "codes of codes",
        partial(from_codes_to_codes, op),
        [np.array([[120.0, 120.0]], np.float32), Const(np.array([1]))],
        deviates=Departure(
            "takes 127 for codes beyond it where a FakeQuantize makes i8 of the result; the page gives an element",
            "data is made by a quantization; rank of data > 1; result is not handed out; "
            "(a FakeQuantize makes i8 of the result)",
        ),
        expected=[np.array([[56]], np.int8)],
    )
    for op in ("ReduceMax-1", "ReduceMin-1")
]

test_agrees_with_openvino = conformance(CASES)
