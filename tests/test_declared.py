"""Shapes that ports declare and layers do not have: where it begins is a warning, what follows from it are infos."""

import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from command_line import irrun as command
from defects import bases
from ir_builder import Model
from openvino import opset13

import irrun
from irrun.check.fixes.application import mended
from irrun.check.origins import told_at_causes


def written(folder, shape="1,3,8,8", pool="2,2", ends=((1, 3, 8, 8), (1, 3, 4, 4), (1, 3, 16))):
    """Parameter, ReLU, MaxPool, Reshape and Result; `ends` is what the first three declare, or are declared as."""
    m = Model()
    image, smaller, flat = ends
    (x,) = m.layer("Parameter", [], [("f32", (1, 3, 8, 8))], names=["x"], name="x", shape=shape, element_type="f32")
    (y,) = m.layer("ReLU", [x], [("f32", image)])
    window = {"strides": pool, "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "rounding_type": "floor"}
    (z,) = m.layer("MaxPool", [y], [("f32", smaller)], **window)
    (w,) = m.layer("Reshape", [z, m.constant(np.array([0, 0, -1]))], [("f32", flat)], special_zero="true")
    m.result(w)
    return m.save(folder)


def said(path):
    return [(found.code, found.layer.type) for found in irrun.validate(path).diagnostics]


def test_what_is_right_is_nothing_to_say(tmp_path):
    assert said(written(tmp_path)) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"shape": "2,3,8,8"}, [("W931", "Parameter"), ("I903", "ReLU"), ("I903", "MaxPool"), ("I903", "Reshape")]),
        ({"shape": "?,3,10,10"}, [("W931", "Parameter"), ("I903", "ReLU"), ("I903", "MaxPool"), ("I903", "Reshape")]),
        ({"pool": "1,1"}, [("W931", "MaxPool"), ("I903", "Reshape")]),
        ({"ends": ((1, 3, 8, 8), (1, 3, 5, 4), (1, 3, 16))}, [("W931", "MaxPool")]),
        ({"ends": ((1, 3, 8, 8), (1, 3, 5, 4), (1, 3, 21))}, [("W931", "MaxPool"), ("W931", "Reshape")]),
        ({"ends": ((1, 3, 8, 8), (1, 3, 5, 4), (1, 3, 20))}, [("W931", "MaxPool"), ("I903", "Reshape")]),
        ({"ends": ((1, 3, 9, -1), (1, 3, 4, 7), (1, 3, 16))}, [("W931", "ReLU"), ("I903", "MaxPool")]),
    ],
)
def test_where_it_begins_is_a_warning(change, expected, tmp_path):
    assert said(written(tmp_path, **change)) == expected


def test_an_info_names_the_layer_where_it_begins(tmp_path):
    path = written(tmp_path, pool="1,1")
    _, found = irrun.validate(path).diagnostics
    assert found.message.endswith("but is [1, 3, 49], which follows from layer 2 `MaxPool_2` (MaxPool)")
    assert path.read_text().split("\n")[found.notes[0].span.line - 1].startswith('<layer id="2"')
    text = command("validate", path).stdout
    assert text.endswith("1 warning; 1 info with --verbose\n")
    assert "info[I903]" not in text
    assert "info[I903]" in command("validate", path, "--verbose").stdout


@pytest.mark.parametrize("type", ["f32", "f16"])
def test_a_fix_declares_what_follows_too(type, tmp_path):
    path = written(tmp_path, shape="2,3,8,8")
    path.write_text(path.read_text().replace('element_type="f32"', f'element_type="{type}"'))
    before = path.read_bytes()
    command("validate", path, "--fix")
    assert path.read_bytes() == before
    command("validate", path, "--fix", "--unsafe")
    assert said(path) == []


def test_a_type_leads_to_others(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text().replace('element_type="f32"', 'element_type="f16"'))
    assert said(path) == [("W932", "Parameter"), ("I903", "ReLU"), ("I903", "MaxPool"), ("I903", "Reshape")]
    path.write_text(
        path.read_text().replace('precision="FP32"', 'precision="BF16"', 5)
    )  # also what ReLU and MaxPool say
    assert [code for code, _ in said(path)][:2] == ["W932", "I903"]


def test_a_layer_that_fails_on_what_is_declared_is_where_another_one_begins(tmp_path):
    """Reshape cannot make [1, 3, 4, 6] of what it was declared to read, so that its own shape is no consequence."""
    m = Model()
    (x,) = m.layer("Parameter", [], [("f32", (7, 5))], names=["x"], name="x", shape="4,6", element_type="f32")
    (y,) = m.layer("Reshape", [x, m.constant(np.array([3, 8]))], [("f32", (3, 9))], special_zero="true")
    m.result(y)
    assert said(m.save(tmp_path)) == [("W931", "Parameter"), ("W931", "Reshape")]


def test_a_constant_of_another_type_than_its_port_is_reported_where_nothing_can_be_computed_with_it(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2,))
    m.result(m.layer("Add", [x, m.constant(np.float32([1, 2]))], [("f32", (2,))])[0])
    path = m.save(tmp_path)
    text = path.read_text()
    const = text.index('type="Const"')
    path.write_text(text[:const] + text[const:].replace('element_type="f32"', 'element_type="i32"', 1))
    assert said(path) == [("E511", "Const")]
    assert mended(path, path.read_bytes()).content == text.encode()


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ('<output><port id="1" precision="FP32"', '<output><port id="1" precision="i64"', ["W932"]),
        ('<output><port id="1" precision="FP32"', '<output><port id="1" precision="fp16"', ["E210"]),
        ('<input><port id="0" precision="FP32"', '<input><port id="0" precision="fp16"', ["W932"]),
        ('<input><port id="0" precision="FP32"', '<input><port id="0" precision="fp32"', ["W908"]),
    ],
)
def test_a_precision_is_wrong_or_misspelt(old, new, codes, tmp_path):
    path = written(tmp_path)
    text = "".join(line.strip() for line in path.read_text().splitlines())
    relu = text.index('type="ReLU"')
    assert old in text[relu:]
    path.write_text(text[:relu] + text[relu:].replace(old, new, 1))
    assert said(path) == [(code, "ReLU") for code in codes]


def connected() -> Model:
    """A VariadicSplit into parts of two sizes, an Abs and an Add behind the third of them, a Sqrt behind the second."""
    m = Model()
    x, one = (m.parameter(name, "f32", shape) for name, shape in (("x", (4, 8)), ("one", (1, 1))))
    lengths = m.constant(np.array([2, 2, 4]))
    parts = [("f32", (4, 2)), ("f32", (4, 2)), ("f32", (4, 4))]
    first, second, third = m.layer("VariadicSplit", [x, m.constant(np.int64(1)), lengths], parts)
    (absolute,) = m.layer("Abs", [third], [("f32", (4, 4))])
    (total,) = m.layer("Add", [absolute, one], [("f32", (4, 4))])
    (root,) = m.layer("Sqrt", [second], [("f32", (4, 2))])
    for value in (first, total, root):
        m.result(value)
    return m


REWIRED = [  # where two edges begin, each with where the other one leads; and how many of them change
    ((4, 5), (5, 0), (4, 4), (7, 0), 2),
    ((5, 1), (6, 0), (1, 0), (6, 1), 2),
    ((5, 1), (6, 0), (4, 3), (8, 0), 2),
    ((4, 5), (5, 0), (4, 3), (8, 0), 1),
    ((4, 5), (5, 0), (0, 0), (4, 0), 1),
]


@pytest.mark.parametrize(("start", "end", "other_start", "other_end", "count"), REWIRED)
def test_edges_that_begin_elsewhere_are_one_warning_and_no_port_is_declared_anew(
    start, end, other_start, other_end, count, tmp_path
):
    def edge(start, end):
        return b'<edge from-layer="%d" from-port="%d" to-layer="%d" to-port="%d"/>' % (*start, *end)

    path = connected().save(tmp_path)
    sound = path.read_bytes()
    assert not irrun.validate(path).diagnostics
    content = sound.replace(edge(start, end), edge(other_start, end))
    if count == 2:
        content = content.replace(edge(other_start, other_end), edge(start, other_end))
    path.write_bytes(content)
    (found,) = (found for found in irrun.validate(path).warnings if found.code != "W904")
    assert found.code == "W931"
    assert ("exchanged" if count == 2 else "output port 5 of layer 4 ") in found.help
    assert mended(path, content).content == content
    assert mended(path, content, unsafe=True).content == sound


def counted(m, x, columns):
    """The rows of `x`, as a number that a Concat makes a shape of, with as many columns."""
    (shape,) = m.layer("ShapeOf", [x], [("i64", (2,))], version="opset3", output_type="i64")
    inputs = [shape, m.constant(np.array([0])), m.constant(np.array(0))]
    (rows,) = m.layer("Gather", inputs, [("i64", (1,))], version="opset8", batch_dims="0")
    return m.layer("Concat", [rows, m.constant(np.array([columns]))], [("i64", (2,))], axis="0")[0]


@pytest.mark.parametrize(("rows", "code"), [(1, "W931"), (2, "E310")])
def test_what_is_made_of_the_sizes_of_an_input_that_is_not_as_declared_is_told_there(rows, code, tmp_path):
    """The rows of a Reshape are counted, and those of a Broadcast, which are added to what has other ones."""
    m = Model()
    x = m.parameter("x", "f32", (2, 6))
    (shaped,) = m.layer("Reshape", [x, counted(m, x, 6)], [("f32", (2, 6))], special_zero="false")
    (zeros,) = m.layer("Broadcast", [m.constant(np.float32(0)), counted(m, x, 4)], [("f32", (2, 4))], mode="numpy")
    m.result(shaped)
    m.result(m.layer("Add", [zeros, m.parameter("y", "f32", (rows, 4))], [("f32", (2, 4))])[0])
    path = m.save(tmp_path)
    text = path.read_text()
    path.write_text(text.replace('shape="2,6"', 'shape="3,6"', 1))
    report = irrun.validate(path)
    assert [(found.code, found.layer.name) for found in report.errors + report.warnings] == [(code, "x")]


def test_what_cannot_be_computed_far_behind_an_output_that_is_not_as_declared_is_told_there(tmp_path):
    """Of the layers between them the ports declare any sizes."""
    m = Model()
    x = m.parameter("x", "f32", (1, 4))
    (x,) = m.layer("Abs", [x], [("f32", (1, 2))], name="abs")
    for name in "abc":
        (x,) = m.layer("Multiply", [x, m.parameter(name, "f32", ("?", 1))], [("f32", (-1, -1))])
    m.result(m.layer("Add", [x, m.parameter("y", "f32", (1, 2))], [("f32", (-1, 2))])[0])
    found, *others = (each for each in irrun.validate(m.save(tmp_path)).diagnostics if each.severity != "info")
    assert (found.code, found.layer.name, others) == ("E310", "abs", [])
    assert "output 0 is declared as [1, 2], but is [1, 4], with which layer 9 `Add_9`" in found.message


def test_a_port_that_is_missing_before_another_one_is_told_where_its_edge_begins(tmp_path):
    """The port behind it stands for the first output then, with which the Add cannot be computed."""
    m = Model()
    x, four = m.parameter("x", "f32", (1, 6)), m.constant(np.ones((1, 4), np.float32))
    parts = [("f32", (1, 2)), ("f32", (1, 4))]
    first, second = m.layer("VariadicSplit", [x, m.constant(np.int64(1)), m.constant(np.array([2, 4]))], parts)
    m.result(m.layer("Abs", [first], [("f32", (1, 2))])[0])
    m.result(m.layer("Add", [second, four], [("f32", (1, 4))])[0])
    path = m.save(tmp_path)
    content = path.read_bytes()
    assert not irrun.validate(path).diagnostics
    path.write_bytes(content.replace(b'<port id="3" precision="FP32"><dim>1</dim><dim>2</dim></port>', b"", 1))
    assert said(path) == [("E206", "VariadicSplit")]


@pytest.mark.parametrize(
    ("shape", "factor", "message"),
    [
        ((2, 3), np.float32(2), "input 0 is declared as [2, 3], but is []"),
        (("?", 3), np.ones((1, 3), np.float32), "input 0 is declared as [?, 3], but as [1, 3] where the edge begins"),
    ],
)
def test_edges_of_a_tensor_and_one_of_few_elements_that_are_exchanged_are_one_warning(shape, factor, message, tmp_path):
    m = Model()
    x = m.parameter("x", "f32", shape)
    m.result(m.layer("Multiply", [x, m.constant(factor)], [("f32", x[3])])[0])
    path = m.save(tmp_path)
    sound = path.read_bytes()
    assert not irrun.validate(path).diagnostics
    ends = b'from-layer="%d" from-port="0" to-layer="2" to-port="%d"'
    content = sound.replace(ends % (0, 0), ends % (1, 0)).replace(ends % (1, 1), ends % (0, 1))
    path.write_bytes(content)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.message) == ("W931", message)
    assert found.help == "the edges to both seem to be exchanged, as to where they begin; OpenVINO goes by the edges"
    assert found.line == 1 + content[: content.index(b"<input>")].count(b"\n") + 1
    assert mended(path, content).content == content
    assert mended(path, content, unsafe=True).content == sound


def reshaped(folder, *sources):
    """What is wrong with a Reshape of layer 0 by the shape in layer 2, whose inputs begin at others. Layers 1 and 3 are
    read by others."""
    m = Model()
    x, other = m.parameter("x", "f32", (2, 6)), m.parameter("y", "f32", (5, 7))
    shape, numbers = m.constant(np.array([3, 4])), m.constant(np.ones(9, np.float32))
    m.result(m.layer("Reshape", [x, shape], [("f32", (3, 4))], special_zero="false")[0])
    for tensor in (other, numbers):
        m.result(m.layer("Abs", [tensor], [("f32", tensor[3])])[0])
    path = m.save(folder)
    edges = 'from-layer="{}" from-port="0" to-layer="4" to-port="0"/>\n<edge from-layer="{}" from-port="0" to-layer="4"'
    text = path.read_text()
    assert text.count(edges.format(0, 2)) == 1
    path.write_text(text.replace(edges.format(0, 2), edges.format(*sources)))
    (found,) = irrun.validate(path).errors
    return found


def test_what_cannot_be_computed_for_edges_that_begin_elsewhere_says_so(tmp_path):
    found = reshaped(tmp_path, 2, 0)
    assert found.message.startswith("`shape` is f32")
    assert found.help.startswith("the edges to both seem to be exchanged, as to where they begin; see ")
    assert found.notes[0].message == "input 1 declares what input 0 reads, and reads what that one declares"
    found = reshaped(tmp_path, 0, 3)
    assert found.message.startswith("`shape` is f32")
    note = "input 1 is not declared as what it reads, layer 3 `Const_3` (Const), "
    note += "but as output port 0 of layer 2 `Const_2` (Const): is the edge to begin there?"
    assert note in [note.message for note in found.notes]
    found = reshaped(tmp_path, 1, 2)
    assert found.message.endswith("`data` is [5, 7], 35 elements, expected 12 for `shape` [3, 4]")
    assert found.notes[-1].message.endswith(": is the edge to begin there?")


EXCHANGED = [  # of the body of a loop, where two edges lead; the one that is left and what it is about
    ((8, 0), (4, 1), "E303", "`B` is boolean, but `A` is f32", 124, "input 0 of layer 8 `Result_13270`"),
    (
        (8, 0),
        (7, 0),
        "E401",
        "Loop-5 C6: result 0 of the body is boolean, but",
        58,
        "input 0 of layer 8 `Result_13270`",
    ),
    ((4, 1), (7, 0), "E209", "the layers depend on each other in a cycle: 4", 187, "input 0 of layer 7 `Result_13269`"),
]


@pytest.mark.parametrize(("end", "other", "code", "message", "line", "where"), EXCHANGED)
def test_edges_of_a_body_that_are_exchanged_are_one_error(end, other, code, message, line, where):
    path = Path("samples/stateful-loop/model.xml")
    head, body, rest = re.split(r"(<body>.*</body>)", path.read_text(encoding="utf-8"), flags=re.S)
    edges = [rf'<edge from-layer="(\d+)" from-port="(\d+)" (to-layer="{a}" to-port="{b}" */>)' for a, b in (end, other)]
    starts = [re.search(pattern, body).group(1, 2) for pattern in edges]
    for pattern, start in zip(edges, starts[::-1], strict=True):
        body = re.sub(pattern, r'<edge from-layer="{}" from-port="{}" \3'.format(*start), body)
    report = irrun.validate(path, content=f"{head}{body}{rest}".encode())
    (found,) = report.diagnostics
    assert (found.code, found.line) == (code, line)
    assert found.message.startswith(message)
    assert found.help.startswith("the edges to both seem to be exchanged, as to where they begin; ")
    assert found.notes[0].message.startswith(where)


def test_outputs_of_one_layer_that_are_of_other_types(tmp_path):
    m = Model()
    data = {"axis": "0", "mode": "max", "sort": "value", "index_element_type": "i32"}
    values = m.layer(
        "TopK",
        [m.parameter("x", "f32", (5,)), m.constant(np.int64(2))],
        [("f32", (2,)), ("i32", (2,))],
        "opset3",
        **data,
    )
    for value in values:
        m.result(value)
    path = m.save(tmp_path)
    sound = path.read_bytes()
    content = re.sub(rb'from-port="([23])"', lambda found: b'from-port="%d"' % (5 - int(found[1])), sound)
    path.write_bytes(content)
    (found,) = irrun.validate(path).warnings
    assert found.code == "W932"
    assert mended(path, content).content == content
    assert mended(path, content, unsafe=True).content == sound


NARROW = [
    ("?,2", "?,2"),
    ("?,2", "..."),
    ("1..8,2", "0..8,?"),
    ("?,2", "1,2"),
    ("1..9,2", "1..8,2"),
    ("?,2", "0..8,2"),
    ("...", "?,2"),
    ("...", "..."),
]


@pytest.mark.parametrize(("given", "declared"), NARROW)
def test_a_variable_has_all_sizes_that_its_initial_value_may_have(given, declared, tmp_path):
    m = Model()
    x = m.parameter("x", "f32", given)
    state = {"variable_id": "v", "variable_type": "f32", "variable_shape": declared}
    (kept,) = m.layer("ReadValue", [x], [("f32", ())], "opset6", **state)
    m.layer("Assign", [kept], [("f32", ())], "opset6", variable_id="v")
    m.result(kept)
    path = m.save(tmp_path)
    errors = [found.code for found in irrun.validate(path).errors]
    try:
        ov.Core().read_model(path)
    except RuntimeError:
        assert errors == ["E304"]
    else:
        assert errors == []


def converted(folder, type="f32", axis="1", declared=(1, 6)):
    """Two inputs, joined, converted, and multiplied by a matrix of six rows."""
    m = Model()
    (x, y) = (m.parameter(name, "i32", (1, 3)) for name in "xy")
    (joined,) = m.layer("Concat", [x, y], [("i32", declared)], axis=axis)
    (z,) = m.layer("Convert", [joined], [("f32", declared)], destination_type=type)
    (z,) = m.layer("ReLU", [z], [("f32", declared)])
    weights = m.constant(np.zeros((6, 2), np.float32))
    (z,) = m.layer("MatMul", [z, weights], [("f32", (1, 2))], transpose_a="false", transpose_b="false")
    m.result(z)
    return m.save(folder)


@pytest.mark.parametrize(
    ("change", "layer", "says"),
    [
        ({"type": "i32"}, "Convert", "output 0 is declared as f32, but is i32"),
        ({"axis": "0"}, "Concat", "output 0 is declared as [1, 6], but is [2, 3]"),
    ],
)
def test_what_fails_for_an_output_that_is_not_as_declared_is_one_error_there(change, layer, says, tmp_path):
    path = converted(tmp_path, **change)
    (found,) = irrun.validate(path).errors
    assert (found.code, found.layer.type) == ("E310", layer)
    assert found.message == f"{says}, with which layer 6 `MatMul_6` (MatMul) cannot be computed"
    assert found.notes[0].message.startswith("layer 6 `MatMul_6` (MatMul): ")
    assert not irrun.validate(path).warnings
    with pytest.raises(irrun.IRError):
        irrun.GraphExecutor(path)


def test_what_fails_though_all_is_as_declared_is_told_where_it_fails(tmp_path):
    path = converted(tmp_path, axis="0", declared=(2, 3))
    assert said(path) == [("E401", "MatMul")]


def test_what_is_declared_otherwise_is_not_blamed_for_what_fails_without_it_too(tmp_path):
    path = converted(tmp_path, axis="0", declared=(2, 4))
    assert said(path)[-1] == ("E401", "MatMul")
    assert ("W931", "Concat") in said(path)


def test_an_element_type_that_is_not_as_declared_is_restored_if_that_is_asked_for(tmp_path):
    sound = converted(tmp_path).read_bytes()
    path = converted(tmp_path, type="i32")
    assert mended(path, path.read_bytes()).content == path.read_bytes()
    assert mended(path, path.read_bytes(), unsafe=True).content == sound


def test_an_error_that_may_be_ignored_is_told_where_it_is_ignored(tmp_path):
    path = converted(tmp_path, type="i32")
    found = irrun.validate(path, ignore=["E303"]).diagnostics
    assert ("E303", "MatMul", True) in [(each.code, each.layer.type, each.ignored) for each in found]


@pytest.mark.parametrize(
    ("old", "says"),
    [
        ('pads_begin="1, 1" ', 'write pads_begin="1,1", with which the output is as declared'),
        ('dilations="1, 1" ', None),
        ('strides="1, 1" ', None),
    ],
)
def test_a_value_that_was_taken_is_not_advised_where_the_port_disproves_it(old, says, tmp_path):
    path = sample(tmp_path, old, "")
    found = [each for each in irrun.validate(path).diagnostics if each.severity != "info"]
    assert [each.code for each in found] == ["W950"]
    assert (found[0].help == says) is (says is not None)
    assert ("does not give what the output port declares" in found[0].message) is (says is not None)


def test_attributes_that_are_missing_are_told_together(tmp_path):
    pads, rest = (
        'pads_begin="1, 1" pads_end="1, 1" ',
        'strides="1, 1" dilations="1, 1" pads_begin="1, 1" pads_end="1, 1" ',
    )
    (found,) = irrun.validate(sample(tmp_path, pads, "")).warnings
    assert found.code == "W950"
    assert "lacks its required attributes `pads_begin` and `pads_end`; OpenVINO takes `0,0` and `0,0`" in found.message
    (found,) = irrun.validate(sample(tmp_path, rest, "")).warnings
    assert found.code == "W950"
    pool = 'strides="2, 2" pads_begin="0, 0" pads_end="0, 0" kernel="2, 2"'
    (found,) = irrun.validate(sample(tmp_path, pool, "")).errors
    assert found.code == "E306"
    assert found.message.endswith("lacks its required attributes `strides`, `pads_begin`, `pads_end` and `kernel`")


def sized(folder, attributes, reader="Convert"):
    """The shape of an input in a type that the port declares, and what reads it."""
    m = Model()
    (shape,) = m.layer("ShapeOf", [m.parameter("x", "f32", (2, 3))], [("i32", (2,))], "opset3", **attributes)
    values = [shape, m.constant(np.zeros(2, np.int32))] if reader == "Add" else [shape]
    named = {"destination_type": "f32"} if reader == "Convert" else {}
    (result,) = m.layer(reader, values, [("i32" if reader == "Add" else "f32", (2,))], **named)
    m.result(result)
    return m.save(folder)


def test_a_default_that_the_port_disproves_is_told_once_and_not_written(tmp_path):
    sound = sized(tmp_path, {"output_type": "i32"}).read_bytes()
    path = sized(tmp_path, {"output_type": "i32"})
    path.write_bytes(sound.replace(b'output_type="i32"', b""))
    (found,) = irrun.validate(path).diagnostics
    assert found.code == "W955"
    assert found.help == 'write output_type="i32", with which the output is as declared'
    assert b'output_type="i32"' in mended(path, path.read_bytes()).content


def test_an_attribute_that_is_missing_is_told_with_the_layer_that_cannot_be_computed_for_it(tmp_path):
    path = sized(tmp_path, {"output_type": "i32"}, "Add")
    path.write_bytes(path.read_bytes().replace(b'output_type="i32"', b""))
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.layer.type) == ("E310", "ShapeOf")
    assert found.help == 'write output_type="i32", with which the output is as declared'
    assert ": OpenVINO does not take ShapeOf-3 without `output_type`" in found.message


def test_layers_that_cannot_be_computed_for_one_reason_are_told_once(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2, 3))
    for _ in range(2):
        (y,) = m.layer("Add", [x, m.constant(np.zeros((2, 3), np.float32))], [("f32", (2, 3))])
        m.result(y)
    path = m.save(tmp_path)
    path.write_text(path.read_text().replace('shape="2,3" element_type="f32"', 'shape="2,4" element_type="f32"', 1))
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.layer.type) == ("E310", "Parameter")
    assert [note.message for note in found.notes if note.message.startswith("nor can layer ")]


def test_openvino_writes_no_sizes_where_an_input_has_an_unknown_rank(tmp_path):
    x, scale = opset13.parameter([12], ov.Type.f32), opset13.parameter(ov.PartialShape.dynamic(), ov.Type.f32)
    path = tmp_path / "model.xml"
    ov.serialize(ov.Model([opset13.fake_convert(x, scale)], [x, scale]), path)
    assert path.read_text().count("<dim>") == 2
    assert not irrun.validate(path).diagnostics


@pytest.mark.parametrize("taken", [True, False])
def test_openvino_writes_no_sizes_in_a_branch_that_a_constant_condition_rules_out(taken, tmp_path):
    parameters = [opset13.parameter(ov.PartialShape.dynamic(), np.float32) for _ in range(2)]
    x, (first, second) = opset13.parameter([2, 3], np.float32), parameters
    branches = [opset13.concat([opset13.abs(opset13.sqrt(first)), first], 0), opset13.exp(opset13.negative(second))]
    bodies = [ov.Model([result], [each]) for result, each in zip(branches, parameters, strict=True)]
    both = opset13.if_op(opset13.constant(np.array([taken])))
    both.set_then_body(bodies[0])
    both.set_else_body(bodies[1])
    both.set_input(x.output(0), *parameters)
    y = both.set_output(*(body.results[0] for body in bodies))
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([y], [x]), path)
    assert path.read_text().count('shape="..."') == 1
    assert said(path) == []


def test_sizes_that_two_edges_leave_open_are_told_once(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2, 3))
    for _ in range(2):
        m.result(m.layer("Abs", [x], [("f32", (2, 3))])[0])
    path = m.save(tmp_path)
    path.write_text(path.read_text().replace("<dim>2</dim>", "<dim>-1</dim>", 1))
    (found,) = irrun.validate(path).diagnostics
    assert found.code == "W931"


SAMPLE = Path(__file__).parents[1] / "samples" / "cnn" / "model.xml"


def sample(folder, old, new):
    path = folder / "model.xml"
    text = SAMPLE.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    return path


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('type="Convolution"', 'type="ReLU"', "E302"),
        ('type="Convolution"', 'type="MatMul"', "E401"),
        ('type="MaxPool" version="opset1"', 'type="Elu" version="opset1"', "E306"),
    ],
)
def test_a_type_that_knows_none_of_the_attributes_is_one_diagnostic(old, new, code, tmp_path):
    path = sample(tmp_path, old, new)
    (found,) = irrun.validate(path).errors
    assert not irrun.validate(path).warnings
    assert found.code == code
    text = " ".join([found.help, *(note.message for note in found.notes)])
    assert "has none of the attributes `strides`" in text
    assert old.split('"')[1] in text


def test_a_type_that_knows_none_of_the_attributes_is_a_warning_where_it_can_be_computed(tmp_path):
    path = sample(tmp_path, 'type="MaxPool" version="opset1"', 'type="ReLU" version="opset1"')
    (found,) = [each for each in irrun.validate(path).diagnostics if each.severity != "info"]
    assert (found.code, found.layer.type) == ("W930", "ReLU")
    (note,) = found.notes
    assert note.message == "output 0 is declared as [?, 8, 8, 8], but is [image.0, 8, 16, 16]"


def test_two_attributes_that_another_type_has_are_one_warning():
    base = bases.dense()
    given = '<data auto_broadcast="numpy"/>'
    text = base.text.replace(given, '<data transpose_a="false" transpose_b="false"/>')
    (found,) = irrun.validate(text.encode(), base.weights).diagnostics
    assert (found.code, found.layer.name) == ("W930", "sum")
    assert "MatMul" in found.help


RESHAPED = "Reshape-1 lacks its required attribute `special_zero`; OpenVINO takes `false`, and so does irrun"


@pytest.mark.parametrize(
    ("sizes", "shape", "code", "says"),
    [
        (("?", 6), [0, 3, 2], "W950", ""),
        (("?", 6), [0, -1], "E306", ", with which OpenVINO does not read the layer"),
        (
            (2, 6),
            [0, -1],
            "E306",
            ", with which the layer cannot be computed: Reshape-1 C4: `data` is [2, 6], 12 elements, expected 0 for "
            "`shape` [0, -1]",
        ),
    ],
)
def test_a_value_that_was_taken_is_not_advised_where_another_one_gives_elements(sizes, shape, code, says, tmp_path):
    m = Model()
    declared = (-1, *([3, 2] if len(shape) > 2 else [6]))
    m.result(m.layer("Reshape", [m.parameter("x", "f32", sizes), m.constant(np.array(shape))], [("f32", declared)])[0])
    path = m.save(tmp_path)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.message) == (code, RESHAPED + says)
    assert found.help == 'write special_zero="true", with which the output is as declared'
    assert "elements" in found.notes[0].message
    with pytest.raises(RuntimeError) if code == "E306" else nullcontext():
        ov.Core().read_model(path)


def branched(folder, start):
    """Two branches, of which one is pooled, and their sum; the second edge to that begins at layer `start`."""
    m = Model()
    x = m.parameter("x", "f32", (1, 3, 8, 8))
    (y,) = m.layer("ReLU", [x], [("f32", (1, 3, 8, 8))])
    (z,) = m.layer("ReduceMax", [y, m.constant(np.array([2, 3]))], [("f32", (1, 3))], keep_dims="false")
    (w,) = m.layer("Unsqueeze", [z, m.constant(np.array([2]))], [("f32", (1, 3, 1))])
    (v,) = m.layer("MatMul", [w, m.constant(np.zeros((1, 5), np.float32))], [("f32", (1, 3, 5))])
    m.result(v)
    path = m.save(folder)
    path.write_text(path.read_text().replace(f'from-layer="{w[0]}" from-port="2"', start))
    return path


@pytest.mark.parametrize("start", ['from-layer="1" from-port="1"', 'from-layer="3" from-port="2"'])
def test_an_edge_that_begins_elsewhere_is_one_diagnostic(start, tmp_path):
    path = branched(tmp_path, start)
    (found,) = [each for each in irrun.validate(path).diagnostics if each.severity != "info"]
    assert found.layer.type == "MatMul"
    assert any("layer 5 `Unsqueeze_5`" in text for text in [found.help, *(note.message for note in found.notes)])


def test_an_edge_from_a_tensor_of_another_rank_is_told_where_it_arrives(tmp_path):
    """The Gather declares a scalar, and the Greater cannot be computed with what it gives then."""
    m = Model()
    x, y = m.parameter("x", "f32", (4,)), m.parameter("y", "f32", (4, 3))
    (z,) = m.layer("Gather", [x, *map(m.constant, (0, 0))], [("f32", ())], version="opset8", batch_dims="0")
    m.result(m.layer("Greater", [z, m.parameter("w", "f32", (2,))], [("boolean", (2,))])[0])
    m.result(y)
    path = m.save(tmp_path)
    assert not irrun.validate(path).diagnostics
    path.write_text(
        path.read_text().replace(
            'from-layer="0" from-port="0" to-layer="4"', 'from-layer="1" from-port="0" to-layer="4"'
        )
    )
    (found,) = [each for each in irrun.validate(path).diagnostics if each.severity == "error"]
    assert found.code == "E310"
    assert found.message.startswith("input 0 is declared as [4], but is [4, 3], with which layer 6 `Greater_6`")


def test_an_edge_to_branches_that_begins_elsewhere_is_one_error(tmp_path):
    ops = ov.opset8
    outer = [ops.parameter(shape, type) for shape, type in (([], bool), ([2, 3], np.float32), ([], np.int64))]
    inner = [ops.parameter([-1, 3], np.float32) for _ in range(2)]
    ones = np.ones(3, np.float32)
    bodies = [ov.Model([op(x, ones)], [x]) for op, x in zip((ops.add, ops.maximum), inner, strict=True)]
    branch = ops.if_op(outer[0])
    branch.set_then_body(bodies[0])
    branch.set_else_body(bodies[1])
    branch.set_input(outer[1].output(0), *inner)
    result = branch.set_output(*(body.results[0] for body in bodies))
    ov.serialize(ov.Model([result, outer[2].output(0)], outer), tmp_path / "model.xml")
    path = tmp_path / "model.xml"
    assert not irrun.validate(path).diagnostics
    text = path.read_text()
    old = 'from-layer="1" from-port="0" to-layer="3"'
    assert text.count(old) == 1
    path.write_text(text.replace(old, 'from-layer="2" from-port="0" to-layer="3"'))
    (found,) = [each for each in irrun.validate(path).diagnostics if each.severity == "error"]
    assert found.code == "E401"
    assert found.message.startswith("If-8 C3: input 1 is i64, but parameter 0 of the body declares f32")
    assert sum(note.message.count("If-8 C3: input 1 is i64") for note in found.notes) == 1


@pytest.mark.parametrize("type", ["dynamic", "undefined"])
def test_a_parameter_of_any_type_is_held_against_its_port(type, tmp_path):
    path = sample(tmp_path, 'element_type="f32"', f'element_type="{type}"')
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.layer.type) == ("W932", "Parameter")


@pytest.mark.parametrize(
    ("type", "says"),
    [
        ("ReLU", "output 0 is declared as [?, 8, ?, 16], but as [?, 8, 16, 16] where an edge arrives"),
        ("MaxPool", "input 0 is declared as [?, 8, ?, 16], but as [?, 8, 16, 16] where the edge begins"),
    ],
)
def test_an_end_of_an_edge_that_leaves_open_what_the_other_one_says(type, says, tmp_path):
    text = SAMPLE.read_text()
    at = text.index("<output>" if type == "ReLU" else "<input>", text.index(f'type="{type}"'))
    path = sample(tmp_path, text[at:], text[at:].replace("<dim>16</dim>", "<dim>-1</dim>", 1))
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.message, found.layer.type) == ("W931", says, type)
    assert mended(path, path.read_bytes()).content == SAMPLE.read_bytes()
    assert not irrun.validate(path, shapes={"image": (2, 1, 16, 16)}).warnings


def test_openvino_declares_a_compressed_output_as_it_is_in_the_file(tmp_path):
    ops = ov.opset13
    x = ops.parameter([2], np.float32, name="x")
    kept = ops.constant(np.array([1, 2], np.float32))
    ov.save_model(ov.Model([ops.relu(x), kept], [x]), tmp_path / "model.xml")
    assert "decompression" in (tmp_path / "model.xml").read_text()
    (found,) = irrun.validate(tmp_path / "model.xml").diagnostics
    assert (found.code, found.severity, found.layer.type) == ("I904", "info", "Convert")


def test_many_causes_are_looked_up_and_not_searched_for(tmp_path, monkeypatch):
    """What ports declare is gone through as often for 40 causes as for 2."""
    passes = []

    class Counted(list):
        def __iter__(self):
            passes.append(1)
            return super().__iter__()

    monkeypatch.setattr(
        "irrun.check.validate.told_at_causes",
        lambda found, declared, inference: told_at_causes(Counted(found), Counted(declared), inference),
    )
    counts = []
    for causes in (2, 40):
        m = Model()
        for number in range(causes):
            x, axes = m.parameter(f"x{number}", "f32", (2, 3)), m.constant(np.int64([0, 1]))
            (turned,) = m.layer("Transpose", [x, axes], [("f32", (3, 2))])
            weights = m.constant(np.ones((2, 4), np.float32))
            m.result(
                m.layer("MatMul", [turned, weights], [("f32", (3, 4))], transpose_a="false", transpose_b="false")[0]
            )
        folder = tmp_path / f"{causes}"
        folder.mkdir()
        passes.clear()
        found = irrun.validate(m.save(folder)).errors
        assert {each.code for each in found} == {"E310"}
        assert len(found) == causes
        counts.append(len(passes))
    assert counts[0] == counts[1] > 0
