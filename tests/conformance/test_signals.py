"""Signal ops, against OpenVINO."""

from functools import partial

import numpy as np
from openvino import opset7, opset9, opset15, opset16

from conformance.harness import Case, Const, conformance

random = np.random.default_rng(15)
BUILD = {"DFT-7": opset7.dft, "IDFT-7": opset7.idft, "RDFT-9": opset9.rdft, "IRDFT-9": opset9.irdft}
PAIRS = random.normal(size=(3, 4, 5, 2)).astype(np.float32)
REAL = random.normal(size=(3, 4, 5)).astype(np.float32)
TOO_LONG = "the plugin takes no signal size of RDFT that is larger than the axis"
MINUS_ONE = "the plugin takes no signal size of RDFT that is -1"


def whole(op, title, data, *axes_and_size, **rest):
    constants = [Const(np.array(values, np.int64)) for values in axes_and_size]
    return Case(op, title, BUILD[op], [data, *constants], atol=1e-5, **rest)


def pairs(values):
    return np.stack([values.real, values.imag], -1).astype(np.float32)


CASES = [
    case
    for op, data in (("DFT-7", PAIRS), ("IDFT-7", PAIRS), ("RDFT-9", REAL), ("IRDFT-9", PAIRS))
    for case in (
        whole(op, "one axis", data, [1]),
        whole(op, "first axis", data, [0]),
        whole(op, "negative axes out of order", data, [-1, 0]),
        whole(op, "all axes", data, [0, 1, 2]),
        whole(op, "trimmed", data, [2, 1], [3, 2]),
        whole(op, "trimmed, dynamic", data, [1, 2], [4, 3], dynamic=True),
        whole(op, "dynamic", data, [2, 0], dynamic=True),
        whole(op, "f16", data.astype(np.float16), [1, 2], rtol=2e-3),
        whole(op, "f64", data.astype(np.float64), [1]),
        Case(op, "axes as input", BUILD[op], [data, np.array([1], np.int32)], atol=1e-5),
        Case(op, "signal size as input", BUILD[op], [data, Const(np.array([2, 1])), np.array([3, 2])], atol=1e-5),
    )
]
CASES += [
    case
    for op in ("DFT-7", "IDFT-7", "IRDFT-9")
    for case in (
        whole(op, "padded", PAIRS, [1], [7]),
        whole(op, "trimmed and padded", PAIRS, [0, 2], [2, 8]),
        whole(op, "signal size -1", PAIRS, [0, 2], [-1, 4]),
    )
]
CASES += [
    whole("IRDFT-9", "last signal size -1", PAIRS, [0, 2], [2, -1]),
    whole("IRDFT-9", "odd signal size", PAIRS, [2], [9]),
    whole("RDFT-9", "odd signal size", REAL, [2], [3]),
    whole("RDFT-9", "padded", REAL, [1], [7], deviates=TOO_LONG, expected=[pairs(np.fft.rfft(REAL, 7, 1))]),
    whole(
        *("RDFT-9", "signal size -1", REAL, [0, 2], [2, -1]),
        deviates=MINUS_ONE,
        expected=[pairs(np.fft.rfftn(REAL, (2, 5), (0, 2)))],
    ),
]

SIGNAL = random.normal(size=(4, 48)).astype(np.float32)
WINDOW = np.hamming(11).astype(np.float32)
SPECTRA = random.normal(size=(4, 9, 6, 2)).astype(np.float32)


def frames(op, title, data, window, size, step, *length, dynamic=False, rtol=1e-5, **attrs):
    build = partial(opset15.stft if op == "STFT-15" else opset16.istft, **attrs)
    constants = [Const(np.array(value, np.int64)) for value in (size, step, *length)]
    return Case(op, title, build, [data, window, *constants], dynamic=dynamic, rtol=rtol, atol=2e-5)


CASES += [
    frames("STFT-15", "1D", SIGNAL[0], WINDOW, 16, 8, transpose_frames=False),
    frames("STFT-15", "1D, transposed", SIGNAL[0], WINDOW, 16, 8, transpose_frames=True),
    frames("STFT-15", "batches", SIGNAL, WINDOW, 16, 5, transpose_frames=False),
    frames("STFT-15", "batches, transposed", SIGNAL, WINDOW, 11, 4, transpose_frames=True),
    frames("STFT-15", "even window, odd frame", SIGNAL, WINDOW[1:], 13, 20, transpose_frames=True),
    frames("STFT-15", "one frame", SIGNAL, WINDOW, 48, 1, transpose_frames=False),
    frames("STFT-15", "dynamic", SIGNAL, WINDOW, 16, 8, transpose_frames=False, dynamic=True),
    frames("STFT-15", "f16", *(SIGNAL.astype("f2"), WINDOW.astype("f2"), 16, 8), transpose_frames=True, rtol=2e-3),
    frames("STFT-15", "f64", *(SIGNAL.astype("f8"), WINDOW.astype("f8"), 16, 8), transpose_frames=True),
    Case(
        *("STFT-15", "frames as inputs", partial(opset15.stft, transpose_frames=True)),
        [SIGNAL, WINDOW, np.array(12, np.int32), np.array(6, np.int32)],
        atol=1e-5,
    ),
]
CASES += [
    case
    for center in (False, True)
    for normalized in (False, True)
    for mark in [f", center {center}, normalized {normalized}"]
    for case in (
        frames("ISTFT-16", "3D" + mark, SPECTRA[0], WINDOW, 16, 5, center=center, normalized=normalized),
        frames("ISTFT-16", "batches" + mark, SPECTRA, WINDOW, 17, 6, center=center, normalized=normalized),
        frames("ISTFT-16", "trimmed" + mark, SPECTRA, WINDOW, 16, 4, 9, center=center, normalized=normalized),
        frames("ISTFT-16", "padded" + mark, SPECTRA, WINDOW, 16, 4, [80], center=center, normalized=normalized),
    )
]
CASES += [
    frames("ISTFT-16", "gaps between windows", SPECTRA, WINDOW, 17, 16, center=False, normalized=False),
    frames("ISTFT-16", "step larger than a frame", SPECTRA, WINDOW, 17, 20, center=False, normalized=False),
    frames("ISTFT-16", "dynamic", SPECTRA, WINDOW, 16, 4, center=True, normalized=False, dynamic=True),
    frames(
        *("ISTFT-16", "f16", SPECTRA.astype("f2"), WINDOW.astype("f2"), 16, 4),
        center=True,
        normalized=True,
        rtol=2e-3,
    ),
    Case(
        *("ISTFT-16", "all as inputs", partial(opset16.istft, center=False, normalized=False)),
        [SPECTRA, WINDOW, np.array(16, np.int32), np.array(4, np.int32), np.array(30, np.int32)],
        atol=1e-5,
    ),
]

test_agrees_with_openvino = conformance(CASES)
