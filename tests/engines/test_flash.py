"""Attention of many rows by a kernel that keeps no scores, at the sizes it is for; `test_attention.py` has others."""

from __future__ import annotations

import numpy as np
import pytest
from engines.works import computed, plain

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from engines.attending import NAME, attended, attention, check_that_one_engine_takes_what_is_large_enough, exact

from irrun.engines import onednn
from irrun.engines.compiled import flash, flash_form
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.heads import LEAST_SCORES
from irrun.engines.threads import Threads
from irrun.engines.vectorized.attention import compile_attention

F32 = np.float32

rng = np.random.default_rng(0)


def heads(*shape):
    """Heads [N, H, L, E] that lie in memory as a projection gives them, [N, L, H, E]."""
    return rng.standard_normal((shape[0], shape[2], shape[1], shape[3]), F32).transpose(0, 2, 1, 3)


@pytest.mark.parametrize(("rows", "keys"), [(64, 64), (300, 700), (257, 513), (700, 100)])
@pytest.mark.parametrize(("size", "width"), [(64, 64), (40, 72), (3, 256), (65, 1)])
def test_by_any_threads_the_same_and_near_to_what_is_exact(rows, keys, size, width):
    arrays = [heads(2, 3, rows, size) * F32(2), heads(2, 3, keys, size), heads(2, 3, keys, width)]
    mask = rng.standard_normal((rows, keys), F32)
    seen = np.tri(rows, keys, keys // 3, np.bool_) & (mask < 1)
    for others, causal in (((), False), ((), True), ((mask,), False), ((seen,), False)):
        found = attended([*arrays, *others], 1, causal)
        expected = exact([*arrays, *others], causal)
        assert np.abs(found - expected).max() < 1e-6 * np.abs(arrays[2]).max()
        np.testing.assert_array_equal(attended([*arrays, *others], 3, causal), found)


@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (2, 3, 300, 1), (1, 1, 1, 1)])
def test_a_sink_takes_its_share(shape):
    arrays = [heads(2, 3, 300, 40), heads(2, 3, 520, 40), heads(2, 3, 520, 24)]
    mask, scale = rng.standard_normal((300, 520), F32), np.array(0.3, F32)
    for number in (0, 3, 60, -200, -np.inf):
        own = [*arrays, mask, scale, rng.standard_normal(shape, F32) + F32(number)]
        for causal in (False, True):
            found, expected = attended(own, 2, causal), exact(own, causal)
            assert np.abs(found - expected).max() < 1e-6 * np.abs(arrays[2]).max()
    seen = np.tri(300, 520, -1, np.bool_)  # of which the first row has none
    own = [*arrays, seen, scale, rng.standard_normal(shape, F32)]
    np.testing.assert_allclose(attended(own), exact(own), rtol=0, atol=3e-6)


def test_keys_that_are_hidden_are_left_out(monkeypatch):
    """Where values show that: a NaN among these does through a weight of 0."""
    monkeypatch.setattr(flash, "ROWS", 64)
    arrays = [heads(1, 2, 200, 8), heads(1, 2, 200, 8), heads(1, 2, 200, 8)]
    seen = np.tri(200, 200, 0, np.bool_)
    added = np.where(seen, F32(0), F32(-np.inf))
    for number in (0, np.nan, np.inf):
        arrays[2][0, 1, 150, 2] += F32(number)
        for others, causal in (((), True), ((seen,), False), ((added,), False), ((seen[None, None],), False)):
            own = [*arrays, *others]
            with np.errstate(all="ignore"):
                expected = plain(NAME, {"causal": causal}, own)
            np.testing.assert_allclose(attended(own, 2, causal), expected, rtol=0, atol=1e-6)


def test_scores_far_apart():
    """Of one block of keys and the next: weights of the former become 0, or those of the latter are."""
    arrays = [heads(1, 2, 70, 8), heads(1, 2, 600, 8), heads(1, 2, 600, 8)]
    for first, last in [(0, 400), (400, 0), (-1e30, -2e30), (-2e30, -1e30)]:
        mask = np.linspace(first, last, 600, dtype=F32)[None]
        np.testing.assert_allclose(attended([*arrays, mask]), exact([*arrays, mask]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(number):
    """In any block of keys, hidden or not, and rows that see nothing."""
    mask = rng.standard_normal((70, 600), F32)
    mask[0] = -np.inf
    mask[1, :300] = -np.inf
    mask[2, 300:] = -np.inf
    for name, place in [(0, 5), *((own, place) for own in (1, 2, 3) for place in (2, 299, 599))]:
        arrays = [heads(1, 2, 70, 8), heads(1, 2, 600, 8), heads(1, 2, 600, 8), mask.copy()]
        arrays[name][(..., place) if name == 3 else (0, 1, place, 3)] = number
        for others, causal in ((arrays[3:], False), ([arrays[3] > 0], False), ([], False), ([], True)):
            own = [*arrays[:3], *others]
            with np.errstate(all="ignore"):
                expected = plain(NAME, {"causal": causal}, own)
            np.testing.assert_allclose(attended(own, 2, causal), expected, rtol=1e-5, atol=2e-6)


def test_views():
    """Rows that are repeated, backwards, or every second one; masks of heads and of rows."""
    key, value = heads(2, 4, 150, 8)[:, :, ::-1], heads(2, 4, 300, 8)[:, :, ::2]
    query = np.broadcast_to(heads(2, 1, 90, 8), (2, 4, 90, 8))
    for shape in ((90, 150), (1, 150), (4, 1, 150), (2, 1, 90, 150)):
        mask = rng.standard_normal(shape, F32)
        for own in (mask, mask[..., ::-1, :], mask > 0):
            arrays = [query, key[:, :1], value, own]
            np.testing.assert_allclose(attended(arrays, 2), exact(arrays), rtol=0, atol=2e-6)


def test_a_constant_mask_lies_as_it_may():
    """Its rows are made dense, once for heads that share it."""
    arrays = [heads(2, 4, 20, 8), heads(2, 4, 30, 8), heads(2, 4, 30, 8)]
    turned = rng.standard_normal((20, 30, 4), F32).transpose(2, 0, 1)
    for mask in (turned, np.broadcast_to(turned[:1], (2, 4, 20, 30)), turned > 0):
        work, compiled = attention([*arrays, mask], constant=(3,))
        assert compiled is not None
        assert compiled.taken == {3}
        found = computed(compiled, work, [*arrays, None])[0]
        np.testing.assert_allclose(found, exact([*arrays, mask]), rtol=0, atol=1e-6)


def test_the_result_has_heads_inside_of_rows():
    arrays = [heads(2, 4, 20, 8)] * 3
    _, compiled = attention(arrays)
    assert compiled is not None
    assert compiled.gives[0].strides == arrays[0].strides
    flat = [own.reshape(8, 20, 8) for own in arrays]
    _, compiled = attention(flat)
    assert compiled is not None
    assert not compiled.gives


@pytest.mark.skipif(onednn.load(1) is None, reason="oneDNN is not installed")
def test_one_engine_takes_what_is_large_enough():
    check_that_one_engine_takes_what_is_large_enough(heads)


@pytest.mark.skipif(onednn.load(1) is None, reason="oneDNN is not installed")
@pytest.mark.parametrize("fixed", [False, True])
def test_few_scores_of_changing_sizes_are_left_to_what_is_loaded_already(fixed):
    few, _ = attention([heads(1, 1, 8, 8), heads(1, 1, 16, 8), heads(1, 1, 16, 8)])
    many, _ = attention([heads(1, 1, LEAST_SCORES // 128, 8), heads(1, 1, 128, 8), heads(1, 1, 128, 8)])
    engine = onednn.load(2, fixed=fixed, compiling=True)
    others = CompiledEngine(2, engine.parallel, loaded=engine.expect_compiled)
    assert others.compile(few) is None
    assert engine.compile(few) is not None
    assert others.compile(many) is not None
    assert others.compile(few) is not None
    assert (engine.compile(few) is None) == (not fixed)


def test_no_more_memory_than_numpy():
    arrays = [heads(1, 6, 1500, 64)] * 3
    work, compiled = attention(arrays, 2)
    usual = compile_attention(work, Threads(2))
    assert compiled is not None
    assert usual is not None
    assert compiled.scratch < usual.scratch


def test_what_is_left_to_others(monkeypatch):
    key = heads(1, 2, 70, 8)
    assert attention([heads(1, 2, 7, 8), key, key])[1] is None
    assert attention([key, heads(1, 2, 7, 8), heads(1, 2, 7, 8)])[1] is None
    assert attention([heads(1, 2, 8, 8), key, key])[1] is not None
    assert attention([heads(1, 2, 70, 257), heads(1, 2, 70, 257), key])[1] is None
    assert attention([key, heads(1, 2, 8, 70).swapaxes(-1, -2), key])[1] is None
    assert attention([key, key, key, rng.standard_normal((70, 70), F32).T])[1] is None
    monkeypatch.setattr(flash_form, "features", frozenset)
    monkeypatch.setattr(flash_form, "is_x86", lambda: True)
    assert attention([key, key, key])[1] is None


def test_small_works_and_single_runs_are_no_reason_to_load_what_compiles():
    rows = LEAST_SCORES // 512
    works = [attention([heads(1, 1, own, 8), heads(1, 1, 512, 8), heads(1, 1, 512, 8)])[0] for own in (rows - 1, rows)]
    engine = CompiledEngine(2)
    assert engine.compile(works[0]) is None
    assert engine.compile(works[1]) is not None
    assert engine.compile(works[0]) is not None
    assert CompiledEngine(2, once=True).compile(works[1]) is None


@pytest.mark.parametrize("shape", [(1, 1), (64, 1), (2, 1, 64, 1), (2, 3, 1, 1)])
@pytest.mark.parametrize("constant", [(), (3,)])
def test_a_mask_of_one_number_for_all_keys_is_left_to_others(shape, constant):
    """The kernel would read as many numbers as there are keys."""
    arrays = [heads(2, 3, 64, 8), heads(2, 3, 64, 8), heads(2, 3, 64, 8), rng.standard_normal(shape, F32)]
    _, compiled = attention(arrays, constant=constant)
    assert compiled is None
