"""Activation ops: values against the formulas of the specification, extremes, types, constraints and inference."""

import math

import ml_dtypes
import numpy as np
import pytest
from tolerance import tolerated

from irrun.spec import Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
inf, nan = math.inf, math.nan
bfloat16 = ml_dtypes.bfloat16

VALUES = [-20.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 9.0]

FORMULAS = [
    ("Elu-1", {"alpha": 0.7}, lambda x: x if x > 0 else 0.7 * (math.exp(x) - 1)),
    ("Exp-1", {}, math.exp),
    ("Gelu-2", {}, lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    ("Gelu-7", {"approximation_mode": "erf"}, lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    (
        "Gelu-7",
        {"approximation_mode": "tanh"},
        lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    ("HSigmoid-5", {}, lambda x: min(max(x + 3, 0), 6) / 6),
    ("HSwish-4", {}, lambda x: x * min(max(x + 3, 0), 6) / 6),
    ("Mish-4", {}, lambda x: x * math.tanh(math.log1p(math.exp(x)))),
    ("ReLU-1", {}, lambda x: max(x, 0)),
    ("Sigmoid-1", {}, lambda x: 1 / (1 + math.exp(-x))),
    ("SoftPlus-4", {}, lambda x: math.log1p(math.exp(x))),
    ("SoftSign-9", {}, lambda x: x / (1 + abs(x))),
    ("Swish-4", {}, lambda x: x / (1 + math.exp(-x))),
    ("Clamp-1", {"min": -0.75, "max": 2.5}, lambda x: min(max(x, -0.75), 2.5)),
]


def array(*values, type=np.float32):
    return np.array(values, type)


def infer(name, *tensors, **attrs):
    return ops[name].infer(tensors, ops[name].defaults | attrs).outputs[0]


@pytest.mark.parametrize(("name", "attrs", "formula"), FORMULAS)
@pytest.mark.parametrize(
    ("type", "rtol", "atol"),
    [(np.float64, 1e-12, 1e-14), (np.float32, 1e-5, 1e-6), (np.float16, 1e-3, 1e-6), (bfloat16, 8e-3, 1e-6)],
)
def test_a_function_follows_its_formula_in_every_float_type(name, attrs, formula, type, rtol, atol):
    data = np.array(VALUES, type)
    before = data.copy()
    with np.errstate(over="ignore"):
        expected = [formula(float(x)) for x in data]
    for view in (data, data[::-1][::-1]):
        result = ops[name](view, **attrs)
        assert result.dtype == type
        np.testing.assert_allclose(result.astype(float), expected, rtol, atol)
    assert (data == before).all()
    scalar = np.asarray(ops[name](np.array(0.5, type), **attrs))
    assert (scalar.shape, scalar.dtype) == ((), type)
    empty = ops[name](np.zeros((0, 2), type), **attrs)
    assert (empty.shape, empty.dtype) == ((0, 2), type)
    size = fresh()
    assert infer(name, Tensor("f32", (size, 3)), **attrs) == Tensor("f32", (size, 3))


@pytest.mark.parametrize(
    ("name", "attrs", "expected"),
    [
        ("Elu-1", {"alpha": 0.5}, [-0.5, -0.5, 100, inf, nan]),
        ("Gelu-7", {}, [nan, 0, 100, inf, nan]),
        ("HSigmoid-5", {}, [0, 0, 1, 1, nan]),
        ("Mish-4", {}, [nan, 0, 100, inf, nan]),
        ("ReLU-1", {}, [0, 0, 100, inf, nan]),
        ("Sigmoid-1", {}, [0, 0, 1, 1, nan]),
        ("SoftPlus-4", {}, [0, 0, 100, inf, nan]),
        ("Swish-4", {}, [nan, 0, 100, inf, nan]),
        ("Clamp-1", {"min": -1, "max": 1}, [-1, -1, 1, 1, nan]),
    ],
)
def test_extremes_give_limits_and_no_warnings(name, attrs, expected):
    result = ops[name](array(-inf, -100, 100, inf, nan), **attrs)
    np.testing.assert_allclose(result, expected, atol=1e-6)


@pytest.mark.parametrize("type", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("Gelu-2", {}),
        ("Gelu-7", {}),
        ("Gelu-7", {"approximation_mode": "tanh"}),
        *((name, {}) for name in ("HSwish-4", "Mish-4", "ReLU-1", "SoftPlus-4", "Swish-4")),
    ],
)
def test_the_greatest_number_does_not_overflow(name, attrs, type):
    greatest = ml_dtypes.finfo(type).max
    assert ops[name](np.array([greatest, -greatest], type), **attrs).tolist() == [greatest, 0]


def test_relu_keeps_integers():
    assert ops["ReLU-1"](array(-3, 4, type=np.int64)).tolist() == [0, 4]
    assert ops["ReLU-1"](array(3, 200, type=np.uint8)).tolist() == [3, 200]


def test_exp_of_integers_is_truncated():
    assert ops["Exp-1"](array(-1, 0, 1, 2, 100, type=np.int32)).tolist() == [0, 1, 2, 7, -(2**31)]


@pytest.mark.parametrize("name", ["Gelu-2", "Gelu-7"])
def test_gelu_keeps_its_digits_where_it_is_nearly_0(name):
    data = [-12.0, -8.0, -5.0, -3.0]
    result = ops[name](np.array(data, np.float32))
    np.testing.assert_allclose(result, [x * math.erfc(-x / math.sqrt(2)) / 2 for x in data], rtol=1e-6)


@pytest.mark.parametrize("name", ["Elu-1", "Gelu-7", "Mish-4", "Sigmoid-1", "SoftMax-8", "Swish-4"])
def test_functions_of_floats_take_no_integers(name):
    with pytest.raises(Violation, match="is i32, expected one of bf16, f16, f32, f64"):
        infer(name, Tensor("i32", (2,)), alpha=1.0)


def test_elu_computes_with_a_negative_alpha():
    (alpha,) = ops["Elu-1"].attrs
    assert alpha.parse("-0.5") == -0.5
    with pytest.raises(ValueError, match="expected 0 or more"):
        alpha.check(-0.5, "-0.5")


def test_clamp_rounds_its_bounds_inwards_for_integers():
    clamp = ops["Clamp-1"]
    assert clamp(array(0, 1, 2, 5, type=np.int32), min=0.4, max=2.6).tolist() == [1, 1, 2, 2]
    assert clamp(array(0, 2, 5, type=np.int32), min=0.4, max=0.6).tolist() == [0, 0, 0]
    assert clamp(array(0, 100, 255, type=np.uint8), min=-5, max=300.0).tolist() == [0, 100, 255]
    assert clamp(array(-(2**63), 2**63 - 1, type=np.int64), min=-inf, max=inf).tolist() == [-(2**63), 2**63 - 1]
    assert clamp(array(1, 2, type=np.int8), min=1000, max=2000).tolist() == [127, 127]


def test_clamp_computes_on_dimensions():
    size = fresh(0, 9)
    clamped = ops["Clamp-1"].kernel(np.array([size, 2, 7], object), min=2.5, max=5.5)
    assert (clamped[0].low, clamped[0].high, *clamped[1:]) == (3, 5, 3, 5)
    assert ops["Clamp-1"].kernel(np.array([size], object), min=-inf, max=3e38)[0] is size


def test_clamp_1_c1_min_above_max():
    with pytest.raises(Violation, match="`min` is 3, above `max`, which is 1") as caught:
        ops["Clamp-1"](array(1), min=3, max=1)
    assert caught.value.label == "C1"
    for name in ("min", "max"):
        with pytest.raises(Violation, match=f"`{name}` is NaN, expected a number") as caught:
            ops["Clamp-1"](array(1), **{"min": 0, "max": 1, name: nan})
        assert caught.value.label == "C1"


def test_hard_sigmoid_scales_and_clips():
    for type in (np.float32, np.float64, np.float16, bfloat16):
        alpha, beta = np.array(0.25, type), np.array(0.5, type)
        result = ops["HardSigmoid-1"](np.array([[-5, 1], [5, -1]], type), alpha, beta)
        assert result.dtype == type
        assert result.astype(float).tolist() == [[0, 0.75], [1, 0.25]]
    assert ops["HardSigmoid-1"](np.float32(1), np.float32(0.25), np.float32(0.5)).shape == ()
    with pytest.raises(Violation, match="`alpha` has rank 1"):
        ops["HardSigmoid-1"](array(1), array(0.25), np.float32(0.5))


@pytest.mark.parametrize("scalar", [False, True])
def test_selu_scales_both_halves(scalar):
    for type in (np.float32, np.float16, bfloat16):
        alpha, lambda_ = (np.array(value if scalar else [value], type) for value in (0.5, 3.0))
        data = np.array([-inf, -1, 0, 2], type)
        result = ops["Selu-1"](data, alpha, lambda_)
        assert result.dtype == type
        expected = [-1.5, 1.5 * (math.exp(-1) - 1), 0, 6]
        np.testing.assert_allclose(result.astype(float), expected, rtol=1e-6 if type is np.float32 else 8e-3)
        assert data[3] == 2
    assert np.isnan(ops["Selu-1"](array(nan), array(1), array(1))).all()


def test_selu_1_c1_one_element():
    with pytest.raises(Violation, match=r"`alpha` is \[2\], expected \[1\]") as caught:
        ops["Selu-1"](array(1), array(1, 1), array(1))
    assert caught.value.label == "C1"
    given = array(-1, 2), array(0.5).reshape(1, 1), array(3)
    assert tolerated(ops["Selu-1"], *given) == ("C1", "`alpha` is [1, 1], expected [1]")
    assert ops["Selu-1"](*given).tolist() == ops["Selu-1"](array(-1, 2), array(0.5), array(3)).tolist()
    assert ops["Selu-1"](np.float32(2), *given[1:]).tolist() == 6


def test_swish_with_beta():
    result = ops["Swish-4"](array(-1, 2), np.float32(2))
    np.testing.assert_allclose(result, [-1 / (1 + math.exp(2)), 2 / (1 + math.exp(-4))], 1e-6)
    assert ops["Swish-4"](array(-4, 2), np.float32(0)).tolist() == [-2, 1]
    assert ops["Swish-4"](array(-4, 2, type=bfloat16), np.array(0, bfloat16)).astype(float).tolist() == [-2, 1]


def test_swish_4_c1_negative_beta():
    op = ops["Swish-4"]
    assert tolerated(op, array(1), np.float32(-0.5)) == ("C1", "`beta` is -0.5, expected 0 or more")
    assert not op.infer([Tensor("f32", (1,)), Tensor("f32", ())], {}).complete
    assert op.infer([Tensor("f32", (1,))], {}).complete


def test_prelu_slope_for_each_channel_or_broadcast():
    data = -np.ones((2, 2, 3), np.float32)
    prelu = ops["PReLU-1"]
    assert prelu(data, array(1, 2))[0].tolist() == [[-1] * 3, [-2] * 3]
    assert prelu(data, array(1, 2, 3))[0].tolist() == [[-1, -2, -3]] * 2
    assert prelu(data, array(4)).tolist() == (data * 4).tolist()
    assert prelu(data, np.array(4, np.float32)).tolist() == (data * 4).tolist()
    for shape in ((2, 1), (2, 3), (1, 2, 1), (2, 2, 3), (1, 1, 2, 1)):
        slope = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        assert prelu(data, slope).tolist() == (data * slope).reshape(2, 2, 3).tolist()
    assert prelu(-np.ones((2, 2), np.float32), array(1, 2)).tolist() == [[-1, -2]] * 2
    square = -np.ones((1, 3, 3), np.float32)
    assert prelu(square, array(1, 2, 3))[0].tolist() == [[-1] * 3, [-2] * 3, [-3] * 3]
    assert prelu(array(-1, -1), array(1, 2)).tolist() == [-1, -2]


@pytest.mark.parametrize("type", [np.float32, np.float16, np.float64, bfloat16])
def test_prelu_leaves_positive_elements_alone(type):
    result = ops["PReLU-1"](np.array([-2, 0, 3, nan, inf], type), np.array([inf], type))
    assert result.dtype == type
    np.testing.assert_array_equal(result.astype(float), [-inf, 0, 3, nan, inf])
    assert ops["PReLU-1"](np.zeros((0, 2), type), np.ones(2, type)).shape == (0, 2)
    assert np.asarray(ops["PReLU-1"](np.array(-1, type), np.array(2, type))).dtype == type


@pytest.mark.parametrize("slope", [(4,), (3, 3), (5, 2, 2, 3)])
def test_prelu_1_c1_slope_that_does_not_fit(slope):
    with pytest.raises(Violation, match="which does not broadcast into") as caught:
        ops["PReLU-1"](np.ones((2, 2, 3)), np.ones(slope))
    assert caught.value.label == "C1"
    assert caught.value.message.startswith(f"`slope` is {list(slope)},")


def test_prelu_of_unknown_sizes():
    size = fresh()
    for slope in ((5,), (fresh(),), (4,), (1, 4)):
        assert infer("PReLU-1", Tensor("f32", (size, 5, 4)), Tensor("f32", slope)).shape == (size, 5, 4)
    assert infer("PReLU-1", Tensor("f32", (2, size)), Tensor("f32", (7,))).shape == (2, size)
    assert infer("PReLU-1", Tensor("f32", None), Tensor("f32", (7,))).shape is None


@pytest.mark.parametrize("name", ["SoftMax-1", "SoftMax-8", "LogSoftmax-5"])
@pytest.mark.parametrize("type", [np.float32, np.float64, np.float16, bfloat16])
def test_softmax_agrees_with_a_loop(name, type):
    data = np.random.default_rng(0).normal(0, 3, (2, 3, 4)).astype(type)
    for axis in (0, 1, 2, -1) if name != "SoftMax-1" else (0, 1, 2):
        result = ops[name](data, axis=axis)
        assert result.dtype == type
        rows, expected = np.moveaxis(data, axis, -1).astype(float), np.empty(data.shape)
        target = np.moveaxis(expected, axis, -1)
        for place in np.ndindex(rows.shape[:-1]):
            total = sum(math.exp(x) for x in rows[place])
            target[place] = [math.exp(x) / total for x in rows[place]]
        expected = np.log(expected) if name == "LogSoftmax-5" else expected
        np.testing.assert_allclose(result.astype(float), expected, 1e-5 if data.itemsize > 2 else 1e-2, atol=1e-6)


def test_softmax_of_large_and_infinite_elements():
    for name in ("SoftMax-1", "SoftMax-8"):
        softmax = ops[name]
        np.testing.assert_array_equal(softmax(array(1000, 1000, -inf), axis=0), array(0.5, 0.5, 0))
        np.testing.assert_array_equal(softmax(array(-inf, -inf), axis=0), array(nan, nan))
        np.testing.assert_array_equal(softmax(array(inf, 1), axis=0), array(nan, nan))
        assert softmax(np.zeros((2, 0), np.float32), axis=1).shape == (2, 0)
        assert softmax(np.array(3, np.float32), axis=0).tolist() == 1
    np.testing.assert_allclose(ops["LogSoftmax-5"](array(0, -inf, 0), axis=0), [-math.log(2), -inf, -math.log(2)], 1e-6)


def test_softmax_1_c1_axis_outside_the_rank():
    for axis in (2, -1):
        with pytest.raises(Violation, match=rf"`axis` is {axis}, outside \[0, 2\) for rank 2") as caught:
            ops["SoftMax-1"](np.ones((2, 3)), axis=axis)
        assert caught.value.label == "C1"


def test_softmax_8_c1_axis_outside_the_rank():
    with pytest.raises(Violation, match=r"`axis` is 1, outside \[-1, 1\) for rank 1") as caught:
        ops["SoftMax-8"](np.ones(3))
    assert caught.value.label == "C1"


def test_logsoftmax_5_c1_axis_outside_the_rank():
    with pytest.raises(Violation, match=r"`axis` is -3, outside \[-2, 2\) for rank 2") as caught:
        ops["LogSoftmax-5"](np.ones((2, 3)), axis=-3)
    assert caught.value.label == "C1"


def test_softmax_keeps_a_dynamic_shape():
    size = fresh()
    for name in ("SoftMax-1", "SoftMax-8", "LogSoftmax-5"):
        assert infer(name, Tensor("f32", (size, 3))).shape == (size, 3)
        assert infer(name, Tensor("f32", None)).shape is None


def test_the_newest_softmax_of_an_opset_is_found():
    assert registry().find("SoftMax", "opset1") is ops["SoftMax-1"]
    assert registry().find("Softmax", "opset8") is ops["SoftMax-8"]
    assert registry().find("Gelu", "opset6") is ops["Gelu-2"]
    assert registry().find("Gelu", "opset7") is ops["Gelu-7"]


@pytest.mark.parametrize("data", [np.array(["a", "bc"]), np.array([[1, 2]], ml_dtypes.int4), np.array(True)])
def test_identity_is_its_input(data):
    assert ops["Identity-16"](data) is data
    sizes = np.array([fresh(), 3], object)
    assert ops["Identity-16"].kernel(sizes) is sizes


def test_hswish_of_the_greatest_numbers_is_they_themselves():
    greatest = np.float32([3e38, np.finfo(np.float32).max])
    np.testing.assert_array_equal(ops["HSwish-4"].kernel(greatest), greatest)


def test_elu_1_keeps_the_sign_of_zero():
    assert np.signbit(ops["Elu-1"](np.float32([-0.0, 0.0]), alpha=1.1)).tolist() == [True, False]
