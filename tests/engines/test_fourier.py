"""Fourier transforms of the numpy engine, held against the ops' kernels."""

from __future__ import annotations

import numpy as np
import pytest
from engines.agreement import agrees
from engines.works import THREADS, computed, plain, work_of

from irrun.engines.vectorized import fourier as fourier_module
from irrun.engines.vectorized.fourier import SHORT_REAL, fourier

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


@pytest.mark.skipif(not fourier_module.SINGLE, reason="numpy 1 transforms f32 in f64")
@pytest.mark.parametrize(("name", "shape", "axes", "lengths"), CASES)
def test_a_transform_of_long_axes_agrees_with_its_kernel(name, shape, axes, lengths, monkeypatch):
    monkeypatch.setattr(fourier_module, "SHORT", 3)
    monkeypatch.setattr(fourier_module, "SHORT_REAL", 3)
    monkeypatch.setattr(fourier_module, "AT_ONCE", 8)
    agrees(fourier, name, {}, arrays_of(shape, axes, lengths), constant=(1, 2))


def test_a_transform_is_within_a_millionth_of_the_largest_number():
    for seed, (name, last) in enumerate((("DFT-7", (2,)), ("IDFT-7", (2,)), ("RDFT-9", ()), ("IRDFT-9", (2,)))):
        arrays = arrays_of((3, 96, SHORT_REAL, *last), [1, 2], None, seed)
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


def test_long_axes_are_left_to_others_where_numpy_transforms_in_f64(monkeypatch):
    monkeypatch.setattr(fourier_module, "SINGLE", False)
    arrays = arrays_of((2, 100, 2), [1], None)
    assert fourier(work_of("DFT-7", {}, arrays, [((2, 100, 2), "f32")], constant=(1,)), THREADS) is None
    agrees(fourier, "DFT-7", {}, arrays_of((2, 96, 2), [1], None))


def test_what_is_infinite_is_computed_again():
    arrays = arrays_of((4, 2), [0], None)
    work = work_of("DFT-7", {}, arrays, [((4, 2), "f32")], constant=(1,))
    compiled = fourier(work, THREADS)
    assert compiled is not None
    assert compiled.doubtful
