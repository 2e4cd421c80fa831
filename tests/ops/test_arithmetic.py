"""Arithmetic ops: examples of the specification, integer types, broadcasting, constraints and inference."""

import math

import ml_dtypes
import numpy as np
import pytest
from tolerance import tolerated

from irrun.spec import UNDECIDED, Dim, Tensor, Undecided, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
inf, nan = math.inf, math.nan
bfloat16 = ml_dtypes.bfloat16

BROADCASTING = [
    "Add-1",
    "Atan2-17",
    "Divide-1",
    "FloorMod-1",
    "Maximum-1",
    "Minimum-1",
    "Mod-1",
    "Multiply-1",
    "Power-1",
    "SquaredDifference-1",
    "Subtract-1",
]
DIVIDING = ["Divide-1", "FloorMod-1", "Mod-1"]
ELEMENTARY = {
    "Acos-1": (math.acos, [-1, -0.5, 0, 1]),
    "Acosh-4": (math.acosh, [1, 1.5, 10]),
    "Asin-1": (math.asin, [-1, -0.5, 0, 1]),
    "Asinh-4": (math.asinh, [-3, 0, 0.5]),
    "Atan-1": (math.atan, [-3, 0, 0.5]),
    "Atanh-4": (math.atanh, [-0.9, 0, 0.5]),
    "Cos-1": (math.cos, [-3, 0, 0.5]),
    "Cosh-1": (math.cosh, [-3, 0, 0.5]),
    "Erf-1": (math.erf, [-3, 0, 0.5]),
    "Log-1": (math.log, [0.5, 1, 10]),
    "Sin-1": (math.sin, [-3, 0, 0.5]),
    "Sinh-1": (math.sinh, [-3, 0, 0.5]),
    "Sqrt-1": (math.sqrt, [0, 0.5, 10]),
    "Tan-1": (math.tan, [-3, 0, 0.5]),
    "Tanh-1": (math.tanh, [-3, 0, 0.5]),
}


def array(*values, type=np.float32):
    return np.array(values, type)


def infer(name, *tensors, **attrs):
    return ops[name].infer(tensors, ops[name].defaults | attrs).outputs[0]


def dims(*values):
    """Unknown and known integers as inference carries them."""
    result = np.empty(len(values), object)
    result[:] = values
    return result


@pytest.mark.parametrize("name", ELEMENTARY)
@pytest.mark.parametrize(
    ("type", "rtol"), [(np.float64, 1e-14), (np.float32, 1e-6), (np.float16, 1e-3), (bfloat16, 8e-3)]
)
def test_an_elementary_function_is_computed_in_the_type_of_its_input(name, type, rtol):
    function, values = ELEMENTARY[name]
    data = np.array(values, type)
    result = ops[name](data)
    assert result.dtype == type
    np.testing.assert_allclose(result.astype(float), [function(float(x)) for x in data], rtol, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("Acos-1", [-1, 0, 1], [3, 2, 0]),
        ("Acosh-4", [1, 2, 3, 100], [0, 1, 2, 5]),
        ("Asin-1", [-1, 0, 1], [-1, 0, 1]),
        ("Asinh-4", [-3, 0, 2], [-2, 0, 1]),
        ("Atan-1", [-100, 0, 1], [-2, 0, 1]),
        ("Cos-1", [-3, 0, 2, 8], [-1, 1, 0, 0]),
        ("Cosh-1", [-1, 0, 3], [2, 1, 10]),
        ("Erf-1", [-1, 0, 1], [-1, 0, 1]),
        ("Log-1", [1, 3, 8, 100], [0, 1, 2, 4]),
        ("Sin-1", [-2, 0, 2], [0, 0, 0]),
        ("Sinh-1", [-1, 0, 2], [-1, 0, 4]),
        ("Sqrt-1", [4, 7, 9, 10], [2, 3, 3, 3]),
        ("Tan-1", [-2, -1, 0, 1, 2], [2, -2, 0, 2, -2]),
        ("Tanh-1", [-5, -1, 0, 2], [-1, -1, 0, 1]),
    ],
)
def test_elementary_functions_of_integers_are_rounded_or_truncated(name, data, expected):
    for type in (np.int32, np.int64, np.int8):
        result = ops[name](np.array(data, type))
        assert result.dtype == type
        assert result.tolist() == expected


def test_what_an_integer_type_does_not_hold_is_its_lowest_value():
    assert ops["Sqrt-1"](array(-4, 16, type=np.int32)).tolist() == [-(2**31), 4]
    assert ops["Log-1"](array(0, 1, type=np.int64)).tolist() == [-(2**63), 0]
    assert ops["Cosh-1"](array(0, 100, type=np.uint8)).tolist() == [1, 0]
    assert ops["Sqrt-1"](array(2**64 - 1, type=np.uint64)).tolist() == [2**32]


def test_atanh_of_integers_is_a_limit_of_the_type_away_from_0():
    assert ops["Atanh-4"](array(-5, -1, 0, 1, type=np.int8)).tolist() == [-128, -128, 0, 127]
    assert ops["Atanh-4"](array(0, 3, type=np.uint16)).tolist() == [0, 65535]


def test_functions_outside_their_domain_give_nan_without_a_warning():
    for name in ("Acos-1", "Asin-1", "Atanh-4", "Sqrt-1", "Log-1", "Acosh-4"):
        assert np.isnan(ops[name](array(-2))).all()
    np.testing.assert_array_equal(ops["ErfInv-17"](array(-1, 0, 1, 1.5)), array(-inf, 0, inf, nan))


def test_erfinv_undoes_erf():
    for type, tolerance in ((np.float64, 1e-13), (np.float32, 1e-6), (np.float16, 2e-3)):
        data = np.linspace(-1.5, 1.5, 7).astype(type)
        np.testing.assert_allclose(
            ops["ErfInv-17"](ops["Erf-1"](data)), data, 1e-2 if type is np.float16 else tolerance
        )


def test_atan2_is_the_angle_of_a_point():
    quarter = math.pi / 4
    angles = {(1, 1): 1, (1, -1): 3, (-1, -1): -3, (-1, 1): -1, (0, 1): 0, (1, 0): 2, (0, -1): 4, (-1, 0): -2}
    y, x = (np.array(side, np.float64) for side in zip(*angles, strict=True))
    for type, rtol in ((np.float64, 1e-15), (np.float32, 1e-6), (np.float16, 1e-3), (bfloat16, 8e-3)):
        found = ops["Atan2-17"](y.astype(type), x.astype(type))
        assert found.dtype == type
        np.testing.assert_allclose(found.astype(np.float64), [quarter * n for n in angles.values()], rtol)


def test_atan2_against_a_slow_loop():
    rng = np.random.default_rng(17)
    y, x = rng.normal(size=(4, 1, 5)).astype(np.float32), rng.normal(size=(3, 1)).astype(np.float32)
    found = ops["Atan2-17"](y, x)
    assert found.shape == (4, 3, 5)
    for place in np.ndindex(4, 3, 5):
        i, j, k = place
        assert found[place] == pytest.approx(math.atan2(y[i, 0, k], x[j, 0]), rel=1e-6)


def test_atan2_of_zeros_infinities_and_nan():
    y, x = (
        array(0, -0.0, 0, -0.0, inf, -inf, inf, 1, -1, nan, 1),
        array(0, 0, -0.0, -0.0, inf, inf, -inf, -inf, -inf, 1, nan),
    )
    wanted = [math.atan2(float(a), float(b)) for a, b in zip(y, x, strict=True)]
    found = ops["Atan2-17"](y, x)
    np.testing.assert_allclose(found, wanted, 1e-6)
    assert np.signbit(found[:4]).tolist() == [False, True, False, True]


def test_every_unary_op_keeps_scalars_and_empty_tensors():
    for name in (*ELEMENTARY, "Abs-1", "Ceiling-1", "Floor-1", "Negative-1", "Sign-1", "Round-5", "ErfInv-17"):
        for type in (np.float32, np.float16, bfloat16):
            scalar = np.asarray(ops[name](np.array(1, type)))
            assert (scalar.shape, scalar.dtype) == ((), type)
            empty = ops[name](np.zeros((2, 0), type))
            assert (empty.shape, empty.dtype) == ((2, 0), type)
        assert infer(name, Tensor("f16", (fresh(), 3))).shape[1] == 3


def test_round_takes_halves_to_even_or_away_from_zero():
    data = array(-4.5, -1.9, -1.5, 0.5, 0.9, 1.5, 2.3, 2.5)
    round_ = ops["Round-5"]
    assert round_(data).tolist() == [-4, -2, -2, 0, 1, 2, 2, 2]
    assert round_(data, mode="half_away_from_zero").tolist() == [-5, -2, -2, 1, 1, 2, 2, 3]


def test_round_away_from_zero_is_exact_near_halves_and_keeps_the_sign_of_zero():
    data = array(0.49999997, -0.3, 8388609, -inf, nan)
    result = ops["Round-5"](data, mode="half_away_from_zero")
    np.testing.assert_array_equal(result, array(0, 0, 8388609, -inf, nan))
    assert np.signbit(result[1])
    assert np.signbit(ops["Round-5"](array(-0.3))).all()


def test_ceiling_floor_and_round_leave_integers_alone():
    data = array(2**63 - 1, -5, type=np.int64)
    for name in ("Ceiling-1", "Floor-1", "Round-5"):
        assert ops[name](data).tolist() == data.tolist()
    assert ops["Ceiling-1"](array(-1.5, 0.2, type=bfloat16)).astype(float).tolist() == [-1, 1]
    assert ops["Floor-1"](array(-1.5, 0.2)).tolist() == [-2, 0]


def test_signs():
    np.testing.assert_array_equal(ops["Sign-1"](array(-3, 0, 2, nan)), array(-1, 0, 1, nan))
    assert ops["Sign-1"](array(0, 200, type=np.uint8)).tolist() == [0, 1]
    assert ops["Abs-1"](array(-128, -1, type=np.int8)).tolist() == [-128, 1]
    assert ops["Negative-1"](array(-128, 1, type=np.int8)).tolist() == [-128, -1]


def test_negative_takes_no_unsigned_integers():
    with pytest.raises(Violation, match="`data` is u8, expected one of"):
        ops["Negative-1"](array(1, type=np.uint8))


def test_integers_wrap_around():
    assert ops["Add-1"](array(127, type=np.int8), array(1, type=np.int8)).tolist() == [-128]
    assert ops["Subtract-1"](array(3, type=np.uint8), array(5, type=np.uint8)).tolist() == [254]
    assert ops["Multiply-1"](array(2**31 - 1, type=np.int32), array(2, type=np.int32)).tolist() == [-2]
    assert ops["SquaredDifference-1"](array(200, type=np.uint8), array(10, type=np.uint8)).tolist() == [190**2 % 256]


def test_f16_and_bf16_are_rounded_once_per_operation():
    assert ops["Add-1"](array(2048, type=np.float16), array(1, type=np.float16)).tolist() == [2048]
    assert ops["Multiply-1"](array(257, type=bfloat16), array(3, type=bfloat16)).astype(float).tolist() == [768]
    assert ops["Add-1"](array(65504, type=np.float16), array(65504, type=np.float16)).tolist() == [inf]
    squared = ops["SquaredDifference-1"](array(256, type=bfloat16), array(-1, type=bfloat16))
    assert squared.astype(float).tolist() == [66048]  # of 257, which is 256


def test_divide_of_floats_is_the_quotient():
    result = ops["Divide-1"](array(1, -1, 0, 7), array(0, 0, 0, 2))
    np.testing.assert_array_equal(result, array(inf, -inf, nan, 3.5))
    assert ops["Divide-1"](array(7), array(2), m_pythondiv=False).tolist() == [3.5]


def test_divide_of_integers_floors_or_truncates():
    a, b = array(-7, 7, -7, 7, -6, 0, type=np.int32), array(2, -2, -2, 2, 2, 3, type=np.int32)
    assert ops["Divide-1"](a, b).tolist() == [-4, -4, 3, 3, -3, 0]
    assert ops["Divide-1"](a, b, m_pythondiv=False).tolist() == [-3, -3, 3, 3, -3, 0]
    assert ops["Divide-1"](array(200, type=np.uint8), array(150, type=np.uint8), m_pythondiv=False).tolist() == [1]
    for floor in (True, False):
        lowest = array(-(2**31), type=np.int32)
        assert ops["Divide-1"](lowest, array(-1, type=np.int32), m_pythondiv=floor).tolist() == [-(2**31)]


@pytest.mark.parametrize("type", [np.int8, np.int32, np.int64])
def test_quotients_and_remainders_of_integers_belong_together(type):
    a, b = np.meshgrid(np.arange(-9, 10, dtype=type), array(-4, -3, -1, 1, 2, 5, type=type))
    assert (ops["Divide-1"](a, b) * b + ops["FloorMod-1"](a, b) == a).all()
    assert (ops["Divide-1"](a, b, m_pythondiv=False) * b + ops["Mod-1"](a, b) == a).all()


def test_the_sign_of_a_remainder_is_that_of_the_dividend_or_of_the_divisor():
    a, b = array(-7, 7, -7.5), array(3, -3, 3)
    assert ops["Mod-1"](a, b).tolist() == [-1, 1, -1.5]
    assert ops["FloorMod-1"](a, b).tolist() == [2, -2, 1.5]
    for name in ("Mod-1", "FloorMod-1"):
        assert np.isnan(ops[name](array(7), array(0))).all()
        assert ops[name](array(-(2**31), type=np.int32), array(-1, type=np.int32)).tolist() == [0]
        assert ops[name](array(200, type=np.uint8), array(150, type=np.uint8)).tolist() == [50]


def test_nan_wins_in_maximum_and_minimum():
    a, b = array(nan, 1, 2), array(1, nan, 3)
    np.testing.assert_array_equal(ops["Maximum-1"](a, b), array(nan, nan, 3))
    np.testing.assert_array_equal(ops["Minimum-1"](a, b), array(nan, nan, 2))


def test_power_of_floats():
    result = ops["Power-1"](array(0, -8, 2, -2, 0), array(0, 1 / 3, -1, 3, -1))
    np.testing.assert_array_equal(result, array(1, nan, 0.5, -8, inf))
    squared = ops["Power-1"](array(-3, 1e30), np.array(2, np.float32))
    np.testing.assert_array_equal(squared, array(9, inf))
    assert ops["Power-1"](np.array(3, np.float32), array(2)).shape == (1,)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1)])
def test_power_of_a_half_is_the_same_in_any_shape(shape):
    result = ops["Power-1"](array(-inf, -0.0, 4, -4), np.full(shape, 0.5, np.float32))
    np.testing.assert_array_equal(result, np.broadcast_to(array(inf, 0, 2, nan), result.shape))
    assert not np.signbit(result[..., 1]).any()


def test_power_of_integers_wraps_and_truncates():
    bases = array(2, 2, 2, 1, -1, -1, -2, 0, 0, type=np.int32)
    exponents = array(-1, 31, 33, -5, -3, -2, -3, 0, -1, type=np.int32)
    expected = [0, -(2**31), 0, 1, -1, 1, 0, 1, -(2**31)]
    assert ops["Power-1"](bases, exponents).tolist() == expected
    assert ops["Power-1"](array(3, type=np.int64), array(39, type=np.int64)).tolist() == [3**39]
    assert ops["Power-1"](array(2, 3, type=np.uint8), array(8, 5, type=np.uint8)).tolist() == [0, 243]


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [
        (False, False, [1, 3, 6, 10, 15]),
        (True, False, [0, 1, 3, 6, 10]),
        (False, True, [15, 14, 12, 9, 5]),
        (True, True, [14, 12, 9, 5, 0]),
    ],
)
def test_cumsum_sums_from_either_end_with_or_without_the_element(exclusive, reverse, expected):
    data = np.arange(1, 6, dtype=np.float32)
    for axis in (np.array(0), np.array(-1, np.int32), None):
        assert ops["CumSum-3"](data, axis, exclusive=exclusive, reverse=reverse).tolist() == expected


@pytest.mark.parametrize("type", [np.float32, np.int8, bfloat16])
def test_cumsum_agrees_with_a_loop(type):
    data = np.random.default_rng(0).integers(-9, 9, (2, 3, 4)).astype(type)
    for axis in range(-3, 3):
        for exclusive in (False, True):
            for reverse in (False, True):
                result = ops["CumSum-3"](data, np.array(axis), exclusive=exclusive, reverse=reverse)
                assert result.dtype == type
                np.testing.assert_array_equal(result, summed(data, axis, exclusive, reverse))


def summed(data, axis, exclusive, reverse):
    rows = np.moveaxis(data, axis, 0)
    result = np.zeros(rows.shape, data.dtype)
    total = np.zeros(rows.shape[1:], data.dtype)
    for number in reversed(range(len(rows))) if reverse else range(len(rows)):
        result[number] = total if exclusive else total + rows[number]
        total = total + rows[number]
    return np.moveaxis(result, 0, axis)


def test_cumsum_of_empty_and_wrapping_and_f16_tensors():
    assert ops["CumSum-3"](np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert ops["CumSum-3"](np.zeros((0, 3), np.float32), exclusive=True).shape == (0, 3)
    assert ops["CumSum-3"](array(100, 100, type=np.int8)).tolist() == [100, -56]
    assert ops["CumSum-3"](array(2048, 1, 1, type=np.float16)).tolist() == [2048, 2048, 2050]


def test_cumsum_counts_booleans():
    flags = np.array([[0, 1, 0, 1, 1, 0]], np.bool_)
    with pytest.warns(UserWarning, match="`data` is boolean"):
        few = ops["CumSum-3"](flags, np.array(1))
    with pytest.warns(UserWarning, match="`data` is boolean"):
        many = ops["CumSum-3"](np.ones(300, np.bool_), exclusive=True)
    assert few.tolist() == [[0, 1, 1, 2, 3, 3]]
    assert (many.dtype, many[255:258].tolist()) == (np.uint8, [255, 0, 1])
    assert infer("CumSum-3", Tensor("boolean", (2, 3))) == Tensor("u8", (2, 3))
    assert infer("CumSum-3", Tensor("dynamic", (2, 3))) == Tensor("dynamic", (2, 3))


def test_cumsum_3_c1_axis_outside_the_rank():
    with pytest.raises(Violation, match=r"`axis` is 2, outside \[-2, 2\) for rank 2") as caught:
        ops["CumSum-3"](np.zeros((2, 3)), np.array(2))
    assert caught.value.label == "C1"


def test_cumsum_3_c2_a_scalar():
    op = ops["CumSum-3"]
    assert tolerated(op, np.array(1.0), np.array(0)) == ("C2", "`data` is a scalar, expected an axis")
    assert op(np.array(3.0), np.array(-1)).tolist() == 3
    assert op(np.array(3), np.array(0), exclusive=True, reverse=True).tolist() == 0
    with pytest.raises(Violation, match="`axis` is 1"):
        op(np.array(3.0), np.array(1))


def test_cumsum_keeps_a_dynamic_shape():
    size = fresh()
    assert infer("CumSum-3", Tensor("f32", (size, 3)), Tensor("i64", ())).shape == (size, 3)


def test_segment_max_of_the_page():
    ids = array(0, 0, 0, 1, 1, 3, 5, 5, type=np.int64)
    data = array(3, 1, 2, 5, 4, -7, -2, -1)
    segment_max = ops["SegmentMax-16"]
    lowest = float(np.finfo(np.float32).min)
    assert segment_max(data, ids, fill_mode="ZERO").tolist() == [3, 5, 0, -7, 0, -1]
    assert segment_max(data, ids, np.array(7), fill_mode="LOWEST").tolist() == [3, 5, lowest, -7, lowest, -1, lowest]


@pytest.mark.parametrize(("type", "lowest"), [(np.int32, -(2**31)), (np.float16, -65504), (bfloat16, -3.3895314e38)])
def test_segment_max_fills_with_the_lowest_value_of_the_type(type, lowest):
    data = np.array([[1, 2], [4, 3], [0, 5]], type)
    result = ops["SegmentMax-16"](data, array(1, 1, 2, type=np.int32), fill_mode="LOWEST")
    assert result.dtype == type
    np.testing.assert_allclose(result.astype(float), [[lowest] * 2, [4, 3], [0, 5]])


def test_segment_max_of_nothing():
    none = np.zeros(0, np.int64)
    segment_max = ops["SegmentMax-16"]
    assert segment_max(np.zeros((0, 2), np.float32), none, fill_mode="ZERO").shape == (0, 2)
    assert segment_max(np.zeros((0, 2), np.float32), none, np.array(2), fill_mode="ZERO").tolist() == [[0, 0], [0, 0]]
    assert segment_max(np.zeros((1, 0), np.float32), np.zeros(1, np.int64), fill_mode="ZERO").shape == (1, 0)


def test_segmentmax_16_c1_negative_num_segments():
    with pytest.raises(Violation, match="`num_segments` is -1, expected 0 or more") as caught:
        ops["SegmentMax-16"](array(), np.zeros(0, np.int64), np.array(-1), fill_mode="ZERO")
    assert caught.value.label == "C1"


def test_segmentmax_16_c2_segments_out_of_order():
    with pytest.raises(Violation, match=r"`segment_ids\[2\]` is 0, below 1 before it") as caught:
        ops["SegmentMax-16"](array(1, 2, 3), np.array([0, 1, 0]), fill_mode="ZERO")
    assert caught.value.label == "C2"


def test_segmentmax_16_c3_segment_outside_num_segments():
    with pytest.raises(Violation, match=r"`segment_ids\[1\]` is 2, outside \[0, 2\)") as caught:
        ops["SegmentMax-16"](array(1, 2), np.array([0, 2]), np.array(2), fill_mode="ZERO")
    assert caught.value.label == "C3"
    with pytest.raises(Violation, match=r"`segment_ids\[0\]` is -1") as caught:
        ops["SegmentMax-16"](array(1, 2), np.array([-1, 2]), fill_mode="ZERO")
    assert caught.value.label == "C3"


def test_segment_max_infers_what_is_known():
    inner, count = fresh(), fresh()
    data, ids = Tensor("f32", (3, inner)), Tensor("i64", (3,))
    assert infer("SegmentMax-16", data, ids, Tensor.of(np.array(5)), fill_mode="ZERO").shape == (5, inner)
    known = Tensor.of(np.array([0, 2, 2]))
    assert infer("SegmentMax-16", data, known, fill_mode="ZERO").shape == (3, inner)
    first = infer("SegmentMax-16", data, ids, fill_mode="ZERO").shape[0]
    assert isinstance(first, Dim)
    symbolic = Tensor("i64", (), dims(count).reshape(()))
    assert infer("SegmentMax-16", data, ids, symbolic, fill_mode="ZERO").shape == (count, inner)


@pytest.mark.parametrize("name", BROADCASTING)
def test_arithmetic_c1_shapes_that_do_not_broadcast(name):
    op = ops[name]
    with pytest.raises(Violation) as caught:
        op(np.ones((2, 3)), np.ones(2))
    assert caught.value.label == "C1"
    assert caught.value.message == "`a` is [2, 3] and `b` is [2], which do not broadcast (numpy)"
    with pytest.raises(Violation, match=r"\(none\)"):
        op(np.ones((2, 3)), np.ones((1, 3)), auto_broadcast="none")
    with pytest.raises(Violation, match=r"\(pdpd from axis 1\)"):
        op(np.ones((2, 3)), np.ones(2), auto_broadcast="pdpd", auto_broadcast_axis=1)
    with pytest.raises(Violation, match=r"\(pdpd\)"):  # only b is broadcast
        op(np.ones(3), np.ones((2, 3)), auto_broadcast="pdpd")


@pytest.mark.parametrize("name", DIVIDING)
def test_division_c2_integers_by_zero(name):
    with pytest.raises(Violation, match=r"`b\[0, 1\]` is 0, expected a divisor other than 0") as caught:
        ops[name](np.array([[1, 2]]), np.array([[1, 0]]))
    assert caught.value.label == "C2"
    with pytest.raises(Violation, match="`b` is 0"):
        ops[name](np.array([1]), np.array(0))
    assert ops[name].infer([Tensor("f32", (1,)), Tensor.of(array(0))], ops[name].defaults).outputs[0].shape == (1,)


@pytest.mark.parametrize("name", BROADCASTING)
def test_every_binary_op_broadcasts_scalars_and_empty_tensors(name):
    op = ops[name]
    for type in (np.float32, np.float16, np.float64, bfloat16):
        result = op(np.ones((8, 1, 6, 1), type), np.ones((7, 1, 5), type))
        assert (result.shape, result.dtype) == ((8, 7, 6, 5), type)
        scalar = np.asarray(op(np.array(3, type), np.array(2, type)))
        assert (scalar.shape, scalar.dtype) == ((), type)
        assert op(np.ones((0, 3), type), np.ones(3, type)).shape == (0, 3)


@pytest.mark.parametrize(
    ("b", "axis", "at"),
    [
        ((3, 4), 1, (1, 3, 4, 1)),
        ((3, 1), 1, (1, 3, 1, 1)),
        ((4, 5), -1, (1, 1, 4, 5)),
        ((4, 5), 2, (1, 1, 4, 5)),
        ((1, 3), 0, (1, 3, 1, 1)),
        ((), -1, (1, 1, 1, 1)),
        ((5,), 3, (1, 1, 1, 5)),
        ((5, 1), 3, (1, 1, 1, 5)),
    ],
)
def test_pdpd_broadcasting_of_the_page(b, axis, at):
    a, values = np.ones((2, 3, 4, 5)), np.arange(np.prod(b)).reshape(b).astype(float)
    attrs = {"auto_broadcast": "pdpd", "auto_broadcast_axis": axis}
    np.testing.assert_array_equal(ops["Add-1"](a, values, **attrs), a + values.reshape(at))
    assert infer("Add-1", Tensor("f32", (2, 3, 4, fresh())), Tensor("f32", b), **attrs).rank == 4


def test_broadcasting_keeps_what_is_known_of_dynamic_shapes():
    batch, other = fresh(), fresh()
    assert infer("Add-1", Tensor("f32", (batch, 1)), Tensor("f32", (1, 3))).shape == (batch, 3)
    assert infer("Add-1", Tensor("f32", (batch, 3)), Tensor("f32", (batch, 3))).shape == (batch, 3)
    assert infer("Add-1", Tensor("f32", None), Tensor("f32", (2,))).shape is None
    assert infer("Add-1", Tensor("f32", (batch,)), Tensor("f32", (4,))).shape == (4,)
    assert infer("Add-1", Tensor("f32", (batch,)), Tensor("f32", (4,)), auto_broadcast="none").shape == (4,)
    shape = infer("Add-1", Tensor("f32", (batch, other)), Tensor("f32", (4,)), auto_broadcast="pdpd").shape
    assert shape == (batch, 4)


def test_inputs_are_of_one_type():
    with pytest.raises(Violation, match="`b` is i64, but `a` is f32"):
        ops["Add-1"](array(1), np.array([1]))


def kernel(name, *inputs, **attrs):
    """What the kernel makes of arrays of dimensions, which calling the op would not take."""
    return ops[name].kernel(*inputs, **(ops[name].defaults | attrs))


def test_shape_arithmetic_keeps_unknown_sizes():
    size = fresh(1)
    a, b = dims(size, 6), np.array([2, 4])
    assert (np.add(size, 2) == kernel("Add-1", a, b)[0]) is True
    assert kernel("Add-1", a, b)[1] == 10
    assert kernel("Subtract-1", kernel("Multiply-1", a, b), a)[0] == size
    types = {"T": "i64"}
    twice = kernel("Multiply-1", a, b)
    for floor in (True, False):
        assert kernel("Divide-1", twice, b, m_pythondiv=floor, types=types).tolist() == [size, 6]
    assert kernel("FloorMod-1", twice, b).tolist() == [0, 0]
    assert kernel("Mod-1", twice, b).tolist() == [0, 0]
    assert kernel("Maximum-1", a, np.array(1)).tolist() == [size, 6]
    assert kernel("Minimum-1", a, np.array([1, 4])).tolist() == [1, 4]
    assert kernel("Negative-1", a)[0] == -size


def test_truncated_division_of_known_integers_among_unknown_ones():
    a, b = dims(-7, 7, -7, 7), dims(2, -2, -2, 2)
    types = {"T": "i64"}
    assert kernel("Divide-1", a, b, m_pythondiv=False, types=types).tolist() == [-3, -3, 3, 3]
    assert kernel("Mod-1", a, b).tolist() == [-1, 1, -1, 1]


def test_division_of_unknown_sizes_as_floats_is_undecided():
    with pytest.raises(Undecided):
        kernel("Divide-1", dims(fresh(), 7), np.array([2.0, 2.0]), types={"T": "f32"})


def test_a_truncated_remainder_of_any_integer_is_undecided():
    unknown = fresh(None)
    assert (unknown < 0) is UNDECIDED
    with pytest.raises(Undecided):
        kernel("Mod-1", dims(unknown), np.array([2]))


@pytest.mark.parametrize("name", ["Acosh-4", "Asinh-4", "Atanh-4"])
def test_inverse_hyperbolic_functions_are_in_opset4_and_later(name):
    assert min(ops[name].held_by) == 4


def test_the_ops_of_opset17_are_only_there():
    assert ops["ErfInv-17"].held_by == {17}
