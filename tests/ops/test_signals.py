"""Fourier transforms: examples in numbers, slow sums as reference, constraints, and what is known before a run."""

import subprocess
import sys
from itertools import product
from math import pi

import numpy as np
import pytest
from irrun.opsets import signals

from irrun.spec import Tensor, Violation, fresh, numpy_dtype
from irrun.spec.registry import registry

ops = registry().ops
dft, idft, rdft, irdft = ops["DFT-7"], ops["IDFT-7"], ops["RDFT-9"], ops["IRDFT-9"]
stft, istft = ops["STFT-15"], ops["ISTFT-16"]
random = np.random.default_rng(7)
WHOLE_AXES = ["DFT-7", "IDFT-7", "RDFT-9", "IRDFT-9"]
FRAMES = {"transpose_frames": False}
PLAIN = {"center": False, "normalized": False}


def i64(*values):
    return np.array(values, np.int64)


def sums(values, axes, sign):
    """The transform of complex `values` along `axes`, term by term."""
    result = np.zeros(values.shape, complex)
    for out in np.ndindex(values.shape):
        for places in product(*(range(values.shape[axis]) for axis in axes)):
            source = list(out)
            for axis, place in zip(axes, places, strict=True):
                source[axis] = place
            turns = sum(out[axis] * source[axis] / values.shape[axis] for axis in axes)
            result[out] += values[tuple(source)] * np.exp(sign * 2j * pi * turns)
    return result


def complex_of(pairs):
    return pairs[..., 0] + 1j * pairs[..., 1]


def violation(op, *inputs, **attrs):
    with pytest.raises(Violation) as caught:
        op(*inputs, **attrs)
    return caught.value


def shape_of(op, *tensors, **attrs):
    (output,) = op.infer(tensors, op.defaults | attrs).outputs
    return output.shape


def known(*values):
    return Tensor.of(i64(*values))


def test_a_transform_of_four_numbers():
    data = np.array([[1, 0], [2, 0], [0, 1], [3, 0]], np.float32)
    assert dft(data, i64(0)).tolist() == [[6, 1], [1, 0], [-4, 1], [1, -2]]


def test_the_inverse_of_four_numbers_is_divided_by_four():
    data = np.array([[6, 1], [1, 0], [-4, 1], [1, -2]], np.float32)
    assert idft(data, i64(0)).tolist() == [[1, 0], [2, 0], [0, 1], [3, 0]]


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (2, 0), (-1, -3), (1, 2, 0)], ids=str)
def test_whole_axes_by_their_sums(axes):
    data = random.normal(size=(2, 3, 4, 2))
    values = complex_of(data)
    np.testing.assert_allclose(complex_of(dft(data, i64(*axes))), sums(values, axes, -1), atol=1e-12)
    count = np.prod([values.shape[axis] for axis in axes])
    np.testing.assert_allclose(complex_of(idft(data, i64(*axes))), sums(values, axes, 1) / count, atol=1e-12)
    half = np.take(sums(values.real, axes, -1), range(values.shape[axes[-1]] // 2 + 1), axes[-1])
    np.testing.assert_allclose(complex_of(rdft(data[..., 0], i64(*axes))), half, atol=1e-12)


@pytest.mark.parametrize(("axes", "size"), [((0, 1), (2, 6)), ((1, 0), (-1, 5)), ((1,), (3,)), ((0, 1), (4, -1))])
def test_a_signal_size_trims_and_pads_before_the_transform(axes, size):
    data = random.normal(size=(4, 4, 2))
    values = complex_of(data)
    for axis, length in zip(axes, size, strict=True):
        if length != -1:
            values = np.take(np.concatenate([values, np.zeros_like(values)], axis), range(length), axis)
    np.testing.assert_allclose(complex_of(dft(data, i64(*axes), i64(*size))), sums(values, axes, -1), atol=1e-12)
    half = np.take(sums(values.real, axes, -1), range(values.shape[axes[-1]] // 2 + 1), axes[-1])
    np.testing.assert_allclose(complex_of(rdft(data[..., 0], i64(*axes), i64(*size))), half, atol=1e-12)


@pytest.mark.parametrize("size", [(4, 5), (4, 6), (3, 3)], ids=str)
def test_irdft_undoes_rdft_whether_the_last_axis_is_even_or_odd(size):
    data = random.normal(size=(2, *size)).astype(np.float32)
    back = irdft(rdft(data, i64(1, -1)), i64(1, -1), i64(*size))
    np.testing.assert_allclose(back, data, atol=1e-6)


def test_irdft_without_a_signal_size_takes_an_even_one():
    data = random.normal(size=(6, 3))
    assert irdft(rdft(data, i64(1, 0)), i64(1, 0)).shape == (6, 3)
    np.testing.assert_allclose(irdft(rdft(data, i64(1, 0)), i64(1, 0), i64(-1, -1)), data, atol=1e-12)


def test_irdft_of_a_longer_signal_reads_zeros_behind_the_half():
    half = np.array([[6, 0], [1, 1]], np.float64)
    padded = np.array([[6, 0], [1, 1], [0, 0], [0, 0]], np.float64)
    np.testing.assert_allclose(irdft(half, i64(0), i64(6)), irdft(padded, i64(0)), atol=1e-12)


def test_irdft_ignores_the_imaginary_part_of_the_mean():
    assert irdft(np.array([[4.0, 7.0], [0.0, 0.0]]), i64(0)).tolist() == [2, 2]


def test_the_shapes_of_the_pages():
    axes, size = known(3, 1, 2), known(170, -1, 1024)
    data = Tensor("f32", (16, 768, 580, 320, 2))
    assert shape_of(dft, data, axes, size) == (16, 768, 1024, 170, 2)
    assert shape_of(idft, data, known(3, 0, 2), known(258, -1, 2056)) == (16, 768, 2056, 258, 2)
    assert shape_of(rdft, Tensor("f32", (16, 768, 580, 320)), axes, size) == (16, 768, 513, 170, 2)
    assert shape_of(rdft, Tensor("f32", (1, 320, 320)), known(1, 2)) == (1, 320, 161, 2)
    assert shape_of(irdft, data, axes, size) == (16, 768, 1024, 170)
    assert shape_of(irdft, Tensor("f32", (1, 161, 161, 2)), known(1, 2)) == (1, 161, 320)


@pytest.mark.parametrize("name", WHOLE_AXES)
@pytest.mark.parametrize("size", [None, 5, 12])
@pytest.mark.parametrize("type", [np.float32, np.float64])
def test_one_axis_is_the_same_by_numpy_and_by_scipy(name, size, type, monkeypatch):
    data = random.standard_normal((3, 4, 9) if name == "RDFT-9" else (3, 4, 9, 2)).astype(type)
    given = (data, i64(2)) if size is None else (data, i64(2), i64(size))
    monkeypatch.setattr(signals, "MAX_AT_ONCE", 48)  # 5 of 12 rows
    found = ops[name](*given)
    monkeypatch.setattr(signals, "MAX_LIGHT", 0)
    expected = ops[name](*given)
    assert found.dtype == expected.dtype == type
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, 0, 1e-5 if type == np.float32 else 1e-13)


def test_a_short_transformation_does_not_load_scipy():
    code = (
        "import sys, numpy as np; from irrun.spec.registry import registry; ops = registry().ops; i = np.int64;"
        "x = np.ones((1, 8), 'f4'); y = ops['STFT-15'].kernel(x, x[0], i(8), i(4), transpose_frames=False);"
        "print(y[0, 0, :, 0].tolist(), 'scipy.fft' in sys.modules)"
    )
    given = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert given.stdout == "[8.0, 0.0, 0.0, 0.0, 0.0] False\n"


@pytest.mark.parametrize("type", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", WHOLE_AXES)
def test_results_have_the_type_of_the_data(name, type):
    data = np.ones((4, 2)).astype(numpy_dtype(type))
    assert ops[name](data, np.array([0], np.int32), i64(4)).dtype == data.dtype


@pytest.mark.parametrize(
    ("name", "shape"), [("DFT-7", (3, 2)), ("IDFT-7", (3, 2)), ("RDFT-9", (3, 2, 2)), ("IRDFT-9", (3,))]
)
def test_without_axes_the_numbers_stay(name, shape):
    data = random.normal(size=(3, 2))
    result = ops[name](data, i64())
    assert result.shape == shape
    assert result.ravel()[0] == data[0, 0]
    assert not np.shares_memory(result, data)


@pytest.mark.parametrize(
    ("name", "data", "size", "shape"),
    [
        ("DFT-7", (0, 3, 2), -1, (0, 3, 2)),
        ("DFT-7", (3, 0, 2), 2, (3, 2, 2)),
        ("IDFT-7", (3, 4, 2), 0, (3, 0, 2)),
        ("RDFT-9", (3, 0), -1, (3, 1, 2)),
        ("RDFT-9", (0, 4), -1, (0, 3, 2)),
        ("IRDFT-9", (3, 1, 2), -1, (3, 0)),
        ("IRDFT-9", (3, 0, 2), 4, (3, 4)),
    ],
)
def test_a_sum_without_terms_is_zero(name, data, size, shape):
    result = ops[name](np.ones(data, np.float32), i64(1), i64(size))
    assert (result == 0).all()
    assert result.shape == shape
    assert result.dtype == np.float32


@pytest.mark.parametrize("name", ["DFT-7", "IDFT-7", "IRDFT-9"])
def test_complex_axes_do_not_count_the_last_one(name):
    data = np.ones((4, 4, 2))
    assert violation(ops[name], data, i64(2)).message == "`axes[0]` is 2, outside [-2, 2) for [4, 4]"
    ops[name](data, i64(-2))


@pytest.mark.parametrize("name", WHOLE_AXES)
def test_transforms_c1_an_axis_outside_the_rank(name):
    with pytest.raises(Violation, match=r"`axes\[1\]` is -4, outside") as caught:
        ops[name](np.ones((4, 4, 2)), i64(0, -4))
    assert caught.value.label == "C1"


@pytest.mark.parametrize("name", WHOLE_AXES)
def test_transforms_c2_an_axis_twice(name):
    rank = 3 if name == "RDFT-9" else 2
    with pytest.raises(Violation, match=rf"`axes\[1\]` is {-rank}, which is an axis of an element before") as caught:
        ops[name](np.ones((4, 4, 2)), i64(0, -rank))
    assert caught.value.label == "C2"
    with pytest.raises(Violation, match=f"`axes` has {rank + 1} elements, expected at most {rank}"):
        shape_of(ops[name], Tensor("f32", (4, 4, 2)), Tensor("i64", (rank + 1,)))


@pytest.mark.parametrize("name", WHOLE_AXES)
def test_transforms_c3_a_signal_size_below_minus_one(name):
    with pytest.raises(Violation, match=r"`signal_size\[1\]` is -2, expected -1 or more") as caught:
        ops[name](np.ones((4, 4, 2)), i64(0, 1), i64(-1, -2))
    assert caught.value.label == "C3"


def test_irdft_9_c4_nothing_to_undo():
    found = violation(irdft, np.ones((3, 0, 2)), i64(0, 1))
    assert found.label == "C4"
    assert found.message == "axis 1 of `data` is empty, and no signal size is given for it"


def test_a_signal_size_for_each_axis():
    found = violation(dft, np.ones((4, 4, 2)), i64(0, 1), i64(3))
    assert found.message == "`num_axes` is 1 in `signal_size`, but 2 in `axes`"


def test_complex_numbers_have_two_parts():
    assert violation(dft, np.ones((4, 3)), i64(0)).message == "`data` has a dimension of 3, expected 2"


def test_unknown_sizes_keep_their_identity_where_nothing_cuts_them():
    batch, length = fresh(), fresh(2, 9)
    data = Tensor("f32", (batch, length, 2))
    assert shape_of(dft, data, Tensor("i64", (1,))) == (batch, length, 2)
    assert shape_of(idft, data, known(1), known(-1)) == (batch, length, 2)
    assert shape_of(rdft, Tensor("f32", (batch, length)), known(1))[0] is batch
    assert repr(shape_of(rdft, Tensor("f32", (batch, length)), known(-1))[1]) == "2..5"
    assert repr(shape_of(irdft, data, known(1))[1]) == "2..16"


def test_an_unknown_signal_size_may_be_minus_one_but_a_dimension_is_not():
    length = fresh(2, 9)
    value = np.empty(1, object)
    value[0] = length
    data = Tensor("f32", (3, 4, 2))
    assert shape_of(dft, data, known(1), Tensor("i64", (1,), value)) == (3, length, 2)
    assert str(shape_of(dft, data, known(1), Tensor("i64", (1,)))) == "(3, ?, 2)"
    assert str(shape_of(dft, data, known(1), Tensor("i64", None))) == "(3, ?, 2)"


@pytest.mark.parametrize(
    ("name", "shape"),
    [("DFT-7", "(?, ?, 2)"), ("IDFT-7", "(?, ?, 2)"), ("RDFT-9", "(?, ?, ?, 2)"), ("IRDFT-9", "(?, ?)")],
)
def test_unknown_axes_leave_every_size_open(name, shape):
    tensors = [Tensor("f32", (3, 4, 2)), Tensor("i64", (1,)), Tensor("i64", (1,))]
    inferred = ops[name].infer(tensors, {})
    assert str(inferred.outputs[0].shape) == shape
    assert not inferred.complete


def test_an_unknown_rank_stays_unknown():
    for name in WHOLE_AXES:
        assert shape_of(ops[name], Tensor("f32", None), known(0)) is None
    frame = [Tensor("f32", (3,)), Tensor("i64", ()), Tensor("i64", ())]
    assert shape_of(stft, Tensor("f32", None), *frame, **FRAMES) is None
    assert shape_of(istft, Tensor("f32", None), *frame, **PLAIN) is None


def framed(signal, window, size, step):
    """The spectra [frames, results] of one signal, term by term."""
    left = (size - len(window)) // 2
    weights = [0.0] * left + list(window) + [0.0] * (size - len(window) - left)
    starts = range(0, len(signal) - size + 1, step)
    frames = np.array([[signal[start + i] * weights[i] for i in range(size)] for start in starts])
    return sums(frames, (1,), -1)[:, : size // 2 + 1]


@pytest.mark.parametrize(("size", "step", "width"), [(4, 1, 4), (5, 3, 4), (7, 2, 4), (6, 9, 1), (11, 2, 6)])
def test_short_frames_by_their_sums(size, step, width):
    signal, window = random.normal(size=(2, 23)), random.normal(size=width)
    want = np.array([framed(row, window, size, step) for row in signal])
    got = stft(signal, window, np.array(size), np.array(step, np.int64), transpose_frames=False)
    np.testing.assert_allclose(complex_of(got), want, atol=1e-12)
    turned = stft(signal, window, np.array(size), np.array(step), transpose_frames=True)
    np.testing.assert_array_equal(turned, got.swapaxes(1, 2))
    np.testing.assert_array_equal(stft(signal[0], window, np.array(size), np.array(step), **FRAMES), got[0])


def test_an_odd_rest_of_the_window_is_padded_at_its_end():
    frame = stft(np.arange(1.0, 5), np.ones(1), np.array(4), np.array(1), transpose_frames=False)
    assert complex_of(frame)[0].tolist() == [2, -2j, -2]


def undone(data, window, size, step, normalized=False):
    """The signal of one batch of `data` [results, frames], added up element by element."""
    count = data.shape[1]
    left = (size - len(window)) // 2
    total, weight = np.zeros((count - 1) * step + size), np.zeros((count - 1) * step + size)
    for frame in range(count):
        for i, value in enumerate(np.fft.irfft(data[:, frame], size)):
            weighed_by = window[i - left] if left <= i < left + len(window) else 0
            total[frame * step + i] += value * weighed_by * (size**0.5 if normalized else 1)
            weight[frame * step + i] += weighed_by**2
    return np.array([a / b if b else 0 for a, b in zip(total, weight, strict=True)])


@pytest.mark.parametrize(("size", "step", "width"), [(4, 1, 4), (5, 3, 4), (7, 2, 3), (6, 9, 6), (8, 4, 8)])
@pytest.mark.parametrize("normalized", [False, True])
def test_weighed_frames_are_added_up_and_divided_by_their_squared_windows(size, step, width, normalized):
    data, window = random.normal(size=(2, size // 2 + 1, 5, 2)), random.uniform(0.5, 1, width)
    want = np.array([undone(complex_of(batch), window, size, step, normalized) for batch in data])
    frame = [window, np.array(size), np.array(step)]
    got = istft(data, *frame, center=False, normalized=normalized)
    np.testing.assert_allclose(got, want, atol=1e-12)
    np.testing.assert_array_equal(istft(data[0], *frame, center=False, normalized=normalized), got[0])
    centred = istft(data, *frame, center=True, normalized=normalized)
    end = size // 2 + 4 * step
    np.testing.assert_array_equal(centred, got[:, size // 2 : end])


def test_istft_undoes_stft():
    signal = random.normal(size=(3, 40)).astype(np.float32)
    window = np.hanning(10)[1:-1].astype(np.float32)
    frame = [window, np.array(8), np.array(4)]
    back = istft(stft(signal, *frame, transpose_frames=True), *frame, **PLAIN)
    np.testing.assert_allclose(back, signal, atol=1e-5)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("length", [0, 5, 11, 12, 30])
def test_a_signal_length_trims_the_signal_or_adds_zeros(length, center):
    data, frame = random.normal(size=(2, 3, 5, 2)), [np.ones(4), np.array(4), np.array(2)]
    whole = istft(data, *frame, **PLAIN)[:, 2 if center else 0 :]
    got = istft(data, *frame, np.array([length]), center=center, normalized=False)
    assert got.shape == (2, length)
    shared = min(length, whole.shape[1])
    np.testing.assert_array_equal(got[:, :shared], whole[:, :shared])
    assert (got[:, shared:] == 0).all()


def test_the_frame_shapes_of_the_pages():
    frame = [Tensor("f32", (7,)), Tensor.of(np.array(11)), Tensor.of(np.array(3))]
    assert shape_of(stft, Tensor("f32", (56,)), *frame, transpose_frames=False) == (16, 6, 2)
    assert shape_of(stft, Tensor("f32", (3, 56)), *frame, transpose_frames=True) == (3, 6, 16, 2)
    data = Tensor("f32", (4, 6, 16, 2))
    assert shape_of(istft, data, *frame, **PLAIN) == (4, 56)
    assert shape_of(istft, data, *frame, center=True, normalized=False) == (4, 45)
    assert shape_of(istft, Tensor("f32", (6, 16, 2)), *frame, Tensor.of(np.array(64)), **PLAIN) == (64,)


def test_unknown_frames_are_as_many_as_there_may_be():
    frame = [Tensor("f32", (7,)), Tensor.of(np.array(11)), Tensor.of(np.array(3))]
    unknown = [Tensor("f32", (7,)), Tensor("i64", ()), Tensor("i64", ())]
    batch = fresh()
    signal = Tensor("f32", (batch, fresh(11, 20)))
    assert str(shape_of(stft, signal, *frame, **FRAMES)) == "(?, 1..4, 6, 2)"
    assert str(shape_of(stft, signal, *unknown, **FRAMES)) == "(?, 1..20, 1.., 2)"
    data = Tensor("f32", (batch, 6, fresh(0, 4), 2))
    assert str(shape_of(istft, data, *frame, **PLAIN)) == "(?, 11..20)"
    assert str(shape_of(istft, data, *unknown, **PLAIN)) == "(?, 1..)"
    assert str(shape_of(istft, data, *frame, Tensor("i64", (1,)), **PLAIN)) == "(?, ?)"
    assert shape_of(istft, data, *frame, Tensor("i64", (1,)), **PLAIN)[0] is batch


@pytest.mark.parametrize("type", ["f16", "bf16", "f32", "f64"])
def test_frames_have_the_type_of_the_signal(type):
    dtype = numpy_dtype(type)
    frame = [np.ones(4).astype(dtype), np.array(4, np.int32), np.array(2, np.int32)]
    spectra = stft(np.ones(8).astype(dtype), *frame, transpose_frames=True)
    assert spectra.dtype == dtype
    signal = istft(spectra, *frame, **PLAIN)
    assert signal.dtype == dtype
    assert signal.tolist() == [1] * 8


def test_no_batches():
    frame = [np.ones(4), np.array(4), np.array(2)]
    assert stft(np.ones((0, 8)), *frame, **FRAMES).shape == (0, 3, 3, 2)
    assert istft(np.ones((0, 3, 3, 2)), *frame, **PLAIN).shape == (0, 8)


@pytest.mark.parametrize("size", [0, 9])
def test_stft_15_c1_a_frame_that_does_not_fit(size):
    found = violation(stft, np.ones(8), np.ones(1), np.array(size), np.array(1), **FRAMES)
    assert (found.label, found.message) == ("C1", f"`frame_size` is {size}, outside [1, 8]")


def test_stft_15_c2_no_step():
    found = violation(stft, np.ones(8), np.ones(1), np.array(4), np.array(0), **FRAMES)
    assert (found.label, found.message) == ("C2", "`frame_step` is 0, expected 1 or more")


@pytest.mark.parametrize("width", [0, 5])
def test_stft_15_c3_a_window_that_does_not_fit(width):
    found = violation(stft, np.ones(8), np.ones(width), np.array(4), np.array(1), **FRAMES)
    assert (found.label, found.message) == ("C3", f"`window_length` is {width}, outside [1, 4]")


def test_istft_16_c1_an_empty_frame():
    found = violation(istft, np.ones((1, 4, 2)), np.ones(1), np.array(0), np.array(1), **PLAIN)
    assert (found.label, found.message) == ("C1", "`frame_size` is 0, expected 1 or more")


def test_istft_16_c2_no_step():
    found = violation(istft, np.ones((3, 4, 2)), np.ones(1), np.array(4), np.array(-1), **PLAIN)
    assert (found.label, found.message) == ("C2", "`frame_step` is -1, expected 1 or more")


def test_istft_16_c3_a_window_that_does_not_fit():
    found = violation(istft, np.ones((3, 4, 2)), np.ones(5), np.array(4), np.array(1), **PLAIN)
    assert (found.label, found.message) == ("C3", "`window_length` is 5, outside [1, 4]")


def test_istft_16_c4_spectra_of_other_frames():
    found = violation(istft, np.ones((4, 5, 2)), np.ones(4), np.array(4), np.array(1), **PLAIN)
    assert (found.label, found.message) == ("C4", "`fft_results` is 4, expected 3")


def test_istft_16_c5_no_frames():
    found = violation(istft, np.ones((3, 0, 2)), np.ones(4), np.array(4), np.array(1), **PLAIN)
    assert (found.label, found.message) == ("C5", "`data` has no frames")


def test_istft_16_c6_a_negative_length():
    found = violation(istft, np.ones((3, 4, 2)), np.ones(4), np.array(4), np.array(1), np.array(-1), **PLAIN)
    assert (found.label, found.message) == ("C6", "`signal_length` is -1, expected 0 or more")
