"""Texts that are not well-formed: what leaves one reading is told, and all else is checked as if it were mended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import irrun
from irrun.check.fixes import with_fixes
from irrun.check.fixes.application import mended

SAMPLE = Path("samples/cnn/model.xml")
TEXT = SAMPLE.read_bytes()
WEIGHTS = SAMPLE.with_suffix(".bin").read_bytes()
CONVOLUTION = TEXT.index(b'type="Convolution"')
NAME = b'name="image"'


def changed(old, new, text=TEXT):
    """The text with `new` for the first `old` behind the beginning of the Convolution, else the first of all."""
    start = text.index(b'<layer id="2"')
    at = text.find(old, start)
    at = text.index(old) if at < 0 else at
    return text[:at] + new + text[at + len(old) :]


def all_of(content):
    return [(found.code, found.line, found.message) for found in irrun.validate(content, WEIGHTS).diagnostics]


def fixed(content):
    return mended(Path("model.xml"), content, WEIGHTS)


MENDED = [  # of each the fix gives back the text that was
    (b'type="Convolution"', b'type="Convolution" type="Convolution"', "`type` is given twice in one tag"),
    (b' precision="FP32"', b' precision="FP32" precision="FP32"', "`precision` is given twice in one tag"),
    (b'<layer id="2"', b"<layer id=2", "the value of `id` is not in quotes"),
    (b'precision="FP32">', b"precision=FP32>", "the value of `precision` is not in quotes"),
    (b'to-port="0" />', b"to-port=0 />", "the value of `to-port` is not in quotes"),
    (NAME, "name=“image”".encode(), "U+201C (LEFT DOUBLE QUOTATION MARK) is not allowed here"),
    (NAME, "name=«image»".encode(), "U+00AB (LEFT-POINTING DOUBLE ANGLE QUOTATION MARK) is not allowed here"),
    (NAME, "name=“image\"".encode(), "U+201C (LEFT DOUBLE QUOTATION MARK) is not allowed here"),
    (NAME, b"name=`image`", "U+0060 (GRAVE ACCENT) is not allowed here"),
    (NAME, b"name=\"image'", "the value of `name` begins with `\"` and ends with `'`"),
    (NAME, b'name=image"', "the value of `name` has no opening quote"),
    (NAME + b" ", b'name="image ', "the value of `name` has no closing quote"),
    (b'version="opset1">', b'version="opset1>', "the value of `version` has no closing quote"),
    (b'auto_pad="explicit"', b'auto_pad="explicit', "the value of `auto_pad` has no closing quote"),
    (b'strides="1, 1"', b'strides="1, 1', "the value of `strides` has no closing quote"),
    (NAME, NAME + b'"', "a quote stands here twice"),
    (NAME, NAME + b",", "`,` stands between attributes"),
    (NAME, NAME + b";", "`;` stands between attributes"),
    (NAME + b" ", NAME, "a blank is missing before `type`"),
    (NAME + b" ", NAME + b"\xc2\xa0", "U+00A0 (NO-BREAK SPACE) stands between attributes"),
    (NAME + b" ", NAME + b" \xe2\x80\x8b", "U+200B (ZERO WIDTH SPACE) stands between attributes"),
    (NAME + b" ", NAME + b" \x03", "U+0003 stands between attributes"),
    (NAME, b'name: "image"', "`:` stands behind `name`"),
    (NAME, b'name=="image"', "`==` stands behind `name`"),
    (NAME, b'name "image"', "`=` is missing behind `name`"),
    (b'<layer id="2"', b'<<layer id="2"', "`<` stands here twice"),
    (b'<layer id="2"', b'< layer id="2"', "blanks stand behind `<`"),
    (b"</layer>", b"</ layer>", "blanks stand behind `</`"),
    (b"</layer>", b"</layer", "`>` is missing behind `</layer`"),
    (b"</net>", b"</net", "`>` is missing behind `</net`"),
    (b'auto_pad="explicit" />', b'auto_pad="explicit" /', "`>` is missing at the end of the tag of <data>"),
    (b'auto_pad="explicit" />', b'auto_pad="explicit" ', "the tag of <data> is not closed before the next `<`"),
    (b'version="opset1">', b'version="opset1"', "the tag of <layer> is not closed before the next `<`"),
    (b'<port id="0" precision="FP32">', b'<port id="0" precision="FP32"',
     "the tag of <port> is not closed before the next `<`"),
    (b'<layer id="2"', b'<Layer id="2"', "<Layer> and `</layer>` differ in case"),
    (b"</layer>", b"</Layer>", "<layer> and `</Layer>` differ in case"),
    (b"<layers>", b"<LAYERS>", "<LAYERS> and `</layers>` differ in case"),
    (b"</layer>", b"</layr>", "<layer> and `</layr>` differ"),
    (b"<output>", b"<outputt>", "<outputt> and `</output>` differ"),
    (b'<layer id="2"', b'layer id="2"', "`<` is missing before `layer`"),
    (b"</layer>", b"layer>", "`</` is missing before `layer`"),
    (b"</layer>", b"/layer>", "`<` is missing before `/layer`"),
    (b"<data", b"data", "`<` is missing before `data`"),
    (b"<output>", b"\x02<output>", "U+0002 stands here"),
    (b"<output>", b"\x00<output>", "U+0000 stands here"),
    (b"<dim>3", b"<dim>\x013", "U+0001 stands here"),
    (b"<?xml", b" \n<?xml", "the XML declaration must be the very first thing in the file"),
    (b"<net", b'<?xml version="1.0"?><net', "the XML declaration must be the very first thing in the file"),
    (b'version="1.0"?>', b'version="1.0" encoding="klingon"?>',
     "the file is declared to be in `klingon`, which is not known here"),
    (b'version="1.0"?>', b'version="1.0" encoding="gbk"?>',
     "the file is declared to be in `gbk`, which is not known here"),
    (b'version="1.0"?>', b'version="1.0" encoding="utf-16"?>',
     "the file is declared to be in `utf-16`, which it is not"),
    (b'<?xml version="1.0"?>', b"<?xml?>", "the XML declaration is not well-formed"),
    (b'<?xml version="1.0"?>', b'<?xml version="1.0">', "the XML declaration is not well-formed"),
    (b"<net", b"<!DOCTYPE net>\n<net", "a DOCTYPE declaration is not allowed in an IR"),
    (b"<net", b'<!DOCTYPE net [<!ENTITY a "b">]>\n<net', "a DOCTYPE declaration is not allowed in an IR"),
]  # fmt: skip


@pytest.mark.parametrize("name", [b"&lt;cnn>", b"a&amp;/>", b"<cnn>"])
def test_a_value_may_end_as_a_tag_does(name):
    damaged = changed(b'precision="FP32"', b'precision="FP32" precision="FP32"')
    found = all_of(damaged.replace(b'name="cnn"', b'name="%s"' % name))
    assert [each for each in found if each[1] > 2] == all_of(damaged)
    assert [message for _, line, message in found if line <= 2] == ["`<` stands in the value of `name`"] * (
        name[:1] == b"<"
    )


@pytest.mark.parametrize(("old", "new", "message"), MENDED)
def test_a_damage_is_told_once_and_mended(old, new, message):
    content = changed(old, new)
    ((code, line, said),) = all_of(content)
    at = next(at for at, (one, other) in enumerate(zip(TEXT, content, strict=False)) if one != other)
    assert (code in ("E101", "E105"), said) == (True, message)
    assert abs(line - content[:at].count(b"\n") - 1) <= 2
    result = fixed(content)
    assert b"".join(result.content.split()) == b"".join(TEXT.split())
    assert not result.report.diagnostics


NAMES = [  # and what stands there once that is mended
    (b"a&b", "`&` stands in the value of `name`", b"a&amp;b"),
    (b"image&", "`&` stands in the value of `name`", b"image&amp;"),
    (b"a&#;b", "`&` stands in the value of `name`", b"a&amp;#;b"),
    (b"a&nbsp;b", "XML does not define `&nbsp;`, which stands in the value of `name`", b"a&amp;nbsp;b"),
    (b"<lambda>", "`<` stands in the value of `name`", b"&lt;lambda>"),
    (b"a&#1;b", "`&#1;` stands in the value of `name`, which is no character", b"ab"),
    (b"a&#xFFFF;b", "`&#xFFFF;` stands in the value of `name`, which is no character", b"ab"),
    (b"a\x01b", "U+0001 stands in the value of `name`", b"ab"),
    (b"a\x00b", "U+0000 stands in the value of `name`", b"ab"),
]


@pytest.mark.parametrize(("written", "message", "meant"), NAMES)
@pytest.mark.parametrize(
    "form", [lambda text: text, lambda text: text.replace(b"\n", b"\r\n"), lambda text: b"\xef\xbb\xbf" + text]
)
def test_what_a_name_cannot_hold_is_written_as_xml_has_it(written, message, meant, form):
    content = form(changed(NAME, b'name="%s"' % written))
    assert all_of(content) == [("E101", 4, message)]
    assert fixed(content).content == form(changed(NAME, b'name="%s"' % meant))
    irrun_name = irrun.validate(fixed(content).content, WEIGHTS).model.graph.layers[0].name
    assert irrun.validate(content, WEIGHTS).model.graph.layers[0].name == irrun_name


def test_a_name_in_utf_16_is_mended_there():
    content = changed(NAME, b'name="a&b"').decode().encode("utf-16")
    assert all_of(content) == [("E101", 4, "`&` stands in the value of `name`")]
    assert fixed(content).content.decode("utf-16") == changed(NAME, b'name="a&amp;b"').decode()


def test_bytes_that_are_not_utf8_are_told_once():
    content = changed(NAME, b'name="\xe4\xf6 \xfc"')
    assert all_of(content) == [("E101", 4, "the bytes here are not UTF-8, nor those in 1 more place")]
    assert fixed(content).content == content
    assert irrun.validate(content, WEIGHTS).model.graph.layers[0].name == "\ufffd \ufffd"


@pytest.mark.parametrize("bad", [b"<", b"&", b"&lt2;"])
def test_of_a_value_that_is_no_text_nobody_knows_what_is_meant(bad):
    content = changed(b'strides="1, 1"', b'strides="1, %s1"' % bad)
    (found,) = irrun.validate(content, WEIGHTS).diagnostics
    assert (found.code, found.line, found.help[:9]) == ("E101", 27, "delete it" if bad != b"&lt2;" else found.help[:9])
    assert fixed(content).content == content


def test_of_bytes_in_a_type_nobody_knows_what_is_meant():
    content = changed(b'type="Convolution"', b'type="Convol\xff\xfeution"')
    assert all_of(content) == [("E101", 26, "the bytes here are not UTF-8")]


@pytest.mark.parametrize("bad", [b"<", b"&"])
@pytest.mark.parametrize("number", [b'id="2"', b'to-port="1"', b'from-layer="0"'])
def test_of_numbers_that_connect_layers_none_is_guessed(bad, number):
    content = changed(number, number.replace(b'="', b'="' + bad))
    ((code, _, message),) = all_of(content)
    assert (code, message) == ("E101", "this character is not allowed here")


TWICE = [
    (b'type="Convolution"', b'type="MaxPool"', 26),
    (b'<layer id="2"', b'<layer id="99"', 26),
    (b' precision="FP32"', b' precision="FP16"', 29),
    (b'strides="1, 1"', b'strides="9, 9"', 27),
    (b' from-layer="0"', b' from-layer="1"', 314),
]


@pytest.mark.parametrize(("right", "wrong", "line"), TWICE)
def test_of_two_values_the_one_is_taken_that_the_rest_fits(right, wrong, line):
    name = right.split(b"=")[0].split()[-1].decode()
    one, other = (text[text.index(name.encode()) :] for text in (right, wrong))
    first, second = changed(right, right + b" " + other), changed(right, wrong + b" " + one)
    for content, fits, value in ((first, "first", wrong), (second, "second", right)):
        (found,) = with_fixes(irrun.validate(content, WEIGHTS)).diagnostics
        assert (found.code, found.line, found.remedy) == ("E101", line, fits)
        assert found.message.startswith(f"`{name}` is given twice in one tag, as `")
        last = value.split(b'"')[-2].decode()
        assert found.message.endswith(f" and as `{last}`")
        assert [fix.safe for fix in found.fixes] == [False, False]
        unsafe = mended(Path("model.xml"), content, WEIGHTS, unsafe=True)
        assert unsafe.content == TEXT, fits
        assert fixed(content).content == content


def test_all_else_is_told_at_its_place():
    content = changed(b'strides="1, 1"', b'strides="0, 1"', changed(NAME, b'name="a&b" type="Parameter"'))
    assert all_of(content) == [
        ("E101", 4, "`&` stands in the value of `name`"),
        ("E101", 4, "`type` is given twice in one tag"),
        ("E307", 27, "attribute `strides` is 0, 1, expected 1 or more"),
    ]
    (_, twice, strides) = irrun.validate(content, WEIGHTS).diagnostics
    for found in (twice, strides):
        line = content.split(b"\n")[found.line - 1].decode()
        assert line[found.column - 1 :].startswith(('type="Parameter"', 'strides="0, 1"'))


def test_what_is_mended_before_the_end_of_all_reading_is_told_as_well():
    content = changed(b"</layers>", b"", changed(NAME, b'name="a&b"'))
    assert all_of(content) == [
        ("E101", 4, "`&` stands in the value of `name`"),
        ("E101", 313, "<layers> is not closed before <edges>"),
    ]


def test_a_name_in_all_layers():
    content = re.sub(rb' name="(\w+)"', rb' name="\1&amp\1"', TEXT)
    found = all_of(content)
    assert len(found) == content.count(b"&amp")
    assert {code for code, *_ in found} == {"E101"}
    assert not fixed(content).report.diagnostics


REFUSED = [
    (b"</layer>", b"", 51, "<layer> is not closed before the next <layer>"),
    (b"</input>", b"", 42, "<input> is not closed before <output>"),
    (b"</layers>", b"", 313, "<layers> is not closed before <edges>"),
    (b"</net>", b"", 337, "the file ends while <net> is open"),
    (b"</layer>", b"</layer></layer>", 50, "`</layer>` does not close <layers>"),
    (b"</layers>", b"</layers></net>", 313, "the file goes on after its root element"),
    (b"</layer>", b"</layers>", 50, "<layer> is not closed before `</layers>`"),
    (b'type="Convolution"', b'type="Convolution" foo', 26, "`foo` has no value in quotes"),
    (b'type="Convolution"', b'type="Convolution" foo=', 26, "`foo` has no value in quotes"),
    (b'type="Convolution"', b'<!-- a --> type="Convolution"', 26, "a comment stands in the tag of <layer>"),
    (b"<output>", b"a < b<output>", 42, "`<` stands in a text"),
    (b"<layers>", b"<layers><!-- a", 3, "this comment is not closed before the file ends"),
    (b'<layer id="2"', b'<<<<<<< HEAD\n<layer id="2"', 26, "a merge has left its conflict in the file"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), REFUSED)
def test_what_has_several_readings_is_told_alone(old, new, line, message):
    content = changed(old, new)
    ((code, place, said),) = all_of(content)
    assert (code in ("E101", "E106"), place, said) == (True, line, message)
    assert fixed(content).content == content


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_file_that_is_cut_short_is_one_error_at_its_end(part):
    content = TEXT[: int(len(TEXT) * part)]
    ((code, line, _),) = all_of(content)
    assert (code, line) == ("E101", content.count(b"\n") + 1)


@pytest.mark.parametrize(
    ("content", "line", "code"),
    [
        (TEXT + TEXT, 337, "E106"),
        (TEXT + b"end\n", 337, "E106"),
        (TEXT + b"</net>", 337, "E106"),
        (b"model:\n" + TEXT, 1, "E107"),
        (b"model:\n" + TEXT.split(b"\n", 1)[1], 1, "E107"),
    ],
)
def test_what_stands_around_the_model_is_told_beside_what_is_wrong_in_it(content, line, code):
    assert [found[:2] for found in all_of(content)] == [(code, line)]
    broken = content.replace(b'strides="1, 1"', b'strides="0, 1"', 1)
    assert sorted(found[0] for found in all_of(broken)) == sorted([code, "E307"])
    assert not mended(Path("model.xml"), content, WEIGHTS, unsafe=True).report.diagnostics


def test_texts_that_nothing_reads_are_deleted_and_nothing_else():
    content = changed(b"<output>", b"# a <!-- b --><output>", changed(b"<input>", b">>>>>>> main\n<input>"))
    (found,) = with_fixes(irrun.validate(content, WEIGHTS)).diagnostics
    assert (found.code, found.line) == ("W907", 28)
    assert (
        found.message
        == "`>>>>>>>`, which a merge has left, stands where only elements are read, and so in 1 more place"
    )
    assert fixed(content).content == content
    result = mended(Path("model.xml"), content, WEIGHTS, unsafe=True)
    assert result.content.replace(b" <!-- b -->", b"").split() == TEXT.split()
