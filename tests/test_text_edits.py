"""Edits of the text of a model: what is asked for changes, and no other byte."""

import pytest

import irrun
from irrun.ir import text_edits
from irrun.ir.text_edits import Edit, apply, mark_precise, set_attribute
from irrun.ir.xml import parse

TEXT = """<?xml version="1.0"?>
<net name="m" version="11">
\t<layers>
\t\t<layer id="0" name="x" type="Parameter" version="opset1">
\t\t\t<data shape="2" element_type="f32" />
\t\t\t<output>
\t\t\t\t<port id="0" precision="FP32" />
\t\t\t</output>
\t\t</layer>
\t\t<layer id="1" name="r" type="Result" version="opset1"><!-- > -->
\t\t\t<input>
\t\t\t\t<port id="0" />
\t\t\t</input>
\t\t</layer>
\t</layers>
\t<edges>
\t\t<edge from-layer="0" from-port="0" to-layer="1" to-port="0" />
\t</edges>
</net>
"""
MARK = '\n\t\t\t<rt_info>\n\t\t\t\t<attribute name="precise" version="0" />\n\t\t\t</rt_info>'


def marked(text, *layers):
    return mark_precise(text.encode(), layers).decode()


def is_precise(text, name):
    return irrun.read_model(text if isinstance(text, bytes) else text.encode()).layer(name).precise


def test_a_mark_comes_behind_the_data():
    text = marked(TEXT, "x")
    assert text == TEXT.replace('element_type="f32" />', f'element_type="f32" />{MARK}')
    assert is_precise(text, "x")
    assert not is_precise(text, "r")


def test_a_layer_without_data_is_marked_at_its_front():
    text = marked(TEXT, 1)
    assert text == TEXT.replace("<!-- > -->", "").replace(
        'type="Result" version="opset1">', f'type="Result" version="opset1">{MARK}<!-- > -->'
    )
    assert is_precise(text, "r")


def test_layers_are_marked_once_and_together():
    both = marked(TEXT, "x", 0, "r", "x")
    assert both.count("precise") == 2
    assert marked(both, "r", "x") == both
    assert marked(TEXT) == TEXT


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ("<rt_info/>", '<rt_info>\n\t\t\t\t<attribute name="precise" version="0" />\n\t\t\t</rt_info>'),
        ('<rt_info a="/>" />', '<rt_info a="/>">\n\t\t\t\t<attribute name="precise" version="0" />\n\t\t\t</rt_info>'),
        ("<rt_info></rt_info>", '<rt_info>\n\t\t\t\t<attribute name="precise" version="0" />\n\t\t\t</rt_info>'),
        (
            "<rt_info>\n\t\t\t\t<!-- why -->\n\t\t\t</rt_info>",
            '<rt_info>\n\t\t\t\t<attribute name="precise" version="0" />\n\t\t\t\t<!-- why -->\n\t\t\t</rt_info>',
        ),
        (
            '<rt_info>\n\t\t\t\t<attribute name="a" version="0"></attribute >\n\t\t\t</rt_info>',
            '<rt_info>\n\t\t\t\t<attribute name="a" version="0"></attribute >'
            '\n\t\t\t\t<attribute name="precise" version="0" />\n\t\t\t</rt_info>',
        ),
        (
            '<rt_info><attribute name="a" version="0"/></rt_info>',
            '<rt_info><attribute name="a" version="0"/><attribute name="precise" version="0" /></rt_info>',
        ),
    ],
)
def test_runtime_info_that_is_there_is_kept(there, expected):
    data = '<data shape="2" element_type="f32" />'
    text = TEXT.replace(data, f"{data}\n\t\t\t{there}")
    assert marked(text, "x") == TEXT.replace(data, f"{data}\n\t\t\t{expected}")
    assert is_precise(marked(text, "x"), "x")


@pytest.mark.parametrize("line_end", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "iso-8859-1"])
def test_line_ends_and_encodings_stay(line_end, encoding):
    declared = {"utf-8-sig": "utf-8", "utf-16-be": "utf-16"}.get(encoding, encoding)
    text = TEXT.replace('"1.0"', f'"1.0" encoding="{declared}"').replace('name="m"', 'name="é"')
    text = text.replace("\n", line_end)
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    before = (mark + text).encode(encoding)
    after = mark_precise(before, ["x"])
    assert after.decode(encoding) == mark + text.replace(
        'element_type="f32" />', 'element_type="f32" />' + MARK.replace("\n", line_end)
    )
    assert is_precise(after, "x")


def test_a_file_of_one_line_stays_one():
    text = "".join(line.strip() for line in TEXT.splitlines())
    after = marked(text, "x", "r")
    assert "\n" not in after
    assert after.count('<rt_info><attribute name="precise" version="0" /></rt_info>') == 2
    assert is_precise(after, "r")


def test_layers_of_bodies_are_marked_by_name_or_as_they_were_read():
    from pathlib import Path

    path = Path(__file__).parent.parent / "samples" / "stateful-loop" / "model.xml"
    model, text = irrun.read_model(path), path.read_bytes()
    (inner,) = [layer for layer in model.graph.walk() if layer.type == "Tanh"]
    assert inner.graph.owner is not None
    after = mark_precise(text, [inner])
    assert after == mark_precise(text, [inner.name])
    again = irrun.read_model(after, path.with_suffix(".bin"))
    assert [layer.name for layer in again.graph.walk() if layer.precise] == [inner.name]
    with pytest.raises(ValueError, match=r"`.*` \(Tanh\) was not read from this text$"):
        mark_precise(after, [inner])


@pytest.mark.parametrize(
    ("change", "layer", "message"),
    [
        (("", ""), "z", "there is no layer `z` in the model"),
        (("", ""), 7, "there is no layer `7` in the model"),
        (('name="r"', 'name="x"'), "x", "`x` is the name of 2 layers, at the lines 4, 10"),
        (('version="11"', 'version="10"'), "x", "OpenVINO reads no runtime info of layers in an IR of version 10"),
    ],
)
def test_what_cannot_be_marked_is_refused(change, layer, message):
    with pytest.raises(ValueError, match=message):
        marked(TEXT.replace(*change) if change[0] else TEXT, layer)


def test_what_is_no_xml_is_refused():
    with pytest.raises(irrun.IRError, match="E101"):
        marked("<net", "x")


@pytest.mark.parametrize(
    ("before", "name", "value", "after"),
    [
        ("<a b='1'/>", "b", "2", "<a b='2'/>"),
        ("<a b = '1' c=\"\"/>", "b", "it's", "<a b = 'it&apos;s' c=\"\"/>"),
        ('<a b="1">x</a>', "b", '<"&', '<a b="&lt;&quot;&amp;">x</a>'),
        ('<a b="1" />', "c", "3", '<a b="1" c="3" />'),
        ("<a/>", "c", "3", '<a c="3"/>'),
        ('<a b="/>" >x</a>', "c", "€\n", '<a b="/>" c="€&#10;" >x</a>'),
    ],
)
def test_an_attribute_is_set_in_place(before, name, value, after):
    element = parse(before.encode())
    found = apply(before.encode(), [set_attribute(element, name, value)])
    assert found.decode() == after
    assert parse(found).attributes[name] == value


def test_edits_are_made_together_wherever_they_stand():
    assert apply(b"abcdef", [Edit(4, 6, "Y"), Edit(0, 0, "<"), Edit(1, 3, ""), Edit(6, 6, ">")]) == b"<adY>"
    latin = '<?xml version="1.0" encoding="iso-8859-1"?><a b="é"/>'.encode("iso-8859-1")
    element = parse(latin)
    assert apply(latin, [set_attribute(element, "b", "è€")]).endswith(b'<a b="\xe8&#8364;"/>')
    with pytest.raises(ValueError, match="the edit of bytes 1 to 2 overlaps the one before"):
        apply(b"abc", [Edit(0, 2, ""), Edit(1, 2, "")])
    with pytest.raises(ValueError, match="the edit of bytes 2 to 9 lies outside of the text of 3 bytes"):
        apply(b"abc", [Edit(2, 9, "")])


def test_the_layers_of_a_text_are_looked_through_once_however_many_are_marked(monkeypatch):
    names = [f"abs{number}" for number in range(50)]
    layers = "".join(f'<layer id="{number}" name="{name}" type="Abs"/>' for number, name in enumerate(names))
    text = f'<net version="11"><layers>{layers}</layers></net>'.encode()
    looked, plain = [], text_edits._all_layers
    monkeypatch.setattr(text_edits, "_all_layers", lambda element: looked.append(element) or plain(element))
    counts = []
    for marked in (names[:1], names):
        looked.clear()
        assert mark_precise(text, marked).count(b'name="precise"') == len(marked)
        counts.append(len(looked))
    assert counts[0] == counts[1]
