"""Attention of few rows over any number of keys, compiled, against a slow obvious loop and the op's kernel."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from engines.works import plain
from numpy.lib.stride_tricks import as_strided

from irrun.engines.work import Operand, Post, Work

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from irrun.engines.compiled import attention
from irrun.engines.compiled.engine import CompiledEngine

NAME = "ScaledDotProductAttention-13"
F32 = np.float32

rng = np.random.default_rng(0)


@pytest.fixture(params=["alone", "shared"])
def engine(request, monkeypatch):
    """By one thread, and by three that take parts of a few keys."""
    if request.param == "shared":
        monkeypatch.setattr(attention, "WAKING_SECONDS", 0)
        monkeypatch.setattr(attention, "PART", 64)
    return CompiledEngine(3 if request.param == "shared" else 1)


def work(*types, causal=False):
    operands = [None if type is None else Operand(type, (-1, -1, -1, -1), ()) for type in types]
    return Work(NAME, {"causal": causal}, operands, [Operand("f32", (-1, -1, -1, -1), ())])


def opened(engine, *arrays):
    names = {np.dtype(F32): "f32", np.dtype(np.bool_): "boolean"}
    call = engine.open(work(*(None if array is None else names[array.dtype] for array in arrays)))
    assert call is not None
    return call


def computed(engine, *arrays):
    given = opened(engine, *arrays)(arrays)
    assert given is not None
    (result,) = given
    return result


def array(*shape):
    return rng.standard_normal(shape, F32)


def cached(*shape, spare=5):
    """Rows [batch, heads, length, size] in a buffer with room for more."""
    return array(*shape[:2], shape[2] + spare, shape[3])[:, :, : shape[2]]


def grouped(keys, group):
    """Keys [batch, heads, length, size] for each head of a group, as a view."""
    return as_strided(keys, (*keys.shape[:2], group, *keys.shape[2:]), (*keys.strides[:2], 0, *keys.strides[2:]))


def attended(query, key, value, mask=None, scale=None, sink=None):
    """A slow obvious loop, in f64."""
    batch = query.shape[:-2]
    key, value = (np.broadcast_to(own, (*batch, *own.shape[-2:])).astype(np.float64) for own in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else float(scale.item())
    result = np.zeros((*query.shape[:-1], value.shape[-1]))
    for place in np.ndindex(*query.shape[:-1]):
        scores = [float(query[place].astype(np.float64) @ row) * factor for row in key[place[:-1]]]
        if mask is not None:
            own = np.broadcast_to(mask, (*query.shape[:-1], len(scores)))[place]
            scores = [
                s if own.dtype == bool and m else -np.inf if own.dtype == bool else s + m
                for s, m in zip(scores, own, strict=True)
            ]
        last = [] if sink is None else [float(np.broadcast_to(sink, (*query.shape[:-1], 1))[place].item())]
        weights = np.exp(np.array(scores + last) - max(scores + last))
        result[place] = weights[: len(scores)] @ value[place[:-1]] / weights.sum()
    return result


def compare(engine, *arrays, room=2e-6):
    found = computed(engine, *arrays)
    expected = attended(*arrays)
    assert found.dtype == F32
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=room)


@pytest.mark.parametrize("keys", [1, 2, 15, 16, 17, 63, 64, 65, 129, 1000])
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_lengths(keys, rows, engine):
    compare(engine, array(1, 3, rows, 16), cached(1, 3, keys, 16), cached(1, 3, keys, 16))
    compare(engine, array(1, 3, rows, 16), cached(1, 3, keys, 16), cached(1, 3, keys, 16), array(1, 1, rows, keys))


@pytest.mark.parametrize("rows", [*range(1, 10), 31, 64])
def test_rows(rows, engine):
    compare(engine, array(2, 3, rows, 8), cached(2, 3, 70, 8), cached(2, 3, 70, 8), array(1, 1, rows, 70))


@pytest.mark.parametrize(
    ("size", "width"),
    [(64, 64), (80, 80), (96, 96), (128, 128), (40, 40), (72, 4), (256, 20), (12, 256), (1, 3), (5, 17)],
)
def test_sizes_of_heads(size, width, engine):
    compare(engine, array(1, 2, 1, size), cached(1, 2, 40, size), cached(1, 2, 40, width))
    compare(engine, array(1, 2, 4, size), cached(1, 2, 130, size), cached(1, 2, 130, width))


@pytest.mark.parametrize("group", [1, 2, 5, 7, 16])
@pytest.mark.parametrize("rows", [1, 2, 8])
def test_heads_that_share_keys(group, rows, engine):
    key, value = cached(2, 3, 150, 8), cached(2, 3, 150, 12)
    query, mask = array(2, 3, group, rows, 8), array(2, 1, 1, rows, 150)
    compare(engine, query, grouped(key, group), grouped(value, group), mask)
    compare(engine, query, key[:, :, None], value[:, :, None], array(3, group, rows, 150))
    compare(engine, query[:, 0], key[:, :1], value[:, :1], array(group, 1, 150))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("keys", [5, 64, 400])
def test_a_sink_takes_its_share(keys, rows, engine):
    key, value, scale = cached(2, 3, keys, 8), cached(2, 3, keys, 12), np.array(0.4, F32)
    query, mask = array(2, 3, 5, rows, 8), array(2, 1, 1, rows, keys)
    for number in (0, 30, -30):
        for sink in (array(1, 3, 5, 1, 1), array(2, 1, 5, rows, 1), array(1, 1, 1, 1, 1)):
            compare(engine, query, grouped(key, 5), grouped(value, 5), mask, scale, sink + F32(number))
        compare(engine, query[:, :, 0], key, value, None, None, array(1, 3, 1, 1) + F32(number))
        compare(engine, query[:, 0], key[:, :1], value[:, :1], mask[:, 0], scale, array(1, 5, 1, 1) + F32(number))


def test_many_rows_that_share_keys(engine):
    """448 of them, of which each sees some."""
    seen = np.tril(np.ones((32, 70), np.bool_), 38)
    compare(engine, array(1, 2, 7, 32, 8), cached(1, 2, 70, 8)[:, :, None], cached(1, 2, 70, 8)[:, :, None], seen)


def test_heads_of_several_axes(engine):
    compare(engine, array(3, 2, 8), array(3, 20, 8), array(3, 20, 8), array(2, 20))
    compare(engine, array(1, 3, 2, 1, 8), array(1, 3, 2, 20, 8), array(1, 3, 2, 20, 8))
    compare(engine, array(4, 2, 1, 8), array(1, 2, 20, 8), array(4, 1, 20, 8))
    compare(engine, array(4, 2, 1, 8), array(2, 20, 8), array(20, 8))
    compare(engine, array(4, 2, 3, 1, 8), array(1, 2, 1, 20, 8), array(4, 2, 1, 20, 8))


@pytest.mark.parametrize(
    "shape", [(2, 70), (1, 70), (3, 2, 70), (3, 1, 70), (4, 1, 2, 70), (4, 3, 1, 70), (1, 1, 1, 70)]
)
@pytest.mark.parametrize("scale", [None, array(), array(1)])
def test_masks(shape, scale, engine):
    arrays = array(4, 3, 2, 8), cached(4, 3, 70, 8), cached(4, 3, 70, 8)
    mask = array(*shape)
    compare(engine, *arrays, mask, scale)
    seen = mask > 0
    seen[..., 3] = True
    compare(engine, *arrays, seen, scale)
    compare(engine, *arrays, np.where(seen, F32(0), F32(-np.inf)), scale)
    compare(engine, *arrays, np.where(seen, F32(0), np.finfo(F32).min), scale)


def test_a_mask_that_is_none(engine):
    arrays = array(1, 3, 1, 8), cached(1, 3, 70, 8), cached(1, 3, 70, 8)
    compare(engine, *arrays, None, array())
    compare(engine, *arrays, np.zeros((), F32))


def test_views(engine):
    """Queries with the heads behind the rows, keys backwards and in every second row, masks of other orders."""
    query = array(2, 3, 4, 8).transpose(0, 2, 1, 3)
    key, value = array(2, 50, 4, 8)[:, ::-1].transpose(0, 2, 1, 3), array(2, 4, 100, 8)[:, :, ::2]
    compare(engine, query, key, value, array(50, 3).T)
    compare(engine, array(2, 4, 8, 3).swapaxes(-1, -2), key, value, (array(2, 1, 50, 3) > -1).swapaxes(-1, -2))
    compare(engine, query, np.broadcast_to(key[:, :, :1], key.shape), value, np.broadcast_to(array(3, 1), (3, 50)))


def test_scores_far_apart(engine):
    query, key, value = array(1, 2, 2, 8), cached(1, 2, 300, 8) * F32(30), cached(1, 2, 300, 8)
    for first, last in [(0, 400), (400, 0), (-1e30, -2e30)]:
        compare(engine, query, key, value, np.linspace(first, last, 300, dtype=F32)[None], room=1e-4)


def test_weights_near_the_smallest_number():
    """Values of 1e30 and more show weights near the least normal number; what is less is nothing, as to oneDNN."""
    key, value = np.zeros((1, 1, 40, 4), F32), np.zeros((1, 1, 40, 4), F32)
    value[0, 0, 1:] = 2e38
    mask = np.linspace(-107, -80, 40, dtype=F32)[None]
    mask[0, 0] = 0
    for number in range(1, 40):
        hidden = np.full_like(mask, -np.inf)
        hidden[0, [0, number]] = mask[0, [0, number]]
        found = computed(CompiledEngine(1), np.zeros((1, 1, 1, 4), F32), key, value, hidden)
        with np.errstate(under="ignore"):
            weight = float(np.exp(np.float64(mask[0, number])).astype(F32))
        expected = 0.0 if weight < np.finfo(F32).tiny else weight * 2e38
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=3e-7)


def test_no_more_wrong_than_numpy():
    query, key, value = array(1, 4, 1, 64), cached(1, 4, 2000, 64), cached(1, 4, 2000, 64)
    exact = attended(query * F32(4), key, value)
    found = computed(CompiledEngine(2), query * F32(4), key, value)
    with np.errstate(all="ignore"):
        usual = plain(NAME, {"causal": False}, [query * F32(4), key, value])
    assert np.abs(found - exact).max() <= 2 * np.abs(usual - exact).max()


@pytest.mark.parametrize("keys", [5, 70, 200])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(number, keys, engine):
    """Also where they are hidden, and before what is seen."""
    mask = array(3, keys)
    mask[0, [0, -1]] = -np.inf
    mask[1, : keys // 2] = -np.inf
    mask[2] = -np.inf
    for place in (0, keys // 2, keys - 1):
        for name in ("query", "key", "value", "mask"):
            arrays = {"query": array(1, 2, 3, 8), "key": cached(1, 2, keys, 8), "value": cached(1, 2, keys, 8)}
            arrays["mask"] = mask.copy()
            axis = -1 if name == "mask" else -2
            where = [slice(None)] * arrays[name].ndim
            where[axis] = min(place, arrays[name].shape[axis] - 1)
            arrays[name][tuple(where)] = number
            for given in (arrays["mask"], arrays["mask"] > 0, None):
                own = [*list(arrays.values())[:3], given]
                with np.errstate(all="ignore"):
                    expected = plain(NAME, {"causal": False}, own)
                np.testing.assert_allclose(computed(engine, *own), expected, rtol=1e-5, atol=2e-6)


def test_a_row_that_sees_nothing(engine):
    """It is 0 where a mask says so, and NaN where what it adds is infinite."""
    seen = np.ones((3, 200), np.bool_)
    seen[1] = False
    values = cached(1, 2, 200, 8)
    result = computed(engine, array(1, 2, 3, 8), cached(1, 2, 200, 8), values, seen)
    assert result.any(-1).tolist() == [[[True, False, True]] * 2]
    added = np.where(seen, 0, -np.inf).astype(np.float32)
    result = computed(engine, array(1, 2, 3, 8), cached(1, 2, 200, 8), values, added)
    assert np.isnan(result).tolist() == [[[[row == 1] * 8 for row in range(3)]] * 2]


def test_a_cache_that_grows(engine):
    """The same call, with more heads and fewer, longer and shorter."""
    call = opened(engine, array(1, 1, 1, 8), array(1, 1, 1, 8), array(1, 1, 1, 8))
    for heads, keys, rows in [
        (2, 3, 2),
        (2, 4, 1),
        (2, 5, 1),
        (30, 5, 1),
        (3, 700, 1),
        (3, 701, 1),
        (1, 900, 8),
        (2, 1, 1),
    ]:
        arrays = array(1, heads, rows, 8), cached(1, heads, keys, 8), cached(1, heads, keys, 8)
        for _ in range(2):
            np.testing.assert_allclose(call(arrays)[0], attended(*arrays), rtol=0, atol=2e-6)


def test_results_are_fresh(engine):
    arrays = array(1, 2, 1, 8), cached(1, 2, 20, 8), cached(1, 2, 20, 8)
    call = opened(engine, *arrays)
    (first,) = call(arrays)
    kept = first.copy()
    (second,) = call([-arrays[0], *arrays[1:]])
    assert not np.shares_memory(first, second)
    assert first.tolist() == kept.tolist()


def test_many_threads_at_once(engine):
    call = opened(engine, array(1, 1, 1, 8), array(1, 1, 1, 8), array(1, 1, 1, 8), array(1, 1))
    cases = []
    for number in range(4):
        keys = 100 + 37 * number
        arrays = array(1, 3, 1, 8), cached(1, 3, keys, 8), cached(1, 3, keys, 8), array(1, keys)
        cases.append((arrays, attended(*arrays)))
    wrong = []

    def some(arrays, expected):
        for _ in range(200):
            if not np.allclose(call(arrays)[0], expected, rtol=0, atol=2e-6):
                wrong.append(arrays)

    threads = [threading.Thread(target=some, args=case) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_numbers_of_threads(threads, monkeypatch):
    monkeypatch.setattr(attention, "WAKING_SECONDS", 0)
    for batch, heads, keys in [(1, 1, 3000), (1, 2, 500), (5, 7, 40)]:
        compare(
            CompiledEngine(threads),
            array(batch, heads, 1, 8),
            cached(batch, heads, keys, 8),
            cached(batch, heads, keys, 8),
        )


def test_what_is_left_to_others():
    engine, f32 = CompiledEngine(1), ("f32", "f32", "f32")
    assert engine.open(work(*f32, causal=True)) is None
    assert engine.open(work(*f32, None, None, "f16")) is None
    assert engine.open(work("f16", "f16", "f16")) is None
    assert engine.open(work(*f32, "f16")) is None
    own = work(*f32)
    own.posts.append(Post("ReLU-1", {}))
    assert engine.open(own) is None
    own.name = "SoftMax-8"
    assert engine.open(own) is None


def test_arrays_that_are_left_to_others():
    def left(*arrays):
        return opened(CompiledEngine(1), *arrays)(arrays) is None

    query, key = array(1, 2, 1, 8), array(1, 2, 9, 8)
    assert not left(query, key, key)
    assert left(array(1, 2, 65, 8), key, key)
    assert left(query, key[:, :, :0], key[:, :, :0])
    assert left(query[:, :0], key[:, :0], key[:, :0])
    assert left(query, key, array(1, 2, 9, 260))
    assert left(query, array(1, 2, 8, 9).swapaxes(-1, -2), key)
    assert left(query, key[..., ::-1], key)
    assert left(array(2, 2, 2, 1, 8), array(2, 2, 2, 9, 8), array(2, 2, 2, 9, 8))
    assert left(query[:, :1], key, key)
    assert left(array(1, 514, 1, 8), key[:, :1], key[:, :1])
    assert left(query, key, key, array(1, 1))
    assert left(query, key, key, array(9))
    assert left(query, key, key, np.ones((), np.bool_))
    assert left(query, key, key, array(1, 1, 2, 1, 9))
    assert left(query, key, key, array(1, 1, 1, 9), array(2))


def test_llvmlite_is_not_loaded_for_other_works():
    code = """
import sys
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.work import Operand, Work
engine = CompiledEngine(1)
assert engine.open(Work("ReLU-1", {}, [Operand("f32", (-1,), ())], [Operand("f32", (-1,), ())])) is None
sys.exit("llvmlite" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
