"""Signal ops, against OpenVINO."""

from functools import partial

import numpy as np
from openvino import opset1, opset7, opset9, opset15, opset16

from conformance.harness import Case, Const, Departure, conformance, without_conversions

random = np.random.default_rng(15)
BUILD = {"DFT-7": opset7.dft, "IDFT-7": opset7.idft, "RDFT-9": opset9.rdft, "IRDFT-9": opset9.irdft}
PAIRS = random.normal(size=(3, 4, 5, 2)).astype(np.float32)
REAL = random.normal(size=(3, 4, 5)).astype(np.float32)
TOO_LONG = Departure(
    "refuses a signal size larger than the axis; the page pads with zeros", "signal_size > shape of data along axes"
)
MINUS_ONE = Departure("refuses a signal size of -1; on the page it is the size of the axis", "signal_size = -1")
UNKNOWN = Departure(
    "refuses axes and signal sizes that are inputs where the shape of the data is static; the page has inputs",
    "data is not dynamic; axes is not constant | signal_size is not constant",
)
SEVERAL_PADDED = Departure(
    "gives other numbers where it pads one of several axes; by the page an axis is padded with zeros",
    "size of signal_size > 1; (an axis is shorter than the signal)",
)
NUMBERS = PAIRS[..., 0] + 1j * PAIRS[..., 1]


def whole(op, title, data, *axes_and_size, **rest):
    constants = [Const(np.array(values, np.int64)) for values in axes_and_size]
    return Case(op, title, BUILD[op], [data, *constants], atol=1e-5, **rest)


def minus_one(expected):
    return {"deviates": MINUS_ONE, "expected": [expected.astype(np.float32)]}


def pairs(values):
    return np.stack([values.real, values.imag], -1).astype(np.float32)


def without_axes(root):
    """An edit that leaves no element to the one Const."""
    (layer,) = (layer for layer in root.iter("layer") if layer.get("type") == "Const")
    layer.find("data").attrib.update(shape="0", size="0")
    (end,) = (edge for edge in root.iter("edge") if edge.get("from-layer") == layer.get("id"))
    (reader,) = (each for each in root.iter("layer") if each.get("id") == end.get("to-layer"))
    for port in (layer.find("output/port"), reader.find(f"input/port[@id='{end.get('to-port')}']")):
        port.find("dim").text = "0"


BEYOND = Departure(
    "reads memory beyond the data where it pads an axis to twice its size or more; by the page it is padded with zeros",
    "signal_size >= shape of data along axes + shape of data along axes",
)
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
    )
]
CASES += [
    Case(
        op,
        "f64",
        lambda data, axes, op=op: BUILD[op](opset1.convert(data, "f32"), axes),
        [data, Const(np.array([0]))],
        deviates=Departure("refuses f64; the page has any floating-point type", "data is f64"),
        expected=[expected],
        edit=without_conversions,
    )
    for op, data, expected in (
        ("DFT-7", np.float64([[1, 0]]), np.float64([[1, 0]])),
        ("IDFT-7", np.float64([[1, 0]]), np.float64([[1, 0]])),
        ("RDFT-9", np.float64([1, 3]), np.float64([[4, 0], [-2, 0]])),
        ("IRDFT-9", np.float64([[4, 0], [-2, 0]]), np.float64([1, 3])),
    )
]
CASES += [
    case
    for op in ("DFT-7", "IDFT-7", "IRDFT-9")
    for case in (
        whole(op, "padded", PAIRS, [1], [7]),
        whole(op, "trimmed and padded", PAIRS, [0, 2], [2, 8]),
    )
]
CASES += [
    case
    for op in ("DFT-7", "IDFT-7")
    for case in (
        whole(op, "signal size -1", PAIRS, [0, 2], [-1, 4]),
        Case(op, "axes as input", BUILD[op], [PAIRS, np.array([1], np.int32)], atol=1e-5),
        Case(op, "signal size as input", BUILD[op], [PAIRS, Const(np.array([2, 1])), np.array([3, 2])], atol=1e-5),
    )
]
CASES += [
    whole("IRDFT-9", "odd signal size", PAIRS, [2], [9]),
    whole(
        *("IRDFT-9", "several axes, one of them padded", PAIRS, [0, 2], [6, 8]),
        deviates=SEVERAL_PADDED,
        expected=[np.fft.irfftn(NUMBERS, (6, 8), (0, 2)).astype(np.float32)],
    ),
    whole(
        *("IRDFT-9", "one axis, padded", PAIRS, [1], [8]),
        deviates=BEYOND,
        expected=[np.fft.irfft(NUMBERS, 8, 1).astype(np.float32)],
        crashes=True,
    ),
    *(
        whole(
            *(op, "no axes", data, [0]),
            deviates=Departure(f"crashes; without axes {what}", "axes is empty"),
            expected=[expected],
            edit=without_axes,
            crashes=True,
        )
        for op, data, what, expected in (
            ("RDFT-9", REAL, "the data become complex", pairs(REAL + 0j)),
            ("IRDFT-9", PAIRS, "the real part is left", PAIRS[..., 0]),
        )
    ),
    whole("RDFT-9", "odd signal size", REAL, [2], [3]),
    whole("RDFT-9", "padded", REAL, [1], [7], deviates=TOO_LONG, expected=[pairs(np.fft.rfft(REAL, 7, 1))]),
    whole("RDFT-9", "signal size -1", REAL, [0, 2], [2, -1], **minus_one(pairs(np.fft.rfftn(REAL, (2, 5), (0, 2))))),
    whole("IRDFT-9", "signal size -1", PAIRS, [0, 2], [-1, 4], **minus_one(np.fft.irfftn(NUMBERS, (3, 4), (0, 2)))),
    whole("IRDFT-9", "last of size -1", PAIRS, [0, 2], [2, -1], **minus_one(np.fft.irfftn(NUMBERS, (2, 8), (0, 2)))),
    Case(
        *("RDFT-9", "inputs", opset9.rdft, [REAL, np.array([1], np.int32), np.array([3])]),
        deviates=UNKNOWN,
        expected=[pairs(np.fft.rfft(REAL, 3, 1))],
        atol=1e-5,
    ),
    Case(
        *("IRDFT-9", "inputs", opset9.irdft, [PAIRS, np.array([1], np.int32), np.array([5])]),
        deviates=UNKNOWN,
        expected=[np.fft.irfft(NUMBERS, 5, 1).astype(np.float32)],
        atol=1e-5,
    ),
]

SIGNAL = random.normal(size=(4, 48)).astype(np.float32)
WINDOW = np.hamming(11).astype(np.float32)
SPECTRA = random.normal(size=(4, 9, 6, 2)).astype(np.float32)


def stft(title, data, window, size, step, *, transpose_frames, **rest):
    build = partial(opset15.stft, transpose_frames=transpose_frames)
    return frames("STFT-15", title, build, data, window, size, step, **rest)


def istft(title, data, window, size, step, length=None, *, center=False, normalized=False, **rest):
    def build(data, window, size, step, length=None):
        return opset16.istft(data, window, size, step, center, normalized, length)

    lengths = () if length is None else (length,)
    return frames("ISTFT-16", title, build, data, window, size, step, *lengths, **rest)


def frames(op, title, build, data, window, *numbers, **rest):
    constants = [Const(np.array(value, np.int64)) for value in numbers]
    return Case(op, title, build, [data, window, *constants], atol=2e-5, **rest)


def apart(size, step):
    """The signal of frames that do not overlap, half a frame later and as long as the page says."""
    inverse = np.fft.irfft(SPECTRA[..., 0] + 1j * SPECTRA[..., 1], size, 1).swapaxes(1, 2)
    signal = np.pad(inverse, [(0, 0), (0, 0), (0, step - size)]).reshape(len(SPECTRA), -1)
    return signal[:, size // 2 :][:, : (SPECTRA.shape[2] - 1) * step].astype(np.float32)


CASES += [
    stft("1D", SIGNAL[0], WINDOW, 16, 8, transpose_frames=False),
    stft("1D, transposed", SIGNAL[0], WINDOW, 16, 8, transpose_frames=True),
    stft("batches", SIGNAL, WINDOW, 16, 5, transpose_frames=False),
    stft("batches, transposed", SIGNAL, WINDOW, 11, 4, transpose_frames=True),
    stft("even window, odd frame", SIGNAL, WINDOW[1:], 13, 20, transpose_frames=True),
    stft("one frame", SIGNAL, WINDOW, 48, 1, transpose_frames=False),
    stft("dynamic", SIGNAL, WINDOW, 16, 8, transpose_frames=False, dynamic=True),
    stft("f16", SIGNAL.astype("f2"), WINDOW.astype("f2"), 16, 8, transpose_frames=True, rtol=2e-3),
    stft("f64", SIGNAL.astype("f8"), WINDOW.astype("f8"), 16, 8, transpose_frames=True),
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
        istft("3D" + mark, SPECTRA[0], WINDOW, 16, 5, center=center, normalized=normalized),
        istft("batches" + mark, SPECTRA, WINDOW, 16, 6, center=center, normalized=normalized),
        istft("trimmed" + mark, SPECTRA, WINDOW, 17, 4, 9, center=center, normalized=normalized),
        istft("padded" + mark, SPECTRA, WINDOW, 17, 4, [80], center=center, normalized=normalized),
    )
]
CASES += [
    istft("odd frame", SPECTRA, WINDOW, 17, 5),
    istft("gaps between windows", SPECTRA, WINDOW, 17, 16),
    istft("step larger than a frame", SPECTRA, WINDOW, 17, 20),
    istft("dynamic", SPECTRA, WINDOW, 16, 4, center=True, dynamic=True),
    istft("f16", SPECTRA.astype("f2"), WINDOW.astype("f2"), 16, 4, center=True, normalized=True, rtol=2e-3),
    istft(
        *("odd frame, centred", SPECTRA, np.ones(17, np.float32), 17, 20),
        center=True,
        dynamic=True,  # the port says 101, and irrun warns
        deviates=Departure(
            "leaves out one element less at the end; by the page the length is (frames - 1) * frame_step",
            "center = true; frame_size has odd numbers; signal_length is not connected",
        ),
        expected=[apart(17, 20)],
    ),
    Case(
        *("ISTFT-16", "all as inputs", lambda *inputs: opset16.istft(*inputs[:4], False, False, inputs[4])),
        [SPECTRA, WINDOW, np.array(16, np.int32), np.array(4, np.int32), np.array(30, np.int32)],
        atol=1e-5,
    ),
]

test_agrees_with_openvino = conformance(CASES)
