"""Constants whose bytes do not fit their shape and type: a warning, or an error where a layer cannot be with that."""

import re

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.check.fixes import with_fixes
from irrun.check.fixes.application import mended

TEXT = """<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,3" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
<layer id="1" name="w" type="Const" version="opset1">
<data element_type="{type}" shape="{shape}" offset="{offset}" size="{size}"/>
<output><port id="0" precision="FP32"><dim>3</dim><dim>4</dim></port></output></layer>
<layer id="2" name="mm" type="MatMul" version="opset1"><data transpose_a="false" transpose_b="false"/>
<input><port id="0"/><port id="1"/></input>
<output><port id="2" precision="FP32"><dim>2</dim><dim>4</dim></port></output></layer>
<layer id="3" name="b" type="Const" version="opset1">
<data element_type="f32" shape="1,4" offset="48" size="16"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port></output></layer>
<layer id="4" name="add" type="Add" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0"/><port id="1"/></input>
<output><port id="2" precision="FP32"><dim>2</dim><dim>4</dim></port></output></layer>
<layer id="5" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="4" to-port="0"/>
<edge from-layer="3" from-port="0" to-layer="4" to-port="1"/>
<edge from-layer="4" from-port="2" to-layer="5" to-port="0"/></edges></net>
"""
"""The constant `w` is described in line 5, and read in line 7, by the port of line 8."""


def model(folder, *, type="f32", shape="3,4", offset=0, size=48, length=64):
    path = folder / "model.xml"
    path.write_text(TEXT.format(type=type, shape=shape, offset=offset, size=size))
    path.with_suffix(".bin").write_bytes(np.arange(length // 4, dtype=np.float32).tobytes())
    return path


def told(path):
    return [(d.code, d.line) for d in irrun.validate(path).diagnostics]


@pytest.mark.parametrize(
    ("changed", "reader", "says"),
    [
        ({"type": "f16"}, 8, "`B` is f16, but `A` is f32"),
        ({"shape": "2,4"}, 7, "rows of `A` have 3 elements, but columns of `B` have 2"),
        ({"shape": "0,4"}, 7, "columns of `B` have 0"),
        ({"shape": "3,2"}, 13, "`a` is [2, 2] and `b` is [1, 4]"),
    ],
)
def test_what_nothing_can_be_computed_with_is_one_error_at_the_constant(tmp_path, changed, reader, says):
    path = model(tmp_path, **changed)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.line) == ("E511", 5)
    assert found.notes[0].span.line == reader
    assert says in found.notes[0].message
    with pytest.raises(irrun.IRError):
        irrun.GraphExecutor(path)


def test_what_can_be_computed_stays_a_warning_and_runs(tmp_path):
    path = model(tmp_path, size=52, length=68)
    assert ("W905", 5) in told(path)
    result = irrun.GraphExecutor(path).run(np.ones((2, 3), np.float32))[0]
    weights = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(result, np.ones((2, 3), np.float32) @ weights + np.arange(12, 16, dtype=np.float32))


def test_a_harmless_doubt_is_not_blamed_for_what_is_wrong_behind_it(tmp_path):
    path = model(tmp_path, size=52, length=68)
    path.write_text(path.read_text().replace('shape="1,4" offset="48" size="16"', 'shape="1,3" offset="48" size="12"'))
    codes = told(path)
    assert ("W905", 5) in codes
    assert ("E511", 11) in codes


def test_a_place_among_bytes_of_others_is_an_error_where_it_makes_one(tmp_path):
    path = model(tmp_path, shape="2,4", offset=20, size=32)
    assert told(path) == [("E511", 5)]


def test_a_model_that_was_read_before_has_the_error_all_the_same(tmp_path):
    read = irrun.validate(model(tmp_path, type="f16")).model
    assert not irrun.validate(read).ok


def test_the_error_has_the_fix_of_the_doubt(tmp_path):
    (found,) = with_fixes(irrun.validate(model(tmp_path, shape="3,2"))).diagnostics
    assert [(fix.title, fix.safe) for fix in found.fixes] == [('write shape="3,4" for "3,2"', True)]


@pytest.mark.parametrize(
    ("changed", "line"), [({"offset": 1}, 5), ({"offset": 4}, 5), ({"offset": 0, "behind": 44}, 11)]
)
def test_of_two_constants_that_overlap_the_one_that_has_moved_is_told(tmp_path, changed, line):
    behind = changed.pop("behind", 48)
    path = model(tmp_path, **changed)
    path.write_text(path.read_text().replace('offset="48"', f'offset="{behind}"'))
    (found,) = (d for d in irrun.validate(path).diagnostics if d.code == "W909")
    assert found.line == line
    assert {note.span.line for note in found.notes} == {5, 11} - {line}


@pytest.mark.parametrize("type", ["f16", "u4", "i8"])
def test_an_element_type_that_size_and_port_disprove_is_restored(tmp_path, type):
    path = model(tmp_path, type=type)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.line, found.column) == ("E511", 5, 7)
    assert mended(path, path.read_bytes()).content == model(tmp_path).read_bytes()


def test_a_shape_that_size_and_port_disprove_is_not_changed_safely_where_it_can_be_computed(tmp_path):
    path = model(tmp_path)
    changed = path.read_text().replace('shape="1,4"', 'shape="1,1"').encode()
    path.write_bytes(changed)
    (found,) = with_fixes(irrun.validate(path)).diagnostics
    assert found.message == "`shape` is `1,1`, but by `size`, 16 bytes, and the port `1,4`"
    assert [fix.safe for fix in found.fixes] == [False]
    assert mended(path, changed, unsafe=True).content == model(tmp_path).read_bytes()


def constants(tmp_path, old, new):
    """A sum of constants that lie one behind the other, and what is said of them."""
    net = Model()
    x = net.parameter("x", "f32", (4,))
    for size in (4, 1, 4, 1, 4):
        (x,) = net.layer("Add", [x, net.constant(np.full(size, size, np.float32))], [("f32", (4,))])
    (x,) = net.layer("Reshape", [x, net.constant(np.array([2, 2]))], [("f32", (2, 2))], special_zero="false")
    net.result(x)
    path = net.save(tmp_path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    lines = path.read_text().split("\n")
    found = [found for found in irrun.validate(path).diagnostics if found.severity != "info"]
    return [(each.code, lines[each.line - 1]) for each in found]


@pytest.mark.parametrize(
    ("place", "moved"),
    [
        ('shape="1" offset="16" size="4"', 4),
        ('shape="1" offset="16" size="4"', 24),
        ('shape="4" offset="20" size="16"', 24),
        ('shape="4" offset="20" size="16"', 16),
        ('shape="1" offset="36" size="4"', 44),
        ('shape="2" offset="56" size="16"', 52),
    ],
)
def test_of_constants_that_overlap_that_is_told_for_which_there_is_room_elsewhere(place, moved, tmp_path):
    new = re.sub(r'offset="\d+"', f'offset="{moved}"', place)
    ((code, line),) = constants(tmp_path, place, new)
    assert code in ("W909", "E511")
    assert new in line


@pytest.mark.parametrize(("offset", "count"), [(0, 12), (2, 11), (66, 4)])
def test_a_constant_that_has_bytes_of_many_is_told_once_with_all_of_them(tmp_path, offset, count):
    net = Model()
    x = net.parameter("x", "f32", (4,))
    for number in range(12):
        (x,) = net.layer("Add", [x, net.constant(np.full(2, number, np.float32))], [("f32", (4,))])
    (last,) = net.layer("Multiply", [x, net.constant(np.ones(22, np.float32))], [("f32", (4,))])
    net.result(last)
    path = net.save(tmp_path)
    path.write_text(path.read_text().replace('shape="22" offset="96"', f'shape="22" offset="{offset}"'))
    report = irrun.validate(path)
    shared = [found for found in report.diagnostics if found.code in ("W909", "E511")]
    assert [found.layer.id for found in shared] == [25]
    assert f"bytes {offset} to " in shared[0].message
    assert ("more" in shared[0].message) == (count > 8)


@pytest.mark.parametrize(("declared", "code"), [((3, 4), "E511"), ((4, 3), "E401")])
def test_a_shape_that_only_the_constant_says_is_its_error(declared, code, tmp_path):
    net = Model()
    x, weights = net.parameter("x", "f32", (2, 3)), net.constant(np.zeros(declared, np.float32))
    net.result(net.layer("MatMul", [x, weights], [("f32", (2, 4))], transpose_a="false", transpose_b="false")[0])
    path = net.save(tmp_path)
    content = path.read_bytes().replace(b'shape="%s"' % ",".join(map(str, declared)).encode(), b'shape="4,3"')
    path.write_bytes(content)
    (found,) = [found for found in irrun.validate(path).diagnostics if found.severity != "info"]
    assert (found.code, found.layer.type) == (code, "Const" if code == "E511" else "MatMul")
    assert mended(path, content).content == content
    if code == "E511":
        assert mended(path, content, unsafe=True).content == content.replace(b'shape="4,3"', b'shape="3,4"')


def sliced(folder, *offsets):
    """A StridedSlice with three constants of three numbers, at these places of the .bin."""
    net = Model()
    inputs = [net.parameter("x", "f32", (2, 3, 4))]
    inputs += [net.constant(np.array(numbers)) for numbers in ([0, 1, 0], [2, 3, 2], [1, 1, 1])]
    masks = dict.fromkeys(("begin_mask", "end_mask"), "0,0,0")
    net.result(net.layer("StridedSlice", inputs, [("f32", (2, 2, 2))], **masks)[0])
    path = net.save(folder)
    text = path.read_text()
    for given, other in zip((0, 24, 48), offsets, strict=True):
        text = text.replace(f'offset="{given}"', f'offset="{other}"', 1) if given != other else text
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("offsets", "code", "layer", "free"), [((0, 24, 0), "E511", 3, 48), ((0, 0, 48), "W909", 2, 24)]
)
def test_a_constant_with_all_bytes_of_another_one_is_where_nobody_reads_as_many(tmp_path, offsets, code, layer, free):
    path = sliced(tmp_path, *offsets)
    (found,) = [each for each in irrun.validate(path).diagnostics if each.severity != "info"]
    assert (found.code, found.layer.id) == (code, layer)
    assert f"no Const reads as many from byte {free} on" in found.message
    assert found.help.startswith(f'is offset="{free}" meant?')
    (tmp_path / "whole").mkdir()
    assert mended(path, path.read_bytes(), unsafe=True).content == sliced(tmp_path / "whole", 0, 24, 48).read_bytes()


def test_equal_constants_that_share_their_bytes_are_nothing_to_say(tmp_path):
    path = sliced(tmp_path, 0, 24, 48)
    assert told(path) == []
    path.write_text(path.read_text().replace('offset="48"', 'offset="24"'))
    path.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes()[:48])
    assert [code for code, _ in told(path)] == ["W931"]


def test_bytes_of_a_layer_that_is_no_const_are_not_missed(tmp_path):
    path = sliced(tmp_path, 0, 24, 24)
    path.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes()[:48])
    path.write_text(path.read_text().replace('type="Const"', 'type="const"', 1))
    assert [code for code, _ in told(path)] == ["E217", "W931"]  # slices of stride 2 are no longer than 1


def test_bytes_of_a_constant_that_is_not_there_are_those_of_no_other_one(tmp_path):
    path = sliced(tmp_path, 0, 24, 24)
    path.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes()[:48])
    text = path.read_text()
    begin = text.index('<layer id="1" ')
    path.write_text(text[:begin] + text[text.index("</layer>", begin) + len("</layer>") :])
    assert [each.code for each in irrun.validate(path).diagnostics if each.severity != "info"] == ["W931", "E205"]
