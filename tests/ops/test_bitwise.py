"""Bitwise ops: examples of the specification, booleans, shifts past the width, broadcasting and constraints."""

import operator

import numpy as np
import pytest

from irrun.spec import Tensor, Violation, fresh, numpy_dtype
from irrun.spec.registry import registry

ops = registry().ops

BITWISE = ["BitwiseAnd-13", "BitwiseLeftShift-15", "BitwiseOr-13", "BitwiseRightShift-15", "BitwiseXor-13"]


@pytest.mark.parametrize(
    ("name", "integers", "booleans"),
    [
        ("BitwiseAnd-13", [1, 32], [True, False, False]),
        ("BitwiseOr-13", [23, 125], [True, True, False]),
        ("BitwiseXor-13", [22, 93], [False, True, False]),
    ],
)
def test_examples_of_the_pages(name, integers, booleans):
    result = ops[name](np.array([21, 120], np.uint8), np.array([3, 37], np.uint8))
    assert result.dtype == np.uint8
    assert result.tolist() == integers
    result = ops[name](np.array([True, False, False]), np.array([True, True, False]))
    assert result.dtype == np.bool_
    assert result.tolist() == booleans


def test_bitwise_not():
    assert ops["BitwiseNot-13"](np.array([1, 3], np.uint8)).tolist() == [254, 252]
    assert ops["BitwiseNot-13"](np.array([0, 5, -1], np.int64)).tolist() == [-1, -6, 0]
    result = ops["BitwiseNot-13"](np.array([True, False]))
    assert result.dtype == np.bool_
    assert result.tolist() == [False, True]
    with pytest.raises(Violation, match="`data` is f32"):
        ops["BitwiseNot-13"](np.ones(1, np.float32))


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("BitwiseAnd-13", operator.and_),
        ("BitwiseOr-13", operator.or_),
        ("BitwiseXor-13", operator.xor),
        ("BitwiseRightShift-15", operator.rshift),
    ],
)
@pytest.mark.parametrize("type", [np.int8, np.int16, np.int32, np.int64])
def test_a_bitwise_op_agrees_with_a_loop(name, meaning, type):
    a, b = np.array([-128, -5, 0, 6, 127], type), np.array([1, 3, 2, 7, 5], type)
    assert ops[name](a, b).tolist() == [meaning(int(x), int(y)) for x, y in zip(a, b, strict=True)]


def test_a_left_shift_loses_the_bits_that_leave_the_type():
    left = ops["BitwiseLeftShift-15"]
    assert left(np.array([1, 3, 200, 255], np.uint8), np.array([3, 1, 1, 7], np.uint8)).tolist() == [8, 6, 144, 128]
    assert left(np.array([1, -1, 3], np.int32), np.array([31, 4, 30], np.int32)).tolist() == [-(2**31), -16, -(2**30)]


def test_shifts_by_the_width_or_a_negative_count_shift_everything_out():
    data, counts = np.array([1, -8, -8, 8], np.int32), np.array([32, 40, -1, -1], np.int32)
    out = "all of them are shifted out here"
    with pytest.warns(UserWarning, match=f"`b` holds 32, and i32 has 32 bits: {out}"):
        assert ops["BitwiseLeftShift-15"](data, counts).tolist() == [0, 0, 0, 0]
    with pytest.warns(UserWarning, match="`b` holds 32"):
        assert ops["BitwiseRightShift-15"](data, counts).tolist() == [0, -1, -1, 0]
    with pytest.warns(UserWarning, match=f"`b` holds 8, and u8 has 8 bits: {out}"):
        assert ops["BitwiseRightShift-15"](np.array([255], np.uint8), np.array([8], np.uint8)).tolist() == [0]


@pytest.mark.parametrize("name", ["BitwiseLeftShift-15", "BitwiseRightShift-15"])
@pytest.mark.parametrize(
    ("type", "count", "said"),
    [
        ("i8", 7, None),
        ("i8", 8, "`b` holds 8, and i8 has 8 bits"),
        ("u16", 16, "`b` holds 16, and u16 has 16 bits"),
        ("i32", -1, "`b` holds -1, and i32 has 32 bits"),
        ("i64", 63, None),
        ("i64", 64, "`b` holds 64, and i64 has 64 bits"),
    ],
)
def test_constant_counts_outside_the_type_are_told(name, type, count, said):
    counts = np.array([[1, count]], numpy_dtype(type))
    doubts = ops[name].infer([Tensor(type, (3, 2)), Tensor.of(counts)], ops[name].defaults).doubts
    assert [(doubt.message.partition(":")[0], doubt.port, doubt.code) for doubt in doubts] == (
        [] if said is None else [(said, "b", "W949")]
    )


@pytest.mark.parametrize("name", BITWISE)
def test_bitwise_ops_broadcast(name):
    op, a = ops[name], np.ones((2, 3), np.int16)
    assert op(a, np.ones(3, np.int16)).shape == (2, 3)
    assert op(a, np.ones(2, np.int16), auto_broadcast="pdpd", auto_broadcast_axis=0).shape == (2, 3)
    assert op(np.ones((0, 3), np.int16), np.ones(3, np.int16)).shape == (0, 3)
    scalar = np.asarray(op(np.array(3, np.int16), np.array(1, np.int16)))
    assert (scalar.shape, scalar.dtype) == ((), np.int16)
    batch = fresh()
    assert op.infer([Tensor("i16", (batch, 1)), Tensor("i16", (3,))], op.defaults).outputs[0].shape == (batch, 3)


@pytest.mark.parametrize("name", BITWISE)
def test_bitwise_c1_shapes_that_do_not_broadcast(name):
    with pytest.raises(Violation) as caught:
        ops[name](np.ones((2, 3), np.int32), np.ones(2, np.int32))
    assert caught.value.label == "C1"
    assert caught.value.message == "`a` is [2, 3] and `b` is [2], which do not broadcast (numpy)"


@pytest.mark.parametrize("name", ["BitwiseLeftShift-15", "BitwiseRightShift-15"])
def test_shifts_take_no_booleans(name):
    with pytest.raises(Violation, match="`a` is boolean, expected one of"):
        ops[name](np.array([True]), np.array([True]))
