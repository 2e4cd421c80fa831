"""Condition ops against OpenVINO."""

import numpy as np
import openvino as ov
from openvino import opset1, opset3
from openvino.op import if_op

from conformance.harness import Case, Const, Departure, conformance
from conformance.pdpd import REFUSES, from_axis

RNG = np.random.default_rng(0)
TRUE, FALSE = np.array(True), np.array(False)


def rows(*shape, dtype=np.float32):
    return RNG.integers(-5, 5, shape).astype(dtype)


def mask(*shape):
    return RNG.random(shape) < 0.5


def branching(cond, x, y, *, pick=False):
    """x + y or x * y; with `pick` one of them, so that the shapes may differ."""
    node = if_op(cond.output(0))
    bodies, parameters, results = [], [], []
    for op in (opset1.add, opset1.multiply):
        pair = [opset1.parameter(v.output(0).partial_shape, v.output(0).element_type) for v in (x, y)]
        value = pair[len(bodies)] if pick else op(*pair)
        parameters.append(pair)
        results.append([opset1.result(value), opset1.result(opset1.exp(pair[0]))])
        bodies.append(ov.Model(results[-1], pair))
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    for number, value in enumerate((x, y)):
        node.set_input(value.output(0), parameters[0][number], parameters[1][number])
    return [node.set_output(*pair) for pair in zip(*results, strict=True)]


def of_two_columns(x):
    """x in pairs where it has two columns, else as it is: only one of the bodies is right for the sizes of x."""
    columns = opset1.gather(opset3.shape_of(x), np.array(1), np.array(0))
    node = if_op(opset1.equal(columns, np.int64(2)).output(0))
    pairs, same = opset1.parameter([-1, -1], np.float32), opset1.parameter([-1, -1], np.float32)
    results = [opset1.result(opset1.reshape(pairs, [-1, 2, 2], False)), opset1.result(opset1.relu(same))]
    node.set_then_body(ov.Model([results[0]], [pairs]))
    node.set_else_body(ov.Model([results[1]], [same]))
    node.set_input(x.output(0), pairs, same)
    return [node.set_output(*results)]


def picking(cond, x, y):
    return branching(cond, x, y, pick=True)


def select(mode):
    return lambda *nodes: opset1.select(*nodes, mode)


def bucketize(**attrs):
    return lambda x, b: opset3.bucketize(x, b, **attrs)


CASES = [
    Case("If-8", "then", branching, [TRUE, rows(2), rows(2)]),
    Case("If-8", "else", branching, [FALSE, rows(2), rows(2)]),
    Case("If-8", "one element", branching, [np.array([True]), rows(2), rows(2)]),
    Case("If-8", "bodies of other shapes", picking, [FALSE, rows(2), rows(3)]),
    Case("If-8", "a body that fits no inputs, which does not run", of_two_columns, [np.eye(3, dtype=np.float32)]),
    Case("If-8", "sizes unknown", branching, [TRUE, rows(2, 3), rows(2, 3)], dynamic=True),
    Case("Select-1", "numpy", select("numpy"), [mask(2, 1), rows(2, 3), rows(3)]),
    Case("Select-1", "none", select("none"), [mask(2), rows(2), rows(2)]),
    Case("Select-1", "a larger condition", select("numpy"), [mask(2, 3), rows(), rows()]),
    Case("Select-1", "i64", select("numpy"), [mask(3), rows(2, 3, dtype=np.int64), rows(dtype=np.int64)]),
    Case("Select-1", "u8", select("numpy"), [mask(3), rows(3, dtype=np.uint8), rows(3, dtype=np.uint8)]),
    Case(
        "Select-1",
        "strings",
        select("numpy"),
        [np.array([True, False]), np.array(["a", "b"]), np.array(["c", "d"])],
        deviates=Departure("refuses strings; the page has any type", "then is string"),
        expected=[np.array(["a", "d"])],
    ),
    Case("Select-1", "sizes unknown", select("numpy"), [mask(2, 1), rows(2, 3), rows(2, 3)], dynamic=True),
    Case("NonZero-3", "f32", lambda x: opset3.non_zero(x), [rows(3, 4)]),
    Case("NonZero-3", "i32 out", lambda x: opset3.non_zero(x, "i32"), [rows(3, 4, dtype=np.int32)]),
    Case("NonZero-3", "boolean", lambda x: opset3.non_zero(x), [mask(2, 3)], dynamic=True),
    Case("NonZero-3", "nothing", lambda x: opset3.non_zero(x), [np.zeros((2, 3), np.float32)]),
    Case("NonZero-3", "five dimensions", lambda x: opset3.non_zero(x), [rows(2, 1, 2, 1, 3, dtype=np.uint8)]),
    Case("Bucketize-3", "right", bucketize(), [rows(3, 4), Const(np.float32([-2, 0, 3]))]),
    Case("Bucketize-3", "left", bucketize(with_right_bound=False), [rows(3, 4), Const(np.float32([-2, 0, 3]))]),
    Case(
        "Bucketize-3",
        "no output_type",
        bucketize(),
        [Const(np.float32([0, 1.5])), Const(np.float32([1, 2]))],
        left_out=["output_type"],
        deviates=Departure("refuses a file without output_type; the page has i64 for it", "output_type is left out"),
        expected=[np.array([0, 1])],
    ),
    Case("Bucketize-3", "i32", bucketize(output_type="i32"), [rows(5, dtype=np.int32), Const(np.int32([0, 2]))]),
    Case("Bucketize-3", "sizes unknown", bucketize(), [rows(3, 4), np.float32([0, 2])], dynamic=True),
    Case("Bucketize-3", "no boundaries", bucketize(), [rows(3), np.zeros(0, np.float32)]),
]

NAN = np.float32([np.nan, 1, -np.inf])
CASES += [
    Case("Bucketize-3", "nan, right", bucketize(), [NAN, Const(np.float32([0, 1]))]),
    Case("Bucketize-3", "nan, left", bucketize(with_right_bound=False), [NAN, Const(np.float32([0, 1]))]),
    Case(
        "NonZero-3",
        "a scalar",
        lambda x: opset3.non_zero(x),
        [np.array(3, np.float32)],
        deviates=Departure(
            "takes a scalar for a vector of one element; on the page it has no axis", "data is a scalar"
        ),
        expected=[np.zeros((0, 1), np.int64)],
    ),
    Case("NonZero-3", "nan and negative zero", lambda x: opset3.non_zero(x), [np.float32([np.nan, 0, -0.0, 1])]),
    Case(
        "Select-1",
        "pdpd from axis 1",
        from_axis("Select-1", 1),
        [np.array([True, False]), np.zeros((2, 2, 2), np.float32), np.float32([1, 2])],
        deviates=REFUSES,
        expected=[np.float32([[[0, 0], [2, 2]]] * 2)],
    ),
]

test_agrees_with_openvino = conformance(CASES)
