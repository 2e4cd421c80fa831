"""The largest and smallest elements by compiled loops, held against the op's kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.top_k import COMPILERS, FEW, MOST
from irrun.engines.work import Operand, Post, Work
from irrun.spec.dtypes import element_type

ENGINE = CompiledEngine(2)


def selected(data, k, axis=-1, mode="max", sort="value", index="i32", outputs=2, name="TopK-11"):
    """What is compiled, and the kernel's."""
    attrs = {"axis": axis, "mode": mode, "sort": sort, "index_element_type": index}
    attrs |= {"stable": False} if name == "TopK-11" else {}
    arrays = [data, np.array(k)]
    expected = plain(name, attrs, arrays)
    types = element_type(data.dtype), index
    results = [(result.shape, type) for result, type in zip(expected, types, strict=True)][:outputs]
    work = work_of(name, attrs, arrays, results)
    compiled = ENGINE.compile(work)
    assert compiled is not None
    return computed(compiled, work, arrays), expected


def same(found, expected):
    for own, other in zip(found, expected, strict=False):
        assert own.dtype == other.dtype
        np.testing.assert_array_equal(own.view(np.uint8), np.ascontiguousarray(other).view(np.uint8))


@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("sort", ["value", "index"])
@pytest.mark.parametrize("mode", ["min", "max"])
def test_elements_are_those_of_the_kernel(mode, sort, index):
    rng = np.random.default_rng(2)
    shapes = (((300,), 0, 20), ((3, 5, 70), -1, 7), ((2, 90, 4), 1, 33), ((6, 2, 3), 0, 6), ((2, 2000), 1, 2))
    for shape, axis, k in shapes:
        numbers = rng.normal(size=shape).astype(np.float32)
        for data in (numbers, numbers.round(), rng.integers(-3, 3, shape).astype(np.int32)):
            same(*selected(data, k, axis, mode, sort, index))


@pytest.mark.parametrize(("mode", "sort", "index"), [("max", "value", "i64"), ("min", "index", "i32")])
def test_few_elements_of_rows_beside_one_another_are_those_of_the_kernel(mode, sort, index):
    rng = np.random.default_rng(6)
    strange = np.array([0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3e38, -3e38], np.float32)
    for shape, axis, k in (((2, 21, 50), 1, 1), ((40, 8), 0, FEW), ((3, 9, 5, 13), 1, 9), ((2, 1, 33), 1, 1)):
        limits = rng.choice(np.array([-(2**31), 2**31 - 1, 0, -1, 1], np.int32), shape)
        for data in (rng.normal(size=shape).astype(np.float32), rng.choice(strange, shape), limits):
            same(*selected(data, k, axis, mode, sort, index))
    same(*selected(rng.normal(size=(2, 30, 700)).astype(np.float32), 1, 1, mode, sort, outputs=1))


@pytest.mark.parametrize(("mode", "sort", "index"), [("max", "value", "i64"), ("min", "index", "i32")])
def test_one_element_of_rows_of_neighbours_is_that_of_the_kernel(mode, sort, index):
    rng = np.random.default_rng(9)
    strange = np.array([0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3e38, -3e38], np.float32)
    for size in (1, 7, 15, 16, 17, 31, 32, 33, 80, 300):
        shape = (3, 5, size)
        limits = rng.choice(np.array([-(2**31), 2**31 - 1, 0, -1, 1], np.int32), shape)
        numbers = rng.normal(size=shape).astype(np.float32)
        for data in (numbers, numbers.round(), rng.choice(strange, shape), np.full(shape, np.nan, np.float32), limits):
            same(*selected(data, 1, -1, mode, sort, index))
    same(*selected(rng.normal(size=(9, 40)).astype(np.float32), 1, 1, mode, sort, outputs=1))


@pytest.mark.parametrize("name", COMPILERS)
def test_every_version_is_compiled(name):
    data = np.random.default_rng(1).normal(size=(4, 50)).astype(np.float32)
    same(*selected(data, 5, sort="none", name=name))


@pytest.mark.parametrize("mode", ["min", "max"])
def test_zeros_nan_and_limits_come_in_their_order(mode):
    rng = np.random.default_rng(3)
    strange = np.array([0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3e38, -3e38], np.float32)
    limits = np.array([-(2**31), 2**31 - 1, 0, -1, 1], np.int32)
    for count in (2, 9, 100, 200):
        same(*selected(rng.choice(strange, (3, 200)), count, mode=mode))
        same(*selected(rng.choice(limits, (3, 200)), count, mode=mode))
    values, indices = selected(np.array([1, np.nan, 2], np.float32), 3, mode=mode)[0]
    assert indices.tolist() == ([1, 0, 2] if mode == "min" else [2, 0, 1])
    assert np.isnan(values[0 if mode == "min" else 2])


@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("sort", ["value", "index"])
@pytest.mark.parametrize("mode", ["min", "max"])
def test_integers_of_64_bits(mode, sort, index):
    """Also such as have more than 32 bits, in some place."""
    rng = np.random.default_rng(8)
    shapes = (((300,), 0, 20), ((3, 5, 70), -1, 7), ((2, 90, 40), 1, 33), ((2, 21, 50), 1, 1), ((40, 8), 0, 9))
    for shape, axis, k in shapes:
        for limit in (3, 2**31):
            data = rng.integers(-limit, limit, shape)
            same(*selected(data, k, axis, mode, sort, index))
            for wide in (2**31, -(2**31) - 1, 2**63 - 1, -(2**63)):
                data.flat[rng.integers(data.size)] = wide
                same(*selected(data, k, axis, mode, sort, index))
        same(*selected(data, k, axis, mode, sort, outputs=1))


def test_rows_that_rise_and_fall_and_many_of_them():
    rising = np.arange(5000, dtype=np.float32)
    for data in (rising, rising[::-1].copy(), np.zeros(5000, np.float32)):
        same(*selected(data, 700))
        same(*selected(data, 5000, mode="min"))
    same(*selected(np.random.default_rng(4).normal(size=(300, 700)).astype(np.float32), 9))


def test_indices_that_nobody_reads_are_left_out():
    same(*selected(np.random.default_rng(5).normal(size=(7, 90)).astype(np.float32), 4, outputs=1))


def opened(data, k, axis=-1, mode="max", sort="value", index="i64", posts=()):
    attrs = {"axis": axis, "mode": mode, "sort": sort, "index_element_type": index, "stable": False}
    operands = [Operand(element_type(data.dtype), (-1,) * data.ndim, ()), Operand("i64", (), ())]
    outputs = [Operand(operands[0].type, (-1,) * data.ndim, ()), Operand(index, (-1,) * data.ndim, ())]
    call = ENGINE.open(Work("TopK-11", attrs, operands, outputs, list(posts)))
    arrays = [data, np.asarray(k)]
    return None if call is None else call(arrays), plain("TopK-11", attrs, arrays)


@pytest.mark.parametrize("sort", ["value", "index"])
def test_elements_of_rows_of_any_size_are_those_of_the_kernel(sort):
    rng = np.random.default_rng(7)
    for shape, k in (((300,), 20), ((300,), 300), ((2, 3, 70), 2), ((1, 2), 2), ((40, 900), 300), ((4, 5, 70), 1)):
        numbers = rng.normal(size=shape).astype(np.float32)
        numbers.reshape(-1)[1] = np.nan
        for data in (numbers, numbers.round(), rng.integers(-3, 3, shape).astype(np.int32)):
            for mode, index in (("max", "i32"), ("min", "i64")):
                same(*opened(data, k, numbers.ndim - 1, mode, sort, index))


def test_nothing_of_nothing():
    for shape in ((0,), (3, 0)):
        data = np.zeros(shape, np.float32)
        same(*opened(data, 0))
        same(*opened(data.astype(np.int32), 0, index="i32"))


def test_of_rows_of_any_size_others_do_what_they_do_better():
    data = np.random.default_rng(8).normal(size=(4, 5)).astype(np.float32)
    for given, k, axis in ((data, 1, -1), (data, 2, 0), (data.T, 2, 1), (np.zeros((0, 5), np.float32), 2, 1)):
        assert opened(given, k, axis)[0] is None
    assert opened(data.astype(np.float64), 2)[0] is None
    assert opened(data, 2, posts=[Post("ReLU-1", {})])[0] is None
    row = Operand("f32", (-1,), ())
    attrs = {"axis": 0, "mode": "max", "sort": "value"}
    call = ENGINE.open(Work("TopK-1", attrs, [row, Operand("i64", (), ())], [row, Operand("i32", (-1,), ())]))
    for k in (0, -1, 6, [2, 2], []):
        assert call is not None
        assert call([data[0], np.array(k)]) is None


def test_what_the_kernel_does_better_is_left_to_it():
    for data, k in ((np.zeros(MOST + 1, np.float32), MOST + 1), (np.zeros(9, np.float32), 1), (np.zeros(9), 2)):
        attrs = {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i32"}
        type = "f32" if data.dtype == np.float32 else "f64"
        assert ENGINE.compile(work_of("TopK-3", attrs, [data, np.array(k)], [((k,), type), ((k,), "i32")])) is None
