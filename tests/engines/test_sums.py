"""Sums up to each element by compiled loops, held against the op's kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled.engine import CompiledEngine
from irrun.spec.dtypes import numpy_dtype

ENGINE = CompiledEngine(2)
SHAPES = (((40,), 0), ((7, 70), 0), ((3, 9, 5), 1), ((3, 9, 5), -1), ((1,), 0), ((2, 1, 3), 1), ((900, 200), 0))


@pytest.mark.parametrize("type", ["f32", "i32", "i64", "i8", "u8"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_sums_are_those_of_the_kernel(exclusive, reverse, type):
    rng = np.random.default_rng(7)
    attrs = {"exclusive": exclusive, "reverse": reverse}
    for shape, axis in SHAPES:
        if type == "f32":
            data = (rng.normal(size=shape) * 10 ** rng.uniform(-3, 3, shape)).astype(np.float32)
        else:  # which wrap around
            limits = np.iinfo(numpy_dtype(type))
            data = rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
        arrays = [data, np.array(axis)]
        work = work_of("CumSum-3", attrs, arrays, [(shape, type)], constant=(1,))
        (found,) = computed(ENGINE.compile(work), work, arrays)
        expected = plain("CumSum-3", attrs, arrays)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_the_axis_is_0_unless_given():
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    work = work_of("CumSum-3", {"exclusive": False, "reverse": False}, [data], [((3, 2), "f32")])
    (found,) = computed(ENGINE.compile(work), work, [data])
    assert found.tolist() == [[0, 1], [2, 4], [6, 9]]


def test_a_sum_keeps_the_sign_of_0_infinity_and_nan():
    data = np.array([[-0.0, 1], [-0.0, np.inf], [0.0, -np.inf], [1, 1]], np.float32)
    for exclusive in (False, True):
        attrs, arrays = {"exclusive": exclusive, "reverse": False}, [data, np.array(0)]
        work = work_of("CumSum-3", attrs, arrays, [(data.shape, "f32")], constant=(1,))
        (found,), expected = computed(ENGINE.compile(work), work, arrays), plain("CumSum-3", attrs, arrays)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[:, 0]), np.signbit(expected[:, 0]))


def test_other_types_and_axes_that_vary_are_left_to_the_kernel():
    attrs = {"exclusive": False, "reverse": False}
    for data, constant in ((np.zeros(3), (1,)), (np.zeros(3, np.float32), ())):
        type = "f64" if data.dtype == np.float64 else "f32"
        work = work_of("CumSum-3", attrs, [data, np.array(0)], [((3,), type)], constant=constant)
        assert ENGINE.compile(work) is None
