"""Pooling ops, against OpenVINO."""

from dataclasses import replace
from functools import partial

import ml_dtypes
import numpy as np
from openvino import opset1, opset8, opset14, opset16
from openvino.utils.node_factory import NodeFactory

from conformance.harness import NARROW, WIDE, Case, Const, Departure, conformance, with_attribute

random = np.random.default_rng(6)
LINE = np.array([[[1, 2, 3, 4, 5, 6, 7]]], np.float32)


def normal(*shape, dtype=np.float32):
    return (random.standard_normal(shape) * 10).astype(dtype)


def pool(op, title, data, kernel, dynamic=False, deviates=None, expected=None, rtol=1e-5, *, crashes=False, **attrs):
    rank = data.ndim - 2
    attrs = {"strides": [1] * rank, "pads_begin": [0] * rank, "pads_end": [0] * rank} | attrs
    if op in ("MaxPool-8", "MaxPool-14"):
        attrs.setdefault("dilations", [1] * rank)
    if op.startswith("Avg"):
        attrs.setdefault("exclude_pad", True)
    make = {
        "MaxPool-1": opset1.max_pool,
        "MaxPool-8": opset8.max_pool,
        "MaxPool-14": opset14.max_pool,
        "AvgPool-1": opset1.avg_pool,
        "AvgPool-14": opset14.avg_pool,
        "AvgPool-16": opset16.avg_pool,
    }[op]
    build = partial(make, kernel_shape=kernel, **attrs)
    atol = 1e-5 if rtol == 1e-5 else 0.02
    return Case(op, title, build, [data], dynamic, deviates, expected, rtol, atol, crashes=crashes)


IMAGE, CUBE = normal(2, 3, 9, 8), normal(2, 2, 5, 6, 7)
TIES = random.integers(0, 3, (2, 3, 9, 8)).astype(np.float32)
PADS = {"pads_begin": [1, 0], "pads_end": [1, 2]}
CASES = [
    case
    for op in ("MaxPool-1", "MaxPool-8", "MaxPool-14", "AvgPool-1", "AvgPool-14")
    for case in (
        pool(op, "strides and pads", IMAGE, [3, 3], strides=[2, 1], **PADS),
        pool(op, "ceil", IMAGE, [3, 3], strides=[2, 3], rounding_type="ceil", **PADS),
        pool(op, "ceil without pads", IMAGE, [3, 2], strides=[2, 3], rounding_type="ceil"),
        pool(op, "valid", IMAGE, [2, 3], strides=[2, 2], auto_pad="valid"),
        pool(op, "valid ceil", IMAGE, [2, 3], strides=[2, 2], auto_pad="valid", rounding_type="ceil"),
        pool(op, "same_upper", IMAGE, [4, 3], strides=[2, 1], auto_pad="same_upper"),
        pool(op, "same_lower", IMAGE, [2, 3], strides=[1, 2], auto_pad="same_lower"),
        pool(op, "same_upper, strides wider than the kernel", LINE, [1], strides=[2], auto_pad="same_upper"),
        pool(op, "dynamic", IMAGE, [3, 3], strides=[2, 2], dynamic=True, **PADS),
        pool(op, "1D", LINE, [3], strides=[2], pads_begin=[1]),
        pool(op, "3D", CUBE, [2, 3, 2], strides=[1, 2, 2], pads_begin=[1, 0, 1], pads_end=[0, 1, 1]),
        pool(op, "f16", IMAGE.astype(np.float16), [3, 3], rtol=2e-2, **PADS),
    )
]
CASES += [
    case
    for op in ("MaxPool-8", "MaxPool-14")
    for case in (
        pool(op, "dilations", IMAGE, [3, 2], dilations=[2, 3], **PADS),
        pool(op, "3D dilations", CUBE, [2, 2, 2], dilations=[2, 1, 3], axis=-3),
        pool(op, "ties", TIES, [3, 3], **PADS),
        pool(op, "axis 1", IMAGE, [2, 2], axis=1),
        pool(op, "axis 2", IMAGE, [2, 2], axis=2),
        pool(op, "last axis", IMAGE, [2, 2], axis=-1),
        pool(op, "i32 indices", IMAGE, [2, 2], index_element_type="i32"),
        pool(
            op,
            "ceil with a window of padding",
            LINE,
            [3],
            strides=[2],
            pads_begin=[1],
            pads_end=[2],
            rounding_type="ceil",
        ),
        pool(op, "infinity and nan", np.array([[[-np.inf, -np.inf, -np.inf, np.nan, 1, np.nan, 2]]], np.float32), [2]),
    )
]
CASES += [
    pool(
        op,
        f"ceil_torch, strides {stride}, pads {pads}",
        LINE,
        [3],
        strides=[stride],
        rounding_type="ceil_torch",
        pads_begin=[pads[0]],
        pads_end=[pads[1]],
    )
    for op in ("MaxPool-14", "AvgPool-14")
    for stride in (2, 3)
    for pads in ((0, 0), (1, 1), (1, 2), (0, 2))
]
CASES += [
    pool(
        op,
        f"{rounding}, pads counted",
        IMAGE,
        [3, 3],
        strides=[2, 3],
        rounding_type=rounding,
        exclude_pad=False,
        **PADS,
    )
    for op in ("AvgPool-1", "AvgPool-14")
    for rounding in ("floor", "ceil")
]
CASES += [
    pool("AvgPool-1", "pads counted, without pads", LINE, [3], strides=[3], rounding_type="ceil", exclude_pad=False),
    pool("AvgPool-1", "pads counted, same_lower", LINE, [4], strides=[2], auto_pad="same_lower", exclude_pad=False),
    pool("MaxPool-1", "i32", normal(1, 2, 5, 5, dtype=np.int32), [2, 2]),
    pool("MaxPool-1", "i64", normal(1, 2, 5, 5, dtype=np.int64), [2, 2]),
    pool("MaxPool-8", "i8", normal(1, 2, 5, 5, dtype=np.int8), [2, 2]),
    pool("MaxPool-8", "u8", np.abs(normal(1, 2, 5, 5)).astype(np.uint8), [2, 2], pads_begin=[1, 1]),
    pool("AvgPool-1", "i8", normal(1, 2, 5, 5, dtype=np.int8), [3, 3]),
    pool("AvgPool-1", "u8", np.abs(normal(1, 2, 5, 5)).astype(np.uint8), [3, 3], pads_begin=[1, 1]),
]


def on_a_grid(data):
    """Whole numbers from -1 to 14, of which 1 is the code of 0."""
    limits = [opset1.constant(np.float32(limit)) for limit in (-1, 14, -1, 14)]
    return opset1.fake_quantize(data, *limits, levels=16)


CASES += [
    Case(
        op,
        "of a FakeQuantize in which 0 is another code, pads counted",
        lambda data, pool=make: pool(on_a_grid(data), [1, 1], [0, 1], [0, 0], [1, 2], False),
        [np.float32([[[[0, 2, 6]]]])],
        deviates=Departure(
            "pads with the code 0 of a FakeQuantize before it; by the page padding is 0",
            "data is made by a quantization; exclude_pad = false; (0 is another code, and there is padding)",
        ),
        expected=[np.float32([[[[0, 1, 4]]]])],
    )
    for op, make in (("AvgPool-1", opset1.avg_pool), ("AvgPool-14", opset14.avg_pool))
]


def without_dilations(op, more):
    type, _, version = op.partition("-")
    attrs = {"kernel": [3], "strides": [2], "pads_begin": [0], "pads_end": [0]} | more
    return lambda data: NodeFactory(f"opset{version}").create(type, [data.output(0)], attrs)


CASES += [
    pool("AvgPool-16", title, IMAGE, kernel, dynamic, dilations=dilations, **attrs)
    for dynamic in (False, True)
    for title, kernel, dilations, attrs in (
        (f"{title}, sizes unknown" if dynamic else title, *rest)
        for title, *rest in (
            ("strides", [3, 3], [1, 1], {"strides": [2, 1], "rounding_type": "ceil"}),
            ("dilations and pads", [3, 2], [2, 3], PADS),
            ("dilations and pads counted", [3, 2], [2, 3], PADS | {"strides": [2, 2], "exclude_pad": False}),
            ("dilations, same_upper", [3, 2], [2, 1], {"strides": [1, 2], "auto_pad": "same_upper"}),
        )
    )
]
CASES += [
    pool("AvgPool-16", "3D dilations", CUBE, [2, 2, 2], dilations=[2, 1, 3]),
    pool("AvgPool-16", "f16", IMAGE.astype(np.float16), [3, 2], rtol=2e-2, dilations=[2, 1]),
    *(
        pool(
            *("AvgPool-16", f"ceil_torch, strides {stride}, pads {pads}", LINE, [3]),
            dilations=[1],
            strides=[stride],
            rounding_type="ceil_torch",
            pads_begin=[pads[0]],
            pads_end=[pads[1]],
        )
        for stride in (2, 3)
        for pads in ((0, 0), (1, 1), (0, 2))
    ),
    *(
        Case(
            op,
            "no dilations",
            without_dilations(op, more),
            [LINE],
            deviates=Departure(
                f"{does} without dilations; the page has 1 for them",
                "dilations is left out; rank of data = 3" if "line" in does else "dilations is left out",
            ),
            expected=expected,
            crashes=does == "crashes",
        )
        for op, more, does, *expected in (
            ("AvgPool-16", {"exclude-pad": True}, "crashes", np.float32([[[2, 4, 6]]])),
            ("MaxPool-8", {}, "refuses a line", np.float32([[[3, 5, 7]]]), np.array([[[2, 4, 6]]])),
            ("MaxPool-14", {}, "refuses a line", np.float32([[[3, 5, 7]]]), np.array([[[2, 4, 6]]])),
        )
    ),
    *(
        Case(
            op,
            "no dilations, indices",
            without_dilations(op, {"kernel": [1, 1], "strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0]}),
            [np.float32([[[[1, 2], [4, 3]]]])],
            deviates=Departure(
                "refuses to give indices without dilations; the page has 1 for them",
                "dilations is left out; indices is handed out",
            ),
            expected=[np.float32([[[[1]]]]), np.array([[[[0]]]])],
        )
        for op in ("MaxPool-8", "MaxPool-14")
    ),
    *(
        pool(
            *(op, "a window of padding", LINE[..., :3], [2]),
            **{"strides": [2], "pads_begin": [1], "pads_end": [1], "rounding_type": "ceil"} | more,
            deviates=Departure("divides 0 by 0; a window without elements gives 0", "rounding_type = ceil"),
            expected=[np.float32([[[1, 2.5, 0]]])],
        )
        for op, more in (("AvgPool-1", {}), ("AvgPool-14", {}), ("AvgPool-16", {"dilations": [1]}))
    ),
    *(
        replace(
            pool(*(op, "pads as long as the kernel", LINE[..., :4], [2]), strides=[3], pads_end=[1], **more),
            deviates=Departure(
                "refuses pads as long as the kernel that do not count; each window has an element",
                "; ".join(["exclude_pad = true; auto_pad = explicit; pads_end >= kernel", *clauses]),
            ),
            expected=[np.stack([LINE[..., :2].mean(-1), LINE[..., 3]], -1)],
            edit=with_attribute("pads_end", "2"),
        )
        for op, more, *clauses in (
            ("AvgPool-1", {}),
            ("AvgPool-14", {}),
            ("AvgPool-16", {"dilations": [1]}, "dilations is left out | dilations = 1"),
        )
    ),
]

CASES += [
    pool(
        *(op, "dynamic same_upper", LINE, [3], True),
        strides=[2],
        auto_pad="same_upper",
        deviates=Departure(
            "does not pad where the size is dynamic; the page pads by auto_pad",
            "auto_pad = same_upper; data is dynamic from axis 2",
        ),
        expected=[np.array([[[2, 4, 6, 7]]], np.float32), np.array([[[1, 3, 5, 6]]])],
    )
    for op in ("MaxPool-8", "MaxPool-14")
]
CASES += [
    pool("AvgPool-14", "dynamic same_upper", LINE, [3], True, strides=[2], auto_pad="same_upper"),
    pool("MaxPool-1", "dynamic same_upper", LINE, [3], True, strides=[2], auto_pad="same_upper"),
    pool(
        *("AvgPool-1", "i32", np.array([[[1, 2, -5, -7]]], np.int32), [2]),
        deviates=Departure(
            "rounds to the nearest; the reference rounds towards zero",
            "data is i16, i32, i64, u16, u32, u64; result is rounded",
            WIDE,
        ),
        expected=[np.array([[[1, -1, -6]]], np.int32)],
    ),
    pool(
        *("AvgPool-1", "i32 in narrow registers", np.array([[[1, 2, -5, -7]]], np.int32), [2]),
        deviates=Departure("refuses i32; the page has any type", "data is i32", NARROW),
        expected=[np.array([[[1, -1, -6]]], np.int32)],
    ),
]


CASES += [
    pool(
        *(op, "an empty batch", np.zeros((0, 3, 4, 5), np.float32), [2, 2], True),
        deviates=Departure(
            "refuses data without images or channels; the page pools each of them",
            "axis 0 of data = 0 | axis 1 of data = 0",
        ),
        expected=[np.zeros((0, 3, 3, 4), type) for type in types],
        **({"dilations": [1, 1]} if op == "AvgPool-16" else {}),
    )
    for op, types in (
        *((op, [np.float32]) for op in ("AvgPool-1", "AvgPool-14", "AvgPool-16", "MaxPool-1")),
        *((op, [np.float32, np.int64]) for op in ("MaxPool-8", "MaxPool-14")),
    )
]


def adaptive(op, title, data, sizes, dynamic=False, rtol=1e-5, **attrs):
    make = partial(opset8.adaptive_avg_pool) if op == "AdaptiveAvgPool-8" else opset8.adaptive_max_pool
    inputs = [data, sizes if isinstance(sizes, np.ndarray) else Const(np.array(sizes))]
    return Case(op, title, partial(make, **attrs), inputs, dynamic, rtol=rtol, atol=1e-5 if rtol == 1e-5 else 0.02)


CASES += [
    case
    for op in ("AdaptiveAvgPool-8", "AdaptiveMaxPool-8")
    for i32 in ({"index_element_type": "i32"} if op == "AdaptiveMaxPool-8" else {},)
    for case in (
        adaptive(op, "1D", LINE, [3], **i32),
        adaptive(op, "2D", IMAGE, [4, 3], **i32),
        adaptive(op, "3D", CUBE, [2, 4, 3], **i32),
        adaptive(op, "more windows than elements", IMAGE, [12, 8], **i32),
        adaptive(op, "global", IMAGE, [1, 1], **i32),
        adaptive(op, "ties", TIES, [2, 3], **i32),
        adaptive(op, "f16", IMAGE.astype(np.float16), [4, 3], rtol=2e-2, **i32),
        adaptive(op, "dynamic", IMAGE, np.array([4, 3]), dynamic=True, **i32),
    )
]

CASES += [
    case
    for op in ("MaxPool-8", "MaxPool-14")
    for case in (
        pool(
            *(op, "dynamic same_lower", LINE, [2], True),
            strides=[2],
            auto_pad="same_lower",
            deviates=Departure(
                "pads at the end where the size is dynamic; the page pads at the beginning",
                "auto_pad = same_lower; data is dynamic from axis 2",
            ),
            expected=[np.array([[[1, 3, 5, 7]]], np.float32), np.array([[[0, 2, 4, 6]]])],
        ),
        pool(
            *(op, "bf16", LINE.astype(ml_dtypes.bfloat16), [3]),
            strides=[2],
            deviates=Departure("refuses bf16; the page has any type", "data is bf16", WIDE),
            expected=[np.array([[[3, 5, 7]]], ml_dtypes.bfloat16), np.array([[[2, 4, 6]]])],
        ),
        pool(
            *(op, "the lowest number", np.array([[[7, 0, 0]]], np.uint8), [2]),
            deviates=Departure(
                "gives the index of the channel's first element where a window has nothing above the lowest number; "
                "by the page it is that of the element",
                "indices is read; data has the lowest number of its type; result has the lowest number of its type",
            ),
            expected=[np.array([[[7, 0]]], np.uint8), np.array([[[0, 1]]])],
        ),
    )
]
CASES += [
    Case(
        "AdaptiveMaxPool-8",
        "i64 indices",
        opset8.adaptive_max_pool,
        [LINE, Const(np.array([3]))],
        deviates=Departure("refuses indices of i64; on the page they are the default", "index_element_type = i64"),
        expected=[np.array([[[3, 5, 7]]], np.float32), np.array([[[2, 4, 6]]])],
    )
]

WHOLE = np.array([[[1, 2, -5, -7]]], np.int32)
ROUNDED = "rounds to the nearest; the reference rounds towards zero"
CASES += [
    case
    for op, dilations in (("AvgPool-14", {}), ("AvgPool-16", {"dilations": [1]}))
    for case in (
        pool(
            *(op, "i32", WHOLE, [2]),
            deviates=Departure(ROUNDED, "data is i16, i32, i64, u16, u32, u64; result is rounded", WIDE),
            expected=[np.array([[[1, -1, -6]]], np.int32)],
            **dilations,
        ),
        pool(
            *(op, "i32 in narrow registers", WHOLE, [2]),
            deviates=Departure("refuses i32; the page has any type", "data is i32", NARROW),
            expected=[np.array([[[1, -1, -6]]], np.int32)],
            **dilations,
        ),
    )
]
CASES += [
    pool(
        *("AvgPool-16", "i32, dilated", WHOLE, [2]),
        dilations=[2],
        deviates=Departure(
            "refuses dilations of integers of more than 8 bits; the page has any type",
            "data is i16, i32, i64, u16, u32, u64; dilations > 1",
        ),
        expected=[np.array([[[-2, -2]]], np.int32)],
    )
]
CASES += [
    pool(
        *(op, "no images", np.zeros((0, 2, 4, 4), np.float32), [2, 2]),
        dynamic=True,
        deviates=Departure(
            "refuses data without images or channels; the page has any sizes",
            "axis 0 of data = 0 | axis 1 of data = 0",
        ),
        expected=[np.zeros((0, 2, 3, 3), type) for type in types],
        **({"dilations": [1, 1]} if op == "AvgPool-16" else {}),
    )
    for op, types in (
        *((op, (np.float32,)) for op in ("MaxPool-1", "AvgPool-1", "AvgPool-14", "AvgPool-16")),
        *((op, (np.float32, np.int64)) for op in ("MaxPool-8", "MaxPool-14")),
    )
]

test_agrees_with_openvino = conformance(CASES)
