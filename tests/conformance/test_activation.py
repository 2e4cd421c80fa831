"""Activation ops, compared with OpenVINO. Inputs that are all constants are folded by its reference kernels."""

import ml_dtypes
import numpy as np
from openvino import opset1, opset2, opset4, opset5, opset7, opset8, opset9, opset16
from scipy.special import ndtr

from conformance.harness import ANY_INTEGER, WIDE, Case, Const, Departure, conformance

f16, f32, i32, i64, u8 = np.float16, np.float32, np.int32, np.int64, np.uint8
bf16 = ml_dtypes.bfloat16
inf, nan = np.inf, np.nan

DATA = [[-20.0, -3.5, -1.0, -0.5], [0.0, 0.5, 1.0, 7.5]]

UNARY = {
    "Elu-1 with alpha 0.7": lambda data: opset1.elu(data, 0.7),
    "Elu-1 with alpha 0": lambda data: opset1.elu(data, 0.0),
    "Exp-1": opset1.exp,
    "Gelu-2": opset2.gelu,
    "Gelu-7 erf": lambda data: opset7.gelu(data, "erf"),
    "Gelu-7 tanh": lambda data: opset7.gelu(data, "tanh"),
    "HSigmoid-5": opset5.hsigmoid,
    "HSwish-4": opset4.hswish,
    "Mish-4": opset4.mish,
    "ReLU-1": opset1.relu,
    "Sigmoid-1": opset1.sigmoid,
    "SoftPlus-4": opset4.softplus,
    "SoftSign-9": opset9.softsign,
    "Clamp-1": lambda data: opset1.clamp(data, -0.75, 2.5),
    "Identity-16": opset16.identity,
}


def unary():
    for name, build in UNARY.items():
        op, _, how = name.partition(" ")
        atol = 4e-6 if op == "SoftPlus-4" else 1e-6  # the plugin's is off by 2e-6, and below 0, at -20
        yield Case(op, f"{how} f32".strip(), build, [np.array(DATA, f32)], atol=atol)
        yield Case(op, f"{how} f16".strip(), build, [np.array(DATA, f16)], rtol=2e-3, atol=1e-5)
        yield Case(op, f"{how} bf16".strip(), build, [np.array(DATA, bf16)], rtol=1e-2, atol=1e-5)
        yield Case(op, f"{how} dynamic shape".strip(), build, [np.array(DATA, f32)], dynamic=True, atol=atol)
        yield Case(op, f"{how} scalar".strip(), build, [np.array(-0.5, f32)])
        yield Case(op, f"{how} empty".strip(), build, [np.zeros((0, 2), f32)], dynamic=True)


INTEGERS = [
    Case("ReLU-1", "i32", opset1.relu, [np.array([-3, 4], i32)]),
    Case(
        "ReLU-1",
        "i32 beyond 2**24",
        opset1.relu,
        [np.array([2**24 + 1, 2**31 - 1, -3], i32)],
        deviates=Departure(
            "computes in f32; the page hands numbers above 0 on",
            f"data is {ANY_INTEGER}; data has numbers beyond 2**24",
        ),
        expected=[np.array([2**24 + 1, 2**31 - 1, 0], i32)],
    ),
    Case("ReLU-1", "folded i64", opset1.relu, [Const(np.array([-3, 4], i64))]),
    Case("Exp-1", "folded i32", opset1.exp, [Const(np.array([-1, 0, 1, 2, 8], i32))]),
    Case(
        "Exp-1",
        "i32",
        opset1.exp,
        [np.array([0, 1], i32)],
        deviates=Departure(
            "rounds the result; the reference truncates it", f"data is {ANY_INTEGER}; result is rounded"
        ),
        expected=[np.array([1, 2], i32)],
    ),
    Case("Clamp-1", "i32", lambda data: opset1.clamp(data, 0.4, 2.6), [np.array([0, 1, 2, 5], i32)]),
    Case("Clamp-1", "folded i64", lambda data: opset1.clamp(data, 0.4, 2.6), [Const(np.array([0, 2, 5], i64))]),
    Case("Clamp-1", "u8 with wide bounds", lambda data: opset1.clamp(data, -5, 300), [np.array([0, 100, 255], u8)]),
    Case("Identity-16", "i64", opset16.identity, [np.array([1, 2], i64)]),
    Case("Identity-16", "boolean", opset16.identity, [np.array([True, False])]),
]

NOT_A_NUMBER = [
    Case(
        op,
        "nan",
        build,
        [np.array([nan, -1, 5], f32)],
        deviates=Departure(f"gives {low} for NaN; the formula gives NaN", "data has nan"),
        expected=[np.array([nan, 0, high], f32)],
    )
    for op, build, low, high in (
        ("ReLU-1", opset1.relu, 0, 5),
        ("Clamp-1", lambda data: opset1.clamp(data, 0, 1), "min", 1),
    )
] + [
    Case("ReLU-1", "folded nan", opset1.relu, [Const(np.array([nan, -1, 5], f32))]),
    Case("Clamp-1", "folded nan", lambda data: opset1.clamp(data, 0, 1), [Const(np.array([nan, -1, 5], f32))]),
]

PARAMETERS = [
    Case(op, title, build, [np.array(data, type), *(Const(np.array(value, type)) for value in parameters)], **more)
    for op, build, parameters in (
        ("HardSigmoid-1", opset1.hard_sigmoid, (0.25, 0.5)),
        ("Selu-1", opset1.selu, ([1.67], [1.05])),
        ("Swish-4", opset4.swish, (1.5,)),
        ("Swish-4", opset4.swish, (0.0,)),
    )
    for title, data, type, more in (
        (f"{parameters} f32", DATA, f32, {}),
        (f"{parameters} f16", DATA, f16, {"rtol": 2e-3, "atol": 1e-5}),
        (f"{parameters} dynamic shape", DATA, f32, {"dynamic": True}),
        (f"{parameters} scalar", -0.5, f32, {}),
    )
] + [
    Case("Swish-4", "without beta", opset4.swish, [np.array(DATA, f32)]),
    Case("Swish-4", "beta as an input", opset4.swish, [np.array(DATA, f32), np.array(2, f32)]),
    Case(
        "Selu-1",
        "scalar parameters",
        opset1.selu,
        [np.array(DATA, f32), Const(np.array(1.67, f32)), Const(np.array(1.05, f32))],
    ),
]

NEGATIVE = -np.arange(1, 13, dtype=f32).reshape(2, 2, 3)
PRELU = [
    Case(
        "PReLU-1",
        f"slope {shape} for {data.shape} {data.dtype}{' dynamic' if dynamic else ''}",
        opset1.prelu,
        [data, Const(np.arange(1, 1 + np.prod(shape)).astype(data.dtype).reshape(shape))],
        dynamic=dynamic,
    )
    for data, shape, dynamic in (
        (NEGATIVE, (2,), False),
        (NEGATIVE, (2,), True),
        (NEGATIVE, (3,), False),
        (NEGATIVE, (1,), False),
        (NEGATIVE, (2, 1), False),
        (NEGATIVE, (1, 2, 1), False),
        (NEGATIVE, (2, 2, 3), False),
        (NEGATIVE.astype(f16), (2,), False),
        (NEGATIVE[0, 0], (1,), False),
        (np.array([[-1, 2], [3, -4]], f32), (2,), False),
    )
] + [
    Case("PReLU-1", "slope as an input", opset1.prelu, [NEGATIVE, np.array([2, 3], f32)]),
]

ROWS = np.random.default_rng(0).normal(0, 3, (2, 3, 4))
SOFTMAX = [
    Case(
        op,
        f"axis {axis} {np.dtype(type).name}{' dynamic' if dynamic else ''}",
        lambda data, build=build, axis=axis: build(data, axis),
        [ROWS.astype(type)],
        dynamic=dynamic,
        rtol=1e-5 if type is f32 else 1e-2,
        atol=1e-6 if type is f32 else 1e-3,
    )
    for op, build, axes in (
        ("SoftMax-1", opset1.softmax, (0, 1, 2)),
        ("SoftMax-8", opset8.softmax, (0, 1, -1)),
        ("LogSoftmax-5", opset5.log_softmax, (0, 1, -1)),
    )
    for axis in axes
    for type, dynamic in ((f32, False), (f32, True), (f16, False), (bf16, False))
] + [
    Case("SoftMax-8", "large elements", lambda data: opset8.softmax(data, 0), [np.array([1000, 1000, -inf], f32)]),
    Case("LogSoftmax-5", "large elements", lambda data: opset5.log_softmax(data, 0), [np.array([1000, 999, 0], f32)]),
    Case("SoftMax-8", "nothing but -inf", lambda data: opset8.softmax(data, 0), [np.array([-inf, -inf], f32)]),
    Case(
        "SoftMax-1",
        "no axis",
        lambda data: opset1.softmax(data, 1),
        [Const(np.array([[1, 1], [2, 2]], f32))],
        left_out=["axis"],
        deviates=Departure("takes axis 0; the page has 1 for it", "axis is left out"),
        expected=[np.full((2, 2), 0.5, f32)],
    ),
    Case("SoftMax-8", "folded inf", lambda data: opset8.softmax(data, 0), [Const(np.array([inf, 1], f32))]),
    *(
        Case(
            op,
            title,
            make,
            [np.array([first, 1], f32)],
            deviates=Departure(
                "gives 0 for a finite element beside inf or NaN; the formula and the reference give NaN",
                "data has +infinity | data has nan",
            ),
            expected=[np.array([nan, nan], f32)],
        )
        for op, make in (
            ("SoftMax-1", lambda data: opset1.softmax(data, 0)),
            ("SoftMax-8", lambda data: opset8.softmax(data, 0)),
        )
        for title, first in (("inf", inf), ("nan", nan))
    ),
]

CASES = [*unary(), *INTEGERS, *NOT_A_NUMBER, *PARAMETERS, *PRELU, *SOFTMAX]

SPECIAL = np.array([nan, inf, -inf], f32)
DEPART = {
    "Exp-1": ("gives inf for NaN", "data has nan", [nan, inf, 0]),
    "Gelu-2": ("gives NaN for inf", "data has +infinity", [nan, inf, nan]),
    "Gelu-7 erf": ("gives NaN for inf", "approximation_mode = erf; data has +infinity", [nan, inf, nan]),
    "HSigmoid-5": ("gives 0 for NaN", "data has nan", [nan, 1, 0]),
    "ReLU-1": ("gives 0 for NaN", "data has nan", [nan, inf, 0]),
    "Clamp-1": ("gives min for NaN", "data has nan", [nan, 2.5, -0.75]),
}


def special(name, build):
    op, _, how = name.partition(" ")
    title = f"{how} nan and infinity".strip()
    if name not in DEPART:
        return Case(op, title, build, [SPECIAL])
    what, when, expected = DEPART[name]
    wide = WIDE if name.startswith("Gelu") else ""
    reason = Departure(f"{what}; the formula gives {'inf' if 'for inf' in what else 'NaN'}", when, wide)
    return Case(op, title, build, [SPECIAL], deviates=reason, expected=[np.array(expected, f32)])


CASES += [special(name, build) for name, build in UNARY.items()]
CASES += [
    Case(
        "Selu-1", "nan and infinity", opset1.selu, [SPECIAL, Const(np.array([1.67], f32)), Const(np.array([1.05], f32))]
    ),
    Case("Swish-4", "nan and infinity", opset4.swish, [SPECIAL]),
    Case("PReLU-1", "nan and infinity", opset1.prelu, [SPECIAL, Const(np.array([2], f32))]),
    Case(
        "HardSigmoid-1",
        "nan and infinity",
        opset1.hard_sigmoid,
        [SPECIAL, Const(np.array(0.25, f32)), Const(np.array(0.5, f32))],
        deviates=Departure("gives 1 for NaN; the formula gives NaN", "data has nan"),
        expected=[np.array([nan, 1, 0], f32)],
    ),
    Case(
        "HardSigmoid-1",
        "parameters as inputs",
        opset1.hard_sigmoid,
        [np.array([-1, 1], f32), np.array(0.25, f32), np.array(0.5, f32)],
        deviates=Departure(
            "refuses parameters that are no constants; the page has inputs",
            "alpha is not constant | beta is not constant",
        ),
        expected=[np.array([0.25, 0.75], f32)],
    ),
    Case(
        "Selu-1",
        "parameters as inputs",
        opset1.selu,
        [np.array([-1, 1], f32), np.array([2], f32), np.array([3], f32)],
        deviates=Departure(
            "refuses parameters that are no constants; the page has inputs",
            "alpha is not constant | lambda is not constant",
        ),
        expected=[np.array([6 * np.expm1(-1), 3], f32)],
    ),
    Case(
        "LogSoftmax-5",
        "inf",
        lambda data: opset5.log_softmax(data, 0),
        [np.array([inf, 1], f32)],
        deviates=Departure(
            "gives -inf for a finite element beside inf or NaN; the formula gives NaN", "x has +infinity | x has nan"
        ),
        expected=[np.array([nan, nan], f32)],
    ),
]


def pooled(build):
    """What `build` makes of the largest numbers of a convolution, four at a time."""

    def made(data, filters):
        convolved = opset1.convolution(data, filters, [1, 1], [0, 0], [0, 0], [1, 1])
        return build(opset1.max_pool(convolved, [2, 2], [0, 0], [0, 0], [2, 2]))

    return made


FALLING = -np.arange(1, 17, dtype=f32).reshape(1, 1, 4, 4) / 4
LARGEST = np.array([[[[-0.25, -0.75], [-2.25, -2.75]]]], f32)
CASES += [
    Case(
        op,
        "of the largest of a convolution",
        pooled(build),
        [FALLING, Const(np.ones((1, 1, 1, 1), f32))],
        deviates=Departure(
            "takes the largest behind it, as it is computed in one with the convolution, though it falls somewhere"
            "; it is done to the largest",
            "data is made by a maximum of windows; (these are of a convolution)",
        ),
        expected=[compute(LARGEST)],
    )
    for op, build, compute in (
        ("Abs-1", opset1.absolute, np.abs),
        ("Gelu-2", opset2.gelu, lambda x: x * ndtr(x)),
        ("Gelu-7", lambda data: opset7.gelu(data, "erf"), lambda x: x * ndtr(x)),
        ("HSwish-4", opset4.hswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
        ("Mish-4", opset4.mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
        ("PReLU-1", lambda data: opset1.prelu(data, opset1.constant(f32([-0.5]))), lambda x: x * -0.5),
        ("Swish-4", opset4.swish, lambda x: x / (1 + np.exp(-x))),
    )
]

test_agrees_with_openvino = conformance(CASES)
