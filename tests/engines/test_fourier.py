"""Fourier transforms of the numpy engine, held against the ops' kernels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from engines.agreement import agrees
from engines.works import THREADS, computed, plain, work_of

from irrun.engines.vectorized import fourier as fourier_module
from irrun.engines.vectorized.fourier import SHORT, SHORT_REAL, fourier, frames

COMPLEX = [
    *(([5, 2], [0], None), ([4, 6, 2], [0, 1], None), ([4, 6, 2], [-1, 0], None), ([3, 4, 5, 2], [1], None)),
    *(([3, 4, 5, 2], [2, 0], [7, -1]), ([3, 4, 5, 2], [0, 2], [2, 3]), ([1, 2], [0], [1]), ([2, 3, 1, 2], [1], [8])),
]
"""Shapes, axes and signal sizes."""

REAL = [
    *(([6], [0], None), ([7], [0], None), ([3, 4, 8], [1, 2], None), ([3, 4, 5], [0, -1], [-1, 9])),
    *(([3, 4, 5], [1, 0, 2], [3, 4, 2]), ([2, 1], [1], None)),
]

INVERSE = [
    *(([4, 2], [0], None), ([4, 2], [0], [7]), ([3, 4, 5, 2], [1, 2], None), ([3, 4, 5, 2], [0, -1], [-1, 9])),
    *(([3, 4, 5, 2], [1, 0, 2], [3, 4, 2]), ([2, 3, 2], [1], [12]), ([2, 3, 2], [1], [1])),
]

CASES = [
    *((name, *case) for name in ("DFT-7", "IDFT-7") for case in COMPLEX),
    *(("RDFT-9", *case) for case in REAL),
    *(("IRDFT-9", *case) for case in INVERSE),
]


def arrays_of(shape, axes, lengths, seed=0):
    data = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return [data, np.array(axes), *([] if lengths is None else [np.array(lengths)])]


@pytest.mark.parametrize(("name", "shape", "axes", "lengths"), CASES)
def test_a_transform_agrees_with_its_kernel(name, shape, axes, lengths):
    agrees(fourier, name, {}, arrays_of(shape, axes, lengths), constant=(1, 2))


def test_transforms_of_views_and_in_pieces():
    rng = np.random.default_rng(1)
    turned = rng.normal(size=(2, 64, 48, 6)).astype(np.float32).transpose(3, 1, 2, 0)
    agrees(fourier, "DFT-7", {}, [turned, np.array([1, 2])])
    agrees(fourier, "IRDFT-9", {}, [turned, np.array([0, 1, 2])])
    agrees(fourier, "RDFT-9", {}, [turned[..., 0], np.array([1, 2])])


@pytest.mark.parametrize(("name", "shape", "axes", "lengths"), CASES)
def test_a_transform_of_long_axes_agrees_with_its_kernel(name, shape, axes, lengths, monkeypatch):
    monkeypatch.setattr(fourier_module, "SHORT", 3)
    monkeypatch.setattr(fourier_module, "SHORT_REAL", 3)
    monkeypatch.setattr(fourier_module, "AT_ONCE", 8)
    agrees(fourier, name, {}, arrays_of(shape, axes, lengths), constant=(1, 2))


def test_a_transform_is_within_a_millionth_of_the_largest_number():
    kinds = (("DFT-7", (2,)), ("IDFT-7", (2,)), ("RDFT-9", ()), ("IRDFT-9", (2,)))
    for seed, ((name, last), length) in enumerate(product(kinds, (SHORT, SHORT_REAL, 300))):
        arrays = arrays_of((3, length, length, *last), [1, 2], None, seed)
        exact = plain(name, {}, [arrays[0].astype(np.float64), arrays[1]])
        work = work_of(name, {}, arrays, [(exact.shape, "f32")], constant=(1,))
        (found,) = computed(fourier(work, THREADS), work, arrays)
        assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("name", "shape", "axes", "lengths", "constant"),
    [
        ("DFT-7", (4, 2), [0], [3], (1,)),  # the size is known in a run only
        ("DFT-7", (4, 2), [0], None, ()),
        ("DFT-7", (4, 2), [], None, (1,)),
        ("RDFT-9", (4, 5), [1, 0], None, (1,)),
        ("IRDFT-9", (4, 5, 2), [1, 0], None, (1,)),
        ("IRDFT-9", (4, 1, 2), [1], None, (1,)),  # of no elements
    ],
)
def test_a_transform_of_unknown_axes_or_nothing_or_not_along_the_last_axis_is_left_to_others(
    name, shape, axes, lengths, constant
):
    arrays = arrays_of(shape, axes, lengths)
    work = work_of(name, {}, arrays, [((1,), "f32")], constant=constant)
    assert fourier(work, THREADS) is None


def test_what_is_infinite_is_computed_again():
    arrays = arrays_of((4, 2), [0], None)
    work = work_of("DFT-7", {}, arrays, [((4, 2), "f32")], constant=(1,))
    compiled = fourier(work, THREADS)
    assert compiled is not None
    assert compiled.doubtful


def stft_arrays(shape, weighed, size, step, seed=0):
    rng = np.random.default_rng(seed)
    signal, window = (rng.normal(size=own).astype(np.float32) for own in (shape, weighed))
    return [signal, window, np.array(size), np.array(step)]


def stft_work(arrays, transpose=False, constant=(2, 3), **attrs):
    attrs = {"transpose_frames": transpose, **attrs}
    expected = plain("STFT-15", attrs, [array.astype(np.float32) for array in arrays[:2]] + arrays[2:])
    return work_of("STFT-15", attrs, arrays, [(expected.shape, "f32")], constant=constant)


STFT = [
    *(((100,), 16, 16, 4), ((1, 100), 16, 16, 5), ((3, 100), 9, 16, 7), ((2, 57), 1, 13, 13), ((64,), 10, 15, 20)),
    *(((20,), 20, 20, 3), ((2, 9), 1, 1, 1), ((2, 50), 2, 2, 1), ((2, 9000), 400, 512, 160)),
]
"""Shapes of signals, lengths of windows, sizes of frames and steps."""


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(("shape", "weighed", "size", "step"), STFT)
def test_frames_agree_with_the_kernel(shape, weighed, size, step, transpose, monkeypatch):
    arrays = stft_arrays(shape, weighed, size, step)
    for constant in ((1, 2, 3), (2, 3)):  # the window, too, or not
        agrees(frames, "STFT-15", {"transpose_frames": transpose}, arrays, constant=constant)
    monkeypatch.setattr(fourier_module, "AT_ONCE", 3 * size)
    monkeypatch.setattr(fourier_module, "NANOSECONDS", 1e9)
    agrees(frames, "STFT-15", {"transpose_frames": transpose}, arrays, constant=(2, 3))


def test_frames_of_views():
    signal, *others = stft_arrays((90, 4), 12, 16, 4)
    for view in (signal.T, signal.T[::-2, ::-1], signal[:, 1], np.broadcast_to(signal[:, 1], (3, 90))):
        agrees(frames, "STFT-15", {"transpose_frames": True}, [view, *others], constant=(2, 3))
    _, window, *sizes = stft_arrays((90, 4), 32, 16, 4)
    agrees(frames, "STFT-15", {"transpose_frames": True}, [signal[:, 0].copy(), window[::-2], *sizes], constant=(2, 3))


def test_frames_are_within_a_millionth_of_the_largest_number():
    arrays = stft_arrays((2, 16000), 400, 400, 160)
    exact = plain("STFT-15", {"transpose_frames": True}, [arrays[0].astype("f8"), arrays[1].astype("f8"), *arrays[2:]])
    work = stft_work(arrays, transpose=True)
    (found,) = computed(frames(work, THREADS), work, arrays)
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()


def test_frames_of_unknown_sizes_and_of_other_types_are_left_to_others():
    arrays = stft_arrays((100,), 8, 8, 4)
    for constant in ((), (1, 2), (1, 3)):
        assert frames(stft_work(arrays, constant=constant), THREADS) is None
    halves = [arrays[0].astype(np.float16), arrays[1].astype(np.float16), *arrays[2:]]
    assert frames(stft_work(halves), THREADS) is None


def test_frames_of_numbers_that_are_infinite_or_large_are_computed_again():
    compiled = frames(stft_work(stft_arrays((100,), 8, 8, 4)), THREADS)
    assert compiled is not None
    assert compiled.doubtful
