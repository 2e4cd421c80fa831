"""Traces: from a diagnostic back through shape arithmetic to the inputs and constants."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun as command
from ir_builder import Model

import irrun
from irrun.check.trace import MAX_TRACED, traced

ROOT = Path(__file__).parent.parent
INVALID = ROOT / "tests" / "invalid"


def notes(path, code=None, **shapes):
    """The notes of the only diagnostic, or the only one with this code, when traced."""
    report = irrun.validate(path, shapes=shapes)
    (found,) = [d for d in traced(report).diagnostics if code in (None, d.code)]
    return [note.message for note in found.notes]


@pytest.fixture
def flattened(tmp_path):
    """x [?, 6, 4] to [batch, 24] by shape arithmetic, two ReLUs, and a product with [20, 2]."""
    model = Model()
    x, w = model.parameter("x", "f32", ("?", 6, 4)), model.constant(np.zeros((20, 2), np.float32), "weights")
    shape = model.layer("ShapeOf", [x], [("i64", (3,))], "opset3", name="shape", output_type="i64")[0]
    zero, first = model.constant(np.int64(0)), model.constant(np.int64([0]))
    batch = model.layer("Gather", [shape, first, zero], [("i64", (1,))], "opset8", name="batch", batch_dims="0")[0]
    rest = model.constant(np.int64([24]), "features")
    target = model.layer("Concat", [batch, rest], [("i64", (2,))], name="target", axis="0")[0]
    y = model.layer("Reshape", [x, target], [("f32", (-1, 24))], name="flat", special_zero="false")[0]
    for _ in range(2):
        y = model.layer("ReLU", [y], [("f32", (-1, 24))])[0]
    options = {"transpose_a": "false", "transpose_b": "false"}
    model.result(model.layer("MatMul", [y, w], [("f32", (-1, 2))], name="score", **options)[0])
    return model.save(tmp_path)


def test_a_size_is_followed_through_shape_arithmetic_to_the_constant_that_gives_it(flattened):
    assert notes(flattened) == [
        "`A` is f32[x.0, 24], whose axis 1 is 24",
        "layer 8 `flat` (Reshape), 2 layers further back, gives f32[x.0, 24], whose axis 1 is 24, "
        "from `shape` i64[2] = [x.0, 24] of layer 7",
        "layer 7 `target` (Concat) gives i64[2] = [x.0, 24], whose element 1 is 24, "
        "from `inputs[1]` i64[1] = [24] of layer 6",
        "layer 6 `features` (Const) holds i64[1] = [24]",
        "`B` is f32[20, 2], whose axis 0 is 20",
        "layer 1 `weights` (Const) holds f32[20, 2], whose axis 0 is 20",
    ]


def test_notes_stand_at_the_lines_of_their_layers(flattened):
    report = irrun.validate(flattened)
    (found,) = traced(report).diagnostics
    lines = flattened.read_text().split("\n")
    places = [note.span.line for note in found.notes]
    starts = ("<port", '<layer id="8"', '<layer id="7"', '<layer id="6"', "<port", '<layer id="1"')
    for line, start in zip(places, starts, strict=True):
        assert lines[line - 1].startswith(start)


def test_without_trace_both_ports_have_their_note():
    (found,) = irrun.validate(INVALID / "lengths_that_disagree.xml").diagnostics
    assert [note.message for note in found.notes] == [
        "`segment_ids` is i32[3], from layer 2 `segment_ids` (Parameter)",
        "`indices` is i32[4], from layer 1 `indices` (Parameter)",
    ]


def test_a_given_shape_is_not_declared(flattened):
    found = notes(flattened, x=(2, 5, 4))
    assert "layer 0 `x` (Parameter) is f32[2, 5, 4], whose axis 1 is 5" in found


def test_types_are_followed_to_what_makes_them(tmp_path):
    model = Model()
    x, y = model.parameter("x", "f32", (2,)), model.parameter("y", "f32", (2,))
    half = model.layer("Convert", [x], [("f16", (2,))], name="half", destination_type="f16")[0]
    half = model.layer("ReLU", [half], [("f16", (2,))])[0]
    model.result(model.layer("Add", [half, y], [("f32", (2,))], auto_broadcast="numpy")[0])
    assert notes(model.save(tmp_path)) == [
        "`b` is f32",
        "layer 1 `y` (Parameter) declares f32",
        "`a` is f16",
        "layer 2 `half` (Convert), 1 layer further back, gives f16",
    ]


def test_ranks_are_followed(tmp_path):
    model = Model()
    x, w = model.parameter("x", "f32", (1, 3, 8)), model.constant(np.zeros((4, 3, 3, 3), np.float32))
    x = model.layer("ReLU", [x], [("f32", (1, 3, 8))])[0]
    options = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    model.result(model.layer("Convolution", [x, w], [("f32", (1, 4, 6, 6))], **options)[0])
    assert "layer 0 `x` (Parameter), 1 layer further back, declares f32[1, 3, 8]" in notes(model.save(tmp_path))


def test_values_are_followed_by_element(tmp_path):
    model = Model()
    x, table = model.parameter("x", "f32", (3, 9)), model.constant(np.int64([5, 2, 7]), "table")
    axes = model.layer("Gather", [table, model.constant(np.int64([2])), model.constant(np.int64(0))], [("i64", (1,))])
    model.result(model.layer("ReduceSum", [x, axes[0]], [("f32", (3,))], keep_dims="false")[0])
    found = notes(model.save(tmp_path))
    assert "layer 1 `table` (Const) holds i64[3] = [5, 2, 7], whose element 2 is 7" in found


def test_a_declared_shape_that_is_wrong_is_explained():
    assert notes(INVALID / "five_defects.xml", "W931") == [
        "it is f32[4, 5], whose axis 1 is 5",
        "layer 3 `y` (Parameter), 1 layer further back, declares f32[4, 5], whose axis 1 is 5",
    ]


def test_a_layer_in_a_body_is_followed_to_the_inputs_of_the_loop(tmp_path):
    text = (ROOT / "samples" / "stateful-loop" / "model.xml").read_text()
    weights = (ROOT / "samples" / "stateful-loop" / "model.bin").read_bytes()
    path = tmp_path / "model.xml"
    path.with_suffix(".bin").write_bytes(weights)
    path.write_text(text)
    loop = next(layer for layer in irrun.read_model(path).graph.layers if layer.type == "Loop")
    product = next(layer for layer in loop.bodies["body"].graph.layers if layer.type == "MatMul")
    assert product.inputs[0].layer.type == "Parameter"
    report = irrun.validate(path, shapes={"x": (1, 5)})
    errors = [d for d in traced(report).diagnostics if d.severity == "error"]
    assert errors
    messages = [note.message for d in errors for note in d.notes]
    assert any("of the body is fed by layer" in message for message in messages)
    assert any("layer 0 `x` (Parameter) is f32[1, 5]" in message for message in messages)


def test_several_wrong_inputs_are_all_followed(tmp_path):
    model = Model()
    inputs = [model.parameter(name, "f32", (size, 2)) for name, size in (("a", 3), ("b", 4), ("c", 3), ("d", 4))]
    model.result(model.layer("Concat", inputs, [("f32", (3, 8))], axis="1")[0])
    found = notes(model.save(tmp_path))
    assert "layer 0 `a` (Parameter) declares f32[3, 2], whose axis 0 is 3" in found
    assert "layer 1 `b` (Parameter) declares f32[4, 2], whose axis 0 is 4" in found


def test_what_has_no_input_is_not_traced():
    report = irrun.validate(INVALID / "five_defects.xml")
    before = {d.code: d.notes for d in report.diagnostics}
    after = {d.code: d.notes for d in traced(report).diagnostics}
    assert [code for code in before if before[code] != after[code]] == ["E401", "W931"]


def test_tracing_leaves_inference_as_it_is(flattened):
    report = irrun.validate(flattened)
    known = {layer: list(node.outputs) for layer, node in report.inference.nodes.items()}
    traced(report)
    assert {layer: node.outputs for layer, node in report.inference.nodes.items()} == known
    assert irrun.validate(flattened).diagnostics == report.diagnostics


def test_only_so_many_diagnostics_are_traced(flattened):
    report = irrun.validate(flattened)
    many = replace(report, diagnostics=report.diagnostics * (MAX_TRACED + 1))
    found = traced(many).diagnostics
    assert len(found) == MAX_TRACED + 1
    assert found[-1] == report.diagnostics[0]


def test_deep_chains_end_at_their_origin_and_long_traces_at_their_limit(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2, 7))
    for _ in range(300):
        x = model.layer("ReLU", [x], [("f32", (2, 7))])[0]
    model.result(model.layer("MatMul", [x, x], [("f32", (2, 7))], transpose_a="false", transpose_b="false")[0])
    found = notes(model.save(tmp_path))
    assert "layer 0 `x` (Parameter), 300 layers further back, declares f32[2, 7], whose axis 1 is 7" in found


def test_the_option(flattened):
    done = command("validate", "--trace", flattened, status=1)
    assert "note: layer 6 `features` (Const) holds i64[1] = [24] at line 48" in done.stdout
    assert "features" not in command("validate", flattened, status=1).stdout


@pytest.mark.parametrize("broken", ["always", "where it knows less"])
def test_a_rule_of_a_custom_op_that_fails_does_not_stop_the_trace(broken, tmp_path):
    (tmp_path / "own.py").write_text(
        "from irrun.spec import FLOAT, Input, Output, op\n"
        "@op('TestOwn-1', types={'T': FLOAT}, inputs=[Input('x', 'T', '...')], outputs=[Output('y', 'T', '...')],\n"
        "    opsets=frozenset(), extension_versions=('extension',))\n"
        "def own(x):\n"
        "    return x\n"
        "@own.shapes\n"
        "def _(node):\n"
        + ("    raise KeyError('oh')\n" if broken == "always" else "")
        + "    first = int(node.inputs['x'].shape[0])  # of a shape that is known\n"
        "    node.fail('C1', f'`x` has {first} rows', 'x')\n"
    )
    model = Model()
    x = model.layer("ReLU", [model.parameter("x", "f32", (2, 3))], [("f32", (2, 3))])[0]
    model.result(model.layer("TestOwn", [x], [("f32", (2, 3))], "extension", name="own")[0])
    done = command("validate", "--trace", "--ops", tmp_path / "own.py", model.save(tmp_path), status=1)
    if broken == "always":
        assert "error[E309]: the rule of TestOwn-1 failed: KeyError: 'oh'" in done.stdout
    else:
        assert "error[E401]: TestOwn-1 C1: `x` has 2 rows" in done.stdout
    assert "layer 2 `own` (TestOwn)" in done.stdout


def test_a_report_without_inference(tmp_path):
    report = irrun.validate(tmp_path / "nothing.xml")
    assert traced(report) is report
