"""Inference over whole graphs: values through shape arithmetic, identity of sizes, unknown counts, bodies."""

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.spec.dims import Dim


def outputs_of(path, type, shapes=None):
    """What is known of the outputs of the layers of a type."""
    report = irrun.validate(path, shapes=shapes)
    assert not report.diagnostics, list(map(str, report.diagnostics))
    nodes = report.inference.nodes.values()
    return [tensor for node in nodes if node.layer.type == type for tensor in node.outputs]


def said(path):
    return [(found.code, found.layer.type) for found in irrun.validate(path).diagnostics]


@pytest.fixture
def flattened(tmp_path):
    """x [?, ?, 4, 8] to [batch, -1, 32] by ShapeOf, Gather, Concat and Reshape."""
    model = Model()
    x = model.parameter("x", "f32", ("?", "?", 4, 8))
    shape = model.layer("ShapeOf", [x], [("i64", (4,))], "opset3", output_type="i64")[0]
    zero = model.constant(np.int64(0))
    first = model.constant(np.int64([0]))
    batch = model.layer("Gather", [shape, first, zero], [("i64", (1,))], "opset8", batch_dims="0")
    rest = model.constant(np.int64([-1, 32]))
    target = model.layer("Concat", [batch[0], rest], [("i64", (3,))], axis="0")[0]
    model.result(model.layer("Reshape", [x, target], [("f32", (-1, -1, 32))], special_zero="false")[0])
    return model.save(tmp_path)


def test_a_diagnostic_stands_at_the_input_that_is_at_fault_and_has_notes_of_all(tmp_path):
    model = Model()
    x, y = model.parameter("x", "f32", (2, 3)), model.parameter("y", "f16", (2, 3))
    model.result(model.layer("Concat", [x, x, y], [("f32", (6, 3))], axis="0")[0])
    (found,) = irrun.validate(path := model.save(tmp_path)).diagnostics
    assert found.message == "`inputs[2]` is f16, but `inputs[0]` is f32"
    assert [(note.input, note.message) for note in found.notes] == [
        ("inputs[2]", "`inputs[2]` is f16[2, 3], from layer 1 `y` (Parameter)"),
        ("inputs[0]", "`inputs[0]` is f32[2, 3], from layer 0 `x` (Parameter)"),
    ]
    assert path.read_text().splitlines()[found.line - 1].strip().startswith('<port id="2" precision="FP16"')


def test_a_diagnostic_of_an_attribute_stands_at_it(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2, 3))
    model.result(model.layer("Clamp", [x], [("f32", (2, 3))], min="3", max="2")[0])
    (found,) = irrun.validate(path := model.save(tmp_path)).diagnostics
    assert found.message == "Clamp-1 C1: `min` is 3.0, above `max`, which is 2.0"
    assert path.read_text().splitlines()[found.line - 1][found.column - 1 :].startswith('min="3"')


def test_shape_arithmetic_keeps_identity_and_divides_products(flattened):
    (parameter,) = outputs_of(flattened, "Parameter")
    (reshaped,) = outputs_of(flattened, "Reshape")
    assert isinstance(parameter.shape[0], Dim)
    report = irrun.validate(flattened)
    nodes = {node.layer.type: node for node in report.inference.nodes.values()}
    x, y = nodes["Parameter"].outputs[0].shape, nodes["Reshape"].outputs[0].shape
    assert (y[0] == x[0]) is True
    assert (y[1] == x[1]) is True
    assert y[2] == 32
    assert reshaped.rank == 3


@pytest.mark.parametrize(
    ("floats", "expected"),
    [
        (lambda b, f: b.Floor(b.Multiply(f, np.float32([1, 3, 2, 2]))), ("batch", 9, 40, "2*width")),
        (lambda b, f: b.Concat(b.Gather(f, [3, 2], 0), np.float32([7]), axis=0), ("width", 20, 7)),
        (lambda b, f: b.Maximum(b.Add(b.Abs(f), np.float32(1)), np.float32(4)), (None, 4, 21, None)),
        (lambda b, f: b.Select(np.array([True, False, True, True]), f, np.float32(5)), ("batch", 5, 20, "width")),
        (lambda b, f: b.Ceiling(b.Negative(b.Subtract(np.float32(0), f))), ("batch", 3, 20, "width")),
        (lambda b, f: b.Multiply(f, np.float32(0.5)), None),
        (lambda b, f: b.Add(f, np.float32(np.inf)), None),
        (lambda b, f: b.Maximum(f, np.float32(2**25)), None),
        (lambda b, f: b.Divide(f, np.float32(2)), None),
        (lambda b, f: b.Multiply(f, f), None),  # which f32 does not hold where these are large
        (lambda b, f: b.Multiply(b.Convert(f, destination_type="f16"), np.float16(2)), None),
    ],
)
def test_sizes_are_followed_through_arithmetic_with_whole_floats(floats, expected):
    with irrun.build() as b:
        x = b.Parameter("f32[batch, 3, 20, width]")
        sizes = floats(b, b.Convert(b.ShapeOf(x, output_type="i64"), destination_type="f32"))
        result = b.Broadcast(np.float32(0), b.Convert(sizes, destination_type="i64"), mode="numpy")
        b.Result(result)
    found = result.shape
    if expected is None:
        assert not any(isinstance(size, int) for size in found)
    else:
        assert [size for size, wanted in zip(found, expected, strict=True) if wanted] == [*filter(None, expected)]


def test_given_shapes_make_it_static(flattened):
    (reshaped,) = outputs_of(flattened, "Reshape", {"x": (2, 5, 4, 8)})
    assert reshaped.shape == (2, 5, 32)


def test_two_parameters_of_one_declaration_have_sizes_of_their_own(tmp_path):
    model = Model()
    x, y = model.parameter("x", "f32", ("?",)), model.parameter("y", "f32", ("?",))
    model.result(model.layer("Concat", [x, y], [("f32", (-1,))], axis="0")[0])
    a, b = outputs_of(model.save(tmp_path), "Parameter")
    assert a.shape[0] is not b.shape[0]
    assert (a.shape[0] == b.shape[0]) is not True


def test_outputs_whose_number_only_a_run_tells(tmp_path):
    model = Model()
    x, lengths = model.parameter("x", "f32", (6,)), model.parameter("lengths", "i64", ("?",))
    axis = model.constant(np.int64(0))
    parts = model.layer("VariadicSplit", [x, axis, lengths], [("f32", (-1,)), ("f32", (-1,))])
    for part in parts:
        model.result(part)
    executor = irrun.GraphExecutor(model.save(tmp_path))
    first, second = executor.run([np.arange(6, dtype=np.float32), np.int64([2, 4])]).values()
    assert first.tolist() == [0, 1]
    assert second.tolist() == [2, 3, 4, 5]
    first, second = executor.run([np.arange(6, dtype=np.float32), np.int64([2, 1, 3])]).values()
    assert (first.tolist(), second.tolist()) == ([0, 1], [2])
    with pytest.raises(irrun.ExecutionError, match="VariadicSplit-1 gives 1 outputs, but declares 2"):
        executor.run([np.arange(6, dtype=np.float32), np.int64([6])])


@pytest.mark.parametrize(
    ("second", "help"),
    [
        ({"axis": "1", "mode": "c"}, "delete one of the two: they contradict each other in `axis`"),
        ({"axis": "1", "mode": "d"}, "delete one of the two: they contradict each other in `axis` and `mode`"),
        ({"axis": "1", "other": "d"}, "make one of the two: they contradict each other in `axis`"),
        ({"mode": "c"}, "delete it: all that it says stands in the first <data>"),
        ({}, "delete it: all that it says stands in the first <data>"),
        ({"mode": "c", "other": "d"}, "move its attributes to the first <data>"),
    ],
)
def test_a_second_data_is_told_with_what_can_be_done_about_it(second, help, tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2, 3))
    model.result(model.layer("Softmax", [x], [("f32", (2, 3))], axis="0", mode="c")[0])
    written = " ".join(f'{name}="{text}"' for name, text in second.items())
    model.layers[1] = model.layers[1].replace("<input>", f"<data {written}/><input>", 1)
    (found,) = [found for found in irrun.validate(model.save(tmp_path)).diagnostics if found.code == "W901"]
    assert found.help == help


def test_outputs_whose_number_an_attribute_tells_are_counted_whatever_their_sizes(tmp_path):
    model = Model()
    image = model.parameter("image", "u8", ("?", "?", "?", 3))
    planes = model.layer("RGBtoNV12", [image], [("u8", (-1, -1, -1, 1))] * 2, "opset17", single_plane="true")
    for plane in planes:
        model.result(plane)
    (found,) = irrun.validate(model.save(tmp_path)).errors
    assert (found.code, found.message) == ("E302", "RGBtoNV12-17 declares 2 outputs, expected 1")


def test_what_is_wrong_with_a_layer_of_unknown_rank_stands_at_the_attribute(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", "...")
    window = {"kernel": "2,2", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0", "rounding_type": "floor"}
    model.result(model.layer("MaxPool", [x], [("f32", (1,))], **window)[0])
    (found,) = irrun.validate(path := model.save(tmp_path)).errors
    assert found.message.startswith("MaxPool-1 C2: `pads_end` has 1 values for 2 spatial axes, if `data` has rank 4;")
    assert path.read_text().splitlines()[found.line - 1][found.column - 1 :].startswith('pads_end="0"')


def test_a_value_that_no_integer_type_holds_is_left_to_the_run(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", ("?",))
    shape = model.layer("ShapeOf", [x], [("i64", (1,))], "opset3", output_type="i64")[0]
    huge = model.constant(np.int64([2**62]))
    product = model.layer("Multiply", [huge, huge], [("i64", (1,))], auto_broadcast="numpy")[0]
    model.result(model.layer("Multiply", [product, shape], [("i64", (1,))], auto_broadcast="numpy")[0])
    assert irrun.validate(model.save(tmp_path)).ok


@pytest.mark.parametrize(
    ("ratio", "advice"),
    [("-1", "for as many samples as a bin has pixels, as -1 means in torchvision, write 0; "), ("-2", "")],
)
def test_a_value_that_means_something_elsewhere(tmp_path, ratio, advice):
    net = Model()
    inputs = [net.parameter("x", "f32", (1, 1, 4, 4)), net.parameter("rois", "f32", (2, 4))]
    inputs.append(net.parameter("batches", "i64", (2,)))
    attrs = {"pooled_h": "2", "pooled_w": "2", "sampling_ratio": ratio, "spatial_scale": "1", "mode": "avg"}
    (pooled,) = net.layer("ROIAlign", inputs, [("f32", (2, 1, 2, 2))], "opset3", **attrs)
    net.result(pooled)
    (found,) = irrun.validate(net.save(tmp_path)).diagnostics
    assert (found.code, found.message) == ("E307", f"attribute `sampling_ratio` is {ratio}, expected 0 or more")
    assert found.help == f"{advice}see detection/roi-align-3.rst"


def read_value(net, init, **data):
    given = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2,4"} | data
    (value,) = net.layer("ReadValue", [init], [("f32", (2, 4))], "opset6", **given)
    (sum_,) = net.layer("Add", [value, value], [("f32", (2, 4))])
    net.layer("Assign", [sum_], [("f32", (2, 4))], "opset6", variable_id="v")
    net.result(sum_)


@pytest.mark.parametrize(
    ("data", "label"),
    [
        ({"variable_shape": "2,5"}, "C2"),
        ({"variable_shape": "2"}, "C2"),
        ({"variable_shape": "2,4,?"}, "C2"),
        ({"variable_type": "f16"}, "C3"),
    ],
)
def test_an_attribute_is_the_place_where_all_ports_agree_without_it(data, label, tmp_path):
    net = Model()
    read_value(net, net.parameter("x", "f32", (2, 4)), **data)
    path = net.save(tmp_path)
    (found,) = irrun.validate(path).diagnostics
    line = path.read_text().split("\n")[found.line - 1]
    assert (found.code, found.label) == ("E401", label)
    assert line[found.column - 1 :].startswith(next(iter(data)))


@pytest.mark.parametrize(("type", "shape"), [("f32", (2, 5)), ("f16", (2, 4))])
def test_an_input_is_the_place_where_it_is_not_what_the_rest_declares(type, shape, tmp_path):
    net = Model()
    read_value(net, net.parameter("x", type, shape))
    path = net.save(tmp_path)
    found = irrun.validate(path).errors[0]
    assert path.read_text().split("\n")[found.line - 1].startswith("<port")


def test_an_axis_of_a_size_that_is_lost_is_not_supposed_to_go(tmp_path):
    net = Model()
    x, zero = net.parameter("x", "i64", ("?", 2, 4)), net.constant(np.int64(0))
    (turned,) = net.layer("Transpose", [x, net.constant(np.array([2, 1, 0]))], [("i64", (4, 2, -1))])
    (picked,) = net.layer("Gather", [turned, zero, zero], [("i64", (2, -1))], "opset8", batch_dims="0")
    (kept,) = net.layer("Squeeze", [picked, zero], [("i64", (2, -1))])
    for part in net.layer("Split", [kept, zero], [("i64", (1, -1))] * 2, num_splits="2"):
        net.result(part)
    path = net.save(tmp_path)
    assert said(path) == []
    path.write_text(path.read_text().replace(net.edges[1], ""))
    assert said(path) == [("E208", "Transpose")]
