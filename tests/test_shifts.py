"""Layers whose ids are off against edges by the same number, as where one was inserted or deleted by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.check.fixes.application import mended

SAMPLES = [Path(f"samples/{name}/model.xml") for name in ("cnn", "transformer-block")]
NEW = (
    b'<layer id="5" name="new" type="ReLU" version="opset1"><input><port id="0" precision="FP32"/></input>'
    b'<output><port id="1" precision="FP32"/></output></layer>\n\t\t<layer id="6"'
)


def layers_off(text, low, high, by):
    def off(match):
        id = int(match[1])
        return b'<layer id="%d"' % (id + by if low <= id < high else id)

    return re.sub(rb'<layer id="(\d+)"', off, text)


def edges_off(text, low, by):
    def off(match):
        id = int(match[2])
        return b'%s-layer="%d"' % (match[1], id + by if id >= low else id)

    return re.sub(rb'(from|to)-layer="(\d+)"', off, text)


def checked(path, text):
    return irrun.validate(text, path.with_suffix(".bin").read_bytes()).diagnostics


def fixed(path, text):
    return mended(Path("model.xml"), text, path.with_suffix(".bin").read_bytes())


@pytest.mark.parametrize("path", SAMPLES)
@pytest.mark.parametrize(
    ("low", "high", "by", "how"),
    [
        (5, 999, 1, "one higher"),
        (5, 999, -1, "one lower"),
        (5, 999, 2, "two higher"),
        (0, 999, 1, "one higher"),
        (4, 9, 1, "one higher"),
        (4, 9, -1, "one lower"),
    ],
)
def test_ids_that_are_off_are_told_once_where_that_begins(path, low, high, by, how):
    text = path.read_bytes()
    content = layers_off(text, low, high, by)
    (found,) = checked(path, content)
    first = text[: text.index(b'<layer id="%d"' % low)].count(b"\n") + 1
    assert (found.code, found.line) == ("E226", first)
    assert f", are {how} than those that edges have" in found.message
    assert fixed(path, content).content == text


@pytest.mark.parametrize("path", SAMPLES)
def test_edges_may_be_off_as_well(path):
    text = path.read_bytes()
    (found,) = checked(path, edges_off(text, 5, 1))
    assert (found.code, found.layer.id) == ("E226", 5)
    assert not fixed(path, edges_off(text, 5, 1)).report.diagnostics
    (found,) = checked(path, edges_off(text, 5, -1))  # where two layers have one id in edges
    assert found.code == "E226"
    assert fixed(path, edges_off(text, 5, -1)).content == edges_off(text, 5, -1)


@pytest.mark.parametrize("path", SAMPLES)
def test_a_layer_that_was_inserted_gets_an_id_of_its_own(path):
    content = layers_off(path.read_bytes(), 5, 999, 1).replace(b'<layer id="6"', NEW, 1)
    assert sorted(found.code for found in checked(path, content)) == ["E208", "E226"]
    result = fixed(path, content)
    assert [found.code for found in result.report.diagnostics] == ["E208"]
    assert len(set(re.findall(rb'<layer id="(\d+)"', result.content))) == result.content.count(b"<layer id")


@pytest.mark.parametrize("path", SAMPLES)
def test_edges_of_a_layer_that_was_deleted_are_told_by_its_id(path):
    text = re.sub(rb'<layer id="5".*?</layer>\s*', b"", path.read_bytes(), count=1, flags=re.DOTALL)
    found, other = checked(path, layers_off(text, 6, 999, -1))
    assert (found.code, other.code) == ("E226", "E205")
    assert other.message == "there is no layer that edges have the id 5 for"
    content = layers_off(text, 6, 999, -1)
    assert fixed(path, content).content == content


def test_a_body_has_ids_of_its_own():
    path = Path("samples/stateful-loop/model.xml")
    text = path.read_bytes()
    begin, end = text.index(b"<body>"), text.index(b"</body>")
    content = text[:begin] + layers_off(text[begin:end], 4, 999, 1) + text[end:]
    found = checked(path, content)
    assert [each.code for each in found if each.severity == "error"][:1] == ["E226"]
    assert any("in the body of layer" in note.message for note in found[0].notes)


@pytest.mark.parametrize("path", SAMPLES)
def test_single_edges_that_do_not_fit_are_no_shift(path):
    text = path.read_bytes()
    for number in (3, 6, 9):
        edges = [*re.finditer(rb"<edge [^>]*>", text)][number : number + 2]
        content = text[: edges[0].start()] + text[edges[1].end() :]
        assert "E226" not in [found.code for found in checked(path, content)]


@pytest.mark.parametrize("path", SAMPLES)
@pytest.mark.parametrize("id", [2, 6, 7])
def test_the_id_of_one_layer_is_no_shift(path, id):
    text = path.read_bytes()
    content = text.replace(b'<layer id="%d"' % id, b'<layer id="1%03d"' % id, 1)
    found = checked(path, content)
    assert [each.code for each in found if each.severity == "error"] == ["E205"]


@pytest.mark.parametrize("by", [1, 5])
def test_ports_that_are_off_are_told_once_at_their_layer(by):
    path = SAMPLES[0]
    text = path.read_bytes()
    begin, end = text.index(b'<layer id="2"'), text.index(b'<layer id="3"')
    layer = re.sub(rb'<port id="(\d+)"', lambda match: b'<port id="%d"' % (int(match[1]) + by), text[begin:end])
    content = text[:begin] + layer + text[end:]
    (found,) = checked(path, content)
    assert (found.code, found.line, found.layer.id) == ("E206", 29, 2)
    assert found.message.endswith(f"are higher by {by} than those that edges have")
    assert fixed(path, content).content == text


def pooled(tmp_path: Path, old: str = "", new: str = "") -> tuple[Path, bytes]:
    """A layer of two outputs, of other types, both of which are read."""
    model = Model()
    x = model.parameter("x", "f32", (1, 1, 4, 4))
    data = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2"}
    shape = (1, 1, 2, 2)
    values, indices = model.layer("MaxPool", [x], [("f32", shape), ("i64", shape)], version="opset8", **data)
    y = model.layer("Add", [values, model.constant(np.zeros((), np.float32))], [("f32", shape)])[0]
    model.result(y)
    model.result(indices)
    path = model.save(tmp_path)
    text = path.read_text()
    begin = text.index('<layer id="1"')
    return path, (text[:begin] + text[begin:].replace(old, new, 1)).encode() if old else text.encode()


@pytest.mark.parametrize(
    ("right", "wrong", "side"),
    [(0, 1, "input"), (0, 2, "input"), (1, 0, "output"), (2, 0, "output")],
)
def test_a_port_that_has_the_id_of_one_on_the_other_side_is_told_alone(right, wrong, side, tmp_path):
    path, content = pooled(tmp_path, f'<port id="{right}"', f'<port id="{wrong}"')
    (found,) = checked(path, content)
    assert (found.code, found.layer.id) == ("E206", 1)
    assert found.message == (
        f"two ports of layer 1 `MaxPool_1` (MaxPool) have the id {wrong}, and edges name an {side} port {right}, which "
        "is not there"
    )
    assert found.help == f"give this {side} port the id {right}: it is the only one that no edge names"
    assert [note.message for note in found.notes] == ["the other port of this id"]
    assert fixed(path, content).content == pooled(tmp_path)[1]


@pytest.mark.parametrize("ids", [(0, 1), (0, 2)])
def test_ids_of_an_input_and_an_output_that_are_exchanged_are_told_at_their_layer(ids, tmp_path):
    low, high = ids
    path, text = pooled(tmp_path)
    begin, end = text.index(b'<layer id="1"'), text.index(b'<layer id="2"')
    other = {b"%d" % low: b"%d" % high, b"%d" % high: b"%d" % low}
    layer = re.sub(rb'(?<=port id=")\d', lambda match: other.get(match[0], match[0]), text[begin:end])
    content = text[:begin] + layer + text[end:]
    (found,) = checked(path, content)
    assert (found.code, found.layer.id, len(found.notes)) == ("E206", 1, 1)
    assert found.message == f"the ids of ports {low} and {high} of layer 1 `MaxPool_1` (MaxPool) seem to be exchanged"
    assert f"edges lead to an input port {low}, and begin at an output port {high}" in found.help
    assert fixed(path, content).content == text


def test_one_port_that_is_off_is_told_at_its_edge():
    path = SAMPLES[0]
    content = path.read_bytes().replace(b'<port id="2" precision="FP32">', b'<port id="7" precision="FP32">', 1)
    (found,) = checked(path, content)
    assert found.message == "layer 2 `Convolution_47` (Convolution) has no output port 2"
