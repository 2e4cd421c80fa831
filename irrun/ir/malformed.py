"""The words for what is not well-formed XML: expat's errors, with their place and what to do.

Loaded where something is wrong.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING
from xml.parsers import expat

from irrun.diagnostics import Diagnostic, Note
from irrun.ir.lines import TAG
from irrun.spelling import code_point

if TYPE_CHECKING:
    from irrun.ir.lines import Source
    from irrun.ir.xml import Element

_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?>\s|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
"""What may stand before the first element; a document type is refused for itself."""

_ELIDED = re.compile(rb"""<\w+(?:"[^"]*"|'[^']*'|[^<>"'])*?\.\.\.""")
"""A tag with dots among its attributes: in a value they may be a shape of any rank."""
CONFLICT = b"<<<<<<< "
"""How the first line begins that git writes around two versions of a part of a file."""
_FRAGMENT = (
    "the samples on OpenVINO's operation specification pages are abbreviated: write out what stands as `...`, "
    "give every <layer> an id, a name and a version, and put all into <net><layers>"
)

UTF8 = "save the file as UTF-8"
NOT_ALLOWED = "this character is not allowed here"
_WORDS = {
    expat.errors.XML_ERROR_INVALID_TOKEN: (
        NOT_ALLOWED,
        "inside an attribute write `&lt;` for < and `&amp;` for &, and quote every value",
    ),
    expat.errors.XML_ERROR_UNCLOSED_TOKEN: ("this tag is not closed before the file ends", "the file may be cut short"),
    expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE: (
        "an attribute is given twice in one tag",
        "delete one of the two",
    ),
    expat.errors.XML_ERROR_UNDEFINED_ENTITY: (
        "an entity is used that XML does not define",
        "XML knows &lt; &gt; &amp; &quot; &apos; only; write `&amp;` for a plain &",
    ),
    expat.errors.XML_ERROR_MISPLACED_XML_PI: (
        "the XML declaration must be the very first thing in the file",
        "delete the blanks before `<?xml`, or the second declaration",
    ),
    expat.errors.XML_ERROR_UNKNOWN_ENCODING: ("the declared encoding is not known", UTF8),
    expat.errors.XML_ERROR_INCORRECT_ENCODING: ("the declared encoding is not that of the file", UTF8),
    expat.errors.XML_ERROR_PARTIAL_CHAR: ("the file ends within a character", "the file may be cut short"),
}

_OF_GRAPH = frozenset({"layers", "edges", "rt_info"})
_BODIES = frozenset({"body", "then_body", "else_body"})
_MAPS = frozenset({"port_map", "then_port_map", "else_port_map"})
_CHILDREN: dict[str, frozenset[str]] = {
    "net": _OF_GRAPH | {"meta_data", "quantization_parameters", "pre-process"},
    "layers": frozenset({"layer"}),
    "edges": frozenset({"edge"}),
    "back_edges": frozenset({"edge"}),
    "layer": frozenset({"data", "input", "output", "rt_info", "back_edges"}) | _MAPS | _BODIES,
    "input": frozenset({"port"}),
    "output": frozenset({"port"}),
    "port": frozenset({"dim", "rt_info"}),
    "rt_info": frozenset({"attribute"}),
    **dict.fromkeys(_BODIES, _OF_GRAPH),
    **dict.fromkeys(_MAPS, frozenset({"input", "output"})),
    **dict.fromkeys(("data", "dim", "edge", "attribute"), frozenset[str]()),
}
"""What stands in the elements of an IR; the entries of port maps have the tags of lists of ports."""


def is_tag(tag: str) -> bool:
    """Whether elements of an IR have this tag."""
    return tag in _CHILDREN or tag in _CHILDREN["net"]


def childless(tag: str) -> bool:
    """Whether nothing stands in the elements of a tag but, in a <dim>, text."""
    return not _CHILDREN.get(tag, True)


_LOOKED_BACK = 1 << 12
"""Bytes before a tag in which comments that belong to it, or a value that is not closed, are looked for."""

_UNQUOTED = re.compile(
    rb"""<[^\s/>"'<]+(?:\s+[^\s=/>"'<]+\s*=\s*(?:"[^"]*"|'[^']*'))*+\s+([^\s=/>"'<]+)\s*=\s*(["'])"""
)
"""A start tag up to the value that is not closed in it."""

_ONNX = re.compile(rb"\x08[\x01-\x1f][\x12\x1a\x22\x28\x32\x3a\x42]")
"""A version of the format, and the next field of a protobuf message that is a model."""

_CONVERTED = "convert it to an IR first, as OpenVINO's `ovc FILE` does"
_OTHERS = (
    (b"\x1f\x8b", "a gzip file", "unpack it: gunzip -c FILE > model.xml"),
    (b"BZh", "a bzip2 file", "unpack it: bunzip2 -c FILE > model.xml"),
    (b"\xfd7zXZ\x00", "an xz file", "unpack it: unxz -c FILE > model.xml"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it: unzstd -c FILE > model.xml"),
    (b"PK\x03\x04", "a zip archive", "unpack it, and give the .xml that was in it; the .bin belongs beside that"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it, and give the .xml that was in it"),
    (b"\x89HDF\r\n", "an HDF5 file", f"models of Keras are kept so: {_CONVERTED}"),
)


_TAGS = b"|".join(sorted({tag.encode() for tag in (*_CHILDREN, *chain(*_CHILDREN.values()))}, reverse=True))
BARE = re.compile(rb""">\s*(/?(?:%s)(?:\s+[^\s=/>"'<]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*/?>)""" % _TAGS)
"""A tag of an IR without its `<`, behind another tag."""

_MOST_BARE = 1 << 16
"""Bytes before what does not fit in which such a tag is looked for."""


def without_bracket(source: Source, start: int, end: int) -> Diagnostic | None:
    """The error of the last tag that has no `<`, in the bytes from the end of a tag at `start` on."""
    found = list(BARE.finditer(source.data, max(start, 0), end))
    if not found:
        return None
    text = found[-1][1].decode("utf-8", "replace")
    word = re.match(r"/?\w+", text)
    span = source.span(found[-1].start(1), len(text))
    return Diagnostic("E101", f"`<` is missing before `{word[0] if word else text}`", span, help="write `<` there")


def mistaken(head: bytes) -> tuple[str, str] | None:
    """What a file is that begins so and is no XML, and what to do about it."""
    for start, what, help in _OTHERS:
        if head.startswith(start):
            return what, help
    if head[4:8] == b"TFL3":
        return "a model of TensorFlow Lite", _CONVERTED
    if _ONNX.match(head):
        return "an ONNX model", _CONVERTED
    return None


def explained(code: int, source: Source, offset: int, stack: list[Element]) -> Diagnostic:
    """The diagnostic for expat's error `code` at byte `offset`, while `stack` was open."""
    span, data = source.span(offset), source.data
    opened = stack[-1] if len(stack) > 1 else None
    note = (_opening(opened),) if opened else ()
    start, stop = max(offset - 200, 0), offset + 200
    begin = data.rfind(b"\n", start, offset) + 1 or start
    line = data[begin : data.find(b"\n", offset, stop) % (stop + 1)]
    if _ELIDED.search(line):
        return Diagnostic("E101", "`...` stands where attributes should be", span, help=_FRAGMENT)
    if line.lstrip().startswith(CONFLICT):
        help = "keep one of the two versions, and delete these lines from `<<<<<<<` to `>>>>>>>`"
        # the parser takes the first `<` for the start of a tag, and stumbles over the second one
        span = source.span(begin + len(line) - len(line.lstrip()), len(CONFLICT.rstrip()))
        return Diagnostic("E101", "a merge has left its conflict in the file", span, help=help)
    name = expat.errors.messages[code]
    ended = name == expat.errors.XML_ERROR_INVALID_TOKEN and not opened and bool(stack[0].children)
    if name == expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT or ended:
        help = "delete it; OpenVINO ignores what follows, other readers of XML refuse the file"
        return Diagnostic("E106", "the file goes on after its root element", span, help=help)
    text = None if opened else _before_root(data)
    if text is not None:
        help = "delete it; OpenVINO ignores what stands there, other readers of XML refuse the file"
        return Diagnostic("E107", "text stands before the root element", source.span(text), help=help)
    if name == expat.errors.XML_ERROR_NO_ELEMENTS and opened is None:
        return Diagnostic("E101", "the file has no XML element", span, help="was it written to the end?")
    if name == expat.errors.XML_ERROR_NO_ELEMENTS and opened:
        help = "the file may be cut short"
        return Diagnostic("E101", f"the file ends while <{opened.tag}> is open", span, help=help, notes=note)
    if name == expat.errors.XML_ERROR_TAG_MISMATCH and opened:
        bare = without_bracket(source, data.find(b">", max(offset - _MOST_BARE, 0)), offset)
        return bare or _mismatch(source, data.rfind(b"<", 0, offset + 1), stack)
    if name == expat.errors.XML_ERROR_INVALID_TOKEN and _broken_utf8(data, offset):
        return Diagnostic("E101", "the bytes here are not UTF-8", span, help=UTF8)
    if name == expat.errors.XML_ERROR_INVALID_TOKEN and (value := _unquoted(data, offset)):
        place, end = value.start(1), data.find(b"\n", value.start(1))
        message = f"the value of `{value[1].decode('utf-8', 'replace')}` has no closing quote"
        help = f"write `{value[2].decode()}` at its end; it goes on to the next `<`"
        return Diagnostic("E101", message, source.span(place, end - place), help=help, notes=note)
    message, help = _WORDS.get(name, (f"not well-formed XML: {name}", "see https://www.w3.org/TR/xml"))
    if name == expat.errors.XML_ERROR_UNCLOSED_TOKEN and data.startswith(b"<!--", offset):
        message, help = "this comment is not closed before the file ends", "write `-->` where it ends"
    elif name == expat.errors.XML_ERROR_INVALID_TOKEN:
        message, help = _token(data, offset) or (message, help)
    return Diagnostic("E101", message, span, help=help, notes=note)


def _token(data: bytes, offset: int) -> tuple[str, str] | None:
    """What to say of a character that may not stand at byte `offset`, where more is to be said than that."""
    before = data[:offset]
    if data.startswith(b"--", max(offset - 2, 0)) and before.rfind(b"<!--") > before.rfind(b"-->", 0, offset - 2):
        return "`--` stands in a comment", "write something else for it: `--` only ends a comment, with a `>` behind it"
    character = data[offset : offset + 4].decode("utf-8", "ignore")[:1]
    if character and character not in "\t\r\n" and not (character.isascii() and character.isprintable()):
        if not character.isascii():
            quote = "“" <= character <= "‟" or character in "«»"
            help = f"write {'a plain quote' if quote else 'a plain blank' if character.isspace() else 'what is meant'}"
        else:
            help = "delete it: XML has no control characters, not even as references"
        return f"{code_point(character)} is not allowed here", help
    return None


def _unquoted(data: bytes, offset: int) -> re.Match[bytes] | None:
    """The attribute of the tag before the `<` at byte `offset` whose value goes on to it, over the end of a line."""
    start = data.rfind(b"<", max(offset - _LOOKED_BACK, 0), offset)
    found = _UNQUOTED.match(data, start, offset) if start >= 0 else None
    return found if found and data[offset : offset + 1] == b"<" and b"\n" in data[found.end() : offset] else None


def _before_root(data: bytes) -> int | None:
    """Where text begins that stands before the first element."""
    prolog = _PROLOG.match(data)
    start = prolog.end() if prolog else 0
    return None if data[start : start + 1] in (b"<", b"") else start


def _mismatch(source: Source, offset: int, stack: list[Element]) -> Diagnostic:
    """What to say of a closing tag at byte `offset` that is not that of the last one in `stack`."""
    opened = stack[-1]
    found = source.data[offset : source.data.find(b">", offset) + 1].decode("utf-8", "replace")
    if found.lower() == f"</{opened.tag.lower()}>":
        return _other_case(source, offset, found, opened)
    inside = _left_open(stack)
    if inside is not None:
        return _unclosed(source, *inside)
    if found == f"</{stack[-2].tag}>":
        return _unclosed(source, [opened], f"`{found}`", offset)
    end = TAG.match(source.data, offset + 1 if source.data[offset : offset + 1] != b"<" else offset)
    help = f"close <{opened.tag}> first, or delete `{found}`"
    if found == "</port>" and opened.tag in ("input", "output"):
        help = f"a <port .../> before it is closed at once, so its <dim>s lie outside: write <port ...>; {_FRAGMENT}"
    length = len(found) if end or found else 1
    message = f"`{found}` does not close <{opened.tag}>"
    return Diagnostic("E101", message, source.span(offset, length), help=help, notes=(_opening(opened),))


def _other_case(source: Source, offset: int, found: str, opened: Element) -> Diagnostic:
    """The error of two tags that differ in case, at the one that is not spelt as in an IR."""
    right = opened.tag.lower() if opened.tag.lower() in _CHILDREN else opened.tag
    closing = Note(f"`{found}` is to close it", source.span(offset, len(found)))
    if opened.tag != right:
        message, help = f"<{opened.tag}> and `{found}` differ in case", f"write <{right}>"
        return Diagnostic("E101", message, opened.span, help=help, notes=(closing,))
    message, help = f"`{found}` does not close <{opened.tag}>: the case differs", f"write `</{right}>`"
    return Diagnostic("E101", message, closing.span, help=help, notes=(_opening(opened),))


def _left_open(stack: list[Element]) -> tuple[list[Element], str, int] | None:
    """The elements that should have been closed before one that cannot stand in them: that one, and where it begins."""
    around: dict[str, int] = {}
    for depth, element in enumerate(stack):
        known = _CHILDREN.get(element.tag.lower())
        if known is None:
            continue
        # what closes an element too early leaves its children in the one around it
        spilt = known.union(*(_CHILDREN.get(tag, ()) for tag in known))
        for child in chain(element.children, stack[depth + 1 : depth + 2]):
            if child.tag not in spilt and child.tag in around:
                opened = stack[around[child.tag] + 1 : depth + 1]
                again = "the next " if any(child.tag == one.tag for one in opened) else ""
                return opened, f"{again}<{child.tag}>", child.offset
        around |= dict.fromkeys(known, depth)
    return None


def _unclosed(source: Source, opened: list[Element], what: str, offset: int) -> Diagnostic:
    """The error of elements that are not closed before `what` at byte `offset`, at the place where they should be."""
    tags = [element.tag for element in reversed(opened)]
    place = _with_comments(source.data, offset)
    listed = " and ".join(f"<{tag}>" for tag in tags)
    message = f"{listed} {'is' if len(tags) == 1 else 'are'} not closed before {what}"
    help = f"write `{''.join(f'</{tag}>' for tag in tags)}` here"
    if not _CHILDREN.get(tags[0], {tags[0]}) and tags[0] != "dim":
        help += f", or end the tag of <{tags[0]}> in `/>`"
    found = TAG.match(source.data, place)
    length = len(found[0]) if found else len(what) - 2
    notes = tuple(_opening(element) for element in reversed(opened))
    return Diagnostic("E101", message, source.span(place, length), help=help, notes=notes)


def _with_comments(data: bytes, offset: int) -> int:
    """Where the comments begin that stand right before byte `offset`, or that byte."""
    start = max(offset - _LOOKED_BACK, 0)
    while (before := data[start:offset].rstrip()).endswith(b"-->") and (found := before.rfind(b"<!--")) >= 0:
        offset = start + found
    return offset


def _opening(element: Element) -> Note:
    return Note(f"<{element.tag}> is opened here", element.span)


def _broken_utf8(data: bytes, offset: int) -> bool:
    try:
        data[offset : offset + 4].decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return False
