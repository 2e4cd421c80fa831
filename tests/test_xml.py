"""XML parsing: places, what is refused, and the words for what is not well-formed."""

import gc

import pytest

from irrun.diagnostics import NOWHERE, IRError, Span
from irrun.ir.xml import MAX_DEPTH, Element, attribute_span, parse


def refused(data):
    with pytest.raises(IRError) as caught:
        parse(data)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_elements_know_their_place():
    root = parse(b'<net>\n  <layers>\n\t<layer id="1"/>\n  </layers>\n</net>')
    layer = root.find("layers").find("layer")
    assert (layer.line, layer.column) == (3, 2)
    assert layer.span == Span(3, 2, len("<layer"))
    assert root.find("edges") is None


def test_columns_count_characters_not_bytes():
    assert parse('<a b="üü"><c/></a>'.encode()).children[0].column == 11


def test_lines_past_65535_are_right():
    assert parse(b"<a>" + b"\n" * 70_000 + b"<b/></a>").children[0].line == 70_001


def test_text_is_what_stands_directly_inside():
    port = parse(b"<port>\n <dim> 3\n</dim><!-- x --></port>")
    assert port.dims[0].text == " 3\n"
    assert port.text == ""


def test_dims_are_numbers_or_the_elements_of_other_texts():
    port = parse(b"<port>\n<dim>3</dim><dim>-1</dim><dim>+4</dim><dim><dim>5</dim>x</dim><dim/><rt_info/></port>")
    assert port.dims[:2] == [3, -1]
    assert [(dim.text, dim.line, dim.column) for dim in port.dims[2:]] == [("+4", 2, 26), ("x", 2, 39), ("", 2, 63)]
    assert [child.tag for child in port.children] == ["rt_info"]


def test_dims_elsewhere_are_elements_like_others():
    assert [child.tag for child in parse(b"<layer><dim>3</dim></layer>").children] == ["dim"]


def test_text_around_a_comment_is_joined():
    assert parse(b"<dim>1<!-- x -->2</dim>").text == "12"


def test_place_of_an_attribute():
    root = parse(b'<a><layer  id = "1"\n    name="x > y"\ttype=\'id="7"\' version="opset1"/></a>')
    layer = root.children[0]
    assert attribute_span(layer, "id") == Span(1, 12, len('id = "1"'))
    assert attribute_span(layer, "name") == Span(2, 5, len('name="x > y"'))
    assert attribute_span(layer, "type") == Span(2, 18, len("type='id=\"7\"'"))
    assert attribute_span(layer, "version") == Span(2, 32, len('version="opset1"'))


def test_place_of_a_missing_attribute_is_that_of_the_element():
    assert attribute_span(parse(b' <layer id="1"/>'), "name") == Span(1, 2, len("<layer"))
    assert attribute_span(Element("layer", {"id": "1"}), "id") == NOWHERE


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbf<a b="\xc3\xa9"/>',
        '<a b="é"/>'.encode("utf-16"),
        b'<?xml version="1.0" encoding="latin-1"?><a b="\xe9"/>',
    ],
)
def test_encodings(data):
    assert parse(data).attributes == {"b": "é"}


def test_a_byte_order_mark_takes_no_column():
    assert parse(b"\xef\xbb\xbf<a/>").column == 1


@pytest.mark.parametrize(
    "data",
    [
        b'<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><a>&z;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a b="1">&x;</a>',
    ],
)
def test_doctype_is_refused(data):
    assert refused(b"\n" + data).code == "E105"


def test_depth_is_limited():
    assert refused(b"<a>" * (MAX_DEPTH + 1)).code == "E104"


def test_elements_are_limited(monkeypatch):
    monkeypatch.setattr("irrun.ir.xml.MAX_COST", 800)
    assert parse(b"<a><b/><c></c></a>").tag == "a"
    assert refused(b"<a><b/><c/><d/></a>").code == "E104"
    assert len(parse(b"<a>" + b"<b>%s</b>" % (b" " * 40) * 9 + b"</a>").children) == 9


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"", (1, 1), "the file has no XML element"),
        (b"<net>\n <layers>\n", (3, 1), "the file ends while <layers> is open"),
        (b"<a>\n<b></a>", (2, 4), "<b> is not closed before `</a>`"),
        (b"<a b=1/>", (1, 6), "this character is not allowed here"),
        (b"<a><!-- b -- c --></a>", (1, 13), "`--` stands in a comment"),
        (b"<a><!-- b ---></a>", (1, 13), "`--` stands in a comment"),
        (b"<a>\n<!-- <b/>\n</a>", (2, 1), "this comment is not closed before the file ends"),
        (b'<a b="\x01"/>', (1, 7), "U+0001 is not allowed here"),
        (b"<a>\x00</a>", (1, 4), "U+0000 is not allowed here"),
        ('<a\u00a0b="1"/>'.encode(), (1, 3), "U+00A0 (NO-BREAK SPACE) is not allowed here"),
        ("<a b=\u201c1\u201d/>".encode(), (1, 6), "U+201C (LEFT DOUBLE QUOTATION MARK) is not allowed here"),
        (b"<net>\n<Layer>\n</layer></net>", (2, 1), "<Layer> and `</layer>` differ in case"),
        (b"<net>\n<layer>\n</Layer></net>", (3, 1), "`</Layer>` does not close <layer>: the case differs"),
        (b'<a>\n <b c="1" d="2/>\n <e f="3"/>\n</a>', (2, 11), "the value of `d` has no closing quote"),
        (b"<a\n b='1>\n <c d='2'/>\n</a>", (2, 2), "the value of `b` has no closing quote"),
        (b'<a>\n <b c="1<2"/>\n</a>', (2, 9), "this character is not allowed here"),
        (b'<a b="1" b="2"/>', (1, 10), "an attribute is given twice in one tag"),
        (b"<a>&x;</a>", (1, 4), "an entity is used that XML does not define"),
        (b"<a>\xff</a>", (1, 4), "the bytes here are not UTF-8"),
        (b' <?xml version="1.0"?><a/>', (1, 2), "the XML declaration must be the very first thing in the file"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', (1, 1), "the declared encoding is not known"),
    ],
)
def test_words_for_what_is_not_well_formed(data, place, message):
    found = refused(data)
    assert (found.code, found.line, found.column, found.message) == ("E101", *place, message)
    assert found.help


LAYER = b'<layer id="0" name="x" type="Parameter" version="opset1">\n'
PORT = b'<port id="0" precision="FP32"><dim>2</dim></port>\n'


@pytest.mark.parametrize(
    ("data", "line", "message", "write"),
    [
        (LAYER + LAYER + b"</layer>\n</layers>", 3, "<layer> is not closed before the next <layer>", "`</layer>`"),
        (LAYER + b"<input>\n" + PORT + b"<output></output></layer>", 5, "<input> is not closed before <output>", None),
        (LAYER + b"<output>\n" + PORT + b"</layer>", 5, "<output> is not closed before `</layer>`", "`</output>`"),
        (LAYER + b'<data shape="2">\n<output></output></layer>', 4, "<data> is not closed before <output>", "in `/>`"),
        (b"<layer><input><port>\n<port></port></input>", 3, "<port> is not closed before the next <port>", None),
        (b"<port><dim>2\n<dim>3</dim></port>", 3, "<dim> is not closed before the next <dim>", "write `</dim>` here"),
        (LAYER + b"</layer>\n<edges></edges>\n</net>", 4, "<layers> is not closed before <edges>", "`</layers>`"),
        (LAYER + b'</layer></layers><edges><edge from-layer="0">\n<edge/></edges>', 4,
         "<edge> is not closed before the next <edge>", "or end the tag of <edge> in `/>`"),
        (LAYER + b"<port_map><input axis='0'>\n<input/></port_map>", 4,
         "<input> is not closed before the next <input>", "`</input>`"),
        (LAYER + b"<body>\n<layers/><edges/>\n<back_edges/></layer>", 5,
         "<body> is not closed before <back_edges>", "`</body>`"),
        (LAYER + b"<output>\n" + PORT + LAYER + b"</layer></layers>", 5,
         "<output> and <layer> are not closed before the next <layer>", "`</output></layer>`"),
        (LAYER + b"<!-- one -->\n<!--\n two --> " + LAYER + b"</layer></layers>", 3,
         "<layer> is not closed before the next <layer>", None),
    ],
)  # fmt: skip
def test_what_is_left_open_is_blamed_where_it_should_be_closed(data, line, message, write):
    found = refused(b"<net><layers>\n" + data)
    assert (found.code, found.line, found.message) == ("E101", line, message)
    assert (write or "write `</") in found.help
    assert all("is opened here" in note.message for note in found.notes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<layers><layer/>\n</layer></layers></net>", "`</layer>` does not close <layers>"),
        (b"<layers><layer><input/>\n</inputs></layer></layers></net>", "`</inputs>` does not close <layer>"),
        # of a Loop whose body has a layer that is closed too early, and then some more of it
        (b"<layers><layer><body><layers><layer/><output/>\n</layer>", "`</layer>` does not close <layers>"),
    ],
)
def test_a_tag_that_closes_nothing_is_blamed_itself(data, message):
    found = refused(b"<net>" + data)
    assert (found.line, found.message) == (2, message)


@pytest.mark.parametrize("rest", [b"junk", b"<net/>"])
def test_content_after_the_root(rest):
    found = refused(b"<net>\n</net>\n" + rest)
    assert (found.code, found.line) == ("E106", 3)


def test_published_fragment_with_elided_attributes():
    found = refused(b'\n<layer ... type="Abs">\n</layer>')
    assert (found.message, found.line, found.column) == ("`...` stands where attributes should be", 2, 8)
    assert "abbreviated" in found.help


def test_published_fragment_with_a_port_closed_too_early():
    found = refused(b'<layer id="1">\n<input>\n <port id="2"/>\n  <dim>2</dim>\n </port>\n</input></layer>')
    assert (found.message, found.line) == ("`</port>` does not close <input>", 5)
    assert "closed at once" in found.help
    assert "abbreviated" in found.help


def test_the_garbage_collector_runs_again_after_an_error():
    enabled = gc.isenabled()
    gc.enable()  # which a command that ran in this process may have left off
    try:
        refused(b"<a>")
        assert gc.isenabled()
    finally:
        if not enabled:
            gc.disable()
