"""Attention of many rows of bf16, by pairs of numbers and by tiles, against the op's own kernel in f64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from engines.attending import attended, attention, check_that_one_engine_takes_what_is_large_enough, exact

from irrun.engines import onednn
from irrun.engines.compiled import amx, bf16, flash, flash_form

pytestmark = pytest.mark.skipif(not bf16.is_made(), reason="the processor multiplies no bf16")

BF16, F32 = ml_dtypes.bfloat16, np.float32

ROUNDING = 2.0**-8
"""Of weights and of results, of the largest value."""

rng = np.random.default_rng(0)


@pytest.fixture(params=["pairs", "tiles"], autouse=True)
def way(request, monkeypatch):
    if request.param == "pairs":
        monkeypatch.setattr(flash, "tile", lambda _: flash_form.TILE_WIDE)
    elif not amx.is_there():
        pytest.skip("the processor multiplies no tiles of bf16")


def random(*shape):
    return rng.standard_normal(shape, F32).astype(BF16)


def heads(*shape):
    """Heads [N, H, L, E] that lie in memory as a projection gives them, [N, L, H, E]."""
    return random(shape[0], shape[2], shape[1], shape[3]).transpose(0, 2, 1, 3)


def agree(arrays, causal=False, threads=2):
    """The result as it is in f64, and the same on one thread."""
    found, expected = attended(arrays, threads, causal), exact(arrays, causal)
    assert found.dtype == BF16
    largest = np.abs(arrays[2].astype(F32))
    scale = float(largest[np.isfinite(largest)].max())
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=ROUNDING, atol=ROUNDING * scale)
    np.testing.assert_array_equal(attended(arrays, 1, causal).astype(F32), found.astype(F32))


@pytest.mark.parametrize("keys_of_a_block", [32, 256])
@pytest.mark.parametrize(("rows", "keys"), [(8, 8), (64, 64), (300, 700), (257, 513), (700, 97), (31, 33)])
@pytest.mark.parametrize(("size", "width"), [(64, 64), (40, 72), (3, 256), (65, 1), (256, 17), (31, 33)])
def test_sizes_and_masks(rows, keys, size, width, keys_of_a_block, monkeypatch):
    monkeypatch.setattr(flash, "KEYS", keys_of_a_block)
    monkeypatch.setattr(flash, "SHARED_SECONDS", 0)
    arrays = [heads(1, 2, rows, size), heads(1, 2, keys, size), heads(1, 2, keys, width)]
    mask = random(rows, keys)
    seen = np.tri(rows, keys, keys // 3, np.bool_) & (mask < 1)
    seen[rows // 2] = False  # a row that sees nothing is 0
    for others, causal in (((), False), ((), True), ((mask,), False), ((seen,), False)):
        agree([*arrays, *others], causal)


def test_sums_of_many_keys_are_little_worse_than_one_rounding():
    """Weights are rounded, which evens out, and so is their sum; sums are not."""
    arrays = [heads(1, 1, 64, 64), heads(1, 1, 4096, 64), heads(1, 1, 4096, 64) + BF16(3)]
    found, expected = attended(arrays).astype(np.float64), exact(arrays)
    assert 2 < found.min() < found.max() < 4  # where numbers are 1 / 64 apart
    assert np.abs(found - expected).max() < 2.0**-7 + 5e-4


@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (2, 3, 90, 1), (1, 1, 1, 1)])
def test_a_sink_takes_its_share(shape):
    arrays = [heads(2, 3, 90, 40), heads(2, 3, 520, 40), heads(2, 3, 520, 24)]
    mask, scale = random(90, 520), np.array(0.3, BF16)
    for number in (0, 3, 60, -200, -np.inf):
        own = [*arrays, mask, scale, random(*shape) + BF16(number)]
        for causal in (False, True):
            agree(own, causal)
    seen = np.tri(90, 520, -1, np.bool_)  # of which the first row has none
    agree([*arrays, seen, scale, random(*shape)])


@pytest.mark.parametrize("scale", [0.0, -1.5, 1e30])
def test_scales(scale):
    arrays = [heads(1, 2, 70, 8), heads(1, 2, 300, 8), heads(1, 2, 300, 8), np.zeros((), BF16)]
    agree([*arrays, np.array(scale, BF16)])


def test_scores_far_apart(monkeypatch):
    """Of one block of keys and the next: weights of the former become 0, or those of the latter are."""
    monkeypatch.setattr(flash, "KEYS", 64)
    arrays = [heads(1, 2, 70, 8), heads(1, 2, 600, 8), heads(1, 2, 600, 8)]
    for first, last in [(0, 400), (400, 0), (-1e30, -2e30), (-2e30, -1e30), (-3.38e38, -3.38e38)]:
        agree([*arrays, np.linspace(first, last, 600).astype(BF16)[None]])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(number):
    """In any block of keys, hidden or not, and rows that see nothing."""
    mask = random(70, 600)
    mask[0] = mask[1, :300] = mask[2, 300:] = -np.inf
    for name, place in [(0, 5), *((own, place) for own in (1, 2, 3) for place in (2, 299, 599))]:
        arrays = [heads(1, 2, 70, 8), heads(1, 2, 600, 8), heads(1, 2, 600, 8), mask.copy()]
        arrays[name][(..., place) if name == 3 else (0, 1, place, 3)] = number
        with np.errstate(invalid="ignore"):
            seen = arrays[3] > 0
        for others, causal in ((arrays[3:], False), ([seen], False), ([], False), ([], True)):
            own = [*arrays[:3], *others]
            found, expected = attended(own, 2, causal).astype(np.float64), exact(own, causal)
            np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=4 * ROUNDING)


@pytest.mark.parametrize("number", [1, np.nan, np.inf])
def test_keys_that_are_hidden_are_left_out(number, monkeypatch):
    """Where values show that: a NaN among these does through a weight of 0."""
    monkeypatch.setattr(flash, "ROWS", 64)
    monkeypatch.setattr(flash, "LOOKING_SECONDS", 0)
    arrays = [heads(1, 2, 200, 8), heads(1, 2, 200, 8), heads(1, 2, 200, 8)]
    arrays[2][0, 1, 150, 2] += BF16(number)
    seen = np.tri(200, 200, 0, np.bool_)
    for others, causal in (((), True), ((seen,), False)):
        agree([*arrays, *others], causal)


def test_views():
    """Rows that are repeated, backwards, or every second one; masks of heads and of rows; heads that lie apart."""
    key, value = heads(2, 4, 150, 8)[:, :, ::-1], heads(2, 4, 300, 8)[:, :, ::2]
    query = np.broadcast_to(heads(2, 1, 90, 8), (2, 4, 90, 8))
    for shape in ((90, 150), (1, 150), (4, 1, 150), (2, 1, 90, 150)):
        mask = random(*shape)
        for own in (mask, mask[..., ::-1, :], mask > 0):
            agree([query, key[:, :1], value, own])
    odd = random(2 * 4 * 150 * 8 + 1)[1:].reshape(2, 4, 150, 8)  # at addresses that are multiples of 2 alone
    agree([odd, odd, odd])


@pytest.mark.skipif(onednn.load(1) is None, reason="oneDNN is not installed")
def test_one_engine_takes_what_is_large_enough():
    check_that_one_engine_takes_what_is_large_enough(heads)


def test_masks_and_numbers_of_other_types_are_left_to_others():
    arrays = [heads(1, 2, 64, 8), heads(1, 2, 64, 8), heads(1, 2, 64, 8)]
    mask = rng.standard_normal((64, 64), F32)
    assert attention([*arrays, mask])[1] is None
    assert attention([*arrays[:2], arrays[2].astype(F32)])[1] is None
