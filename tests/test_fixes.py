"""What `irrun validate --fix` does: which defects it mends, and that it changes nothing else."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun as command
from corpus import PARTS, defects
from ir_builder import Model

import irrun
from irrun.check.fixes import with_fixes
from irrun.check.fixes.application import mended
from irrun.ir.text_edits import Edit, apply

SAMPLE = Path(__file__).parents[1] / "samples" / "cnn" / "model.xml"
STEP = 2
"""Of the defects so many are passed over to come to the next one, for time."""

INVALID = sorted((Path(__file__).parent / "invalid").glob("*.xml"))

SAFE: dict[str, dict[str, int]] = {
    "files": {
        "E101": 4, "E106": 1, "E109": 1,
    },
    "graphs": {
        "E201": 15, "E202": 10, "E203": 10, "E204": 8, "E205": 18, "E206": 12, "E207":
        10, "E208": 10, "E210": 6, "E211": 7, "E220": 14, "E221": 2, "E302": 8, "E306": 7, "W901": 4, "W902":
        3, "W907": 3, "W908": 8,
    },
    "families": {
        "E210": 39, "E213": 1, "E220": 11, "E301": 3, "W906": 5, "W907": 22, "W908": 26, "W931":
        32, "W932": 25,
    },
    "attributes": {
        "E306": 123, "E307": 157, "E401": 3,
    },
    "constants": {
        "E217": 6, "E503": 6, "E504": 12, "E505": 4, "E506": 13, "E508": 5, "W905": 2,
    },
    "signatures": {
        "E301": 101, "W931": 81, "W932": 38,
    },
    "bodies": {
        "E201": 5, "E202": 13, "E203": 3, "E205": 1, "E207": 1, "E208": 5, "E213": 11, "E214": 4, "E215": 7,
        "E217": 2, "E301": 2, "E307": 4, "W908": 1, "W932": 7,
    },
    "constraints": {},
}  # fmt: skip
"""Defects that a safe fix mends, by part and code; the corpus changes with its models, so half will do."""


@pytest.mark.parametrize("part", PARTS)
def test_safe_fixes_of_the_corpus_leave_nothing_of_what_they_mend(part, tmp_path):
    path, weights = tmp_path / "model.xml", tmp_path / "model.bin"
    safe: Counter[str] = Counter()
    for defect in islice(defects(part), 0, None, STEP):
        path.write_bytes(defect.xml)
        weights.unlink(missing_ok=True)
        if defect.weights is not None:
            weights.write_bytes(defect.weights)
        report = with_fixes(irrun.validate(path))
        fixed = [found for found in report.diagnostics if any(fix.safe for fix in found.fixes)]
        if not fixed:
            continue
        result = mended(path, defect.xml)
        left = {(found.code, found.layer) for found in result.report.diagnostics}
        assert not [str(found) for found in fixed if (found.code, found.layer) in left], str(defect)
        before = {found.code for found in report.errors}
        new = [found for found in result.report.errors if found.code in before and found.fixes and found.fixes[0].safe]
        assert not new, str(defect)
        safe.update(found.code for found in fixed)
    assert {code: count for code, count in SAFE[part].items() if safe[code] < count // 2} == {}, dict(safe)


def fixed(content: bytes, tmp_path: Path, **options: bool) -> bytes:
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    return mended(path, content, **options).content


def sample_defects() -> bytes:
    text = SAMPLE.read_bytes()
    for old, new in (
        (b'type="ReLU"', b'type="Relux"'),
        (b'strides="2, 2"', b'strides="2; 2"'),
        (b"opset1", b"Opset 1"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("breaks", ["\n", "\r\n"])
def test_line_ends_marks_and_encodings_stay(encoding, breaks, tmp_path):
    def written(text: bytes) -> bytes:
        lines = text.decode().replace("Relu_50", "Relü_50").replace('<?xml version="1.0"?>', declaration)
        return lines.replace("\r\n", "\n").replace("\n", breaks).encode(encoding)

    declaration = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
    assert fixed(written(sample_defects()), tmp_path) == written(SAMPLE.read_bytes())


def test_a_model_on_one_line(tmp_path):
    def joined(text: bytes) -> bytes:
        return b"".join(line.strip() for line in text.splitlines())

    assert fixed(joined(sample_defects()), tmp_path) == joined(SAMPLE.read_bytes())


@pytest.mark.parametrize("breaks", [b"\n", b"\r\n", b"\r", b""])
def test_an_attribute_that_is_given_twice_goes_beside_a_shape_of_any_rank(breaks, tmp_path):
    net = Model()
    state = {"variable_id": "v", "variable_type": "f32", "variable_shape": "..."}
    (read,) = net.layer("ReadValue", [net.constant(np.zeros(4, np.float32))], [("f32", (4,))], "opset6", **state)
    net.layer("Assign", [read], [("f32", (4,))], "opset6", variable_id="v")
    net.result(read)
    path = net.save(tmp_path)
    sound = path.read_bytes().replace(b"\n", breaks)
    for name in (b'id="1"', b'variable_id="v"'):
        assert mended(path, sound.replace(name, name + b" " + name, 1)).content == sound


def test_what_changes_results_needs_unsafe(tmp_path):
    text = SAMPLE.read_bytes().replace(b'auto_pad="explicit"', b'auto_pda="same_upper"', 1)
    assert fixed(text, tmp_path) == text
    assert b'auto_pad="same_upper"' in fixed(text, tmp_path, unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'dilations="1, 1"', b'dilations="2, 2"'),
        (b'strides="2, 2"', b'strides="1, 1"'),
        (b'kernel="2, 2"', b'kernel="3, 3"'),
        (b'pads_begin="1, 1"', b'pads_begin="0, 0"'),
    ],
)
def test_ports_that_others_confirm_are_not_declared_anew_safely(old, new, tmp_path):
    """What one attribute has changed all ports behind it disprove: it is the attribute that is wrong."""
    text = SAMPLE.read_bytes()
    assert old in text
    changed = text.replace(old, new, 1)
    path = tmp_path / "model.xml"
    path.write_bytes(changed)
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    assert irrun.validate(path).diagnostics
    assert fixed(changed, tmp_path) == changed


MISSPELT = [  # attributes that are needed, and where these stand
    ("Result", "type", "TYPE"),
    ("Convolution", "type", "Type"),
    ("Parameter", "name", "Name"),
    ("ReLU", "version", "Version"),
    ("ReLU", "id", "ID"),
    ("Const", "offset", "offst"),
    ("Const", "element_type", "element_types"),
]


@pytest.mark.parametrize(("type", "name", "written"), MISSPELT)
def test_a_misspelt_attribute_that_is_needed_is_renamed_and_keeps_its_value(type, name, written, tmp_path):
    lines = SAMPLE.read_bytes().decode().split("\n")
    first = next(number for number, line in enumerate(lines) if f'type="{type}"' in line)
    number = next(number for number in range(first, len(lines)) if f" {name}=" in lines[number])
    lines[number] = (
        lines[number].replace(f" {name}=", f" {written}=", 1).replace(f"<layer {name}=", f"<layer {written}=")
    )
    path = tmp_path / "model.xml"
    path.write_bytes("\n".join(lines).encode())
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    (found,) = with_fixes(irrun.validate(path)).diagnostics
    assert (found.line, found.column) == (number + 1, lines[number].index(f" {written}=") + 2)
    assert [fix.title for fix in found.fixes] == [f"rename `{written}` to `{name}`"]
    assert fixed(path.read_bytes(), tmp_path) == SAMPLE.read_bytes()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b' to-layer="', b' to_layer="'),
        (b'<port id="', b'<port Id="'),
        (b' internal_layer_id="', b' internal_layer_ids="'),
        (b' external_port_id="', b' external_port="'),
    ],
)
def test_a_misspelt_end_is_renamed_and_keeps_its_value(right, wrong, tmp_path):
    path, sound = looped(tmp_path)
    content = sound.replace(right, wrong, 1)
    path.write_bytes(content)
    assert [found.code for found in irrun.validate(path).diagnostics] == ["E201"]
    assert mended(path, content).content == sound


def test_what_may_be_misspelt_on_a_layer_is_not_deleted_safely(tmp_path):
    text = SAMPLE.read_bytes()
    for name in (b"output_name", b"Version", b"pads_begin"):
        changed = text.replace(b'type="MaxPool"', b'type="MaxPool" %s="0,0"' % name, 1)
        assert fixed(changed, tmp_path) == changed
    assert fixed(text.replace(b'type="MaxPool"', b'type="MaxPool" colour="red"', 1), tmp_path) == text


@pytest.mark.parametrize(
    "tag", [b"<edge ", b"<port ", b"<dim>", b"<data ", b"<layer ", b"</port>", b"</layer>", b"<input>"]
)
def test_a_tag_without_its_bracket_is_one_error_there(tag, tmp_path):
    text = SAMPLE.read_bytes()
    at = text.index(tag, text.index(b'type="Convolution"'))
    content = text[:at] + text[at + 1 :]
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.line) == ("E101", text[:at].count(b"\n") + 1)
    assert found.message.startswith("`<` is missing before")
    assert fixed(content, tmp_path) == text


OTHER_NAMES = [  # of attributes that the op has; the last ones are required, so that without them there is an error
    ("MatMul", "opset1", {"transB": "true"}, "transpose_b"),
    ("MatMul", "opset1", {"adj_x": "true"}, "transpose_a"),
    ("SoftMax", "opset8", {"dim": "0"}, "axis"),
    ("MatMul", "opset1", {"transB": "perhaps"}, None),
    ("MatMul", "opset1", {"transB": "true", "transpose_b": "false"}, None),
    ("ReLU", "opset1", {"mode": "up", "alpha": "1"}, None),
    ("Concat", "opset1", {"dim": "1"}, "axis"),
]


@pytest.mark.parametrize(("type", "version", "data", "right"), OTHER_NAMES)
def test_what_an_attribute_is_called_elsewhere_is_not_deleted_safely(type, version, data, right, tmp_path):
    net = Model()
    count = 1 if type in ("SoftMax", "ReLU") else 2
    inputs = [net.parameter(name, "f32", (3, 3)) for name in "xy"[:count]]
    net.result(net.layer(type, inputs, [("f32", (3, 6 if type == "Concat" else 3))], version, **data)[0])
    path = net.save(tmp_path)
    content = path.read_bytes()
    renamed = content.replace(f' {next(iter(data))}="'.encode(), f' {right}="'.encode()) if right else None
    assert mended(path, content).content == (renamed if type == "Concat" else content)
    assert mended(path, content, unsafe=True).content == renamed or right is None
    assert all(fix.title.startswith("delete") for _, fix in mended(path, content, unsafe=True).fixes) or right


def test_another_name_is_mended_safely_where_the_layer_fails_without_it(tmp_path):
    net = Model()
    inputs = [net.parameter("x", "f32", (2, 4)), net.parameter("y", "f32", (3, 4))]
    net.result(net.layer("MatMul", inputs, [("f32", (2, 3))], transB="true")[0])
    path = net.save(tmp_path)
    content = path.read_bytes()
    assert mended(path, content).content == content.replace(b"transB", b"transpose_b")


def test_a_word_for_a_boolean_is_what_openvino_goes_on_with_or_needs_unsafe(tmp_path):
    """It ignores what it cannot read: without keep_dims it is false."""
    text = next(path for path in INVALID if path.stem == "unreadable_boolean").read_bytes()
    assert fixed(text, tmp_path) == text
    assert b'keep_dims="true"' in fixed(text, tmp_path, unsafe=True)
    assert b'keep_dims="false"' in fixed(text.replace(b'"yes"', b'"no"'), tmp_path)


def test_errors_that_hide_others_are_mended_round_by_round(tmp_path):
    text = sample_defects().replace(b"<edges>", b"<edge_list>").replace(b"</edges>", b"</edge_list>")
    text = text.replace(b'name="image"', b"name=image", 1) + b"\nwritten by a tool\n"
    assert fixed(text, tmp_path).rstrip() == SAMPLE.read_bytes().rstrip()


def states() -> Model:
    """Abs, Negative and Exp, one behind the other, and a Result of what is stored, too."""
    net = Model()
    x = net.parameter("x", "f32", (2, 3))
    (kept,) = net.layer(
        "ReadValue", [], [("f32", (2, 3))], "opset6", variable_id="v", variable_type="f32", variable_shape="2,3"
    )
    values = [x]
    for type in ("Abs", "Negative", "Exp"):
        values += net.layer(type, values[-1:], [("f32", (2, 3))])
    (added,) = net.layer("Add", [values[-1], kept], [("f32", (2, 3))])
    net.layer("Assign", [added], [("f32", (2, 3))], "opset6", variable_id="v")
    net.result(added)
    return net


def without_edge(net: Model, start: str) -> None:
    net.edges.remove(next(edge for edge in net.edges if start in edge))


def test_a_lost_layer_is_not_mended_by_going_past_it(tmp_path):
    for id in (2, 3, 4):
        net = states()
        del net.layers[id]
        path = net.save(tmp_path)
        content = path.read_bytes()
        assert mended(path, content).content == content
        assert mended(path, content, unsafe=True).content == content
    for id in (2, 3, 4):  # with its edges
        net = states()
        del net.layers[id]
        net.edges = [edge for edge in net.edges if f'-layer="{id}"' not in edge]
        path = net.save(tmp_path)
        assert mended(path, path.read_bytes()).content == path.read_bytes()


def test_an_unread_input_does_not_stand_for_a_lost_one(tmp_path):
    net = Model()
    x, _ = (net.parameter(name, "f32", (2, 3)) for name in "xy")
    net.result(net.layer("Abs", [x], [("f32", (2, 3))])[0])
    path = net.save(tmp_path)
    sound = path.read_bytes()
    misspelt = sound.replace(b'from-layer="0"', b'from-layer="70"')
    assert mended(path, misspelt).fixes == ()  # y can be meant, too
    del net.layers[0]
    path = net.save(tmp_path)
    assert mended(path, path.read_bytes()).fixes == ()


def test_a_layer_whose_id_was_changed_gets_it_back(tmp_path):
    net = states()
    path = net.save(tmp_path)
    sound = path.read_bytes()
    content = sound.replace(b'<layer id="4"', b'<layer id="44"')
    assert mended(path, content).content == sound


def test_an_edge_that_is_lost_comes_back_where_one_value_can_be_meant(tmp_path):
    net = states()
    path = net.save(tmp_path)
    without_edge(net, 'to-layer="4"')
    result = mended(path, net.save(tmp_path).read_bytes())
    assert [fix.title for _, fix in result.fixes] == ["add an edge from layer 3 `Negative_3` (Negative)"]
    for start in ('to-layer="7"', 'to-layer="5" to-port="1"'):  # of a value with other readers, of an output of Assign
        net = states()
        without_edge(net, start)
        path = net.save(tmp_path)
        fixes = [fix for _, fix in mended(path, path.read_bytes(), unsafe=True).fixes]
        assert not any("Assign" in fix.title for fix in fixes)
        if start == 'to-layer="7"':
            assert mended(path, path.read_bytes()).fixes == ()


WRONG_ENDS = [  # which of two layers or ports is at fault tells what they declare
    ('from-layer="4" from-port="1"', 'from-layer="0" from-port="1"', None),
    ('from-layer="4" from-port="1"', 'from-layer="4" from-port="9"', "the same"),
    ('to-layer="3" to-port="0"', 'to-layer="3" to-port="9"', "the same"),
    ('to-layer="3" to-port="0"', 'to-layer="4" to-port="0"', None),
    ('to-layer="3" to-port="0"', 'to-layer="99" to-port="0"', "the same"),
    ('from-layer="1" from-port="0" to-layer="5"', 'from-layer="4" from-port="1" to-layer="5"', None),
]


@pytest.mark.parametrize(("old", "new", "wanted"), WRONG_ENDS)
def test_an_edge_is_mended_where_one_end_can_be_meant(old, new, wanted, tmp_path):
    path = states().save(tmp_path)
    sound = path.read_bytes()
    assert old.encode() in sound
    content = sound.replace(old.encode(), new.encode())
    assert mended(path, content).content == (sound if wanted else content)


def test_no_value_is_connected_that_is_declared_otherwise(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (4, 6))
    first, second, _ = net.layer("Split", [x, net.constant(np.int64(1))], [("f32", (4, 2))] * 3, num_splits="3")
    spare = net.constant(np.ones((3, 3), np.float32))
    net.result(net.layer("Add", [first, second], [("f32", (4, 2))])[0])
    path = net.save(tmp_path)
    content = path.read_bytes()
    old = b'from-layer="2" from-port="2" to-layer="4"'
    assert old in content
    broken = content.replace(old, b'from-layer="%d" from-port="2" to-layer="4"' % spare[0])
    assert mended(path, broken).content == content
    assert mended(path, broken, unsafe=True).content == content


def test_a_port_that_is_lost_takes_no_edge_with_it(tmp_path):
    net = Model()
    parts = [net.parameter(name, "f32", (2, 3)) for name in "xyz"]
    net.result(net.layer("Concat", parts, [("f32", (6, 3))], axis="0")[0])
    path = net.save(tmp_path)
    content = path.read_bytes()
    broken = content.replace(b'<input>\n<port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port>', b"<input>", 1)
    assert broken != content
    assert mended(path, broken).content == broken
    left = mended(path, broken, unsafe=True)
    assert [fix.title for _, fix in left.fixes] == ["delete the edge"]
    assert "E206" not in [found.code for found in left.report.diagnostics]


def test_another_value_does_not_stand_for_an_output_port_that_is_lost(tmp_path):
    net = Model()
    constants = [net.constant(np.full((2, 3), number, np.float32)) for number in (1, 2)]
    (first,) = net.layer("Abs", [constants[0]], [("f32", (2, 3))])
    net.result(net.layer("Add", [first, constants[1]], [("f32", (2, 3))])[0])
    net.layers[1] = re.sub(r"<output>.*</output>\n", "", net.layers[1], flags=re.DOTALL)
    path = net.save(tmp_path)
    assert [found.code for found in irrun.validate(path).errors][-1] == "E206"
    assert mended(path, path.read_bytes()).fixes == ()


def test_what_reads_a_result_may_be_meant_to_read_what_an_op_makes_of_it(tmp_path):
    net = states()
    path = net.save(tmp_path)
    content = path.read_bytes().replace(b'type="Negative" version="opset1"', b'type="Result" version="opset1"')
    assert mended(path, content).content == content
    fixes = [fix.title for _, fix in mended(path, content, unsafe=True).fixes]
    assert fixes[:1] == ["let the edge begin at layer 2 `Abs_2` (Abs)"]


@pytest.mark.parametrize(("port", "id"), [(0, 1), (1, 0), (2, 3), (3, 2), (2, 4), (4, 3)])
def test_of_two_ports_with_one_id_the_one_that_stands_elsewhere_gets_its_own_back(port, id, tmp_path):
    net = Model()
    parts = [net.parameter(name, "f32", (2, 6)) for name in "xy"]
    for part in net.layer("Join", parts, [("f32", (2, 2))] * 3):
        net.result(part)
    path = net.save(tmp_path)
    sound = path.read_bytes()
    place = sound.index(b'type="Join"')
    old, new = b'<port id="%d"' % port, b'<port id="%d"' % id
    content = sound[:place] + sound[place:].replace(old, new, 1)
    assert mended(path, content).content == sound
    pattern = rb'(from-layer="2" from-port|to-layer="2" to-port)="%d"' % port
    counted_otherwise = re.sub(pattern, rb'\1="9"', content)
    assert mended(path, counted_otherwise).content == counted_otherwise


@pytest.mark.parametrize("port", [0, 1, 2])
def test_a_port_that_is_there_twice_goes(port, tmp_path):
    net = Model()
    parts = [net.parameter(name, "f32", (2, 6)) for name in "xy"]
    net.result(net.layer("Add", parts, [("f32", (2, 6))], names=["sum"])[0])
    path = net.save(tmp_path)
    sound = path.read_bytes()
    (element,) = re.findall(rb'<port id="%d".*?</port>\n?' % port, sound[sound.index(b'type="Add"') :], re.DOTALL)[:1]
    at = sound.index(element, sound.index(b'type="Add"'))
    content = sound[:at] + element + sound[at:]
    path.write_bytes(content)
    assert [found.code for found in irrun.validate(path).diagnostics] == ["E204"]
    assert mended(path, content).content.split() == sound.split()


@pytest.mark.parametrize("type", ["ReLU", "Unknown"])
def test_a_result_of_another_type_is_known_by_its_names(type, tmp_path):
    text = SAMPLE.read_bytes()
    assert b"output_names=" in text
    content = text.replace(b'type="Result"', b'type="%s"' % type.encode())
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    assert [found.code for found in irrun.validate(path).diagnostics] == ["E225"]
    assert fixed(content, tmp_path) == text


def test_names_of_an_output_are_not_deleted_safely(tmp_path):
    text = SAMPLE.read_bytes().replace(b'type="SoftMax"', b'type="SoftMax" output_names="scores"', 1)
    assert b"scores" in text
    assert fixed(text, tmp_path) == text


def test_a_word_for_an_element_type_that_the_port_contradicts_needs_unsafe(tmp_path):
    net = Model()
    net.result(net.layer("Convert", [net.parameter("x", "f32", (2,))], [("i64", (2,))], destination_type="bool")[0])
    path = net.save(tmp_path)
    content = path.read_bytes()
    assert mended(path, content).content == content
    assert b'destination_type="boolean"' in mended(path, content, unsafe=True).content
    assert b'destination_type="boolean"' in mended(path, content.replace(b'"I64"', b'"BOOL"')).content


def test_names_that_programs_ask_for_need_unsafe(tmp_path):
    net = Model()
    for name, other in ("xa", "yb"):
        value = net.parameter(name, "f32", (2,))
        net.result(net.layer("ReLU", [value], [("f32", (2,))], names=[other])[0])
    path = net.save(tmp_path)
    sound = path.read_bytes()
    for old, new in ((b'names="b"', b'names="a"'), (b'names="y"', b'names="x"'), (b'name="y"', b'name="x"')):
        assert old in sound, old
        content = sound.replace(old, new, 1)
        assert mended(path, content).content == content
        assert mended(path, content, unsafe=True).content != content


def looped(folder: Path) -> tuple[Path, bytes]:
    """An iterator that adds its first input to what it gets from the iteration before, at first its second input."""
    inner = Model()
    parts = [inner.parameter("a", "f32", (1, 4)), inner.parameter("b", "f32", (3, 4))]
    inner.result(inner.layer("Add", parts, [("f32", (3, 4))])[0])
    net = Model()
    inputs = [net.parameter("x", "f32", (1, 4)), net.parameter("y", "f32", (3, 4))]
    net.result(net.layer("TensorIterator", inputs, [("f32", (3, 4))])[0])
    maps = """<port_map>
<input external_port_id="0" internal_layer_id="0"/>
<input external_port_id="1" internal_layer_id="1"/>
<output external_port_id="2" internal_layer_id="3"/>
</port_map>
<back_edges><edge from-layer="3" to-layer="1"/></back_edges>"""
    layers, edges = "".join(inner.layers), "".join(inner.edges)
    body = f"{maps}<body><layers>{layers}</layers><edges>{edges}</edges></body></layer>"
    net.layers[2] = net.layers[2].replace("</layer>", body)
    path = net.save(folder)
    return path, path.read_bytes()


@pytest.mark.parametrize("type", ["Result", "Parameter"])
def test_an_unknown_type_in_a_body_is_all_that_is_wrong_and_leads_to_no_other_entries(type, tmp_path):
    path, sound = looped(tmp_path)
    inside = sound.index(b"<body>")
    content = sound[:inside] + sound[inside:].replace(b'type="%s"' % type.encode(), b'type="Unknown"', 1)
    path.write_bytes(content)
    assert [found.code for found in irrun.validate(path).errors] == ["E301"]
    assert mended(path, content).content == content


@pytest.mark.parametrize("id", [2, 3, 5])
def test_a_layer_of_a_body_that_is_lost_is_one_error(id, tmp_path):
    """The edges of the body name it, and what else does is the same."""
    path, sound = looped(tmp_path)
    inner = re.search(rb'<body>.*(<layer id="%d".*?</layer>)' % (id - 2), sound, re.DOTALL)
    content = sound.replace(inner[1], b"", 1) if inner else b""
    assert content not in (b"", sound)
    path.write_bytes(content)
    assert [found.code for found in irrun.validate(path).errors] == ["E205"]
    assert mended(path, content).content == content


@pytest.mark.parametrize("type", ["ReadValue", "Assign", "Result"])
def test_a_layer_that_is_lost_is_one_error(type, tmp_path):
    net = states()
    (lost,) = [layer for layer in net.layers if f'type="{type}"' in layer]
    net.layers.remove(lost)
    path = net.save(tmp_path)
    assert [found.code for found in irrun.validate(path).diagnostics] == ["E205"]


def test_an_entry_that_gives_no_output_and_has_no_purpose_is_told(tmp_path):
    path, sound = looped(tmp_path)
    entry = b'<output external_port_id="-1" internal_layer_id="3"/>'
    content = sound.replace(b"</port_map>", entry + b"</port_map>")
    path.write_bytes(content)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.line) == ("W942", content[: content.index(entry)].count(b"\n") + 1)


MAPPED = [
    (b'external_port_id="0" internal_layer_id="0"', b'external_port_id="1" internal_layer_id="0"', True),
    (b'external_port_id="1" internal_layer_id="1"', b'external_port_id="0" internal_layer_id="1"', True),
    (b'external_port_id="0" internal_layer_id="0"', b'external_port_id="0" internal_layer_id="1"', True),
    (b'external_port_id="2" internal_layer_id="3"', b'external_port_id="2" internal_layer_id="1"', True),
    (b'external_port_id="2" internal_layer_id="3"', b'external_port_id="3" internal_layer_id="2"', False),
]


@pytest.mark.parametrize(("old", "new", "certain"), MAPPED)
def test_an_entry_of_a_port_map_is_mended_where_what_is_declared_leaves_one_way(old, new, certain, tmp_path):
    path, sound = looped(tmp_path)
    assert not [found for found in irrun.validate(path).diagnostics if found.severity != "info"]
    assert old in sound
    content = sound.replace(old, new)
    assert mended(path, content).content == (sound if certain else content)


def test_an_entry_is_left_where_either_of_two_can_be_at_fault(tmp_path):
    path, sound = looped(tmp_path)
    alike = sound.replace(b"<dim>1</dim>", b"<dim>3</dim>").replace(b'"1,4"', b'"3,4"')
    content = alike.replace(MAPPED[0][0], MAPPED[0][1])
    assert mended(path, content).content == content
    assert mended(path, content, unsafe=True).content != content


def test_ports_stay_as_declared_behind_a_connection_that_was_mended(tmp_path):
    path = states().save(tmp_path)
    sound = path.read_bytes()
    stale = sound.replace(b'id="1" precision="FP32"><dim>2</dim>', b'id="1" precision="FP32"><dim>5</dim>', 1)
    assert mended(path, stale).content == sound
    content = stale.replace(b'from-layer="3" from-port="1"', b'from-layer="3" from-port="9"')
    result = mended(path, content)
    assert {found.code for found, _ in result.fixes} == {"E206"}
    assert [found.code for found in result.report.warnings] == ["W931"]


@pytest.mark.parametrize("there", [False, True])
def test_an_edge_that_is_the_wrong_way_round_is_turned_or_goes_where_the_right_one_is_there(there, tmp_path):
    path = states().save(tmp_path)
    sound = path.read_bytes()
    right = b'<edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>'
    wrong = b'<edge from-layer="4" from-port="0" to-layer="3" to-port="1"/>'
    assert sound.count(right) == 1
    assert mended(path, sound.replace(right, wrong + right * there)).content == sound


def test_an_output_keeps_its_name_before_an_inner_tensor(tmp_path):
    text = SAMPLE.read_bytes()
    inner = b'precision="FP32" names="logits,probabilities">'
    at = text.index(b'precision="FP32">', text.index(b"<output>", text.index(b'type="Convolution"')))
    text = text[:at] + inner + text[at + len(b'precision="FP32">') :]
    assert fixed(text, tmp_path) == text.replace(b"logits,probabilities", b"logits,probabilities_1")


def test_replacements_have_their_lines_and_columns(tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(sample_defects())
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    report = with_fixes(irrun.validate(path))
    lines = path.read_text().splitlines()
    found = {d.code: d.fixes[0] for d in report.diagnostics}
    part = found["E307"].replacements[0]
    assert lines[part.at[0] - 1][part.at[1] - 1 : part.until[1] - 1] == '"2; 2"'
    assert part.text == '"2, 2"'
    edits = [Edit(p.start, p.end, p.text) for d in report.diagnostics for p in d.fixes[0].replacements]
    assert irrun.validate(path, content=apply(path.read_bytes(), edits)).ok


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_broken_models_get_no_more_errors(path):
    content = path.read_bytes()
    before = irrun.validate(path)
    for unsafe in (False, True):
        assert len(mended(path, content, unsafe=unsafe).report.errors) <= len(before.errors)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(sample_defects())
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    return path


def test_fix_changes_the_file_and_reports_the_result(model):
    done = command("validate", "--fix", model)
    assert model.read_bytes() == SAMPLE.read_bytes()
    assert done.stdout.endswith("ok, 19 layers checked\n")
    assert 'fixed: write type="ReLU" for "Relux"' in done.stderr


def test_diff_changes_nothing(model):
    done = command("validate", "--diff", model)
    assert model.read_bytes() == sample_defects()
    assert done.stdout.startswith(f"--- {model}\n+++ {model}\n@@ ")
    assert [line for line in done.stdout.splitlines() if line[:1] == "+"][1:] != []
    assert sum(line[:1] == "+" for line in done.stdout.splitlines()) == 4
    assert "would be fixed" in done.stderr


def test_what_cannot_be_fixed_is_left_and_fails(model):
    model.write_bytes(model.read_bytes().replace(b'auto_pad="explicit"', b'auto_pad="sideways"', 1))
    done = command("validate", "--fix", model, status=1)
    assert "sideways" in done.stdout
    assert b"Relux" not in model.read_bytes()


def test_codes_that_are_ignored_are_not_fixed(model):
    command("validate", "--fix", "--ignore", "E301", model)
    assert b"Relux" in model.read_bytes()
    assert b'"2; 2"' not in model.read_bytes()


def test_programs_are_told_of_fixes(model):
    found = json.loads(command("validate", "--format", "json", model, status=1).stdout)["diagnostics"]
    assert {fix["title"] for each in found for fix in each["fixes"] if fix["safe"]} == {
        'write type="ReLU" for "Relux"',
        'write strides="2, 2" for "2; 2"',
        'write version="opset1" for "Opset 1"',
    }
    results = json.loads(command("validate", "--format", "sarif", model, status=1).stdout)["runs"][0]["results"]
    change = results[0]["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert change["deletedRegion"].keys() == {"startLine", "startColumn", "endLine", "endColumn"}


def test_standard_input_has_no_file_to_fix(model):
    assert "--diff" in command("validate", "--fix", "-", status=2, stdin=model.read_bytes()).stderr
    command("validate", "--unsafe", model, status=2)
    command("validate", "--fix", "--diff", model, status=2)


def test_a_second_output_gets_a_name_of_its_own_as_its_tensor_does(tmp_path):
    with irrun.build("m") as g:
        for value in g.Split(g.Parameter("f32[2,4]", name="x"), 1, num_splits=2):
            g.Result(value)
    for result in g.model.graph.results:
        g.model.set_attribute(result, "output_names", "res")
        result.inputs[0].port.names = ("res",)
    irrun.write_model(g.model, tmp_path / "m.xml", check=False)
    content = (tmp_path / "m.xml").read_bytes()
    assert mended(tmp_path / "m.xml", content).content == content
    result = mended(tmp_path / "m.xml", content, unsafe=True)
    assert (result.content.count(b'output_names="res_1"'), result.content.count(b' names="res_1"')) == (1, 1)
    assert not result.report.diagnostics


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b'type="Convolution" version="opset1"', b'type="Result" version="opset1"'),  # which ends the graph
        (
            b'type="Const" version="opset1"',
            b'type="EmbeddingSegmentsSum" version="opset1"',
        ),  # of more inputs, in opset3
        (b'type="Const" version="opset1"', b'type="result" version="opset1"'),
        (b'type="Parameter" version="opset1"', b'type="Constant" version="opset1"'),
    ],
)
def test_a_type_that_the_form_of_the_layer_speaks_against_is_not_mended_safely(right, wrong, tmp_path):
    content = SAMPLE.read_bytes().replace(right, wrong, 1)
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    assert irrun.validate(path).errors
    assert mended(path, content).content == content
    assert mended(path, content, unsafe=True).report.diagnostics


@pytest.mark.parametrize(
    ("right", "wrong", "meant"),
    [
        (b'type="Const"', b'type="Cons"', "Const"),
        (b'type="Const"', b'type="Constan"', "Const"),
    ],
)
def test_a_misspelt_type_is_one_that_the_layer_has_the_form_of(right, wrong, meant, tmp_path):
    content = SAMPLE.read_bytes().replace(right, wrong, 1)
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    (found,) = irrun.validate(path).errors
    assert (found.code, found.help) == ("E301", f"did you mean `{meant}`?")
    assert mended(path, content).content == SAMPLE.read_bytes()


@pytest.mark.parametrize(
    ("right", "wrong", "meant"),
    [
        (b'type="Const"', b'type="Coss"', "Cos"),  # which has an input
        (b'type="ReLU"', b'type="Tie"', "Tile"),
        (b'type="Convolution"', b'type="Convolutions"', "Convolution"),
    ],
)
def test_a_misspelt_type_that_the_form_of_the_layer_speaks_against_needs_unsafe(right, wrong, meant, tmp_path):
    content = SAMPLE.read_bytes().replace(right, wrong, 1).replace(b"pads_begin", b"padding_begin", 1)
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    found = next(found for found in irrun.validate(path).errors if found.code == "E301")
    assert found.help == f"did you mean `{meant}`?"
    assert wrong in mended(path, content).content
    assert b'type="%s"' % meant.encode() in mended(path, content, unsafe=True).content


def test_dims_behind_their_port_are_one_warning(tmp_path):
    lines = SAMPLE.read_bytes().split(b"\n")
    at = lines.index(b"\t\t\t\t</port>", 110)
    lines[at - 1], lines[at] = lines[at], lines[at - 1]
    path = tmp_path / "model.xml"
    path.write_bytes(b"\n".join(lines))
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.line) == ("W907", at + 1)
    assert mended(path, path.read_bytes()).content == SAMPLE.read_bytes()
