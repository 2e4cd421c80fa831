"""Convolution ops, against OpenVINO."""

from dataclasses import replace
from functools import partial

import ml_dtypes
import numpy as np
import openvino as ov
from openvino import opset1, opset8

from conformance.harness import ANY_INTEGER, WIDE, Case, Const, Departure, conformance

random = np.random.default_rng(5)
bfloat16 = ml_dtypes.bfloat16
LOOSE = {"rtol": 1e-4, "atol": 1e-4}


def normal(*shape, dtype=np.float32):
    return random.standard_normal(shape).astype(dtype)


def window(rank, **attrs):
    ones, none = [1] * rank, [0] * rank
    return {"strides": ones, "pads_begin": none, "pads_end": none, "dilations": ones} | attrs


def forward(op, title, data, filters, dynamic=False, deviates=None, expected=None, **attrs):
    make = opset1.convolution if op == "Convolution-1" else opset1.group_convolution
    build = partial(make, **window(data.ndim - 2, **attrs))
    loose = {"rtol": 2e-2, "atol": 2e-2} if data.dtype.itemsize == 2 else LOOSE
    return Case(op, title, build, [data, Const(filters)], dynamic, deviates, expected, **loose)


def transposed(op, title, data, filters, sizes=None, dynamic=False, deviates=None, expected=None, **attrs):
    plain = op == "ConvolutionBackpropData-1"
    make = opset1.convolution_backprop_data if plain else opset1.group_convolution_backprop_data
    attrs = window(data.ndim - 2, **attrs)
    strides = attrs.pop("strides")

    def build(x, w, output_shape=None):
        return make(x, w, strides, output_shape, **attrs)

    inputs = [data, Const(filters)] if sizes is None else [data, Const(filters), sizes]
    return Case(op, title, build, inputs, dynamic, deviates, expected, **LOOSE)


IMAGE, FILTERS = normal(2, 4, 9, 8), normal(6, 4, 3, 2)
GROUPS = normal(2, 3, 2, 3, 2)
UNEVEN = {"strides": [2, 1], "dilations": [1, 2], "pads_begin": [1, 0], "pads_end": [0, 2]}
SCALES, TAPS = np.array([[[1, 10, 100]]], np.float32), np.array([[[1, 2, 3]]], np.float32)
CASES = [
    case
    for op, filters in (("Convolution-1", FILTERS), ("GroupConvolution-1", GROUPS))
    for case in (
        forward(op, "strides, dilations and pads", IMAGE, filters, **UNEVEN),
        forward(op, "valid", IMAGE, filters, strides=[2, 2], auto_pad="valid"),
        forward(op, "same_upper", IMAGE, filters, strides=[2, 1], auto_pad="same_upper"),
        forward(op, "same_lower, dilations", IMAGE, filters, dilations=[2, 1], auto_pad="same_lower"),
        forward(op, "dynamic", IMAGE, filters, dynamic=True, **UNEVEN),
        forward(op, "dynamic same_lower", IMAGE, filters, dynamic=True, strides=[2, 3], auto_pad="same_lower"),
        forward(op, "f16", IMAGE.astype(np.float16), filters.astype(np.float16), **UNEVEN),
        forward(op, "bf16", IMAGE.astype(bfloat16), filters.astype(bfloat16)),
    )
]
CASES += [
    forward("Convolution-1", "1D", normal(1, 3, 17), normal(2, 3, 4), strides=[3], pads_begin=[2], pads_end=[1]),
    forward("Convolution-1", "3D", normal(1, 3, 6, 5, 7), normal(2, 3, 2, 3, 2), strides=[1, 2, 2], pads_end=[1, 0, 1]),
    forward("Convolution-1", "1x1", normal(2, 16, 5, 5), normal(8, 16, 1, 1)),
    forward("Convolution-1", "1x1 with strides", normal(1, 16, 5, 5), normal(8, 16, 1, 1), strides=[2, 2]),
    forward(
        "GroupConvolution-1", "depthwise", normal(1, 8, 9, 9), normal(8, 1, 1, 3, 3), strides=[2, 2], pads_begin=[1, 1]
    ),
    forward("GroupConvolution-1", "depthwise, two features", normal(2, 3, 9), normal(3, 2, 1, 3), dilations=[2]),
    forward("GroupConvolution-1", "3D depthwise", normal(1, 3, 5, 6, 4), normal(3, 1, 1, 3, 2, 3)),
]
CASES += [
    Case(
        *("Convolution-1", "1x1 of absolute numbers, strides and pads"),
        lambda x, w: opset1.convolution(opset1.abs(x), w, **window(2, strides=[2, 2], pads_begin=[1, 1])),
        [-np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4), Const(np.ones((1, 1, 1, 1), np.float32))],
        deviates=Departure(
            "strides before it pads where an element-wise op comes before a kernel of one element; the page pads first",
            "axis 2 of filters = 1; strides > 1; pads_begin > 0; (data is made by an element-wise op)",
        ),
        expected=[np.float32([[[[0, 0, 0], [0, 6, 8], [0, 14, 16]]]])],
    )
]
BACK, BACK_GROUPS = normal(4, 3, 3, 2), normal(2, 2, 3, 3, 2)
CASES += [
    case
    for op, filters in (("ConvolutionBackpropData-1", BACK), ("GroupConvolutionBackpropData-1", BACK_GROUPS))
    for case in (
        transposed(op, "strides and pads", IMAGE, filters, strides=[2, 3], pads_begin=[1, 0], pads_end=[0, 1]),
        transposed(op, "output_padding", IMAGE, filters, strides=[2, 3], pads_end=[1, 1], output_padding=[1, 2]),
        transposed(op, "dilations", IMAGE, filters, strides=[1, 2], dilations=[2, 3], auto_pad="valid"),
        transposed(op, "same_upper without sizes", IMAGE, filters, strides=[2, 2], auto_pad="same_upper"),
        transposed(
            op, "sizes, same_upper", IMAGE, filters, Const(np.array([16, 13])), strides=[2, 2], auto_pad="same_upper"
        ),
        transposed(
            op, "sizes, same_lower", IMAGE, filters, Const(np.array([16, 13])), strides=[2, 2], auto_pad="same_lower"
        ),
        transposed(
            op, "larger sizes, valid", IMAGE, filters, Const(np.array([20, 18])), strides=[2, 2], auto_pad="valid"
        ),
        transposed(op, "dynamic", IMAGE, filters, dynamic=True, strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1]),
    )
]
CASES += [
    transposed("ConvolutionBackpropData-1", "1D", normal(1, 3, 7), normal(3, 2, 4), strides=[3], pads_begin=[2]),
    transposed("ConvolutionBackpropData-1", "3D", normal(1, 3, 3, 4, 5), normal(3, 2, 2, 3, 2), strides=[1, 2, 2]),
    transposed(
        *("ConvolutionBackpropData-1", "sizes, explicit", SCALES, TAPS, Const(np.array([5]))),
        strides=[2],
        deviates=Departure(
            "crops by the attributes, here at the end only; the page distributes the padding",
            "output_shape is connected; auto_pad = explicit",
        ),
        expected=[np.array([[[2, 13, 20, 130, 200]]], np.float32)],
    ),
]

CASES += [
    transposed(
        *(op, "sizes as input", SCALES, filters, np.array([4])),
        strides=[2],
        auto_pad="same_upper",
        deviates=Departure(
            "refuses to allocate the result; the page has output_shape as an input",
            "output_shape is connected; output_shape is not constant",
        ),
        expected=[np.array([[[13, 20, 130, 200]]], np.float32)],
    )
    for op, filters in (("ConvolutionBackpropData-1", TAPS), ("GroupConvolutionBackpropData-1", TAPS[None]))
]
UNKNOWN_FILTERS = Departure("refuses filters of unknown sizes; the page asks for no constant", "filters is dynamic")
"""Of any axis: also where the others, and those of data, are known."""

CASES += [
    Case(
        *(op, "filters of unknown sizes", partial(make, **window(1)), [SCALES, filters]),
        dynamic=True,
        deviates=UNKNOWN_FILTERS,
        expected=[np.array([[result]], np.float32)],
    )
    for op, make, filters, result in (
        ("Convolution-1", opset1.convolution, TAPS, [321]),
        ("GroupConvolution-1", opset1.group_convolution, TAPS[None], [321]),
        ("ConvolutionBackpropData-1", opset1.convolution_backprop_data, TAPS, [1, 12, 123, 230, 300]),
        ("GroupConvolutionBackpropData-1", opset1.group_convolution_backprop_data, TAPS[None], [1, 12, 123, 230, 300]),
    )
]


def deformable(op, title, data, offsets, filters, *mask, dynamic=False, **attrs):
    make = opset1.deformable_convolution if op == "DeformableConvolution-1" else opset8.deformable_convolution
    attrs = window(2, **attrs)

    def build(x, moves, w, m=None):
        return make(x, moves, w, **attrs) if m is None else make(x, moves, w, mask=m, **attrs)

    return Case(op, title, build, [data, offsets, Const(filters), *mask], dynamic, **LOOSE)


UNIT = np.ones((1, 1, 2, 2), np.float32)
MOVES = normal(2, 12, 7, 7)
CASES += [
    case
    for op in ("DeformableConvolution-1", "DeformableConvolution-8")
    for case in (
        deformable(op, "plain", IMAGE, MOVES, FILTERS),
        deformable(op, "far", IMAGE, MOVES * 5, FILTERS),
        deformable(op, "strides and pads", IMAGE, normal(2, 12, 4, 8), FILTERS, strides=[2, 1], pads_begin=[1, 1]),
        deformable(op, "groups", IMAGE, normal(2, 24, 7, 7), normal(4, 2, 3, 2), group=2, deformable_group=2),
        deformable(op, "deformable groups", IMAGE, normal(2, 24, 7, 7), FILTERS, deformable_group=2),
        deformable(op, "same_upper", IMAGE, normal(2, 12, 9, 8), FILTERS, auto_pad="same_upper"),
        deformable(op, "dynamic", IMAGE, MOVES, FILTERS, dynamic=True),
    )
]
CASES += [
    replace(
        deformable(op, f"no {name}", UNIT, np.zeros((1, 2, 2, 2), np.float32), UNIT[..., :1, :1]),
        deviates=Departure(f"refuses a file without {name}; the page has 1 for it", f"{name} is left out"),
        expected=[UNIT],
        left_out=[name],
    )
    for op in ("DeformableConvolution-1", "DeformableConvolution-8")
    for name in ("group", "deformable_group")
]
MASK = np.abs(normal(2, 6, 7, 7))
CASES += [
    deformable("DeformableConvolution-8", "mask", IMAGE, MOVES, FILTERS, MASK),
    deformable("DeformableConvolution-8", "pad", IMAGE, MOVES * 3, FILTERS, MASK, bilinear_interpolation_pad=True),
    Case(
        "DeformableConvolution-8",
        "two that go beyond the border in two ways",
        lambda x, moves: [
            opset8.deformable_convolution(
                x, moves, UNIT[..., :1, :1], **window(2), bilinear_interpolation_pad=pad
            ).output(0)
            for pad in (True, False)
        ],
        [np.float32([[[[2, 4], [6, 8]]]]), np.full((1, 2, 2, 2), -0.5, np.float32)],
        deviates=Departure(
            "computes a layer as another one that differs in bilinear_interpolation_pad alone; each has its own",
            "bilinear_interpolation_pad is another one elsewhere",
        ),
        expected=[np.float32([[[[0.5, 1.5], [2, 5]]]]), np.float32([[[[0, 0], [0, 5]]]])],
    ),
]


def binary(title, data, bits, pad_value=0.0, dynamic=False, deviates=None, expected=None, **attrs):
    def build(x):
        filters = ov.op.Constant(ov.Type.u1, ov.Shape(list(bits.shape)), bits.ravel().tolist())
        return opset1.binary_convolution(x, filters, mode="xnor-popcount", pad_value=pad_value, **window(2, **attrs))

    return Case("BinaryConvolution-1", title, build, [data], dynamic, deviates, expected)


SIGNS = random.integers(0, 2, (2, 8, 5, 6)).astype(np.float32)
BITS = random.integers(0, 2, (8, 8, 3, 3)).astype(np.uint8)
CASES += [
    binary("plain", SIGNS, BITS),
    binary("strides and dilations", SIGNS, BITS, strides=[1, 2], dilations=[2, 1]),
    binary("pads of -1", SIGNS, BITS, -1.0, pads_begin=[1, 1], pads_end=[1, 0]),
    binary("pads of 0", SIGNS, BITS, pads_begin=[1, 1], pads_end=[0, 1]),
    binary("pads of 1", SIGNS, BITS, 1.0, pads_begin=[1, 1], pads_end=[1, 1]),
    binary(
        *("one channel", np.float32([[[[1, 0]]]]), np.ones((8, 1, 1, 1), np.uint8)),
        deviates=Departure(
            "takes other bits for those of a filter where C_IN is no multiple of 8; each filter has its own",
            "axis 1 of data < 8",
        ),
        expected=[np.float32([[[[1, -1]]] * 8])],
    ),
    binary(
        *("i32", np.ones((1, 8, 1, 1), np.int32), np.ones((8, 8, 1, 1), np.uint8)),
        deviates=Departure("refuses integers; the page has any numeric type", f"data is {ANY_INTEGER}"),
        expected=[np.full((1, 8, 1, 1), 8, np.int32)],
    ),
]

PAIR, PULSE = np.float32([[[1, 2]]]), np.float32([[[1, 10, 100]]])
CASES += [
    Case(
        op,
        f"output_shape, {padding}",
        lambda data, taps, make=make, padding=padding: make(
            *(data, taps, [2], opset1.constant(np.array([3])), [0], [0], [1], padding)
        ),
        [PAIR, Const(PULSE if make is opset1.convolution_backprop_data else PULSE[None])],
        deviates=Departure(
            "crops at the end only; by the page both ends are cropped alike",
            f"output_shape is connected; auto_pad = {padding}",
        ),
        expected=[np.float32([[[10, 102, 20]]])],
    )
    for op, make, padding in (
        ("ConvolutionBackpropData-1", opset1.convolution_backprop_data, "valid"),
        ("GroupConvolutionBackpropData-1", opset1.group_convolution_backprop_data, "valid"),
        ("GroupConvolutionBackpropData-1", opset1.group_convolution_backprop_data, "explicit"),
    )
]

CASES += [
    Case(
        "GroupConvolutionBackpropData-1",
        "one group",
        lambda data, taps: opset1.group_convolution_backprop_data(
            data, taps, strides=[1], pads_begin=[0], pads_end=[0], dilations=[1]
        ),
        [np.float32([[[1, 2], [3, 4]]]), Const(np.ones((1, 2, 1, 1), np.float32))],
        deviates=Departure(
            "refuses a single group of several channels; the page has any number of groups",
            "axis 0 of filters = 1; axis 1 of filters > 1 | axis 2 of filters > 1",
        ),
        expected=[np.float32([[[4, 6]]])],
    ),
]
STEEP = np.array([[[100, 100, 50]]], np.uint8)
CASES += [
    Case(
        op,
        "u8 beyond the type",
        lambda data, filters, make=make: make(data, filters, strides=[1], pads_begin=[0], pads_end=[0], dilations=[1]),
        [STEEP, Const(np.array([2, 1], np.uint8).reshape((1,) * rank + (2,)))],
        deviates=Departure("saturates; the reference wraps around", "data is i8, u8; result overflows"),
        expected=[np.uint8([[expected]])],
    )
    for op, make, rank, expected in (
        ("Convolution-1", opset1.convolution, 2, [44, 250]),
        ("GroupConvolution-1", opset1.group_convolution, 3, [44, 250]),
        ("ConvolutionBackpropData-1", opset1.convolution_backprop_data, 2, [200, 44, 200, 50]),
        ("GroupConvolutionBackpropData-1", opset1.group_convolution_backprop_data, 3, [200, 44, 200, 50]),
    )
]

COLUMNS = np.arange(18, dtype=np.float32).reshape(1, 1, 6, 3)
CASES += [
    forward(
        *(op, "one column", COLUMNS, np.ones(shape, np.float32)),
        strides=[1, 2],
        deviates=Departure(
            "adds up other elements where one column comes of one channel; on the page the window lies in that place",
            f"data is not i8; {channels}; rank of data = 4; axis 2 of result > 1; axis 3 of result = 1; "
            "strides = 1; strides > 1; "
            "(a stride of 1 down and of more across)",
            WIDE,
        ),
        expected=[np.float32([[[[36], [63], [90], [117]]] * (len(shape) - 3)])],
    )
    for op, shape, channels in (
        ("Convolution-1", (1, 1, 3, 3), "axis 1 of filters = 1; axis 3 of filters > 1"),
        (
            *("GroupConvolution-1", (1, 2, 1, 3, 3)),
            "axis 0 of filters = 1; axis 1 of filters > 1; axis 2 of filters = 1; axis 4 of filters > 1",
        ),
    )
]
CASES += [
    forward(
        "Convolution-1", "one column, both strides", COLUMNS, np.ones((1, 1, 3, 3), np.float32), True, strides=[2, 2]
    ),
]

test_agrees_with_openvino = conformance(CASES)
