"""Loops whose port maps contradict their bodies or what their ports declare: the entry to blame, and what is said."""

import re
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from conformance.harness import Case, Const, model_of
from conformance.test_infrastructure import rows, sliced_loop
from defects import bases
from openvino import opset1
from openvino.op import loop
from test_fixes import looped

import irrun

BACK = '<edge from-layer="3" to-layer="0"/> <!-- W943 -->'
TEXT = (Path(__file__).parent / "invalid" / "back_edge_into_a_slice.xml").read_text().replace(BACK, "")
SLICED = '<input axis="0" external_port_id="0" internal_layer_id="0" start="0" end="-1" stride="1" part_size="1"/>'
JOINED = (
    SLICED.replace("input", "output")
    .replace('external_port_id="0"', 'external_port_id="2"')
    .replace('internal_layer_id="0"', 'internal_layer_id="3"')
)
LAST = '<output external_port_id="3" internal_layer_id="3"/>'


def changed(*changes):
    text = TEXT
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def said(text):
    """The diagnostics, each with what stands in its place."""
    lines = text.split("\n")
    found = irrun.validate(text.encode()).diagnostics
    return [(d.code, lines[d.line - 1][d.column - 1 :].split()[0].rstrip("/>"), d.message) for d in found]


def test_a_back_edge_the_other_way_round():
    ((code, place, message),) = said(changed(('from-layer="3" to-layer="1"', 'from-layer="1" to-layer="3"')))
    assert (code, place) == ("E215", 'from-layer="1"')
    assert message.endswith("it is the other way round")


def test_a_result_that_an_entry_names_and_that_is_not_there_is_told_once():
    """Nor that the body has none, or that a layer of it reaches none."""
    text = bases.branch().text
    start = text.index("<then_body>")
    layer = re.search(r'<layer id="(\d+)"[^>]* type="Result".*?</layer>', text[start:], re.DOTALL)
    text = text[:start] + text[start:].replace(layer.group(), "", 1)
    edge = re.search(rf'<edge [^>]*to-layer="{layer.group(1)}"[^>]*/>', text[start:])
    text = text[:start] + text[start:].replace(edge.group(), "", 1)
    assert [each.code for each in irrun.validate(text.encode(), bases.branch().weights).diagnostics] == ["E213"]


SHORTER = "output 0 is declared as [3, 2], as 3 slices give it"


@pytest.mark.parametrize(
    ("new", "code", "place", "message"),
    [
        (SLICED.replace('part_size="1"', 'part_size="2"'), "E401", 'part_size="2"', "its slices have 2 elements"),
        ('<input external_port_id="0" internal_layer_id="0"/>', "E401", "<input", "all 3 elements of axis 0"),
        (SLICED.replace('end="-1"', 'end="0"'), "W944", 'end="0"', SHORTER),
        (SLICED.replace('end="-1"', 'end="1"'), "W944", 'end="1"', SHORTER),
        (SLICED.replace('start="0"', 'start="1"'), "W944", 'start="1"', SHORTER),
        (SLICED.replace('stride="1"', 'stride="2"'), "W944", 'stride="2"', SHORTER),
        (SLICED.replace('axis="0"', 'axis="1"'), "E401", 'axis="1"', "its slices are along axis 1"),
    ],
)
def test_slices_of_an_input(new, code, place, message):
    ((found, where, what),) = said(changed((SLICED, new)))
    assert (found, where) == (code, place)
    assert message in what


@pytest.mark.parametrize(
    ("new", "place", "message"),
    [
        (SLICED.replace('part_size="1"', 'part_size="2"'), 'part_size="2"', "its slices have 2 elements along axis 0"),
        (SLICED.replace('axis="0"', 'axis="1"'), 'axis="1"', "its slices are along axis 1"),
        (
            '<input external_port_id="0" internal_layer_id="0"/>',
            "<input",
            "each iteration gets all 3 elements of axis 0",
        ),
    ],
)
def test_slices_with_which_a_layer_inside_fails(new, place, message):
    text = changed((SLICED, new), ('auto_broadcast="numpy"', 'auto_broadcast="none"'))
    ((code, where, what),) = said(text)
    assert (code, where) == ("E304", place)
    assert what.startswith("the Parameter declares [1, 2], but gets [")
    assert message in what
    ((note,),) = [d.notes[:1] for d in irrun.validate(text.encode()).errors]
    assert note.message.startswith("with that, layer 2 `add_2` (Add) fails: Add-1 C1: `a` is [")


def test_a_layer_inside_fails_for_itself_where_slices_are_not_to_blame():
    text = changed(
        (SLICED, SLICED.replace('axis="0"', 'axis="1"')), ('auto_broadcast="numpy"', 'auto_broadcast="nunpy"')
    )
    assert ("E307", 'auto_broadcast="nunpy"') in [(code, place) for code, place, _ in said(text)]


def test_slices_are_to_blame_where_a_back_edge_hands_on_the_whole_that_the_parameter_declares():
    edge = '<edge from-layer="3" to-layer="1"/>'
    text = changed((edge, '<edge from-layer="3" to-layer="0"/>'))
    number = text.index("<body>")
    text = text[:number] + text[number:].replace('shape="1,2"', 'shape="3,2"', 1)
    found = [(code, place) for code, place, _ in said(text) if code != "W931"]
    assert found == [("W940", 'part_size="1"')]


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        (LAST, JOINED.replace('external_port_id="2"', 'external_port_id="3"'), 'axis="0"', "but all are joined"),
        (JOINED, LAST.replace("3", "2", 1), "<output", "as 3 iterations joined along axis 0 give it"),
        (JOINED, JOINED.replace('axis="0"', 'axis="1"').replace('part_size="1"', 'part_size="2"').replace(
            'stride="1"', 'stride="2"'), 'axis="1"', "but is joined along axis 1"),
    ],
)  # fmt: skip
def test_axes_of_an_output(old, new, place, message):
    ((code, where, what),) = said(changed((old, new)))
    assert (code, where) == ("W944", place)
    assert message in what


READ = """<layer id="5" name="read" type="{type}" version="opset1">
<input>{ports}</input><output><port id="2" precision="FP32"><dim>3</dim><dim>2</dim></port></output></layer>
<layer id="3" name="result_3" type="Result" version="opset1">"""


def with_reader(type, *changes):
    """The first output of the loop goes to a layer outside, which reads the first input, too, if it is an Add."""
    count = 2 if type == "Add" else 1
    ports = "".join(f'<port id="{n}" precision="FP32"><dim>3</dim><dim>2</dim></port>' for n in range(count))
    edge = '<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>'
    edges = [edge.format(2, 2, 5, 0), edge.format(0, 0, 5, 1) if count == 2 else "", edge.format(5, 2, 3, 0)]
    before, after = changed(*changes).rsplit('<layer id="3" name="result_3" type="Result" version="opset1">', 1)
    after = after.replace(edge.format(2, 2, 3, 0), "".join(edges))
    return before + READ.format(type=type, ports=ports) + after


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (SLICED, SLICED.replace('end="-1"', 'end="1"'), 'end="1"'),
        (
            JOINED,
            JOINED.replace('axis="0"', 'axis="1"').replace('="1" part_size="1"', '="2" part_size="2"'),
            'axis="1"',
        ),
    ],
)
def test_what_reads_an_output_that_an_entry_is_to_blame_for_says_no_more(old, new, place):
    assert not said(with_reader("Abs"))
    assert not said(with_reader("Add"))
    ((code, where, _),) = [each for each in said(with_reader("Abs", (old, new))) if each[0] != "I903"]
    assert (code, where) == ("W944", place)
    ((code, where, what),) = [each for each in said(with_reader("Add", (old, new))) if each[0] != "I903"]
    assert (code, where) == ("E310", place)
    assert what.endswith(", with which layer 5 `read` (Add) cannot be computed")


def test_an_attribute_that_an_entry_lacks_and_one_that_nothing_reads_are_one_error():
    text = changed((SLICED, SLICED.replace("axis=", "axi=")), ('auto_broadcast="numpy"', 'auto_broadcast="none"'))
    (found,) = irrun.validate(text.encode()).diagnostics
    assert found.code == "E304"
    notes = [note.message for note in found.notes]
    assert "<input> has no attribute `axi`; it is ignored: did you mean `axis`?" in notes
    assert any(note.startswith("`start`, `end`, `stride`, `part_size` without `axis` mean nothing") for note in notes)


def test_a_constant_with_which_a_body_cannot_be_computed_is_told_outside():
    text = changed(('auto_broadcast="numpy"', 'auto_broadcast="none"'))
    parameter = 'name="parameter_1" type="Parameter" version="opset1">\n\t\t\t<data shape="1,2"'
    assert text.count(parameter) == 1
    const = 'name="one" type="Const" version="opset1"><data offset="0" size="8" shape="{}"'
    sound, weights = text.replace(parameter, const.format("1,2")), bytes(8)
    assert not irrun.validate(sound.encode(), weights).diagnostics
    (found,) = irrun.validate(text.replace(parameter, const.format("1")).encode(), weights).diagnostics
    assert (found.code, found.layer.name) == ("E511", "one")


def test_a_parameter_is_to_blame_where_the_ports_fit_what_it_gets():
    number = TEXT.index("<body>")
    text = TEXT[:number] + TEXT[number:].replace('shape="1,2"', 'shape="3,2"', 1)
    assert [(code, place) for code, place, _ in said(text)] == [("W940", 'shape="3,2"')]


@pytest.mark.parametrize(("declared", "codes"), [("1,4", []), ("2,4", ["E304"]), ("?,4", []), ("3,4", [])])
def test_a_body_is_read_by_sizes_that_its_parameters_declare_and_need_not_get(declared, codes, tmp_path):
    """The Parameter gets [?, 4], and is added to [3, 4]."""
    path, content = looped(tmp_path)
    outside, inside = content.split(b"<port_map>")
    outside = outside.replace(b'shape="1,4"', b'shape="?,4"').replace(b"<dim>1</dim>", b"<dim>-1</dim>")
    inside = inside.replace(b'shape="1,4"', f'shape="{declared}"'.encode()).replace(b"<dim>1</dim>", b"<dim>-1</dim>")
    path.write_bytes(outside + b"<port_map>" + inside)
    assert [found.code for found in irrun.validate(path).diagnostics] == codes
    try:
        ov.Core().read_model(path)
    except RuntimeError:
        assert codes
    else:
        assert not codes


def test_inputs_that_have_changed_places_are_told_once(tmp_path):
    path, content = looped(tmp_path)
    ids = re.compile(rb"(?<=external_port_id=.)[01](?=. i)")
    path.write_bytes(ids.sub(lambda found: b"%d" % (1 - int(found[0])), content))
    (found,) = irrun.validate(path).warnings
    assert found.code == "W940"
    assert found.help.endswith("are the entries of both exchanged?")


def test_outputs_that_have_changed_places_are_not_a_matter_of_axes():
    text = changed((JOINED, JOINED.replace('external_port_id="2"', 'external_port_id="9"')))
    assert sorted(code for code, _, _ in said(text)) == ["W910"]


@pytest.mark.parametrize(
    ("outside", "code"),
    [("1,2", None), ("3,2", None), ("1,1", "E304"), ("2", "E304")],
)
def test_a_value_that_is_handed_on_in_another_shape_than_it_began_with(outside, code):
    given = '<data shape="1,2" element_type="f32"/>'
    port = TEXT[TEXT.index("<output>", TEXT.index(given)) :].partition("</output>")[0]
    other = f'<data shape="{outside}" element_type="f32"/>'
    dims = "".join(f"<dim>{size}</dim>" for size in outside.split(","))
    declared = f'<output><port id="0" precision="FP32">{dims}</port>'
    before, _, after = TEXT.partition(given)
    read = TEXT[TEXT.index('<port id="1"') :].partition("</port>")[0]
    reads = f'<port id="1" precision="FP32">{dims}'
    text = before + other + after.replace(port, declared, 1).replace(read, reads, 1)
    said_of_edges = [(found, place) for found, place, what in said(text) if "the first iteration gets" in what]
    assert said_of_edges == ([] if code is None else [(code, "<edge")])
    told = [found.code for found in irrun.validate(TEXT.replace(given, other, 1).encode()).errors]
    assert told == ([] if outside == "1,2" else ["E310"])  # of the port, which declares [1, 2]


def test_slices_in_the_wrong_direction():
    ((code, place, message),) = said(changed((SLICED, SLICED.replace('stride="1"', 'stride="-1"'))))
    assert (code, place) == ("E401", 'stride="-1"')
    assert "wrong order" in message


def test_axes_of_slices_count_from_the_first_one():
    found = said(changed((SLICED, SLICED.replace('axis="0"', 'axis="-2"'))))
    assert ("E213", 'axis="-2"', "`axis` is -2, but must be 0 or more") in found


def test_results_are_joined_along_an_axis_from_the_end_too():
    text = changed((JOINED, JOINED.replace('axis="0"', 'axis="-2"')))
    ((code, place, _),) = said(text)
    assert (code, place) == ("W944", 'axis="-2"')
    given = {"parameter_0": np.float32([[1, 2], [3, 4], [5, 6]]), "parameter_1": np.float32([[10, 20]])}
    expected, found = (
        [*irrun.GraphExecutor(model.encode(), engine="reference").run(given).values()] for model in (TEXT, text)
    )
    assert [array.shape for array in expected] == [(3, 2), (1, 2)]
    np.testing.assert_equal(found, expected)


def test_the_shapes_of_a_user_are_nothing_that_ports_contradict():
    text = changed((SLICED, SLICED.replace('end="-1"', 'end="1"')))
    report = irrun.validate(text.encode(), shapes={"parameter_0": (7, 2)})
    assert report.diagnostics == []


def loop_of_slices(folder, trips):
    """The text of a Loop that joins what it makes of each row."""
    case = Case("Loop-5", "", sliced_loop, [Const(np.int64(trips)), rows(trips, 2)])
    ov.serialize(model_of(case)[0], folder / "model.xml")
    return (folder / "model.xml").read_text()


def test_slices_that_leave_rows_out_are_said_once(tmp_path):
    text = loop_of_slices(tmp_path, 3).replace('start="0"', 'start="-1"', 1)
    (tmp_path / "model.xml").write_text(text)
    (found,) = irrun.validate(tmp_path / "model.xml").diagnostics
    assert found.code == "W944"
    assert found.message.startswith("start -1, end -1 and stride 1 do not take all 3 elements of axis 0")


def test_more_iterations_than_slices_are_said_once(tmp_path):
    text = loop_of_slices(tmp_path, 4)
    joined = text.index("<output>", text.index('type="Loop"'))
    fewer = text[:joined].replace("<dim>4</dim>", "<dim>3</dim>").replace('shape="4,2"', 'shape="3,2"')
    (tmp_path / "model.xml").write_text(fewer + text[joined:])
    (found,) = irrun.validate(tmp_path / "model.xml").diagnostics
    assert (found.code, found.message[:42]) == ("W949", "`trip_count` is 4, but there are 3 slices:")


def powers(initial, matrix):
    """A Loop that multiplies a row by a matrix three times."""
    value, factor = opset1.parameter([1, 3], np.float32), opset1.parameter([3, 3], np.float32)
    results = [
        opset1.result(opset1.constant(np.array(True))),
        opset1.result(opset1.matmul(value, factor, False, False)),
    ]
    op = loop(opset1.constant(np.int64(3)).output(0), opset1.constant(np.array(True)).output(0))
    op.set_function(ov.Model(results, [value, factor]))
    op.set_special_body_ports([-1, 0])
    op.set_merged_input(value, initial.output(0), results[1].output(0))
    op.set_invariant_input(factor, matrix.output(0))
    return [op.get_iter_value(results[1].output(0), -1)]


def test_a_back_edge_to_a_parameter_that_declares_another_shape(tmp_path):
    case = Case("Loop-5", "", powers, [rows(1, 3), rows(3, 3)])
    path = tmp_path / "model.xml"
    ov.serialize(model_of(case)[0], path)
    text = path.read_text()
    assert irrun.validate(path).diagnostics == []
    edge = text.index("to-layer=", text.index("<back_edges>"))
    id = text[edge : edge + 12]
    other = 'to-layer="1"' if id == 'to-layer="0"' else 'to-layer="0"'
    path.write_text(text[:edge] + text[edge:].replace(id, other, 1))
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.message[:35]) == ("W940", "the first iteration gets [3, 3] as ")


def growing(initial, shape, *, given_out=False, multiplied=False):
    """A Loop that adds ones of a shape to a value three times, or multiplies it by them, and gives the sum of that."""
    value, ones = opset1.parameter(initial.output(0).get_partial_shape(), np.float32), np.ones(shape, np.float32)
    made = opset1.add(opset1.matmul(value, ones, False, False) if multiplied else value, ones)
    total = opset1.reduce_sum(made, [*range(len(shape))], False)
    results = [opset1.result(each) for each in (opset1.constant(np.array(True)), made, total)]
    op = loop(opset1.constant(np.int64(3)).output(0), opset1.constant(np.array(True)).output(0))
    op.set_function(ov.Model(results, [value]))
    op.set_special_body_ports([-1, 0])
    op.set_merged_input(value, initial.output(0), results[1].output(0))
    return op.get_iter_value(results[1 if given_out else 2].output(0), -1)


@pytest.mark.parametrize(
    ("sizes", "shape", "options", "code", "says"),
    [
        ([-1], [1, 3], {}, "W940", "hands on values of another rank only where all that read them do with both"),
        ([-1], [1, 3], {"given_out": True}, "E304", "cannot hand on values of another rank"),
        ([3], [1, 3], {}, "E304", "cannot hand on values of another rank"),
        ([-1], [1, 3, 4], {"multiplied": True}, "E304", None),
    ],
)
def test_a_loop_that_hands_on_values_of_another_rank(sizes, shape, options, code, says, tmp_path):
    x = opset1.parameter(sizes, np.float32)
    ov.serialize(ov.Model([growing(x, shape, **options)], [x]), tmp_path / "model.xml")
    (found,) = irrun.validate(tmp_path / "model.xml").diagnostics
    assert (found.code, found.message[:26]) == (code, "the first iteration gets [")
    rest = "give the result the shape that the Parameter has, or begin with its own"
    says = "layers of the body cannot be computed with what is handed on" if says is None else f"OpenVINO {says}"
    assert found.help == f"{says}: {rest}"
    given = np.float32([1, 2, 3])
    if code == "W940":
        (expected,) = ov.compile_model(tmp_path / "model.xml", "CPU")(given).values()
        assert irrun.GraphExecutor(tmp_path / "model.xml").run([given])[0] == expected == 15
    else:
        with pytest.raises(RuntimeError):
            ov.compile_model(tmp_path / "model.xml", "CPU")(given)


ONE_CAUSE = [
    ("branch", '<input external_port_id="1"', '<input external_port_id="0"', "E401", '<input external_port_id="0"'),
    ("branch", 'shape="2,3"', 'shape="2,103"', "W931", '<port id="0" precision="FP32">'),
    ("branch", 'shape="" element_type="boolean"', 'shape="2,3" element_type="boolean"', "E310", '<port id="0" prec'),
    (
        "loop",
        'shape="1,4" element_type="f32"',
        'shape="1,4" element_type="f64"',
        "E310",
        '<port id="0" precision="FP32"',
    ),
    ("loop", 'shape="1,4" element_type="f32"', 'shape="" element_type="f32"', "E310", '<port id="0" precision="FP32"'),
    ("loop", '<port id="5" precision="FP32"', '<port id="FP16" precision="FP32"', "E202", 'id="FP16"'),
    ("loop", '<output external_port_id="5"', '<output external_port_id="10"', "W910", 'external_port_id="10"'),
    ("iterator", 'element_type="f32"', 'element_type="f64"', "E310", '<port id="0" precision="FP32"'),
    ("iterator", 'shape="2,1,4" element_type="f32"', 'shape="9,1,4" element_type="f32"', "E310", '<port id="0" prec'),
    (
        "state",
        'variable_id="last" variable_type="f32" variable_shape="2,3"',
        'variable_id="last" variable_type="f32" variable_shape="2,0"',
        "E310",
        '<port id="0" precision="FP32"',
    ),
    (
        "branch",
        'shape="2,3" element_type="f32"',
        'shape="2,3" element_type="i64"',
        "E310",
        '<port id="0" precision="FP32"',
    ),
    (
        "iterator",
        '<input external_port_id="1" internal_layer_id="1"/>',
        '<input external_port_id="1" internal_layer_id="1" axis="0"/>',
        "E401",
        'axis="0"',
    ),
    (
        "iterator",
        '<edge from-layer="3" to-layer="1"/>',
        '<edge from-layer="1" to-layer="3"/>',
        "E215",
        'from-layer="1"',
    ),
    ("iterator", '<layer id="3" name="', '<layer id="33" name="', "E205", 'to-layer="3"'),
    (
        "loop",
        '<edge from-layer="7" from-port="2" to-layer="10" to-port="0"/>',
        '<edge from-layer="2" from-port="0" to-layer="10" to-port="0"/>',
        "W904",
        "<layer",
    ),
    (
        "state",
        'variable_id="last" variable_type="f32" variable_shape="2,3"',
        'variable_id="last" variable_type="f32" variable_shape=""',
        "E310",
        '<port id="0" precision="FP32"',
    ),
    ("state", 'type="Assign"', 'type="Assignx"', "E301", 'type="Assignx"'),
    ("state", 'name="last" type="ReadValue"', 'name="last" type="Read"', "E301", 'type="Read"'),
]


@pytest.mark.parametrize(("base", "old", "new", "code", "at"), ONE_CAUSE)
def test_what_follows_from_one_cause_through_a_body_or_a_variable_is_told_there(base, old, new, code, at):
    model = getattr(bases, base)()
    assert old in model.text
    text = model.text.replace(old, new, 1)
    found = irrun.validate(text.encode(), model.weights)
    (told,) = [*found.errors, *found.warnings]
    assert told.code == code
    line = text.split("\n")[told.line - 1]
    assert line[told.column - 1 :].startswith(at) or at in line


TWO_CAUSES = [
    (
        (r'<port id="2" precision="FP32"', '<port id="2" precision="I64"'),
        (r'(type="Add".*?<output>.*?<dim>)2', r"\g<1>3"),
        [("W932", "TensorIterator"), ("W931", "Add")],
    ),
    (
        (r'(<body>.*?element_type=)"f32"', r'\1"i64"'),
        (r'type="Add" (.*?)auto_broadcast="numpy"', r'type="MatMul" \1transpose_a="false" transpose_b="false"'),
        [("E401", "TensorIterator"), ("E401", "MatMul")],
    ),
]
"""Two edits of an iterator and its body, and the layers that it is told of."""


@pytest.mark.parametrize(("outside", "inside", "codes"), TWO_CAUSES)
def test_what_does_not_follow_from_another_cause_is_told_of_a_body(outside, inside, codes):
    model = bases.iterator()
    text = model.text
    for pattern, new in (outside, inside):
        text, count = re.subn(pattern, new, text, count=1, flags=re.DOTALL)
        assert count
    found = irrun.validate(text.encode(), model.weights)
    assert [(each.code, each.layer.type) for each in (*found.errors, *found.warnings)] == codes


def test_entries_that_are_wrong_are_told_together():
    plain = '<input external_port_id="1" internal_layer_id="1"/>'
    changes = [
        (SLICED, SLICED.replace('stride="1"', 'stride="0"')),
        (plain, SLICED.replace('_id="0"', '_id="1"').replace('axis="0"', 'axis="5"')),
        (JOINED, JOINED.replace('part_size="1"', 'part_size="0"')),
    ]
    alone = [said(changed(change)) for change in changes]
    assert all(len(each) == 1 for each in alone)
    assert said(changed(*changes)) == [one for each in alone for one in each]
