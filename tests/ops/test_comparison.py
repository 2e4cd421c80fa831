"""Comparison ops: element types, NaN, broadcasting, constraints and unknown sizes."""

import math
import operator

import ml_dtypes
import numpy as np
import pytest

from irrun.spec import Tensor, Undecided, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
inf, nan = math.inf, math.nan

COMPARISONS = ["Equal-1", "Greater-1", "GreaterEqual-1", "Less-1", "LessEqual-1", "NotEqual-1"]
MEANING = {
    "Equal-1": operator.eq,
    "Greater-1": operator.gt,
    "GreaterEqual-1": operator.ge,
    "Less-1": operator.lt,
    "LessEqual-1": operator.le,
    "NotEqual-1": operator.ne,
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize(
    "type",
    [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.int4, np.int8, np.int64, np.bool_, np.str_],
)
def test_a_comparison_agrees_with_a_loop(name, type):
    a, b = np.array([0, 1, 1, 3]).astype(type), np.array([1, 1, 0, 3]).astype(type)
    result = ops[name](a, b)
    assert result.dtype == np.bool_
    assert result.tolist() == [bool(MEANING[name](x, y)) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("name", COMPARISONS)
def test_nan_differs_from_everything(name):
    a, b = np.array([nan, nan, 1]), np.array([nan, 1, nan])
    assert ops[name](a, b).tolist() == [name == "NotEqual-1"] * 3


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_exact_in_f64_and_i64(name):
    for a, b in ((np.float64(1 + 1e-15), np.float64(1)), (np.int64(2**62 + 1), np.int64(2**62))):
        assert bool(ops[name](a, b)) is bool(MEANING[name](a, b))


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_broadcast(name):
    op = ops[name]
    assert op(np.ones((8, 1, 6, 1)), np.ones((7, 1, 5))).shape == (8, 7, 6, 5)
    scalar = np.asarray(op(np.array(3), np.array(2)))
    assert (scalar.shape, scalar.dtype) == ((), np.bool_)
    assert op(np.ones((0, 3)), np.ones(3)).shape == (0, 3)
    pdpd = op(np.array([[1, 2, 3], [4, 5, 6]]), np.array([3, 4]), auto_broadcast="pdpd", auto_broadcast_axis=0)
    expected = [[MEANING[name](x, y) for x in row] for row, y in (([1, 2, 3], 3), ([4, 5, 6], 4))]
    assert pdpd.tolist() == expected


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_c1_shapes_that_do_not_broadcast(name):
    with pytest.raises(Violation) as caught:
        ops[name](np.ones((2, 3)), np.ones(2))
    assert caught.value.label == "C1"
    assert caught.value.message == "`a` is [2, 3] and `b` is [2], which do not broadcast (numpy)"
    with pytest.raises(Violation, match=r"\(none\)"):
        ops[name](np.ones((2, 3)), np.ones((2, 1)), auto_broadcast="none")


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_infers_booleans(name):
    batch, op = fresh(), ops[name]
    result = op.infer([Tensor("f32", (batch, 1)), Tensor("f32", (3,))], op.defaults).outputs[0]
    assert (result.type, result.shape) == ("boolean", (batch, 3))
    with pytest.raises(Violation, match="`b` is i64, but `a` is f32"):
        op(np.ones(1, np.float32), np.ones(1, np.int64))


AUTO_BROADCAST = ops["Equal-1"].defaults


def test_unknown_sizes_are_compared_where_bounds_decide():
    sizes = np.empty(2, object)
    sizes[:] = [fresh(2), fresh(5, 9)]
    result = ops["Greater-1"].kernel(sizes, np.array([1, 4]), **AUTO_BROADCAST)
    assert result.dtype == np.bool_
    assert result.tolist() == [True, True]
    assert ops["Equal-1"].kernel(sizes, np.array([1, 10]), **AUTO_BROADCAST).tolist() == [False, False]
    assert ops["Equal-1"].kernel(sizes, sizes, **AUTO_BROADCAST).tolist() == [True, True]
    with pytest.raises(Undecided):
        ops["Less-1"].kernel(sizes, np.array([3, 4]), **AUTO_BROADCAST)


@pytest.mark.parametrize("type", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_elements_are_finite_infinite_or_nan(type):
    data = np.array([nan, 2.1, inf, -inf], type)
    assert ops["IsFinite-10"](data).tolist() == [False, True, False, False]
    assert ops["IsNaN-10"](data).tolist() == [True, False, False, False]
    is_inf = ops["IsInf-10"]
    assert is_inf(data).tolist() == [False, False, True, True]
    assert is_inf(data, detect_negative=False).tolist() == [False, False, True, False]
    assert is_inf(data, detect_positive=False).tolist() == [False, False, False, True]
    neither = is_inf(data, detect_negative=False, detect_positive=False)
    assert neither.tolist() == [False] * 4
    assert neither.dtype == np.bool_


@pytest.mark.parametrize("name", ["IsFinite-10", "IsInf-10", "IsNaN-10"])
def test_tests_of_elements_give_booleans_for_scalars_and_empty_tensors(name):
    for data in (np.float32(1), np.zeros((0, 2), np.float32)):
        result = np.asarray(ops[name](data))
        assert (result.shape, result.dtype) == (np.shape(data), np.bool_)
    size = fresh()
    assert ops[name].infer([Tensor("f16", (size,))], ops[name].defaults).outputs[0] == Tensor("boolean", (size,))
    with pytest.raises(Violation, match="`data` is i32, expected one of"):
        ops[name](np.array([1], np.int32))
