"""Logical ops: truth tables, broadcasting, constraints and the second name of the exclusive or."""

import numpy as np
import pytest
from tolerance import tolerated

from irrun.spec import Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops

LOGICAL = ["LogicalAnd-1", "LogicalOr-1", "LogicalXor-1", "Xor-1"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LogicalAnd-1", [False, False, False, True]),
        ("LogicalOr-1", [False, True, True, True]),
        ("LogicalXor-1", [False, True, True, False]),
        ("Xor-1", [False, True, True, False]),
    ],
)
def test_truth_tables(name, expected):
    result = ops[name](np.array([False, False, True, True]), np.array([False, True, False, True]))
    assert result.dtype == np.bool_
    assert result.tolist() == expected


def test_logical_not():
    result = ops["LogicalNot-1"](np.array([[True], [False]]))
    assert result.dtype == np.bool_
    assert result.tolist() == [[False], [True]]
    assert ops["LogicalNot-1"](np.zeros((0, 2), bool)).shape == (0, 2)


@pytest.mark.parametrize("type", [np.float32, np.float16, np.int64, np.uint8])
def test_numbers_are_false_where_they_are_0(type):
    op, data = ops["LogicalNot-1"], np.array([0, 1, 2, 0], type)
    assert tolerated(op, data)[0] == "E303"
    result = op.kernel(data)
    assert result.dtype == type
    assert result.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("name", LOGICAL)
def test_logical_ops_broadcast(name):
    op, expected = ops[name], {"LogicalAnd-1": True, "LogicalOr-1": True}.get(name, False)
    ones = np.ones((2, 3), bool)
    for b in (np.ones(3, bool), np.array(True), np.ones((2, 1), bool)):
        assert op(ones, b).tolist() == [[expected] * 3] * 2
    assert op(ones, np.ones(2, bool), auto_broadcast="pdpd", auto_broadcast_axis=0).shape == (2, 3)
    assert op(np.ones((0, 3), bool), np.ones(3, bool)).shape == (0, 3)


@pytest.mark.parametrize("name", LOGICAL)
def test_logical_c1_shapes_that_do_not_broadcast(name):
    with pytest.raises(Violation) as caught:
        ops[name](np.ones((2, 3), bool), np.ones(2, bool))
    assert caught.value.label == "C1"
    assert caught.value.message == "`a` is [2, 3] and `b` is [2], which do not broadcast (numpy)"


@pytest.mark.parametrize("name", LOGICAL)
def test_logical_ops_take_booleans_only(name):
    with pytest.raises(Violation, match="`a` is f32, expected one of boolean"):
        ops[name](np.ones(1, np.float32), np.ones(1, np.float32))
    batch = fresh()
    result = ops[name].infer([Tensor("boolean", (batch, 1)), Tensor("boolean", (3,))], ops[name].defaults).outputs[0]
    assert result == Tensor("boolean", (batch, 3))


def test_xor_is_a_name_of_opset1_only():
    assert ops["Xor-1"].held_by == {1}
    assert registry().find("Xor", "opset1") is ops["Xor-1"]
    assert registry().find("Xor", "opset2") is None
