"""Elements taken along an axis by compiled loops, held against the op's kernel."""

import numpy as np
import pytest
from engines.works import plain

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.work import Operand, Work
from irrun.spec.dtypes import element_type

NAME = "GatherElements-6"
ENGINE = CompiledEngine(2)


def opened(data, indices, axis):
    operands = [Operand(element_type(array.dtype), (-1,) * array.ndim, ()) for array in (data, indices)]
    call = ENGINE.open(Work(NAME, {"axis": axis}, operands, [operands[0]]))
    return None if call is None else call([data, indices])


def check(data, indices, axis):
    (found,) = opened(data, indices, axis)
    expected = plain(NAME, {"axis": axis}, [data, indices])
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4", "u1", "?"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_elements_are_those_of_the_kernel(axis, dtype, index):
    rng = np.random.default_rng(8)
    data = rng.integers(0, 100, (4, 6, 5)).astype(dtype)
    for count in (1, 3, 50):
        shape = [4, 6, 5]
        shape[axis] = count
        check(data, rng.integers(0, data.shape[axis], shape).astype(index), axis)


def test_many_elements_and_views():
    rng = np.random.default_rng(9)
    data = rng.normal(size=(3, 500, 60)).astype(np.float32)
    check(data, np.broadcast_to(rng.integers(0, 500, (3, 900, 1)), (3, 900, 60)), 1)
    check(data.transpose(2, 1, 0), rng.integers(0, 500, (60, 70, 3)), 1)
    check(data[:, ::-2], rng.integers(0, 250, (3, 70, 60)), 1)


@pytest.mark.parametrize("wrong", [-1, 5, 2**31 - 1, -(2**31), 2**62])
def test_indices_outside_are_left_to_who_tells_where(wrong):
    indices = np.array([0, 4, wrong, 1])
    assert opened(np.zeros(5, np.float32), indices, 0) is None
    assert opened(np.zeros(5, np.float32), np.array([0, 4]), 0)[0].tolist() == [0, 0]


def test_what_breaks_the_rule_is_left_to_it():
    data = np.zeros((2, 3), np.float32)
    for indices, axis in (
        (np.zeros((3, 3), np.int64), 1),
        (np.zeros(3, np.int64), 0),
        (np.zeros((2, 3), np.int64), 2),
        (np.zeros((2, 0), np.int64), 1),
    ):
        assert opened(data, indices, axis) is None
    assert opened(data.astype(np.float16), np.zeros((2, 3), np.int64), 1) is None
