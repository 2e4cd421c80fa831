"""Arithmetic ops, compared with OpenVINO. Inputs that are all constants are folded by its reference kernels."""

import ml_dtypes
import numpy as np
from openvino import opset1, opset4, opset5, opset16, opset17

from conformance.harness import ANY_INTEGER, Case, Const, Departure, conformance, without_input
from conformance.pdpd import REFUSES, departing, from_axis, unstated

i8, i32, i64, u8 = np.int8, np.int32, np.int64, np.uint8
f16, f32, f64 = np.float16, np.float32, np.float64
bf16 = ml_dtypes.bfloat16

SMALL = [[-0.9, -0.5, -0.25], [0.0, 0.125, 0.75]]
LARGE = [[1.0, 1.5, 2.25], [3.0, 7.5, 40.0]]
ANY = [[-7.5, -2.0, -0.5], [0.25, 1.5, 3.0]]

# the function, numbers of its domain, integers that the reference rounds or truncates
ELEMENTARY = {
    "Acos-1": (opset1.acos, SMALL, [-1, 0, 1]),
    "Acosh-4": (opset4.acosh, LARGE, [1, 2, 3, 100]),
    "Asin-1": (opset1.asin, SMALL, [-1, 0, 1]),
    "Asinh-4": (opset4.asinh, ANY, [-3, 0, 2]),
    "Atan-1": (opset1.atan, ANY, [-100, 0, 1]),
    "Atanh-4": (opset4.atanh, SMALL, [-5, -1, 0, 1, 7]),
    "Cos-1": (opset1.cos, ANY, [-3, 0, 2, 8]),
    "Cosh-1": (opset1.cosh, ANY, [-1, 0, 3]),
    "Erf-1": (opset1.erf, ANY, [-1, 0, 1]),
    "Log-1": (opset1.log, LARGE, [1, 3, 8, 100]),
    "Sin-1": (opset1.sin, ANY, [-2, 0, 2]),
    "Sinh-1": (opset1.sinh, ANY, [-1, 0, 2]),
    "Sqrt-1": (opset1.sqrt, LARGE, [4, 7, 9, 10]),
    "Tan-1": (opset1.tan, ANY, [-2, -1, 0, 1, 2]),
    "Tanh-1": (opset1.tanh, ANY, [-5, -1, 0, 2]),
}

EXACT = {
    "Abs-1": opset1.absolute,
    "Ceiling-1": opset1.ceiling,
    "Floor-1": opset1.floor,
    "Negative-1": opset1.negative,
    "Sign-1": opset1.sign,
}

BINARY = {
    "Add-1": opset1.add,
    "FloorMod-1": opset1.floor_mod,
    "Maximum-1": opset1.maximum,
    "Minimum-1": opset1.minimum,
    "Mod-1": opset1.mod,
    "Multiply-1": opset1.multiply,
    "SquaredDifference-1": opset1.squared_difference,
    "Subtract-1": opset1.subtract,
    "Divide-1": opset1.divide,
    "Power-1": opset1.power,
}


def elementary():
    for op, (build, data, integers) in ELEMENTARY.items():
        yield Case(op, "f32", build, [np.array(data, f32)])
        yield Case(op, "f16", build, [np.array(data, f16)], rtol=2e-3)
        yield Case(op, "dynamic shape", build, [np.array(data, f32)], dynamic=True)
        yield Case(op, "scalar", build, [np.array(data[0][1], f32)])
        yield Case(op, "folded i32", build, [Const(np.array(integers, i32))])
        if op != "Atanh-4":
            yield Case(op, "folded i64", build, [Const(np.array(integers, i64))])
        yield Case(op, "empty", build, [np.zeros((0, 2), f32)], dynamic=True)


def exact():
    for op, build in EXACT.items():
        yield Case(op, "f32", build, [np.array(ANY, f32)])
        yield Case(op, "f16", build, [np.array(ANY, f16)])
        yield Case(op, "i32 with a dynamic shape", build, [np.array([[-3, 0], [2, 9]], i32)], dynamic=True)
        yield Case(op, "folded i64", build, [Const(np.array([-3, 0, 2**31 - 1], i64))])
        yield Case(op, "scalar with a negative zero", build, [np.array(-0.0, f32)])


def binary():
    row = np.array([2.0, -3.0, 0.5])
    for op, build in BINARY.items():
        a = np.abs(ANY) if op == "Power-1" else np.array(ANY)
        yield Case(op, "f32 broadcast", build, [a.astype(f32), row.astype(f32)])
        yield Case(op, "f16", build, [a.astype(f16), row.astype(f16)], rtol=2e-3, atol=2e-3)
        yield Case(op, "dynamic shapes", build, [a[:, None].astype(f32), row.astype(f32)], dynamic=True)
        yield Case(op, "scalar", build, [np.array(3, f32), np.array(2, f32)])
        yield Case(op, "empty", build, [np.zeros((0, 3), f32), row.astype(f32)], dynamic=True)
        integers = [np.array([[7, 6], [5, 9]], i32), np.array([2, 3], i32)]
        yield Case(op, "i32", build, integers)
        yield Case(op, "folded i64", build, [Const(array.astype(i64)) for array in integers])
        yield Case(op, "none", lambda a, b, build=build: build(a, b, auto_broadcast="none"), [a.astype(f32)] * 2)
        if op not in ("Mod-1", "Subtract-1", "Divide-1"):  # which the plugin does not take with pdpd
            yield Case(
                op,
                "pdpd from axis 0",
                lambda a, b, build=build: build(a, b, auto_broadcast="pdpd"),
                [a.astype(f32), np.array([2, 0.5], f32)],
            )


INTEGERS = [
    Case(
        "Divide-1",
        "folded i32 of both signs",
        opset1.divide,
        [Const(np.array([-7, 7, -7, 7], i32)), Const(np.array([2, -2, -2, 2], i32))],
    ),
    Case(
        "FloorMod-1",
        "i32 of both signs",
        opset1.floor_mod,
        [np.array([-7, 7, -7, 7], i32), np.array([3, -3, -3, 3], i32)],
    ),
    Case("Mod-1", "i32 of both signs", opset1.mod, [np.array([-7, 7, -7, 7], i32), np.array([3, -3, -3, 3], i32)]),
    Case(
        "Power-1",
        "folded i32",
        opset1.power,
        [Const(np.array([2, 2, -2, -1, 0], i32)), Const(np.array([-1, 31, 3, -3, 0], i32))],
    ),
    Case(
        "Divide-1",
        "i32 of both signs",
        opset1.divide,
        [np.array([-7, 7], i32), np.array([2, 2], i32)],
        deviates=Departure(
            "truncates whatever m_pythondiv says; the page floors where it is true, as it is by default",
            "a is i16, i32, i64; m_pythondiv = true; a has negative numbers | b has negative numbers",
        ),
        expected=[np.array([-4, 3], i32)],
    ),
    Case(
        "Divide-1",
        "u8 of unknown sizes",
        opset1.divide,
        [np.array([8, 8, 7], np.uint8), np.array([3, 5, 2], np.uint8)],
        dynamic=True,
        deviates=Departure(
            "divides in f32 and rounds to the nearest; on the page quotients of integers are rounded down",
            "a is i8, u8; a is dynamic | b is dynamic",
        ),
        expected=[np.array([2, 1, 3], np.uint8)],
    ),
    *(
        Case(
            op,
            "i32 beyond 2**24",
            build,
            [np.array([100_000_007], i32), np.array([10], i32)],
            deviates=Departure(
                "computes in f32; the reference computes in the type itself",
                "a is i32, i64, u32, u64; a has numbers beyond 2**24",
            ),
            expected=[np.array([7], i32)],
        )
        for op, build in (("Mod-1", opset1.mod), ("FloorMod-1", opset1.floor_mod))
    ),
    *(
        Case(
            op,
            "by infinity",
            build,
            [np.array([1, -5], f32), np.array([np.inf, -np.inf], f32)],
            deviates=Departure("gives NaN where the divisor is infinite; the reference gives a", "b has infinity"),
            expected=[np.array([1, -5], f32)],
        )
        for op, build in (("Mod-1", opset1.mod), ("FloorMod-1", opset1.floor_mod))
    ),
    Case(
        "Power-1",
        "u8 beyond the type",
        opset1.power,
        [np.array([16, 3], u8), np.array([2, 9], u8)],
        deviates=Departure(
            "saturates; the page does not say, integers wrap around here", "a is i8, u8; result overflows"
        ),
        expected=[np.array([0, 3**9 % 256], u8)],
    ),
    Case(
        "Power-1",
        "i32 beyond 2**24",
        opset1.power,
        [np.array([4097, 3], i32), np.array([2, 17], i32)],
        deviates=Departure(
            "computes in f32; the page does not say, integers are exact here, and wrap around",
            "a is i32, i64, u32, u64; result has numbers beyond 2**24 | result overflows",
        ),
        expected=[np.array([4097**2, 3**17], i32)],
    ),
    Case(
        "Add-1",
        "i8 beyond the type",
        opset1.add,
        [np.array([127], np.int8), np.array([1], np.int8)],
        deviates=Departure("saturates; the reference wraps around", "a is i8, u8; result overflows"),
        expected=[np.array([-128], np.int8)],
    ),
    Case(
        "Subtract-1",
        "u8 beyond the type",
        opset1.subtract,
        [np.array([3], u8), np.array([5], u8)],
        deviates=Departure("saturates; the reference wraps around", "a is i8, u8; result overflows"),
        expected=[np.array([254], u8)],
    ),
    Case(
        "SquaredDifference-1",
        "u8 beyond the type",
        opset1.squared_difference,
        [np.array([200], u8), np.array([10], u8)],
        deviates=Departure("saturates; the reference wraps around", "a is u8; result overflows"),
        expected=[np.array([190 * 190 % 256], u8)],
    ),
    Case(
        "Add-1",
        "i64 beyond i32",
        opset1.add,
        [np.array([2**40], i64), np.array([1], i64)],
        deviates=Departure("computes in i32; the reference computes in i64", "a is i64; layer has numbers beyond i32"),
        expected=[np.array([2**40 + 1], i64)],
    ),
    Case(
        "Atanh-4",
        "folded i64",
        opset4.atanh,
        [Const(np.array([-5, -1, 0, 1], i64))],
        deviates=Departure(
            "hands i64 out through i32; the reference gives the bounds of i64 for infinities",
            "layer is constant; data is i64; data >= 1 | data <= -1; result is handed out",
        ),
        expected=[np.array([-(2**63), -(2**63), 0, 2**63 - 1], i64)],
    ),
    Case(
        "Power-1",
        "folded i32 beyond the type",
        opset1.power,
        [Const(np.array([2, 3], i32)), Const(np.array([33, 21], i32))],
        deviates=Departure(
            "leaves to C++ what is beyond the type; the page does not say, integers wrap around here",
            "layer is constant; a is i32; result overflows",
        ),
        expected=[np.array([0, 3**21 % 2**32], i32)],
    ),
]

FLOATS = [
    Case("Divide-1", "f32 by zero", opset1.divide, [np.array([1, -1, 0], f32), np.array([0, 0, 0], f32)]),
    Case("Mod-1", "f32 by zero", opset1.mod, [np.array([7], f32), np.array([0], f32)]),
    Case(
        "Power-1", "f32 at the edges", opset1.power, [np.array([0, -8, 2, -2], f32), np.array([0, 1 / 3, -1, 3], f32)]
    ),
    Case("Power-1", "half in a row", opset1.power, [np.array([-np.inf, -0.0, 4], f32), Const(np.full(3, 0.5, f32))]),
    *(
        Case(
            "Power-1",
            f"{exponent} of -infinity",
            opset1.power,
            [np.array([-np.inf, 4], f32), Const(np.array(exponent, f32))],
            deviates=Departure(
                "takes a root, which gives NaN; the reference takes powers, as C does",
                "b = 0.5, -0.5; b is constant; size of b = 1; a has -infinity",
            ),
            expected=[np.array(want, f32)],
        )
        for exponent, want in ((0.5, [np.inf, 2]), (-0.5, [0, 0.5]))
    ),
    Case("Power-1", "f32 squared", opset1.power, [np.array(ANY, f32), Const(np.array(2, f32))]),
    Case("Add-1", "bf16", opset1.add, [np.array(ANY, bf16), np.array([2, 4, 8], bf16)]),
    Case("Multiply-1", "bf16", opset1.multiply, [np.array(ANY, bf16), np.array([2, 4, 8], bf16)]),
    Case(
        *("SquaredDifference-1", "bf16", opset1.squared_difference),
        [np.array([256, 3, 0.1], bf16), np.array([-1, 1e-3, -7], bf16)],
    ),
    Case("Sqrt-1", "f32 below zero", opset1.sqrt, [np.array([-1, 4], f32)]),
    Case("Log-1", "f32 at zero", opset1.log, [np.array([0, -1, 1], f32)]),
    Case("Sign-1", "f32 nan", opset1.sign, [np.array([np.nan, 0, -2], f32)]),
    Case(
        "Add-1",
        "f64",
        opset1.add,
        [np.array([1], f64), np.array([1e-12], f64)],
        rtol=0,
        atol=0,
        deviates=Departure("computes in f32; the reference computes in f64", "a is f64"),
        expected=[np.array([1 + 1e-12])],
    ),
]

ROUND = [
    Case("Round-5", title, lambda data, mode=mode: opset5.round(data, mode), [np.array(data, type)], dynamic=dynamic)
    for mode in ("half_to_even", "half_away_from_zero")
    for title, data, type, dynamic in (
        (f"{mode} f32", [-4.5, -1.9, -1.5, -0.3, 0.5, 0.9, 1.5, 2.3, 2.5], f32, False),
        (f"{mode} f16", [-4.5, -1.9, 0.5, 2.5], f16, False),
        (f"{mode} i32", [-3, 0, 5], i32, False),
        (f"{mode} with a dynamic shape", [[0.5, 1.5]], f32, True),
    )
] + [
    Case(
        "Round-5",
        "just below a half",
        lambda data: opset5.round(data, "half_away_from_zero"),
        [np.array([0.49999997], f32)],
        deviates=Departure(
            "adds a half and rounds down, which gives 1; the page rounds to the nearest integer, 0",
            "mode = half_away_from_zero; data has numbers just below a half",
        ),
        expected=[np.array([0], f32)],
    ),
]

CUMSUM = [
    Case(
        "CumSum-3",
        f"axis {axis}, exclusive {exclusive}, reverse {reverse}, {np.dtype(type).name}",
        lambda data, axis, exclusive=exclusive, reverse=reverse: opset4.cum_sum(data, axis, exclusive, reverse),
        [np.arange(1, 13).reshape(3, 4).astype(type), Const(np.array(axis, i64))],
        dynamic=reverse,
    )
    for axis in (0, -1)
    for exclusive in (False, True)
    for reverse in (False, True)
    for type in (f32, i32)
] + [
    Case(
        "CumSum-3",
        "axis as an input",
        opset4.cum_sum,
        [np.arange(6, dtype=f32).reshape(2, 3), np.array(1, i32)],
    ),
    Case("CumSum-3", "f16", opset4.cum_sum, [np.array([2048, 1, 1], f16), Const(np.array(0))]),
]

ERFINV = [
    Case("ErfInv-17", "f32", opset17.erfinv, [np.array([-0.9, -0.5, 0, 0.25, 0.75], f32)], rtol=1e-4),
    Case("ErfInv-17", "f16", opset17.erfinv, [np.array([-0.9, 0, 0.5], f16)], rtol=2e-3),
    Case("ErfInv-17", "dynamic shape", opset17.erfinv, [np.array([[0.5]], f32)], dynamic=True, rtol=1e-4),
    Case("ErfInv-17", "at and beyond 1", opset17.erfinv, [np.array([-1, 1, 1.5], f32)]),
]


def segment_max(fill_mode):
    return lambda data, ids, count=None: opset16.segment_max(data, ids, count, fill_mode)


SEGMENTS = np.array([0, 0, 2, 3, 3], i32)
SEGMENT_MAX = [
    Case("SegmentMax-16", "zero", segment_max("ZERO"), [np.array([3, 1, -4, 1, 5], f32), Const(SEGMENTS)]),
    Case("SegmentMax-16", "lowest", segment_max("LOWEST"), [np.array([3, 1, -4, 1, 5], f32), Const(SEGMENTS)]),
    Case("SegmentMax-16", "i32 lowest", segment_max("LOWEST"), [np.array([3, 1, -4, 1, 5], i32), Const(SEGMENTS)]),
    Case(
        "SegmentMax-16",
        "f16 lowest",
        segment_max("LOWEST"),
        [np.array([3, 1, -4, 1, 5], np.float16), Const(SEGMENTS)],
        deviates=Departure(
            "fills with the lowest f32, which is -inf in f16; by the page it is the lowest number of the type",
            "data is f16; fill_mode = LOWEST",
        ),
        expected=[np.array([3, -65504, -4, 5], np.float16)],
    ),
    *(
        Case(
            "SegmentMax-16",
            f"{title} lowest",
            segment_max("LOWEST"),
            [np.array([3, 1, 4, 1, 5], dtype), Const(SEGMENTS)],
            deviates=Departure(
                f"fills with the lowest {computed}; by the page it is the lowest number of the type",
                f"data is {types}; fill_mode = LOWEST",
            ),
            expected=[np.array([3, lowest, 4, 5], dtype)],
        )
        for title, dtype, computed, types, lowest in (
            ("f64", np.float64, "f32", "f64", np.finfo(np.float64).min),
            ("i64", np.int64, "i32", "i16, i64, u16, u32, u64", np.iinfo(np.int64).min),
            ("u32", np.uint32, "i32", "i16, i64, u16, u32, u64", 0),
        )
    ),
    Case(
        "SegmentMax-16",
        "nothing in some segments",
        segment_max("ZERO"),
        [np.zeros((0, 2), f32), Const(np.zeros(0, i32)), Const(np.array(3))],
        deviates=Departure(
            "leaves the result as it is in memory, refuses or ends where there are no data; "
            "by the page segments without any are filled",
            "segment_ids is empty",
        ),
        expected=[np.zeros((3, 2), f32)],
        crashes=True,
    ),
    Case(
        "SegmentMax-16",
        "rows and more segments",
        segment_max("ZERO"),
        [np.arange(10, dtype=f32).reshape(5, 2) - 20, Const(SEGMENTS), Const(np.array(6))],
    ),
    Case(
        "SegmentMax-16",
        "segments as inputs",
        segment_max("LOWEST"),
        [np.arange(10, dtype=f32).reshape(5, 2), SEGMENTS, np.array(4, i32)],
        dynamic=True,
    ),
]

CASES = [
    *elementary(),
    *exact(),
    *binary(),
    *INTEGERS,
    *FLOATS,
    *ROUND,
    *CUMSUM,
    *ERFINV,
    *SEGMENT_MAX,
]

inf, nan = np.inf, np.nan
SPECIAL = np.array([nan, inf, -inf], f32)
AT_RUN_TIME = {"Asin-1": [-1, 0, 1], "Log-1": [0, 1, 2, 4], "Sin-1": [0, 0, 0]}  # what the reference makes of integers
CASES += [Case(op, "nan and infinity", build, [SPECIAL]) for op, (build, *_) in ELEMENTARY.items()]
CASES += [Case(op, "nan and infinity", build, [SPECIAL]) for op, build in EXACT.items()]
CASES += [
    Case(op, "i32", build, [np.array(integers, i32)])
    for op, (build, _, integers) in ELEMENTARY.items()
    if op not in (*AT_RUN_TIME, "Atanh-4")
]
CASES += [
    Case(
        op,
        "i32",
        ELEMENTARY[op][0],
        [np.array(ELEMENTARY[op][2], i32)],
        deviates=Departure(
            "rounds the result; the reference truncates it", f"data is {ANY_INTEGER}; result is rounded"
        ),
        expected=[np.array(expected, i32)],
    )
    for op, expected in AT_RUN_TIME.items()
]
CASES += [
    Case(
        "Atanh-4",
        "i32 at and beyond 1",
        opset4.atanh,
        [np.array([-1, 0, 1, 7], i32)],
        deviates=Departure(
            "gives 2147483520 for infinity; the reference gives the bounds of i32",
            "data is i32; data >= 1 | data <= -1",
        ),
        expected=[np.array([-(2**31), 0, 2**31 - 1, 2**31 - 1], i32)],
    ),
    *(
        Case(
            op,
            "i16 without a result",
            build,
            [np.array(numbers, np.int16)],
            deviates=Departure(
                "gives what is left of the lowest i32; the page does not say, the lowest number of the type is there "
                "here",
                f"data is i16, i64, u8, u32, u64; {outside}",
            ),
            expected=[np.array([-(2**15), 0], np.int16)],
        )
        for op, build, numbers, outside in (
            ("Acos-1", opset1.acos, [2, 1], "data > 1 | data < -1"),
            ("Acosh-4", opset4.acosh, [0, 1], "data < 1"),
            ("Asin-1", opset1.asin, [2, 0], "data > 1 | data < -1"),
        )
    ),
    *(
        Case(
            op,
            "lowest i8",
            build,
            [np.array([-128, 5], i8)],
            deviates=Departure("saturates; the reference wraps around", "data is i8; result overflows"),
            expected=[np.array([-128, rest], i8)],
        )
        for op, build, rest in (("Abs-1", opset1.absolute, 5), ("Negative-1", opset1.negative, -5))
    ),
    *(
        Case(
            op,
            "i8 beyond the type",
            build,
            [np.array([100], i8), np.array([factor], i8)],
            deviates=Departure(f"{what}; the reference wraps around", f"a is {types}; result overflows"),
            expected=[np.array([result], i8)],
        )
        for op, types, build, factor, what, result in (
            ("Multiply-1", "i8, u8", opset1.multiply, 2, "saturates", -56),
            (
                *("SquaredDifference-1", "i8", opset1.squared_difference, -100),
                *("saturates the difference, then squares it", 64),
            ),
        )
    ),
    *(
        Case(
            op,
            "nan",
            build,
            [np.array([nan, 1, nan], f32), np.array([1, nan, nan], f32)],
            deviates=Departure(
                "gives the second number where one is NaN; the page does not say, NaN wins here", "a has nan"
            ),
            expected=[np.full(3, nan, f32)],
        )
        for op, build in (("Maximum-1", opset1.maximum), ("Minimum-1", opset1.minimum))
    ),
    Case("Add-1", "i32 beyond the type", opset1.add, [np.full(20, 2**31 - 1, i32), np.full(20, 2, i32)]),
    Case(
        "Multiply-1", "u16 beyond the type", opset1.multiply, [np.array([1000], np.uint16), np.array([99], np.uint16)]
    ),
    Case(
        "CumSum-3",
        "no axis",
        opset4.cum_sum,
        [np.array([[1, 2], [3, 4]], f32), Const(np.array(0))],
        deviates=Departure("refuses a file without an axis; the page has 0 for it", "axis is not connected"),
        expected=[np.array([[1, 2], [4, 6]], f32)],
        edit=without_input("CumSum", 1),
    ),
    Case(
        "CumSum-3",
        "i64 beyond i32",
        opset4.cum_sum,
        [np.array([2**31 - 1, 1]), Const(np.array(0))],
        deviates=Departure(
            "computes in i32; the reference computes in i64", "data is i64; layer has numbers beyond i32"
        ),
        expected=[np.array([2**31 - 1, 2**31])],
    ),
    Case(
        "ErfInv-17",
        "next to 1",
        opset17.erfinv,
        [np.array([0.99999], f32)],
        deviates=Departure(
            "is off by up to some thousandths next to 1; the page has the function itself", "data has numbers next to 1"
        ),
        expected=[np.array([3.1232], f32)],
        rtol=1e-4,
    ),
]


BOX, COLUMN = np.arange(1, 25, dtype=f32).reshape(2, 3, 4), np.array([1, 2, 3], f32)
REFUSED = ("Subtract-1", "Divide-1", "Mod-1")
CASES += [Case(op, "pdpd from axis 1", from_axis(op, 1), [BOX, COLUMN]) for op in BINARY if op not in REFUSED]
CASES += departing({"Subtract-1": np.subtract, "Divide-1": np.divide}, f32)
CASES += unstated(
    {
        "Add-1": np.add,
        "FloorMod-1": np.mod,
        "Maximum-1": np.maximum,
        "Minimum-1": np.minimum,
        "Mod-1": np.fmod,
        "Multiply-1": np.multiply,
        "Power-1": np.power,
        "SquaredDifference-1": lambda a, b: (a - b) ** 2,
    },
    f32,
)
CASES += [
    Case(
        "Mod-1",
        "pdpd from axis 1",
        from_axis("Mod-1", 1),
        [BOX, COLUMN],
        deviates=REFUSES,
        expected=[np.fmod(BOX, COLUMN[:, None])],
    )
]

SUMMED = np.arange(1, 13, dtype=f32).reshape(2, 3, 2)
SUMS = SUMMED.sum(2, keepdims=True)
PER_ROW = np.array([[10], [20], [40]], f32)

CASES += [
    Case(
        op,
        f"of sums and a constant per row{title}",
        lambda a, b, build=build, keep=keep: build(opset1.reduce_sum(a, np.array([2]), keep), b),
        [SUMMED, Const(PER_ROW if keep else PER_ROW[:, 0])],
        deviates=Departure(
            "takes the elements of the constant for those of another axis, as it is computed in one with the reduction"
            "; on the page they go with the axes from the last one on",
            f"a is made by a reduction; b is constant; {shaped}",
        ),
        expected=[compute(SUMS, PER_ROW) if keep else compute(SUMS, PER_ROW)[..., 0]],
    )
    for op, build, compute in (
        ("Add-1", opset1.add, np.add),
        ("Divide-1", opset1.divide, np.divide),
        ("Multiply-1", opset1.multiply, np.multiply),
        ("Subtract-1", opset1.subtract, np.subtract),
    )
    for keep, title, shaped in (
        (
            True,
            "",
            "rank of result = 3; axis 2 of result = 1; axis 0 of result > 1; axis 1 of result > 1; size of b > 1",
        ),
        (False, ", without the axis", "rank of result = 2; axis 0 of result > 1; axis 1 of result > 1; size of b > 1"),
    )
]

CASES += [
    Case(
        "Divide-1",
        f"{np.dtype(type).name} of sums",
        lambda a, b: opset1.divide(opset1.reduce_sum(a, np.array([1]), False), b),
        [np.array([[7, 8, 9], [1, 2, 2]], type), Const(np.array(7, type))],
        deviates=Departure(
            "divides in f32 and rounds to the nearest, as it is computed in one with the reduction; the page floors",
            "a is made by a reduction; a is i32, i64; b is constant",
        ),
        expected=[np.array([3, 0], type)],
    )
    for type in (i32, i64)
]

test_agrees_with_openvino = conformance(CASES)
