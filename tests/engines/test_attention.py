"""Attention by blocks against the op's kernel: by numpy, and with scores that compiled code weighs."""

from __future__ import annotations

import numpy as np
import pytest
from engines.agreement import agrees, share_all
from engines.works import THREADS, plain, work_of

from irrun.engines.vectorized import attention
from irrun.engines.work import Post

NAME = "ScaledDotProductAttention-13"


def by_compiled_code(work, threads):
    from irrun.engines.compiled.flash import attention
    from irrun.engines.compiled.team import Team

    return attention(work, Team(threads.count))


@pytest.fixture(params=["numpy", "compiled", "wide"], autouse=True)
def compiler(request, monkeypatch):
    if request.param == "numpy":
        return attention.COMPILERS[NAME]
    pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")
    from irrun.engines import heads
    from irrun.engines.compiled import flash, flash_form

    monkeypatch.setattr(heads, "FEW", 1)
    monkeypatch.setattr(flash, "KEYS", 32)
    if request.param == "wide":  # as many rows and columns at once as with vectors of 16
        monkeypatch.setattr(flash, "tile", lambda _: flash_form.TILE_WIDE)
    return by_compiled_code


@pytest.fixture(params=[False, True], autouse=True)
def _shared(request, monkeypatch):
    if request.param:
        share_all(monkeypatch)
        monkeypatch.setattr(attention, "BLOCK", 200)
        flash = pytest.importorskip("irrun.engines.compiled.flash", reason="llvmlite compiles the kernels")
        monkeypatch.setattr(flash, "SHARED_SECONDS", 0)
        monkeypatch.setattr(flash, "FEWEST", 7)
        monkeypatch.setattr(flash, "LOOKING_SECONDS", 0)


def random_array(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture
def compare(compiler):
    def agree(*arrays, causal=False, posts=(), operands=()):
        agrees(compiler, NAME, {"causal": causal}, arrays, posts, operands, ())

    return agree


def heads(*shape):
    """Heads [N, H, L, E] that lie in memory as a projection gives them, [N, L, H, E]."""
    return random_array(shape[0], shape[2], shape[1], shape[3]).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("rows", "keys"), [(1, 1), (1, 30), (30, 1), (40, 40), (33, 50), (50, 33)])
def test_sizes(rows, keys, causal, compare):
    compare(heads(2, 3, rows, 8), heads(2, 3, keys, 8), heads(2, 3, keys, 5), causal=causal)


def test_batches_that_broadcast(compare):
    compare(random_array(2, 3, 9, 8), random_array(2, 1, 7, 8), random_array(3, 7, 5))
    compare(random_array(1, 1, 9, 8), random_array(2, 3, 7, 8), random_array(7, 5))
    compare(random_array(1, 9, 8), random_array(1, 7, 8), random_array(1, 7, 5), random_array(4, 9, 7))


@pytest.mark.parametrize("shape", [(9, 7), (1, 7), (3, 9, 7), (2, 1, 9, 7), (2, 3, 1, 7)])
def test_masks(shape, compare):
    arrays = random_array(2, 3, 9, 8), random_array(2, 3, 7, 8), random_array(2, 3, 7, 5)
    compare(*arrays, random_array(*shape))
    seen = random_array(*shape) > 0
    compare(*arrays, seen)
    compare(*arrays, seen, random_array(1))


def test_a_mask_that_is_not_one(compare):
    arrays = random_array(1, 9, 8), random_array(1, 7, 8), random_array(1, 7, 5)
    compare(*arrays, np.zeros((), np.float32), np.array(0.3, np.float32))
    compare(*arrays, random_array(9, 7), causal=True)
    compare(*arrays, None, np.float32([0.3]))


def test_a_row_that_sees_nothing(compare):
    seen = np.ones((9, 7), np.bool_)
    seen[4] = False
    compare(random_array(1, 9, 8), random_array(1, 7, 8), random_array(1, 7, 5), seen)
    compare(random_array(1, 9, 8), random_array(1, 7, 8), random_array(1, 7, 5), np.where(seen, 0, -np.inf).astype("f"))


@pytest.mark.parametrize("shape", [(1, 3, 3, 7), (2, 3, 1, 7), (3, 7), (1, 1, 1, 7)])
def test_few_rows_that_see_nothing(shape):
    for rows in (1, 3):
        seen = np.broadcast_to(random_array(*shape) > 0, shape).copy()
        seen[..., -1, :] = False
        seen = seen if rows == 3 or shape[-2] == 1 else seen[..., -1:, :]
        for count in (1, 3):  # heads that share keys, and others
            arrays = random_array(2, 3, rows, 8), random_array(2, count, 7, 8), random_array(2, count, 7, 5), seen
            work = work_of(NAME, {"causal": False}, arrays, [((2, 3, rows, 5), "f32")])
            call = attention.OPENERS[NAME](work, THREADS)
            (found,) = call(arrays)
            np.testing.assert_allclose(found, plain(NAME, {"causal": False}, arrays), 1e-5, 1e-6)
            assert not found[:, :, -1].any()


@pytest.mark.parametrize(
    ("mask", "taken"),
    [(np.float32(3), True), (np.bool_(True), False), (random_array(7), False), (random_array(3, 1), False)],
    ids=["number", "boolean", "of keys", "of rows"],
)
def test_masks_of_few_axes_beside_few_rows(mask, taken):
    """A number changes nothing; what broadcasts in another way is left to the kernel."""
    arrays = random_array(2, 3, 3, 8), random_array(2, 3, 7, 8), random_array(2, 3, 7, 5), np.asarray(mask)
    work = work_of(NAME, {"causal": False}, arrays, [((2, 3, 3, 5), "f32")])
    found = attention.OPENERS[NAME](work, THREADS)(arrays)
    assert (found is not None) == taken
    if found is not None:
        np.testing.assert_allclose(found[0], plain(NAME, {"causal": False}, arrays), 1e-5, 1e-6)


@pytest.mark.parametrize("hidden", [-np.inf, np.finfo(np.float32).min, -65504, -110, None])
def test_keys_that_are_hidden_behind_the_last_one(hidden, compare):
    """Also beside numbers that are none, which show through weights of 0, and where scores weigh more than the mask."""
    seen = np.tri(70, 90, 10, np.bool_)
    masks = [seen, np.tri(70, 90, -3, np.bool_), np.roll(seen, 20, 0), np.broadcast_to(seen[5], seen.shape).copy()]
    arrays = [random_array(2, 3, 70, 8), random_array(2, 3, 90, 8), random_array(2, 3, 90, 5)]
    for mask in masks if hidden is None else [np.where(mask, np.float32(0), np.float32(hidden)) for mask in masks]:
        compare(*arrays, mask)
        compare(*arrays, mask[None, None], np.float32([-0.5]))
        compare(*arrays, np.stack([mask, mask[::-1], mask])[:, ::-1])
    for number in (100, np.nan, np.inf, 1e20):
        for name in range(3):
            own = [array.copy() for array in arrays]
            own[name][:, 1, -1] *= np.float32(number)
            compare(*own, mask)


def test_a_mask_of_heads_that_are_as_many_as_rows(compare):
    compare(random_array(64, 64, 4), random_array(64, 64, 4), random_array(64, 64, 4), random_array(64, 1, 64) - 3e38)


def test_numbers_that_are_none(compare):
    query, key, value = random_array(1, 9, 8), random_array(1, 7, 8), random_array(1, 7, 5)
    query[0, 1, 2], query[0, 3, 3], key[0, 2, 1], value[0, 6, 0] = np.nan, np.inf, np.inf, np.nan
    for causal in (False, True):
        compare(query, key, value, causal=causal)
    compare(query, key, value, random_array(9, 7) > 0)


def test_posts(compiler, compare):
    """Which compiled code leaves to numpy."""
    posts = [Post("Multiply-1", {"auto_broadcast": "numpy"}, 3), Post("ReLU-1", {})]
    arrays = random_array(2, 3, 9, 8), random_array(2, 3, 7, 8), random_array(2, 3, 7, 5)
    if compiler is by_compiled_code:
        operands = [*arrays, random_array(3, 1, 5)]
        assert compiler(work_of(NAME, {"causal": False}, operands, [((2, 3, 9, 5), "f32")], posts), THREADS) is None
    else:
        compare(*arrays, posts=posts, operands=[random_array(3, 1, 5)])


def test_what_is_left_to_others(compiler):
    arrays = [random_array(1, 9, 8), random_array(1, 7, 8), random_array(1, 7, 5)]

    def compiled(arrays, type="f32"):
        work = work_of(NAME, {"causal": False}, arrays, [((1, 9, 5), type)])
        return compiler(work, THREADS)

    assert compiled([*arrays, None, None, random_array(1, 9, 1).astype(np.float64)]) is None
    assert compiled([array.astype(np.float64) for array in arrays], "f64") is None
    assert compiled([arrays[0], random_array(1, 7, 16)[..., ::2], arrays[2]]) is None
