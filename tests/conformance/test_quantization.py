"""Quantization ops, against OpenVINO."""

from functools import partial

import numpy as np
from openvino import opset1, opset13

from conformance.harness import Case, Const, Departure, conformance

random = np.random.default_rng(8)
DATA = (random.standard_normal((2, 3, 4, 5)) * 3).astype(np.float32)
TIES = np.array([-1, 0, 0.5, 1.5, 2.5, 3, 3.5, 4, 5], np.float32)


def fake_quantize(title, data, levels, *limits, dynamic=False, rtol=1e-5, auto_broadcast="NUMPY", **rest):
    inputs = [Const(np.asarray(limit, data.dtype)) for limit in limits]
    build = partial(opset1.fake_quantize, levels=levels, auto_broadcast=auto_broadcast)
    return Case("FakeQuantize-1", title, build, [data, *inputs], dynamic, rtol=rtol, **rest)


CONSTANT = "input_low, input_high, output_low, output_high are constant"
CHANNELS = np.arange(1, 4).reshape(1, 3, 1, 1)
CASES = [
    fake_quantize("256 levels", DATA, 256, -2.0, 2.0, -1.0, 3.0),
    fake_quantize("per channel", DATA, 16, -CHANNELS, CHANNELS, 0.0, 1.0),
    fake_quantize("per channel out", DATA, 16, -2.0, 2.0, -CHANNELS, CHANNELS * 2),
    fake_quantize("two levels", DATA, 2, 0.0, 0.2, -1.0, 1.0),
    fake_quantize("ties to even", TIES, 5, 0.0, 4.0, 0.0, 4.0),
    fake_quantize("dynamic", DATA, 16, -CHANNELS, CHANNELS, 0.0, 1.0, dynamic=True),
    fake_quantize("rank 1 limits", DATA, 255, [-2.0], [2.0], [-2.0], [2.0]),
    fake_quantize("last axis", DATA, 255, -np.arange(1, 6.0), np.arange(1, 6.0), [-2.0], [2.0]),
    fake_quantize("f16", DATA.astype(np.float16), 16, -2.0, 2.0, -1.0, 3.0, rtol=2e-3),
    fake_quantize(
        *("equal limits", np.array([0, 1, 2], np.float32), 5, 1.0, 1.0, -1.0, 3.0),
        deviates=Departure(
            "gives NaN, as it divides by 0; on the page only comparisons decide where the limits are equal",
            "input_low = input_high",
        ),
        expected=[np.array([-1, -1, 3], np.float32)],
    ),
    fake_quantize(
        *("inverted limits", np.array([[[[-2, -1, 0, 1, 2, 3]]]], np.float32), 5, 2.0, -2.0, -1.0, 3.0),
        deviates=Departure(
            "clips to an empty interval; the page compares with the smaller and the larger limit",
            "input_low > input_high",
        ),
        expected=[np.array([[[[-1, 2, 1, 0, -1, 3]]]], np.float32)],
    ),
    fake_quantize(
        *("nan", np.array([1, np.nan], np.float32), 5, 0.0, 4.0, -1.0, 3.0),
        deviates=Departure("gives output_low for NaN; by the formula NaN stays NaN", "X has nan"),
        expected=[np.array([0, np.nan], np.float32)],
    ),
]

CODES = np.array([0, 7, 9, 10, 15], np.float32)
LINES = np.array([[[0, 1, 2, 3, 4]], [[0, 1, 2, 3, 4]]], np.float32)


def turned(data, *limits):
    """A FakeQuantize of 255 levels that is transposed."""
    return opset1.transpose(opset1.fake_quantize(data, *limits, levels=255), opset1.constant(np.array([1, 0])))


def unit(value):
    return opset1.constant(np.float32(value))


CASES += [
    fake_quantize(
        *("output limits along different axes", np.array([[0, 5, 15], [0, 5, 15]], np.float32), 16),
        *(0.0, 15.0, 0.0, [15.0, 30.0, 45.0]),
        deviates=Departure(
            "takes limits of the output for those of other elements, with 15, 16, 255 or 256 levels; "
            "on the page each limit is broadcast by itself",
            f"levels = 15, 16, 255, 256; output_low varies along other axes than output_high; {CONSTANT}",
        ),
        expected=[np.array([[0, 10, 45], [0, 10, 45]], np.float32)],
    ),
    fake_quantize(
        *("0 next to a level", np.array([0, 64, 128, 192, 255], np.float32), 256, 0.0, 255.0, -128.0625, 126.9375),
        deviates=Departure(
            "moves the levels by up to an eighth of a step, so that 0 is one of them; on the page the limits are exact",
            f"levels = 15, 16, 255, 256; 0 is almost a level; {CONSTANT}",
        ),
        expected=[np.array([-128.0625, -64.0625, -0.0625, 63.9375, 126.9375], np.float32)],
    ),
    fake_quantize(
        *("one output limit for each column, 17 levels", np.array([[0, 4, 16], [0, 4, 16]], np.float32), 17),
        *(0.0, 16.0, 0.0, [16.0, 32.0, 48.0]),
        dynamic=True,
    ),
    Case(
        "FakeQuantize-1",
        "of 255 levels, transposed",
        turned,
        [np.array([[0, 63, 127, 254]], np.float32), *map(Const, np.float32([0, 254, 0, 254]))],
        deviates=Departure(
            "takes the nearest of 256 levels for each of 255, where they are not symmetric, or of 15; "
            "the page has as many levels as it says",
            f"levels = 15, 255; {CONSTANT}; levels = 15 | sum of output_low + sum of output_high != 0; "
            "result is not handed out; (it is read by what is computed in codes, as products and transposes are)",
        ),
        expected=[np.array([[0], [63], [127], [254]], np.float32)],
    ),
    Case(
        "FakeQuantize-1",
        "of 255 symmetric levels, transposed",
        turned,
        [np.array([[-127, -63, 0.25, 127]], np.float32), *map(Const, np.float32([-127, 127, -127, 127]))],
        dynamic=True,
    ),
    Case(
        "FakeQuantize-1",
        "of a FakeQuantize",
        lambda data: opset1.fake_quantize(
            opset1.fake_quantize(data, *map(unit, (0, 15, 0, 15)), levels=16), *map(unit, (0, 15.8, 0, 15)), levels=16
        ),
        [CODES],
        deviates=Departure(
            "keeps the codes of another FakeQuantize; by the page each of the two rounds to its own levels",
            f"levels = 15, 16, 255, 256; {CONSTANT}; X is made by the same op; "
            "(that has as many levels, and output limits less than a step from the input limits here)",
        ),
        expected=[np.array([0, 7, 9, 9, 14], np.float32)],
    ),
    Case(
        "FakeQuantize-1",
        "of a FakeQuantize with other limits",
        lambda data: opset1.fake_quantize(
            opset1.fake_quantize(data, *map(unit, (0, 15, 0, 15)), levels=16), *map(unit, (0, 18, 0, 15)), levels=16
        ),
        [CODES],
    ),
    Case(
        "FakeQuantize-1",
        "of 65536 levels",
        lambda data, *limits: opset1.fake_quantize(opset1.negative(data), *limits, levels=65536),
        [np.array([-9, -0.25, 0.5, 9], np.float32), *map(Const, np.float32([-1, 1, -1, 1]))],
        deviates=Departure(
            "leaves it out where the limits of the output are those of the input; the page clips to them, and rounds",
            f"levels = 65536; {CONSTANT}; input_low = output_low; input_high = output_high",
        ),
        expected=[np.array([1, 16383 / 65535, -32767 / 65535, -1], np.float32)],
    ),
    fake_quantize(*("of 65536 levels, rescaled", DATA, 65536, -1.0, 1.0, -2.0, 2.0), rtol=1e-4),
    fake_quantize(
        *("along axis 2, dynamic", LINES, 5, 0.0, [[[2.0, 4, 4, 4, 4]]], 0.0, [[[2.0, 4, 4, 4, 8]]]),
        dynamic=True,
        deviates=Departure(
            "refuses limits along axis 2 where sizes of the data are unknown; the page does not tell them from others",
            f"X is dynamic; {CONSTANT}; rank of X > 2; rank of input_high = rank of X; axis 2 of input_high > 1; "
            "size of input_high = axis 2 of input_high; (it is not computed in one with a product)",
        ),
        expected=[np.array([[[0, 1, 2, 3, 8]], [[0, 1, 2, 3, 8]]], np.float32)],
    ),
]


def fake_convert(title, data, scale, shift=None, to="f8e4m3", **rest):
    def build(x, a, b=None):
        return opset13.fake_convert(x, a, b, destination_type=to)

    limits = [Const(np.asarray(limit, data.dtype)) for limit in (scale, shift) if limit is not None]
    return Case("FakeConvert-13", title, build, [data, *limits], **rest)


EXACT = (DATA * 64).round() / 64  # and so are its multiples in f16, through which OpenVINO goes
HALVES = np.array([0.3, -17, 18, 19, 21, 447, 500, -1e6, 1e-3, 0, 2.0**-9, 2.0**-10, np.inf], np.float32)
CASES += [
    fake_convert(f"{to} {title}", *inputs, to=to, **rest)
    for to in ("f8e4m3", "f8e5m2")
    for title, inputs, rest in (
        ("plain", (HALVES[:-1], 1.0), {}),
        ("infinity", (HALVES[-1:], 1.0), {}),
        ("scale", (EXACT, 2.0**CHANNELS), {}),
        ("scale and shift", (EXACT, 2.0**CHANNELS, CHANNELS * 0.5), {}),
        ("dynamic", (EXACT, [2.0], [0.25]), {"dynamic": True}),
        ("f16", (EXACT.astype(np.float16), [2.0], [0.25]), {"rtol": 1e-3}),
    )
]

CASES += [
    fake_convert(
        *("next to a half", np.array([17 + 2.0**-12], np.float32), 1.0),
        deviates=Departure(
            "rounds to f16 first; the page converts to f8 at once",
            "data is f32; rounding data to f16 changes the result",
        ),
        expected=[np.array([18], np.float32)],
    ),
    *(
        fake_convert(
            *("NaN" if to == "f8e4m3" else f"NaN to {to}", np.array([np.nan, 1], np.float32), 1.0),
            to=to,
            deviates=Departure("gives the lowest number for NaN; both types have NaN", "data has nan"),
            expected=[np.array([np.nan, 1], np.float32)],
        )
        for to in ("f8e4m3", "f8e5m2")
    ),
]

test_agrees_with_openvino = conformance(CASES)
