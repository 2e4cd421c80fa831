"""Shape ops against OpenVINO."""

import numpy as np
from openvino import opset1, opset3, opset4, opset15
from openvino.utils.node_factory import _get_node_factory

from conformance.harness import Case, Const, Departure, conformance, with_attribute


def rows(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape)) % 7).astype(dtype).reshape(shape)


def axes(*values):
    return Const(np.array(values, np.int64))


def reshape(special_zero):
    return lambda data, shape: opset1.reshape(data, shape, special_zero)


def without_axes(data):
    return _get_node_factory("opset1").create("Squeeze", [data.output(0)])


CASES = [
    Case("ShapeOf-1", "of a matrix", opset1.shape_of, [rows(2, 3)]),
    Case("ShapeOf-1", "sizes unknown", opset1.shape_of, [rows(2, 3)], dynamic=True),
    Case("ShapeOf-1", "of a scalar", opset1.shape_of, [rows()]),
    Case("ShapeOf-1", "of an empty u8 tensor", opset1.shape_of, [rows(0, 3, dtype=np.uint8)], dynamic=True),
    Case("ShapeOf-1", "of strings", opset1.shape_of, [np.array([["a", "b"]])]),
    Case("ShapeOf-3", "i32", lambda x: opset3.shape_of(x, "i32"), [rows(2, 3)]),
    Case(
        "ShapeOf-3",
        "no output_type",
        lambda x: opset3.shape_of(x, "i64"),
        [Const(rows(2, 3))],
        left_out=["output_type"],
        deviates=Departure("refuses a file without output_type; the page has i64 for it", "output_type is left out"),
        expected=[np.array([2, 3])],
    ),
    Case("ShapeOf-3", "i64 of f16", opset3.shape_of, [rows(4, dtype=np.float16)], dynamic=True),
    Case("ShapeOf-3", "of a scalar", opset3.shape_of, [rows()]),
    Case("ShapeOf-3", "of an empty tensor", opset3.shape_of, [rows(2, 0)]),
    Case("Reshape-1", "a free size", reshape(False), [rows(2, 6), axes(3, -1)]),
    Case("Reshape-1", "copied sizes", reshape(True), [rows(2, 3, 4), axes(0, -1, 2)]),
    Case("Reshape-1", "a real zero", reshape(False), [rows(2, 0), axes(0, 5)]),
    Case("Reshape-1", "an empty batch", reshape(True), [rows(0, 6), axes(0, -1, 2)], dynamic=True),
    Case(
        "Reshape-1",
        "an empty batch that is no copy",
        reshape(False),
        [rows(0, 4), np.array([0, 2, -1])],
        deviates=Departure(
            "takes 0 for -1 beside a 0; sizes of 0 of data and shape cancel each other, as others do",
            "special_zero = false; data is empty; shape = 0; shape = -1",
        ),
        expected=[rows(0, 2, 2)],
    ),
    Case(
        "Reshape-1",
        "an empty batch of unknown sizes that is no copy",
        reshape(True),
        [rows(0, 4), axes(0, 2, -1)],
        dynamic=True,
        edit=with_attribute("special_zero", "false"),
        deviates=Departure(
            "refuses -1 beside 0 for data of unknown sizes; sizes of 0 of data and shape cancel, as others do",
            "special_zero = false; data is dynamic; shape is constant; shape = 0; shape = -1",
        ),
        expected=[rows(0, 2, 2)],
    ),
    Case(
        "Reshape-1",
        "to the sizes of what is empty and has more axes",
        lambda data: opset1.reshape(opset1.reshape(data, np.int64([-1]), False), opset3.shape_of(data), False),
        [rows(2, 0, 3)],
        deviates=Departure(
            "refuses sizes of a tensor that are 0 beyond the axes of data; the page has a 0 for 0 without special_zero",
            "special_zero = false; data is empty; shape = 0; (they are sizes, and 0 beyond the axes of data)",
        ),
        expected=[rows(2, 0, 3)],
    ),
    Case("Reshape-1", "to a scalar", reshape(False), [rows(1, 1), np.zeros(0, np.int64)]),
    Case("Reshape-1", "i64, sizes unknown", reshape(True), [rows(2, 6, dtype=np.int64), axes(0, 2, -1)], dynamic=True),
    Case("Reshape-1", "shape as an input", reshape(False), [rows(2, 6), np.array([4, 3])]),
    Case("Reshape-1", "u8", reshape(False), [rows(4, dtype=np.uint8), Const(np.int32([2, 2]))]),
    Case("Squeeze-1", "two axes", opset1.squeeze, [rows(1, 3, 1), axes(0, 2)]),
    Case("Squeeze-1", "a negative axis", opset1.squeeze, [rows(1, 3, 1), axes(-1)]),
    Case("Squeeze-1", "all", without_axes, [rows(1, 3, 1)]),
    Case("Squeeze-1", "an axis that is no 1", opset1.squeeze, [rows(1, 3, 1), axes(1, 2)]),
    Case("Squeeze-1", "sizes unknown", opset1.squeeze, [rows(1, 3, dtype=np.int32), axes(0)], dynamic=True),
    Case(
        "Squeeze-1",
        "an axis that is no 1 where sizes are unknown",
        opset1.squeeze,
        [rows(2, 3), axes(0)],
        dynamic=True,
        deviates=Departure(
            "refuses an axis of another size than 1 where sizes are unknown; where they are known both keep it",
            "data is dynamic; axes is connected; (one of the axes is of another size)",
        ),
        expected=[rows(2, 3)],
    ),
    Case("Squeeze-15", "two axes", opset15.squeeze, [rows(1, 3, 1), axes(0, 2)]),
    Case("Squeeze-15", "skips", lambda x, a: opset15.squeeze(x, a, True), [rows(2, 3, 1), axes(0, 2)]),
    Case(
        "Squeeze-15",
        "skips where sizes are unknown",
        lambda x, a: opset15.squeeze(x, a, True),
        [rows(2, 3, 1), axes(0, 2)],
        dynamic=True,
        deviates=Departure(
            "refuses it where sizes are unknown; the page keeps axes of other sizes than 1",
            "allow_axis_skip = true; data is dynamic",
        ),
        expected=[rows(2, 3)],
    ),
    Case("Squeeze-15", "all", lambda x: opset15.squeeze(x), [rows(1, 3, 1, dtype=np.float16)]),
    Case("Squeeze-15", "sizes unknown", opset15.squeeze, [rows(1, 3), axes(0)], dynamic=True),
    Case("Unsqueeze-1", "two axes", opset1.unsqueeze, [rows(2, 3), axes(0, 3)]),
    Case("Unsqueeze-1", "a negative axis", opset1.unsqueeze, [rows(2, 3), axes(-1)]),
    Case("Unsqueeze-1", "a scalar", opset1.unsqueeze, [rows(), axes(0)]),
    Case("Unsqueeze-1", "a scalar axis", opset4.unsqueeze, [rows(2, dtype=np.int64), Const(np.int64(1))], dynamic=True),
    *(
        Case(
            op,
            title,
            build,
            inputs,
            dynamic=True,
            deviates=Departure(
                "refuses results of unknown rank; the page does not tell them from others", "output is of unknown rank"
            ),
            expected=[expected],
        )
        for op, title, build, inputs, expected in (
            ("Reshape-1", "to any number of sizes", reshape(False), [rows(2, 6), np.array([4, 3])], rows(4, 3)),
            ("Squeeze-1", "all, sizes unknown", without_axes, [rows(1, 3, 1)], rows(3)),
            ("Squeeze-1", "any number of axes", opset1.squeeze, [rows(1, 3, 1), np.array([0])], rows(3, 1)),
            ("Squeeze-15", "all, sizes unknown", opset15.squeeze, [rows(1, 3, 1)], rows(3)),
            ("Squeeze-15", "any number of axes", opset15.squeeze, [rows(1, 3, 1), np.array([0])], rows(3, 1)),
            ("Unsqueeze-1", "any number of axes", opset1.unsqueeze, [rows(2, 3), np.array([0])], rows(1, 2, 3)),
        )
    ),
]

test_agrees_with_openvino = conformance(CASES)
