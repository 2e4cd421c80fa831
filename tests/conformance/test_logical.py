"""Logical ops, compared with OpenVINO."""

import numpy as np
from openvino import opset1
from openvino.utils.node_factory import NodeFactory

from conformance.harness import Case, Const, conformance
from conformance.pdpd import departing

BINARY = {
    "LogicalAnd-1": opset1.logical_and,
    "LogicalOr-1": opset1.logical_or,
    "LogicalXor-1": opset1.logical_xor,
    "Xor-1": lambda a, b: NodeFactory("opset1").create("Xor", [a.output(0), b.output(0)]),
}

A, B = np.array([[False, True], [True, False]]), np.array([False, True])

CASES = [
    Case(op, title, build, inputs, dynamic=dynamic)
    for op, build in BINARY.items()
    for title, inputs, dynamic in (
        ("broadcast", [A, B], False),
        ("same shapes", [A, A.T.copy()], False),
        ("dynamic shapes", [A[:, None], B], True),
        ("folded", [Const(A), Const(B)], False),
        ("scalars", [np.array(True), np.array(False)], False),
        ("empty", [np.zeros((0, 2), bool), B], True),
    )
] + [
    Case("LogicalNot-1", title, opset1.logical_not, [data], dynamic=dynamic)
    for title, data, dynamic in (
        ("matrix", A, False),
        ("dynamic shape", A, True),
        ("scalar", np.array(True), False),
        ("folded", Const(A), False),
    )
]

CASES += departing(
    {
        "LogicalAnd-1": np.logical_and,
        "LogicalOr-1": np.logical_or,
        "LogicalXor-1": np.logical_xor,
        "Xor-1": np.logical_xor,
    },
    bool,
    (0, 1, 0),
)

test_agrees_with_openvino = conformance(CASES)
