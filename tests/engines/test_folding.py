"""Reductions by compiled loops, held against the op's kernel."""

import itertools

import numpy as np
import pytest
from engines.works import computed, plain, posted, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled import compiler, folding
from irrun.engines.compiled.folding import COMPILERS
from irrun.engines.compiled.team import Team
from irrun.engines.work import Post
from irrun.spec.dtypes import element_type, numpy_dtype

TEAM = Team(2)
LOGICAL = ("ReduceLogicalAnd-1", "ReduceLogicalOr-1")
NUMERIC = sorted(set(COMPILERS) - set(LOGICAL))
TYPES = ("f32", "u8", "i8", "i32", "i64")


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Small data are taken, and cut into parts."""
    monkeypatch.setattr(folding, "LEAST", 1)
    monkeypatch.setattr(folding, "SHARED_NANOSECONDS", 20)


def check(name, data, axes, exact=False):
    """Whether anything is compiled. Sums of floats are as near to those in f64 as to be rounded once."""
    attrs, arrays = {"keep_dims": False}, [data, np.array(axes)]
    type = element_type(data.dtype)
    expected = plain(name, attrs, arrays, {"T": type})
    work = work_of(name, attrs, arrays, [(expected.shape, type)], constant=(1,))
    compiled = COMPILERS[name](work, TEAM)
    if compiled is None:
        return False
    (found,) = computed(compiled, work, arrays)
    assert found.dtype == expected.dtype
    if type != "f32" or exact:
        np.testing.assert_array_equal(found, expected)
    else:
        along = tuple(axes)
        scale = np.sum(np.abs(data), axis=along, dtype=np.float64)
        scale = {"ReduceMean-1": scale / max(data.size // max(expected.size, 1), 1)}.get(name, scale)
        if name == "ReduceProd-1":
            scale = np.abs(np.prod(data, axis=along, dtype=np.float64)) * 10 + 1e-38
        assert np.all((np.abs(found.astype(np.float64) - expected) <= 1e-6 * scale) | (found == expected))
    return True


def drawn(rng, shape, type, name):
    if type == "boolean":
        return rng.random(shape) < rng.choice([0.01, 0.5, 0.99])
    if type == "f32":
        if name == "ReduceProd-1":
            return (1 + rng.normal(size=shape) * 0.1).astype(np.float32)
        return (rng.normal(size=shape) * 10 ** rng.uniform(-3, 3, shape)).astype(np.float32)
    limits = np.iinfo(numpy_dtype(type))
    if name == "ReduceL2-4":  # whose squares have to fit
        return rng.integers(max(limits.min, -30000), min(limits.max, 30000), shape, limits.dtype)
    return rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)


@pytest.mark.parametrize("name", [*NUMERIC, *LOGICAL])
@pytest.mark.parametrize("seed", range(3))
def test_random_axes(name, seed):
    rng = np.random.default_rng(seed)
    for type in ("boolean",) * 12 if name in LOGICAL else TYPES * 4:
        shape = tuple(rng.choice([1, 2, 3, 5, 8, 20, 150], rng.integers(1, 5), p=[0.1, *[0.16] * 5, 0.1]))
        axes = rng.permutation(len(shape))[: rng.integers(1, len(shape) + 1)].tolist()
        check(name, drawn(rng, shape, type, name), axes)


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("type", TYPES)
def test_every_kind_of_axes(name, type):
    rng = np.random.default_rng(5)
    taken = type not in ("i32", "i64") or name != "ReduceL2-4"
    for shape, axes in (
        ((3, 1500), (0,)),
        ((70, 1500), (0,)),
        ((6, 1100), (1,)),
        ((9, 20), (1,)),
        ((50, 3), (1,)),
        ((20000,), (0,)),
        ((3, 5, 40), (0, 2)),
        ((300, 2, 70), (0, 2)),
        ((2, 4, 3, 5, 6), (1, 3)),
        ((2, 4, 3, 5), (1, 3)),
    ):
        assert check(name, drawn(rng, shape, type, name), axes) is taken


@pytest.mark.parametrize("name", ["ReduceMax-1", "ReduceMin-1"])
def test_nan_is_skipped(name):
    rng = np.random.default_rng(2)
    for shape, axis in (((9, 700), 1), ((700, 9), 0), ((6, 20), 1), ((40, 5), 1), ((5000,), 0)):
        data = rng.normal(size=shape).astype(np.float32)
        data[rng.random(shape) < 0.5] = np.nan
        assert check(name, data, (axis,), exact=True)
        for value in (np.nan, np.inf, -np.inf):
            assert check(name, np.full(shape, value, np.float32), (axis,), exact=True)
            assert check(name, np.where(np.isnan(data), np.float32(value), data), (axis,), exact=True)


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize(("one", "other"), [*itertools.product([np.nan, np.inf, -np.inf, 0, -1], repeat=2)])
def test_floats_that_are_strange(name, one, other):
    for shape, axis in (((3, 300), 1), ((300, 3), 0)):
        data = np.ones(shape, np.float32)
        data[1] = one
        data[:, 1] = other
        with np.errstate(all="ignore"):
            assert check(name, data, (axis,), exact=True)


def test_long_sums_are_exact():
    data = np.full((1 << 20, 3), 0.1, np.float32)
    for array, axis in ((data, 0), (np.ascontiguousarray(data.T), 1)):
        work = work_of("ReduceSum-1", {"keep_dims": False}, [array, np.array([axis])], [((3,), "f32")], constant=(1,))
        (found,) = computed(COMPILERS["ReduceSum-1"](work, TEAM), work, [array, np.array([axis])])
        assert found.tolist() == [float(np.float32(array[0, 0].astype(float) * (1 << 20)))] * 3


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("type", ["f32", "u8", "i64"])
def test_axes_in_another_order_of_memory(name, type):
    """Done in that order; what is left lies in it, too."""
    if type in ("i32", "i64") and name == "ReduceL2-4":
        pytest.skip("left to the kernel")
    rng = np.random.default_rng(9)
    for order in ((0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3), (2, 0, 3, 1)):
        shape = tuple(rng.choice([1, 2, 3, 6, 7, 30], 4))
        data = np.ascontiguousarray(drawn(rng, shape, type, name).transpose(order)).transpose(np.argsort(order))
        for axes in ((1,), (2, 3), (-1,), (0, 1, 2, 3)):
            check(name, data, tuple(axis % 4 for axis in axes))


@pytest.mark.parametrize("name", sorted(COMPILERS))
def test_code_is_compiled_for_few_sizes_only(name):
    known = compiler._compiler()._addresses
    before, type = len(known), "boolean" if name in LOGICAL else "f32"
    for length in range(40, 140, 5):
        data = np.ones((length, length + 9), numpy_dtype(type))
        work = work_of(name, {"keep_dims": False}, [data, np.array([1])], [((length,), type)], constant=(1,))
        compiled = COMPILERS[name](work, TEAM)
        if compiled is not None:
            computed(compiled, work, [data, np.array([1])])
    assert len(known) - before <= 4


def test_means_of_the_least_integer():
    data = np.zeros((3, 40), np.int64)
    data[1, 7], data[2, 3] = np.iinfo(np.int64).min, np.iinfo(np.int64).min + 1
    assert check("ReduceMean-1", data, [1])


def test_means_of_sums_beyond_f32_are_infinite():
    data = np.full((3, 5000), 3e38, np.float32)
    data[1] /= 1e4
    with np.errstate(over="ignore"):
        assert check("ReduceMean-1", data, [1], exact=True)


def test_posts():
    rng = np.random.default_rng(11)
    data, added = rng.random((40, 9, 30)).astype(np.float32), np.array(1e-5, np.float32)
    posts = [Post("Add-1", {"auto_broadcast": "numpy"}, 2), Post("Sqrt-1", {})]
    for array in (data, np.ascontiguousarray(data.T).T):
        arrays = [array, np.array([2]), added]
        expected = posted(posts, plain("ReduceMean-1", {"keep_dims": True}, arrays[:2]), arrays)
        work = work_of("ReduceMean-1", {"keep_dims": True}, arrays, [(expected.shape, "f32")], posts, (1,))
        (found,) = computed(COMPILERS["ReduceMean-1"](work, TEAM), work, arrays)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_loops_are_not_made_for_is_left():
    data = np.ones((2, 3, 4, 5, 6, 7), np.float32)
    assert not check("ReduceSum-1", data, (0, 2, 4))
    assert not check("ReduceSum-1", data[0, 0, 0, :, ::2], (0,))
    assert not check("ReduceSum-1", data.astype(np.float64), (0,))
    assert not check("ReduceSum-1", data, ())
