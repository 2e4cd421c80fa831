"""Quantization ops, against OpenVINO."""

from functools import partial

import numpy as np
from openvino import opset1

from conformance.harness import Case, Const, conformance

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
        *("equal limits", np.array([0, 1, 2], np.float32), 2, 1.0, 1.0, -1.0, 3.0),
        deviates="OpenVINO gives nan",
        expected=[np.array([-1, -1, 3], np.float32)],
    ),
    fake_quantize(
        *("inverted limits", np.array([-2, -1, 0, 1, 2, 3], np.float32), 5, 2.0, -2.0, -1.0, 3.0),
        deviates="OpenVINO clips to an empty interval",
        expected=[np.array([-1, 2, 1, 0, -1, 3], np.float32)],
    ),
    fake_quantize(
        *("nan", np.array([1, np.nan], np.float32), 5, 0.0, 4.0, -1.0, 3.0),
        deviates="OpenVINO gives output_low",
        expected=[np.array([0, np.nan], np.float32)],
    ),
]

test_agrees_with_openvino = conformance(CASES)
