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
