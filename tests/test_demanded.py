"""Attributes that have a default, but without which OpenVINO takes no model: the warning, and what mends it."""

import numpy as np
import openvino as ov
import pytest
from ir_builder import Model

import irrun
from irrun.check.fixes import with_fixes
from irrun.check.fixes.application import mended

WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


def convolution(folder, **attributes):
    model = Model()
    shapes = (1, 1, 4, 4), (1, 2, 4, 4), (1, 1, 1, 1)
    inputs = [model.parameter(name, "f32", shape) for name, shape in zip("xyz", shapes, strict=True)]
    model.result(
        model.layer("DeformableConvolution", inputs, [("f32", shapes[0])], "opset8", **WINDOW, **attributes)[0]
    )
    return model.save(folder)


def pooling(folder, **attributes):
    model = Model()
    maps, regions = model.parameter("maps", "f32", (1, 2, 4, 4)), model.parameter("regions", "f32", (1, 5))
    given = {"output_dim": "2", "spatial_scale": "1", "group_size": "1"} | attributes
    model.result(model.layer("PSROIPooling", [maps, regions], [("f32", (1, 2, 1, 1))], **given)[0])
    return model.save(folder)


def said(path):
    return [(found.code, found.message) for found in irrun.validate(path).diagnostics]


def test_all_of_them_are_one_warning_at_the_data(tmp_path):
    path = convolution(tmp_path)
    (found,) = irrun.validate(path).diagnostics
    assert found.code == "W955"
    assert found.message == "OpenVINO does not take DeformableConvolution-8 without `group` and `deformable_group`"
    assert found.help.startswith(
        'write group="1" deformable_group="1", as the specification has it and irrun computes;'
    )
    assert path.read_text().splitlines()[found.line - 1].startswith("<data ")


def test_what_is_there_is_not_demanded(tmp_path):
    message = "OpenVINO does not take DeformableConvolution-8 without `deformable_group`"
    assert said(convolution(tmp_path, group="1")) == [("W955", message)]
    assert said(convolution(tmp_path, group="1", deformable_group="1")) == []


def test_a_misspelt_one_is_one_warning(tmp_path):
    path = convolution(tmp_path, goup="1", deformable_group="1")
    (found,) = irrun.validate(path).diagnostics
    message = "DeformableConvolution-8 has no attribute `goup`, and OpenVINO does not take it without `group`"
    assert (found.code, found.message, found.help) == ("W955", message, "did you mean `group`?")
    assert path.read_text().splitlines()[found.line - 1][found.column - 1 :].startswith('goup="1"')
    (found,) = with_fixes(irrun.validate(path)).diagnostics
    assert [(fix.title, fix.safe) for fix in found.fixes] == [("rename `goup` to `group`", False)]


def test_a_misspelt_one_is_told_with_the_rule_that_its_default_breaks(tmp_path):
    model = Model()
    shapes = (1, 2, 4, 4), (1, 2, 4, 4), (2, 1, 1, 1)
    inputs = [model.parameter(name, "f32", shape) for name, shape in zip("xyz", shapes, strict=True)]
    attributes = {**WINDOW, "goup": "2", "deformable_group": "1"}
    model.result(model.layer("DeformableConvolution", inputs, [("f32", shapes[0])], "opset8", **attributes)[0])
    (found,) = irrun.validate(model.save(tmp_path)).diagnostics
    assert found.code == "E401"
    assert found.help.startswith(
        "DeformableConvolution-8 has no attribute `goup`, and OpenVINO does not take it without"
    )


def test_one_that_stands_elsewhere_is_told_there(tmp_path):
    path = convolution(tmp_path, deformable_group="1")
    path.write_text(path.read_text().replace('type="DeformableConvolution"', 'type="DeformableConvolution" group="1"'))
    assert [code for code, _ in said(path)] == ["W902"]


@pytest.mark.parametrize(
    ("attributes", "missing"),
    [
        ({"mode": "average"}, ""),
        ({"mode": "bilinear"}, "`spatial_bins_x` and `spatial_bins_y`"),
        ({"mode": "bilinear", "spatial_bins_y": "1"}, "`spatial_bins_x`"),
        ({}, "`mode`"),
    ],
)
def test_what_nothing_reads_is_not_demanded(attributes, missing, tmp_path):
    messages = [f"OpenVINO does not take PSROIPooling-1 without {missing}"] if missing else []
    assert [message for _, message in said(pooling(tmp_path, **attributes))] == messages


def test_the_default_goes_into_the_file(tmp_path):
    path = convolution(tmp_path)
    (found,) = with_fixes(irrun.validate(path)).diagnostics
    assert [(fix.title, fix.safe) for fix in found.fixes] == [('write group="1" deformable_group="1"', True)]
    path.write_bytes(mended(path, path.read_bytes()).content)
    assert said(path) == []
    assert ' group="1" deformable_group="1"' in path.read_text()


def test_a_list_is_written_as_files_have_it(tmp_path):
    model = Model()
    x, state, lengths = (
        model.parameter("x", "f32", (1, 3, 2)),
        model.parameter("state", "f32", (1, 1, 1)),
        model.constant(np.array([3])),
    )
    weights = [model.constant(np.zeros(shape, np.float32)) for shape in ((1, 1, 2), (1, 1, 1), (1, 1))]
    sizes = [("f32", (1, 1, 3, 1)), ("f32", (1, 1, 1))]
    attributes = {"hidden_size": "1", "direction": "forward"}
    model.result(model.layer("RNNSequence", [x, state, lengths, *weights], sizes, "opset5", **attributes)[0])
    (found,) = irrun.validate(model.save(tmp_path)).diagnostics
    assert found.message == "OpenVINO does not take RNNSequence-5 without `activations`"
    assert found.help.startswith('write activations="tanh",')


def test_a_layer_without_data_is_one_warning(tmp_path):
    path = convolution(tmp_path, group="1")
    text = path.read_text()
    data = next(line for line in text.splitlines() if line.startswith('<data strides="1,1"'))
    path.write_text(text.replace(data, ""))
    (found,) = irrun.validate(path).diagnostics
    assert found.code == "W950"
    assert found.notes[-1].message.startswith(
        "OpenVINO does not take DeformableConvolution-8 without `group` and `deformable_group`"
    )


def test_one_for_which_openvino_takes_something_else_is_told_with_that(tmp_path):
    model = Model()
    model.result(model.layer("SoftMax", [model.parameter("x", "f32", (2, 3))], [("f32", (2, 3))])[0])
    path = model.save(tmp_path)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.message) == ("W955", "without `axis` OpenVINO takes `0` for SoftMax-1")
    assert found.help.startswith('write axis="1", as the specification has it and irrun computes;')
    x = np.float32([[1, 2, 3], [5, 5, 5]])
    core, text = ov.Core(), path.read_text()
    columns = core.compile_model(core.read_model(text.encode(), b""), "CPU")([x])[0]
    assert np.allclose(columns.sum(0), 1)
    assert np.allclose(irrun.GraphExecutor(path).run(x)[0].sum(1), 1)
