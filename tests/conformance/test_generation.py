"""Generation ops against OpenVINO."""

from functools import partial

import ml_dtypes
import numpy as np
from openvino import opset1, opset8, opset9, opset13, opset14
from openvino.utils.node_factory import _get_node_factory

from conformance.harness import ANY_INTEGER, NARROW, Case, Const, Departure, conformance


def numbers(*values, dtype=np.int64, const=False):
    arrays = [np.array(value, dtype) for value in values]
    return [Const(array) for array in arrays] if const else arrays


def range_(type):
    # openvino.opset4.range and later ones are that of opset1
    factory = _get_node_factory("opset4")
    return lambda *nodes: factory.create("Range", [node.output(0) for node in nodes], {"output_type": type})


def eye(type):
    return lambda rows, columns, diagonal, *batch: opset9.eye(rows, columns, diagonal, type, *batch)


def uniform(type):
    return lambda shape, low, high: opset8.random_uniform(shape, low, high, type, 150, 10)


def like_pytorch(type):
    return lambda shape, low, high: opset14.random_uniform(shape, low, high, type, 150, 10, "pytorch")


def limits(low, high, dtype):
    return [Const(np.array(low, dtype)), Const(np.array(high, dtype))]


SHAPE = Const(np.array([3, 5]))

CASES = [
    Case("Range-1", "up", opset1.range, numbers(2, 23, 3, const=True)),
    Case("Range-1", "down", opset1.range, numbers(23, 2, -3)),
    Case("Range-1", "f32", opset1.range, numbers(0.5, 3, 0.25, dtype=np.float32)),
    Case(
        "Range-1",
        "empty",
        opset1.range,
        numbers(3, 2, 1, dtype=np.int32),
        deviates=Departure("gives one number; the page gives none where start is beyond stop", "output is empty"),
        expected=[np.zeros(0, np.int32)],
    ),
    Case("Range-4", "up", range_("i32"), numbers(2, 23, 3, const=True)),
    Case("Range-4", "down", range_("i64"), numbers(23, 2, -3)),
    Case("Range-4", "i64 as f32", range_("f32"), numbers(1, 6, 2)),
    Case("Range-4", "f32", range_("f32"), numbers(0.5, 3, 0.25, dtype=np.float32)),
    Case("Range-4", "truncated constants", range_("i32"), numbers(0.5, 3.9, 1, dtype=np.float32, const=True)),
    Case(
        "Range-4",
        "truncated inputs",
        range_("i32"),
        numbers(0.5, 3.9, 1.2, dtype=np.float32),
        deviates=Departure(
            "steps before it truncates; the page truncates start, stop and step first",
            f"output is {ANY_INTEGER}; start has fractions | step has fractions",
        ),
        expected=[np.int32([0, 1, 2])],
    ),
    Case(
        "Range-4",
        "a step away from stop",
        range_("f32"),
        numbers(0, 5, -1, dtype=np.float32),
        deviates=Departure("counts on from start; by the page there are no numbers", "start < stop; step < 0"),
        expected=[np.float32([])],
    ),
    Case(
        "Range-4",
        "a step upwards, away from stop",
        range_("i32"),
        numbers(5, 0, 1),
        deviates=Departure("counts on from start; by the page there are no numbers", "start > stop; step > 0"),
        expected=[np.int32([])],
    ),
    Case("Eye-9", "upper", eye("f32"), numbers(3, 4, 1, const=True)),
    Case("Eye-9", "lower", eye("i32"), numbers(3, 4, -1)),
    Case("Eye-9", "a batch", eye("i8"), [*numbers(2, 3, 0, const=True), Const(np.array([2, 1]))]),
    Case("Eye-9", "outside", eye("f32"), numbers(2, 2, 5)),
    Case("Eye-9", "no rows", eye("i64"), numbers(0, 2, 0, const=True)),
    Case("RandomUniform-8", "f32", uniform("f32"), [SHAPE, *limits(0, 1, np.float32)]),
    Case("RandomUniform-8", "i32", uniform("i32"), [SHAPE, *limits(-50, 100, np.int32)]),
    Case(
        "RandomUniform-8",
        "i64",
        lambda *nodes: opset8.random_uniform(*nodes, "i64", 80, 100),
        [Const(np.array([6])), *limits(50, 100, np.int64)],
        deviates=Departure("takes one random word for a number; the reference takes two", "output is i64"),
        expected=[np.array([85, 70, 64, 61, 57, 75])],
    ),
    Case("RandomUniform-8", "shape as an input", uniform("f32"), [np.array([2, 2]), *limits(2, 3, np.float32)]),
    Case(
        "RandomUniform-8",
        "any number of sizes",
        uniform("i32"),
        [np.array([2, 2]), *limits(0, 1, np.int32)],
        dynamic=True,
        deviates=Departure(
            "refuses results of unknown rank; the page does not tell them from others", "output is of unknown rank"
        ),
        expected=[np.zeros((2, 2), np.int32)],
    ),
    Case("RandomUniform-8", "f32 as in PyTorch", like_pytorch("f32"), [SHAPE, *limits(0, 1, np.float32)]),
    Case("RandomUniform-8", "i32 as in PyTorch", like_pytorch("i32"), [SHAPE, *limits(0, 90, np.int32)]),
    Case(
        "Multinomial-13",
        "one possible class",
        lambda p, n: opset13.multinomial(p, n, "i32", True, False, 5, 7),
        [np.float32([[0, 1, 0], [0, 0, 1]]), Const(np.int32([4]))],
    ),
    Case(
        "Multinomial-13",
        "one possible class of logarithms",
        lambda p, n: opset13.multinomial(p, n, "i64", True, True, 5, 7),
        [np.float32([[-50, 50, -50]]), Const(np.int32([3]))],
    ),
]

ZERO_TO_ONE = {name: limits(0, 1, type) for name, type in (("f16", np.float16), ("f64", np.float64))}
PROBABILITIES = np.float32([[0.1, 0.2, 0.3, 0.4]])


def multinomial(probs, number, type="i64", replaced=True, logarithms=False):
    return opset13.multinomial(probs, number, type, replaced, logarithms, 5, 7)


def drawn_twice(probs, number):
    drawn = multinomial(probs, number)
    return [drawn.output(0), opset1.add(drawn, drawn).output(0)]


CASES += [
    Case(
        "RandomUniform-8",
        "bf16",
        uniform("bf16"),
        [SHAPE, *limits(0, 1, ml_dtypes.bfloat16)],
        deviates=Departure("draws other numbers; the page makes bf16 of 7 random bits", "output is bf16", NARROW),
        expected=[
            np.array(
                [
                    [0.8359375, 0.453125, 0.65625, 0.0703125, 0.2890625],
                    [0.6640625, 0.3515625, 0.671875, 0.6875, 0.7578125],
                    [0.234375, 0.03125, 0.78125, 0.953125, 0.3046875],
                ],
                ml_dtypes.bfloat16,
            )
        ],
    ),
    Case(
        "RandomUniform-8",
        "f16",
        uniform("f16"),
        [Const(np.array([2, 2])), *ZERO_TO_ONE["f16"]],
        deviates=Departure("converts the draws of f32; the page makes f16 of 10 random bits", "output is f16"),
        expected=[np.float16([[0.6044921875, 0.806640625], [0.83203125, 0.3837890625]])],
    ),
    Case(
        "RandomUniform-8",
        "f64",
        uniform("f64"),
        [Const(np.array([2, 2])), *ZERO_TO_ONE["f64"]],
        deviates=Departure("converts the draws of f32; the page makes f64 of 52 random bits", "output is f64"),
        expected=[np.array([[0.608989218818762, 0.5144852007657355], [0.9355828939149167, 0.15775793460621435]])],
    ),
    Case(
        "RandomUniform-8",
        "in the next run",
        uniform("f32"),
        [np.array([2]), *limits(0, 1, np.float32)],
        later=[[np.array([2])]],
        deviates=Departure(
            "goes on drawing from run to run; by the page seeds decide what is drawn", "(it is not the first run)"
        ),
        expected=[np.float32([0.7011236, 0.3053963])] * 2,
    ),
    Case("Multinomial-13", "f16", partial(multinomial, type="i32"), [np.float16([[0, 0, 1], [1, 0, 0]]), np.array(3)]),
    Case("Multinomial-13", "bf16", multinomial, [np.array([[0, 0, 1]], ml_dtypes.bfloat16), Const(np.array([2]))]),
    Case("Multinomial-13", "sizes unknown", multinomial, [np.float32([[0, 0, 1]]), np.array([3])], dynamic=True),
    Case("Multinomial-13", "no samples", multinomial, [PROBABILITIES, Const(np.array([0]))]),
    Case(
        "Multinomial-13",
        "not replaced",
        partial(multinomial, replaced=False),
        [np.float32([[0, 1]]), Const(np.array(1))],
    ),
    *(
        Case(
            "Multinomial-13",
            f"draws, {title}",
            partial(multinomial, replaced=replaced),
            [PROBABILITIES, Const(np.array([4]))],
            deviates=Departure(
                "draws otherwise; the page leaves the draws open, those of RandomUniform are taken here",
                "num_samples > 0; log_probs = true | probs has rows of several chances",
            ),
            expected=[np.array([[2, 0, 3, last]])],
        )
        for title, replaced, last in (("replaced", True, 0), ("not replaced", False, 1))
    ),
    Case(
        "Multinomial-13",
        "read twice",
        drawn_twice,
        [np.float32([[0, 1, 0]]), Const(np.array([2]))],
        deviates=Departure("refuses several readers of the output; the page has no such limit", "output is read twice"),
        expected=[np.array([[1, 1]]), np.array([[2, 2]])],
    ),
]

test_agrees_with_openvino = conformance(CASES)
