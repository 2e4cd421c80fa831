"""Reading models: what is in the graph, and one diagnostic at the right place for each thing that is wrong."""

import os
import re
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from defects.bases import branch, loop
from ir_builder import Model
from openvino import opset13

import irrun
from irrun.check.fixes.application import mended
from irrun.diagnostics import IRError
from irrun.ir.reader import read, read_model
from irrun.ir.structure import topological_order

PARAMETER = """<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
<output><port id="0" precision="FP32" names="x"><dim>2</dim></port></output></layer>
"""
SUBTRACT = """<layer id="1" name="sub" type="Subtract" version="opset1">
<input><port id="0"><dim>2</dim></port><port id="1"><dim>2</dim></port></input>
<output><port id="2" precision="FP32"><dim>2</dim></port></output></layer>
"""
RESULT = """<layer id="2" name="r" type="Result" version="opset1">
<input><port id="0"><dim>2</dim></port></input></layer>
"""
EDGES = """<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>
<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
"""
SOUND = f'<net name="m" version="11"><layers>\n{PARAMETER}{SUBTRACT}{RESULT}</layers><edges>\n{EDGES}</edges></net>'
RELU = """<layer id="{0}" name="relu{0}" type="ReLU" version="opset1"><input><port id="0"/></input>
<output><port id="1" precision="FP32"/></output></layer>
"""
LOOP = f"""<net name="m" version="11"><layers>
{PARAMETER}<layer id="1" name="ti" type="TensorIterator" version="opset1">
<input><port id="20"/></input>
<output><port id="1" precision="FP32"/></output>
<port_map>
<input external_port_id="0" internal_layer_id="0"/>
<output external_port_id="1" internal_layer_id="2"/>
</port_map>
<back_edges>
<edge from-layer="2" to-layer="0"/>
</back_edges>
<body><layers>
{PARAMETER}{SUBTRACT}{RESULT}</layers><edges>
{EDGES}</edges></body></layer>
{RESULT}</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="20"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
</edges></net>"""


def written(folder, text):
    path = folder / "model.xml"
    path.write_text(text, encoding="utf-8")
    return path


def changed(text, *changes):
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def chain(edges, count):
    """A Parameter 0, ReLUs 1 to `count`, and a Result after them, with these edges between them."""
    layers = PARAMETER + "".join(RELU.format(id) for id in range(1, count + 1))
    layers += RESULT.replace('id="2"', f'id="{count + 1}"', 1)
    lines = [f'<edge from-layer="{a}" from-port="{1 if a else 0}" to-layer="{b}" to-port="0"/>\n' for a, b in edges]
    return f'<net version="11"><layers>\n{layers}</layers><edges>\n{"".join(lines)}</edges></net>'


def only(folder, text):
    """The one diagnostic of a model."""
    path = written(folder, text)
    _, diagnostics = read(path)
    assert len(diagnostics) == 1, [str(found) for found in diagnostics]
    return diagnostics[0]


def assert_points_at(text, found, part):
    """That the diagnostic marks just `part` in the text."""
    start = found.column - 1
    assert text.splitlines()[found.line - 1][start : start + found.span.length] == part


def test_a_sound_model(tmp_path):
    model = read_model(written(tmp_path, SOUND))
    x, sub, result = model.graph.layers
    assert (model.name, model.version, model.path) == ("m", 11, tmp_path / "model.xml")
    assert [layer.id for layer in (x, sub, result)] == [0, 1, 2]
    assert x.attributes == {"shape": "2", "element_type": "f32"}
    assert sub.inputs == [x.outputs[0], x.outputs[0]]
    assert x.outputs[0].consumers == [(sub, 0), (sub, 1)]
    assert (x.outputs[0].port.precision, x.outputs[0].port.dims, x.outputs[0].port.names) == ("f32", (2,), ("x",))
    assert sub.input_ports[0].precision is None
    assert model.graph.parameters == [x]
    assert model.graph.results == [result]


def test_inputs_go_by_the_position_of_the_port(tmp_path):
    two = PARAMETER.replace('id="0" name="x"', 'id="7" name="y"').replace('names="x"', 'names="y"')
    text = changed(
        SOUND,
        (PARAMETER, two + PARAMETER),
        ('<port id="0"><dim>2</dim></port><port id="1">', '<port id="9"><dim>2</dim></port><port id="4">'),
        ('to-layer="1" to-port="0"', 'to-layer="1" to-port="4"'),
        (
            'from-layer="0" from-port="0" to-layer="1" to-port="1"',
            'from-layer="7" from-port="0" to-layer="1" to-port="9"',
        ),
    )
    path = written(tmp_path, text)
    sub = next(layer for layer in read_model(path).graph.layers if layer.type == "Subtract")
    theirs = next(op for op in ov.Core().read_model(path).get_ops() if op.get_type_name() == "Subtract")
    assert [value.layer.name for value in sub.inputs] == ["y", "x"]
    assert [theirs.input_value(n).get_node().get_friendly_name() for n in (0, 1)] == ["y", "x"]


def test_layers_may_come_in_any_order(tmp_path):
    text = SOUND.replace(PARAMETER + SUBTRACT + RESULT, RESULT + SUBTRACT + PARAMETER)
    model = read_model(written(tmp_path, text))
    assert [layer.name for layer in model.graph.layers] == ["r", "sub", "x"]
    assert [layer.name for layer in topological_order(model.graph)] == ["x", "sub", "r"]


def test_tensor_names_with_commas(tmp_path):
    x = opset13.parameter([2], np.float32, name="x")
    x.output(0).set_names({"a,b", "c", " d "})
    path = tmp_path / "model.xml"
    ov.serialize(ov.Model([opset13.result(opset13.relu(x))], [x], "m"), path)
    (parameter,) = read_model(path).graph.parameters
    assert set(parameter.outputs[0].port.names) == {"a,b", "c", " d "}


def test_output_names_of_a_result_are_attributes(tmp_path):
    model = read_model(written(tmp_path, changed(SOUND, ('name="r"', 'name="r" output_names="out"'))))
    assert model.graph.results[0].attributes == {"output_names": "out"}


def test_rt_info_and_legacy_elements_are_kept(tmp_path):
    text = changed(
        SOUND,
        ("</net>", '<rt_info><a value="1"/></rt_info><meta_data><cli/></meta_data></net>'),
        ("<output>", "<rt_info><attribute/></rt_info><output>"),
    )
    model = read_model(written(tmp_path, text))
    assert [child.tag for child in model.graph.rt_info.children] == ["a"]
    assert [element.tag for element in model.legacy] == ["meta_data"]
    assert [child.tag for child in model.graph.layers[0].rt_info.children] == ["attribute"]


def test_a_loop_in_an_if_saved_by_openvino(tmp_path):
    path = saved_loop_in_if(tmp_path)
    model = read_model(path)
    (branching,) = [layer for layer in model.graph.layers if layer.type == "If"]
    assert list(branching.bodies) == ["then_body", "else_body"]
    then = branching.bodies["then_body"]
    assert [entry.external for entry in then.inputs] == [1]
    assert [entry.external for entry in then.outputs] == [0]
    (loop,) = [layer for layer in then.graph.layers if layer.type == "Loop"]
    body = loop.bodies["body"]
    assert body.graph.owner is loop
    assert loop.graph.owner is branching
    assert [(edge.result.type, edge.parameter.type) for edge in body.back_edges] == [("Result", "Parameter")]
    assert sorted(entry.external for entry in body.outputs) == [-1, 0]
    assert next(entry for entry in body.outputs if entry.external == -1).purpose == "execution_condition"
    trip = loop.inputs[0].layer
    assert model.weights.constant(trip).tolist() == 3


def saved_loop_in_if(folder):
    inner = opset13.parameter([2], np.float32, name="inner")
    condition = opset13.constant(True, dtype=np.bool_)
    body = ov.Model([condition, opset13.add(inner, opset13.constant(np.float32(1)))], [inner], "body")
    then_x = opset13.parameter([2], np.float32, name="then_x")
    loop = opset13.loop(opset13.constant(np.int64(3)), opset13.constant(True, dtype=np.bool_))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(inner, then_x.output(0), body.results[1].output(0))
    then = ov.Model([loop.get_iter_value(body.results[1].output(0), -1)], [then_x], "then")
    else_x = opset13.parameter([2], np.float32, name="else_x")
    otherwise = ov.Model([opset13.relu(else_x)], [else_x], "else")
    flag, x = opset13.parameter([], np.bool_, name="flag"), opset13.parameter([2], np.float32, name="x")
    branching = opset13.if_op(flag)
    branching.set_then_body(then)
    branching.set_else_body(otherwise)
    branching.set_input(x.output(0), then_x, else_x)
    out = branching.set_output(then.results[0], otherwise.results[0])
    path = folder / "model.xml"
    ov.serialize(ov.Model([opset13.result(out)], [flag, x], "m"), path)
    return path


def test_outputs_are_numbered_by_ascending_external_id(tmp_path):
    text = changed(
        LOOP,
        (
            '<port id="1" precision="FP32"/></output>\n<port_map>',
            '<port id="1" precision="FP32"/><port id="2" precision="FP32"/></output>\n<port_map>',
        ),
        (
            '<output external_port_id="1" internal_layer_id="2"/>',
            '<output external_port_id="9" internal_layer_id="2" axis="0"/>\n'
            '<output external_port_id="5" internal_layer_id="2"/>',
        ),
    )
    layer = read_model(written(tmp_path, text)).graph.layers[1]
    concatenated, last = layer.bodies["body"].outputs
    assert (concatenated.external, concatenated.axis, concatenated.end) == (1, 0, -1)
    assert (last.external, last.axis) == (0, None)


def test_a_deep_nest_of_bodies_needs_no_deep_stack(tmp_path):
    text = (
        '<net version="11"><layers>'
        + "<layer><body><layers>" * 80
        + "</layers></body></layer>" * 80
        + "</layers></net>"
    )
    _, diagnostics = read(written(tmp_path, text))
    assert {found.code for found in diagnostics} == {"E201", "E212"}


FAULTS = [
    ("E101", [("</layers>", "</layer>")], "</layer>"),
    ("E108", [("<net ", "<model "), ("</net>", "</model>")], "<model"),
    ("E109", [(' version="11"', "")], "<net"),
    ("E109", [('version="11"', 'version="9"')], 'version="9"'),
    ("E109", [('version="11"', 'version="11 "')], 'version="11 "'),
    ("E109", [('version="11"', 'version="11.0"')], 'version="11.0"'),
    ("E111", [("<layers>", "<meta_data>"), ("</layers>", "</meta_data>"), (EDGES, "")], "<net"),
    ("E220", [("<edges>", "<edgs>"), ("</edges>", "</edgs>")], "<edgs"),
    ("E201", [('type="Subtract" ', "")], "<layer"),
    ("E201", [('<layer id="1" ', "<layer ")], "<layer"),
    ("E201", [(' to-port="1"', "")], "<edge"),
    ("E201", [('<port id="1">', "<port>")], "<port"),
    ("E202", [('<layer id="1"', '<layer id="one"')], 'id="one"'),
    ("E202", [('<layer id="1"', '<layer id="9223372036854775808"')], 'id="9223372036854775808"'),
    ("E202", [('to-port="1"', 'to-port="1.0"')], 'to-port="1.0"'),
    ("E203", [('<layer id="1"', '<layer id="0"')], 'id="0"'),
    ("E204", [('<port id="1">', '<port id="0">')], 'id="0"'),
    ("E205", [('<edge from-layer="1"', '<edge from-layer="99"')], 'from-layer="99"'),
    ("E205", [('to-layer="2"', 'to-layer="99"')], 'to-layer="99"'),
    ("E206", [('from-port="2"', 'from-port="1"')], 'from-port="1"'),
    ("E206", [('to-port="1"', 'to-port="2"')], 'to-port="2"'),
    ("E207", [("</edges>", '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/></edges>')], 'to-port="0"'),
    ("E208", [(EDGES.splitlines()[1], "")], "<port"),
    ("E210", [('precision="FP32"', 'precision="MIXED"')], 'precision="MIXED"'),
    ("E210", [(' precision="FP32"', "")], "<port"),
    ("E210", [('<port id="2" precision="FP32"', '<port id="2" precision="fp16"')], 'precision="fp16"'),
    ("W907", [('<port id="2" precision="FP32"><dim>2</dim>', '<port id="2" precision="FP32"><Dim>2</Dim>')], "<Dim"),
    ("E217", [('type="Subtract"', 'type="Constant"')], 'type="Constant"'),
    ("E217", [('type="Subtract"', 'type="const"')], 'type="const"'),
    ("E220", [("<input>", "<inputs>"), ("</input>", "</inputs>")], "<inputs"),
    ("E220", [("<input>", "<output>"), ("</input>", "</output>")], "<output"),
    ("W903", [('name="sub"', 'name="x"')], 'name="x"'),
    ("W906", [('<port id="2" precision="FP32"', '<port id="2" precision="FP32" names="x"')], 'names="x"'),
    ("W907", [("<input>", "<outputs/><input>")], "<outputs"),
]


@pytest.mark.parametrize("id", [str(2**63 - 1), "+7", " 7", "0" * 5000 + "7"])
def test_ids_are_numbers_as_openvino_reads_them(tmp_path, id):
    text = SOUND.replace('<layer id="1"', f'<layer id="{id}"').replace('-layer="1"', f'-layer="{id}"')
    path = written(tmp_path, text)
    assert irrun.validate(path).diagnostics == []
    assert len(ov.Core().read_model(path).get_ops()) == text.count("<layer ")


@pytest.mark.parametrize(("code", "changes", "part"), FAULTS, ids=[f"{f[0]}-{n}" for n, f in enumerate(FAULTS)])
def test_one_fault_is_one_diagnostic_at_its_place(tmp_path, code, changes, part):
    text = changed(SOUND, *changes)
    found = only(tmp_path, text)
    assert found.code == code
    assert found.file == str(tmp_path / "model.xml")
    assert_points_at(text, found, part)


@pytest.mark.parametrize("version", ["9", "12", "x", ""])
def test_a_version_that_layers_contradict_hides_nothing(version):
    """Layers of operation sets are read by these, whatever the file calls its format."""
    text = changed(SOUND, ('version="11"', f'version="{version}"'), ('to-port="1"', 'to-port="2"'))
    found = irrun.validate(text.encode(), b"").diagnostics
    assert [each.code for each in found] == ["E109", "E206"]
    assert "operation sets" in found[0].help
    old = text.replace(' version="opset1"', "")
    (found,) = irrun.validate(old.encode(), b"").diagnostics
    assert "convert the original model again" in found.help


def test_a_result_from_which_edges_lead_is_one_error():
    text = changed(named("x", "a", "b", "y"), ('name="relu1" type="ReLU"', 'name="relu1" type="Result"'))
    text = changed(text, ("</edges>", '<edge from-layer="1" from-port="1" to-layer="3" to-port="0"/></edges>'))
    text = changed(text, ('<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>', ""))
    found = [each for each in irrun.validate(text.encode(), b"").errors if each.code == "E206"]
    assert [len(each.notes) for each in found] == [1]


def named(*names):
    """A Parameter, three ReLUs and a Result, whose tensors have these names."""
    text = chain([(0, 1), (1, 2), (2, 3), (3, 4)], 3)
    for id, given in enumerate(names):
        start = text.index(f'<layer id="{id}"')
        old = ' precision="FP32" names="x"' if id == 0 else ' precision="FP32"'
        text = text[:start] + text[start:].replace(old, f' precision="FP32" names="{given}"', 1)
    return text


@pytest.mark.parametrize(
    ("names", "place", "renamed"),
    [
        (("x", "a", "b", "y,a"), "relu3", "first"),  # an output keeps its names
        (("x", "a,c", "b", "y,c"), "relu3", "first"),
        (("x", "a,c", "c", "y"), "relu2", "second"),
        (("x", "a,c", "b,c", "y"), "relu2", "second"),
        (("x", "a", "b", "x,y"), "relu3", "second"),
        (("x,c", "c", "b", "y"), "relu1", "second"),
    ],
)
def test_a_name_of_two_tensors_is_noticed_wherever_it_stands(tmp_path, names, place, renamed):
    path = written(tmp_path, named(*names))
    found = only(tmp_path, named(*names))
    assert (found.code, found.layer.name) == ("W906", place)
    assert f"renames the {renamed} to" in found.help
    model = ov.Core().read_model(path)
    first, second = found.notes[0].message.split("`")[1], place
    lost = {op.get_friendly_name(): op.output(0).get_names() for op in model.get_ops()}
    assert any(name.endswith("_1") for name in lost[first if renamed == "first" else second])


def old(*, input="a", names=("", ""), layers=("exp", "abs"), results=(1, 2)):
    """A model of version 10 whose input goes through an Exp (1) and an Abs (2), and is given back by some of these."""
    net = Model(version=10)
    (x,) = net.layer("Parameter", [], [("f32", (2,))], names=[input], name="a", shape="2", element_type="f32")
    values = [x]
    for type, name, layer in zip(("Exp", "Abs"), names, layers, strict=True):
        values += net.layer(type, [x], [("f32", (2,))], names=[name], name=layer)
    for number, result in enumerate(results):
        net.layer("Result", [values[result]], [], name=f"r{number}")
    return net


COLLISIONS = [
    ({}, None),
    (
        {"names": ("exp", "abs"), "results": (1, 2, 2), "input": ""},
        ("r2", "`abs` would be the name of this output, but"),
    ),
    ({"results": (1, 1)}, None),
    ({"results": (1, 2, 0)}, ("r2", "`a` would be the name of this output, but is that of an input")),
    ({"results": (1, 2, 0), "input": ""}, None),
    ({"layers": ("exp", "exp")}, ("exp", "`exp` would be the name of this output, but is one of what layer 1")),
    ({"layers": ("a", "abs")}, ("a", "`a` would be the name of this output, but is one of what layer 0")),
    ({"names": ("e", ""), "layers": ("exp", "e")}, ("e", "`e` would be the name of this output, but is one of what")),
    (
        {"names": ("a", ""), "input": "b"},
        ("a", "`a` would be the name of this input, but is one of what layer 1 `exp`"),
    ),
    ({"names": ("r1", "r0")}, None),
    ({"names": ("exp", ""), "input": "exp"}, ("exp", "`exp` would be the name of this output, but is one of what")),
    ({"names": ("abs", "abs")}, ("abs", "`abs` would be the name of this output, but is one of what layer 1")),
    ({"names": ("exp", "exp")}, None),
    ({"names": ("a", ""), "input": "a"}, None),
]


@pytest.mark.parametrize(("changes", "said"), COLLISIONS)
def test_layers_of_version_10_give_inputs_and_outputs_their_names(tmp_path, changes, said):
    path = old(**changes).save(tmp_path)
    found = irrun.validate(path).errors
    try:
        ov.Core().read_model(path)
    except RuntimeError:
        assert said is not None
        (error,) = found
        assert (error.code, error.layer.name) == ("E223", said[0])
        assert error.message.startswith(said[1])
    else:
        assert (found, said) == ([], None)
    newer = path.read_text().replace('version="10"', 'version="11"')
    assert irrun.validate(newer.encode()).errors == []


@pytest.mark.parametrize("names", [("x", "a,x", "b", "y"), ("x,c", "a", "b,c", "y")])
def test_exporters_give_inner_tensors_names_of_inputs(tmp_path, names):
    assert read(written(tmp_path, named(*names)))[1] == []


OF_ANOTHER_NAME = [
    (SOUND, "<layers>", "layer_list"),
    (SOUND, "<edges>", "connections"),
    (SOUND, '<layer id="1"', "node"),
    (SOUND, '<data shape="2"', "attrs"),
    (SOUND, "<input>", "sources"),
    (SOUND, "<output>", "results"),
    (SOUND, '<port id="2" precision', "slot"),
    (SOUND, '<edge from-layer="1"', "link"),
    (LOOP, "<port_map>", "mapping"),
    (LOOP, '<input external_port_id="0"', "sources"),
    (LOOP, '<output external_port_id="1"', "results"),
    (LOOP, "<back_edges>", "feedback"),
    (LOOP, '<edge from-layer="2" to-layer="0"', "link"),
    (LOOP, "<body>", "graph"),
]


@pytest.mark.parametrize(("text", "opening", "word"), OF_ANOTHER_NAME)
def test_an_element_of_another_name_is_known_by_what_it_holds(tmp_path, text, opening, word):
    right = opening[1:].split()[0].rstrip(">")
    start = text.index(opening)
    end = text.find(f"</{right}>", start) if "/>" not in text[start : text.index(">", start) + 1] else -1
    if end >= 0:
        text = text[:end] + f"</{word}>" + text[end + len(right) + 3 :]
    text = text[: start + 1] + word + text[start + 1 + len(right) :]
    found = only(tmp_path, text)
    assert (found.code, found.line) == ("E220", text[:start].count("\n") + 1)
    assert found.help.startswith(f"write <{right}>;")


def test_lists_of_bodies_are_known_by_what_they_hold(tmp_path):
    for right, word in (("layers", "layer_list"), ("edges", "connections")):
        body = LOOP.index("<body>")
        text = LOOP[:body] + changed(LOOP[body:], (f"<{right}>", f"<{word}>"), (f"</{right}>", f"</{word}>"))
        found = only(tmp_path, text)
        assert (found.code, found.message) == ("E220", f"<{word}> is not read: <body> has no <{right}>")
        assert found.layer.name == "ti"


@pytest.mark.parametrize(
    "child",
    [
        '<notes><port id="7"/></notes>',  # there are both lists of ports
        '<info element_type="f32"/>',
        '<mapping><input external_port_id="0" internal_layer_id="0"/></mapping>',  # the op has no body
        "<graph><layers/></graph>",
    ],
)
def test_an_element_that_stands_for_nothing_that_is_missing_is_only_unread(tmp_path, child):
    found = only(tmp_path, changed(SOUND, ("<input>", f"{child}<input>")))
    assert (found.code, found.severity) == ("W907", "warning")


def test_an_unread_list_of_other_things_is_not_the_layers(tmp_path):
    text = changed(SOUND, ("<layers>", "<history><layer/></history><graph>"), ("</layers>", "</graph>"))
    _, diagnostics = read(written(tmp_path, text))
    assert [(found.code, found.message) for found in diagnostics] == [
        ("W907", "<history> is not read in <net>"),
        ("E220", "<graph> is not read: <net> has no <layers>"),
    ]


BODY_FAULTS = [
    ("E201", [('<input external_port_id="0" internal_layer_id="0"/>', '<input external_port_id="0"/>')], "<input"),
    ("E202", [('internal_layer_id="2"', 'internal_layer_id="2" axis="x"')], 'axis="x"'),
    ("E202", [('internal_layer_id="2"', 'internal_layer_id="2" axis="0 "')], 'axis="0 "'),
    ("E213", [('<input external_port_id="0"', '<input external_port_id="20"')], 'external_port_id="20"'),
    ("E213", [('internal_layer_id="2"', 'internal_layer_id="5"')], 'internal_layer_id="5"'),
    ("E213", [('internal_layer_id="2"', 'internal_layer_id="1"')], 'internal_layer_id="1"'),
    ("E213", [('<output external_port_id="1" internal_layer_id="2"/>', "")], "<port"),
    (
        "E214",
        [("</port_map>", '<output external_port_id="1" internal_layer_id="2"/></port_map>')],
        'external_port_id="1"',
    ),
    ("E215", [('to-layer="0"/>\n</back', 'to-layer="7"/>\n</back')], 'to-layer="7"'),
    ("E215", [('<edge from-layer="2"', '<edge from-layer="1"')], 'from-layer="1"'),
    ("E215", [('<input external_port_id="0" internal_layer_id="0"/>', "")], 'to-layer="0"'),
    (
        "E218",
        [('<input external_port_id="0" internal_layer_id="0"/>', ""), ('<edge from-layer="2" to-layer="0"/>', "")],
        "<layer",
    ),
    (
        "E216",
        [('type="TensorIterator"', 'type="If"'), ("<body>", "<then_body>"), ("</body>", "</then_body>")],
        "<layer",
    ),
]


@pytest.mark.parametrize(
    ("code", "changes", "part"), BODY_FAULTS, ids=[f"{f[0]}-{n}" for n, f in enumerate(BODY_FAULTS)]
)
def test_faults_of_bodies(tmp_path, code, changes, part):
    text = changed(LOOP, *changes)
    _, diagnostics = read(written(tmp_path, text))
    assert {found.code for found in diagnostics} == {code}, [str(found) for found in diagnostics]
    assert len(diagnostics) == (3 if code == "E216" else 1)
    assert_points_at(text, diagnostics[0], part)


def test_a_sound_loop(tmp_path):
    layer = read_model(written(tmp_path, LOOP)).graph.layers[1]
    body = layer.bodies["body"]
    assert [(entry.external, entry.internal.name) for entry in body.inputs] == [(0, "x")]
    assert [(entry.external, entry.internal.name) for entry in body.outputs] == [(0, "r")]
    assert (body.back_edges[0].result.name, body.back_edges[0].parameter.name) == ("r", "x")


def test_a_diagnostic_in_a_body_says_where_the_body_is(tmp_path):
    head, tail = LOOP.split("<body>")
    text = head + "<body>" + changed(tail, ('type="Subtract" ', ""))
    found = only(tmp_path, text)
    assert [note.message for note in found.notes] == ["in the body of layer 1 `ti` (TensorIterator)"]


@pytest.mark.parametrize("dim", ["?", "3x", "-2", "1..3", "1_0", "9223372036854775808", "9" * 1500])
def test_unreadable_dimension(tmp_path, dim):
    text = changed(SOUND, ("<dim>2</dim>", f"<dim>{dim}</dim>"))
    found = only(tmp_path, text)
    assert (found.code, found.message) == ("E211", f"`{dim}` is not a dimension")
    assert_points_at(text, found, "<dim")


def test_unknown_dimensions_are_minus_one(tmp_path):
    model = read_model(written(tmp_path, changed(SOUND, ("<dim>2</dim>", "<dim>-1</dim><dim> 3 </dim>"))))
    assert model.graph.layers[0].outputs[0].port.dims == (-1, 3)


def test_a_cycle_is_named_once(tmp_path):
    text = chain([(2, 1), (1, 2), (2, 3), (3, 4)], 3)
    found = only(tmp_path, text)
    cycle = "1 `relu1` (ReLU) -> 2 `relu2` (ReLU) -> 1 `relu1` (ReLU)"
    assert (found.code, found.message) == ("E209", f"the layers depend on each other in a cycle: {cycle}")
    assert_points_at(text, found, "<edge")


def test_two_cycles_are_two_diagnostics(tmp_path):
    _, diagnostics = read(written(tmp_path, chain([(1, 1), (2, 3), (3, 2), (0, 4), (4, 5)], 4)))
    assert [found.code for found in diagnostics] == ["E209", "E209"]


def test_a_cycle_of_thousands_of_layers(tmp_path):
    count = 5000
    edges = [(count, 1), *((n, n + 1) for n in range(1, count + 1))]
    found = only(tmp_path, chain(edges, count))
    assert found.code == "E209"
    assert "4992 more" in found.message


def test_no_result(tmp_path):
    text = changed(SOUND, (RESULT, ""), (EDGES.splitlines()[2], ""))
    assert only(tmp_path, text).code == "E212"


@pytest.mark.parametrize(
    ("dim", "message", "help"),
    [
        ('<dim value="7"/>', "a <dim> is empty", "write <dim>7</dim>: "),
        ("<dim></dim>", "a <dim> is empty", "a size in digits"),
        ("<dim>7x</dim>", "`7x` is not a dimension", "a size in digits"),
    ],
)
def test_a_size_that_is_none(tmp_path, dim, message, help):
    found = only(tmp_path, changed(SOUND, ("<dim>2</dim>", dim)))
    assert (found.code, found.message) == ("E211", message)
    assert found.help.startswith(help)


OF_ONE_CAUSE = [
    ("E301", LOOP, 'name="x" type="Parameter"', 'name="x" type="Paramter"', "did you mean `Parameter`?"),
    ("E301", LOOP, 'name="r" type="Result"', 'name="r" type="Reslt"', "did you mean `Result`?"),
    ("E301", LOOP, 'name="r" type="Result"', 'name="r" type="Output"', "did you mean `Result`?"),
    ("E301", LOOP, 'type="Subtract"', 'type="Subtr\u0430ct"', "did you mean `Subtract`? There is U+0430 (CYRILLIC"),
    ("E301", LOOP, 'name="r" type="Result"', 'name="r" type="opset::Result"', "did you mean `Result`?"),
    ("E201", LOOP, 'name="x" type="Parameter"', 'name="x"', None),
    ("E201", LOOP, 'name="r" type="Result"', 'name="r"', None),
    ("E301", SOUND, 'name="r" type="Result"', 'name="r" type="Resul"', "did you mean `Result`?"),
    ("E201", SOUND, 'name="r" type="Result"', 'name="r"', None),
    (
        "E217",
        SOUND,
        'name="sub" type="Subtract"',
        'name="sub" type="CONST"',
        "write `Const`, exactly so; OpenVINO refuses",
    ),
    ("E301", SOUND, 'name="r" type="Result"', 'name="r" type=""', None),
    ("E206", SOUND, '<port id="1">', '<port id="5">', "its input ports are 0, 5"),
]


@pytest.mark.parametrize(("code", "text", "old", "new", "help"), OF_ONE_CAUSE)
def test_what_a_type_or_port_that_is_not_there_leads_to_is_not_reported(code, text, old, new, help):
    start = max(text.find("<body>"), 0)
    text = text[:start] + changed(text[start:], (old, new))
    told = irrun.validate(text.encode()).diagnostics
    (found,) = [found for found in told if found.severity == "error" or found.code == "W904"]
    assert found.code == code
    assert help is None or found.help.startswith(help)


def test_a_loop_that_is_called_an_iterator_is_told_at_its_type():
    text = changed(loop().text, ('type="Loop" version="opset5"', 'type="TensorIterator" version="opset5"'))
    (found,) = [found for found in irrun.validate(text.encode()).errors if found.code != "E501"]
    assert (found.code, found.help) == ("E213", 'is type="Loop" meant?')
    assert_points_at(text, found, 'type="TensorIterator"')


def test_a_layer_that_is_pasted_and_connected_to_nothing_is_told_once():
    text = changed(
        SOUND, (RESULT, RESULT + SUBTRACT.replace('id="1"', 'id="7"', 1).replace('name="sub"', 'name="two"'))
    )
    (found,) = irrun.validate(text.encode()).errors
    assert (found.code, found.message) == ("E208", "no edge leads to this layer, nor does one begin at it")


def test_the_layer_that_no_edge_names_is_told_where_an_edge_names_none():
    text = changed(SOUND, ('<layer id="0"', '<layer id="9"'))
    (found,) = irrun.validate(text.encode()).errors
    assert (found.code, found.message) == ("E205", "there is no layer 0 in the model")
    assert found.help == "no edge names layer 9 `x` (Parameter): is that the one that is meant?"


def row(count):
    """A model of so many ReLUs in a row, a line for each layer and each edge."""
    layers = [PARAMETER.replace("\n", "")]
    for id in range(1, count + 1):
        ports = '<input><port id="0"/></input><output><port id="1" precision="FP32"/></output>'
        layers.append(f'<layer id="{id}" name="relu{id}" type="ReLU" version="opset1">{ports}</layer>')
    layers.append(RESULT.replace("\n", "").replace('id="2"', f'id="{count + 1}"', 1))
    edges = [
        f'<edge from-layer="{id}" from-port="{min(id, 1)}" to-layer="{id + 1}" to-port="0"/>' for id in range(count + 1)
    ]
    return "\n".join(['<net name="m" version="11"><layers>', *layers, "</layers><edges>", *edges, "</edges></net>"])


PLANTED = {
    "an id that is no number": ('<layer id="3"', '<layer id="x"', "E202", '<layer id="x"'),
    "an id that another layer has": ('<layer id="8"', '<layer id="1"', "E203", 'id="1" name="relu8"'),
    "an edge from nowhere": ('<edge from-layer="7"', '<edge from-layer="70"', "E205", 'from-layer="70"'),
    "an edge to nowhere": ('to-layer="6"', 'to-layer="60"', "E205", 'to-layer="60"'),
    "an edge to no number": ('to-layer="9"', 'to-layer="?"', "E202", 'to-layer="?"'),
    "an edge from a port that is not there": (
        'from-layer="9" from-port="1"',
        'from-layer="9" from-port="5"',
        "E206",
        'from-port="5"',
    ),
    "no edge": ('<edge from-layer="4" from-port="1" to-layer="5" to-port="0"/>', "", "E208", 'name="relu5"'),
}


@pytest.mark.parametrize(("first", "second"), [*combinations(PLANTED, 2)])
def test_two_things_that_are_wrong_with_ids_and_edges(first, second, tmp_path):
    """What one of them leaves without an edge, or without a layer, neither hides the other one nor is told besides."""
    assert_both_are_told(row(10), b"", PLANTED[first], PLANTED[second])


def assert_both_are_told(text, weights, *planted):
    """Each of two defects is an error at its line, and there is no other one."""
    for old, new, *_ in planted:
        assert text.count(old) == 1
        text = text.replace(old, new)
    wanted = set()
    for *_, code, mark in planted:
        (line,) = (number for number, line in enumerate(text.splitlines(), 1) if mark in line)
        wanted.add((code, line))
    found = [(each.code, each.line) for each in irrun.validate(text.encode(), weights).errors]
    assert sorted(found) == sorted(wanted)


PLANTED_IN_A_LOOP = {
    "an id that is no number": ('id="6" name="moved"', 'id="x" name="moved"', "E202", 'name="moved"'),
    "no id of a Parameter": ('id="3" name="scale"', 'name="scale"', "E201", 'name="scale"'),
    "an id that another layer has": ('id="10" name="last"', 'id="2" name="last"', "E203", 'name="last"'),
    "an input that is not there": ('external_port_id="4"', 'external_port_id="12"', "E213", 'external_port_id="12"'),
    "an output of no layer": (
        'external_port_id="5" internal_layer_id="10"',
        'external_port_id="5" internal_layer_id="99"',
        "E213",
        'internal_layer_id="99"',
    ),
    "a back edge from no layer": (
        'from-layer="10" to-layer="1"',
        'from-layer="98" to-layer="1"',
        "E215",
        'from-layer="98"',
    ),
    "a slice along a word": (
        'internal_layer_id="2" axis="0"',
        'internal_layer_id="2" axis="row"',
        "E202",
        'axis="row"',
    ),
    "a stride that is none": (
        'internal_layer_id="10" axis="0" start="0" end="-1" stride="1"',
        'internal_layer_id="10" axis="0" start="0" end="-1" stride="0"',
        "E401",
        'stride="0"',
    ),
    "a purpose that is misspelt": ("execution_condition", "condition", "E213", 'purpose="condition"'),
    "an edge to no port": ('to-layer="7" to-port="1"', 'to-layer="7" to-port="8"', "E206", 'to-port="8"'),
    "an edge from no number": (
        'from-layer="3" from-port="0" to-layer="4"',
        'from-layer="?" from-port="0" to-layer="4"',
        "E202",
        'from-layer="?"',
    ),
}


@pytest.mark.parametrize(("first", "second"), [*combinations(PLANTED_IN_A_LOOP, 2)])
def test_two_things_that_are_wrong_with_a_body(first, second):
    """Entries of port maps and back edges are read as far as they can be, in whatever the body is wrong."""
    assert_both_are_told(loop().text, loop().weights, PLANTED_IN_A_LOOP[first], PLANTED_IN_A_LOOP[second])


def test_a_parameter_that_no_entry_names_is_told_beside_an_entry_that_names_none():
    slices = '<input external_port_id="3" internal_layer_id="2" axis="0" start="0" end="-1" stride="1" part_size="1"/>'
    text = changed(loop().text, (slices, ""), ('external_port_id="4" internal_layer_id="3"', 'external_port_id="4"'))
    assert [found.code for found in irrun.validate(text.encode(), loop().weights).errors] == ["E201", "E218"]


@pytest.mark.parametrize("name", ["row", "total"])
def test_a_layer_without_an_id_and_the_port_without_one_in_it_are_all_that_is_told(name):
    text = re.sub(rf'id="." name="{name}"', f'id="x" name="{name}"', loop().text)
    port = text.index('<port id="0"', text.index(f'name="{name}"'))
    text = text[:port] + text[port:].replace('id="0"', 'id="y"', 1)
    assert [found.code for found in irrun.validate(text.encode(), loop().weights).errors] == ["E202", "E202"]


def test_an_input_of_a_loop_that_no_entry_takes_is_told_at_its_port():
    entry = '<input external_port_id="4" internal_layer_id="3"/>'
    text = changed(loop().text, (entry, ""))
    assert [found.code for found in irrun.validate(text.encode(), loop().weights).errors] == ["E218"]
    other = changed(loop().text, (entry, entry.replace('"4"', '"0"')))
    assert [found.code for found in irrun.validate(other.encode(), loop().weights).errors] == ["E401"]
    unread = 'from-layer="2" from-port="0" to-layer="4" to-port="1"'
    text = changed(text, ('from-layer="3" from-port="0" to-layer="4" to-port="1"', unread))
    (found,) = irrun.validate(text.encode(), loop().weights).errors
    assert (found.code, found.message) == ("E213", "no <input> of the port map takes input 4")
    with pytest.raises(RuntimeError, match="Number of inputs must be the same as number of input descriptions"):
        ov.Core().read_model(text.encode(), loop().weights)


def test_each_body_is_told_of_an_entry_for_a_layer_that_it_has_not():
    text = changed(
        branch().text, ('external_port_id="2" internal_layer_id="3"', 'external_port_id="2" internal_layer_id="9"')
    )
    text = changed(text, ('external_port_id="2" internal_layer_id="2"', 'external_port_id="2" internal_layer_id="9"'))
    assert [found.code for found in irrun.validate(text.encode(), branch().weights).errors] == ["E213", "E213"]


def concatenated(folder, *changes):
    """What is wrong with a sum of three, by lines, where edges into it are written otherwise."""
    net = Model()
    parts = [net.parameter(name, "f32", (2,)) for name in "xyz"]
    net.result(net.layer("Concat", parts, [("f32", (6,))], axis="0")[0])
    text = changed(net.save(folder).read_text(), *changes)
    (folder / "model.xml").write_text(text)
    return [
        (each.code, text.split("\n")[each.line - 1], len(each.notes))
        for each in irrun.validate(folder / "model.xml").errors
    ]


def test_each_wrong_port_of_a_layer_is_told_unless_no_edge_arrives(tmp_path):
    edges = [f'<edge from-layer="{n}" from-port="0" to-layer="3" to-port="{n}"/>' for n in range(3)]
    wrong = [edge.replace('to-port="', 'to-port="7') for edge in edges]
    pairs = list(zip(edges, wrong, strict=True))
    assert concatenated(tmp_path, *pairs[1:]) == [("E206", wrong[1], 1), ("E206", wrong[2], 1)]
    assert concatenated(tmp_path, *pairs) == [("E206", wrong[0], 3)]
    bad = '<port id="1" precision="FP32"><dim>2</dim></port>'
    assert concatenated(tmp_path, (bad, bad.replace("1", "x", 1)), pairs[2]) == [
        ("E202", bad.replace("1", "x", 1), 0), ("E206", wrong[2], 1)
    ]  # fmt: skip


def test_an_edge_that_is_the_wrong_way_round_is_told_once():
    right = '<edge from-layer="4" from-port="1" to-layer="5" to-port="0"/>'
    wrong = '<edge from-layer="5" from-port="0" to-layer="4" to-port="1"/>'
    text = changed(row(10), (right, wrong))
    (found,) = irrun.validate(text.encode(), b"").errors
    assert (found.code, text.split("\n")[found.line - 1]) == ("E206", wrong)
    assert found.help == 'turn it round: from-layer="4" from-port="1" to-layer="5" to-port="0"'
    text = changed(row(10), (right, wrong + right))
    (found,) = irrun.validate(text.encode(), b"").errors
    assert (found.code, found.help) == ("E206", "delete it: another edge leads to this input")


def test_two_results_of_one_name_may_read_one_tensor_where_an_edge_is_wrong(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (2,))
    for tensor in (x, net.layer("Abs", [x], [("f32", (2,))])[0]):
        net.result(tensor)
    text = net.save(tmp_path).read_text().replace('type="Result"', 'type="Result" output_names="y"')
    assert [found.code for found in irrun.validate(text.encode()).diagnostics] == ["W906"]
    text = changed(text, ('from-layer="1" from-port="1"', 'from-layer="9" from-port="1"'))
    assert [found.code for found in irrun.validate(text.encode()).diagnostics] == ["E205"]


def test_branches_that_changed_places_are_told_once_and_left_to_people(tmp_path):
    path = tmp_path / "model.xml"
    sound, weights = branch().text, branch().weights
    path.with_suffix(".bin").write_bytes(weights)
    for kind in ("body", "port_map"):
        text = sound.replace(f"then_{kind}", "*").replace(f"else_{kind}", f"then_{kind}").replace("*", f"else_{kind}")
        path.write_text(text)
        (found,) = irrun.validate(path).errors
        assert found.code == "E213"
        assert_points_at(text, found, "<else_port_map" if kind == "body" else "<then_port_map")
        assert mended(path, text.encode(), unsafe=True).content == text.encode()


def test_an_entry_that_names_no_output_is_told_where_an_output_has_none():
    text = changed(branch().text, ('<output external_port_id="2"', '<output external_port_id="-1"'))
    (found,) = irrun.validate(text.encode(), branch().weights).errors
    assert (found.code, found.help) == ("E213", 'write external_port_id="2"')
    assert_points_at(text, found, 'external_port_id="-1"')


def test_a_result_of_a_branch_is_one_output():
    text = branch().text
    entry = '<output external_port_id="2" internal_layer_id="3"/>'
    text = changed(text, (entry, entry + entry.replace('"2"', '"3"')))
    told = [found.message for found in irrun.validate(text.encode()).errors if found.code == "E214"]
    assert told == ["layer 3 `then_out` (Result) of the body is mapped twice"]


def test_a_port_that_was_deleted_is_told_once():
    for text, port in (
        (SOUND, '<port id="1"><dim>2</dim></port>'),
        (LOOP, '<port id="20"/>'),
        (LOOP, '<port id="1" precision="FP32"/>'),
    ):
        (found,) = irrun.validate(changed(text, (port, "")).encode()).errors
        assert found.code == "E206"


def test_an_output_port_that_was_deleted_is_told_once(tmp_path):
    net = Model()
    parts = net.layer(
        "Split", [net.parameter("x", "f32", (6,)), net.constant(np.int64(0))], [("f32", (2,))] * 3, num_splits="3"
    )
    for part in parts:
        net.result(part)
    net.layers[2] = net.layers[2].replace('<port id="4" precision="FP32"><dim>2</dim></port>', "")
    assert [found.code for found in irrun.validate(net.save(tmp_path)).diagnostics] == ["E206"]


def test_a_parameter_that_is_mapped_twice_takes_the_value_of_another_one():
    text = changed(
        loop().text, ('external_port_id="2" internal_layer_id="1"', 'external_port_id="2" internal_layer_id="2"')
    )
    assert [found.code for found in irrun.validate(text.encode(), loop().weights).errors] == ["E214"]


def test_what_a_body_gives_whose_layers_depend_on_each_other_is_not_judged():
    one, other = 'from-layer="7" from-port="2" to-layer="10"', 'from-layer="5" from-port="1" to-layer="6"'
    text = loop().text
    swapped = one.replace(one[: one.index(" to")], other[: other.index(" to")])
    text = changed(text, (one, swapped), (other, other.replace(other[: other.index(" to")], one[: one.index(" to")])))
    (found,) = irrun.validate(text.encode(), loop().weights).errors
    assert found.code == "E209"


def test_an_output_port_that_several_edges_name_and_that_is_not_there_is_told_once():
    lost = changed(SOUND, ('<output><port id="0"', '<output><port id="7"'))
    assert lost.count('from-layer="0"') == 2
    (found,) = irrun.validate(lost.encode()).errors
    assert (found.code, found.message) == ("E206", "layer 0 `x` (Parameter) has no output port 0")
    assert [note.message for note in found.notes] == ["this edge names it, too"]


def stored(folder, version, layer=None, edge=None):
    """What is wrong with a variable that a sum is stored in, where a layer or an edge is left out."""
    net = Model()
    state = {"variable_id": "v"} | ({"variable_type": "f32", "variable_shape": "2"} if version == "opset6" else {})
    (read,) = net.layer("ReadValue", [net.parameter("x", "f32", (2,))], [("f32", (2,))], version, **state)
    (summed,) = net.layer("Abs", [read], [("f32", (2,))])
    net.layer("Assign", [summed], [("f32", (2,))], version, variable_id="v")
    net.result(read)
    for items, number in ((net.layers, layer), (net.edges, edge)):
        if number is not None:
            del items[number]
    return [found.code for found in irrun.validate(net.save(folder)).errors]


def test_what_a_lost_layer_or_edge_leaves_of_a_variable_is_not_reported(tmp_path):
    assert stored(tmp_path, "opset6") == stored(tmp_path, "opset3") == []
    assert stored(tmp_path, "opset6", layer=4) == ["E205"]
    assert stored(tmp_path, "opset3", edge=1) == ["E208"]


def reduced(folder, old, new):
    """The errors and warnings of a sum over rows that a scaling follows, with one edge that is written otherwise."""
    net = Model()
    x, axes = net.parameter("x", "f32", (2, 3)), net.constant(np.array([1]))
    (scaled,) = net.layer("Multiply", [x, net.constant(np.ones((1, 3), np.float32))], [("f32", (2, 3))])
    (summed,) = net.layer("ReduceSum", [scaled, axes], [("f32", (2,))], keep_dims="false")
    (last,) = net.layer("Abs", [summed], [("f32", (2,))])
    net.result(last)
    path = net.save(folder)
    lines = path.read_text().split("\n")
    edge = next(number for number, line in enumerate(lines) if line == f"<edge {old}/>")
    lines[edge] = f"<edge {new}/>"
    path.write_text("\n".join(lines))
    found = [each for each in irrun.validate(path).diagnostics if each.severity != "info"]
    return edge + 1, found


WRONG_ENDS = [
    (
        "E207",
        'from-layer="3" from-port="2" to-layer="4" to-port="0"',
        'from-layer="3" from-port="2" to-layer="5" to-port="0"',
        "0 of layer 4 `ReduceSum_4`",
    ),
    (
        "E207",
        'from-layer="1" from-port="0" to-layer="4" to-port="1"',
        'from-layer="1" from-port="0" to-layer="3" to-port="1"',
        "1 of layer 4 `ReduceSum_4`",
    ),
    (
        "E207",
        'from-layer="0" from-port="0" to-layer="3" to-port="0"',
        'from-layer="0" from-port="0" to-layer="3" to-port="1"',
        "0 of layer 3 `Multiply_3`",
    ),
    (
        "E206",
        'from-layer="1" from-port="0" to-layer="4" to-port="1"',
        'from-layer="1" from-port="0" to-layer="5" to-port="1"',
        "1 of layer 4 `ReduceSum_4`",
    ),
    (
        "E206",
        'from-layer="2" from-port="0" to-layer="3" to-port="1"',
        'from-layer="2" from-port="0" to-layer="3" to-port="7"',
        "1 of layer 3 `Multiply_3`",
    ),
]


@pytest.mark.parametrize(("code", "old", "new", "left"), WRONG_ENDS)
def test_a_wrong_end_of_an_edge_is_told_once_with_the_input_that_it_leaves(code, old, new, left, tmp_path):
    line, (found,) = reduced(tmp_path, old, new)
    assert (found.code, found.line) == (code, line)
    assert f"input port {left}" in found.help
    assert any(f"no edge leads to input port {left}" in note.message for note in found.notes)


def test_nothing_is_said_of_what_a_body_gives_that_two_edges_reach(tmp_path):
    inner = Model()
    rows, axes = inner.parameter("a", "f32", (2, 4)), inner.constant(np.array([0]))
    inner.result(inner.layer("ReduceSum", [rows, axes], [("f32", (1, 4))], keep_dims="true")[0])
    net = Model()
    net.weights = inner.weights
    net.result(net.layer("TensorIterator", [net.parameter("x", "f32", (6, 4))], [("f32", (3, 4))])[0])
    sliced = 'axis="0" start="0" end="-1" stride'
    edges = "".join(inner.edges).replace('to-layer="2" to-port="0"', 'to-layer="3" to-port="0"', 1)
    body = f"""<port_map>
<input external_port_id="0" internal_layer_id="0" {sliced}="2" part_size="2"/>
<output external_port_id="1" internal_layer_id="3" {sliced}="1" part_size="1"/>
</port_map><body><layers>{"".join(inner.layers)}</layers><edges>{edges}</edges></body></layer>"""
    net.layers[1] = net.layers[1].replace("</layer>", body)
    assert [found.code for found in irrun.validate(net.save(tmp_path)).diagnostics] == ["E207"]


def test_a_layer_that_is_not_there_is_told_once(tmp_path):
    text = changed(chain([(0, 1), (1, 2), (2, 3)], 2), (RELU.format(2), ""))
    found = only(tmp_path, text)
    assert found.message == "there is no layer 2 in the model"
    assert (
        found.help == "its ids go from 0 to 3; edges lead to it and from it: was the layer deleted, or its id changed?"
    )
    assert [note.span.line for note in found.notes] == [found.line + 1]


def test_a_second_copy_of_all_layers_is_told_once():
    layers = SOUND[SOUND.index("<layers>") : SOUND.index("<edges>")]
    for text in (SOUND.replace(layers, layers * 2), LOOP.replace(layers, layers * 2)):
        assert [found.code for found in irrun.validate(text.encode()).errors] == ["E220"]


def test_layers_that_were_moved_into_a_second_list_are_known():
    text = SOUND.replace(RESULT, f"</layers><layers>{RESULT}")
    assert [found.code for found in irrun.validate(text.encode()).diagnostics] == ["E220"]


@pytest.mark.parametrize("type", ["ReadValue", "Assign"])
def test_a_layer_of_a_variable_that_is_there_twice_is_told_once(type, tmp_path):
    net = Model()
    first = net.constant(np.zeros((1, 4), np.float32))
    state = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1,4"}
    (read,) = net.layer("ReadValue", [first], [("f32", (1, 4))], "opset6", **state)
    (added,) = net.layer("Add", [read, net.parameter("x", "f32", (1, 4))], [("f32", (1, 4))])
    net.layer("Assign", [added], [("f32", (1, 4))], "opset6", variable_id="v")
    net.result(added)
    net.layers.append(next(layer for layer in net.layers if f'type="{type}"' in layer))
    assert [found.code for found in irrun.validate(net.save(tmp_path)).diagnostics] == ["E203"]


def test_an_op_of_a_package_may_be_called_like_the_end_of_a_graph():
    text = changed(SOUND, ('name="r" type="Result" version="opset1"', 'name="r" type="Results" version="mine"'))
    assert [found.code for found in irrun.validate(text.encode()).errors] == ["E301"]


def test_unreachable_layers_are_one_warning_with_those_that_feed_it(tmp_path):
    found = only(tmp_path, chain([(0, 1), (1, 2), (2, 3), (0, 4)], 3))
    message = "the layer reaches no Result or Assign, nor do the 2 that feed only such layers"
    assert (found.code, found.layer.id, found.message) == ("W904", 3, message)


def test_several_faults_are_found_in_one_run_and_sorted(tmp_path):
    text = changed(
        SOUND,
        ('precision="FP32"', 'precision="?"'),
        ("<dim>2</dim>", "<dim>x</dim>"),
        ('from-layer="1"', 'from-layer="9"'),
    )
    _, diagnostics = read(written(tmp_path, text))
    assert [found.code for found in diagnostics] == ["E210", "E211", "E205"]


def test_execution_graphs_are_refused_but_readable(tmp_path):
    text = changed(SOUND, ('type="Subtract" version="opset1">', 'type="Eltwise"><data execTimeMcs="3"/>'))
    model, (found,) = read(written(tmp_path, text))
    assert found.code == "E110"
    assert len(model.graph.layers) == 3


def test_the_root_tag_is_read_in_any_case_and_the_version_with_blanks(tmp_path):
    for spelling in (" 10", "+10", "\t0010"):
        version = f'version="{spelling}"'
        text = SOUND.replace("<net", "<NET").replace("</net", "</NET").replace('version="11"', version)
        assert read_model(written(tmp_path, text)).version == 10


def test_numbers_with_blanks_behind_them_are_refused_with_what_to_write(tmp_path):
    for old, new, number in (
        ('version="11"', 'version="11&#10;"', "11"),
        ('<layer id="1"', '<layer id=" 1 "', "1"),
        ('to-port="1"', 'to-port="1&#9;"', "1"),
    ):
        _, diagnostics = read(written(tmp_path, changed(SOUND, (old, new))))
        advice = f"write `{number}`: OpenVINO refuses a number with blanks behind it"
        assert [found.help for found in diagnostics] == [advice], new


def test_one_missing_bin_is_one_diagnostic(tmp_path):
    constant = (
        '<layer id="{0}" name="c{0}" type="Const" version="opset1">'
        '<data element_type="f32" shape="2" offset="0" size="8"/>'
        '<output><port id="0" precision="FP32"/></output></layer>\n'
    )
    text = changed(
        SOUND,
        (PARAMETER, constant.format(0) + constant.format(7)),
        (
            'from-layer="0" from-port="0" to-layer="1" to-port="1"',
            'from-layer="7" from-port="0" to-layer="1" to-port="1"',
        ),
    )
    found = only(tmp_path, text)
    assert (found.code, found.line) == ("E501", 2)
    assert "2 Consts have their data" in found.message
    (tmp_path / "elsewhere.bin").write_bytes(bytes(8))
    assert read_model(tmp_path / "model.xml", tmp_path / "elsewhere.bin").weights.size == 8
    _, (found,) = read(tmp_path / "model.xml", tmp_path)
    assert found.code == "E502"
    _, (found,) = read(tmp_path / "model.xml", "a\0b.bin")
    assert found.code == "E502"


def test_a_const_without_data(tmp_path):
    text = changed(SOUND, ('type="Parameter"', 'type="Const"'), ('<data shape="2" element_type="f32"/>', ""))
    assert only(tmp_path, text).code == "E505"


def test_files_that_are_no_model(tmp_path):
    weights = tmp_path / "model.bin"
    weights.write_bytes(bytes(8))
    other = tmp_path / "model.onnx"
    other.write_bytes(b"\x08\x07\x12")
    pipe = tmp_path / "pipe.xml"
    os.mkfifo(pipe)
    codes = {path: read(path)[1][0].code for path in (tmp_path / "none.xml", tmp_path, pipe, weights, other)}
    assert list(codes.values()) == ["E102", "E103", "E103", "E107", "E107"]
    assert read("a\0b.xml")[1][0].code == "E103"
    assert read("/dev/zero")[1][0].code == "E103"


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.ir.reader.MAX_XML_BYTES", 10)
    assert only(tmp_path, SOUND).code == "E104"


def test_read_model_raises_all_errors_but_no_warnings(tmp_path):
    text = changed(
        SOUND, ('precision="FP32"', 'precision="?"'), ('from-layer="1"', 'from-layer="9"'), ('name="sub"', 'name="x"')
    )
    with pytest.raises(IRError) as caught:
        read_model(written(tmp_path, text))
    assert [found.code for found in caught.value.diagnostics] == ["E210", "E205"]


def test_a_bin_that_was_cut_short_is_one_error(tmp_path):
    model = Model()
    for value in (1.0, 2.0, 3.0):
        model.result(model.constant(np.float32([value, value])))
    path = model.save(tmp_path)
    path.with_suffix(".bin").write_bytes(model.weights[:10])
    (found,) = read(path)[1]
    assert found.code == "E503"
    assert found.message.startswith("2 Consts lie beyond the end of")
    assert found.message.endswith("which lacks 14 bytes")


def test_text_of_a_dim_may_be_in_a_section_and_that_of_old_tools_is_theirs(tmp_path):
    old = "<quantization_parameters><config>{}</config></quantization_parameters>"
    text = changed(SOUND, ("<dim>2</dim>", "<dim><![CDATA[2]]></dim>"), ("</net>", f"{old}</net>"))
    assert irrun.validate(text.encode()).diagnostics == []
    (found,) = irrun.validate(changed(text, ("<edges>", "<edges>two<![CDATA[three]]>")).encode()).diagnostics
    assert (found.code, found.message[-22:]) == ("W907", "and so in 1 more place")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_read_with_and_without_a_mark(encoding):
    assert irrun.validate(SOUND.encode(encoding)).diagnostics == []


@pytest.mark.parametrize("version", ["opset", "opset0", "Opset1", "extension", "experimental"])
def test_a_const_is_of_an_operation_set_too(version, tmp_path):
    model = Model()
    model.result(model.constant(np.float32([1])))
    path = model.save(tmp_path)
    path.write_text(changed(path.read_text(), ('type="Const" version="opset1"', f'type="Const" version="{version}"')))
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.layer.type) == ("E301", "Const")


def test_a_layer_that_is_there_twice_is_one_error(tmp_path):
    """Not that its names are there twice, too, nor what comes of edges that may be meant for either."""
    model = Model()
    x = model.parameter("x", "f32", (2, 3))
    (y,) = model.layer("ReLU", [x], [("f32", (2, 3))], names=["y"])
    axes = model.constant(np.array([1]))
    model.result(model.layer("ReduceSum", [y, axes], [("f32", (2,))], names=["z"], keep_dims="false")[0])
    path = model.save(tmp_path)
    text = path.read_text()
    for number in range(5):
        start = text.index(f'<layer id="{number}"')
        layer = text[start : text.index("</layer>", start) + len("</layer>")]
        (found,) = irrun.validate(text.replace(layer, f"{layer}\n{layer}").encode(), model.weights).diagnostics
        assert (found.code, found.layer.id) == ("E203", number)


@pytest.mark.parametrize("name", [" out", "a, out", "out "])
def test_blanks_around_names_of_tensors_are_told_as_parts_of_them(name, tmp_path):
    net = Model()
    net.result(net.layer("Abs", [net.parameter("x", "f32", (2,))], [("f32", (2,))], names=[name])[0])
    path = net.save(tmp_path)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.layer.type) == ("W917", "Abs")
    path.write_text(path.read_text().replace(name, name.replace(" ", "")))
    assert irrun.validate(path).diagnostics == []


def test_an_assign_of_opset3_stores_what_depends_on_its_read_value(tmp_path):
    def model(version, kept):
        net = Model()
        x = net.parameter("x", "f32", (2,))
        data = {"variable_id": "v"} if version == "opset3" else {"variable_type": "f32", "variable_shape": "2"}
        (state,) = net.layer("ReadValue", [x], [("f32", (2,))], version, **data | {"variable_id": "v"})
        net.layer("Assign", [state if kept else x], [("f32", (2,))], version, variable_id="v")
        net.result(state)
        return net.save(tmp_path)

    for version, kept in (("opset3", True), ("opset6", True), ("opset6", False)):
        assert not irrun.validate(model(version, kept)).errors
        ov.Core().read_model(tmp_path / "model.xml")
    (found,) = irrun.validate(model("opset3", False)).errors
    assert (found.code, found.layer.type) == ("E219", "Assign")
    with pytest.raises(RuntimeError, match="find variable"):
        ov.Core().read_model(tmp_path / "model.xml")


SAMPLE = Path("samples/cnn/model.xml")


def moved(line, other):
    """The sample with a line and the next one exchanged, the first of them that begin so."""
    lines = SAMPLE.read_bytes().split(b"\n")
    at = next(
        at
        for at, (one, two) in enumerate(pairwise(lines))
        if at > 14 and one.strip().startswith(line) and two.strip().startswith(other)
    )
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return b"\n".join(lines), at + 1


@pytest.mark.parametrize(
    ("line", "other", "code", "message", "behind"),
    [
        (b"</layer>", b"<layer", "E220", "<layer> is not read in another <layer>", 0),
        (b"<layer", b"<data", "E220", "<data> is not read in <layers>", 0),
        (b"<data", b"<output>", "E220", "<data> is not read in <output>", 1),
        (b"<data", b"<input>", "E220", "<data> is not read in <input>", 1),
        (b"</port>", b"<port", "E220", "<port> is not read in another <port>", 0),
        (b"<dim>", b"</port>", "W907", None, 1),
    ],
)
def test_a_line_that_was_moved_is_one_diagnostic(line, other, code, message, behind):
    content, place = moved(line, other)
    (found,) = irrun.validate(content, SAMPLE.with_suffix(".bin").read_bytes()).diagnostics
    assert (found.code, found.line) == (code, place + behind)
    assert message in (None, found.message)
