"""What follows from one thing that is not as a port declares is told there, and each cause is told once."""

import numpy as np
import pytest
from command_line import irrun as command
from ir_builder import Model

import irrun

I64, F32 = np.int64, np.float32


def said(path):
    found = [each for each in irrun.validate(path).diagnostics if each.severity != "info"]
    return [(each.code, each.layer.type if each.layer else None) for each in found], found


def edited(net, folder, old, new, count=1):
    path = net.save(folder)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))
    return path


def squeezed(axes):
    """A Squeeze whose axes are a constant."""
    net = Model()
    x = net.parameter("x", "f32", (1, 3))
    (y,) = net.layer("Squeeze", [x, net.constant(axes)], [("f32", (3,))])
    net.result(y)
    return net


def test_a_lenient_type_is_told_at_the_port_that_declares_another(tmp_path):
    path = edited(squeezed(I64(0)), tmp_path, 'element_type="i64"', 'element_type="f64"')
    codes, (found,) = said(path)
    assert codes == [("W932", "Const")]
    assert [note.message for note in found.notes] == [
        "layer 2 `Squeeze_2` (Squeeze): `axes` is f64, expected one of i8, i16, i32, i64, u8, u16, u32, u64"
    ]


def test_a_lenient_type_that_ports_declare_stays(tmp_path):
    path = squeezed(np.float64(0)).save(tmp_path)
    assert said(path)[0] == [("W952", "Squeeze")]


def test_numbers_that_fit_for_a_port_that_is_as_declared_follow_from_it(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (2, 3))
    pads = [net.constant(I64([-1, 0])), net.constant(I64([0, 0]))]
    (y,) = net.layer("Pad", [x, *pads], [("f32", (1, 3))], version="opset12", pad_mode="constant")
    net.result(y)
    codes, (found,) = said(edited(net, tmp_path, 'shape="2,3"', 'shape="0,3"'))
    assert codes == [("W931", "Parameter")]
    assert "of which pads of -1 and 0 crop more" in found.notes[0].message


def test_mixed_types_follow_from_the_port_that_declares_another(tmp_path):
    net = Model()
    x, mask = net.parameter("x", "f32", (6, 1, 3)), net.parameter("mask", "f32", (6, 1))
    (y,) = net.layer("CTCGreedyDecoder", [x, mask], [("f32", (1, 6, 1, 1))], ctc_merge_repeated="true")
    net.result(y)
    codes, (found,) = said(edited(net, tmp_path, 'shape="6,1" element_type="f32"', 'shape="6,1" element_type="f16"'))
    assert codes == [("W932", "Parameter")]
    assert "`sequence_mask` is f16, but `data` is f32" in found.notes[0].message


def pooled(**changes):
    net = Model()
    x = net.parameter("x", "f32", (1, 1, 6))
    window = {"strides": "2", "kernel": "2", "pads_begin": "0", "pads_end": "0", "dilations": "1"}
    outputs = [("f32", (1, 1, 3)), ("i64", (1, 1, 3))]
    for output in net.layer("MaxPool", [x], outputs, version="opset8", **(window | changes)):
        net.result(output)
    return net


def test_outputs_of_one_layer_are_told_once(tmp_path):
    codes, (found,) = said(pooled(kernel="3").save(tmp_path))
    assert codes == [("W931", "MaxPool")]
    assert [note.message for note in found.notes] == ["output 1 is declared as [1, 1, 3], but is [1, 1, 2]"]


def test_a_fix_declares_all_outputs(tmp_path):
    path = pooled(kernel="3").save(tmp_path)
    command("validate", path, "--fix", "--unsafe")
    assert said(path)[0] == []


def test_type_and_sizes_of_a_port_are_one_diagnostic(tmp_path):
    net = Model()
    x, like = net.parameter("x", "f32", (2, 2)), net.parameter("like", "i8", (9,))
    (y,) = net.layer("ConvertLike", [x, like], [("f32", (9,))])
    net.result(y)
    codes, (found,) = said(net.save(tmp_path))
    assert codes == [("W932", "ConvertLike")]
    assert found.message == "output 0 is declared as f32, but is i8; it is declared as [9], but is [2, 2]"


def test_bytes_of_another_type_are_no_numbers(tmp_path):
    net = Model()
    net.result(net.layer("Abs", [net.constant(I64([-1, 0]))], [("i64", (2,))])[0])
    path = edited(net, tmp_path, 'element_type="i64"', 'element_type="f64"')
    assert said(path)[0] == [("W932", "Const")]


def test_one_constant_that_several_layers_cannot_do_with_is_one_error(tmp_path):
    net = Model()
    x, axis = net.parameter("x", "f32", (1, 3)), net.constant(I64(7))
    for _ in range(2):
        (y,) = net.layer("Squeeze", [x, axis], [("f32", (3,))])
        net.result(y)
    codes, (found,) = said(net.save(tmp_path))
    assert codes == [("E401", "Squeeze")]
    assert found.notes[-1].message.startswith("nor can layer 4 `Squeeze_4` (Squeeze): Squeeze-1 C1: `axes[0]` is 7,")


def test_a_constant_that_an_error_is_about_is_not_told_to_hold_nan(tmp_path):
    net = Model()
    x, buckets = net.parameter("x", "f32", (2,)), net.constant(F32([1, np.nan]))
    (y,) = net.layer("Bucketize", [x, buckets], [("i64", (2,))], version="opset3", output_type="i64")
    net.result(y)
    assert said(net.save(tmp_path))[0] == [("E401", "Bucketize")]


def test_shapes_that_do_not_fit_are_told_each_and_beside_nan(tmp_path):
    net = Model()
    scale = net.constant(F32([1, np.nan]))
    for name, size in (("x", 3), ("y", 5)):
        read = [scale, net.parameter(name, "f32", (2, size))]
        (z,) = net.layer("Add", read, [("f32", (2, size))], auto_broadcast="numpy")
        net.result(z)
    assert [code for code, _ in said(net.save(tmp_path))[0]] == ["W913", "E401", "E401"]


@pytest.mark.parametrize("port", [("f32", (3,)), ("f32", ())])
def test_two_causes_are_two_diagnostics(port, tmp_path):
    """Of which one is a port that is not as declared, and the other a rule that is broken whatever it is."""
    net = Model()
    x = net.parameter("x", "f32", (1, 3))
    (y,) = net.layer("ReLU", [x], [("f32", (2, 3))])
    (z,) = net.layer("Squeeze", [y, net.constant(np.float64(0))], [port])
    net.result(z)
    codes = said(net.save(tmp_path))[0]
    assert ("W931", "ReLU") in codes
    assert ("W952", "Squeeze") in codes


def test_all_that_read_an_output_they_declare_otherwise_are_told_once(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (2, 3))
    for _ in range(2):
        net.result(net.layer("ReLU", [(*x[:3], (2, 4))], [("f32", (2, 3))])[0])
    codes, (found,) = said(net.save(tmp_path))
    assert codes == [("W931", "ReLU")]
    assert found.notes[-1].message == "layer 3 `ReLU_3` (ReLU): input 0 is declared as [2, 4], but is [2, 3]"


def test_readers_that_declare_an_output_differently_are_told_each(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (2, 3))
    for port in (("f32", (2, 4)), ("i64", (2, 3))):
        (y,) = net.layer("ReLU", [(*x[:2], *port)], [("f32", (2, 3))])
        net.result(y)
    assert said(net.save(tmp_path))[0] == [("W931", "ReLU"), ("W932", "ReLU")]


def test_outputs_that_readers_declare_as_they_are_are_told_each(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (1, 4))
    outputs = net.layer("Split", [x, net.constant(I64(1))], [("f32", (1, 3)), ("i64", (1, 2))], num_splits="2")
    for output in outputs:
        net.result((*output[:2], "f32", (1, 2)))
    assert said(net.save(tmp_path))[0] == [("W931", "Split"), ("W932", "Split")]


def test_names_that_two_tensors_share_are_one_warning(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (2,))
    for _ in range(2):
        net.result(net.layer("ReLU", [x], [("f32", (2,))], names=["a,b"])[0])
    (found,) = said(net.save(tmp_path))[1]
    assert (found.code, found.message) == ("W906", "two tensors are named `a` and `b`")


def test_a_layer_of_another_type_is_one_warning(tmp_path):
    """Whose attributes are those of what it was."""
    net = Model()
    x, w = net.parameter("x", "f32", (1, 1, 3)), net.constant(F32([[[1]]]))
    net.result(net.layer("Convolution", [x, w], [("f32", (1, 1, 3))], auto_broadcast="numpy")[0])
    (found,) = said(net.save(tmp_path))[1]
    assert found.code == "W950"
    assert found.notes[-1].message.startswith("Convolution-1 has no attribute `auto_broadcast`")


def test_bytes_of_a_constant_that_has_those_of_another_one_are_not_missed(tmp_path):
    net = Model()
    small, large = net.constant(F32(np.ones(4))), net.constant(F32(np.ones(32)))
    for each in (small, large):
        net.result(net.layer("ReLU", [each], [("f32", each[3])])[0])
    path = edited(net, tmp_path, 'shape="32" offset="16" size="128"', 'shape="4" offset="0" size="16"')
    assert said(path)[0] == [("W931", "Const")]
